//! One private key.
//!
//! Input: text in wallet import format. Output: its public key, and what an engine needs to sign with it. The key is
//! overwritten when it is dropped, and is not in `Debug`. For copies that the compiler makes on the stack, callers have
//! [`lydian_stdx::wipe_stack`].

use crate::expression::decode_secret;
use lydian_consensus::Chain;
use lydian_curve::{Scheme, ToSign};
use secp256k1::{PublicKey, Scalar, SecretKey};
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

    /// A signature to be made. `tweak` is added to the key that BIP-0340 signs with. `None` if the sum is no key.
    pub(super) fn to_sign(&self, digest: [u8; 32], scheme: Scheme, tweak: Option<[u8; 32]>) -> Option<ToSign> {
        let Some(tweak) = tweak else { return Some(ToSign::new(self.secret.as_secret_bytes(), digest, scheme)) };
        let tweak = Scalar::from_be_bytes(tweak).ok()?;
        // The key of the point with an even y.
        let mut even = if self.is_odd() { self.secret.negate() } else { *self.secret };
        let tweaked = even.add_tweak(&tweak);
        even.non_secure_erase();
        let mut tweaked = tweaked.ok()?;
        let wanted = ToSign::new(tweaked.as_secret_bytes(), digest, scheme);
        tweaked.non_secure_erase();
        Some(wanted)
    }

    /// Whether y of the public key is odd.
    fn is_odd(&self) -> bool {
        let place = if self.is_compressed() { self.public.first() } else { self.public.last() };
        place.is_some_and(|byte| byte & 1 == 1)
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
