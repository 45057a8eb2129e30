//! The memory that Bitcoin Core would need for the same pool: Core's `CTxMemPool::DynamicMemoryUsage`.
//!
//! `-maxmempool` bounds this number, so that a pool holds what Core's holds under the same setting, and has the same
//! minimum fee. What this program needs is less; `docs/benchmarks` compares them. The sizes are those of Core 31.99 on
//! a 64-bit machine with glibc and libstdc++; a test compares the sum with a running Core. Pure.

use lydian_primitives::Tx;

/// Core's `memusage::MallocUsage`: the memory of an allocation of `bytes`.
pub(crate) const fn malloc(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { (bytes + 31) >> 4 << 4 }
}

/// `CTxMemPoolEntry` with nine pointers of the indexes.
const ENTRY: u64 = malloc(136 + 9 * 8);
/// A node of `mapNextTx`.
const SPEND: u64 = malloc(48);
/// A node of `mapDeltas`.
const DELTA: u64 = malloc(72);
/// An element of `txns_randomized`.
const RANDOMIZED: u64 = 40;
/// `TxGraphImpl::Entry`.
const GRAPH_ENTRY: u64 = 80;
/// A node of the chunk index.
const CHUNK: u64 = malloc(40);
/// `SingletonClusterImpl` and its pointer.
const SINGLETON: u64 = malloc(48) + 8;
/// `GenericClusterImpl` and its pointer, without the three vectors.
const CLUSTER: u64 = malloc(104) + 8;
/// `CTransaction` and the counter of its `shared_ptr`.
const TRANSACTION: u64 = malloc(128) + malloc(24);
const INPUT: u64 = 112;
const OUTPUT: u64 = 48;
/// A stack of a witness has `std::vector`s.
const VECTOR: u64 = 24;
/// A transaction of a disconnected block that waits: a node of the list, one of the map, and its bucket.
pub(crate) const WAITING: u64 = malloc(32) + malloc(48) + 8;
/// A script of at most this size needs no allocation of its own (`prevector`).
const SCRIPT_INLINE: u64 = 36;

/// Core's `RecursiveDynamicUsage` of a transaction.
pub(crate) fn of_transaction(tx: Tx<'_>) -> u64 {
    let script = |script: &[u8]| match script.len() as u64 {
        size if size <= SCRIPT_INLINE => 0,
        size => malloc(size),
    };
    let inputs = tx.inputs().map(|input| {
        let stack: u64 = input.witness.iter().map(|item| malloc(item.len() as u64)).sum();
        script(input.script_sig) + malloc(VECTOR * input.witness.len() as u64) + stack
    });
    let outputs = tx.outputs().map(|output| script(output.script_pubkey));
    let vectors = malloc(INPUT * tx.input_count() as u64) + malloc(OUTPUT * tx.output_count() as u64);
    TRANSACTION + vectors + inputs.sum::<u64>() + outputs.sum::<u64>()
}

/// Core's `RecursiveDynamicUsage` of a `CTransaction`, without the object itself.
pub fn dynamic_usage(tx: Tx<'_>) -> u64 {
    of_transaction(tx) - TRANSACTION
}

/// The usage of a cluster of `count` transactions.
pub(crate) fn of_cluster(count: usize) -> u64 {
    let count = count as u64;
    match count {
        0 => 0,
        1 => SINGLETON,
        _ => CLUSTER + malloc(4 * count) + malloc(4 * count) + malloc(32 * count),
    }
}

/// The usage of `count` nodes of the chunk index.
pub(crate) fn of_chunks(count: usize) -> u64 {
    CHUNK * count as u64
}

/// The counts that the usage is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) transactions: u64,
    pub(crate) spends: u64,
    pub(crate) deltas: u64,
    /// The sum of [`of_transaction`].
    pub(crate) inner: u64,
    /// The sum of [`of_cluster`].
    pub(crate) clusters: u64,
    pub(crate) chunks: u64,
    /// The capacity of Core's `txns_randomized`, a `std::vector`.
    pub(crate) randomized: u64,
}

impl Usage {
    pub(crate) fn bytes(&self) -> u64 {
        self.transactions * (ENTRY + GRAPH_ENTRY)
            + self.spends * SPEND
            + self.deltas * DELTA
            + malloc(RANDOMIZED * self.randomized)
            + self.inner
            + self.clusters
            + self.chunks * CHUNK
    }

    pub(crate) fn add_transaction(&mut self, inputs: usize, inner: u64) {
        // A full vector doubles.
        if self.transactions == self.randomized {
            self.randomized = (2 * self.randomized).max(1);
        }
        self.transactions += 1;
        self.spends += inputs as u64;
        self.inner += inner;
    }

    pub(crate) fn remove_transaction(&mut self, inputs: usize, inner: u64) {
        self.transactions -= 1;
        self.spends -= inputs as u64;
        self.inner -= inner;
        // Core shrinks the vector when less than half of it is used, and keeps it when it becomes empty.
        if self.transactions > 0 && self.transactions * 2 < self.randomized {
            self.randomized = self.transactions;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_rounded_as_in_core() {
        assert_eq!([0, 1, 16, 17, 48, 72, 208].map(malloc), [0, 32, 32, 48, 64, 96, 224]);
        assert_eq!((of_cluster(0), of_cluster(1), of_cluster(2)), (0, 72, 128 + 8 + 32 + 32 + 80));
    }

    #[test]
    fn the_vector_grows_and_shrinks_as_in_core() {
        let mut usage = Usage::default();
        let mut capacities = Vec::new();
        for _ in 0..9 {
            usage.add_transaction(2, 100);
            capacities.push(usage.randomized);
        }
        assert_eq!(capacities, [1, 2, 4, 4, 8, 8, 8, 8, 16]);
        capacities.clear();
        while usage.transactions > 0 {
            usage.remove_transaction(2, 100);
            capacities.push(usage.randomized);
        }
        assert_eq!(capacities, [16, 7, 7, 7, 7, 3, 3, 1, 1]);
        assert_eq!(usage, Usage { randomized: 1, ..Usage::default() });
    }
}
