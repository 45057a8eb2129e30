//! Numbers on the stack: Core's `CScriptNum` (script/script.h).
//!
//! Input: an element. Output: an `i64`, or an element of 0 to 9 bytes. Little-endian with a sign bit. Operands have at
//! most 4 bytes (5 for lock times); longer results are valid as bytes, but not as operands. Cost: no allocation.

use crate::error::ScriptError;
use crate::limits::SCRIPT_NUM_SIZE_MAX;

/// Decodes an operand of arithmetic: at most 4 bytes.
#[inline]
pub fn decode(element: &[u8], require_minimal: bool) -> Result<i64, ScriptError> {
    decode_sized(element, require_minimal, SCRIPT_NUM_SIZE_MAX)
}

/// Decodes an operand of at most `size_max` bytes; `size_max` must be at most 8.
#[inline]
pub fn decode_sized(element: &[u8], require_minimal: bool, size_max: usize) -> Result<i64, ScriptError> {
    debug_assert!(size_max <= 8);
    if element.len() > size_max || (require_minimal && !is_minimal(element)) {
        return Err(ScriptError::ScriptNum);
    }
    let Some((&last, _)) = element.split_last() else {
        return Ok(0);
    };
    let mut magnitude = element.iter().rev().fold(0_i64, |value, &byte| value << 8 | i64::from(byte));
    if last & 0x80 != 0 {
        magnitude &= !(0x80_i64 << (8 * (element.len() - 1)));
        return Ok(-magnitude);
    }
    Ok(magnitude)
}

/// Whether the last byte holds more than the sign, or the byte before it needs its highest bit. Negative zero is not
/// minimal.
fn is_minimal(element: &[u8]) -> bool {
    match element {
        [] => true,
        [.., before, last] if last & 0x7f == 0 => before & 0x80 != 0,
        [.., last] => last & 0x7f != 0,
    }
}

/// Encodes `value` as its shortest element. Returns a buffer and the number of bytes used (`CScriptNum::serialize`).
#[inline]
pub fn encode(value: i64) -> ([u8; 9], usize) {
    let mut bytes = [0; 9];
    let mut rest = value.unsigned_abs();
    let mut size = 0;
    while rest != 0 {
        bytes[size] = rest.to_le_bytes()[0];
        rest >>= 8;
        size += 1;
    }
    let sign = if value < 0 { 0x80 } else { 0 };
    match size {
        0 => {}
        _ if bytes[size - 1] & 0x80 != 0 => {
            bytes[size] = sign;
            size += 1;
        }
        _ => bytes[size - 1] |= sign,
    }
    (bytes, size)
}

/// Core's `CastToBool`: true if any byte is nonzero, ignoring the sign of a zero.
#[inline]
pub fn to_bool(element: &[u8]) -> bool {
    match element.split_last() {
        None => false,
        Some((&last, rest)) => last & 0x7f != 0 || rest.iter().any(|&byte| byte != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(value: i64) -> Vec<u8> {
        let (bytes, size) = encode(value);
        bytes[..size].to_vec()
    }

    #[test]
    fn encodings() {
        let table: &[(i64, &[u8])] = &[
            (0, &[]),
            (1, &[1]),
            (-1, &[0x81]),
            (127, &[0x7f]),
            (-127, &[0xff]),
            (128, &[0x80, 0]),
            (-128, &[0x80, 0x80]),
            (255, &[0xff, 0]),
            (256, &[0, 1]),
            (-256, &[0, 0x81]),
            (0x7fff_ffff, &[0xff, 0xff, 0xff, 0x7f]),
            (-0x8000_0000, &[0, 0, 0, 0x80, 0x80]),
            (i64::MIN, &[0, 0, 0, 0, 0, 0, 0, 0x80, 0x80]),
        ];
        for (value, bytes) in table {
            assert_eq!(element(*value), *bytes, "{value}");
            if bytes.len() <= 5 {
                assert_eq!(decode_sized(bytes, true, 5), Ok(*value));
            }
        }
    }

    /// limit: SCRIPT_NUM_SIZE_MAX at
    /// limit: SCRIPT_NUM_SIZE_MAX above
    /// limit: LOCK_TIME_NUM_SIZE_MAX at
    /// limit: LOCK_TIME_NUM_SIZE_MAX above
    ///
    /// checklist: 42
    #[test]
    fn operands_have_at_most_four_bytes_and_lock_times_five() {
        use crate::limits::LOCK_TIME_NUM_SIZE_MAX;
        assert_eq!(decode(&[0xff; 4], false), Ok(-0x7fff_ffff));
        assert_eq!(decode(&[0; 5], false), Err(ScriptError::ScriptNum));
        assert_eq!(decode_sized(&[0xff, 0xff, 0xff, 0xff, 0x7f], true, LOCK_TIME_NUM_SIZE_MAX), Ok((1 << 39) - 1));
        assert_eq!(decode_sized(&[0, 0, 0, 0, 1, 0], false, LOCK_TIME_NUM_SIZE_MAX), Err(ScriptError::ScriptNum));
    }

    /// checklist: 42
    #[test]
    fn minimal_numbers() {
        for bad in [&[0x80][..], &[0], &[1, 0], &[0x7f, 0], &[1, 0x80], &[0, 0]] {
            assert_eq!(decode(bad, true), Err(ScriptError::ScriptNum), "{bad:?}");
        }
        for (good, value) in [(&[0x80, 0][..], 128), (&[0xff, 0x80], -255), (&[], 0), (&[0x81], -1)] {
            assert_eq!(decode(good, true), Ok(value), "{good:?}");
        }
        assert_eq!(decode(&[0x80], false), Ok(0), "negative zero");
        assert_eq!(decode(&[1, 0, 0, 0x80], false), Ok(-1));
    }

    /// checklist: 42
    #[test]
    fn negative_zero_is_false() {
        for zero in [&[][..], &[0], &[0x80], &[0, 0, 0x80]] {
            assert!(!to_bool(zero), "{zero:?}");
        }
        for one in [&[1][..], &[0x81], &[0x80, 0], &[0, 0, 0x40], &[0x80, 0x80]] {
            assert!(to_bool(one), "{one:?}");
        }
    }
}
