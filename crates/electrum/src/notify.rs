//! The notifier: a thread that finds out which subscriptions changed.
//!
//! Input: the tip, what the mempool touched, and what is in blocks. Output: new statuses in
//! [`crate::subscriptions`]. After a block, only what it touches is looked at; after a reorganisation, everything that
//! is watched. A transaction whose inputs were confirmed changes the status of its scripts and outputs too. An output
//! is looked at when its transaction or one that spends it comes, leaves or is confirmed, so that subscriptions of
//! outputs that do not exist cost nothing. If a session was answered something else than the notifier found last, the
//! notifier looks again. What needs a block that the node has pruned is computed once the block was fetched; nothing
//! else waits for it. Several threads share the work; each announces up to a hundred at a time.

use crate::server::Shared;
use crate::watched::{Found, Watch};
use lydian_primitives::{BlockHash, Height};
use lydian_query::{PoolTouched, Query, QueryError, Touched};
use lydian_stdx::AbortOnPanic;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The time between two looks at the tip; the mempool's changes are seen at once.
const LOOK: Duration = Duration::from_millis(25);

/// The same while the mempool stands on a block that the chain is about to have.
const SOON: Duration = Duration::from_millis(1);

/// Looks for which such a block is waited for.
const WAITS_MAX: u32 = 100;

/// Looks until what failed is tried again, and how much of it makes them one more: if some of it waits for a pruned
/// block, and otherwise.
const FOR_BLOCKS: (usize, usize) = (10, 100);
const FOR_OTHERS: (usize, usize) = (0, 1_000);

/// What is announced together.
const AT_ONCE: usize = 100;

/// Blocks that are read for outputs and transactions. If there are more, everything that is watched is looked at.
const BLOCKS_MAX: usize = 100;

/// Runs until the server stops.
pub(crate) fn run(shared: &Arc<Shared>) {
    let _guard = AbortOnPanic;
    let mut notifier = Notifier::default();
    while !shared.is_stopping.load(Ordering::Relaxed) {
        shared.query.pool().wait(if notifier.waits > 0 { SOON } else { LOOK });
        // What failed is tried again with the next look.
        let _ = notifier.look(shared);
    }
}

#[derive(Debug, Default)]
struct Notifier {
    /// The tip that was announced last.
    tip: Option<(u32, BlockHash)>,
    /// What the mempool touched, and was not looked at yet.
    touched: Touched,
    /// Looks since the mempool stands on a block that the chain does not have.
    waits: u32,
    /// What could not be computed.
    left: HashSet<Watch>,
    is_all_left: bool,
    /// Looks until what is left is tried again.
    pause: usize,
}

impl Notifier {
    fn look(&mut self, shared: &Shared) -> Result<(), QueryError> {
        let query = &shared.query;
        match query.pool().take_touched()? {
            PoolTouched::All => self.is_all_left = true,
            PoolTouched::These(touched) => self.touched.extend(touched),
        }
        let tip = query.chain().tip()?;
        // What the mempool lost to a block is looked at together with the block.
        let of_pool = query.pool_tip().ok().flatten();
        if of_pool.is_some_and(|of_pool| of_pool.height > tip.height) && self.waits < WAITS_MAX {
            self.waits += 1;
            return Ok(());
        }
        self.waits = 0;
        let tip = (tip.height.0, tip.hash);
        let is_same = self.tip == Some(tip);
        let is_due = !self.left.is_empty() && self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        let mut doubts = shared.subscriptions.doubts();
        // What failed waits for its turn.
        doubts.retain(|watch| !self.left.contains(watch));
        if is_same && self.touched.is_empty() && !is_due && !self.is_all_left && doubts.is_empty() {
            return Ok(());
        }
        if !is_same {
            shared.subscriptions.tell_of_header();
        }
        let before = self.tip.replace(tip);
        let mut touched = std::mem::take(&mut self.touched);
        let mut is_all = std::mem::take(&mut self.is_all_left);
        let subscriptions = &shared.subscriptions;
        if subscriptions.is_empty() {
            self.left.clear();
            return Ok(());
        }
        let mut blocks = Vec::new();
        if let Some((height, hash)) = before.filter(|_| !is_same) {
            // One more than is read, so that it shows if there are more.
            let hashes = query.chain().hashes(Height(height), BLOCKS_MAX + 2).unwrap_or_default();
            match (query.index(), &hashes[..]) {
                (Ok(index), [first, above @ ..]) if *first == hash => {
                    touched.scripts.extend(index.touched(Height(height + 1), &subscriptions.scripts()));
                    blocks.extend_from_slice(above);
                }
                _ => is_all = true,
            }
        }
        let mut watched: HashSet<Watch> = if is_due { std::mem::take(&mut self.left) } else { HashSet::new() };
        watched.extend(doubts);
        watched.extend(match is_all {
            true => subscriptions.watched_scripts(&subscriptions.scripts()),
            false => subscriptions.watched_scripts(&touched.scripts),
        });
        self.tell(shared, watched);
        if subscriptions.has_others() {
            let of_blocks = if is_all { None } else { others_in(shared, &blocks) };
            let watched = match of_blocks {
                Some(of_blocks) => subscriptions.watched_others(&touched).into_iter().chain(of_blocks).collect(),
                None => subscriptions.others().into_iter().collect(),
            };
            self.tell(shared, watched);
        }
        Ok(())
    }

