//! Signatures of generated spends: over the right digest, in every encoding that a script may receive.
//!
//! Input: a plan and a digest. Output: the bytes of the stack element. Invariant: Core accepts a signature of shape
//! `Plain` for that digest.

use super::keys::keypair;
use lydian_script::push_header;
use secp256k1::{Keypair, Message, Scalar, SecretKey, ecdsa, schnorr};

/// The parameters of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigPlan {
    pub key: u8,
    pub hash_type: u8,
    /// Number of OP_CODESEPARATORs of the script before the script code.
    pub separators: u8,
    pub shape: Shape,
}

impl SigPlan {
    /// SIGHASH_ALL over the whole script.
    pub fn all(key: u8) -> Self {
        Self { key, hash_type: 1, separators: 0, shape: Shape::Plain }
    }
}

/// The change applied to a signature after it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Plain,
    /// The negated s, above half the order.
    HighS,
    /// Superfluous zeros before r or s.
    PaddedR,
    PaddedS,
    /// BER: the length of the sequence, or of r, in two bytes.
    LongLength,
    LongLengthR,
    /// A byte after s, inside or outside of the sequence.
    TrailingInside,
    TrailingOutside,
    /// Without the zero before a high bit, so that r is negative in DER.
    NegativeR,
    ZeroR,
    ZeroS,
    /// All bits set: above the order.
    OverflowR,
    OverflowS,
    /// The order of the group itself, which is zero if reduced.
    OrderR,
    /// Without the hash type.
    NoHashType,
    /// A wrong length byte of the sequence, or of s.
    WrongLength,
    WrongLengthS,
    /// A wrong tag of the integer, or of the sequence.
    WrongTag,
    WrongTagSequence,
    /// One bit of s is flipped.
    Flipped,
    Empty,
    /// One byte: the hash type alone.
    HashTypeAlone,
}

impl Shape {
    pub const ALL: [Shape; 22] = [
        Shape::Plain,
        Shape::HighS,
        Shape::PaddedR,
        Shape::PaddedS,
        Shape::LongLength,
        Shape::LongLengthR,
        Shape::TrailingInside,
        Shape::TrailingOutside,
        Shape::NegativeR,
        Shape::ZeroR,
        Shape::ZeroS,
        Shape::OverflowR,
        Shape::OverflowS,
        Shape::OrderR,
        Shape::NoHashType,
        Shape::WrongLength,
        Shape::WrongLengthS,
        Shape::WrongTag,
        Shape::WrongTagSequence,
        Shape::Flipped,
        Shape::Empty,
        Shape::HashTypeAlone,
    ];
}

/// The order of the group, big-endian.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xba, 0xae, 0xdc,
    0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
];

/// Returns an ECDSA signature with its hash type.
pub(super) fn ecdsa_signature(plan: &SigPlan, digest: [u8; 32]) -> Vec<u8> {
    let key = SecretKey::from_keypair(keypair(plan.key));
    let compact = ecdsa::sign(Message::from_digest(digest), &key).serialize_compact();
    let (mut r, mut s) = (integer(&compact[..32]), integer(&compact[32..]));
    match plan.shape {
        Shape::HighS => s = integer(&negated(&compact[32..])),
        Shape::PaddedR => r.insert(0, 0),
        Shape::PaddedS => s.insert(0, 0),
        Shape::NegativeR if r[0] == 0 => drop(r.remove(0)),
        Shape::ZeroR => r = vec![0],
        Shape::ZeroS => s = vec![0],
        Shape::OverflowR => r = integer(&[0xff; 32]),
        Shape::OverflowS => s = integer(&[0xff; 32]),
        Shape::OrderR => r = integer(&ORDER),
        Shape::Flipped => s[5] ^= 4,
        Shape::Empty => return Vec::new(),
        Shape::HashTypeAlone => return vec![plan.hash_type],
        _ => {}
    }
    let mut der = der_of(plan.shape, &r, &s);
    if plan.shape != Shape::NoHashType {
        der.push(plan.hash_type);
    }
    der
}

