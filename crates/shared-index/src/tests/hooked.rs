//! [`Hooked`]: a store before whose calls something happens, such as a newer row that another thread takes, or a
//! failure.

use super::sim::SimStore;
use crate::store::*;
use lydian_stdx::lock;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The call that comes next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call<'a> {
    Read,
    Write(&'a [(Key, Vec<u8>)]),
}

/// What happens before a call: it fails if this does. Calls that are made meanwhile go through.
type Before = Box<dyn FnMut(Call<'_>) -> Result<(), StoreError> + Send>;

pub(super) struct Hooked {
    store: Arc<SimStore>,
    before: Mutex<Option<Before>>,
}

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl Hooked {
    pub(super) fn new(store: Arc<SimStore>) -> Arc<Hooked> {
        Arc::new(Hooked { store, before: Mutex::default() })
    }

    pub(super) fn set(&self, before: impl FnMut(Call<'_>) -> Result<(), StoreError> + Send + 'static) {
        *lock(&self.before) = Some(Box::new(before));
    }

    fn call(&self, call: Call<'_>) -> Result<(), StoreError> {
        let taken = lock(&self.before).take();
        let Some(mut before) = taken else { return Ok(()) };
        let result = before(call);
        *lock(&self.before) = Some(before);
        result
    }
}

impl Store for Hooked {
    fn keyspace(&self) -> Result<Keyspace, StoreError> {
        self.store.keyspace()
    }

    fn read(&self, keys: &[Key], replicas: Replicas) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.call(Call::Read)?;
        self.store.read(keys, replicas)
    }

    fn write(&self, values: &[(Key, Vec<u8>)]) -> Result<(), StoreError> {
        self.call(Call::Write(values))?;
        self.store.write(values)
    }

    fn remove(&self, partitions: &[Partition]) -> Result<(), StoreError> {
        self.store.remove(partitions)
    }

    fn commit(&self, read: CommitRead) -> Result<Option<StoredCommit>, StoreError> {
        self.store.commit(read)
    }

    fn swap(&self, expected: Option<u64>, new: &StoredCommit) -> Result<Swap, StoreError> {
        self.store.swap(expected, new)
    }
}
