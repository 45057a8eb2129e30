//! Import of blocks from existing files: found by their headers, entered into the tree at their positions.
//!
//! Input: block files in Core's framing. Output: headers in the tree and positions for their blocks; only headers are
//! validated. Records are read in file order, as in Core's `LoadExternalBlockFile`. A record whose parent comes later
//! waits for it; so of chains with equal work the one that comes first in the files wins. Cost: 88 bytes read and one
//! header checked per block; memory about 200 bytes per block.

use super::accept::accept_header;
use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::settings::Cancel;
use crate::error::EngineError;
use lydian_chain::{BlockFile, BlockFiles, BlockPosition, ChainError, HeaderId, IndexEntry, Record, Remark};
use lydian_consensus::Rejected;
use lydian_primitives::BlockHash;
use lydian_stdx::lock;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The result of an import.
#[derive(Debug, Default)]
pub struct Import {
    /// Blocks in the files.
    pub blocks: u64,
    /// Blocks that were not stored before.
    pub new_blocks: u64,
    pub refused: Vec<RefusedHeader>,
    /// Blocks whose parent is neither stored nor in the files.
    pub orphans: u64,
    /// Bytes in the files that are not a block.
    pub remarks: Vec<Remark>,
    /// The import was stopped before the end of the files.
    pub is_cancelled: bool,
}

/// A block whose header breaks a rule.
#[derive(Clone, Debug)]
pub struct RefusedHeader {
    pub path: PathBuf,
    pub offset: u64,
    pub hash: BlockHash,
    pub reason: Rejected,
}

/// Files to import, and whether to copy them.
#[derive(Clone, Debug)]
pub struct ImportFiles {
    pub files: Vec<BlockFile>,
    /// Copies the blocks into our own files; otherwise they are always read from where they are.
    pub is_copied: bool,
}

pub(crate) fn import(
    chainstate: &ChainstateManager,
    files: ImportFiles,
    now: i64,
    cancel: &Cancel,
    progress: &mut dyn FnMut(&Path, usize),
) -> Result<Import, EngineError> {
    let mut source = BlockFiles::new(&*chainstate.disk, files.files.clone());
    let scanned = source.scan_while(chainstate.params.magic, &mut |path, found| {
        progress(path, found);
        !cancel.is_cancelled()
    });
    let Some(index) = scanned.map_err(ChainError::from)? else {
        return Ok(Import { is_cancelled: true, ..Import::default() });
    };
    let numbers = if files.is_copied { Vec::new() } else { chainstate.store.adopt(&files.files, true)? };
    let mut import = Import { blocks: index.records.len() as u64, remarks: index.remarks, ..Import::default() };
    let mut entering = Entering { chainstate, source, numbers, now, import: &mut import };
    // By the hash of the missing parent.
    let mut waiting: HashMap<BlockHash, Vec<Record>> = HashMap::new();
    for record in index.records {
        if cancel.is_cancelled() {
            entering.import.is_cancelled = true;
            break;
        }
        let mut ready = vec![record];
        while let Some(record) = ready.pop() {
            if record.hash != chainstate.params.genesis_hash
                && chainstate.tree().find(&record.header.prev_block).is_none()
            {
                waiting.entry(record.header.prev_block).or_default().push(record);
                continue;
            }
            entering.enter(&record)?;
            // In the order in which they came.
            ready.extend(waiting.remove(&record.hash).into_iter().flatten().rev());
        }
    }
    import.orphans = waiting.values().map(|records| records.len() as u64).sum();
    chainstate.store.flush()?;
    Ok(import)
}

struct Entering<'a, 'd> {
    chainstate: &'a ChainstateManager,
    source: BlockFiles<'d>,
    /// The store's number of each source file; empty if blocks are copied.
    numbers: Vec<u32>,
    now: i64,
    import: &'a mut Import,
}

impl Entering<'_, '_> {
    fn enter(&mut self, record: &Record) -> Result<(), EngineError> {
        let chainstate = self.chainstate;
        if record.hash == chainstate.params.genesis_hash {
            return Ok(());
        }
        let accepted = accept_header(chainstate, &record.header, self.now);
        let id: HeaderId = match accepted {
            Ok(id) => id,
            Err(reason) => {
                let path = self.source.files()[record.file as usize].path.clone();
                self.import.refused.push(RefusedHeader { path, offset: record.offset, hash: record.hash, reason });
                return Ok(());
            }
        };
        if let Some(known) = chainstate.tree().node(id).block {
            if let Some(&file) = self.numbers.get(record.file as usize) {
                let other = BlockPosition { file, offset: record.offset, size: record.size };
                if other != known {
                    lock(&chainstate.other_places).entry(id).or_default().push_back(other);
                }
            }
            return Ok(());
        }
        let position = match self.numbers.get(record.file as usize) {
            Some(&file) => BlockPosition { file, offset: record.offset, size: record.size },
            None => {
                let raw = self.source.read_raw(record).map_err(ChainError::from)?;
                chainstate.store.append_block(raw.as_bytes())?
            }
        };
        chainstate.store.record(&[IndexEntry::Block { id, position }]);
        chainstate.tree_mut().set_block(id, position);
        self.import.new_blocks += 1;
        Ok(())
    }
}
