//! The driver: statements for every method of [`Store`], on a session with a small runtime of its own.
//!
//! Input: keys and values. Output: what a quorum of replicas acknowledged, or an error that says whether to try again.
//! Cost: one connection to each node, two threads; the values of a batch are copied once. A call may be made from any
//! thread, also from one that drives another runtime. Must never: report a compare-and-set that timed out as applied or
//! lost, or try it a second time.

mod commits;
mod errors;
mod schema;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use schema::create;

use crate::{ANSWER_MAX, Settings};
use commits::Commits;
use errors::refused;
use futures_util::future::try_join_all;
use lydian_shared_index::{
    BlockHeight, BlockKey, Bucket, CommitRead, DeltaHeight, DeltaKey, Key, Keyspace, PageKey, Partition, Replicas,
    Store, StoreError, StoredCommit, Swap,
};
use schema::{BlockStatements, Statements};
use scylla::response::query_result::QueryResult;
use scylla::statement::Consistency;
use scylla::statement::bound::BoundStatement;
use session::{ATTEMPT_MAX, Driver, Patience, bind, signed};
use std::fmt;
use std::sync::Arc;
use tokio::time::timeout;

/// The keyspace of an index in Cassandra.
pub struct CassandraStore {
    driver: Driver,
    statements: Arc<Statements>,
    name: String,
    keyspace: String,
    commits: Commits,
}

impl fmt::Debug for CassandraStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CassandraStore").field("name", &self.name).finish_non_exhaustive()
    }
}

impl CassandraStore {
    /// Like [`crate::open`].
    pub fn open(settings: &Settings) -> Result<CassandraStore, StoreError> {
        let patience = Patience { attempt: ATTEMPT_MAX, total: ANSWER_MAX };
        let (name, keyspace) = (settings.address.to_string(), settings.address.keyspace().to_owned());
        let driver = Driver::connect(&settings.address, patience)?;
        let has_blocks = schema::check(&driver, &keyspace, &name)?;
        driver.check_clocks(settings.now, &name)?;
        let statements = Arc::new(Statements::prepare(&driver, &keyspace, has_blocks)?);
        let commits = Commits::new(driver.requests(), Arc::clone(&statements), ATTEMPT_MAX);
        Ok(CassandraStore { driver, statements, commits, name, keyspace })
    }

    /// Reads values from all replicas, which writes each value to the replicas that lack it; returns how many values no
    /// replica has. It fails while a replica is down.
    pub fn repair(&self, keys: &[Key]) -> Result<usize, StoreError> {
        let values = self.select(keys, Consistency::All)?;
        Ok(values.iter().filter(|value| value.is_none()).count())
    }

    fn select(&self, keys: &[Key], consistency: Consistency) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let bound = keys.iter().map(|key| self.statements.select(key)).collect::<Result<Vec<_>, _>>()?;
        let results = self.run_all(bound, consistency)?;
        results.into_iter().map(first_value).collect()
    }

    /// Runs idempotent statements at the same time; the first that fails for good ends them all.
    fn run_all(&self, bound: Vec<BoundStatement>, consistency: Consistency) -> Result<Vec<QueryResult>, StoreError> {
        let requests = self.driver.requests();
        self.driver.block(async move {
            try_join_all(bound.into_iter().map(|mut statement| {
                statement.set_consistency(consistency);
                let requests = requests.clone();
                async move { requests.run(&statement).await }
            }))
            .await
        })
    }
}

impl Store for CassandraStore {
    fn keyspace(&self) -> Result<Keyspace, StoreError> {
        let replication = schema::replication(&self.driver, &self.keyspace, &self.name)?;
        Ok(Keyspace { name: self.name.clone(), replication })
    }

