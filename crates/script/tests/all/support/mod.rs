//! Generates spends for tests and benchmarks: keys, outputs, and inputs signed with libsecp256k1.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "test data are made here and known to be good"
)]

use lydian_curve::{Check, Engine, Reference};
use lydian_hash::{TAP_TWEAK, hash160, sha256};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Output, Txid};
use lydian_script::builder::scripts;
use lydian_script::sighash::{compute_tapleaf_hash, compute_taproot_merkle_root};
use lydian_script::{
    Flags, LegacyCache, ScriptBuilder, ScriptError, TaprootExt, TxContext, verify_input, verify_input_by_capture,
};
use secp256k1::{Keypair, Scalar, SecretKey};

/// The result of input 0 under these flags. Exact mode and capture with settling MUST agree, whatever verdicts the
/// engine returns.
pub fn outcome(case: &Case, flags: Flags) -> Result<(), ScriptError> {
    case.run(|context| {
        let exact = verify_input(context, 0, flags);
        assert_eq!(verify_input_by_capture(context, 0, flags, &Reference), exact, "captured, {flags}");
        assert_eq!(verify_input_by_capture(context, 0, flags, &Never), exact, "nothing proven, {flags}");
        exact
    })
}

#[track_caller]
pub fn check(case: &Case, flags: Flags, expected: Result<(), ScriptError>) {
    assert_eq!(outcome(case, flags), expected, "{flags}");
}

/// Checks a legacy spend of `script_pubkey` by `script_sig`.
#[track_caller]
pub fn check_bare(
    script_sig: ScriptBuilder,
    script_pubkey: ScriptBuilder,
    flags: Flags,
    expected: Result<(), ScriptError>,
) {
    check(&Case::with_script_sig(script_pubkey.into_bytes(), script_sig.into_bytes()), flags, expected);
}

/// Checks a bare script without operands.
#[track_caller]
pub fn check_script(script: ScriptBuilder, flags: Flags, expected: Result<(), ScriptError>) {
    check_bare(ScriptBuilder::new(), script, flags, expected);
}

/// An engine that rejects every check.
#[derive(Debug)]
pub struct Never;

impl Engine for Never {
    fn name(&self) -> &'static str {
        "never"
    }

    fn verify(&self, _: &[Check], verdicts: &mut [bool]) {
        verdicts.fill(false);
    }
}

/// The deterministic key with this number.
pub fn secret(number: u8) -> SecretKey {
    SecretKey::from_secret_bytes([number + 1; 32]).unwrap()
}

pub fn public(number: u8) -> [u8; 33] {
    secret(number).public_key().serialize()
}

pub fn public_uncompressed(number: u8) -> [u8; 65] {
    secret(number).public_key().serialize_uncompressed()
}

pub fn x_only(number: u8) -> [u8; 32] {
    Keypair::from_secret_key(&secret(number)).x_only_public_key().0.to_byte_array()
}

/// A signature with its hash type.
pub fn sign_ecdsa(number: u8, digest: [u8; 32], hash_type: u8) -> Vec<u8> {
    let signature = secp256k1::ecdsa::sign(secp256k1::Message::from_digest(digest), &secret(number));
    let mut bytes = signature.serialize_der().to_vec();
    bytes.push(hash_type);
    bytes
}

/// A BIP-0340 signature by the key with this number, tweaked if it is the key of a taproot output. A hash type of 0 is
/// omitted.
pub fn sign_schnorr(number: u8, tweak: Option<[u8; 32]>, digest: [u8; 32], hash_type: u8) -> Vec<u8> {
    let keypair = Keypair::from_secret_key(&secret(number));
    let keypair = match tweak {
        Some(tweak) => keypair.add_xonly_tweak(&Scalar::from_be_bytes(tweak).unwrap()).unwrap(),
        None => keypair,
    };
    let mut bytes = secp256k1::schnorr::sign_no_aux_rand(&digest, &keypair).to_byte_array().to_vec();
    if hash_type != 0 {
        bytes.push(hash_type);
    }
    bytes
}

/// The same signature with s replaced by the group order minus s.
pub fn negate_s(signature: &[u8]) -> Vec<u8> {
    const ORDER: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xba, 0xae,
        0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
    ];
    let (&hash_type, der) = signature.split_last().unwrap();
    let compact = lydian_curve::parse_der_lax(der).unwrap();
    let mut high = [0; 32];
    let mut borrow = 0;
    for i in (0..32).rev() {
        let difference = i32::from(ORDER[i]) - i32::from(compact[32 + i]) - borrow;
        borrow = i32::from(difference < 0);
        high[i] = u8::try_from(difference + 256 * borrow).unwrap();
    }
    let r_end = 4 + usize::from(der[3]);
    let mut out = der[..r_end].to_vec();
    out.extend_from_slice(&[2, 33, 0]);
    out.extend_from_slice(&high);
    out[1] = u8::try_from(out.len() - 2).unwrap();
    out.push(hash_type);
    out
}

