//! [`EventCounts`]: what the observer of the engine counts. Input: events, from any worker. Output: counters that any
//! thread may read. Cost: a few atomic additions for an event, no lock.

use lydian_engine::{BlockTimes, Event};
use lydian_serve::figures::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Events since the start of the process.
#[derive(Debug, Default)]
pub(crate) struct EventCounts {
    /// From the arrival of a block at the tip until every follower has it.
    pub(super) connect: Histogram,
    pub(super) reorganisations: AtomicU64,
    /// Blocks that left the chain with the last one.
    pub(super) last_depth: AtomicU64,
    pub(super) invalid_blocks: AtomicU64,
    pub(super) checkpoint_bytes: AtomicU64,
}

impl EventCounts {
    /// Counts an event.
    pub(crate) fn note(&self, event: &Event<'_>) {
        match event {
            Event::BlockSettled(block) if block.is_at_tip => self.connect.note(duration(&block.times)),
            Event::Reorganisation { disconnected, .. } => {
                self.reorganisations.fetch_add(1, Ordering::Relaxed);
                self.last_depth.store(u64::from(*disconnected), Ordering::Relaxed);
            }
            Event::InvalidBlock { .. } => {
                self.invalid_blocks.fetch_add(1, Ordering::Relaxed);
            }
            Event::Checkpoint { bytes_written, .. } => {
                self.checkpoint_bytes.fetch_add(*bytes_written, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// From the arrival of a block, or from the start of its run if it was stored long before, until it is settled.
fn duration(times: &BlockTimes) -> Duration {
    let began = times.arrival.map_or(times.begun, |arrival| arrival.received);
    Duration::from_nanos(times.settled.saturating_sub(began))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_engine::{Arrival, BlockSource};
    use lydian_primitives::{BlockHash, Height};

    #[test]
    fn a_block_counts_from_its_arrival() {
        let counts = EventCounts::default();
        let arrival = Arrival {
            source: BlockSource::Call,
            received: 1_000_000,
            begun: 1_000_000,
            parsed: 1_000_000,
            checked: 2_000_000,
            stored: 2_000_000,
        };
        let mut times = BlockTimes {
            hash: BlockHash::ZERO,
            height: Height(1),
            arrival: Some(arrival),
            reading: None,
            begun: 2_500_000,
            funded: 3_000_000,
            verified: 4_000_000,
            committed: 5_000_000,
            settled: 9_000_000,
        };
        assert_eq!(duration(&times), Duration::from_millis(8));
        times.arrival = None;
        assert_eq!(duration(&times), Duration::from_micros(6_500), "from the start of its run");
        counts.note(&Event::Reorganisation { fork_height: Height(7), disconnected: 3, target: BlockHash::ZERO });
        counts.note(&Event::Checkpoint { height: Height(7), coins: 1, bytes_written: 5 });
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        assert_eq!(
            (read(&counts.reorganisations), read(&counts.last_depth), read(&counts.checkpoint_bytes)),
            (1, 3, 5)
        );
    }
}
