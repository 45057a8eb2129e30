//! Derives scripts and secret keys from the number of a key.

use super::Kind;
use super::script::{self, OP_0, OP_CHECKSIG, OP_ENDIF, OP_IF, Script, multisig, p2pkh, p2sh, p2tr, p2wpkh, p2wsh};
use crate::rng::Random;
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
    pub keys: Vec<Keypair>,
    /// Redeem script, witness script or leaf script, if there is one.
    pub script: Vec<u8>,
    /// The control block of a script path.
    pub control_block: Vec<u8>,
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
    pub fn keypair(&self, key: u64, part: u8) -> Keypair {
        for attempt in 0..=u8::MAX {
            let label: [&[u8]; 4] = [b"lydian-lab key", &self.seed.to_le_bytes(), &key.to_le_bytes(), &[part, attempt]];
            if let Ok(secret) = SecretKey::from_secret_bytes(sha256(&label.concat())) {
                return secret.keypair();
            }
        }
        unreachable!("256 hashes in a row are no secret key")
    }

    /// The script of an output.
    pub fn script_pubkey(&self, lock: Lock) -> Vec<u8> {
        self.open(lock).script_pubkey
    }

    /// Everything needed to spend.
    pub fn open(&self, lock: Lock) -> Opened {
        let key = self.keypair(lock.key, 0);
        let compressed = key.public_key().serialize();
        let simple = |script_pubkey: Vec<u8>, script: Vec<u8>| Opened {
            script_pubkey,
            keys: vec![key],
            script,
            control_block: Vec::new(),
        };
        match lock.kind {
            Kind::P2pkh => simple(p2pkh(&hash160(&compressed)), Vec::new()),
            Kind::P2pkhUncompressed => simple(p2pkh(&hash160(&key.public_key().serialize_uncompressed())), Vec::new()),
            Kind::P2wpkh => simple(p2wpkh(&hash160(&compressed)), Vec::new()),
            Kind::P2shP2wpkh => {
                let redeem = p2wpkh(&hash160(&compressed));
                simple(p2sh(&redeem), redeem)
            }
            Kind::P2wsh2of3 | Kind::P2sh2of3 | Kind::Bare2of3 => self.open_multisig(lock, key),
            Kind::P2trKey => {
                let (tweak, output, _) = taproot_output(&key.x_only_public_key().0, None);
                let tweaked = key.add_xonly_tweak(&tweak).unwrap_or(key);
                Opened { keys: vec![tweaked], ..simple(p2tr(&output), Vec::new()) }
            }
            Kind::P2trScript => {
                let leaf = inscription(&key.x_only_public_key().0, lock.key);
                open_leaf(&self.keypair(lock.key, 1), key, leaf)
            }
        }
    }

    fn open_multisig(&self, lock: Lock, first: Keypair) -> Opened {
        let keys = vec![first, self.keypair(lock.key, 1), self.keypair(lock.key, 2)];
        let public: Vec<Vec<u8>> = keys.iter().map(|key| key.public_key().serialize().to_vec()).collect();
        let script = multisig(2, &public);
        let script_pubkey = match lock.kind {
            Kind::P2wsh2of3 => p2wsh(&script),
            Kind::P2sh2of3 => p2sh(&script),
            _ => script.clone(),
        };
        Opened { script_pubkey, keys, script, control_block: Vec::new() }
    }
}

/// A tree of one leaf: the output, and the control block for the leaf.
pub fn open_leaf(internal: &Keypair, key: Keypair, leaf: Vec<u8>) -> Opened {
    let internal = internal.x_only_public_key().0;
    let (_, output, parity) = taproot_output(&internal, Some(leaf_hash(LEAF_VERSION_TAPSCRIPT, &leaf)));
    let mut control_block = vec![LEAF_VERSION_TAPSCRIPT | parity.to_u8()];
    control_block.extend_from_slice(&internal.to_byte_array());
    Opened { script_pubkey: p2tr(&output), keys: vec![key], script: leaf, control_block }
}

/// Tweak, output key and its parity (BIP-0341).
pub fn taproot_output(internal: &XOnlyPublicKey, merkle_root: Option<[u8; 32]>) -> (Scalar, [u8; 32], Parity) {
    let root = merkle_root.as_ref().map_or(&[][..], |root| root);
    let tweak = TAP_TWEAK.hash(&[&internal.to_byte_array(), root]);
    let tweak = Scalar::from_be_bytes(tweak).unwrap_or(Scalar::ZERO);
    match internal.add_tweak(&tweak) {
        Ok((output, parity)) => (tweak, output.to_byte_array(), parity),
        Err(_) => unreachable!("a tweak that is the negated secret of its own key is not found by hashing"),
    }
}

/// Hash of a leaf of a taproot tree (BIP-0341).
pub fn leaf_hash(version: u8, script: &[u8]) -> [u8; 32] {
    let mut head = vec![version];
    write_compact_size(&mut head, script.len());
    TAP_LEAF.hash(&[&head, script])
}

/// A key, CHECKSIG, and the envelope of an inscription.
fn inscription(key: &XOnlyPublicKey, number: u64) -> Vec<u8> {
    let mut payload = vec![0; payload_size(number)];
    Random::new(number, "payload").fill(&mut payload);
    let head = Script::new().push(&key.to_byte_array()).op(OP_CHECKSIG).op(OP_0).op(OP_IF);
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
