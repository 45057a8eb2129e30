//! Benchmarks the store and a `HashMap` with a mainnet-like workload: `cargo bench -p lydian-coins --bench mix --
//! [--coins N] [--operations N] [--cache-mb N] [--low-memory] [--no-map] [--no-scan]`. Without `--bench` it makes a
//! small run that checks every result. [`workload`] and [`run`] describe input and output. The `rivals` workspace runs
//! RocksDB with the same workload.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

mod ours;
mod run;
mod workload;

use lydian_consensus::Coin;
use lydian_primitives::OutPoint;
use run::{Sizes, Subject};
use std::collections::HashMap;
use workload::Block;

fn main() {
    // As the node does.
    lydian_disk::bound_free_memory();
    let sizes = Sizes::from_arguments();
    ours::bench(sizes);
    if std::env::args().len() <= 2 {
        // As a test: the other kind of store, too.
        ours::bench(Sizes { is_low_memory: !sizes.is_low_memory, ..sizes });
    }
    if sizes.coins <= 50_000_000 && !std::env::args().any(|argument| argument == "--no-map") {
        run::run(&mut Map::default(), sizes);
    }
}

/// The standard library's map, entirely in memory.
#[derive(Default)]
struct Map(HashMap<OutPoint, Coin>);

impl Subject for Map {
    fn name(&self) -> &'static str {
        "HashMap"
    }

    fn apply(&mut self, block: &Block) -> i64 {
        let value = self.get(block);
        block.spends.iter().for_each(|outpoint| drop(self.0.remove(outpoint)));
        self.0.extend(block.creates.iter().cloned());
        value
    }

    fn get(&mut self, block: &Block) -> i64 {
        block.spends.iter().map(|outpoint| self.0.get(outpoint).cloned().map_or(0, |coin| coin.value.0)).sum()
    }

    fn sync(&mut self) {}

    fn sizes(&self) -> (u64, u64) {
        (0, 0)
    }
}
