//! A manual page in roff with the macros of man(7), which every `man` reads. Input: a [`Program`]. Output: text.

use crate::program::Program;

/// The page of section 1. Its date is that of the program's release.
pub fn page(program: &Program, date: &str) -> String {
    let Program { name, version, .. } = program;
    let mut page = format!(
        ".\\\" Written by the program from its tables.\n\
         .TH {} 1 \"{date}\" \"{name} {version}\" \"User Commands\"\n\
         .SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
        name.to_uppercase().replace('-', "\\-"),
        escaped(name),
        escaped(program.summary)
    );
    for (index, form) in program.synopsis.iter().enumerate() {
        let line_break = if index > 0 { ".br\n" } else { "" };
        page += &format!("{line_break}\\fB{}\\fR {}\n", escaped(name), escaped(form));
    }
    page += ".SH DESCRIPTION\n";
    for (index, text) in program.description.iter().enumerate() {
        page += if index > 0 { ".PP\n" } else { "" };
        page += &lines(text);
    }
    let listed = || program.words.iter().filter(|word| !word.help.is_empty());
    if listed().next().is_some() {
        page += ".SH COMMANDS\n";
        for word in listed() {
            page += &term(word.name, &format!(" {}", word.argument), word.help);
        }
    }
    page += ".SH OPTIONS\n";
    for (heading, entries) in &program.groups {
        page += &format!(".SS {}\n", escaped(heading));
        for entry in entries {
            let argument = if entry.takes_value() { format!("={}", entry.argument) } else { String::new() };
            let is_shown = !entry.default.is_empty() && (entry.default != "0" || entry.takes_value());
            let default = if is_shown { format!(" (default: {})", entry.default) } else { String::new() };
            page += &term(&format!("-{}", entry.name), &argument, &format!("{}{default}", entry.help));
        }
    }
    for (heading, pairs) in &program.sections {
        page += &format!(".SH {heading}\n");
        for (head, text) in pairs {
            page += &if head.is_empty() { lines(text) } else { term(head, "", text) };
        }
    }
    let others: Vec<String> = program.see_also.iter().map(|page| reference(page)).collect();
    if !others.is_empty() {
        page += &format!(".SH SEE ALSO\n{}\n", others.join(",\n"));
    }
    page
}

/// A term in bold with its argument, and what it means.
fn term(head: &str, argument: &str, text: &str) -> String {
    format!(".TP\n\\fB{}\\fR{}\n{}", escaped(head), escaped(argument.trim_end()), lines(text))
}

/// `name(1)` with the name in bold.
fn reference(page: &str) -> String {
    let (name, section) = page.split_once('(').unwrap_or((page, ""));
    format!("\\fB{}\\fR({section}", escaped(name))
}

/// Text as it is printed: roff reads backslashes, hyphens, and dots and quotes at the start of a line.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('…', "...")
}

/// Text in lines below 80 characters, none of which is read as a request.
fn lines(text: &str) -> String {
    let mut all = String::new();
    let mut line = String::new();
    for word in text.split_whitespace().map(escaped) {
        if !line.is_empty() && line.len() + 1 + word.len() > 78 {
            all += &line;
            all.push('\n');
            line.clear();
        }
        match line.is_empty() {
            true if word.starts_with('.') => line += "\\&",
            true => {}
            false => line.push(' '),
        }
        line += &word;
    }
    all + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::tests::example;

    #[test]
    fn nothing_of_a_text_is_read_as_a_request() {
        let page = page(&example(), "2026-11-27");
        assert!(page.contains(".TH PROG 1 \"2026-11-27\" \"prog 1.2.3\" \"User Commands\"\n"), "{page}");
        assert!(page.contains("prog \\- does \\- things\n"), "{page}");
        assert!(page.contains("One \\e paragraph.\n.PP\n\\(aqTwo\\(aq.\n"), "{page}");
        assert!(page.contains(".TP\n\\fBindex\\fR COMMAND\n\\&.begins with a dot\n"), "{page}");
        assert!(
            page.contains(".TP\n\\fB\\-datadir\\fR=<dir>\nUse what\\(aqs [given]: all. More (default: 1)\n"),
            "{page}"
        );
        assert!(page.contains(".SH SEE ALSO\n\\fBprog\\-cli\\fR(1)\n"), "{page}");
        assert!(page.lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn long_lines_are_cut_between_words() {
        let text = lines(&"word ".repeat(40));
        assert!(text.lines().all(|line| line.len() <= 78 && line.split(' ').all(|word| word == "word")));
        assert_eq!(text.split_whitespace().count(), 40);
    }
}
