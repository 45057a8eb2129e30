//! Core's obfuscation of block files: every byte is xored with a key of eight bytes, aligned to the file offset
//! (node/blockstorage.cpp `InitBlocksdirXorKey`, util/obfuscation.h). Input: bytes and their offset. Output: the same
//! bytes, in place. It hides nothing; it prevents virus scanners from matching patterns in blocks.

/// The key in `xor.dat`; all zeros means no obfuscation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Obfuscation([u8; Obfuscation::SIZE]);

impl Obfuscation {
    /// Size of `xor.dat` in bytes.
    pub const SIZE: usize = 8;

    pub const NONE: Obfuscation = Obfuscation([0; Obfuscation::SIZE]);

    pub fn new(key: [u8; Obfuscation::SIZE]) -> Obfuscation {
        Obfuscation(key)
    }

    pub fn bytes(&self) -> [u8; Obfuscation::SIZE] {
        self.0
    }

    /// Applies the key to bytes at `offset` in the file. Applying it twice restores the bytes.
    pub fn apply(&self, offset: u64, bytes: &mut [u8]) {
        if *self == Obfuscation::NONE {
            return;
        }
        // In a little-endian word, a rotation to the right by eight bits advances the key by one byte.
        let bits = offset.to_le_bytes()[0] % 8 * 8;
        let key = u64::from_le_bytes(self.0).rotate_right(u32::from(bits));
        let (words, rest) = bytes.as_chunks_mut::<{ Obfuscation::SIZE }>();
        for word in words {
            *word = (u64::from_le_bytes(*word) ^ key).to_le_bytes();
        }
        rest.iter_mut().zip(key.to_le_bytes()).for_each(|(byte, mask)| *byte ^= mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_follows_the_offset_in_the_file() {
        let key = Obfuscation::new([1, 2, 3, 4, 5, 6, 7, 8]);
        let mut whole = [0; 21];
        key.apply(0, &mut whole);
        assert_eq!(whole[7..10], [8, 1, 2]);
        for start in 0..21 {
            let mut part = vec![0; 21 - start];
            key.apply(start as u64, &mut part);
            assert_eq!(part, whole[start..], "offset {start}");
        }
    }
}
