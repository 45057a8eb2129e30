//! A minimal client for a node's JSON-RPC server on loopback.
//!
//! Input: port, `user:password`, method, parameters. Output: the result. Cost: one connection per call. Must never:
//! connect to anything but loopback, repeat a call by itself, or read an answer of unlimited size.

use super::adapter::Job;
use super::system::read_proc;
use crate::error::LabError;
use crate::limits::RPC_ANSWER_BYTES_MAX;
use lydian_report::results::NetworkBytes;
use lydian_stdx::base64;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::time::Duration;

/// An answer over a large UTXO set takes minutes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Bytes per read; the header of an answer fits into one.
const CHUNK_BYTES: usize = 16_384;

/// The counters are available at once; a run does not wait for a server that is stuck.
const TOTALS_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Server {
    pub port: u16,
    pub credentials: String,
}

impl Server {
    /// With the cookie that a node writes when its RPC server starts; `None` until then.
    pub fn with_cookie(job: &Job) -> Option<Server> {
        let credentials = read_proc(&job.cookie().to_string_lossy())?;
        Some(Server { port: job.rpc_port, credentials: credentials.trim().to_owned() })
    }

    pub fn call(&self, method: &str, params: &Value) -> Result<Value, LabError> {
        self.call_as("1.0", method, params)
    }

    /// Uses the JSON-RPC version that a server insists on.
    pub fn call_as(&self, version: &str, method: &str, params: &Value) -> Result<Value, LabError> {
        self.ask(version, method, params, ANSWER_TIMEOUT)
    }

    /// Fails if the server takes longer to accept the request or to answer it.
    pub fn call_within(&self, method: &str, params: &Value, timeout: Duration) -> Result<Value, LabError> {
        self.ask("1.0", method, params, timeout)
    }

    fn ask(&self, version: &str, method: &str, params: &Value, timeout: Duration) -> Result<Value, LabError> {
        let failed = |reason: String| LabError::program(format!("RPC {method}"), reason);
        let question = json!({ "jsonrpc": version, "method": method, "params": params, "id": 0 }).to_string();
        let answer = self.post(&question, timeout).map_err(|error| {
            let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            failed(if is_late { format!("no answer within {timeout:?}") } else { error.to_string() })
        })?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let mut body: Value = serde_json::from_str(body).map_err(|_| failed(first_line(&answer)))?;
        match body.get("error") {
            Some(Value::Null) => Ok(body["result"].take()),
            Some(error) => Err(failed(error.to_string())),
            // Version 2.0 has only one of the two fields.
            None if body.get("result").is_some() => Ok(body["result"].take()),
            None => Err(failed(first_line(&answer))),
        }
    }

    /// Bytes received from peers and sent to them since the node started; `None` if the node does not report them.
    pub fn net_totals(&self) -> Option<NetworkBytes> {
        let totals = self.call_within("getnettotals", &json!([]), TOTALS_TIMEOUT).ok()?;
        Some(NetworkBytes { received: totals["totalbytesrecv"].as_u64()?, sent: totals["totalbytessent"].as_u64()? })
    }

    /// Sends the request as HTTP 1.0: the server either closes the connection after its answer, or says that it keeps
    /// the connection open and how long the answer is. It is asked to keep it, since Core takes 50 ms to close it.
    fn post(&self, body: &str, timeout: Duration) -> std::io::Result<String> {
        let stream = self.request(body, timeout)?;
        let mut answer = Vec::new();
        let mut limited = stream.take(RPC_ANSWER_BYTES_MAX + 1);
        let mut chunk = vec![0; CHUNK_BYTES];
        while !is_whole(&answer) {
            match limited.read(&mut chunk)? {
                0 => break,
                size => answer.extend_from_slice(&chunk[..size]),
            }
        }
        if answer.len() as u64 > RPC_ANSWER_BYTES_MAX {
            return Err(std::io::Error::other("the answer is too long"));
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Reads an answer of any length without keeping it: returns its bytes without the header, and how often `needle`
    /// occurs in them.
    pub fn count(&self, method: &str, params: &Value, needle: &str, timeout: Duration) -> Result<(u64, u64), LabError> {
        let failed = |reason: String| LabError::program(format!("RPC {method}"), reason);
        let question = json!({ "jsonrpc": "1.0", "method": method, "params": params, "id": 0 }).to_string();
        let counted = self.request(&question, timeout).and_then(|stream| count(stream, needle.as_bytes()));
        let (head, bytes, found) = counted.map_err(|error| failed(error.to_string()))?;
        if !first_line(&head).contains(" 200 ") {
            return Err(failed(first_line(&head)));
        }
        Ok((bytes, found))
    }

    fn request(&self, body: &str, timeout: Duration) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let authorization = base64(self.credentials.as_bytes());
        // In one write, so that the server receives it in one read.
        let request = format!(
            "POST / HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\nAuthorization: Basic {authorization}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }
}

/// Whether the answer is complete on a connection that the server keeps open.
fn is_whole(answer: &[u8]) -> bool {
    let start = &answer[..answer.len().min(CHUNK_BYTES)];
    let Some(end) = start.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&start[..end]);
    let length = header(&head, "content-length").and_then(|length| length.parse::<usize>().ok());
    header(&head, "connection").as_deref() == Some("keep-alive")
        && length.is_some_and(|length| answer.len() - end - 4 >= length)
}

/// The header of an answer, the bytes after it and the occurrences of `needle` in them. The answer ends where its
/// header says, or where the server closes the connection.
fn count(mut stream: impl Read, needle: &[u8]) -> std::io::Result<(String, u64, u64)> {
    let mut chunk = vec![0; 4 * CHUNK_BYTES];
    let mut kept: Vec<u8> = Vec::new();
    let (mut head, mut length, mut bytes, mut found) = (None, None, 0_u64, 0_u64);
    while length.is_none_or(|length| bytes < length) {
        let size = stream.read(&mut chunk)?;
        if size == 0 {
            break;
        }
        kept.extend_from_slice(&chunk[..size]);
        if head.is_none() {
            let Some(end) = kept.windows(4).position(|four| four == b"\r\n\r\n") else {
                if kept.len() > CHUNK_BYTES {
                    return Err(std::io::Error::other("the header is too long"));
                }
                continue;
            };
            let text = String::from_utf8_lossy(&kept[..end]).into_owned();
            length = header(&text, "content-length").and_then(|length| length.parse().ok());
            head = Some(text);
            kept.drain(..end + 4);
            bytes = kept.len() as u64;
        } else {
            bytes += size as u64;
        }
        found += kept.windows(needle.len().max(1)).filter(|window| *window == needle).count() as u64;
        // An occurrence may go on in the next chunk.
        kept.drain(..kept.len().saturating_sub(needle.len().saturating_sub(1)));
    }
    if length.is_some_and(|length| bytes != length) {
        return Err(std::io::Error::other("the answer is cut off"));
    }
    Ok((head.unwrap_or_default(), bytes, found))
}

/// The JSON at a path of a web server on loopback.
pub fn get(port: u16, path: &str) -> Result<Value, LabError> {
    let failed = |reason: String| LabError::program(format!("GET {path}"), reason);
    let fetch = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(TOTALS_TIMEOUT))?;
        stream.set_write_timeout(Some(TOTALS_TIMEOUT))?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.take(RPC_ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = fetch().map_err(|error| failed(error.to_string()))?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).map_err(|_| failed(first_line(&answer)))
}

/// The value of a header field; the name is in lower case.
pub(crate) fn header(head: &str, name: &str) -> Option<String> {
    let head = head.to_ascii_lowercase();
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(|value| value.trim().to_owned())
}

/// A loopback port that was free a moment ago.
pub fn free_port() -> Result<u16, LabError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| LabError::program("loopback", error))
}

