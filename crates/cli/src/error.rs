//! The errors before and during a call, in Core's words with our names. One sentence each, if Core's message is one.

use crate::convert::NotJson;
use crate::http::HttpError;
use lydian_options::{ArgumentProblem, ChainCombination, ConfProblem, ReadProblem};
use lydian_rpc::RpcError;
use std::fmt;
use std::path::PathBuf;

/// Why no call is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingsError {
    Argument(ArgumentProblem),
    NotUtf8 { argument: String },
    NoSuchDataDir { text: String },
    Conf(ConfProblem),
    UnknownChain { name: String },
    ChainCombination,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ARGUMENTS: &str = "Error parsing command line arguments:";
        match self {
            Self::Argument(problem) => write!(f, "{ARGUMENTS} {problem}"),
            Self::NotUtf8 { argument } => write!(f, "{ARGUMENTS} {argument} is not UTF-8"),
            Self::NoSuchDataDir { text } => write!(f, "Error: Specified data directory \"{text}\" does not exist."),
            Self::Conf(problem) => write!(f, "Error reading configuration file: {problem}"),
            Self::UnknownChain { name } => write!(f, "Error: Unknown chain {name}."),
            Self::ChainCombination => f.write_str(
                "Error: Invalid combination of -regtest, -signet, -testnet, -testnet4 and -chain. Can use at most one.",
            ),
        }
    }
}

impl From<ChainCombination> for SettingsError {
    fn from(_: ChainCombination) -> SettingsError {
        SettingsError::ChainCombination
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

/// Why a call has no reply.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The node was not reached, or closed the connection.
    Unreachable {
        host: String,
        port: u16,
        cause: HttpError,
    },
    /// The node reports that it is starting.
    Warmup,
    /// The time limit of `-rpcwait` has passed; contains the last error.
    TimedOut(Box<CallError>),
    Port {
        option: &'static str,
        value: String,
    },
    Ipc {
        sentence: &'static str,
    },
    Unauthorized {
        reason: &'static str,
        conf: Option<PathBuf>,
    },
    Unavailable {
        body: String,
    },
    Status(u16),
    NoResponse,
    NotJson,
    NotAReply,
    /// The reply does not have the expected form.
    Shape(String),
    Argument(NotJson),
    /// An invalid combination of words on the command line.
    Usage(String),
    Stdin {
        option: &'static str,
    },
}

impl CallError {
    /// Whether `-rpcwait` tries again after this error.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, CallError::Unreachable { .. } | CallError::Warmup)
    }
}

impl From<RpcError> for CallError {
    fn from(error: RpcError) -> CallError {
        CallError::Shape(error.message)
    }
}

impl From<NotJson> for CallError {
    fn from(error: NotJson) -> CallError {
        CallError::Argument(error)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { host, port, cause } => write!(
                f,
                "Error while attempting to communicate with server {host}:{port} ({cause})\n\n\
                 Make sure the lydian server is running and that you are connecting to the correct RPC port.\n\
                 Use \"lydian-cli -help\" for more info."
            ),
            Self::Warmup => f.write_str("server in warmup"),
            Self::TimedOut(last) => write!(f, "timeout on transient error: {last}"),
            Self::Port { option, value } => write!(f, "Invalid port provided in -{option}: {value}"),
            Self::Ipc { sentence } => f.write_str(sentence),
            Self::Unauthorized { reason, conf } => {
                let conf = conf.as_deref().unwrap_or("".as_ref());
                write!(f, "Authorization failed: {reason} Configuration file: ({})", conf.display())
            }
            Self::Unavailable { body } => write!(f, "Server response: {body}"),
            Self::Status(status) => write!(f, "server returned HTTP error {status}"),
            Self::NoResponse => f.write_str("no response from server"),
            Self::NotJson => f.write_str("couldn't parse reply from server"),
            Self::NotAReply => f.write_str("expected reply to have result, error and id properties"),
            Self::Shape(sentence) | Self::Usage(sentence) => f.write_str(sentence),
            Self::Argument(error) => error.fmt(f),
            Self::Stdin { option } => write!(f, "-{option} specified but failed to read from standard input"),
        }
    }
}
