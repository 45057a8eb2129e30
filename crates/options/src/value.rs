//! Numbers and switches, read as Bitcoin Core reads them: a text that is not a number is 0. Scripts written for Core
//! rely on that. Input: the text after `=`. Output: a value; no text is an error.

/// Core's `LocaleIndependentAtoi<int64_t>`: ignores white space around the text and everything after the digits. A text
/// without digits is 0, and a number out of range becomes the nearest value in range.
pub fn atoi(text: &str) -> i64 {
    let text = text.trim_matches([' ', '\u{c}', '\n', '\r', '\t', '\u{b}']);
    let text = match text.strip_prefix('+') {
        Some(rest) if rest.starts_with('-') => return 0,
        Some(rest) => rest,
        None => text,
    };
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let end = digits.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 {
        return 0;
    }
    let value = digits[..end].parse::<i128>().unwrap_or(i128::MAX);
    let value = if is_negative { -value } else { value };
    i64::try_from(value).unwrap_or(if is_negative { i64::MIN } else { i64::MAX })
}

/// Core's `InterpretBool`: an empty text is true, and so is every number except 0.
pub fn switch(text: &str) -> bool {
    text.is_empty() || atoi(text) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Core's util_tests: `test_LocaleIndependentAtoi`.
    #[test]
    fn numbers_are_read_as_core_reads_them() {
        let numbers =
            ["1234", "0", "01234", "-1234", " 1", "1 ", "1a", "1.1", "1.9", "+01.9", "-1", " -1", "-1 ", " -1 "];
        assert_eq!(numbers.map(atoi), [1234, 0, 1234, -1234, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1]);
        let others = ["+1", " +1", "+1 ", "+-1", "-+1", "++1", "--1", "", "aap", "0x1", "many", "12x", "+-4"];
        assert_eq!(others.map(atoi), [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 12, 0]);
        let large = ["-32482348723847471234", "32482348723847471234", "-9223372036854775809", "9223372036854775808"];
        assert_eq!(large.map(atoi), [i64::MIN, i64::MAX, i64::MIN, i64::MAX]);
        assert_eq!(["", "1", "2", "-1", "true", "0", "yes"].map(switch), [true, true, true, true, false, false, false]);
    }
}
