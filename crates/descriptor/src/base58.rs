//! Base58 with a checksum: Core's base58.cpp.
//!
//! Input: bytes, or a string. Output: a string, or the bytes. Cost: quadratic in the size, which the caller bounds.

use lydian_hash::sha256d;

/// Encodes bytes with their checksum: Core's `EncodeBase58Check`.
pub fn encode_check(mut bytes: Vec<u8>) -> String {
    let checksum = sha256d(&bytes);
    bytes.extend_from_slice(&checksum[..4]);
    bs58::encode(bytes).into_string()
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