/// A transaction and the outputs it spends.
#[derive(Clone, Debug)]
pub struct Case {
    pub tx: MutTx,
    pub spent: Vec<MutOutput>,
}

impl Case {
    /// Two inputs and two outputs; the first input spends `script_pubkey`.
    pub fn spending(script_pubkey: Vec<u8>) -> Case {
        let input = |vout| MutInput {
            prevout: OutPoint { txid: Txid([0x77; 32]), vout },
            script_sig: vec![],
            sequence: 0xffff_fffe,
            witness: vec![],
        };
        let output = |value, script_pubkey| MutOutput { value: Amount(value), script_pubkey };
        let tx = MutTx {
            version: 2,
            inputs: vec![input(0), input(1)],
            outputs: vec![output(900, vec![0x51]), output(800, scripts::p2pkh(&[9; 20]))],
            lock_time: 0,
        };
        Case { tx, spent: vec![output(1000, script_pubkey), output(2000, vec![0x51])] }
    }

    pub fn with_script_sig(script_pubkey: Vec<u8>, script_sig: Vec<u8>) -> Case {
        let mut case = Case::spending(script_pubkey);
        case.tx.inputs[0].script_sig = script_sig;
        case
    }

    pub fn with_witness(script_pubkey: Vec<u8>, witness: Vec<Vec<u8>>) -> Case {
        let mut case = Case::spending(script_pubkey);
        case.tx.inputs[0].witness = witness;
        case
    }

    /// `None` if the transaction does not parse back.
    pub fn try_run<R>(&self, run: impl FnOnce(&TxContext<'_>) -> R) -> Option<R> {
        let transaction = self.tx.to_transaction()?;
        let spent: Vec<_> =
            self.spent.iter().map(|out| Output { value: out.value, script_pubkey: &out.script_pubkey }).collect();
        Some(run(&TxContext::new(transaction.view(), &spent)?))
    }

    pub fn run<R>(&self, run: impl FnOnce(&TxContext<'_>) -> R) -> R {
        self.try_run(run).unwrap()
    }

    pub fn legacy_digest(&self, code: &[u8], hash_type: u8) -> [u8; 32] {
        self.run(|context| context.legacy(0, code, u32::from(hash_type), &mut LegacyCache::new()))
    }

    pub fn segwit_digest(&self, code: &[u8], hash_type: u8) -> [u8; 32] {
        self.run(|context| context.segwit_v0(0, code, u32::from(hash_type)))
    }

    pub fn taproot_digest(&self, hash_type: u8, ext: &TaprootExt) -> [u8; 32] {
        self.run(|context| context.taproot(0, hash_type, ext)).unwrap()
    }
}

/// The kind of output that contains a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrap {
    Bare,
    P2sh,
    P2wsh,
    P2shP2wsh,
}

pub const WRAPS: [Wrap; 4] = [Wrap::Bare, Wrap::P2sh, Wrap::P2wsh, Wrap::P2shP2wsh];

impl Wrap {
    pub fn is_witness(self) -> bool {
        matches!(self, Wrap::P2wsh | Wrap::P2shP2wsh)
    }

    pub fn script_pubkey(self, script: &[u8]) -> Vec<u8> {
        match self {
            Wrap::Bare => script.to_vec(),
            Wrap::P2sh => scripts::p2sh(&hash160(script)),
            Wrap::P2wsh => scripts::witness_program(0, &sha256(script)),
            Wrap::P2shP2wsh => scripts::p2sh(&hash160(&Wrap::P2wsh.script_pubkey(script))),
        }
    }

    /// A case with `operands` for `script`, pushed in the scriptSig or in the witness.
    pub fn spend(self, script: &[u8], operands: &[Vec<u8>]) -> Case {
        let mut case = Case::spending(self.script_pubkey(script));
        self.set_operands(&mut case, script, operands);
        case
    }

    pub fn set_operands(self, case: &mut Case, script: &[u8], operands: &[Vec<u8>]) {
        let pushes = operands.iter().fold(ScriptBuilder::new(), |pushes, operand| pushes.push_slice(operand));
        let input = &mut case.tx.inputs[0];
        match self {
            Wrap::Bare => input.script_sig = pushes.into_bytes(),
            Wrap::P2sh => input.script_sig = pushes.push_slice(script).into_bytes(),
            Wrap::P2wsh | Wrap::P2shP2wsh => {
                input.witness = operands.to_vec();
                input.witness.push(script.to_vec());
                if self == Wrap::P2shP2wsh {
                    let program = Wrap::P2wsh.script_pubkey(script);
                    input.script_sig = ScriptBuilder::new().push_slice(&program).into_bytes();
                }
            }
        }
    }

    pub fn digest(self, case: &Case, code: &[u8], hash_type: u8) -> [u8; 32] {
        if self.is_witness() { case.segwit_digest(code, hash_type) } else { case.legacy_digest(code, hash_type) }
    }

