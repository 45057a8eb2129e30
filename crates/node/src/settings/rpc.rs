//! Settings of the RPC server. Input: [`super::given::Given`]. Output: [`RpcSettings`], or the first invalid value.

use super::error::SettingsError;
use super::given::Given;
use super::net::{NetProblem, has_good_port, port};
use lydian_consensus::Chain;
use lydian_options::base_chain;
use std::fmt;
use std::path::PathBuf;

/// Settings of the server. Paths are relative to the chain's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RpcSettings {
    /// `-server`.
    pub(crate) is_on: bool,
    pub(crate) bind: Vec<String>,
    pub(crate) port: u16,
    /// Checked when the server starts, as in Core; so are `auth` and the cookie permissions.
    pub(crate) allow: Vec<String>,
    /// Whether CJDNS is reachable, so that its addresses are not treated as those of a private network.
    pub(crate) with_cjdns: bool,
    /// `USER:SALT$HASH`.
    pub(crate) auth: Vec<Secret>,
    pub(crate) user: Secret,
    pub(crate) password: Secret,
    /// `None` if there is no cookie.
    pub(crate) cookie: Option<PathBuf>,
    pub(crate) cookie_permissions: Option<String>,
    pub(crate) whitelist: Vec<String>,
    pub(crate) whitelist_default: Option<bool>,
    /// `-rest`.
    pub(crate) has_rest: bool,
    pub(crate) threads: usize,
    pub(crate) queue: usize,
    /// 0 or less means no limit.
    pub(crate) idle_seconds: i64,
    /// `-deprecatedrpc`.
    pub(crate) deprecated: Vec<String>,
    /// `-rpcdoccheck`.
    pub(crate) checks_help: bool,
}

/// A text that debug output does not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "" } else { "****" })
    }
}

impl Default for RpcSettings {
    /// The defaults of the options.
    fn default() -> RpcSettings {
        RpcSettings {
            is_on: true,
            bind: Vec::new(),
            port: 0,
            allow: Vec::new(),
            with_cjdns: false,
            auth: Vec::new(),
            user: Secret::default(),
            password: Secret::default(),
            cookie: Some(".cookie".into()),
            cookie_permissions: None,
            whitelist: Vec::new(),
            whitelist_default: None,
            has_rest: false,
            threads: 16,
            queue: 64,
            idle_seconds: 30,
            deprecated: Vec::new(),
            checks_help: false,
        }
    }
}

impl RpcSettings {
    /// The values of `-rpcbind` that count: as in Core, it counts with `-rpcallowip` only, so that half a setting does
    /// not open the port to everyone.
    pub(crate) fn bound(&self) -> &[String] {
        if self.allow.is_empty() { &[] } else { &self.bind }
    }

    /// Reads the options that depend on the chain or on the network, or whose empty values are errors. The others are
    /// stored by their entries in the table. `with_cjdns`: whether CJDNS is reachable.
    pub(super) fn read(&mut self, chain: Chain, given: &Given<'_>, with_cjdns: bool) -> Result<(), SettingsError> {
        let port = given.net_one("rpcport", |text| port("rpcport", text))?;
        let bind = given.net_list("rpcbind", |text| match has_good_port(text) {
            true => Ok(text.to_owned()),
            false => Err(NetProblem::Port { option: "rpcbind", text: text.to_owned() }),
        })?;
        self.bind = bind.into_iter().filter(|text| !text.is_empty()).collect();
        self.port = port.or(base_chain(chain.name()).map(|chain| chain.rpc_port)).unwrap_or_default();
        self.allow = given.list("rpcallowip", |text| Ok(text.to_owned()))?;
        self.with_cjdns = with_cjdns;
        self.auth = given.list("rpcauth", |text| Ok(Secret(text.to_owned())))?;
        Ok(())
    }
}
