//! Settings of the page. Input: [`super::given::Given`]. Output: [`PageSettings`], or the first invalid value.

use super::electrum::addresses;
use super::error::{SettingsError, ValueProblem};
use super::given::Given;
use lydian_consensus::Chain;
use lydian_options::switch;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageSettings {
    /// `-page`.
    pub(crate) is_on: bool,
    /// `-pagebind`; empty for loopback.
    pub(crate) bind: Vec<String>,
    /// `-pageport`: the port of addresses without one.
    pub(crate) port: u16,
    /// `-pagehost`.
    pub(crate) hosts: Vec<String>,
    /// `-pageactions`.
    pub(crate) has_actions: bool,
    /// `-pageopen`.
    pub(crate) is_open: bool,
    /// `-pagecert` and `-pagekey`, for addresses beyond this machine. Absolute.
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// The default port of a chain: nodes of several chains run beside each other.
fn default_port(chain: Chain) -> u16 {
    match chain {
        Chain::Main => 8_380,
        Chain::Test => 18_380,
        Chain::Testnet4 => 28_380,
        Chain::Signet => 38_380,
        Chain::Regtest => 48_380,
    }
}

impl PageSettings {
    /// Reads what depends on other options; the rest is stored by the entries of the table.
    pub(super) fn read(&mut self, chain: Chain, given: &Given<'_>) -> Result<(), SettingsError> {
        if self.port == 0 {
            self.port = default_port(chain);
        }
        self.bind = addresses(given, "pagebind")?;
        self.hosts = given.texts("pagehost");
        let is_wanted = given.core("page").map(switch);
        let has_server = given.core("server").is_none_or(switch);
        if is_wanted == Some(true) && !has_server {
            return Err(ValueProblem::WalletsWithoutServer { option: "page" }.into());
        }
        self.is_on = is_wanted.unwrap_or(true) && has_server;
        if self.certificate.is_some() != self.key.is_some() {
            return Err(ValueProblem::CertificateWithoutKey { certificate: "pagecert", key: "pagekey" }.into());
        }
        Ok(())
    }
}
