//! Transactions of this node's user that no peer has requested yet.
//!
//! Bitcoin Core's unbroadcast set (`GetUnbroadcastTxs`, `ReattemptInitialBroadcast`). Input: transactions submitted by
//! RPC or read from `mempool.dat`, requests of peers, the time. Output: the transactions to announce again, every 10 to
//! 15 minutes. Invariant: peers cannot add to the set. Memory: 50 bytes for each transaction; the caller removes those
//! that leave the mempool, whose size therefore limits the set. Cost: logarithmic.

use crate::draw;
use lydian_primitives::Txid;
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeSet;
use std::time::Duration;

/// The minimum time between two attempts.
const INTERVAL_MIN: Duration = Duration::from_secs(10 * 60);
/// A random time below this is added, in milliseconds: the attempts must not identify the node.
const INTERVAL_SPREAD_MS: usize = 5 * 60 * 1000;

/// The set, and the time of the next attempt.
#[derive(Debug)]
pub struct Unbroadcast {
    txids: BTreeSet<Txid>,
    next: Duration,
}

impl Unbroadcast {
    /// Creates an empty set. `now` is of [`crate::Moment::elapsed`], as Core's scheduler.
    pub fn new(now: Duration, random: &mut ChaCha20Rng) -> Unbroadcast {
        Unbroadcast { txids: BTreeSet::new(), next: next(now, random) }
    }

    /// Adds a transaction that is in the mempool.
    pub fn add(&mut self, txid: Txid) {
        self.txids.insert(txid);
    }

    /// A peer requested the transaction, or it left the mempool. Returns whether it was in the set.
    pub fn remove(&mut self, txid: &Txid) -> bool {
        self.txids.remove(txid)
    }

    pub fn contains(&self, txid: &Txid) -> bool {
        self.txids.contains(txid)
    }

    /// Returns the transactions, in ascending order.
    pub fn txids(&self) -> impl ExactSizeIterator<Item = &Txid> {
        self.txids.iter()
    }

    /// Returns the transactions to announce again, if it is time; otherwise none.
    pub fn due(&mut self, now: Duration, random: &mut ChaCha20Rng) -> Vec<Txid> {
        if now < self.next {
            return Vec::new();
        }
        self.next = next(now, random);
        self.txids.iter().copied().collect()
    }
}

fn next(now: Duration, random: &mut ChaCha20Rng) -> Duration {
    now + INTERVAL_MIN + Duration::from_millis(draw::below(random, INTERVAL_SPREAD_MS) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn attempts_are_ten_to_fifteen_minutes_apart_until_a_peer_asks() {
        let random = &mut ChaCha20Rng::seed_from_u64(1);
        let mut set = Unbroadcast::new(Duration::ZERO, random);
        let txids = [Txid([2; 32]), Txid([1; 32])];
        txids.iter().for_each(|txid| set.add(*txid));
        let mut attempts = vec![Duration::ZERO];
        for second in 0..100_000 {
            let now = Duration::from_secs(second);
            let due = set.due(now, random);
            if !due.is_empty() {
                assert_eq!(due, [txids[1], txids[0]]);
                attempts.push(now);
            }
        }
        let pauses: Vec<_> = attempts.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
        assert!(pauses.iter().all(|pause| (600..=901).contains(pause)), "{pauses:?}");
        assert!(pauses.iter().max().unwrap() - pauses.iter().min().unwrap() > 60, "{pauses:?}");
        assert!(set.remove(&txids[0]) && !set.remove(&txids[0]));
        assert!(set.contains(&txids[1]) && set.txids().eq([&txids[1]]));
        assert_eq!(set.due(Duration::from_secs(200_000), random), [txids[1]]);
    }
}
