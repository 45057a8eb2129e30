//! Settings of the feed for front ends. Input: [`super::given::Given`]. Output: [`FeedSettings`], or the first invalid
//! value.

use super::error::{SettingsError, ValueProblem};
use super::given::Given;
use super::net::{NetProblem, has_good_port};
use super::rpc::Secret;
use lydian_consensus::Chain;
use lydian_options::switch;
use lydian_serve::bind_addresses;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeedSettings {
    /// `-feedbind`; empty for no feed.
    pub(crate) bind: Vec<String>,
    /// The port of addresses without one.
    pub(crate) port: u16,
    /// `-feedtoken`; empty for none.
    pub(crate) token: Secret,
    /// `-feedcert` and `-feedkey`. Absolute.
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// The least characters of a token.
pub(crate) const TOKEN_CHARACTERS_MIN: usize = 16;

/// The port on a chain: nodes of several chains run beside each other.
fn port(chain: Chain) -> u16 {
    match chain {
        Chain::Main => 3_003,
        Chain::Test => 13_003,
        Chain::Testnet4 => 23_003,
        Chain::Signet => 33_003,
        Chain::Regtest => 43_003,
    }
}

impl FeedSettings {
    pub(crate) fn is_on(&self) -> bool {
        !self.bind.is_empty()
    }

    /// Reads what depends on other options; the rest is stored by the entries of the table.
    pub(super) fn read(&mut self, chain: Chain, given: &Given<'_>) -> Result<(), SettingsError> {
        const OPTION: &str = "feedbind";
        self.port = port(chain);
        self.bind = given.net_list(OPTION, |text| match has_good_port(text) {
            true => Ok(text.to_owned()),
            false => Err(NetProblem::Port { option: OPTION, text: text.to_owned() }),
        })?;
        if self.bind.iter().any(String::is_empty) {
            return Err(ValueProblem::Wrong { option: OPTION, text: String::new(), expected: "an address" }.into());
        }
        if self.certificate.is_some() != self.key.is_some() {
            return Err(ValueProblem::CertificateWithoutKey { certificate: "feedcert", key: "feedkey" }.into());
        }
        if !self.is_on() {
            return Ok(());
        }
        if given.core("server").is_some_and(|text| !switch(text)) {
            return Err(ValueProblem::WalletsWithoutServer { option: OPTION }.into());
        }
        let token = &self.token.0;
        if !token.is_empty() && !is_token(token) {
            return Err(ValueProblem::FeedToken.into());
        }
        // An address that cannot be looked up is an error when the feed starts.
        let addresses = bind_addresses(&self.bind, self.port).unwrap_or_default();
        self.check_open(&addresses)
    }

    /// Fails if one of these addresses is beyond this machine, and token or TLS is missing. What a name leads to may
    /// change, so that the addresses which are bound are checked, too.
    pub(crate) fn check_open(&self, addresses: &[SocketAddr]) -> Result<(), SettingsError> {
        let is_guarded = !self.token.0.is_empty() && self.certificate.is_some() && self.key.is_some();
        match addresses.iter().find(|address| is_beyond(address)) {
            Some(address) if !is_guarded => Err(ValueProblem::OpenFeed { address: *address }.into()),
            _ => Ok(()),
        }
    }
}

/// Whether others than this machine may reach an address.
pub(crate) fn is_beyond(address: &SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// Whether a text is long enough, and can be in an HTTP header.
pub(crate) fn is_token(text: &str) -> bool {
    text.len() >= TOKEN_CHARACTERS_MIN && text.bytes().all(|byte| byte.is_ascii_graphic())
}
