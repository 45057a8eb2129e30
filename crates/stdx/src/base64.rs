//! Base 64: bytes as the text of RFC 4648 with padding, and back.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the text of bytes, with padding.
pub fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = (0..3).fold(0_usize, |group, i| group << 8 | chunk.get(i).map_or(0, |&byte| usize::from(byte)));
        for i in 0..4 {
            out.push(if i <= chunk.len() { char::from(DIGITS[group >> (18 - 6 * i) & 63]) } else { '=' });
        }
    }
    out
}

/// Returns the bytes of a text with padding, or `None` if it is not one; bits that are left over must be zero: Core's
/// `DecodeBase64`.
pub fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0, 0u32);
    for byte in &text[..text.len() - padding] {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from(held >> bits & 0xff).ok()?);
        }
    }
    (held & ((1 << bits) - 1) == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, and the last two digits.
    #[test]
    fn texts_of_every_length() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
            ("\u{ff}>?", "w78+Pw=="),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
            assert_eq!(decode_base64(coded.as_bytes()).as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!(base64(&[0xff; 3]), "////");
    }

    #[test]
    fn bytes_of_every_length_come_back() {
        let bytes: Vec<u8> = (0..=255).rev().collect();
        for size in 0..bytes.len() {
            assert_eq!(decode_base64(base64(&bytes[..size]).as_bytes()).as_deref(), Some(&bytes[..size]));
        }
    }

    /// Also those whose last digit has bits that belong to no byte.
    #[test]
    fn other_texts_are_refused() {
        for text in
            ["A", "AA", "AAA", "A===", "====", "AA=A", "AAA\n", "AA-_", "=AAA", "\u{e9}=", "AAAAA===", "AB==", "AAB="]
        {
            assert_eq!(decode_base64(text.as_bytes()), None, "{text}");
        }
    }
}
