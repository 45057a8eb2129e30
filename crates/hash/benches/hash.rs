//! Compressions per second of every kernel, and the fraction of that rate reached by the hashing of a block.
//!
//! Input: none; the data is generated. Output: criterion's table, with SHA-256 compressions as elements. `long` is the
//! baseline: long messages, so compressions only. The target for `merkle_step`, `ids` and `block` is 80 % of it with
//! the same kernel. `hash160`, `muhash` and `muhash_many` are not part of this: their unit is the
//! key or the element. Run
//! `cargo bench -p lydian-hash`; without `--bench` (in `cargo test --benches`) each benchmark runs once. Must never:
//! read a clock itself.
#![allow(clippy::unwrap_used, reason = "a benchmark is a test; its numbers are its own")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lydian_hash::{
    BatchKernel, Elements, Message, MuHash3072, Sha256, hash160, hash160_many_with, kernels, merkle_root_with,
    ripemd160_many_with, sha256_many_with, sha256d_64_with, sha256d_many_with,
};

/// Number of transactions in the generated block.
const TRANSACTIONS: usize = 3000;

criterion_group!(benches, long, merkle_step, ids, block, stream, hash160s, muhash, muhash_many);
criterion_main!(benches);

/// Compressions only: at least as many long messages as any kernel has lanes.
fn long(criterion: &mut Criterion) {
    // Not a multiple of 4 KiB, because the lanes would then compete for the same cache sets.
    const LENGTH: usize = 4 * 1024 + 5 * 64;
    let data = bytes(32 * LENGTH);
    let messages: Vec<Message<'_>> = data.chunks(LENGTH).map(Message::from).collect();
    each_kernel(criterion, "long", compressions(&messages), |kernel| {
        let mut out = vec![[0; 32]; messages.len()];
        sha256d_many_with(kernel, black_box(&messages), &mut out);
        black_box(out);
    });
}

fn merkle_step(criterion: &mut Criterion) {
    let data = bytes(64 * 1024);
    let pairs = data.as_chunks::<64>().0;
    let mut out = vec![[0; 32]; pairs.len()];
    each_kernel(criterion, "merkle_step", 3 * pairs.len(), |kernel| {
        sha256d_64_with(kernel, black_box(pairs), &mut out);
        black_box(&out);
    });
}

fn ids(criterion: &mut Criterion) {
    let data = transactions();
    let messages: Vec<Message<'_>> = data.iter().map(|tx| tx.txid_message()).collect();
    let mut out = vec![[0; 32]; messages.len()];
    each_kernel(criterion, "ids", compressions(&messages), |kernel| {
        sha256d_many_with(kernel, black_box(&messages), &mut out);
        black_box(&out);
    });
}

/// All hashing needed for a block's merkle root and witness commitment.
fn block(criterion: &mut Criterion) {
    let data = transactions();
    let mut messages: Vec<Message<'_>> = data.iter().map(|tx| tx.txid_message()).collect();
    messages.extend(data.iter().map(|tx| Message::from(&tx.0[..])));
    let merkle = 2 * 3 * (TRANSACTIONS - 1);
    let mut out = vec![[0; 32]; messages.len()];
    each_kernel(criterion, "block", compressions(&messages) + merkle, |kernel| {
        sha256d_many_with(kernel, black_box(&messages), &mut out);
        let (txids, wtxids) = out.split_at(TRANSACTIONS);
        black_box(merkle_root_with(kernel, &mut txids.to_vec()));
        black_box(merkle_root_with(kernel, &mut wtxids.to_vec()));
    });
}

fn stream(criterion: &mut Criterion) {
    let data = bytes(64 * 1024);
    let mut group = criterion.benchmark_group("stream");
    group.throughput(Throughput::Elements(1024));
    for &kernel in &kernels().streams_available {
        group.bench_function(kernel.name(), |bencher| {
            bencher.iter(|| Sha256::with_kernel(kernel).update(black_box(&data)).clone());
        });
    }
    group.finish();
}

