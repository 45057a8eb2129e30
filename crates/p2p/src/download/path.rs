//! [`Path`]: the blocks above the validated height, with the state of each.
//!
//! Input: blocks of the path in order, arrivals, the progress of validation. Output: the blocks to request, and which
//! peers were asked.
//!
//! Invariants: heights have no gaps; a block that is here is not requested from further peers; `bytes_here` and
//! `bytes_in_flight` are sums over the slots; the `open` lowest slots have at most the bytes of the window, but at
//! least one is open. Cost: O(log n) per call.

use super::{PeerId, WantedBlock};
use lydian_primitives::{BlockHash, Height};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A block of the path.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) hash: BlockHash,
    /// Estimated until the block is here.
    pub(super) size: u32,
    pub(super) is_here: bool,
    /// Peers that were asked and have not answered.
    pub(super) asked: Vec<PeerId>,
}

#[derive(Debug)]
pub(super) struct Path {
    validated: Height,
    slots: VecDeque<Slot>,
    heights: BTreeMap<BlockHash, Height>,
    /// The number of slots in the window, from the lowest, and their bytes.
    open: usize,
    open_bytes: u64,
    /// Heights of open blocks that are not here: not requested, and requested.
    free: BTreeSet<Height>,
    in_flight: BTreeSet<Height>,
    bytes_here: u64,
    bytes_in_flight: u64,
}

