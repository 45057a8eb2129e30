//! [`SettingsError`]: why the settings cannot be used, in Bitcoin Core's words wherever Core has the same error.

use super::feed::TOKEN_CHARACTERS_MIN;
use super::front::FrontProblem;
use super::mempool::MempoolProblem;
use super::mining::MiningProblem;
use super::net::NetProblem;
use super::unused::UnusedProblem;
use super::values::PRUNE_MIB_MIN;
use lydian_consensus::DeploymentError;
use lydian_index_cassandra::AddressError;
use lydian_options::completions::Shell;
use lydian_options::{
    ArgumentProblem, ChainCombination, ConfProblem, DatadirProblem, FileProblem, Origin, ReadProblem,
};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingsError {
    /// The command line cannot be parsed: Core's `ParseParameters`.
    CommandLine(ArgumentProblem),
    /// A word that is neither an option nor a command.
    UnexpectedToken {
        token: String,
    },
    UnexpectedWord {
        word: String,
        command: Option<&'static str>,
    },
    MissingWord {
        command: &'static str,
        argument: &'static str,
    },
    UnknownShell {
        name: String,
    },
    /// An option that belongs to other commands.
    WrongCommand {
        name: &'static str,
        command: Option<&'static str>,
        belongs: &'static [&'static str],
    },
    NotUtf8 {
        argument: String,
    },
    Conf(ConfProblem),
    /// The data directory has a configuration file that is not the one in use.
    IgnoredConf(IgnoredConf),
    /// `settings.json`.
    File(FileProblem),
    /// An option of Bitcoin Core that Lydian refuses.
    NotInLydian {
        origin: Origin,
        name: String,
        reason: &'static str,
    },
    Value(ValueProblem),
    /// `lydian serve`.
    Front(FrontProblem),
    /// Errors in the settings of connections to peers.
    Net(NetProblem),
    Mempool(MempoolProblem),
    /// Errors in the options of the blocks that the node makes.
    Mining(MiningProblem),
    /// Errors in options that Core checks and that have no effect here.
    Unused(UnusedProblem),
    Deployment(DeploymentError),
    /// Options for one chain only, at the top of a file that is read for another chain.
    OtherNetwork {
        names: Vec<&'static str>,
        chain: &'static str,
    },
    ChainCombination,
    UnknownChain {
        text: String,
    },
    NoSuchDataDir {
        text: String,
    },
    NoSuchBlocksDir {
        text: String,
    },
    NoHome,
    PruneNegative,
    PruneTooSmall,
    PruneWithReindexChainstate,
    /// `-test` on a chain that is not regtest.
    TestOption,
}

/// Two configuration files where only one can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IgnoredConf {
    pub(crate) directory: PathBuf,
    pub(crate) name: &'static str,
    pub(crate) used: PathBuf,
    /// Where the used file was named.
    pub(crate) source: String,
}

