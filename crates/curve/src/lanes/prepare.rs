//! Converts checks with all numbers in range into limbs, as input for the lanes.
//!
//! Input: a [`Check`]. Output: its kind and numbers, or `None` for an unusual check, which the reference decides. Cost:
//! about ten nanoseconds; for Schnorr, two more blocks of SHA-256 for the challenge. Must never: decide anything.

use crate::{Check, PublicKeyBytes};
use lydian_hash::BIP0340_CHALLENGE;

/// p, least significant word first.
const PRIME: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];
/// n.
pub(super) const ORDER: [u64; 4] = [0xbfd2_5e8c_d036_4141, 0xbaae_dce6_af48_a03b, 0xffff_ffff_ffff_fffe, u64::MAX];
/// p - n: an r below it matches two x coordinates.
const PRIME_LESS_ORDER: [u64; 4] = [0x402d_a172_2fc9_baee, 0x4551_2319_50b7_5fc4, 1, 0];

/// The kinds of check, each with its own code path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ecdsa,
    Schnorr,
    Tweak,
}

/// A check as numbers of five limbs each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    /// Index of the verdict.
    pub(crate) index: usize,
    /// x of the key, below p.
    pub(crate) key: [u64; 5],
    /// y of a key that is not compressed, below p; not checked to be that of a point.
    pub(crate) y: Option<[u64; 5]>,
    /// Required x of the sum, below p.
    pub(crate) r: [u64; 5],
    /// ECDSA: the message modulo n. Schnorr: s. Tweak: the tweak.
    pub(crate) u: [u64; 5],
    /// ECDSA: s. Schnorr: the challenge modulo n. Below n.
    pub(crate) v: [u64; 5],
    /// ECDSA: whether y of the key is odd. Tweak: whether y of the output is odd.
    pub(crate) is_odd: bool,
}

pub(crate) fn prepare(index: usize, check: &Check) -> Option<(Kind, Prepared)> {
    match check {
        Check::Ecdsa { key, message, signature } => {
            let (key, y, is_odd) = coordinates(key)?;
            let (r, s) = halves(signature);
            let is_usual = is_below(&r, &ORDER) && !is_below(&r, &PRIME_LESS_ORDER);
            let v = Some(s).filter(|s| is_below(s, &ORDER) && *s != [0; 4])?;
            let u = modulo_order(words(message));
            is_usual.then_some((Kind::Ecdsa, Prepared { index, key, y, r: limbs(r), u: limbs(u), v: limbs(v), is_odd }))
        }
        Check::Schnorr { key, message, signature } => {
            let (r, s) = halves(signature);
            let challenge = BIP0340_CHALLENGE.hash(&[&signature[..32], key, message]);
            let u = Some(s).filter(|s| is_below(s, &ORDER))?;
            let v = modulo_order(words(&challenge));
            let prepared = Prepared {
                index,
                key: below_prime(words(key))?,
                y: None,
                r: below_prime(r)?,
                u: limbs(u),
                v: limbs(v),
                is_odd: false,
            };
            Some((Kind::Schnorr, prepared))
        }
        Check::Tweak { output, is_odd, internal, tweak } => {
            let u = Some(words(tweak)).filter(|tweak| is_below(tweak, &ORDER))?;
            let (key, r) = (below_prime(words(internal))?, below_prime(words(output))?);
            Some((Kind::Tweak, Prepared { index, key, y: None, r, u: limbs(u), v: [0; 5], is_odd: *is_odd }))
        }
    }
}

/// x, y if the key has one, and whether y is odd; `None` for a coordinate from p up, or a hybrid key with the wrong
/// prefix.
fn coordinates(key: &PublicKeyBytes) -> Option<([u64; 5], Option<[u64; 5]>, bool)> {
    let (prefix, rest) = key.as_bytes().split_first()?;
    match (prefix, rest.as_chunks::<32>().0) {
        (2 | 3, [x]) => Some((below_prime(words(x))?, None, prefix & 1 == 1)),
        (4 | 6 | 7, [x, y]) => {
            let is_odd = y[31] & 1 == 1;
            let is_usual = *prefix == 4 || (*prefix == 7) == is_odd;
            is_usual.then_some((below_prime(words(x))?, Some(below_prime(words(y))?), is_odd))
        }
        _ => None,
    }
}

pub(super) fn below_prime(value: [u64; 4]) -> Option<[u64; 5]> {
    is_below(&value, &PRIME).then(|| limbs(value))
}

/// r and s.
fn halves(signature: &[u8; 64]) -> ([u64; 4], [u64; 4]) {
    let [r, s] = signature.as_chunks::<32>().0 else { return ([0; 4], [0; 4]) };
    (words(r), words(s))
}

/// Converts big-endian bytes to words, least significant first.
pub(super) fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let chunks = bytes.as_chunks::<8>().0;
    std::array::from_fn(|i| u64::from_be_bytes(chunks[3 - i]))
}

pub(super) fn limbs([a, b, c, d]: [u64; 4]) -> [u64; 5] {
    let limb = super::LIMB;
    [a & limb, (a >> 52 | b << 12) & limb, (b >> 40 | c << 24) & limb, (c >> 28 | d << 36) & limb, d >> 16]
}

pub(super) fn is_below(a: &[u64; 4], b: &[u64; 4]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

/// Reduces any 256-bit value modulo n; one subtraction is enough, since the value is below 2 n.
pub(super) fn modulo_order(value: [u64; 4]) -> [u64; 4] {
    if is_below(&value, &ORDER) {
        return value;
    }
    let (mut less, mut borrow) = ([0; 4], false);
    for i in 0..4 {
        let (apart, below) = value[i].overflowing_sub(ORDER[i]);
        let (apart, again) = apart.overflowing_sub(u64::from(borrow));
        (less[i], borrow) = (apart, below || again);
    }
    less
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_order() {
        assert_eq!(modulo_order(ORDER), [0; 4]);
        assert_eq!(modulo_order([u64::MAX; 4]), [0x402d_a173_2fc9_bebe, 0x4551_2319_50b7_5fc4, 1, 0]);
        let below = [ORDER[0] - 1, ORDER[1], ORDER[2], ORDER[3]];
        assert_eq!(modulo_order(below), below);
        assert!(below_prime(PRIME).is_none());
        assert!(below_prime([PRIME[0] - 1, u64::MAX, u64::MAX, u64::MAX]).is_some());
    }
}
