//! Signatures that engines make: what is signed, its nonce, and the signature by libsecp256k1.
//!
//! Input: a private key and the hash to sign. Output: 64 bytes, r and s, byte for byte those of Core: ECDSA with nonces
//! of RFC 6979 and the first r below 2^255, BIP-0340 without auxiliary randomness. Invariants: private keys are
//! overwritten when they are dropped, and are in no `Debug` (for copies that the compiler makes on the stack, callers
//! have [`lydian_stdx::wipe_stack`]); SHA-256 has no branch or address that depends on its input. Cost: 24 compressions
//! for an ECDSA nonce, 3 for one of BIP-0340. Must never: return a signature as verified, except
//! [`ToSign::verified_by_library`]; callers verify.

use lydian_hash::{Sha256, Tag};
use lydian_stdx::wipe;
use secp256k1::{Keypair, Message, PublicKey, SecretKey, ecdsa, schnorr};
use std::fmt;

/// The two kinds of signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// ECDSA, with r below 2^255 and s in its lower form: Core's `CKey::Sign`.
    Ecdsa,
    /// BIP-0340 with auxiliary randomness of zeros: Core's `CKey::SignSchnorr`.
    Schnorr,
}

/// A signature to be made.
pub struct ToSign {
    secret: Box<[u8; 32]>,
    message: [u8; 32],
    scheme: Scheme,
}

impl ToSign {
    /// `secret`: the private key that signs, already tweaked. `message`: the hash that is signed.
    pub fn new(secret: &[u8; 32], message: [u8; 32], scheme: Scheme) -> ToSign {
        ToSign { secret: Box::new(*secret), message, scheme }
    }

    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    pub(crate) fn message(&self) -> &[u8; 32] {
        &self.message
    }

    pub(crate) fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The signature by libsecp256k1. `None` if the secret is no private key.
    pub(crate) fn by_library(&self) -> Option<[u8; 64]> {
        let mut secret = SecretKey::from_secret_bytes(*self.secret).ok()?;
        let signature = match self.scheme {
            Scheme::Ecdsa => ecdsa::sign_low_r(Message::from_digest(self.message), &secret).serialize_compact(),
            Scheme::Schnorr => {
                let mut pair = Keypair::from_secret_key(&secret);
                let signature = schnorr::sign_with_aux_rand(&self.message, &pair, &[0; 32]).to_byte_array();
                pair.non_secure_erase();
                signature
            }
        };
        secret.non_secure_erase();
        Some(signature)
    }

    /// The signature by libsecp256k1, if it holds for the public key of the secret: a signature with an error may
    /// reveal the secret. Core stops the program where this is `None` although the secret is a private key.
    pub fn verified_by_library(&self) -> Option<[u8; 64]> {
        let signature = self.by_library()?;
        let mut secret = SecretKey::from_secret_bytes(*self.secret).ok()?;
        let key = PublicKey::from_secret_key(&secret);
        secret.non_secure_erase();
        self.holds(&key, &signature).then_some(signature)
    }

    fn holds(&self, key: &PublicKey, signature: &[u8; 64]) -> bool {
        match self.scheme {
            Scheme::Ecdsa => ecdsa::Signature::from_compact(signature)
                .is_ok_and(|signature| ecdsa::verify(&signature, Message::from_digest(self.message), key).is_ok()),
            Scheme::Schnorr => {
                let signature = schnorr::Signature::from_byte_array(*signature);
                schnorr::verify(&signature, &self.message, &key.x_only_public_key().0).is_ok()
            }
        }
    }
}

impl Drop for ToSign {
    fn drop(&mut self) {
        wipe(&mut self.secret[..]);
    }
}

impl fmt::Debug for ToSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToSign").field("message", &self.message).field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

/// The nonce of RFC 6979 as libsecp256k1 and Core make it: `message` is the signed hash modulo n, and a `counter` above
/// zero is extra data, in 32 bytes.
pub(crate) fn rfc6979(secret: &[u8; 32], message: &[u8; 32], counter: u32) -> [u8; 32] {
    let mut data = [0; 96];
    data[..32].copy_from_slice(secret);
    data[32..64].copy_from_slice(message);
    data[64..68].copy_from_slice(&counter.to_le_bytes());
    let used = if counter == 0 { 64 } else { 96 };
    let (mut key, mut value) = ([0; 32], [1; 32]);
    for step in 0..2 {
        key = hmac(&key, &[&value, &[step], &data[..used]]);
        value = hmac(&key, &[&value]);
    }
    value = hmac(&key, &[&value]);
    wipe(&mut data);
    wipe(&mut key);
    value
}

/// HMAC-SHA256 of the concatenated parts.
fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut block = [0x36; 64];
    block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
    let mut inner = Sha256::new();
    inner.update(&block);
    for part in parts {
        inner.update(part);
    }
    block.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5c);
    let mac = Sha256::new().update(&block).update(&inner.finalize()).finalize();
    wipe(&mut block);
    mac
}

const BIP0340_NONCE: Tag = Tag::new("BIP0340/nonce");

/// The tagged hash of 32 zeros, which hides the key if there is no auxiliary randomness.
const NO_AUXILIARY: Tag = Tag::new("BIP0340/aux");

/// The nonce of BIP-0340, not yet reduced: `secret` is the private key of the point with x `key` and an even y.
pub(crate) fn bip340(secret: &[u8; 32], key: &[u8; 32], message: &[u8; 32]) -> [u8; 32] {
    let mut masked = NO_AUXILIARY.hash(&[&[0; 32]]);
    masked.iter_mut().zip(secret).for_each(|(byte, secret)| *byte ^= secret);
    let nonce = BIP0340_NONCE.hash(&[&masked, key, message]);
    wipe(&mut masked);
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_of_rfc_4231() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let mac = hmac(&key, &[b"what do ya want ", b"for nothing?"]);
        assert_eq!(mac[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        assert_eq!(mac[28..], [0x64, 0xec, 0x38, 0x43]);
    }

    #[test]
    fn secrets_are_in_no_text_and_wiped() {
        let mut one = ToSign::new(&[0xab; 32], [1; 32], Scheme::Ecdsa);
        assert!(!format!("{one:?}").contains("171"), "{one:?}");
        wipe(&mut one.secret[..]);
        assert_eq!(*one.secret, [0; 32]);
        assert_eq!(one.by_library(), None, "zero is no private key");
        assert_eq!(one.verified_by_library(), None);
    }

    #[test]
    fn only_a_signature_that_holds_is_returned() {
        for scheme in [Scheme::Ecdsa, Scheme::Schnorr] {
            // The public keys of both parities.
            for secret in [1, 2, 3, 6] {
                let one = ToSign::new(&[secret; 32], [9; 32], scheme);
                let mut signature = one.verified_by_library().unwrap();
                assert_eq!(Some(signature), one.by_library());
                let key = PublicKey::from_secret_key(&SecretKey::from_secret_bytes([secret; 32]).unwrap());
                assert!(one.holds(&key, &signature));
                signature[50] ^= 1;
                assert!(!one.holds(&key, &signature));
            }
        }
    }
}