fn first_line(answer: &str) -> String {
    format!("unexpected answer: {}", answer.lines().next().unwrap_or("nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a server that gives one fixed answer; returns the result and the request.
    fn ask(answer: Vec<u8>) -> (Result<Value, LabError>, String) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = vec![0; 4_096];
            let size = stream.read(&mut asked).unwrap();
            // The client closes the connection once it has read enough.
            let _ = stream.write_all(&answer);
            String::from_utf8_lossy(&asked[..size]).into_owned()
        });
        let result = Server { port, credentials: "foobar:".into() }.call("getblockcount", &json!([]));
        (result, server.join().unwrap())
    }

    fn answer(body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    #[test]
    fn a_result_and_an_error_are_distinguished() {
        let (result, asked) = ask(answer(r#"{"result":7,"error":null,"id":0}"#));
        assert_eq!(result.unwrap(), json!(7));
        assert!(asked.contains("Authorization: Basic Zm9vYmFyOg==\r\n"), "{asked}");
        assert!(asked.contains(r#""method":"getblockcount""#), "{asked}");
        assert_eq!(ask(answer(r#"{"jsonrpc":"2.0","result":7,"id":0}"#)).0.unwrap(), json!(7));
        let error = ask(answer(r#"{"result":null,"error":{"code":-28,"message":"Loading"},"id":0}"#)).0.unwrap_err();
        assert!(error.to_string().contains("Loading"), "{error}");
        let error = ask(b"HTTP/1.1 401 Unauthorized\r\n\r\n".to_vec()).0.unwrap_err();
        assert!(error.to_string().contains("401"), "{error}");
    }

    #[test]
    fn a_kept_connection_ends_with_the_length() {
        let head = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n";
        assert!(!is_whole(head) && !is_whole(&[head, &b"1234"[..]].concat()) && !is_whole(&head[..30]));
        assert!(is_whole(&[head, &b"12345"[..]].concat()));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"), "the server closes the connection");
    }

    #[test]
    fn a_long_answer_is_counted_and_not_kept() {
        struct Pieces(Vec<Vec<u8>>);
        impl Read for Pieces {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let piece = if self.0.is_empty() { Vec::new() } else { self.0.remove(0) };
                buffer[..piece.len()].copy_from_slice(&piece);
                Ok(piece.len())
            }
        }
        let whole = answer(r#"{"wtxid":1,"wtxid":2,"wtxi":3}"#);
        for size in 1..whole.len() {
            let pieces = Pieces(whole.chunks(size).map(<[u8]>::to_vec).collect());
            let (head, bytes, found) = count(pieces, b"\"wtxid\"").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
            assert_eq!((bytes, found), (30, 2), "{size}");
        }
        assert!(count(Pieces(vec![whole[..whole.len() - 1].to_vec()]), b"x").is_err(), "an answer that is cut off");
    }

    /// limit: RPC_ANSWER_BYTES_MAX at
    /// limit: RPC_ANSWER_BYTES_MAX above
    #[test]
    fn an_answer_has_a_limit() {
        let with = |length: usize| {
            let mut bytes = answer(r#"{"result":7,"error":null}"#);
            bytes.resize(length, b' ');
            ask(bytes).0
        };
        let limit = usize::try_from(RPC_ANSWER_BYTES_MAX).unwrap();
        assert_eq!(with(limit).unwrap(), json!(7));
        assert!(with(limit + 1).unwrap_err().to_string().contains("too long"));
    }
}
