//! The messages that wait for one subscriber.
//!
//! Input: messages, from the publisher, which never waits. Output: bytes to write, for the subscriber's connection.
//! Invariants: at most as many messages wait as the high-water mark allows, and at most [`OUTBOX_BYTES_MAX`] bytes (one
//! message is always accepted); a message is queued whole or not at all. A message of several subscribers is in memory
//! once.

use crate::limits::OUTBOX_BYTES_MAX;
use bytes::Bytes;
use lydian_stdx::lock;
use std::collections::VecDeque;
use std::sync::Mutex;
use tokio::sync::Notify;

/// Small messages are written together up to this size, in bytes.
const BATCH_SIZE: usize = 64 << 10;

/// What a message takes beside its bytes: its place here and its allocation.
const MESSAGE_OVERHEAD: usize = 128;

/// The queue of a subscriber.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The high-water mark: messages that may wait. 0 means no limit but that of the bytes.
    messages_max: usize,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Bytes>,
    /// Replies of the protocol, which are not messages.
    replies: Vec<u8>,
    /// The memory of the messages, and of those being written.
    bytes: usize,
    writing: usize,
    dropped: u64,
}

impl Outbox {
    pub(crate) fn new(messages_max: usize) -> Outbox {
        Outbox { messages_max, state: Mutex::default(), changed: Notify::new() }
    }

    /// Queues a message, or drops it if there is no room. Returns whether it is the first of a row that is dropped.
    pub(crate) fn offer(&self, message: &Bytes) -> bool {
        let mut state = lock(&self.state);
        let memory = message.len() + MESSAGE_OVERHEAD;
        let is_full = self.messages_max > 0 && state.messages.len() >= self.messages_max
            || state.bytes > 0 && state.bytes.saturating_add(memory) > OUTBOX_BYTES_MAX;
        if is_full {
            state.dropped += 1;
            return state.dropped == 1;
        }
        state.dropped = 0;
        state.bytes += memory;
        state.messages.push_back(message.clone());
        drop(state);
        self.changed.notify_one();
        false
    }

    pub(crate) fn reply(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            lock(&self.state).replies.extend_from_slice(bytes);
            self.changed.notify_one();
        }
    }

    /// Waits for bytes to write. To be followed by [`Outbox::written`].
    pub(crate) async fn next(&self) -> Bytes {
        loop {
            if let Some(bytes) = lock(&self.state).take() {
                return bytes;
            }
            self.changed.notified().await;
        }
    }

    /// The bytes of [`Outbox::next`] were written.
    pub(crate) fn written(&self) {
        let mut state = lock(&self.state);
        state.bytes -= state.writing;
        state.writing = 0;
    }

    pub(crate) fn is_idle(&self) -> bool {
        let state = lock(&self.state);
        state.bytes == 0 && state.replies.is_empty()
    }

    /// Bytes of replies that wait.
    pub(crate) fn reply_bytes(&self) -> usize {
        lock(&self.state).replies.len()
    }
}

impl State {
    /// The replies, a large message, or small ones together.
    fn take(&mut self) -> Option<Bytes> {
        if !self.replies.is_empty() {
            return Some(std::mem::take(&mut self.replies).into());
        }
        let first = self.messages.pop_front()?;
        self.writing = first.len() + MESSAGE_OVERHEAD;
        let fits = |next: &Bytes, size: usize| size + next.len() <= BATCH_SIZE;
        if !self.messages.front().is_some_and(|next| fits(next, first.len())) {
            return Some(first);
        }
        let mut batch = Vec::with_capacity(BATCH_SIZE);
        batch.extend_from_slice(&first);
        while let Some(next) = self.messages.front().filter(|next| fits(next, batch.len())) {
            self.writing += next.len() + MESSAGE_OVERHEAD;
            batch.extend_from_slice(next);
            self.messages.pop_front();
        }
        Some(batch.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(size: usize) -> Bytes {
        vec![7; size].into()
    }

    fn waiting(outbox: &Outbox) -> usize {
        lock(&outbox.state).messages.len()
    }

    #[test]
    fn above_the_high_water_mark_messages_are_dropped() {
        let outbox = Outbox::new(2);
        assert!(!outbox.offer(&message(1)) && !outbox.offer(&message(1)));
        assert!(outbox.offer(&message(1)), "the first that is dropped is reported");
        assert!(!outbox.offer(&message(1)), "the next is not");
        assert_eq!(waiting(&outbox), 2);
        assert_eq!(lock(&outbox.state).take().unwrap().len(), 2);
        outbox.written();
        assert!(!outbox.offer(&message(1)) && waiting(&outbox) == 1);
    }

    /// limit: OUTBOX_BYTES_MAX at
    /// limit: OUTBOX_BYTES_MAX above
    #[test]
    fn bytes_are_bounded_whatever_the_mark() {
        let large = OUTBOX_BYTES_MAX - 5 - 2 * MESSAGE_OVERHEAD;
        for messages_max in [0, 1000] {
            let outbox = Outbox::new(messages_max);
            outbox.offer(&message(large));
            outbox.offer(&message(5));
            assert_eq!(waiting(&outbox), 2);
            assert!(outbox.offer(&message(1)) && waiting(&outbox) == 2);
            // What is being written counts.
            let taken = lock(&outbox.state).take().unwrap();
            assert_eq!(taken.len(), large);
            outbox.offer(&message(1));
            assert_eq!(waiting(&outbox), 1);
            outbox.written();
            outbox.offer(&message(1));
            assert_eq!(waiting(&outbox), 2);
        }
        let outbox = Outbox::new(0);
        outbox.offer(&message(OUTBOX_BYTES_MAX + 1));
        assert_eq!(waiting(&outbox), 1, "one message is always accepted");
    }

    #[test]
    fn small_messages_are_written_together_and_large_ones_alone() {
        let outbox = Outbox::new(0);
        for size in [BATCH_SIZE / 2, BATCH_SIZE / 2, 1, BATCH_SIZE + 1, 3] {
            outbox.offer(&message(size));
        }
        outbox.reply(b"pong");
        let sizes: Vec<usize> = std::iter::from_fn(|| {
            let taken = lock(&outbox.state).take().map(|bytes| bytes.len());
            outbox.written();
            taken
        })
        .collect();
        assert_eq!(sizes, [4, BATCH_SIZE, 1, BATCH_SIZE + 1, 3]);
        assert!(outbox.is_idle());
    }
}
