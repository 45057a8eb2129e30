//! [`Connection`]: the shared state of one connection.
//!
//! Input: what its stream, its protocol and the login report. Output: whether it is idle or busy, how much is unread,
//! its user, when it should close, and when it should end once it has answered.

use crate::event::{ClientEvent, Event, Log};
use crate::proxy::Sender;
use lydian_stdx::lock;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The client of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) is_allowed: bool,
    pub(crate) is_local: bool,
}

impl Client {
    /// A client that connects to this server itself.
    pub(crate) fn direct(address: SocketAddr, is_allowed: bool) -> Client {
        Client { address, is_allowed, is_local: address.ip().to_canonical().is_loopback() }
    }

    /// A client whose connection a proxy passes on, which decides who may connect. Wherever the client is, it is not
    /// on this machine: a header that names a loopback address must not give the rights of one.
    pub(crate) fn of_proxy(proxy: SocketAddr, sender: Sender) -> Client {
        match sender {
            Sender::Itself => Client::direct(proxy, true),
            Sender::Unknown => Client { address: proxy, is_allowed: true, is_local: false },
            Sender::Client(address) => Client { address, is_allowed: true, is_local: false },
        }
    }
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) id: u64,
    /// The address of the client: behind a proxy, the one that the proxy named.
    pub address: SocketAddr,
    /// Whether the client is on this machine and came without a proxy.
    pub is_local: bool,
    /// Whether the allow list contains its address. If not, the protocol must refuse what it sends.
    pub is_allowed: bool,
    began: Instant,
    /// Calls that are being answered.
    calls: AtomicUsize,
    /// Milliseconds from `began` to the last byte read or written.
    last: AtomicU64,
    /// Bytes of answers that the client has not read yet.
    unread: AtomicUsize,
    /// The last `Authorization` header that was accepted, and its user.
    known: Mutex<Option<(Vec<u8>, String)>>,
    has_user: AtomicBool,
    close: Notify,
    is_leaving: AtomicBool,
    leave: Notify,
    log: Arc<dyn Log>,
}

impl Connection {
    pub(crate) fn new(id: u64, client: Client, log: Arc<dyn Log>) -> Connection {
        let Client { address, is_allowed, is_local } = client;
        Connection {
            id,
            address,
            is_local,
            is_allowed,
            began: Instant::now(),
            calls: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            unread: AtomicUsize::new(0),
            known: Mutex::new(None),
            has_user: AtomicBool::new(false),
            close: Notify::new(),
            is_leaving: AtomicBool::new(false),
            leave: Notify::new(),
            log,
        }
    }

    /// Passes an event to the log.
    pub(crate) fn report(&self, event: ClientEvent<'_>) {
        self.log.event(&Event::Client { address: self.address, id: self.id, event });
    }

    /// Counts a call until the guard is dropped. While there is one, the connection is not idle.
    pub fn begin_call(self: &Arc<Connection>) -> CallGuard {
        self.calls.fetch_add(1, Ordering::SeqCst);
        CallGuard(Arc::clone(self))
    }

    /// Closes the connection soon, whatever its state.
    pub(crate) fn close(&self) {
        self.close.notify_one();
    }

    /// Resolves when the connection should close.
    pub(crate) async fn closed(&self) {
        self.close.notified().await;
    }

    /// Ends the connection once its protocol has finished the answers in progress.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::SeqCst);
        self.leave.notify_waiters();
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::SeqCst)
    }

    /// Resolves when the connection should end in this way.
    pub(crate) async fn left(&self) {
        // Made before the look at the flag, so that no call of `leave` is missed.
        let notified = self.leave.notified();
        if !self.is_leaving() {
            notified.await;
        }
    }

    /// Counts bytes of an answer as unread until the guard is dropped.
    pub fn count_unread(self: &Arc<Connection>, bytes: usize) -> UnreadGuard {
        if self.unread.fetch_add(bytes, Ordering::SeqCst) == 0 {
            // Before the answer existed, the client had nothing to read.
            self.progressed();
        }
        UnreadGuard { connection: Arc::clone(self), bytes }
    }

    pub(crate) fn unread(&self) -> usize {
        self.unread.load(Ordering::SeqCst)
    }

    /// The number of the connection, which the log names too. No two connections of a server have the same.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Time since it was accepted.
    pub fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Time since the last byte was read or written.
    pub fn still_for(&self) -> Duration {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(last)
    }

    /// Returns whether a call is being answered.
    pub(crate) fn is_busy(&self) -> bool {
        self.calls.load(Ordering::SeqCst) > 0
    }

    /// Notes that a byte was read or written.
    pub(crate) fn progressed(&self) {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(millis, Ordering::Relaxed);
    }

    /// The client has begun as its protocol demands: its place is not given to a new connection.
    pub fn has_spoken(&self) {
        self.has_user.store(true, Ordering::SeqCst);
    }

    /// Returns whether a correct password was sent on this connection, or what stands for it.
    pub(crate) fn has_user(&self) -> bool {
        self.has_user.load(Ordering::SeqCst)
    }

    /// Returns the user of a header that was accepted on this connection before.
    pub(crate) fn known_user(&self, header: &[u8]) -> Option<String> {
        let known = lock(&self.known);
        known.as_ref().filter(|(known, _)| known == header).map(|(_, user)| user.clone())
    }

    /// Remembers a header that was accepted, and its user.
    pub(crate) fn set_user(&self, header: &[u8], user: &str) {
        *lock(&self.known) = Some((header.to_vec(), user.to_owned()));
        self.has_user.store(true, Ordering::SeqCst);
    }
}

/// Counts a call as being answered until it is dropped.
#[derive(Debug)]
pub struct CallGuard(Arc<Connection>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.progressed();
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counts bytes of an answer as unread until it is dropped.
#[derive(Debug)]
pub struct UnreadGuard {
    connection: Arc<Connection>,
    bytes: usize,
}

impl Drop for UnreadGuard {
    fn drop(&mut self) {
        self.connection.unread.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}
