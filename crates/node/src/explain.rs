//! `lydian explain`: prints the tables of consensus and policy rules. Input: a rule name, a reject reason, or nothing.
//! Output: text; exit code 2 for an unknown name.

use crate::edits::edits;
use crate::screen::{Screen, Tone};
use lydian_consensus::{RULES, RuleInfo, Step};
use lydian_mempool::policy::{POLICY_RULES, PolicyRuleInfo, PolicyStep};
use lydian_stdx::wrap;
use std::io::{self, Write};

const WIDTH: usize = 100;

/// A rule of either table, as it is printed.
#[derive(Clone, Copy)]
struct Entry {
    name: &'static str,
    reject_reason: &'static str,
    must: &'static str,
    source: &'static str,
    /// The step at which it is checked, and what that is about.
    step: (&'static str, &'static str),
    /// Core's class of the rejection, for the rules of policy.
    result: Option<&'static str>,
}

/// The consensus rules in the order of checking.
fn consensus() -> impl Iterator<Item = Entry> {
    RULES.iter().map(|info: &RuleInfo| Entry {
        name: info.name,
        reject_reason: info.reject_reason,
        must: info.must,
        source: info.source,
        step: (info.step.name(), about(info.step)),
        result: None,
    })
}

/// The policy rules in the order of checking.
fn policy() -> impl Iterator<Item = Entry> {
    POLICY_RULES.iter().map(|info: &PolicyRuleInfo| Entry {
        name: info.name,
        reject_reason: info.reject_reason,
        must: info.must,
        source: info.source,
        step: (info.step.name(), about_policy(info.step)),
        result: Some(info.result.name()),
    })
}

pub(crate) fn run(asked: Option<&str>) -> u8 {
    let screen = Screen::new();
    let Some(asked) = asked else {
        list(&screen);
        return 0;
    };
    let found = find(asked);
    if found.is_empty() {
        let nearest = nearest(asked).join(", ");
        // If stderr is closed, there is nowhere to report it.
        let _ = writeln!(
            io::stderr().lock(),
            "there is no rule '{asked}'; the nearest names are {nearest}; `lydian explain` lists all rules"
        );
        return 2;
    }
    for (index, entry) in found.iter().enumerate() {
        if index > 0 {
            screen.line("");
        }
        show(&screen, entry);
    }
    0
}

/// All rules, a heading per step, in the order of checking.
fn list(screen: &Screen) {
    let width = consensus().chain(policy()).map(|entry| entry.name.len()).max().unwrap_or(0);
    screen.line("The consensus rules, in the order in which a block is checked against them.");
    list_table(screen, consensus(), width);
    screen.line("");
    screen.line("The policy rules, in the order in which a transaction outside a block is checked against them.");
    list_table(screen, policy(), width);
    screen.line("");
    screen.line("`lydian explain RULE` shows a rule's source and Bitcoin Core's reject reason.");
}

fn list_table(screen: &Screen, table: impl Iterator<Item = Entry>, width: usize) {
    let mut step = None;
    for entry in table {
        if step != Some(entry.step) {
            step = Some(entry.step);
            screen.line("");
            screen.line(&screen.tone(Tone::Strong, &heading(&entry)));
        }
        let indent = " ".repeat(width + 4);
        let must = wrap(entry.must, WIDTH - width - 4, &indent);
        screen.line(&format!("  {:width$}  {must}", entry.name));
    }
}

fn heading(entry: &Entry) -> String {
    format!("{}: {}", entry.step.0, entry.step.1)
}

fn about(step: Step) -> &'static str {
    match step {
        Step::Header => "the header alone",
        Step::HeaderInChain => "the header after its ancestors",
        Step::Block => "the block alone",
        Step::Transaction => "each transaction alone",
        Step::BlockInChain => "the block at its height",
        Step::Coins => "the block and the coins it spends",
        Step::Scripts => "the scripts of each input",
    }
}

