//! `docs/rpc.md`, made from the table of methods.

use crate::method::{Category, Method};
use crate::table::{METHODS, REFUSED};
use lydian_stdx::wrap;

/// The width of documents.
const DOCUMENT_WIDTH: usize = 100;

/// `docs/rpc.md`.
pub fn document() -> String {
    let mut text = "<!-- Generated from the table of methods in crates/rpc by `make generate`. -->\n# RPC methods\n\n\
        JSON-RPC over HTTP as Bitcoin Core speaks it: names, arguments, fields and errors are Core's.\n\
        Differences are listed with each method; the others are in\n\
        [known-differences.md](known-differences.md).\n"
        .to_owned();
    for category in Category::ALL {
        let mut methods: Vec<&Method> = METHODS.iter().filter(|method| method.category == category).collect();
        if methods.is_empty() {
            continue;
        }
        methods.sort_by_key(|method| method.name);
        text += &format!("\n## {}\n", category.name());
        for method in methods {
            text += &format!("\n### {}\n\n```\n{}```\n", method.name, method.help_text());
            if !method.remark.is_empty() {
                text += &format!("\n{}\n", wrap(method.remark, DOCUMENT_WIDTH, ""));
            }
        }
    }
    text += "\n## Refused\n\nMethods of Core that are answered with \"Method not found\", and why.\n\n| method | reason |\n|---|---|\n";
    for (name, reason) in REFUSED {
        text += &format!("| `{name}` | {reason} |\n");
    }
    text
}
