//! The maps of a PSBT as a stream of keys and values.
//!
//! Input: bytes. Output: keys, each once in its map, and values as the fields want them: Core reads a value from the
//! whole stream and compares its size afterwards, so a value that is longer than stated is another error than one that
//! is cut off.

use crate::error::ReadError;
use lydian_curve::uncompressed_key;
use lydian_descriptor::KeyOrigin;
use lydian_primitives::{ParseError, Reader, Transaction, transaction};
use std::collections::{BTreeSet, HashSet};

/// A cursor over the bytes of a PSBT.
#[derive(Debug)]
pub(crate) struct Stream<'a> {
    bytes: &'a [u8],
    reader: Reader<'a>,
    /// Public keys that are known to be on the curve.
    points: HashSet<&'a [u8]>,
}

/// A key of a map: its type and all its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    pub(crate) kind: usize,
    /// With the type in front.
    pub(crate) bytes: &'a [u8],
    /// Behind the type.
    pub(crate) data: &'a [u8],
}

impl Key<'_> {
    /// Core's `ExpectedKeySize`: with the type in front.
    pub(crate) fn expect_size(&self, expected: usize, field: &'static str) -> Result<(), ReadError> {
        if self.bytes.len() == expected { Ok(()) } else { Err(ReadError::KeySize { expected, field }) }
    }
}

/// The keys that a map has so far.
#[derive(Debug)]
pub(crate) struct KeySet<'a> {
    map: &'static str,
    seen: BTreeSet<&'a [u8]>,
}

impl<'a> KeySet<'a> {
    pub(crate) fn new(map: &'static str) -> KeySet<'a> {
        KeySet { map, seen: BTreeSet::new() }
    }
}

impl<'a> Stream<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Stream<'a> {
        Stream { bytes, reader: Reader::new(bytes), points: HashSet::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.reader.remaining() == 0
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        Ok(self.reader.array()?)
    }

    pub(crate) fn compact_size(&mut self) -> Result<usize, ReadError> {
        Ok(self.reader.compact_size()?)
    }

    /// Whether a public key is on the curve. Most keys are in two fields of an input or in several inputs.
    pub(crate) fn is_point(&mut self, key: &'a [u8]) -> bool {
        self.points.contains(key) || uncompressed_key(key).is_some() && self.points.insert(key)
    }

    /// A value of any size.
    pub(crate) fn value(&mut self) -> Result<&'a [u8], ReadError> {
        Ok(self.reader.var_bytes()?)
    }

    /// The next key of a map; `None` at its end. `no_end` is the error if the bytes end before the map.
    pub(crate) fn key(&mut self, keys: &mut KeySet<'a>, no_end: &'static str) -> Result<Option<Key<'a>>, ReadError> {
        if self.is_empty() {
            return Err(ReadError::Field(no_end));
        }
        let bytes = self.value()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if !keys.seen.insert(bytes) {
            return Err(ReadError::DuplicateKey { map: keys.map, key: bytes.to_vec() });
        }
        let mut reader = Reader::new(bytes);
        let kind = reader.compact_size()?;
        Ok(Some(Key { kind, bytes, data: &bytes[reader.offset()..] }))
    }

    /// Core's `UnserializeFromVector`: a value that `read` reads, of exactly the stated size.
    pub(crate) fn sized<T>(
        &mut self,
        read: impl FnOnce(&mut Stream<'a>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let stated = self.compact_size()?;
        match self.measured(read)? {
            (found, size) if size == stated => Ok(found),
            _ => Err(ReadError::Field("Size of value was not the stated size")),
        }
    }

    /// What `read` reads, and its size.
    pub(crate) fn measured<T>(
        &mut self,
        read: impl FnOnce(&mut Stream<'a>) -> Result<T, ReadError>,
    ) -> Result<(T, usize), ReadError> {
        let start = self.reader.offset();
        let found = read(self)?;
        Ok((found, self.reader.offset() - start))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ReadError> {
        self.sized(|stream| Ok(stream.reader.u32()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, ReadError> {
        self.sized(|stream| Ok(stream.reader.i64()?))
    }

    pub(crate) fn sized_array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        self.sized(Stream::array)
    }

    /// A transaction with or without witness.
    pub(crate) fn transaction(&mut self) -> Result<Transaction, ReadError> {
        self.parsed(transaction::skip, Transaction::parse)
    }

    /// A transaction without witness, which may have no inputs.
    pub(crate) fn stripped_transaction(&mut self) -> Result<Transaction, ReadError> {
        self.parsed(transaction::skip_without_witness, Transaction::parse_without_witness)
    }

    fn parsed(
        &mut self,
        skip: fn(&mut Reader<'_>) -> Result<(), ParseError>,
        parse: impl FnOnce(&'a [u8]) -> Result<Transaction, ParseError>,
    ) -> Result<Transaction, ReadError> {
        self.sized(|stream| {
            let start = stream.reader.offset();
            skip(&mut stream.reader)?;
            Ok(parse(&stream.bytes[start..stream.reader.offset()])?)
        })
    }

    /// Core's `DeserializeKeyOrigin`.
    pub(crate) fn key_origin(&mut self, size: usize) -> Result<KeyOrigin, ReadError> {
        if !size.is_multiple_of(4) || size == 0 {
            return Err(ReadError::Field("Invalid length for HD key path"));
        }
        let fingerprint = self.array()?;
        let mut path = Vec::new();
        for _ in 1..size / 4 {
            path.push(self.reader.u32()?);
        }
        Ok(KeyOrigin { fingerprint, path })
    }
}
