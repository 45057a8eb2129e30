//! The blocks that are not sealed: in memory, with a log of each group of blocks.
//!
//! Input: blocks at the end of the chain, added and removed. Output: the transactions of a key, and their places. The
//! log of a group has a record for each block, with its height as sequence; a checkpoint cuts off what left the chain
//! and adds what is new. Memory: about 16 bytes for each transaction, 32 more
//! for its txid, and the rows of scripts.

use super::commit::Profile;
use super::numbers::KEY_BITS;
use super::places::{Heights, Place};
use super::rows::{self, BlockRows};
use super::segment::{GROUP_BLOCKS, Rows, TxRow};
use super::settled::Settled;
use crate::error::IndexError;
use hashbrown::HashTable;
use lydian_disk::record::{Records, encode_record};
use lydian_disk::{Change, Disk, DiskErrorKind, OwnDir, read_whole};
use lydian_primitives::{Height, Txid};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest log of a group: 256 blocks with as many outputs as a block can have take less.
const LOG_SIZE_MAX: u64 = 256 * (4 << 20);

/// Blocks of a group that are settled at once.
const SETTLED_AT_ONCE: usize = 32;

/// Up to [`GROUP_BLOCKS`] blocks that will be sealed together.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) from: u32,
    pub(super) rows: Arc<Rows>,
    /// The places of transactions in the rows, by key.
    places: HashTable<u32>,
    /// The end of each block's record in the log, as far as the log has the blocks of this chain.
    ends: Vec<u64>,
    /// The size of the log; larger than any if it is not known.
    log_size: u64,
}

/// Bytes that bring a log to the blocks of its group.
#[derive(Debug)]
pub(super) struct LogWrite {
    pub(super) from: u32,
    path: PathBuf,
    /// The size to which the log is cut before.
    cut: Option<u64>,
    bytes: Vec<u8>,
    /// The ends of the records that the bytes have.
    ends: Vec<u64>,
    /// The size of the log afterwards.
    size: u64,
}

impl LogWrite {
    /// Writes them, durable on return.
    pub(super) fn run(&self, disk: &dyn Disk, own: &OwnDir) -> Result<(), IndexError> {
        match self.cut {
            // There may be none: it was never written.
            Some(0) => drop(own.remove(disk, &self.path)?),
            Some(size) => own.change(disk, &self.path, Change::Truncate { size })?,
            None => {}
        }
        if self.bytes.is_empty() {
            return Ok(());
        }
        let mut file = own.append(disk, &self.path)?;
        file.write(&self.bytes)?;
        Ok(file.sync()?)
    }
}

impl Group {
    /// An empty group at a multiple of [`GROUP_BLOCKS`]. A log with its name is older.
    pub(super) fn new(from: u32, log_size: u64) -> Group {
        Group { from, rows: Arc::default(), places: HashTable::new(), ends: Vec::new(), log_size }
    }

