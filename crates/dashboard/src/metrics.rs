//! `GET /metrics`: the figures of the node, for Prometheus.
//!
//! Input: a request with HTTP basic authentication, or with the session of a browser; where reading is open to all,
//! any. Output: text. The budget of answers bounds the texts that wait to be read.

use crate::login::by_header;
use crate::reply::refuse;
use crate::server::{Access, FIGURES, Shared, blocking};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, HeaderMap};
use axum::response::Response;
use lydian_serve::Connection;
use lydian_serve::figures::CONTENT_TYPE;
use lydian_serve::http;
use std::sync::Arc;

/// Asks a program for the login of RPC.
const CHALLENGE: &str = "Basic realm=\"lydian\"";

pub(crate) async fn answer(
    shared: &Arc<Shared>,
    connection: &Arc<Connection>,
    headers: &HeaderMap,
    access: &Access,
) -> Response {
    let user = if access.user.is_none() && !access.is_open {
        let Some(header) = headers.get(AUTHORIZATION) else { return http::unauthorized(CHALLENGE) };
        match by_header(shared, connection, header.as_bytes()).await {
            Ok(user) => user,
            Err(refusal) => return refusal,
        }
    } else {
        access.name().to_owned()
    };
    if let Some(refusal) = shared.refuses(&user, FIGURES) {
        return refusal;
    }
    let (shared, connection) = (Arc::clone(shared), Arc::clone(connection));
    let guard = connection.begin_call();
    let answer = blocking(move || {
        let text = shared.metrics.text().into_bytes();
        match shared.answers.room_for(text.len()) {
            Some(room) => http::answer(StatusCode::OK, CONTENT_TYPE, text, room, &connection),
            None => refuse(StatusCode::SERVICE_UNAVAILABLE, "Too many answers wait to be read. Try again."),
        }
    });
    let answer = answer.await;
    drop(guard);
    answer
}
