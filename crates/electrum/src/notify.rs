//! The notifier: a thread that finds out which subscriptions changed.
//!
//! Input: the tip, and the scripts that blocks and the mempool touched. Output: new statuses in
//! [`crate::subscriptions`]. After a block, only scripts that it touches are looked at; after a reorganisation, all. A
//! transaction whose inputs were confirmed changes the status of its scripts too. What needs a block that the node has
//! pruned is computed once the block was fetched; nothing else waits for it. Many scripts are looked at by several
//! threads, and announced a hundred at a time.

use crate::server::Shared;
use crate::subscriptions::{Affected, Status};
use lydian_primitives::{Height, OutPoint};
use lydian_query::{PoolTouched, QueryError, ScriptHash};
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

/// Looks until what waits for a pruned block is tried again. There is one more for each [`SCRIPTS_PER_LOOK`] that wait.
const LOOKS_PER_TRY: usize = 10;
const SCRIPTS_PER_LOOK: usize = 100;

/// Scripts that are announced together.
const SCRIPTS_AT_ONCE: usize = 100;

/// Threads that look at scripts.
const THREADS_MAX: usize = 4;

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
    /// The tip that was told last.
    tip: Option<(u32, lydian_primitives::BlockHash)>,
    /// What the mempool touched, and was not looked at yet.
    touched: HashSet<ScriptHash>,
    /// Looks since the mempool stands on a block that the chain does not have.
    waits: u32,
    /// What could not be computed.
    left: HashSet<ScriptHash>,
    left_outpoints: HashSet<OutPoint>,
    is_all_left: bool,
    /// Looks until what is left is tried again.
    pause: usize,
}

impl Notifier {
    fn look(&mut self, shared: &Shared) -> Result<(), QueryError> {
        let query = &shared.query;
        match query.pool().take_touched()? {
            PoolTouched::All => self.is_all_left = true,
            PoolTouched::These(scripts) => self.touched.extend(scripts),
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
        let is_quiet = self.touched.is_empty();
        let is_same = self.tip == Some(tip);
        let is_nothing_left = self.left.is_empty() && self.left_outpoints.is_empty();
        let is_due = !is_nothing_left && self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        if is_same && is_quiet && !is_due && !self.is_all_left {
            return Ok(());
        }
        if !is_same {
            shared.subscriptions.tell_of_header();
        }
        let before = self.tip.replace(tip);
        if shared.subscriptions.is_empty() {
            (self.left, self.left_outpoints, self.is_all_left) = Default::default();
            self.touched.clear();
            return Ok(());
        }
        let mut touched = if is_due { std::mem::take(&mut self.left) } else { HashSet::new() };
        let outpoints = if is_due { std::mem::take(&mut self.left_outpoints) } else { HashSet::new() };
        let mut is_all = std::mem::take(&mut self.is_all_left);
        touched.extend(self.touched.drain());
        if let Some((height, hash)) = before.filter(|_| !is_same) {
            match query.chain().hashes(Height(height), 1) {
                Ok(found) if found.first() == Some(&hash) => {
                    touched.extend(query.index()?.touched(Height(height + 1), &shared.subscriptions.scripts()));
                }
                Ok(_) | Err(_) => is_all = true,
            }
        }
        let subscriptions = &shared.subscriptions;
        let mut affected = if is_all { subscriptions.all() } else { subscriptions.affected(&touched) };
        affected.outpoints.extend(outpoints);
        self.tell(shared, affected);
        Ok(())
    }

    /// Computes what may have changed.
    fn tell(&mut self, shared: &Shared, affected: Affected) {
        let mut waits = false;
        let mut note = |error: &QueryError| waits |= matches!(error, QueryError::NotFetched { .. });
        for (script, error) in tell_scripts(shared, &affected.scripts) {
            note(&error);
            self.left.extend([script]);
        }
        let outpoints: HashSet<OutPoint> = affected.outpoints.into_iter().collect();
        for outpoint in outpoints {
            match shared.prompt.outpoint(&outpoint) {
                Ok(status) => shared.subscriptions.tell_outpoint(&outpoint, status),
                Err(error) => {
                    note(&error);
                    self.left_outpoints.extend([outpoint]);
                }
            }
        }
        if waits {
            self.pause = LOOKS_PER_TRY + (self.left.len() + self.left_outpoints.len()) / SCRIPTS_PER_LOOK;
        }
    }
}

/// Computes the statuses of scripts; returns those for which it failed.
fn tell_scripts(shared: &Shared, scripts: &[ScriptHash]) -> Vec<(ScriptHash, QueryError)> {
    let parts: Vec<&[ScriptHash]> = scripts.chunks(SCRIPTS_AT_ONCE).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let _guard = AbortOnPanic;
        let mut failed = Vec::new();
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut told: Vec<(ScriptHash, Status)> = Vec::with_capacity(part.len());
            for script in *part {
                match shared.prompt.status(script) {
                    Ok(status) => told.push((*script, status)),
                    Err(error) => failed.push((*script, error)),
                }
            }
            shared.subscriptions.tell(&told);
        }
        failed
    };
    let others = shared.threads.min(THREADS_MAX).min(parts.len()).saturating_sub(1);
    thread::scope(|scope| {
        // Without another thread, this one does it alone.
        let spawn = |_| thread::Builder::new().name("electrum-notify".to_owned()).spawn_scoped(scope, work).ok();
        let others: Vec<_> = (0..others).filter_map(spawn).collect();
        let mut failed = work();
        failed.extend(others.into_iter().filter_map(|other| other.join().ok()).flatten());
        failed
    })
}
