//! Derives scripts and secret keys from the number of a key.

use super::Kind;
use super::script::{self, OP_0, OP_CHECKSIG, OP_ENDIF, OP_IF, Script, multisig, p2pkh, p2sh, p2tr, p2wpkh, p2wsh};
use crate::rng::Random;
use lydian_curve::{PublicPoint, TestSigner, uncompressed_key};
use lydian_hash::{TAP_LEAF, TAP_TWEAK, hash160, sha256};
use lydian_primitives::write_compact_size;
use secp256k1::{Keypair, Parity, Scalar, SecretKey, XOnlyPublicKey};

/// The lock of a coin: its kind and the number of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    pub kind: Kind,
    pub key: u64,
}

/// All keys, derived from the seed.
#[derive(Clone, Copy, Debug)]
pub struct Wallet {
    seed: u64,
}

/// A lock with the data needed to spend.
#[derive(Clone, Debug)]
pub struct Opened {
    pub script_pubkey: Vec<u8>,
    /// The keys, in the order of the script; for a key path the tweaked key.
    pub keys: Vec<Key>,
    /// Redeem script, witness script or leaf script, if there is one.
    pub script: Vec<u8>,
    /// The control block of a script path.
    pub control_block: Vec<u8>,
}

/// A private key with its public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub secret: [u8; 32],
    pub public: PublicPoint,
}

impl From<&Keypair> for Key {
    fn from(key: &Keypair) -> Key {
        let (x, parity) = key.x_only_public_key();
        let public = PublicPoint { x: x.to_byte_array(), is_odd: parity == Parity::Odd };
        Key { secret: key.secret_key().to_secret_bytes(), public }
    }
}

impl Key {
    /// The 65 bytes of SEC 1.
    pub fn uncompressed(&self) -> [u8; 65] {
        uncompressed_key(&self.public.compressed()).unwrap_or([0; 65])
    }

    /// The private key of the output of a key path or of a tree (BIP-0341).
    fn tweaked(&self, merkle_root: Option<[u8; 32]>) -> [u8; 32] {
        let secret = SecretKey::from_secret_bytes(self.secret);
        let even = secret.map(|secret| if self.public.is_odd { secret.negate() } else { secret });
        match even.and_then(|even| even.add_tweak(&tap_tweak(&self.public.x, merkle_root))) {
            Ok(tweaked) => tweaked.to_secret_bytes(),
            Err(_) => unreachable!("a tweak that is the negated secret of its own key is not found by hashing"),
        }
    }
}

/// Leaf version of tapscript (BIP-0342).
pub const LEAF_VERSION_TAPSCRIPT: u8 = 0xc0;

/// Shares and sizes of inscriptions: mostly one-line tokens, some pages, few pictures.
const PAYLOAD_SIZES: [(u64, u64, u64); 4] = [(80, 60, 200), (15, 201, 1_000), (4, 1_001, 4_000), (1, 4_001, 20_000)];

/// The most bytes of one push of an inscription.
const PAYLOAD_CHUNK: usize = 520;

impl Lock {
    /// Bytes of the leaf script; 0 for kinds other than the script path.
    pub fn leaf_size(self) -> u64 {
        if self.kind != Kind::P2trScript {
            return 0;
        }
        let payload = payload_size(self.key);
        let (whole, rest) = (payload / PAYLOAD_CHUNK, payload % PAYLOAD_CHUNK);
        let rest_size = match rest {
            0 => 0,
            1..=75 => rest + 1,
            76..=255 => rest + 2,
            _ => rest + 3,
        };
        let frame = 34 + 2 + 4 + 1 + 1 + CONTENT_TYPE.len() + 1 + 1;
        (frame + whole * (PAYLOAD_CHUNK + 3) + rest_size) as u64
    }

    /// The two of three keys that sign, in the order of the script.
    pub fn signers(self) -> [usize; 2] {
        [[0, 1], [0, 2], [1, 2]][usize::try_from(mix(self.key, b"signers") % 3).unwrap_or_default()]
    }

    /// The number of checks of a signature against a key in Core: CHECKMULTISIG starts with the last signature and the
    /// last key, so two of three take three checks unless the first key is the unused one.
    pub fn ecdsa_checks(self) -> u64 {
        match self.kind.ecdsa_signatures() {
            2 if self.signers() == [1, 2] => 2,
            2 => 3,
            count => count,
        }
    }
}

const CONTENT_TYPE: &[u8] = b"text/plain;charset=utf-8";

fn payload_size(key: u64) -> usize {
    usize::try_from(Random::new(key, "payload size").from_table(&PAYLOAD_SIZES)).unwrap_or_default()
}

/// A number derived from a key and a label.
fn mix(key: u64, label: &[u8]) -> u64 {
    let digest = sha256(&[&key.to_le_bytes(), label].concat());
    digest.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).unwrap_or_default()
}

impl Wallet {
    pub const fn new(seed: u64) -> Wallet {
        Wallet { seed }
    }

