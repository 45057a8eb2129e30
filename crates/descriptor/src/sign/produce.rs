//! Solves scripts with signatures: Core's `ProduceSignature` and `SignStep`.
//!
//! Input: an output script, keys, and the signatures that exist. Output: scriptSig and witness, as complete as they can
//! be: a multisig with too few signatures is filled with empty elements, so that another signer can add theirs; and
//! what was found on the way, and what is missing.

use super::batch::Wanted;
use super::checker::{Collector, Estimating};
use super::data::verify_scripts;
use super::{Batch, Keystore, PrivateKey, SignatureData};
use crate::expression::{Means, Preimage, decode_miniscript};
use crate::solver::{TxoutType, solve};
use lydian_curve::Scheme;
use lydian_hash::{hash160, ripemd160};
use lydian_primitives::Amount;
use lydian_script::builder::scripts;
use lydian_script::opcodes::OP_1NEGATE;
use lydian_script::sighash::{SIGHASH_ALL, SIGHASH_DEFAULT};
use lydian_script::{InputChecks, LegacyCache, ScriptBuilder, ScriptError, TxContext};
use secp256k1::ecdsa;

/// Core's `MAX_MONEY`.
const MONEY_MAX: Amount = Amount(21_000_000 * 100_000_000);

/// How signatures are made: Core's `BaseSignatureCreator`.
#[derive(Clone, Copy, Debug)]
enum Maker<'s> {
    /// With private keys.
    Real { batch: &'s Batch<'s>, hash_type: i32, knows_outputs: bool },
    /// Every signature exists, as for an estimate of sizes: Core's `DUMMY_SIGNATURE_CREATOR`.
    Estimate,
    /// No signature is made; what belongs to an output is only looked up.
    Lookup,
}

/// Signs one input.
#[derive(Debug)]
pub struct Signer<'s, 'a> {
    pub(super) context: &'s TxContext<'a>,
    pub(super) index: usize,
    pub(super) keys: &'s Keystore,
    maker: Maker<'s>,
}

/// What the solved script asks for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Nothing,
    RedeemScript,
    KeyHash,
    WitnessScript,
    Taproot,
    WitnessUnknown,
}

/// The result of solving one script: Core's `SignStep`.
struct Step {
    is_solved: bool,
    next: Next,
    /// From the bottom to the top; for [`Next::RedeemScript`] and the like, the script or hash.
    elements: Vec<Vec<u8>>,
}

impl<'s, 'a> Signer<'s, 'a> {
    /// Signs with private keys. `knows_outputs`: every output that the transaction spends is known, which taproot
    /// signatures commit to.
    pub fn new(
        context: &'s TxContext<'a>,
        index: usize,
        keys: &'s Keystore,
        batch: &'s Batch<'s>,
        (hash_type, knows_outputs): (i32, bool),
    ) -> Signer<'s, 'a> {
        Signer { context, index, keys, maker: Maker::Real { batch, hash_type, knows_outputs } }
    }

    /// Makes signatures of the usual size that sign nothing.
    pub fn estimating(context: &'s TxContext<'a>, index: usize, keys: &'s Keystore) -> Signer<'s, 'a> {
        Signer { context, index, keys, maker: Maker::Estimate }
    }

    /// Only looks up scripts and keys.
    pub fn looking_up(context: &'s TxContext<'a>, keys: &'s Keystore) -> Signer<'s, 'a> {
        Signer { context, index: 0, keys, maker: Maker::Lookup }
    }

    pub(super) fn verify(&self, script_pubkey: &[u8], data: &SignatureData) -> Result<(), ScriptError> {
        match self.maker {
            Maker::Real { batch, .. } if batch.is_waiting() => Err(ScriptError::UnknownError),
            Maker::Real { batch, knows_outputs, .. } => batch.with_legacy(|cache| {
                let mut checker = Collector::new(batch, knows_outputs);
                data.verify(self.context, self.index, script_pubkey, &mut checker, cache)
            }),
            Maker::Estimate => {
                data.verify(self.context, self.index, script_pubkey, &mut Estimating, &mut LegacyCache::new())
            }
            Maker::Lookup => Err(ScriptError::UnknownError),
        }
    }

    /// Whether the output may be spent with these scripts.
    pub fn holds(&self, script_pubkey: &[u8], script_sig: &[u8], witness: &[Vec<u8>]) -> bool {
        let Maker::Real { batch, knows_outputs, .. } = self.maker else { return false };
        let mut checker = Collector::new(batch, knows_outputs);
        let scripts = (script_pubkey, script_sig, witness);
        batch.with_legacy(|cache| verify_scripts(self.context, self.index, scripts, &mut checker, cache)).is_ok()
    }

