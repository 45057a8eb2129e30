//! One HTTP/1.1 request and its response.
//!
//! Input: host, port, credentials, a body. Output: status and body, or an [`HttpError`] in Core's words. One connection
//! per request, as in Core's client; no TLS, no redirects, no proxies. Invariants: an invalid response is an error,
//! never a panic; nothing is read beyond the limits; nothing waits past the deadline. Cost: the body is in memory once.

use crate::clock::Deadline;
use crate::limits::{BODY_BYTES_MAX, HEAD_BYTES_MAX};
use lydian_stdx::base64;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum HttpError {
    Resolve {
        host: String,
    },
    Connect,
    Send,
    Timeout,
    /// The server closed the connection before the response was complete.
    End,
    Read(io::Error),
    /// The received bytes are not HTTP.
    Malformed(&'static str),
    /// More than [`HEAD_BYTES_MAX`] or [`BODY_BYTES_MAX`].
    TooLarge,
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpError::Resolve { host } => write!(f, "Could not resolve host: {host}"),
            HttpError::Connect => f.write_str("Could not connect to the server"),
            HttpError::Send => f.write_str("Failed to send HTTP request"),
            HttpError::Timeout => f.write_str("timeout"),
            HttpError::End => f.write_str("EOF"),
            HttpError::Read(error) => write!(f, "Read error: {}", error.to_string().replace("(os error ", "(")),
            HttpError::Malformed(what) => write!(f, "HTTP error: {what}"),
            HttpError::TooLarge => f.write_str("HTTP error: response too large"),
        }
    }
}

/// The server to connect to.
#[derive(Clone, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    /// For the connection, and again for the request.
    pub(crate) timeout: Duration,
}

/// Sends a body and waits for the response. `credentials` are `name:password`.
pub(crate) fn post(target: &Target<'_>, path: &str, credentials: &str, body: &str) -> Result<Response, HttpError> {
    let mut stream = connect(target)?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\nContent-Type: application/json\r\n\
         Authorization: Basic {}\r\n\r\n",
        target.host,
        body.len(),
        base64(credentials.as_bytes())
    );
    let deadline = Deadline::after(target.timeout);
    stream.set_write_timeout(Some(target.timeout)).map_err(|_| HttpError::Send)?;
    stream.write_all(format!("{head}{body}").as_bytes()).map_err(|_| HttpError::Send)?;
    receive(&mut |buffer| {
        let left = deadline.left().ok_or(HttpError::Timeout)?;
        stream.set_read_timeout(Some(left)).map_err(HttpError::Read)?;
        match stream.read(buffer) {
            Ok(0) => Err(HttpError::End),
            Ok(count) => Ok(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(HttpError::Timeout)
            }
            Err(error) => Err(HttpError::Read(error)),
        }
    })
}

fn connect(target: &Target<'_>) -> Result<TcpStream, HttpError> {
    let unknown = || HttpError::Resolve { host: target.host.to_owned() };
    if target.host.is_empty() {
        return Err(unknown());
    }
    let addresses: Vec<_> = (target.host, target.port).to_socket_addrs().map_err(|_| unknown())?.collect();
    if addresses.is_empty() {
        return Err(unknown());
    }
    let deadline = Deadline::after(target.timeout);
    for address in addresses {
        let Some(left) = deadline.left() else { break };
        if let Ok(stream) = TcpStream::connect_timeout(&address, left) {
            return Ok(stream);
        }
    }
    Err(HttpError::Connect)
}

/// A source of bytes: fills a part of the buffer and returns the number of bytes.
type More<'a> = dyn FnMut(&mut [u8]) -> Result<usize, HttpError> + 'a;

struct Incoming<'a> {
    more: &'a mut More<'a>,
    /// Received bytes that are not used yet.
    bytes: Vec<u8>,
}

