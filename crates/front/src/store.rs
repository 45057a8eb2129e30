//! [`CountedStore`]: the store of the index, with counts of what is asked of it.
//!
//! Input and output: those of the store.

use lydian_shared_index::{CommitRead, Key, Keyspace, Partition, Replicas, Store, StoreError, StoredCommit, Swap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct CountedStore {
    store: Arc<dyn Store>,
    reads: AtomicU64,
    calls: AtomicU64,
}

impl CountedStore {
    pub(crate) fn new(store: Arc<dyn Store>) -> CountedStore {
        CountedStore { store, reads: AtomicU64::new(0), calls: AtomicU64::new(0) }
    }

    /// Values that were asked for.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Calls for values and for the commit row.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn count(&self, reads: usize) {
        self.reads.fetch_add(reads as u64, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl Store for CountedStore {
    fn keyspace(&self) -> Result<Keyspace, StoreError> {
        self.store.keyspace()
    }

    fn read(&self, keys: &[Key], replicas: Replicas) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.count(keys.len());
        self.store.read(keys, replicas)
    }

    fn write(&self, values: &[(Key, Vec<u8>)]) -> Result<(), StoreError> {
        self.store.write(values)
    }

    fn remove(&self, partitions: &[Partition]) -> Result<(), StoreError> {
        self.store.remove(partitions)
    }

    fn commit(&self, read: CommitRead) -> Result<Option<StoredCommit>, StoreError> {
        self.count(1);
        self.store.commit(read)
    }

    fn swap(&self, expected: Option<u64>, new: &StoredCommit) -> Result<Swap, StoreError> {
        self.store.swap(expected, new)
    }
}
