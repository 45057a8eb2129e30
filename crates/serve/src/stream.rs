//! [`WatchedStream`]: the bytes of one connection, with its deadline.
//!
//! Input: any stream of bytes, the idle timeout, and how long a write may wait. Output: the same bytes; reads and
//! writes fail after the timeout. As in Core, the time does not count while a call is being answered. If the client
//! takes nothing for too long, the connection is closed, whatever else its task waits for. A PROXY header fails: it is
//! read before.

use crate::connection::Connection;
use crate::event::ClientEvent;
use crate::proxy::Watch;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream that fails when it is idle for too long, and reports what happens to it.
#[derive(Debug)]
pub(crate) struct WatchedStream<S> {
    stream: S,
    connection: Arc<Connection>,
    /// `None`: no idle timeout.
    timer: Option<Timer>,
    /// The longest wait of a write; `None`: no limit.
    stall_max: Option<Duration>,
    /// While a write waits.
    stall: Option<Pin<Box<Sleep>>>,
    start: Watch,
}

#[derive(Debug)]
struct Timer {
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl<S> WatchedStream<S> {
    pub(crate) fn new(stream: S, limit: Option<Duration>, connection: Arc<Connection>) -> WatchedStream<S> {
        let timer = limit.map(|limit| Timer { limit, sleep: Box::pin(sleep(limit)) });
        WatchedStream { stream, connection, timer, stall_max: None, stall: None, start: Watch::default() }
    }

    /// The same with a limit on the wait of a write.
    pub(crate) fn with_stall_max(self, stall_max: Option<Duration>) -> WatchedStream<S> {
        WatchedStream { stall_max, ..self }
    }

    /// Closes the connection if a write has waited too long; otherwise schedules the task to be woken then.
    fn note_write<T>(&mut self, context: &mut Context<'_>, result: &Poll<T>) {
        let Some(limit) = self.stall_max.filter(|_| result.is_pending()) else {
            self.stall = None;
            return;
        };
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(limit)));
        if stall.as_mut().poll(context).is_ready() {
            self.stall = None;
            self.connection.report(ClientEvent::Stalled);
            self.connection.close();
        }
    }

    /// Reports the result of a write.
    fn report_sent(&self, result: &Poll<io::Result<usize>>) {
        match result {
            Poll::Ready(Ok(bytes)) => self.connection.report(ClientEvent::Sent { bytes: *bytes }),
            Poll::Ready(Err(error)) => self.connection.report(ClientEvent::SendFailed(error)),
            Poll::Pending => {}
        }
    }

    /// Fails if the connection was idle for too long; otherwise schedules the task to be woken when that may be the
    /// case.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        while timer.sleep.as_mut().poll(context).is_ready() {
            let still_for = if self.connection.is_busy() { Duration::ZERO } else { self.connection.still_for() };
            if still_for >= timer.limit {
                self.connection.report(ClientEvent::IdleTimeout);
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

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let mut result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.start.finds(buffer.filled().get(before..).unwrap_or_default()) {
            buffer.set_filled(before);
            let words = "a PROXY header of an address that is no proxy";
            result = Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, words)));
        }
        match &result {
            Poll::Ready(Ok(())) if buffer.filled().len() == before => {
                self.connection.report(ClientEvent::EndOfStream);
            }
            Poll::Ready(Err(error)) => self.connection.report(ClientEvent::ReadFailed(error)),
            _ => {}
        }
        self.passed(context, result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_write(context, &result);
        self.report_sent(&result);
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
        self.note_write(context, &result);
        self.report_sent(&result);
        self.passed(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
