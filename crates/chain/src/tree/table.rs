//! [`Table`]: finds headers by hash. Input: uniformly distributed hashes, as block hashes are. Output: node ids; the
//! nodes themselves contain the hashes. Open addressing with linear probing; entries are never removed. Cost: 5.3 to
//! 10.7 bytes per header, one or two probes per lookup.

use super::HeaderId;
use lydian_primitives::BlockHash;

const EMPTY: u32 = u32::MAX;
const SLOTS_MIN: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Table {
    /// A power of two in number, at most three quarters in use.
    slots: Vec<u32>,
    len: usize,
}

impl Table {
    pub(super) fn new() -> Table {
        Table { slots: vec![EMPTY; SLOTS_MIN], len: 0 }
    }

    /// The id with this hash. `hash_of` returns the hash of an id.
    pub(super) fn find<'a>(&self, hash: &BlockHash, hash_of: impl Fn(HeaderId) -> &'a BlockHash) -> Option<HeaderId> {
        let mut at = self.home(hash);
        while self.slots[at] != EMPTY {
            let id = HeaderId(self.slots[at]);
            if hash_of(id) == hash {
                return Some(id);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        None
    }

    /// Adds an id. Its hash must not be in the table yet.
    pub(super) fn insert<'a>(&mut self, id: HeaderId, hash: &BlockHash, hash_of: impl Fn(HeaderId) -> &'a BlockHash) {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            let size = self.slots.len() * 2;
            let old = std::mem::replace(&mut self.slots, vec![EMPTY; size]);
            for id in old.into_iter().filter(|id| *id != EMPTY) {
                self.place(HeaderId(id), hash_of(HeaderId(id)));
            }
        }
        self.place(id, hash);
        self.len += 1;
    }

    fn place(&mut self, id: HeaderId, hash: &BlockHash) {
        let mut at = self.home(hash);
        while self.slots[at] != EMPTY {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = id.0;
    }

    /// Proof of work does not constrain the first bytes of a hash.
    fn home(&self, hash: &BlockHash) -> usize {
        let [a, b, c, d, ..] = hash.0;
        u32::from_le_bytes([a, b, c, d]) as usize & (self.slots.len() - 1)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }
}
