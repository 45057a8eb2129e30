//! Addresses in settings. Input: text, and the name resolver. Output: an address with a port. Core's `Lookup`,
//! `IsUnixSocketPath` and the port checks of `CheckHostPortOptions`.

use super::NetProblem;
use lydian_p2p::proxies::ProxyAddress;
use lydian_wire::{Endpoint, NetAddr, split_host_port};
use std::net::IpAddr;
use std::path::PathBuf;

/// The port of Tor's proxy: Core's `DEFAULT_TOR_SOCKS_PORT`.
const PROXY_PORT: u16 = 9050;

/// Size of the path in `sockaddr_un`, including the closing zero.
const UNIX_PATH_BYTES: usize = 108;

pub(super) const UNIX_PREFIX: &str = "unix:";

/// The name resolver; `None` with `-dns=0`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    pub(super) lookup: Option<fn(&str) -> Option<IpAddr>>,
}

impl Names {
    /// Parses an address, or resolves a name to its first address.
    fn resolve(&self, text: &str, default_port: u16) -> Option<Endpoint> {
        let (host, port, _) = split_host_port(text, default_port);
        let addr = match host.parse() {
            Ok(addr) => addr,
            Err(_) if host.is_empty() || host.contains('\0') || NetAddr::is_private_name(host) => return None,
            Err(_) => NetAddr::from(self.lookup?(host)?),
        };
        Some(Endpoint { addr, port })
    }
}

/// Parses an address to listen on, without resolving names.
pub(super) fn numeric(text: &str, default_port: u16, with_cjdns: bool) -> Option<Endpoint> {
    let endpoint = Names { lookup: None }.resolve(text, default_port)?;
    Some(flipped(endpoint, with_cjdns))
}

/// `-externalip`.
pub(super) fn external(text: &str, port: u16, with_cjdns: bool, names: &Names) -> Result<Endpoint, NetProblem> {
    let found = names.resolve(text, port).filter(|endpoint| endpoint.addr.is_valid());
    let found = found.ok_or_else(|| NetProblem::Unresolved { option: "externalip", text: text.to_owned() })?;
    Ok(flipped(found, with_cjdns))
}

/// `-proxy` and `-onion`.
pub(super) fn proxy(option: &'static str, text: &str, names: &Names) -> Result<ProxyAddress, NetProblem> {
    let path = text.strip_prefix(UNIX_PREFIX).filter(|path| path.len() < UNIX_PATH_BYTES);
    if let Some(path) = path {
        return Ok(ProxyAddress::Unix(PathBuf::from(path)));
    }
    let found = names.resolve(text, PROXY_PORT).filter(|endpoint| endpoint.addr.is_valid());
    found.map(ProxyAddress::Tcp).ok_or_else(|| NetProblem::Proxy { option, text: text.to_owned() })
}

/// Whether the port in the text, if there is one, is valid.
pub(in crate::settings) fn has_good_port(text: &str) -> bool {
    split_host_port(text, 1).2
}

fn flipped(endpoint: Endpoint, with_cjdns: bool) -> Endpoint {
    let addr = if with_cjdns { endpoint.addr.maybe_cjdns() } else { endpoint.addr };
    Endpoint { addr, ..endpoint }
}
