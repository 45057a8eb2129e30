//! Plans transactions that wait for a block: the mempool on top of a planned chain.
//!
//! Input: a planner whose chain is complete. Output: blocks above the tip, each as full as those of the chain; their
//! transactions without the coinbases, in order, are the mempool. Invariants: a transaction spends confirmed coins and
//! earlier waiting transactions only; locks hold at the next height; a connected set of waiting transactions stays
//! within the limits of a cluster. Cost: that of [`Planner`], and 24 bytes per waiting transaction.

use super::{
    LEFTOVER_WEIGHT, PlannedBlock, PlannedInput, PlannedOutput, PlannedTx, Planner, RESERVED_WEIGHT,
    SEQUENCE_LAST_BUT_ONE, SEQUENCE_REPLACEABLE,
};
use crate::plan::{Coin, FIRST_TIME};
use crate::regtest::{BLOCK_WEIGHT_MAX, OUTPUT_VALUE_MIN};
use crate::wallet::Kind;

/// Inputs per thousand that spend an output of a waiting transaction.
const UNCONFIRMED_PER_MILLE: u64 = 120;
/// Bitcoin Core's `DEFAULT_CLUSTER_LIMIT` (policy/policy.h).
const CLUSTER_COUNT_MAX: u32 = 64;
/// Bitcoin Core's `DEFAULT_CLUSTER_SIZE_LIMIT_KVB` is 101 kvB. Planned weights are expected values, hence the margin.
const CLUSTER_WEIGHT_X2_MAX: u64 = 2 * 4 * 100_000;
/// Bitcoin Core's `MAX_STANDARD_TX_WEIGHT` (policy/policy.h), with the same margin.
const TX_WEIGHT_X2_MAX: u64 = 2 * 396_000;

/// Parents and children of the dense cluster: the most transactions that a cluster may have.
const DENSE_PARENTS: usize = 32;
const DENSE_CHILDREN: usize = 32;
/// Children of a parent: all edges together stay below 101 kvB.
const DENSE_EDGES: usize = 24;
/// The dense cluster spends coins this many blocks after coinbases begin to be spread; they have the largest values.
const DENSE_COIN_HEIGHT: u32 = 110;

/// The waiting transactions planned so far.
#[derive(Debug)]
pub(super) struct Pending {
    /// The number of the first transaction above the tip.
    first_tx: usize,
    /// The next block above the tip, counted from 1.
    above: u32,
    /// Unspent outputs of waiting transactions.
    coins: Vec<Coin>,
    clusters: Clusters,
}

/// Connected sets of waiting transactions, by transaction number from [`Pending::first_tx`].
#[derive(Debug, Default)]
struct Clusters {
    parents: Vec<usize>,
    /// Valid at the root of a set.
    sizes: Vec<(u32, u64)>,
}

impl Clusters {
    fn root(&mut self, index: usize) -> usize {
        let mut root = index;
        while self.parents[root] != root {
            self.parents[root] = self.parents[self.parents[root]];
            root = self.parents[root];
        }
        root
    }

    /// Adds the transaction `index`, which joins the sets of `spent`; `false` if the result would exceed a limit.
    fn join(&mut self, index: usize, spent: &[usize], weight_x2: u64) -> bool {
        let mut roots: Vec<usize> = spent.iter().map(|&spent| self.root(spent)).collect();
        roots.sort_unstable();
        roots.dedup();
        let (count, weight) = roots
            .iter()
            .fold((1, weight_x2), |(count, weight), &root| (count + self.sizes[root].0, weight + self.sizes[root].1));
        if count > CLUSTER_COUNT_MAX || weight > CLUSTER_WEIGHT_X2_MAX {
            return false;
        }
        while self.parents.len() <= index {
            self.parents.push(self.parents.len());
            self.sizes.push((0, 0));
        }
        roots.iter().for_each(|&root| self.parents[root] = index);
        self.sizes[index] = (count, weight);
        true
    }
}

impl Planner {
    /// Ensures that each block before the full ones spreads its coinbase over at least this many coins.
    pub fn spread_at_least(&mut self, coins: u64) {
        self.fan_out_min = coins;
    }

    /// The next block above the tip with at most `count` transactions besides its coinbase; `None` if there are no
    /// coins left. Call it only after [`Planner::next_block`] returned `None`; afterwards the chain cannot be extended.
    pub fn next_pending(&mut self, count: usize) -> Option<PlannedBlock> {
        let first_tx = self.begin_pending();
        let mut txs: Vec<PlannedTx> = Vec::new();
        let mut left_x2 = 2 * (BLOCK_WEIGHT_MAX - RESERVED_WEIGHT);
        while txs.len() < count {
            let Some((tx, weight_x2)) = self.draw_pending(first_tx, &txs) else { break };
            let is_too_large = weight_x2 > left_x2;
            if is_too_large || weight_x2 > TX_WEIGHT_X2_MAX || !self.join_cluster(&tx, weight_x2) {
                self.put_back(&tx);
                if is_too_large && left_x2 < 2 * LEFTOVER_WEIGHT {
                    break;
                }
                continue;
            }
            left_x2 -= self.settle_pending(tx, weight_x2, &mut txs);
        }
        (!txs.is_empty()).then(|| self.end_pending(first_tx, txs))
    }