/// A value that an option does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueProblem {
    Category {
        option: &'static str,
        text: String,
    },
    GlobalLevel {
        text: String,
        levels: String,
    },
    CategoryLevel {
        text: String,
        categories: String,
        levels: String,
    },
    MinimumWork {
        text: String,
    },
    AssumeValid {
        text: String,
    },
    /// In Core, this is a failed assertion.
    MockTime {
        value: i64,
    },
    SignatureEngine {
        text: String,
    },
    AddressIndex {
        text: String,
    },
    /// `-index`.
    Store {
        text: String,
        error: AddressError,
    },
    /// `-index` with `-addressindex=0`.
    StoreWithoutIndex,
    /// `-storeblocks` without `-index`.
    BlocksWithoutStore,
    /// `-electrum`, `-esplora`, `-feedbind` or `-page` with `-server=0`.
    WalletsWithoutServer {
        option: &'static str,
    },
    /// `-esploracors`, `-electrumcors`.
    Origin {
        option: &'static str,
        text: String,
    },
    CertificateWithoutKey {
        certificate: &'static str,
        key: &'static str,
    },
    /// `-feedtoken`.
    FeedToken,
    /// An address of `-feedbind` beyond this machine, without token or TLS.
    OpenFeed {
        address: SocketAddr,
    },
    /// An option of the Electrum server or of the feed.
    Wrong {
        option: &'static str,
        text: String,
        expected: &'static str,
    },
    SignetChallengeCount,
    SignetChallengeHex {
        text: String,
    },
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = |command: &Option<&str>| command.map(|name| format!("lydian {name}")).unwrap_or("lydian".into());
        match self {
            Self::CommandLine(problem) => write!(f, "Error parsing command line arguments: {problem}"),
            Self::UnexpectedToken { token } => {
                write!(f, "Command line contains unexpected token '{token}', see lydian -h for a list of options.")
            }
            Self::UnexpectedWord { word, command: name } => {
                write!(f, "Command line contains unexpected token '{word}' after {}", command(name))
            }
            Self::MissingWord { command, argument } => write!(f, "lydian {command} needs {argument}"),
            Self::UnknownShell { name } => {
                write!(f, "lydian completions: no completions for '{name}', only for {}", Shell::NAMES.join(", "))
            }
            Self::WrongCommand { name, command: used, belongs } => {
                write!(
                    f,
                    "The -{name} option cannot be used with '{}', only with: {}",
                    command(used),
                    belongs.join(", ")
                )
            }
            Self::NotUtf8 { argument } => write!(f, "'{argument}' is not UTF-8"),
            Self::Conf(problem) => write!(f, "Error reading configuration file: {problem}"),
            Self::IgnoredConf(ignored) => {
                ignored.fmt(f)?;
                f.write_str("\n- Set allowignoredconf=1 option to treat this condition as a warning, not an error.")
            }
            Self::File(problem) => problem.fmt(f),
            Self::NotInLydian { origin, name, reason } => {
                write!(f, "{origin}-{name} is an option of Bitcoin Core that Lydian does not have: {reason}")
            }
            Self::Value(problem) => problem.fmt(f),
            Self::Front(problem) => problem.fmt(f),
            Self::Net(problem) => problem.fmt(f),
            Self::Mempool(problem) => problem.fmt(f),
            Self::Mining(problem) => problem.fmt(f),
            Self::Unused(problem) => problem.fmt(f),
            Self::Deployment(error) => error.fmt(f),
            Self::OtherNetwork { names, chain } => names.iter().try_for_each(|name| {
                // One line each; the last has a line feed too, as in Core.
                writeln!(f, "Config setting for -{name} only applied on {chain} network when in [{chain}] section.")
            }),
            Self::ChainCombination => f.write_str(
                "Invalid combination of -regtest, -signet, -testnet, -testnet4 and -chain. Can use at most one.",
            ),
            Self::UnknownChain { text } => write!(f, "Unknown chain {text}."),
            Self::NoSuchDataDir { text } => write!(f, "Specified data directory \"{text}\" does not exist."),
            Self::NoSuchBlocksDir { text } => write!(f, "Specified blocks directory \"{text}\" does not exist."),
            Self::NoHome => f.write_str("HOME is not set, so there is no default data directory: give -datadir=<dir>"),
            Self::PruneNegative => f.write_str("Prune cannot be configured with a negative value."),
            Self::PruneTooSmall => {
                // Two spaces, as in Core.
                write!(f, "Prune configured below the minimum of {PRUNE_MIB_MIN} MiB.  Please use a higher number.")
            }
            Self::PruneWithReindexChainstate => {
                f.write_str("Prune mode is incompatible with -reindex-chainstate. Use full -reindex instead.")
            }
            Self::TestOption => f.write_str("-test=<option> can only be used with regtest"),
        }
    }
}

impl fmt::Display for IgnoredConf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (directory, name) = (self.directory.display(), self.name);
        write!(
            f,
            "Data directory \"{directory}\" contains a \"{name}\" file which is ignored, because a different configuration file \"{}\" from {} is \
             being used instead. Possible ways to address this would be to:\n- Delete or rename the \"{name}\" file in data directory \
             \"{directory}\".\n- Change datadir= or conf= options to specify one configuration file, not two, and use includeconf= to include any \
             other configuration files.",
            self.used.display(),
            self.source
        )
    }
}

