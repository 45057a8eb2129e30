//! [`Feed`]: every change of the pool, in order.
//!
//! Input: the changes, from the thread that makes them. Output: for any number of readers, the changes from a position
//! on. Each change has the pool's sequence number (Core's `GetAndIncrementSequence`), which grows by one with each, so
//! a reader notices that it missed none.
//!
//! Invariants: the writer never waits for a reader; at most [`FEED_CHANGES_MAX`] changes and [`FEED_BYTES_MAX`] bytes
//! of transactions and their coins are kept. A reader that is further behind gets [`Behind`] and begins again with a
//! snapshot of the pool, which names the sequence number that it follows on.

use super::entry::Entry;
use crate::limits::{FEED_BYTES_MAX, FEED_CHANGES_MAX};
use lydian_consensus::Coin;
use lydian_stdx::{IgnorePoison, lock};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Why a transaction left the pool: Core's `MemPoolRemovalReason`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemovalReason {
    Expiry,
    SizeLimit,
    /// It is no longer final, mature or funded after a reorganisation.
    Reorg,
    Block,
    /// A transaction of a block spends one of its coins.
    Conflict,
    Replaced,
}

impl RemovalReason {
    /// Core's `RemovalReasonToString`.
    pub fn name(self) -> &'static str {
        match self {
            RemovalReason::Expiry => "expiry",
            RemovalReason::SizeLimit => "sizelimit",
            RemovalReason::Reorg => "reorg",
            RemovalReason::Block => "block",
            RemovalReason::Conflict => "conflict",
            RemovalReason::Replaced => "replaced",
        }
    }
}

/// A change of the pool.
#[derive(Clone, Debug)]
pub struct Change {
    pub sequence: u64,
    pub entry: Arc<Entry>,
    pub kind: ChangeKind,
}

#[derive(Clone, Debug)]
pub enum ChangeKind {
    /// With the coins of its inputs, in their order.
    Added {
        spent: Arc<[Coin]>,
    },
    Removed {
        reason: RemovalReason,
    },
}

/// The changes that a reader asks for are no longer kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behind;

/// The last changes of the pool. For use from any thread.
#[derive(Debug)]
pub struct Feed {
    kept: Mutex<Kept>,
    changed: Condvar,
}

#[derive(Debug)]
struct Kept {
    changes: VecDeque<Change>,
    bytes: usize,
    /// The number of the next change.
    next: u64,
    is_ended: bool,
}

/// The bytes of the transaction and of the coins that it spends.
fn size(change: &Change) -> usize {
    let coins = match &change.kind {
        ChangeKind::Added { spent } => spent.iter().map(|coin| size_of::<Coin>() + coin.script_pubkey.len()).sum(),
        ChangeKind::Removed { .. } => 0,
    };
    change.entry.tx().as_bytes().len() + coins
}

impl Feed {
    /// A feed whose first change has the number `next`.
    pub(crate) fn new(next: u64) -> Feed {
        let kept = Kept { changes: VecDeque::new(), bytes: 0, next, is_ended: false };
        Feed { kept: Mutex::new(kept), changed: Condvar::new() }
    }

    /// Adds changes, whose numbers follow on the last one.
    pub(crate) fn push(&self, changes: impl IntoIterator<Item = Change>) {
        let mut kept = lock(&self.kept);
        for change in changes {
            assert_eq!(change.sequence, kept.next, "changes are numbered one after another");
            kept.next += 1;
            kept.bytes += size(&change);
            kept.changes.push_back(change);
            while kept.changes.len() > FEED_CHANGES_MAX || kept.bytes > FEED_BYTES_MAX {
                kept.bytes -= kept.changes.pop_front().as_ref().map_or(0, size);
            }
        }
        drop(kept);
        self.changed.notify_all();
    }

    /// Ends every wait.
    pub(crate) fn end(&self) {
        lock(&self.kept).is_ended = true;
        self.changed.notify_all();
    }

    /// At most `count` changes from the number `from` on; none if there is none yet.
    pub fn read(&self, from: u64, count: usize) -> Result<Vec<Change>, Behind> {
        let kept = lock(&self.kept);
        let behind = kept.next.saturating_sub(from);
        let behind = usize::try_from(behind).unwrap_or(usize::MAX);
        match kept.changes.len().checked_sub(behind) {
            Some(start) => Ok(kept.changes.iter().skip(start).take(count).cloned().collect()),
            None => Err(Behind),
        }
    }