    /// The secret of a key; `part` distinguishes the keys of one lock.
    pub fn secret(&self, key: u64, part: u8) -> [u8; 32] {
        for attempt in 0..=u8::MAX {
            let label: [&[u8]; 4] = [b"lydian-lab key", &self.seed.to_le_bytes(), &key.to_le_bytes(), &[part, attempt]];
            let secret = sha256(&label.concat());
            if SecretKey::from_secret_bytes(secret).is_ok() {
                return secret;
            }
        }
        unreachable!("256 hashes in a row are no secret key")
    }

    /// The same with its public key, by libsecp256k1.
    pub fn keypair(&self, key: u64, part: u8) -> Keypair {
        match Keypair::from_secret_bytes(self.secret(key, part)) {
            Ok(pair) => pair,
            Err(_) => unreachable!("the secret is a private key"),
        }
    }

    /// The script of an output.
    pub fn script_pubkey(&self, lock: Lock) -> Vec<u8> {
        self.open(lock).script_pubkey
    }

    /// Everything needed to spend.
    pub fn open(&self, lock: Lock) -> Opened {
        match self.open_all(&TestSigner::library(), &[lock]).pop() {
            Some(opened) => opened,
            None => unreachable!("one lock gives one answer"),
        }
    }

    /// The same for many locks at once, in their order.
    pub fn open_all(&self, signer: &TestSigner, locks: &[Lock]) -> Vec<Opened> {
        let secrets: Vec<[u8; 32]> =
            locks.iter().flat_map(|lock| (0..lock.kind.keys()).map(|part| self.secret(lock.key, part))).collect();
        let keys = public_keys(signer, secrets);
        let mut rest = keys.as_slice();
        let mut opened = Vec::with_capacity(locks.len());
        // Taproot outputs need a second public key.
        let (mut waiting, mut tweaked) = (Vec::new(), Vec::new());
        for lock in locks {
            let (keys, after) = rest.split_at(usize::from(lock.kind.keys()));
            rest = after;
            let (one, output_secret) = open_with(*lock, keys);
            if let Some(secret) = output_secret {
                waiting.push(opened.len());
                tweaked.push(secret);
            }
            opened.push(one);
        }
        for (at, output) in waiting.into_iter().zip(public_keys(signer, tweaked)) {
            opened[at].take_output_key(output);
        }
        opened
    }
}

fn public_keys(signer: &TestSigner, secrets: Vec<[u8; 32]>) -> Vec<Key> {
    let public = signer.public_keys(&secrets);
    // A secret of the wallet is a private key, and a tweaked one is, too.
    secrets.into_iter().zip(public).filter_map(|(secret, public)| Some(Key { secret, public: public? })).collect()
}

/// A lock with these keys; for taproot without the output key, with its private key.
fn open_with(lock: Lock, keys: &[Key]) -> (Opened, Option<[u8; 32]>) {
    let first = &keys[0];
    let opened = |script_pubkey: Vec<u8>, keys: &[Key], script: Vec<u8>| Opened {
        script_pubkey,
        keys: keys.to_vec(),
        script,
        control_block: Vec::new(),
    };
    let hash = |key: &Key| hash160(&key.public.compressed());
    let one = match lock.kind {
        Kind::P2pkh => opened(p2pkh(&hash(first)), keys, Vec::new()),
        Kind::P2pkhUncompressed => opened(p2pkh(&hash160(&first.uncompressed())), keys, Vec::new()),
        Kind::P2wpkh => opened(p2wpkh(&hash(first)), keys, Vec::new()),
        Kind::P2shP2wpkh => {
            let redeem = p2wpkh(&hash(first));
            opened(p2sh(&redeem), keys, redeem)
        }
        Kind::P2wsh2of3 | Kind::P2sh2of3 | Kind::Bare2of3 => {
            let script = multisig(2, keys.iter().map(|key| key.public.compressed()));
            let script_pubkey = match lock.kind {
                Kind::P2wsh2of3 => p2wsh(&script),
                Kind::P2sh2of3 => p2sh(&script),
                _ => script.clone(),
            };
            opened(script_pubkey, keys, script)
        }
        Kind::P2trKey => return (opened(Vec::new(), &[], Vec::new()), Some(first.tweaked(None))),
        Kind::P2trScript => {
            let (leaf, internal) = (inscription(&first.public.x, lock.key), &keys[1]);
            let secret = internal.tweaked(Some(leaf_hash(LEAF_VERSION_TAPSCRIPT, &leaf)));
            let mut one = opened(Vec::new(), &keys[..1], leaf);
            one.control_block = [&[LEAF_VERSION_TAPSCRIPT], &internal.public.x[..]].concat();
            return (one, Some(secret));
        }
    };
    (one, None)
}

impl Opened {
    /// The output of a taproot lock: pays it, signs with it, or commits to its parity.
    fn take_output_key(&mut self, output: Key) {
        self.script_pubkey = p2tr(&output.public.x);
        match self.control_block.first_mut() {
            Some(first) => *first |= u8::from(output.public.is_odd),
            None => self.keys.push(output),
        }
    }
}

