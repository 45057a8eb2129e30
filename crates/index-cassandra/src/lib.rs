//! Apache Cassandra as the store of the shared index: the driver behind [`lydian_shared_index::Store`].
//!
//! Input: an address, `cassandra://HOST[:PORT],HOST/KEYSPACE`. Output: a store whose calls block, or a refusal of one
//! sentence. The driver is linked only with the cargo feature `driver` (`cassandra` in `lydian-node`): the crate
//! `scylla` and what it needs, with a small runtime of its own. ScyllaDB speaks the same protocol and should work with
//! the same code; it is not tested.
//!
//! Invariants: every call returns within [`ANSWER_MAX`]; a time-out of a compare-and-set is reported as unknown, never
//! as applied or lost. No clock but that of the caller, and no file.

#![forbid(unsafe_code)]

mod address;
#[cfg(feature = "driver")]
mod driver;

pub use address::{Address, AddressError, DEFAULT_PORT, Host, SCHEME};
#[cfg(feature = "driver")]
pub use driver::CassandraStore;

use lydian_shared_index::{Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// How long a call may take, retries included; creating a keyspace may take [`CREATE_MAX`].
pub const ANSWER_MAX: Duration = Duration::from_secs(5);

/// How long creating a keyspace with its tables may take: every node has to agree on each of them.
pub const CREATE_MAX: Duration = Duration::from_secs(60);

/// What a store is opened with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub address: Address,
    /// The time since 1970, to compare with the clocks of the nodes.
    pub now: fn() -> Duration,
}

/// Opens a keyspace that [`create`] made.
///
/// Refused: an unknown keyspace, one with other tables, a single copy of each value, a node whose clock differs.
#[cfg(feature = "driver")]
pub fn open(settings: &Settings) -> Result<Arc<dyn Store>, StoreError> {
    driver::CassandraStore::open(settings).map(|store| Arc::new(store) as Arc<dyn Store>)
}

/// Opens a keyspace: this program has no driver.
#[cfg(not(feature = "driver"))]
pub fn open(settings: &Settings) -> Result<Arc<dyn Store>, StoreError> {
    Err(without_driver(settings))
}

/// Creates the keyspace and its tables with this many copies of each value; keeps what exists already.
#[cfg(feature = "driver")]
pub fn create(settings: &Settings, replication: u32) -> Result<(), StoreError> {
    driver::create(settings, replication)
}

/// Creates a keyspace: this program has no driver.
#[cfg(not(feature = "driver"))]
pub fn create(settings: &Settings, _replication: u32) -> Result<(), StoreError> {
    Err(without_driver(settings))
}

#[cfg(not(feature = "driver"))]
fn without_driver(settings: &Settings) -> StoreError {
    let reason = format!(
        "{}: this program was built without the driver of Cassandra; build it with: cargo build --release -p \
         lydian-node --features cassandra",
        settings.address
    );
    StoreError::Refused { reason }
}

#[cfg(all(test, not(feature = "driver")))]
mod tests {
    use super::*;

    #[test]
    fn without_the_driver_every_store_is_refused() {
        let settings = Settings { address: "cassandra://a/b".parse().unwrap(), now: || Duration::ZERO };
        let refused = "the store of the index is refused: cassandra://a:9042/b: this program was built without the \
                       driver of Cassandra; build it with: cargo build --release -p lydian-node --features cassandra";
        assert_eq!(open(&settings).unwrap_err().to_string(), refused);
        assert_eq!(create(&settings, 3).unwrap_err().to_string(), refused);
    }
}
