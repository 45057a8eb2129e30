//! Text for people. Input: text. Output: the same words in lines.

/// Breaks text into lines of at most `width` characters; the first line is not indented.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        if column > 0 && column + 1 + word.len() > width {
            out.push('\n');
            out.push_str(indent);
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_broken_into_lines() {
        assert_eq!(wrap("one two  three four", 9, "  "), "one two\n  three\n  four");
        assert_eq!(wrap("a-word-beyond-the-width b", 9, ""), "a-word-beyond-the-width\nb");
    }
}
