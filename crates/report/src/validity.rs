//! The validity of nodes as text: one line per node, and the remark next to a node's time.
//!
//! Input: the results of the nodes. Output: sentences. Invariant: a node is said to refuse everything only if it was
//! asked for every rule that it has.

use crate::results::{Case, NodeFacts, Validity};

/// The deployments, each with the cases that break a rule of it. A test of the lab compares them with the chain.
pub const DEPLOYMENTS: &[(&str, &[&str])] = &[
    ("BIP-0034", &["height-one-too-low"]),
    ("BIP-0065", &["cltv-a-block-too-early", "version-3"]),
    ("BIP-0066", &["der-r-padded"]),
    ("CSV", &["csv-a-block-too-many", "locked-to-the-median-time", "sequence-a-block-too-many"]),
    (
        "segwit",
        &[
            "p2wpkh-signature-false-by-a-bit",
            "p2wsh-multisig-signature-false-by-a-bit",
            "p2wsh-ends-false",
            "p2wsh-script-of-another",
            "p2wpkh-legacy-message",
            "multisig-dummy-not-empty",
            "weight-4000001",
            "cost-80001-witness-scripts",
            "commitment-false-by-a-bit",
            "witness-without-commitment",
        ],
    ),
    (
        "taproot",
        &[
            "key-path-signature-false-by-a-bit",
            "tapscript-signature-false-by-a-bit",
            "control-block-other-internal-key",
            "tapscript-one-check-above-the-budget",
            "tapscript-if-on-2",
            "tapscript-ends-false",
        ],
    ),
];

/// The line on a node; `None` if it was not asked.
pub fn line_of(node: &NodeFacts) -> Option<String> {
    let validity = node.validity.as_ref()?;
    let (name, asked) = (&node.name, validity.cases.len());
    let reason = match (validity.unasked, &validity.reason) {
        (0, None) => String::new(),
        (0, Some(reason)) => format!(" Not all is known: {reason}."),
        (unasked, reason) => format!(" {unasked} not asked: {}.", reason.as_deref().unwrap_or("no reason known")),
    };
    if asked == 0 {
        return Some(format!("{name}: which broken rules it accepts is not known: {}.", validity.reason.as_deref()?));
    }
    Some(match missing(validity) {
        None if validity.is_whole() => format!("{name} refuses all {asked} broken blocks.{reason}"),
        None => format!("{name} refuses the {asked} broken blocks it was asked,{reason}"),
        Some(missing) => {
            let taken = validity.cases.iter().filter(|case| case.is_accepted).count();
            format!("NOT VALIDATING: {name} takes {taken} of {asked} broken blocks: {missing}.{reason}")
        }
    })
}

/// The remark next to a node's time: `not validating taproot`, `36 of 49 rules not asked`, `validity not asked`. `None`
/// if it refuses everything.
pub fn remark(validity: Option<&Validity>) -> Option<String> {
    let Some(validity) = validity.filter(|validity| !validity.cases.is_empty()) else {
        return Some("validity not asked".to_owned());
    };
    let missing = missing(validity).map(|missing| format!("not validating {missing}"));
    let all = validity.cases.len() + validity.unasked;
    let unasked = (validity.unasked > 0).then(|| format!("{} of {all} rules not asked", validity.unasked));
    let words: Vec<String> = missing.into_iter().chain(unasked).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The rules that it does not validate, such as `taproot, MINIMALIF in tapscript`: a whole deployment if it accepts
/// every block that breaks it, else rule by rule. `None` if it accepted nothing.
pub fn missing(validity: &Validity) -> Option<String> {
    let since = |case: &Case| deployment_of(&case.name);
    let mut words: Vec<String> = Vec::new();
    for case in validity.cases.iter().filter(|case| case.is_accepted) {
        let deployment = since(case);
        let alike: Vec<&Case> =
            validity.cases.iter().filter(|other| deployment.is_some() && since(other) == deployment).collect();
        let is_whole = alike.len() > 1 && alike.iter().all(|other| other.is_accepted);
        let word = deployment.filter(|_| is_whole).map_or(case.rule.clone(), str::to_owned);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    (!words.is_empty()).then(|| words.join(", "))
}

/// The deployment that made the block of this case invalid; `None` if it always was.
fn deployment_of(name: &str) -> Option<&'static str> {
    DEPLOYMENTS.iter().find(|(_, cases)| cases.contains(&name)).map(|(deployment, _)| *deployment)
}
