//! The slots of a history file. Input: tiers and times. Output: values; bytes written. A slot that cannot be read or is
//! damaged has no values. Cost: ranges are read in pieces of 256 KiB.

use super::format::{HEAD_SIZE, Layout, SLOT_SIZE, Slot, Tier, Values, decode_slot, encode_slot, slot_offset};
use lydian_disk::{DiskError, FixedFile};
use lydian_stdx::saturating_usize;

/// Slots that are read at once.
const SLOTS_READ: u64 = 256;

/// The file and its layout.
#[derive(Debug)]
pub(super) struct SlotFile {
    pub(super) file: Box<dyn FixedFile>,
    pub(super) layout: Layout,
}

impl SlotFile {
    pub(super) fn tiers(&self) -> usize {
        self.layout.tiers.len()
    }

    /// A tier; the coarsest if there is none with this number.
    pub(super) fn tier(&self, tier: usize) -> Tier {
        self.layout.tiers.get(tier).copied().unwrap_or(self.layout.tiers[self.layout.tiers.len() - 1])
    }

    /// The start of the interval that contains a time.
    pub(super) fn start(&self, tier: usize, time: u64) -> u64 {
        time - time % self.tier(tier).step
    }

    /// Writes the values of an interval.
    pub(super) fn write(&self, tier: usize, start: u64, values: &[f64]) -> Result<(), DiskError> {
        let slot = self.layout.slot(tier, start);
        self.file.write_at(slot_offset(slot), &encode_slot(slot, start, values))
    }

    /// Makes a slot empty.
    pub(super) fn erase(&self, slot: u64) -> Result<(), DiskError> {
        self.file.write_at(slot_offset(slot), &vec![0; saturating_usize(SLOT_SIZE)])
    }

    pub(super) fn sync(&self) -> Result<(), DiskError> {
        self.file.sync()
    }

    /// A copy of the head.
    pub(super) fn head(&self, copy: u64) -> Result<Vec<u8>, DiskError> {
        let mut bytes = vec![0; saturating_usize(HEAD_SIZE)];
        self.file.read_at(copy * HEAD_SIZE, &mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn write_head(&self, copy: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.write_at(copy * HEAD_SIZE, bytes)?;
        self.file.sync()
    }

    /// Hands over the intervals of a tier that start in a range and have values, in their order.
    pub(super) fn each(&self, tier: usize, from: u64, to: u64, take: &mut dyn FnMut(u64, Values<'_>)) {
        let Tier { step, count } = self.tier(tier);
        let mut time = from.next_multiple_of(step);
        while time < to {
            let left = (to - time).div_ceil(step);
            let to_the_end = count - time / step % count;
            let run = left.min(to_the_end).min(SLOTS_READ);
            self.each_slot(self.layout.slot(tier, time), run, &mut |_, slot| {
                if let Slot::Values { time: found, values } = slot
                    && found == time
                {
                    take(time, values);
                }
                time = time.saturating_add(step);
            });
        }
    }

    /// Hands over `count` slots in their order.
    pub(super) fn each_slot(&self, first: u64, count: u64, take: &mut dyn FnMut(u64, Slot<'_>)) {
        let mut slot = first;
        while slot < first + count {
            let run = (first + count - slot).min(SLOTS_READ);
            let mut bytes = vec![0; saturating_usize(run * SLOT_SIZE)];
            let is_read = self.file.read_at(slot_offset(slot), &mut bytes).is_ok();
            for bytes in bytes.chunks_mut(saturating_usize(SLOT_SIZE)) {
                // If one part of the disk is bad, the others are read one by one.
                let is_read = is_read || self.file.read_at(slot_offset(slot), bytes).is_ok();
                take(slot, if is_read { decode_slot(&self.layout, slot, bytes) } else { Slot::Damaged });
                slot += 1;
            }
        }
    }
}
