//! `peers.dat`: converts between the bytes of the file and an address manager.
//!
//! Writes Core's format 4 and reads all formats from 0 on, so that each program can use the file of the other:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | the network's magic |
//! | 1, 1 | format, 32 + the lowest format that a reader must know |
//! | 32 | the secret key of the tables |
//! | 4, 4 | entries in new, in tried (i32, as all numbers here) |
//! | 4 | new buckets, exclusive or 2^30 |
//! | | entries: address (time, services, endpoint), source, last success (i64), attempts |
//! | | for each new bucket: places taken, and the index of the entry in each |
//! | 32 | version of the asmap: zeros, because none is used |
//! | 32 | double SHA-256 of all that |
//!
//! Invariants: tables read from a file pass [`AddrMan::check`]; entries with an invalid address or without a position
//! are dropped; a file written with an asmap is re-bucketed. Total on any bytes: memory grows with the number of
//! entries in the file. A file with full tables has about 6 MB.

use super::{AddrInfo, AddrMan, BUCKET_SIZE, Inconsistency, NEW_BUCKET_COUNT, TRIED_BUCKET_COUNT};
use crate::datafile::{self, FrameError, Magic};
use crate::limits::{NEW_BUCKETS_PER_ADDRESS_MAX, PEERS_FILE_SIZE_MAX};
use crate::time::UnixTime;
use lydian_primitives::{ParseError, Reader};
use lydian_wire::DecodeError;
use lydian_wire::address::{Encoding, NetAddr, TimedAddress};
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeMap;
use std::fmt;

/// The format that is written.
pub const PEERS_FORMAT: u8 = FORMAT;
const FORMAT: u8 = 4;
/// From this format on, the number of buckets is XORed with 2^30.
const FORMAT_DETERMINISTIC: u8 = 1;
/// From this format on, the file contains the version of the asmap.
const FORMAT_ASMAP: u8 = 2;
/// From this format on, addresses are in BIP-0155 encoding.
const FORMAT_BIP155: u8 = 3;
/// The offset that is added to the lowest compatible format.
const INCOMPATIBILITY_BASE: u8 = 32;
const BUCKETS_DISGUISE: i32 = 1 << 30;
/// The version of an empty asmap.
const ASMAP_NONE: [u8; 32] = [0; 32];

/// The reason why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeersError {
    Frame(FrameError),
    /// Written by a later version in a format that ours cannot read: the file is set aside and not refused.
    UnsupportedFormat {
        format: u8,
        lowest_compatible: u8,
    },
    /// The second byte is lower than any version ever wrote.
    Compat {
        compat: u8,
    },
    /// The number of entries is negative or larger than the table.
    Count {
        table: &'static str,
        count: i32,
        count_max: usize,
    },
    Decode(DecodeError),
    /// The consistency check failed, or an entry has a last success before 1970.
    Inconsistent(Inconsistency),
    TooLarge {
        size: usize,
    },
}

impl fmt::Display for PeersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeersError::Frame(error) => error.fmt(f),
            PeersError::UnsupportedFormat { format, lowest_compatible } => write!(
                f,
                "Unsupported format of addrman database: {format}. It is compatible with formats >={lowest_compatible}, \
                 but the maximum supported by this version of Lydian is {FORMAT}."
            ),
            PeersError::Compat { compat } => write!(
                f,
                "Corrupted addrman database: The compat value ({compat}) is lower than the expected minimum value \
                 {INCOMPATIBILITY_BASE}."
            ),
            PeersError::Count { table, count, count_max } => {
                write!(f, "Corrupt AddrMan serialization: {table}={count}, should be in [0, {count_max}]")
            }
            PeersError::Decode(error) => error.fmt(f),
            PeersError::Inconsistent(error) => error.fmt(f),
            PeersError::TooLarge { size } => {
                write!(f, "{size} bytes exceed the maximum size of peers.dat ({PEERS_FILE_SIZE_MAX} bytes)")
            }
        }
    }
}

impl std::error::Error for PeersError {}

