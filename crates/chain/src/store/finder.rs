//! [`Finder`]: finds blocks in our own block files and adds them to the tree. Input: files, a tree. Output: headers and
//! positions in the tree, an index entry for each, remarks.
//!
//! A block whose parent comes later waits for it. Cost: 88 bytes read and one header checked per block. Only headers
//! are checked; no file is changed.

use super::entry::IndexEntry;
use super::error::{ChainError, network_name};
use super::files::{Files, Part};
use super::remark::StoreRemark;
use crate::limits::REMARKS_MAX;
use crate::position::BlockPosition;
use crate::scan::{Record, Remark, RemarkKind, View, scan_file};
use crate::tree::{HeaderId, HeaderTree};
use lydian_consensus::Params;
use lydian_disk::Disk;
use lydian_primitives::BlockHash;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

pub(super) struct Finder<'a> {
    disk: &'a dyn Disk,
    params: &'a Params,
    remarks: Vec<StoreRemark>,
    /// Blocks found whose header cannot be added yet, by the hash of their parent.
    orphans: HashMap<BlockHash, Vec<(Record, BlockPosition)>>,
    /// Number of blocks found, without further copies.
    pub(super) found: usize,
    /// Number of blocks found that are in the tree, further copies included.
    pub(super) entered: usize,
    /// The files that have these blocks.
    useful: BTreeSet<u32>,
    /// Further copies of blocks, in the order found.
    other_places: Vec<(HeaderId, BlockPosition)>,
}

/// What was found besides the blocks in the tree.
pub(super) struct Found {
    pub(super) remarks: Vec<StoreRemark>,
    pub(super) other_places: Vec<(HeaderId, BlockPosition)>,
}

impl<'a> Finder<'a> {
    /// `remarks`: those made before.
    pub(super) fn new(disk: &'a dyn Disk, params: &'a Params, remarks: Vec<StoreRemark>) -> Finder<'a> {
        Finder {
            disk,
            params,
            remarks,
            orphans: HashMap::new(),
            found: 0,
            entered: 0,
            useful: BTreeSet::new(),
            other_places: Vec::new(),
        }
    }

    pub(super) fn remark(&mut self, remark: StoreRemark) {
        if self.remarks.len() < REMARKS_MAX {
            self.remarks.push(remark);
        }
    }

    /// Adds a remark with the number of blocks found since `before`.
    pub(super) fn remark_found(&mut self, path: &Path, before: usize) {
        let count = self.found - before;
        if count > 0 {
            self.remark(StoreRemark::BlocksFound { path: path.to_owned(), count });
        }
    }

    /// The records of a file of ours from `start` on. Returns an error if there are only blocks of another chain.
    pub(super) fn scan(&mut self, files: &Files, file: u32, start: u64) -> Result<Vec<Record>, ChainError> {
        let path = files.path(file, Part::Blocks);
        let opened = self.disk.open(&path)?;
        let view = View { path: &path, file: opened.as_ref(), key: files.key };
        let mut remarks: Vec<Remark> = Vec::new();
        let records = scan_file(&view, file, self.params.magic, start, |remark| remarks.push(remark))?;
        for remark in remarks {
            match remark.kind {
                RemarkKind::OtherChain { magic, .. } if records.is_empty() && start == 0 => {
                    let expected = self.params.chain.name();
                    return Err(ChainError::OtherNetwork { path, found: network_name(magic), expected });
                }
                _ => self.remark(StoreRemark::Scan(remark)),
            }
        }
        Ok(records)
    }

    /// Adds a block that was found, and the blocks that waited for it, to the tree. Calls `enter` with the index
    /// entries for it; they must be recorded while the caller has exclusive access to the tree.
    pub(super) fn enter(
        &mut self,
        files: &Files,
        tree: &mut HeaderTree,
        record: Record,
        position: BlockPosition,
        enter: &mut dyn FnMut(IndexEntry),
    ) {
        let mut ready = vec![(record, position)];
        while let Some((record, position)) = ready.pop() {
            if tree.find(&record.hash).is_none() && tree.find(&record.header.prev_block).is_none() {
                self.orphans.entry(record.header.prev_block).or_default().push((record, position));
                continue;
            }
            let count = tree.len();
            // It was not from the future when it was accepted.
            let id = match tree.accept_header(&record.header, i64::MAX / 2, self.params) {
                Ok(id) => id,
                Err(reason) => {
                    let path = files.path(record.file, Part::Blocks);
                    let Record { offset, hash, .. } = record;
                    self.remark(StoreRemark::HeaderRefused { path, offset, hash, reason });
                    continue;
                }
            };
            self.entered += 1;
            self.useful.insert(position.file);
            if tree.len() > count {
                enter(IndexEntry::Header { id, header: record.header });
            }
            match tree.block(id) {
                None => {
                    tree.set_block(id, position);
                    self.found += 1;
                    enter(IndexEntry::Block { id, position });
                }
                Some(known) if known != position => self.other_places.push((id, position)),
                Some(_) => self.found += 1,
            }
            // In the order in which they came.
            ready.extend(self.orphans.remove(&record.hash).unwrap_or_default().into_iter().rev());
        }
    }

    /// Whether a block without a parent and a child of it were found, which only the right key shows. It is all that a
    /// pruned node has left of its chain.
    pub(super) fn has_family(&self) -> bool {
        self.orphans.values().flatten().any(|(record, _)| self.orphans.contains_key(&record.hash))
    }

    /// The files that have blocks, none of which is in the tree.
    pub(super) fn useless_files(&self) -> BTreeSet<u32> {
        let of_orphans = self.orphans.values().flatten().map(|(_, position)| position.file);
        of_orphans.filter(|file| !self.useful.contains(file)).collect()
    }

    /// Ends the search: the blocks that still wait have no parent.
    pub(super) fn finish(mut self) -> Found {
        let count = self.orphans.values().map(Vec::len).sum();
        if count > 0 {
            self.remark(StoreRemark::MissingParents { count });
        }
        Found { remarks: self.remarks, other_places: self.other_places }
    }
}
