//! What the errors of the driver mean for the index.
//!
//! Input: an error of `scylla`. Output: a [`StoreError`] whose text is one sentence, and for a compare-and-set whether
//! it may have been done. An error that is not known here may have been done, and may pass.

use lydian_shared_index::StoreError;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

/// What became of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It did not leave this process.
    NotSent,
    /// The store refused it, and did nothing.
    Refused,
    /// It may have been done, or may be done later.
    Unknown,
}

pub(super) fn outcome(error: &ExecutionError) -> Outcome {
    match error {
        ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_) => Outcome::NotSent,
        ExecutionError::BadQuery(_) | ExecutionError::PrepareError(_) | ExecutionError::UseKeyspaceError(_) => {
            Outcome::Refused
        }
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, _)) if is_refusal(error) => {
            Outcome::Refused
        }
        ExecutionError::LastAttemptError(
            RequestAttemptError::SerializationError(_)
            | RequestAttemptError::CqlRequestSerialization(_)
            | RequestAttemptError::UnableToAllocStreamId,
        ) => Outcome::NotSent,
        // A coordinator that sees too few replicas may say so after it has sent a proposal to one.
        _ => Outcome::Unknown,
    }
}

/// Errors that a repetition meets again.
fn is_refusal(error: &DbError) -> bool {
    matches!(
        error,
        DbError::SyntaxError
            | DbError::Invalid
            | DbError::AlreadyExists { .. }
            | DbError::AuthenticationError
            | DbError::Unauthorized
            | DbError::ConfigError
            | DbError::ProtocolError
    )
}

pub(super) fn store_error(error: &ExecutionError) -> StoreError {
    let reason = error.to_string();
    match error {
        _ if outcome(error) == Outcome::Refused => StoreError::Refused { reason },
        ExecutionError::RequestTimeout(_)
        | ExecutionError::LastAttemptError(RequestAttemptError::DbError(
            DbError::ReadTimeout { .. } | DbError::WriteTimeout { .. } | DbError::Overloaded,
            _,
        )) => StoreError::TimedOut { reason },
        _ => StoreError::Unavailable { reason },
    }
}

pub(super) fn refused(reason: String) -> StoreError {
    StoreError::Refused { reason }
}

pub(super) fn unavailable(reason: String) -> StoreError {
    StoreError::Unavailable { reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scylla::statement::Consistency;
    use std::time::Duration;

    fn of_database(error: DbError) -> ExecutionError {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, "why".to_owned()))
    }

    #[test]
    fn what_may_have_been_done_is_unknown() {
        let unavailable = DbError::Unavailable { consistency: Consistency::Quorum, required: 2, alive: 1 };
        let cases = [
            (ExecutionError::EmptyPlan, Outcome::NotSent, true),
            (ExecutionError::RequestTimeout(Duration::from_secs(2)), Outcome::Unknown, true),
            (of_database(unavailable), Outcome::Unknown, true),
            (of_database(DbError::Overloaded), Outcome::Unknown, true),
            (of_database(DbError::ServerError), Outcome::Unknown, true),
            (of_database(DbError::Invalid), Outcome::Refused, false),
            (of_database(DbError::Unauthorized), Outcome::Refused, false),
        ];
        for (error, expected, may_pass) in cases {
            assert_eq!((outcome(&error), store_error(&error).may_pass()), (expected, may_pass), "{error}");
        }
    }

    #[test]
    fn time_outs_are_told_from_stores_that_are_down() {
        let timed_out = store_error(&ExecutionError::RequestTimeout(Duration::from_secs(2)));
        assert!(matches!(timed_out, StoreError::TimedOut { .. }), "{timed_out}");
        assert!(matches!(store_error(&ExecutionError::EmptyPlan), StoreError::Unavailable { .. }));
    }
}
