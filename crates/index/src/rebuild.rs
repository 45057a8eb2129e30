//! [`Rebuild`]: an index that is built again beside the one that a node uses, up to the same block, to compare both.
//!
//! Input: an index that follows the chain in a scratch directory, and the block at which the other one stands. Output:
//! a follower for the engine that takes the blocks up to that one, brings its files to their final state there, and
//! ignores the blocks above. It must never write into the directory of the other one.

use crate::coinstats::CoinStatsIndex;
use crate::filters::FilterIndex;
use lydian_engine::{BlockWithSpent, ConnectedBlock, Follower, FollowerError, Left, Prepare, Rows, Tip};
use lydian_primitives::Height;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An index that can be built up to a block.
pub(crate) trait Rebuilt: Follower {
    /// Brings the files to the state that an index has at this block, the last one that it was given.
    fn finish(&mut self, tip: Tip) -> Result<(), FollowerError> {
        self.checkpoint(tip)
    }
}

impl Rebuilt for FilterIndex {}
impl Rebuilt for CoinStatsIndex {}

/// An index that is being built again.
#[derive(Debug)]
pub struct Rebuild {
    /// For the engine.
    pub follower: Box<dyn Follower>,
    /// The last block that it takes.
    pub until: Tip,
    pub progress: RebuildProgress,
}

/// How far it is, from any thread.
#[derive(Clone, Debug)]
pub struct RebuildProgress(Arc<AtomicU32>);

impl RebuildProgress {
    /// The number of blocks that it has, all of them once its files are finished.
    pub fn blocks(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}

impl Rebuild {
    pub(crate) fn new(index: impl Rebuilt + 'static, until: Tip) -> Rebuild {
        let progress = RebuildProgress(Arc::default());
        let follower = Box::new(UpTo { index, until, progress: progress.clone() });
        Rebuild { follower, until, progress }
    }

    /// The number of blocks that it takes.
    pub fn blocks(&self) -> u32 {
        self.until.height.0.saturating_add(1)
    }
}

#[derive(Debug)]
struct UpTo<F> {
    index: F,
    until: Tip,
    progress: RebuildProgress,
}

/// Makes the rows of the blocks up to a height.
#[derive(Debug)]
struct PrepareUpTo {
    inner: Arc<dyn Prepare>,
    until: Height,
}

impl Prepare for PrepareUpTo {
    fn prepare(&self, block: &BlockWithSpent<'_>) -> Rows {
        if block.height > self.until { Rows::new((), 0) } else { self.inner.prepare(block) }
    }
}

impl<F: Rebuilt> Follower for UpTo<F> {
    fn name(&self) -> &str {
        self.index.name()
    }

    fn durable_tip(&self) -> Option<Tip> {
        self.index.durable_tip()
    }

    fn preparer(&self) -> Option<Arc<dyn Prepare>> {
        let until = self.until.height;
        self.index.preparer().map(|inner| Arc::new(PrepareUpTo { inner, until }) as Arc<dyn Prepare>)
    }

    fn connect(&mut self, block: &ConnectedBlock<'_>, rows: Option<Rows>) -> Result<(), FollowerError> {
        if block.height > self.until.height {
            return Ok(());
        }
        self.index.connect(block, rows)?;
        if block.height == self.until.height {
            if block.block.hash() != self.until.hash {
                let text = format!("block {} of the index is not on the chain of the block files", self.until.hash);
                return Err(FollowerError::new(text));
            }
            self.index.finish(self.until)?;
        }
        self.progress.0.store(block.height.0.saturating_add(1), Ordering::Release);
        Ok(())
    }

    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        Err(FollowerError::new(format!("block {} left the chain while the index was built again", block.height.0)))
    }

    fn checkpoint(&mut self, tip: Tip) -> Result<(), FollowerError> {
        // Above, the files are finished.
        if tip.height < self.until.height { self.index.checkpoint(tip) } else { Ok(()) }
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        self.index.clear()
    }
}
