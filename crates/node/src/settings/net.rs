//! Settings of the connections to peers. Input: [`super::raw::Given`]. Output: [`NetSettings`], or the first value that is not understood.

use super::error::SettingsError;
use super::raw::Given;
use lydian_consensus::Chain;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What the network is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetSettings {
    /// `-connect` and `-addnode`: a host or an address, with a port or without.
    pub(crate) connect: Vec<String>,
    /// Where to listen; empty: nowhere.
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) default_port: u16,
    pub(crate) v2: bool,
    pub(crate) inbound_max: usize,
    pub(crate) ban_seconds: u64,
}

impl NetSettings {
    pub(super) fn new(chain: Chain, given: &Given<'_>) -> Result<NetSettings, SettingsError> {
        let default_port = default_port(chain);
        let port = given.integer("port")?.and_then(|port| u16::try_from(port).ok()).unwrap_or(default_port);
        let bind = given.list("bind", |text| address(text, port))?;
        let listens = given.switch("listen")?.unwrap_or(!bind.is_empty());
        let everywhere = || vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), (Ipv6Addr::UNSPECIFIED, port).into()];
        let mut connect = given.texts("connect")?;
        // Core's way to say "nobody".
        connect.retain(|target| target != "0");
        connect.extend(given.texts("addnode")?);
        Ok(NetSettings {
            connect,
            listen: match (listens, bind.is_empty()) {
                (false, _) => Vec::new(),
                (true, true) => everywhere(),
                (true, false) => bind,
            },
            default_port,
            v2: given.switch("v2transport")?.unwrap_or(true),
            inbound_max: given.integer("maxconnections")?.map_or(125, |count| usize::try_from(count).unwrap_or(0)),
            ban_seconds: given.integer("bantime")?.map_or(24 * 60 * 60, |seconds| u64::try_from(seconds).unwrap_or(1)),
        })
    }

    /// Whether there is anything to do for a network.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.connect.is_empty() || !self.listen.is_empty()
    }
}

fn address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    text.parse()
        .or_else(|_| bare.parse::<IpAddr>().map(|ip| (ip, port).into()))
        .map_err(|_| "<addr>[:<port>]".to_owned())
}

/// Core's `nDefaultPort`.
fn default_port(chain: Chain) -> u16 {
    match chain {
        Chain::Main => 8333,
        Chain::Test => 18333,
        Chain::Testnet4 => 48333,
        Chain::Signet => 38333,
        Chain::Regtest => 18444,
    }
}
