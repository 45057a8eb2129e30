//! `POST /api/call`: a method of RPC.
//!
//! Input: `{"method": NAME, "params": [...] or {...}}`. Output: `{"result": ...}`, or `{"error": {"code", "message"}}`.
//! Which methods there are is in `methods`. Each action is in the log.

use crate::limits::ANSWERS_SIZE_MAX;
use crate::methods::{Kind, kind};
use crate::reply::{JSON, refuse};
use crate::server::{Access, Shared};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use lydian_serve::{Connection, http};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::sync::Arc;

/// The user of whom nothing is known, where reading is open to all.
pub(crate) const OPEN_USER: &str = "page";

#[derive(Deserialize)]
struct Request<'a> {
    method: &'a str,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Characters of the parameters in the log.
const LOGGED_LENGTH_MAX: usize = 200;

/// Methods whose parameters are not logged: the log names no transaction that a wallet sends.
const UNLOGGED: &[&str] = &["sendrawtransaction"];

/// The parameters of an action as the log has them: on one line, and shortened.
fn logged(method: &str, params: &str) -> String {
    if UNLOGGED.contains(&method) {
        return String::new();
    }
    let line = params.chars().map(|one| if one.is_control() { ' ' } else { one });
    let mut text: String = " ".chars().chain(line.take(LOGGED_LENGTH_MAX)).collect();
    if params.chars().nth(LOGGED_LENGTH_MAX).is_some() {
        text.push('…');
    }
    text
}

/// Answers a call. May block.
pub(crate) fn answer(shared: &Shared, access: &Access, body: &Bytes, connection: &Arc<Connection>) -> Response {
    let request: Request<'_> = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, format!("The request is not JSON of a call: {error}.")),
    };
    let method = request.method;
    match kind(method) {
        Kind::Reading => {}
        Kind::Private if access.user.is_some() => {}
        Kind::Private => {
            return refuse(StatusCode::UNAUTHORIZED, format!("{method} needs a login. \"lydian page\" prints a link."));
        }
        Kind::Action => {
            if let Err(words) = shared.may_act(access) {
                shared.host.note(format!("{method} of {} was refused: {words}", access.name()));
                return refuse(StatusCode::FORBIDDEN, words);
            }
        }
        Kind::Refused => {
            let method: String = method.chars().take(40).collect();
            return refuse(StatusCode::FORBIDDEN, format!("{method:?} is not a method that the page may call."));
        }
    }
    let params = request.params.map_or("[]", RawValue::get);
    let result = shared.calls.call(access.name(), method, params);
    if kind(method) == Kind::Action {
        let outcome = result.as_ref().map_or_else(|error| error.message.as_str(), |_| "done");
        shared.host.note(format!("{} called {method}{}: {outcome}", access.name(), logged(method, params)));
    }
    let text = match result {
        Ok(result) => format!("{{\"result\":{result}}}"),
        Err(error) => json!({ "error": { "code": error.code, "message": error.message } }).to_string(),
    };
    match shared.answers.room_for(text.len()) {
        Some(room) => http::answer(StatusCode::OK, JSON, text.into_bytes(), room, connection),
        None => refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("Answers that wait to be read already take {ANSWERS_SIZE_MAX} bytes. Try again."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::ACTIONS;

    #[test]
    fn logged_parameters_are_one_short_line() {
        assert_eq!(logged("setban", "[\"192.0.2.1\",\n\t\"add\"]"), " [\"192.0.2.1\",  \"add\"]");
        let long = "x".repeat(LOGGED_LENGTH_MAX);
        assert_eq!(logged("setban", &long), format!(" {long}"));
        assert_eq!(logged("setban", &format!("{long}y")), format!(" {long}…"));
    }

    #[test]
    fn transactions_are_not_logged() {
        assert_eq!(logged("sendrawtransaction", "[\"00\"]"), "");
        assert!(UNLOGGED.iter().all(|method| ACTIONS.contains(method)));
    }
}
