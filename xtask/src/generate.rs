//! The documents that are generated from tables.
//!
//! Input: tables of this program and the checkout; output: files under `docs/` and the marked figures of README.md,
//! written only if their text changes. CI runs this and fails if a file in the checkout changed. To add a document, add
//! one line to `DOCUMENTS`.

use crate::figures::{Numbers, has_numbers, rewritten};
use crate::layers::{BESIDE, LAYERS, OPEN};
use crate::tidy::{Row, checklist_rows, checklist_tests};
use crate::tree::Tree;
use std::process::Command;

struct Document {
    path: &'static str,
    make: fn(&Tree) -> Result<String, String>,
}

const DOCUMENTS: &[Document] = &[
    Document { path: "docs/crates.md", make: |_| Ok(crates()) },
    Document { path: "docs/checklist.md", make: checklist },
    Document { path: "docs/memory.md", make: crate::memory::document },
    Document { path: "docs/config.md", make: |_| printed_by_the_program("-help-config") },
    Document { path: "docs/doctor.md", make: |_| printed_by_the_program("-help-doctor") },
    Document { path: "docs/rpc.md", make: |_| printed_by_the_program("-help-rpc") },
    Document { path: "docs/core-interface.md", make: |_| printed_by_the_program("-help-interface") },
    Document { path: "docs/formats/README.md", make: |_| printed_by_the_program("-help-formats") },
    Document { path: "docs/metrics.md", make: |_| of_metrics("docs/metrics.md") },
    Document { path: "contrib/grafana/lydian.json", make: |_| of_metrics("contrib/grafana/lydian.json") },
    Document { path: "contrib/grafana/lydian-front.json", make: |_| of_metrics("contrib/grafana/lydian-front.json") },
    Document { path: "contrib/prometheus/lydian.yml", make: |_| of_metrics("contrib/prometheus/lydian.yml") },
    Document {
        path: "contrib/prometheus/lydian.rules.yml",
        make: |_| of_metrics("contrib/prometheus/lydian.rules.yml"),
    },
    Document {
        path: "contrib/prometheus/lydian-front.rules.yml",
        make: |_| of_metrics("contrib/prometheus/lydian-front.rules.yml"),
    },
];

pub(crate) fn run(tree: &Tree) -> Result<(), String> {
    for document in DOCUMENTS {
        let text = (document.make)(tree)?;
        write(tree, document.path, &text)?;
    }
    numbers(tree)
}

fn write(tree: &Tree, path: &str, text: &str) -> Result<(), String> {
    if tree.text(path) != Some(text) {
        std::fs::write(path, text).map_err(|error| format!("{path}: {error}"))?;
        println!("generate: wrote {path}");
    }
    Ok(())
}

/// Updates every marked figure. Problems are reported after all files are written.
fn numbers(tree: &Tree) -> Result<(), String> {
    let numbers = Numbers::of(tree);
    let mut wrong = Vec::new();
    for (file, text) in tree.texts().filter(|(file, _)| has_numbers(&file.path)) {
        let (new, problems) = rewritten(text, &numbers);
        write(tree, &file.path, &new)?;
        wrong.extend(problems.iter().map(|problem| format!("{}:{}: {}", file.path, problem.line, problem.message)));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn crates() -> String {
    let mut text = "<!-- Generated from xtask/src/layers.rs by `make generate`. -->\n# Crates by layer\n\n\
        Every crate of the workspace, and the crates on lower layers that it uses; `make tidy` checks it.\n\n\
        | layer | crate | purpose | uses |\n|---|---|---|---|\n"
        .to_owned();
    for layer in LAYERS {
        let uses = match layer.uses {
            [] => "-".to_owned(),
            uses => uses.join(", "),
        };
        text += &format!("| {} | `{}` | {} | {uses} |\n", layer.level, layer.name, layer.purpose);
    }
    let open = OPEN.join(", ");
    text += &format!("\nOpen to every layer above them: {open}. Outside the layers:\n\n");
    for (name, purpose) in BESIDE {
        text += &format!("- `{name}`: {purpose}\n");
    }
    text
}

/// The program prints its own tables, because they are defined in its crates and this tool depends on no crate of the
/// product. `make generate` builds it beside this one.
fn printed_by_the_program(option: &str) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("lydian");
    let failed = |error| format!("{}: {error}; `make generate` builds it", program.display());
    let output = Command::new(&program).arg(option).output().map_err(failed)?;
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|error| format!("lydian {option}: {error}")),
        false => Err(format!("lydian {option}: {}{}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

/// One of the documents about the figures, which the program prints together, each after a line with its path.
fn of_metrics(path: &str) -> Result<String, String> {
    part(&printed_by_the_program("-help-metrics")?, path).ok_or_else(|| format!("lydian -help-metrics: no {path}"))
}

fn part(all: &str, path: &str) -> Option<String> {
    let (_, rest) = all.split_once(&format!("==> {path} <==\n"))?;
    let text = rest.split("==> ").next().unwrap_or_default();
    Some(format!("{}\n", text.trim_end()))
}

fn checklist(tree: &Tree) -> Result<String, String> {
    let mut text = "<!-- Generated from docs/checklist.tsv and the tests by `make generate`. -->\n# Known bugs of nodes, and our test for each\n\n\
        A test carries a number by the line `/// checklist: N` in its doc comment.\n\n\
        | | bug | tests |\n|---|---|---|\n"
        .to_owned();
    for row in checklist_rows(tree)? {
        text += &checklist_row(&row, &checklist_tests(row.number, tree));
    }
    Ok(text)
}

fn checklist_row(row: &Row, tests: &[String]) -> String {
    let mut cell: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
    if !row.reason.is_empty() {
        cell.push(if row.tested { row.reason.clone() } else { format!("later: {}", row.reason) });
    }
    format!("| {} | {} | {} |\n", row.number, row.title, cell.join("<br>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_has_its_row() {
        let text = crates();
        assert!(LAYERS.iter().all(|layer| text.contains(&format!("| `{}` |", layer.name))));
        assert!(text.contains("| 2 | `options` |") && text.contains("configuration files, precedence, help | disk |"));
    }

    #[test]
    fn a_document_is_cut_out() {
        let all = "==> a <==\none\n\n==> b <==\ntwo";
        assert_eq!(
            (part(all, "a"), part(all, "b"), part(all, "c")),
            (Some("one\n".into()), Some("two\n".into()), None)
        );
    }

    #[test]
    fn a_checklist_row_names_tests_and_reasons() {
        let row =
            |tested, reason: &str| Row { number: 10, tested, title: "Maturity".into(), reason: reason.into(), line: 1 };
        assert_eq!(checklist_row(&row(true, ""), &["a::b".into()]), "| 10 | Maturity | `a::b` |\n");
        assert_eq!(checklist_row(&row(false, "no mempool"), &[]), "| 10 | Maturity | later: no mempool |\n");
    }
}
