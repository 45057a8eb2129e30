//! Request bodies: read up to a limit, within a byte budget.
//!
//! Input: the body of a request. Output: its bytes with their share of the budget, or the response that refuses it.

use super::reply::{status, too_large};
use crate::connection::Connection;
use crate::event::ClientEvent;
use crate::limits::{BODIES_SIZE_MAX, BODY_SIZE_MAX, BODY_SIZE_SMALL};
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, HeaderMap};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bodies are counted in units of this many bytes.
const BODY_UNIT: usize = 1 << 10;

/// The budget of all request bodies of a server.
#[derive(Debug)]
pub struct Bodies(Arc<Semaphore>);

/// A body's share of the budget, until this is dropped.
#[derive(Debug)]
pub struct BodyRoom {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Default for Bodies {
    fn default() -> Bodies {
        Bodies(Arc::new(Semaphore::new(BODIES_SIZE_MAX / BODY_UNIT)))
    }
}

impl Bodies {
    /// Reads a body. An error is the response that refuses it.
    pub async fn read(
        &self,
        connection: &Connection,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<(Bytes, BodyRoom), Response> {
        // Without a length, the body is chunked or empty.
        let expected = content_length(headers).and_then(|length| usize::try_from(length).ok()).unwrap_or(BODY_SIZE_MAX);
        let mut room = None;
        if expected > BODY_SIZE_SMALL && !hyper::body::Body::is_end_stream(&body) {
            let units = u32::try_from(expected.min(BODY_SIZE_MAX).div_ceil(BODY_UNIT)).unwrap_or(u32::MAX);
            room = Arc::clone(&self.0).acquire_many_owned(units).await.ok();
        }
        let body = match Limited::new(body, BODY_SIZE_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(refuse_large(connection, false)),
            Err(_) => return Err(status(StatusCode::BAD_REQUEST)),
        };
        if let Some(room) = &mut room {
            let excess = room.num_permits().saturating_sub(body.len().div_ceil(BODY_UNIT));
            drop(room.split(excess));
        }
        Ok((body, BodyRoom { _permit: room }))
    }
}

/// Reads a body of at most `size_max` bytes, which no budget counts. An error is the response that refuses it.
pub async fn read_small(connection: &Connection, body: Body, size_max: usize) -> Result<Bytes, Response> {
    let declared = hyper::body::Body::size_hint(&body).lower();
    if declared > size_max as u64 {
        return Err(refuse_large(connection, true));
    }
    match Limited::new(body, size_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(refuse_large(connection, false)),
        Err(_) => Err(status(StatusCode::BAD_REQUEST)),
    }
}

/// Reads a body of at most `size_max` bytes. Returns `None` if it is longer or cannot be read.
pub async fn read_short(body: Body, size_max: usize) -> Option<Bytes> {
    let declared = hyper::body::Body::size_hint(&body).lower();
    if declared > size_max as u64 {
        return None;
    }
    Some(Limited::new(body, size_max).collect().await.ok()?.to_bytes())
}

/// The response to a body above the limit. `is_declared`: by its `Content-Length`.
pub(super) fn refuse_large(connection: &Connection, is_declared: bool) -> Response {
    connection.report(ClientEvent::BodyTooLarge { is_declared });
    too_large()
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

pub(super) fn is_too_large(headers: &HeaderMap) -> bool {
    content_length(headers).is_some_and(|length| length > BODY_SIZE_MAX as u64)
}
