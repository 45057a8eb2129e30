//! Settings of the Electrum server and of the index that it needs. Input: [`super::given::Given`]. Output:
//! [`ElectrumSettings`], or the first invalid value.

use super::error::{SettingsError, ValueProblem};
use super::given::Given;
use super::net::{NetProblem, has_good_port};
use lydian_consensus::Chain;
use lydian_descriptor::Address;
use lydian_electrum::{CostLimits, Host};
use lydian_index_cassandra::Address as StoreAddress;
use lydian_options::{Setting, switch};
use lydian_serve::{Origin, Subnet};
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ElectrumSettings {
    /// `-electrum`.
    pub(crate) is_on: bool,
    /// `-electrumbind`; empty for loopback.
    pub(crate) bind: Vec<String>,
    /// The port of addresses without one.
    pub(crate) port: u16,
    /// `-electrumtlsbind`; empty for loopback, `None` for no TLS.
    pub(crate) tls_bind: Option<Vec<String>>,
    /// `-electrumwsbind` and `-electrumwssbind`, for websockets; empty for loopback, `None` for none.
    pub(crate) ws_bind: Option<Vec<String>>,
    pub(crate) wss_bind: Option<Vec<String>>,
    /// `-electrumproxy`.
    pub(crate) proxies: Vec<Subnet>,
    /// `-electrumcors`.
    pub(crate) cors: Option<Origin>,
    /// `-electrumcert` and `-electrumkey`.
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    /// `-electrumbanner`.
    pub(crate) banner: Option<PathBuf>,
    /// `-electrumdonation`; empty for none.
    pub(crate) donation: String,
    /// `-electrumhost`.
    pub(crate) hosts: Vec<Host>,
    /// `-electrumpeer`.
    pub(crate) peers: Vec<Host>,
    /// `-electrumcostsoft` and `-electrumcosthard`.
    pub(crate) costs: CostLimits,
    /// `-electrumname`.
    pub(crate) name: String,
    /// `-addressindex`; `None`: only if a server needs it.
    pub(crate) index: Option<AddressIndex>,
}

/// Wallets send batches only to servers of names that they know: Sparrow looks for this word.
const NAME: &str = concat!("Lydian ", env!("CARGO_PKG_VERSION"), " (like ElectrumX)");

impl Default for ElectrumSettings {
    /// The defaults of the options.
    fn default() -> ElectrumSettings {
        ElectrumSettings {
            is_on: false,
            bind: Vec::new(),
            port: 0,
            tls_bind: Some(Vec::new()),
            ws_bind: Some(Vec::new()),
            wss_bind: Some(Vec::new()),
            proxies: Vec::new(),
            cors: None,
            certificate: None,
            key: None,
            banner: None,
            donation: String::new(),
            hosts: Vec::new(),
            peers: Vec::new(),
            costs: CostLimits::default(),
            name: NAME.to_owned(),
            index: None,
        }
    }
}

/// The port on a chain: those of electrs, so that nodes of several chains run beside each other.
fn port(chain: Chain) -> u16 {
    match chain {
        Chain::Main => 50_001,
        Chain::Test => 60_001,
        Chain::Testnet4 => 40_001,
        Chain::Signet => 60_601,
        Chain::Regtest => 60_401,
    }
}

/// The addresses that an option gives.
pub(super) fn addresses(given: &Given<'_>, option: &'static str) -> Result<Vec<String>, SettingsError> {
    let found = given.net_list(option, |text| match has_good_port(text) {
        true => Ok(text.to_owned()),
        false => Err(NetProblem::Port { option, text: text.to_owned() }),
    })?;
    Ok(found.into_iter().filter(|text| !text.is_empty()).collect())
}

impl ElectrumSettings {
    /// Reads what depends on other options; the rest is stored by the entries of the table.
    pub(super) fn read(&mut self, chain: Chain, given: &Given<'_>) -> Result<(), SettingsError> {
        self.port = port(chain);
        self.bind = addresses(given, "electrumbind")?;
        let unless_off = |option| match given.core(option) {
            Some("0") => Ok(None),
            _ => addresses(given, option).map(Some),
        };
        self.tls_bind = unless_off("electrumtlsbind")?;
        self.ws_bind = unless_off("electrumwsbind")?;
        self.wss_bind = unless_off("electrumwssbind")?;
        self.proxies = given.list("electrumproxy", |text| {
            Subnet::parse(text, false).map_err(|_| wrong("electrumproxy", text, "an address or a subnet"))
        })?;
        let donation = given.text("electrumdonation").unwrap_or_default();
        if !donation.is_empty() && Address::parse(&donation, chain).is_err() {
            return Err(wrong("electrumdonation", &donation, "an address of this chain"));
        }
        self.donation = donation;
        self.hosts = given.list("electrumhost", |text| {
            let expected = "tcp, ssl, ws or wss, ://, a host and perhaps a port";
            Host::of_this_server(text, self.port).ok_or_else(|| wrong("electrumhost", text, expected))
        })?;
        self.peers = given.list("electrumpeer", |text| {
            let expected = "tcp or ssl, ://, a host and perhaps a port and a version";
            Host::of_peer(text, self.port).ok_or_else(|| wrong("electrumpeer", text, expected))
        })?;
        if self.certificate.is_some() != self.key.is_some() {
            return Err(ValueProblem::CertificateWithoutKey { certificate: "electrumcert", key: "electrumkey" }.into());
        }
        let is_off = given.core("server").is_some_and(|text| !switch(text));
        if self.is_on && is_off {
            return Err(ValueProblem::WalletsWithoutServer { option: "electrum" }.into());
        }
        Ok(())
    }
}

/// A value of an option that is not what it must be.
fn wrong(option: &'static str, text: &str, expected: &'static str) -> SettingsError {
    ValueProblem::Wrong { option, text: text.to_owned(), expected }.into()
}

/// The largest limit of costs.
pub(super) const COST_MAX: i64 = 1_000_000_000;

/// A limit of costs, which the table keeps between 0 and [`COST_MAX`].
pub(super) fn cost(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// What `-addressindex` keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AddressIndex {
    #[default]
    Off,
    /// The outputs of each script, and the inputs that spend them.
    Compact,
    /// The txids in the order of the chain, too.
    Full,
}

/// `-addressindex`.
pub(super) fn index(setting: &Setting) -> Result<AddressIndex, SettingsError> {
    match setting.text() {
        "" | "1" | "compact" => Ok(AddressIndex::Compact),
        "full" => Ok(AddressIndex::Full),
        "0" => Ok(AddressIndex::Off),
        text => Err(ValueProblem::AddressIndex { text: text.to_owned() }.into()),
    }
}

/// `-index`: the address of a store.
pub(super) fn store(setting: &Setting) -> Result<Option<StoreAddress>, SettingsError> {
    match setting.text() {
        "" | "0" => Ok(None),
        text => match text.parse() {
            Ok(address) => Ok(Some(address)),
            Err(error) => Err(ValueProblem::Store { text: text.to_owned(), error }.into()),
        },
    }
}

/// `-electrumcors` and `-esploracors`: the web pages that may use a server.
pub(super) fn origin(option: &'static str, setting: &Setting) -> Result<Option<Origin>, SettingsError> {
    match setting.text() {
        "" | "0" => Ok(None),
        text => match Origin::parse(text) {
            Some(origin) => Ok(Some(origin)),
            None => Err(ValueProblem::Origin { option, text: text.to_owned() }.into()),
        },
    }
}
