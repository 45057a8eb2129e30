//! SipHash-2-4: a keyed 64-bit hash, equal to Core's `CSipHasher`.
//!
//! Input: two key halves, then bytes, split into any number of writes. Output: 64 bits. Not collision-resistant against
//! an attacker who knows the key. No heap. Parts are concatenated without separators, so the caller must avoid
//! ambiguity.

/// An incremental SipHash computation.
#[derive(Clone, Copy, Debug)]
pub struct SipHasher {
    v: [u64; 4],
    /// Bytes that do not fill a word yet, in little-endian order.
    tail: u64,
    /// Number of bytes so far; only its lowest eight bits are hashed.
    count: u64,
}

impl SipHasher {
    pub fn new(k0: u64, k1: u64) -> SipHasher {
        SipHasher {
            v: [
                0x736f_6d65_7073_6575 ^ k0,
                0x646f_7261_6e64_6f6d ^ k1,
                0x6c79_6765_6e65_7261 ^ k0,
                0x7465_6462_7974_6573 ^ k1,
            ],
            tail: 0,
            count: 0,
        }
    }

    /// Appends bytes: whole words at once.
    #[must_use]
    pub fn write(mut self, bytes: &[u8]) -> SipHasher {
        let missing = usize::try_from(self.count.wrapping_neg() % 8).unwrap_or(0);
        let (first, rest) = bytes.split_at(missing.min(bytes.len()));
        let (words, last) = rest.as_chunks::<8>();
        self = self.write_bytes(first);
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        self.count = self.count.wrapping_add(8 * words.len() as u64);
        self.write_bytes(last)
    }

    fn write_bytes(mut self, bytes: &[u8]) -> SipHasher {
        for byte in bytes {
            self.tail |= u64::from(*byte) << (8 * (self.count % 8));
            self.count = self.count.wrapping_add(1);
            if self.count.is_multiple_of(8) {
                let word = std::mem::take(&mut self.tail);
                self.word(word);
            }
        }
        self
    }

    /// Appends the eight bytes of a number in little-endian order.
    #[must_use]
    pub fn write_u64(self, word: u64) -> SipHasher {
        self.write(&word.to_le_bytes())
    }

    pub fn finish(mut self) -> u64 {
        let last = self.tail | self.count << 56;
        self.word(last);
        self.v[2] ^= 0xff;
        for _ in 0..4 {
            self.round();
        }
        self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3]
    }

    /// Returns the hash after appending 32 bytes, processed in whole words.
    ///
    /// A faster path for short ids, of which there are many. If the bytes written before do not fill whole words, it is
    /// as slow as [`SipHasher::write`].
    pub fn hash_32(mut self, bytes: &[u8; 32]) -> u64 {
        if !self.count.is_multiple_of(8) {
            return self.write(bytes).finish();
        }
        for word in bytes.as_chunks::<8>().0 {
            self.word(u64::from_le_bytes(*word));
        }
        self.count = self.count.wrapping_add(32);
        self.finish()
    }

    fn word(&mut self, word: u64) {
        self.v[3] ^= word;
        self.round();
        self.round();
        self.v[0] ^= word;
    }

    #[inline]
    fn round(&mut self) {
        let [v0, v1, v2, v3] = &mut self.v;
        *v0 = v0.wrapping_add(*v1);
        *v1 = v1.rotate_left(13) ^ *v0;
        *v0 = v0.rotate_left(32);
        *v2 = v2.wrapping_add(*v3);
        *v3 = v3.rotate_left(16) ^ *v2;
        *v0 = v0.wrapping_add(*v3);
        *v3 = v3.rotate_left(21) ^ *v0;
        *v2 = v2.wrapping_add(*v1);
        *v1 = v1.rotate_left(17) ^ *v2;
        *v2 = v2.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Core's hash_tests, taken from the SipHash paper.
    #[test]
    fn cores_vectors() {
        let new = || SipHasher::new(0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908);
        assert_eq!(new().finish(), 0x726f_db47_dd0e_0e31);
        assert_eq!(new().write(&[0]).finish(), 0x74f8_39c5_93dc_67fd);
        let seven = new().write(&[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(seven.finish(), 0x93f5_f579_9a93_2462);
        let sixteen = seven.write_u64(0x0F0E_0D0C_0B0A_0908);
        assert_eq!(sixteen.finish(), 0x3f2a_cc7f_57c2_9bdb);
        assert_eq!(sixteen.write(&[16, 17]).finish(), 0x4bc1_b3f0_968d_d39c);
        let bytes: [u8; 32] = std::array::from_fn(|index| u8::try_from(index).unwrap());
        assert_eq!(new().hash_32(&bytes), 0x7127_512f_72f2_7cce);
        for cut in 0..=32 {
            assert_eq!(new().write(&bytes[..cut]).write(&bytes[cut..]).finish(), 0x7127_512f_72f2_7cce);
        }
        for (from, to) in (0..32).flat_map(|from| (from..32).map(move |to| (from, to))) {
            let [first, second, third] = [&bytes[..from], &bytes[from..to], &bytes[to..]];
            assert_eq!(new().write(first).write(second).write(third).finish(), 0x7127_512f_72f2_7cce);
        }
        assert_eq!(new().write(&[0]).hash_32(&bytes), new().write(&[0]).write(&bytes).finish());
    }
}
