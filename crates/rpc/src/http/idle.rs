//! A stream on which something must happen. Input: a connection, and how long nothing may happen on it (`-rpcservertimeout`). Output: the same
//! connection, whose reads fail when that is over. While a call is being answered the time does not count, as in Core.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// Calls of one connection that are being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Busy(Arc<AtomicUsize>);

impl Busy {
    pub(super) fn begin(&self) -> BusyGuard {
        self.0.fetch_add(1, Ordering::SeqCst);
        BusyGuard(self.clone())
    }

    fn is_busy(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// One of them, for as long as this lives.
#[derive(Debug)]
pub(super) struct BusyGuard(Busy);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Debug)]
pub(super) struct IdleStream {
    stream: TcpStream,
    busy: Busy,
    /// `None`: it may be idle for ever.
    timer: Option<Timer>,
}

#[derive(Debug)]
struct Timer {
    limit: Duration,
    last: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl IdleStream {
    pub(super) fn new(stream: TcpStream, limit: Option<Duration>, busy: Busy) -> IdleStream {
        let timer = limit.map(|limit| Timer { limit, last: Instant::now(), sleep: Box::pin(sleep(limit)) });
        IdleStream { stream, busy, timer }
    }

    fn progressed(&mut self) {
        if let Some(timer) = &mut self.timer {
            timer.last = Instant::now();
        }
    }

    /// Fails when nothing happened for too long; otherwise has the task woken when that may be so.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        while timer.sleep.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            let end = if self.busy.is_busy() { now + timer.limit } else { timer.last + timer.limit };
            if end <= now {
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "idle"));
            }
            timer.sleep.as_mut().reset(end);
        }
        Poll::Pending
    }
}

impl AsyncRead for IdleStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(result) => {
                self.progressed();
                Poll::Ready(result)
            }
            Poll::Pending => self.poll_idle(context).map(Err),
        }
    }
}

impl AsyncWrite for IdleStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(context, bytes) {
            Poll::Ready(result) => {
                self.progressed();
                Poll::Ready(result)
            }
            Poll::Pending => self.poll_idle(context).map(Err),
        }
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
        match Pin::new(&mut self.stream).poll_write_vectored(context, slices) {
            Poll::Ready(result) => {
                self.progressed();
                Poll::Ready(result)
            }
            Poll::Pending => self.poll_idle(context).map(Err),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
