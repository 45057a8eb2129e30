//! [`NodeAddress`]: where the feed of a node is.
//!
//! Input: a text, `HOST:PORT` or `https://HOST:PORT`. Output: host and port. Without TLS, only this machine's addresses
//! are accepted, since everyone on the way could read the token and change the answers.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use tokio_rustls::rustls::pki_types::ServerName;

/// The address of a feed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
    is_tls: bool,
}

/// Why a text is no address of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadNodeAddress {
    /// The host, or the port from 1 to 65535, is missing or wrong.
    Form(String),
    /// The connection would leave this machine without TLS.
    NotLoopback(String),
    /// The scheme is not `https`.
    Scheme(String),
}

impl fmt::Display for BadNodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadNodeAddress::Form(text) => {
                write!(f, "the address of a node must be HOST:PORT or https://HOST:PORT, not {text:?}")
            }
            BadNodeAddress::NotLoopback(text) => {
                write!(f, "the node {text:?} is not on this machine and needs TLS: use https://{text}")
            }
            BadNodeAddress::Scheme(text) => {
                write!(f, "the address of a node has the scheme https or none, not that of {text:?}")
            }
        }
    }
}

impl std::error::Error for BadNodeAddress {}

impl NodeAddress {
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The name that the certificate must have.
    pub(crate) fn server_name(&self) -> Option<ServerName<'static>> {
        ServerName::try_from(self.host.clone()).ok()
    }

    /// Host and port, as the header `Host` has them.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for NodeAddress {
    type Err = BadNodeAddress;

    fn from_str(text: &str) -> Result<NodeAddress, BadNodeAddress> {
        let bad = || BadNodeAddress::Form(text.to_owned());
        let (is_tls, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(_) => return Err(BadNodeAddress::Scheme(text.to_owned())),
            None => (false, text),
        };
        let (host, port) = rest.rsplit_once(':').ok_or_else(bad)?;
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port: u16 = port.parse().ok().filter(|port| is_number && *port > 0).ok_or_else(bad)?;
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']').filter(|inner| inner.contains(':')).ok_or_else(bad)?,
            None => Some(host).filter(|host| !host.contains(':')).ok_or_else(bad)?,
        };
        let ip: Option<IpAddr> = host.parse().ok();
        if ip.is_none() && ServerName::try_from(host).is_err() {
            return Err(bad());
        }
        let is_loopback = ip.map_or(host == "localhost", |ip| ip.is_loopback());
        if !is_tls && !is_loopback {
            return Err(BadNodeAddress::NotLoopback(text.to_owned()));
        }
        Ok(NodeAddress { host: host.to_owned(), port, is_tls })
    }
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https://" } else { "" };
        write!(f, "{scheme}{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused_with_a_sentence() {
        for good in
            ["127.0.0.1:3003", "localhost:1", "[::1]:13003", "https://node.example:3003", "https://[2001:db8::1]:9"]
        {
            assert_eq!(good.parse::<NodeAddress>().unwrap().to_string(), good);
        }
        let error = |text: &str| text.parse::<NodeAddress>().unwrap_err().to_string();
        for form in
            ["", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:+1", "::1:3003", "a b:1"]
        {
            let expected = format!("the address of a node must be HOST:PORT or https://HOST:PORT, not {form:?}");
            assert_eq!(error(form), expected);
        }
        for form in ["[127.0.0.1]:1", "[::1:3003", "https://:1", "https://a:1/path", ":3003"] {
            assert!(error(form).starts_with("the address of a node must be"), "{form}");
        }
        assert_eq!(
            error("10.0.0.1:3003"),
            "the node \"10.0.0.1:3003\" is not on this machine and needs TLS: use https://10.0.0.1:3003"
        );
        assert!(error("node:3003").ends_with("use https://node:3003"));
        assert!(error("http://127.0.0.1:1").starts_with("the address of a node has the scheme https or none"));
    }
}