    pub(super) fn blocks(&self) -> u32 {
        u32::try_from(self.rows.blocks.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn is_full(&self) -> bool {
        self.blocks() == GROUP_BLOCKS
    }

    pub(super) fn push(&mut self, block: BlockRows) {
        let rows = Arc::make_mut(&mut self.rows);
        for tx in &block.transactions {
            let place = u32::try_from(rows.transactions.len()).unwrap_or(u32::MAX);
            rows.transactions.push(*tx);
            let all = &rows.transactions;
            self.places.insert_unique(hash_of(tx.key()), place, |place| hash_at(all, *place));
        }
        rows.txids.extend(block.txids);
        rows.scripts.extend(block.scripts.map(Arc::new));
        rows.blocks.push(block.block);
    }

    /// Whether the log has all its blocks.
    pub(super) fn is_logged(&self) -> bool {
        self.ends.len() == self.rows.blocks.len()
    }

    /// Blocks whose rows of scripts may be settled, and are worth it: the log has them, so that nothing else needs
    /// them one by one.
    pub(super) fn may_settle(&self) -> bool {
        self.is_logged() && self.rows.scripts.len() >= SETTLED_AT_ONCE
    }

    /// Settles what is worth it, whether or not the log has it: for a group without a log.
    pub(super) fn settle_all(&mut self) {
        if self.rows.scripts.len() >= SETTLED_AT_ONCE {
            self.rows = Arc::new(Group::settle(&self.rows));
        }
    }

    /// The same rows, settled.
    pub(super) fn settle(rows: &Rows) -> Rows {
        let settled = Some(Settled::new(rows.settled.as_deref(), &rows.scripts, &rows.counts()));
        let settled = settled.map(Arc::new);
        Rows { settled, scripts: Vec::new(), ..rows.clone() }
    }

    /// Removes the last block.
    pub(super) fn pop(&mut self) {
        let rows = Arc::make_mut(&mut self.rows);
        if rows.scripts.is_empty()
            && let Some(settled) = rows.settled.take()
        {
            rows.scripts = settled.blocks(&rows.counts());
        }
        let settled = rows.settled_blocks();
        let Some(block) = rows.blocks.pop() else { return };
        let left = rows.transactions.len() - block.transactions as usize;
        for place in left..rows.transactions.len() {
            let hash = rows.transactions.get(place).map_or(0, |tx| hash_of(tx.key()));
            if let Ok(entry) = self.places.find_entry(hash, |other| *other as usize == place) {
                entry.remove();
            }
        }
        rows.transactions.truncate(left);
        rows.txids.truncate(left);
        rows.scripts.truncate(rows.blocks.len() - settled);
        self.ends.truncate(rows.blocks.len());
    }

    /// The numbers of the transactions of this key, within the group, in no order.
    pub(super) fn find(&self, key: u64) -> impl Iterator<Item = u32> {
        let has_key =
            move |place: &&u32| self.rows.transactions.get(**place as usize).is_some_and(|tx| tx.key() == key);
        self.places.iter_hash(hash_of(key)).filter(has_key).copied()
    }

    /// The txid of a transaction, if the index has a table of them.
    pub(super) fn txid(&self, heights: &Heights, number: u64) -> Option<Txid> {
        let place = number.checked_sub(heights.first(self.from))?;
        self.rows.txids.get(usize::try_from(place).ok()?).copied()
    }

    /// Where a transaction is.
    pub(super) fn place(&self, heights: &Heights, number: u64) -> Option<Place> {
        let height = heights.block_of(number)?;
        let place = |number: u64| usize::try_from(number.checked_sub(heights.first(self.from))?).ok();
        let (first, own) = (place(heights.first(height))?, place(number)?);
        let before: u32 = self.rows.transactions.get(first..own)?.iter().map(|tx| tx.size()).sum();
        let size = self.rows.transactions.get(own)?.size();
        Some(Place { height: Height(height), offset: heights.first_offset(height) + before, size })
    }

    pub(super) fn log_path(&self, dir: &Path) -> PathBuf {
        log_path(dir, self.from)
    }

    /// What brings the log to the blocks of the group; `None` if it has them.
    pub(super) fn log_write(&self, dir: &Path) -> Option<LogWrite> {
        let valid = self.ends.last().copied().unwrap_or(0);
        if self.log_size <= valid && self.is_logged() {
            return None;
        }
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let mut first: usize = self.rows.blocks.iter().take(self.ends.len()).map(|row| row.transactions as usize).sum();
        // What the log lacks is never settled.
        let settled = self.rows.settled_blocks();
        for (height, block) in (self.from..).zip(&self.rows.blocks).skip(self.ends.len()) {
            let count = block.transactions as usize;
            let txs = self.rows.transactions.get(first..first + count).unwrap_or_default();
            let txids = self.rows.txids.get(first..first + count).unwrap_or_default();
            let scripts = self.rows.scripts.get((height - self.from) as usize - settled).map(Arc::as_ref);
            encode_record(&rows::encode(block, txs, txids, scripts), u64::from(height), &mut bytes);
            ends.push(valid + bytes.len() as u64);
            first += count;
        }
        let cut = (self.log_size > valid).then_some(valid);
        Some(LogWrite { from: self.from, path: self.log_path(dir), cut, size: valid + bytes.len() as u64, bytes, ends })
    }

    /// Notes what was written.
    pub(super) fn logged(&mut self, write: LogWrite) {
        self.ends.extend(write.ends);
        self.log_size = write.size;
    }

    /// Reads the blocks of a log, up to and with the height `last`. What is behind them is not used.
    pub(super) fn read(
        disk: &dyn Disk,
        dir: &Path,
        from: u32,
        last: u32,
        profile: Profile,
    ) -> Result<Group, IndexError> {
        let path = log_path(dir, from);
        let bytes = match read_whole(disk, &path, LOG_SIZE_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind == DiskErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let mut group = Group::new(from, bytes.len() as u64);
        let mut records = Records::read(&bytes, u64::from(from));
        while group.from + group.blocks() <= last && !group.is_full() {
            let offset = records.offset();
            let Some(Ok(payload)) = records.next() else { break };
            let damaged = || IndexError::damaged(&path, offset, "the record of a block cannot be decoded");
            group.push(rows::decode(payload, profile).ok_or_else(damaged)?);
            group.ends.push(records.offset());
        }
        Ok(group)
    }
}

pub(super) fn log_path(dir: &Path, from: u32) -> PathBuf {
    dir.join(format!("{from:07}.log"))
}

/// A key is a hash already; a table takes its high bits.
fn hash_of(key: u64) -> u64 {
    key << (64 - KEY_BITS) | key
}

fn hash_at(rows: &[TxRow], place: u32) -> u64 {
    rows.get(place as usize).map_or(0, |tx| hash_of(tx.key()))
}
