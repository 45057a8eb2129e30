//! The commit row: compare-and-set, and a fence against requests that come too late.
//!
//! A node that was paused runs a request that it finds in its socket when it goes on, however long ago the client gave
//! up. So a linearizable read alone does not tell what becomes of a swap without an answer. The row has a second
//! column, `fence`, that every swap compares too. A [`CommitRead::Serial`] ends with a compare-and-set of the fence:
//! once that is applied, no earlier swap can be.
//!
//! Rows: sequence 0 means that there is no commit row yet; the keyspace is created with it. Cost of a swap: one
//! compare-and-set, four round trips between the nodes.

use super::errors::{Outcome, outcome, refused, store_error, unavailable};
use super::schema::Statements;
use super::session::{Requests, bind, signed, unsigned};
use lydian_shared_index::{CommitRead, StoreError, StoredCommit, Swap};
use scylla::response::query_result::QueryResult;
use scylla::statement::Consistency;
use scylla::statement::bound::BoundStatement;
use scylla::value::{CqlValue, Row};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The sequence of the row before the first swap.
pub(super) const NO_COMMIT: i64 = 0;
const UNKNOWN_FENCE: i64 = -1;
/// Other writers change the row or its fence meanwhile; more than a few times in a row is a fault of the operator.
const ROUNDS: usize = 4;

/// The row of one keyspace.
#[derive(Clone)]
pub(super) struct Commits {
    requests: Requests,
    statements: Arc<Statements>,
    /// The fence when it was last read, for the next swap.
    fence: Arc<AtomicI64>,
    /// How long a compare-and-set may take before its end is unknown.
    pub(super) swap_max: Duration,
}

/// The row as it is in the table.
struct Found {
    sequence: i64,
    fence: i64,
    value: Vec<u8>,
}

impl Found {
    fn commit(self) -> Result<Option<StoredCommit>, StoreError> {
        let Found { sequence, value, .. } = self;
        let commit = |sequence| StoredCommit { sequence, value };
        (sequence != NO_COMMIT).then(|| unsigned(sequence).map(commit)).transpose()
    }
}

impl Commits {
    pub(super) fn new(requests: Requests, statements: Arc<Statements>, swap_max: Duration) -> Commits {
        Commits { requests, statements, fence: Arc::new(AtomicI64::new(UNKNOWN_FENCE)), swap_max }
    }

    pub(super) async fn read(&self, read: CommitRead) -> Result<Option<StoredCommit>, StoreError> {
        match read {
            CommitRead::Quorum => self.select(Consistency::Quorum).await?.commit(),
            CommitRead::Serial => self.settle().await,
        }
    }

    /// Reads the row, and raises its fence.
    async fn settle(&self) -> Result<Option<StoredCommit>, StoreError> {
        let mut last = unavailable("other writers change the commit row all the time".to_owned());
        for _ in 0..ROUNDS {
            let found = self.select(Consistency::Serial).await?;
            let raise = bind(&self.statements.raise_fence, &(found.fence + 1, found.sequence, found.fence))?;
            match self.compare_and_set(raise).await {
                Ok(true) => {
                    self.fence.store(found.fence + 1, Ordering::Relaxed);
                    return found.commit();
                }
                Ok(false) => {}
                // Whether it was applied or not: the next round raises the fence again.
                Err(Failure { outcome: Outcome::Unknown, error }) => last = error,
                Err(Failure { error, .. }) => return Err(error),
            }
        }
        Err(last)
    }

    pub(super) async fn swap(&self, expected: Option<u64>, new: StoredCommit) -> Result<Swap, StoreError> {
        let expected = expected.map_or(Ok(NO_COMMIT), signed)?;
        let sequence = signed(new.sequence)?;
        let mut fence = self.fence.load(Ordering::Relaxed);
        for _ in 0..ROUNDS {
            if fence != UNKNOWN_FENCE {
                let swap = self.swap_statement(expected, fence, sequence, &new.value)?;
                match self.compare_and_set(swap).await {
                    Ok(true) => return Ok(Swap::Applied),
                    Ok(false) => {}
                    Err(Failure { outcome: Outcome::Unknown, .. }) => return Ok(Swap::Unknown),
                    Err(Failure { error, .. }) => return Err(error),
                }
            }
            let found = self.select(Consistency::Serial).await?;
            if found.sequence != expected {
                return found.commit().map(Swap::Lost);
            }
            // Only the fence differed, so that nothing was applied.
            fence = found.fence;
            self.fence.store(fence, Ordering::Relaxed);
        }
        Err(unavailable("other writers raise the fence of the commit row all the time".to_owned()))
    }

    #[cfg(test)]
    pub(super) fn fence(&self) -> i64 {
        self.fence.load(Ordering::Relaxed)
    }

    pub(super) fn swap_statement(
        &self,
        expected: i64,
        fence: i64,
        sequence: i64,
        value: &[u8],
    ) -> Result<BoundStatement, StoreError> {
        bind(&self.statements.swap, &(sequence, value, expected, fence))
    }

    async fn select(&self, consistency: Consistency) -> Result<Found, StoreError> {
        let mut bound = bind(&self.statements.commit, &())?;
        bound.set_consistency(consistency);
        // Two linearizable reads at the same time would hinder each other.
        bound.set_is_idempotent(consistency != Consistency::Serial);
        let rows = self.requests.run(&bound).await?.into_rows_result().map_err(|error| refused(error.to_string()))?;
        let row = rows.maybe_first_row::<(i64, i64, Option<Vec<u8>>)>().map_err(|error| refused(error.to_string()))?;
        let missing = || refused("the row of the table `commits` is missing: create the keyspace again".to_owned());
        let (sequence, fence, value) = row.ok_or_else(missing)?;
        Ok(Found { sequence, fence, value: value.unwrap_or_default() })
    }

    /// One attempt, because a second one could lose against the first. Returns whether it was applied.
    pub(super) async fn compare_and_set(&self, mut statement: BoundStatement) -> Result<bool, Failure> {
        statement.set_request_timeout(Some(self.swap_max));
        match self.requests.attempt(&statement).await {
            // An answer that cannot be read tells nothing.
            Ok(result) => is_applied(result).map_err(|error| Failure { outcome: Outcome::Unknown, error }),
            Err(error) => Err(Failure { outcome: outcome(&error), error: store_error(&error) }),
        }
    }
}

/// A compare-and-set without an answer.
#[derive(Debug)]
pub(super) struct Failure {
    outcome: Outcome,
    error: StoreError,
}

/// The column `[applied]`, which is the first; a compare-and-set that was lost has the current columns after it.
fn is_applied(result: QueryResult) -> Result<bool, StoreError> {
    let rows = result.into_rows_result().map_err(|error| refused(error.to_string()))?;
    let row = rows.first_row::<Row>().map_err(|error| refused(error.to_string()))?;
    match row.columns.first() {
        Some(Some(CqlValue::Boolean(is_applied))) => Ok(*is_applied),
        _ => Err(refused("the answer to a compare-and-set lacks the column [applied]".to_owned())),
    }
}