fn about_policy(step: PolicyStep) -> &'static str {
    match step {
        PolicyStep::Alone => "the transaction alone",
        PolicyStep::Pool => "the transaction against the mempool and the coins",
        PolicyStep::Coins => "the transaction and the coins it spends",
        PolicyStep::Fee => "what the transaction pays",
        PolicyStep::Truc => "transactions of version 3 and their relatives",
        PolicyStep::Replacement => "the transaction and what it replaces or depends on",
        PolicyStep::Scripts => "the scripts of each input",
        PolicyStep::Limit => "the size of the mempool",
        PolicyStep::Package => "several transactions together",
    }
}

fn show(screen: &Screen, entry: &Entry) {
    screen.line(&screen.tone(Tone::Strong, entry.name));
    let result = entry.result.map(|result| ("Core's result", result.to_owned()));
    let lines = [
        ("must", entry.must.to_owned()),
        ("source", entry.source.to_owned()),
        ("Core's reason", entry.reject_reason.to_owned()),
    ];
    for (label, text) in lines.into_iter().chain(result).chain([("step", heading(entry))]) {
        screen.line(&format!("  {label:13}  {}", wrap(&text, WIDTH - 17, &" ".repeat(17))));
    }
}

/// Rules with this name, or all with this reject reason, with or without the text that Core appends: a version or a
/// script error in brackets, or the debug message after a comma.
fn find(asked: &str) -> Vec<Entry> {
    let entries = || consensus().chain(policy());
    let plain = asked.split(['(', ',']).next().unwrap_or_default().trim();
    let whole: Vec<Entry> = entries().filter(|entry| entry.reject_reason.eq_ignore_ascii_case(asked.trim())).collect();
    let by_name: Vec<Entry> = entries().filter(|entry| entry.name.eq_ignore_ascii_case(plain)).collect();
    let has_reason = |entry: &Entry| entry.reject_reason.eq_ignore_ascii_case(plain);
    if !whole.is_empty() {
        whole
    } else if by_name.is_empty() || by_name.iter().any(has_reason) {
        entries().filter(has_reason).collect()
    } else {
        by_name
    }
}

/// The three closest names or reasons: first those that contain the text, then by edit distance.
fn nearest(asked: &str) -> Vec<&'static str> {
    let asked = asked.to_ascii_lowercase();
    let mut names: Vec<_> = consensus().chain(policy()).flat_map(|entry| [entry.name, entry.reject_reason]).collect();
    names.sort_unstable();
    names.dedup();
    names.sort_by_key(|name| {
        let name = name.to_ascii_lowercase();
        (!name.contains(&asked), edits(&asked, &name))
    });
    names.truncate(3);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_by_name_and_by_every_form_of_their_reason() {
        let names = |asked: &str| find(asked).iter().map(|entry| entry.name).collect::<Vec<_>>();
        for entry in consensus().chain(policy()) {
            assert!(names(entry.name).contains(&entry.name), "{}", entry.name);
            assert!(names(entry.reject_reason).contains(&entry.name), "{}", entry.reject_reason);
        }
        assert_eq!(names("bad-version(0x00000001)"), ["bad-version"]);
        assert_eq!(names("bad-blk-sigops").len(), 2);
        assert_eq!(names("dust"), ["dust-outputs", "dust-fee"]);
        assert_eq!(names("min relay fee not met, 1 < 2"), ["min-relay-fee"]);
        assert_eq!(
            names("insufficient fee (including sibling eviction)"),
            ["replacement-fee", "replacement-relay-fee"]
        );
        assert_eq!(
            names("mempool-script-verify-flag-failed (OP_RETURN was encountered)"),
            ["mempool-script-verify-flag-failed"]
        );
        assert_eq!(names("no-such-rule"), Vec::<&str>::new());
    }

    #[test]
    fn slips_are_answered_with_the_nearest_name() {
        assert_eq!(nearest("bad-cb-hieght")[0], "bad-cb-height");
        assert_eq!(nearest("BIP30")[0], "bad-txns-BIP30");
    }
}
