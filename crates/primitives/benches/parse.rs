//! Benchmarks of parsing a block: the pass over its bytes, the ids and merkle roots, and both together.
//!
//! Data: three real blocks and two generated ones, the same in each run. Before any measurement, transaction counts,
//! ids and merkle roots are compared with the expected values. Goals: `scan` at least 1 GB/s; `hashes` at least 80 % of
//! the compressions per second that the same kernel reaches on long messages (the percentage is printed). Run with
//! `cargo bench -p lydian-primitives --bench parse`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark reports, and fails at once")]

#[allow(dead_code, reason = "each user takes its part")]
#[path = "../../../testdata/locate.rs"]
mod locate;

use criterion::measurement::{Measurement, WallTime};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use locate::{read, testdata};
use lydian_hash::{Message, kernels, merkle_root, sha256d_many};
use lydian_primitives::block::scan;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, BlockHash, Header, OutPoint, RawBlock, Tx, Txid};
use std::hint::black_box;

/// Size in bytes of the generated blocks.
const MADE_SIZE: usize = 4_000_000;
/// Number of rounds in which kernel and job alternate for the printed ratio.
const ROUNDS: usize = 100;

/// A named block: its bytes and its expected transaction and input counts. The expected merkle root is in its header.
struct DataSet {
    name: &'static str,
    bytes: Vec<u8>,
    tx_count: usize,
    input_count: usize,
}

criterion_group!(benches, scans, hashes, whole);
criterion_main!(benches);

/// The pass over the bytes, without hashing.
fn scans(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scan");
    for set in data_sets() {
        group.throughput(Throughput::Bytes(set.bytes.len() as u64));
        group.bench_function(set.name, |bencher| bencher.iter(|| scan(black_box(&set.bytes)).unwrap()));
    }
    group.finish();
}

/// The ids and merkle roots of a block that is already parsed.
fn hashes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hashes");
    for set in data_sets() {
        let block = set.parse();
        let job = Hashes::of(&block);
        assert_eq!(job.run(), block.merkle_root());
        println!(
            "hashes/{}: {} compressions, {:.0} % of the rate of {}",
            set.name,
            job.compressions,
            job.percent(),
            kernels().many.name()
        );
        group.throughput(Throughput::Elements(job.compressions as u64));
        group.bench_function(set.name, |bencher| bencher.iter(|| black_box(&job).run()));
    }
    group.finish();
}

/// `RawBlock::parse`, which does both, measured in bytes and in compressions.
fn whole(criterion: &mut Criterion) {
    for set in data_sets() {
        let compressions = Hashes::of(&set.parse()).compressions as u64;
        for (unit, throughput) in
            [("bytes", Throughput::Bytes(set.bytes.len() as u64)), ("compressions", Throughput::Elements(compressions))]
        {
            let mut group = criterion.benchmark_group("parse");
            group.throughput(throughput);
            group.bench_function(BenchmarkId::new(set.name, unit), |bencher| {
                let raw = || RawBlock::new(set.bytes.clone());
                bencher.iter_batched(raw, |raw| raw.parse().unwrap(), BatchSize::LargeInput);
            });
            group.finish();
        }
    }
}

impl DataSet {
    fn real(file: &'static str, tx_count: usize, input_count: usize) -> DataSet {
        let path = testdata("blocks/with_prevouts").join(file).with_extension("block.zst");
        let name = &file[..file.rfind('-').unwrap()];
        DataSet { name, bytes: read(&path), tx_count, input_count }
    }

    /// A coinbase, then transactions from `tx` until the block has `MADE_SIZE` bytes.
    fn made(name: &'static str, tx_count: usize, input_count: usize, tx: impl Fn(u32) -> MutTx) -> DataSet {
        let header =
            Header { version: 4, prev_block: BlockHash([0; 32]), merkle_root: [0; 32], time: 0, bits: 0, nonce: 0 };
        let mut txs = vec![usual_tx(0)];
        let mut size = 0;
        while size < MADE_SIZE {
            let index = u32::try_from(txs.len()).unwrap();
            size += tx(index).encode().len();
            txs.push(tx(index));
        }
        let mut block = MutBlock { header, txs };
        block.seal_merkle_root();
        DataSet { name, bytes: block.encode(), tx_count, input_count }
    }

    /// Parses the block and checks the counts and the merkle root.
    fn parse(&self) -> Block {
        let block = RawBlock::new(self.bytes.clone()).parse().unwrap();
        assert_eq!((block.tx_count(), block.input_count()), (self.tx_count, self.input_count + 1), "{}", self.name);
        assert_eq!(scan(&self.bytes), Ok(self.tx_count));
        assert_eq!(block.merkle_root(), block.header().merkle_root, "{}", self.name);
        block
    }
}

fn data_sets() -> [DataSet; 5] {
    [
        DataSet::real("main-367891-000000000000000012ea0ca9579299ec120e3f57e7c309216884872592b29970", 420, 20_817),
        DataSet::real("main-866342-000000000000000000014ce9ba7c6760053c3c82ce6ab43d60afb101d3c8f1f1", 4864, 7972),
        DataSet::real("test3-928848-00000000000001dc1c2cbd9c2419e9fd396449be12176b3b7c78c2784eb2f5e7", 676, 11_215),
        DataSet::made("usual-4mb", 13_447, 20_169, usual_tx),
        DataSet::made("items-4mb", 41, 40, items_tx),
    ]
}

