//! The consistency check of `-checkmempool`: Core's `CTxMemPool::check`.
//!
//! Input: the pool at its tip, and the coins of the chain that its transactions spend. It panics if something does not
//! fit together, which is our bug. Cost: a walk over the whole pool.

use super::accept::ChainCoins;
use super::entry::Entry;
use super::store::Pool;
use super::tables::Member;
use lydian_consensus::Coin;
use lydian_consensus::limits::COINBASE_MATURITY;
use lydian_primitives::{Height, OutPoint, Txid};
use std::collections::HashSet;
use std::sync::Arc;

impl Pool {
    /// The coins of the chain that transactions of the pool spend.
    pub(crate) fn chain_inputs(&self) -> Vec<OutPoint> {
        let is_outside = |outpoint: &OutPoint| self.tables.get(&outpoint.txid).is_none();
        let inputs = self.tables.iter().flat_map(|member| member.entry.tx().view().inputs().map(|input| input.prevout));
        inputs.filter(is_outside).collect()
    }

    /// Checks that everything fits together; `next` is the height of the next block. The views of clusters must have
    /// been made.
    ///
    /// # Panics
    ///
    /// If something does not.
    pub(crate) fn check_all(&self, coins: &ChainCoins, next: Height) {
        self.graph.check();
        let mut members: Vec<&Member> = self.tables.iter().collect();
        members.sort_by_cached_key(|member| member.rank());
        let (mut seen, mut spent): (HashSet<Txid>, HashSet<OutPoint>) = (HashSet::new(), HashSet::new());
        let (mut vsize, mut fees) = (0, 0);
        for member in &members {
            let entry = member.entry();
            self.check_indexes(member);
            let mut value = 0;
            for (index, input) in entry.tx().view().inputs().enumerate() {
                let outpoint = input.prevout;
                assert!(spent.insert(outpoint), "{outpoint} is spent twice in the mempool");
                let spend = self.tables.spend(&outpoint);
                let is_its = |(spender, input): (&Member, usize)| Arc::ptr_eq(&spender.entry, entry) && input == index;
                assert!(spend.is_some_and(is_its), "{outpoint} is not marked as spent by its input");
                value += self.value_of(&outpoint, &seen, coins, next);
            }
            let paid: i64 = entry.tx().view().outputs().map(|output| output.value.0).sum();
            assert_eq!(value - paid, entry.fee().0, "the fee of {}", entry.txid());
            seen.insert(entry.txid());
            vsize += u64::from(entry.vsize.unsigned_abs());
            fees += entry.fee().0;
        }
        assert_eq!((vsize, fees), self.sums(), "sizes and fees of the mempool");
        assert!(self.unbroadcast().txids().all(|txid| seen.contains(&txid)), "an unbroadcast transaction is not here");
    }

    /// The value of a coin that is spent: an output of an earlier transaction of the pool, or a coin of the chain.
    fn value_of(&self, outpoint: &OutPoint, seen: &HashSet<Txid>, coins: &ChainCoins, next: Height) -> i64 {
        let output_of = |entry: &Arc<Entry>| {
            assert!(seen.contains(&outpoint.txid), "a transaction comes before the parent {}", outpoint.txid);
            let outputs = entry.tx().view();
            assert!((outpoint.vout as usize) < outputs.output_count(), "{outpoint} does not exist");
            outputs.output(outpoint.vout as usize).value.0
        };
        let of_chain = || {
            let coin: Option<&Coin> = coins.get(outpoint).and_then(Option::as_ref);
            let Some(coin) = coin else { panic!("{outpoint} is neither in the chain nor in the mempool") };
            let is_mature = !coin.is_coinbase || next.0 - coin.height.0 >= COINBASE_MATURITY;
            assert!(is_mature, "{outpoint} is the output of a coinbase that is not mature");
            coin.value.0
        };
        self.tables.get(&outpoint.txid).map_or_else(of_chain, |parent| output_of(parent.entry()))
    }

    fn check_indexes(&self, member: &Member) {
        let entry = member.entry();
        let txid = entry.txid();
        let by_wtxid = self.tables.get_by_wtxid(&entry.wtxid());
        assert!(by_wtxid.is_some_and(|other| Arc::ptr_eq(&other.entry, entry)), "{txid} is not found by its wtxid");
        assert!(
            self.entry_of(member.node).is_some_and(|other| Arc::ptr_eq(other, entry)),
            "{txid} is not found by its node"
        );
        let of_cluster = &member.cluster.members[member.position()];
        assert!(Arc::ptr_eq(&of_cluster.entry, entry), "{txid} has another place in its cluster");
        assert_eq!(of_cluster.modified_fee, member.modified_fee(), "the modified fee of {txid} in its cluster");
        // A sum that would overflow stays at the limit, whatever is added after.
        let modified_fee = entry.fee().0.checked_add(self.delta(&txid));
        assert!(modified_fee.is_none_or(|fee| fee == member.modified_fee()), "the modified fee of {txid}");
        let parents: HashSet<Txid> = entry.tx().view().inputs().map(|input| input.prevout.txid).collect();
        let ancestors = of_cluster.ancestors;
        for (position, other) in member.cluster.members.iter().enumerate() {
            if parents.contains(&other.entry.txid()) {
                assert!(ancestors >> position & 1 == 1, "a parent of {txid} is none of its ancestors");
            }
        }
    }
}