    /// Computes what may have changed.
    fn tell(&mut self, shared: &Shared, watched: HashSet<Watch>) {
        let watched: Vec<Watch> = watched.into_iter().collect();
        let failed = tell_all(shared, &watched);
        if !failed.is_empty() {
            let waits = failed.iter().any(|(_, error)| matches!(error, QueryError::NotFetched { .. }));
            self.left.extend(failed.into_iter().map(|(watch, _)| watch));
            let (looks, per_look) = if waits { FOR_BLOCKS } else { FOR_OTHERS };
            self.pause = self.pause.max(looks + self.left.len() / per_look);
        }
    }
}

/// The watched outputs and transactions that blocks touch; `None` if the blocks are too many, or cannot be read.
fn others_in(shared: &Shared, blocks: &[BlockHash]) -> Option<Vec<Watch>> {
    if blocks.len() > BLOCKS_MAX {
        return None;
    }
    let mut all = Vec::new();
    for hash in blocks {
        let block = shared.prompt.chain().block(hash).ok().flatten()?;
        let mut touched = Touched::default();
        block.txs().for_each(|tx| touched.add(tx));
        all.extend(shared.subscriptions.watched_others(&touched));
    }
    Some(all)
}

/// What is known of something that is watched.
pub(crate) fn look_up(query: &Query, watch: &Watch) -> Result<Found, QueryError> {
    Ok(match watch {
        Watch::Script(script) => Found::Script(query.status(script)?),
        Watch::Output(outpoint) => Found::Output(query.outpoint(outpoint)?),
        Watch::Transaction(txid) => Found::Transaction(query.height_of(txid)?),
    })
}

/// Computes what is known now, and notifies sessions; returns those for which it failed.
fn tell_all(shared: &Shared, watched: &[Watch]) -> Vec<(Watch, QueryError)> {
    let each = watched.len().div_ceil(shared.notifier_threads).clamp(1, AT_ONCE);
    let parts: Vec<&[Watch]> = watched.chunks(each).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let _guard = AbortOnPanic;
        let mut failed = Vec::new();
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            shared.counts.lookups.fetch_add(part.len() as u64, Ordering::Relaxed);
            let mut known: Vec<(Watch, Found)> = Vec::with_capacity(part.len());
            for watch in *part {
                match look_up(&shared.prompt, watch) {
                    Ok(found) => known.push((*watch, found)),
                    Err(error) => failed.push((*watch, error)),
                }
            }
            shared.subscriptions.tell(&known);
        }
        failed
    };
    let others = shared.notifier_threads.min(parts.len()).saturating_sub(1);
    thread::scope(|scope| {
        // Without another thread, this one does it alone.
        let spawn = |_| thread::Builder::new().name("electrum-notify".to_owned()).spawn_scoped(scope, work).ok();
        let others: Vec<_> = (0..others).filter_map(spawn).collect();
        let mut failed = work();
        failed.extend(others.into_iter().filter_map(|other| other.join().ok()).flatten());
        failed
    })
}
