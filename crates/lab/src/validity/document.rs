//! The document of `lydian-lab validity`: the rules, and for each node the broken blocks it accepted. Format:
//! `docs/formats/lab-results.md`.

use super::{Terms, examine};
use crate::runs::{Contender, arguments_of, machine, system};
use lydian_chains::presets::validity::Suite;
use lydian_report::results::{Lab, MachineFacts, NodeFacts, Validity};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;

/// Incremented when a field is removed or changes its meaning.
const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    pub format: u32,
    pub lab: Lab,
    /// `validity`.
    pub experiment: String,
    /// Seconds since 1970.
    pub started: f64,
    pub machine: MachineFacts,
    /// Over the blocks in the order in which they are sent.
    pub sha256: String,
    pub rules: Vec<Question>,
    /// Each with its `validity`.
    pub nodes: Vec<NodeFacts>,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub name: String,
    pub rule: String,
    pub height: u32,
    /// The deployment that introduced the rule; `None` if it always existed.
    pub since: Option<String>,
    /// Bitcoin Core's answer to the block.
    pub core_says: String,
}

impl Document {
    /// Asks the nodes in order; `done` is called after each. An interruption keeps those before it.
    pub fn make(
        contenders: &[Contender],
        terms: &Terms<'_>,
        command_line: Vec<String>,
        done: &mut dyn FnMut(&NodeFacts),
    ) -> Document {
        let mut document = Document {
            format: FORMAT,
            lab: Lab { version: env!("CARGO_PKG_VERSION").into(), commit: machine::commit(), command_line },
            experiment: "validity".into(),
            started: system::unix_seconds(),
            machine: machine::machine_facts(terms.folder.parent().unwrap_or(terms.folder)),
            sha256: terms.suite.sha256.clone(),
            rules: questions(terms.suite),
            nodes: Vec::new(),
        };
        for contender in contenders {
            let facts = facts(contender, terms);
            if terms.interrupted.load(Ordering::Relaxed) {
                break;
            }
            done(&facts);
            document.nodes.push(facts);
        }
        document
    }

    /// Whether every node was asked for every rule that its regtest enforces, and accepted no broken block.
    pub fn is_all_refused(&self) -> bool {
        let refuses = |validity: &Validity| validity.is_whole() && validity.not_validated().is_empty();
        !self.nodes.is_empty() && self.nodes.iter().all(|node| node.validity.as_ref().is_some_and(refuses))
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

fn questions(suite: &Suite) -> Vec<Question> {
    let question = |group: &lydian_chains::presets::validity::Group| Question {
        name: group.case.rule.name.into(),
        rule: group.case.rule.title.into(),
        height: group.height,
        since: group.case.rule.since.map(|since| since.to_string()),
        core_says: group.case.reason.clone(),
    };
    suite.groups.iter().map(question).collect()
}

fn facts(contender: &Contender, terms: &Terms<'_>) -> NodeFacts {
    let adapter = contender.adapter.as_ref();
    let job = super::job(contender, terms, std::path::Path::new("DATADIR"), 0);
    let command = adapter.absent().is_none().then(|| job.and_then(|job| adapter.offline(&job))).flatten();
    NodeFacts {
        arguments: command.as_ref().map_or(Vec::new(), arguments_of),
        validity: Some(examine(contender, terms)),
        ..contender.facts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(validities: &[serde_json::Value]) -> Document {
        let node = |validity| {
            json!({"name": "a", "program": "", "version": "", "arguments": [], "source": null, "cannot": null,
                "validity": validity})
        };
        let machine = json!({"cpu": "", "cores": 1, "memory_bytes": null, "kernel": "", "filesystem": null});
        let nodes: Vec<_> = validities.iter().map(node).collect();
        let value = json!({"format": FORMAT, "lab": {"version": "", "commit": null, "command_line": []},
            "experiment": "validity", "started": 0.0, "machine": machine, "sha256": "", "rules": [], "nodes": nodes});
        serde_json::from_value(value).unwrap()
    }

    /// Regression: a node that died after the first case passed. The exit code depends on this result.
    #[test]
    fn only_nodes_that_refuse_every_rule_pass() {
        let validity = |is_accepted: bool, unasked: usize| {
            let case = json!({"name": "a", "rule": "a", "height": 1, "is_accepted": is_accepted, "said": ""});
            json!({"sha256": "", "cases": [case], "unasked": unasked, "reason": "a rule that is never active"})
        };
        let passes = |all: &[serde_json::Value]| document(all).is_all_refused();
        assert!(passes(&[validity(false, 0)]));
        assert!(!passes(&[validity(false, 0), validity(false, 48)]));
        assert!(!passes(&[validity(true, 0)]));
        assert!(!passes(&[serde_json::Value::Null]));
        assert!(!passes(&[]), "no node was asked");
    }
}
