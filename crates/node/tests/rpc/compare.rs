//! Compares two answers field by field, in their order, with numbers as they are written. Permitted differences are
//! listed in `differences.tsv`, each with its reason; a line there that no answer needs is also an error.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// Permitted differences: method, path (`*` is any index of an array), reason.
const DIFFERENCES: &str = include_str!("differences.tsv");

/// Collects differences.
#[derive(Default)]
pub(crate) struct Comparison {
    found: RefCell<Vec<String>>,
    used: RefCell<BTreeSet<&'static str>>,
    asked: RefCell<BTreeSet<String>>,
    pub(crate) calls: RefCell<usize>,
}

impl Comparison {
    /// Compares our answer to a call with Core's.
    pub(crate) fn compare(&self, method: &str, call: &str, ours: &str, cores: &str) {
        *self.calls.borrow_mut() += 1;
        self.asked.borrow_mut().insert(method.to_owned());
        let (mut ours, mut cores) = (self.leaves(method, ours), self.leaves(method, cores));
        if method == "getchaintips" {
            (ours, cores) = (by_hash_within_a_height(ours), by_hash_within_a_height(cores));
        }
        if ours != cores {
            let differing = ours.iter().zip(&cores).find(|(ours, cores)| ours != cores);
            let shown = match differing {
                Some((ours, cores)) => format!("{ours:?} is not {cores:?}"),
                None => format!("{} values are not {}: {:?}", ours.len(), cores.len(), ours.last().zip(cores.last())),
            };
            self.found.borrow_mut().push(format!("{call:.300}: {shown:.1500}"));
        }
    }

    /// Values with their paths, without permitted differences.
    fn leaves(&self, method: &str, text: &str) -> Vec<(String, String)> {
        let mut all = Vec::new();
        Walk { text: text.trim().as_bytes(), at: 0 }.value(String::new(), &mut all);
        all.retain(|(path, _)| {
            let line = DIFFERENCES.lines().filter(|line| !line.starts_with('#')).find(|line| {
                let mut fields = line.split('\t');
                let (named, wanted) = (fields.next().unwrap(), fields.next().unwrap_or_default());
                named == method && fits(path, wanted)
            });
            self.used.borrow_mut().extend(line);
            line.is_none()
        });
        all
    }

    /// Fails if any answer differed.
    pub(crate) fn finish(self) {
        let found = self.found.into_inner();
        assert!(found.is_empty(), "{} of {} calls differ:\n{}", found.len(), self.calls.into_inner(), found.join("\n"));
    }

    /// Fails if a permitted difference of a method that was called did not occur.
    pub(crate) fn check_all_used(&self) {
        let (used, asked) = (self.used.borrow(), self.asked.borrow());
        let lines = DIFFERENCES.lines().filter(|line| !line.starts_with('#') && !used.contains(line));
        let idle: Vec<&str> =
            lines.filter(|line| asked.contains(line.split('\t').next().unwrap_or_default())).collect();
        assert!(idle.is_empty(), "allowed differences that did not occur: {idle:?}");
    }
}

/// Sorts tips of one height by hash: Core lists them by their addresses in memory (`CompareBlocksByHeight`).
fn by_hash_within_a_height(leaves: Vec<(String, String)>) -> Vec<(String, String)> {
    let is_tip = |(path, _): &(String, String)| path.starts_with("result.");
    let (of_tips, others): (Vec<_>, Vec<_>) = leaves.into_iter().partition(is_tip);
    let field = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let mut tips: Vec<Vec<(String, String)>> = of_tips
        .chunk_by(|(a, _), (b, _)| a.split('.').nth(1) == b.split('.').nth(1))
        .map(|tip| tip.iter().map(|(path, value)| (field(path), value.clone())).collect())
        .collect();
    let value = |tip: &[(String, String)], name: &str| {
        tip.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    for same in tips.chunk_by_mut(|a, b| value(a, "height") == value(b, "height")) {
        same.sort_by_key(|tip| value(tip, "hash"));
    }
    let numbered = tips
        .into_iter()
        .enumerate()
        .flat_map(|(index, tip)| tip.into_iter().map(move |(field, value)| (format!("result.{index}.{field}"), value)));
    numbered.chain(others).collect()
}

#[test]
fn tips_of_one_height_have_no_order() {
    let answer = |hashes: [&str; 3]| {
        let tip = |(index, hash): (usize, &&str)| {
            let height = if index == 0 { "9" } else { "5" };
            let path = |field: &str| format!("result.{index}.{field}");
            [(path("height"), height.to_owned()), (path("hash"), (*hash).to_owned())]
        };
        hashes.iter().enumerate().flat_map(tip).chain([("id".to_owned(), "1".to_owned())]).collect::<Vec<_>>()
    };
    let sorted = |hashes| by_hash_within_a_height(answer(hashes));
    assert_eq!(sorted(["a", "b", "c"]), sorted(["a", "c", "b"]));
    assert_ne!(sorted(["a", "b", "c"]), sorted(["b", "a", "c"]), "heights keep their order");
    assert_eq!(sorted(["a", "b", "c"]), answer(["a", "b", "c"]));
}

fn fits(path: &str, wanted: &str) -> bool {
    let (mut path, mut wanted) = (path.split('.'), wanted.split('.'));
    loop {
        match (path.next(), wanted.next()) {
            (None, None) => return true,
            // A path covers everything below it.
            (Some(_), None) => return true,
            (Some(a), Some(b)) if a == b || b == "*" => {}
            _ => return false,
        }
    }
}

/// A walker over JSON that is known to be well formed.
struct Walk<'a> {
    text: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    fn value(&mut self, path: String, all: &mut Vec<(String, String)>) {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match self.text[self.at] {
            open @ (b'{' | b'[') => {
                let close = if open == b'{' { b'}' } else { b']' };
                self.at += 1;
                let mut index = 0;
                while self.text[self.at] != close {
                    let name = match open {
                        b'{' => {
                            let key = self.token();
                            self.at += 1;
                            key.trim_matches('"').to_owned()
                        }
                        _ => index.to_string(),
                    };
                    self.value(below(&name), all);
                    index += 1;
                    if self.text[self.at] == b',' {
                        self.at += 1;
                    }
                }
                self.at += 1;
                if index == 0 {
                    all.push((path, String::from_utf8(vec![open, close]).unwrap()));
                }
            }
            _ => {
                let token = self.token();
                all.push((path, token));
            }
        }
    }

    fn token(&mut self) -> String {
        let start = self.at;
        if self.text[self.at] == b'"' {
            self.at += 1;
            while self.text[self.at] != b'"' {
                self.at += if self.text[self.at] == b'\\' { 2 } else { 1 };
            }
            self.at += 1;
        } else {
            while self.text.get(self.at).is_some_and(|byte| !b",]}".contains(byte)) {
                self.at += 1;
            }
        }
        String::from_utf8_lossy(&self.text[start..self.at]).into_owned()
    }
}