    /// Core's `ProduceSignature`.
    pub fn produce(&self, script_pubkey: &[u8], data: &mut SignatureData) {
        if data.is_complete {
            return;
        }
        if let Maker::Real { batch, .. } = self.maker {
            batch.begin();
        }
        let mut step = self.step(script_pubkey, false, data);
        let mut redeem_script = None;
        if step.is_solved && step.next == Next::RedeemScript {
            let script = step.elements.pop().unwrap_or_default();
            data.redeem_script.clone_from(&script);
            step = self.step(&script, false, data);
            step.is_solved &= step.next != Next::RedeemScript;
            redeem_script = Some(script);
        }
        match step.next {
            Next::KeyHash if step.is_solved => {
                let hash: [u8; 20] = step.elements.pop().and_then(|hash| hash.try_into().ok()).unwrap_or_default();
                let inner = self.step(&scripts::p2pkh(&hash), true, data);
                data.witness = inner.elements;
                data.is_witness = true;
                step = Step { is_solved: inner.is_solved, next: step.next, elements: Vec::new() };
            }
            Next::WitnessScript if step.is_solved => {
                let script = step.elements.pop().unwrap_or_default();
                step.is_solved = self.solve_witness_script(script, data);
                data.is_witness = true;
            }
            Next::Taproot if redeem_script.is_none() => {
                data.is_witness = true;
                if step.is_solved {
                    data.witness = std::mem::take(&mut step.elements);
                }
                step.elements.clear();
            }
            Next::WitnessUnknown if step.is_solved => data.is_witness = true,
            _ => {}
        }
        if !data.is_witness {
            data.witness.clear();
        }
        step.elements.extend(redeem_script);
        data.script_sig = push_all(&step.elements);
        data.is_complete = step.is_solved && self.verify(script_pubkey, data).is_ok();
    }

    /// Sets the witness; returns whether the script is solved.
    fn solve_witness_script(&self, script: Vec<u8>, data: &mut SignatureData) -> bool {
        data.witness_script.clone_from(&script);
        let inner = self.step(&script, true, data);
        let is_nested = matches!(inner.next, Next::RedeemScript | Next::WitnessScript | Next::KeyHash);
        let mut is_solved = inner.is_solved && !is_nested;
        let mut elements = inner.elements;
        // The elements of an unsolved script may be a multisig with too few signatures.
        if !is_solved
            && elements.is_empty()
            && let Some(found) = self.satisfy_miniscript(&script, None, data)
        {
            (elements, is_solved) = (found, true);
        }
        elements.push(script);
        data.witness = elements;
        is_solved
    }

    /// `leaf`: the hash of the leaf, in a script tree of taproot.
    pub(super) fn satisfy_miniscript(
        &self,
        script: &[u8],
        leaf: Option<[u8; 32]>,
        data: &mut SignatureData,
    ) -> Option<Vec<Vec<u8>>> {
        let mut find = |hash: &[u8; 20]| {
            let found = self.find_key(hash, data);
            if found.is_none() {
                data.missing.keys.push(*hash);
            }
            found
        };
        let (fragment, keys) = decode_miniscript(script, leaf.is_some(), &mut find)?;
        fragment.satisfy(&keys, &mut WitnessMeans { signer: self, script, leaf, data })
    }

    /// Core's `SignStep`.
    fn step(&self, script: &[u8], is_witness_v0: bool, data: &mut SignatureData) -> Step {
        let solved = |next, elements| Step { is_solved: true, next, elements };
        let unsolved = |next| Step { is_solved: false, next, elements: Vec::new() };
        match solve(script) {
            TxoutType::Nonstandard | TxoutType::NullData => unsolved(Next::Nothing),
            TxoutType::WitnessUnknown { .. } => unsolved(Next::WitnessUnknown),
            TxoutType::Anchor => solved(Next::Nothing, Vec::new()),
            TxoutType::Pubkey(key) => match self.sign(key, script, is_witness_v0, data) {
                Some(signature) => solved(Next::Nothing, vec![signature]),
                None => unsolved(Next::Nothing),
            },
            TxoutType::PubkeyHash(hash) => {
                let Some(key) = self.find_key(hash, data) else {
                    data.missing.keys.push(*hash);
                    return unsolved(Next::Nothing);
                };
                match self.sign(&key, script, is_witness_v0, data) {
                    Some(signature) => solved(Next::Nothing, vec![signature, key]),
                    None => unsolved(Next::Nothing),
                }
            }
            TxoutType::ScriptHash(hash) => match self.find_script(hash, data) {
                Some(inner) => solved(Next::RedeemScript, vec![inner]),
                None => {
                    data.missing.redeem_script = Some(*hash);
                    unsolved(Next::RedeemScript)
                }
            },
            TxoutType::WitnessV0KeyHash(hash) => solved(Next::KeyHash, vec![hash.to_vec()]),
            TxoutType::WitnessV0ScriptHash(hash) => match self.find_script(&ripemd160(hash), data) {
                Some(inner) => solved(Next::WitnessScript, vec![inner]),
                None => {
                    data.missing.witness_script = Some(*hash);
                    unsolved(Next::WitnessScript)
                }
            },
            TxoutType::WitnessV1Taproot(key) => match self.spend_taproot(key, data) {
                Some(elements) => solved(Next::Taproot, elements),
                None => unsolved(Next::Taproot),
            },
            TxoutType::Multisig { required, keys } => {
                let (is_solved, elements) = self.sign_multisig(required, &keys, script, is_witness_v0, data);
                Step { is_solved, next: Next::Nothing, elements }
            }
        }
    }

