//! Worst-case transactions, measured in work instead of seconds: bytes hashed by SHA-256 for signature hashes, and
//! checks of signatures and tweaks. Each bound is next to its derivation. All of these spends are allowed by consensus.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its data are small"
)]

use lydian_consensus::limits::MAX_BLOCK_WEIGHT;
use lydian_curve::PublicKeyBytes;
use lydian_hash::{hash160, sha256};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Output, Transaction, Txid};
use lydian_script::builder::scripts;
use lydian_script::opcodes::*;
use lydian_script::{
    Captured, CheckCounts, Checker, Flags, LegacyCache, Obligations, ScriptBuilder, ScriptError, Scripts, TxContext,
    capture_input, verify_input_counting, verify_script,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// A legacy input with an empty script: outpoint 36, length 1, sequence 4.
const BLANK_INPUT_SIZE: u64 = 41;
/// The BIP-0143 message without the script code, plus three bytes for the length of the script code.
const SEGWIT_V0_MESSAGE_SIZE: u64 = 156 + 3;
/// Epoch, hash type, version and lock time, five hashes, spend type, index; for a leaf also its hash, key version and
/// separator.
const TAPSCRIPT_MESSAGE_SIZE: u64 = 1 + 1 + 8 + 5 * 32 + 1 + 4 + 37;

fn flags() -> Flags {
    use Flags as F;
    [F::WITNESS, F::TAPROOT, F::DERSIG, F::CHECKLOCKTIMEVERIFY, F::CHECKSEQUENCEVERIFY, F::NULLDUMMY]
        .into_iter()
        .fold(F::P2SH, F::union)
}

/// The work done for all inputs of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Work {
    bytes: u64,
    checks: CheckCounts,
}

type Verdict = Result<(), ScriptError>;

/// A transaction with the output scripts that its inputs spend.
struct Case {
    tx: Transaction,
    script_pubkeys: Vec<Vec<u8>>,
}

/// scriptSig, witness, and the output script that is spent.
type Spend = (Vec<u8>, Vec<Vec<u8>>, Vec<u8>);

impl Case {
    /// The first output has a script of `output_size` bytes, which makes the transaction large for every hash.
    fn new(spends: Vec<Spend>, output_size: usize) -> Case {
        let (mut inputs, mut script_pubkeys) = (Vec::new(), Vec::new());
        for (vout, (script_sig, witness, script_pubkey)) in (0..).zip(spends) {
            let prevout = OutPoint { txid: Txid([7; 32]), vout };
            inputs.push(MutInput { prevout, script_sig, sequence: u32::MAX, witness });
            script_pubkeys.push(script_pubkey);
        }
        let outputs = vec![MutOutput { value: Amount(1), script_pubkey: vec![OP_RETURN; output_size] }];
        let tx = MutTx { version: 2, inputs, outputs, lock_time: 0 }.to_transaction().unwrap();
        assert!(tx.view().weight() < MAX_BLOCK_WEIGHT, "it fits a block");
        Case { tx, script_pubkeys }
    }

