//! [`Key`]: an outpoint and its hash under the store's own secret. Input: outpoint and secret. Output: 64 bits.
//!
//! SipHash-1-3 of the outpoint's 36 bytes. The creator of a transaction cannot choose colliding outpoints, because the
//! secret is random for each new store. Cost: 9 rounds, about 10 ns. The hash must never depend on anything but
//! outpoint and secret, because it determines the location of a record on disk.

use crate::PARTITIONS;
use lydian_primitives::OutPoint;

/// An outpoint with its hash, which is computed only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub outpoint: OutPoint,
    pub hash: u64,
}

/// The 128 bits that make the hashes of one store different from those of another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret {
    low: u64,
    high: u64,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Secret {
        let number = u128::from_le_bytes(bytes);
        Secret { low: low_half(number), high: low_half(number >> 64) }
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.high) << 64 | u128::from(self.low)).to_le_bytes()
    }

    pub(crate) fn key(self, outpoint: OutPoint) -> Key {
        let mut state = [
            self.low ^ 0x736f_6d65_7073_6575,
            self.high ^ 0x646f_7261_6e64_6f6d,
            self.low ^ 0x6c79_6765_6e65_7261,
            self.high ^ 0x7465_6462_7974_6573,
        ];
        for word in outpoint.txid.0.as_chunks::<8>().0 {
            absorb(&mut state, u64::from_le_bytes(*word));
        }
        // The last word contains the length, 36, in its most significant byte.
        absorb(&mut state, 36 << 56 | u64::from(outpoint.vout));
        state[2] ^= 0xff;
        (0..3).for_each(|_| round(&mut state));
        Key { outpoint, hash: state[0] ^ state[1] ^ state[2] ^ state[3] }
    }
}

/// The partition of a key.
pub(crate) fn partition_of(hash: u64) -> usize {
    const { assert!(PARTITIONS == 16) };
    usize::from(hash.to_be_bytes()[0] >> 4)
}

fn low_half(number: u128) -> u64 {
    u64::try_from(number & u128::from(u64::MAX)).unwrap_or(0)
}

#[inline]
fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    round(state);
    state[0] ^= word;
}

#[inline]
fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::Txid;
    use std::hash::Hasher;

    /// `DefaultHasher` is SipHash-1-3 with a key of zero. With that key our hash must be the same.
    #[test]
    fn equal_to_the_hasher_of_the_standard_library() {
        for seed in 0..50u8 {
            let outpoint = OutPoint { txid: Txid([seed.wrapping_mul(37); 32]), vout: u32::from(seed) * 0x0101_0101 };
            let mut hasher = std::collections::hash_map::DefaultHasher::new();
            hasher.write(&outpoint.to_bytes());
            assert_eq!(Secret::from_bytes([0; 16]).key(outpoint).hash, hasher.finish());
        }
    }

    #[test]
    fn the_secret_matters_and_comes_back() {
        let bytes: [u8; 16] = std::array::from_fn(|index| u8::try_from(index).unwrap());
        let secret = Secret::from_bytes(bytes);
        assert_eq!(secret.to_bytes(), bytes);
        let outpoint = OutPoint { txid: Txid([1; 32]), vout: 0 };
        assert_ne!(secret.key(outpoint).hash, Secret::from_bytes([0; 16]).key(outpoint).hash);
        assert_eq!(partition_of(0xf000_0000_0000_0000), 15);
    }
}
