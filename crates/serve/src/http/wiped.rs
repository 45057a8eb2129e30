//! Buffers of a connection that may hold passwords and private keys: overwritten when they are freed or used again.
//!
//! Input: a stream and a future that serves it. Output: the same bytes and the same result. A body reaches hyper's
//! buffer first, from which its parts are cut. [`Wiped`] overwrites such a buffer when the connection's future frees
//! it; [`Cleared`] overwrites what is left in one before the next read. Bodies that a handler keeps are up to the
//! handler. Cost: writing 8 KiB of zeros for each read.

use crate::limits::HEADERS_SIZE_MAX;
use lydian_disk::wiping;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The largest block that is overwritten. Buffers for reading have 8 KiB and may grow a little; answers are larger, and
/// no secrets.
const WIPED_SIZE_MAX: usize = 8 * HEADERS_SIZE_MAX;

/// A future whose blocks are overwritten when it frees them.
#[derive(Debug)]
pub(super) struct Wiped<F>(Option<Pin<Box<F>>>);

impl<F> Wiped<F> {
    pub(super) fn new(future: F) -> Wiped<F> {
        Wiped(Some(Box::pin(future)))
    }

    /// The future.
    pub(super) fn inner(&mut self) -> Option<Pin<&mut F>> {
        self.0.as_mut().map(Pin::as_mut)
    }
}

impl<F: Future> Future for Wiped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match self.inner() {
            Some(future) => wiping(WIPED_SIZE_MAX, || future.poll(context)),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Wiped<F> {
    fn drop(&mut self) {
        wiping(WIPED_SIZE_MAX, || self.0 = None);
    }
}

/// A stream that overwrites the free part of a buffer before it reads into it.
#[derive(Debug)]
pub(super) struct Cleared<S>(pub(super) S);

impl<S: AsyncRead + Unpin> AsyncRead for Cleared<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Bytes that count as initialized may be those of an earlier request.
        buffer.initialize_unfilled().fill(0);
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Cleared<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncWriteExt, duplex};

    #[tokio::test]
    async fn a_read_leaves_nothing_of_an_earlier_one() {
        let (mut client, stream) = duplex(100);
        let mut stream = Cleared(stream);
        client.write_all(b"new").await.unwrap();
        let mut bytes = *b"the words of an earlier request";
        let mut buffer = ReadBuf::new(&mut bytes);
        buffer.advance(4);
        poll_fn(|context| Pin::new(&mut stream).poll_read(context, &mut buffer)).await.unwrap();
        assert_eq!(buffer.filled(), b"the new");
        assert_eq!(bytes[..7], *b"the new");
        assert_eq!(bytes[7..], [0; 24]);
    }

    #[tokio::test]
    async fn a_future_has_its_result() {
        let mut future = Wiped::new(async { 5 });
        assert!(future.inner().is_some());
        assert_eq!(future.await, 5);
    }
}
