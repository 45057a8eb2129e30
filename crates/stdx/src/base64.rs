//! Base 64: bytes as the text of RFC 4648 with padding, and back.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of each digit; [`INVALID`] for other characters.
const VALUES: [u8; 256] = {
    let mut values = [INVALID; 256];
    let mut value = 0_u8;
    while value < 64 {
        values[DIGITS[value as usize] as usize] = value;
        value += 1;
    }
    values
};

const INVALID: u8 = 0x80;

/// Returns the text of bytes, with padding.
pub fn base64(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    let (groups, rest) = bytes.as_chunks::<3>();
    groups.iter().for_each(|group| out.extend_from_slice(&digits(group)));
    if !rest.is_empty() {
        let mut group = [0; 3];
        group[..rest.len()].copy_from_slice(rest);
        let mut last = digits(&group);
        last[rest.len() + 1..].fill(b'=');
        out.extend_from_slice(&last);
    }
    String::from_utf8(out).unwrap_or_default()
}

fn digits(&[a, b, c]: &[u8; 3]) -> [u8; 4] {
    [a >> 2, (a & 3) << 4 | b >> 4, (b & 15) << 2 | c >> 6, c & 63].map(|value| DIGITS[usize::from(value & 63)])
}

/// Returns the bytes of a text with padding, or `None` if it is not one; bits that are left over must be zero: Core's
/// `DecodeBase64`.
pub fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (groups, rest) = text[..text.len() - padding].as_chunks::<4>();
    let value = |digit: &u8| VALUES[usize::from(*digit)];
    let mut all = 0;
    for [a, b, c, d] in groups {
        let [a, b, c, d] = [a, b, c, d].map(value);
        all |= a | b | c | d;
        out.extend_from_slice(&[a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]);
    }
    let left_over = match rest {
        [a, b] => {
            let [a, b] = [a, b].map(value);
            all |= a | b;
            out.push(a << 2 | b >> 4);
            b & 15
        }
        [a, b, c] => {
            let [a, b, c] = [a, b, c].map(value);
            all |= a | b | c;
            out.extend_from_slice(&[a << 2 | b >> 4, b << 4 | c >> 2]);
            c & 3
        }
        _ => 0,
    };
    (all & INVALID == 0 && left_over == 0).then_some(out)
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
