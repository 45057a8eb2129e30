//! [`Connection`]: the shared state of one connection, and [`WatchedStream`], its bytes.
//!
//! Input: a socket, and the idle timeout (`-rpcservertimeout`). Output: the same bytes; reads and writes fail after the
//! timeout. As in Core, the time does not count while a call is being answered.

use crate::context::Context as RpcContext;
use lydian_serve::Users;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: u64,
    pub(super) address: SocketAddr,
    /// Whether `-rpcallowip` allows its address.
    pub(super) is_allowed: bool,
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
}

impl Connection {
    pub(super) fn new(id: u64, address: SocketAddr, is_allowed: bool) -> Connection {
        Connection {
            id,
            address,
            is_allowed,
            began: Instant::now(),
            calls: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            unread: AtomicUsize::new(0),
            known: Mutex::new(None),
            has_user: AtomicBool::new(false),
            close: Notify::new(),
        }
    }

    /// Counts a call until the guard is dropped.
    pub(super) fn begin_call(self: &Arc<Connection>) -> CallGuard {
        self.calls.fetch_add(1, Ordering::SeqCst);
        CallGuard(Arc::clone(self))
    }

    /// Closes the connection soon, whatever its state.
    pub(super) fn close(&self) {
        self.close.notify_one();
    }

    /// Resolves when the connection should close.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }

    /// Counts bytes of an answer as unread until the guard is dropped.
    pub(super) fn count_unread(self: &Arc<Connection>, bytes: usize) -> UnreadGuard {
        if self.unread.fetch_add(bytes, Ordering::SeqCst) == 0 {
            // Before the answer existed, the client had nothing to read.
            self.progressed();
        }
        UnreadGuard { connection: Arc::clone(self), bytes }
    }

    pub(super) fn unread(&self) -> usize {
        self.unread.load(Ordering::SeqCst)
    }

    /// Time since the last byte was read or written.
    pub(super) fn still_for(&self) -> Duration {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(last)
    }

    fn progressed(&self) {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(millis, Ordering::Relaxed);
    }

    /// Returns whether a correct password was sent on this connection.
    pub(super) fn has_user(&self) -> bool {
        self.has_user.load(Ordering::SeqCst)
    }

    /// Returns the user of a header that was accepted on this connection before.
    pub(super) fn known_user(&self, header: &[u8]) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(known, _)| known == header).map(|(_, user)| user.clone())
    }

    /// Returns the user of a header, and remembers the header if it is valid.
    pub(super) fn authorize(&self, users: &Users, header: &[u8]) -> Option<String> {
        let user = users.authorize(header)?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((header.to_vec(), user.clone()));
        self.has_user.store(true, Ordering::SeqCst);
        Some(user)
    }
}

/// Counts a call as being answered until it is dropped.
#[derive(Debug)]
pub(super) struct CallGuard(Arc<Connection>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.progressed();
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counts bytes of an answer as unread until it is dropped.
#[derive(Debug)]
pub(super) struct UnreadGuard {
    connection: Arc<Connection>,
    bytes: usize,
}

impl Drop for UnreadGuard {
    fn drop(&mut self) {
        self.connection.unread.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

#[derive(Debug)]
pub(super) struct WatchedStream {
    stream: TcpStream,
    connection: Arc<Connection>,
    /// `None`: no idle timeout.
    timer: Option<Timer>,
    /// For logging events of the socket.
    context: Arc<RpcContext>,
}

#[derive(Debug)]
struct Timer {
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl WatchedStream {
    pub(super) fn new(
        stream: TcpStream,
        limit: Option<Duration>,
        connection: Arc<Connection>,
        context: Arc<RpcContext>,
    ) -> WatchedStream {
        let timer = limit.map(|limit| Timer { limit, sleep: Box::pin(sleep(limit)) });
        WatchedStream { stream, connection, timer, context }
    }

    /// Logs a line of Core's category `http`. The text is built with the client's address and id.
    fn debug(&self, words: impl FnOnce(SocketAddr, u64) -> String) {
        self.context.host.debug("http", || words(self.connection.address, self.connection.id));
    }

    /// Logs the result of a write to the socket.
    fn log_sent(&self, result: &Poll<io::Result<usize>>) {
        match result {
            Poll::Ready(Ok(bytes)) => {
                self.debug(|address, id| format!("Sent {bytes} bytes to client {address} (id={id})"))
            }
            Poll::Ready(Err(error)) => self.debug(|address, id| {
                format!("Error sending HTTP response data to client {address} (id={id}): {error}")
            }),
            Poll::Pending => {}
        }
    }

    /// Fails if the connection was idle for too long; otherwise schedules the task to be woken when that may be the
    /// case.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        while timer.sleep.as_mut().poll(context).is_ready() {
            let is_busy = self.connection.calls.load(Ordering::SeqCst) > 0;
            let still_for = if is_busy { Duration::ZERO } else { self.connection.still_for() };
            if still_for >= timer.limit {
                self.debug(|address, id| format!("HTTP client idle timeout {address} (id={id})"));
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "idle"));
            }
            timer.sleep.as_mut().reset(Instant::now() + (timer.limit - still_for));
        }
        Poll::Pending
    }

    fn passed<T>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match result {
            Poll::Ready(result) => {
                self.connection.progressed();
                Poll::Ready(result)
            }
            Poll::Pending => self.poll_idle(context).map(Err),
        }
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        match &result {
            Poll::Ready(Ok(())) if buffer.filled().len() == before => {
                self.debug(|address, id| format!("Received EOF from {address} (id={id})"));
            }
            Poll::Ready(Err(error)) => {
                self.debug(|address, id| format!("Permanent read error from {address} (id={id}): {error}"));
            }
            _ => {}
        }
        self.passed(context, result)
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.log_sent(&result);
        self.passed(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.log_sent(&result);
        self.passed(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