    pub fn sign(self, case: &Case, code: &[u8], key: u8, hash_type: u8) -> Vec<u8> {
        sign_ecdsa(key, self.digest(case, code, hash_type), hash_type)
    }
}

pub fn p2pkh(hash_type: u8, uncompressed: bool) -> Case {
    let key = if uncompressed { public_uncompressed(0).to_vec() } else { public(0).to_vec() };
    let script = scripts::p2pkh(&hash160(&key));
    let mut case = Case::spending(script.clone());
    let signature = sign_ecdsa(0, case.legacy_digest(&script, hash_type), hash_type);
    case.tx.inputs[0].script_sig = ScriptBuilder::new().push_slice(&signature).push_slice(&key).into_bytes();
    case
}

pub fn p2wpkh(hash_type: u8) -> Case {
    let key_hash = hash160(&public(0));
    let mut case = Case::spending(scripts::witness_program(0, &key_hash));
    let signature = sign_ecdsa(0, case.segwit_digest(&scripts::p2pkh(&key_hash), hash_type), hash_type);
    case.tx.inputs[0].witness = vec![signature, public(0).to_vec()];
    case
}

pub fn p2sh_p2wpkh(hash_type: u8) -> Case {
    let redeem_script = scripts::witness_program(0, &hash160(&public(0)));
    let mut case = p2wpkh(hash_type);
    case.spent[0].script_pubkey = scripts::p2sh(&hash160(&redeem_script));
    case.tx.inputs[0].script_sig = ScriptBuilder::new().push_slice(&redeem_script).into_bytes();
    case
}

fn no_script_tweak() -> [u8; 32] {
    TAP_TWEAK.hash(&[&x_only(0)])
}

/// The x-only key `number` plus `tweak` times the generator, and whether its y coordinate is odd.
pub fn tweaked(number: u8, tweak: [u8; 32]) -> ([u8; 32], bool) {
    let keypair = Keypair::from_secret_key(&secret(number));
    let (key, parity) = keypair.add_xonly_tweak(&Scalar::from_be_bytes(tweak).unwrap()).unwrap().x_only_public_key();
    (key.to_byte_array(), parity == secp256k1::Parity::Odd)
}

pub fn p2tr_key_path(hash_type: u8, annex: Option<Vec<u8>>) -> Case {
    let mut case = Case::spending(scripts::witness_program(1, &tweaked(0, no_script_tweak()).0));
    let annex_hash = annex.as_deref().map(lydian_script::sighash::compute_annex_hash);
    let digest = case.taproot_digest(hash_type, &TaprootExt { annex_hash, leaf: None });
    case.tx.inputs[0].witness = vec![sign_schnorr(0, Some(no_script_tweak()), digest, hash_type)];
    case.tx.inputs[0].witness.extend(annex);
    case
}

/// `required` of `total` keys, signed by the keys at these positions.
pub fn multisig(wrap: Wrap, required: u8, total: u8, signers: &[u8], hash_type: u8) -> Case {
    let keys: Vec<_> = (0..total).map(public).collect();
    let script = scripts::multisig(required, &keys.iter().map(|key| &key[..]).collect::<Vec<_>>());
    let mut case = wrap.spend(&script, &[]);
    let mut operands = vec![vec![]];
    operands.extend(signers.iter().map(|&signer| wrap.sign(&case, &script, signer, hash_type)));
    wrap.set_operands(&mut case, &script, &operands);
    case
}

/// A taproot output with the internal key 0 and leaves in a chain, and the data that a spend of one leaf reveals.
#[derive(Clone, Debug)]
pub struct Leaf {
    pub script: Vec<u8>,
    pub hash: [u8; 32],
    pub control: Vec<u8>,
    pub script_pubkey: Vec<u8>,
}

impl Leaf {
    /// `path` holds the sibling hashes on the path from the leaf to the root.
    pub fn new(version: u8, script: &[u8], path: &[[u8; 32]]) -> Leaf {
        let hash = compute_tapleaf_hash(version, script);
        let mut control = vec![version];
        control.extend_from_slice(&x_only(0));
        path.iter().for_each(|node| control.extend_from_slice(node));
        let root = compute_taproot_merkle_root(&control, &hash);
        let (output_key, is_odd) = tweaked(0, TAP_TWEAK.hash(&[&x_only(0), &root]));
        control[0] |= u8::from(is_odd);
        Leaf { script: script.to_vec(), hash, control, script_pubkey: scripts::witness_program(1, &output_key) }
    }

    pub fn spend(&self, operands: &[Vec<u8>]) -> Case {
        let mut witness = operands.to_vec();
        witness.extend([self.script.clone(), self.control.clone()]);
        Case::with_witness(self.script_pubkey.clone(), witness)
    }

    pub fn ext(&self) -> TaprootExt {
        TaprootExt { annex_hash: None, leaf: Some((self.hash, u32::MAX)) }
    }

    pub fn sign(&self, key: u8, hash_type: u8) -> Vec<u8> {
        let case = Case::spending(self.script_pubkey.clone());
        sign_schnorr(key, None, case.taproot_digest(hash_type, &self.ext()), hash_type)
    }
}
