//! Iterates over the operations of a script: Core's `GetScriptOp` (script/script.cpp). Every walk over a script in this
//! crate (execution, sigops, FindAndDelete, signature hashes) uses this iterator.
//!
//! Input: any bytes. Output: the opcode, the pushed bytes and the offset after each operation. A push that extends past
//! the end yields one [`BadPush`], after which the iterator ends. Invariant: each step advances by at least one byte.
//! Cost: no allocation, no copy. Must never interpret an opcode.

/// Opcodes up to this one (`OP_PUSHDATA4`) push the bytes that follow them.
const PUSHDATA4: u8 = 0x4e;

/// Iterates over the operations of `script`, starting at its first byte.
#[inline]
pub fn ops(script: &[u8]) -> Ops<'_> {
    Ops { script, offset: 0 }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op<'a> {
    pub opcode: u8,
    /// The pushed bytes; empty for opcodes above `OP_PUSHDATA4` (and for `OP_0`).
    pub push: &'a [u8],
    /// Offset of the byte after this operation.
    pub end: usize,
}

/// A push whose length bytes or data are cut off by the end of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPush {
    /// Where Core's cursor stops: after the opcode, or after the length bytes if they are complete. The legacy
    /// signature hash ends the script code here.
    pub offset: usize,
}

/// The iterator returned by [`ops`].
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    script: &'a [u8],
    offset: usize,
}

impl<'a> Ops<'a> {
    /// Offset of the next operation.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Reads the little-endian length of `N` bytes at `at`. Returns it and the offset after it.
    #[inline]
    fn length<const N: usize>(&self, at: usize) -> Option<(usize, usize)> {
        let bytes = self.script.get(at..)?.first_chunk::<N>()?;
        let mut word = [0; 4];
        word[..N].copy_from_slice(bytes);
        Some((u32::from_le_bytes(word) as usize, at + N))
    }

    #[inline]
    fn push(&mut self, opcode: u8, after_opcode: usize) -> Result<Op<'a>, BadPush> {
        let length = match opcode {
            0x4c => self.length::<1>(after_opcode),
            0x4d => self.length::<2>(after_opcode),
            PUSHDATA4 => self.length::<4>(after_opcode),
            _ => Some((usize::from(opcode), after_opcode)),
        };
        let Some((size, start)) = length else {
            return self.stop(after_opcode);
        };
        match self.script[start..].get(..size) {
            Some(push) => {
                self.offset = start + size;
                Ok(Op { opcode, push, end: self.offset })
            }
            None => self.stop(start),
        }
    }

    fn stop(&mut self, offset: usize) -> Result<Op<'a>, BadPush> {
        self.offset = self.script.len();
        Err(BadPush { offset })
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Result<Op<'a>, BadPush>;

    #[inline]
    fn next(&mut self) -> Option<Result<Op<'a>, BadPush>> {
        let opcode = *self.script.get(self.offset)?;
        let after = self.offset + 1;
        if opcode <= PUSHDATA4 {
            return Some(self.push(opcode, after));
        }
        self.offset = after;
        Some(Ok(Op { opcode, push: &[], end: after }))
    }
}

impl std::iter::FusedIterator for Ops<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opcode, push and end of an operation, or the offset of a bad push.
    type Step<'a> = Result<(u8, &'a [u8], usize), usize>;

    fn check(script: &[u8], expected: &[Step<'_>]) {
        let got: Vec<_> =
            ops(script).map(|op| op.map(|op| (op.opcode, op.push, op.end)).map_err(|bad| bad.offset)).collect();
        assert_eq!(got, expected, "{script:02x?}");
    }

    #[test]
    fn pushes_of_every_width() {
        check(&[], &[]);
        check(&[0x00, 0x51, 0x02, 7, 8], &[Ok((0, &[], 1)), Ok((0x51, &[], 2)), Ok((2, &[7, 8], 5))]);
        check(&[0x4c, 1, 9, 0xac], &[Ok((0x4c, &[9], 3)), Ok((0xac, &[], 4))]);
        check(&[0x4d, 1, 0, 9], &[Ok((0x4d, &[9], 4))]);
        check(&[0x4e, 1, 0, 0, 0, 9], &[Ok((0x4e, &[9], 6))]);
        check(&[0x4e, 0, 0, 0, 0, 0xff], &[Ok((0x4e, &[], 5)), Ok((0xff, &[], 6))]);
    }

    /// The length after OP_PUSHDATA4 has 32 bits. A node that read only 16 of them accepted these scripts.
    ///
    /// checklist: 43
    #[test]
    fn pushdata4_length_has_32_bits() {
        check(&[0x4e, 0, 0, 1, 0], &[Err(5)]);
        check(&[0x4e, 0xff, 0xff, 0xff, 0xff, 1], &[Err(5)]);
        let mut script = vec![0x4e, 1, 0, 1, 0];
        script.resize(5 + 0x1_0001, 0xab);
        let Some(Ok(op)) = ops(&script).next() else { panic!("a whole push") };
        assert_eq!((op.push.len(), op.end), (0x1_0001, script.len()));
    }

    /// The position of Core's cursor after a failed `GetScriptOp`.
    #[test]
    fn bad_pushes_end_the_script_where_core_stops() {
        check(&[0x51, 0x05, 1, 2], &[Ok((0x51, &[], 1)), Err(2)]);
        check(&[0x4c], &[Err(1)]);
        check(&[0x4c, 2, 1], &[Err(2)]);
        check(&[0x4d, 2], &[Err(1)]);
        check(&[0x4d, 2, 0, 1], &[Err(3)]);
        check(&[0x4e, 2, 0, 0], &[Err(1)]);
    }
}
