//! Hexadecimal text in one pass. Input: bytes. Output: digits appended. Cost: a look-up and two bytes written for each.

/// Both digits of every byte.
const PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// Bytes in their own order.
pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    for (place, byte) in out[start..].as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *place = PAIRS[usize::from(*byte)];
    }
}

/// A hash, as hashes are shown.
pub(crate) fn push_hex_reversed(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes.iter().rev() {
        out.extend_from_slice(&PAIRS[usize::from(*byte)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::to_hex;

    #[test]
    fn every_byte_both_ways() {
        let bytes: Vec<u8> = (0..=255).collect();
        let (mut forwards, mut backwards) = (b"x".to_vec(), Vec::new());
        push_hex(&mut forwards, &bytes);
        assert_eq!(forwards, format!("x{}", to_hex(&bytes)).as_bytes());
        let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
        push_hex_reversed(&mut backwards, &reversed);
        assert_eq!(backwards, &forwards[1..]);
    }
}
