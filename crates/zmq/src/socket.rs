//! The sockets: one for each address, with its subscribers.
//!
//! Input: a listening socket, messages of the publisher. Output: the messages at every subscriber that wants their
//! topic. The connections are tasks on the publisher's thread, between its messages.
//!
//! Invariants: publishing never waits; a subscriber that sends without end does not keep the thread; one that breaks
//! the protocol, does not complete its handshake in time or lets replies pile up is disconnected, without effect on
//! others. Memory: an outbox for each of at most [`SUBSCRIBERS_MAX`] subscribers.

use crate::endpoint::{Listener, SocketFile};
use crate::limits::{FRAME_SIZE_MAX, SUBSCRIBERS_MAX};
use crate::log::Log;
use crate::outbox::Outbox;
use crate::topic::Topic;
use crate::zmtp::{ProtocolError, Session, greeting};
use bytes::Bytes;
use lydian_stdx::lock;
use socket2::SockRef;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

/// A subscriber that has not completed its handshake by then is disconnected: libzmq's `ZMQ_HANDSHAKE_IVL`.
const HANDSHAKE_TIME: Duration = Duration::from_secs(30);

/// Pause after a connection could not be accepted, for example because there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes that are read from a subscriber at once.
const READ_SIZE: usize = 1024;

/// One address and its subscribers.
pub(crate) struct PubSocket {
    address: String,
    /// 0 means no limit.
    high_water_mark: usize,
    subscribers: Mutex<Vec<Arc<Subscriber>>>,
    log: Arc<dyn Log>,
}

impl fmt::Debug for PubSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PubSocket").field("address", &self.address).finish_non_exhaustive()
    }
}

/// One connection.
#[derive(Debug)]
struct Subscriber {
    session: Mutex<Session>,
    outbox: Outbox,
}

/// Why a connection ended.
#[derive(Debug)]
enum End {
    Io(io::Error),
    Protocol(ProtocolError),
    Handshake,
    /// It sends requests and does not read the replies.
    Replies,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Io(error) => error.fmt(f),
            End::Protocol(error) => error.fmt(f),
            End::Handshake => f.write_str("the handshake took too long"),
            End::Replies => f.write_str("it does not read replies"),
        }
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Io(error)
    }
}

impl PubSocket {
    pub(crate) fn new(address: String, high_water_mark: usize, log: Arc<dyn Log>) -> Arc<PubSocket> {
        Arc::new(PubSocket { address, high_water_mark, subscribers: Mutex::default(), log })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Messages that may wait for one subscriber; 0 means no limit.
    pub(crate) fn high_water_mark(&self) -> usize {
        self.high_water_mark
    }

    pub(crate) fn log(&self) -> Arc<dyn Log> {
        Arc::clone(&self.log)
    }

    /// Whether a subscriber wants the topic. If none does, the message need not be made.
    pub(crate) fn is_wanted(&self, topic: Topic) -> bool {
        lock(&self.subscribers).iter().any(|subscriber| lock(&subscriber.session).wants(topic))
    }

    /// Queues a message for each subscriber that wants it and has room.
    pub(crate) fn publish(&self, topic: Topic, message: &Bytes) {
        let subscribers = lock(&self.subscribers);
        for subscriber in subscribers.iter().filter(|subscriber| lock(&subscriber.session).wants(topic)) {
            if subscriber.outbox.offer(message) && self.log.is_on() {
                let address = &self.address;
                self.log.debug(&format!("A subscriber of {address} reads too slowly: messages are dropped"));
            }
        }
    }

    /// Whether everything was written.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.subscribers).iter().all(|subscriber| subscriber.outbox.is_idle())
    }

    /// Accepts subscribers for as long as the runtime exists.
    pub(crate) async fn accept_all(self: Arc<PubSocket>, listener: Listener) -> io::Result<()> {
        match listener {
            Listener::Tcp(listener) => {
                let listener = TcpListener::from_std(listener)?;
                loop {
                    match listener.accept().await {
                        Ok((stream, _)) => {
                            // A subscriber that vanished is noticed even if nothing is published to it.
                            let _ = SockRef::from(&stream).set_keepalive(true);
                            let _ = stream.set_nodelay(true);
                            self.spawn(stream);
                        }
                        Err(error) => self.pause(&error).await,
                    }
                }
            }
            Listener::Ipc(listener, file) => {
                let listener = UnixListener::from_std(listener)?;
                // Dropped before the listener: the file goes while the socket is still open.
                let _file: SocketFile = file;
                loop {
                    match listener.accept().await {
                        Ok((stream, _)) => self.spawn(stream),
                        Err(error) => self.pause(&error).await,
                    }
                }
            }
        }
    }

    async fn pause(&self, error: &io::Error) {
        if self.log.is_on() {
            self.log.debug(&format!("No connection could be accepted at {}: {error}", self.address));
        }
        sleep(ACCEPT_PAUSE).await;
    }

    /// Serves a connection, unless there are too many.
    fn spawn(self: &Arc<PubSocket>, stream: impl AsyncRead + AsyncWrite + Send + 'static) {
        let subscriber = Arc::new(Subscriber { session: Mutex::default(), outbox: Outbox::new(self.high_water_mark) });
        {
            let mut subscribers = lock(&self.subscribers);
            if subscribers.len() >= SUBSCRIBERS_MAX {
                if self.log.is_on() {
                    self.log.debug(&format!("{} has {SUBSCRIBERS_MAX} subscribers; another is refused", self.address));
                }
                return;
            }
            subscribers.push(Arc::clone(&subscriber));
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let end = subscriber.serve(stream, HANDSHAKE_TIME).await;
            lock(&this.subscribers).retain(|other| !Arc::ptr_eq(other, &subscriber));
            if this.log.is_on() {
                this.log.debug(&format!("A subscriber of {} is disconnected: {end}", this.address));
            }
        });
    }
}

impl Subscriber {
    async fn serve(&self, stream: impl AsyncRead + AsyncWrite, handshake_time: Duration) -> End {
        let (mut reader, mut writer) = split(stream);
        self.outbox.reply(&greeting());
        let reading = async {
            match timeout(handshake_time, self.read(&mut reader, true)).await {
                Ok(Ok(())) => self.read(&mut reader, false).await,
                Ok(Err(end)) => Err(end),
                Err(_) => Err(End::Handshake),
            }
        };
        let writing = async {
            loop {
                let bytes = self.outbox.next().await;
                writer.write_all(&bytes).await?;
                self.outbox.written();
            }
        };
        let end: Result<(), End> = tokio::select! { end = reading => end, end = writing => end };
        end.err().unwrap_or(End::Io(io::ErrorKind::UnexpectedEof.into()))
    }

    /// Reads until the subscriber disconnects, or until its handshake is complete.
    async fn read(&self, reader: &mut (impl AsyncRead + Unpin), is_handshake: bool) -> Result<(), End> {
        let mut buffer = [0; READ_SIZE];
        let mut replies = Vec::new();
        loop {
            let count = reader.read(&mut buffer).await?;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            let is_open = {
                let mut session = lock(&self.session);
                session.receive(&buffer[..count], &mut replies).map_err(End::Protocol)?;
                session.is_open()
            };
            self.outbox.reply(&replies);
            replies.clear();
            if self.outbox.reply_bytes() > FRAME_SIZE_MAX {
                return Err(End::Replies);
            }
            if is_handshake && is_open {
                return Ok(());
            }
            // The next bytes may be here already; others get their turn first.
            yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests;
