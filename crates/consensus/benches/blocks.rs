//! Cost of each step of the plain validator per input, with and without signature checks.
//!
//! Data: three real blocks with the outputs they spend. Before the measurements each block passes every step, both with
//! an engine that accepts everything and with libsecp256k1, and its inputs are counted. Output: criterion's table, in
//! inputs per second. `cargo bench -p lydian-consensus --bench blocks`.

#![allow(clippy::unwrap_used, reason = "a benchmark fails at once")]

#[allow(dead_code, reason = "each user takes its part")]
#[path = "../../../testdata/locate.rs"]
mod locate;
#[path = "../tests/all/common/prevouts.rs"]
mod prevouts;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use locate::{read, testdata};
use lydian_consensus::{
    Ancestor, Chain, CheckedBlock, Coin, CoinView, FundedBlock, HeaderView, Mode, Params, Parent, SpentCoin,
    check_block, fund, verify_scripts, verify_with_prevouts,
};
use lydian_curve::{Check, Engine, Reference};
use lydian_primitives::{Block, Header, Height, OutPoint, RawBlock, Tx};
use prevouts::spent_coins;
use std::collections::{HashMap, HashSet};
use std::hint::black_box;

/// A time later than all blocks used here.
const NOW: u32 = 1_800_000_000;

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = every_step
}
criterion_main!(benches);

/// An engine that accepts every check at no cost, which leaves the cost of everything but signatures.
struct Yes;

impl Engine for Yes {
    fn name(&self) -> &'static str {
        "yes"
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        black_box(checks);
        verdicts.fill(true);
    }
}

fn every_step(criterion: &mut Criterion) {
    for set in [
        DataSet::read("main-367891-000000000000000012ea0ca9579299ec120e3f57e7c309216884872592b29970", 20_817),
        DataSet::read("main-866342-000000000000000000014ce9ba7c6760053c3c82ce6ab43d60afb101d3c8f1f1", 7972),
        DataSet::read("test3-928848-00000000000001dc1c2cbd9c2419e9fd396449be12176b3b7c78c2784eb2f5e7", 11_215),
    ] {
        let funded = set.fund(set.check());
        assert_eq!(funded.spent().len(), set.inputs);
        for engine in [&Yes as &dyn Engine, &Reference] {
            verify_scripts(funded.clone(), Mode::Capture(engine)).unwrap();
        }
        let mut group = criterion.benchmark_group(set.name);
        group.throughput(Throughput::Elements(set.inputs as u64));
        group.bench_function("check_alone", |bencher| {
            bencher.iter(|| check_block(black_box(&set.block), &set.params).unwrap());
        });
        group.bench_function("check", |bencher| {
            bencher.iter_batched(|| set.block.clone(), |block| set.check_of(block), BatchSize::LargeInput);
        });
        group.bench_function("fund", |bencher| {
            let checked = set.check();
            bencher.iter_batched(|| checked.clone(), |checked| set.fund(checked), BatchSize::LargeInput);
        });
        for (name, mode) in [
            ("scripts_without_signatures", Mode::Capture(&Yes)),
            ("scripts_captured", Mode::Capture(&Reference)),
            ("scripts_exact", Mode::Exact),
        ] {
            group.bench_function(name, |bencher| {
                let run = |funded| verify_scripts(funded, mode).unwrap();
                bencher.iter_batched(|| funded.clone(), run, BatchSize::LargeInput);
            });
        }
        group.bench_function("whole_without_signatures", |bencher| {
            let run = |(block, coins)| {
                let report =
                    verify_with_prevouts(&set.params, set.height, block, coins, NOW, Mode::Capture(&Yes)).unwrap();
                assert_eq!(report.violation, None);
            };
            bencher.iter_batched(|| (set.block.clone(), set.coins.clone()), run, BatchSize::LargeInput);
        });
        group.finish();
    }
}

/// A real block, with its coins as stored in the file and as a coin view.
struct DataSet {
    name: &'static str,
    params: Params,
    height: Height,
    inputs: usize,
    block: Block,
    coins: Vec<SpentCoin>,
    store: Store,
    before: Before,
}

impl DataSet {
    fn read(file: &'static str, inputs: usize) -> DataSet {
        let (name, hash) = file.rsplit_once('-').unwrap();
        let (chain, height) = name.split_once('-').unwrap();
        let chain = if chain == "main" { Chain::Main } else { Chain::Test };
        let path = |kind| testdata("blocks/with_prevouts").join(file).with_extension(kind);
        let block = RawBlock::new(read(&path("block.zst"))).parse().unwrap();
        assert_eq!(block.hash().to_string(), hash);
        let coins = spent_coins(&read(&path("prevouts.zst")));
        // The previous header is made up, so the target must stay the same.
        let mut params = Params::new(chain);
        params.no_retargeting = true;
        params.allow_min_difficulty_blocks = false;
        let store = Store::new(&block, &coins);
        let before = Before(Header { time: block.header().time - 600, ..*block.header() });
        DataSet { name, params, height: Height(height.parse().unwrap()), inputs, block, coins, store, before }
    }

    fn check(&self) -> CheckedBlock {
        self.check_of(self.block.clone())
    }

    fn check_of(&self, block: Block) -> CheckedBlock {
        let parent = Parent::At(Height(self.height.0 - 1), &self.before);
        CheckedBlock::check(block, parent, i64::from(NOW), &self.params).unwrap()
    }

    fn fund(&self, checked: CheckedBlock) -> FundedBlock {
        fund(checked, &self.store, &self.before, &self.params).unwrap()
    }
}

/// The coins before the block, in a hash map so that lookups cost little.
struct Store(HashMap<OutPoint, Coin>);

impl Store {
    fn new(block: &Block, coins: &[SpentCoin]) -> Store {
        let own: HashSet<_> = block.txs().map(|tx| tx.txid()).collect();
        let prevouts = block.txs().skip(1).flat_map(Tx::inputs).map(|input| input.prevout);
        let coin = |given: &SpentCoin| {
            let (height, is_coinbase) = given.origin.unwrap_or((Height(0), false));
            Coin { value: given.value, script_pubkey: given.script_pubkey.clone(), height, is_coinbase }
        };
        let before = prevouts.zip(coins).filter(|(prevout, _)| !own.contains(&prevout.txid));
        Store(before.map(|(prevout, given)| (prevout, coin(given))).collect())
    }
}

impl CoinView for Store {
    fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>> {
        outpoints.iter().map(|outpoint| self.0.get(outpoint).cloned()).collect()
    }

    fn has_any(&self, outpoints: &[OutPoint]) -> bool {
        outpoints.iter().any(|outpoint| self.0.contains_key(outpoint))
    }
}

/// A chain in which every header is the same. None of the blocks here has a time-based relative lock.
struct Before(Header);

impl HeaderView for Before {
    fn ancestor(&self, _: Height) -> Option<Ancestor> {
        Some(Ancestor { hash: self.0.prev_block, header: self.0 })
    }

    fn median_time_past(&self, _: Height) -> Option<i64> {
        Some(i64::from(self.0.time))
    }
}
