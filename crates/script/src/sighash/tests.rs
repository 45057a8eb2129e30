//! Compares the fast legacy hash with its plain twin; tests the special cases of Core's rules and the sharing of parts.

use super::*;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Transaction, Txid};
use proptest::prelude::*;

const ONE: [u8; 32] = {
    let mut one = [0; 32];
    one[0] = 1;
    one
};

fn sample(inputs: u32, outputs: u32) -> MutTx {
    let input = |vout| MutInput {
        prevout: OutPoint { txid: Txid([7; 32]), vout },
        script_sig: vec![0x51; 3],
        sequence: 0xffff_fff0 + vout % 8,
        witness: Vec::new(),
    };
    let output = |n| MutOutput { value: Amount(1000 + i64::from(n)), script_pubkey: vec![0x51; n as usize % 40] };
    MutTx {
        version: 2,
        inputs: (0..inputs).map(input).collect(),
        outputs: (0..outputs).map(output).collect(),
        lock_time: 99,
    }
}

fn parsed(tx: &MutTx) -> Transaction {
    tx.to_transaction().unwrap()
}

fn spent(count: usize) -> Vec<Output<'static>> {
    vec![Output { value: Amount(5000), script_pubkey: &[0x51] }; count]
}

/// The number of bytes that one call feeds to SHA-256.
fn bytes_of<T>(counter: &AtomicU64, call: impl FnOnce() -> T) -> u64 {
    let before = counter.load(Ordering::Relaxed);
    call();
    counter.load(Ordering::Relaxed) - before
}

fn any_script() -> impl Strategy<Value = Vec<u8>> {
    let op = prop_oneof![Just(vec![0xab]), Just(vec![0xac]), Just(vec![0x51]), Just(vec![2, 0xab, 0xab])];
    prop::collection::vec(op, 0..12).prop_map(|ops| ops.concat())
}

fn any_hash_type() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), (0..5u32, any::<bool>()).prop_map(|(low, anyone)| low | u32::from(anyone) << 7)]
}

prop_compose! {
    fn any_tx()(
        version: u32,
        lock_time: u32,
        inputs in prop::collection::vec((any::<[u8; 32]>(), any::<u32>(), any::<u32>(), any_script()), 1..8),
        outputs in prop::collection::vec((any::<i64>(), any_script()), 0..8),
    ) -> MutTx {
        let input = |(txid, vout, sequence, script_sig)| MutInput {
            prevout: OutPoint { txid: Txid(txid), vout }, script_sig, sequence, witness: vec![vec![1]],
        };
        MutTx {
            version,
            lock_time,
            inputs: inputs.into_iter().map(input).collect(),
            outputs: outputs.into_iter().map(|(value, script_pubkey)| MutOutput { value: Amount(value), script_pubkey }).collect(),
        }
    }
}

proptest! {
    /// One cache through any order of inputs, script codes, hash types and two alternating transactions always gives
    /// the result of the plain twin.
    ///
    /// checklist: 37, 38, 39
    #[test]
    fn legacy_equals_its_plain_twin(
        txs in [any_tx(), any_tx()],
        scripts in [any_script(), any_script()],
        calls in prop::collection::vec((0..2usize, any::<prop::sample::Index>(), 0..2usize, any_hash_type()), 1..40),
    ) {
        let txs = txs.map(|tx| parsed(&tx));
        let spents = [0, 1].map(|i| spent(txs[i].view().input_count()));
        let contexts = [0, 1].map(|i| TxContext::new(txs[i].view(), &spents[i]).unwrap());
        let mut cache = LegacyCache::new();
        for (which, input, script, hash_type) in calls {
            let context = &contexts[which];
            let input = input.index(context.tx().input_count());
            let got = context.legacy(input, &scripts[script], hash_type, &mut cache);
            prop_assert_eq!(got, plain::legacy(context.tx(), input, &scripts[script], hash_type));
        }
    }
}

/// checklist: 38
#[test]
fn legacy_single_without_an_output_is_the_number_one() {
    let tx = parsed(&sample(3, 2));
    let spent = spent(3);
    let context = TxContext::new(tx.view(), &spent).unwrap();
    let mut cache = LegacyCache::new();
    for hash_type in [3, 0x83, 0x43, 0xffff_ff03] {
        assert_eq!(context.legacy(2, &[0x51], hash_type, &mut cache), ONE);
        assert_ne!(context.legacy(1, &[0x51], hash_type, &mut cache), ONE);
    }
}

