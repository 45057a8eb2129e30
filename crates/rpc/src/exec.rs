//! From the body of a request to that of its answer: Core's `ExecuteHTTPRPC` (httprpc.cpp), `JSONRPCRequest::parse` (rpc/request.cpp) and
//! `CRPCTable::execute` (rpc/server.cpp). Input: bytes, and who sent them. Output: an HTTP status and bytes.
//!
//! Versions 1.0, 1.1 and none get `result` and `error`, and an error is a status of HTTP; 2.0 gets one of the two and 200; without an id
//! it gets 204. Batches get 200 whatever is in them. What a bad member of a batch inherits from the one before it is Core's too.

use crate::auth::Whitelist;
use crate::context::{Context, LogLevel};
use crate::error::{RpcError, code};
use crate::json::{Json, parse, write_text, write_value};
use crate::method::{Call, Method};
use crate::named::positional;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// None: a status alone.
    pub body: Option<Vec<u8>>,
}

/// Who finds a method by its name.
pub type Find = fn(&str) -> Option<&'static Method>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Legacy,
    V2,
}

/// Core's `JSONRPCRequest`, which is one for a whole batch.
#[derive(Debug)]
struct Request {
    /// `None`: there was none. Before anything was read it is null.
    id: Option<Json>,
    version: Version,
    method: String,
    params: Json,
}

/// Answers the body of a request.
pub fn execute(context: &Context, find: Find, whitelist: &Whitelist, user: &str, body: &[u8]) -> Reply {
    let mut request =
        Request { id: Some(Json::Null), version: Version::Legacy, method: String::new(), params: Json::Null };
    let refused = |request: &Request, error: RpcError| {
        let status = match error.code {
            code::INVALID_REQUEST => 400,
            code::METHOD_NOT_FOUND => 404,
            _ => 500,
        };
        let mut out = Vec::new();
        write_error(request, &error, &mut out);
        done(status, out)
    };
    let Some(value) = parse(body) else {
        return refused(&request, RpcError::new(code::PARSE_ERROR, "Parse error"));
    };
    if whitelist.is_shut_out(user) {
        context.host.log(LogLevel::Warning, &format!("RPC User {user} not allowed to call any methods"));
        return Reply { status: 403, body: None };
    }
    match value {
        Json::Object(entries) => {
            if let Err(error) = request.read(entries) {
                return refused(&request, error);
            }
            if !is_allowed(context, whitelist, user, &request.method) {
                return Reply { status: 403, body: None };
            }
            let mut out = Vec::new();
            match run(context, find, &request, &mut out) {
                Err(error) if request.version == Version::Legacy => return refused(&request, error),
                Err(error) => write_error(&request, &error, &mut out),
                Ok(()) => {}
            }
            match request.is_notification() {
                true => Reply { status: 204, body: None },
                false => done(200, out),
            }
        }
        Json::Array(members) => {
            if let Err(reply) = check_batch(context, whitelist, user, &members, &request, &refused) {
                return reply;
            }
            batch(context, find, members, &mut request)
        }
        _ => refused(&request, RpcError::new(code::PARSE_ERROR, "Top-level object parse error")),
    }
}

fn done(status: u16, mut body: Vec<u8>) -> Reply {
    body.push(b'\n');
    Reply { status, body: Some(body) }
}

fn is_allowed(context: &Context, whitelist: &Whitelist, user: &str, method: &str) -> bool {
    let is_allowed = whitelist.allows(user, method);
    if !is_allowed {
        context.host.log(LogLevel::Warning, &format!("RPC User {user} not allowed to call method {method}"));
    }
    is_allowed
}

