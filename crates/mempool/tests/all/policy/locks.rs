//! Locks of coins and how to open them: most by anyone, some by a key.
//!
//! Input: a lock and, for signatures, the unsigned transaction. Output: scriptPubKey, scriptSig, witness.

use lydian_hash::{TAP_TWEAK, hash160, sha256};
use lydian_primitives::Output;
use lydian_primitives::build::MutTx;
use lydian_script::builder::scripts::{multisig, p2pk, p2pkh, p2sh, witness_program};
use lydian_script::sighash::compute_tapleaf_hash;
use lydian_script::{LegacyCache, ScriptBuilder, TaprootExt, TxContext};
use secp256k1::{Keypair, Message, Scalar, SecretKey, ecdsa, schnorr};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lock {
    /// A scriptPubKey of no known type that anyone can spend, or one that no one can.
    Raw(Vec<u8>),
    Sh(Vec<u8>),
    Wsh(Vec<u8>),
    ShWsh(Vec<u8>),
    /// Leaf version and script.
    Tap(u8, Vec<u8>),
    TapKey,
    Pk,
    Pkh,
    Wpkh,
    ShWpkh,
    Multi,
    Anchor,
}

pub fn key() -> Keypair {
    SecretKey::from_secret_bytes(sha256(b"policy")).unwrap().keypair()
}

pub fn public() -> Vec<u8> {
    key().public_key().serialize().to_vec()
}

fn tap_key() -> Keypair {
    let tweak = TAP_TWEAK.hash(&[&key().x_only_public_key().0.to_byte_array()]);
    key().add_xonly_tweak(&Scalar::from_be_bytes(tweak).unwrap()).unwrap()
}

/// The output key of a tree with one leaf, and its control block.
fn tap_leaf(version: u8, script: &[u8]) -> ([u8; 32], Vec<u8>) {
    let internal = key().x_only_public_key().0;
    let leaf = compute_tapleaf_hash(version, script);
    let tweak = Scalar::from_be_bytes(TAP_TWEAK.hash(&[&internal.to_byte_array(), &leaf])).unwrap();
    let (output, parity) = internal.add_tweak(&tweak).unwrap();
    (output.to_byte_array(), [&[version | parity.to_u8()][..], &internal.to_byte_array()].concat())
}

fn pushes(items: &[Vec<u8>]) -> Vec<u8> {
    items.iter().fold(ScriptBuilder::new(), |script, item| script.push_slice(item)).into_bytes()
}

impl Lock {
    pub fn script_pubkey(&self) -> Vec<u8> {
        match self {
            Lock::Raw(script) => script.clone(),
            Lock::Sh(script) => p2sh(&hash160(script)),
            Lock::Wsh(script) => witness_program(0, &sha256(script)),
            Lock::ShWsh(script) => p2sh(&hash160(&witness_program(0, &sha256(script)))),
            Lock::Tap(version, script) => witness_program(1, &tap_leaf(*version, script).0),
            Lock::TapKey => witness_program(1, &tap_key().x_only_public_key().0.to_byte_array()),
            Lock::Pk => p2pk(&public()),
            Lock::Pkh => p2pkh(&hash160(&public())),
            Lock::Wpkh => witness_program(0, &hash160(&public())),
            Lock::ShWpkh => p2sh(&hash160(&witness_program(0, &hash160(&public())))),
            Lock::Multi => multisig(1, &[&public(), &public()]),
            Lock::Anchor => witness_program(1, &[0x4e, 0x73]),
        }
    }

    /// Opens the lock of an input of a transaction that is complete but for scripts and witnesses. `items` are the
    /// elements that the script of the lock finds on its stack.
    pub fn open(&self, tx: &mut MutTx, index: usize, spent: &[Output<'_>], items: &[Vec<u8>]) {
        let (script_sig, witness) = {
            let unsigned = tx.to_transaction().unwrap();
            let context = TxContext::new(unsigned.view(), spent).unwrap();
            self.opened(&context, index, items)
        };
        tx.inputs[index].script_sig = script_sig;
        tx.inputs[index].witness = witness;
    }

    fn opened(&self, context: &TxContext<'_>, index: usize, items: &[Vec<u8>]) -> (Vec<u8>, Vec<Vec<u8>>) {
        let with = |more: &[&[u8]]| -> Vec<Vec<u8>> {
            items.iter().cloned().chain(more.iter().map(|item| item.to_vec())).collect()
        };
        let own = self.script_pubkey();
        let legacy = || signed(context.legacy(index, &own, 1, &mut LegacyCache::new()));
        let segwit = || signed(context.segwit_v0(index, &p2pkh(&hash160(&public())), 1));
        match self {
            Lock::Raw(_) => (pushes(items), Vec::new()),
            Lock::Sh(script) => (pushes(&with(&[script])), Vec::new()),
            Lock::Wsh(script) => (Vec::new(), with(&[script])),
            Lock::ShWsh(script) => (pushes(&[witness_program(0, &sha256(script))]), with(&[script])),
            Lock::Tap(version, script) => (Vec::new(), with(&[script, &tap_leaf(*version, script).1])),
            Lock::TapKey => {
                let digest = context.taproot(index, 0, &TaprootExt { annex_hash: None, leaf: None }).unwrap();
                (Vec::new(), vec![schnorr::sign_no_aux_rand(&digest, &tap_key()).to_byte_array().to_vec()])
            }
            Lock::Pk => (pushes(&[legacy()]), Vec::new()),
            Lock::Pkh => (pushes(&[legacy(), public()]), Vec::new()),
            Lock::Wpkh => (Vec::new(), vec![segwit(), public()]),
            Lock::ShWpkh => (pushes(&[witness_program(0, &hash160(&public()))]), vec![segwit(), public()]),
            Lock::Multi => (pushes(&[Vec::new(), legacy()]), Vec::new()),
            Lock::Anchor => (Vec::new(), Vec::new()),
        }
    }
}

fn signed(digest: [u8; 32]) -> Vec<u8> {
    let mut signature = ecdsa::sign(Message::from_digest(digest), &key().secret_key()).serialize_der().to_vec();
    signature.push(1);
    signature
}
