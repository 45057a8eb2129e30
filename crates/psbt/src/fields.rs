//! Fields that inputs and outputs share.
//!
//! Input: a key, and the stream at its value. Output: the entry of a map.

use crate::error::ReadError;
use crate::stream::{Key, Stream};
use crate::types::{Proprietary, TaprootOrigins, Unknown};
use lydian_curve::uncompressed_key;
use lydian_descriptor::{KeyOrigin, MusigParticipants};
use lydian_primitives::Reader;
use std::collections::{BTreeMap, BTreeSet};

/// Size of a compressed public key, and of an uncompressed one.
pub(crate) const COMPRESSED: usize = 33;
pub(crate) const UNCOMPRESSED: usize = 65;

/// The type of a proprietary field in every map.
pub(crate) const PROPRIETARY: usize = 0xfc;

/// `words` unless `holds`.
pub(crate) fn require(holds: bool, words: &'static str) -> Result<(), ReadError> {
    if holds { Ok(()) } else { Err(ReadError::Field(words)) }
}

/// The public key behind the type; `wrong_size` if the key has no size of a public key.
pub(crate) fn public_key<'a>(
    stream: &mut Stream<'a>,
    key: &Key<'a>,
    wrong_size: &'static str,
) -> Result<Vec<u8>, ReadError> {
    require(matches!(key.bytes.len().checked_sub(1), Some(COMPRESSED | UNCOMPRESSED)), wrong_size)?;
    let public = &key.bytes[1..];
    require(stream.is_point(public), "Invalid pubkey")?;
    Ok(public.to_vec())
}

pub(crate) fn read_origin<'a>(
    stream: &mut Stream<'a>,
    key: &Key<'a>,
    origins: &mut BTreeMap<Vec<u8>, KeyOrigin>,
) -> Result<(), ReadError> {
    let public = public_key(stream, key, "Size of key was not the expected size for the type BIP32 keypath")?;
    let size = stream.compact_size()?;
    origins.insert(public, stream.key_origin(size)?);
    Ok(())
}

/// The x-only key behind the type has been checked for its size.
pub(crate) fn read_taproot_origin(
    stream: &mut Stream<'_>,
    key: &Key<'_>,
    bad_size: &'static str,
    origins: &mut TaprootOrigins,
) -> Result<(), ReadError> {
    let x_only = Reader::new(key.data).array()?;
    let size = stream.compact_size()?;
    let (leaves, hashes_size) = stream.measured(|stream| {
        let count = stream.compact_size()?;
        let mut leaves = BTreeSet::new();
        for _ in 0..count {
            leaves.insert(stream.array()?);
        }
        Ok(leaves)
    })?;
    let origin_size = size.checked_sub(hashes_size).ok_or(ReadError::Field(bad_size))?;
    origins.insert(x_only, (leaves, stream.key_origin(origin_size)?));
    Ok(())
}

/// The errors of [`read_participants`] for one kind of map.
#[derive(Debug)]
pub(crate) struct ParticipantWords {
    pub(crate) aggregate: &'static str,
    pub(crate) participant: &'static str,
    pub(crate) size: &'static str,
}

pub(crate) fn read_participants(
    stream: &mut Stream<'_>,
    key: &Key<'_>,
    words: &ParticipantWords,
    participants: &mut MusigParticipants,
) -> Result<(), ReadError> {
    let aggregate: [u8; COMPRESSED] = Reader::new(key.data).array()?;
    require(uncompressed_key(&aggregate).is_some(), words.aggregate)?;
    let (keys, rest) = stream.value()?.as_chunks::<COMPRESSED>();
    for key in keys {
        require(uncompressed_key(key).is_some(), words.participant)?;
    }
    require(rest.is_empty(), words.size)?;
    participants.entry(aggregate).or_insert_with(|| keys.to_vec());
    Ok(())
}

pub(crate) fn read_proprietary(
    stream: &mut Stream<'_>,
    key: &Key<'_>,
    fields: &mut BTreeMap<Vec<u8>, Proprietary>,
) -> Result<(), ReadError> {
    let mut reader = Reader::new(key.data);
    let identifier = reader.var_bytes()?.to_vec();
    let subtype = u64::try_from(reader.compact_size()?).unwrap_or(u64::MAX);
    let value = stream.value()?.to_vec();
    fields.insert(key.bytes.to_vec(), Proprietary { identifier, subtype, value });
    Ok(())
}

pub(crate) fn read_unknown(stream: &mut Stream<'_>, key: &Key<'_>, unknown: &mut Unknown) -> Result<(), ReadError> {
    unknown.insert(key.bytes.to_vec(), stream.value()?.to_vec());
    Ok(())
}

/// `None` for zeros, which stand for a missing value.
pub(crate) fn not_null(bytes: [u8; 32]) -> Option<[u8; 32]> {
    (bytes != [0; 32]).then_some(bytes)
}
