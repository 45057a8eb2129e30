//! An answer of known size whose bytes are made while it is sent, one piece after the other.
//!
//! Input: a [`Source`] of pieces. Output: a response with a `Content-Length`. A piece is made on the thread that serves
//! the socket if the source can do so without waiting, otherwise on a thread that may block.
//!
//! Invariants: at most two pieces are in memory: the next one is made when the last bytes of the one before are left,
//! and the one after it takes the place of the first. A source that fails, or ends early, ends the connection, so that
//! the client never takes what it got for the whole answer. Cost: two buffers of the size of a piece, which stay in the
//! caches of the processor. Mapping a new buffer for 1.5 MB takes longer than filling and sending it.

use super::reply::reply;
use crate::budget::Room;
use crate::connection::{Connection, UnreadGuard};
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use lydian_stdx::lock;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use tokio::task::{JoinHandle, spawn_blocking};

/// Makes the bytes of an answer.
pub trait Source: fmt::Debug + Send + 'static {
    /// Replaces the content of `piece` by the next bytes. `may_wait`: whether it may wait, for a disk for example.
    fn next(&mut self, piece: &mut Vec<u8>, may_wait: bool) -> Filled;
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    Yes,
    /// Only if it may not wait. Asked again, it makes the same piece.
    WouldWait,
    Failed,
}

/// An answer in pieces.
#[derive(Debug)]
pub struct Pieces {
    /// Bytes of all pieces.
    pub size: u64,
    /// The first piece, not empty: it was made before the answer began.
    pub first: Vec<u8>,
    /// Makes the others.
    pub source: Box<dyn Source>,
}

/// A response with such an answer. `kind`: its `Content-Type`. `room` is for two pieces.
pub fn in_pieces(
    code: StatusCode,
    kind: &'static str,
    pieces: Pieces,
    room: Room,
    connection: &Arc<Connection>,
) -> Response {
    let Pieces { size, first, source } = pieces;
    let kept = Arc::new(Kept { spare: Mutex::default(), connection: Arc::clone(connection), _room: room });
    reply(code, Some(kind), Body::new(Sending { left: size, state: State::Made(source, first), kept }))
}

/// What a piece leaves for the next one.
#[derive(Debug)]
struct Kept {
    /// Its buffer.
    spare: Mutex<Vec<u8>>,
    connection: Arc<Connection>,
    _room: Room,
}

/// A piece on its way.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    kept: Arc<Kept>,
    _unread: UnreadGuard,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        *lock(&self.kept.spare) = mem::take(&mut self.bytes);
    }
}

/// The answer ended before its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CutShort;

impl fmt::Display for CutShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of the answer cannot be read")
    }
}

impl std::error::Error for CutShort {}

/// A source, its last piece, and what became of it.
type Attempt = (Box<dyn Source>, Vec<u8>, Filled);

#[derive(Debug)]
enum State {
    /// The next piece is ready.
    Made(Box<dyn Source>, Vec<u8>),
    /// The next piece is to be made.
    Idle(Box<dyn Source>),
    /// A thread that may block makes it.
    Waiting(JoinHandle<Attempt>),
    Over,
}

/// The body of the response.
#[derive(Debug)]
struct Sending {
    /// Bytes of the pieces that are not sent.
    left: u64,
    state: State,
    kept: Arc<Kept>,
}

impl Sending {
    /// The next piece; `None` if there is none.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        loop {
            let (source, piece, filled) = match mem::replace(&mut self.state, State::Over) {
                State::Over => return Poll::Ready(None),
                State::Made(source, piece) => (source, piece, Filled::Yes),
                State::Idle(source) => attempt(source, mem::take(&mut *lock(&self.kept.spare)), false),
                State::Waiting(mut task) => match Pin::new(&mut task).poll(context) {
                    Poll::Ready(Ok((source, piece, Filled::WouldWait))) => (source, piece, Filled::Failed),
                    Poll::Ready(Ok(attempted)) => attempted,
                    // It panicked, which is in the log, or the server has ended.
                    Poll::Ready(Err(_)) => return Poll::Ready(None),
                    Poll::Pending => {
                        self.state = State::Waiting(task);
                        return Poll::Pending;
                    }
                },
            };
            match filled {
                Filled::Yes => {
                    self.state = State::Idle(source);
                    return Poll::Ready(Some(piece));
                }
                Filled::WouldWait => self.state = State::Waiting(spawn_blocking(move || attempt(source, piece, true))),
                Filled::Failed => return Poll::Ready(None),
            }
        }
    }
}

