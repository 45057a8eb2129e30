//! [`Streaming`]: one stream: who sends, a snapshot, then the groups of the hub. Who sends is sent at once, even while
//! there is no snapshot.
//!
//! Input: a place among the streams. Output: frames, in pieces that wait for the reader. A stream ends when its reader
//! leaves, is too slow, or the server stops. Cost: a copy of the list of transactions while the snapshot is sent.

use super::figures::{Counts, Opened};
use super::hub::{Base, Cursor, Joined, Next};
use crate::message::Message;
use crate::wire::encode;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};

/// Pieces that may wait for the reader, in addition to the groups of the hub.
pub(super) const PIECES_AHEAD: usize = 4;

/// Bytes of a piece of a snapshot.
const PIECE_SIZE: usize = 256 << 10;

/// Why a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The reader has left.
    Left,
    Slow,
    Stopping,
}

/// A stream that is being sent.
#[derive(Debug)]
pub(super) struct Streaming {
    joined: Joined,
    changes: watch::Receiver<()>,
    sender: mpsc::Sender<Bytes>,
    counts: Counts,
    _opened: Opened,
    /// What is sent first; empty afterwards.
    greeting: Vec<u8>,
}

impl Streaming {
    pub(super) fn new(joined: Joined, sender: mpsc::Sender<Bytes>, counts: Counts) -> Streaming {
        let (changes, opened) = (joined.changes(), counts.opened());
        let greeting = encode(&Message::Hello(joined.hello()));
        Streaming { joined, changes, sender, counts, _opened: opened, greeting }
    }

    /// Sends until the stream ends. Returns whether the reader has left; otherwise its connection is to be closed,
    /// since it may not read the end.
    pub(super) async fn run(mut self) -> bool {
        let end = loop {
            if let Err(end) = self.send_all().await {
                break end;
            }
        };
        if end == End::Slow {
            self.counts.closed_slow();
        }
        end == End::Left
    }

    /// Sends a snapshot and what follows on it, until there is another snapshot.
    async fn send_all(&mut self) -> Result<(), End> {
        let Base { members, state, mut cursor } = self.base().await?;
        let mut piece = std::mem::take(&mut self.greeting);
        piece.extend(encode(&Message::Reset));
        for member in members {
            piece.extend(member.frame());
            if piece.len() >= PIECE_SIZE {
                self.send(std::mem::take(&mut piece).into(), Some(&cursor)).await?;
            }
        }
        piece.extend(encode(&Message::State(state)));
        self.send(piece.into(), Some(&cursor)).await?;
        loop {
            match self.joined.next(&mut cursor) {
                Next::Group(group) => self.send(group, Some(&cursor)).await?,
                Next::NotYet => self.changed().await?,
                Next::Snapshot => return Ok(()),
                Next::Lost => return Err(End::Slow),
                Next::Ended => return Err(End::Stopping),
            }
        }
    }

    /// The mempool, once there is a snapshot.
    async fn base(&mut self) -> Result<Base, End> {
        loop {
            if self.joined.is_ended() {
                return Err(End::Stopping);
            }
            if let Some(base) = self.joined.base() {
                return Ok(base);
            }
            let greeting = std::mem::take(&mut self.greeting);
            if greeting.is_empty() {
                self.changed().await?;
            } else {
                // There may be a snapshot afterwards.
                self.send(greeting.into(), None).await?;
            }
        }
    }

    async fn changed(&mut self) -> Result<(), End> {
        tokio::select! {
            changed = self.changes.changed() => changed.map_err(|_| End::Stopping),
            () = self.sender.closed() => Err(End::Left),
        }
    }

    /// Sends bytes once there is room for them, unless the stream loses its place meanwhile, if it has one.
    async fn send(&mut self, bytes: Bytes, cursor: Option<&Cursor>) -> Result<(), End> {
        loop {
            tokio::select! {
                room = self.sender.reserve() => {
                    let room = room.map_err(|_| End::Left)?;
                    self.counts.sent(bytes.len());
                    room.send(bytes);
                    return Ok(());
                }
                changed = self.changes.changed() => {
                    changed.map_err(|_| End::Stopping)?;
                    if self.joined.is_ended() {
                        return Err(End::Stopping);
                    }
                    if cursor.is_some_and(|cursor| self.joined.is_lost(cursor)) {
                        return Err(End::Slow);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hub::tests::{hub, state};
    use super::*;
    use crate::limits::STREAM_WAITING_MAX;
    use crate::wire::Frames;

    #[tokio::test]
    async fn a_reader_that_does_not_read_is_left() {
        let hub = hub();
        hub.reset(Vec::new(), state(1));
        let (sender, mut receiver) = mpsc::channel(PIECES_AHEAD);
        let counts = Counts::default();
        let streaming = tokio::spawn(Streaming::new(hub.join().unwrap(), sender, counts.clone()).run());
        // The snapshot is read, and nothing behind it.
        let mut frames = Frames::default();
        frames.push(&receiver.recv().await.unwrap());
        let messages: Vec<Message> = std::iter::from_fn(|| frames.next().unwrap()).collect();
        assert!(matches!(messages[..], [Message::Hello(_), Message::Reset, Message::State(_)]));
        let size = STREAM_WAITING_MAX / 16;
        for number in 0..16 + PIECES_AHEAD + 2 {
            hub.push(vec![u8::try_from(number).unwrap(); size]);
            tokio::task::yield_now().await;
        }
        assert!(!streaming.await.unwrap(), "its connection is to be closed");
        assert_eq!((counts.slow(), counts.streams()), (1, 0));
        // What was on its way.
        let mut last = 0;
        while let Some(piece) = receiver.recv().await {
            last = piece[0];
        }
        assert!(usize::from(last) < 16);
    }

    /// Its place is free once the reader has left.
    #[tokio::test]
    async fn a_reader_is_greeted_before_there_is_a_snapshot() {
        let hub = hub();
        let (sender, mut receiver) = mpsc::channel(PIECES_AHEAD);
        let counts = Counts::default();
        let streaming = tokio::spawn(Streaming::new(hub.join().unwrap(), sender, counts.clone()).run());
        let patience = std::time::Duration::from_secs(60);
        let mut frames = Frames::default();
        frames.push(&tokio::time::timeout(patience, receiver.recv()).await.unwrap().unwrap());
        assert_eq!(frames.next(), Ok(Some(Message::Hello(hub.hello.clone()))));
        assert_eq!(frames.next(), Ok(None));
        hub.reset(Vec::new(), state(1));
        frames.push(&receiver.recv().await.unwrap());
        assert_eq!((frames.next(), frames.next()), (Ok(Some(Message::Reset)), Ok(Some(Message::State(state(1))))));
        drop(receiver);
        assert!(tokio::time::timeout(patience, streaming).await.unwrap().unwrap() && counts.streams() == 0);
    }

    #[tokio::test]
    async fn a_stream_ends_with_its_reader_or_the_server() {
        let hub = hub();
        hub.reset(Vec::new(), state(1));
        let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
        let streaming = Streaming::new(hub.join().unwrap(), sender, Counts::default());
        drop(receiver);
        assert!(streaming.run().await, "the reader has left");
        let (sender, mut receiver) = mpsc::channel(PIECES_AHEAD);
        let counts = Counts::default();
        let streaming = tokio::spawn(Streaming::new(hub.join().unwrap(), sender, counts.clone()).run());
        receiver.recv().await.unwrap();
        hub.end();
        assert!(!streaming.await.unwrap() && counts.slow() == 0);
    }
}