impl fmt::Display for ValueProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Category { option, text } => write!(f, "Unsupported logging category -{option}={text}."),
            Self::GlobalLevel { text, levels } => {
                write!(f, "Unsupported global logging level -loglevel={text}. Valid values: {levels}.")
            }
            Self::CategoryLevel { text, categories, levels } => write!(
                f,
                "Unsupported category-specific logging level -loglevel={text}. Expected -loglevel=<category>:<loglevel>. Valid categories: \
                 {categories}. Valid loglevels: {levels}."
            ),
            Self::MinimumWork { text } => {
                write!(f, "Invalid minimum work specified ({text}), must be up to 64 hex digits")
            }
            Self::AssumeValid { text } => write!(
                f,
                "Invalid assumevalid block hash specified ({text}), must be up to 64 hex digits (or 0 to disable)"
            ),
            Self::MockTime { value } => {
                write!(f, "-mocktime={value} is outside the range of block times: 0 to 4294967295 seconds")
            }
            Self::SignatureEngine { text } => {
                write!(f, "-sigengine={text}: it must be one of {}", lydian_curve::ENGINE_NAMES.join(", "))
            }
            Self::AddressIndex { text } => {
                write!(f, "Unknown -addressindex value {text}: it must be compact or full, or 0 for no index.")
            }
            Self::Store { text, error } => write!(f, "Invalid -index: {text:?}: {error}."),
            Self::StoreWithoutIndex => {
                f.write_str("-index needs the index that it writes: it cannot be combined with -addressindex=0.")
            }
            Self::BlocksWithoutStore => {
                f.write_str("-storeblocks needs the store that the blocks are written to: -index=cassandra://...")
            }
            Self::CertificateWithoutKey { certificate, key } => {
                write!(f, "-{certificate} and -{key} must be given together.")
            }
            Self::FeedToken => write!(
                f,
                "Invalid -feedtoken: it must have at least {TOKEN_CHARACTERS_MIN} characters, which are letters, digits or signs of ASCII."
            ),
            Self::OpenFeed { address } => {
                write!(
                    f,
                    "-feedbind: {address} is not on this machine, so that -feedtoken, -feedcert and -feedkey are needed."
                )
            }
            Self::Wrong { option, text, expected } => write!(f, "Invalid -{option}: {text:?} is not {expected}."),
            Self::WalletsWithoutServer { option } => {
                write!(f, "-{option} needs the RPC methods: it cannot be combined with -server=0.")
            }
            Self::Origin { option, text } => write!(f, "Invalid -{option}: {text:?} cannot be in an HTTP header."),
            Self::SignetChallengeCount => f.write_str("-signetchallenge cannot be multiple values."),
            Self::SignetChallengeHex { text } => write!(f, "-signetchallenge must be hex, not '{text}'."),
        }
    }
}

impl std::error::Error for SettingsError {}

impl From<NetProblem> for SettingsError {
    fn from(problem: NetProblem) -> SettingsError {
        SettingsError::Net(problem)
    }
}

impl From<ValueProblem> for SettingsError {
    fn from(problem: ValueProblem) -> SettingsError {
        SettingsError::Value(problem)
    }
}

impl From<ConfProblem> for SettingsError {
    fn from(problem: ConfProblem) -> SettingsError {
        SettingsError::Conf(problem)
    }
}

impl From<MempoolProblem> for SettingsError {
    fn from(problem: MempoolProblem) -> SettingsError {
        SettingsError::Mempool(problem)
    }
}

impl From<MiningProblem> for SettingsError {
    fn from(problem: MiningProblem) -> SettingsError {
        SettingsError::Mining(problem)
    }
}

impl From<UnusedProblem> for SettingsError {
    fn from(problem: UnusedProblem) -> SettingsError {
        SettingsError::Unused(problem)
    }
}

impl From<DeploymentError> for SettingsError {
    fn from(error: DeploymentError) -> SettingsError {
        SettingsError::Deployment(error)
    }
}

impl From<FileProblem> for SettingsError {
    fn from(problem: FileProblem) -> SettingsError {
        SettingsError::File(problem)
    }
}

impl From<ChainCombination> for SettingsError {
    fn from(_: ChainCombination) -> SettingsError {
        SettingsError::ChainCombination
    }
}

impl From<DatadirProblem> for SettingsError {
    fn from(problem: DatadirProblem) -> SettingsError {
        match problem {
            DatadirProblem::Missing { text } => SettingsError::NoSuchDataDir { text },
            DatadirProblem::NoHome => SettingsError::NoHome,
        }
    }
}

impl From<ReadProblem> for SettingsError {
    fn from(problem: ReadProblem) -> SettingsError {
        match problem {
            ReadProblem::Conf(problem) => SettingsError::Conf(problem),
            ReadProblem::Chain(problem) => problem.into(),
        }
    }
}
