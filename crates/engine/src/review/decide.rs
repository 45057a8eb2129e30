//! The second verdict on a block, by the reference, and its comparison with the kernel.
//!
//! Input: a funded block and the referee. Output: the verdict, and the referee's trust in the kernel. Cost: the block's
//! checks at the reference's speed. It must never take a lock of the engine.

use crate::chainstate::settings::Cancel;
use crate::limits::BATCH_INPUTS;
use lydian_consensus::{Batch, FundedBlock, Part, PartVerdict, Tally, Violation, parts, verify_exactly};
use lydian_curve::{Check, Engine as Signatures, Refereed, Reference};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The reference's verdict on the scripts of a block; `None` if the engine is closed meanwhile. `blame` is called with
/// the block if it is invalid although the kernel now agrees with the reference on each of its checks.
pub(super) fn decide(
    referee: &Refereed,
    block: &Arc<FundedBlock>,
    cancel: &Cancel,
    blame: &dyn Fn(String),
) -> Option<Result<(), Violation>> {
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
        blame(format!("block {hash} at height {}", height.0));
    }
    Some(result)
}

fn in_parts(
    block: &Arc<FundedBlock>,
    cancel: &Cancel,
    verify: impl Fn(Part) -> PartVerdict,
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
