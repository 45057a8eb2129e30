//! Overwrites of a simulated file that are not durable.
//!
//! Input: the bytes of a file and what is written over them. Output: the changed bytes; after a power loss, the bytes
//! that are found. Invariants: a byte that no overwrite since the last sync covers is never altered; of an overwrite
//! that was not synced, a part from its start is found, and in place of the rest the earlier bytes or any others. Must
//! never: forget an overwrite that a failed sync covered, unless a later one that was synced covers it too.

use lydian_stdx::SplitMix64;

/// One overwrite that is not durable.
#[derive(Clone, Debug)]
struct Overwrite {
    start: usize,
    old: Vec<u8>,
    new: Vec<u8>,
    /// Whether a failed sync covered it: no later sync makes it durable.
    is_doomed: bool,
}

/// The overwrites of one file that are not durable, in order. Those of failed syncs come first.
#[derive(Clone, Debug, Default)]
pub(super) struct Overwrites(Vec<Overwrite>);

impl Overwrites {
    /// Writes over the bytes of a file. The caller has checked that they exist.
    pub(super) fn write(&mut self, bytes: &mut [u8], start: usize, new: &[u8]) {
        if let Some(place) = bytes.get_mut(start..start + new.len()).filter(|place| !place.is_empty()) {
            self.0.push(Overwrite { start, old: place.to_vec(), new: new.to_vec(), is_doomed: false });
            place.copy_from_slice(new);
        }
    }

    /// A sync that succeeded.
    pub(super) fn settle(&mut self) {
        let (mut doomed, synced): (Vec<_>, Vec<_>) = self.0.drain(..).partition(|one| one.is_doomed);
        for one in synced {
            let (start, end) = (one.start, one.start + one.new.len());
            doomed = doomed.into_iter().flat_map(|doomed| doomed.outside(start, end)).collect();
        }
        self.0 = doomed;
    }

    /// A sync that failed.
    pub(super) fn doom(&mut self) {
        self.0.iter_mut().for_each(|one| one.is_doomed = true);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Changes the bytes to what is found after a power loss.
    pub(super) fn survive(&self, bytes: &mut [u8], random: &mut SplitMix64) {
        for one in self.0.iter().rev() {
            one.put(bytes, &one.old);
        }
        for one in &self.0 {
            let count = match random.below(3) {
                0 => one.new.len(),
                1 => 0,
                _ => random.below(one.new.len() + 1),
            };
            let is_garbage = random.below(4) == 0;
            one.put(bytes, &one.new[..count]);
            let rest = one.start + count..one.start + one.new.len();
            if let Some(rest) = bytes.get_mut(rest).filter(|_| is_garbage) {
                rest.iter_mut().for_each(|byte| *byte = random.byte());
            }
        }
    }
}

impl Overwrite {
    fn put(&self, bytes: &mut [u8], content: &[u8]) {
        if let Some(place) = bytes.get_mut(self.start..self.start + content.len()) {
            place.copy_from_slice(content);
        }
    }

    /// The parts before `start` and from `end` on.
    fn outside(self, start: usize, end: usize) -> impl Iterator<Item = Overwrite> {
        let size = self.new.len();
        let before = 0..start.saturating_sub(self.start).min(size);
        let after = end.saturating_sub(self.start).min(size)..size;
        [before, after].into_iter().filter(|part| !part.is_empty()).map(move |part| Overwrite {
            start: self.start + part.start,
            old: self.old[part.clone()].to_vec(),
            new: self.new[part].to_vec(),
            is_doomed: self.is_doomed,
        })
    }
}
