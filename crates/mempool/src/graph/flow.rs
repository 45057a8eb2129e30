//! The split of a set of transactions by feerate: the core of the linearization.
//!
//! Input: fee, size and ancestors of each position of a cluster, and the set to split. Ancestors outside of the set do
//! not matter: they are mined before it. Output: the part of the set whose chunks have a higher feerate than the whole
//! set; or, if there is none, the smallest groups of exactly that feerate.
//!
//! # How
//!
//! Let F and Z be the fee and the size of the set. The weight of a transaction is `fee * Z - F * size`: positive above
//! the feerate of the set, negative below, and their sum is zero. A subset is *closed* if it contains the ancestors of
//! its members. The closed subset of the greatest weight has all chunks above the feerate of the set. To find it,
//! transactions of positive weight pay the deficits of their ancestors of negative weight, as far as possible. Each
//! search looks for a deficit that can be covered by changing payments, until there is none or all is paid:
//!
//! * If a payer has weight left, the closed subset is what the last search reached: all payers that could not be
//!   relieved, with their ancestors.
//! * If all is paid, no closed subset has a positive weight. The strongly connected components of dependencies and
//!   payments are the smallest groups (Picard and Queyranne, 1980). They depend neither on the payments found nor on
//!   the order of positions. Core's `SpanningForestState` reaches the same groups by minimising its chunks.
//!
//! `docs/derivations/linearization.md` has the reasons. Payments go along the transitive closure, so the steps of a
//! search alternate between payers and paid, and each is an operation on a `u64`. Weights have 128 bits: |fee| < 2^63,
//! 64 sizes < 2^31, 64 terms give less than 2^107.
//!
//! Cost: a search takes at most one step per position. The number of searches is bounded by the product of positions
//! and dependencies, as for every shortest-path flow; in practice it is about the number of positions. The worst
//! clusters known are measured in `benches/graph.rs`.

use super::bits::{below, bit, count, first, ones};
use crate::limits::CLUSTER_COUNT_MAX;

/// One transaction as the linearization sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) fee: i64,
    pub(super) size: i32,
    /// Includes the transaction itself.
    pub(super) ancestors: u64,
}

/// The outcome for a set.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// The members that are mined first. Neither part is empty.
    First(u64),
    /// The whole set has one feerate; its smallest groups of that feerate, in no particular order.
    Groups(Vec<u64>),
}

/// Working memory of the search, kept between calls.
#[derive(Debug)]
pub(super) struct Flow {
    /// Weight that is not yet spent (of payers) or not yet covered (of paid), as a positive number.
    left: [i128; CLUSTER_COUNT_MAX],
    /// What the second position pays for the first one. Valid where `payers` has the bit.
    paid: Box<[[i128; CLUSTER_COUNT_MAX]]>,
    /// For each paid position, the positions that pay a positive amount.
    payers: [u64; CLUSTER_COUNT_MAX],
    /// The previous step of the search: for a paid position its payer to be, for a payer the paid position it leaves.
    via: [usize; CLUSTER_COUNT_MAX],
}

impl Flow {
    pub(super) fn new() -> Flow {
        Flow {
            left: [0; CLUSTER_COUNT_MAX],
            paid: vec![[0; CLUSTER_COUNT_MAX]; CLUSTER_COUNT_MAX].into_boxed_slice(),
            payers: [0; CLUSTER_COUNT_MAX],
            via: [0; CLUSTER_COUNT_MAX],
        }
    }

    /// Splits `set`, which is not empty.
    pub(super) fn split(&mut self, items: &[Item], set: u64) -> Split {
        let (payers, paid) = self.weigh(items, set);
        if payers == 0 {
            return Split::Groups(ones(set).map(bit).collect());
        }
        self.pay_directly(items, payers, paid);
        loop {
            let unspent = ones(payers).filter(|&payer| self.left[payer] > 0).fold(0, |all, payer| all | bit(payer));
            if unspent == 0 {
                return Split::Groups(self.groups(items, set));
            }
            match self.search(items, unspent, paid) {
                Ok(end) => self.augment(unspent, end),
                Err(reached) => {
                    return Split::First(ones(reached).fold(0, |all, payer| all | items[payer].ancestors) & set);
                }
            }
        }
    }

