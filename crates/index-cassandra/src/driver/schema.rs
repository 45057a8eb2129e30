//! The keyspace, its tables, and the statements on them.
//!
//! Tables: `pages` with a partition for each page and its parts, `deltas` with a partition for each height, `blocks`
//! with one for the parts of the blocks of each height, `commits` with the one row that changes, `layout` with the
//! version of these tables. A keyspace of an earlier release has no `blocks`. Rows of `pages`, `deltas` and `blocks`
//! are written once, so that size-tiered compaction with precise Bloom filters reads about one file for each row. Rows
//! are small enough for one frame of the protocol.

use super::commits::NO_COMMIT;
use super::errors::{refused, store_error, unavailable};
use super::session::{Driver, Patience};
use crate::{ANSWER_MAX, CREATE_MAX, Settings};
use lydian_shared_index::StoreError;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::unprepared::Statement;
use std::collections::{BTreeSet, HashMap};
use tokio::time::timeout;

/// The version of the tables. Another one is refused.
const LAYOUT: i32 = 1;
/// The fewest copies with which a node may fail.
const REPLICATION_MIN: u32 = 2;
/// The only row of `commits` and of `layout`.
const ONLY: i32 = 0;

/// Name, columns and options of each table.
const TABLES: &[(&str, &str)] = &[
    (
        "pages",
        "(generation bigint, table_number smallint, page bigint, part bigint, value blob, \
         PRIMARY KEY ((generation, table_number, page), part)) WITH bloom_filter_fp_chance = 0.001 \
         AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}",
    ),
    (
        "deltas",
        "(series bigint, height bigint, hash blob, value blob, PRIMARY KEY ((series, height), hash)) \
         WITH bloom_filter_fp_chance = 0.001",
    ),
    ("commits", "(id int PRIMARY KEY, sequence bigint, fence bigint, value blob)"),
    ("layout", "(id int PRIMARY KEY, version int)"),
];

/// The table of blocks, which only `-storeblocks` needs.
const BLOCKS: (&str, &str) = (
    "blocks",
    "(series bigint, height bigint, hash blob, part bigint, value blob, \
     PRIMARY KEY ((series, height), hash, part)) WITH bloom_filter_fp_chance = 0.001 \
     AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 16}",
);

/// Prepared once for each keyspace.
pub(super) struct Statements {
    pub(super) select_page: PreparedStatement,
    pub(super) select_delta: PreparedStatement,
    pub(super) insert_page: PreparedStatement,
    pub(super) insert_delta: PreparedStatement,
    pub(super) delete_bucket: PreparedStatement,
    pub(super) delete_deltas: PreparedStatement,
    /// `None`: the keyspace has no table of blocks.
    pub(super) blocks: Option<BlockStatements>,
    pub(super) commit: PreparedStatement,
    pub(super) swap: PreparedStatement,
    pub(super) raise_fence: PreparedStatement,
}

/// Those of the table of blocks.
pub(super) struct BlockStatements {
    pub(super) select: PreparedStatement,
    pub(super) insert: PreparedStatement,
    pub(super) delete: PreparedStatement,
}

impl BlockStatements {
    fn prepare(driver: &Driver, keyspace: &str) -> Result<BlockStatements, StoreError> {
        let idempotent = |text: String| prepare(driver, text, true);
        let of_height = "series = ? AND height = ?";
        Ok(BlockStatements {
            select: idempotent(format!(
                "SELECT value FROM {keyspace}.blocks WHERE {of_height} AND hash = ? AND part = ?"
            ))?,
            insert: idempotent(format!(
                "INSERT INTO {keyspace}.blocks (series, height, hash, part, value) VALUES (?, ?, ?, ?, ?)"
            ))?,
            delete: idempotent(format!("DELETE FROM {keyspace}.blocks WHERE {of_height}"))?,
        })
    }
}

