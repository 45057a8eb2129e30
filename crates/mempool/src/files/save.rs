//! Writes `mempool.dat`: Core's `DumpMempool`.
//!
//! Input: a [`Dump`]. Output: the bytes, at once; the file, replaced atomically. Memory: the whole file, since its
//! replacement is one operation of the disk. Cost: one pass over the transactions.

use super::{Key, VERSION, VERSION_WITHOUT_KEY};
use lydian_disk::{Disk, DiskError, OwnDir, OwnFile, Proof};
use lydian_primitives::{Tx, Txid, write_compact_size};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The name of the file in the data directory.
pub const MEMPOOL_FILE: &str = "mempool.dat";

pub const MEMPOOL_FILES: &[OwnFile] = &[OwnFile { name: MEMPOOL_FILE, proof: Proof::Directory }];

/// A transaction of the mempool.
#[derive(Clone, Copy, Debug)]
pub struct DumpedTx<'a> {
    pub tx: Tx<'a>,
    /// When it was accepted, in seconds since 1970.
    pub time: i64,
    /// What `prioritisetransaction` added to its fee, in satoshis.
    pub fee_delta: i64,
}

/// The content of a file.
#[derive(Debug)]
pub struct Dump<'a> {
    /// In the order in which they are to be accepted again: parents before children.
    pub transactions: Vec<DumpedTx<'a>>,
    /// All fee deltas, in satoshis; those of transactions above are stored with them.
    pub deltas: BTreeMap<Txid, i64>,
    /// Transactions that no peer has requested yet.
    pub unbroadcast: BTreeSet<Txid>,
}

impl Dump<'_> {
    /// The bytes of a file of version 2 with a key, or of version 1 without.
    pub fn encode(mut self, key: Option<Key>) -> Vec<u8> {
        for one in &self.transactions {
            self.deltas.remove(&one.tx.txid());
        }
        let mut out = Vec::with_capacity(self.size_max());
        match key {
            None => out.extend(VERSION_WITHOUT_KEY.to_le_bytes()),
            Some(key) => {
                out.extend(VERSION.to_le_bytes());
                write_compact_size(&mut out, key.0.len());
                out.extend(key.0);
            }
        }
        let plain = out.len();
        out.extend((self.transactions.len() as u64).to_le_bytes());
        for DumpedTx { tx, time, fee_delta } in &self.transactions {
            out.extend_from_slice(tx.bytes());
            out.extend(time.to_le_bytes());
            out.extend(fee_delta.to_le_bytes());
        }
        write_compact_size(&mut out, self.deltas.len());
        for (txid, delta) in &self.deltas {
            out.extend(txid.0);
            out.extend(delta.to_le_bytes());
        }
        write_compact_size(&mut out, self.unbroadcast.len());
        for txid in &self.unbroadcast {
            out.extend(txid.0);
        }
        key.unwrap_or_default().apply(plain as u64, &mut out[plain..]);
        out
    }

    /// Replaces the file. Returns its size in bytes. If this fails, the old file stays.
    pub fn save(self, disk: &dyn Disk, path: &Path, key: Option<Key>) -> Result<u64, DiskError> {
        let bytes = self.encode(key);
        OwnDir::of(path, MEMPOOL_FILES).replace(disk, path, &bytes)?;
        Ok(bytes.len() as u64)
    }

    fn size_max(&self) -> usize {
        let transactions: usize = self.transactions.iter().map(|one| one.tx.bytes().len() + 16).sum();
        // The version, the key, and three counts take less than 64 bytes.
        64 + transactions + self.deltas.len() * 40 + self.unbroadcast.len() * 32
    }
}
