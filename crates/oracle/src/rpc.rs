//! JSON-RPC over persistent HTTP connections on loopback, limited to what Core's server uses.
//!
//! Input -> output: method and parameters -> the result, or Core's error code and message. Invariants: one request at a
//! time; a failed connection is opened again for the next call, and no call is ever repeated automatically. Cost: one
//! write, one read. Must never connect to anything but loopback.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};

use lydian_stdx::base64;
use serde_json::Value;

use crate::limits::{
    MAX_HTTP_LINE_BYTES, MAX_HTTP_LINES, MAX_RPC_ANSWER_BYTES, MAX_RPC_BATCH, MAX_RPC_BATCH_BYTES,
    MAX_RPC_REQUEST_BYTES,
};

/// Why a call has no result.
#[derive(Debug)]
pub enum RpcError {
    /// An error of the connection.
    Io(std::io::Error),
    /// Core's own error, e.g. -22 "Block decode failed".
    Core { code: i64, message: String },
    /// An HTTP response without JSON-RPC in it.
    Http { status: u16 },
    /// A response of an unexpected form.
    Form(String),
    /// A request or a response longer than its limit.
    TooLong(usize),
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "RPC connection: {error}"),
            Self::Core { code, message } => write!(f, "RPC error {code}: {message}"),
            Self::Http { status } => write!(f, "HTTP status {status}"),
            Self::Form(text) => write!(f, "unexpected RPC answer: {text}"),
            Self::TooLong(bytes) => write!(f, "RPC message of {bytes} bytes is above the limit"),
        }
    }
}

impl std::error::Error for RpcError {}

impl From<std::io::Error> for RpcError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// A client of one server.
#[derive(Debug)]
pub(crate) struct Client {
    port: u16,
    authorization: String,
    /// Used in turn, see [`CONNECTIONS`].
    connections: VecDeque<BufReader<TcpStream>>,
}

/// Core's server sends a response before it marks the connection as free. A request that arrives in between waits for
/// the next wake-up of its loop, up to 50 ms later (`m_req_busy`, `SELECT_TIMEOUT` in `httpserver.cpp`). With two
/// connections used in turn and one worker thread (`-rpcthreads=1`), the worker has freed one connection when it serves
/// the other.
const CONNECTIONS: usize = 2;

