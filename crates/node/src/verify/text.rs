//! The report as text. Input: items as they finish, the whole at the end. Output: lines for people: what was checked,
//! what is wrong and where, what could not be decided.

use crate::clock::Seconds;
use crate::report::{BlockItem, Broken, ChainItem, Item, Report, Totals, Verdict};
use crate::screen::{Screen, Tone, commas, count};
use lydian_stdx::wrap;
use std::collections::BTreeMap;

/// Notes of one item that are shown without `--verbose`.
const NOTES_SHOWN: usize = 10;
/// Violations of one item after the first that are shown, one per line, without `--verbose`.
const VIOLATIONS_SHOWN: usize = 20;
const WIDTH: usize = 120;

pub(super) fn item(screen: &Screen, item: &Item, is_verbose: bool) {
    match item {
        Item::Chain(chain) => chain_item(screen, chain, is_verbose),
        Item::Block(block) => block_item(screen, block, is_verbose),
    }
}

fn chain_item(screen: &Screen, chain: &ChainItem, is_verbose: bool) {
    let place = match &chain.files[..] {
        [file] => file.clone(),
        [first, .., last] => format!("{first} ... {last} ({} files)", chain.files.len()),
        [] => String::new(),
    };
    let verdict = verdict(screen, chain.verdict, chain.is_expected_invalid);
    let heights = format!("{:8} heights 0 to {}", chain.chain, chain.tip.height);
    screen.line(&format!("{verdict}  {heights}  {place}"));
    field(screen, "checked", &checked(&chain.totals));
    field(screen, "signatures", &signatures(&chain.totals));
    field(screen, "time", &time(&chain.seconds));
    field(screen, "tip", &chain.tip.hash);
    field(screen, "coins", &commas(chain.utxo.coins));
    field(screen, "coins hash", &format!("{} (hash_serialized_3)", chain.utxo.hash_serialized_3));
    violations(screen, chain, is_verbose);
    problems(screen, "unread", &chain.unreadable, Tone::Bad, is_verbose);
    problems(screen, "note", &chain.notes, Tone::Warn, is_verbose);
    if chain.notes_left_out > 0 {
        field(screen, "note", &format!("{} more that were not kept", commas(chain.notes_left_out)));
    }
    if chain.blocks_not_verified > 0 {
        let text = format!("{} on an invalid or unreadable block", count(chain.blocks_not_verified, "block"));
        field(screen, "unverified", &text);
    }
    if chain.blocks_off_chain > 0 {
        let blocks = count(chain.blocks_off_chain, "block");
        field(
            screen,
            "off chain",
            &format!("{blocks} on branches without more work; scripts verified only if a branch was once active"),
        );
    }
    if chain.is_expected_invalid && chain.violations.is_empty() {
        field(screen, "expected", "a block that breaks a rule; none does");
    }
}

fn violations(screen: &Screen, chain: &ChainItem, is_verbose: bool) {
    let Some((first, rest)) = chain.violations.split_first() else { return };
    broken(screen, first);
    let shown = if is_verbose { rest.len() } else { rest.len().min(VIOLATIONS_SHOWN) };
    for other in &rest[..shown] {
        let height = other.height.map(u64::from).map(commas).unwrap_or_default();
        field(screen, "also", &format!("height {height}, block {}: {}", other.block, other.reject_reason));
    }
    let hidden = (rest.len() - shown) as u64 + chain.violations_left_out;
    if hidden > 0 {
        field(screen, "also", &format!("{} more invalid", count(hidden, "block")));
    }
}

fn block_item(screen: &Screen, block: &BlockItem, is_verbose: bool) {
    let verdict = verdict(screen, block.verdict, block.is_expected_invalid);
    let height = block.height.map_or("?".to_owned(), |height| height.to_string());
    let all = block.decided.len() + block.undecided.len();
    let rules = format!("{} of {all} rules", block.decided.len());
    let counted = match block.prevouts_file {
        Some(_) => format!("{}, {}", count(block.totals.transactions, "tx"), count(block.totals.inputs, "input")),
        None => count(block.totals.transactions, "tx"),
    };
    let counted = counted.replace("txs", "tx");
    screen.line(&format!("{verdict}  {:8} {height:>7}  {}  {counted}; {rules}", block.chain, block.hash));
    problems(screen, "unread", &block.unreadable, Tone::Bad, true);
    if let Some(violation) = &block.violation {
        broken(screen, violation);
    } else if block.is_expected_invalid {
        field(screen, "file", &block.file);
        field(screen, "expected", "a broken rule; this data shows none");
    }
    if is_verbose {
        field(screen, "file", &block.file);
        for undecided in &block.undecided {
            field(screen, "undecided", &format!("{}: {}", undecided.rule, undecided.why));
        }
    }
}

/// Prints a violation in full.
fn broken(screen: &Screen, violation: &Broken) {
    let height = violation.height.map_or("unknown".to_owned(), |height| height.to_string());
    field(screen, "where", &format!("height {height}, block {}", violation.block));
    field(screen, "", &format!("{}:{}", violation.file, violation.offset));
    if let Some(index) = violation.transaction {
        let txid = violation.txid.as_deref().unwrap_or("unknown");
        field(screen, "transaction", &format!("{index}, {txid}"));
    }
    if let Some(index) = violation.input {
        let prevout = violation.prevout.as_deref().unwrap_or("unknown");
        field(screen, "input", &format!("{index}, spends {prevout}"));
    }
    if let Some(error) = violation.script_error {
        field(screen, "script", error);
    }
    field(screen, "rule", &screen.tone(Tone::Strong, violation.rule));
    field(screen, "", violation.must);
    field(screen, "source", violation.source);
    field(screen, "Core says", &violation.reject_reason);
}

