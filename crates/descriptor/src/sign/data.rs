//! What is known about the signatures of one input: Core's `SignatureData` and `DataFromTransaction`.
//!
//! Input: an input, signed, partly signed or not signed. Output: its scripts, and the signatures that hold.

use crate::solver::{TxoutType, solve};
use lydian_curve::PublicKeyBytes;
use lydian_hash::hash160;
use lydian_primitives::build::{MutInput, write_var_bytes};
use lydian_primitives::{Tx, Witness};
use lydian_script::{Checker, Flags, Inline, InputChecks, ScriptError, Scripts, TxContext, verify_script};
use std::collections::BTreeMap;

/// Signatures with their keys, by the hashes of the keys.
pub(super) type Signatures = BTreeMap<[u8; 20], (Vec<u8>, Vec<u8>)>;

/// Core's `SignatureData`.
#[derive(Clone, Debug, Default)]
pub(super) struct SignatureData {
    /// The input verifies.
    pub(super) is_complete: bool,
    /// The output is spent by a witness.
    pub(super) is_witness: bool,
    pub(super) script_sig: Vec<u8>,
    pub(super) witness: Vec<Vec<u8>>,
    pub(super) redeem_script: Vec<u8>,
    pub(super) witness_script: Vec<u8>,
    pub(super) signatures: Signatures,
}

impl SignatureData {
    /// Reads what an input contains: Core's `DataFromTransaction`. `tx` has the input; the context may be that of a
    /// copy with other signatures.
    pub(super) fn of_input(context: &TxContext<'_>, index: usize, tx: Tx<'_>) -> SignatureData {
        let input = tx.input(index);
        let script_pubkey = context.spent(index).script_pubkey;
        let mut data = SignatureData {
            script_sig: input.script_sig.to_vec(),
            witness: input.witness.iter().map(<[u8]>::to_vec).collect(),
            ..SignatureData::default()
        };
        // Core knows too little here to verify taproot signatures.
        let mut collector = Collector::new(false);
        let scripts = Scripts { script_sig: input.script_sig, script_pubkey, witness: input.witness };
        data.is_complete = verify_script(&scripts, Flags::STANDARD, context, index, &mut collector).is_ok();
        data.signatures = collector.signatures;
        if !data.is_complete {
            data.read_scripts(&InputChecks::new(context, index), script_pubkey);
        }
        data
    }

    /// Finds the scripts that the output commits to, and the signatures of a multisig.
    fn read_scripts(&mut self, checks: &InputChecks<'_, '_>, script_pubkey: &[u8]) {
        let mut stack = checks.stack_after(&self.script_sig);
        let (mut script, mut is_witness_v0) = (script_pubkey.to_vec(), false);
        if matches!(solve(&script), TxoutType::ScriptHash(_))
            && let Some(redeem_script) = stack.pop_if(|last| !last.is_empty())
        {
            self.redeem_script.clone_from(&redeem_script);
            script = redeem_script;
        }
        if matches!(solve(&script), TxoutType::WitnessV0ScriptHash(_))
            && let Some((witness_script, below)) = self.witness.split_last().filter(|(last, _)| !last.is_empty())
        {
            self.witness_script.clone_from(witness_script);
            stack = below.to_vec();
            (script, is_witness_v0) = (witness_script.clone(), true);
        }
        let TxoutType::Multisig { keys, .. } = solve(&script) else { return };
        // Signatures are in the order of their keys.
        let mut next = 0;
        for signature in &stack {
            let mut rest = keys.iter().enumerate().skip(next);
            let found = rest.find(|(_, key)| {
                self.signatures.contains_key(&hash160(key))
                    || checks.ecdsa_holds(is_witness_v0, signature, key, &script)
            });
            if let Some((place, key)) = found {
                self.signatures.entry(hash160(key)).or_insert_with(|| (key.to_vec(), signature.clone()));
                next = place + 1;
            }
        }
    }

    /// Adds what another copy of the input contains: Core's `MergeSignatureData`.
    pub(super) fn merge(&mut self, other: SignatureData) {
        if self.is_complete {
            return;
        }
        if other.is_complete {
            *self = other;
            return;
        }
        if self.redeem_script.is_empty() {
            self.redeem_script = other.redeem_script;
        }
        if self.witness_script.is_empty() {
            self.witness_script = other.witness_script;
        }
        for (hash, signature) in other.signatures {
            self.signatures.entry(hash).or_insert(signature);
        }
    }

    /// Core's `UpdateInput`.
    pub(super) fn move_to(self, input: &mut MutInput) {
        input.script_sig = self.script_sig;
        input.witness = self.witness;
    }

    /// Verifies the input with these scripts. `knows_outputs`: every output that the transaction spends is known, which
    /// taproot signatures commit to.
    pub(super) fn verify(
        &self,
        context: &TxContext<'_>,
        index: usize,
        script_pubkey: &[u8],
        knows_outputs: bool,
    ) -> Result<(), ScriptError> {
        let mut bytes = Vec::new();
        self.witness.iter().for_each(|element| write_var_bytes(&mut bytes, element));
        // What was just written is parsed.
        let witness = Witness::parse(&bytes, self.witness.len()).map_err(|_| ScriptError::UnknownError)?;
        let scripts = Scripts { script_sig: &self.script_sig, script_pubkey, witness };
        verify_script(&scripts, Flags::STANDARD, context, index, &mut Collector::new(knows_outputs))
    }
}

/// Decides with libsecp256k1, and collects the ECDSA signatures that hold: Core's `SignatureExtractorChecker`.
#[derive(Debug)]
pub(super) struct Collector {
    has_schnorr: bool,
    pub(super) signatures: Signatures,
}

impl Collector {
    /// `has_schnorr`: BIP-0340 signatures are decided; if not, they do not hold.
    pub(super) fn new(has_schnorr: bool) -> Collector {
        Collector { has_schnorr, signatures: Signatures::new() }
    }
}

impl Checker for Collector {
    fn ecdsa(&mut self, key: PublicKeyBytes, signature: [u8; 64], digest: impl FnOnce() -> [u8; 32]) -> bool {
        Inline.ecdsa(key, signature, digest)
    }

    fn ecdsa_held(&mut self, key: &[u8], signature: &[u8]) {
        self.signatures.entry(hash160(key)).or_insert_with(|| (key.to_vec(), signature.to_vec()));
    }

    fn schnorr(
        &mut self,
        key: [u8; 32],
        signature: [u8; 64],
        digest: impl FnOnce() -> Option<[u8; 32]>,
    ) -> Option<bool> {
        if self.has_schnorr { Inline.schnorr(key, signature, digest) } else { None }
    }

    fn tweak(&mut self, output: [u8; 32], is_odd: bool, internal: [u8; 32], tweak: [u8; 32]) -> bool {
        Inline.tweak(output, is_odd, internal, tweak)
    }
}