/// A tree of one leaf: the output, and the control block for the leaf.
pub fn open_leaf(internal: &Keypair, key: Keypair, leaf: Vec<u8>) -> Opened {
    let internal = internal.x_only_public_key().0;
    let (_, output, parity) = taproot_output(&internal, Some(leaf_hash(LEAF_VERSION_TAPSCRIPT, &leaf)));
    let mut control_block = vec![LEAF_VERSION_TAPSCRIPT | parity.to_u8()];
    control_block.extend_from_slice(&internal.to_byte_array());
    Opened { script_pubkey: p2tr(&output), keys: vec![Key::from(&key)], script: leaf, control_block }
}

/// Tweak, output key and its parity (BIP-0341).
pub fn taproot_output(internal: &XOnlyPublicKey, merkle_root: Option<[u8; 32]>) -> (Scalar, [u8; 32], Parity) {
    let tweak = tap_tweak(&internal.to_byte_array(), merkle_root);
    match internal.add_tweak(&tweak) {
        Ok((output, parity)) => (tweak, output.to_byte_array(), parity),
        Err(_) => unreachable!("a tweak that is the negated secret of its own key is not found by hashing"),
    }
}

fn tap_tweak(internal: &[u8; 32], merkle_root: Option<[u8; 32]>) -> Scalar {
    let root = merkle_root.as_ref().map_or(&[][..], |root| root);
    Scalar::from_be_bytes(TAP_TWEAK.hash(&[internal, root])).unwrap_or(Scalar::ZERO)
}

/// Hash of a leaf of a taproot tree (BIP-0341).
pub fn leaf_hash(version: u8, script: &[u8]) -> [u8; 32] {
    let mut head = vec![version];
    write_compact_size(&mut head, script.len());
    TAP_LEAF.hash(&[&head, script])
}

/// A key, CHECKSIG, and the envelope of an inscription.
fn inscription(key: &[u8; 32], number: u64) -> Vec<u8> {
    let mut payload = vec![0; payload_size(number)];
    Random::new(number, "payload").fill(&mut payload);
    let head = Script::new().push(key).op(OP_CHECKSIG).op(OP_0).op(OP_IF);
    let head = head.push(b"ord").op(script::OP_1).push(CONTENT_TYPE).op(OP_0);
    payload.chunks(PAYLOAD_CHUNK).fold(head, |script, chunk| script.push(chunk)).op(OP_ENDIF).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaf_sizes_are_as_computed() {
        let wallet = Wallet::new(1);
        for key in 0..300 {
            let lock = Lock { kind: Kind::P2trScript, key };
            assert_eq!(wallet.open(lock).script.len() as u64, lock.leaf_size(), "{key}");
        }
    }

    /// Any number of locks in any order: keys, scripts and outputs as libsecp256k1 computes them.
    #[test]
    fn locks_opened_together_are_those_opened_alone() {
        let (wallet, signer) = (Wallet::new(3), TestSigner::new());
        let locks: Vec<Lock> =
            Kind::ALL.into_iter().cycle().zip(0..90).map(|(kind, key)| Lock { kind, key: key / 2 }).collect();
        for count in [0, 1, 2, 9, 90] {
            let together = wallet.open_all(&signer, &locks[..count]);
            assert_eq!(together.len(), count);
            for (lock, one) in locks.iter().zip(&together) {
                let alone = wallet.open(*lock);
                assert_eq!((&one.script_pubkey, &one.keys), (&alone.script_pubkey, &alone.keys), "{lock:?}");
                assert_eq!((&one.script, &one.control_block), (&alone.script, &alone.control_block), "{lock:?}");
            }
        }
        for key in 0..20 {
            let (pair, other) = (wallet.keypair(key, 0), wallet.keypair(key, 1));
            let opened = wallet.open(Lock { kind: Kind::P2trKey, key });
            let (tweak, output, _) = taproot_output(&pair.x_only_public_key().0, None);
            let tweaked = pair.add_xonly_tweak(&tweak).unwrap();
            assert_eq!((opened.keys, opened.script_pubkey), (vec![Key::from(&tweaked)], p2tr(&output)));
            let opened = wallet.open(Lock { kind: Kind::P2trScript, key });
            let expected = open_leaf(&other, pair, opened.script.clone());
            assert_eq!((opened.script_pubkey, opened.control_block), (expected.script_pubkey, expected.control_block));
            assert_eq!(opened.keys, expected.keys);
        }
    }

    #[test]
    fn output_scripts_have_the_computed_size() {
        let wallet = Wallet::new(1);
        for kind in Kind::ALL {
            let script = wallet.script_pubkey(Lock { kind, key: 5 });
            assert_eq!(script.len() as u64, kind.script_pubkey_size(), "{}", kind.name());
        }
    }

    #[test]
    fn two_of_three_take_8_thirds_of_a_check() {
        let checks: u64 = (0..3000).map(|key| Lock { kind: Kind::P2wsh2of3, key }.ecdsa_checks()).sum();
        assert!((7_900..8_100).contains(&checks), "{checks}");
    }
}