impl From<FrameError> for PeersError {
    fn from(error: FrameError) -> Self {
        PeersError::Frame(error)
    }
}

impl From<DecodeError> for PeersError {
    fn from(error: DecodeError) -> Self {
        PeersError::Decode(error)
    }
}

impl From<ParseError> for PeersError {
    fn from(error: ParseError) -> Self {
        PeersError::Decode(error.into())
    }
}

impl AddrMan {
    /// Encodes the file.
    pub fn encode(&self, magic: Magic) -> Vec<u8> {
        datafile::seal(magic, |out| self.encode_content(out))
    }

    fn encode_content(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[FORMAT, INCOMPATIBILITY_BASE + FORMAT]);
        out.extend_from_slice(&self.key);
        write_count(out, self.size(None, Some(true)));
        write_count(out, self.size(None, Some(false)));
        let buckets = i32::try_from(NEW_BUCKET_COUNT).unwrap_or(i32::MAX) ^ BUCKETS_DISGUISE;
        out.extend_from_slice(&buckets.to_le_bytes());
        let mut indexes = BTreeMap::new();
        for (id, info) in self.infos.iter().filter(|(_, info)| !info.in_tried) {
            indexes.insert(*id, indexes.len());
            write_info(out, info);
        }
        for info in self.infos.values().filter(|info| info.in_tried) {
            write_info(out, info);
        }
        for bucket in self.new.buckets() {
            let entries: Vec<_> = bucket.iter().flatten().filter_map(|id| indexes.get(id)).collect();
            write_count(out, entries.len());
            for index in entries {
                write_count(out, *index);
            }
        }
        out.extend_from_slice(&ASMAP_NONE);
    }

    /// Reads a file. The caller decides what to do with the file after an error.
    pub fn decode(bytes: &[u8], magic: Magic, random: &mut ChaCha20Rng) -> Result<AddrMan, PeersError> {
        if bytes.len() > PEERS_FILE_SIZE_MAX {
            return Err(PeersError::TooLarge { size: bytes.len() });
        }
        let mut reader = datafile::open(magic, bytes)?;
        let addrman = Self::decode_content(&mut reader, random)?;
        datafile::verify(bytes, reader)?;
        Ok(addrman)
    }

    fn decode_content(reader: &mut Reader<'_>, random: &mut ChaCha20Rng) -> Result<AddrMan, PeersError> {
        let format = reader.u8()?;
        let compat = reader.u8()?;
        let lowest_compatible = compat.checked_sub(INCOMPATIBILITY_BASE).ok_or(PeersError::Compat { compat })?;
        if lowest_compatible > FORMAT {
            return Err(PeersError::UnsupportedFormat { format, lowest_compatible });
        }
        let encoding = if format >= FORMAT_BIP155 { Encoding::V2 } else { Encoding::V1 };
        let mut addrman = AddrMan::with_key(reader.array()?, random);
        let new = i32::from_le_bytes(reader.array()?);
        let tried = i32::from_le_bytes(reader.array()?);
        let mut buckets = i32::from_le_bytes(reader.array()?);
        if format >= FORMAT_DETERMINISTIC {
            buckets ^= BUCKETS_DISGUISE;
        }
        let new = count_of("nNew", new, NEW_BUCKET_COUNT * BUCKET_SIZE)?;
        let tried = count_of("nTried", tried, TRIED_BUCKET_COUNT * BUCKET_SIZE)?;
        for _ in 0..new {
            let info = read_info(reader, encoding)?;
            addrman.restore(info);
        }
        for _ in 0..tried {
            let info = read_info(reader, encoding)?;
            addrman.restore_tried(info);
        }
        let places = read_places(reader, buckets, new)?;
        let asmap = if format >= FORMAT_ASMAP { reader.array()? } else { ASMAP_NONE };
        let keeps_places = usize::try_from(buckets) == Ok(NEW_BUCKET_COUNT) && asmap == ASMAP_NONE;
        for (bucket, id) in places {
            addrman.restore_place(bucket, id, keeps_places);
        }
        let lost: Vec<_> = addrman.infos.iter().filter(|(_, info)| !info.in_tried && info.ref_count == 0).collect();
        for id in lost.into_iter().map(|(id, _)| *id).collect::<Vec<_>>() {
            addrman.delete(id);
        }
        addrman.check().map_err(PeersError::Inconsistent)?;
        Ok(addrman)
    }

    /// Adds an entry of the file to new, without a position. Its id is its index in the file.
    fn restore(&mut self, info: AddrInfo) -> u64 {
        let id = self.create(info.address, info.source);
        let random_index = self.list.len() - 1;
        self.infos.insert(id, AddrInfo { random_index, ..info });
        id
    }

    /// Adds an entry to tried if its position is free.
    fn restore_tried(&mut self, info: AddrInfo) {
        let bucket = info.tried_bucket(&self.key);
        let place = bucket * BUCKET_SIZE + info.position(&self.key, true, bucket);
        if self.tried[place].is_some() || !info.address.endpoint.addr.is_valid() {
            return;
        }
        let addr = info.address.endpoint.addr;
        let id = self.restore(AddrInfo { in_tried: true, ..info });
        // `restore` has counted it as new.
        let counts = self.counts_of(&addr);
        counts.new -= 1;
        counts.tried += 1;
        self.tried.put(place, id, addr.network());
    }

    /// Gives an entry its old position, or the one for its source.
    fn restore_place(&mut self, bucket: usize, id: u64, keeps_places: bool) {
        let Some(info) = self.infos.get(&id) else { return };
        if !info.address.endpoint.addr.is_valid() || info.ref_count >= NEW_BUCKETS_PER_ADDRESS_MAX {
            return;
        }
        let mut place = bucket * BUCKET_SIZE + info.position(&self.key, false, bucket);
        if !keeps_places || self.new[place].is_some() {
            let bucket = info.new_bucket(&self.key, &info.source);
            place = bucket * BUCKET_SIZE + info.position(&self.key, false, bucket);
        }
        if self.new[place].is_none() {
            let network = info.address.endpoint.addr.network();
            self.new.put(place, id, network);
            if let Some(info) = self.infos.get_mut(&id) {
                info.ref_count += 1;
            }
        }
    }
}

