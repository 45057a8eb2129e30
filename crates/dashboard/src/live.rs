//! `GET /api/live`: the live data as server-sent events.
//!
//! Input: a request, with the id of the last event that the browser got. Output: a response that goes on until the
//! browser or the session ends. A browser that does not read for 30 seconds is disconnected; one that reads too slowly
//! gets everything anew.

use crate::hub::{Hub, Reader, Shown};
use crate::server::{Access, Shared};
use axum::response::Response;
use bytes::Bytes;
use lydian_serve::{CallGuard, Stopped, http};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, interval_at, timeout};

/// A comment is sent this often, so that both sides notice a broken connection; the session is looked at again.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Time that a browser may take to read an event.
pub(crate) const SLOW: Duration = Duration::from_secs(30);

/// Events between the thread that sends and the connection.
const AHEAD: usize = 4;

pub(crate) struct Stream {
    pub(crate) shared: Arc<Shared>,
    pub(crate) access: Access,
    pub(crate) shown: Shown,
    /// The id of the last event.
    pub(crate) last: Option<String>,
    pub(crate) guard: CallGuard,
    pub(crate) reader: Reader,
    pub(crate) stopped: Stopped,
}

impl Stream {
    /// The response; the events follow.
    pub(crate) fn answer(self) -> Response {
        let (sender, response) = http::stream("text/event-stream", AHEAD);
        tokio::spawn(self.feed(sender));
        response
    }

    async fn feed(mut self, sender: mpsc::Sender<Bytes>) {
        while self.feed_until_slow(&sender).await.is_some() {
            self.last = None;
        }
        drop((self.guard, self.reader));
    }

    /// Sends events. Returns `Some` if the reader was too slow, and `None` at its end.
    async fn feed_until_slow(&mut self, sender: &mpsc::Sender<Bytes>) -> Option<()> {
        let (hub, last, shown) = (Arc::clone(&self.shared.hub), self.last.take(), self.shown.clone());
        let mut joined = spawn_blocking(move || Hub::join(&hub, last.as_deref(), &shown)).await.ok()?;
        for text in joined.first {
            self.send(sender, text).await?;
        }
        let mut alive = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
        loop {
            tokio::select! {
                event = joined.changes.recv() => match event {
                    Ok(event) if event.is_for(&self.shown) => self.send(sender, event.text).await?,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return Some(()),
                    Err(RecvError::Closed) => return None,
                },
                _ = alive.tick() => {
                    if !self.shared.is_current(&self.access) {
                        return None;
                    }
                    self.send(sender, Bytes::from_static(b":\n\n")).await?;
                }
                () = sender.closed() => return None,
                () = self.stopped.wait() => return None,
            }
        }
    }

    async fn send(&self, sender: &mpsc::Sender<Bytes>, text: Bytes) -> Option<()> {
        timeout(self.shared.slow, sender.send(text)).await.ok()?.ok()
    }
}
