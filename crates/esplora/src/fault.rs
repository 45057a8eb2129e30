//! [`Fault`]: why a request has no answer: a status code and a sentence.

use axum::http::StatusCode;
use lydian_query::QueryError;

/// Status and text of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: StatusCode,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn bad(message: impl Into<String>) -> Fault {
        Fault { code: StatusCode::BAD_REQUEST, message: message.into() }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Fault {
        Fault { code: StatusCode::NOT_FOUND, message: message.into() }
    }

    pub(crate) fn unprocessable(message: impl Into<String>) -> Fault {
        Fault { code: StatusCode::UNPROCESSABLE_ENTITY, message: message.into() }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Fault {
        Fault { code: StatusCode::INTERNAL_SERVER_ERROR, message: message.into() }
    }
}

impl From<QueryError> for Fault {
    fn from(error: QueryError) -> Fault {
        let code = match error {
            QueryError::NoTransaction(_) | QueryError::NoHeight { .. } | QueryError::Pruned(_) => StatusCode::NOT_FOUND,
            QueryError::NotInBlock { .. } | QueryError::NoPosition { .. } | QueryError::ProofHeight { .. } => {
                StatusCode::BAD_REQUEST
            }
            QueryError::NoIndex
            | QueryError::IndexBehind { .. }
            | QueryError::NotFetched { .. }
            | QueryError::FetchesBusy { .. }
            | QueryError::TooManyFetches { .. }
            | QueryError::FetchRefused(_)
            | QueryError::Moving
            | QueryError::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            QueryError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        // Clients look for these words.
        let message = match error {
            QueryError::NoTransaction(txid) => format!("Transaction not found: {txid}"),
            _ => error.to_string(),
        };
        Fault { code, message }
    }
}
