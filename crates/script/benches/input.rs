//! Benchmarks of verifying an input, by output type.
//!
//! `template` and `interpreter` measure the cost besides signatures, with a checker that always returns true and
//! requests no digest. `capture` adds the digests (the template with obligations recorded, digests computed once per
//! context), and `exact` is the complete exact verification, for comparison.
//!
//! Input: none; the spends are generated here. Output: criterion's table, time per input. In `cargo test --benches`,
//! each benchmark runs once, and template and interpreter must accept. Must never read the clock itself.
//!
//! Run with `cargo bench -p lydian-script --bench input`.
#![allow(clippy::unwrap_used, reason = "a benchmark is a test; its numbers are its own")]

#[path = "../tests/all/support/mod.rs"]
mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use lydian_curve::PublicKeyBytes;
use lydian_script::{
    Captured, Checker, Flags, LegacyCache, Obligations, ScriptBuilder, Scripts, TxContext, capture_input,
    verify_by_template, verify_input, verify_script,
};
use std::hint::black_box;
use support::{Case, Leaf, Wrap, multisig, p2pkh, p2sh_p2wpkh, p2tr_key_path, p2wpkh, x_only};

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50);
    targets = templates, interpreter, capture, exact
}
criterion_main!(benches);

/// Accepts every check and requests no digest.
struct Yes;

impl Checker for Yes {
    fn ecdsa(&mut self, key: PublicKeyBytes, signature: [u8; 64], _: impl FnOnce() -> [u8; 32]) -> bool {
        black_box((key, signature));
        true
    }

    fn schnorr(&mut self, key: [u8; 32], signature: [u8; 64], _: impl FnOnce() -> Option<[u8; 32]>) -> Option<bool> {
        black_box((key, signature));
        Some(true)
    }

    fn tweak(&mut self, output: [u8; 32], is_odd: bool, internal: [u8; 32], tweak: [u8; 32]) -> bool {
        black_box((output, is_odd, internal, tweak));
        true
    }
}

/// The output types that have a template.
fn recognised() -> Vec<(&'static str, Case)> {
    vec![
        ("p2pkh", p2pkh(1, false)),
        ("p2sh-p2wpkh", p2sh_p2wpkh(1)),
        ("p2wpkh", p2wpkh(1)),
        ("p2tr-key-path", p2tr_key_path(0, None)),
        ("p2wsh-2-of-3", multisig(Wrap::P2wsh, 2, 3, &[0, 2], 1)),
        ("p2sh-2-of-3", multisig(Wrap::P2sh, 2, 3, &[0, 2], 1)),
        ("bare-2-of-3", multisig(Wrap::Bare, 2, 3, &[0, 2], 1)),
    ]
}

/// A script path with 390 bytes of payload, like an inscription.
fn inscription() -> Case {
    let start = ScriptBuilder::new().push_slice(&x_only(1)).op(lydian_script::opcodes::OP_CHECKSIG);
    let payload = start.raw(&[0x00, 0x63]).push_slice(b"ord").push_slice(&[7; 390]).raw(&[0x68]);
    let leaf = Leaf::new(0xc0, &payload.into_bytes(), &[]);
    leaf.spend(&[leaf.sign(1, 0)])
}

fn all() -> Vec<(&'static str, Case)> {
    let mut cases = recognised();
    cases.push(("p2tr-inscription", inscription()));
    cases
}

fn each(
    criterion: &mut Criterion,
    group: &str,
    cases: Vec<(&'static str, Case)>,
    run: impl Fn(&TxContext<'_>, &mut Kept),
) {
    let mut group = criterion.benchmark_group(group);
    for (name, case) in cases {
        case.run(|context| {
            let mut kept = Kept::default();
            group.bench_function(name, |bencher| bencher.iter(|| run(black_box(context), &mut kept)));
        });
    }
}

/// The state that a thread keeps from one input to the next.
#[derive(Default)]
struct Kept {
    legacy_cache: LegacyCache,
    obligations: Obligations,
}

fn templates(criterion: &mut Criterion) {
    each(criterion, "template", recognised(), |context, kept| {
        assert!(verify_by_template(context, 0, Flags::MANDATORY, &mut Yes, &mut kept.legacy_cache));
    });
}

fn interpreter(criterion: &mut Criterion) {
    each(criterion, "interpreter", all(), |context, _| {
        let scripts = Scripts::of_input(context, 0);
        assert_eq!(verify_script(&scripts, Flags::MANDATORY, context, 0, &mut Yes), Ok(()));
    });
}

fn capture(criterion: &mut Criterion) {
    each(criterion, "capture", all(), |context, kept| {
        kept.obligations.clear();
        assert_eq!(capture_input(context, 0, Flags::MANDATORY, &mut kept.obligations), Captured::Accepted);
    });
}

fn exact(criterion: &mut Criterion) {
    each(criterion, "exact", all(), |context, _| {
        assert_eq!(verify_input(context, 0, Flags::MANDATORY), Ok(()));
    });
}
