//! The data about one address, and its position in the tables.
//!
//! Input: the entry, the secret key of the tables, the time. Output: bucket, position, whether the entry may be
//! deleted, its chance to be selected.
//!
//! Core's `AddrInfo`, with the same hashes: each program can use a file of the other. Invariant: without the key it is
//! not possible to find out which addresses share a position; one netgroup reaches [`TRIED_BUCKETS_PER_GROUP`] tried
//! buckets, one source group [`NEW_BUCKETS_PER_SOURCE_GROUP`] new buckets.

use crate::time::UnixTime;
use lydian_hash::Sha256;
use lydian_primitives::write_compact_size;
use lydian_wire::address::{NetAddr, TimedAddress};

pub const TRIED_BUCKET_COUNT: usize = 256;
pub const NEW_BUCKET_COUNT: usize = 1024;
pub const BUCKET_SIZE: usize = 64;
/// The number of tried buckets for the addresses of one netgroup.
pub const TRIED_BUCKETS_PER_GROUP: u64 = 8;
/// The number of new buckets for the addresses received from one netgroup.
pub const NEW_BUCKETS_PER_SOURCE_GROUP: u64 = 64;

/// The maximum age of an address.
const HORIZON_S: i64 = 30 * 24 * 60 * 60;
/// Failed attempts after which an address that never worked may be deleted.
const RETRIES: i32 = 3;
/// Consecutive failed attempts after which an address that worked before may be deleted ...
const FAILURES_MAX: i32 = 10;
/// ... if the last success is longer ago than this.
const FAIL_MIN_S: i64 = 7 * 24 * 60 * 60;
/// An address with a time further in the future is not credible.
const FUTURE_MAX_S: i64 = 10 * 60;

/// The secret key of the tables: Core's `nKey`, byte for byte.
pub type Key = [u8; 32];

/// An address and the results of connecting to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddrInfo {
    pub address: TimedAddress,
    /// The peer that the address was first received from.
    pub source: NetAddr,
    /// Our last attempt. Not stored in the file.
    pub last_try: UnixTime,
    /// The last attempt that counted as a failure. Not stored in the file.
    pub last_count_attempt: UnixTime,
    pub last_success: UnixTime,
    /// Attempts since the last success. Signed, as in the file.
    pub attempts: i32,
    pub(super) ref_count: usize,
    pub(super) in_tried: bool,
    /// The index of its id in the list of all ids.
    pub(super) random_index: usize,
}

impl AddrInfo {
    pub fn new(address: TimedAddress, source: NetAddr) -> Self {
        AddrInfo {
            address,
            source,
            last_try: UnixTime::NEVER,
            last_count_attempt: UnixTime::NEVER,
            last_success: UnixTime::NEVER,
            attempts: 0,
            ref_count: 0,
            in_tried: false,
            random_index: 0,
        }
    }

    /// Core's `GetTriedBucket`.
    pub fn tried_bucket(&self, key: &Key) -> usize {
        let first = cheap_hash(key, &[&bytes(&self.address.endpoint.key())]);
        let share = (first % TRIED_BUCKETS_PER_GROUP).to_le_bytes();
        below(cheap_hash(key, &[&bytes(&self.address.endpoint.addr.netgroup()), &share]), TRIED_BUCKET_COUNT)
    }

    /// Core's `GetNewBucket`, for the source that the address was now received from.
    pub fn new_bucket(&self, key: &Key, source: &NetAddr) -> usize {
        let source_group = bytes(&source.netgroup());
        let first = cheap_hash(key, &[&bytes(&self.address.endpoint.addr.netgroup()), &source_group]);
        let share = (first % NEW_BUCKETS_PER_SOURCE_GROUP).to_le_bytes();
        below(cheap_hash(key, &[&source_group, &share]), NEW_BUCKET_COUNT)
    }

    /// Core's `GetBucketPosition`.
    pub fn position(&self, key: &Key, tried: bool, bucket: usize) -> usize {
        let table = if tried { b"K" } else { b"N" };
        let bucket = u32::try_from(bucket).unwrap_or(u32::MAX).to_le_bytes();
        below(cheap_hash(key, &[table, &bucket, &bytes(&self.address.endpoint.key())]), BUCKET_SIZE)
    }

    /// Core's `IsTerrible`: the entry may be deleted when its position is needed.
    pub fn is_terrible(&self, now: UnixTime) -> bool {
        let time = UnixTime::from(self.address.time);
        if now.since(self.last_try) <= 60 {
            return false;
        }
        time.since(now) > FUTURE_MAX_S
            || now.since(time) > HORIZON_S
            || (self.last_success == UnixTime::NEVER && self.attempts >= RETRIES)
            || (now.since(self.last_success) > FAIL_MIN_S && self.attempts >= FAILURES_MAX)
    }

    /// Core's `GetChance`: the factor for its chance to be selected.
    pub fn chance(&self, now: UnixTime) -> f64 {
        let recent = if now.since(self.last_try) < 10 * 60 { 0.01 } else { 1.0 };
        recent * 0.66_f64.powi(self.attempts.min(8))
    }

    pub fn is_in_tried(&self) -> bool {
        self.in_tried
    }

    /// Returns the number of new buckets that contain it.
    pub fn ref_count(&self) -> usize {
        self.ref_count
    }
}

/// Returns the first 8 bytes of the double SHA-256: Core's `GetCheapHash`.
fn cheap_hash(key: &Key, parts: &[&[u8]]) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(key);
    for part in parts {
        hasher.update(part);
    }
    let hash = hasher.finalize_double();
    hash.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// Serializes a byte vector like Core: its length first.
fn bytes(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 1);
    write_compact_size(&mut out, content.len());
    out.extend_from_slice(content);
    out
}

fn below(hash: u64, count: usize) -> usize {
    usize::try_from(hash % count as u64).unwrap_or(0)
}