impl Client {
    /// `credentials` is `user:password`, as in the cookie file.
    pub(crate) fn new(port: u16, credentials: &str) -> Self {
        Self { port, authorization: base64(credentials.as_bytes()), connections: VecDeque::new() }
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Result<Value, RpcError> {
        let body = serde_json::json!({ "method": method, "params": params, "id": 0 }).to_string();
        self.call_body(body.as_bytes())
    }

    /// A call with hex-encoded bytes: no JSON value is built from the megabytes of a block.
    pub(crate) fn call_hex(&mut self, form: HexCall, bytes: &[u8]) -> Result<Value, RpcError> {
        let mut body = Vec::new();
        form.push(bytes, &mut body);
        self.call_body(&body)
    }

    /// The same for many calls, in order, in as few JSON-RPC batches as possible. The outer error ends everything; the
    /// inner errors are Core's.
    pub(crate) fn call_hex_many(
        &mut self,
        form: HexCall,
        all: &[impl AsRef<[u8]>],
    ) -> Result<Vec<Result<Value, RpcError>>, RpcError> {
        let mut results = Vec::with_capacity(all.len());
        let mut body = vec![b'['];
        let mut asked = 0;
        for (index, bytes) in all.iter().enumerate() {
            form.push(bytes.as_ref(), &mut body);
            asked += 1;
            let next = all.get(index + 1).map(|next| 2 * next.as_ref().len());
            if asked < MAX_RPC_BATCH && next.is_some_and(|next| body.len() + next < MAX_RPC_BATCH_BYTES) {
                body.push(b',');
                continue;
            }
            body.push(b']');
            let (status, answer) = self.post(&body)?;
            let Value::Array(answers) = answer else { return Err(RpcError::Http { status }) };
            if answers.len() != asked {
                return Err(RpcError::Form(format!("{} answers to {asked} calls", answers.len())));
            }
            results.extend(answers.into_iter().map(|answer| result(status, answer)));
            body.truncate(1);
            asked = 0;
        }
        Ok(results)
    }

    fn call_body(&mut self, body: &[u8]) -> Result<Value, RpcError> {
        let (status, answer) = self.post(body)?;
        result(status, answer)
    }

    fn post(&mut self, body: &[u8]) -> Result<(u16, Value), RpcError> {
        if body.len() > MAX_RPC_REQUEST_BYTES {
            return Err(RpcError::TooLong(body.len()));
        }
        let idle = if self.connections.len() < CONNECTIONS { None } else { self.connections.pop_front() };
        let mut connection = match idle {
            Some(connection) => connection,
            None => {
                let stream = TcpStream::connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port))?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        let mut request = format!(
            "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {}\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\n\r\n",
            self.authorization,
            body.len()
        )
        .into_bytes();
        request.extend(body);
        connection.get_mut().write_all(&request)?;
        let (status, keep, answer) = read_answer(&mut connection)?;
        if keep {
            self.connections.push_back(connection);
        }
        let answer = serde_json::from_slice(&answer).map_err(|_| RpcError::Http { status })?;
        Ok((status, answer))
    }
}

/// Returns the result in a response, or Core's error.
fn result(status: u16, mut answer: Value) -> Result<Value, RpcError> {
    match answer.get("error") {
        Some(Value::Null) => Ok(answer["result"].take()),
        Some(error) => Err(RpcError::Core {
            code: error["code"].as_i64().unwrap_or(0),
            message: error["message"].as_str().unwrap_or("").to_owned(),
        }),
        None => Err(RpcError::Http { status }),
    }
}

/// The text of a call before and after its hex-encoded bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HexCall(&'static str, &'static str);

impl HexCall {
    pub(crate) const SUBMIT_BLOCK: Self = Self(r#"{"method":"submitblock","params":[""#, r#""],"id":0}"#);
    pub(crate) const PROPOSE_BLOCK: Self = Self(
        r#"{"method":"getblocktemplate","params":[{"mode":"proposal","rules":["segwit"],"data":""#,
        r#""}],"id":0}"#,
    );

    fn push(self, bytes: &[u8], body: &mut Vec<u8>) {
        body.extend(self.0.as_bytes());
        push_hex(bytes, body);
        body.extend(self.1.as_bytes());
    }
}

/// Returns the status, whether the connection stays open, and the body.
fn read_answer(from: &mut impl BufRead) -> Result<(u16, bool, Vec<u8>), RpcError> {
    let first = read_line(from)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| RpcError::Form(first.clone()))?;
    let (mut length, mut keep) = (None, first.starts_with("HTTP/1.1"));
    for _ in 0..MAX_HTTP_LINES {
        let line = read_line(from)?;
        if line.is_empty() {
            let length: usize = length.ok_or_else(|| RpcError::Form("no Content-Length".into()))?;
            if length > MAX_RPC_ANSWER_BYTES {
                return Err(RpcError::TooLong(length));
            }
            let mut body = vec![0; length];
            from.read_exact(&mut body)?;
            return Ok((status, keep, body));
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        } else if name.eq_ignore_ascii_case("connection") && value.trim().eq_ignore_ascii_case("close") {
            keep = false;
        }
    }
    Err(RpcError::Form("too many header lines".into()))
}

fn read_line(from: &mut impl BufRead) -> Result<String, RpcError> {
    let mut line = Vec::new();
    from.take(MAX_HTTP_LINE_BYTES as u64).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(RpcError::Form("the connection ended, or a line is too long".into()));
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn push_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_to_its_length() {
        let mut bytes = &b"HTTP/1.1 500 Internal\r\ncontent-length: 2\r\nConnection: close\r\n\r\n{}rest"[..];
        assert_eq!(read_answer(&mut bytes).unwrap(), (500, false, b"{}".to_vec()));
        assert_eq!(bytes, b"rest");
    }

    #[test]
    fn bad_answers_are_errors() {
        let long = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x".repeat(MAX_HTTP_LINE_BYTES));
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MAX_HTTP_LINES + 1));
        let huge = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", MAX_RPC_ANSWER_BYTES + 1);
        for text in ["", "HTTP/1.1", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r\n", &long, &many, &huge] {
            assert!(read_answer(&mut text.as_bytes()).is_err(), "{text:.40}");
        }
        // At the limits, the same forms are accepted.
        let many = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n", "a: b\r\n".repeat(MAX_HTTP_LINES - 2));
        assert!(read_answer(&mut many.as_bytes()).is_ok());
        let line = "x".repeat(MAX_HTTP_LINE_BYTES - 1);
        assert_eq!(read_line(&mut format!("{line}\n").as_bytes()).unwrap(), line);
    }

    #[test]
    fn a_request_above_the_limit_is_not_sent() {
        let mut client = Client::new(0, "");
        let error = client.call_body(&vec![b' '; MAX_RPC_REQUEST_BYTES + 1]).unwrap_err();
        assert!(matches!(error, RpcError::TooLong(_)));
        // At the limit the request is sent, and fails because there is no server on port 0.
        assert!(matches!(client.call_body(&vec![b' '; MAX_RPC_REQUEST_BYTES]), Err(RpcError::Io(_))));
    }
}
