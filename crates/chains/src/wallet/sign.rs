//! Signature messages and signing.
//!
//! The messages are implemented here a second time, from the BIPs and for structures under construction, with
//! SIGHASH_ALL and SIGHASH_DEFAULT only: the signer shares no code with the verifier that it is used to test.

use super::lock::{Lock, Opened, leaf_hash};
use super::script::{OP_0, Script, p2pkh};
use super::{Kind, LEAF_VERSION_TAPSCRIPT};
use lydian_hash::{TAP_SIGHASH, hash160, sha256, sha256d};
use lydian_primitives::build::{MutTx, write_var_bytes};
use lydian_primitives::write_compact_size;
use secp256k1::{Keypair, Message, ecdsa, schnorr};

const SIGHASH_ALL: u8 = 1;

/// A transaction's spent outputs, and the parts of messages that all inputs share (computed when needed).
#[derive(Clone, Debug)]
pub struct Spending<'a> {
    /// Value in satoshis and script of each output spent.
    spent: &'a [(i64, Vec<u8>)],
    shared: Option<Shared>,
}

/// SHA-256 of each list of the transaction (BIP-0341); BIP-0143 hashes them a second time.
#[derive(Clone, Copy, Debug)]
struct Shared {
    prevouts: [u8; 32],
    amounts: [u8; 32],
    scripts: [u8; 32],
    sequences: [u8; 32],
    outputs: [u8; 32],
}

