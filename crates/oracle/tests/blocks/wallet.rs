//! Locks of coins and how to satisfy them: a policy (keys or times) in a wrapping (bare, P2SH, P2WSH, taproot ...).
//!
//! Input: transactions with the coins they spend. Output: the same, signed. Signature hashes come from our own crate:
//! if they were wrong, Core would refuse blocks intended to be valid, and the counts would show it.

use super::rng::Random;
use lydian_hash::{TAP_TWEAK, hash160, sha256};
use lydian_primitives::build::{MutInput, MutTx};
use lydian_primitives::{Height, Output};
use lydian_script::builder::scripts::{multisig, p2pkh, p2sh, witness_program};
use lydian_script::opcodes::*;
use lydian_script::sighash::{compute_annex_hash, compute_tapleaf_hash};
use lydian_script::{LegacyCache, ScriptBuilder, TaprootExt, TxContext};
use secp256k1::{Keypair, Message, Scalar, SecretKey, ecdsa, schnorr};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

const KEYS: usize = 12;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wrap {
    Bare,
    Sh,
    Wsh,
    ShWsh,
    Tap,
    /// Without a policy: P2WPKH, the same in P2SH, taproot's key path, an anyone-can-spend witness program, P2A.
    Wpkh,
    ShWpkh,
    TapKey,
    Future,
    Anchor,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Policy {
    True,
    Key,
    KeyHash,
    Multi,
    /// An absolute lock time, then anyone can spend.
    Cltv(u32),
    /// A relative lock time as a sequence number, then anyone can spend.
    Csv(u32),
    /// This number of CHECKMULTISIGs, none of them executed: 20 sigops each.
    Sigops(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lock {
    pub wrap: Wrap,
    pub policy: Policy,
    pub key: usize,
}

/// A coin. It has no lock if the wallet cannot spend it.
#[derive(Clone, Debug)]
pub struct OwnCoin {
    pub value: i64,
    pub script_pubkey: Vec<u8>,
    pub height: Height,
    pub is_coinbase: bool,
    pub lock: Option<Lock>,
}

pub struct Wallet {
    keys: Vec<Keypair>,
    /// Locks by their scriptPubKey.
    known: RefCell<HashMap<Vec<u8>, Lock>>,
}

/// The data needed to make a signature.
struct Signer<'a> {
    context: &'a TxContext<'a>,
    input: usize,
    annex_hash: Option<[u8; 32]>,
    hash_type: u8,
}

impl Wallet {
    pub fn new() -> Wallet {
        let key = |n: usize| SecretKey::from_secret_bytes(sha256(&[7, u8::try_from(n).unwrap()])).unwrap().keypair();
        Wallet { keys: (0..KEYS).map(key).collect(), known: RefCell::default() }
    }

    /// Returns a random lock. `witness` allows those that need one; lock times are near `height` or `time`.
    pub fn draw(&self, random: &mut Random, witness: bool, height: u32, time: u32) -> Lock {
        let wraps: &[Wrap] = &[
            Wrap::Bare,
            Wrap::Bare,
            Wrap::Sh,
            Wrap::Sh,
            Wrap::Wsh,
            Wrap::ShWsh,
            Wrap::Tap,
            Wrap::Tap,
            Wrap::Wpkh,
            Wrap::Wpkh,
            Wrap::ShWpkh,
            Wrap::TapKey,
            Wrap::TapKey,
            Wrap::Future,
            Wrap::Anchor,
        ];
        let wrap = *random.pick(if witness { wraps } else { &wraps[..4] });
        let policy = match random.below(12) {
            0..=2 => Policy::True,
            3 | 4 => Policy::Key,
            5 | 6 => Policy::KeyHash,
            7 | 8 => Policy::Multi,
            9 => Policy::Cltv(if random.once_in(3) {
                u32::try_from(i64::from(time) + random.range(-4000, 2000)).unwrap()
            } else {
                u32::try_from((i64::from(height) + random.range(-10, 8)).max(1)).unwrap()
            }),
            10 => Policy::Csv(match random.below(3) {
                0 => 1 << 22 | u32::try_from(random.below(8)).unwrap(),
                _ => u32::try_from(random.below(8)).unwrap(),
            }),
            _ => Policy::Sigops(u8::try_from(random.range(1, 195)).unwrap()),
        };
        Lock { wrap, policy, key: random.below(KEYS) }
    }

    pub fn script_pubkey(&self, lock: Lock) -> Vec<u8> {
        let script = match lock.wrap {
            Wrap::Bare => self.script(lock),
            Wrap::Sh => p2sh(&hash160(&self.script(lock))),
            Wrap::Wsh => witness_program(0, &sha256(&self.script(lock))),
            Wrap::ShWsh => p2sh(&hash160(&witness_program(0, &sha256(&self.script(lock))))),
            Wrap::Tap => witness_program(1, &self.tap_leaf(lock).0),
            Wrap::Wpkh => witness_program(0, &hash160(&self.public(lock.key))),
            Wrap::ShWpkh => p2sh(&hash160(&witness_program(0, &hash160(&self.public(lock.key))))),
            Wrap::TapKey => witness_program(1, &self.tap_key(lock.key).x_only_public_key().0.to_byte_array()),
            Wrap::Future => witness_program(2 + u8::try_from(lock.key).unwrap(), &[7; 30][..2 + lock.key]),
            Wrap::Anchor => witness_program(1, &[0x4e, 0x73]),
        };
        self.known.borrow_mut().insert(script.clone(), lock);
        script
    }

    pub fn lock_of(&self, script_pubkey: &[u8]) -> Option<Lock> {
        self.known.borrow().get(script_pubkey).copied()
    }

    pub fn needs_witness(lock: Lock) -> bool {
        !matches!(lock.wrap, Wrap::Bare | Wrap::Sh | Wrap::Future | Wrap::Anchor)
    }

    fn public(&self, key: usize) -> Vec<u8> {
        self.keys[key % KEYS].public_key().serialize().to_vec()
    }

    fn x_only(&self, key: usize) -> [u8; 32] {
        self.keys[key % KEYS].x_only_public_key().0.to_byte_array()
    }

    fn tap_key(&self, key: usize) -> Keypair {
        let tweak = TAP_TWEAK.hash(&[&self.x_only(key)]);
        self.keys[key].add_xonly_tweak(&Scalar::from_be_bytes(tweak).unwrap()).unwrap()
    }

    /// Returns the output key of a tree with one leaf, and its control block.
    fn tap_leaf(&self, lock: Lock) -> ([u8; 32], Vec<u8>) {
        let internal = self.keys[lock.key].x_only_public_key().0;
        let leaf = compute_tapleaf_hash(0xc0, &self.script(lock));
        let tweak = Scalar::from_be_bytes(TAP_TWEAK.hash(&[&internal.to_byte_array(), &leaf])).unwrap();
        let (output, parity) = internal.add_tweak(&tweak).unwrap();
        let mut control = vec![0xc0 | parity.to_u8()];
        control.extend_from_slice(&internal.to_byte_array());
        (output.to_byte_array(), control)
    }

    /// Returns the script that implements the policy: scriptPubKey, redeem script, witness script or leaf.
    fn script(&self, lock: Lock) -> Vec<u8> {
        let is_tap = lock.wrap == Wrap::Tap;
        let key = |n: usize| if is_tap { self.x_only(n).to_vec() } else { self.public(n) };
        let build = ScriptBuilder::new();
        let number = |n: u32, op: u8| ScriptBuilder::new().push_int(i64::from(n)).op(op).op(OP_DROP).op(OP_1);
        match lock.policy {
            Policy::True => build.op(OP_1).into_bytes(),
            Policy::Key => build.push_slice(&key(lock.key)).op(OP_CHECKSIG).into_bytes(),
            Policy::KeyHash => p2pkh(&hash160(&key(lock.key))),
            Policy::Multi if is_tap => {
                let first = build.push_slice(&key(lock.key)).op(OP_CHECKSIG);
                let all = (1..3).fold(first, |b, n| b.push_slice(&key(lock.key + n)).op(OP_CHECKSIGADD));
                all.push_int(2).op(OP_NUMEQUAL).into_bytes()
            }
            Policy::Multi => {
                let keys: Vec<_> = (0..3).map(|n| self.public(lock.key + n)).collect();
                multisig(2, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>())
            }
            Policy::Cltv(lock_time) => number(lock_time, OP_CHECKLOCKTIMEVERIFY).into_bytes(),
            Policy::Csv(sequence) => number(sequence, OP_CHECKSEQUENCEVERIFY).into_bytes(),
            Policy::Sigops(count) => {
                let checks = vec![OP_CHECKMULTISIG; usize::from(count)];
                build.op(OP_0).op(OP_IF).raw(&checks).op(OP_ENDIF).op(OP_1).into_bytes()
            }
        }
    }

    /// Fills scripts and witnesses of all inputs whose coin has a lock of the wallet.
    pub fn sign(&self, tx: &mut MutTx, coins: &[Option<Rc<OwnCoin>>], random: &mut Random) {
        for input in &mut tx.inputs {
            input.script_sig.clear();
            input.witness.clear();
        }
        let Some(unsigned) = tx.to_transaction() else { return };
        let outputs: Vec<Output<'_>> = coins.iter().map(|coin| output_of(coin.as_deref())).collect();
        let Some(context) = TxContext::new(unsigned.view(), &outputs) else { return };
        for (index, coin) in coins.iter().enumerate() {
            let Some(lock) = coin.as_ref().and_then(|coin| coin.lock) else { continue };
            let annex = (random.once_in(8) && matches!(lock.wrap, Wrap::Tap | Wrap::TapKey)).then(|| {
                let size = random.below(40);
                [vec![0x50], random.bytes(size)].concat()
            });
            let hash_type = if random.once_in(4) { *random.pick(&[2, 3, 0x81, 0x82, 0x83]) } else { 1 };
            let annex_hash = annex.as_deref().map(compute_annex_hash);
            let signer = Signer { context: &context, input: index, annex_hash, hash_type };
            self.open(lock, &signer, &mut tx.inputs[index]);
            tx.inputs[index].witness.extend(annex);
        }
    }

    fn open(&self, lock: Lock, signer: &Signer<'_>, input: &mut MutInput) {
        let push_all = |items: &[Vec<u8>]| items.iter().fold(ScriptBuilder::new(), |b, item| b.push_slice(item));
        let script = || self.script(lock);
        let public = self.public(lock.key);
        match lock.wrap {
            Wrap::Bare => input.script_sig = push_all(&self.items(lock, signer, &script())).into_bytes(),
            Wrap::Sh => {
                input.script_sig = push_all(&self.items(lock, signer, &script())).push_slice(&script()).into_bytes();
            }
            Wrap::Wsh | Wrap::ShWsh => {
                input.witness = self.items(lock, signer, &script());
                input.witness.push(script());
                if lock.wrap == Wrap::ShWsh {
                    let program = witness_program(0, &sha256(&script()));
                    input.script_sig = ScriptBuilder::new().push_slice(&program).into_bytes();
                }
            }
            Wrap::Tap => {
                input.witness = self.items(lock, signer, &script());
                input.witness.extend([script(), self.tap_leaf(lock).1]);
            }
            Wrap::Wpkh | Wrap::ShWpkh => {
                let code = p2pkh(&hash160(&public));
                input.witness = vec![signer.ecdsa(&self.keys[lock.key], &code, true), public.clone()];
                if lock.wrap == Wrap::ShWpkh {
                    let program = witness_program(0, &hash160(&public));
                    input.script_sig = ScriptBuilder::new().push_slice(&program).into_bytes();
                }
            }
            Wrap::TapKey => input.witness = vec![signer.schnorr(&self.tap_key(lock.key), None)],
            Wrap::Future | Wrap::Anchor => {}
        }
    }

    /// Returns the stack elements that the policy's script needs, deepest first.
    fn items(&self, lock: Lock, signer: &Signer<'_>, script: &[u8]) -> Vec<Vec<u8>> {
        let sign = |n: usize| {
            let key = &self.keys[(lock.key + n) % KEYS];
            match lock.wrap {
                Wrap::Bare | Wrap::Sh => signer.ecdsa(key, script, false),
                Wrap::Tap => signer.schnorr(key, Some(script)),
                _ => signer.ecdsa(key, script, true),
            }
        };
        let is_tap = lock.wrap == Wrap::Tap;
        match lock.policy {
            Policy::True | Policy::Cltv(_) | Policy::Csv(_) | Policy::Sigops(_) => Vec::new(),
            Policy::Key => vec![sign(0)],
            Policy::KeyHash if is_tap => vec![sign(0), self.x_only(lock.key).to_vec()],
            Policy::KeyHash => vec![sign(0), self.public(lock.key)],
            Policy::Multi if is_tap => vec![sign(2), Vec::new(), sign(0)],
            Policy::Multi => vec![Vec::new(), sign(0), sign(1 + lock.key % 2)],
        }
    }
}

pub fn output_of(coin: Option<&OwnCoin>) -> Output<'_> {
    let none = Output { value: lydian_primitives::Amount(0), script_pubkey: &[] };
    coin.map_or(none, |coin| Output {
        value: lydian_primitives::Amount(coin.value),
        script_pubkey: &coin.script_pubkey,
    })
}

impl Signer<'_> {
    fn ecdsa(&self, key: &Keypair, code: &[u8], is_segwit: bool) -> Vec<u8> {
        let hash_type = u32::from(self.hash_type);
        let digest = if is_segwit {
            self.context.segwit_v0(self.input, code, hash_type)
        } else {
            self.context.legacy(self.input, code, hash_type, &mut LegacyCache::new())
        };
        let mut signature = ecdsa::sign(Message::from_digest(digest), &key.secret_key()).serialize_der().to_vec();
        signature.push(self.hash_type);
        signature
    }

    fn schnorr(&self, key: &Keypair, leaf: Option<&[u8]>) -> Vec<u8> {
        let leaf = leaf.map(|script| (compute_tapleaf_hash(0xc0, script), u32::MAX));
        let ext = TaprootExt { annex_hash: self.annex_hash, leaf };
        let wanted = if self.hash_type == 1 { 0 } else { self.hash_type };
        // SINGLE without its output has no hash in taproot.
        let (hash_type, digest) = match self.context.taproot(self.input, wanted, &ext) {
            Some(digest) => (wanted, digest),
            None => (0, self.context.taproot(self.input, 0, &ext).unwrap()),
        };
        let mut signature = schnorr::sign_no_aux_rand(&digest, key).to_byte_array().to_vec();
        if hash_type != 0 {
            signature.push(hash_type);
        }
        signature
    }
}
