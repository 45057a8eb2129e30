//! Faults of headers: proof of work, place in the chain, time, version.

use super::Bench;
use crate::error::ChainsError;
use crate::presets::ledger::INCONCLUSIVE;
use crate::presets::maker::{seal, seal_work};
use lydian_primitives::BlockHash;

pub(super) fn cases(bench: &mut Bench) -> Result<(), ChainsError> {
    work(bench)?;
    parents(bench)?;
    times(bench)?;
    versions(bench)
}

fn work(bench: &mut Bench) -> Result<(), ChainsError> {
    let mut block = bench.maker.block(Vec::new());
    seal_work(&mut block, false);
    bench.refused("hash-above-target", "high-hash", "high-hash", &block)?;
    for (name, bits) in [
        ("target-zero", 0),
        ("target-negative", 0x2080_0001),
        ("target-overflows", 0x2300_ffff),
        ("target-above-the-limit", 0x2100_8000),
    ] {
        bench.broken(name, "high-hash", "high-hash", Vec::new(), |block| block.header.bits = bits)?;
    }
    // A target slightly lower than the required one: the hash meets both.
    bench.broken("bits-not-the-ones-asked-for", "bad-diffbits", "bad-diffbits", Vec::new(), |block| {
        block.header.bits = 0x207f_fffe;
    })?;
    Ok(())
}

fn parents(bench: &mut Bench) -> Result<(), ChainsError> {
    let rule = "prev-blk-not-found";
    bench.broken("parent-unknown", rule, rule, Vec::new(), |block| block.header.prev_block = BlockHash([0x42; 32]))?;

    let invalid = bench.broken("parent-to-be", "bad-cb-amount", "bad-cb-amount", Vec::new(), |block| {
        block.txs[0].outputs[0].value.0 += 2;
    })?;
    let mut again = invalid.clone();
    bench.refused("invalid-block-again", "bad-prevblk", "duplicate-invalid", &again)?;
    let mut maker = bench.maker.clone();
    maker.advance(&invalid);
    again = maker.block(Vec::new());
    bench.refused("parent-invalid", "bad-prevblk", "bad-prevblk", &again)?;

    // A sibling of the tip is stored but not connected.
    let mut sibling = bench.maker.template(Vec::new());
    bench.twin("chain", "", Vec::new(), |_| ())?;
    sibling.header.time += 1;
    seal(&mut sibling);
    bench.ledger.record("sibling-of-the-tip", "", bench.maker.height, &sibling.encode(), INCONCLUSIVE)
}

fn times(bench: &mut Bench) -> Result<(), ChainsError> {
    let median = bench.maker.median_time_past();
    let old = "time-too-old";
    bench.broken("time-at-the-median", old, old, Vec::new(), |block| block.header.time = median)?;
    bench.twin("time-above-the-median", old, Vec::new(), |block| block.header.time = median + 1)?;
    let limit = bench.ledger.now + 7_200;
    let new = "time-too-new";
    bench.broken("time-two-hours-and-a-second-ahead", new, new, Vec::new(), |block| block.header.time = limit + 1)?;
    bench.twin("time-two-hours-ahead", new, Vec::new(), |block| block.header.time = limit)
}

fn versions(bench: &mut Bench) -> Result<(), ChainsError> {
    for version in [i32::MIN, -1, 0, 1, 2, 3] {
        let (name, reason) = (format!("version-{version}"), format!("bad-version(0x{version:08x})"));
        bench.broken(&name, "bad-version", &reason, Vec::new(), |block| block.header.version = version)?;
    }
    bench.twin("version-4", "bad-version", Vec::new(), |block| block.header.version = 4)
}
