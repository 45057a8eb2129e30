//! [`WARNINGS`]: what the node can warn of, by the names of `/metrics` and of the page (`docs/page.md`).
//!
//! Input: the warnings that are set ([`Warnings`]). Output: their names and texts for the page, with what to do about
//! them.

use lydian_rpc::{Warning, Warnings};
use serde_json::{Value, json};

/// A kind of warning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) id: Warning,
    pub(crate) name: &'static str,
    /// What to do; empty if the message says it. Core's messages have Core's words, without advice.
    advice: &'static str,
}

/// All of them.
pub(crate) const WARNINGS: [Kind; 9] = [
    Kind {
        id: Warning::UnknownNewRulesActivated,
        name: "unknown_rules",
        advice: "Install a version of Lydian that knows these rules. Until then, this node may accept blocks that \
                 others reject.",
    },
    Kind {
        id: Warning::LargeWorkInvalidChain,
        name: "invalid_chain",
        advice: "Compare the tip with other nodes (panel Chain, getchaintips), and wait with payments until the two \
                 agree. \"lydian verify\" checks the block files of this node again.",
    },
    Kind {
        id: Warning::ClockOutOfSync,
        name: "clock",
        advice: "Set the clock of this machine, or start a time service such as systemd-timesyncd.",
    },
    Kind { id: Warning::SecondOpinion, name: "second_opinion", advice: "" },
    Kind { id: Warning::SignatureEngine, name: "signature_engine", advice: "" },
    Kind { id: Warning::DiskNearlyFull, name: "disk", advice: "" },
    Kind { id: Warning::IndexFailed, name: "index", advice: "" },
    Kind { id: Warning::SharedIndex, name: "shared_index", advice: "" },
    Kind {
        id: Warning::SharedBlocks,
        name: "shared_blocks",
        advice: "A restart tries again. If a block file is damaged (\"lydian verify\"), start with -reindex, or restore \
                 the file.",
    },
];

/// The warnings that are set, as the page shows them.
pub(crate) fn shown(warnings: &Warnings) -> Value {
    let row = |(id, text): (Warning, String)| {
        let kind = WARNINGS.iter().find(|kind| kind.id == id);
        let (name, advice) = kind.map_or(("", ""), |kind| (kind.name, kind.advice));
        json!({ "kind": name, "text": text, "advice": advice })
    };
    warnings.current().into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_shown_with_its_advice() {
        let warnings = Warnings::default();
        warnings.set(Warning::ClockOutOfSync, "the clock");
        warnings.set(Warning::DiskNearlyFull, "the disk");
        let advice = WARNINGS[2].advice;
        let expected = json!([
            { "kind": "clock", "text": "the clock", "advice": advice },
            { "kind": "disk", "text": "the disk", "advice": "" },
        ]);
        assert_eq!(shown(&warnings), expected);
    }

    /// The table of `docs/page.md` has every warning, in this order.
    #[test]
    fn the_warnings_are_those_of_the_documentation() {
        let page = include_str!("../../../docs/page.md");
        let (_, section) = page.split_once("\n## Warnings\n").unwrap();
        let rows = section.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| `"));
        let names: Vec<&str> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
        assert_eq!(names, WARNINGS.map(|kind| kind.name));
    }
}
