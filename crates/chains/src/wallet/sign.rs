//! Signature messages and signing.
//!
//! The messages are implemented here a second time, from the BIPs and for structures under construction, with
//! SIGHASH_ALL and SIGHASH_DEFAULT only: the signer shares no code with the verifier that it is used to test.

use super::lock::{Key, Lock, Opened, leaf_hash};
use super::script::{OP_0, Script, p2pkh};
use super::{Kind, LEAF_VERSION_TAPSCRIPT};
use lydian_curve::{TestScheme, TestSignature, TestSigner};
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
    der_signature(&ecdsa::sign(Message::from_digest(message), &key.secret_key()).serialize_compact())
}

/// r and s in DER, followed by SIGHASH_ALL.
fn der_signature(signature: &[u8; 64]) -> Vec<u8> {
    let (r, s) = signature.split_at(32);
    let number = |bytes: &[u8]| {
        let start = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len() - 1);
        // A zero before a top bit that would be read as the sign.
        let is_padded = bytes[start] >= 0x80;
        (start, is_padded, 32 - start + usize::from(is_padded))
    };
    let numbers = [(r, number(r)), (s, number(s))];
    let length = |size: usize| u8::try_from(size).unwrap_or_default();
    let size = numbers.iter().map(|(_, (_, _, size))| 2 + size).sum();
    let mut bytes = Vec::with_capacity(size + 3);
    bytes.extend_from_slice(&[0x30, length(size)]);
    for (digits, (start, is_padded, size)) in numbers {
        bytes.extend_from_slice(&[0x02, length(size)]);
        bytes.extend(is_padded.then_some(0));
        bytes.extend_from_slice(&digits[start..]);
    }
    bytes.push(SIGHASH_ALL);
    bytes
}

/// BIP-0340 signature without auxiliary randomness.
pub fn schnorr_signature(key: &Keypair, message: [u8; 32]) -> Vec<u8> {
    schnorr::sign_no_aux_rand(&message, key).to_byte_array().to_vec()
}

/// The signatures that the input at `index` needs, which spends a coin with this lock.
pub fn wanted_signatures(
    tx: &MutTx,
    index: usize,
    lock: Lock,
    opened: &Opened,
    spending: &mut Spending<'_>,
) -> impl Iterator<Item = TestSignature> {
    let key = &opened.keys[0];
    let message = match lock.kind {
        Kind::P2pkh | Kind::P2pkhUncompressed => legacy_message(tx, index, &opened.script_pubkey),
        Kind::P2wpkh | Kind::P2shP2wpkh => spending.segwit_v0(tx, index, &p2pkh(&hash160(&key.public.compressed()))),
        Kind::P2wsh2of3 => spending.segwit_v0(tx, index, &opened.script),
        Kind::P2sh2of3 | Kind::Bare2of3 => legacy_message(tx, index, &opened.script),
        Kind::P2trKey => spending.taproot(tx, index, None),
        Kind::P2trScript => {
            let leaf = leaf_hash(LEAF_VERSION_TAPSCRIPT, &opened.script);
            spending.taproot(tx, index, Some(&leaf))
        }
    };
    let (scheme, signers) = match lock.kind.ecdsa_signatures() {
        0 => (TestScheme::Schnorr, [Some(0), None]),
        1 => (TestScheme::Ecdsa, [Some(0), None]),
        _ => (TestScheme::Ecdsa, lock.signers().map(Some)),
    };
    let keys = signers.map(|at| at.map(|at| opened.keys[at]));
    keys.into_iter().flatten().map(move |Key { secret, public }| TestSignature { secret, key: public, message, scheme })
}

