//! The record of the last blocks, for the page: each of the last 2,016 with what it contains, who sent it and what each
//! step took; reorganisations; invalid blocks.
//!
//! Input: the events of the engine; the senders that crate p2p keeps; blocks from before this start, which a thread of
//! low priority reads ([`fill`]). Output: rows, by height. Invariants: a row is a block of the active chain; at most
//! [`ROWS_MAX`] rows; the lists are bounded too. Cost: a pass over a block's transactions and a lock for each connected
//! block, and nothing if the page is off. It must never make a block wait, and never calls the engine from an event.

pub(crate) mod facts;
pub(crate) mod fill;
pub(crate) mod invalid;
pub(crate) mod pools;
pub(crate) mod reorgs;
mod row;
pub(crate) mod saved;
#[cfg(test)]
mod tests;
pub(crate) mod text;

pub(crate) use row::{Row, Source, Steps};

use crate::clock::{mocked, now_micros};
use crate::limits::{ROWS_MAX, SENT_WAITING_MAX};
use facts::Facts;
use invalid::Invalid;
use lydian_engine::{Event, SettledBlock, TipUpdate};
use lydian_p2p::{SentBlock, SentBlocks};
use lydian_stdx::lock;
use reorgs::Reorgs;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};

/// The record.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    state: Mutex<State>,
    senders: OnceLock<Arc<SentBlocks>>,
}

#[derive(Debug, Default)]
struct State {
    rows: BTreeMap<u32, Row>,
    /// Changes so far, of anything.
    version: u64,
    tip: Option<u32>,
    reorgs: Reorgs,
    invalid: Invalid,
    /// The changes of [`SentBlocks`] that were taken in, and the blocks without a row.
    sent_seen: u64,
    sent_waiting: VecDeque<SentBlock>,
}

impl Blocks {
    /// Takes in what the engine does.
    pub(crate) fn event(&self, event: &Event<'_>) {
        match event {
            Event::UpdateTip(tip) => self.tip(tip),
            Event::BlockSettled(block) => self.connected(block),
            Event::InvalidBlock { hash, height, violation, state } => {
                self.change(|all| all.invalid.add_broken(*hash, height.0, violation, state, seconds()));
            }
            Event::InvalidChain { invalid, .. } => {
                self.change(|all| all.invalid.add_marked(invalid.hash, invalid.height.0, seconds()));
            }
            _ => {}
        }
    }

    /// From now on, the senders of blocks are known.
    pub(crate) fn has_senders(&self, senders: &Arc<SentBlocks>) {
        senders.keep();
        // A node has one network.
        let _ = self.senders.set(Arc::clone(senders));
    }

    /// The chain as it is at the start.
    pub(crate) fn begins(&self, tip: &TipUpdate) {
        self.change(|all| {
            all.tip = Some(tip.height.0);
            all.reorgs.begins(tip);
        });
    }

    /// Enters the reorganisations of earlier processes.
    fn restore(&self, saved: &[reorgs::Reorg]) {
        self.change(|all| all.reorgs.restore(saved));
    }

    /// The reorganisations and the number of their changes, if that is another one.
    fn changed_reorganisations(&self, seen: u64) -> Option<(u64, Vec<reorgs::Reorg>)> {
        let all = lock(&self.state);
        let version = all.reorgs.version();
        (version != seen).then(|| (version, all.reorgs.all()))
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut all = lock(&self.state);
        all.version += 1;
        change(&mut all);
    }

    fn tip(&self, tip: &TipUpdate) {
        self.change(|all| {
            all.tip = Some(tip.height.0);
            all.reorgs.tip(tip, seconds());
            if tip.is_disconnect {
                all.cut(tip.height.0.saturating_add(1));
            }
        });
    }

    fn connected(&self, block: &SettledBlock<'_>) {
        let facts = Facts::of(block.block, Some(block.fees));
        let row = Row::connected(block, facts, mocked().map_or_else(now_micros, |seconds| seconds * 1_000_000));
        self.change(|all| {
            // The pipeline connects faster than a reader looks; what it left behind meanwhile is not on the chain.
            all.cut(row.height);
            all.enter(row);
        });
    }

