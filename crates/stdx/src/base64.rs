//! Base 64, for the passwords in HTTP requests. Input: bytes. Output: the text of RFC 4648, with padding.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
        }
        assert_eq!(base64(&[0xff; 3]), "////");
    }
}
