//! The consistency check of the tables.
//!
//! Input: the address manager. Output: the first inconsistency, with Core's error code.
//!
//! Core's `CheckAddrman`. It runs after a file was read, and in tests after every step. Cost: at least two hashes per
//! entry, a tenth of a second for full tables. It changes nothing.

use super::places::Places;
use super::{AddrMan, BUCKET_SIZE, Counts, Id};
use crate::limits::NEW_BUCKETS_PER_ADDRESS_MAX;
use crate::time::UnixTime;
use lydian_wire::address::Network;
use std::collections::BTreeMap;

/// The error code of Core's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inconsistency(pub i8);

impl std::fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Corrupt data. Consistency check failed with code {}", self.0)
    }
}

impl std::error::Error for Inconsistency {}

impl AddrMan {
    /// Checks every entry and every position.
    pub fn check(&self) -> Result<(), Inconsistency> {
        let mut tried = 0_usize;
        let mut refs = BTreeMap::new();
        let mut counts: BTreeMap<Network, Counts> = BTreeMap::new();
        for (&id, info) in &self.infos {
            let count = counts.entry(info.address.endpoint.addr.network()).or_default();
            if info.in_tried {
                require(info.last_success != UnixTime::NEVER, -1)?;
                require(info.ref_count == 0, -2)?;
                tried += 1;
                count.tried += 1;
            } else {
                require(info.ref_count <= NEW_BUCKETS_PER_ADDRESS_MAX, -3)?;
                require(info.ref_count > 0, -4)?;
                refs.insert(id, info.ref_count);
                count.new += 1;
            }
            require(self.ids.get(&info.address.endpoint) == Some(&id), -5)?;
            require(self.list.get(info.random_index) == Some(&id), -14)?;
        }
        require(self.list.len() == self.infos.len() && self.ids.len() == self.infos.len(), -7)?;
        self.check_tried(tried)?;
        self.check_new(refs)?;
        require(self.key != [0; 32], -16)?;
        let held: BTreeMap<_, _> = self.counts.iter().filter(|(_, count)| **count != Counts::default()).collect();
        require(held == counts.iter().collect(), -21)
    }

    fn check_tried(&self, mut expected: usize) -> Result<(), Inconsistency> {
        for (place, id) in taken(&self.tried) {
            let Some(info) = self.infos.get(&id).filter(|info| info.in_tried) else { return Err(Inconsistency(-11)) };
            let bucket = place / BUCKET_SIZE;
            require(info.tried_bucket(&self.key) == bucket, -17)?;
            require(info.position(&self.key, true, bucket) == place % BUCKET_SIZE, -18)?;
            expected = expected.checked_sub(1).ok_or(Inconsistency(-11))?;
        }
        require(expected == 0, -13)
    }

    fn check_new(&self, mut refs: BTreeMap<Id, usize>) -> Result<(), Inconsistency> {
        for (place, id) in taken(&self.new) {
            let (Some(info), Some(left)) = (self.infos.get(&id), refs.get_mut(&id)) else {
                return Err(Inconsistency(-12));
            };
            let bucket = place / BUCKET_SIZE;
            require(info.position(&self.key, false, bucket) == place % BUCKET_SIZE, -19)?;
            *left -= 1;
            if *left == 0 {
                refs.remove(&id);
            }
        }
        require(refs.is_empty(), -15)
    }
}

fn taken(table: &Places) -> impl Iterator<Item = (usize, Id)> {
    table.iter().enumerate().filter_map(|(place, id)| Some((place, (*id)?)))
}

fn require(holds: bool, code: i8) -> Result<(), Inconsistency> {
    if holds { Ok(()) } else { Err(Inconsistency(code)) }
}