    /// Sets the weights; returns the positions of positive and those of negative weight.
    fn weigh(&mut self, items: &[Item], set: u64) -> (u64, u64) {
        let fee: i128 = ones(set).map(|at| i128::from(items[at].fee)).sum();
        let size: i128 = ones(set).map(|at| i128::from(items[at].size)).sum();
        let (mut payers, mut paid) = (0, 0);
        for at in ones(set) {
            let weight = i128::from(items[at].fee) * size - fee * i128::from(items[at].size);
            if weight > 0 {
                payers |= bit(at);
            } else if weight < 0 {
                paid |= bit(at);
            }
            self.left[at] = weight.abs();
            self.payers[at] = 0;
        }
        (payers, paid)
    }

    /// Pays what can be paid without changing another payment, those with the fewest choices first.
    fn pay_directly(&mut self, items: &[Item], payers: u64, paid: u64) {
        let mut by_choice = [(0, 0); CLUSTER_COUNT_MAX];
        let mut number = 0;
        for payer in ones(payers) {
            by_choice[number] = (count(items[payer].ancestors & paid), payer);
            number += 1;
        }
        by_choice[..number].sort_unstable();
        let mut open = paid;
        for &(_, payer) in &by_choice[..number] {
            for ancestor in ones(items[payer].ancestors & open) {
                let amount = self.left[payer].min(self.left[ancestor]);
                self.add_payment(ancestor, payer, amount);
                self.left[payer] -= amount;
                self.left[ancestor] -= amount;
                if self.left[ancestor] == 0 {
                    open &= !bit(ancestor);
                }
                if self.left[payer] == 0 {
                    break;
                }
            }
        }
    }

    /// Looks, breadth first from all of `unspent`, for a deficit that can be covered by changing payments. Returns its
    /// position, or the payers reached if there is none.
    fn search(&mut self, items: &[Item], unspent: u64, paid: u64) -> Result<usize, u64> {
        let (mut reached, mut unreached_paid) = (unspent, paid);
        let mut queue = [0; CLUSTER_COUNT_MAX];
        let mut end = 0;
        for payer in ones(unspent) {
            queue[end] = payer;
            end += 1;
        }
        let mut at = 0;
        while at < end {
            let payer = queue[at];
            at += 1;
            let new_paid = items[payer].ancestors & unreached_paid;
            unreached_paid &= !new_paid;
            for ancestor in ones(new_paid) {
                self.via[ancestor] = payer;
                if self.left[ancestor] > 0 {
                    return Ok(ancestor);
                }
                let new_payers = self.payers[ancestor] & !reached;
                reached |= new_payers;
                for other in ones(new_payers) {
                    self.via[other] = ancestor;
                    queue[end] = other;
                    end += 1;
                }
            }
        }
        Err(reached)
    }

    /// Covers as much of the deficit at `end` as the path found allows.
    fn augment(&mut self, unspent: u64, end: usize) {
        let mut amount = self.left[end];
        let mut payer = self.via[end];
        while unspent & bit(payer) == 0 {
            let ancestor = self.via[payer];
            amount = amount.min(self.paid[ancestor][payer]);
            payer = self.via[ancestor];
        }
        amount = amount.min(self.left[payer]);
        self.left[payer] -= amount;
        self.left[end] -= amount;
        let mut ancestor = end;
        loop {
            let payer = self.via[ancestor];
            self.add_payment(ancestor, payer, amount);
            if unspent & bit(payer) != 0 {
                return;
            }
            ancestor = self.via[payer];
            self.paid[ancestor][payer] -= amount;
            if self.paid[ancestor][payer] == 0 {
                self.payers[ancestor] &= !bit(payer);
            }
        }
    }

    fn add_payment(&mut self, ancestor: usize, payer: usize, amount: i128) {
        if self.payers[ancestor] & bit(payer) == 0 {
            self.payers[ancestor] |= bit(payer);
            self.paid[ancestor][payer] = 0;
        }
        self.paid[ancestor][payer] += amount;
    }

    /// Returns the strongly connected components of dependencies and payments.
    fn groups(&self, items: &[Item], set: u64) -> Vec<u64> {
        let mut reach = [0; CLUSTER_COUNT_MAX];
        for at in ones(set) {
            reach[at] = items[at].ancestors & set | self.payers[at];
        }
        for through in ones(set) {
            let further = reach[through];
            for at in ones(set) {
                if reach[at] & bit(through) != 0 {
                    reach[at] |= further;
                }
            }
        }
        let mut groups = Vec::new();
        let mut rest = set;
        while let Some(at) = first(rest) {
            let back = |other: &usize| reach[*other] & bit(at) != 0;
            let group = bit(at) | ones(reach[at] & !below(at)).filter(back).fold(0, |all, other| all | bit(other));
            groups.push(group & rest);
            rest &= !group;
        }
        groups
    }
}
