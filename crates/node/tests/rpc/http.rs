//! A client for one connection that sends bytes unchanged and returns status line and body as received.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The first line.
    pub(crate) status: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

/// Sends one request and reads one response, on a connection of its own.
pub(crate) fn send(port: u16, request: &[u8]) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    // Longer than any answer takes on a busy machine.
    stream.set_read_timeout(Some(Duration::from_secs(300)))?;
    stream.set_nodelay(true)?;
    stream.write_all(request)?;
    read(&mut BufReader::new(stream))
}

pub(crate) fn read(reader: &mut impl BufRead) -> std::io::Result<Answer> {
    let (status, headers, body) = read_bytes(reader)?;
    Ok(Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

/// Status line, headers and the bytes of the body.
pub(crate) fn read_bytes(reader: &mut impl BufRead) -> std::io::Result<(String, Vec<String>, Vec<u8>)> {
    let mut line = || -> std::io::Result<String> {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    };
    let status = line()?;
    let mut headers = Vec::new();
    let mut length = None;
    loop {
        let header = line()?;
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok();
        }
        headers.push(header);
    }
    let mut body = Vec::new();
    match length {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body)?;
        }
        None if status.contains(" 204 ") => {}
        None => {
            reader.read_to_end(&mut body)?;
        }
    }
    Ok((status, headers, body))
}
