//! Solves scripts with signatures: Core's `ProduceSignature` and `SignStep`.
//!
//! Input: an output script, keys, and the signatures that exist. Output: scriptSig and witness, as complete as they can
//! be: a multisig with too few signatures is filled with empty elements, so that another signer can add theirs.

use super::{Keystore, PrivateKey, SignatureData};
use crate::expression::{Means, decode_miniscript};
use crate::solver::{TxoutType, solve};
use lydian_hash::{hash160, ripemd160};
use lydian_script::builder::scripts;
use lydian_script::opcodes::OP_1NEGATE;
use lydian_script::sighash::{SIGHASH_ALL, SIGHASH_DEFAULT};
use lydian_script::{InputChecks, LegacyCache, ScriptBuilder, ScriptError, TaprootExt, TxContext};

/// Signs one input.
pub(super) struct Signer<'s, 'a> {
    context: &'s TxContext<'a>,
    index: usize,
    keys: &'s Keystore,
    hash_type: u8,
    /// Every output that the transaction spends is known.
    knows_outputs: bool,
}

/// What the solved script asks for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Nothing,
    RedeemScript,
    KeyHash,
    WitnessScript,
    Taproot,
}

/// The result of solving one script: Core's `SignStep`.
struct Step {
    is_solved: bool,
    next: Next,
    /// From the bottom to the top; for [`Next::RedeemScript`] and the like, the script or hash.
    elements: Vec<Vec<u8>>,
}

impl<'s, 'a> Signer<'s, 'a> {
    pub(super) fn new(
        context: &'s TxContext<'a>,
        index: usize,
        keys: &'s Keystore,
        hash_type: u8,
        knows_outputs: bool,
    ) -> Signer<'s, 'a> {
        Signer { context, index, keys, hash_type, knows_outputs }
    }

    pub(super) fn verify(&self, script_pubkey: &[u8], data: &SignatureData) -> Result<(), ScriptError> {
        data.verify(self.context, self.index, script_pubkey, self.knows_outputs)
    }

    /// Core's `ProduceSignature`.
    pub(super) fn produce(&self, script_pubkey: &[u8], data: &mut SignatureData) {
        if data.is_complete {
            return;
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
            && let Some(found) = self.satisfy_miniscript(&script, data)
        {
            (elements, is_solved) = (found, true);
        }
        elements.push(script);
        data.witness = elements;
        is_solved
    }

    fn satisfy_miniscript(&self, script: &[u8], data: &mut SignatureData) -> Option<Vec<Vec<u8>>> {
        let (fragment, keys) = decode_miniscript(script, &|hash| self.find_key(hash, data))?;
        fragment.satisfy(&keys, &mut WitnessMeans { signer: self, script, data })
    }

    /// Core's `SignStep`.
    fn step(&self, script: &[u8], is_witness_v0: bool, data: &mut SignatureData) -> Step {
        let solved = |next, elements| Step { is_solved: true, next, elements };
        let unsolved = |next| Step { is_solved: false, next, elements: Vec::new() };
        match solve(script) {
            TxoutType::Nonstandard | TxoutType::NullData | TxoutType::WitnessUnknown { .. } => unsolved(Next::Nothing),
            TxoutType::Anchor => solved(Next::Nothing, Vec::new()),
            TxoutType::Pubkey(key) => match self.sign(key, script, is_witness_v0, data) {
                Some(signature) => solved(Next::Nothing, vec![signature]),
                None => unsolved(Next::Nothing),
            },
            TxoutType::PubkeyHash(hash) => {
                let found = self.find_key(hash, data).and_then(|key| {
                    let signature = self.sign(&key, script, is_witness_v0, data)?;
                    Some(solved(Next::Nothing, vec![signature, key]))
                });
                found.unwrap_or_else(|| unsolved(Next::Nothing))
            }
            TxoutType::ScriptHash(hash) => match self.find_script(hash, data) {
                Some(inner) => solved(Next::RedeemScript, vec![inner]),
                None => unsolved(Next::RedeemScript),
            },
            TxoutType::WitnessV0KeyHash(hash) => solved(Next::KeyHash, vec![hash.to_vec()]),
            TxoutType::WitnessV0ScriptHash(hash) => match self.find_script(&ripemd160(hash), data) {
                Some(inner) => solved(Next::WitnessScript, vec![inner]),
                None => unsolved(Next::WitnessScript),
            },
            TxoutType::WitnessV1Taproot(key) => match self.sign_taproot(key) {
                Some(signature) => solved(Next::Taproot, vec![signature]),
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
        let private: &PrivateKey = self.keys.keys.get(&hash)?;
        if is_witness_v0 && !private.is_compressed() {
            return None;
        }
        let hash_type = if self.hash_type == SIGHASH_DEFAULT { SIGHASH_ALL } else { u32::from(self.hash_type) };
        let digest = match is_witness_v0 {
            true => self.context.segwit_v0(self.index, script, hash_type),
            false => self.context.legacy(self.index, script, hash_type, &mut LegacyCache::new()),
        };
        let mut signature = private.sign_ecdsa(digest);
        signature.push(u8::try_from(hash_type).ok()?);
        data.signatures.insert(hash, (key.to_vec(), signature.clone()));
        Some(signature)
    }

    /// Signs for the output key itself; what a key was tweaked with is not known here.
    fn sign_taproot(&self, output_key: &[u8; 32]) -> Option<Vec<u8>> {
        let of_parity = |parity: u8| self.keys.keys.get(&hash160(&[&[parity][..], output_key].concat()));
        let private = of_parity(2).or_else(|| of_parity(3))?;
        if !self.knows_outputs {
            return None;
        }
        let ext = TaprootExt { annex_hash: None, leaf: None };
        let digest = self.context.taproot(self.index, self.hash_type, &ext)?;
        let mut signature = private.sign_schnorr(&digest).to_vec();
        signature.extend((self.hash_type != SIGHASH_DEFAULT).then_some(self.hash_type));
        Some(signature)
    }

    fn find_key(&self, hash: &[u8; 20], data: &SignatureData) -> Option<Vec<u8>> {
        let signed = data.signatures.get(hash).map(|(key, _)| key.clone());
        signed.or_else(|| self.keys.keys.get(hash).map(|private| private.public_key().to_vec()))
    }

    fn find_script(&self, hash: &[u8; 20], data: &SignatureData) -> Option<Vec<u8>> {
        let known = self.keys.scripts.get(hash);
        let of_input = [&data.redeem_script, &data.witness_script];
        known.or_else(|| of_input.into_iter().find(|script| hash160(script) == *hash)).cloned()
    }
}

/// The means of a signer for a witness script.
struct WitnessMeans<'m, 's, 'a> {
    signer: &'m Signer<'s, 'a>,
    script: &'m [u8],
    data: &'m mut SignatureData,
}

impl WitnessMeans<'_, '_, '_> {
    fn checks(&self) -> InputChecks<'_, '_> {
        InputChecks::new(self.signer.context, self.signer.index)
    }
}

impl Means for WitnessMeans<'_, '_, '_> {
    fn sign(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        self.signer.sign(key, self.script, true, self.data)
    }

    fn is_after(&self, lock_time: u32) -> bool {
        self.checks().lock_time_holds(i64::from(lock_time))
    }

    fn is_older(&self, lock_time: u32) -> bool {
        self.checks().sequence_holds(i64::from(lock_time))
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