impl Incoming<'_> {
    fn fill(&mut self) -> Result<(), HttpError> {
        let mut buffer = [0; 1 << 14];
        let count = (self.more)(&mut buffer)?;
        self.bytes.extend_from_slice(&buffer[..count]);
        Ok(())
    }

    /// Returns the bytes before `mark`; the mark is consumed too.
    fn until(&mut self, mark: &[u8]) -> Result<Vec<u8>, HttpError> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.bytes[searched..].windows(mark.len()).position(|window| window == mark) {
                let end = searched + end;
                let rest = self.bytes.split_off(end + mark.len());
                let mut found = std::mem::replace(&mut self.bytes, rest);
                found.truncate(end);
                return Ok(found);
            }
            if self.bytes.len() > HEAD_BYTES_MAX {
                return Err(HttpError::TooLarge);
            }
            searched = (self.bytes.len() + 1).saturating_sub(mark.len());
            self.fill()?;
        }
    }

    fn exactly(&mut self, size: usize) -> Result<Vec<u8>, HttpError> {
        if size > BODY_BYTES_MAX {
            return Err(HttpError::TooLarge);
        }
        while self.bytes.len() < size {
            self.fill()?;
        }
        let rest = self.bytes.split_off(size);
        Ok(std::mem::replace(&mut self.bytes, rest))
    }
}

fn receive<'a>(more: &'a mut More<'a>) -> Result<Response, HttpError> {
    let mut incoming = Incoming { more, bytes: Vec::new() };
    let head = incoming.until(b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let status = status(lines.next().unwrap_or_default())?;
    let headers = headers(lines)?;
    let find =
        |name: &str| headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str());
    // If both headers are present, the chunks count.
    let body = if find("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked")) {
        chunks(&mut incoming)?
    } else {
        match find("content-length").map(str::parse).transpose() {
            Err(_) => return Err(HttpError::Malformed("Invalid Content-Length")),
            Ok(Some(size)) if size > 0 => incoming.exactly(size)?,
            _ => rest(&mut incoming)?,
        }
    };
    Ok(Response { status, body })
}

fn status(line: &str) -> Result<u16, HttpError> {
    if line.len() < "HTTP/1.1 200".len() || !line.starts_with("HTTP/") {
        return Err(HttpError::Malformed("Invalid status line"));
    }
    let code = line.split_once(' ').and_then(|(_, rest)| rest.get(..3));
    let code = code.ok_or(HttpError::Malformed("Invalid status line format"))?;
    code.parse().map_err(|_| HttpError::Malformed("Invalid status code"))
}

fn headers<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<(String, String)>, HttpError> {
    let mut headers = Vec::new();
    for line in lines {
        let (key, value) = line.split_once(':').ok_or(HttpError::Malformed("Header missing colon (:)"))?;
        if key.trim().is_empty() {
            return Err(HttpError::Malformed("Empty header name"));
        }
        headers.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(headers)
}

fn chunks(incoming: &mut Incoming<'_>) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    loop {
        let line = incoming.until(b"\r\n")?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16).map_err(|_| HttpError::Malformed("Invalid chunk size"))?;
        if size == 0 {
            break;
        }
        if size > BODY_BYTES_MAX - body.len() {
            return Err(HttpError::TooLarge);
        }
        body.append(&mut incoming.exactly(size)?);
        // The line break after a chunk.
        incoming.exactly(2)?;
    }
    // Headers after the last chunk are ignored.
    while !incoming.until(b"\r\n")?.is_empty() {}
    Ok(body)
}

/// Reads everything until the server closes the connection.
fn rest(incoming: &mut Incoming<'_>) -> Result<Vec<u8>, HttpError> {
    loop {
        if incoming.bytes.len() > BODY_BYTES_MAX {
            return Err(HttpError::TooLarge);
        }
        match incoming.fill() {
            Ok(()) => {}
            Err(HttpError::End) => return Ok(std::mem::take(&mut incoming.bytes)),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
