//! Settings of the Esplora server. Input: [`super::given::Given`]. Output: [`EsploraSettings`], or the first invalid
//! value.

use super::electrum::addresses;
use super::error::{SettingsError, ValueProblem};
use super::given::Given;
use lydian_consensus::Chain;
use lydian_options::switch;
use lydian_serve::Origin;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EsploraSettings {
    /// `-esplora`.
    pub(crate) is_on: bool,
    /// `-esplorabind`; empty for loopback.
    pub(crate) bind: Vec<String>,
    /// The port of addresses without one.
    pub(crate) port: u16,
    /// `-esploracors`.
    pub(crate) cors: Option<Origin>,
}

/// The port on a chain: mainnet's is the usual one, and nodes of several chains run beside each other.
fn port(chain: Chain) -> u16 {
    match chain {
        Chain::Main => 3_002,
        Chain::Test => 13_002,
        Chain::Testnet4 => 23_002,
        Chain::Signet => 33_002,
        Chain::Regtest => 43_002,
    }
}

impl EsploraSettings {
    /// Reads what depends on other options; the rest is stored by the entries of the table.
    pub(super) fn read(&mut self, chain: Chain, given: &Given<'_>) -> Result<(), SettingsError> {
        self.port = port(chain);
        self.bind = addresses(given, "esplorabind")?;
        let is_off = given.core("server").is_some_and(|text| !switch(text));
        if self.is_on && is_off {
            return Err(ValueProblem::WalletsWithoutServer { option: "esplora" }.into());
        }
        Ok(())
    }
}
