//! The key of an obfuscated file: Core's `Obfuscation`.

/// Eight bytes that are combined with the content by XOR, so that virus scanners find no patterns in it. All zeros
/// change nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key(pub [u8; 8]);

impl Key {
    /// Combines bytes with the key; `offset` is that of the first one in the file. The inverse of itself.
    pub(super) fn apply(self, offset: u64, bytes: &mut [u8]) {
        let [a, b, c, d, e, f, g, h] = self.0;
        // The remainder is below 8.
        let mut rotated = [a, b, c, d, e, f, g, h];
        rotated.rotate_left(usize::try_from(offset % 8).unwrap_or(0));
        for chunk in bytes.chunks_mut(8) {
            chunk.iter_mut().zip(rotated).for_each(|(byte, key)| *byte ^= key);
        }
    }
}
