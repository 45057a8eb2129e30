//! The review at the tip: after a block was accepted, the reference verifies every one of its signatures again.
//!
//! Input: if a kernel verifies signatures, the committed blocks of short runs that end near the best header. Output:
//! none, as long as kernel and reference agree. After a disagreement about a single check the kernel is no longer
//! trusted, and the block is verified again in exact mode; if it breaks a rule after all, it is marked and
//! disconnected. A failed check inside a satisfied multisig is not a disagreement: the two are compared check by check.
//! Scripts are run again rather than their checks kept: the block and its coins are in memory anyway, and the checks
//! would take as much again.
//!
//! Invariants: acceptance never waits for a review; the queue is bounded, and a block pushed out of it is covered by
//! the sample (and counted); no disk error makes a block invalid. Cost: the block's checks at the reference's speed on
//! one core, 0.1 to 0.2 CPU seconds for a full block; about three times its bytes for each queued block. It must never
//! hold the writer's lock while it verifies.

mod decide;

use crate::best_chain::activate::activate_best_chain;
use crate::best_chain::invalid::mark_invalid;
use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::reviews::Reviews;
use crate::chainstate::shared::EngineShared;
use crate::error::EngineError;
use crate::event::{Event, Observer, log};
use crate::log::LogLevel;
use decide::decide;
use lydian_chain::HeaderId;
use lydian_consensus::{FundedBlock, Violation};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};

/// Ends the queue however the thread ends, so that no caller waits forever.
struct Ending<'a>(&'a Reviews);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.done();
        self.0.end();
    }
}

/// Starts the thread that reviews until the engine is closed.
pub(crate) fn start(shared: &Arc<EngineShared>) -> Result<JoinHandle<()>, EngineError> {
    let shared = Arc::clone(shared);
    let body = move || {
        let reviews = &shared.chainstate.reviews;
        let _ending = Ending(reviews);
        while let Some((block, has_known)) = reviews.take() {
            review(&shared, &block, has_known);
            reviews.done();
        }
    };
    Builder::new()
        .name("review".to_owned())
        .spawn(body)
        .map_err(|error| EngineError::Thread { reason: error.to_string() })
}

fn review(shared: &EngineShared, block: &Arc<FundedBlock>, has_known: bool) {
    let reviews = &shared.chainstate.reviews;
    let signatures = &shared.chainstate.settings.signatures;
    let blame = |what: String| match has_known {
        false => signatures.distrust(what),
        true => distrust_known(&shared.chainstate, &what),
    };
    let verdict = decide(signatures, block, &reviews.cancel, &blame);
    if let Some(Err(violation)) = &verdict {
        take_off(shared, block, violation);
    }
    reviews.count(verdict.is_some());
}

/// A block was accepted because transactions were said to be verified that are not valid.
fn distrust_known(chainstate: &ChainstateManager, what: &str) {
    chainstate.is_known_distrusted.store(true, Ordering::Relaxed);
    let text = format_args!(
        "{what} was accepted because its transactions were said to be verified, and is invalid; all scripts of later \
         blocks are verified"
    );
    log(&*chainstate.settings.background, LogLevel::Error, text);
}

/// Marks a block that breaks a rule after all, and activates the best chain without it.
fn take_off(shared: &EngineShared, block: &FundedBlock, violation: &Violation) {
    let (hash, height) = (block.checked().block().hash(), block.checked().height());
    let observer = &*shared.chainstate.settings.background;
    let taken_off = shared.write(|chainstate| {
        let Some(id) = chainstate.tree().find(&hash) else { return Ok(()) };
        mark(chainstate, id, observer, violation)?;
        activate_best_chain(chainstate, &chainstate.reviews.cancel, observer)?;
        // Makes it durable, so that the next process does not review the block again.
        chainstate.checkpoint(observer)
    });
    if let Err(error) = taken_off {
        observer.event(&Event::NotTakenOff { hash, height, error: &error });
    }
}

fn mark(
    chainstate: &ChainstateManager,
    id: HeaderId,
    observer: &dyn Observer,
    violation: &Violation,
) -> Result<(), EngineError> {
    if chainstate.tree().node(id).is_invalid {
        return Ok(());
    }
    mark_invalid(chainstate, id, observer, violation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chainstate::settings::{Cancel, Layout, Settings};
    use crate::engine::Engine;
    use crate::event::Unobserved;
    use lydian_chains::presets::maker::Maker;
    use lydian_consensus::{Chain, Params, Rejected, Rule};
    use lydian_disk::SimDisk;
    use lydian_primitives::build::MutBlock;
    use lydian_primitives::{Block, Height, RawBlock};

    fn open(disk: &SimDisk) -> Engine {
        let layout = Layout { blocks: "blocks".into(), index: "index".into(), coins: "coins".into() };
        let (disk, params) = (Arc::new(disk.clone()), Params::new(Chain::Regtest));
        Engine::open(disk, &layout, params, Settings::new(2), Vec::new()).unwrap().engine
    }

    fn parse(block: &MutBlock) -> Block {
        RawBlock::new(block.encode()).parse().unwrap()
    }

    fn accept(engine: &Engine, block: &MutBlock) -> crate::engine::Submission {
        engine.accept_block(parse(block), i64::from(u32::MAX), &Unobserved).unwrap()
    }

    /// The process ends after a block was marked and before it was disconnected: the next one disconnects it, whether
    /// the coins on disk are those above it or earlier ones, and whether a search or a new block comes first.
    #[test]
    fn a_mark_is_enough_for_the_next_process() {
        let mut blocks = Vec::new();
        let keep = |_: &Maker, block: &MutBlock| -> std::io::Result<()> {
            blocks.push(block.clone());
            Ok(())
        };
        Maker::new().grow(10, keep).unwrap();
        let violation = Violation::of(Rule::ScriptVerify);
        for (is_durable, has_rival) in [(false, false), (true, false), (false, true), (true, true)] {
            let disk = SimDisk::new(1);
            let engine = open(&disk);
            for block in &blocks {
                accept(&engine, block).unwrap();
            }
            assert_eq!(engine.tip().height, Height(10));
            if is_durable {
                engine.checkpoint(&Unobserved).unwrap();
            }
            let bad = blocks[7].header.hash();
            let id = engine.shared.chainstate.tree().find(&bad).unwrap();
            engine.shared.write(|chainstate| mark(chainstate, id, &Unobserved, &violation)).unwrap();
            drop(engine);

            let engine = open(&disk);
            assert_eq!(engine.tip().height, Height(if is_durable { 10 } else { 0 }));
            let mut rival = blocks[7].clone();
            rival.txs[0].outputs[0].value.0 -= 1;
            lydian_chains::presets::maker::seal(&mut rival);
            if has_rival {
                accept(&engine, &rival).unwrap();
            } else {
                engine.advance(&Cancel::new(), &Unobserved).unwrap();
            }
            let tip = engine.tip();
            let expected = if has_rival { &rival } else { &blocks[6] };
            assert_eq!((tip.height, tip.hash), (Height(if has_rival { 8 } else { 7 }), expected.header.hash()));
            assert_eq!(engine.coins().len(), u64::from(tip.height.0), "one coin a block");
            assert_eq!(accept(&engine, &blocks[7]), Err(Rejected::DuplicateInvalid));
            assert_eq!(engine.check_last_blocks(u32::MAX, 4).unwrap(), tip.height.0);
        }
    }
}
