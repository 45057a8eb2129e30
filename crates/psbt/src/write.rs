//! Writing a PSBT: Core's `Serialize`, with the fields in Core's order.
//!
//! Input: a [`Psbt`]. Output: bytes, or base 64. An input with final scripts loses what led to them, as in Core.

use crate::fields::COMPRESSED;
use crate::input::kind as input_kind;
use crate::output::kind as output_kind;
use crate::read::{MAGIC, kind as global_kind};
use crate::types::{Input, Output, Proprietary, Psbt, TaprootOrigins, Unknown};
use lydian_descriptor::{KeyOrigin, MusigParticipants};
use lydian_primitives::build::{MutTx, write_var_bytes};
use lydian_primitives::{compact_size_len, write_compact_size};
use lydian_stdx::base64;
use std::collections::BTreeMap;

/// Ends a map.
const SEPARATOR: u8 = 0;

/// Appends a key: its type and its data.
fn write_key(out: &mut Vec<u8>, kind: usize, data: &[&[u8]]) {
    let size: usize = data.iter().map(|part| part.len()).sum();
    write_compact_size(out, compact_size_len(kind) + size);
    write_compact_size(out, kind);
    data.iter().for_each(|part| out.extend_from_slice(part));
}

fn write_field(out: &mut Vec<u8>, kind: usize, data: &[&[u8]], value: &[u8]) {
    write_key(out, kind, data);
    write_var_bytes(out, value);
}

/// Appends a field that is left out if it is empty.
fn write_if_given(out: &mut Vec<u8>, kind: usize, value: &[u8]) {
    if !value.is_empty() {
        write_field(out, kind, &[], value);
    }
}

fn write_number(out: &mut Vec<u8>, kind: usize, number: Option<u32>) {
    if let Some(number) = number {
        write_field(out, kind, &[], &number.to_le_bytes());
    }
}

fn write_count(out: &mut Vec<u8>, kind: usize, count: usize) {
    let mut value = Vec::new();
    write_compact_size(&mut value, count);
    write_field(out, kind, &[], &value);
}

fn append_origin(out: &mut Vec<u8>, origin: &KeyOrigin) {
    out.extend_from_slice(&origin.fingerprint);
    origin.path.iter().for_each(|step| out.extend_from_slice(&step.to_le_bytes()));
}

fn write_origin(out: &mut Vec<u8>, origin: &KeyOrigin) {
    write_compact_size(out, 4 * (origin.path.len() + 1));
    append_origin(out, origin);
}

fn write_origins(out: &mut Vec<u8>, kind: usize, origins: &BTreeMap<Vec<u8>, KeyOrigin>) {
    for (key, origin) in origins {
        write_key(out, kind, &[key]);
        write_origin(out, origin);
    }
}

fn write_taproot_origins(out: &mut Vec<u8>, kind: usize, origins: &TaprootOrigins) {
    for (key, (leaves, origin)) in origins {
        let mut value = Vec::new();
        write_compact_size(&mut value, leaves.len());
        leaves.iter().for_each(|leaf| value.extend_from_slice(leaf));
        append_origin(&mut value, origin);
        write_field(out, kind, &[key], &value);
    }
}

fn write_participants(out: &mut Vec<u8>, kind: usize, participants: &MusigParticipants) {
    for (aggregate, keys) in participants {
        write_field(out, kind, &[aggregate], &keys.concat());
    }
}

fn write_proprietary(out: &mut Vec<u8>, fields: &BTreeMap<Vec<u8>, Proprietary>) {
    for (key, field) in fields {
        write_var_bytes(out, key);
        write_var_bytes(out, &field.value);
    }
}

fn write_unknown(out: &mut Vec<u8>, unknown: &Unknown) {
    for (key, value) in unknown {
        write_var_bytes(out, key);
        write_var_bytes(out, value);
    }
}