impl<'a> Spending<'a> {
    pub fn new(spent: &'a [(i64, Vec<u8>)]) -> Spending<'a> {
        Spending { spent, shared: None }
    }

    /// Computes the shared parts now, so that clones need not.
    pub fn fill(&mut self, tx: &MutTx) {
        self.shared(tx);
    }

    fn shared(&mut self, tx: &MutTx) -> Shared {
        *self.shared.get_or_insert_with(|| {
            let list = |fill: &mut dyn FnMut(&mut Vec<u8>)| {
                let mut bytes = Vec::new();
                fill(&mut bytes);
                sha256(&bytes)
            };
            Shared {
                prevouts: list(&mut |out| tx.inputs.iter().for_each(|i| out.extend_from_slice(&i.prevout.to_bytes()))),
                sequences: list(&mut |out| {
                    tx.inputs.iter().for_each(|i| out.extend_from_slice(&i.sequence.to_le_bytes()));
                }),
                amounts: list(&mut |out| self.spent.iter().for_each(|s| out.extend_from_slice(&s.0.to_le_bytes()))),
                scripts: list(&mut |out| self.spent.iter().for_each(|s| write_var_bytes(out, &s.1))),
                outputs: list(&mut |out| {
                    for output in &tx.outputs {
                        out.extend_from_slice(&output.value.0.to_le_bytes());
                        write_var_bytes(out, &output.script_pubkey);
                    }
                }),
            }
        })
    }

    /// BIP-0143 with SIGHASH_ALL.
    pub fn segwit_v0(&mut self, tx: &MutTx, index: usize, script_code: &[u8]) -> [u8; 32] {
        let shared = self.shared(tx);
        let input = &tx.inputs[index];
        let mut bytes = tx.version.to_le_bytes().to_vec();
        bytes.extend_from_slice(&sha256(&shared.prevouts));
        bytes.extend_from_slice(&sha256(&shared.sequences));
        bytes.extend_from_slice(&input.prevout.to_bytes());
        write_var_bytes(&mut bytes, script_code);
        bytes.extend_from_slice(&self.spent[index].0.to_le_bytes());
        bytes.extend_from_slice(&input.sequence.to_le_bytes());
        bytes.extend_from_slice(&sha256(&shared.outputs));
        bytes.extend_from_slice(&tx.lock_time.to_le_bytes());
        bytes.extend_from_slice(&u32::from(SIGHASH_ALL).to_le_bytes());
        sha256d(&bytes)
    }

    /// BIP-0341 with SIGHASH_DEFAULT and no annex; `leaf` for a script path without OP_CODESEPARATOR (BIP-0342).
    pub fn taproot(&mut self, tx: &MutTx, index: usize, leaf: Option<&[u8; 32]>) -> [u8; 32] {
        let shared = self.shared(tx);
        let mut hasher = TAP_SIGHASH.engine();
        hasher.update(&[0, 0]).update(&tx.version.to_le_bytes()).update(&tx.lock_time.to_le_bytes());
        hasher.update(&shared.prevouts).update(&shared.amounts).update(&shared.scripts);
        hasher.update(&shared.sequences).update(&shared.outputs);
        let position = u32::try_from(index).unwrap_or(u32::MAX).to_le_bytes();
        hasher.update(&[if leaf.is_some() { 2 } else { 0 }]).update(&position);
        if let Some(leaf) = leaf {
            hasher.update(leaf).update(&[0]).update(&u32::MAX.to_le_bytes());
        }
        hasher.finalize()
    }
}

/// The original message with SIGHASH_ALL: all scripts except this input's are empty.
pub fn legacy_message(tx: &MutTx, index: usize, script_code: &[u8]) -> [u8; 32] {
    let mut bytes = tx.version.to_le_bytes().to_vec();
    write_compact_size(&mut bytes, tx.inputs.len());
    for (at, input) in tx.inputs.iter().enumerate() {
        bytes.extend_from_slice(&input.prevout.to_bytes());
        write_var_bytes(&mut bytes, if at == index { script_code } else { &[] });
        bytes.extend_from_slice(&input.sequence.to_le_bytes());
    }
    write_compact_size(&mut bytes, tx.outputs.len());
    for output in &tx.outputs {
        bytes.extend_from_slice(&output.value.0.to_le_bytes());
        write_var_bytes(&mut bytes, &output.script_pubkey);
    }
    bytes.extend_from_slice(&tx.lock_time.to_le_bytes());
    bytes.extend_from_slice(&u32::from(SIGHASH_ALL).to_le_bytes());
    sha256d(&bytes)
}

/// DER signature with low s, followed by SIGHASH_ALL.
pub fn ecdsa_signature(key: &Keypair, message: [u8; 32]) -> Vec<u8> {
    let mut bytes = ecdsa::sign(Message::from_digest(message), &key.secret_key()).serialize_der().to_vec();
    bytes.push(SIGHASH_ALL);
    bytes
}

/// BIP-0340 signature without auxiliary randomness.
pub fn schnorr_signature(key: &Keypair, message: [u8; 32]) -> Vec<u8> {
    schnorr::sign_no_aux_rand(&message, key).to_byte_array().to_vec()
}

/// Sets script and witness of the input at `index`, which spends a coin with this lock.
pub fn sign_input(tx: &mut MutTx, index: usize, lock: Lock, opened: &Opened, spending: &mut Spending<'_>) {
    let key = &opened.keys[0];
    let compressed = key.public_key().serialize();
    match lock.kind {
        Kind::P2pkh | Kind::P2pkhUncompressed => {
            let signature = ecdsa_signature(key, legacy_message(tx, index, &opened.script_pubkey));
            let uncompressed = key.public_key().serialize_uncompressed();
            let public: &[u8] = if lock.kind == Kind::P2pkh { &compressed } else { &uncompressed };
            tx.inputs[index].script_sig = Script::new().push(&signature).push(public).build();
        }
        Kind::P2wpkh | Kind::P2shP2wpkh => {
            let message = spending.segwit_v0(tx, index, &p2pkh(&hash160(&compressed)));
            tx.inputs[index].witness = vec![ecdsa_signature(key, message), compressed.to_vec()];
            if lock.kind == Kind::P2shP2wpkh {
                tx.inputs[index].script_sig = Script::new().push(&opened.script).build();
            }
        }
        Kind::P2wsh2of3 => {
            let message = spending.segwit_v0(tx, index, &opened.script);
            let [first, second] = lock.signers().map(|at| ecdsa_signature(&opened.keys[at], message));
            tx.inputs[index].witness = vec![Vec::new(), first, second, opened.script.clone()];
        }
        Kind::P2sh2of3 | Kind::Bare2of3 => {
            let message = legacy_message(tx, index, &opened.script);
            let [first, second] = lock.signers().map(|at| ecdsa_signature(&opened.keys[at], message));
            let script_sig = Script::new().op(OP_0).push(&first).push(&second);
            let is_p2sh = lock.kind == Kind::P2sh2of3;
            tx.inputs[index].script_sig = if is_p2sh { script_sig.push(&opened.script) } else { script_sig }.build();
        }
        Kind::P2trKey => {
            let message = spending.taproot(tx, index, None);
            tx.inputs[index].witness = vec![schnorr_signature(key, message)];
        }
        Kind::P2trScript => {
            let leaf = leaf_hash(LEAF_VERSION_TAPSCRIPT, &opened.script);
            let message = spending.taproot(tx, index, Some(&leaf));
            tx.inputs[index].witness =
                vec![schnorr_signature(key, message), opened.script.clone(), opened.control_block.clone()];
        }
    }
}