    /// Enters a block that was connected before this start, if it still has no row and `is_active` holds.
    pub(crate) fn fill(&self, row: Row, is_active: impl FnOnce() -> bool) {
        let mut all = lock(&self.state);
        // Asked under the lock: a block that is disconnected after this has its row removed by the event.
        if !all.rows.contains_key(&row.height) && all.is_wanted(row.height) && is_active() {
            all.version += 1;
            all.enter(row);
        }
    }

    /// The highest height of the last [`ROWS_MAX`] that has no row.
    pub(crate) fn missing(&self) -> Option<u32> {
        let all = lock(&self.state);
        let tip = all.tip?;
        let lowest = lowest(tip);
        let mut next = tip;
        // Only the unbroken run of rows below the tip is looked at.
        for height in all.rows.range(lowest..=tip).rev().map(|(height, _)| *height) {
            if height < next {
                return Some(next);
            }
            if height == lowest {
                return None;
            }
            next = height - 1;
        }
        Some(next)
    }

    /// The number of changes so far, once the rows are joined with the senders of their blocks.
    pub(crate) fn version(&self) -> u64 {
        self.take_senders();
        lock(&self.state).version
    }

    /// The highest rows, at most this many, the lowest first.
    pub(crate) fn rows(&self, count_max: usize) -> Vec<Row> {
        let all = lock(&self.state);
        let mut rows: Vec<Row> = all.rows.values().rev().take(count_max).cloned().collect();
        rows.reverse();
        rows
    }

    /// The reorganisations, the latest last.
    pub(crate) fn reorganisations(&self) -> Vec<reorgs::Reorg> {
        lock(&self.state).reorgs.all()
    }

    /// The invalid blocks, the latest last.
    pub(crate) fn invalid(&self) -> Vec<invalid::InvalidBlock> {
        lock(&self.state).invalid.all()
    }

    /// Joins the rows with the senders of their blocks.
    fn take_senders(&self) {
        let Some(senders) = self.senders.get() else { return };
        let seen = lock(&self.state).sent_seen;
        let (seen, changed) = senders.since(seen);
        if changed.is_empty() {
            return;
        }
        let mut all = lock(&self.state);
        all.sent_seen = seen;
        for sent in changed {
            all.sent(sent);
        }
    }
}

impl State {
    /// Removes the rows from a height on.
    fn cut(&mut self, from: u32) {
        while self.rows.last_key_value().is_some_and(|(height, _)| *height >= from) {
            self.rows.pop_last();
        }
    }

    fn enter(&mut self, mut row: Row) {
        if let Some(at) = self.sent_waiting.iter().position(|sent| sent.hash == row.hash) {
            row.sent = self.sent_waiting.remove(at);
        }
        self.rows.insert(row.height, row);
        let lowest = lowest(self.tip.into_iter().chain(self.rows.keys().next_back().copied()).max().unwrap_or(0));
        while self.rows.first_key_value().is_some_and(|(height, _)| *height < lowest) {
            self.rows.pop_first();
        }
    }

    fn is_wanted(&self, height: u32) -> bool {
        self.tip.is_some_and(|tip| height <= tip && height >= lowest(tip))
    }

    fn sent(&mut self, sent: SentBlock) {
        // Few rows are looked at: what a peer sends is near the tip.
        let row = self.rows.values_mut().rev().find(|row| row.hash == sent.hash);
        if let Some(row) = row {
            self.version += 1;
            row.sent = Some(sent);
            return;
        }
        self.sent_waiting.retain(|waiting| waiting.hash != sent.hash);
        if self.sent_waiting.len() == SENT_WAITING_MAX {
            self.sent_waiting.pop_front();
        }
        self.sent_waiting.push_back(sent);
    }
}

/// The lowest height that has a row.
fn lowest(tip: u32) -> u32 {
    let rows = u32::try_from(ROWS_MAX).unwrap_or(u32::MAX);
    tip.saturating_add(1).saturating_sub(rows)
}

/// Seconds since 1970.
fn seconds() -> u64 {
    mocked().unwrap_or_else(|| now_micros() / 1_000_000)
}
