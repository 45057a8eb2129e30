//! [`SharedIndex`]: the index as a front end has it.
//!
//! Input: a store. Output: readers of the index, as one commit row has it. A front end calls [`SharedIndex::refresh`]
//! a few times a second; answers that are being made go on with the row that they began with.
//!
//! Invariants: the row that is used never goes back to an earlier sequence; everything of it was read and checked
//! before it is used. A keyspace that was made anew is refused. Only [`SharedIndex::refresh`] waits for the row, so
//! that no question does. Memory: that of [`RemoteTables`], and of filters if they are loaded.

use crate::commit::Commit;
use crate::fetch::{Fetcher, index_error};
use crate::store::{CommitRead, Store, StoreError, StoredCommit};
use lydian_engine::Tip;
use lydian_index::{IndexError, RemoteTables, TxIndexReader};
use lydian_primitives::{BlockHash, Height};
use lydian_query::{Chain, Feeder, NodeIndex};
use lydian_stdx::{Current, IgnorePoison, lock};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

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

/// What [`SharedIndex::refresh_if`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// There is no newer row.
    Same,
    Taken,
    /// There is one with this block, which is not to be taken yet.
    Held(Tip),
}

/// The index in a store, for any number of threads.
#[derive(Debug)]
pub struct SharedIndex {
    store: Arc<dyn Store>,
    pub(crate) fetcher: Arc<Fetcher>,
    /// The keyspace, for messages.
    name: String,
    pub(crate) tables: Current<RemoteTables>,
    /// The row of the tables.
    pub(crate) row: Current<Row>,
    /// Why no newer row is taken any more, if so. Held while one is read.
    refused: Mutex<Option<StoreError>>,
    /// The number of newer rows taken so far, and what is signalled with each.
    taken: Mutex<u64>,
    renewed: Condvar,
}

/// A commit row, and what it was read from.
#[derive(Debug)]
pub(crate) struct Row {
    stored: StoredCommit,
    pub(crate) commit: Commit,
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
        fetcher.retain(&commit.content.segments);
        let row = Current::new(Row { stored, commit });
        Ok(SharedIndex {
            store,
            fetcher,
            name,
            tables,
            row,
            refused: Mutex::default(),
            taken: Mutex::default(),
            renewed: Condvar::new(),
        })
    }

    /// Takes a newer commit row, if there is one. After an error, the index stays as it is. If the keyspace was made
    /// anew, or has another index now, this and every later call is [`StoreError::Refused`].
    pub fn refresh(&self) -> Result<bool, ReaderError> {
        Ok(self.refresh_if(|_| true)? == Refreshed::Taken)
    }

    /// The same, but a row with another last block than that of the index is taken only if `may_take` says so of the
    /// block. The row that is not taken stays readable for [`crate::KEEP_SECONDS`] after the next one.
    pub fn refresh_if(&self, may_take: impl FnOnce(&Tip) -> bool) -> Result<Refreshed, ReaderError> {
        let mut refused = lock(&self.refused);
        if let Some(error) = refused.as_ref() {
            return Err(error.clone().into());
        }
        let own = self.row.get();
        let stored = self.store.commit(CommitRead::Quorum)?;
        if stored.as_ref() == Some(&own.stored) {
            return Ok(Refreshed::Same);
        }
        let found = stored.as_ref().map(Commit::read).transpose()?;
        if let Some(what) = other_index(&own.commit, found.as_ref()) {
            let reason = format!("{}: {what}; start again", self.name);
            return Err(refused.insert(StoreError::Refused { reason }).clone().into());
        }
        // A replica that is behind may answer with the row before.
        let Some((stored, commit)) = stored.zip(found).filter(|(_, found)| found.sequence > own.commit.sequence) else {
            return Ok(Refreshed::Same);
        };
        let tip = commit.tip().map(|(height, hash)| Tip { height: Height(height), hash });
        if let Some(tip) = tip.filter(|tip| self.tip() != Some(*tip) && !may_take(tip)) {
            return Ok(Refreshed::Held(tip));
        }
        if commit.content != own.commit.content {
            self.tables.set(take(&self.tables.get(), &commit, &self.fetcher)?);
        }
        self.fetcher.retain(&commit.content.segments);
        self.row.set(Row { stored, commit });
        *lock(&self.taken) += 1;
        self.renewed.notify_all();
        Ok(Refreshed::Taken)
    }

    /// Reads some more filters of used scripts into memory, up to so many bytes ([`crate::limits::FILTER_BYTES_MAX`] at
    /// most): with them, a script that was never used costs almost no read. False if there is nothing more to read
    /// until [`SharedIndex::refresh`] returns true. For a thread that does nothing else.
    pub fn load_filters(&self, bytes_max: usize) -> Result<bool, ReaderError> {
        Ok(self.fetcher.load_filters(&self.row.get().commit.content.segments, bytes_max)?)
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
        self.row.get().commit.sequence
    }
}

/// How long an answer waits for a block of a later row.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// What the index does not have yet comes with a later row, for which another thread asks.
impl Feeder for SharedIndex {
    fn failure(&self, _name: &str) -> Option<String> {
        None
    }

    fn wait_until_synced(&self) -> bool {
        true
    }

    fn wait_for(&self, height: Height) {
        let waits = |_: &mut u64| self.tip().is_none_or(|tip| tip.height < height);
        drop(self.renewed.wait_timeout_while(lock(&self.taken), WAIT_MAX, waits).ignore_poison());
    }
}

/// Why a row that was found, another than the own one, is not of the same index: `None` if it may be the row before or
/// any later one.
fn other_index(own: &Commit, found: Option<&Commit>) -> Option<String> {
    let before = own.sequence - 1;
    let Some(found) = found else {
        // The first row may be missed while its insertion is under way.
        return (before > 0).then(|| format!("commit row {} is gone, so the keyspace was made anew", own.sequence));
    };
    if found.identity != own.identity {
        return Some(format!("commit row {} is that of another index", found.sequence));
    }
    let (older, newer) = if found.sequence < own.sequence { (found, own) } else { (own, found) };
    let is_near = found.sequence >= before && found.sequence != own.sequence;
    let is_anew = !is_near || !newer.may_follow(older);
    is_anew.then(|| {
        let (own, found) = (own.sequence, found.sequence);
        format!("commit row {found} does not belong to commit row {own} before it, so the keyspace was made anew")
    })
}

/// The tables that a row names.
fn take(before: &RemoteTables, commit: &Commit, fetcher: &Fetcher) -> Result<RemoteTables, IndexError> {
    before
        .next(&commit.content, &mut |blocks| fetcher.deltas(commit.series, blocks).map_err(|error| index_error(&error)))
}
