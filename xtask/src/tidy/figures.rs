//! The figures in README.md and `docs/benchmarks/*.md` match the project's results.
//!
//! Input: these texts and `docs/benchmarks/results/*.json`; output: markers whose figure differs from the results or
//! cannot be computed, and a total size of the results above the limit.

use super::Violation;
use crate::figures::{Numbers, RESULTS_SIZE_MAX, has_numbers, results_size, rewritten};
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let numbers = Numbers::of(tree);
    let mut found = Vec::new();
    for (file, text) in tree.texts().filter(|(file, _)| has_numbers(&file.path)) {
        let (new, problems) = rewritten(text, &numbers);
        let problem = |problem: crate::figures::Problem| Violation::new(&file.path, problem.line, problem.message);
        found.extend(problems.into_iter().map(problem));
        if let Some(line) = text.lines().zip(new.lines()).position(|(is, should)| is != should) {
            let message = "a number or table differs from docs/benchmarks/results: run `make generate`";
            found.push(Violation::new(&file.path, line + 1, message));
        } else if text != new {
            found.push(Violation::new(
                &file.path,
                text.lines().count(),
                "a table differs from docs/benchmarks/results: run `make generate`",
            ));
        }
    }
    let size = results_size(tree);
    if size > RESULTS_SIZE_MAX {
        let message =
            format!("{size} bytes of results, at most {RESULTS_SIZE_MAX}: `lydian-lab thin` makes them smaller");
        found.push(Violation::new("docs/benchmarks/results", 1, message));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::TrackedFile;

    const RESULTS: (&str, &str) = (
        "docs/benchmarks/results/mix.json",
        r#"{"summary": [{"node": "lydian", "cache": "warm", "figures": {"wall_seconds": {"median": 2.05}}}]}"#,
    );

    fn readme(text: &str) -> Vec<Violation> {
        check(&Tree::of(&[RESULTS, ("README.md", text)]))
    }

    #[test]
    fn a_number_that_drifted_is_found_with_its_line() {
        assert_eq!(readme("x\n<!-- lab: mix lydian wall_seconds -->2.05<!-- / --> s\n"), []);
        let drifted = readme("x\n<!-- lab: mix lydian wall_seconds -->2.04<!-- / --> s\n");
        assert_eq!((drifted.len(), drifted[0].line), (1, 2));
        assert!(drifted[0].message.contains("make generate"));
        let short = readme("<!-- lab-table: mix wall_seconds --><!-- / -->\n");
        assert_eq!(short.len(), 1);
    }

    #[test]
    fn a_number_whose_file_is_gone_is_found_and_other_texts_are_left_alone() {
        let gone = readme("<!-- lab: gone lydian wall_seconds -->2.05<!-- / --> s\n");
        assert_eq!(gone.len(), 1);
        assert!(gone[0].message.contains("there is no docs/benchmarks/results/gone.json"), "{gone:?}");
        assert_eq!(check(&Tree::of(&[("docs/lab.md", "<!-- lab: gone lydian wall_seconds -->2.05<!-- / -->")])), []);
    }

    #[test]
    fn results_at_and_above_their_size() {
        let of = |size_bytes| TrackedFile {
            path: "docs/benchmarks/results/a.json".into(),
            size_bytes,
            text: None,
            rust: None,
        };
        assert_eq!(check(&Tree { files: vec![of(RESULTS_SIZE_MAX)] }), []);
        assert_eq!(check(&Tree { files: vec![of(RESULTS_SIZE_MAX - 1), of(2)] }).len(), 1);
    }
}
