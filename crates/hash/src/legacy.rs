//! The hash functions that only script still needs: RIPEMD-160, SHA-1, and HASH160.
//!
//! Input: bytes. Output: 20 bytes. RIPEMD-160 and SHA-1 are the RustCrypto implementations. RIPEMD-160 is the plain
//! twin of the kernels in `ripemd160`, which hash the keys of many inputs at once. Cost: one compression per 64 bytes.
//! Must never: be used where collision resistance is needed (`OP_SHA1` exists only because it is a consensus rule).

use ripemd::Digest;

use crate::sha256::sha256;

/// RIPEMD-160 of the SHA-256, the commitment in P2PKH, P2SH and P2WPKH outputs (`CHash160`).
#[must_use]
pub fn hash160(bytes: &[u8]) -> [u8; 20] {
    ripemd160(&sha256(bytes))
}

/// RIPEMD-160, as computed by `OP_RIPEMD160`.
#[must_use]
pub fn ripemd160(bytes: &[u8]) -> [u8; 20] {
    ripemd::Ripemd160::digest(bytes).into()
}

/// SHA-1, as computed by `OP_SHA1`.
#[must_use]
pub fn sha1(bytes: &[u8]) -> [u8; 20] {
    sha1::Sha1::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(actual: [u8; 20], expected: &str) {
        let hex: String = actual.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected);
    }

    /// RIPEMD-160: the examples on its authors' page; SHA-1: FIPS 180-4 examples; HASH160: the generator as a public
    /// key.
    #[test]
    fn published_examples() {
        check(ripemd160(b""), "9c1185a5c5e9fc54612808977ee8f548b2258d31");
        check(ripemd160(b"abc"), "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc");
        check(ripemd160(b"message digest"), "5d0689ef49d2fae572b881b123a85ffa21595f36");
        check(sha1(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        check(sha1(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let generator = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        let key: Vec<u8> =
            (0..33).map(|i| u8::from_str_radix(&generator[2 * i..2 * i + 2], 16).expect("hex")).collect();
        check(hash160(&key), "751e76e8199196d454941c45d1b3a323f1433bd6");
    }
}
