//! Sends queries to a server of Esplora's REST API, over one connection that is kept.
//!
//! Input: a server; a path with one argument. Output: the body of the answer and its time, from the first byte sent to
//! the last one received. Invariants: the header and the body are bounded; no call waits longer than the timeout; after
//! any error other than [`Fault::Refused`] a new connection is made. Must never: panic on anything a server sends.

use super::client::{ClientError, Fault, Place, shortened};
use super::queries::{Asks, Reply, squeezed};
use crate::limits::{ELECTRUM_LINE_BYTES_MAX, REST_HEAD_BYTES_MAX};
use crate::runs::rpc;
use crate::runs::system;
use lydian_hash::sha256;
use serde_json::Value;
use std::io::Write;
use std::net::TcpStream;
use std::time::Instant;

const HEAD_END: &[u8] = b"\r\n\r\n";

#[derive(Debug)]
pub(super) struct RestAsker {
    place: Place,
    stream: Option<TcpStream>,
}

impl RestAsker {
    pub(super) fn new(place: Place) -> RestAsker {
        RestAsker { place, stream: None }
    }

    /// Sends a query and returns the body of the answer.
    pub(super) fn get(&mut self, path: &str) -> Result<Vec<u8>, ClientError> {
        let request = self.request(path, &Value::Null);
        self.ask(path, &request).map(|reply| reply.line)
    }

    fn exchange(&mut self, mut stream: TcpStream, request: &[u8], start: Instant) -> Result<Vec<u8>, Fault> {
        stream.write_all(request).map_err(|error| self.place.broken(&error))?;
        let mut answer = Vec::new();
        let head = loop {
            match answer.windows(HEAD_END.len()).position(|four| four == HEAD_END) {
                Some(end) if end <= REST_HEAD_BYTES_MAX => break end,
                _ if answer.len() > REST_HEAD_BYTES_MAX + HEAD_END.len() => {
                    return Err(Fault::LineTooLong { limit: REST_HEAD_BYTES_MAX });
                }
                _ => self.place.read_more(&mut stream, &mut answer, start)?,
            }
        };
        let text = String::from_utf8_lossy(&answer[..head]).into_owned();
        let length = rpc::header(&text, "content-length").and_then(|length| length.parse::<usize>().ok());
        let length = length.ok_or_else(|| Fault::Unexpected("an answer without its length".to_owned()))?;
        if length > ELECTRUM_LINE_BYTES_MAX {
            return Err(Fault::LineTooLong { limit: ELECTRUM_LINE_BYTES_MAX });
        }
        let mut body = answer.split_off(head + HEAD_END.len());
        while body.len() < length {
            self.place.read_more(&mut stream, &mut body, start)?;
        }
        let is_kept = rpc::header(&text, "connection").is_none_or(|connection| connection != "close");
        self.stream = Some(stream).filter(|_| is_kept && body.len() == length);
        body.truncate(length);
        match text.split_whitespace().nth(1).and_then(|code| code.parse::<i64>().ok()) {
            Some(200) => Ok(body),
            Some(code) => Err(Fault::Refused { code, message: shortened(&String::from_utf8_lossy(&body)) }),
            None => Err(Fault::Unexpected(shortened(&text))),
        }
    }
}

impl Asks for RestAsker {
    /// The argument stands where the path has `:`.
    fn request(&self, method: &str, params: &Value) -> Vec<u8> {
        let argument = params.as_str().unwrap_or_default();
        let part = |part: &str| if part.starts_with(':') { argument.to_owned() } else { part.to_owned() };
        let path = method.split('/').map(part).collect::<Vec<_>>().join("/");
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes()
    }

    fn ask(&mut self, method: &str, request: &[u8]) -> Result<Reply, ClientError> {
        // Connected outside the measured time, as in the Electrum protocol.
        let stream = self.stream.take().map_or_else(|| self.place.dial(), Ok);
        let stream = stream.map_err(|error| self.place.error(method, Fault::Connection(error.to_string())))?;
        let start = system::now();
        let body = self.exchange(stream, request, start).map_err(|fault| self.place.error(method, fault))?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        Ok(Reply { milliseconds, raw: sha256(&squeezed(&body)), line: body })
    }

