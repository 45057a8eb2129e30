//! The validity of nodes as a table: one line per rule, and below it one line per node.
//!
//! Input: the results of the nodes. Output: Markdown. Invariant: a node is said to refuse everything only if it was
//! asked for every rule that it has.

use lydian_chains::presets::validity::RULES;
use lydian_report::results::{Case, NodeFacts, Validity};
use lydian_report::validity::line_of;
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

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_chains::presets::validity::{Deployment, rule_of};
    use lydian_report::validity::{DEPLOYMENTS, missing, remark};

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
            own_chain: None,
        }
    }

    /// The report knows no chains, so it has a table of its own.
    #[test]
    fn the_report_knows_the_deployment_of_every_rule() {
        let mut known: Vec<(&str, String)> = Vec::new();
        for (deployment, cases) in DEPLOYMENTS {
            known.extend(cases.iter().map(|case| (*case, (*deployment).to_owned())));
        }
        known.sort();
        let mut rules: Vec<(&str, String)> =
            RULES.iter().filter_map(|rule| Some((rule.name, rule.since?.to_string()))).collect();
        rules.sort();
        assert_eq!(known, rules);
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
