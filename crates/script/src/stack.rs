//! The stack of a script. No element is copied to the heap: a pushed element is a slice of its script or witness, and a
//! computed one (hash, number, truth value) has at most 32 bytes and is stored inline.
//!
//! Invariant: [`Stack`] returns `SCRIPT_ERR_INVALID_STACK_OPERATION` where Core's stack is too short; it never panics.
//! Cost: 40 bytes per element.

use crate::error::ScriptError;
use crate::num;
use crate::opcodes::*;

/// A stack element.
#[derive(Clone, Copy)]
pub(crate) enum Element<'a> {
    Slice(&'a [u8]),
    /// The value is the first `size` bytes.
    Short {
        bytes: [u8; 32],
        size: u8,
    },
}

/// The elements pushed by `OP_1NEGATE` and `OP_1` to `OP_16`, indexed by the opcode's distance from `OP_1NEGATE`.
/// `OP_RESERVED` is between them.
static SMALL_NUMBERS: [[u8; 1]; 18] =
    [[0x81], [0], [1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11], [12], [13], [14], [15], [16]];

impl<'a> Element<'a> {
    pub(crate) const FALSE: Element<'static> = Element::Slice(&[]);
    pub(crate) const TRUE: Element<'static> = Element::Slice(&[1]);

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Element::Slice(bytes) => bytes,
            Element::Short { bytes, size } => &bytes[..usize::from(*size)],
        }
    }

    /// The bytes with the lifetime of their script; `None` for a computed element.
    pub(crate) fn as_slice(&self) -> Option<&'a [u8]> {
        match self {
            Element::Slice(bytes) => Some(bytes),
            Element::Short { .. } => None,
        }
    }

    pub(crate) fn from_bool(value: bool) -> Element<'static> {
        if value { Element::TRUE } else { Element::FALSE }
    }

    /// `opcode` is `OP_1NEGATE` or `OP_1` to `OP_16`.
    pub(crate) fn from_number_opcode(opcode: u8) -> Element<'static> {
        Element::Slice(&SMALL_NUMBERS[usize::from(opcode - OP_1NEGATE)])
    }

    pub(crate) fn from_number(value: i64) -> Element<'static> {
        let (short, size) = num::encode(value);
        let mut bytes = [0; 32];
        bytes[..9].copy_from_slice(&short);
        Element::Short { bytes, size: size.to_le_bytes()[0] }
    }

    /// A hash of 20 or 32 bytes.
    pub(crate) fn from_hash<const N: usize>(hash: [u8; N]) -> Element<'static> {
        const { assert!(N <= 32) }
        let mut bytes = [0; 32];
        bytes[..N].copy_from_slice(&hash);
        Element::Short { bytes, size: N.to_le_bytes()[0] }
    }

    #[inline]
    pub(crate) fn to_bool(self) -> bool {
        num::to_bool(self.as_bytes())
    }
}

/// The elements, with the top last.
#[derive(Clone)]
pub(crate) struct Stack<'a> {
    elements: Vec<Element<'a>>,
}

/// Initial capacity: enough for common scripts.
const USUAL_DEPTH: usize = 8;