    fn sign_multisig(
        &self,
        required: i64,
        keys: &[&[u8]],
        script: &[u8],
        is_witness_v0: bool,
        data: &mut SignatureData,
    ) -> (bool, Vec<Vec<u8>>) {
        let size = usize::try_from(required).unwrap_or(0).saturating_add(1);
        // OP_CHECKMULTISIG takes one element too many.
        let mut elements = vec![Vec::new()];
        for key in keys {
            let signature = self.sign(key, script, is_witness_v0, data);
            elements.extend(signature.filter(|_| elements.len() < size));
        }
        let missing = size - elements.len();
        let is_solved = missing == 0;
        // Core counts each filler twice.
        elements.extend(vec![Vec::new(); missing.div_ceil(2)]);
        (is_solved, elements)
    }

    /// An existing signature, or a new one. Core's `CreateSig`.
    fn sign(&self, key: &[u8], script: &[u8], is_witness_v0: bool, data: &mut SignatureData) -> Option<Vec<u8>> {
        let hash = hash160(key);
        if let Some((_, signature)) = data.signatures.get(&hash) {
            return Some(signature.clone());
        }
        if let Some(origin) = self.keys.origin(&hash) {
            data.origins.entry(hash).or_insert_with(|| (key.to_vec(), origin.clone()));
        }
        match self.make_ecdsa(&hash, script, is_witness_v0) {
            Some(signature) => {
                data.signatures.insert(hash, (key.to_vec(), signature.clone()));
                Some(signature)
            }
            None => {
                data.missing.signatures.push(hash);
                None
            }
        }
    }

    fn make_ecdsa(&self, hash: &[u8; 20], script: &[u8], is_witness_v0: bool) -> Option<Vec<u8>> {
        let (batch, hash_type) = match self.maker {
            Maker::Real { batch, hash_type, .. } => (batch, u32::from(low_byte(hash_type))),
            Maker::Estimate => return Some(estimated_ecdsa()),
            Maker::Lookup => return None,
        };
        let private: &PrivateKey = self.keys.private_key(hash)?;
        let is_amount_known = (Amount(0)..=MONEY_MAX).contains(&self.context.spent(self.index).value);
        if is_witness_v0 && !(private.is_compressed() && is_amount_known) {
            return None;
        }
        let hash_type = if hash_type == u32::from(SIGHASH_DEFAULT) { SIGHASH_ALL } else { hash_type };
        let digest = match is_witness_v0 {
            true => self.context.segwit_v0(self.index, script, hash_type),
            false => batch.with_legacy(|cache| self.context.legacy(self.index, script, hash_type, cache)),
        };
        let wanted = Wanted { key_hash: *hash, digest, scheme: Scheme::Ecdsa, tweak: None };
        let signature = batch.sign(private, wanted, None)?;
        let mut signature = ecdsa::Signature::from_compact(&signature).ok()?.serialize_der().to_vec();
        signature.push(u8::try_from(hash_type).ok()?);
        Some(signature)
    }

    /// The hash that a taproot signature signs, and the hash type. `None` if no real signature can be made.
    pub(super) fn taproot_digest(&self, leaf: Option<[u8; 32]>) -> Option<([u8; 32], i32)> {
        let Maker::Real { hash_type, knows_outputs: true, .. } = self.maker else { return None };
        // Only without an annex, and without OP_CODESEPARATOR.
        let ext = lydian_script::TaprootExt { annex_hash: None, leaf: leaf.map(|leaf| (leaf, u32::MAX)) };
        Some((self.context.taproot(self.index, low_byte(hash_type), &ext)?, hash_type))
    }