fn attempt(mut source: Box<dyn Source>, mut piece: Vec<u8>, may_wait: bool) -> Attempt {
    let filled = source.next(&mut piece, may_wait);
    (source, piece, filled)
}

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = ready!(self.poll_piece(context));
        let rest = piece.as_ref().and_then(|piece| self.left.checked_sub(piece.len() as u64));
        let (Some(bytes), Some(rest)) = (piece.filter(|piece| !piece.is_empty()), rest) else {
            self.state = State::Over;
            return Poll::Ready(Some(Err(CutShort)));
        };
        self.left = rest;
        let kept = Arc::clone(&self.kept);
        let unread = kept.connection.count_unread(bytes.len());
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(Piece { bytes, kept, _unread: unread })))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::connection::Client;
    use crate::event::Silent;
    use crate::limits::HEADERS_SIZE_MAX;
    use crate::places::Places;
    use crate::server::{Protocol, Stopped};
    use axum::{Extension, Router};
    use std::collections::HashSet;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::sync::watch;

    /// Pieces of the numbers from 1 on, each of them as often as the piece is long.
    #[derive(Clone, Debug)]
    struct Numbers {
        piece: u8,
        /// The pieces that are only made where it may wait.
        waits: fn(u8) -> bool,
        /// The piece with which it fails.
        fails: u8,
        /// The places of the buffers.
        places: Arc<Mutex<HashSet<usize>>>,
    }

    const SIZE: usize = 50_000;

    impl Source for Numbers {
        fn next(&mut self, piece: &mut Vec<u8>, may_wait: bool) -> Filled {
            if (self.waits)(self.piece) && !may_wait {
                return Filled::WouldWait;
            }
            if self.piece == self.fails {
                return Filled::Failed;
            }
            piece.clear();
            piece.resize(SIZE, self.piece);
            lock(&self.places).insert(piece.as_ptr().addr());
            self.piece += 1;
            Filled::Yes
        }
    }

    /// The answer of a server to a request, up to the end of the connection.
    async fn ask(source: Numbers, size: usize) -> String {
        let handler = move |Extension(connection): Extension<Arc<Connection>>| async move {
            let pieces = Pieces { size: size as u64, first: vec![0; SIZE], source: Box::new(source) };
            in_pieces(StatusCode::OK, "x/y", pieces, Budget::new(1 << 20).room(), &connection)
        };
        let http = crate::http::Http::new(Router::new().fallback(handler), None);
        let places = Arc::new(Places::new(Arc::new(Silent)));
        let place = places.take(Client::direct(SocketAddr::from(([192, 0, 2, 1], 5)), true)).unwrap();
        let (mut client, stream) = duplex(1 << 12);
        let (_stop, stopped) = watch::channel(false);
        let asking = async {
            client.write_all(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let (answer, ()) = tokio::join!(asking, http.serve(stream, &place.connection, Stopped::new(stopped)));
        assert_eq!(place.connection.unread(), 0);
        answer
    }

    fn numbers(waits: fn(u8) -> bool, fails: u8) -> Numbers {
        Numbers { piece: 1, waits, fails, places: Arc::default() }
    }

    #[tokio::test]
    async fn pieces_follow_each_other_in_two_buffers() {
        for waits in [|_| false, |_| true, |piece| piece % 3 == 0] as [fn(u8) -> bool; 3] {
            let source = numbers(waits, u8::MAX);
            let places = Arc::clone(&source.places);
            let answer = ask(source, 10 * SIZE).await;
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("content-length: 500000"), "{head}");
            let expected: Vec<u8> = (0..10).flat_map(|piece| [piece; SIZE]).collect();
            assert!(body.as_bytes() == expected);
            let buffers = lock(&places).len();
            assert!(buffers <= 2, "{buffers}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_ends_early_ends_the_connection() {
        for (waits, fails, size, expected) in [
            ((|_| false) as fn(u8) -> bool, 4, 10 * SIZE, 4 * SIZE),
            (|_| true, 4, 10 * SIZE, 4 * SIZE),
            // The pieces do not fit the size.
            (|_| false, u8::MAX, 5 * SIZE / 2, 2 * SIZE),
        ] {
            let answer = ask(numbers(waits, fails), size).await;
            let body = answer.split_once("\r\n\r\n").unwrap().1;
            // The last bytes before the missing ones are not sent.
            assert!((expected - HEADERS_SIZE_MAX..=expected).contains(&body.len()), "{}", body.len());
        }
    }
}
