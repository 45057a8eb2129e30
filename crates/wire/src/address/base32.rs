//! Base32 of RFC 4648 in lower case without padding, for onion and I2P addresses. Input: bytes or text. Output: the
//! other.
//!
//! Invariants: leftover bits are zero (required by Core's `ConvertBits` with `pad` false); upper case is also accepted.
//! Total on any text.

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Encodes bytes as text, without padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in bytes {
        bits = (bits << 8 | u32::from(*byte)) & 0xffff;
        held += 8;
        while held >= 5 {
            held -= 5;
            text.push(char::from(ALPHABET[(bits >> held & 31) as usize]));
        }
    }
    if held > 0 {
        text.push(char::from(ALPHABET[(bits << (5 - held) & 31) as usize]));
    }
    text
}

/// Decodes text that holds exactly `N` bytes.
pub(super) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != (N * 8).div_ceil(5) {
        return None;
    }
    let mut bytes = [0; N];
    let (mut bits, mut held, mut count) = (0u32, 0u32, 0);
    for letter in text.bytes() {
        let digit = match letter {
            b'a'..=b'z' => letter - b'a',
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            _ => return None,
        };
        bits = (bits << 5 | u32::from(digit)) & 0xfff;
        held += 5;
        if held >= 8 {
            held -= 8;
            bytes[count] = (bits >> held & 0xff).to_le_bytes()[0];
            count += 1;
        }
    }
    let left_over = bits & ((1 << held) - 1);
    (left_over == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_4648() {
        for (bytes, text) in [("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"), ("fooba", "mzxw6ytb")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
        }
        assert_eq!(decode::<5>("mzxw6ytb"), Some(*b"fooba"));
        assert_eq!(decode::<4>("mZxw6yQ"), Some(*b"foob"));
        assert_eq!(decode::<4>("mzxw6yr"), None, "a bit is left over");
        assert_eq!(decode::<4>("mzxw6y1"), None);
        assert_eq!(decode::<4>("mzxw6yqa"), None);
    }

    proptest! {
        #[test]
        fn round_trips(bytes: [u8; 32], more: [u8; 35]) {
            prop_assert_eq!(decode::<32>(&encode(&bytes)), Some(bytes));
            prop_assert_eq!(decode::<35>(&encode(&more)), Some(more));
        }
    }
}