    /// A block above the tip with one cluster that is hard to linearize: every child spends many of the parents, and
    /// fees are random.
    pub fn dense_cluster(&mut self) -> Option<PlannedBlock> {
        let first_tx = self.begin_pending();
        let mut edges: Vec<Vec<usize>> = vec![Vec::new(); DENSE_CHILDREN];
        let mut txs: Vec<PlannedTx> = Vec::new();
        let mut values = Vec::new();
        for parent in 0..DENSE_PARENTS {
            let (coin, age) = self.take_coin(self.height - DENSE_COIN_HEIGHT)?;
            let lock = || Kind::P2wpkh;
            let outputs = (0..DENSE_EDGES)
                .map(|_| PlannedOutput::Pay { lock: self.fresh_lock(lock()), value: OUTPUT_VALUE_MIN })
                .collect();
            let input = PlannedInput { coin, sequence: SEQUENCE_REPLACEABLE, age };
            txs.push(PlannedTx { inputs: vec![input], outputs, lock_time: 0, level: 0 });
            values.push(coin.value);
            let mut children: Vec<usize> = (0..DENSE_CHILDREN).collect();
            for vout in 0..DENSE_EDGES {
                let child = children.swap_remove(self.random.index(children.len()));
                edges[child].push(parent * DENSE_EDGES + vout);
            }
        }
        let mut block: Vec<PlannedTx> = Vec::new();
        for (tx, value) in txs.into_iter().zip(values) {
            let weight_x2 = tx.weight_x2();
            let mut tx = tx;
            self.settle(&mut tx, value, weight_x2);
            block.push(tx);
        }
        let coins = std::mem::take(&mut self.pools[self.height as usize]);
        for spent in edges.iter().filter(|spent| !spent.is_empty()) {
            let input = |&index: &usize| PlannedInput { coin: coins[index], sequence: SEQUENCE_REPLACEABLE, age: 0 };
            let inputs: Vec<PlannedInput> = spent.iter().map(input).collect();
            let outputs = vec![PlannedOutput::Pay { lock: self.fresh_lock(Kind::P2wpkh), value: 0 }];
            let value = inputs.iter().map(|input| input.coin.value).sum();
            let mut tx = PlannedTx { inputs, outputs, lock_time: 0, level: 1 };
            let weight_x2 = tx.weight_x2();
            self.settle(&mut tx, value, weight_x2);
            block.push(tx);
        }
        Some(self.end_pending(first_tx, block))
    }

    /// Returns the number of the coinbase.
    fn begin_pending(&mut self) -> usize {
        let first_tx = self.next_tx;
        if self.pending.is_none() {
            self.height += 1;
            self.pools.push(Vec::new());
            self.pending = Some(Pending { first_tx, above: 1, coins: Vec::new(), clusters: Clusters::default() });
        }
        self.fees = 0;
        self.next_tx += 1;
        first_tx
    }

    fn end_pending(&mut self, first_tx: usize, txs: Vec<PlannedTx>) -> PlannedBlock {
        let above = self.pending.as_mut().map_or(1, |pending| {
            pending.above += 1;
            pending.above - 1
        });
        // Locks refer to the first height above the tip, the subsidy to the height of the block.
        let next = self.height;
        self.height = next + above - 1;
        let (height, coinbase) = (self.height, self.coinbase(first_tx));
        self.height = next;
        PlannedBlock { height, time: FIRST_TIME + 600 * height + 899, first_tx, coinbase, txs }
    }

    /// A transaction without values, with its expected weight in half units.
    fn draw_pending(&mut self, first_tx: usize, before: &[PlannedTx]) -> Option<(PlannedTx, u64)> {
        let mut tx = self.draw_tx_by(first_tx, before, Planner::draw_pending_input)?;
        tx.lock_time = if tx.lock_time > 0 { self.height - 1 } else { 0 };
        let weight_x2 = tx.weight_x2();
        Some((tx, weight_x2))
    }

    fn draw_pending_input(&mut self) -> Option<PlannedInput> {
        if self.random.chance(UNCONFIRMED_PER_MILLE)
            && let Some(pending) = &mut self.pending
            && !pending.coins.is_empty()
        {
            let coin = pending.coins.swap_remove(self.random.index(pending.coins.len()));
            let sequence = if self.random.chance(600) { SEQUENCE_REPLACEABLE } else { SEQUENCE_LAST_BUT_ONE };
            return Some(PlannedInput { coin, sequence, age: 0 });
        }
        self.draw_input()
    }

