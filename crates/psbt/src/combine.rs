//! Combining PSBTs of one transaction, and joining PSBTs of several: Core's `Merge`, and `joinpsbts`.
//!
//! Input: PSBTs. Output: one PSBT. Of two values of one field, the first wins.

use crate::types::{HAS_SIGHASH_SINGLE, Input, Output, Psbt};
use lydian_primitives::OutPoint;
use lydian_primitives::build::MutTx;
use std::collections::{BTreeMap, HashSet};

/// Adds the entries of `other` whose keys are new.
fn add_entries<K: Ord, V>(map: &mut BTreeMap<K, V>, other: BTreeMap<K, V>) {
    for (key, value) in other {
        map.entry(key).or_insert(value);
    }
}

/// Like [`add_entries`] for maps inside of a map.
fn add_nested<A: Ord, K: Ord, V>(map: &mut BTreeMap<A, BTreeMap<K, V>>, other: BTreeMap<A, BTreeMap<K, V>>) {
    for (key, inner) in other {
        add_entries(map.entry(key).or_default(), inner);
    }
}

fn add_bytes(bytes: &mut Vec<u8>, other: Vec<u8>) {
    if bytes.is_empty() {
        *bytes = other;
    }
}

fn add_option<T>(value: &mut Option<T>, other: Option<T>) {
    *value = value.take().or(other);
}

impl Psbt {
    /// Adds the fields of a PSBT of the same transaction: Core's `Merge`. Returns false if the transactions or the
    /// versions differ.
    #[must_use]
    pub fn merge(&mut self, other: Psbt) -> bool {
        let id = self.unique_id();
        if id.is_none() || id != other.unique_id() || self.version != other.version {
            return false;
        }
        // The transactions are the same, so that inputs and outputs are as many.
        for (input, other) in self.inputs.iter_mut().zip(other.inputs) {
            input.merge(other);
        }
        for (output, other) in self.outputs.iter_mut().zip(other.outputs) {
            output.merge(other);
        }
        for (origin, xpubs) in other.xpubs {
            self.xpubs.entry(origin).or_default().extend(xpubs);
        }
        add_option(&mut self.fallback_lock_time, other.fallback_lock_time);
        if self.modifiable.is_some() || other.modifiable.is_some() {
            let (a, b) = (self.modifiable.unwrap_or(0), other.modifiable.unwrap_or(0));
            self.modifiable = Some(a & b | (a | b) & HAS_SIGHASH_SINGLE);
        }
        add_entries(&mut self.proprietary, other.proprietary);
        add_entries(&mut self.unknown, other.unknown);
        true
    }
}

impl Input {
    fn merge(&mut self, other: Input) {
        add_option(&mut self.non_witness_utxo, other.non_witness_utxo);
        add_option(&mut self.witness_utxo, other.witness_utxo);
        add_entries(&mut self.signatures, other.signatures);
        self.preimages.merge(other.preimages);
        add_entries(&mut self.origins, other.origins);
        add_entries(&mut self.proprietary, other.proprietary);
        add_entries(&mut self.unknown, other.unknown);
        add_entries(&mut self.taproot_script_signatures, other.taproot_script_signatures);
        add_entries(&mut self.leaf_scripts, other.leaf_scripts);
        add_entries(&mut self.taproot_origins, other.taproot_origins);
        add_bytes(&mut self.redeem_script, other.redeem_script);
        add_bytes(&mut self.witness_script, other.witness_script);
        add_bytes(&mut self.final_script_sig, other.final_script_sig);
        if self.final_witness.is_empty() {
            self.final_witness = other.final_witness;
        }
        add_bytes(&mut self.taproot_key_signature, other.taproot_key_signature);
        add_option(&mut self.internal_key, other.internal_key);
        add_option(&mut self.merkle_root, other.merkle_root);
        add_entries(&mut self.musig_participants, other.musig_participants);
        add_nested(&mut self.musig_nonces, other.musig_nonces);
        add_nested(&mut self.musig_partials, other.musig_partials);
        add_option(&mut self.sequence, other.sequence);
        add_option(&mut self.time_lock, other.time_lock);
        add_option(&mut self.height_lock, other.height_lock);
    }
}

impl Output {
    fn merge(&mut self, other: Output) {
        add_entries(&mut self.origins, other.origins);
        add_entries(&mut self.proprietary, other.proprietary);
        add_entries(&mut self.unknown, other.unknown);
        add_entries(&mut self.taproot_origins, other.taproot_origins);
        add_bytes(&mut self.redeem_script, other.redeem_script);
        add_bytes(&mut self.witness_script, other.witness_script);
        add_option(&mut self.internal_key, other.internal_key);
        if self.taproot_tree.is_empty() {
            self.taproot_tree = other.taproot_tree;
        }
        add_entries(&mut self.musig_participants, other.musig_participants);
    }
}

/// Joins PSBTs of version 0 into one with the inputs and outputs of all, without signatures, and with unknown global
/// fields but without extended keys, as Core's `joinpsbts`. `shuffle` returns the numbers below its argument in any
/// order. Fails with an outpoint that occurs twice.
pub fn join(psbts: Vec<Psbt>, mut shuffle: impl FnMut(usize) -> Vec<usize>) -> Result<Psbt, OutPoint> {
    let version = psbts.iter().map(|psbt| psbt.tx_version).max().unwrap_or(1).max(1);
    let lock_time = psbts.iter().map(|psbt| psbt.fallback_lock_time.unwrap_or(0)).min().unwrap_or(0);
    let mut joined = Psbt::new(&MutTx { version, lock_time, ..MutTx::default() }, 0);
    let (mut inputs, mut outputs, mut prevouts) = (Vec::new(), Vec::new(), HashSet::new());
    for psbt in psbts {
        for mut input in psbt.inputs {
            if !prevouts.insert(input.prevout) {
                return Err(input.prevout);
            }
            input.signatures.clear();
            input.final_script_sig.clear();
            input.final_witness.clear();
            inputs.push(Some(input));
        }
        outputs.extend(psbt.outputs.into_iter().map(Some));
        add_entries(&mut joined.unknown, psbt.unknown);
    }
    joined.inputs = shuffle(inputs.len()).into_iter().filter_map(|index| inputs.get_mut(index)?.take()).collect();
    joined.outputs = shuffle(outputs.len()).into_iter().filter_map(|index| outputs.get_mut(index)?.take()).collect();
    Ok(joined)
}
