//! One private key.
//!
//! Input: text in wallet import format. Output: its public key, and signatures. The key is overwritten when it is
//! dropped, as far as the language allows (copies that the compiler makes on the stack are out of reach), and is not
//! in `Debug`.

use crate::expression::decode_secret;
use lydian_consensus::Chain;
use secp256k1::{Keypair, Message, PublicKey, Scalar, SecretKey, ecdsa, schnorr};
use std::fmt;

/// A private key with its public key.
pub struct PrivateKey {
    /// In a box: a map that moves its entries leaves no copies.
    secret: Box<SecretKey>,
    public: Vec<u8>,
}

impl PrivateKey {
    /// Decodes a private key of the chain: Core's `DecodeSecret`.
    pub fn from_wif(text: &str, chain: Chain) -> Option<PrivateKey> {
        let (secret, is_compressed) = decode_secret(text, chain)?;
        Some(PrivateKey::new(secret, is_compressed))
    }

    /// `is_compressed`: how its public key is written.
    pub(crate) fn new(secret: SecretKey, is_compressed: bool) -> PrivateKey {
        let public = PublicKey::from_secret_key(&secret);
        let public = match is_compressed {
            true => public.serialize().to_vec(),
            false => public.serialize_uncompressed().to_vec(),
        };
        PrivateKey { secret: Box::new(secret), public }
    }

    /// The public key, in 33 bytes if it is compressed and in 65 otherwise.
    pub fn public_key(&self) -> &[u8] {
        &self.public
    }

    pub(super) fn secret(&self) -> &SecretKey {
        &self.secret
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.public.len() == 33
    }

    /// An ECDSA signature in DER, with a nonce of RFC 6979 and r below 2^255: Core's `CKey::Sign`.
    pub(super) fn sign_ecdsa(&self, digest: [u8; 32]) -> Vec<u8> {
        ecdsa::sign_low_r(Message::from_digest(digest), &self.secret).serialize_der().to_vec()
    }

    /// A BIP-0340 signature with auxiliary randomness of zeros: Core's `CKey::SignSchnorr`. `tweak` is added to the key
    /// that BIP-0340 signs with. `None` if the sum is no key.
    pub(super) fn sign_schnorr(&self, digest: &[u8; 32], tweak: Option<[u8; 32]>) -> Option<[u8; 64]> {
        let mut pair = Keypair::from_secret_key(&self.secret);
        if let Some(tweak) = tweak {
            let mut plain = pair;
            pair = plain.add_xonly_tweak(&Scalar::from_be_bytes(tweak).ok()?).ok()?;
            plain.non_secure_erase();
        }
        let signature = schnorr::sign_with_aux_rand(digest, &pair, &[0; 32]);
        pair.non_secure_erase();
        Some(signature.to_byte_array())
    }
}

impl Drop for PrivateKey {
    fn drop(&mut self) {
        self.secret.non_secure_erase();
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").finish_non_exhaustive()
    }
}