impl Path {
    pub(super) fn new(validated: Height) -> Path {
        Path {
            validated,
            slots: VecDeque::new(),
            heights: BTreeMap::new(),
            open: 0,
            open_bytes: 0,
            free: BTreeSet::new(),
            in_flight: BTreeSet::new(),
            bytes_here: 0,
            bytes_in_flight: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn validated(&self) -> Height {
        self.validated
    }

    pub(super) fn end(&self) -> Height {
        Height(self.validated.0.saturating_add(u32::try_from(self.slots.len()).unwrap_or(u32::MAX)))
    }

    pub(super) fn find(&self, hash: &BlockHash) -> Option<Height> {
        self.heights.get(hash).copied()
    }

    pub(super) fn slot(&self, height: Height) -> Option<&Slot> {
        self.slots.get(self.index(height)?)
    }

    fn index(&self, height: Height) -> Option<usize> {
        height.0.checked_sub(self.validated.0 + 1).map(|index| index as usize)
    }

    fn height(&self, index: usize) -> Height {
        Height(self.validated.0 + 1 + u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Returns whether the window reaches the end of the known path.
    pub(super) fn is_window_open_ended(&self, window_bytes: u64) -> bool {
        let rest: u64 = self.slots.iter().skip(self.open).take(64).map(|slot| u64::from(slot.size)).sum();
        self.slots.len() < self.open + 64 || self.open_bytes + rest <= window_bytes
    }

    pub(super) fn push(&mut self, block: WantedBlock) {
        let height = self.height(self.slots.len());
        self.heights.insert(block.hash, height);
        let WantedBlock { hash, size_bytes, is_here } = block;
        self.slots.push_back(Slot { hash, size: size_bytes, is_here, asked: Vec::new() });
        if is_here {
            self.bytes_here += u64::from(size_bytes);
        }
    }

    /// Opens the slots that fit into the window.
    pub(super) fn open(&mut self, window_bytes: u64) {
        while let Some(slot) = self.slots.get(self.open) {
            let bytes = self.open_bytes + u64::from(slot.size);
            if self.open > 0 && bytes > window_bytes {
                break;
            }
            self.open_bytes = bytes;
            if !slot.is_here && slot.asked.is_empty() {
                self.free.insert(self.height(self.open));
            }
            self.open += 1;
        }
    }

    /// Returns whether the block is in the window.
    pub(super) fn is_open(&self, height: Height) -> bool {
        self.index(height).is_some_and(|index| index < self.open)
    }

    /// Returns the open blocks from a height on that were not requested.
    pub(super) fn free_from(&self, height: Height) -> impl Iterator<Item = Height> + '_ {
        self.free.range(height..).copied()
    }

    /// Returns the requested blocks, lowest first.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = Height> + '_ {
        self.in_flight.iter().copied()
    }

    pub(super) fn add_request(&mut self, height: Height, peer: PeerId) {
        let Some(index) = self.index(height) else { return };
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.asked.push(peer);
        self.free.remove(&height);
        if !slot.is_here && self.in_flight.insert(height) {
            self.bytes_in_flight += u64::from(slot.size);
        }
    }

    /// The peer has answered or will not answer.
    pub(super) fn forget_request(&mut self, height: Height, peer: PeerId) {
        let Some(index) = self.index(height) else { return };
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.asked.retain(|asked| *asked != peer);
        if slot.asked.is_empty() && self.in_flight.remove(&height) {
            self.bytes_in_flight -= u64::from(slot.size);
            if index < self.open {
                self.free.insert(height);
            }
        }
    }

    /// The block arrived. Other requests for it stay open, because the bytes may be wrong. Returns false if it was
    /// already here.
    pub(super) fn set_here(&mut self, height: Height, size: u32) -> bool {
        let Some(index) = self.index(height) else { return false };
        let Some(slot) = self.slots.get_mut(index).filter(|slot| !slot.is_here) else { return false };
        let guessed = std::mem::replace(&mut slot.size, size);
        slot.is_here = true;
        if index < self.open {
            self.open_bytes = self.open_bytes - u64::from(guessed) + u64::from(size);
        }
        self.bytes_here += u64::from(size);
        self.free.remove(&height);
        if self.in_flight.remove(&height) {
            self.bytes_in_flight -= u64::from(guessed);
        }
        true
    }

    /// The arrived block was verified. Returns the other peers that were asked for it.
    pub(super) fn settle(&mut self, height: Height) -> Vec<PeerId> {
        let slot = self.index(height).and_then(|index| self.slots.get_mut(index)).filter(|slot| slot.is_here);
        slot.map_or(Vec::new(), |slot| std::mem::take(&mut slot.asked))
    }

    /// The block is wanted again, from the peers that were asked and have not answered or from another peer.
    pub(super) fn clear_here(&mut self, height: Height) {
        let Some(index) = self.index(height) else { return };
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.is_here) else { return };
        slot.is_here = false;
        self.bytes_here -= u64::from(slot.size);
        if !slot.asked.is_empty() {
            self.bytes_in_flight += u64::from(slot.size);
            self.in_flight.insert(height);
        } else if index < self.open {
            self.free.insert(height);
        }
    }

    /// Returns the lowest block that is not here.
    pub(super) fn first_missing(&self) -> Option<(Height, &Slot)> {
        let height = self.free.first().into_iter().chain(self.in_flight.first()).min()?;
        Some((*height, self.slot(*height)?))
    }

    /// Returns whether the next block for validation is here.
    pub(super) fn has_next(&self) -> bool {
        self.slots.front().is_some_and(|slot| slot.is_here)
    }

    /// Removes everything up to `height` and returns the number of bytes.
    pub(super) fn set_validated(&mut self, height: Height) -> u64 {
        let mut bytes = 0;
        while self.validated < height {
            let Some(slot) = self.slots.pop_front() else {
                self.validated = height;
                break;
            };
            self.validated = Height(self.validated.0 + 1);
            bytes += u64::from(slot.size);
            self.release(self.validated, &slot);
            if self.open > 0 {
                self.open -= 1;
                self.open_bytes -= u64::from(slot.size);
            }
        }
        bytes
    }

    fn release(&mut self, height: Height, slot: &Slot) {
        self.heights.remove(&slot.hash);
        self.free.remove(&height);
        if self.in_flight.remove(&height) {
            self.bytes_in_flight -= u64::from(slot.size);
        }
        if slot.is_here {
            self.bytes_here -= u64::from(slot.size);
        }
    }

    /// Removes everything above `height` and returns the requested blocks.
    pub(super) fn cut(&mut self, height: Height) -> Vec<(BlockHash, Vec<PeerId>)> {
        let mut asked = Vec::new();
        while self.end() > height {
            let top = self.end();
            let Some(mut slot) = self.slots.pop_back() else { break };
            self.release(top, &slot);
            if self.open > self.slots.len() {
                self.open -= 1;
                self.open_bytes -= u64::from(slot.size);
            }
            if !slot.asked.is_empty() {
                asked.push((slot.hash, std::mem::take(&mut slot.asked)));
            }
        }
        self.validated = self.validated.min(height);
        asked
    }

    /// Returns the average size of a block in the window.
    pub(super) fn mean_open_size(&self) -> u32 {
        u32::try_from(self.open_bytes / (self.open.max(1) as u64)).unwrap_or(u32::MAX)
    }

    /// In the window only.
    pub(super) fn blocks_here(&self) -> usize {
        self.open.saturating_sub(self.free.len() + self.in_flight.len())
    }

    pub(super) fn bytes_here(&self) -> u64 {
        self.bytes_here
    }

    pub(super) fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Returns the bytes of the open slots below a height: of blocks that are here, and of those that are not.
    pub(super) fn bytes_below(&self, height: Height, last: Option<(Height, u64, u64)>) -> (u64, u64) {
        let (from, mut here, mut missing) = last.unwrap_or((Height(self.validated.0 + 1), 0, 0));
        let end = self.slots.len();
        let (from, to) = (self.index(from).unwrap_or(0).min(end), self.index(height).unwrap_or(0).min(end));
        for slot in self.slots.range(from.min(to)..to) {
            if slot.is_here {
                here += u64::from(slot.size);
            } else {
                missing += u64::from(slot.size);
            }
        }
        (here, missing)
    }
}
