//! Settings of the RPC server. Input: [`super::raw::Given`]. Output: [`RpcSettings`], or the first value that is not understood.

use super::error::SettingsError;
use super::net::port;
use super::raw::Given;
use lydian_consensus::Chain;
use lydian_rpc::{CookiePermissions, Subnet, Users};
use std::fmt;
use std::path::PathBuf;

/// What the server is told. Paths are relative to the directory of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RpcSettings {
    /// `-server`.
    pub(crate) is_on: bool,
    pub(crate) bind: Vec<String>,
    pub(crate) port: u16,
    pub(crate) allow: Vec<Subnet>,
    /// `USER:SALT$HASH`.
    pub(crate) auth: Vec<Secret>,
    pub(crate) user: Secret,
    pub(crate) password: Secret,
    /// None: no cookie.
    pub(crate) cookie: Option<PathBuf>,
    pub(crate) cookie_permissions: Option<CookiePermissions>,
    pub(crate) whitelist: Vec<String>,
    pub(crate) whitelist_default: Option<bool>,
    pub(crate) threads: usize,
    pub(crate) queue: usize,
    /// 0 or less: for ever.
    pub(crate) idle_seconds: i64,
    /// `-deprecatedrpc`.
    pub(crate) deprecated: Vec<String>,
    /// `-rpcdoccheck`.
    pub(crate) checks_help: bool,
}

/// A text that is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "" } else { "****" })
    }
}

impl RpcSettings {
    /// `with_cjdns`: CJDNS can be reached.
    pub(super) fn new(chain: Chain, given: &Given<'_>, with_cjdns: bool) -> Result<RpcSettings, SettingsError> {
        let count = |number: Option<i64>, default: usize| match number {
            Some(number) => usize::try_from(number.max(1)).unwrap_or(usize::MAX),
            None => default,
        };
        let is_rpcauth = |text: &str| match Users::default().add_rpcauth(text) {
            Ok(()) => Ok(Secret(text.to_owned())),
            Err(_) => Err("USERNAME:SALT$HASH".to_owned()),
        };
        let port = given.net_one("rpcport", |text| port("rpcport", text))?;
        Ok(RpcSettings {
            is_on: given.switch("server")?.unwrap_or(true),
            bind: given.texts("rpcbind")?,
            port: port.unwrap_or_else(|| default_port(chain)),
            allow: given.list("rpcallowip", |text| Subnet::parse(text, with_cjdns).map_err(|_| SUBNET.to_owned()))?,
            auth: given.list("rpcauth", is_rpcauth)?,
            user: Secret(given.text("rpcuser").unwrap_or_default()),
            password: Secret(given.text("rpcpassword").unwrap_or_default()),
            cookie: given.path("rpccookiefile", Some(".cookie"))?,
            cookie_permissions: given.one("rpccookieperms", permissions)?,
            whitelist: given.texts("rpcwhitelist")?,
            whitelist_default: given.switch("rpcwhitelistdefault")?,
            threads: count(given.integer("rpcthreads")?, 16),
            queue: count(given.integer("rpcworkqueue")?, 64),
            idle_seconds: given.integer("rpcservertimeout")?.unwrap_or(30),
            deprecated: given.texts("deprecatedrpc")?,
            checks_help: given.switch("rpcdoccheck")?.unwrap_or(false),
        })
    }
}

const SUBNET: &str = "a single IP (1.2.3.4), a network/netmask (1.2.3.4/255.255.255.0), a network/CIDR (1.2.3.4/24), all ipv4 (0.0.0.0/0), or \
                      all ipv6 (::/0)";

fn permissions(text: &str) -> Result<CookiePermissions, String> {
    match text {
        "owner" => Ok(CookiePermissions::Owner),
        "group" => Ok(CookiePermissions::Group),
        "all" => Ok(CookiePermissions::All),
        _ => Err("one of 'owner', 'group', or 'all'".to_owned()),
    }
}

/// Core's `RPCPort`.
fn default_port(chain: Chain) -> u16 {
    match chain {
        Chain::Main => 8332,
        Chain::Test => 18332,
        Chain::Testnet4 => 48332,
        Chain::Signet => 38332,
        Chain::Regtest => 18443,
    }
}
