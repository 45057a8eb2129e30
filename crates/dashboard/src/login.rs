//! `POST /api/login`, `/api/logout`, `/api/link`, and `GET /api/session`.
//!
//! Input: a link that the node printed, or a user of RPC with a password. Output: a cookie, and the token that requests
//! of the page must carry. A wrong login is answered after 250 ms and is in the log.

use crate::limits::LINK_SECONDS;
use crate::reply::{json, refuse};
use crate::server::{Access, Shared};
use crate::session::Begun;
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, HeaderMap, HeaderValue, SET_COOKIE};
use axum::response::Response;
use bytes::Bytes;
use lydian_serve::{Connection, Denied};
use lydian_stdx::base64;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// As for a wrong password.
const WRONG_LINK_DELAY: Duration = Duration::from_millis(250);

#[derive(Deserialize)]
#[serde(untagged)]
enum Credentials {
    Link { link: String },
    Password { user: String, password: String },
}

/// The state of the session of a request.
pub(crate) fn session(shared: &Shared, access: &Access) -> Response {
    let may_read = access.user.is_some() || access.is_open;
    let topics = if may_read { shared.hub.names(&shared.shown(access)) } else { Vec::new() };
    json(&json!({
        "user": access.user,
        "token": access.token,
        "actions": shared.may_act(access).is_ok(),
        "hasActions": shared.has_actions,
        "open": access.is_open,
        "topics": topics,
        "chain": shared.chain,
    }))
}

pub(crate) async fn login(shared: &Shared, connection: &Connection, headers: &HeaderMap, body: &Bytes) -> Response {
    let begun = match serde_json::from_slice(body) {
        Ok(Credentials::Link { link }) => match shared.sessions.follow(&link) {
            Some(begun) => begun,
            None => {
                shared.host.note(format!("a wrong or used link was opened from {}", connection.address));
                sleep(WRONG_LINK_DELAY).await;
                let words = "This link was used already or is too old. \"lydian page\" prints a new one.";
                return refuse(StatusCode::UNAUTHORIZED, words);
            }
        },
        Ok(Credentials::Password { user, password }) => {
            let header = format!("Basic {}", base64(format!("{user}:{password}").as_bytes()));
            match by_header(shared, connection, header.as_bytes()).await {
                Ok(user) => match shared.sessions.begin(&user) {
                    Some(begun) => begun,
                    None => return refuse(StatusCode::INTERNAL_SERVER_ERROR, "The system has no random numbers."),
                },
                Err(refusal) => return refusal,
            }
        }
        Err(_) => return refuse(StatusCode::BAD_REQUEST, "A login is a link, or a user and a password."),
    };
    shared.host.note(format!("{} logged in from {}", begun.user, connection.address));
    welcome(shared, headers, &begun)
}

pub(crate) fn logout(shared: &Shared, headers: &HeaderMap, access: &Access) -> Response {
    if let Some(cookie) = &access.cookie {
        shared.sessions.end(cookie);
    }
    with_cookie(json(&json!({})), &shared.cookie_line(headers, "", 0))
}

/// A new link, for a program that knows a password: `lydian page`.
pub(crate) async fn link(shared: &Shared, connection: &Connection, headers: &HeaderMap) -> Response {
    let Some(header) = headers.get(AUTHORIZATION) else {
        return refuse(StatusCode::UNAUTHORIZED, "A link needs the login of RPC.");
    };
    let user = match by_header(shared, connection, header.as_bytes()).await {
        Ok(user) => user,
        Err(refusal) => return refusal,
    };
    match shared.sessions.link(&user, Some(LINK_SECONDS)) {
        Some(link) => json(&json!({ "link": link, "seconds": LINK_SECONDS })),
        None => refuse(StatusCode::INTERNAL_SERVER_ERROR, "The system has no random numbers."),
    }
}

pub(crate) async fn by_header(shared: &Shared, connection: &Connection, header: &[u8]) -> Result<String, Response> {
    shared.login.authorize(connection, header).await.map_err(|denied| match denied {
        Denied::Wrong => {
            shared.host.note(format!("a wrong password came from {}", connection.address));
            refuse(StatusCode::UNAUTHORIZED, "The user or the password is wrong. They are those of RPC (-rpcauth).")
        }
        Denied::Busy => refuse(StatusCode::SERVICE_UNAVAILABLE, "Too many logins at once. Try again."),
    })
}

fn welcome(shared: &Shared, headers: &HeaderMap, begun: &Begun) -> Response {
    let line = shared.cookie_line(headers, &begun.cookie, crate::limits::SESSION_SECONDS);
    let access = Access {
        user: Some(begun.user.clone()),
        token: Some(begun.token.clone()),
        cookie: Some(begun.cookie.clone()),
        is_open: false,
    };
    with_cookie(session(shared, &access), &line)
}

fn with_cookie(mut response: Response, line: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(line) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}
