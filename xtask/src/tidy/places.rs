//! The project does not depend on the machine it was written on, and none of its files is too large.
//!
//! Input: the text and the size of every tracked file; output: hosts of package registries, paths of one machine, files
//! above 1 MB outside `testdata/`, and test data above 20 MB in total. Lock files name registries by design and are
//! exempt.

use super::Violation;
use crate::tree::{Tree, is_foreign_data};

const FILE_SIZE_MAX: u64 = 1_000_000;
const TESTDATA_SIZE_MAX: u64 = 20_000_000;
const LOCK_FILES: &[&str] = &["Cargo.lock", "fuzz/Cargo.lock", "rivals/Cargo.lock", "tools/fullblocktests/go.sum"];
/// First labels of hosts that serve packages.
const REGISTRY_LABELS: &[&str] = &["deb", "proxy", "registry", "repo", "repo1", "index", "static"];
/// First folders of paths that exist on one machine only, assembled with `concat!` so that this file does not report
/// itself.
const MACHINE_FOLDERS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/fa", "rm/"), concat!("/t", "mp/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &tree.files {
        let is_lock = LOCK_FILES.contains(&file.path.as_str());
        if file.size_bytes > FILE_SIZE_MAX && !file.path.starts_with("testdata/") {
            let message = format!("{} bytes, at most {FILE_SIZE_MAX} outside testdata", file.size_bytes);
            found.push(Violation::new(&file.path, 1, message));
        }
        let Some(text) = file.text.as_deref().filter(|_| !is_lock && !is_foreign_data(&file.path)) else { continue };
        for (index, line) in text.lines().enumerate() {
            if let Some(what) = names_a_place(line) {
                found.push(Violation::new(&file.path, index + 1, what));
            }
        }
    }
    let testdata: u64 =
        tree.files.iter().filter(|file| file.path.starts_with("testdata/")).map(|file| file.size_bytes).sum();
    if testdata > TESTDATA_SIZE_MAX {
        found.push(Violation::new("testdata", 1, format!("{testdata} bytes, at most {TESTDATA_SIZE_MAX}")));
    }
    found
}

fn names_a_place(line: &str) -> Option<String> {
    for folder in MACHINE_FOLDERS {
        for (at, _) in line.match_indices(folder) {
            let before = line[..at].chars().next_back();
            let after = line[at + folder.len()..].chars().next();
            let starts = before
                .is_none_or(|c| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-' | '/' | '*' | '}' | ')'));
            if starts && after.is_some_and(|c| c.is_ascii_alphanumeric()) {
                return Some(format!("a path of one machine ({folder}..)"));
            }
        }
    }
    let hosts = line.match_indices("://").map(|(at, mark)| &line[at + mark.len()..]);
    let quoted = line.match_indices('"').map(|(at, mark)| &line[at + mark.len()..]);
    hosts.chain(quoted).find_map(registry_host).map(|host| format!("the host of a package registry ({host})"))
}

/// Returns the host that `text` starts with if it looks like LABEL.name.org.
fn registry_host(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-')).unwrap_or(text.len());
    let host = &text[..end];
    let mut labels = host.split('.');
    let first = labels.next()?;
    let last = labels.next_back()?;
    let is_host = labels.next().is_some() && matches!(last, "org" | "io" | "com" | "net");
    (is_host && REGISTRY_LABELS.contains(&first)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::TrackedFile;

    #[test]
    fn places_are_found() {
        for folder in MACHINE_FOLDERS {
            assert!(names_a_place(&format!("cd {folder}main")).is_some(), "{folder}");
            assert!(names_a_place(&format!("\"{folder}x\"")).is_some(), "{folder}");
        }
        for label in REGISTRY_LABELS {
            assert!(names_a_place(&format!("see https://{label}.example.org/x")).is_some(), "{label}");
        }
    }

    #[test]
    fn ordinary_words_are_not() {
        let work = MACHINE_FOLDERS[0];
        for good in
            ["crates/network/x", "https://github.com/bitcoin/bips", "index.json", "\"registry\"", "a static.rs file"]
        {
            assert_eq!(names_a_place(good), None, "{good}");
        }
        assert_eq!(names_a_place(&format!("net{work}x")), None);
        assert_eq!(names_a_place(&format!("..{work}x")), None);
    }

    #[test]
    fn sizes_at_and_above() {
        let sized = |path: &str, size_bytes| TrackedFile { path: path.into(), size_bytes, text: None, rust: None };
        let count = |files| check(&Tree { files }).len();
        assert_eq!(count(vec![sized("docs/a.png", FILE_SIZE_MAX)]), 0);
        assert_eq!(count(vec![sized("docs/a.png", FILE_SIZE_MAX + 1)]), 1);
        assert_eq!(count(vec![sized("testdata/a", TESTDATA_SIZE_MAX - 1), sized("testdata/b", 1)]), 0);
        assert_eq!(count(vec![sized("testdata/a", TESTDATA_SIZE_MAX), sized("testdata/b", 1)]), 1);
    }
}