    fn run<T>(&self, job: impl FnOnce(&TxContext<'_>) -> T) -> (u64, T) {
        let output = |script| Output { value: Amount(1), script_pubkey: script };
        let spent: Vec<_> = self.script_pubkeys.iter().map(|script| output(&script[..])).collect();
        let bytes = AtomicU64::new(0);
        let answer = job(&TxContext::new(self.tx.view(), &spent).unwrap().with_counter(&bytes));
        (bytes.load(Ordering::Relaxed), answer)
    }

    /// The work of capture mode, in which every signature is assumed to be valid.
    fn capture(&self) -> Work {
        let (bytes, checks) = self.run(|context| {
            let mut obligations = Obligations::new();
            for input in 0..self.script_pubkeys.len() {
                assert_eq!(capture_input(context, input, flags(), &mut obligations), Captured::Accepted);
            }
            let mut checks = CheckCounts::default();
            obligations.checks().iter().for_each(|check| checks.count(check));
            checks
        });
        Work { bytes, checks }
    }

    /// The work of exact mode; every signature is verified and invalid.
    fn exact(&self, expected: Verdict) -> Work {
        let (bytes, checks) = self.run(|context| {
            let (mut cache, mut checks) = (LegacyCache::new(), CheckCounts::default());
            for input in 0..self.script_pubkeys.len() {
                assert_eq!(verify_input_counting(context, input, flags(), &mut cache, &mut checks), expected);
            }
            checks
        });
        Work { bytes, checks }
    }

    /// Both modes, which do the same work if the scripts continue whether or not a signature is valid.
    fn work(&self, expected: Verdict) -> Work {
        let work = self.capture();
        assert_eq!(self.exact(expected), work);
        work
    }

    fn base_size(&self) -> u64 {
        self.tx.view().base_size() as u64
    }
}

/// A strict DER signature with one-byte numbers, and a hash type. It is not valid for any key.
fn signature(number: u8, hash_type: u8) -> Vec<u8> {
    vec![0x30, 6, 2, 1, number / 2 + 1, 2, 1, number % 2 + 1, hash_type]
}

/// The generator point.
fn key() -> Vec<u8> {
    lydian_primitives::hex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798").unwrap()
}

/// `count` inputs, each of which spends an output with this script.
fn bare(count: usize, script_sig: ScriptBuilder, script: ScriptBuilder) -> Vec<Spend> {
    vec![(script_sig.into_bytes(), Vec::new(), script.into_bytes()); count]
}

fn p2wsh(script: ScriptBuilder) -> Spend {
    let script = script.into_bytes();
    let program = sha256(&script);
    (Vec::new(), vec![script], scripts::witness_program(0, &program))
}

/// `before` is the stack at the start of the leaf script.
fn p2tr(before: &[Vec<u8>], leaf: Vec<u8>, nodes: usize, annex: Option<Vec<u8>>) -> Spend {
    let mut control = vec![0xc0];
    control.extend(&key()[1..]);
    control.resize(33 + 32 * nodes, 5);
    let mut witness = [before, &[leaf, control]].concat();
    witness.extend(annex);
    (Vec::new(), witness, scripts::witness_program(1, &[3; 32]))
}

/// The transaction that fills block 364292 of 2015: 5,569 P2PKH inputs with SIGHASH_ALL. Core hashes all of it for each
/// input, 5,569 * (41 * 5,569 + 78) = 1.27 GB. Here the part before the current input is hashed once in total and the
/// part after it once per input: 41 * n * (n + 1) / 2, plus 150 per input for its script, the output and the remaining
/// fields. 637 MB.
///
/// checklist: 56
#[test]
fn the_transaction_of_block_364292() {
    const COUNT: u64 = 5569;
    let long_signature = [&[0x30, 68, 2, 32][..], &[1; 32], &[2, 32], &[1; 32], &[1]].concat();
    let script_sig = ScriptBuilder::new().push_slice(&long_signature).push_slice(&key());
    let script = ScriptBuilder::new().raw(&scripts::p2pkh(&hash160(&key())));
    let case = Case::new(bare(COUNT as usize, script_sig, script), 25);
    assert!((800_000..1_000_000).contains(&case.base_size()));
    let work = case.work(Err(ScriptError::EvalFalse));
    assert_eq!(work.checks, CheckCounts { ecdsa: COUNT, ..CheckCounts::default() });
    let bound = BLANK_INPUT_SIZE * COUNT * (COUNT + 1) / 2 + 150 * COUNT;
    assert!((bound / 100 * 99..bound).contains(&work.bytes), "{} bytes of at most {bound}", work.bytes);
    assert!(work.bytes < COUNT * BLANK_INPUT_SIZE * COUNT * 51 / 100, "half of Core's");
}

/// 84 signatures of one input over the same script code, in a transaction of 900 kB: the transaction is hashed once for
/// each of the six kinds of hash type instead of once for each signature. Each signature adds only its hash type, 4
/// bytes. CVE-2025-46598; Core does the same since 30.0.
///
/// checklist: 56
#[test]
fn many_signatures_over_one_script_code() {
    for (kinds, types) in [(1, &[1, 0x41, 4, 0][..]), (3, &[1, 2, 3]), (6, &[1, 2, 3, 0x81, 0x82, 0x83])] {
        let types: Vec<u8> = types.iter().copied().cycle().take(84).collect();
        // Data pushed before the separator is not in the script code.
        let push = |script: ScriptBuilder, kind: &u8| script.push_slice(&signature(0, *kind)).push_slice(&key());
        let pushes = types.iter().fold(ScriptBuilder::new(), push).op(OP_CODESEPARATOR);
        let script = types.iter().fold(pushes, |script, _| script.op(OP_CHECKSIG).op(OP_DROP)).op(OP_1);
        let case = Case::new(bare(1, ScriptBuilder::new(), script), 900_000);
        let work = case.work(Ok(()));
        assert_eq!(work.checks.ecdsa, 84);
        let bound = kinds * (case.base_size() + 200) + 4 * 84;
        assert!(work.bytes <= bound, "{} bytes of at most {bound}", work.bytes);
    }
}

/// The legacy worst case allowed by consensus, in which nothing can be cached, neither here nor in Core: each signature
/// has a script code of its own, because the signature is deleted from the code (FindAndDelete) or follows its own
/// OP_CODESEPARATOR. 201 operations allow 201 signatures per input, or 100 with separators. Each hashes the rest of the
/// transaction and at most 10,000 bytes of script: 201 * n * (size + 10,000).
///
/// checklist: 36, 56
#[test]
fn each_signature_with_a_script_code_of_its_own() {
    const INPUTS: u64 = 20;
    let deleting =
        |script: ScriptBuilder, number| script.push_slice(&signature(number, 1)).push_slice(&key()).op(OP_CHECKSIG);
    let separating = |script: ScriptBuilder, _| {
        script.push_slice(&signature(0, 1)).push_slice(&key()).op(OP_CODESEPARATOR).op(OP_CHECKSIG)
    };
    let start = ScriptBuilder::new;
    for (script, signatures) in [((0..201).fold(start(), deleting), 201), ((0..100).fold(start(), separating), 100)] {
        let case = Case::new(bare(INPUTS as usize, start(), script.op(OP_1)), 10_000);
        let work = case.work(Ok(()));
        assert_eq!(work.checks.ecdsa, INPUTS * signatures);
        let bound = INPUTS * signatures * (case.base_size() + 10_000);
        assert!(work.bytes <= bound, "{} bytes of at most {bound}", work.bytes);
    }
}

/// A script close to the maximum size that consists mostly of pushes, which are walked for each of its signatures: 890
/// elements and 84 signatures. The transaction and the script are hashed once.
///
/// checklist: 56
#[test]
fn a_script_of_many_pushes() {
    let pushes = (0..890).fold(ScriptBuilder::new(), |script, _| script.push_slice(&[7; 5]));
    let check = |script: ScriptBuilder, _| script.push_slice(&signature(0, 1)).push_slice(&key()).op(OP_CHECKSIG);
    let script = (0..84).fold(pushes, check).op(OP_1);
    let case = Case::new(bare(1, ScriptBuilder::new(), script), 900_000);
    let work = case.work(Ok(()));
    assert_eq!(work.checks.ecdsa, 84);
    assert!(work.bytes <= case.base_size() + 10_000 + 4 * 84, "{} bytes", work.bytes);
}

/// BIP-0143 hashes the script code for each signature: 159 bytes plus at most 10,000, 201 times per input. A block has
/// at most 80,000 such signatures, so 813 MB. The transaction, here of 900 kB, is hashed once for all of them, and so
/// is the output that SINGLE commits to.
///
/// checklist: 56
#[test]
fn segwit_v0_with_a_large_script_code() {
    for hash_type in [1, 3] {
        let check =
            |script: ScriptBuilder, opcode| script.push_slice(&signature(0, hash_type)).push_slice(&key()).op(opcode);
        let opcodes = [OP_CHECKSIGVERIFY; 200].into_iter().chain([OP_CHECKSIG]);
        let script = opcodes.fold(ScriptBuilder::new(), check);
        let case = Case::new(vec![p2wsh(script)], 900_000);
        let work = case.capture();
        assert_eq!(work.checks.ecdsa, 201);
        let bound = 2 * case.base_size() + 201 * (SEGWIT_V0_MESSAGE_SIZE + 10_000);
        assert!(work.bytes <= bound, "{} bytes of at most {bound}", work.bytes);
    }
}

/// `signatures` signature checks in one tapscript, by repeating `2DUP CHECKSIGVERIFY`. The witness is padded, with an
/// annex or with OP_NOPs in the leaf, to `spare` bytes more than BIP-0342 requires for them: 50 each, minus 50.
fn many_in_tapscript(signatures: usize, is_leaf_large: bool, hash_type: u8, output_size: usize, spare: i64) -> Case {
    let build = |fill: usize| {
        let mut leaf = vec![OP_NOP; if is_leaf_large { fill } else { 0 }];
        leaf.extend([OP_2DUP, OP_CHECKSIGVERIFY].repeat(signatures - 1));
        leaf.push(OP_CHECKSIG);
        let annex = (!is_leaf_large).then(|| [vec![0x50], vec![0; fill]].concat());
        let mut schnorr = vec![1; 64];
        schnorr.extend((hash_type != 0).then_some(hash_type));
        Case::new(vec![p2tr(&[schnorr, key()[1..].to_vec()], leaf, 0, annex)], output_size)
    };
    let guess = 48 * signatures - 1000;
    let size = build(guess).tx.view().input(0).witness.serialized_size();
    let wanted = 50 * signatures as i64 - 50 + spare;
    build(usize::try_from(guess as i64 + wanted - size as i64).unwrap())
}

/// The worst tapscripts. The budget allows one signature per 50 bytes of witness, 79,000 in a block, and each hashes
/// 212 bytes, 32 more with an annex: 19 MB. Neither the leaf or annex, here more than 3 MB, nor the transaction nor
/// SINGLE's output is hashed again: 40,000 signatures that hash 400 kB each would be 16 GB.
///
/// checklist: 56
#[test]
fn the_worst_tapscripts() {
    for (signatures, is_leaf_large, hash_type, output_size) in [
        (70_000, false, 0, 100_000),
        (70_000, true, 0, 100_000),
        (40_000, true, 3, 400_000),
        (40_000, false, 2, 400_000),
    ] {
        let case = many_in_tapscript(signatures, is_leaf_large, hash_type, output_size, 0);
        let work = case.capture();
        let expected = CheckCounts { schnorr: signatures as u64, tweak: 1, ecdsa: 0 };
        assert_eq!(work.checks, expected);
        let message = TAPSCRIPT_MESSAGE_SIZE + if is_leaf_large { 0 } else { 32 };
        let bound = 2 * case.base_size() + signatures as u64 * message;
        assert!(work.bytes <= bound, "{} bytes of at most {bound}", work.bytes);
    }
}

/// With one byte of witness less, the budget does not cover the last signature, and the run ends there.
///
/// checklist: 56
#[test]
fn tapscript_signatures_end_with_their_weight() {
    let accepted = |spare| {
        let case = many_in_tapscript(2_000, true, 0, 0, spare);
        case.run(|context| capture_input(context, 0, flags(), &mut Obligations::new()))
    };
    let (bytes, outcome) = accepted(0);
    assert_eq!(outcome, Captured::Accepted);
    let (fewer, outcome) = accepted(-1);
    assert_eq!(outcome, Captured::Exact);
    assert_eq!(bytes - fewer, TAPSCRIPT_MESSAGE_SIZE);
}

/// A checker that forces a walk over all keys: the first `misses` checks of each multisig fail.
struct Reluctant {
    misses: u64,
    keys: u64,
    checks: u64,
}

impl Checker for Reluctant {
    fn ecdsa(&mut self, _: PublicKeyBytes, _: [u8; 64], digest: impl FnOnce() -> [u8; 32]) -> bool {
        digest();
        self.checks += 1;
        (self.checks - 1) % self.keys >= self.misses
    }

