//! Texts of strangers, fit to be shown: coinbase scripts and user agents.
//!
//! Input: bytes or text of anyone. Output: text of at most [`TEXT_MAX`] characters, without control characters, without
//! characters that change the direction of text or cannot be seen.

use crate::limits::TEXT_MAX;

/// Whether a character is shown as itself and changes nothing beside it.
fn is_plain(letter: char) -> bool {
    let is_hidden = matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}');
    // Marks that join the letter before them could pile up over other lines.
    let is_mark = matches!(letter, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}');
    !letter.is_control() && !is_hidden && !is_mark
}

/// The text with a space for each run of other characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    let (mut count, mut is_gap) = (0, false);
    for letter in text.chars() {
        if !is_plain(letter) || letter == ' ' {
            is_gap = true;
            continue;
        }
        if is_gap && count > 0 {
            shown.push(' ');
            count += 1;
        }
        is_gap = false;
        if count >= TEXT_MAX {
            break;
        }
        shown.push(letter);
        count += 1;
    }
    shown.trim_end().to_owned()
}

/// The text in the script of a coinbase, without the height before it (BIP-0034).
pub(crate) fn coinbase(script: &[u8]) -> String {
    let skipped = match script.first() {
        Some(size @ 1..=8) => script.get(usize::from(*size) + 1..).unwrap_or(script),
        // OP_1 to OP_16: a low height.
        Some(0x51..=0x60) => &script[1..],
        _ => script,
    };
    shown(&String::from_utf8_lossy(skipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_seen_is_kept() {
        assert_eq!(shown("/Satoshi:31.0.0/"), "/Satoshi:31.0.0/");
        assert_eq!(shown("<img src=x onerror=alert(1)>"), "<img src=x onerror=alert(1)>", "text, not HTML");
        assert_eq!(shown("a\u{202e}b\u{0}c\r\nd   e"), "a b c d e");
        assert_eq!(shown("\u{feff}\u{200b}"), "");
        assert_eq!(shown("Z\u{300}\u{301}\u{302}algo \u{1f41f}"), "Z algo \u{1f41f}");
        assert_eq!(coinbase(b"\x03\x40\x0d\x0e/ViaBTC/\x00\x01mined"), "/ViaBTC/ mined");
        assert_eq!(coinbase(b"\x04\xff\xff\x00\x1d\x01\x04EThe Times"), "EThe Times");
        assert_eq!(coinbase(b"\x55low"), "low");
        assert_eq!((coinbase(b""), coinbase(b"\x08ab")), (String::new(), "ab".to_owned()));
    }

    /// limit: TEXT_MAX at
    /// limit: TEXT_MAX above
    #[test]
    fn a_text_has_a_length() {
        let at = "x".repeat(TEXT_MAX);
        assert_eq!(shown(&at), at);
        assert_eq!(shown(&format!("{at}y")), at);
        assert_eq!(shown(&format!("{} y", "x".repeat(TEXT_MAX - 1))).chars().count(), TEXT_MAX - 1);
    }
}
