//! Signature checks and signatures on secp256k1 in batches: ECDSA, BIP-0340 Schnorr, taproot tweak.
//!
//! Input: a slice of [`Check`]. Output: one verdict for each, in the same order. Two implementations: [`Reference`] is
//! libsecp256k1, [`LaneEngine`] verifies many checks at once in SIMD lanes. [`choose`] selects one by name,
//! [`Refereed`] compares a sample of its verdicts with the reference. Invariants: a verdict depends on its check alone,
//! never on other checks; the script layer handles the encodings of signatures in scripts (DER, hash types) and passes
//! r and s as 64 bytes; a signature made depends on its private key and its message alone. No I/O, no clock, no
//! randomness.

#![deny(unsafe_code)]

mod der;
mod key;
mod lanes;
pub mod limits;
mod referee;
mod reference;
mod select;
mod signing;
mod test_signature;
mod test_signer;

pub use der::parse_der_lax;
pub use key::{are_x_only, uncompressed_key};
pub use lanes::{LaneEngine, Tally};
pub use referee::{Alarm, Disagreement, Evidence, RefereeCounts, Refereed, Sampling};
pub use reference::Reference;
pub use select::{ChooseError, Chosen, ENGINE_NAMES, choose, choose_seeded, engines};
pub use signing::{Scheme, ToSign};
pub use test_signature::{PublicPoint, TestScheme, TestSignature};
pub use test_signer::TestSigner;

/// An ECDSA public key in compressed, uncompressed or hybrid form, as bytes that are not decoded yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKeyBytes {
    bytes: [u8; 65],
    len: u8,
}

impl PublicKeyBytes {
    /// Accepts bytes if their length matches their first byte (Core's `CPubKey::GetLen`, pubkey.h). Whether they are a
    /// point on the curve is determined only when a check is verified.
    pub fn new(key: &[u8]) -> Option<PublicKeyBytes> {
        let len: u8 = match key.first()? {
            2 | 3 => 33,
            4 | 6 | 7 => 65,
            _ => return None,
        };
        if key.len() != usize::from(len) {
            return None;
        }
        let mut bytes = [0; 65];
        bytes[..key.len()].copy_from_slice(key);
        Some(PublicKeyBytes { bytes, len })
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    pub fn is_compressed(&self) -> bool {
        self.len == 33
    }
}

impl std::fmt::Debug for PublicKeyBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One check to verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// ECDSA (SEC 1). `signature` is r and s, big-endian; s may be above half the group order, as consensus allows.
    Ecdsa { key: PublicKeyBytes, message: [u8; 32], signature: [u8; 64] },
    /// BIP-0340 with a 32-byte message.
    Schnorr { key: [u8; 32], message: [u8; 32], signature: [u8; 64] },
    /// BIP-0341: `output` with this parity of y is `internal` + `tweak` * G.
    Tweak { output: [u8; 32], is_odd: bool, internal: [u8; 32], tweak: [u8; 32] },
}

/// An implementation that decides checks.
pub trait Engine: Sync {
    /// The name used in settings and reports.
    fn name(&self) -> &'static str;

    /// Sets `verdicts[i]` to whether `checks[i]` holds.
    ///
    /// # Panics
    /// If the two slices differ in length.
    fn verify(&self, checks: &[Check], verdicts: &mut [bool]);

    /// Makes signatures, which the caller must verify: a CPU that computes a wrong one reveals the private key. `None`
    /// if the secret is no private key. `seed`: random bytes, which change no signature; numbers on the way depend on
    /// them.
    fn sign(&self, wanted: &[ToSign], _seed: &[u8; 32]) -> Vec<Option<[u8; 64]>> {
        wanted.iter().map(ToSign::by_library).collect()
    }
}
