//! The form of every value in the store: a checksum over its key and its content.
//!
//! Input: a key and the content. Output: the value, or the content again. A value is a record of the crate `disk`
//! (size, XXH3-64, payload) whose payload is a text of four bytes, the version of the format, the key and the content:
//! bytes that are damaged, or stored under another key, are errors. Accepts any bytes.

use crate::store::{BlockHeight, BlockKey, Bucket, DeltaHeight, DeltaKey, Key, PageKey, StoreError};
use lydian_disk::record::{Records, encode_record};

/// The version of all values but commit rows that name blocks. A reader refuses a newer one.
pub const SHARED_FORMAT: u16 = 1;

/// The version of commit rows that name blocks, which releases without [`crate::BlockRun`] refuse.
pub const BLOCKS_FORMAT: u16 = 2;

const PAGE: &[u8; 4] = b"LyPg";
const DELTA: &[u8; 4] = b"LyDl";
const BLOCK: &[u8; 4] = b"LyBl";
const COMMIT: &[u8; 4] = b"LyCm";

/// What a value is stored under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealed {
    Value(Key),
    /// The commit row with this sequence.
    Commit(u64),
}

impl Sealed {
    fn head(&self, version: u16) -> Vec<u8> {
        let text = match self {
            Sealed::Value(Key::Page(_)) => PAGE,
            Sealed::Value(Key::Delta(_)) => DELTA,
            Sealed::Value(Key::Block(_)) => BLOCK,
            Sealed::Commit(_) => COMMIT,
        };
        [&text[..], &version.to_le_bytes(), &self.key()].concat()
    }

    fn key(&self) -> Vec<u8> {
        match self {
            Sealed::Value(Key::Page(PageKey { bucket: Bucket { generation, table, page }, part })) => {
                [&generation.to_le_bytes()[..], &[*table as u8], &page.to_le_bytes(), &part.to_le_bytes()].concat()
            }
            Sealed::Value(Key::Delta(DeltaKey { at: DeltaHeight { series, height }, hash })) => {
                [&series.to_le_bytes()[..], &height.to_le_bytes(), &hash.0].concat()
            }
            Sealed::Value(Key::Block(BlockKey { at: BlockHeight { series, height }, hash, part })) => {
                [&series.to_le_bytes()[..], &height.to_le_bytes(), &hash.0, &part.to_le_bytes()].concat()
            }
            Sealed::Commit(sequence) => sequence.to_le_bytes().to_vec(),
        }
    }

    fn name(&self) -> String {
        match self {
            Sealed::Value(key) => key.to_string(),
            Sealed::Commit(sequence) => format!("commit row {sequence}"),
        }
    }

    pub(crate) fn damaged(&self, what: &'static str) -> StoreError {
        StoreError::Damaged { key: self.name(), what }
    }

    /// The value with this content.
    pub(crate) fn seal(&self, content: &[u8]) -> Vec<u8> {
        self.seal_as(SHARED_FORMAT, content)
    }

    /// The same in a version.
    pub(crate) fn seal_as(&self, version: u16, content: &[u8]) -> Vec<u8> {
        let mut payload = self.head(version);
        payload.extend_from_slice(content);
        let mut value = Vec::new();
        encode_record(&payload, 0, &mut value);
        value
    }

    /// The content of a value.
    pub(crate) fn open<'a>(&self, value: &'a [u8]) -> Result<&'a [u8], StoreError> {
        self.open_as(SHARED_FORMAT, value).map(|(_, content)| content)
    }

    /// The content of a value, and its version, which is `newest` at most.
    pub(crate) fn open_as<'a>(&self, newest: u16, value: &'a [u8]) -> Result<(u16, &'a [u8]), StoreError> {
        let mut records = Records::read(value, 0);
        let Some(Ok(payload)) = records.next() else { return Err(self.damaged("its checksum does not match")) };
        if records.next().is_some() {
            return Err(self.damaged("bytes follow it"));
        }
        let own = self.head(newest);
        let (text, found) = own.split_at(4);
        let Some(rest) = payload.strip_prefix(text) else { return Err(self.damaged("it is a value of another kind")) };
        let Some((version, rest)) = rest.split_first_chunk::<2>() else {
            return Err(self.damaged("it ends too early"));
        };
        let version = u16::from_le_bytes(*version);
        if !(SHARED_FORMAT..=newest).contains(&version) {
            let reason = format!("{} has format {version}; this release reads format {newest}", self.name());
            return Err(StoreError::Refused { reason });
        }
        let key = found.get(2..).unwrap_or_default();
        let content = rest.strip_prefix(key).ok_or_else(|| self.damaged("it is the value of another key"))?;
        Ok((version, content))
    }
}
