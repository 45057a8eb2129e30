//! The number of transactions of the chain up to the tip, as in Core's log and RPC (`nChainTx`), kept across restarts.
//!
//! The file has two entries, each a tip and its total: that of the checkpoint being made and that of the one before. It
//! is written before the coins' manifest, so whichever tip the coins have after a crash, its entry exists. Nothing
//! depends on it: if the file is missing or damaged, the total is unknown.

use lydian_coins::Tip;
use lydian_disk::{Disk, DiskError, DiskErrorKind, OwnDir, OwnFile, Proof, read_whole};
use lydian_primitives::BlockHash;
use std::path::Path;

/// The file, in the directory of the block index.
pub const TOTALS_FILES: &[OwnFile] = &[OwnFile { name: FILE, proof: Proof::Directory }];

pub(crate) const FILE: &str = "totals";

const ENTRY_SIZE: usize = 40;

/// The total at a tip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    hash: BlockHash,
    transactions: u64,
}

/// Transactions up to `tip`, including the genesis block's, if the file has an entry for it.
pub(crate) fn read(disk: &dyn Disk, path: &Path, tip: Tip) -> Result<Option<u64>, DiskError> {
    if tip.height.0 == 0 {
        return Ok(Some(1));
    }
    let known = entries(disk, path)?.into_iter().find(|entry| entry.hash == tip.hash);
    Ok(known.map(|entry| entry.transactions))
}

/// Writes the total at a tip and keeps the entry of the tip before.
pub(crate) fn write(
    disk: &dyn Disk,
    path: &Path,
    before: Option<Tip>,
    tip: Tip,
    transactions: u64,
) -> Result<(), DiskError> {
    let mut kept = entries(disk, path)?;
    kept.retain(|entry| before.is_some_and(|before| before.hash == entry.hash) && entry.hash != tip.hash);
    kept.push(Entry { hash: tip.hash, transactions });
    let mut bytes = Vec::with_capacity(2 * ENTRY_SIZE);
    for entry in kept {
        bytes.extend_from_slice(&entry.hash.0);
        bytes.extend_from_slice(&entry.transactions.to_le_bytes());
    }
    OwnDir::of(path, TOTALS_FILES).replace(disk, path, &bytes)
}

fn entries(disk: &dyn Disk, path: &Path) -> Result<Vec<Entry>, DiskError> {
    let bytes = match read_whole(disk, path, 2 * ENTRY_SIZE as u64) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind, DiskErrorKind::NotFound | DiskErrorKind::TooLarge { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let entry = |bytes: &[u8; ENTRY_SIZE]| {
        let (mut hash, mut transactions) = ([0; 32], [0; 8]);
        hash.copy_from_slice(&bytes[..32]);
        transactions.copy_from_slice(&bytes[32..]);
        Entry { hash: BlockHash(hash), transactions: u64::from_le_bytes(transactions) }
    };
    Ok(bytes.as_chunks().0.iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::SimDisk;
    use lydian_primitives::Height;

    fn tip(height: u32) -> Tip {
        Tip { height: Height(height), hash: BlockHash([u8::try_from(height).unwrap(); 32]) }
    }

    #[test]
    fn both_tips_of_a_checkpoint_have_their_total() {
        let disk = SimDisk::new(1);
        let path = Path::new("totals");
        assert_eq!(read(&disk, path, tip(0)).unwrap(), Some(1));
        assert_eq!(read(&disk, path, tip(5)).unwrap(), None);
        write(&disk, path, None, tip(5), 50).unwrap();
        write(&disk, path, Some(tip(5)), tip(9), 90).unwrap();
        assert_eq!((read(&disk, path, tip(5)).unwrap(), read(&disk, path, tip(9)).unwrap()), (Some(50), Some(90)));
        write(&disk, path, Some(tip(9)), tip(7), 70).unwrap();
        assert_eq!(read(&disk, path, tip(5)).unwrap(), None, "two are kept");
        assert_eq!((read(&disk, path, tip(9)).unwrap(), read(&disk, path, tip(7)).unwrap()), (Some(90), Some(70)));
    }
}
