//! What the cluster graph costs: one change in clusters of 64 transactions, 100,000 transactions of mainnet's shapes,
//! eviction, a block, and a replacement with its diagrams; and what the fee bands of a large mempool cost.
//!
//! Data: generated from fixed seeds (in the small mode that `cargo test` runs: few of each). Output: a table with the
//! median, the mean, the 99th percentile and the maximum of each operation in microseconds, and the bytes per
//! transaction. A change in a cluster of 64 is timed five times and the fastest counts, so that the maximum is that of
//! the algorithm and not of the machine. Each result is checked: by the graph's own check, and in clusters of 64 by
//! changes that are taken back.
//! `cargo bench -p lydian-mempool --bench graph`, with `-- bands` the fee bands alone.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark fails at once, and prints")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "graph/bands.rs"]
mod bands;

use lydian_mempool::graph::{FeeSize, Graph, Level, Limits, TxRef};
use lydian_stdx::SplitMix64;
use std::time::Instant;

/// Shapes of clusters: the name, and the parents of the transaction `at` among those before it.
type Shape = (&'static str, fn(usize, &mut SplitMix64) -> Vec<usize>);

const COUNT: usize = 64;
const HALF: usize = COUNT / 2;

const SHAPES: &[Shape] = &[
    ("tree", |at, random| vec![random.below(at)]),
    ("chain", |at, _| vec![at - 1]),
    ("sparse layers", |at, random| match at.checked_sub(HALF) {
        Some(own) => (0..HALF).filter(|&other| other == own || random.below(3) == 0).chain([own / 2]).collect(),
        None => Vec::new(),
    }),
    ("full layers", |at, _| if at < HALF { Vec::new() } else { (0..HALF).collect() }),
    ("three parents", |at, random| (0..3).map(|_| random.below(at)).collect()),
    ("near parents", |at, random| (0..4).map(|_| at - 1 - random.below(at.min(8))).collect()),
    ("ladder", |at, _| if at < HALF { Vec::new() } else { (0..=at - HALF).collect() }),
    ("reversed ladder", |at, _| if at < HALF { Vec::new() } else { (at - HALF..HALF).collect() }),
    ("two neighbours", |at, _| if at < HALF { Vec::new() } else { vec![at - HALF, (at - HALF + 1) % HALF] }),
];

/// Fees of a cluster: the name, and the fee and size of the transaction `at`.
type Fees = (&'static str, fn(usize, &mut SplitMix64) -> FeeSize);

const FEES: &[Fees] = &[
    ("random fees", |_, random| FeeSize::new(fee(random, 1_000_000), 100 + size(random, 10_000))),
    ("children pay", |at, random| {
        let is_child = at >= HALF;
        FeeSize::new(if is_child { fee(random, 1_000_000) } else { 0 }, 100 + size(random, 10_000))
    }),
    ("growing fees", |at, _| FeeSize::new(fee_of(at) * fee_of(at) * fee_of(at), 1_000)),
    ("one fee", |_, _| FeeSize::new(1_000, 1_000)),
];

fn fee(random: &mut SplitMix64, below: usize) -> i64 {
    fee_of(random.below(below))
}

fn fee_of(number: usize) -> i64 {
    i64::try_from(number).unwrap()
}

fn size(random: &mut SplitMix64, below: usize) -> i32 {
    i32::try_from(random.below(below)).unwrap()
}

fn key(random: &mut SplitMix64) -> [u8; 32] {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&random.next_u64().to_be_bytes());
    key
}

/// Runs `work` and adds its time to `times`.
fn time<T>(times: &mut Vec<f64>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    times.push(start.elapsed().as_secs_f64() * 1e6);
    result
}

fn report(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[(times.len() - 1) * share / 1_000];
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    println!("| {name} | {} | {:.1} | {mean:.1} | {:.1} | {:.1} |", times.len(), at(500), at(990), at(1_000));
}

fn unlimited() -> Limits {
    Limits::new(COUNT, u64::MAX)
}

/// Builds one cluster of 64 transactions. Layers need not be connected: the others stay alone.
fn cluster(shape: &Shape, fees: &Fees, seed: u64) -> (Graph, Vec<TxRef>) {
    let mut random = SplitMix64::new(seed);
    let mut graph = Graph::new(unlimited());
    let ids: Vec<TxRef> = (0..COUNT).map(|at| graph.add((fees.1)(at, &mut random), key(&mut random))).collect();
    let mut pairs = Vec::new();
    for at in 1..COUNT {
        pairs.extend((shape.1)(at, &mut random).into_iter().map(|parent| (ids[parent], ids[at])));
    }
    graph.add_dependencies(&pairs);
    (graph, ids)
}

/// One change of fee in a cluster of 64.
fn clusters(cases: u64) {
    for shape in SHAPES {
        for fees in FEES {
            let mut times = Vec::new();
            for seed in 0..cases {
                let (mut graph, ids) = cluster(shape, fees, seed);
                let mut random = SplitMix64::new(seed ^ 0xabcd);
                for _ in 0..10 {
                    let at = random.below(COUNT);
                    let old = graph.feerate(ids[at]).unwrap().fee;
                    let new = old + 1 + fee(&mut random, 1_000);
                    let mut repeated = Vec::new();
                    for _ in 0..5 {
                        graph.set_fee(ids[at], old);
                        time(&mut repeated, || graph.set_fee(ids[at], new));
                    }
                    times.extend(repeated.into_iter().reduce(f64::min));
                }
                let before: Vec<_> = graph.chunks().collect();
                for &id in &ids {
                    let fee = graph.feerate(id).unwrap().fee;
                    graph.set_fee(id, fee + 1);
                    graph.set_fee(id, fee);
                }
                assert!(graph.chunks().eq(before), "the order depends on its history");
                graph.check();
            }
            report(&format!("one change: {}, {}", shape.0, fees.0), times);
        }
    }
}

/// Shapes of mainnet: most transactions are alone, some are short chains, few are batches with children.
fn mainnet(count: usize) {
    let mut random = SplitMix64::new(7);
    let mut graph = Graph::new(Limits::new(COUNT, 404_000));
    let (mut added, mut ids) = (Vec::new(), Vec::<TxRef>::new());
    while ids.len() < count {
        let feerate = FeeSize::new(fee(&mut random, 20_000), 400 + size(&mut random, 2_000));
        let recent = ids.len().saturating_sub(50);
        let parent = |random: &mut SplitMix64| ids.get(recent + random.below(50)).copied();
        let parents: Vec<Option<TxRef>> = match random.below(10) {
            0..=5 => Vec::new(),
            6..=8 => vec![parent(&mut random)],
            _ => vec![parent(&mut random), parent(&mut random)],
        };
        let key = key(&mut random);
        let id = time(&mut added, || {
            graph.start_staging();
            let id = graph.add(feerate, key);
            let pairs: Vec<_> = parents.into_iter().flatten().map(|parent| (parent, id)).collect();
            graph.add_dependencies(&pairs);
            if graph.is_oversized(Level::Staging) {
                graph.abort_staging();
                return None;
            }
            graph.commit_staging();
            Some(id)
        });
        ids.extend(id);
    }
    graph.check();
    report(&format!("add one of {count} through staging"), added);
    println!("| bytes per transaction | {} | | | | |", graph.memory_bytes() / ids.len());
    replacements(&mut graph, &ids, &mut random);
    block_and_eviction(&mut graph);
}

/// Tries to replace a transaction with its descendants.
fn replacements(graph: &mut Graph, ids: &[TxRef], random: &mut SplitMix64) {
    let mut times = Vec::new();
    for _ in 0..ids.len() / 10 {
        let replaced = ids[random.below(ids.len())];
        let (feerate, key) = (FeeSize::new(fee(random, 40_000), 1_000), key(random));
        time(&mut times, || {
            let conflicts = graph.descendants(&[replaced], Level::Main);
            graph.start_staging();
            graph.remove(&conflicts);
            graph.add(feerate, key);
            let (main, staging) = graph.diagrams().unwrap();
            let verdict = staging.compare(&main);
            graph.abort_staging();
            verdict
        });
    }
    graph.check();
    report("try a replacement, with diagrams", times);
}

fn block_and_eviction(graph: &mut Graph) {
    let mut times = Vec::new();
    let chosen = time(&mut times, || {
        let (mut builder, mut weight, mut chosen) = (graph.block_builder(), 0, 0);
        while let Some(chunk) = builder.current() {
            if weight + chunk.feerate.size > 4_000_000 {
                break;
            }
            weight += chunk.feerate.size;
            chosen += chunk.nodes.len();
            builder.include();
        }
        chosen
    });
    report(&format!("choose {chosen} transactions for a block"), times);
    let mut times = Vec::new();
    while let Some(chunk) = time(&mut times, || {
        let chunk = graph.worst_chunk()?;
        graph.remove(&chunk.nodes);
        Some(chunk)
    }) {
        assert!(!chunk.nodes.is_empty());
    }
    graph.check();
    report("evict the worst chunk", times);
}

fn main() {
    let is_full = std::env::args().any(|argument| argument == "--bench");
    if std::env::args().any(|argument| argument == "bands") {
        return bands::run(is_full);
    }
    println!("| what | times | median us | mean us | 99 % us | maximum us |");
    println!("|---|---|---|---|---|---|");
    clusters(if is_full { 200 } else { 1 });
    mainnet(if is_full { 100_000 } else { 500 });
    bands::run(is_full);
}
