//! The validity of nodes as text: one line per node, one line per rule, and the remark next to a node's time.
//!
//! Input: the results of the nodes. Output: Markdown. Invariant: a node is said to refuse everything only if it was
//! asked for every rule that it has.

use crate::runs::results::{Case, NodeFacts, Validity};
use lydian_chains::presets::validity::{RULES, rule_of};
use std::fmt::Write;

/// A table of all rules with the result of each node, and below it one line per node.
pub fn to_markdown(nodes: &[NodeFacts]) -> String {
    let mut text = String::from("| broken rule |");
    let known: Vec<(&NodeFacts, &Validity)> =
        nodes.iter().filter_map(|node| Some((node, node.validity.as_ref()?))).collect();
    // Writing into a string cannot fail.
    known.iter().for_each(|(node, _)| {
        let _ = write!(text, " {} |", node.name);
    });
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(known.len()));
    for rule in RULES {
        let _ = write!(text, "| {} |", rule.title);
        for (_, validity) in &known {
            let cell = match validity.cases.iter().find(|case| case.name == rule.name) {
                Some(Case { is_accepted: true, .. }) => "TAKES IT",
                Some(_) => "refuses",
                None => "-",
            };
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    text.push('\n');
    nodes.iter().filter_map(line_of).for_each(|line| {
        let _ = writeln!(text, "{line}");
    });
    text
}

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
    let since = |case: &Case| rule_of(&case.name).and_then(|rule| rule.since);
    let mut words: Vec<String> = Vec::new();
    for case in validity.cases.iter().filter(|case| case.is_accepted) {
        let deployment = since(case);
        let alike: Vec<&Case> =
            validity.cases.iter().filter(|other| deployment.is_some() && since(other) == deployment).collect();
        let is_whole = alike.len() > 1 && alike.iter().all(|other| other.is_accepted);
        let word = deployment.filter(|_| is_whole).map_or(case.rule.clone(), |deployment| deployment.to_string());
        if !words.contains(&word) {
            words.push(word);
        }
    }
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_chains::presets::validity::Deployment;

    fn node(taken: impl Fn(&str) -> bool, reason: Option<&str>) -> NodeFacts {
        let case = |rule: &lydian_chains::presets::validity::Rule| Case {
            name: rule.name.into(),
            rule: rule.title.into(),
            height: 1_401,
            is_accepted: taken(rule.name),
            said: "no".into(),
        };
        let validity = Validity {
            sha256: String::new(),
            cases: RULES.iter().map(case).collect(),
            unasked: 0,
            reason: reason.map(str::to_owned),
        };
        NodeFacts {
            name: "node".into(),
            program: String::new(),
            version: String::new(),
            program_sha256: None,
            program_bytes: None,
            arguments: Vec::new(),
            source: None,
            cannot: None,
            notes: Vec::new(),
            validity: Some(validity),
        }
    }

    #[test]
    fn a_node_that_refuses_all_differs_from_one_without_taproot() {
        let all = RULES.len();
        let good = node(|_| false, None);
        assert_eq!(line_of(&good), Some(format!("node refuses all {all} broken blocks.")));
        let old = node(|name| rule_of(name).unwrap().since == Some(Deployment::Taproot), None);
        assert_eq!(missing(old.validity.as_ref().unwrap()).unwrap(), "taproot");
        assert!(to_markdown(&[old]).contains("| tapscript signature budget | TAKES IT |\n"));
        let one = node(|name| name == "tapscript-if-on-2" || name == "weight-4000001", None);
        let line = line_of(&one).unwrap();
        assert!(line.ends_with(&format!("2 of {all} broken blocks: MINIMALIF in tapscript, block weight.")), "{line}");
    }

    /// Regression: a node died after 13 of 49 blocks, and the table said that it refuses all of them.
    #[test]
    fn a_node_that_stops_half_way_refuses_not_all() {
        let mut part = node(|_| false, Some("it died"));
        let validity = part.validity.as_mut().unwrap();
        assert_eq!(remark(Some(&*validity)), None);
        validity.cases.truncate(13);
        validity.unasked = 36;
        assert!(!validity.is_whole());
        assert_eq!(remark(Some(&*validity)).unwrap(), "36 of 49 rules not asked");
        assert_eq!(line_of(&part).unwrap(), "node refuses the 13 broken blocks it was asked, 36 not asked: it died.");
        part.validity.as_mut().unwrap().cases[0].is_accepted = true;
        assert!(line_of(&part).unwrap().ends_with(". 36 not asked: it died."));
        assert!(remark(part.validity.as_ref()).unwrap().ends_with(", 36 of 49 rules not asked"));
        assert_eq!(remark(None).unwrap(), "validity not asked");
    }

    #[test]
    fn unknown_values_are_marked() {
        let part = node(|_| false, Some("it died"));
        assert!(line_of(&part).unwrap().ends_with("Not all is known: it died."));
        let mut none = node(|_| false, Some("it takes no blocks by RPC"));
        none.validity.as_mut().unwrap().cases.clear();
        assert!(line_of(&none).unwrap().contains("not known: it takes no blocks by RPC"));
        none.validity = None;
        assert_eq!(line_of(&none), None);
    }
}
