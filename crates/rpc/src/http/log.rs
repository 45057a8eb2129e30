//! [`HttpLog`]: Core's log lines for the events of the server.
//!
//! Input: events. Output: lines of Core's category `http`, and of the default level.

use crate::context::{Context, Host, LogLevel};
use lydian_serve::http::is_known;
use lydian_serve::{ClientEvent, Event, Log};
use std::net::SocketAddr;
use std::sync::Arc;

/// The log of the server.
#[derive(Debug)]
pub(super) struct HttpLog(pub(super) Arc<Context>);

impl Log for HttpLog {
    fn event(&self, event: &Event<'_>) {
        let host = self.0.host.as_ref();
        match event {
            Event::Binding(address) => {
                host.log(LogLevel::Info, &format!("Binding RPC on address {} port {}", address.ip(), address.port()));
                if address.ip().is_unspecified() {
                    let words =
                        "The RPC server is not safe to expose to untrusted networks such as the public internet";
                    host.log(LogLevel::Warning, words);
                }
            }
            Event::BindFailed(failure) => {
                let address = failure.address;
                host.log(LogLevel::Warning, &format!("Binding RPC on address {address} failed: {failure}"));
            }
            Event::AcceptFailed(error) => host.debug("http", || format!("Cannot accept new connection: {error}")),
            Event::NoPlace(address) => {
                host.debug("http", || format!("HTTP connection from {address} dropped: too many connections"));
            }
            // RPC has no proxies.
            Event::BadProxyHeader { .. } => {}
            Event::Client { address, id, event } => client_event(host, *address, *id, event),
        }
    }
}

fn client_event(host: &dyn Host, address: SocketAddr, id: u64, event: &ClientEvent<'_>) {
    match event {
        ClientEvent::Accepted => host.debug("http", || format!("HTTP Connection accepted from {address} (id={id})")),
        // RPC has neither TLS nor a limit on writes.
        ClientEvent::TlsFailed(_) | ClientEvent::Stalled => {}
        ClientEvent::NoDelayFailed(error) => host.debug("http", || {
            format!("connection from {address}: unable to set TCP_NODELAY, continuing anyway: {error}")
        }),
        ClientEvent::Sent { bytes } => {
            host.debug("http", || format!("Sent {bytes} bytes to client {address} (id={id})"));
        }
        ClientEvent::SendFailed(error) => {
            host.debug("http", || format!("Error sending HTTP response data to client {address} (id={id}): {error}"))
        }
        ClientEvent::EndOfStream => host.debug("http", || format!("Received EOF from {address} (id={id})")),
        ClientEvent::ReadFailed(error) => {
            host.debug("http", || format!("Permanent read error from {address} (id={id}): {error}"));
        }
        ClientEvent::IdleTimeout => host.debug("http", || format!("HTTP client idle timeout {address} (id={id})")),
        ClientEvent::Disconnected => host.debug("http", || format!("Disconnecting HTTP client {address} (id={id})")),
        ClientEvent::WrongPassword => {
            let words = format!("ThreadRPCServer incorrect password attempt from {address}");
            host.log(LogLevel::Warning, &words);
        }
        ClientEvent::HttpFailed(error) => {
            host.debug("http", || format!("Error reading HTTP request from client {address} (id={id}): {error}"));
        }
        ClientEvent::Request { method, uri } => host.debug("http", || {
            let method = if is_known(method) { method.as_str() } else { "unknown" };
            format!("Received a {method} request for {uri} from {address} (id={id})")
        }),
        ClientEvent::Response { code, size } => host.debug("http", || {
            format!(
                "HTTPResponse (status code: {code} size: {size}) added to send buffer for client {address} (id={id})"
            )
        }),
        ClientEvent::Forbidden => host.debug("http", || {
            format!("HTTP request from {address} rejected: Client network is not allowed RPC access")
        }),
        ClientEvent::UnknownMethod => {
            host.debug("http", || format!("HTTP request from {address} rejected: Unknown HTTP request method"));
        }
        ClientEvent::BodyTooLarge { is_declared } => host.debug("http", || {
            let why = if *is_declared { "Max body size exceeded" } else { "Chunk will exceed max body size" };
            format!("HTTP request body too large from client {address} (id={id}): {why}")
        }),
    }
}
