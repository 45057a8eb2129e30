//! [`Store`]: what a distributed store must do for the index, and its keys.
//!
//! A driver implements it for one store; writer and reader know nothing else of the store. Calls block, take batches,
//! and may be made from several threads. The driver has all operations of a batch under way at the same time: the
//! caller bounds the batch ([`crate::limits`]).
//!
//! Four kinds of values are stored. Pages, deltas and blocks are immutable: a key is written with the same bytes
//! however often, and a key that was removed is never written again. The commit row alone changes, by compare-and-set.
//! Values are opaque to the driver: [`crate::seal`] gives them a checksum that covers the key.

use lydian_index::Table;
use lydian_primitives::BlockHash;
use std::fmt;
use std::fmt::Debug;

/// What is stored and removed together: a page of a table, with its parts. A query computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bucket {
    /// A number that the commit row gave to a segment. It is never used for another one, nor again once it is removed.
    pub generation: u64,
    /// Never [`Table::Lists`], whose pages are further parts of those of [`Table::Events`].
    pub table: Table,
    /// The number of the page in the table.
    pub page: u32,
}

/// The key of a page, or of a part of the lists that belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageKey {
    pub bucket: Bucket,
    /// 0: the page itself, which says where the other parts begin.
    pub part: u32,
}

/// The deltas of a height, which are removed together: those of blocks that left the chain with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeltaHeight {
    /// A number that the commit row gives. It changes when a reorganisation reaches heights whose deltas are removed.
    pub series: u64,
    pub height: u32,
}

/// The key of what one block adds to the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeltaKey {
    pub at: DeltaHeight,
    pub hash: BlockHash,
}

/// The blocks of a height, which are removed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockHeight {
    /// A number that the commit row gives. Heights that a reorganisation reaches get another one.
    pub series: u64,
    pub height: u32,
}

/// The key of a part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockKey {
    pub at: BlockHeight,
    pub hash: BlockHash,
    /// 0: the head, with the header and the size. The bytes of the block are in the parts from 1 on.
    pub part: u32,
}

/// The key of an immutable value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    Page(PageKey),
    Delta(DeltaKey),
    Block(BlockKey),
}

/// What [`Store::remove`] takes: a partition of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Partition {
    Bucket(Bucket),
    Deltas(DeltaHeight),
    Blocks(BlockHeight),
}

impl Key {
    /// The partition that has the value.
    pub fn partition(&self) -> Partition {
        match self {
            Key::Page(key) => Partition::Bucket(key.bucket),
            Key::Delta(key) => Partition::Deltas(key.at),
            Key::Block(key) => Partition::Blocks(key.at),
        }
    }
}

/// How many replicas answer a read of immutable values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// One, which may lack a value that others have.
    One,
    /// A quorum: a value whose write was acknowledged is found.
    Quorum,
}

/// How the commit row is read. Both see every [`Swap::Applied`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitRead {
    /// From a quorum: cheap, for readers. It may miss a row whose swap is under way, and another read may find it.
    Quorum,
    /// Linearizable with the swaps: what is under way is completed or void on return. For a writer that does not know
    /// what became of its swap.
    Serial,
}

/// The commit row as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCommit {
    /// The column that the compare-and-set compares. Never 0.
    pub sequence: u64,
    /// From [`crate::seal`].
    pub value: Vec<u8>,
}

/// What became of a compare-and-set that the store answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap {
    Applied,
    /// The row has another sequence, or there is one where none was expected: this row.
    Lost(Option<StoredCommit>),
    /// The store did not answer in time: the swap may have been applied, or may be later, until a
    /// [`CommitRead::Serial`] returns.
    Unknown,
}

/// What the driver knows of the keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyspace {
    /// For messages: hosts and name.
    pub name: String,
    /// Copies of each value, of the data centre with the fewest.
    pub replication: u32,
}

/// A distributed store. See the module.
///
/// Durability: [`Store::write`], [`Store::remove`] and an applied swap return once a quorum of replicas has
/// acknowledged. A failed call may have done a part of its work, or does it later; repeating it is always safe, as keys
/// are immutable.
pub trait Store: Debug + Send + Sync {
    /// The keyspace, asked of the store: it fails if the keyspace does not exist.
    fn keyspace(&self) -> Result<Keyspace, StoreError>;

    /// The values of keys, in their order; `None` for a value that the replicas asked do not have.
    fn read(&self, keys: &[Key], replicas: Replicas) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// Writes values. Ok: a quorum of replicas has each of them.
    fn write(&self, values: &[(Key, Vec<u8>)]) -> Result<(), StoreError>;

    /// Removes all values of partitions, which are never written again. Ok: a quorum has removed each of them.
    fn remove(&self, partitions: &[Partition]) -> Result<(), StoreError>;

    /// The commit row; `None` if there is none.
    fn commit(&self, read: CommitRead) -> Result<Option<StoredCommit>, StoreError>;

    /// Replaces the commit row if its sequence is `expected`, or inserts it if there must be none (`None`).
    fn swap(&self, expected: Option<u64>, new: &StoredCommit) -> Result<Swap, StoreError>;
}

/// Why the store gave no answer, or none that can be used. Its text is one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// No answer in time: too slow, or too few replicas are up. Try again, with less under way.
    TimedOut { reason: String },
    /// No replica can be reached, or too few are up. Try again later.
    Unavailable { reason: String },
    /// The keyspace, or what is in it, is not what was asked for: trying again does not help.
    Refused { reason: String },
    /// A value is not what was written under its key.
    Damaged { key: String, what: &'static str },
    /// A value that the commit row names is on no quorum of replicas.
    Missing { key: String },
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn may_pass(&self) -> bool {
        matches!(self, StoreError::TimedOut { .. } | StoreError::Unavailable { .. })
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::TimedOut { reason } => {
                write!(f, "the store of the index does not answer in time: {reason}; try again")
            }
            StoreError::Unavailable { reason } => {
                write!(f, "the store of the index is unavailable: {reason}; try again later")
            }
            StoreError::Refused { reason } => write!(f, "the store of the index is refused: {reason}"),
            StoreError::Damaged { key, what } => write!(f, "the store of the index is damaged: {key}: {what}"),
            StoreError::Missing { key } => {
                write!(f, "the store of the index lacks {key}, which its commit row names, on a quorum of replicas")
            }
        }
    }
}

impl std::error::Error for StoreError {}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Page(PageKey { bucket: Bucket { generation, table, page }, part }) => {
                write!(f, "part {part} of page {page} of the table {table:?} of generation {generation}")
            }
            Key::Delta(DeltaKey { at: DeltaHeight { series, height }, hash }) => {
                write!(f, "the delta of block {hash} at height {height} of series {series}")
            }
            Key::Block(BlockKey { at: BlockHeight { series, height }, hash, part }) => {
                write!(f, "part {part} of block {hash} at height {height} of series {series}")
            }
        }
    }
}
