//! What [`crate::TestSigner`] is asked for, and its results. Data, and the signature by libsecp256k1.

use secp256k1::{Keypair, Message, SecretKey, ecdsa, schnorr};

/// The x of a public key, and whether its y is odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicPoint {
    pub x: [u8; 32],
    pub is_odd: bool,
}

impl PublicPoint {
    /// The 33 bytes of SEC 1.
    pub fn compressed(&self) -> [u8; 33] {
        let mut bytes = [2 + u8::from(self.is_odd); 33];
        bytes[1..].copy_from_slice(&self.x);
        bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestScheme {
    /// With the first nonce, so that r has any size, and s in its lower form.
    Ecdsa,
    /// BIP-0340.
    Schnorr,
}

/// A signature to be made.
#[derive(Clone, Copy, Debug)]
pub struct TestSignature {
    /// A valid private key.
    pub secret: [u8; 32],
    /// The public key of `secret`.
    pub key: PublicPoint,
    pub message: [u8; 32],
    pub scheme: TestScheme,
}

impl TestSignature {
    /// The signature by libsecp256k1. `None` if the secret is no private key.
    pub(crate) fn by_library(&self) -> Option<[u8; 64]> {
        let secret = SecretKey::from_secret_bytes(self.secret).ok()?;
        Some(match self.scheme {
            TestScheme::Ecdsa => ecdsa::sign(Message::from_digest(self.message), &secret).serialize_compact(),
            TestScheme::Schnorr => {
                schnorr::sign_no_aux_rand(&self.message, &Keypair::from_secret_key(&secret)).to_byte_array()
            }
        })
    }
}
