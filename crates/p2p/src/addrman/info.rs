//! What is known of one address, and where it belongs in the tables. Input: the entry, the secret key of the tables, the time. Output: bucket, position,
//! whether it may be forgotten, how much chance it gets.
//!
//! Core's `AddrInfo`, hash for hash: a file written by one finds its places in the other. Invariant: without the key nobody can tell which addresses
//! share a place; one group reaches [`TRIED_BUCKETS_PER_GROUP`] tried buckets, one source group [`NEW_BUCKETS_PER_SOURCE_GROUP`] new ones.

use crate::time::UnixTime;
use lydian_hash::Sha256;
use lydian_primitives::write_compact_size;
use lydian_wire::address::{NetAddr, TimedAddress};

pub const TRIED_BUCKET_COUNT: usize = 256;
pub const NEW_BUCKET_COUNT: usize = 1024;
pub const BUCKET_SIZE: usize = 64;
/// Over how many tried buckets the addresses of one group are spread.
pub const TRIED_BUCKETS_PER_GROUP: u64 = 8;
/// Over how many new buckets the addresses that one group told of are spread.
pub const NEW_BUCKETS_PER_SOURCE_GROUP: u64 = 64;

/// How old an address may be.
const HORIZON_S: i64 = 30 * 24 * 60 * 60;
/// Failed attempts after which an address that never worked is given up.
const RETRIES: i32 = 3;
/// Failed attempts in a row after which one that worked is given up ...
const FAILURES_MAX: i32 = 10;
/// ... if it has not worked for so long.
const FAIL_MIN_S: i64 = 7 * 24 * 60 * 60;
/// An address with a time further ahead lies.
const FUTURE_MAX_S: i64 = 10 * 60;

/// The secret of the tables: Core's `nKey`, in its bytes.
pub type Key = [u8; 32];

/// An address and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddrInfo {
    pub address: TimedAddress,
    /// Who told of it first.
    pub source: NetAddr,
    /// The last attempt of ours. Not kept in the file.
    pub last_try: UnixTime,
    /// The last attempt that counted as a failure. Not kept in the file.
    pub last_count_attempt: UnixTime,
    pub last_success: UnixTime,
    /// Attempts since the last success. Signed, since files are.
    pub attempts: i32,
    pub(super) ref_count: usize,
    pub(super) in_tried: bool,
    /// Where its id stands in the list of all.
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

    /// Core's `GetNewBucket`, for the source that told of it now.
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

    /// Core's `IsTerrible`: it may be forgotten when its place is needed.
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

    /// Core's `GetChance`: what its chance to be selected is multiplied with.
    pub fn chance(&self, now: UnixTime) -> f64 {
        let recent = if now.since(self.last_try) < 10 * 60 { 0.01 } else { 1.0 };
        recent * 0.66_f64.powi(self.attempts.min(8))
    }

    pub fn is_in_tried(&self) -> bool {
        self.in_tried
    }

    /// New buckets that hold it.
    pub fn ref_count(&self) -> usize {
        self.ref_count
    }
}

/// The first 8 bytes of the double SHA-256: Core's `GetCheapHash`.
fn cheap_hash(key: &Key, parts: &[&[u8]]) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(key);
    for part in parts {
        hasher.update(part);
    }
    let hash = hasher.finalize_double();
    hash.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// As Core writes a vector of bytes: its length first.
fn bytes(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 1);
    write_compact_size(&mut out, content.len());
    out.extend_from_slice(content);
    out
}

fn below(hash: u64, count: usize) -> usize {
    usize::try_from(hash % count as u64).unwrap_or(0)
}
