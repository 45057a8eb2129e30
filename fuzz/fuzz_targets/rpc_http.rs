//! The HTTP layer: a connection that receives any bytes.
//!
//! A byte 0xff stands for a header with a user name and the right password. The server sends nothing or an HTTP
//! response, and still answers the next client.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_fuzz::rpc::{AUTHORIZATION, server};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Every connection has its own address, so that closed connections do not use up the ports.
fn address(port: u16) -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let [_, b, c, d] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, b, c, d.clamp(1, 254))), port)
}

/// Returns all bytes received until the server closes. A client that has closed its sending side may get no response.
fn talk(bytes: &[u8], says_end: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(address(server().port())).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    let mut answer = Vec::new();
    // The server may close the connection before it has read everything.
    let sent = stream.write_all(bytes);
    if says_end && sent.is_ok() {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let _ = stream.read_to_end(&mut answer);
    answer
}

fuzz_target!(|bytes: &[u8]| {
    let mut request = Vec::new();
    for byte in bytes {
        match byte {
            0xff => request.extend_from_slice(AUTHORIZATION.as_bytes()),
            byte => request.push(*byte),
        }
    }
    // Wrong passwords are answered late on purpose, which is not tested here.
    let is_guess = bytes.windows(13).any(|word| word.eq_ignore_ascii_case(b"authorization"));
    if is_guess {
        return;
    }
    let answer = talk(&request, true);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{}", String::from_utf8_lossy(&answer));
    if bytes.first().is_some_and(|first| first % 64 == 0) {
        let body = "{\"method\":\"uptime\"}";
        let size = body.len();
        let request =
            format!("POST / HTTP/1.1\r\n{AUTHORIZATION}Connection: close\r\nContent-Length: {size}\r\n\r\n{body}");
        let answer = talk(request.as_bytes(), false);
        // The server's node is not ready, and the response says so.
        assert!(answer.starts_with(b"HTTP/1.1 500 Internal Server Error\r\n"), "{}", String::from_utf8_lossy(&answer));
    }
});
