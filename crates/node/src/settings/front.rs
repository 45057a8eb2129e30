//! Settings of a front end: `lydian serve`. Input: the words of the command line, and a configuration file if it is
//! named. Output: [`Settings`] that have no data directory, or the first error.
//!
//! A front end keeps no data, so no file of a data directory is read, and an option that only a node can obey is an
//! error: the operator who gives it relies on it.

use super::core::CORE_OPTIONS;
use super::deployments;
use super::electrum::addresses;
use super::error::{SettingsError, ValueProblem};
use super::feed::is_token;
use super::given::Given;
use super::logging;
use super::net::NetSettings;
use super::settled::Settings;
use super::table::{Opt, group, options};
use super::values;
use super::words::Words;
use crate::host::Host;
use lydian_consensus::Chain;
use lydian_disk::Disk;
use lydian_front::{BadNodeAddress, NodeAddress};
use lydian_options::{ConfigFiles, Notice, Sources, apply, chain_name};
use std::fmt;
use std::path::{Path, PathBuf};

/// The command that has these settings.
pub(crate) const COMMAND: &str = "serve";

/// What only `lydian serve` has.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrontSettings {
    /// `-feed`: at least one.
    pub(crate) nodes: Vec<NodeAddress>,
    /// `-healthbind`; empty for loopback.
    pub(crate) health_bind: Vec<String>,
    /// The port of addresses without one.
    pub(crate) health_port: u16,
    /// `-filters`.
    pub(crate) filter_bytes: usize,
}

/// The default of `-filters`: those of all generations but the largest fit.
pub(super) const FILTERS_MB_DEFAULT: i64 = 256;

/// More than the filters of any index: see docs/scale.md.
pub(super) const FILTERS_MB_MAX: i64 = 1_000_000;

/// Why the options make no front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrontProblem {
    /// An option that only a node has.
    OfNode {
        name: &'static str,
    },
    /// What must be given and is not.
    Missing(Vec<Need>),
    Feed(String),
    /// TLS without a certificate.
    NoCertificate {
        option: &'static str,
    },
    /// A node with TLS without a certificate to trust.
    NoRoots {
        node: String,
    },
    NoConf,
}

/// What every front end has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Store,
    Feed,
    Server,
}

impl Need {
    fn words(self) -> &'static str {
        match self {
            Need::Store => "the index that it reads: -index=cassandra://HOST[:PORT],HOST/KEYSPACE",
            Need::Feed => "the nodes that it follows: -feed=HOST:PORT,HOST:PORT",
            Need::Server => "-electrum, -esplora or both",
        }
    }
}

impl fmt::Display for FrontProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrontProblem::OfNode { name } => {
                write!(f, "lydian serve has no -{name}: a front end has no data directory and no peers.")
            }
            FrontProblem::Missing(needs) => {
                let needs: Vec<&str> = needs.iter().copied().map(Need::words).collect();
                let (last, first) = needs.split_last().unwrap_or((&"", &[]));
                let and = if first.is_empty() { "" } else { "; and " };
                write!(f, "lydian serve needs {}{and}{last}.", first.join("; "))
            }
            FrontProblem::Feed(error) => write!(f, "Invalid -feed: {error}."),
            FrontProblem::NoCertificate { option } => write!(
                f,
                "-{option} needs -electrumcert and -electrumkey: a front end has no data directory for a certificate of its own."
            ),
            FrontProblem::NoRoots { node } => {
                write!(f, "-feed={node} needs -feedcert: the certificate of the node, or of those that certified it.")
            }
            FrontProblem::NoConf => {
                f.write_str("lydian serve reads a configuration file only if it is named: -conf=<file>")
            }
        }
    }
}

impl From<FrontProblem> for SettingsError {
    fn from(problem: FrontProblem) -> SettingsError {
        SettingsError::Front(problem)
    }
}

/// Options besides those of `lydian serve` alone, and of the servers.
const SHARED: &[&str] = &[
    "help",
    "h",
    "?",
    "help-debug",
    "version",
    "conf",
    "includeconf",
    "chain",
    "testactivationheight",
    "vbparams",
    "electrum",
    "esplora",
    "index",
    "feedtoken",
    "feedcert",
    "printtoconsole",
    "debug",
    "debugexclude",
    "loglevel",
    "loglevelalways",
    "logips",
    "logratelimit",
    "logsourcelocations",
    "logthreadnames",
    "logtimemicros",
    "logtimestamps",
];

/// Whether a front end obeys the option.
pub(super) fn is_of_front_end(option: &Opt) -> bool {
    let is_of_group = [group::ELECTRUM, group::ESPLORA, group::CHAIN].contains(&option.group);
    let is_of_node = ["addressindex", "signetseednode", "storeblocks"].contains(&option.name);
    option.commands.contains(&COMMAND) || SHARED.contains(&option.name) || is_of_group && !is_of_node
}

