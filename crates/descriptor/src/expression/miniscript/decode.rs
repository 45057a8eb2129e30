//! Miniscript from a script: Core's `miniscript::FromScript`, for witness scripts and for leaf scripts of taproot.
//!
//! Input: a script; for the hash of a key, the key. Output: the expression with its keys, if the script is one. An
//! expression is recognised by its end, so the operations are read from the last to the first. Core is only limited by
//! the size of the script; expressions nested deeper than [`MINISCRIPT_DEPTH_MAX`] and thresholds with more parts than
//! [`THRESHOLD_PARTS_MAX`] are not recognised here. Cost: one pass without backtracking, and for each threshold the
//! square of its parts.

use super::{Fragment, Kind, LEAF_SIZE_MAX, SCRIPT_SIZE_MAX, has};
use crate::limits::{MINISCRIPT_DEPTH_MAX, THRESHOLD_PARTS_MAX};
use lydian_script::opcodes::*;
use lydian_script::{is_minimal_push, num, ops};

/// An expression, and its keys; in a leaf they are x-only.
pub(crate) type Decoded = (Fragment, Vec<Vec<u8>>);

/// Recognises a witness script or a leaf script. `find_key` returns the whole key with a hash; in a leaf it is the hash
/// of x alone.
pub(crate) fn decode(
    script: &[u8],
    is_leaf: bool,
    find_key: &mut dyn FnMut(&[u8; 20]) -> Option<Vec<u8>>,
) -> Option<Decoded> {
    if script.len() > if is_leaf { LEAF_SIZE_MAX } else { SCRIPT_SIZE_MAX } {
        return None;
    }
    let mut reader = Reader { rest: decompose(script)?, is_leaf, find_key, keys: Vec::new(), depth: 0 };
    let mut fragment = reader.sequence()?;
    if !reader.rest.is_empty() || !has(fragment.kind_type, "B") {
        return None;
    }
    let keys: Vec<Option<Vec<u8>>> = reader.keys.iter().cloned().map(Some).collect();
    // The result is also stored in the fragments.
    let _ = fragment.mark_duplicates(&keys);
    Some((fragment, reader.keys))
}

/// An operation; a number opcode has its number as data.
#[derive(Clone, Copy)]
struct Item<'a> {
    opcode: u8,
    data: &'a [u8],
}

/// The numbers of `OP_1` to `OP_16`.
const NUMBERS: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

/// Splits opcodes that include OP_VERIFY. `None` if a push is cut off or not the shortest, or if OP_VERIFY stands apart
/// where an opcode includes it. Core's `DecomposeScript`.
fn decompose(script: &[u8]) -> Option<Vec<Item<'_>>> {
    let mut items: Vec<Item<'_>> = Vec::new();
    for op in ops(script) {
        let op = op.ok()?;
        let plain = match op.opcode {
            OP_CHECKSIGVERIFY => Some(OP_CHECKSIG),
            OP_CHECKMULTISIGVERIFY => Some(OP_CHECKMULTISIG),
            OP_EQUALVERIFY => Some(OP_EQUAL),
            OP_NUMEQUALVERIFY => Some(OP_NUMEQUAL),
            _ => None,
        };
        if let Some(opcode) = plain {
            items.extend([Item { opcode, data: &[] }, Item { opcode: OP_VERIFY, data: &[] }]);
            continue;
        }
        let is_mergeable =
            |last: &Item<'_>| matches!(last.opcode, OP_CHECKSIG | OP_CHECKMULTISIG | OP_EQUAL | OP_NUMEQUAL);
        if op.opcode == OP_VERIFY && items.last().is_some_and(is_mergeable) {
            return None;
        }
        let data = match op.opcode {
            OP_1..=OP_16 => NUMBERS.get(usize::from(op.opcode - OP_1)..)?.get(..1)?,
            1..=OP_PUSHDATA4 if !is_minimal_push(op.push, op.opcode) => return None,
            _ => op.push,
        };
        items.push(Item { opcode: op.opcode, data });
    }
    Some(items)
}

struct Reader<'a, 'f> {
    /// The operations that are still to be read; the last is next.
    rest: Vec<Item<'a>>,
    is_leaf: bool,
    find_key: &'f mut dyn FnMut(&[u8; 20]) -> Option<Vec<u8>>,
    keys: Vec<Vec<u8>>,
    depth: usize,
}

/// Core's `MAX_PUBKEYS_PER_MULTISIG`.
const KEYS_MAX: i64 = 20;

/// Core's `MAX_PUBKEYS_PER_MULTI_A`.
const LEAF_KEYS_MAX: usize = 999;

