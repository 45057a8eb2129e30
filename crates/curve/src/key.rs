//! Public keys as points: Core's `CPubKey::IsFullyValid` and `CPubKey::Decompress`.
//!
//! Input: bytes of a key. Output: the same key in uncompressed form, if it is a point on the curve. Cost: a square root
//! (about 5 us) for a compressed key, one evaluation of the curve equation for another; of many keys without y, a
//! fraction of that for each.

use crate::lanes::LaneEngine;
use crate::limits::LANE_CHECKS_MIN;
use secp256k1::PublicKey;
use std::sync::OnceLock;

/// Returns the uncompressed form, `04 x y`; `None` if the bytes are not a point on the curve.
pub fn uncompressed_key(key: &[u8]) -> Option<[u8; 65]> {
    PublicKey::from_slice(key).ok().map(|key| key.serialize_uncompressed())
}

/// Returns for each x whether it is that of a point on the curve: whether it is a public key of BIP-0340. Uses the
/// fastest lanes of this CPU.
pub fn are_x_only(keys: &[[u8; 32]]) -> Vec<bool> {
    static LANES: OnceLock<Option<LaneEngine>> = OnceLock::new();
    match LANES.get_or_init(|| LaneEngine::available().into_iter().next()) {
        Some(lanes) if keys.len() >= LANE_CHECKS_MIN => lanes.are_points(keys),
        _ => keys.iter().map(is_x_only).collect(),
    }
}

fn is_x_only(key: &[u8; 32]) -> bool {
    let mut compressed = [2; 33];
    compressed[1..].copy_from_slice(key);
    uncompressed_key(&compressed).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_stdx::SplitMix64;

    /// The x of points and of none, numbers at the prime and zero; every kernel of this CPU, and the choice among them.
    #[test]
    fn lanes_know_the_points() {
        let mut random = SplitMix64::new(5);
        let mut keys: Vec<[u8; 32]> =
            (0..1_200).map(|_| std::array::from_fn(|_| random.next_u64().to_le_bytes()[0])).collect();
        let mut prime = [0xff; 32];
        prime[27..].copy_from_slice(&[0xfe, 0xff, 0xff, 0xfc, 0x2f]);
        for difference in 0..40 {
            let mut near = prime;
            near[31] = near[31] - 20 + difference;
            keys.push(near);
            keys.push(std::array::from_fn(|at| if at == 31 { difference } else { 0 }));
        }
        keys.extend([[0xff; 32], prime]);
        let expected: Vec<bool> = keys.iter().map(is_x_only).collect();
        let points = expected.iter().filter(|is_point| **is_point).count();
        assert!((500..800).contains(&points) && !expected[keys.len() - 1], "{points}");
        for engine in LaneEngine::available().into_iter().chain([LaneEngine::plain()]) {
            assert!(engine.are_points(&keys) == expected, "{engine:?}");
        }
        for count in [0, 1, 2, 3, 7, 100, 512, 513, keys.len()] {
            assert!(are_x_only(&keys[..count]) == expected[..count], "{count}");
        }
    }

    #[test]
    fn a_key_and_its_forms() {
        // The generator; its y is even.
        let x = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        let y = "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";
        let bytes = |text: String| -> Vec<u8> {
            (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
        };
        let whole = bytes(format!("04{x}{y}"));
        assert_eq!(uncompressed_key(&bytes(format!("02{x}"))).unwrap()[..], whole);
        assert_eq!(uncompressed_key(&whole).unwrap()[..], whole);
        assert_ne!(uncompressed_key(&bytes(format!("03{x}"))).unwrap()[..], whole);
        let mut off = whole.clone();
        off[64] ^= 1;
        assert_eq!(uncompressed_key(&off), None);
        assert_eq!(uncompressed_key(&bytes(format!("02{}", "00".repeat(32)))), None);
        assert_eq!(uncompressed_key(&[]), None);
    }
}
