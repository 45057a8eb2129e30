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

use crate::best_chain::activate::activate_best_chain;
use crate::best_chain::invalid::mark_invalid;
use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::settings::Cancel;
use crate::engine::EngineShared;
use crate::error::EngineError;
use crate::event::{Event, Observer};
use crate::limits::{BATCH_INPUTS, REVIEW_QUEUE_BLOCKS_MAX};
use crate::lock::lock;
use lydian_chain::HeaderId;
use lydian_consensus::{Batch, FundedBlock, Part, Tally, Violation, parts, verify_exactly};
use lydian_curve::{Check, Engine as Signatures, Refereed, Reference};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// The blocks queued for review, and counts of earlier ones. For use from any thread.
#[derive(Debug, Default)]
pub struct Reviews {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Set when the engine is closed.
    cancel: Cancel,
    blocks: AtomicU64,
    demoted: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    blocks: VecDeque<Arc<FundedBlock>>,
    /// A block is being reviewed.
    is_busy: bool,
    /// The queue accepts no more blocks.
    is_ended: bool,
}

/// Counts of blocks at the tip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewCounts {
    /// Blocks of which the reference verified every signature.
    pub blocks: u64,
    /// Blocks of which the reference verified only a sample: others came too fast, or the engine was closed.
    pub demoted: u64,
}

impl Reviews {
    /// Queues a block; the oldest is dropped if there are too many.
    pub(crate) fn push(&self, block: Arc<FundedBlock>) {
        let too_many = {
            let mut queue = lock(&self.queue);
            queue.blocks.push_back(block);
            let is_full = queue.is_ended || queue.blocks.len() > REVIEW_QUEUE_BLOCKS_MAX;
            if is_full { queue.blocks.pop_front() } else { None }
        };
        if too_many.is_some() {
            self.demoted.fetch_add(1, Ordering::Relaxed);
        }
        self.changed.notify_all();
    }

    /// Waits until the queue is empty and no review is running.
    pub(crate) fn wait(&self) {
        let mut queue = lock(&self.queue);
        while !queue.is_ended && (queue.is_busy || !queue.blocks.is_empty()) {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Drops the queued blocks, and stops the running review as soon as possible.
    pub(crate) fn end(&self) {
        self.cancel.cancel();
        let given_up = {
            let mut queue = lock(&self.queue);
            queue.is_ended = true;
            std::mem::take(&mut queue.blocks)
        };
        self.demoted.fetch_add(given_up.len() as u64, Ordering::Relaxed);
        self.changed.notify_all();
    }

    pub fn counts(&self) -> ReviewCounts {
        ReviewCounts { blocks: self.blocks.load(Ordering::Relaxed), demoted: self.demoted.load(Ordering::Relaxed) }
    }

    /// Waits for the next block; `None` at the end.
    fn take(&self) -> Option<Arc<FundedBlock>> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.is_ended {
                return None;
            }
            if let Some(block) = queue.blocks.pop_front() {
                queue.is_busy = true;
                return Some(block);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self) {
        lock(&self.queue).is_busy = false;
        self.changed.notify_all();
    }
}

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
        while let Some(block) = reviews.take() {
            review(&shared, &block);
            reviews.done();
        }
    };
    Builder::new()
        .name("review".to_owned())
        .spawn(body)
        .map_err(|error| EngineError::Thread { reason: error.to_string() })
}

fn review(shared: &EngineShared, block: &Arc<FundedBlock>) {
    let reviews = &shared.chainstate.reviews;
    let count = match decide(&shared.chainstate.settings.signatures, block, &reviews.cancel) {
        None => &reviews.demoted,
        Some(Ok(())) => &reviews.blocks,
        Some(Err(violation)) => {
            take_off(shared, block, &violation);
            &reviews.blocks
        }
    };
    count.fetch_add(1, Ordering::Relaxed);
}

/// The reference's verdict on the scripts of a block; `None` if the engine is closed meanwhile.
fn decide(referee: &Refereed, block: &Arc<FundedBlock>, cancel: &Cancel) -> Option<Result<(), Violation>> {
    let second = Second { referee, disagreements: AtomicU64::new(0) };
    let by_capture = |part: Part| {
        let mut batch = Batch::default();
        batch.capture(block, part);
        batch.settle(&second).verdict(block)
    };
    let result = in_parts(block, cancel, by_capture)?;
    let disagreements = second.disagreements.load(Ordering::Relaxed);
    if result.is_ok() && disagreements == 0 {
        return Some(result);
    }
    let result = in_parts(block, cancel, |part| verify_exactly(block, part))?;
    if result.is_err() && disagreements == 0 {
        let (hash, height) = (block.checked().block().hash(), block.checked().height());
        referee.distrust(format!("block {hash} at height {}", height.0));
    }
    Some(result)
}

fn in_parts(
    block: &Arc<FundedBlock>,
    cancel: &Cancel,
    verify: impl Fn(Part) -> lydian_consensus::PartVerdict,
) -> Option<Result<(), Violation>> {
    let mut tally = Tally::new(block);
    for part in parts(block, BATCH_INPUTS) {
        if cancel.is_cancelled() {
            return None;
        }
        tally.add(block, verify(part));
    }
    Some(tally.finish(Arc::clone(block)).map(|_| ()))
}

/// Verifies with the reference and compares the kernel with it.
struct Second<'a> {
    referee: &'a Refereed,
    disagreements: AtomicU64,
}

impl Signatures for Second<'_> {
    fn name(&self) -> &'static str {
        Reference.name()
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        let count = self.referee.review(checks, verdicts);
        self.disagreements.fetch_add(count, Ordering::Relaxed);
    }
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
    use crate::chainstate::settings::{Layout, Settings};
    use crate::engine::Engine;
    use crate::event::Unobserved;
    use lydian_consensus::{Chain, Params, Rejected, Rule};
    use lydian_disk::SimDisk;
    use lydian_lab::presets::maker::Maker;
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
            lydian_lab::presets::maker::seal(&mut rival);
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
