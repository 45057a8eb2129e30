//! A SHA-256 engine with the serialisations that signature hashes need. Input: fields. Output: the engine.
//!
//! Counts the bytes fed, and only those: a reused midstate costs nothing. No allocation.

use lydian_hash::Sha256;

#[derive(Clone, Debug)]
pub(super) struct Writer {
    pub(super) sha: Sha256,
    /// Bytes fed since the writer was created.
    pub(super) fed: u64,
}

impl Writer {
    pub(super) fn new() -> Writer {
        Writer::resume(Sha256::new())
    }

    /// Continues from a midstate.
    pub(super) fn resume(sha: Sha256) -> Writer {
        Writer { sha, fed: 0 }
    }

    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.fed += bytes.len() as u64;
        self.sha.update(bytes);
        self
    }

    #[inline]
    pub(super) fn u32(&mut self, value: u32) -> &mut Writer {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes a CompactSize in its shortest form (Core's `WriteCompactSize`).
    #[inline]
    pub(super) fn compact_size(&mut self, size: usize) -> &mut Writer {
        let size = size as u64;
        let le = size.to_le_bytes();
        match size {
            0..=0xfc => self.bytes(&le[..1]),
            0xfd..=0xffff => self.bytes(&[0xfd, le[0], le[1]]),
            0x1_0000..=0xffff_ffff => self.bytes(&[0xfe, le[0], le[1], le[2], le[3]]),
            _ => self.bytes(&[0xff]).bytes(&le),
        }
    }

    #[inline]
    pub(super) fn var_bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.compact_size(bytes.len()).bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_hash::sha256;
    use lydian_primitives::write_compact_size;

    #[test]
    fn sizes_are_written_as_primitives_write_them() {
        for size in [0, 1, 0xfc, 0xfd, 0xff, 0x100, 0xffff, 0x1_0000, 0xffff_ffff, 0x1_0000_0000] {
            let mut expected = Vec::new();
            write_compact_size(&mut expected, size);
            let mut writer = Writer::new();
            writer.compact_size(size);
            assert_eq!(writer.sha.finalize(), sha256(&expected), "{size}");
            assert_eq!(writer.fed, expected.len() as u64);
        }
    }
}