impl Psbt {
    /// The PSBT as it is passed on.
    pub fn to_base64(&self) -> String {
        base64(&self.to_bytes())
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        if self.version < 2 {
            // In version 0 the lock time always exists.
            let tx = self.unsigned_tx().unwrap_or_default();
            write_field(&mut out, global_kind::UNSIGNED_TX, &[], &tx.encode_stripped());
        }
        for (origin, xpubs) in &self.xpubs {
            for xpub in xpubs {
                write_key(&mut out, global_kind::XPUB, &[&xpub.0]);
                write_origin(&mut out, origin);
            }
        }
        if self.version >= 2 {
            write_number(&mut out, global_kind::TX_VERSION, Some(self.tx_version));
            write_number(&mut out, global_kind::FALLBACK_LOCK_TIME, self.fallback_lock_time);
            write_count(&mut out, global_kind::INPUT_COUNT, self.inputs.len());
            write_count(&mut out, global_kind::OUTPUT_COUNT, self.outputs.len());
            if let Some(bits) = self.modifiable {
                write_field(&mut out, global_kind::TX_MODIFIABLE, &[], &[bits]);
            }
            write_number(&mut out, global_kind::VERSION, Some(self.version));
        }
        write_proprietary(&mut out, &self.proprietary);
        write_unknown(&mut out, &self.unknown);
        out.push(SEPARATOR);
        self.inputs.iter().for_each(|input| input.write(self.version, &mut out));
        self.outputs.iter().for_each(|output| output.write(self.version, &mut out));
        out
    }
}

impl Input {
    fn write(&self, version: u32, out: &mut Vec<u8>) {
        if let Some(tx) = &self.non_witness_utxo {
            // Core leaves out the witness.
            let tx = tx.view();
            let stripped = tx.has_witness().then(|| MutTx::from(tx).encode_stripped());
            write_field(out, input_kind::NON_WITNESS_UTXO, &[], stripped.as_deref().unwrap_or(tx.bytes()));
        }
        if let Some(utxo) = &self.witness_utxo {
            let mut value = utxo.value.0.to_le_bytes().to_vec();
            write_var_bytes(&mut value, &utxo.script_pubkey);
            write_field(out, input_kind::WITNESS_UTXO, &[], &value);
        }
        if !self.is_signed() {
            self.write_unsigned(out);
            self.write_taproot(out);
            self.write_musig(out);
        }
        write_if_given(out, input_kind::SCRIPT_SIG, &self.final_script_sig);
        if !self.final_witness.is_empty() {
            let mut value = Vec::new();
            write_compact_size(&mut value, self.final_witness.len());
            self.final_witness.iter().for_each(|element| write_var_bytes(&mut value, element));
            write_field(out, input_kind::SCRIPT_WITNESS, &[], &value);
        }
        if version >= 2 {
            write_field(out, input_kind::PREVIOUS_TXID, &[], &self.prevout.txid.0);
            write_number(out, input_kind::OUTPUT_INDEX, Some(self.prevout.vout));
            write_number(out, input_kind::SEQUENCE, self.sequence);
            write_number(out, input_kind::REQUIRED_TIME_LOCK, self.time_lock);
            write_number(out, input_kind::REQUIRED_HEIGHT_LOCK, self.height_lock);
        }
        write_proprietary(out, &self.proprietary);
        write_unknown(out, &self.unknown);
        out.push(SEPARATOR);
    }

    /// The fields of BIP-0174 before an input is final.
    fn write_unsigned(&self, out: &mut Vec<u8>) {
        for (key, signature) in self.signatures.values() {
            write_field(out, input_kind::PARTIAL_SIG, &[key], signature);
        }
        if let Some(sighash_type) = self.sighash_type {
            write_field(out, input_kind::SIGHASH, &[], &sighash_type.to_le_bytes());
        }
        write_if_given(out, input_kind::REDEEM_SCRIPT, &self.redeem_script);
        write_if_given(out, input_kind::WITNESS_SCRIPT, &self.witness_script);
        write_origins(out, input_kind::BIP32_DERIVATION, &self.origins);
        let preimages = [
            (input_kind::RIPEMD160, &self.preimages.ripemd160),
            (input_kind::SHA256, &self.preimages.sha256),
            (input_kind::HASH160, &self.preimages.hash160),
            (input_kind::HASH256, &self.preimages.hash256),
        ];
        for (kind, map) in preimages {
            map.iter().for_each(|(hash, preimage)| write_field(out, kind, &[hash], preimage));
        }
    }