impl Statements {
    pub(super) fn prepare(driver: &Driver, keyspace: &str, has_blocks: bool) -> Result<Statements, StoreError> {
        let idempotent = |text: String| prepare(driver, text, true);
        let once = |text: String| prepare(driver, text, false);
        let of_page = "generation = ? AND table_number = ? AND page = ?";
        let of_height = "series = ? AND height = ?";
        Ok(Statements {
            select_page: idempotent(format!("SELECT value FROM {keyspace}.pages WHERE {of_page} AND part = ?"))?,
            select_delta: idempotent(format!("SELECT value FROM {keyspace}.deltas WHERE {of_height} AND hash = ?"))?,
            insert_page: idempotent(format!(
                "INSERT INTO {keyspace}.pages (generation, table_number, page, part, value) VALUES (?, ?, ?, ?, ?)"
            ))?,
            insert_delta: idempotent(format!(
                "INSERT INTO {keyspace}.deltas (series, height, hash, value) VALUES (?, ?, ?, ?)"
            ))?,
            delete_bucket: idempotent(format!("DELETE FROM {keyspace}.pages WHERE {of_page}"))?,
            delete_deltas: idempotent(format!("DELETE FROM {keyspace}.deltas WHERE {of_height}"))?,
            blocks: has_blocks.then(|| BlockStatements::prepare(driver, keyspace)).transpose()?,
            commit: idempotent(format!("SELECT sequence, fence, value FROM {keyspace}.commits WHERE id = {ONLY}"))?,
            swap: once(format!(
                "UPDATE {keyspace}.commits SET sequence = ?, value = ? WHERE id = {ONLY} IF sequence = ? AND fence = ?"
            ))?,
            raise_fence: once(format!(
                "UPDATE {keyspace}.commits SET fence = ? WHERE id = {ONLY} IF sequence = ? AND fence = ?"
            ))?,
        })
    }
}

fn prepare(driver: &Driver, text: String, is_idempotent: bool) -> Result<PreparedStatement, StoreError> {
    let session = driver.session();
    driver.block(async move {
        let late = || StoreError::TimedOut { reason: "a statement was not prepared".to_owned() };
        let prepared = timeout(ANSWER_MAX, session.prepare(text)).await.map_err(|_| late())?;
        let mut statement = prepared.map_err(|error| unavailable(error.to_string()))?;
        statement.set_is_idempotent(is_idempotent);
        statement.set_consistency(Consistency::Quorum);
        Ok(statement)
    })
}

