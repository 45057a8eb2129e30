//! [`MemoryStore`]: a store on one machine, in memory. It does what [`Store`] promises, unless it is told to be
//! unavailable.

use lydian_shared_index::{CommitRead, Key, Keyspace, Partition, Replicas, Store, StoreError, StoredCommit, Swap};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[derive(Debug, Default)]
pub struct MemoryStore {
    pub values: Mutex<HashMap<Key, Vec<u8>>>,
    row: Mutex<Option<StoredCommit>>,
    pub is_down: AtomicBool,
    /// How often the commit row was read.
    pub commits: AtomicUsize,
}

impl MemoryStore {
    fn check(&self) -> Result<(), StoreError> {
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(StoreError::Unavailable { reason: "no replica can be reached".to_owned() }),
            false => Ok(()),
        }
    }
}

impl Store for MemoryStore {
    fn keyspace(&self) -> Result<Keyspace, StoreError> {
        self.check()?;
        Ok(Keyspace { name: "memory".to_owned(), replication: 3 })
    }

    fn read(&self, keys: &[Key], _: Replicas) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.check()?;
        let values = self.values.lock().unwrap();
        Ok(keys.iter().map(|key| values.get(key).cloned()).collect())
    }

    fn write(&self, values: &[(Key, Vec<u8>)]) -> Result<(), StoreError> {
        self.check()?;
        self.values.lock().unwrap().extend(values.iter().cloned());
        Ok(())
    }

    fn remove(&self, partitions: &[Partition]) -> Result<(), StoreError> {
        self.check()?;
        self.values.lock().unwrap().retain(|key, _| !partitions.contains(&key.partition()));
        Ok(())
    }

    fn commit(&self, _: CommitRead) -> Result<Option<StoredCommit>, StoreError> {
        self.check()?;
        let row = self.row.lock().unwrap().clone();
        self.commits.fetch_add(1, Ordering::SeqCst);
        Ok(row)
    }

    fn swap(&self, expected: Option<u64>, new: &StoredCommit) -> Result<Swap, StoreError> {
        self.check()?;
        let mut row = self.row.lock().unwrap();
        if row.as_ref().map(|row| row.sequence) != expected {
            return Ok(Swap::Lost(row.clone()));
        }
        *row = Some(new.clone());
        Ok(Swap::Applied)
    }
}
