//! The frame of `peers.dat` and `anchors.dat`: the network's magic, the content, the double SHA-256 of both.
//!
//! Input: the bytes of a file. Output: a reader for the content and, after it was read, whether the checksum matches.
//!
//! Core's `SerializeDB` and `DeserializeDB`. As in Core, bytes after the checksum are ignored. Total on any bytes;
//! reading allocates nothing.

use lydian_hash::sha256d;
use lydian_primitives::Reader;

/// The network magic that starts every message and these files.
pub type Magic = [u8; 4];

/// The reason why a file was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The file belongs to another network or is not such a file.
    WrongNetwork,
    ChecksumMismatch,
    /// The file ends before the magic or the checksum is complete.
    Truncated,
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FrameError::WrongNetwork => "Invalid network magic number",
            FrameError::ChecksumMismatch => "Checksum mismatch, data corrupted",
            FrameError::Truncated => "AutoFile::read: end of file: iostream error",
        })
    }
}

impl std::error::Error for FrameError {}

/// Returns a file with this content.
pub(crate) fn seal(magic: Magic, content: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = magic.to_vec();
    content(&mut out);
    let checksum = sha256d(&out);
    out.extend_from_slice(&checksum);
    out
}

/// Checks the magic and returns a reader at the start of the content.
pub(crate) fn open(magic: Magic, bytes: &[u8]) -> Result<Reader<'_>, FrameError> {
    let mut reader = Reader::new(bytes);
    match reader.array() {
        Ok(found) if found == magic => Ok(reader),
        Ok(_) => Err(FrameError::WrongNetwork),
        Err(_) => Err(FrameError::Truncated),
    }
}

/// Checks that the part of `bytes` that `reader` has read is followed by its checksum.
pub(crate) fn verify(bytes: &[u8], mut reader: Reader<'_>) -> Result<(), FrameError> {
    let read = &bytes[..reader.offset()];
    let expected: [u8; 32] = reader.array().map_err(|_| FrameError::Truncated)?;
    if sha256d(read) == expected { Ok(()) } else { Err(FrameError::ChecksumMismatch) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_holds_until_a_bit_flips() {
        const MAGIC: Magic = [1, 2, 3, 4];
        let file = seal(MAGIC, |out| out.extend_from_slice(b"content"));
        let read = |bytes: &[u8]| {
            let mut reader = open(MAGIC, bytes)?;
            reader.take(7).map_err(|_| FrameError::Truncated)?;
            verify(bytes, reader)
        };
        assert_eq!(read(&file), Ok(()));
        assert_eq!(read(&[&file[..], b"more"].concat()), Ok(()));
        for index in 0..file.len() {
            let mut damaged = file.clone();
            damaged[index] ^= 0x10;
            assert!(read(&damaged).is_err(), "byte {index}");
            assert!(read(&file[..index]).is_err(), "{index} bytes");
        }
    }
}