/// Whether somebody with a whitelist may call all of a batch.
fn check_batch(
    context: &Context,
    whitelist: &Whitelist,
    user: &str,
    members: &[Json],
    request: &Request,
    refused: &dyn Fn(&Request, RpcError) -> Reply,
) -> Result<(), Reply> {
    if !whitelist.has(user) {
        return Ok(());
    }
    for member in members {
        if !matches!(member, Json::Object(_)) {
            return Err(refused(request, RpcError::new(code::INVALID_REQUEST, "Invalid Request object")));
        }
        let method = member.get("method").unwrap_or(&Json::Null).as_text();
        let method = method.map_err(|error| refused(request, RpcError::new(code::PARSE_ERROR, error.message)))?;
        if !is_allowed(context, whitelist, user, method) {
            return Err(Reply { status: 403, body: None });
        }
    }
    Ok(())
}

fn batch(context: &Context, find: Find, members: Vec<Json>, request: &mut Request) -> Reply {
    let is_empty = members.is_empty();
    let mut out = vec![b'['];
    for member in members {
        let start = out.len();
        if start > 1 {
            out.push(b',');
        }
        let read = match member {
            Json::Object(entries) => request.read(entries),
            _ => Err(RpcError::new(code::INVALID_REQUEST, "Invalid Request object")),
        };
        if let Err(error) = read.and_then(|()| run(context, find, request, &mut out)) {
            write_error(request, &error, &mut out);
        }
        if request.is_notification() {
            out.truncate(start);
        }
    }
    if out.len() == 1 && !is_empty {
        return Reply { status: 204, body: None };
    }
    out.push(b']');
    done(200, out)
}

impl Request {
    /// Core's `JSONRPCRequest::parse`.
    fn read(&mut self, entries: Vec<(String, Json)>) -> Result<(), RpcError> {
        let invalid = |message: &str| RpcError::new(code::INVALID_REQUEST, message);
        let (mut id, mut version, mut method, mut params) = (None, None, None, None);
        for (key, value) in entries {
            let place = match &key[..] {
                "id" => &mut id,
                "jsonrpc" => &mut version,
                "method" => &mut method,
                "params" => &mut params,
                _ => continue,
            };
            // The first counts.
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

    fn is_notification(&self) -> bool {
        self.id.is_none() && self.version == Version::V2
    }
}

/// Calls, and writes the whole answer; after an error nothing is written.
fn run(context: &Context, find: Find, request: &Request, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let start = out.len();
    out.extend_from_slice(match request.version {
        Version::Legacy => b"{\"result\":",
        Version::V2 => b"{\"jsonrpc\":\"2.0\",\"result\":",
    });
    if let Err(error) = call(context, find, request, out) {
        out.truncate(start);
        return Err(error);
    }
    if request.version == Version::Legacy {
        out.extend_from_slice(b",\"error\":null");
    }
    write_id(request, out);
    Ok(())
}

fn call(context: &Context, find: Find, request: &Request, out: &mut Vec<u8>) -> Result<(), RpcError> {
    context.check_ready()?;
    let method = find(&request.method).ok_or_else(|| RpcError::new(code::METHOD_NOT_FOUND, "Method not found"))?;
    let _active = context.begin(method.name);
    let ordered;
    let params = match &request.params {
        Json::Object(named) => {
            ordered = positional(named, method.args)?;
            &ordered[..]
        }
        Json::Array(params) => params,
        _ => &[],
    };
    method.check(params)?;
    (method.call)(&Call { context, params }, out)
}

/// Core's `JSONRPCReplyObj` with an error.
fn write_error(request: &Request, error: &RpcError, out: &mut Vec<u8>) {
    out.extend_from_slice(match request.version {
        Version::Legacy => b"{\"result\":null,\"error\":{\"code\":",
        Version::V2 => b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":",
    });
    out.extend_from_slice(error.code.to_string().as_bytes());
    out.extend_from_slice(b",\"message\":");
    write_text(&error.message, out);
    out.push(b'}');
    write_id(request, out);
}

fn write_id(request: &Request, out: &mut Vec<u8>) {
    if let Some(id) = &request.id {
        out.extend_from_slice(b",\"id\":");
        write_value(id, out);
    }
    out.push(b'}');
}
