//! The record that names the tip of an index: one file, replaced as a whole, with a head that says whose it is.
//!
//! Input: the content of the record. Output: the bytes of the file; or the content again, or an error that names the
//! file. The head has a text, the version of the format, and the hash of the genesis block. Accepts any bytes.

use crate::error::IndexError;
use lydian_disk::record::{Records, encode_record};
use lydian_disk::{Disk, DiskErrorKind, Format, read_whole};
use lydian_primitives::{BlockHash, ParseError, Reader};
use std::path::Path;

/// Larger than any file of these formats.
const FILE_SIZE_MAX: u64 = 1 << 12;

/// What the head of a file has, and what is said of another file.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) text: &'static [u8; 16],
    pub(crate) format: Format,
    pub(crate) other_file: &'static str,
    pub(crate) other_chain: &'static str,
}

impl Head {
    /// The file of a record with this content.
    pub(crate) fn encode(&self, genesis: &BlockHash, content: &[u8]) -> Vec<u8> {
        let mut payload = self.text.to_vec();
        payload.extend_from_slice(&self.format.number.to_le_bytes());
        payload.extend_from_slice(&genesis.0);
        payload.extend_from_slice(content);
        let mut bytes = Vec::new();
        encode_record(&payload, 0, &mut bytes);
        bytes
    }

    /// The content of a file; `None` if it does not exist.
    pub(crate) fn read(
        &self,
        disk: &dyn Disk,
        path: &Path,
        genesis: &BlockHash,
    ) -> Result<Option<Vec<u8>>, IndexError> {
        let bytes = match read_whole(disk, path, FILE_SIZE_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let damaged = |what| IndexError::damaged(path, 0, what);
        let Some(Ok(payload)) = Records::read(&bytes, 0).next() else {
            return Err(damaged("its checksum does not match"));
        };
        let mut reader = Reader::new(payload);
        let cut = |_: ParseError| damaged("it ends too early");
        let other = |what| IndexError::OtherFile { path: path.to_owned(), what };
        if reader.take(self.text.len()).map_err(cut)? != self.text {
            return Err(other(self.other_file));
        }
        let found = reader.u32().map_err(cut)?;
        if let Some(error) = self.format.newer(path, found) {
            return Err(IndexError::NewerFormat(error));
        }
        if found < self.format.oldest {
            return Err(other("of a format that is no longer read: delete its directory to build the index anew"));
        }
        if reader.array().map_err(cut)? != genesis.0 {
            return Err(other(self.other_chain));
        }
        let content = reader.take(reader.remaining()).map_err(cut)?;
        Ok(Some(content.to_vec()))
    }
}