fn problems(screen: &Screen, label: &str, sentences: &[String], tone: Tone, is_verbose: bool) {
    let shown = if is_verbose { sentences.len() } else { sentences.len().min(NOTES_SHOWN) };
    for sentence in &sentences[..shown] {
        screen.line(&format!("         {}  {sentence}", screen.tone(tone, &format!("{label:11}"))));
    }
    if shown < sentences.len() {
        field(screen, label, &format!("{} more; --verbose shows all", sentences.len() - shown));
    }
}

fn field(screen: &Screen, label: &str, text: &str) {
    const INDENT: &str = "                      ";
    screen.line(&format!(
        "         {}  {}",
        screen.tone(Tone::Quiet, &format!("{label:11}")),
        wrap(text, WIDTH - INDENT.len(), INDENT)
    ));
}

fn verdict(screen: &Screen, verdict: Verdict, is_expected_invalid: bool) -> String {
    match verdict {
        Verdict::Valid if is_expected_invalid => screen.tone(Tone::Good, "refused"),
        Verdict::Valid => screen.tone(Tone::Good, "valid  "),
        Verdict::Invalid if is_expected_invalid => screen.tone(Tone::Bad, "PASSED "),
        Verdict::Invalid => screen.tone(Tone::Bad, "INVALID"),
        Verdict::Unreadable => screen.tone(Tone::Bad, "UNREAD "),
    }
}

/// Prints what was checked in total, what could not be decided or read, and the verdict.
pub(super) fn summary(screen: &Screen, report: &Report) {
    undecided(screen, report);
    for sentence in &report.unreadable {
        screen.line(&format!("{}  {sentence}", screen.tone(Tone::Bad, "UNREAD ")));
    }
    screen.line("");
    let items = report.items.len() as u64;
    if items > 0 {
        screen.line(&format!("Checked {};", checked(&report.totals)));
        screen.line(&format!("signatures: {}; time: {}.", signatures(&report.totals), time(&report.seconds)));
    }
    let text = match report.verdict {
        Verdict::Valid => "Valid: everything is as it should be.".to_owned(),
        Verdict::Unreadable => "Not everything could be verified: see above for what could not be read.".to_owned(),
        Verdict::Invalid => invalid_text(report),
    };
    let tone = if report.verdict == Verdict::Valid { Tone::Good } else { Tone::Bad };
    screen.line(&screen.tone(tone, &text));
}

fn invalid_text(report: &Report) -> String {
    let (mut broken, mut passed) = (0, 0);
    for item in &report.items {
        let (count, is_expected) = match item {
            Item::Chain(chain) => {
                (chain.violations.len() as u64 + chain.violations_left_out, chain.is_expected_invalid)
            }
            Item::Block(block) => (u64::from(block.violation.is_some()), block.is_expected_invalid),
        };
        broken += if is_expected { 0 } else { count };
        passed += u64::from(is_expected && count == 0);
    }
    match (broken, passed) {
        (0, _) => format!("Invalid: {} should have been refused but passed.", count(passed, "item")),
        (_, 0) => format!("Invalid: {} refused.", count(broken, "block")),
        (_, _) => format!(
            "Invalid: {} refused, and {} passed that should not have.",
            count(broken, "block"),
            count(passed, "item")
        ),
    }
}

/// Prints the undecided rules of all single blocks together, by reason.
fn undecided(screen: &Screen, report: &Report) {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for item in &report.items {
        let Item::Block(block) = item else { continue };
        for undecided in &block.undecided {
            let rules = by_reason.entry(undecided.why).or_default();
            if !rules.contains(&undecided.rule) {
                rules.push(undecided.rule);
            }
        }
    }
    if by_reason.is_empty() {
        return;
    }
    screen.line("");
    screen.line("Undecided for some of the single blocks (--verbose lists them):");
    for (why, rules) in by_reason {
        screen.line(&format!("  {why}:"));
        screen.line(&format!("    {}", wrap(&rules.join(", "), WIDTH - 4, "    ")));
    }
}

fn checked(totals: &Totals) -> String {
    format!(
        "{}, {}, {}, {}",
        count(totals.blocks, "block"),
        count(totals.transactions, "transaction"),
        count(totals.inputs, "input"),
        count(totals.outputs, "output"),
    )
}

fn signatures(totals: &Totals) -> String {
    let kinds =
        [(totals.ecdsa_checks, "ECDSA"), (totals.schnorr_checks, "Schnorr"), (totals.tweak_checks, "taproot tweaks")];
    let made: Vec<_> =
        kinds.iter().filter(|(made, _)| *made > 0).map(|(made, kind)| format!("{} {kind}", commas(*made))).collect();
    if made.is_empty() { "none".to_owned() } else { made.join(", ") }
}

fn time(seconds: &Seconds) -> String {
    let cpu = seconds.cpu_seconds.map(|cpu| format!(", {cpu:.2} s CPU")).unwrap_or_default();
    format!("{:.2} s wall{cpu}", seconds.wall_seconds)
}
