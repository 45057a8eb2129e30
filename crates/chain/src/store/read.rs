//! Reads the data at positions, independently of the rest of the store. Input: positions. Output: blocks, undo data; or
//! an error with file and offset.

use super::error::{ChainError, UndoFault};
use super::files::{Files, OpenFile, Part};
use super::writer::{CHECKSUM_SIZE, FRAME_SIZE, undo_checksum};
use crate::limits::UNDO_SIZE_MAX;
use crate::position::{BlockPart, BlockPosition, UndoPosition};
use crate::undo::{BlockUndo, UndoParts, decode_undo};
use lydian_disk::{DiskError, DiskErrorKind};
use lydian_hash::Sha256;
use lydian_primitives::{Block, BlockHash, ParseError, RawBlock};
use std::sync::Arc;

pub(super) fn read_block(files: &Files, position: BlockPosition) -> Result<RawBlock, ChainError> {
    let BlockPosition { file, offset, size } = position;
    let opened = files.open(file, Part::Blocks, offset.saturating_add(u64::from(size)))?;
    Ok(RawBlock::new(opened.read(offset, size as usize)?))
}

/// Those that follow each other and are in one file are read at the same time.
pub(super) fn read_block_parts(files: &Files, parts: &[BlockPart]) -> Result<Vec<Option<Vec<u8>>>, ChainError> {
    let has = |part: &&BlockPart| part.start.checked_add(part.size).is_some_and(|end| end <= part.block.size);
    let mut all = Vec::with_capacity(parts.len());
    for of_file in parts.chunk_by(|one, next| one.block.file == next.block.file) {
        let known: Vec<&BlockPart> = of_file.iter().filter(has).collect();
        let end = |part: &&BlockPart| part.block.offset.saturating_add(u64::from(part.block.size));
        let (Some(first), Some(end)) = (known.first(), known.iter().map(end).max()) else {
            all.extend(of_file.iter().map(|_| None));
            continue;
        };
        let opened = files.open(first.block.file, Part::Blocks, end)?;
        let place = |part: &&BlockPart| (part.block.offset.saturating_add(u64::from(part.start)), part.size as usize);
        let mut read = opened.read_many(&known.iter().map(place).collect::<Vec<_>>())?.into_iter();
        all.extend(of_file.iter().map(|part| if has(&part) { read.next() } else { None }));
    }
    Ok(all)
}

/// The bytes of a part of a block, read while they are needed. Its file stays open: the bytes can be read to their end
/// if it is removed meanwhile.
#[derive(Debug)]
pub struct StoredBytes {
    file: Arc<OpenFile>,
    offset: u64,
    size: u32,
}

