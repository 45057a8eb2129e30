//! The rows of scripts of the first blocks of a group, in one array each: [`Settled`].
//!
//! Input: the rows of blocks, once the log has them. Output: the same rows, sorted by key over all blocks; and the rows
//! of the blocks again, for a reorganisation. A lookup searches every block that is not settled; here it takes two
//! searches. Memory: that of the rows.

use super::rows::{CreateRow, ScriptRows, SpendRow};
use std::sync::Arc;

/// The rows of the first blocks of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    /// The tables from the transactions of each block to their positions.
    pub(super) positions: Vec<Vec<u8>>,
    /// Sorted by key, then in the order of the chain. `position` counts from the first transaction of the group.
    pub(super) creates: Vec<CreateRow>,
    pub(super) spends: Vec<SpendRow>,
}

impl Settled {
    /// Adds the blocks behind those of `below`. `counts`: the transactions of each block of the group.
    pub(super) fn new(below: Option<&Settled>, blocks: &[Arc<ScriptRows>], counts: &[u32]) -> Settled {
        let firsts = firsts(counts);
        let settled = below.map_or(0, |below| below.positions.len());
        let rows = || blocks.iter().zip(firsts.iter().skip(settled));
        let creates = rows().flat_map(|(rows, first)| {
            rows.creates.iter().map(move |row| CreateRow { position: first + row.position, ..*row })
        });
        let spends = rows().flat_map(|(rows, first)| {
            rows.spends.iter().map(move |row| SpendRow { position: first + row.position, ..*row })
        });
        let mut all = below.cloned().unwrap_or_default();
        all.creates.extend(creates);
        all.spends.extend(spends);
        all.positions.extend(blocks.iter().map(|rows| rows.positions.clone()));
        // Parts of them are sorted, which this sort makes use of.
        all.creates.sort();
        all.spends.sort();
        all
    }

    /// The rows of one of the blocks. Cost: a look at each row.
    pub(super) fn block(&self, at: usize, counts: &[u32]) -> ScriptRows {
        let firsts = firsts(counts);
        let first = firsts.get(at).copied().unwrap_or(0);
        let end = first.saturating_add(counts.get(at).copied().unwrap_or(0));
        let is_own = |position: u32| (first..end).contains(&position);
        let creates = self.creates.iter().filter(|row| is_own(row.position));
        let spends = self.spends.iter().filter(|row| is_own(row.position));
        ScriptRows {
            positions: self.positions.get(at).cloned().unwrap_or_default(),
            creates: creates.map(|row| CreateRow { position: row.position - first, ..*row }).collect(),
            spends: spends.map(|row| SpendRow { position: row.position - first, ..*row }).collect(),
        }
    }

    /// The rows of the blocks.
    pub(super) fn blocks(&self, counts: &[u32]) -> Vec<Arc<ScriptRows>> {
        let firsts = firsts(counts);
        let block_of = |position: u32| firsts.partition_point(|first| *first <= position).saturating_sub(1);
        let none =
            |positions: &Vec<u8>| ScriptRows { positions: positions.clone(), creates: Vec::new(), spends: Vec::new() };
        let mut blocks: Vec<ScriptRows> = self.positions.iter().map(none).collect();
        for row in &self.creates {
            let block = block_of(row.position);
            if let (Some(rows), Some(first)) = (blocks.get_mut(block), firsts.get(block)) {
                rows.creates.push(CreateRow { position: row.position - first, ..*row });
            }
        }
        for row in &self.spends {
            let block = block_of(row.position);
            if let (Some(rows), Some(first)) = (blocks.get_mut(block), firsts.get(block)) {
                rows.spends.push(SpendRow { position: row.position - first, ..*row });
            }
        }
        blocks.into_iter().map(Arc::new).collect()
    }
}

/// The position of each block's first transaction in the group. A block has at least a coinbase.
fn firsts(counts: &[u32]) -> Vec<u32> {
    let mut next = 0;
    let first = |count: &u32| {
        let first = next;
        next += count;
        first
    };
    counts.iter().map(first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_stdx::SplitMix64;

    #[test]
    fn the_rows_of_blocks_come_back() {
        let mut random = SplitMix64::new(1);
        let counts = [1, 5, 1, 900];
        let blocks: Vec<Arc<ScriptRows>> = counts
            .iter()
            .map(|count| {
                let mut rows = ScriptRows {
                    positions: vec![u8::try_from(*count % 200).unwrap()],
                    creates: Vec::new(),
                    spends: Vec::new(),
                };
                for position in 0..*count {
                    let key = random.below(40) as u64;
                    rows.creates.push(CreateRow { key, position, vout: 0, value: random.next_u64() });
                    rows.creates.push(CreateRow { key, position, vout: 1, value: 7 });
                    rows.spends.push(SpendRow { key, position, hash: random.next_u64(), height: 3, vout: 9 });
                }
                rows.creates.sort_unstable();
                rows.spends.sort_unstable();
                Arc::new(rows)
            })
            .collect();
        let settled = Settled::new(None, &blocks, &counts);
        let first = Settled::new(None, &blocks[..3], &counts);
        assert_eq!(Settled::new(Some(&first), &blocks[3..], &counts), settled, "in two steps");
        assert_eq!(first.blocks(&counts), blocks[..3]);
        assert!(settled.creates.is_sorted() && settled.spends.is_sorted());
        assert_eq!((settled.creates.len(), settled.spends.len()), (2 * 907, 907));
        assert_eq!(settled.blocks(&counts), blocks);
        (0..4).for_each(|at| assert_eq!(settled.block(at, &counts), *blocks[at]));
    }
}
