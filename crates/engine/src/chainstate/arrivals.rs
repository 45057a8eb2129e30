//! Where blocks came from, and when: for the event of a block at the tip.
//!
//! Input: blocks as they are stored. Output: the same facts when a run takes the block. Invariant: at most
//! [`ARRIVALS`] blocks; beyond that the oldest is forgotten, since only blocks at the tip are asked for. Decides
//! nothing.

use crate::event::{Arrival, BlockSource};
use crate::limits::ARRIVALS;
use lydian_primitives::BlockHash;
use lydian_stdx::lock;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Where a block that is to be stored came from, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    pub source: BlockSource,
    /// When all of its bytes were here, in nanoseconds of the engine's clock ([`crate::Engine::now_ns`]).
    pub received: u64,
    /// When its turn came to be parsed, and when that was done.
    pub begun: u64,
    pub parsed: u64,
}

impl Origin {
    /// A block that was parsed when it arrived.
    pub fn at_once(source: BlockSource, now: u64) -> Origin {
        Origin { source, received: now, begun: now, parsed: now }
    }
}

/// The latest arrivals.
#[derive(Debug, Default)]
pub(crate) struct Arrivals(Mutex<VecDeque<(BlockHash, Arrival)>>);

impl Arrivals {
    pub(crate) fn note(&self, hash: BlockHash, arrival: Arrival) {
        let mut arrivals = lock(&self.0);
        if arrivals.len() == ARRIVALS {
            arrivals.pop_front();
        }
        arrivals.push_back((hash, arrival));
    }

    /// The arrival of a block, which is forgotten.
    pub(crate) fn take(&self, hash: BlockHash) -> Option<Arrival> {
        let mut arrivals = lock(&self.0);
        let index = arrivals.iter().position(|(known, _)| *known == hash)?;
        arrivals.remove(index).map(|(_, arrival)| arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// limit: ARRIVALS at
    /// limit: ARRIVALS above
    #[test]
    fn the_latest_are_known_and_taken_once() {
        let arrivals = Arrivals::default();
        let arrival = |number| Arrival {
            source: BlockSource::Peer(number),
            received: number,
            begun: number,
            parsed: number,
            checked: number,
            stored: number,
        };
        let hash = |number: usize| BlockHash([u8::try_from(number).unwrap(); 32]);
        (0..=ARRIVALS).for_each(|number| arrivals.note(hash(number), arrival(number as u64)));
        assert_eq!(arrivals.take(hash(0)), None, "the oldest of one too many");
        assert_eq!(arrivals.take(hash(1)), Some(arrival(1)));
        assert_eq!(arrivals.take(hash(1)), None);
        assert_eq!(arrivals.take(hash(ARRIVALS)), Some(arrival(ARRIVALS as u64)));
        assert_eq!(lock(&arrivals.0).len(), ARRIVALS - 2);
    }
}
