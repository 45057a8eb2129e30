//! [`Fault`]: an error of the protocol.

use lydian_query::{CallError, QueryError};

/// Code and message of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: i32,
    pub(crate) message: String,
}

/// The codes of JSON-RPC 2.0 and of the Electrum protocol.
pub(crate) mod code {
    pub(crate) const PARSE: i32 = -32700;
    pub(crate) const INVALID_REQUEST: i32 = -32600;
    pub(crate) const UNKNOWN_METHOD: i32 = -32601;
    pub(crate) const INVALID_PARAMS: i32 = -32602;
    pub(crate) const INTERNAL: i32 = -32603;
    pub(crate) const EXCESSIVE: i32 = -101;
    pub(crate) const BAD_REQUEST: i32 = 1;
    pub(crate) const DAEMON: i32 = 2;
}

impl Fault {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into() }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Fault {
        Fault::new(code::BAD_REQUEST, message)
    }

    pub(crate) fn params(message: impl Into<String>) -> Fault {
        Fault::new(code::INVALID_PARAMS, message)
    }
}

impl From<QueryError> for Fault {
    fn from(error: QueryError) -> Fault {
        let code = match error {
            QueryError::Failed(_) => code::INTERNAL,
            QueryError::NoTransaction(_) => code::DAEMON,
            QueryError::TooManyFetches { .. } | QueryError::FetchRefused(_) => code::EXCESSIVE,
            QueryError::NoIndex
            | QueryError::IndexBehind { .. }
            | QueryError::NoHeight { .. }
            | QueryError::NotInBlock { .. }
            | QueryError::NoPosition { .. }
            | QueryError::ProofHeight { .. }
            | QueryError::Pruned(_)
            | QueryError::NotFetched { .. }
            | QueryError::FetchesBusy { .. }
            | QueryError::Moving
            | QueryError::Stopping => code::BAD_REQUEST,
        };
        Fault::new(code, error.to_string())
    }
}

impl From<CallError> for Fault {
    fn from(error: CallError) -> Fault {
        Fault::new(code::DAEMON, format!("daemon error: {} (code {})", error.message, error.code))
    }
}
