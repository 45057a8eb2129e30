//! [`Event`]: what happens in a server, for its log.
//!
//! Input: events of the listener and of its connections. Output: none here. Each server logs the events in the words of
//! its protocol; this crate writes no log line.

use crate::bind::BindFailure;
use crate::proxy::BadProxyHeader;
use hyper::{Method, Uri};
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Receives the events of a server.
pub trait Log: fmt::Debug + Send + Sync {
    fn event(&self, event: &Event<'_>);
}

/// An event of the listener or of a connection.
#[derive(Debug)]
pub enum Event<'a> {
    /// Before an attempt to listen on the address.
    Binding(SocketAddr),
    BindFailed(&'a BindFailure),
    /// For example, no file descriptor is free until another connection closes.
    AcceptFailed(&'a io::Error),
    /// A connection was closed because all places are taken.
    NoPlace(SocketAddr),
    /// A connection of a proxy was closed because its header is wrong or missing.
    BadProxyHeader {
        /// The address of the proxy.
        address: SocketAddr,
        error: &'a BadProxyHeader,
    },
    Client {
        address: SocketAddr,
        /// The number of the connection.
        id: u64,
        event: ClientEvent<'a>,
    },
}

/// An event of a connection.
#[derive(Debug)]
pub enum ClientEvent<'a> {
    Accepted,
    /// The handshake of TLS failed.
    TlsFailed(&'a io::Error),
    /// TCP_NODELAY could not be set.
    NoDelayFailed(&'a io::Error),
    Sent {
        bytes: usize,
    },
    SendFailed(&'a io::Error),
    /// The client sends nothing more.
    EndOfStream,
    ReadFailed(&'a io::Error),
    IdleTimeout,
    /// The client took nothing of what was sent to it for too long.
    Stalled,
    Disconnected,
    WrongPassword,
    /// The bytes were no HTTP, or the connection failed during a request.
    HttpFailed(&'a hyper::Error),
    Request {
        method: &'a Method,
        uri: &'a Uri,
    },
    Response {
        code: u16,
        /// Bytes of the body, as far as they are known.
        size: u64,
    },
    /// The address is not in the allow list.
    Forbidden,
    /// The HTTP method is not one that servers know.
    UnknownMethod,
    /// The body is too large, by its `Content-Length` or while it was read.
    BodyTooLarge {
        is_declared: bool,
    },
}

/// A log that discards everything.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Silent;

#[cfg(test)]
impl Log for Silent {
    fn event(&self, _: &Event<'_>) {}
}
