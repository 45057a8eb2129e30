//! [`Request`]: Core's `JSONRPCRequest` and the envelope of its answer (rpc/request.cpp).
//!
//! Input: a parsed value. Output: id, version, method and parameters, or Core's error; the text around a result or an
//! error.

use crate::error::{RpcError, code};
use crate::json::{Json, write_text, write_value};
use crate::wiped::wiped;
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Legacy,
    V2,
}

/// Core's `SanitizeString`.
fn sanitized(text: &str) -> String {
    text.chars().filter(|letter| letter.is_ascii_alphanumeric() || " .,;-_/:?@()".contains(*letter)).collect()
}

/// Core's `JSONRPCRequest`. A batch uses a single one for all its members.
#[derive(Debug)]
pub(super) struct Request {
    /// `None`: the request has no id. Null until a request is read.
    id: Option<Json>,
    pub(super) version: Version,
    pub(super) method: String,
    pub(super) params: Json,
}

impl Request {
    pub(super) fn new() -> Request {
        Request { id: Some(Json::Null), version: Version::Legacy, method: String::new(), params: Json::Null }
    }

    /// The log line of a call, sanitized so that it cannot be mistaken for another line.
    pub(super) fn log_line(&self, user: &str, client: Option<SocketAddr>) -> String {
        let id = match &self.id {
            Some(Json::Number(text) | Json::Text(text)) => sanitized(text),
            _ => String::new(),
        };
        let method = sanitized(&self.method);
        match client {
            Some(client) => format!("ThreadRPCServer method={method} user={user} peeraddr={client} id={id}"),
            None => format!("ThreadRPCServer method={method} user={user} id={id}"),
        }
    }

    /// Core's `JSONRPCRequest::parse`. After an error, the fields that were read before it keep their values.
    /// The fields of the request before it are overwritten.
    pub(super) fn read(&mut self, value: Json) -> Result<(), RpcError> {
        wiped(|| self.read_here(value))
    }

    fn read_here(&mut self, value: Json) -> Result<(), RpcError> {
        let invalid = |message: &str| RpcError::new(code::INVALID_REQUEST, message);
        let Json::Object(entries) = value else { return Err(invalid("Invalid Request object")) };
        let (mut id, mut version, mut method, mut params) = (None, None, None, None);
        for (key, value) in entries {
            let place = match &key[..] {
                "id" => &mut id,
                "jsonrpc" => &mut version,
                "method" => &mut method,
                "params" => &mut params,
                _ => continue,
            };
            // The first of several equal keys counts.
            place.get_or_insert(value);
        }
        self.id = id;
        self.version = Version::Legacy;
        match version.unwrap_or_default() {
            Json::Null => {}
            Json::Text(text) if text == "1.0" => {}
            Json::Text(text) if text == "2.0" => self.version = Version::V2,
            Json::Text(_) => return Err(invalid("JSON-RPC version not supported")),
            _ => return Err(invalid("jsonrpc field must be a string")),
        }
        self.method = match method.unwrap_or_default() {
            Json::Null => return Err(invalid("Missing method")),
            Json::Text(text) => text,
            _ => return Err(invalid("Method must be a string")),
        };
        self.params = match params.unwrap_or_default() {
            params @ (Json::Array(_) | Json::Object(_)) => params,
            Json::Null => Json::Array(Vec::new()),
            _ => return Err(invalid("Params must be an array or object")),
        };
        Ok(())
    }

    /// Core's `IsNotification`: the request gets no answer.
    pub(super) fn is_notification(&self) -> bool {
        self.id.is_none() && self.version == Version::V2
    }

    /// Writes the text before a result.
    pub(super) fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.version {
            Version::Legacy => b"{\"result\":",
            Version::V2 => b"{\"jsonrpc\":\"2.0\",\"result\":",
        });
    }

    /// Writes the text after a result.
    pub(super) fn write_tail(&self, out: &mut Vec<u8>) {
        if self.version == Version::Legacy {
            out.extend_from_slice(b",\"error\":null");
        }
        self.write_id(out);
    }

    /// Core's `JSONRPCReplyObj` with an error.
    pub(super) fn write_error(&self, error: &RpcError, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.version {
            Version::Legacy => b"{\"result\":null,\"error\":{\"code\":",
            Version::V2 => b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":",
        });
        out.extend_from_slice(error.code.to_string().as_bytes());
        out.extend_from_slice(b",\"message\":");
        write_text(&error.message, out);
        out.push(b'}');
        self.write_id(out);
    }

    fn write_id(&self, out: &mut Vec<u8>) {
        if let Some(id) = &self.id {
            out.extend_from_slice(b",\"id\":");
            write_value(id, out);
        }
        out.push(b'}');
    }
}