/// A transaction with one or two P2WPKH inputs and two outputs.
fn usual_tx(index: u32) -> MutTx {
    let input = |vout| MutInput {
        prevout: OutPoint { txid: Txid([7; 32]), vout: 2 * index + vout },
        script_sig: Vec::new(),
        sequence: u32::MAX,
        witness: vec![vec![1; 72], vec![2; 33]],
    };
    let output = || MutOutput { value: Amount(1000), script_pubkey: [&[0, 20][..], &[3; 20]].concat() };
    MutTx { version: 2, inputs: (0..=index % 2).map(input).collect(), outputs: vec![output(), output()], lock_time: 0 }
}

/// The most work per byte: an input with 100,000 empty witness items, one byte each.
fn items_tx(index: u32) -> MutTx {
    let mut tx = usual_tx(2 * index);
    tx.inputs[0].witness = vec![Vec::new(); 100_000];
    tx
}

/// Every hash that `RawBlock::parse` computes, as a separate job.
struct Hashes<'a> {
    messages: Vec<Message<'a>>,
    /// For each transaction, the index of its txid's message. `wtxids` holds that of its wtxid's message, which is the
    /// same one if the transaction has no witness.
    txids: Vec<usize>,
    wtxids: Vec<usize>,
    has_commitment: bool,
    compressions: usize,
}

impl<'a> Hashes<'a> {
    fn of(block: &'a Block) -> Hashes<'a> {
        let (mut messages, mut txids, mut wtxids) = (Vec::new(), Vec::new(), Vec::new());
        for tx in block.txs() {
            txids.push(messages.len());
            wtxids.push(messages.len() + usize::from(tx.has_witness()));
            messages.push(stripped(tx));
            messages.extend(tx.has_witness().then(|| Message::from(tx.bytes())));
        }
        let has_commitment = block.witness_commitment().is_some();
        let trees = 1 + usize::from(has_commitment);
        let compressions = messages.iter().map(double_hash).sum::<usize>() + trees * merkle_tree(txids.len());
        Hashes { messages, txids, wtxids, has_commitment, compressions }
    }

    /// Computes all hashes and returns the merkle root.
    fn run(&self) -> [u8; 32] {
        let mut digests = vec![[0; 32]; self.messages.len()];
        sha256d_many(&self.messages, &mut digests);
        let pick = |indices: &[usize]| -> Vec<[u8; 32]> { indices.iter().map(|&index| digests[index]).collect() };
        if self.has_commitment {
            black_box(merkle_root(&mut pick(&self.wtxids)));
        }
        merkle_root(&mut pick(&self.txids)).0
    }

    /// The job's compressions per second as a percentage of the kernel's rate on long messages. Kernel and job
    /// alternate, and the best time of each counts, because other load on the machine only ever adds time.
    fn percent(&self) -> f64 {
        // Not a multiple of 4 KiB, or the lanes would compete for the same cache sets.
        const LENGTH: usize = 4 * 1024 + 5 * 64;
        let data = vec![7; 32 * LENGTH];
        let long: Vec<Message<'_>> = data.chunks(LENGTH).map(Message::from).collect();
        let mut out = vec![[0; 32]; long.len()];
        let repeats = 1 + self.compressions / (32 * (LENGTH / 64 + 2));
        let (mut of_kernel, mut of_job) = (f64::MAX, f64::MAX);
        for _ in 0..ROUNDS {
            of_kernel = of_kernel.min(seconds(|| (0..repeats).for_each(|_| sha256d_many(black_box(&long), &mut out))));
            of_job = of_job.min(seconds(|| _ = black_box(self.run())));
        }
        let of_long = repeats * long.iter().map(double_hash).sum::<usize>();
        100.0 * (self.compressions as f64 / of_job) / (of_long as f64 / of_kernel)
    }
}

/// A transaction without its witnesses: version | inputs and outputs | lock time.
fn stripped(tx: Tx<'_>) -> Message<'_> {
    let bytes = tx.bytes();
    if !tx.has_witness() {
        return Message::from(bytes);
    }
    Message::new([&bytes[..4], &bytes[6..tx.base_size() - 2], &bytes[bytes.len() - 4..]])
}

/// Compressions of a double hash: the message with at least nine bytes of padding, and one for the digest.
fn double_hash(message: &Message<'_>) -> usize {
    (message.len() + 8) / 64 + 2
}

/// Compressions of a merkle tree: three per pair.
fn merkle_tree(leaves: usize) -> usize {
    let mut pairs = 0;
    let mut width = leaves;
    while width > 1 {
        width = width.div_ceil(2);
        pairs += width;
    }
    3 * pairs
}

/// Measures with Criterion's own clock.
fn seconds(job: impl FnOnce()) -> f64 {
    let start = WallTime.start();
    job();
    WallTime.end(start).as_secs_f64()
}