/// Like [`crate::create`].
pub(crate) fn create(settings: &Settings, replication: u32) -> Result<(), StoreError> {
    let (name, keyspace) = (settings.address.to_string(), settings.address.keyspace());
    if replication < REPLICATION_MIN {
        return Err(single_copy(&name, replication));
    }
    let driver = Driver::connect(&settings.address, Patience { attempt: CREATE_MAX, total: CREATE_MAX })?;
    driver.check_clocks(settings.now, &name)?;
    let nodes = driver.session().get_cluster_state().get_nodes_info().len();
    if u32::try_from(nodes).is_ok_and(|nodes| nodes < replication) {
        return Err(refused(format!("{name}: the cluster has {nodes} nodes, too few for {replication} copies")));
    }
    let strategy = format!("{{'class': 'NetworkTopologyStrategy', 'replication_factor': {replication}}}");
    change(&driver, format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {strategy}"))?;
    for (table, columns) in TABLES.iter().chain([&BLOCKS]) {
        change(&driver, format!("CREATE TABLE IF NOT EXISTS {keyspace}.{table} {columns}"))?;
    }
    let row = format!("(id, sequence, fence) VALUES ({ONLY}, {NO_COMMIT}, 0) IF NOT EXISTS");
    change(&driver, format!("INSERT INTO {keyspace}.commits {row}"))?;
    run(&driver, format!("INSERT INTO {keyspace}.layout (id, version) VALUES ({ONLY}, ?)"), (LAYOUT,))?;
    check(&driver, keyspace, &name).map(|_| ())
}

/// Refuses a keyspace that is not one of an index, or that keeps a single copy. Returns whether it has the table of
/// blocks.
pub(super) fn check(driver: &Driver, keyspace: &str, name: &str) -> Result<bool, StoreError> {
    let copies = replication(driver, keyspace, name)?;
    if copies < REPLICATION_MIN {
        return Err(single_copy(name, copies));
    }
    let tables = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?";
    let rows = run(driver, tables.to_owned(), (keyspace.to_owned(),))?.into_rows_result();
    let rows = rows.map_err(|error| refused(error.to_string()))?;
    let names = rows.rows::<(String,)>().map_err(|error| refused(error.to_string()))?;
    let found: BTreeSet<String> = names.flatten().map(|(name,)| name).collect();
    if let Some((missing, _)) = TABLES.iter().find(|(table, _)| !found.contains(*table)) {
        return Err(refused(format!("{name}: the keyspace has no table `{missing}`: it is not one of an index")));
    }
    let layout = run(driver, format!("SELECT version FROM {keyspace}.layout WHERE id = {ONLY}"), ())?;
    let layout = layout.into_rows_result().map_err(|error| refused(error.to_string()))?;
    match layout.maybe_first_row::<(i32,)>() {
        Ok(Some((LAYOUT,))) => Ok(found.contains(BLOCKS.0)),
        Ok(Some((other,))) => Err(refused(format!("{name}: tables of version {other}, expected {LAYOUT}"))),
        Ok(None) => Err(refused(format!("{name}: the keyspace was not created completely: create it again"))),
        Err(error) => Err(refused(format!("{name}: {error}"))),
    }
}

/// Copies of each value, in the datacenter with the fewest.
pub(super) fn replication(driver: &Driver, keyspace: &str, name: &str) -> Result<u32, StoreError> {
    let statement = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let rows = run(driver, statement.to_owned(), (keyspace.to_owned(),))?.into_rows_result();
    let rows = rows.map_err(|error| refused(error.to_string()))?;
    let row = rows.maybe_first_row::<(HashMap<String, String>,)>();
    let (options,) = row
        .map_err(|error| refused(error.to_string()))?
        .ok_or_else(|| refused(format!("{name}: the keyspace does not exist: `lydian index load` creates it")))?;
    copies(&options).ok_or_else(|| refused(format!("{name}: unknown replication {options:?}")))
}

/// `{'class': '...NetworkTopologyStrategy', 'dc1': '3'}`, or `{'class': '...SimpleStrategy', 'replication_factor':
/// '3'}`.
fn copies(options: &HashMap<String, String>) -> Option<u32> {
    let counts = options.iter().filter(|(name, _)| *name != "class");
    counts.map(|(_, count)| count.parse::<u32>().ok()).collect::<Option<Vec<_>>>()?.into_iter().min()
}

fn single_copy(name: &str, copies: u32) -> StoreError {
    refused(format!("{name}: replication is {copies}, so that one node that fails loses the index: set it to 3"))
}

/// Runs an idempotent statement.
fn run<V: SerializeRow + Send + Sync + 'static>(
    driver: &Driver,
    text: String,
    values: V,
) -> Result<QueryResult, StoreError> {
    execute(driver, text, values, true)
}

/// Creates something: never on two nodes at the same time, which could disagree about the result.
fn change(driver: &Driver, text: String) -> Result<(), StoreError> {
    execute(driver, text, (), false).map(|_| ())
}

fn execute<V: SerializeRow + Send + Sync + 'static>(
    driver: &Driver,
    text: String,
    values: V,
    is_idempotent: bool,
) -> Result<QueryResult, StoreError> {
    let session = driver.session();
    driver.block(async move {
        let mut statement = Statement::new(text);
        statement.set_is_idempotent(is_idempotent);
        session.query_unpaged(statement, values).await.map_err(|error| store_error(&error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_datacenter_with_the_fewest_copies_counts() {
        let options = |pairs: &[(&str, &str)]| {
            copies(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        let class = ("class", "org.apache.cassandra.locator.NetworkTopologyStrategy");
        assert_eq!(options(&[class, ("a", "3"), ("b", "1")]), Some(1));
        assert_eq!(options(&[("replication_factor", "3"), class]), Some(3));
        assert_eq!((options(&[class]), options(&[class, ("a", "3/1")])), (None, None));
    }
}
