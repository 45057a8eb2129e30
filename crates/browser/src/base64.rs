//! Base 64 back into bytes: the browser sends screenshots as text. Input: the text of RFC 4648 with padding. Output:
//! its bytes, or `None` if it is anything else.

const PAD: u8 = b'=';

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|&&byte| byte == PAD).count();
    let digits = &text[..text.len() - padding];
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.chunks(4) {
        let bits = group.iter().try_fold(0_u32, |bits, &digit| Some(bits << 6 | value(digit)?))?;
        let bytes = (bits << (6 * (4 - group.len()))).to_be_bytes();
        out.extend_from_slice(&bytes[1..group.len()]);
    }
    Some(out)
}

fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_stdx::base64;

    #[test]
    fn bytes_of_every_length_come_back() {
        let bytes: Vec<u8> = (0..=255).rev().collect();
        for size in 0..bytes.len() {
            assert_eq!(decode(&base64(&bytes[..size])).as_deref(), Some(&bytes[..size]));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["A", "AA", "AAA", "A===", "====", "AA=A", "AAA\n", "AA-_", "=AAA", "é=", "AAAAA==="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
