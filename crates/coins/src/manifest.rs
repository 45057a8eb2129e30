//! [`Manifest`]: the components of a store. Input: the components, or the bytes of a file. Output: bytes, or the
//! components.
//!
//! Invariants: the files named by the manifest are on disk and synced before the manifest is; a file it does not name
//! is unused. Decoding accepts any bytes: it returns a manifest or an error, and allocates nothing for a count before
//! its entries are read. `docs/formats/coins.md` describes the format.

use crate::entry::UNITS_MAX;
use crate::error::CoinsError;
use crate::key::Secret;
use crate::record::UNIT_BYTES;
use crate::sections::SectionsInfo;
use crate::{PARTITIONS, Tip};
use lydian_disk::format::{Format, NumberPlace, OTHER_DATADIR};
use lydian_primitives::{BlockHash, Height, ParseError, Reader};
use std::path::Path;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(crate) const NAME: &str = "manifest";
/// The version of all formats of the store, and of the hash that determines the order of keys.
pub(crate) const FORMAT: u32 = COINS_FORMAT.number;
/// The format of the manifest, which names that of the whole store.
pub const COINS_FORMAT: Format =
    Format { number: 1, oldest: 1, place: NumberPlace::Start(&MAGIC), otherwise: OTHER_DATADIR };
/// Maximum size of a manifest in bytes; a store of 180 million coins has about 20 KB.
pub(crate) const SIZE_MAX: u64 = 64 << 20;
const MAGIC: [u8; 8] = *b"lydcmani";
const _: () = assert!(PARTITIONS == 16);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) secret: Secret,
    pub(crate) tip: Option<Tip>,
    pub(crate) coins: u64,
    /// Number of checkpoints made so far.
    pub(crate) sequence: u64,
    /// The number of the next file.
    pub(crate) next_file: u64,
    /// Where the search for room for the next segment starts.
    pub(crate) next_unit: u64,
    /// Ordered by `base`; they do not overlap.
    pub(crate) segments: Vec<SegmentInfo>,
    /// Ordered by `sequence`.
    pub(crate) deaths: Vec<DeathsInfo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentInfo {
    pub(crate) number: u64,
    /// The checkpoint that wrote this segment.
    pub(crate) sequence: u64,
    /// The unit at which the segment starts.
    pub(crate) base: u64,
    pub(crate) units: u64,
    pub(crate) records: u64,
    /// Number of records with unspent coins.
    pub(crate) live: u64,
    pub(crate) sidecar: SectionsInfo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeathsInfo {
    pub(crate) number: u64,
    /// The checkpoint that wrote this file. Its deaths refer to segments written earlier.
    pub(crate) sequence: u64,
    pub(crate) count: u64,
    pub(crate) file: SectionsInfo,
}

impl SegmentInfo {
    pub(crate) fn end(&self) -> u64 {
        self.base + self.units
    }
}

/// Whether a death written by checkpoint `sequence` refers to an existing segment, which must be older than that
/// checkpoint. Its units may since have been reused by a newer segment.
pub(crate) fn is_of_any(segments: &[SegmentInfo], unit: u64, sequence: u64) -> bool {
    let place = segments.partition_point(|info| info.end() <= unit);
    segments.get(place).is_some_and(|info| info.base <= unit && info.sequence < sequence)
}

impl Manifest {
    pub(crate) fn new(secret: Secret) -> Manifest {
        Manifest {
            secret,
            tip: None,
            coins: 0,
            sequence: 0,
            next_file: 1,
            next_unit: 1,
            segments: Vec::new(),
            deaths: Vec::new(),
        }
    }

    /// The identifier of this store in the headers of its files.
    pub(crate) fn store_id(&self) -> u64 {
        xxh3_64_with_seed(&self.secret.to_bytes(), u64::from(FORMAT))
    }

    /// Size in bytes of the files that it names.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let segments = self.segments.iter().map(|info| info.units * UNIT_BYTES as u64 + info.sidecar.bytes);
        segments.sum::<u64>() + self.deaths.iter().map(|info| info.file.bytes).sum::<u64>()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&self.secret.to_bytes());
        out.push(u8::from(self.tip.is_some()));
        let tip = self.tip.unwrap_or(Tip { height: Height(0), hash: BlockHash::ZERO });
        out.extend_from_slice(&tip.height.0.to_le_bytes());
        out.extend_from_slice(&tip.hash.0);
        let mut numbers = vec![self.coins, self.sequence, self.next_file, self.next_unit];
        numbers.push(self.segments.len() as u64);
        for one in &self.segments {
            numbers.extend([one.number, one.sequence, one.base, one.units, one.records, one.live]);
            numbers.extend([one.sidecar.bytes, one.sidecar.checksum]);
        }
        numbers.push(self.deaths.len() as u64);
        for one in &self.deaths {
            numbers.extend([one.number, one.sequence, one.count, one.file.bytes, one.file.checksum]);
        }
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        out
    }

    pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Manifest, CoinsError> {
        let mut reader = Reader::new(bytes);
        if reader.array::<8>().ok() != Some(MAGIC) {
            return Err(CoinsError::NotAManifest { path: path.to_owned() });
        }
        let damaged = |offset: usize, what| CoinsError::damaged(path, offset as u64, what);
        let version = reader.u32().map_err(|error| damaged(error.offset, "the manifest ends early"))?;
        if let Some(error) = COINS_FORMAT.newer(path, version) {
            return Err(CoinsError::NewerFormat(error));
        }
        let (content, checksum) = bytes.split_last_chunk::<8>().ok_or_else(|| damaged(0, "the manifest ends early"))?;
        if (xxh3_64(content) != u64::from_le_bytes(*checksum) && !cfg!(fuzzing)) || version != FORMAT {
            return Err(damaged(0, "the checksum of the manifest is wrong"));
        }
        let mut reader = Reader::new(content);
        let manifest = parse(&mut reader).map_err(|error| damaged(error.offset, "the manifest ends early"))?;
        if reader.remaining() > 0 {
            return Err(damaged(content.len(), "the manifest has trailing bytes"));
        }
        if is_consistent(&manifest) { Ok(manifest) } else { Err(damaged(0, "the manifest is inconsistent")) }
    }
}