    /// Waits until there is a change with the number `from`, the feed has ended, or the time is over.
    pub fn wait(&self, from: u64, timeout: Duration) {
        let kept = lock(&self.kept);
        let waits = |kept: &mut Kept| !kept.is_ended && kept.next <= from;
        drop(self.changed.wait_timeout_while(kept, timeout, waits).ignore_poison());
    }

    /// The number of the next change.
    pub fn next(&self) -> u64 {
        lock(&self.kept).next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(sequence: u64, bytes: usize) -> Change {
        let entry = Arc::new(Entry::with_script(bytes));
        Change { sequence, entry, kind: ChangeKind::Removed { reason: RemovalReason::Block } }
    }

    fn numbers(changes: Result<Vec<Change>, Behind>) -> Result<Vec<u64>, Behind> {
        Ok(changes?.iter().map(|change| change.sequence).collect())
    }

    /// limit: FEED_CHANGES_MAX at
    /// limit: FEED_CHANGES_MAX above
    #[test]
    fn the_last_changes_are_kept() {
        let feed = Feed::new(1);
        assert_eq!(numbers(feed.read(1, 9)), Ok(Vec::new()));
        let last = FEED_CHANGES_MAX as u64;
        feed.push((1..=last).map(|sequence| change(sequence, 100)));
        assert_eq!(numbers(feed.read(1, 2)), Ok(vec![1, 2]));
        feed.push([change(last + 1, 100)]);
        assert_eq!(numbers(feed.read(1, 2)), Err(Behind));
        assert_eq!(numbers(feed.read(2, 2)), Ok(vec![2, 3]));
        assert_eq!(numbers(feed.read(last + 1, 9)), Ok(vec![last + 1]));
        assert_eq!((numbers(feed.read(last + 2, 9)), feed.next()), (Ok(Vec::new()), last + 2));
        assert_eq!(numbers(feed.read(u64::MAX, 9)), Ok(Vec::new()));
    }

    /// limit: FEED_BYTES_MAX at
    /// limit: FEED_BYTES_MAX above
    #[test]
    fn changes_of_many_bytes_push_out_the_first() {
        let feed = Feed::new(1);
        let script = FEED_BYTES_MAX / 9;
        let each = size(&change(1, script));
        feed.push((1..=8).map(|sequence| change(sequence, script)));
        feed.push([change(9, FEED_BYTES_MAX - 8 * each - (each - script))]);
        assert_eq!(lock(&feed.kept).bytes, FEED_BYTES_MAX);
        assert_eq!(numbers(feed.read(1, 1)), Ok(vec![1]));
        feed.push([change(10, 0)]);
        assert_eq!((numbers(feed.read(1, 1)), numbers(feed.read(2, 1))), (Err(Behind), Ok(vec![2])));
    }

    /// A transaction of 41 bytes for each input may spend coins of 10,000 bytes each.
    #[test]
    fn the_coins_of_a_transaction_count() {
        use lydian_primitives::{Amount, Height, Output};
        let coin = |script: &[u8]| Coin::new(Output { value: Amount(1), script_pubkey: script }, Height(1), false);
        let spends = |sequence, spent| Change { kind: ChangeKind::Added { spent }, ..change(sequence, 100) };
        let large = coin(&[0x51; 10_000]);
        let feed = Feed::new(1);
        let spent: Arc<[Coin]> = vec![large; 2_000].into();
        feed.push((1..=4).map(|sequence| spends(sequence, Arc::clone(&spent))));
        assert_eq!(numbers(feed.read(3, 1)), Err(Behind), "40 MB of coins do not fit");
        assert_eq!(numbers(feed.read(4, 1)), Ok(vec![4]));
    }

    #[test]
    fn a_wait_ends_with_a_change_or_the_feed() {
        let feed = Feed::new(1);
        feed.wait(1, Duration::from_millis(1));
        std::thread::scope(|scope| {
            scope.spawn(|| feed.wait(1, Duration::from_secs(600)));
            feed.push([change(1, 100)]);
        });
        std::thread::scope(|scope| {
            scope.spawn(|| feed.wait(2, Duration::from_secs(600)));
            feed.end();
        });
    }
}
