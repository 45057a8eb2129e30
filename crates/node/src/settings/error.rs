//! [`SettingsError`]: what is wrong with a setting, and where it was given. One sentence each.

use super::net::NetProblem;
use super::sources::Origin;
use std::fmt;
use std::path::PathBuf;

/// Why there are no settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingsError {
    /// No option of ours and none of Bitcoin Core's.
    UnknownOption {
        argument: String,
        nearest: Option<&'static str>,
    },
    /// An option with a chain before it (`-regtest.par=1`), which only a file may have.
    SectionOnCommandLine {
        argument: String,
    },
    UnknownCommand {
        word: String,
        nearest: Option<&'static str>,
    },
    UnexpectedWord {
        word: String,
        command: Option<&'static str>,
    },
    MissingWord {
        command: &'static str,
        argument: &'static str,
    },
    /// An option that belongs to other commands.
    WrongCommand {
        name: &'static str,
        command: Option<&'static str>,
        belongs: &'static [&'static str],
    },
    /// An option of Bitcoin Core that would promise what we do not keep.
    NotInLydian {
        origin: Origin,
        name: String,
        reason: &'static str,
    },
    Negated {
        origin: Origin,
        name: &'static str,
    },
    NoValue {
        origin: Origin,
        name: &'static str,
    },
    BadValue {
        origin: Origin,
        name: &'static str,
        value: String,
        must: String,
    },
    /// Of the connections to peers.
    Net {
        origin: Origin,
        problem: NetProblem,
    },
    /// Options of one chain only, at the top of a file that is read for another.
    OtherNetwork {
        names: Vec<&'static str>,
        chain: &'static str,
    },
    Fork {
        sentence: String,
    },
    IncludeOnCommandLine {
        value: String,
    },
    NotUtf8 {
        argument: String,
    },
    /// A line of a configuration file that is none.
    BadLine {
        path: PathBuf,
        line: usize,
        text: String,
        hint: String,
    },
    ConfUnreadable {
        path: PathBuf,
        reason: String,
    },
    ChainCombination,
    NoSuchDataDir {
        path: PathBuf,
    },
    NoSuchBlocksDir {
        path: PathBuf,
    },
    NoHome,
    PruneNegative,
    PruneTooSmall,
    PruneWithReindexChainstate,
    /// The data directory named in the file has a file of its own.
    IgnoredConf {
        ignored: PathBuf,
        used: PathBuf,
    },
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOption { .. }
            | Self::SectionOnCommandLine { .. }
            | Self::UnknownCommand { .. }
            | Self::UnexpectedWord { .. }
            | Self::MissingWord { .. }
            | Self::WrongCommand { .. }
            | Self::IncludeOnCommandLine { .. }
            | Self::NotUtf8 { .. } => self.of_command_line(f),
            Self::NotInLydian { origin, name, reason } => {
                write!(f, "{origin}-{name} is an option of Bitcoin Core that Lydian does not have: {reason}")
            }
            Self::Negated { origin, name } => {
                write!(f, "{origin}Negating of -{name} is meaningless and therefore forbidden")
            }
            Self::NoValue { origin, name } => {
                write!(f, "{origin}Can not set -{name} with no value. Please specify value with -{name}=value.")
            }
            Self::BadValue { origin, name, value, must } => write!(f, "{origin}-{name}={value}: it must be {must}"),
            Self::Net { origin, problem } => write!(f, "{origin}{problem}"),
            Self::OtherNetwork { names, chain } => {
                let sentence = |name: &&str| {
                    format!("Config setting for -{name} only applied on {chain} network when in [{chain}] section.")
                };
                f.write_str(&names.iter().map(sentence).collect::<Vec<_>>().join(" "))
            }
            Self::Fork { sentence } => f.write_str(sentence),
            Self::BadLine { path, line, text, hint } => {
                write!(f, "Error reading configuration file: {}:{line}: parse error: {text}{hint}", path.display())
            }
            Self::ConfUnreadable { path, reason } => {
                write!(f, "Error reading configuration file: {}: {reason}", path.display())
            }
            Self::ChainCombination => f.write_str(
                "Invalid combination of -regtest, -signet, -testnet, -testnet4 and -chain. Can use at most one.",
            ),
            Self::NoSuchDataDir { path } => {
                write!(f, "Specified data directory \"{}\" does not exist.", path.display())
            }
            Self::NoSuchBlocksDir { path } => {
                write!(f, "Specified blocks directory \"{}\" does not exist.", path.display())
            }
            Self::NoHome => f.write_str("HOME is not set, so there is no default data directory: give -datadir=<dir>"),
            Self::PruneNegative => f.write_str("Prune cannot be configured with a negative value."),
            Self::PruneTooSmall => {
                write!(
                    f,
                    "Prune configured below the minimum of {} MiB. Please use a higher number.",
                    super::parse::PRUNE_MIB_MIN
                )
            }
            Self::PruneWithReindexChainstate => {
                f.write_str("Prune mode is incompatible with -reindex-chainstate. Use full -reindex instead.")
            }
            Self::IgnoredConf { ignored, used } => write!(
                f,
                "{} is ignored, because {} is being used instead: delete or rename it, or name one of the two with -conf and the other with \
                 includeconf=",
                ignored.display(),
                used.display()
            ),
        }
    }
}

impl SettingsError {
    fn of_command_line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = |command: &Option<&str>| command.map(|name| format!("lydian {name}")).unwrap_or("lydian".into());
        match self {
            Self::UnknownOption { argument, nearest: Some(nearest) } => {
                write!(f, "Invalid parameter {argument}; the nearest is -{nearest}. See lydian -help.")
            }
            Self::UnknownOption { argument, nearest: None } => {
                write!(f, "Invalid parameter {argument}. See lydian -help.")
            }
            Self::SectionOnCommandLine { argument } => {
                write!(f, "Invalid parameter {argument}: a chain before an option is for the configuration file")
            }
            Self::UnknownCommand { word, nearest: Some(nearest) } => {
                write!(f, "There is no command '{word}'; the nearest is {nearest}. See lydian -help.")
            }
            Self::UnknownCommand { word, nearest: None } => {
                write!(f, "There is no command '{word}'. See lydian -help.")
            }
            Self::UnexpectedWord { word, command: name } => {
                write!(f, "Command line contains unexpected token '{word}' after {}", command(name))
            }
            Self::MissingWord { command, argument } => write!(f, "lydian {command} needs {argument}"),
            Self::WrongCommand { name, command: used, belongs } => {
                write!(
                    f,
                    "The -{name} option cannot be used with '{}', only with: {}",
                    command(used),
                    belongs.join(", ")
                )
            }
            Self::IncludeOnCommandLine { value } => {
                write!(f, "-includeconf cannot be used from commandline; -includeconf=\"{value}\"")
            }
            Self::NotUtf8 { argument } => write!(f, "'{argument}' is not UTF-8"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for SettingsError {}