    /// A BIP-0340 signature for `output_key`, by the private key with this hash, tweaked.
    pub(super) fn make_schnorr(
        &self,
        key_hash: [u8; 20],
        digest: [u8; 32],
        tweak: Option<[u8; 32]>,
        output_key: [u8; 32],
    ) -> Option<[u8; 64]> {
        let Maker::Real { batch, .. } = self.maker else { return None };
        let wanted = Wanted { key_hash, digest, scheme: Scheme::Schnorr, tweak };
        batch.sign(self.keys.private_key(&key_hash)?, wanted, Some(output_key))
    }

    pub(super) fn is_estimating(&self) -> bool {
        matches!(self.maker, Maker::Estimate)
    }

    /// Core's `GetPubKey` of script/sign.cpp.
    fn find_key(&self, hash: &[u8; 20], data: &SignatureData) -> Option<Vec<u8>> {
        let signed = data.signatures.get(hash).map(|(key, _)| key.clone());
        let known = || data.origins.get(hash).map(|(key, _)| key.clone());
        let x_only = || data.x_only_keys.get(hash).map(|key| [&[2][..], key].concat());
        signed.or_else(known).or_else(x_only).or_else(|| self.keys.public_key(hash).map(<[u8]>::to_vec))
    }

    fn find_script(&self, hash: &[u8; 20], data: &SignatureData) -> Option<Vec<u8>> {
        let known = self.keys.script(hash);
        let of_input = [&data.redeem_script, &data.witness_script];
        known.or_else(|| of_input.into_iter().find(|script| hash160(script) == *hash)).cloned()
    }
}

/// Core passes the hash type as a byte.
pub(super) fn low_byte(hash_type: i32) -> u8 {
    let [byte, ..] = hash_type.to_le_bytes();
    byte
}

/// A signature in DER of the usual size: Core's `DummySignatureCreator`.
fn estimated_ecdsa() -> Vec<u8> {
    let mut signature = vec![0; 71];
    for (place, byte) in [(0, 0x30), (1, 68), (2, 2), (3, 32), (4, 1), (36, 2), (37, 32), (38, 1), (70, 1)] {
        signature[place] = byte;
    }
    signature
}

/// The means of a signer for a witness script, or for a leaf script of taproot.
struct WitnessMeans<'m, 's, 'a> {
    signer: &'m Signer<'s, 'a>,
    script: &'m [u8],
    leaf: Option<[u8; 32]>,
    data: &'m mut SignatureData,
}

impl WitnessMeans<'_, '_, '_> {
    /// Lock times of a transaction are checked only if it is signed.
    fn holds(&self, check: impl FnOnce(&InputChecks<'_, '_>) -> bool) -> bool {
        match self.signer.maker {
            Maker::Real { .. } => check(&InputChecks::new(self.signer.context, self.signer.index)),
            Maker::Estimate => true,
            Maker::Lookup => false,
        }
    }
}

impl Means for WitnessMeans<'_, '_, '_> {
    fn sign(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        match self.leaf {
            None => self.signer.sign(key, self.script, true, self.data),
            Some(leaf) => self.signer.sign_leaf(key.try_into().ok()?, leaf, self.data),
        }
    }

    fn is_after(&self, lock_time: u32) -> bool {
        self.holds(|checks| checks.lock_time_holds(i64::from(lock_time)))
    }

    fn is_older(&self, lock_time: u32) -> bool {
        self.holds(|checks| checks.sequence_holds(i64::from(lock_time)))
    }

    fn preimage(&self, kind: Preimage, hash: &[u8]) -> Option<Vec<u8>> {
        let preimages = &self.data.preimages;
        let map = match kind {
            Preimage::Ripemd160 => &preimages.ripemd160,
            Preimage::Sha256 => &preimages.sha256,
            Preimage::Hash160 => &preimages.hash160,
            Preimage::Hash256 => &preimages.hash256,
        };
        map.get(hash).cloned()
    }
}

/// Pushes each element in the shortest way: Core's `PushAll`.
fn push_all(elements: &[Vec<u8>]) -> Vec<u8> {
    let push = |script: ScriptBuilder, element: &Vec<u8>| match element[..] {
        [number @ 1..=16] => script.push_int(i64::from(number)),
        [0x81] => script.op(OP_1NEGATE),
        _ => script.push_slice(element),
    };
    elements.iter().fold(ScriptBuilder::new(), push).into_bytes()
}
