//! QR codes of addresses.
//!
//! Input: a text. Output: rows of `0` and `1`, without the white border that a reader needs around them.

use qrcodegen::{QrCode, QrCodeEcc};

/// `None` if the text is too long for a code.
pub(crate) fn rows(text: &str) -> Option<Vec<String>> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
    let bit = |x, y| if code.get_module(x, y) { '1' } else { '0' };
    Some((0..code.size()).map(|y| (0..code.size()).map(|x| bit(x, y)).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The patterns at which readers recognise a code, and the modules of the text itself: another text, other modules.
    #[test]
    fn a_code_has_its_patterns() {
        let rows = rows("ssl://192.168.1.7:50002").unwrap();
        assert!(rows.len() >= 25 && rows.iter().all(|row| row.len() == rows.len()), "{rows:?}");
        let finder = ["1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111"];
        let last = rows.len() - 7;
        for (at, expected) in finder.iter().enumerate() {
            assert!(rows[at].starts_with(expected) && rows[at].ends_with(expected), "{rows:?}");
            assert!(rows[last + at].starts_with(expected), "{rows:?}");
        }
        assert_ne!(Some(rows), super::rows("ssl://192.168.1.8:50002"));
    }

    #[test]
    fn a_long_text_has_no_code() {
        assert!(rows(&"a".repeat(2_331)).is_some());
        assert_eq!(rows(&"a".repeat(2_332)), None);
    }
}
