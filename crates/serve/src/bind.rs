//! The addresses that a server listens on, read as in Core's `GetBindAddresses`.
//!
//! Input: the values of an option such as `-rpcbind`, and the port. Output: addresses; listening sockets. An IPv6
//! wildcard address does not accept IPv4 connections, so both families can be bound to the same port.

use socket2::{Domain, Protocol, Socket, Type};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};

/// An address to listen on that is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadAddress {
    Port { text: String },
    Host { text: String },
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadAddress::Port { text } => write!(f, "invalid port: {text}"),
            BadAddress::Host { text } => write!(f, "the address cannot be looked up: {text}"),
        }
    }
}

impl std::error::Error for BadAddress {}

/// Returns the loopback addresses if `texts` is empty, otherwise the addresses given.
pub fn bind_addresses(texts: &[String], port: u16) -> Result<Vec<SocketAddr>, BadAddress> {
    if texts.is_empty() {
        let loopback = [IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)];
        return Ok(loopback.map(|address| SocketAddr::new(address, port)).to_vec());
    }
    let mut addresses = Vec::with_capacity(texts.len());
    for text in texts {
        let (host, port) = split_host_port(text, port).ok_or_else(|| BadAddress::Port { text: text.clone() })?;
        let found = (host, port).to_socket_addrs().ok().and_then(|mut found| found.next());
        addresses.push(found.ok_or_else(|| BadAddress::Host { text: text.clone() })?);
    }
    Ok(addresses)
}

/// `host`, `host:port`, `[host]:port`, or a bare IPv6 address: Core's `SplitHostPort`.
fn split_host_port(text: &str, default: u16) -> Option<(&str, u16)> {
    let colon = text.rfind(':');
    let is_port = colon.is_some_and(|colon| {
        let host = &text[..colon];
        (host.starts_with('[') && host.ends_with(']')) || !host.contains(':')
    });
    let (host, port) = match colon.filter(|_| is_port) {
        Some(colon) => {
            let port = text[colon + 1..].parse::<u16>().ok().filter(|port| *port != 0)?;
            (&text[..colon], port)
        }
        None => (text, default),
    };
    Some((host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port))
}

/// Opens a non-blocking listening socket.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(LISTEN_BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// An address that could not be bound.
#[derive(Debug)]
pub struct BindFailure {
    pub address: SocketAddr,
    pub error: io::Error,
}

/// Core's message.
impl fmt::Display for BindFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unable to bind to {} on this computer", self.address)?;
        match self.error.kind() {
            io::ErrorKind::AddrInUse => f.write_str(". Lydian is probably already running."),
            _ => write!(f, " (bind returned error {})", self.error),
        }
    }
}

/// Core's `SOMAXCONN`.
const LISTEN_BACKLOG: i32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_listen_at() {
        let at = |text: &str| bind_addresses(&[text.to_owned()], 8332).map(|found| found[0].to_string());
        assert_eq!(at("127.0.0.1").unwrap(), "127.0.0.1:8332");
        assert_eq!(at("127.0.0.1:1234").unwrap(), "127.0.0.1:1234");
        assert_eq!(at("[::1]:1234").unwrap(), "[::1]:1234");
        assert_eq!(at("[::1]").unwrap(), "[::1]:8332");
        assert_eq!(at("::1").unwrap(), "[::1]:8332");
        assert_eq!(at("1.2.3.4:0"), Err(BadAddress::Port { text: "1.2.3.4:0".to_owned() }));
        assert_eq!(at("1.2.3.4:x"), Err(BadAddress::Port { text: "1.2.3.4:x".to_owned() }));
        let both: Vec<String> = bind_addresses(&[], 1).unwrap().iter().map(SocketAddr::to_string).collect();
        assert_eq!(both, ["[::1]:1", "127.0.0.1:1"]);
    }
}
