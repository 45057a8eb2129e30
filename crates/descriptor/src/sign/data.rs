//! What is known about the signatures of one input: Core's `SignatureData` and `DataFromTransaction`.
//!
//! Input: an input, signed, partly signed or not signed. Output: its scripts, and the signatures that hold.

use super::checker::Collector;
use super::{
    Batch, KeyOrigin, Missing, MusigMemo, MusigNonces, MusigPartials, MusigParticipants, Preimages, Signatures,
    TaprootSpend, TaprootTree,
};
use crate::solver::{TxoutType, solve};
use lydian_hash::hash160;
use lydian_primitives::build::{MutInput, write_var_bytes};
use lydian_primitives::{Tx, Witness};
use lydian_script::{Checker, Flags, InputChecks, LegacyCache, ScriptError, Scripts, TxContext, verify_script_with};
use std::collections::{BTreeMap, BTreeSet};

/// Core's `SignatureData`.
#[derive(Clone, Debug, Default)]
pub struct SignatureData {
    /// The input verifies.
    pub is_complete: bool,
    /// The output is spent by a witness.
    pub is_witness: bool,
    pub script_sig: Vec<u8>,
    pub witness: Vec<Vec<u8>>,
    pub redeem_script: Vec<u8>,
    pub witness_script: Vec<u8>,
    pub signatures: Signatures,
    /// Keys with their origins, by the hashes of the keys.
    pub origins: BTreeMap<[u8; 20], (Vec<u8>, KeyOrigin)>,
    pub taproot: TaprootSpend,
    /// The tree of an output.
    pub tree: Option<TaprootTree>,
    pub taproot_key_signature: Vec<u8>,
    /// By x-only key and leaf hash.
    pub taproot_script_signatures: BTreeMap<([u8; 32], [u8; 32]), Vec<u8>>,
    /// X-only keys with the leaves that contain them, and their origins.
    pub taproot_origins: BTreeMap<[u8; 32], (BTreeSet<[u8; 32]>, KeyOrigin)>,
    /// X-only keys by their hashes.
    pub x_only_keys: BTreeMap<[u8; 20], [u8; 32]>,
    pub preimages: Preimages,
    pub musig_participants: MusigParticipants,
    /// What was computed from the participants.
    pub musig_memo: MusigMemo,
    pub musig_nonces: MusigNonces,
    pub musig_partials: MusigPartials,
    pub missing: Missing,
}

impl SignatureData {
    /// Reads what an input contains: Core's `DataFromTransaction`. `tx` has the input; the context may be that of a
    /// copy with other signatures.
    pub(super) fn of_input(context: &TxContext<'_>, index: usize, tx: Tx<'_>, batch: &Batch<'_>) -> SignatureData {
        let input = tx.input(index);
        let script_pubkey = context.spent(index).script_pubkey;
        let mut data = SignatureData {
            script_sig: input.script_sig.to_vec(),
            witness: input.witness.iter().map(<[u8]>::to_vec).collect(),
            ..SignatureData::default()
        };
        // Core knows too little here to verify taproot signatures.
        let mut collector = Collector::new(batch, false);
        let scripts = Scripts { script_sig: input.script_sig, script_pubkey, witness: input.witness };
        data.is_complete = batch
            .with_legacy(|cache| verify_script_with(&scripts, Flags::STANDARD, context, index, &mut collector, cache))
            .is_ok();
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

    /// Verifies the input with these scripts.
    pub(super) fn verify(
        &self,
        context: &TxContext<'_>,
        index: usize,
        script_pubkey: &[u8],
        checker: &mut impl Checker,
        cache: &mut LegacyCache,
    ) -> Result<(), ScriptError> {
        verify_scripts(context, index, (script_pubkey, &self.script_sig, &self.witness), checker, cache)
    }
}

/// Verifies an input with any scripts, under the flags of policy.
pub(super) fn verify_scripts(
    context: &TxContext<'_>,
    index: usize,
    (script_pubkey, script_sig, witness): (&[u8], &[u8], &[Vec<u8>]),
    checker: &mut impl Checker,
    cache: &mut LegacyCache,
) -> Result<(), ScriptError> {
    let mut bytes = Vec::new();
    witness.iter().for_each(|element| write_var_bytes(&mut bytes, element));
    // What was just written is parsed.
    let witness = Witness::parse(&bytes, witness.len()).map_err(|_| ScriptError::UnknownError)?;
    let scripts = Scripts { script_sig, script_pubkey, witness };
    verify_script_with(&scripts, Flags::STANDARD, context, index, checker, cache)
}