    fn result_of(&self, line: &[u8]) -> Result<Value, Fault> {
        serde_json::from_slice(line).map_err(|error| Fault::NotJson(error.to_string()))
    }

    fn distrust(&mut self, _: &Fault) {
        self.stream = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Duration;

    /// Runs a server that sends these answers, one to each request, over one connection, and then closes it.
    fn serve(answers: Vec<Vec<u8>>) -> RestAsker {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in answers {
                let mut asked = vec![0; 4_096];
                let size = stream.read(&mut asked).unwrap();
                assert!(String::from_utf8_lossy(&asked[..size]).starts_with("GET /x"));
                // The client closes the connection once it has read enough.
                let _ = stream.write_all(&answer);
            }
        });
        let timeout = Duration::from_secs(20);
        RestAsker::new(Place { name: "fake".into(), port, timeout, protocol_max: String::new() })
    }

    fn answer(status: &str, body: &str) -> Vec<u8> {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    fn fault(answer: Vec<u8>) -> Fault {
        serve(vec![answer]).get("/x").unwrap_err().fault
    }

    #[test]
    fn the_argument_is_part_of_the_path() {
        let asker = serve(Vec::new());
        let line = |path: &str, argument: Value| {
            String::from_utf8(asker.request(path, &argument)).unwrap().lines().next().unwrap().to_owned()
        };
        assert_eq!(line("/scripthash/:hash/txs", "aa".into()), "GET /scripthash/aa/txs HTTP/1.1");
        assert_eq!(line("/blocks/tip/height", Value::Null), "GET /blocks/tip/height HTTP/1.1");
    }

    #[test]
    fn one_connection_serves_answers_and_errors() {
        let mut asker = serve(vec![answer("200 OK", "[1]"), answer("404 Not Found", "none"), answer("200 OK", "")]);
        assert_eq!(asker.get("/x").unwrap(), b"[1]");
        let refused = Fault::Refused { code: 404, message: "none".into() };
        assert_eq!(asker.get("/x").unwrap_err().fault, refused);
        assert_eq!(asker.get("/x").unwrap(), b"");
    }

    #[test]
    fn an_answer_of_another_form_is_an_error() {
        assert!(matches!(fault(b"HTTP/1.1 200 OK\r\n\r\n[1]".to_vec()), Fault::Unexpected(_)), "no length");
        assert!(matches!(fault(b"HTTP\r\nContent-Length: 1\r\n\r\n1".to_vec()), Fault::Unexpected(_)), "no status");
        assert_eq!(fault(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1".to_vec()), Fault::Disconnected);
        assert_eq!(fault(b"HTTP/1.1 200 OK\r\n".to_vec()), Fault::Disconnected);
        let asker = serve(Vec::new());
        assert!(matches!(asker.result_of(b"<html>"), Err(Fault::NotJson(_))));
    }

    /// limit: REST_HEAD_BYTES_MAX at
    /// limit: REST_HEAD_BYTES_MAX above
    #[test]
    fn a_header_has_a_limit() {
        let with = |bytes: usize| {
            let mut text = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nFiller: ".to_owned();
            text.extend(std::iter::repeat_n('x', bytes - text.len()));
            serve(vec![(text + "\r\n\r\n7").into_bytes()]).get("/x").map_err(|error| error.fault)
        };
        assert_eq!(with(REST_HEAD_BYTES_MAX), Ok(b"7".to_vec()));
        assert_eq!(with(REST_HEAD_BYTES_MAX + 1), Err(Fault::LineTooLong { limit: REST_HEAD_BYTES_MAX }));
    }

    /// limit: ELECTRUM_LINE_BYTES_MAX at
    /// limit: ELECTRUM_LINE_BYTES_MAX above
    #[test]
    fn a_body_has_a_limit() {
        let with = |bytes: usize| {
            let answer = answer("200 OK", &" ".repeat(bytes));
            serve(vec![answer]).get("/x").map(|body| body.len()).map_err(|error| error.fault)
        };
        assert_eq!(with(ELECTRUM_LINE_BYTES_MAX), Ok(ELECTRUM_LINE_BYTES_MAX));
        let above = Err(Fault::LineTooLong { limit: ELECTRUM_LINE_BYTES_MAX });
        assert_eq!(with(ELECTRUM_LINE_BYTES_MAX + 1), above);
    }
}
