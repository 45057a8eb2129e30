//! What signing needs besides private keys: origins of keys, preimages, leaf scripts, and the fields of MuSig2. Plain
//! data, in the order in which Core's maps have it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Where a key comes from: Core's `KeyOriginInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyOrigin {
    /// The first bytes of the hash of the root key.
    pub fingerprint: [u8; 4],
    pub path: Vec<u32>,
}

impl PartialOrd for KeyOrigin {
    fn partial_cmp(&self, other: &KeyOrigin) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A shorter path comes first.
impl Ord for KeyOrigin {
    fn cmp(&self, other: &KeyOrigin) -> Ordering {
        let of = |origin: &KeyOrigin| (origin.fingerprint, origin.path.len());
        of(self).cmp(&of(other)).then_with(|| self.path.cmp(&other.path))
    }
}

/// Signatures with their keys, by the hashes of the keys.
pub type Signatures = BTreeMap<[u8; 20], (Vec<u8>, Vec<u8>)>;

/// The proof that an output commits to a leaf script. Shorter ones come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlBlock(pub Vec<u8>);

impl PartialOrd for ControlBlock {
    fn partial_cmp(&self, other: &ControlBlock) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ControlBlock {
    fn cmp(&self, other: &ControlBlock) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.cmp(&other.0))
    }
}

/// The control blocks of each script with its leaf version.
pub type LeafScripts = BTreeMap<(Vec<u8>, u8), BTreeSet<ControlBlock>>;

/// A compressed public key.
pub type CompressedKey = [u8; 33];

/// The participants of each aggregate key.
pub type MusigParticipants = BTreeMap<CompressedKey, Vec<CompressedKey>>;

/// An aggregate key, tweaked as the script has it, and a leaf hash; zeros for the key path.
pub type MusigSession = (CompressedKey, [u8; 32]);

/// The public nonces of a session's participants.
pub type MusigNonces = BTreeMap<MusigSession, BTreeMap<CompressedKey, [u8; 66]>>;

/// The partial signatures of a session's participants.
pub type MusigPartials = BTreeMap<MusigSession, BTreeMap<CompressedKey, [u8; 32]>>;

/// Preimages by their hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preimages {
    pub ripemd160: BTreeMap<Vec<u8>, Vec<u8>>,
    pub sha256: BTreeMap<Vec<u8>, Vec<u8>>,
    pub hash160: BTreeMap<Vec<u8>, Vec<u8>>,
    pub hash256: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Preimages {
    /// Adds those whose hashes are new.
    pub fn merge(&mut self, other: Preimages) {
        let pairs = [
            (&mut self.ripemd160, other.ripemd160),
            (&mut self.sha256, other.sha256),
            (&mut self.hash160, other.hash160),
            (&mut self.hash256, other.hash256),
        ];
        for (map, other) in pairs {
            for (hash, preimage) in other {
                map.entry(hash).or_insert(preimage);
            }
        }
    }
}

/// What was looked for and not found while an input was signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Hashes of keys.
    pub keys: Vec<[u8; 20]>,
    /// Hashes of keys whose signatures are missing.
    pub signatures: Vec<[u8; 20]>,
    /// The hash of the redeem script.
    pub redeem_script: Option<[u8; 20]>,
    /// The SHA-256 of the witness script.
    pub witness_script: Option<[u8; 32]>,
}
