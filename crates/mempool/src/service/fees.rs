//! Whether the chain is current enough for the fee estimator.
//!
//! Input: the tip, the best header and the time. Output: Core's `IsCurrentForFeeEstimation`. Cost: one look at the
//! tree.

use lydian_engine::{ChainSnapshot, Engine, InitialDownload};
use lydian_fees::FeeEstimates;
use std::sync::Arc;

/// The tip must not be older, in seconds: Core's `MAX_FEE_ESTIMATION_TIP_AGE`.
const TIP_AGE_MAX: i64 = 3 * 60 * 60;

/// The estimator, and whether the node is in initial block download.
#[derive(Clone, Debug)]
pub struct FeeSource {
    pub estimates: Arc<FeeEstimates>,
    pub initial_download: Arc<InitialDownload>,
}

impl FeeSource {
    /// Whether the fee of a transaction that is accepted now counts.
    pub(super) fn is_chain_current(&self, engine: &Engine, snapshot: &ChainSnapshot, now: i64) -> bool {
        if self.initial_download.is_on() {
            return false;
        }
        let tip = snapshot.tip();
        let (time, best) = engine.with_tree(|tree| {
            let time = tree.find(&tip.hash).map(|id| i64::from(tree.header(id).time));
            (time, tree.height(tree.best_header()))
        });
        time.is_some_and(|time| time >= now.saturating_sub(TIP_AGE_MAX)) && tip.height.0 + 1 >= best.0
    }
}