    fn join_cluster(&mut self, tx: &PlannedTx, weight_x2: u64) -> bool {
        let number = self.next_tx;
        let Some(pending) = &mut self.pending else { return true };
        let first = pending.first_tx;
        let spent: Vec<usize> = tx.inputs.iter().filter_map(|input| input.coin.tx.checked_sub(first)).collect();
        pending.clusters.join(number - first, &spent, weight_x2)
    }

    fn put_back(&mut self, tx: &PlannedTx) {
        for input in &tx.inputs {
            match &mut self.pending {
                Some(pending) if input.coin.tx >= pending.first_tx => pending.coins.push(input.coin),
                _ => self.pools[(self.height - input.age) as usize].push(input.coin),
            }
        }
    }

    /// Returns the weight, which is smaller if outputs were dropped.
    fn settle_pending(&mut self, mut tx: PlannedTx, weight_x2: u64, txs: &mut Vec<PlannedTx>) -> u64 {
        let value = tx.inputs.iter().map(|input| input.coin.value).sum();
        self.settle(&mut tx, value, weight_x2);
        let coins = std::mem::take(&mut self.pools[self.height as usize]);
        if let Some(pending) = &mut self.pending {
            pending.coins.extend(coins);
        }
        let weight_x2 = tx.weight_x2();
        txs.push(tx);
        weight_x2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::MixSettings;
    use std::collections::HashMap;

    fn planner() -> Planner {
        let mut planner = Planner::new(MixSettings { blocks: 440, full: 0, seed: 3, reuse_per_mille: 0 }).unwrap();
        planner.spread_at_least(60);
        while planner.next_block().is_some() {}
        planner
    }

    /// The sizes of the connected sets of transactions, computed from the transactions alone.
    fn sets(blocks: &[PlannedBlock]) -> Vec<usize> {
        let mut set_of: HashMap<usize, usize> = HashMap::new();
        for block in blocks {
            for (number, tx) in (block.first_tx + 1..).zip(&block.txs) {
                let joined: Vec<usize> =
                    tx.inputs.iter().filter_map(|input| set_of.get(&input.coin.tx).copied()).collect();
                set_of.values_mut().filter(|set| joined.contains(set)).for_each(|set| *set = number);
                set_of.insert(number, number);
            }
        }
        let mut sizes: HashMap<usize, usize> = HashMap::new();
        set_of.values().for_each(|set| *sizes.entry(*set).or_default() += 1);
        sizes.into_values().collect()
    }

    #[test]
    fn waiting_transactions_form_small_clusters() {
        let mut planner = planner();
        let blocks: Vec<PlannedBlock> = (0..3).map_while(|_| planner.next_pending(1_200)).collect();
        assert_eq!(blocks.iter().map(|block| block.txs.len()).collect::<Vec<_>>(), [1_200; 3]);
        assert_eq!(blocks.iter().map(|block| block.height).collect::<Vec<_>>(), [441, 442, 443]);
        let sizes = sets(&blocks);
        assert_eq!(sizes.iter().sum::<usize>(), 3_600);
        let largest = sizes.iter().copied().max().unwrap();
        assert!((10..=64).contains(&largest), "{largest}");
        assert!(sizes.iter().filter(|size| **size == 1).count() > 1_000);
    }

    #[test]
    fn no_coin_is_spent_twice_and_locks_hold_at_the_next_height() {
        let mut planner = planner();
        let blocks = [planner.next_pending(800).unwrap(), planner.dense_cluster().unwrap()];
        let mut spent = std::collections::HashSet::new();
        for input in blocks.iter().flat_map(|block| &block.txs).flat_map(|tx| &tx.inputs) {
            assert!(spent.insert((input.coin.tx, input.coin.vout)));
            assert!(input.sequence >= SEQUENCE_REPLACEABLE || input.sequence <= input.age, "{input:?}");
        }
        assert!(blocks[0].txs.iter().all(|tx| tx.lock_time == 0 || tx.lock_time == 440));
    }

    #[test]
    fn the_dense_cluster_is_one_set_of_64() {
        let mut planner = planner();
        let block = planner.dense_cluster().unwrap();
        assert_eq!(sets(std::slice::from_ref(&block)), [64]);
        let weight_x2: u64 = block.txs.iter().map(PlannedTx::weight_x2).sum();
        assert!((2 * 4 * 70_000..CLUSTER_WEIGHT_X2_MAX).contains(&weight_x2), "{weight_x2}");
        let outputs: Vec<usize> = block.txs.iter().map(|tx| tx.outputs.len()).collect();
        assert_eq!(outputs, [[DENSE_EDGES; 32], [1; 32]].concat());
    }

    #[test]
    fn a_joined_set_may_have_64_and_no_more() {
        let mut clusters = Clusters::default();
        assert!(clusters.join(0, &[], 8));
        assert!((1..64).all(|index| clusters.join(index, &[index - 1], 8)));
        assert!(!clusters.join(64, &[63], 8) && clusters.join(64, &[], CLUSTER_WEIGHT_X2_MAX));
        assert!(!clusters.join(65, &[64], 8));
    }
}
