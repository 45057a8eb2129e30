//! The session: connections to all nodes, the threads that serve them, and how long a call may take.
//!
//! Input: an address, bound statements. Output: results. An idempotent request is sent to a second and third node if
//! the first does not answer soon, and is repeated until its time is over; others are sent once. A node that stops
//! answering is noticed within three seconds, and left out then. Must never: block a thread of another runtime.

use super::errors::{Outcome, outcome, refused, store_error, unavailable};
use crate::Address;
use lydian_shared_index::StoreError;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::ExecutionError;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::policies::speculative_execution::SimpleSpeculativeExecutionPolicy;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::bound::BoundStatement;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::unprepared::Statement;
use scylla::statement::{Consistency, SerialConsistency};
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout};

/// How long one attempt may take, on whatever nodes it is tried.
pub(super) const ATTEMPT_MAX: Duration = Duration::from_secs(2);
/// Answers take a few milliseconds; after this time the same request goes to the next node, twice.
const NEXT_NODE_AFTER: Duration = Duration::from_millis(250);
const NEXT_NODES: usize = 2;
/// Between attempts; doubled each time.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// A node is asked for a sign of life this often, and is left out if there is none for [`KEEPALIVE_MAX`].
const KEEPALIVE: Duration = Duration::from_secs(1);
const KEEPALIVE_MAX: Duration = Duration::from_secs(2);
/// A clock that is further off is refused: the store orders removals, and proposals of commit rows, by time.
pub(super) const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(10);
const THREADS: usize = 2;

/// How long requests may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// One attempt.
    pub(super) attempt: Duration,
    /// All attempts of a call.
    pub(super) total: Duration,
}

/// The session and its threads.
pub(super) struct Driver {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    requests: Requests,
}

/// What a task needs to send requests; cheap to clone.
#[derive(Clone)]
pub(super) struct Requests {
    session: Arc<Session>,
    patience: Patience,
}

impl Driver {
    pub(super) fn connect(address: &Address, patience: Patience) -> Result<Driver, StoreError> {
        let mut threads = Builder::new_multi_thread();
        threads.worker_threads(THREADS).thread_name("cassandra").enable_all();
        let runtime = threads.build().map_err(|error| unavailable(format!("threads of the driver: {error}")))?;
        let speculative =
            SimpleSpeculativeExecutionPolicy { max_retry_count: NEXT_NODES, retry_interval: NEXT_NODE_AFTER };
        let profile = ExecutionProfile::builder()
            .consistency(Consistency::Quorum)
            .serial_consistency(Some(SerialConsistency::Serial))
            .request_timeout(Some(patience.attempt))
            .speculative_execution_policy(Some(Arc::new(speculative)))
            .build();
        let builder = SessionBuilder::new()
            .known_nodes(address.hosts().iter().map(ToString::to_string))
            .keyspaces_to_fetch([address.keyspace()])
            .default_execution_profile_handle(profile.into_handle())
            .connection_timeout(CONNECT_MAX)
            .hostname_resolution_timeout(Some(CONNECT_MAX))
            .keepalive_interval(KEEPALIVE)
            .keepalive_timeout(KEEPALIVE_MAX)
            .tcp_nodelay(true);
        let name = address.to_string();
        let session = match wait_for(&runtime, async move {
            match timeout(crate::ANSWER_MAX, builder.build()).await {
                Ok(Ok(session)) => Ok(session),
                Ok(Err(error)) => Err(unavailable(format!("{name}: {error}"))),
                Err(_) => Err(StoreError::TimedOut { reason: format!("{name}: no host answers") }),
            }
        }) {
            Ok(session) => session,
            Err(error) => {
                // Otherwise a thread that resolves the name of a host would be waited for.
                runtime.shutdown_background();
                return Err(error);
            }
        };
        Ok(Driver { runtime: Some(runtime), requests: Requests { session: Arc::new(session), patience } })
    }

    pub(super) fn requests(&self) -> Requests {
        self.requests.clone()
    }

