//! The bounded queues between connections, the manager, and the threads that write to disk.
//!
//! The capacities are defined in [`crate::limits`]. A sender to a full queue waits, or gets the item back. Cost: memory
//! for the queued items.

use crate::event::Event;
use crate::files::Save;
use crate::limits::{BLOCKS_QUEUED, EVENTS_QUEUED, SAVES_QUEUED};
use lydian_p2p::driver::Delivery;
use lydian_p2p::limits::BLOCK_READS_MAX;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::sync::{Semaphore, mpsc};

/// From connections to the manager.
pub(crate) fn events() -> (mpsc::Sender<Event>, mpsc::Receiver<Event>) {
    mpsc::channel(EVENTS_QUEUED)
}

/// From the manager to the thread that stores blocks. Boxed, because the queue has memory for all its places at once.
pub(crate) fn blocks() -> (SyncSender<Box<Delivery>>, Receiver<Box<Delivery>>) {
    sync_channel(BLOCKS_QUEUED)
}

/// From the manager to the thread that writes files.
pub(crate) fn saves() -> (SyncSender<Save>, Receiver<Save>) {
    sync_channel(SAVES_QUEUED)
}

/// Room for the unprocessed messages of one peer, one permit per byte.
pub(crate) fn room(bytes: u32) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes as usize))
}

/// Permits for reading blocks from disk to send them: their memory meanwhile belongs to no peer's share.
pub(crate) fn reads() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(BLOCK_READS_MAX))
}

/// The permits that a message takes. A message that is larger than the room takes all of it.
pub(crate) fn permits(message_bytes: usize, room_bytes: u32) -> u32 {
    u32::try_from(message_bytes).unwrap_or(u32::MAX).min(room_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::RECEIVE_BUFFER_BYTES;
    use lydian_p2p::driver;
    use lydian_p2p::manager::{Intake, PeerId, ReceivedBlock, SavedFile};
    use lydian_primitives::BlockHash;
    use std::sync::mpsc::TrySendError;
    use std::time::Duration;

    /// limit: EVENTS_QUEUED at
    /// limit: EVENTS_QUEUED above
    #[test]
    fn who_has_more_events_waits() {
        let (events, mut incoming) = events();
        let tick = || Event::Other(driver::Event::Tick);
        (0..EVENTS_QUEUED).for_each(|_| events.try_send(tick()).unwrap());
        assert!(matches!(events.try_send(tick()), Err(mpsc::error::TrySendError::Full(_))));
        assert!(incoming.try_recv().is_ok() && events.try_send(tick()).is_ok());
    }

    /// limit: BLOCKS_QUEUED at
    /// limit: BLOCKS_QUEUED above
    #[test]
    fn blocks_above_the_bound_are_given_back() {
        let (blocks, to_store) = blocks();
        let delivery = |from| {
            Box::new(Delivery {
                from: PeerId(from),
                hash: BlockHash::ZERO,
                block: ReceivedBlock::Whole(Vec::new()),
                intake: Intake::Requested,
                is_next: false,
                received: Duration::ZERO,
                charge: None,
            })
        };
        (0..BLOCKS_QUEUED as u64).for_each(|from| blocks.try_send(delivery(from)).unwrap());
        let Err(TrySendError::Full(lost)) = blocks.try_send(delivery(u64::MAX)) else { panic!("no bound") };
        assert_eq!(lost.from, PeerId(u64::MAX));
        assert_eq!(to_store.recv().unwrap().from, PeerId(0));
        blocks.try_send(delivery(1)).unwrap();
    }

    /// limit: SAVES_QUEUED at
    /// limit: SAVES_QUEUED above
    #[test]
    fn who_has_more_to_save_waits() {
        let (saves, _to_save) = saves();
        let save = || (SavedFile::Bans, Vec::new());
        (0..SAVES_QUEUED).for_each(|_| saves.try_send(save()).unwrap());
        assert!(matches!(saves.try_send(save()), Err(TrySendError::Full(_))));
    }

    /// limit: p2p::BLOCK_READS_MAX at
    /// limit: p2p::BLOCK_READS_MAX above
    #[test]
    fn a_few_blocks_are_read_at_a_time() {
        let reads = reads();
        let mut places: Vec<_> =
            (0..BLOCK_READS_MAX).map(|_| Arc::clone(&reads).try_acquire_owned().unwrap()).collect();
        assert!(Arc::clone(&reads).try_acquire_owned().is_err());
        places.pop();
        assert!(Arc::clone(&reads).try_acquire_owned().is_ok());
    }

    /// limit: RECEIVE_BUFFER_BYTES at
    /// limit: RECEIVE_BUFFER_BYTES above
    #[test]
    fn a_peer_with_more_to_say_is_not_read_from() {
        let limit = RECEIVE_BUFFER_BYTES;
        let bytes = u32::try_from(limit).unwrap();
        let room = room(bytes);
        let take = |message: usize| Arc::clone(&room).try_acquire_many_owned(permits(message, bytes));
        let (most, rest) = (take(limit - 1).unwrap(), take(1).unwrap());
        assert!(take(1).is_err());
        drop(rest);
        // The largest message waits until everything before it is processed, and is not refused.
        assert!(take(2 * limit).is_err());
        drop(most);
        assert!(take(2 * limit).is_ok() && take(limit).is_ok());
    }
}
