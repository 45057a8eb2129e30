//! Every known bug of other nodes has a test that carries its number, or a reason why its test comes later.
//!
//! Input: `docs/checklist.tsv` (number, status `tested` or `later`, title, reason) and the lines `/// checklist: 13`
//! above tests; output: numbers without a row, rows without a test or a reason, and tests whose number has no row or
//! has the status `later`.

use super::Violation;
use super::doc_lines::{Carried, Claim, carried};
use crate::tree::Tree;

const PATH: &str = "docs/checklist.tsv";
/// The numbers that must have a row: those about consensus. The others are added with the component they concern.
const NUMBERS: std::ops::RangeInclusive<u32> = 1..=59;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) number: u32,
    /// Whether it is tested now; if not, the test comes later.
    pub(crate) tested: bool,
    pub(crate) title: String,
    /// The reason for a later test, or which part of it comes later.
    pub(crate) reason: String,
    pub(crate) line: usize,
}

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(text) = tree.text(PATH) else { return vec![Violation::new(PATH, 1, "the checklist is missing")] };
    match parse(text) {
        Ok(rows) => compare(&rows, &carried(tree)),
        Err(violation) => vec![violation],
    }
}

/// Returns the rows of the table, for the document generated from it.
pub(crate) fn rows(tree: &Tree) -> Result<Vec<Row>, String> {
    let text = tree.text(PATH).ok_or_else(|| format!("{PATH} is missing"))?;
    parse(text).map_err(|wrong| format!("{PATH}:{}: {}", wrong.line, wrong.message))
}

/// Returns the tests that carry `number`, as `path::function`.
pub(crate) fn tests_of(number: u32, tree: &Tree) -> Vec<String> {
    let carries = |one: &Carried| one.claim == Claim::Checklist(number);
    let mut tests: Vec<String> =
        carried(tree).iter().filter(|one| carries(one)).map(|one| format!("{}::{}", one.path, one.test)).collect();
    tests.sort();
    tests.dedup();
    tests
}

fn parse(text: &str) -> Result<Vec<Row>, Violation> {
    let mut rows: Vec<Row> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let wrong = |message: &str| Violation::new(PATH, index + 1, message);
        let fields: Vec<&str> = line.split('\t').collect();
        let [number, status, title, rest @ ..] = fields.as_slice() else {
            return Err(wrong("expected number, status, title and perhaps a reason, separated by tabs"));
        };
        let number = number.parse().map_err(|_| wrong("the first field is a number"))?;
        let tested = match *status {
            "tested" => true,
            "later" => false,
            _ => return Err(wrong("the status is `tested` or `later`")),
        };
        if rows.last().is_some_and(|last| last.number >= number) {
            return Err(wrong("numbers rise"));
        }
        let reason = rest.first().copied().unwrap_or("").to_owned();
        if !tested && reason.is_empty() {
            return Err(wrong("what comes later has its reason in the fourth field"));
        }
        rows.push(Row { number, tested, title: (*title).to_owned(), reason, line: index + 1 });
    }
    Ok(rows)
}

fn compare(rows: &[Row], carried: &[Carried]) -> Vec<Violation> {
    let mut found = Vec::new();
    for number in NUMBERS.filter(|number| !rows.iter().any(|row| row.number == *number)) {
        found.push(Violation::new(PATH, 1, format!("number {number} has no row")));
    }
    for row in rows {
        let has_test = carried.iter().any(|one| one.claim == Claim::Checklist(row.number));
        let number = row.number;
        match (row.tested, has_test) {
            (true, false) => {
                found.push(Violation::new(
                    PATH,
                    row.line,
                    format!("no test carries `/// checklist: {number}` ({})", row.title),
                ));
            }
            (false, true) => {
                found.push(Violation::new(PATH, row.line, format!("{number} has a test: its status is `tested`")))
            }
            _ => {}
        }
    }
    for one in carried {
        if let Claim::Checklist(number) = one.claim
            && !rows.iter().any(|row| row.number == number)
        {
            found.push(Violation::new(&one.path, one.line, format!("the checklist has no number {number}")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(skip: u32, later: u32) -> String {
        let mut text = "# number\tstatus\ttitle\treason\n".to_owned();
        for number in NUMBERS.filter(|number| *number != skip) {
            let status = if number == later { "later\tx\tbecause" } else { "tested\tx" };
            text += &format!("{number}\t{status}\n");
        }
        text
    }

    fn tests(skip: u32) -> String {
        let numbers: Vec<String> = NUMBERS.filter(|number| *number != skip).map(|number| number.to_string()).collect();
        format!("/// checklist: {}\n#[test]\nfn all() {{}}\n", numbers.join(", "))
    }

    fn found(table: &str, tests: &str) -> Vec<String> {
        let tree = Tree::of(&[(PATH, table), ("crates/a/tests/b.rs", tests)]);
        check(&tree).into_iter().map(|one| one.message).collect()
    }

    #[test]
    fn a_test_or_a_reason_for_each() {
        assert!(found(&table(0, 0), &tests(0)).is_empty());
        assert!(found(&table(0, 33), &tests(33)).is_empty());
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(found(&table(0, 0), &tests(13)), ["no test carries `/// checklist: 13` (x)"]);
        assert_eq!(found(&table(0, 33), &tests(0)), ["33 has a test: its status is `tested`"]);
        assert_eq!(found(&table(7, 0), &tests(7)), ["number 7 has no row"]);
        assert_eq!(found(&table(7, 0), &tests(0)), ["number 7 has no row", "the checklist has no number 7"]);
        assert_eq!(found("1\tlater\tx\n", ""), ["what comes later has its reason in the fourth field"]);
        assert_eq!(found("2\ttested\tx\n1\ttested\tx\n", ""), ["numbers rise"]);
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }

    #[test]
    fn tests_are_named_by_place() {
        let tree = Tree::of(&[("crates/a/tests/b.rs", "/// checklist: 5\n#[test]\nfn undo() {}\n")]);
        assert_eq!(tests_of(5, &tree), ["crates/a/tests/b.rs::undo"]);
    }
}
