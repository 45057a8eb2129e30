//! A reusable buffer for the elements of a batch.
//!
//! Input: elements, each as the parts to concatenate. Output: the elements by index. Invariant: `ends` does not
//! decrease, and its last value is the length of `bytes`. Cost: the bytes and 8 bytes per element; after `clear`, no
//! allocation until a batch is larger than all before. Must never: shrink by itself.

/// The elements of a batch, contiguous in one buffer.
#[derive(Clone, Debug, Default)]
pub struct Elements {
    bytes: Vec<u8>,
    /// Where each element ends in `bytes`.
    ends: Vec<usize>,
}

impl Elements {
    /// An empty batch.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new() }
    }

    /// Removes all elements and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Appends one element, which is the concatenation of `parts`.
    pub fn push(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.ends.push(self.bytes.len());
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the batch has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The elements in the order in which they were appended.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The element at `index`.
    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }
}