/// The undefined bits of a hash type are hashed too; the bytes before them depend on the kind alone.
///
/// checklist: 39
#[test]
fn undefined_hash_types_keep_their_bits() {
    let tx = parsed(&sample(2, 2));
    let spent = spent(2);
    let context = TxContext::new(tx.view(), &spent).unwrap();
    let mut cache = LegacyCache::new();
    let mut seen = Vec::new();
    for hash_type in [0, 1, 4, 0x21, 0x41, 0x101, 0x8000_0001] {
        seen.push(context.legacy(0, &[0x51], hash_type, &mut cache));
        seen.push(context.segwit_v0(0, &[0x51], hash_type));
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count, "every hash type gives another hash");
    for hash_type in (4..=0x80).chain(0x84..=0xff) {
        assert_eq!(context.taproot(0, hash_type, &TaprootExt::default()), None, "{hash_type:#x}");
    }
}

/// BIP143: SINGLE without a matching output commits to zero instead of the outputs, so changed outputs do not change
/// the hash.
///
/// checklist: 39
#[test]
fn segwit_v0_single_without_an_output_commits_to_none() {
    let two = sample(3, 2);
    let mut other = two.clone();
    other.outputs[0].value = Amount(1);
    let (two, other) = (parsed(&two), parsed(&other));
    let spent = spent(3);
    let hash = |tx: &Transaction, input, hash_type| {
        TxContext::new(tx.view(), &spent).unwrap().segwit_v0(input, &[0x51], hash_type)
    };
    assert_eq!(hash(&two, 2, 3), hash(&other, 2, 3));
    assert_eq!(hash(&two, 1, 3), hash(&other, 1, 3));
    assert_ne!(hash(&two, 0, 3), hash(&other, 0, 3));
    assert_ne!(hash(&two, 2, 1), hash(&other, 2, 1));
    assert_ne!(hash(&two, 2, 3), hash(&two, 2, 2), "the type is in the hash");
}

/// checklist: 53
#[test]
fn taproot_commits_to_every_amount_and_script_spent() {
    let tx = parsed(&sample(2, 2));
    let hash = |spent: &[Output<'_>], hash_type| {
        TxContext::new(tx.view(), spent).unwrap().taproot(0, hash_type, &TaprootExt::default()).unwrap()
    };
    let base = spent(2);
    let mut amount = base.clone();
    amount[1].value = Amount(5001);
    let mut script = base.clone();
    script[1].script_pubkey = &[0x52];
    for changed in [&amount, &script] {
        assert_ne!(hash(&base, 1), hash(changed, 1), "another input's prevout is signed");
        assert_eq!(hash(&base, 0x81), hash(changed, 0x81), "but not with ANYONECANPAY");
    }
    assert_ne!(hash(&base, 0), hash(&base, 1), "default and ALL differ in their byte");
}

/// checklist: 53
#[test]
fn taproot_commits_to_annex_leaf_and_code_separator() {
    let tx = parsed(&sample(2, 1));
    let spent = spent(2);
    let context = TxContext::new(tx.view(), &spent).unwrap();
    let exts = [
        TaprootExt::default(),
        TaprootExt { annex_hash: Some(compute_annex_hash(&[0x50])), leaf: None },
        TaprootExt { annex_hash: Some(compute_annex_hash(&[0x50, 0])), leaf: None },
        TaprootExt { annex_hash: None, leaf: Some(([1; 32], u32::MAX)) },
        TaprootExt { annex_hash: None, leaf: Some(([1; 32], 0)) },
        TaprootExt { annex_hash: None, leaf: Some(([2; 32], 0)) },
    ];
    let mut hashes: Vec<_> = exts.iter().map(|ext| context.taproot(0, 0, ext).unwrap()).collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), exts.len());
    for hash_type in [3, 0x83] {
        assert!(context.taproot(0, hash_type, &exts[0]).is_some());
        assert_eq!(context.taproot(1, hash_type, &exts[0]), None, "SINGLE without an output");
    }
}