impl<'a> Reader<'a, '_> {
    fn peek(&self, ahead: usize) -> Option<Item<'a>> {
        self.rest.len().checked_sub(ahead + 1).and_then(|index| self.rest.get(index)).copied()
    }

    fn is_next(&self, opcodes: &[u8]) -> bool {
        opcodes.iter().enumerate().all(|(ahead, opcode)| self.peek(ahead).is_some_and(|item| item.opcode == *opcode))
    }

    fn skip(&mut self, count: usize) {
        self.rest.truncate(self.rest.len().saturating_sub(count));
    }

    /// Reads these opcodes if they are next.
    fn take(&mut self, opcodes: &[u8]) -> bool {
        let is_next = self.is_next(opcodes);
        if is_next {
            self.skip(opcodes.len());
        }
        is_next
    }

    /// The number that an operation pushes: Core's `ParseScriptNumber`.
    fn number(&self, ahead: usize) -> Option<i64> {
        let item = self.peek(ahead)?;
        match item.opcode {
            OP_0 => Some(0),
            _ if item.data.is_empty() => None,
            _ => num::decode(item.data, true).ok(),
        }
    }

    fn node(&self, kind: Kind, subs: Vec<Fragment>) -> Option<Fragment> {
        Some(Fragment::wrap(kind, subs, self.is_leaf)).filter(Fragment::is_valid)
    }

    fn leaf(&self, kind: Kind, k: i64, keys: Vec<usize>, data: &[u8]) -> Option<Fragment> {
        let k = u32::try_from(k).ok()?;
        Some(Fragment::new(kind, k, keys, data.to_vec(), Vec::new(), self.is_leaf)).filter(Fragment::is_valid)
    }

    fn add_key(&mut self, key: &[u8]) -> Option<usize> {
        let is_key = match self.is_leaf {
            true => key.len() == 32,
            false => matches!(key, [2 | 3, ..]) && key.len() == 33,
        };
        if !is_key {
            return None;
        }
        self.keys.push(key.to_vec());
        Some(self.keys.len() - 1)
    }

    /// One expression of type B, K or V, or several joined by and_v.
    fn sequence(&mut self) -> Option<Fragment> {
        self.deeper(|reader| {
            let last = reader.single()?;
            // These operations end no expression, so nothing is before this one.
            let begins = [OP_IF, OP_ELSE, OP_NOTIF, OP_TOALTSTACK, OP_SWAP];
            match reader.peek(0) {
                Some(item) if !begins.contains(&item.opcode) => {
                    let first = reader.sequence()?;
                    reader.node(Kind::AndV, vec![first, last])
                }
                _ => Some(last),
            }
        })
    }

    /// An expression of type W.
    fn wrapped(&mut self) -> Option<Fragment> {
        let (kind, start) = match self.take(&[OP_FROMALTSTACK]) {
            true => (Kind::WrapA, OP_TOALTSTACK),
            false => (Kind::WrapS, OP_SWAP),
        };
        let inner = self.sequence()?;
        if self.take(&[start]) { self.node(kind, vec![inner]) } else { None }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MINISCRIPT_DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// One expression of type B, K or V that is no and_v.
    fn single(&mut self) -> Option<Fragment> {
        self.deeper(|reader| match reader.terminal()? {
            Some(fragment) => Some(fragment),
            None => reader.compound(),
        })
    }

    /// An expression without others inside. The outer `None`: the script is no miniscript.
    fn terminal(&mut self) -> Option<Option<Fragment>> {
        let next = self.peek(0)?;
        match next.opcode {
            OP_1 | OP_0 => {
                self.skip(1);
                let kind = if next.opcode == OP_1 { Kind::Just1 } else { Kind::Just0 };
                return self.node(kind, Vec::new()).map(Some);
            }
            _ if matches!(next.data.len(), 32 | 33) => {
                let key = self.add_key(next.data)?;
                self.skip(1);
                return self.leaf(Kind::PkK, 0, vec![key], &[]).map(Some);
            }
            OP_CHECKSEQUENCEVERIFY | OP_CHECKLOCKTIMEVERIFY => {
                let kind = if next.opcode == OP_CHECKSEQUENCEVERIFY { Kind::Older } else { Kind::After };
                let Some(number) = self.number(1) else { return Some(None) };
                self.skip(2);
                return Some(Some(self.leaf(
                    kind,
                    Some(number).filter(|number| (1..1 << 31).contains(number))?,
                    vec![],
                    &[],
                )?));
            }
            OP_CHECKMULTISIG if self.rest.len() >= 3 => return self.multi().map(Some),
            OP_NUMEQUAL if self.rest.len() >= 4 => return self.multi_a().map(Some),
            _ => {}
        }
        let is_key_hash = self.is_next(&[OP_VERIFY, OP_EQUAL])
            && self.peek(3).is_some_and(|item| item.opcode == OP_HASH160)
            && self.peek(4).is_some_and(|item| item.opcode == OP_DUP);
        if let Some(hash) = self.peek(2).filter(|_| is_key_hash).and_then(|item| item.data.try_into().ok()) {
            // Unlike a key in the script, it need not be compressed.
            let key = (self.find_key)(hash)?;
            self.keys.push(if self.is_leaf { key.get(1..33)?.to_vec() } else { key });
            let key = self.keys.len() - 1;
            self.skip(5);
            return self.leaf(Kind::PkH, 0, vec![key], &[]).map(Some);
        }
        match self.hash_lock() {
            Some((kind, data)) => {
                self.skip(7);
                self.leaf(kind, 0, Vec::new(), data).map(Some)
            }
            None => Some(None),
        }
    }

    /// `SIZE 32 EQUALVERIFY`, a hash function, a hash, `EQUAL`.
    fn hash_lock(&self) -> Option<(Kind, &'a [u8])> {
        let is_size = self.peek(3)?.opcode == OP_VERIFY
            && self.peek(4)?.opcode == OP_EQUAL
            && self.number(5) == Some(32)
            && self.peek(6)?.opcode == OP_SIZE;
        if !is_size || self.peek(0)?.opcode != OP_EQUAL {
            return None;
        }
        let data = self.peek(1)?.data;
        match (self.peek(2)?.opcode, data.len()) {
            (OP_SHA256, 32) => Some((Kind::Sha256, data)),
            (OP_HASH256, 32) => Some((Kind::Hash256, data)),
            (OP_RIPEMD160, 20) => Some((Kind::Ripemd160, data)),
            (OP_HASH160, 20) => Some((Kind::Hash160, data)),
            _ => None,
        }
    }

    fn multi(&mut self) -> Option<Fragment> {
        if self.is_leaf {
            return None;
        }
        let count = self.number(1).filter(|count| (1..=KEYS_MAX).contains(count))?;
        let size = usize::try_from(count).ok()?;
        let mut keys = Vec::with_capacity(size);
        for ahead in 2..2 + size {
            keys.push(self.add_key(self.peek(ahead)?.data)?);
        }
        keys.reverse();
        let required = self.number(2 + size).filter(|required| (1..=count).contains(required))?;
        self.skip(3 + size);
        self.leaf(Kind::Multi, required, keys, &[])
    }

    /// Keys, each with OP_CHECKSIGADD except the first, which has OP_CHECKSIG.
    fn multi_a(&mut self) -> Option<Fragment> {
        let required = self.number(1).filter(|_| self.is_leaf)?;
        let (mut keys, mut ahead) = (Vec::new(), 2);
        loop {
            let is_first = match self.peek(ahead)?.opcode {
                OP_CHECKSIG => true,
                OP_CHECKSIGADD => false,
                _ => return None,
            };
            keys.push(self.add_key(self.peek(ahead + 1)?.data)?);
            if keys.len() > LEAF_KEYS_MAX {
                return None;
            }
            ahead += 2;
            if is_first {
                break;
            }
        }
        keys.reverse();
        let count = i64::try_from(keys.len()).ok()?;
        let required = Some(required).filter(|required| (1..=count).contains(required))?;
        self.skip(ahead);
        self.leaf(Kind::MultiA, required, keys, &[])
    }

    /// An expression with others inside.
    fn compound(&mut self) -> Option<Fragment> {
        for (opcode, kind) in [(OP_CHECKSIG, Kind::WrapC), (OP_VERIFY, Kind::WrapV), (OP_0NOTEQUAL, Kind::WrapN)] {
            if self.take(&[opcode]) {
                let inner = self.single()?;
                return self.node(kind, vec![inner]);
            }
        }
        if self.is_next(&[OP_EQUAL]) && self.rest.len() >= 3 {
            return self.thresh();
        }
        if self.take(&[OP_ENDIF]) {
            return self.conditional();
        }
        for (opcode, kind) in [(OP_BOOLAND, Kind::AndB), (OP_BOOLOR, Kind::OrB)] {
            if self.take(&[opcode]) {
                let second = self.wrapped()?;
                let first = self.single()?;
                return self.node(kind, vec![first, second]);
            }
        }
        None
    }

    fn thresh(&mut self) -> Option<Fragment> {
        let required = self.number(1)?;
        self.skip(2);
        let mut subs = Vec::new();
        while self.take(&[OP_ADD]) {
            subs.push(self.wrapped()?);
            if subs.len() >= THRESHOLD_PARTS_MAX {
                return None;
            }
        }
        subs.push(self.single()?);
        subs.reverse();
        let count = i64::try_from(subs.len()).ok()?;
        let required = u32::try_from(required).ok().filter(|_| (1..=count).contains(&required))?;
        Some(Fragment::new(Kind::Thresh, required, Vec::new(), Vec::new(), subs, self.is_leaf))
            .filter(Fragment::is_valid)
    }

    /// What ends with OP_ENDIF.
    fn conditional(&mut self) -> Option<Fragment> {
        let last = self.sequence()?;
        if self.take(&[OP_ELSE]) {
            let first = self.sequence()?;
            if self.take(&[OP_IF]) {
                return self.node(Kind::OrI, vec![first, last]);
            }
            if !self.take(&[OP_NOTIF]) {
                return None;
            }
            let condition = self.single()?;
            return self.node(Kind::AndOr, vec![condition, last, first]);
        }
        if self.take(&[OP_IF, OP_DUP]) {
            return self.node(Kind::WrapD, vec![last]);
        }
        if self.take(&[OP_IF, OP_0NOTEQUAL, OP_SIZE]) {
            return self.node(Kind::WrapJ, vec![last]);
        }
        if !self.take(&[OP_NOTIF]) {
            return None;
        }
        let kind = if self.take(&[OP_IFDUP]) { Kind::OrD } else { Kind::OrC };
        let first = self.single()?;
        self.node(kind, vec![first, last])
    }
}