fn count_of(table: &'static str, count: i32, count_max: usize) -> Result<usize, PeersError> {
    usize::try_from(count).ok().filter(|found| *found <= count_max).ok_or(PeersError::Count { table, count, count_max })
}

fn write_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&i32::try_from(count).unwrap_or(i32::MAX).to_le_bytes());
}

fn write_info(out: &mut Vec<u8>, info: &AddrInfo) {
    info.address.encode_disk(out, Encoding::V2);
    info.source.encode(out, Encoding::V2);
    out.extend_from_slice(&info.last_success.signed().to_le_bytes());
    out.extend_from_slice(&info.attempts.to_le_bytes());
}

fn read_info(reader: &mut Reader<'_>, encoding: Encoding) -> Result<AddrInfo, PeersError> {
    let address = TimedAddress::decode_disk(reader, encoding)?;
    let mut info = AddrInfo::new(address, NetAddr::decode(reader, encoding)?);
    let last_success = u64::try_from(reader.i64()?).map_err(|_| PeersError::Inconsistent(Inconsistency(-8)))?;
    info.last_success = UnixTime(last_success);
    info.attempts = i32::from_le_bytes(reader.array()?);
    Ok(info)
}

/// Returns pairs of a new bucket and the entry in it.
fn read_places(reader: &mut Reader<'_>, buckets: i32, new: usize) -> Result<Vec<(usize, u64)>, PeersError> {
    let mut places = Vec::new();
    for bucket in 0..usize::try_from(buckets).unwrap_or(0) {
        for _ in 0..i32::from_le_bytes(reader.array()?) {
            let index = i32::from_le_bytes(reader.array()?);
            if let Ok(id) = u64::try_from(index)
                && id < new as u64
            {
                places.push((bucket, id));
            }
        }
    }
    Ok(places)
}
