//! Public keys as points: Core's `CPubKey::IsFullyValid` and `CPubKey::Decompress`.
//!
//! Input: bytes of a key. Output: the same key in uncompressed form, if it is a point on the curve. Cost: a square root
//! (about 5 us) for a compressed key, one evaluation of the curve equation for another.

use secp256k1::PublicKey;

/// Returns the uncompressed form, `04 x y`; `None` if the bytes are not a point on the curve.
pub fn uncompressed_key(key: &[u8]) -> Option<[u8; 65]> {
    PublicKey::from_slice(key).ok().map(|key| key.serialize_uncompressed())
}

#[cfg(test)]
mod tests {
    use super::*;

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