fn parse(reader: &mut Reader<'_>) -> Result<Manifest, ParseError> {
    reader.array::<12>()?;
    let secret = Secret::from_bytes(reader.array()?);
    let has_tip = reader.u8()? == 1;
    let tip = Tip { height: Height(reader.u32()?), hash: BlockHash(reader.array()?) };
    let mut manifest = Manifest { tip: has_tip.then_some(tip), ..Manifest::new(secret) };
    let mut number = || reader.array().map(u64::from_le_bytes);
    (manifest.coins, manifest.sequence) = (number()?, number()?);
    (manifest.next_file, manifest.next_unit) = (number()?, number()?);
    for _ in 0..number()? {
        manifest.segments.push(SegmentInfo {
            number: number()?,
            sequence: number()?,
            base: number()?,
            units: number()?,
            records: number()?,
            live: number()?,
            sidecar: SectionsInfo { bytes: number()?, checksum: number()? },
        });
    }
    for _ in 0..number()? {
        manifest.deaths.push(DeathsInfo {
            number: number()?,
            sequence: number()?,
            count: number()?,
            file: SectionsInfo { bytes: number()?, checksum: number()? },
        });
    }
    Ok(manifest)
}

fn is_consistent(manifest: &Manifest) -> bool {
    let mut end = 1;
    let fits = |one: &SegmentInfo| {
        let fits = one.base >= end && one.base < UNITS_MAX && one.units < UNITS_MAX && one.end() <= UNITS_MAX;
        end = one.base.saturating_add(one.units);
        fits && one.live <= one.records && one.records <= one.units
    };
    manifest.segments.iter().all(fits)
        && manifest.deaths.is_sorted_by_key(|one| one.sequence)
        && manifest.segments.iter().try_fold(0u64, |sum, one| sum.checked_add(one.live)) == Some(manifest.coins)
        && (manifest.tip.is_some() || manifest.segments.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Manifest {
        let sidecar = SectionsInfo { bytes: 400, checksum: 3 };
        let segment = SegmentInfo { number: 1, sequence: 1, base: 1, units: 40, records: 4, live: 3, sidecar };
        Manifest {
            tip: Some(Tip { height: Height(7), hash: BlockHash([4; 32]) }),
            coins: 5,
            sequence: 2,
            next_file: 5,
            next_unit: 61,
            segments: vec![segment, SegmentInfo { number: 3, base: 41, units: 20, records: 2, live: 2, ..segment }],
            deaths: vec![DeathsInfo { number: 4, sequence: 2, count: 1, file: sidecar }],
            ..Manifest::new(Secret::from_bytes([9; 16]))
        }
    }

    fn decode(bytes: &[u8]) -> Result<Manifest, CoinsError> {
        Manifest::decode(Path::new("m"), bytes)
    }

    #[test]
    fn comes_back_and_every_flipped_bit_and_lost_byte_is_found() {
        for manifest in [example(), Manifest::new(Secret::from_bytes([1; 16]))] {
            let bytes = manifest.encode();
            assert_eq!(decode(&bytes).unwrap(), manifest);
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(decode(&bytes).is_err());
            }
            (0..bytes.len()).for_each(|end| assert!(decode(&bytes[..end]).is_err()));
        }
    }

    /// checklist: 95
    #[test]
    fn a_newer_format_is_refused_with_a_sentence() {
        let mut bytes = example().encode();
        for version in [FORMAT + 1, FORMAT + 2, 1 << 20, u32::MAX] {
            bytes[8..12].copy_from_slice(&version.to_le_bytes());
            let error = decode(&bytes).unwrap_err();
            assert_eq!(Some(error), COINS_FORMAT.newer("m", version).map(CoinsError::NewerFormat));
        }
    }

    #[test]
    fn contradictions_are_found() {
        let with = |change: fn(&mut Manifest)| {
            let mut manifest = example();
            change(&mut manifest);
            decode(&manifest.encode()).is_err()
        };
        assert!(with(|manifest| manifest.coins = 4));
        assert!(with(|manifest| manifest.segments[0].units = 41));
        assert!(with(|manifest| manifest.segments[1].units = u64::MAX));
        assert!(with(|manifest| manifest.segments[1].base = UNITS_MAX));
        assert!(with(|manifest| manifest.segments[0].live = 5));
        assert!(with(|manifest| manifest.tip = None));
    }
}
