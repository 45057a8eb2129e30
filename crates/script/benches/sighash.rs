//! Benchmarks of signature hashes, per input: each kind for transactions of 1 to 1,000 inputs, hashing every input
//! once. The shared parts are included.
//!
//! Data: generated here, the same in each run. Before any measurement, the legacy hashes are compared with those of the
//! plain twin, which is also measured. The bytes that each input feeds to SHA-256 are printed; they do not depend on
//! the machine.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark reports, and fails at once")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Output, Transaction, Txid};
use lydian_script::sighash::{LegacyCache, TaprootExt, TxContext, plain};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

const INPUT_COUNTS: [u32; 4] = [1, 2, 10, 1000];
/// The input count of the transaction that fills block 364292 (2015). Only its bytes are counted, not its time.
const MEGA_INPUT_COUNT: u32 = 5569;
/// A P2PKH script, which is also the script code of a segwit v0 key hash.
const SCRIPT_CODE: [u8; 25] = [0x76, 0xa9, 20, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0x88, 0xac];
const ALL: u32 = 1;

/// A transaction with `inputs` inputs and two outputs.
fn sample(inputs: u32) -> Transaction {
    let input = |vout| MutInput {
        prevout: OutPoint { txid: Txid([7; 32]), vout },
        script_sig: vec![0x51; 107],
        sequence: u32::MAX,
        witness: Vec::new(),
    };
    let output = |value| MutOutput { value: Amount(value), script_pubkey: SCRIPT_CODE.to_vec() };
    let tx = MutTx {
        version: 2,
        inputs: (0..inputs).map(input).collect(),
        outputs: vec![output(1000), output(2000)],
        lock_time: 0,
    };
    tx.to_transaction().unwrap()
}

fn legacy(context: &TxContext<'_>) -> [u8; 32] {
    let mut cache = LegacyCache::new();
    (0..context.tx().input_count()).fold([0; 32], |_, input| context.legacy(input, &SCRIPT_CODE, ALL, &mut cache))
}

fn legacy_plain(context: &TxContext<'_>) -> [u8; 32] {
    (0..context.tx().input_count()).fold([0; 32], |_, input| plain::legacy(context.tx(), input, &SCRIPT_CODE, ALL))
}

fn segwit_v0(context: &TxContext<'_>) -> [u8; 32] {
    (0..context.tx().input_count()).fold([0; 32], |_, input| context.segwit_v0(input, &SCRIPT_CODE, ALL))
}

fn taproot_key_path(context: &TxContext<'_>) -> [u8; 32] {
    let ext = TaprootExt::default();
    (0..context.tx().input_count()).fold([0; 32], |_, input| context.taproot(input, 0, &ext).unwrap())
}

fn tapscript(context: &TxContext<'_>) -> [u8; 32] {
    let ext = TaprootExt { annex_hash: None, leaf: Some(([9; 32], u32::MAX)) };
    (0..context.tx().input_count()).fold([0; 32], |_, input| context.taproot(input, 0, &ext).unwrap())
}

/// A kind: its name, and a function that hashes every input of a context.
type Kind = (&'static str, fn(&TxContext<'_>) -> [u8; 32]);

const KINDS: [Kind; 5] = [
    ("legacy", legacy),
    ("legacy_plain", legacy_plain),
    ("segwit_v0", segwit_v0),
    ("taproot_key_path", taproot_key_path),
    ("tapscript", tapscript),
];

/// Prints the average number of bytes fed to SHA-256 per input.
fn print_bytes_hashed(count: u32) {
    let tx = sample(count);
    let spent = vec![Output { value: Amount(5000), script_pubkey: &SCRIPT_CODE }; count as usize];
    for (name, run) in KINDS.iter().filter(|(name, _)| *name != "legacy_plain") {
        let counter = AtomicU64::new(0);
        run(&TxContext::new(tx.view(), &spent).unwrap().with_counter(&counter));
        println!(
            "{name}, {count} inputs: {} bytes hashed per input",
            counter.load(Ordering::Relaxed) / u64::from(count)
        );
    }
}

fn every_kind(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sighash");
    INPUT_COUNTS.into_iter().chain([MEGA_INPUT_COUNT]).for_each(print_bytes_hashed);
    for count in INPUT_COUNTS {
        let tx = sample(count);
        let spent = vec![Output { value: Amount(5000), script_pubkey: &SCRIPT_CODE }; count as usize];
        let context = || TxContext::new(tx.view(), &spent).unwrap();
        assert_eq!(legacy(&context()), legacy_plain(&context()));
        group.throughput(Throughput::Elements(u64::from(count)));
        for (name, run) in KINDS {
            group.bench_with_input(BenchmarkId::new(name, count), &count, |bencher, _| {
                bencher.iter(|| black_box(run(&context())));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, every_kind);
criterion_main!(benches);
