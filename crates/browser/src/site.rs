//! A web site on a port of this machine: the other site in tests of attacks, and whatever a test wants to show.
//!
//! Input: paths with their bodies. Output: an origin that serves them, and the requests that it got. Invariants: it
//! listens on loopback only, ends with the value, and answers anything with 404 that it does not have.

use crate::error::BrowserError;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const BODY_MAX: u64 = 1 << 20;
const HEAD_MAX: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(10);

/// A request that a site got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub method: String,
    pub path: String,
    /// With lower-case names.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

type Pages = BTreeMap<String, (String, String)>;

/// A running site.
#[derive(Debug)]
pub struct Site {
    port: u16,
    ended: Arc<AtomicBool>,
    received: Arc<Mutex<Vec<Received>>>,
    pages: Arc<Mutex<Pages>>,
}

impl Site {
    /// `pages`: path, content type (also with further header lines, separated by `\r\n`), body.
    pub fn start(pages: &[(&str, &str, &str)]) -> Result<Site, BrowserError> {
        let failed = |error: std::io::Error| BrowserError::Io { what: "a site".to_owned(), text: error.to_string() };
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let site = Site { port, ended: Arc::default(), received: Arc::default(), pages: Arc::default() };
        for (path, kind, body) in pages {
            site.set(path, kind, body);
        }
        let (ended, received, pages) = (Arc::clone(&site.ended), Arc::clone(&site.received), Arc::clone(&site.pages));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (received, pages) = (Arc::clone(&received), Arc::clone(&pages));
                std::thread::spawn(move || serve(stream, &received, &pages));
            }
        });
        Ok(site)
    }

    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Adds or replaces a page.
    pub fn set(&self, path: &str, kind: &str, body: &str) {
        let page = (kind.to_owned(), body.to_owned());
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), page);
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// One request for each connection. A connection that fails is closed.
fn serve(stream: TcpStream, received: &Mutex<Vec<Received>>, pages: &Mutex<Pages>) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut reader = BufReader::new(stream);
    let request = read(&mut reader)?;
    let path = request.path.split('?').next().unwrap_or("").to_owned();
    received.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    let page = pages.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
    let status = if page.is_some() { "200 OK" } else { "404 Not Found" };
    let (kind, body) = page.unwrap_or_else(|| ("text/plain".to_owned(), "not found".to_owned()));
    let head = format!("Content-Type: {kind}\r\nContent-Length: {}\r\nConnection: close", body.len());
    write!(reader.get_mut(), "HTTP/1.1 {status}\r\n{head}\r\n\r\n{body}").ok()
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut head = reader.by_ref().take(HEAD_MAX);
    let mut line = String::new();
    head.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        head.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let size: u64 = headers.get("content-length").and_then(|size| size.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    reader.by_ref().take(size.min(BODY_MAX)).read_to_end(&mut body).ok()?;
    Some(Received { method, path, headers, body })
}