    fn write_taproot(&self, out: &mut Vec<u8>) {
        write_if_given(out, input_kind::TAP_KEY_SIG, &self.taproot_key_signature);
        for ((key, leaf), signature) in &self.taproot_script_signatures {
            write_field(out, input_kind::TAP_SCRIPT_SIG, &[key, leaf], signature);
        }
        for ((script, version), control_blocks) in &self.leaf_scripts {
            let value = [&script[..], &[*version]].concat();
            for control_block in control_blocks {
                write_field(out, input_kind::TAP_LEAF_SCRIPT, &[&control_block.0], &value);
            }
        }
        write_taproot_origins(out, input_kind::TAP_BIP32_DERIVATION, &self.taproot_origins);
        write_if_given(out, input_kind::TAP_INTERNAL_KEY, self.internal_key.as_ref().map_or(&[], |key| key));
        write_if_given(out, input_kind::TAP_MERKLE_ROOT, self.merkle_root.as_ref().map_or(&[], |root| root));
    }

    fn write_musig(&self, out: &mut Vec<u8>) {
        write_participants(out, input_kind::MUSIG2_PARTICIPANTS, &self.musig_participants);
        for ((aggregate, leaf), nonces) in &self.musig_nonces {
            for (participant, nonce) in nonces {
                write_musig_field(out, input_kind::MUSIG2_PUB_NONCE, (participant, aggregate, leaf), nonce);
            }
        }
        for ((aggregate, leaf), partials) in &self.musig_partials {
            for (participant, partial) in partials {
                write_musig_field(out, input_kind::MUSIG2_PARTIAL_SIG, (participant, aggregate, leaf), partial);
            }
        }
    }
}

/// A leaf of zeros is the key path.
fn write_musig_field(
    out: &mut Vec<u8>,
    kind: usize,
    (participant, aggregate, leaf): (&[u8; COMPRESSED], &[u8; COMPRESSED], &[u8; 32]),
    value: &[u8],
) {
    let leaf: &[u8] = if *leaf == [0; 32] { &[] } else { leaf };
    write_field(out, kind, &[participant, aggregate, leaf], value);
}

impl Output {
    fn write(&self, version: u32, out: &mut Vec<u8>) {
        write_if_given(out, output_kind::REDEEM_SCRIPT, &self.redeem_script);
        write_if_given(out, output_kind::WITNESS_SCRIPT, &self.witness_script);
        write_origins(out, output_kind::BIP32_DERIVATION, &self.origins);
        if version >= 2 {
            write_field(out, output_kind::AMOUNT, &[], &self.amount.0.to_le_bytes());
            write_field(out, output_kind::SCRIPT, &[], &self.script);
        }
        write_proprietary(out, &self.proprietary);
        write_if_given(out, output_kind::TAP_INTERNAL_KEY, self.internal_key.as_ref().map_or(&[], |key| key));
        let mut tree = Vec::new();
        for (depth, leaf_version, script) in &self.taproot_tree {
            tree.extend_from_slice(&[*depth, *leaf_version]);
            write_var_bytes(&mut tree, script);
        }
        write_if_given(out, output_kind::TAP_TREE, &tree);
        write_taproot_origins(out, output_kind::TAP_BIP32_DERIVATION, &self.taproot_origins);
        write_participants(out, output_kind::MUSIG2_PARTICIPANTS, &self.musig_participants);
        write_unknown(out, &self.unknown);
        out.push(SEPARATOR);
    }
}