/// A push that is cut off ends the script code there, but its length still counts, as in `SerializeScriptCode`.
#[test]
fn a_script_code_with_a_bad_push_is_cut_as_core_cuts_it() {
    let tx = parsed(&sample(1, 1));
    let spent = spent(1);
    let context = TxContext::new(tx.view(), &spent).unwrap();
    let view = tx.view();
    for (script_code, written) in [
        (&[0xac, 0xab, 0x05, 1, 2][..], &[4, 0xac, 0x05][..]),
        (&[0xac, 0x4c][..], &[2, 0xac, 0x4c][..]),
        (&[0x4d, 9, 0, 1, 1][..], &[5, 0x4d, 9, 0][..]),
        (&[0xab, 0x4e, 1, 0][..], &[3, 0x4e][..]),
    ] {
        let mut bytes = view.version().to_le_bytes().to_vec();
        bytes.push(1);
        bytes.extend_from_slice(view.prevout_bytes(0));
        bytes.extend_from_slice(written);
        bytes.extend_from_slice(view.sequence_bytes(0));
        bytes.push(1);
        bytes.extend_from_slice(view.outputs_bytes());
        bytes.extend_from_slice(&view.lock_time().to_le_bytes());
        bytes.extend_from_slice(&1u32.to_le_bytes());
        assert_eq!(context.legacy(0, script_code, 1, &mut LegacyCache::new()), lydian_hash::sha256d(&bytes));
    }
}

/// Quadratic hashing, in bytes: with the prefix cached, a transaction of n inputs feeds about half of n times its size;
/// the second signature of an input feeds four bytes; BIP143 and BIP341 feed a constant number per input.
///
/// checklist: 56
#[test]
fn bytes_hashed_are_as_stated() {
    let count = 1000;
    let tx = parsed(&sample(count, 2));
    let spent = spent(count as usize);
    let counter = AtomicU64::new(0);
    let context = TxContext::new(tx.view(), &spent).unwrap().with_counter(&counter);
    let script_code = [0x76; 25];
    let mut cache = LegacyCache::new();
    let all = |cache: &mut LegacyCache, hash_type| {
        for input in 0..count as usize {
            context.legacy(input, &script_code, hash_type, cache);
        }
    };
    let blank_size = 41 * u64::from(count);
    let whole = bytes_of(&counter, || all(&mut cache, 1));
    let half = blank_size * u64::from(count) / 2;
    assert!((half..half + half / 100 * 12).contains(&whole), "{whole} bytes for {half}");
    assert_eq!(bytes_of(&counter, || context.legacy(999, &script_code, 1, &mut cache)), 4);
    assert_eq!(bytes_of(&counter, || context.legacy(999, &script_code, 0x41, &mut cache)), 4);
    let anyone = bytes_of(&counter, || all(&mut LegacyCache::new(), 0x82));
    assert_eq!(anyone, u64::from(count) * (4 + 1 + 36 + 26 + 4 + 1 + 4 + 4));

    context.segwit_v0(0, &script_code, 1);
    assert_eq!(bytes_of(&counter, || context.segwit_v0(1, &script_code, 1)), 156 + 26);
    context.taproot(0, 0, &TaprootExt::default());
    // BIP-0341: at most 206 bytes of message. Here there is no annex, no leaf and no SINGLE.
    assert_eq!(bytes_of(&counter, || context.taproot(1, 0, &TaprootExt::default())), 175);
}

#[test]
fn one_spent_output_for_each_input() {
    let tx = parsed(&sample(2, 1));
    assert!(TxContext::new(tx.view(), &spent(1)).is_none());
    assert!(TxContext::new(tx.view(), &spent(3)).is_none());
    assert_eq!(TxContext::new(tx.view(), &spent(2)).unwrap().spent(1).value, Amount(5000));
}

/// The hashes of a two-leaf tree compared with their definition.
#[test]
fn script_tree_hashes_follow_the_definition() {
    let leaf = |script: &[u8]| lydian_hash::tagged("TapLeaf").update(&[0xc0, 2]).update(script).finalize();
    let (a, b) = (leaf(&[0x51, 0x52]), leaf(&[0x53, 0x54]));
    assert_eq!(compute_tapleaf_hash(0xc0, &[0x51, 0x52]), a);
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    let branch = lydian_hash::tagged("TapBranch").update(&low).update(&high).finalize();
    assert_eq!(compute_tapbranch_hash(&a, &b), branch);
    assert_eq!(compute_tapbranch_hash(&b, &a), branch);
    let mut control = vec![0xc0; 33];
    assert_eq!(compute_taproot_merkle_root(&control, &a), a);
    control.extend_from_slice(&b);
    assert_eq!(compute_taproot_merkle_root(&control, &a), branch);
    control.extend_from_slice(&a);
    assert_eq!(compute_taproot_merkle_root(&control, &a), compute_tapbranch_hash(&branch, &a));
}
