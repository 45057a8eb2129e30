//! Commit messages have a short subject, and a body if they change more than a few lines.
//!
//! Input: the commits since [`BASE`]; output: each commit whose subject is too long, ends with a full stop, or whose
//! body is missing. A clone without the history (`git clone --depth 1`) has no commits to check, which is printed.

use super::Violation;
use crate::metadata::Metadata;
use std::process::Command;

/// The commit before the first one that is checked.
const BASE: &str = "67dec3c2fdcb7c86900eb10abca7dc097af294e0";

/// The longest subject, in characters.
const SUBJECT_MAX: usize = 72;

/// A commit that changes more lines than this has a body.
const LINES_WITHOUT_BODY_MAX: usize = 20;

/// Before each commit in the output of `git log`.
const MARK: &str = "\u{1}";

pub(super) fn check(metadata: &Metadata) -> Vec<Violation> {
    let range = format!("{BASE}..HEAD");
    let format = format!("--format={MARK}%h%n%s%n%b{MARK}");
    let output = Command::new("git")
        .arg("-C")
        .arg(&metadata.root)
        .args(["log", "--no-merges", "--shortstat", &format, &range])
        .output();
    match output {
        Ok(output) if output.status.success() => check_log(&String::from_utf8_lossy(&output.stdout)),
        _ => {
            println!("tidy: commits are not checked: {BASE} is not in this clone");
            Vec::new()
        }
    }
}

/// Checks the output of `git log`: of each commit the mark, hash, subject and body, the mark, and the changed lines.
fn check_log(log: &str) -> Vec<Violation> {
    let parts: Vec<&str> = log.split(MARK).skip(1).collect();
    let mut found = Vec::new();
    for commit in parts.chunks(2) {
        let mut lines = commit[0].lines();
        let (hash, subject) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let has_body = lines.any(|line| !line.trim().is_empty());
        let changed = changed_lines(commit.get(1).copied().unwrap_or_default());
        let mut complain = |message: String| found.push(Violation::new(&format!("commit {hash}"), 1, message));
        let length = subject.chars().count();
        if length > SUBJECT_MAX {
            complain(format!("the subject has {length} characters, at most {SUBJECT_MAX} are allowed"));
        }
        if subject.ends_with('.') {
            complain("the subject ends with a full stop".to_owned());
        }
        if changed > LINES_WITHOUT_BODY_MAX && !has_body {
            complain(format!("{changed} lines changed, and the message has no body that says why"));
        }
    }
    found
}

/// Insertions and deletions of ` 3 files changed, 10 insertions(+), 2 deletions(-)`.
fn changed_lines(stat: &str) -> usize {
    let number = |part: &str| part.split_whitespace().next().and_then(|number| number.parse::<usize>().ok());
    let parts = stat.split(',').filter(|part| part.contains("insertion") || part.contains("deletion"));
    parts.filter_map(number).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(subject: &str, body: &str, stat: &str) -> String {
        format!("{MARK}abc1234\n{subject}\n{body}{MARK}\n\n {stat}\n\n")
    }

    fn messages(log: &str) -> Vec<String> {
        check_log(log).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn a_subject_is_checked_at_its_limit() {
        let good = log(&"a".repeat(SUBJECT_MAX), "", "1 file changed, 1 insertion(+)");
        assert!(check_log(&good).is_empty());
        let bad = log(&"a".repeat(SUBJECT_MAX + 1), "", "1 file changed, 1 insertion(+)");
        assert_eq!(messages(&bad), ["the subject has 73 characters, at most 72 are allowed"]);
        assert_eq!(messages(&log("add a.", "", "")), ["the subject ends with a full stop"]);
    }

    #[test]
    fn a_large_change_needs_a_body() {
        let few = "3 files changed, 15 insertions(+), 5 deletions(-)";
        let many = "3 files changed, 15 insertions(+), 6 deletions(-)";
        assert!(check_log(&log("a: b", "", few)).is_empty());
        assert!(check_log(&log("a: b", "Because.\n", many)).is_empty());
        let two = format!("{}{}", log("a: b", "", many), log("c: d", "Because.\n", many));
        assert_eq!(messages(&two), ["21 lines changed, and the message has no body that says why"]);
    }
}