impl<'a> Stack<'a> {
    pub(crate) fn new() -> Stack<'a> {
        Stack { elements: Vec::with_capacity(USUAL_DEPTH) }
    }

    /// A stack that allocates nothing until the first push.
    pub(crate) const fn empty() -> Stack<'a> {
        Stack { elements: Vec::new() }
    }

    pub(crate) fn from_slices(slices: impl Iterator<Item = &'a [u8]>) -> Stack<'a> {
        Stack { elements: slices.map(Element::Slice).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.elements.len()
    }

    pub(crate) fn elements(&self) -> &[Element<'a>] {
        &self.elements
    }

    #[inline]
    pub(crate) fn push(&mut self, element: Element<'a>) {
        self.elements.push(element);
    }

    /// Fails unless there are at least `count` elements, like the check at the start of an operation.
    #[inline]
    pub(crate) fn require(&self, count: usize) -> Result<(), ScriptError> {
        if self.elements.len() < count { Err(ScriptError::InvalidStackOperation) } else { Ok(()) }
    }

    /// Returns the element `depth` places below the top; 0 is the top.
    #[inline]
    pub(crate) fn peek(&self, depth: usize) -> Result<Element<'a>, ScriptError> {
        let index = self.elements.len().checked_sub(depth + 1).ok_or(ScriptError::InvalidStackOperation)?;
        Ok(self.elements[index])
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Result<Element<'a>, ScriptError> {
        self.elements.pop().ok_or(ScriptError::InvalidStackOperation)
    }

    /// Drops `count` elements, or all if there are fewer.
    #[inline]
    pub(crate) fn drop_top(&mut self, count: usize) {
        self.elements.truncate(self.elements.len().saturating_sub(count));
    }

    /// Core's `resize(1)` of a stack that is not empty.
    pub(crate) fn keep_first(&mut self) {
        self.elements.truncate(1);
    }

    /// Whether there is a top element and it is true.
    pub(crate) fn top_is_true(&self) -> bool {
        self.elements.last().is_some_and(|element| element.to_bool())
    }

    /// The operations from `OP_2DROP` to `OP_TUCK`, which only move elements.
    pub(crate) fn operate(&mut self, opcode: u8, require_minimal: bool) -> Result<(), ScriptError> {
        match opcode {
            OP_2DROP => self.require(2).map(|()| self.drop_top(2)),
            OP_2DUP => self.duplicate(2, 1).and_then(|()| self.duplicate(2, 1)),
            OP_3DUP => (0..3).try_for_each(|_| self.duplicate(3, 2)),
            OP_2OVER => (0..2).try_for_each(|_| self.duplicate(4, 3)),
            OP_2ROT => self.rotate(6, 2),
            OP_2SWAP => self.rotate(4, 2),
            OP_IFDUP => self.if_duplicate(),
            OP_DEPTH => {
                self.push_size(self.len());
                Ok(())
            }
            OP_DROP => self.pop().map(drop),
            OP_DUP => self.duplicate(1, 0),
            OP_NIP => self.require(2).map(|()| self.remove(1)),
            OP_OVER => self.duplicate(2, 1),
            OP_PICK | OP_ROLL => self.pick(opcode == OP_ROLL, require_minimal),
            OP_ROT => self.rotate(3, 1),
            OP_SWAP => self.rotate(2, 1),
            OP_TUCK => self.rotate(2, 1).and_then(|()| self.duplicate(2, 1)),
            _ => Err(ScriptError::BadOpcode),
        }
    }

    /// Pushes a copy of the element at `depth`. The stack must have at least `count` elements.
    fn duplicate(&mut self, count: usize, depth: usize) -> Result<(), ScriptError> {
        self.require(count)?;
        let element = self.peek(depth)?;
        self.push(element);
        Ok(())
    }

    /// Moves the lowest `moved` of the top `count` elements to the top.
    fn rotate(&mut self, count: usize, moved: usize) -> Result<(), ScriptError> {
        self.require(count)?;
        let start = self.len() - count;
        self.elements[start..].rotate_left(moved);
        Ok(())
    }

    fn remove(&mut self, depth: usize) {
        if let Some(index) = self.len().checked_sub(depth + 1) {
            self.elements.remove(index);
        }
    }

    fn if_duplicate(&mut self) -> Result<(), ScriptError> {
        let top = self.peek(0)?;
        if top.to_bool() {
            self.push(top);
        }
        Ok(())
    }

    fn pick(&mut self, take_away: bool, require_minimal: bool) -> Result<(), ScriptError> {
        self.require(2)?;
        let depth = num::decode(self.pop()?.as_bytes(), require_minimal)?;
        let depth = usize::try_from(depth).map_err(|_| ScriptError::InvalidStackOperation)?;
        let element = self.peek(depth)?;
        if take_away {
            self.remove(depth);
        }
        self.push(element);
        Ok(())
    }

    /// Pushes a size or count.
    pub(crate) fn push_size(&mut self, size: usize) {
        self.push(Element::from_number(i64::try_from(size).unwrap_or(i64::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(opcode: u8, before: &[u8], after: Result<&[u8], ScriptError>) {
        let numbers: Vec<[u8; 1]> = before.iter().map(|&byte| [byte]).collect();
        let mut stack = Stack::from_slices(numbers.iter().map(|bytes| &bytes[..]));
        let outcome = stack.operate(opcode, true).map(|()| {
            stack.elements.iter().map(|element| element.as_bytes().first().copied().unwrap_or(0)).collect::<Vec<u8>>()
        });
        assert_eq!(outcome, after.map(<[u8]>::to_vec), "{}", opcode_name(opcode));
    }

    /// The stack effects given in the comments of script/interpreter.cpp, and each operation with one element too few.
    #[test]
    fn moves() {
        const TOO_FEW: Result<&[u8], ScriptError> = Err(ScriptError::InvalidStackOperation);
        check(OP_2DROP, &[9, 1, 2], Ok(&[9]));
        check(OP_2DROP, &[1], TOO_FEW);
        check(OP_2DUP, &[1, 2], Ok(&[1, 2, 1, 2]));
        check(OP_2DUP, &[1], TOO_FEW);
        check(OP_3DUP, &[1, 2, 3], Ok(&[1, 2, 3, 1, 2, 3]));
        check(OP_3DUP, &[1, 2], TOO_FEW);
        check(OP_2OVER, &[1, 2, 3, 4], Ok(&[1, 2, 3, 4, 1, 2]));
        check(OP_2OVER, &[1, 2, 3], TOO_FEW);
        check(OP_2ROT, &[1, 2, 3, 4, 5, 6], Ok(&[3, 4, 5, 6, 1, 2]));
        check(OP_2ROT, &[1, 2, 3, 4, 5], TOO_FEW);
        check(OP_2SWAP, &[1, 2, 3, 4], Ok(&[3, 4, 1, 2]));
        check(OP_2SWAP, &[1, 2, 3], TOO_FEW);
        check(OP_IFDUP, &[7], Ok(&[7, 7]));
        check(OP_IFDUP, &[0x80], Ok(&[0x80]));
        check(OP_IFDUP, &[], TOO_FEW);
        check(OP_DEPTH, &[], Ok(&[0]));
        check(OP_DEPTH, &[5, 5], Ok(&[5, 5, 2]));
        check(OP_DROP, &[1, 2], Ok(&[1]));
        check(OP_DROP, &[], TOO_FEW);
        check(OP_DUP, &[1], Ok(&[1, 1]));
        check(OP_DUP, &[], TOO_FEW);
        check(OP_NIP, &[1, 2], Ok(&[2]));
        check(OP_NIP, &[1], TOO_FEW);
        check(OP_OVER, &[1, 2], Ok(&[1, 2, 1]));
        check(OP_OVER, &[1], TOO_FEW);
        check(OP_ROT, &[1, 2, 3], Ok(&[2, 3, 1]));
        check(OP_ROT, &[1, 2], TOO_FEW);
        check(OP_SWAP, &[1, 2], Ok(&[2, 1]));
        check(OP_SWAP, &[1], TOO_FEW);
        check(OP_TUCK, &[1, 2], Ok(&[2, 1, 2]));
        check(OP_TUCK, &[1], TOO_FEW);
    }

    #[test]
    fn pick_and_roll() {
        check(OP_PICK, &[7, 8, 9, 2], Ok(&[7, 8, 9, 7]));
        check(OP_ROLL, &[7, 8, 9, 2], Ok(&[8, 9, 7]));
        check(OP_ROLL, &[7, 1], Err(ScriptError::InvalidStackOperation));
        check(OP_PICK, &[7, 0x81], Err(ScriptError::InvalidStackOperation));
        check(OP_PICK, &[0], Err(ScriptError::InvalidStackOperation));
        check(OP_PICK, &[7, 0], Err(ScriptError::ScriptNum));
    }
}
