//! Base58 with a checksum: Core's base58.cpp.
//!
//! Input: bytes, or a string. Output: a string, or the bytes. Cost: quadratic in the size, which the caller bounds; the
//! text of an address takes 100 ns beside its checksum.

use lydian_hash::sha256d;

/// Encodes bytes with their checksum: Core's `EncodeBase58Check`.
pub fn encode_check(mut bytes: Vec<u8>) -> String {
    let checksum = sha256d(&bytes);
    bytes.extend_from_slice(&checksum[..4]);
    encode(&bytes)
}

const DIGITS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Digits that one division yields.
const DIGITS_AT_ONCE: u32 = 5;

const DIVISOR: u64 = 58_u64.pow(DIGITS_AT_ONCE);

/// Words of the largest number that is encoded here: an extended key with its checksum has 82 bytes.
const WORDS_MAX: usize = 24;

/// The digits of a number, five with each division by 58^5; the crate `bs58` divides for each digit.
fn encode(bytes: &[u8]) -> String {
    let mut words = [0_u32; WORDS_MAX];
    let count = bytes.len().div_ceil(4);
    let Some(used) = words.get_mut(..count) else { return bs58::encode(bytes).into_string() };
    for (word, part) in used.iter_mut().rev().zip(bytes.rchunks(4)) {
        *word = part.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    let mut rest = &mut used[..];
    let mut digits = Vec::with_capacity(2 * bytes.len());
    while let Some(at) = rest.iter().position(|word| *word != 0) {
        rest = &mut rest[at..];
        let mut remainder = 0;
        for word in &mut *rest {
            let value = u64::from(remainder) << 32 | u64::from(*word);
            // Less than 2^32, since the remainder is less than the divisor.
            *word = u32::try_from(value / DIVISOR).unwrap_or(u32::MAX);
            remainder = u32::try_from(value % DIVISOR).unwrap_or(u32::MAX);
        }
        for _ in 0..DIGITS_AT_ONCE {
            digits.push(DIGITS[remainder as usize % DIGITS.len()]);
            remainder /= 58;
        }
    }
    while digits.last() == Some(&DIGITS[0]) {
        digits.pop();
    }
    // A zero byte at the beginning is a zero digit.
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    digits.resize(digits.len() + zeros, DIGITS[0]);
    digits.iter().rev().map(|digit| char::from(*digit)).collect()
}

/// Decodes a string of at most `size_max` bytes: Core's `DecodeBase58`.
pub(crate) fn decode(text: &str, size_max: usize) -> Option<Vec<u8>> {
    // Base58 text is more than a third longer than its bytes, except for leading zeros, which are as long.
    let text = Some(text.trim_ascii()).filter(|text| text.len() <= 2 * size_max)?;
    bs58::decode(text).into_vec().ok().filter(|bytes| bytes.len() <= size_max)
}

/// Returns the bytes before a correct checksum.
pub(crate) fn without_checksum(bytes: &[u8]) -> Option<&[u8]> {
    let (body, checksum) = bytes.split_last_chunk::<4>()?;
    (sha256d(body)[..4] == checksum[..]).then_some(body)
}

/// Decodes a string of at most `size_max` bytes and a correct checksum: Core's `DecodeBase58Check`.
pub(crate) fn decode_check(text: &str, size_max: usize) -> Option<Vec<u8>> {
    let mut bytes = decode(text, size_max + 4)?;
    let size = without_checksum(&bytes).map(<[u8]>::len);
    // The text may be a private key, so no copy is made.
    match size {
        Some(size) => bytes.truncate(size),
        None => {
            bytes.fill(0);
            return None;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_bytes_are_decoded_up_to_the_size() {
        for bytes in [vec![], vec![0; 40], vec![255; 40], (0..78).collect()] {
            let (size, text) = (bytes.len(), encode_check(bytes.clone()));
            assert_eq!(decode_check(&text, size), Some(bytes.clone()), "{text}");
            assert_eq!(decode_check(&format!(" {text}\n"), size), Some(bytes), "{text}");
            assert!(size == 0 || decode_check(&text, size - 1).is_none(), "{text}");
        }
    }

    /// Every size up to more than the words have room for, with zeros and ones at the beginning.
    #[test]
    fn digits_are_those_of_the_crate() {
        let mut byte = 1_u8;
        for size in 0..4 * WORDS_MAX + 3 {
            for zeros in [0, 1, 2, 5, size] {
                for first in [0, 1, 255] {
                    let mut bytes = vec![0; zeros.min(size)];
                    bytes.resize_with(size, || {
                        byte = byte.wrapping_mul(181).wrapping_add(97);
                        byte
                    });
                    if let Some(byte) = bytes.get_mut(zeros) {
                        *byte = first;
                    }
                    assert_eq!(encode(&bytes), bs58::encode(&bytes).into_string(), "{bytes:?}");
                }
            }
        }
        assert_eq!(encode(&[255; 82]), bs58::encode([255; 82]).into_string());
    }

    #[test]
    fn other_text_is_refused() {
        let text = encode_check(vec![7; 20]);
        assert_eq!(decode_check(&text.replacen(char::is_alphabetic, "1", 1), 20), None);
        for text in ["", "0", "O", "I", "l", "1 1", "é", "111"] {
            assert_eq!(decode_check(text, 20), None, "{text}");
        }
        // The size is checked before the text is decoded, so this ends at once.
        assert_eq!(decode(&"z".repeat(10_000_000), 100), None);
    }
}
