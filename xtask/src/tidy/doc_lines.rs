//! The lines in a test's doc comment that state what the test proves.
//!
//! Input: lines `/// checklist: 13, 14`, `/// rule: NAME pass` (or `fail`), `/// limit: NAME at` (or `above`; `below`
//! for a minimum); output: each as a value with the test that carries it. Files are read as text, so that tests inside
//! macros (proptest) can carry them as well. A line that is not above a test, or is above an ignored test, proves
//! nothing and is a violation.

use super::Violation;
use crate::tree::Tree;

/// The claim that one line makes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    Checklist(u32),
    Rule {
        name: String,
        passes: bool,
    },
    /// If `beyond` is set, the test covers the case above the limit (below it, for a minimum).
    Limit {
        name: String,
        beyond: bool,
    },
}

/// A claim and the test that makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) claim: Claim,
    pub(crate) path: String,
    pub(crate) crate_name: String,
    pub(crate) line: usize,
    pub(crate) test: String,
}

const KEYS: &[&str] = &["checklist", "rule", "limit"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    read(tree).1
}

pub(crate) fn carried(tree: &Tree) -> Vec<Carried> {
    read(tree).0
}

fn read(tree: &Tree) -> (Vec<Carried>, Vec<Violation>) {
    let (mut carried, mut wrong) = (Vec::new(), Vec::new());
    for (file, text) in tree.texts().filter(|(file, _)| file.path.ends_with(".rs")) {
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some((key, words)) = doc_line(line) else { continue };
            match (parse(key, words), test_below(&lines, index)) {
                (Ok(claims), Ok(test)) => carried.extend(claims.into_iter().map(|claim| Carried {
                    claim,
                    path: file.path.clone(),
                    crate_name: file.crate_name().unwrap_or("").to_owned(),
                    line: index + 1,
                    test: test.clone(),
                })),
                (Err(message), _) | (_, Err(message)) => wrong.push(Violation::new(&file.path, index + 1, message)),
            }
        }
    }
    (carried, wrong)
}

fn doc_line(line: &str) -> Option<(&str, &str)> {
    let (key, words) = line.trim_start().strip_prefix("/// ")?.split_once(':')?;
    KEYS.contains(&key).then(|| (key, words.trim()))
}

fn parse(key: &str, words: &str) -> Result<Vec<Claim>, String> {
    if key == "checklist" {
        let number = |word: &str| word.trim().parse().map(Claim::Checklist).ok();
        let numbers: Option<Vec<Claim>> = words.split(',').map(number).collect();
        return numbers.ok_or_else(|| "expected numbers: `/// checklist: 13, 14`".to_owned());
    }
    let (names, case) = words.rsplit_once(' ').unwrap_or((words, ""));
    let names = names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let claims: Option<Vec<Claim>> = match (key, case) {
        ("rule", "pass" | "fail") => Some(names.map(|name| Claim::Rule { name, passes: case == "pass" }).collect()),
        ("limit", "at" | "above" | "below") => {
            Some(names.map(|name| Claim::Limit { name, beyond: case != "at" }).collect())
        }
        _ => None,
    };
    let wanted =
        if key == "rule" { "`/// rule: NAME pass` or `.. fail`" } else { "`/// limit: NAME at` or `.. above`" };
    claims.filter(|claims| !claims.is_empty()).ok_or_else(|| format!("expected {wanted}"))
}

/// Returns the name of the test to whose doc comment the line at `index` belongs.
fn test_below(lines: &[&str], index: usize) -> Result<String, String> {
    let belongs = |line: &&str| line.starts_with("//") || line.starts_with('#') || line.ends_with(")]");
    let above = lines[..index].iter().rev().map(|line| line.trim()).take_while(belongs);
    let below = lines[index..].iter().map(|line| line.trim()).take_while(belongs);
    let attributes: Vec<&str> = above.chain(below.clone()).filter(|line| line.starts_with("#[")).collect();
    if attributes.iter().any(|line| line.starts_with("#[ignore")) {
        return Err("this test is ignored: it proves nothing in `make test`".to_owned());
    }
    let signature = lines.get(index + below.count()).copied().unwrap_or("");
    let name = signature.split_once("fn ").and_then(|(_, rest)| rest.split(['(', '<']).next());
    let is_test = attributes.iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test]"));
    name.filter(|_| is_test)
        .map(|name| name.trim().to_owned())
        .ok_or_else(|| "this line is not above a #[test] function".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (Vec<Carried>, Vec<Violation>) {
        read(&Tree::of(&[("crates/a/src/lib.rs", text)]))
    }

    fn claims(text: &str) -> Vec<Claim> {
        let (carried, wrong) = of(text);
        assert!(wrong.is_empty(), "{wrong:?}");
        carried.into_iter().map(|one| one.claim).collect()
    }

    #[test]
    fn every_form_is_read() {
        let text = "/// What it is about.\n/// checklist: 13, 14\n/// rule: BadCbLength fail\n#[test]\nfn a() {}\n";
        assert_eq!(
            claims(text),
            [Claim::Checklist(13), Claim::Checklist(14), Claim::Rule { name: "BadCbLength".into(), passes: false }]
        );
        let limit = |beyond| Claim::Limit { name: "SIZE_MAX".into(), beyond };
        assert_eq!(
            claims("#[test]\n/// limit: SIZE_MAX at\n/// limit: SIZE_MAX above\nfn a() {}\n"),
            [limit(false), limit(true)]
        );
        assert_eq!(of("    /// rule: A, B pass\n    #[test]\n    fn inside(x in 0..9) {}\n").0[1].test, "inside");
    }

    #[test]
    fn other_doc_lines_are_none() {
        assert!(claims("/// note: this\n/// The rule: be kind\nfn a() {}\n").is_empty());
    }

    #[test]
    fn a_line_that_proves_nothing_is_a_violation() {
        for bad in [
            "/// checklist: many\n#[test]\nfn a() {}\n",
            "/// rule: A maybe\n#[test]\nfn a() {}\n",
            "/// rule: pass\n#[test]\nfn a() {}\n",
            "/// limit: A over\n#[test]\nfn a() {}\n",
            "/// checklist: 13\nfn a() {}\n",
            "/// checklist: 13\n\n#[test]\nfn a() {}\n",
            "/// checklist: 13\n#[test]\nstruct A;\n",
            "/// checklist: 13\n#[test]\n#[ignore = \"slow\"]\nfn a() {}\n",
        ] {
            assert_eq!(of(bad).1.len(), 1, "{bad:?}");
        }
    }
}
