//! Reports at the end of a task. Input: results. Output: sentences on stdout and stderr, lines in the log.

use crate::display::{Costs, Figures, Style, table};
use crate::floor::Floor;
use crate::limits::REMARKS_MAX;
use crate::log::Category;
use crate::process::{disk_bytes, peak_memory_bytes};
use crate::run::Session;
use crate::screen::{Screen, Tone, commas};
use crate::status::SignatureEngine;
use lydian_curve::Reference;
use lydian_engine::{Advance, Engine, Import, UtxoHashes};
use lydian_primitives::{Amount, BlockHash};
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};

/// The floor is measured only from this many signatures on: these take two seconds, the measurement 50 ms.
const FLOOR_CHECKS_MIN: u64 = 10_000;

/// Reports the end of a validation.
pub(super) fn report_end(session: &Session<'_>, engine: &Engine, advance: &Advance, figures: &Figures, is_shown: bool) {
    let screen = Screen::new();
    let tip = engine.tip();
    for (hash, violation) in &advance.invalid {
        print(session, format!("INVALID: block {hash} breaks a rule: {violation}"));
    }
    for (hash, reason) in &advance.unreadable {
        print(session, format!("block {hash} cannot be read and counts as missing: {reason}"));
    }
    let mut end = format!("tip {} at height {}", tip.hash, tip.height.0);
    if !advance.invalid.is_empty() {
        end += ", the best valid chain";
    }
    if advance.is_cancelled {
        end += "; stopped on request, start again to continue";
    }
    session.log.info(&end);
    let is_good = advance.invalid.is_empty() && advance.unreadable.is_empty();
    report_costs(session, engine, figures, is_shown);
    if is_shown && !session.has_console {
        screen.line(&screen.tone(if is_good { Tone::Good } else { Tone::Bad }, &end));
    }
}

/// Reports that the chain of the peers is validated, or that the node stops before it is.
pub(super) fn report_sync(session: &Session<'_>, engine: &Engine, figures: &Figures, style: Style) {
    report_costs(session, engine, figures, style == Style::Terminal);
}

/// Reports what the validation of some blocks has cost.
fn report_costs(session: &Session<'_>, engine: &Engine, figures: &Figures, is_shown: bool) {
    let referee = engine.signatures();
    let has_floor = figures.signatures() >= FLOOR_CHECKS_MIN;
    let costs = || Costs {
        floor: has_floor.then(|| Floor::measure(&Reference)),
        kernel_floor: (has_floor && referee.is_watched()).then(|| Floor::measure(referee.kernel())),
        signature_engine: Some(SignatureEngine::new(referee, engine.reviews())),
        peak_memory_bytes: peak_memory_bytes(),
        disk_bytes: disk_bytes(),
    };
    if figures.blocks > 0 {
        if is_shown && !session.has_console {
            Screen::new().line(&table(figures, &costs()));
        }
        session.log.debug(Category::BENCH, || table(figures, &costs()));
    }
}

/// Reports that the node keeps running although it neither listens nor connects to a peer without a further request.
pub(super) fn report_waiting(session: &Session<'_>, style: Style) {
    let words = "all available blocks are validated; waiting for a signal to stop";
    session.log.info(words);
    if style == Style::Terminal && !session.has_console {
        // If stderr is closed, there is nowhere to report it.
        let _ = writeln!(io::stderr().lock(), "{words} (Ctrl-C)");
    }
}

/// Reports what files contained besides blocks of the chain.
pub(super) fn report_import(session: &Session<'_>, import: &Import) {
    report_remarks(session, remarks(import));
}

/// Reports sentences about files, up to a limit.
pub(super) fn report_remarks(session: &Session<'_>, remarks: Vec<String>) {
    for sentence in shortened(remarks) {
        warn(session, sentence);
    }
}

fn remarks(import: &Import) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    for refused in &import.refused {
        let place = format!("{}:{}", refused.path.display(), refused.offset);
        remarks
            .push(format!("{place}: INVALID: the header of block {} breaks a rule: {}", refused.hash, refused.reason));
    }
    remarks.extend(import.remarks.iter().map(|remark| remark.to_string()));
    if import.orphans > 0 {
        remarks
            .push(format!("{} blocks have parents that are neither stored nor in the files", commas(import.orphans)));
    }
    remarks
}

/// The first remarks, and the number of the others.
fn shortened(mut remarks: Vec<String>) -> Vec<String> {
    let more = remarks.len().saturating_sub(REMARKS_MAX);
    if more > 0 {
        remarks.truncate(REMARKS_MAX);
        remarks.push(format!("and {more} more of these"));
    }
    remarks
}

fn warn(session: &Session<'_>, sentence: impl fmt::Display) {
    session.log.warning(&sentence);
    print(session, sentence);
}

/// Prints a sentence on stderr, unless the log, which has it already, is shown on the console.
fn print(session: &Session<'_>, sentence: impl fmt::Display) {
    if !session.has_console {
        // If stderr is closed, there is nowhere to report it.
        let _ = writeln!(io::stderr().lock(), "{sentence}");
    }
}

/// Output of `lydian utxohash`, with the names of Core's `gettxoutsetinfo`.
#[derive(Debug, Serialize)]
struct Hashes {
    height: u32,
    bestblock: String,
    coins: u64,
    total_amount: String,
    hash_serialized_3: String,
    muhash: String,
}

pub(super) fn print_hashes(is_json: bool, hashes: &UtxoHashes) {
    let screen = Screen::new();
    let unit = u64::try_from(Amount::COIN.0).unwrap_or(1);
    let total = u64::try_from(hashes.total.0).unwrap_or(0);
    let shown = Hashes {
        height: hashes.tip.height.0,
        bestblock: hashes.tip.hash.to_string(),
        coins: hashes.coins,
        total_amount: format!("{}.{:08}", total / unit, total % unit),
        // Shown like block hashes, last byte first.
        hash_serialized_3: BlockHash(hashes.hash_serialized_3).to_string(),
        muhash: BlockHash(hashes.muhash).to_string(),
    };
    if is_json {
        match serde_json::to_string_pretty(&shown) {
            Ok(json) => screen.line(&json),
            Err(error) => unreachable!("structures of numbers and texts are JSON: {error}"),
        }
        return;
    }
    for (label, text) in [
        ("height", shown.height.to_string()),
        ("bestblock", shown.bestblock),
        ("coins", shown.coins.to_string()),
        ("total_amount", shown.total_amount),
        ("hash_serialized_3", shown.hash_serialized_3),
        ("muhash", shown.muhash),
    ] {
        screen.line(&format!("{label:17}  {text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// limit: REMARKS_MAX at
    /// limit: REMARKS_MAX above
    #[test]
    fn remarks_are_limited_and_counted() {
        let kept = shortened(vec!["a".to_owned(); REMARKS_MAX]);
        assert_eq!(kept, vec!["a".to_owned(); REMARKS_MAX]);
        let cut = shortened(vec!["a".to_owned(); REMARKS_MAX + 1]);
        assert_eq!((cut.len(), &cut[REMARKS_MAX][..]), (REMARKS_MAX + 1, "and 1 more of these"));
    }
}
