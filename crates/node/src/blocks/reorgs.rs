//! [`Reorgs`]: the latest reorganisations, with those of earlier processes.
//!
//! Input: what was saved, and each new tip, up or down. Output: the old tip, the new one, the block at which they part,
//! the depth. A reorganisation begins when a block is disconnected and ends when a chain with more work than the old
//! tip's is connected. Until then its new tip moves: after `invalidateblock`, or if the new chain is invalid, the tip
//! may stay below the old one. Invariant: at most [`REORGS_MAX`].

use crate::limits::REORGS_MAX;
use lydian_consensus::U256;
use lydian_engine::TipUpdate;
use lydian_primitives::BlockHash;
use std::collections::VecDeque;

/// A block of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) height: u32,
    pub(crate) hash: BlockHash,
}

/// A reorganisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reorg {
    /// Its number, counted from 1 for the first one that this data directory has seen.
    pub(crate) number: u64,
    /// Seconds since 1970.
    pub(crate) time: u64,
    pub(crate) old: Place,
    pub(crate) new: Place,
    pub(crate) fork: Place,
    old_work: U256,
    is_over: bool,
}

impl Reorg {
    /// A reorganisation of an earlier process, which is over. `None` if its blocks cannot be in this order.
    pub(crate) fn of_before(number: u64, time: u64, [old, new, fork]: [Place; 3]) -> Option<Reorg> {
        let reorg = Reorg { number, time, old, new, fork, old_work: U256::ZERO, is_over: true };
        (fork.height < old.height && fork.height <= new.height).then_some(reorg)
    }

    /// The number of blocks that were disconnected.
    pub(crate) fn depth(&self) -> u32 {
        self.old.height - self.fork.height
    }

    /// Whether the chain is, for now, the one before.
    pub(crate) fn is_undone(&self) -> bool {
        self.old == self.new
    }
}

/// The latest reorganisations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reorgs {
    latest: VecDeque<Reorg>,
    count: u64,
    tip: Option<(Place, U256)>,
    /// Changes so far.
    version: u64,
}

impl Reorgs {
    /// The tip at the start.
    pub(crate) fn begins(&mut self, tip: &TipUpdate) {
        self.tip.get_or_insert((place(tip), tip.chain_work));
    }

    /// Enters the reorganisations of earlier processes, the latest last; those since the start are numbered anew.
    pub(crate) fn restore(&mut self, saved: &[Reorg]) {
        let before = saved.last().map_or(0, |last| last.number);
        self.latest.iter_mut().for_each(|reorg| reorg.number = reorg.number.saturating_add(before));
        self.count = self.count.saturating_add(before);
        saved.iter().rev().for_each(|reorg| self.latest.push_front(*reorg));
        while self.latest.len() > REORGS_MAX {
            self.latest.pop_front();
        }
    }

    /// Changes since the start.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn all(&self) -> Vec<Reorg> {
        self.latest.iter().copied().collect()
    }

    /// The tip moved.
    pub(crate) fn tip(&mut self, tip: &TipUpdate, now: u64) {
        let (new, work) = (place(tip), tip.chain_work);
        let before = self.tip.replace((new, work));
        let open = self.latest.back_mut().filter(|reorg| !reorg.is_over);
        match (open, before) {
            (Some(open), _) => {
                self.version += 1;
                open.new = new;
                if tip.is_disconnect && new.height < open.fork.height {
                    open.fork = new;
                }
                open.is_over = !tip.is_disconnect && (work > open.old_work || open.is_undone());
            }
            (None, Some((old, old_work))) if tip.is_disconnect => {
                self.version += 1;
                self.count = self.count.saturating_add(1);
                if self.latest.len() == REORGS_MAX {
                    self.latest.pop_front();
                }
                let number = self.count;
                self.latest.push_back(Reorg { number, time: now, old, new, fork: new, old_work, is_over: false });
            }
            _ => {}
        }
    }
}

