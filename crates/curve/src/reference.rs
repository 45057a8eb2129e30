//! The reference: libsecp256k1 through the crate `secp256k1`, one check at a time.
//!
//! Every other engine is compared with it, and it alone decides a script that runs in exact mode. Cost: about 30 us of
//! CPU time per check.

use crate::{Check, Engine, PublicKeyBytes};
use secp256k1::{Parity, PublicKey, Scalar, XOnlyPublicKey, ecdsa, schnorr};

/// libsecp256k1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Reference {
    /// Decides one check.
    pub fn check(&self, check: &Check) -> bool {
        match check {
            Check::Ecdsa { key, message, signature } => ecdsa(key, message, signature).is_some(),
            Check::Schnorr { key, message, signature } => schnorr(key, message, signature).is_some(),
            Check::Tweak { output, is_odd, internal, tweak } => {
                tweak_holds(output, *is_odd, internal, tweak) == Some(true)
            }
        }
    }
}

impl Engine for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        assert_eq!(checks.len(), verdicts.len(), "one verdict for each check");
        checks.iter().zip(verdicts).for_each(|(check, verdict)| *verdict = self.check(check));
    }
}

/// Verifies an ECDSA signature (Core's `CPubKey::Verify`). r and s must be in range. s is normalized to its lower form
/// first, since libsecp256k1 accepts no other and consensus allows both.
fn ecdsa(key: &PublicKeyBytes, message: &[u8; 32], signature: &[u8; 64]) -> Option<()> {
    let key = PublicKey::from_slice(key.as_bytes()).ok()?;
    let mut signature = ecdsa::Signature::from_compact(signature).ok()?;
    signature.normalize_s();
    ecdsa::verify(&signature, secp256k1::Message::from_digest(*message), &key).ok()
}

fn schnorr(key: &[u8; 32], message: &[u8; 32], signature: &[u8; 64]) -> Option<()> {
    let key = XOnlyPublicKey::from_byte_array(*key).ok()?;
    schnorr::verify(&schnorr::Signature::from_byte_array(*signature), message, &key).ok()
}

/// Core's `XOnlyPubKey::CheckTapTweak`. The output key is compared as bytes and need not be decoded.
fn tweak_holds(output: &[u8; 32], is_odd: bool, internal: &[u8; 32], tweak: &[u8; 32]) -> Option<bool> {
    let internal = XOnlyPublicKey::from_byte_array(*internal).ok()?;
    let tweak = Scalar::from_be_bytes(*tweak).ok()?;
    let parity = if is_odd { Parity::Odd } else { Parity::Even };
    let (tweaked, tweaked_parity) = internal.add_tweak(&tweak).ok()?;
    Some(tweaked.to_byte_array() == *output && tweaked_parity == parity)
}