impl StoredBytes {
    /// `None` if the block does not have the part, or if its file is in memory as a whole, which would stay there.
    pub(super) fn open(files: &Files, part: BlockPart) -> Result<Option<StoredBytes>, ChainError> {
        let BlockPart { block, start, size } = part;
        if start.checked_add(size).is_none_or(|end| end > block.size) {
            return Ok(None);
        }
        let file = files.open(block.file, Part::Blocks, block.offset.saturating_add(u64::from(block.size)))?;
        let offset = block.offset.saturating_add(u64::from(start));
        Ok(Some(StoredBytes { file, offset, size }).filter(|bytes| !bytes.file.is_whole()))
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    /// Fills the buffer with the bytes from `start` on.
    pub fn read(&self, start: u32, buffer: &mut [u8]) -> Result<(), ChainError> {
        let missing = self.missing(start, buffer.len());
        if missing > 0 {
            let kind = DiskErrorKind::UnexpectedEnd { missing };
            return Err(DiskError { path: self.file.path().to_owned(), offset: Some(self.offset), kind }.into());
        }
        Ok(self.file.fill(self.offset.saturating_add(u64::from(start)), buffer)?)
    }

    /// The same if the bytes are in memory already; false if not, also where [`read`](StoredBytes::read) fails.
    pub fn read_cached(&self, start: u32, buffer: &mut [u8]) -> bool {
        self.missing(start, buffer.len()) == 0
            && self.file.fill_cached(self.offset.saturating_add(u64::from(start)), buffer)
    }

    /// Hints that all bytes will be read soon.
    pub fn prefetch(&self) {
        self.file.prefetch(self.offset, u64::from(self.size));
    }

    fn missing(&self, start: u32, size: usize) -> u64 {
        u64::from(start).saturating_add(size as u64).saturating_sub(u64::from(self.size))
    }
}

pub(super) fn read_undo(
    files: &Files,
    magic: [u8; 4],
    position: UndoPosition,
    prev_hash: &BlockHash,
) -> Result<BlockUndo, ChainError> {
    let bytes = read_undo_bytes(files, magic, position, prev_hash)?;
    decode_undo(&bytes).map_err(|error| unparsable(files, position, error))
}

/// Undo data from which single transactions are read.
pub(super) fn read_undo_parts(
    files: &Files,
    magic: [u8; 4],
    position: UndoPosition,
    prev_hash: &BlockHash,
) -> Result<UndoParts, ChainError> {
    let bytes = read_undo_bytes(files, magic, position, prev_hash)?;
    UndoParts::parse(bytes).map_err(|error| unparsable(files, position, error))
}

fn unparsable(files: &Files, position: UndoPosition, error: ParseError) -> ChainError {
    let path = files.path(position.file, Part::Undo);
    ChainError::UndoDamaged { path, offset: position.offset, fault: UndoFault::Parse(error) }
}

/// Reads undo data and verifies its frame and checksum.
fn read_undo_bytes(
    files: &Files,
    magic: [u8; 4],
    position: UndoPosition,
    prev_hash: &BlockHash,
) -> Result<Vec<u8>, ChainError> {
    let UndoPosition { file, offset, size } = position;
    let path = files.path(file, Part::Undo);
    let damaged = |fault| ChainError::UndoDamaged { path: path.clone(), offset, fault };
    let Some(start) = offset.checked_sub(FRAME_SIZE as u64).filter(|_| size <= UNDO_SIZE_MAX) else {
        return Err(damaged(UndoFault::Frame));
    };
    let whole = FRAME_SIZE + size as usize + CHECKSUM_SIZE;
    let opened = match files.open(file, Part::Undo, start.saturating_add(whole as u64)) {
        Ok(opened) => opened,
        Err(ChainError::Disk(error)) if error.kind == DiskErrorKind::NotFound => {
            return Err(ChainError::UndoMissing { path, offset });
        }
        Err(error) => return Err(error),
    };
    let mut bytes = opened.read(start, whole)?;
    let (frame, rest) = bytes.split_at(FRAME_SIZE);
    let (undo, checksum) = rest.split_at(size as usize);
    if frame[..4] != magic || frame[4..] != size.to_le_bytes() {
        return Err(damaged(UndoFault::Frame));
    }
    if checksum != undo_checksum(prev_hash, undo) {
        return Err(damaged(UndoFault::Checksum));
    }
    bytes.truncate(FRAME_SIZE + size as usize);
    bytes.drain(..FRAME_SIZE);
    Ok(bytes)
}

/// Reads the block at a position if its bytes are complete, including witnesses.
pub(super) fn read_whole_block(
    files: &Files,
    position: BlockPosition,
    hash: &BlockHash,
) -> Result<Option<Block>, ChainError> {
    match read_block(files, position) {
        Ok(raw) => Ok(raw.parse().ok().filter(|block| block.hash() == *hash && is_body_whole(block))),
        Err(ChainError::Disk(error)) if is_absence(&error.kind) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the bytes of undo data at a position if they are complete.
pub(super) fn read_whole_undo(
    files: &Files,
    magic: [u8; 4],
    position: UndoPosition,
    prev_hash: &BlockHash,
) -> Result<Option<Vec<u8>>, ChainError> {
    match read_undo_bytes(files, magic, position, prev_hash) {
        Ok(undo) => Ok(Some(undo)),
        Err(ChainError::UndoDamaged { .. } | ChainError::UndoMissing { .. }) => Ok(None),
        Err(ChainError::Disk(error)) if is_absence(&error.kind) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_absence(kind: &DiskErrorKind) -> bool {
    matches!(kind, DiskErrorKind::NotFound | DiskErrorKind::UnexpectedEnd { .. })
}

/// Whether the transactions match the header's commitment and the witnesses match the coinbase's. A coinbase without
/// the 32 bytes that belong to a witness commitment makes none.
fn is_body_whole(block: &Block) -> bool {
    if block.header().merkle_root != block.merkle_root() || block.is_merkle_mutated() {
        return false;
    }
    let Some(witness) = block.witness_commitment() else { return true };
    let reserved = block.txs().next().and_then(|coinbase| coinbase.inputs().next()?.witness.iter().next());
    match reserved {
        Some(reserved) if reserved.len() == 32 => {
            let made = Sha256::new().update(&witness.witness_merkle_root).update(reserved).finalize_double();
            made == witness.commitment
        }
        _ => true,
    }
}