/// Sets script and witness of the input at `index` with the signatures that it needs.
pub fn satisfy_input(tx: &mut MutTx, index: usize, lock: Lock, opened: &Opened, signatures: &[[u8; 64]]) {
    let key = &opened.keys[0];
    let input = &mut tx.inputs[index];
    let ecdsa = |at: usize| der_signature(&signatures[at]);
    match lock.kind {
        Kind::P2pkh => {
            input.script_sig = Script::new().push(&ecdsa(0)).push(&key.public.compressed()).build();
        }
        Kind::P2pkhUncompressed => {
            input.script_sig = Script::new().push(&ecdsa(0)).push(&key.uncompressed()).build();
        }
        Kind::P2wpkh | Kind::P2shP2wpkh => {
            input.witness = vec![ecdsa(0), key.public.compressed().to_vec()];
            if lock.kind == Kind::P2shP2wpkh {
                input.script_sig = Script::new().push(&opened.script).build();
            }
        }
        Kind::P2wsh2of3 => input.witness = vec![Vec::new(), ecdsa(0), ecdsa(1), opened.script.clone()],
        Kind::P2sh2of3 | Kind::Bare2of3 => {
            let script_sig = Script::new().op(OP_0).push(&ecdsa(0)).push(&ecdsa(1));
            let is_p2sh = lock.kind == Kind::P2sh2of3;
            input.script_sig = if is_p2sh { script_sig.push(&opened.script) } else { script_sig }.build();
        }
        Kind::P2trKey => input.witness = vec![signatures[0].to_vec()],
        Kind::P2trScript => {
            input.witness = vec![signatures[0].to_vec(), opened.script.clone(), opened.control_block.clone()];
        }
    }
}

/// Sets script and witness of the input at `index`, which spends a coin with this lock; libsecp256k1 signs.
pub fn sign_input(tx: &mut MutTx, index: usize, lock: Lock, opened: &Opened, spending: &mut Spending<'_>) {
    let wanted: Vec<TestSignature> = wanted_signatures(tx, index, lock, opened, spending).collect();
    satisfy_input(tx, index, lock, opened, &signatures(&TestSigner::library(), &wanted));
}

/// The signatures, in their order.
pub fn signatures(signer: &TestSigner, wanted: &[TestSignature]) -> Vec<[u8; 64]> {
    // The keys of a wallet are private keys, so there is one for each.
    signer.sign(wanted).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallet::Wallet;
    use lydian_stdx::SplitMix64;

    /// The DER of libsecp256k1, for numbers of any length and with any top bit.
    #[test]
    fn der_is_that_of_the_library() {
        let mut random = SplitMix64::new(4);
        let mut bytes = || random.next_u64().to_le_bytes()[0];
        for zeros in [[0, 0], [1, 0], [0, 1], [2, 5], [31, 31], [32, 0], [0, 32], [32, 32]] {
            for top in [0x01, 0x7f, 0x80, 0xfe] {
                let signature: [u8; 64] = std::array::from_fn(|at| match (at % 32).cmp(&zeros[at / 32]) {
                    std::cmp::Ordering::Less => 0,
                    std::cmp::Ordering::Equal => top,
                    std::cmp::Ordering::Greater => bytes(),
                });
                let mut expected = ecdsa::Signature::from_compact(&signature).unwrap().serialize_der().to_vec();
                expected.push(SIGHASH_ALL);
                assert_eq!(der_signature(&signature), expected, "{zeros:?} {top}");
            }
        }
    }

    /// The signatures of an input by the two functions that presets use for single keys.
    #[test]
    fn signatures_are_those_of_single_keys() {
        let (wallet, signer) = (Wallet::new(2), TestSigner::new());
        let pairs: Vec<Keypair> = (0..20).map(|key| wallet.keypair(key, 0)).collect();
        for scheme in [TestScheme::Ecdsa, TestScheme::Schnorr] {
            let wanted = |pair: &Keypair| {
                let Key { secret, public } = Key::from(pair);
                TestSignature { secret, key: public, message: public.x, scheme }
            };
            let made = signatures(&signer, &pairs.iter().map(wanted).collect::<Vec<_>>());
            for (pair, signature) in pairs.iter().zip(&made) {
                let message = Key::from(pair).public.x;
                match scheme {
                    TestScheme::Ecdsa => assert_eq!(der_signature(signature), ecdsa_signature(pair, message)),
                    TestScheme::Schnorr => assert_eq!(signature[..], schnorr_signature(pair, message)),
                }
            }
        }
    }
}
