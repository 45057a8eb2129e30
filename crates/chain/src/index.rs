//! [`BlockIndex`]: all records of a set of files, and their order by height. Input: records in file order. Output:
//! every block that descends from the genesis block, parents before children, equal heights in file order; and the
//! blocks with a missing parent.
//!
//! Cost: about 100 bytes per record while scanning, and the same again while ordering; n log n comparisons. Heights are
//! counted along parents and imply no validity: only the headers are known.

use crate::files::BlockFile;
use crate::limits::REMARKS_MAX;
use crate::scan::{Record, Remark, RemarkKind};
use lydian_primitives::{BlockHash, Height};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

/// The result of the first pass.
#[derive(Clone, Debug, Default)]
pub struct BlockIndex {
    pub files: Vec<BlockFile>,
    /// In file order.
    pub records: Vec<Record>,
    /// The first [`REMARKS_MAX`], in file order.
    pub remarks: Vec<Remark>,
    /// Number of remarks that were not kept.
    pub remarks_left_out: usize,
}

/// A record and its height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub height: Height,
    pub record: Record,
}

/// A block whose parent is in none of the files. Its descendants cannot be verified either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingParent {
    pub path: PathBuf,
    pub record: Record,
    /// Number of blocks that descend from it.
    pub descendants: usize,
}

impl fmt::Display for MissingParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { offset, hash, header, .. } = self.record;
        let parent = header.prev_block;
        write!(
            f,
            "{}:{offset}: block {hash} names parent {parent}, which is in none of the files",
            self.path.display()
        )?;
        match self.descendants {
            0 => f.write_str("; it was not verified"),
            1 => f.write_str("; it and the block that follows from it were not verified"),
            count => write!(f, "; it and the {count} blocks that follow from it were not verified"),
        }
    }
}

/// The blocks of an index in validation order.
#[derive(Clone, Debug, Default)]
pub struct Ordered {
    pub blocks: Vec<Placed>,
    /// In file order.
    pub missing_parents: Vec<MissingParent>,
}

impl BlockIndex {
    pub(crate) fn remark(&mut self, remark: Remark) {
        if self.remarks.len() < REMARKS_MAX {
            self.remarks.push(remark);
        } else {
            self.remarks_left_out += 1;
        }
    }

    /// Orders the blocks that descend from `genesis`, which need not be in the files itself, and adds remarks for
    /// duplicate blocks. A second copy is kept after the first, because only reading them shows which one is intact.
    pub fn order(&mut self, genesis: BlockHash) -> Ordered {
        let mut first_copy: HashMap<BlockHash, usize> = HashMap::with_capacity(self.records.len());
        let mut children: HashMap<BlockHash, Vec<usize>> = HashMap::with_capacity(self.records.len());
        let mut duplicates = Vec::new();
        for (index, record) in self.records.iter().enumerate() {
            match first_copy.get(&record.hash) {
                Some(&first) => duplicates.push((index, first)),
                None => {
                    first_copy.insert(record.hash, index);
                }
            }
            children.entry(record.header.prev_block).or_default().push(index);
        }
        for &(index, first) in &duplicates {
            let (record, first) = (self.records[index], self.records[first]);
            let first_path = self.path_of(&first);
            let kind = RemarkKind::Duplicate { hash: record.hash, first_path, first_offset: first.offset };
            self.remark(Remark { path: self.path_of(&record), offset: record.offset, kind });
        }

        let mut is_placed = vec![false; self.records.len()];
        let roots =
            self.records.iter().enumerate().filter(|(_, record)| record.hash == genesis).map(|(index, _)| index);
        let mut level: Vec<usize> = roots.collect();
        let mut blocks = Vec::with_capacity(self.records.len());
        let mut height = Height(0);
        if level.is_empty() {
            level = children.get(&genesis).cloned().unwrap_or_default();
            height = Height(1);
        }
        while !level.is_empty() {
            level.sort_unstable();
            for &index in &level {
                is_placed[index] = true;
                blocks.push(Placed { height, record: self.records[index] });
            }
            let is_first = |index: &&usize| first_copy.get(&self.records[**index].hash) == Some(*index);
            let parents = level.iter().filter(is_first).map(|&index| self.records[index].hash);
            level = parents.filter_map(|hash| children.get(&hash)).flatten().copied().collect();
            height = Height(height.0.saturating_add(1));
        }
        let missing_parents = self.missing_parents(&is_placed, &first_copy, &children);
        Ordered { blocks, missing_parents }
    }

    fn missing_parents(
        &self,
        is_placed: &[bool],
        first_copy: &HashMap<BlockHash, usize>,
        children: &HashMap<BlockHash, Vec<usize>>,
    ) -> Vec<MissingParent> {
        let is_first = |index: usize| first_copy.get(&self.records[index].hash) == Some(&index);
        let is_root = |index: usize| {
            !is_placed[index] && is_first(index) && !first_copy.contains_key(&self.records[index].header.prev_block)
        };
        let roots = (0..self.records.len()).filter(|&index| is_root(index));
        let count_descendants = |root: usize| {
            let (mut count, mut open) = (0, vec![self.records[root].hash]);
            while let Some(hash) = open.pop() {
                let followers = children.get(&hash).into_iter().flatten().copied().filter(|&index| is_first(index));
                followers.for_each(|index| {
                    count += 1;
                    open.push(self.records[index].hash);
                });
            }
            count
        };
        roots
            .map(|root| MissingParent {
                path: self.path_of(&self.records[root]),
                record: self.records[root],
                descendants: count_descendants(root),
            })
            .collect()
    }

    /// The file that contains a record.
    pub fn path_of(&self, record: &Record) -> PathBuf {
        self.files.get(record.file as usize).map(|file| file.path.clone()).unwrap_or_default()
    }
}