/// The keys of a batch: `one_by_one` calls `hash160`, as the interpreter does; `ripemd160` is the second hash alone.
fn hash160s(criterion: &mut Criterion) {
    const COUNT: usize = 4096;
    let data = bytes(COUNT * 33);
    let messages: Vec<Message<'_>> = data.chunks(33).map(Message::from).collect();
    let digests = vec![[7; 32]; COUNT];
    let mut out = vec![[0; 20]; COUNT];
    let mut group = criterion.benchmark_group("hash160");
    group.throughput(Throughput::Elements(COUNT as u64));
    group.bench_function("one_by_one", |bencher| {
        bencher.iter(|| data.chunks(33).zip(&mut out).for_each(|(key, out)| *out = hash160(black_box(key))));
    });
    for &kernel in &kernels().ripemd160_available {
        group.bench_function(BenchmarkId::new("ripemd160", kernel.name()), |bencher| {
            bencher.iter(|| ripemd160_many_with(kernel, black_box(&digests), &mut out));
        });
        group.bench_function(BenchmarkId::new("many", kernel.name()), |bencher| {
            bencher.iter(|| hash160_many_with(kernel, black_box(&messages), &mut out));
        });
    }
    group.finish();
}

fn muhash(criterion: &mut Criterion) {
    let mut set = MuHash3072::new();
    criterion.bench_function("muhash/insert", |bencher| bencher.iter(|| _ = set.insert(black_box(b"a coin"))));
    criterion.bench_function("muhash/finalize", |bencher| bencher.iter(|| black_box(&set).finalize()));
}

/// A batch of elements as long as a coin with a P2PKH script. `hash` is SHA-256 and key stream, `insert` also the
/// multiplication; `sha256` is the first part of `hash`.
fn muhash_many(criterion: &mut Criterion) {
    const COUNT: usize = 2048;
    let data = bytes(COUNT * 74);
    let mut elements = Elements::new();
    data.chunks(74).for_each(|coin| elements.push(&[coin]));
    let messages: Vec<Message<'_>> = elements.iter().map(Message::from).collect();
    let mut digests = vec![[0; 32]; COUNT];
    let mut group = criterion.benchmark_group("muhash_many");
    group.throughput(Throughput::Elements(COUNT as u64));
    for kernel in [BatchKernel::Stream(kernels().stream), kernels().many] {
        group.bench_function(BenchmarkId::new("sha256", kernel.name()), |bencher| {
            bencher.iter(|| sha256_many_with(kernel, black_box(&messages), &mut digests));
        });
    }
    for &kernel in &kernels().muhash_available {
        group.bench_function(BenchmarkId::new("hash", kernel.name()), |bencher| {
            bencher.iter(|| MuHash3072::hash_many_with(kernel, black_box(&elements)));
        });
        group.bench_function(BenchmarkId::new("insert", kernel.name()), |bencher| {
            bencher.iter(|| MuHash3072::new().insert_many_with(kernel, black_box(&elements)).clone());
        });
    }
    group.finish();
}

fn each_kernel(criterion: &mut Criterion, name: &str, compressions: usize, mut job: impl FnMut(BatchKernel)) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(compressions as u64));
    for &kernel in &kernels().batches_available {
        group.bench_function(BenchmarkId::from_parameter(kernel.name()), |bencher| bencher.iter(|| job(kernel)));
    }
    group.finish();
}

/// Number of compressions needed for the double hashes of the messages.
fn compressions(messages: &[Message<'_>]) -> usize {
    messages.iter().map(|message| (message.len() + 8) / 64 + 2).sum()
}

/// A transaction with its witness, and the offset at which the witness begins.
struct Transaction(Vec<u8>, usize);

impl Transaction {
    /// version | inputs and outputs | lock time, without the witness.
    fn txid_message(&self) -> Message<'_> {
        let lock_time = self.0.len() - 4;
        Message::new([&self.0[..4], &self.0[6..self.1], &self.0[lock_time..]])
    }
}

/// Generates transactions with sizes as on mainnet: most have one or two inputs and outputs, some have dozens.
fn transactions() -> Vec<Transaction> {
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((seed >> 33) % below).unwrap()
    };
    (0..TRANSACTIONS)
        .map(|_| {
            let inputs = if random(20) == 0 { 3 + random(40) } else { 1 + random(2) };
            let outputs = if random(20) == 0 { 3 + random(40) } else { 1 + random(2) };
            let witness_start = 8 + 41 * inputs + 32 * outputs;
            Transaction(bytes(witness_start + 107 * inputs + 4), witness_start)
        })
        .collect()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| u8::try_from(i * 7 % 251).unwrap()).collect()
}
