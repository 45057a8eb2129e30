//! Core's `FindAndDelete` (script/interpreter.cpp): removes a signature from a legacy script code.
//!
//! Input: script, signature. Output: the script, borrowed if nothing was found. A match starts only at the start of an
//! operation and compares bytes exactly. Cost: one walk over the script, none if the push is longer than the script.
//! For legacy scripts only: segwit code must not call this.

use crate::iter::ops;
use std::borrow::Cow;

/// Deletes every push of `data` in the form that Core's `CScript << data` writes (never `OP_1` to `OP_16`). Returns the
/// rest and the number of deletions.
///
/// Nothing is deleted after a push that is cut off.
#[inline]
pub fn find_and_delete<'a>(script: &'a [u8], data: &[u8]) -> (Cow<'a, [u8]>, usize) {
    let (header, size) = push_header(data.len());
    Pattern { head: &header[..size], tail: data }.delete_from(script)
}

/// The bytes that precede `size` bytes of pushed data, and their number: Core's `CScript::AppendDataSize`.
#[inline]
pub fn push_header(size: usize) -> ([u8; 5], usize) {
    let le = u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes();
    match size {
        0..0x4c => ([le[0], 0, 0, 0, 0], 1),
        0x4c..=0xff => ([0x4c, le[0], 0, 0, 0], 2),
        0x100..=0xffff => ([0x4d, le[0], le[1], 0, 0], 3),
        _ => ([0x4e, le[0], le[1], le[2], le[3]], 5),
    }
}

/// The bytes to find, in two parts to avoid concatenating them.
struct Pattern<'a> {
    head: &'a [u8],
    tail: &'a [u8],
}

impl Pattern<'_> {
    fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    fn is_at(&self, rest: &[u8]) -> bool {
        rest.strip_prefix(self.head).is_some_and(|rest| rest.starts_with(self.tail))
    }

    /// At the start of each operation, skips consecutive matches as bytes, then continues the walk after them.
    #[inline]
    fn delete_from<'a>(&self, script: &'a [u8]) -> (Cow<'a, [u8]>, usize) {
        if self.len() == 0 || script.len() < self.len() {
            return (Cow::Borrowed(script), 0);
        }
        let mut kept = Vec::new();
        let (mut found, mut kept_to, mut offset) = (0, 0, 0);
        loop {
            let start = offset;
            while self.is_at(&script[offset..]) {
                offset += self.len();
                found += 1;
            }
            if offset > start {
                kept.extend_from_slice(&script[kept_to..start]);
                kept_to = offset;
            }
            match ops(&script[offset..]).next() {
                Some(Ok(op)) => offset += op.end,
                Some(Err(_)) | None => break,
            }
        }
        if found == 0 {
            return (Cow::Borrowed(script), 0);
        }
        kept.extend_from_slice(&script[kept_to..]);
        (Cow::Owned(kept), found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::hex;

    fn check(script: &str, pattern: &str, expected: &str, count: usize) {
        let (script, pattern) = (hex(script).unwrap(), hex(pattern).unwrap());
        for split in 0..=pattern.len() {
            let (head, tail) = pattern.split_at(split);
            let (rest, found) = Pattern { head, tail }.delete_from(&script);
            assert_eq!(
                (rest.as_ref(), found),
                (&hex(expected).unwrap()[..], count),
                "{script:02x?} less {pattern:02x?}"
            );
        }
    }

    /// The cases of Core's `script_FindAndDelete` (script_tests.cpp).
    ///
    /// checklist: 36
    #[test]
    fn as_core_deletes() {
        check("5152", "", "5152", 0);
        check("515253", "52", "5153", 1);
        check("535153535453", "53", "5154", 4);
        check("0302ff03", "0302ff03", "", 1);
        check("0302ff030302ff03", "0302ff03", "", 2);
        check("0302ff030302ff03", "02", "0302ff030302ff03", 0);
        check("0302ff030302ff03", "ff", "0302ff030302ff03", 0);
        // A byte that is the opcode of a push is deleted, and its data are read as operations from then on.
        check("0302ff030302ff03", "03", "02ff0302ff03", 2);
        check("02feed5169", "feed51", "02feed5169", 0);
        check("02feed5169", "02feed51", "69", 1);
        check("516902feed5169", "feed51", "516902feed5169", 0);
        check("516902feed5169", "02feed51", "516969", 1);
        check("00005151", "0051", "0051", 1);
        check("000051005151", "0051", "0051", 2);
        check("0003feed", "03feed", "00", 1);
        check("0003feed", "00", "03feed", 1);
    }

    /// checklist: 36
    #[test]
    fn only_the_shortest_push_of_the_signature_is_deleted() {
        let signature = [0x30; 76];
        let shortest = [&[0x4c, 76][..], &signature].concat();
        let longer = [&[0x4d, 76, 0][..], &signature].concat();
        assert_eq!(find_and_delete(&shortest, &signature).1, 1);
        assert_eq!(find_and_delete(&longer, &signature).1, 0);
        assert_eq!(find_and_delete(&signature, &signature).1, 0, "not as bare bytes");
        // A single byte from 1 to 16 is pushed with its length, so OP_5 stays.
        assert_eq!(find_and_delete(&[0x55, 1, 5], &[5]), (Cow::Owned(vec![0x55]), 1));
        // The push of an empty signature is OP_0.
        assert_eq!(find_and_delete(&[0, 0x51, 0], &[]), (Cow::Owned(vec![0x51]), 2));
    }

    #[test]
    fn nothing_is_deleted_behind_a_push_that_is_cut_off() {
        assert_eq!(find_and_delete(&[1, 5, 9, 1, 5], &[5]), (Cow::Owned(vec![9, 1, 5]), 1));
        assert_eq!(find_and_delete(&[0x51, 1, 7, 1, 7, 5, 1, 7], &[7]).0, vec![0x51, 5, 1, 7]);
    }

    #[test]
    fn push_headers() {
        for (size, header) in [
            (0, &[0][..]),
            (75, &[75]),
            (76, &[0x4c, 76]),
            (255, &[0x4c, 255]),
            (256, &[0x4d, 0, 1]),
            (65_535, &[0x4d, 255, 255]),
            (65_536, &[0x4e, 0, 0, 1, 0]),
        ] {
            let (bytes, used) = push_header(size);
            assert_eq!(&bytes[..used], header);
        }
    }
}
