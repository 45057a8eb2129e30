//! Verifies one block without its chain. Input: its file, and optionally the file of its spent outputs and its height.
//! Output: a [`BlockItem`], or a sentence that says why it could not be read.

use super::Context;
use super::plan::Single;
use crate::clock::Stopwatch;
use crate::report::{BlockItem, Broken, Totals, Undecided, Verdict, names};
use lydian_chain::parse_prevouts;
use lydian_consensus::prevouts::verify_alone;
use lydian_consensus::{Chain, Mode, PrevoutReport, SpentCoin, verify_with_prevouts};
use lydian_disk::limits::WHOLE_FILE_SIZE_MAX;
use lydian_disk::read_whole;
use lydian_primitives::limits::BLOCK_BUFFER_SIZE_MAX;
use lydian_primitives::{Block, Height, ParseError, RawBlock};
use std::path::Path;

pub(super) fn verify_single(context: &Context<'_>, single: &Single) -> Result<BlockItem, String> {
    let watch = Stopwatch::start();
    let chain = context.options.chain.or(single.name.chain).unwrap_or(Chain::Main);
    let params = context.params(chain);
    let height = context.options.height.or(single.name.height);
    let bytes =
        read_whole(context.disk, &single.path, BLOCK_BUFFER_SIZE_MAX as u64).map_err(|error| error.to_string())?;
    if bytes.is_empty() {
        return Err(format!("{}: the file is empty, and should hold one block", single.path.display()));
    }
    let no_block = |error| at(&single.path, "the file does not hold one block", error);
    let block = RawBlock::new(bytes).parse().map_err(no_block)?;

    let mut unreadable = Vec::new();
    if let Some(named) = single.name.hash.filter(|named| *named != block.hash()) {
        let sentence = format!("the name says block {named}, the content is block {}", block.hash());
        unreadable.push(format!("{}: {sentence}", single.path.display()));
    }
    let report = match &single.prevouts {
        None => verify_alone(&params, height.map(Height), block.clone(), context.now),
        Some(path) => {
            let Some(height) = height else {
                let sentence = "its height is not known: name it CHAIN-HEIGHT-HASH.block or give --height";
                return Err(format!("{}: {sentence}", single.path.display()));
            };
            let spent = read_spent(context, path)?;
            let mismatch = |error| format!("{}: {error}", path.display());
            let mode = Mode::Capture(&lydian_curve::Reference);
            verify_with_prevouts(&params, Height(height), block.clone(), spent, context.now, mode).map_err(mismatch)?
        }
    };
    Ok(item(single, chain, height, &block, report, unreadable, watch))
}

fn read_spent(context: &Context<'_>, path: &Path) -> Result<Vec<SpentCoin>, String> {
    let bytes = read_whole(context.disk, path, WHOLE_FILE_SIZE_MAX).map_err(|error| error.to_string())?;
    let prevouts = parse_prevouts(&bytes).map_err(|error| at(path, "the file does not hold spent outputs", error))?;
    let coin = |prevout: &lydian_chain::Prevout<'_>| SpentCoin {
        value: prevout.value,
        script_pubkey: prevout.script_pubkey.into(),
        origin: prevout.origin,
    };
    Ok(prevouts.iter().map(coin).collect())
}

fn at(path: &Path, what: &str, error: ParseError) -> String {
    format!("{}:{}: {what}: {error}", path.display(), error.offset)
}

fn item(
    single: &Single,
    chain: Chain,
    height: Option<u32>,
    block: &Block,
    report: PrevoutReport,
    unreadable: Vec<String>,
    watch: Stopwatch,
) -> BlockItem {
    let file = single.path.display().to_string();
    let verdict = match (report.violation.is_some(), single.is_expected_invalid) {
        (true, false) | (false, true) => Verdict::Invalid,
        _ if !unreadable.is_empty() => Verdict::Unreadable,
        _ => Verdict::Valid,
    };
    let undecided = report.undecided.iter().map(|&(rule, why)| Undecided { rule: rule.info().name, why });
    // A violation may come before the block is funded, when nothing has been counted; these figures are known anyway.
    let totals = Totals {
        blocks: 1,
        transactions: block.tx_count() as u64,
        outputs: block.output_count() as u64,
        bytes: block.total_size() as u64,
        ..Totals::from(&report.stats)
    };
    BlockItem {
        verdict,
        is_expected_invalid: single.is_expected_invalid,
        chain: chain.name(),
        height,
        hash: block.hash().to_string(),
        prevouts_file: single.prevouts.as_ref().map(|path| path.display().to_string()),
        totals,
        violation: report.violation.map(|violation| Broken::new(&violation, block, height, file.clone(), 0)),
        decided: names(&report.decided),
        undecided: undecided.collect(),
        unreadable,
        seconds: watch.seconds(),
        file,
    }
}
