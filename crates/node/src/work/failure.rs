//! Why the node cannot continue: one sentence and an exit code. Never a verdict on a block.

use super::advice::advice;
use crate::electrum::ElectrumError;
use crate::esplora::EsploraError;
use crate::exit;
use crate::feed::FeedError;
use crate::serve::ServeError;
use lydian_chain::{ChainError, ReadError};
use lydian_coins::CoinsError;
use lydian_curve::ChooseError;
use lydian_disk::{DiskError, DiskErrorKind};
use lydian_engine::{EngineError, Inconsistency};
use lydian_index::IndexError;
use lydian_net::NetworkError;
use lydian_shared_index::WriterError;
use std::path::PathBuf;
use std::{fmt, io};

#[derive(Debug)]
pub(super) enum Failure {
    Engine(EngineError),
    Files(ReadError),
    /// The tip is more than two hours ahead of the clock.
    FutureTip,
    /// `-checkblocks` found an inconsistency.
    Inconsistent(Inconsistency),
    Thread(io::Error),
    /// The disk is full before the node starts.
    Space {
        path: PathBuf,
    },
    /// The RPC server could not be started.
    Serve(ServeError),
    /// An index that is required cannot be opened.
    Index(&'static str, IndexError),
    /// The notifications of `-zmqpub...` cannot be published.
    Zmq(lydian_zmq::StartError),
    /// The Electrum server could not be started.
    Electrum(ElectrumError),
    /// The Esplora server could not be started.
    Esplora(EsploraError),
    /// The feed could not be started.
    Feed(FeedError),
    /// The network could not be started.
    Network(NetworkError),
    /// `-sigengine` names an engine that this machine lacks.
    SignatureEngine {
        name: &'static str,
        error: ChooseError,
    },
    /// `-secondopinion` in a program without Bitcoin Core's code.
    NoSecondOpinion,
    /// The store of `-index` refuses this node's index.
    SharedIndex(WriterError),
}

impl Failure {
    pub(super) fn code(&self) -> u8 {
        match self {
            Failure::Serve(_)
            | Failure::Zmq(_)
            | Failure::Electrum(_)
            | Failure::Esplora(_)
            | Failure::Feed(_)
            | Failure::Network(_)
            | Failure::NoSecondOpinion
            | Failure::SharedIndex(_) => exit::SETTINGS,
            // An option asks for an index that cannot be built.
            Failure::Engine(EngineError::BeyondPruned { .. }) => exit::SETTINGS,
            // The path on the command line is wrong.
            Failure::Files(ReadError::NoBlockFiles { .. }) | Failure::SignatureEngine { .. } => exit::SETTINGS,
            Failure::Files(ReadError::Disk(error)) if error.kind == DiskErrorKind::NotFound => exit::SETTINGS,
            Failure::Engine(
                EngineError::Chain(ChainError::NewerFormat(_) | ChainError::OtherNetwork { .. } | ChainError::Owner(_))
                | EngineError::Coins(CoinsError::NewerFormat(_)),
            )
            | Failure::Index(_, IndexError::NewerFormat(_) | IndexError::OtherFile { .. }) => exit::DIRECTORY,
            Failure::Engine(_)
            | Failure::Files(_)
            | Failure::FutureTip
            | Failure::Inconsistent(_)
            | Failure::Index(..)
            | Failure::Space { .. }
            | Failure::Thread(_) => exit::DISK,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Engine(error) => {
                error.fmt(f)?;
                f.write_str(&advice(error))
            }
            Failure::Files(error) => error.fmt(f),
            // Core's words, including the line break before the last sentence.
            Failure::FutureTip => f.write_str(
                "The block database contains a block which appears to be from the future. This may be due to your computer's date and time being \
                 set incorrectly. Only rebuild the block database if you are sure that your computer's date and time are correct.\n\
                 Please restart with -reindex or -reindex-chainstate to recover.",
            ),
            Failure::Inconsistent(error) => {
                write!(f, "Corrupted block database detected: {error}. ")?;
                f.write_str("Please restart with -reindex or -reindex-chainstate to recover.")
            }
            Failure::Space { path } => {
                write!(f, "Error: Disk space is low for \"{}\"; free some space and start again", path.display())
            }
            Failure::Serve(error) => error.fmt(f),
            Failure::Zmq(error) => error.fmt(f),
            Failure::Electrum(error) => error.fmt(f),
            Failure::Esplora(error) => error.fmt(f),
            Failure::Feed(error) => error.fmt(f),
            Failure::Index(name, error) => write!(f, "{name}: {error}"),
            Failure::Network(error @ NetworkError::Bind { .. }) => {
                // Two messages, as in Core.
                write!(f, "{error}\nError: Failed to listen on any port. Use -listen=0 if you want this.")
            }
            Failure::Network(error) => error.fmt(f),
            Failure::Thread(error) => write!(f, "a thread could not be started: {error}"),
            Failure::SignatureEngine { name, error } => write!(f, "-sigengine={name}: {error}"),
            Failure::SharedIndex(error) => write!(f, "-index: {error}"),
            Failure::NoSecondOpinion => f.write_str(
                "-secondopinion needs the code of Bitcoin Core, which this program was built without; build it with: cargo build --release -p \
                 lydian-node --features second-opinion",
            ),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        Failure::Engine(error)
    }
}

impl From<DiskError> for Failure {
    fn from(error: DiskError) -> Failure {
        Failure::Engine(EngineError::Disk(error))
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        Failure::Files(error)
    }
}

impl From<Inconsistency> for Failure {
    fn from(error: Inconsistency) -> Failure {
        Failure::Inconsistent(error)
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        Failure::Serve(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Thread(error)
    }
}