/// Reads the settings. Opens nothing but the configuration file, if one is named.
pub(super) fn load(
    words: &Words,
    host: &Host,
    disk: &dyn Disk,
    notices: &mut Vec<Notice>,
) -> Result<Settings, SettingsError> {
    let mut sources = words.sources.clone();
    let conf = read_conf(&mut sources, host, disk, notices)?;
    let chain: Chain = values::chain(&chain_name(&sources)?)?;
    sources.select_network(chain.name());
    let params = deployments::params(chain, &sources, notices)?;
    refuse_of_node(&sources)?;
    let given = Given::new(&sources);
    let net = NetSettings::new(chain, &given, host, notices)?;
    let mut settings = Settings::new(params, false, PathBuf::new(), net);
    apply(options(), &sources, &mut settings)?;
    logging::read(&given, &mut settings.log, notices)?;
    settings.log.file = None;
    settings.electrum.read(chain, &given)?;
    settings.esplora.read(chain, &given)?;
    settings.front.read(chain, &given)?;
    settings.has_conf = conf.is_some();
    settings.conf = conf;
    settings.make_absolute(host);
    check(&mut settings)?;
    settings.arguments = sources.log_lines();
    settings.notices.clone_from(notices);
    Ok(settings)
}

/// Reads the file of `-conf`. Its path, and those that it includes, are relative to the working directory.
fn read_conf(
    sources: &mut Sources,
    host: &Host,
    disk: &dyn Disk,
    notices: &mut Vec<Notice>,
) -> Result<Option<PathBuf>, SettingsError> {
    let Some(text) = sources.get("conf").map(|value| value.setting.text().to_owned()) else { return Ok(None) };
    if ["", "0", "1"].contains(&text.as_str()) {
        return Err(FrontProblem::NoConf.into());
    }
    let files = ConfigFiles { disk, directory: &host.directory, default_datadir: None, is_lenient: false };
    let path = host.absolute(Path::new(&text));
    files.read(&path, &host.directory, sources, notices)?;
    Ok(Some(path))
}

/// Refuses what only a node can obey, also if Core's option has no effect in a node.
fn refuse_of_node(sources: &Sources) -> Result<(), SettingsError> {
    let of_node = options().filter(|option| !is_of_front_end(option)).map(|option| option.name);
    let names = of_node.chain(CORE_OPTIONS.iter().map(|option| option.name));
    match { names }.find(|name| sources.get(name).is_some()) {
        Some(name) => Err(FrontProblem::OfNode { name }.into()),
        None => Ok(()),
    }
}

/// What must be there, and what needs a certificate. TLS that is only a default is left out without one.
fn check(settings: &mut Settings) -> Result<(), SettingsError> {
    let needs = [
        (Need::Store, settings.shared_index.is_some()),
        (Need::Feed, !settings.front.nodes.is_empty()),
        (Need::Server, settings.electrum.is_on || settings.esplora.is_on),
    ];
    let missing: Vec<Need> = needs.iter().filter(|(_, is_given)| !is_given).map(|(need, _)| *need).collect();
    if !missing.is_empty() {
        return Err(FrontProblem::Missing(missing).into());
    }
    if !settings.feed.token.0.is_empty() && !is_token(&settings.feed.token.0) {
        return Err(ValueProblem::FeedToken.into());
    }
    let of_tls = settings.front.nodes.iter().find(|node| node.is_tls());
    if let Some(node) = of_tls.filter(|_| settings.feed.certificate.is_none()) {
        return Err(FrontProblem::NoRoots { node: node.to_string() }.into());
    }
    if settings.electrum.certificate.is_none() {
        let electrum = &mut settings.electrum;
        for (option, bind) in [("electrumtlsbind", &mut electrum.tls_bind), ("electrumwssbind", &mut electrum.wss_bind)]
        {
            if bind.take().is_some_and(|texts| !texts.is_empty()) {
                return Err(FrontProblem::NoCertificate { option }.into());
            }
        }
    }
    Ok(())
}

/// The port on a chain.
fn port(chain: Chain) -> u16 {
    match chain {
        Chain::Main => 3_004,
        Chain::Test => 13_004,
        Chain::Testnet4 => 23_004,
        Chain::Signet => 33_004,
        Chain::Regtest => 43_004,
    }
}

impl FrontSettings {
    /// Reads what needs a look at the chain; `-filters` is stored by its entry of the table.
    fn read(&mut self, chain: Chain, given: &Given<'_>) -> Result<(), SettingsError> {
        self.health_port = port(chain);
        self.health_bind = addresses(given, "healthbind")?;
        for text in given.texts("feed").iter().flat_map(|texts| texts.split(',')) {
            let node = text
                .parse()
                .map_err(|error: BadNodeAddress| SettingsError::from(FrontProblem::Feed(error.to_string())))?;
            self.nodes.push(node);
        }
        Ok(())
    }
}

/// Bytes of `-filters`.
pub(super) fn filter_bytes(mb: i64) -> usize {
    usize::try_from(mb).unwrap_or(0).saturating_mul(1_000_000)
}
