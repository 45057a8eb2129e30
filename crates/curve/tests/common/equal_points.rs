//! A check for which the formulas of the lanes are exceptional, for tests and benchmarks.

use lydian_curve::{Check, PublicKeyBytes};
use secp256k1::{PublicKey, Scalar, SecretKey};

/// message = r d and s = 2 r d for R = G: the two points with the sum R are equal, which the lanes detect only at the
/// end. With the other parity of the key they are opposite, their sum is infinity, and the check does not hold.
pub(crate) fn equal_points(d: &SecretKey, holds: bool) -> Check {
    let mut one = [0; 32];
    one[31] = 1;
    let generator = PublicKey::from_secret_key(&SecretKey::from_secret_bytes(one).unwrap());
    let r: [u8; 32] = generator.serialize()[1..].try_into().unwrap();
    let product = d.mul_tweak(&Scalar::from_be_bytes(r).unwrap()).unwrap();
    let double = product.add_tweak(&Scalar::from(product)).unwrap();
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(&double.to_secret_bytes());
    let mut key = PublicKey::from_secret_key(d).serialize();
    key[0] ^= u8::from(!holds);
    Check::Ecdsa { key: PublicKeyBytes::new(&key).unwrap(), message: product.to_secret_bytes(), signature }
}