    pub(super) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.requests.session)
    }

    /// Runs a future on the threads of the driver, and waits for it.
    pub(super) fn block<T, F>(&self, future: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        match &self.runtime {
            Some(runtime) => wait_for(runtime, future),
            None => Err(unavailable("the driver has ended".to_owned())),
        }
    }

    /// Compares the clocks of the nodes that are up with the time of the caller.
    pub(super) fn check_clocks(&self, now: fn() -> Duration, name: &str) -> Result<(), StoreError> {
        let (session, name) = (self.session(), name.to_owned());
        self.block(async move {
            for node in session.get_cluster_state().get_nodes_info().iter().filter(|node| node.is_connected()) {
                let mut statement = Statement::new("SELECT toUnixTimestamp(now()) FROM system.local");
                let target = NodeIdentifier::Node(Arc::clone(node));
                statement.set_load_balancing_policy(Some(SingleTargetLoadBalancingPolicy::new(target, None)));
                statement.set_consistency(Consistency::One);
                let before = now();
                // A node that went down meanwhile has no clock to compare.
                let Ok(result) = session.query_unpaged(statement, ()).await else { continue };
                let after = now();
                let rows = result.into_rows_result().map_err(|error| refused(error.to_string()))?;
                let (theirs,) = rows.first_row::<(i64,)>().map_err(|error| refused(error.to_string()))?;
                let theirs = Duration::from_millis(u64::try_from(theirs).unwrap_or(0));
                if let Some(difference) = clock_fault(before, theirs, after) {
                    let text = "seconds off the clock of this machine: set both by NTP";
                    return Err(refused(format!("{name}: the clock of {} is {difference} {text}", node.address)));
                }
            }
            Ok(())
        })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Dropping a runtime waits for its threads, which is not allowed on a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Requests {
    /// One attempt of a request that may not be repeated.
    pub(super) async fn attempt(&self, statement: &BoundStatement) -> Result<QueryResult, ExecutionError> {
        self.session.execute_bound_unpaged(statement).await
    }

    /// Repeats an idempotent request until it succeeds, is refused, or has no time for another attempt.
    pub(super) async fn run(&self, statement: &BoundStatement) -> Result<QueryResult, StoreError> {
        let start = Instant::now();
        let mut pause = PAUSE_FIRST;
        loop {
            let error = match self.attempt(statement).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            let needed = start.elapsed() + pause + self.patience.attempt;
            if outcome(&error) == Outcome::Refused || needed > self.patience.total {
                return Err(store_error(&error));
            }
            sleep(pause).await;
            pause *= 2;
        }
    }
}

fn wait_for<T, F>(runtime: &Runtime, future: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    let (sender, receiver) = sync_channel(1);
    runtime.spawn(async move {
        // The receiver waits below.
        let _ = sender.send(future.await);
    });
    receiver.recv().unwrap_or_else(|_| Err(unavailable("the driver failed, see the log".to_owned())))
}

/// A statement with its values, ready to be sent.
pub(super) fn bind(statement: &PreparedStatement, values: &impl SerializeRow) -> Result<BoundStatement, StoreError> {
    statement.clone().bind(values).map_err(|error| refused(error.to_string()))
}

/// Cassandra's integers are signed. Our numbers count up from 1, so that a larger one is an error of the caller.
pub(super) fn signed(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| refused(format!("{number} is above 2^63-1, the largest number of the store")))
}

pub(super) fn unsigned(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|_| refused(format!("the sequence of the commit row is {number}")))
}

/// The difference in seconds, if the other clock was not within the limit while it was asked.
fn clock_fault(before: Duration, theirs: Duration, after: Duration) -> Option<u64> {
    let difference = before.saturating_sub(theirs).max(theirs.saturating_sub(after));
    (difference > CLOCK_DIFFERENCE_MAX).then_some(difference.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_question_itself_is_no_difference() {
        let fault = |before, theirs, after| {
            clock_fault(Duration::from_secs(before), Duration::from_secs(theirs), Duration::from_secs(after))
        };
        assert_eq!((fault(100, 150, 200), fault(100, 90, 200), fault(100, 210, 200)), (None, None, None));
        assert_eq!((fault(100, 89, 200), fault(100, 211, 200)), (Some(11), Some(11)));
    }
}