    fn read(&self, keys: &[Key], replicas: Replicas) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let consistency = match replicas {
            Replicas::One => Consistency::LocalOne,
            Replicas::Quorum => Consistency::Quorum,
        };
        self.select(keys, consistency)
    }

    fn write(&self, values: &[(Key, Vec<u8>)]) -> Result<(), StoreError> {
        let insert = |(key, value): &(Key, Vec<u8>)| self.statements.insert(key, value);
        let bound = values.iter().map(insert).collect::<Result<Vec<_>, _>>()?;
        self.run_all(bound, Consistency::Quorum).map(|_| ())
    }

    fn remove(&self, partitions: &[Partition]) -> Result<(), StoreError> {
        let bound = partitions.iter().map(|one| self.statements.delete(one)).collect::<Result<Vec<_>, _>>()?;
        self.run_all(bound, Consistency::Quorum).map(|_| ())
    }

    fn commit(&self, read: CommitRead) -> Result<Option<StoredCommit>, StoreError> {
        let commits = self.commits.clone();
        self.driver.block(async move {
            let late = || StoreError::TimedOut { reason: "the commit row".to_owned() };
            timeout(ANSWER_MAX, commits.read(read)).await.unwrap_or_else(|_| Err(late()))
        })
    }

    fn swap(&self, expected: Option<u64>, new: &StoredCommit) -> Result<Swap, StoreError> {
        let (commits, new) = (self.commits.clone(), new.clone());
        self.driver.block(async move {
            // Whatever was sent may still be applied.
            timeout(ANSWER_MAX, commits.swap(expected, new)).await.unwrap_or(Ok(Swap::Unknown))
        })
    }
}

impl Statements {
    fn blocks(&self) -> Result<&BlockStatements, StoreError> {
        let reason = "the keyspace has no table `blocks`: `lydian index load` adds it, with any data directory";
        self.blocks.as_ref().ok_or_else(|| refused(reason.to_owned()))
    }

    fn select(&self, key: &Key) -> Result<BoundStatement, StoreError> {
        match key {
            Key::Page(key) => bind(&self.select_page, &page_values(key)?),
            Key::Delta(key) => bind(&self.select_delta, &delta_values(key)?),
            Key::Block(key) => bind(&self.blocks()?.select, &block_values(key)?),
        }
    }

    fn insert(&self, key: &Key, value: &[u8]) -> Result<BoundStatement, StoreError> {
        match key {
            Key::Page(key) => {
                let (generation, table, page, part) = page_values(key)?;
                bind(&self.insert_page, &(generation, table, page, part, value))
            }
            Key::Delta(key) => {
                let (series, height, hash) = delta_values(key)?;
                bind(&self.insert_delta, &(series, height, hash, value))
            }
            Key::Block(key) => {
                let (series, height, hash, part) = block_values(key)?;
                bind(&self.blocks()?.insert, &(series, height, hash, part, value))
            }
        }
    }

    fn delete(&self, partition: &Partition) -> Result<BoundStatement, StoreError> {
        match partition {
            Partition::Bucket(bucket) => bind(&self.delete_bucket, &bucket_values(bucket)?),
            Partition::Deltas(at) => bind(&self.delete_deltas, &height_values(at)?),
            Partition::Blocks(at) => bind(&self.blocks()?.delete, &block_height_values(at)?),
        }
    }
}

fn bucket_values(bucket: &Bucket) -> Result<(i64, i16, i64), StoreError> {
    Ok((signed(bucket.generation)?, bucket.table as i16, i64::from(bucket.page)))
}

fn page_values(key: &PageKey) -> Result<(i64, i16, i64, i64), StoreError> {
    let (generation, table, page) = bucket_values(&key.bucket)?;
    Ok((generation, table, page, i64::from(key.part)))
}

fn height_values(at: &DeltaHeight) -> Result<(i64, i64), StoreError> {
    Ok((signed(at.series)?, i64::from(at.height)))
}

fn delta_values(key: &DeltaKey) -> Result<(i64, i64, &[u8]), StoreError> {
    let (series, height) = height_values(&key.at)?;
    Ok((series, height, key.hash.0.as_slice()))
}

fn block_height_values(at: &BlockHeight) -> Result<(i64, i64), StoreError> {
    Ok((signed(at.series)?, i64::from(at.height)))
}

fn block_values(key: &BlockKey) -> Result<(i64, i64, &[u8], i64), StoreError> {
    let (series, height) = block_height_values(&key.at)?;
    Ok((series, height, key.hash.0.as_slice(), i64::from(key.part)))
}

/// The value column of the row, if there is one.
fn first_value(result: QueryResult) -> Result<Option<Vec<u8>>, StoreError> {
    let rows = result.into_rows_result().map_err(|error| refused(error.to_string()))?;
    let row = rows.maybe_first_row::<(Vec<u8>,)>().map_err(|error| refused(error.to_string()))?;
    Ok(row.map(|(value,)| value))
}