    fn schnorr(&mut self, _: [u8; 32], _: [u8; 64], _: impl FnOnce() -> Option<[u8; 32]>) -> Option<bool> {
        panic!("no tapscript here")
    }

    fn tweak(&mut self, _: [u8; 32], _: bool, _: [u8; 32], _: [u8; 32]) -> bool {
        panic!("no taproot here")
    }
}

/// 201 operations allow nine multisigs of 20 keys. In exact mode each makes at most 20 checks, whichever signatures are
/// valid. In capture mode it makes m * (21 - m) candidate pairs, 110 for 10 of 20: 5.5 times as many. A block whose
/// witnesses contain as many multisigs as the limit of signature operations allows has 4,000: 80,000 checks, or 440,000
/// pairs. Hashes: one per signature, here all over the same script code, so the transaction is hashed once per mode.
///
/// checklist: 56
#[test]
fn multisig_of_twenty_keys() {
    let keys = vec![key(); 20];
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    for required in [1_u8, 10, 20] {
        let check = |script: ScriptBuilder, _| {
            let signed = (0..required).fold(script.op(OP_0), |script, _| script.push_slice(&signature(0, 1)));
            signed.raw(&scripts::multisig(required, &keys))
        };
        let script = (0..9).fold(ScriptBuilder::new(), check).op(OP_1);
        let case = Case::new(bare(1, ScriptBuilder::new(), script), 100_000);
        let captured = case.capture();
        let required = u64::from(required);
        assert_eq!(captured.checks.ecdsa, 9 * required * (21 - required));
        let exact = case.exact(Ok(()));
        assert_eq!(exact.checks.ecdsa, 9 * (21 - required), "no key fits");
        let (bytes, checks) = case.run(|context| {
            let mut checker = Reluctant { misses: 20 - required, keys: 20, checks: 0 };
            let scripts = Scripts::of_input(context, 0);
            assert_eq!(verify_script(&scripts, flags(), context, 0, &mut checker), Ok(()));
            checker.checks
        });
        assert_eq!(checks, 9 * 20, "every key is tried");
        let bound = case.base_size() + 10_000 + 9 * 4 * required;
        assert!(captured.bytes.max(exact.bytes).max(bytes) <= bound, "at most {bound} bytes");
    }
}

/// A leaf at the maximum depth, 128 nodes: one check, and two compressions per 32 bytes of the control block. With one
/// more node nothing is checked.
///
/// checklist: 52, 56
#[test]
fn the_deepest_leaf() {
    let case = |nodes| Case::new(vec![p2tr(&[], vec![OP_1], nodes, None)], 100_000);
    assert_eq!(case(128).capture(), Work { bytes: 0, checks: CheckCounts { tweak: 1, ..CheckCounts::default() } });
    assert_eq!(case(129).exact(Err(ScriptError::TaprootWrongControlSize)), Work::default());
}
