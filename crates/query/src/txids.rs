//! [`TxidCache`]: the txids of transactions that were asked for last, by number.
//!
//! A wallet asks for the history of a script, then for its coins, then for proofs: the same transactions. Without the
//! cache each time takes the bytes of each transaction, which is about ten times slower. A place keeps the last number
//! that fell on it. Memory: 40 bytes for a place. Numbers mean other transactions after blocks have left the index, so
//! the cache is emptied then.

use crate::source::Numbered;
use lydian_primitives::Txid;
use lydian_stdx::lock;
use std::sync::Mutex;

/// Places of all parts together: 40 MiB.
pub(crate) const PLACES: usize = 1 << 20;

/// Parts, each with its own lock.
const PARTS: usize = 64;

#[derive(Debug)]
pub(crate) struct TxidCache {
    parts: Vec<Mutex<Part>>,
}

/// The places of a part; none before the first use.
#[derive(Debug, Default)]
struct Part {
    epoch: u64,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    number: u32,
    height: u32,
    txid: Txid,
}

/// No transaction has this number: its place is free.
const FREE: Place = Place { number: u32::MAX, height: 0, txid: Txid::ZERO };

impl TxidCache {
    pub(crate) fn new() -> TxidCache {
        TxidCache { parts: (0..PARTS).map(|_| Mutex::default()).collect() }
    }

    /// Neighbours are in different parts, so that threads seldom wait for each other.
    fn part(&self, number: u32) -> (&Mutex<Part>, usize) {
        let number = number as usize;
        (&self.parts[number % PARTS], number / PARTS % (PLACES / PARTS))
    }

    /// The transaction with a number, if it is known in this epoch.
    pub(crate) fn get(&self, epoch: u64, number: u32) -> Option<Numbered> {
        let (part, at) = self.part(number);
        let part = lock(part);
        let place = part.places.get(at).filter(|place| part.epoch == epoch && place.number == number)?;
        Some(Numbered { txid: place.txid, height: place.height })
    }

    /// `epoch` is that from before the transaction was looked up.
    pub(crate) fn put(&self, epoch: u64, number: u32, Numbered { txid, height }: Numbered) {
        let (part, at) = self.part(number);
        let mut part = lock(part);
        if part.epoch > epoch {
            return;
        }
        if part.epoch < epoch || part.places.is_empty() {
            *part = Part { epoch, places: vec![FREE; PLACES / PARTS] };
        }
        if let Some(place) = part.places.get_mut(at) {
            *place = Place { number, height, txid };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(byte: u8) -> Numbered {
        Numbered { txid: Txid([byte; 32]), height: u32::from(byte) }
    }

    #[test]
    fn the_last_of_a_place_is_kept_until_blocks_leave() {
        let cache = TxidCache::new();
        let beside = u32::try_from(PLACES).unwrap();
        assert_eq!(cache.get(0, 7), None);
        cache.put(0, 7, numbered(1));
        cache.put(0, 8, numbered(2));
        assert_eq!((cache.get(0, 7), cache.get(0, 8)), (Some(numbered(1)), Some(numbered(2))));
        cache.put(0, 7 + beside, numbered(3));
        assert_eq!((cache.get(0, 7), cache.get(0, 7 + beside)), (None, Some(numbered(3))));
        // Looked up before the blocks left.
        assert_eq!(cache.get(1, 8), None);
        cache.put(1, 8, numbered(4));
        cache.put(0, 8, numbered(5));
        assert_eq!((cache.get(1, 8), cache.get(0, 8)), (Some(numbered(4)), None));
    }
}