fn place(tip: &TipUpdate) -> Place {
    Place { height: tip.height.0, hash: tip.hash }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::{Header, Height};

    /// The block of a branch at a height; each has one unit of work.
    fn tip(height: u32, branch: u8, is_disconnect: bool) -> TipUpdate {
        let mut hash = BlockHash([branch; 32]);
        hash.0[..4].copy_from_slice(&height.to_le_bytes());
        let header = Header { version: 0, prev_block: hash, merkle_root: [0; 32], time: 0, bits: 0, nonce: 0 };
        TipUpdate {
            hash,
            height: Height(height),
            header,
            chain_work: U256::from_u64(u64::from(height)),
            transactions: 0,
            cache_bytes: 0,
            coins: 0,
            is_disconnect,
        }
    }

    fn at(height: u32, branch: u8) -> Place {
        place(&tip(height, branch, false))
    }

    /// Feeds tips `(height, branch, is_disconnect)` and returns both tips, fork and depth of each reorganisation.
    fn fed(reorgs: &mut Reorgs, tips: &[(u32, u8, bool)]) -> Vec<(Place, Place, Place, u32)> {
        tips.iter().for_each(|(height, branch, down)| reorgs.tip(&tip(*height, *branch, *down), 5));
        reorgs.all().iter().map(|reorg| (reorg.old, reorg.new, reorg.fork, reorg.depth())).collect()
    }

    #[test]
    fn a_reorganisation_has_both_tips() {
        let mut reorgs = Reorgs::default();
        reorgs.begins(&tip(10, 0, false));
        assert_eq!(fed(&mut reorgs, &[(11, 0, false), (12, 0, false)]), []);
        let two_deep = (at(12, 0), at(13, 1), at(10, 0), 2);
        let down_and_up = [(11, 0, true), (10, 0, true), (11, 1, false), (12, 1, false), (13, 1, false)];
        assert_eq!(fed(&mut reorgs, &down_and_up), [two_deep]);
        assert_eq!(fed(&mut reorgs, &[(14, 1, false), (15, 1, false)]), [two_deep], "it is over");
        // The chain with more work turns out to be invalid: back to the tip before.
        let back = [(14, 1, true), (15, 2, false), (14, 1, true), (15, 1, false), (16, 1, false)];
        assert_eq!(fed(&mut reorgs, &back)[1..], [(at(15, 1), at(15, 1), at(14, 1), 1)]);
        assert!(reorgs.all()[1].is_undone());
        // `invalidateblock`: the tip stays below until another chain has more work.
        assert_eq!(fed(&mut reorgs, &[(15, 1, true)])[2..], [(at(16, 1), at(15, 1), at(15, 1), 1)]);
        assert_eq!(
            fed(&mut reorgs, &[(16, 3, false), (17, 3, false), (18, 3, false)])[2..],
            [(at(16, 1), at(17, 3), at(15, 1), 1)]
        );
    }

    /// limit: REORGS_MAX at
    /// limit: REORGS_MAX above
    #[test]
    fn the_latest_are_kept() {
        let mut reorgs = Reorgs::default();
        reorgs.begins(&tip(1, 0, false));
        for round in 0..=u32::try_from(REORGS_MAX).unwrap() {
            let height = round + 1;
            fed(&mut reorgs, &[(height - 1, 0, true), (height, 1, false), (height + 1, 0, false)]);
            assert_eq!(reorgs.all().len(), usize::try_from(height).unwrap().min(REORGS_MAX));
        }
        assert_eq!((reorgs.all()[0].number, reorgs.all()[REORGS_MAX - 1].number), (2, REORGS_MAX as u64 + 1));
    }

    #[test]
    fn those_of_earlier_processes_come_first() {
        let saved = Reorg::of_before(7, 5, [at(12, 0), at(13, 1), at(10, 0)]).unwrap();
        let mut reorgs = Reorgs::default();
        reorgs.begins(&tip(20, 0, false));
        fed(&mut reorgs, &[(19, 0, true)]);
        assert_eq!(reorgs.version(), 1);
        reorgs.restore(&[saved]);
        fed(&mut reorgs, &[(20, 1, false), (21, 1, false), (20, 1, true)]);
        let numbers: Vec<u64> = reorgs.all().iter().map(|reorg| reorg.number).collect();
        assert_eq!((numbers, reorgs.all()[0]), (vec![7, 8, 9], saved));
        assert_eq!(reorgs.version(), 4);
        for [old, new, fork] in [[10, 12, 10], [10, 12, 11], [12, 9, 10]] {
            assert_eq!(Reorg::of_before(1, 5, [at(old, 0), at(new, 1), at(fork, 0)]), None);
        }
    }
}