/// Returns a BIP-0340 signature with its hash type, unless that is the default.
pub(super) fn schnorr_signature(plan: &SigPlan, key: &Keypair, digest: [u8; 32]) -> Vec<u8> {
    let mut signature = schnorr::sign_no_aux_rand(&digest, key).to_byte_array().to_vec();
    match plan.shape {
        Shape::HighS => {
            let high = negated(&signature[32..]);
            signature[32..].copy_from_slice(&high);
        }
        Shape::ZeroR => signature[..32].fill(0),
        Shape::ZeroS => signature[32..].fill(0),
        Shape::OverflowR => signature[..32].fill(0xff),
        Shape::OverflowS => signature[32..].fill(0xff),
        Shape::OrderR => signature[32..].copy_from_slice(&ORDER),
        Shape::Flipped => signature[40] ^= 4,
        Shape::WrongLength => drop(signature.pop()),
        Shape::TrailingInside => signature.push(plan.hash_type),
        Shape::Empty => return Vec::new(),
        Shape::HashTypeAlone => return vec![plan.hash_type],
        _ => {}
    }
    // An explicit default hash type is an error.
    if (plan.hash_type != 0 && plan.shape != Shape::NoHashType) || plan.shape == Shape::TrailingOutside {
        signature.push(plan.hash_type);
    }
    signature
}

/// Encodes r and s as a DER sequence, modified by the shape.
fn der_of(shape: Shape, r: &[u8], s: &[u8]) -> Vec<u8> {
    let mut body = vec![if shape == Shape::WrongTag { 3 } else { 2 }];
    let length = |of: &[u8]| push_header(of.len()).0[0];
    if shape == Shape::LongLengthR {
        body.push(0x81);
    }
    body.push(length(r));
    body.extend_from_slice(r);
    let longer = u8::from(shape == Shape::WrongLengthS);
    body.extend_from_slice(&[2, length(s) + longer]);
    body.extend_from_slice(s);
    if shape == Shape::TrailingInside {
        body.push(0);
    }
    let mut der = vec![if shape == Shape::WrongTagSequence { 0x31 } else { 0x30 }];
    if shape == Shape::LongLength {
        der.push(0x81);
    }
    der.push(u8::try_from(body.len()).unwrap_or(0x7f) + u8::from(shape == Shape::WrongLength));
    der.extend_from_slice(&body);
    if shape == Shape::TrailingOutside {
        der.push(0);
    }
    der
}

/// Encodes 32 bytes as a DER integer: no leading zeros except one that keeps it positive.
fn integer(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len().saturating_sub(1));
    let value = &bytes[start..];
    if value[0] >= 0x80 { [&[0], value].concat() } else { value.to_vec() }
}

/// Returns the order minus `s`, or `s` itself if it is not a valid scalar.
fn negated(s: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(s);
    match SecretKey::from_secret_bytes(bytes) {
        Ok(scalar) => Scalar::from(scalar.negate()).to_be_bytes(),
        Err(_) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_curve::{Check, Engine, PublicKeyBytes, Reference, parse_der_lax};
    use lydian_script::is_strict_der;

    fn holds(key: u8, signature: &[u8], message: [u8; 32]) -> bool {
        let Some((_, der)) = signature.split_last() else { return false };
        let Some(compact) = parse_der_lax(der) else { return false };
        let key = PublicKeyBytes::new(&keypair(key).public_key().serialize()).unwrap();
        let mut verdict = [false];
        Reference.verify(&[Check::Ecdsa { key, message, signature: compact }], &mut verdict);
        verdict[0]
    }

    #[test]
    fn shapes_hold_or_do_not() {
        let valid = [Shape::Plain, Shape::HighS, Shape::PaddedR, Shape::PaddedS, Shape::LongLength, Shape::LongLengthR];
        let trailing = [Shape::TrailingInside, Shape::TrailingOutside, Shape::NegativeR, Shape::WrongLength];
        for key in 0..24 {
            let digest = lydian_hash::sha256(&[key]);
            for shape in Shape::ALL {
                let signature = ecdsa_signature(&SigPlan { shape, ..SigPlan::all(key) }, digest);
                if valid.contains(&shape) || trailing.contains(&shape) {
                    assert!(holds(key, &signature, digest), "{shape:?} {key}");
                } else {
                    assert!(!holds(key, &signature, digest), "{shape:?} {key}");
                }
                let is_strict = matches!(shape, Shape::Plain | Shape::HighS);
                assert!(!is_strict || is_strict_der(&signature), "{shape:?} {key}");
            }
            let plain = schnorr_signature(&SigPlan { hash_type: 0, ..SigPlan::all(key) }, keypair(key), digest);
            let public = keypair(key).x_only_public_key().0.to_byte_array();
            let signature = plain.try_into().unwrap();
            let mut verdict = [false];
            Reference.verify(&[Check::Schnorr { key: public, message: digest, signature }], &mut verdict);
            assert!(verdict[0]);
        }
    }
}
