//! [`Undos`]: what the transactions of the blocks that are asked for most spend.
//!
//! Input: a block, and how many transactions would have to be looked up otherwise. Output: its undo data, once that is
//! worth reading, verifying and searching: after as many lookups as take the same time. What a hash stands for never
//! changes, so nothing is ever wrong here. Memory: [`UNDO_BYTES_MAX`], and about 150 bytes for each of [`BLOCKS_MAX`].

use crate::limits::UNDO_BYTES_MAX;
use crate::source::Chain;
use lydian_chain::UndoParts;
use lydian_primitives::{BlockHash, Height};
use lydian_stdx::lock;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// To look up the transaction that made an output takes as long as to read, to verify and to search this many bytes of
/// undo data (`docs/benchmarks/electrum.md`).
const BYTES_PER_LOOKUP: usize = 32 << 10;

/// Blocks of which the lookups are counted.
const BLOCKS_MAX: usize = 8_192;

#[derive(Debug, Default)]
pub(crate) struct Undos(Mutex<Kept>);

/// The blocks that were asked for last.
#[derive(Debug, Default)]
struct Kept {
    blocks: HashMap<BlockHash, Known>,
    by_use: BTreeMap<u64, BlockHash>,
    uses: u64,
    /// Of the undo data.
    bytes: usize,
}

#[derive(Debug, Default)]
struct Known {
    used: u64,
    lookups: usize,
    undo: Option<Arc<UndoParts>>,
}

impl Undos {
    /// The undo data of a block, if they are in memory or worth reading for an answer that needs so many lookups.
    pub(crate) fn get(&self, chain: &dyn Chain, hash: &BlockHash, lookups: usize) -> Option<Arc<UndoParts>> {
        let counted = match lock(&self.0).count(hash, lookups) {
            Ok(undo) => return Some(undo),
            Err(counted) => counted,
        };
        // A lookup may take a block from a peer, if any were pruned.
        let bytes_max = match chain.is_pruned(Height(1)) {
            true => usize::MAX,
            false => counted.saturating_mul(BYTES_PER_LOOKUP),
        };
        // If they cannot be read, the transactions that were spent from still can.
        let undo = Arc::new(chain.undo(hash, bytes_max).ok().flatten()?);
        lock(&self.0).put(hash, &undo);
        Some(undo)
    }
}

impl Kept {
    /// The undo data, or the lookups so far, with those that are needed now.
    fn count(&mut self, hash: &BlockHash, lookups: usize) -> Result<Arc<UndoParts>, usize> {
        self.uses += 1;
        let known = self.blocks.entry(*hash).or_default();
        self.by_use.remove(&known.used);
        self.by_use.insert(self.uses, *hash);
        known.used = self.uses;
        known.lookups = known.lookups.saturating_add(lookups);
        let result = known.undo.clone().ok_or(known.lookups);
        self.make_room();
        result
    }

    fn put(&mut self, hash: &BlockHash, undo: &Arc<UndoParts>) {
        let Some(known) = self.blocks.get_mut(hash) else { return };
        let replaced = known.undo.replace(Arc::clone(undo));
        self.bytes += undo.memory_bytes();
        self.bytes -= replaced.map_or(0, |undo| undo.memory_bytes());
        self.make_room();
    }

    /// Those that were not needed for the longest time make room.
    fn make_room(&mut self) {
        while self.bytes > UNDO_BYTES_MAX || self.blocks.len() > BLOCKS_MAX {
            let Some((_, hash)) = self.by_use.pop_first() else { return };
            let undo = self.blocks.remove(&hash).and_then(|known| known.undo);
            self.bytes -= undo.map_or(0, |undo| undo.memory_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: usize) -> BlockHash {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        BlockHash(bytes)
    }

    /// Undo data that take so many bytes in memory: transactions without inputs take one each, and four.
    fn undo(memory: usize) -> Arc<UndoParts> {
        let count = u32::try_from((memory - 5) / 5).unwrap();
        let mut bytes = vec![0xfe];
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.resize(5 + count as usize, 0);
        let undo = UndoParts::parse(bytes).unwrap();
        assert_eq!(undo.memory_bytes(), memory);
        Arc::new(undo)
    }

    #[test]
    fn lookups_add_up() {
        let mut kept = Kept::default();
        assert_eq!(
            (kept.count(&hash(1), 3), kept.count(&hash(2), 1), kept.count(&hash(1), 2)),
            (Err(3), Err(1), Err(5))
        );
        let one = undo(350_000);
        kept.put(&hash(1), &one);
        assert_eq!((kept.count(&hash(1), 9), kept.count(&hash(2), 1)), (Ok(one), Err(2)));
    }

    #[test]
    fn blocks_that_were_not_needed_lately_are_forgotten() {
        let mut kept = Kept::default();
        (0..BLOCKS_MAX).for_each(|number| assert_eq!(kept.count(&hash(number), 1), Err(1)));
        assert_eq!(kept.count(&hash(0), 1), Err(2));
        assert_eq!(kept.count(&hash(BLOCKS_MAX), 1), Err(1));
        assert_eq!((kept.count(&hash(0), 1), kept.count(&hash(1), 1)), (Err(3), Err(1)));
        assert_eq!((kept.blocks.len(), kept.by_use.len()), (BLOCKS_MAX, BLOCKS_MAX));
    }

    /// limit: UNDO_BYTES_MAX at
    /// limit: UNDO_BYTES_MAX above
    #[test]
    fn memory_is_bounded() {
        let mut kept = Kept::default();
        let count = 16;
        // The sizes are multiples of five, and five more.
        let size = UNDO_BYTES_MAX / count / 5 * 5;
        for number in 0..count {
            assert_eq!(kept.count(&hash(number), 1), Err(1));
            kept.put(&hash(number), &undo(size));
        }
        // The same again changes nothing.
        kept.put(&hash(0), &undo(size));
        assert_eq!(kept.bytes, size * count);
        assert!(kept.count(&hash(0), 1).is_ok() && kept.count(&hash(1), 1).is_ok());
        kept.count(&hash(count), 1).unwrap_err();
        kept.put(&hash(count), &undo(size));
        assert!(kept.bytes <= UNDO_BYTES_MAX);
        let left: Vec<bool> = (0..=count).map(|number| kept.blocks.contains_key(&hash(number))).collect();
        assert!(left[0] && left[1] && !left[2] && left[3..].iter().all(|is_left| *is_left), "{left:?}");
    }
}
