//! [`SharedIndex`]: the index as a front end has it.
//!
//! Input: a store. Output: readers of the index, as one commit row has it. A front end calls [`SharedIndex::refresh`]
//! a few times a second; answers that are being made go on with the row that they began with.
//!
//! Invariants: the row that is used never goes back to an earlier sequence; everything of it was read and checked
//! before it is used. Memory: that of [`RemoteTables`], and of filters if they are
//! loaded.

use crate::commit::Commit;
use crate::fetch::{Fetcher, index_error};
use crate::store::{CommitRead, Store, StoreError};
use lydian_engine::Tip;
use lydian_index::{IndexError, RemoteTables, TxIndexReader};
use lydian_primitives::{BlockHash, Height};
use lydian_query::{Chain, Feeder, NodeIndex};
use lydian_stdx::{Current, lock};
use std::fmt;
use std::sync::{Arc, Mutex};

/// Why there is no index to read, or no newer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReaderError {
    Store(StoreError),
    /// What the row names cannot be used.
    Index(IndexError),
    /// No node has written to the keyspace.
    NoIndex {
        keyspace: String,
    },
}

impl fmt::Display for ReaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReaderError::Store(error) => error.fmt(f),
            ReaderError::Index(error) => error.fmt(f),
            ReaderError::NoIndex { keyspace } => {
                write!(f, "{keyspace} has no index: start a node that writes its index there, and try again")
            }
        }
    }
}

impl std::error::Error for ReaderError {}

impl From<StoreError> for ReaderError {
    fn from(error: StoreError) -> ReaderError {
        ReaderError::Store(error)
    }
}

impl From<IndexError> for ReaderError {
    fn from(error: IndexError) -> ReaderError {
        ReaderError::Index(error)
    }
}

/// The index in a store, for any number of threads.
#[derive(Debug)]
pub struct SharedIndex {
    store: Arc<dyn Store>,
    fetcher: Arc<Fetcher>,
    tables: Current<RemoteTables>,
    /// The row of the tables. Held while a newer one is taken.
    commit: Mutex<Commit>,
}

impl SharedIndex {
    /// Opens the index of the chain with this genesis block, as it is now.
    pub fn open(store: Arc<dyn Store>, genesis: &BlockHash) -> Result<SharedIndex, ReaderError> {
        let name = store.keyspace()?.name;
        let Some(stored) = store.commit(CommitRead::Quorum)? else {
            return Err(ReaderError::NoIndex { keyspace: name });
        };
        let commit = Commit::read(&stored)?;
        if commit.identity.genesis != *genesis {
            let found = commit.identity.genesis;
            let reason = format!("{name} has the index of the chain with genesis block {found}, not of {genesis}");
            return Err(StoreError::Refused { reason }.into());
        }
        let fetcher = Arc::new(Fetcher::new(Arc::clone(&store)));
        let empty = RemoteTables::empty(commit.identity, Arc::clone(&fetcher) as Arc<_>);
        let tables = Current::new(take(&empty, &commit, &fetcher)?);
        Ok(SharedIndex { store, fetcher, tables, commit: Mutex::new(commit) })
    }

    /// Takes a newer commit row, if there is one. After an error, the index stays as it is.
    pub fn refresh(&self) -> Result<bool, ReaderError> {
        let mut own = lock(&self.commit);
        let Some(stored) = self.store.commit(CommitRead::Quorum)? else { return Ok(false) };
        // A replica that is behind may answer with an older row.
        if stored.sequence <= own.sequence {
            return Ok(false);
        }
        let commit = Commit::read(&stored)?;
        if commit.identity != own.identity {
            let reason = format!("commit row {} is that of another index: start again", commit.sequence);
            return Err(StoreError::Refused { reason }.into());
        }
        if commit.content != own.content {
            self.tables.set(take(&self.tables.get(), &commit, &self.fetcher)?);
        }
        self.fetcher.filters.retain(&commit.content.segments);
        *own = commit;
        Ok(true)
    }

    /// Reads some more filters of used scripts into memory, up to so many bytes ([`crate::limits::FILTER_BYTES_MAX`] at
    /// most): with them, a script that was never used costs almost no read. False if there is nothing more to read
    /// until [`SharedIndex::refresh`] returns true. For a thread that does nothing else.
    pub fn load_filters(&self, bytes_max: usize) -> Result<bool, ReaderError> {
        let segments = lock(&self.commit).content.segments.clone();
        Ok(self.fetcher.load_filters(&segments, bytes_max)?)
    }

    /// Bytes of filters in memory.
    pub fn filter_bytes(&self) -> usize {
        self.fetcher.filters.bytes()
    }

    /// A reader of the index as it is at each moment.
    pub fn reader(&self) -> TxIndexReader {
        TxIndexReader::following(&self.tables)
    }

    /// A reader of the index as it is now.
    pub fn snapshot(&self) -> TxIndexReader {
        TxIndexReader::fixed(self.tables.get())
    }

    /// The same as what servers ask. The bytes of transactions come from `chain`, whose tip is that of the index.
    pub fn scripts(self: &Arc<SharedIndex>, chain: Arc<dyn Chain>) -> NodeIndex {
        NodeIndex::fed_by(self.reader(), chain, Arc::clone(self) as Arc<dyn Feeder>)
    }

    /// The block up to which the index has the chain.
    pub fn tip(&self) -> Option<Tip> {
        self.tables.get().tip()
    }

    /// Hashes of blocks from a height on; fewer at the tip.
    pub fn hashes(&self, from: u32, count: usize) -> Vec<BlockHash> {
        let tables = self.tables.get();
        (from..=u32::MAX).take(count).map_while(|height| tables.hash(height)).collect()
    }

    /// The sequence of the row.
    pub fn sequence(&self) -> u64 {
        lock(&self.commit).sequence
    }
}

/// What the index does not have yet comes with a later row, which nothing here waits for.
impl Feeder for SharedIndex {
    fn failure(&self, _name: &str) -> Option<String> {
        None
    }

    fn wait_until_synced(&self) -> bool {
        true
    }

    fn wait_for(&self, _height: Height) {}
}

/// The tables that a row names.
fn take(before: &RemoteTables, commit: &Commit, fetcher: &Fetcher) -> Result<RemoteTables, IndexError> {
    before
        .next(&commit.content, &mut |blocks| fetcher.deltas(commit.series, blocks).map_err(|error| index_error(&error)))
}
