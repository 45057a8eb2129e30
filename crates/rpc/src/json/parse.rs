//! The parser: Core's `UniValue::read`. Input: bytes. Output: the value, or nothing, as Core tells no more of a request that is none.

use super::Json;
use crate::limits::JSON_DEPTH_MAX;

/// The value that the bytes are, nothing behind it but white space.
pub(crate) fn parse(bytes: &[u8]) -> Option<Json> {
    let mut parser = Parser { bytes, at: 0 };
    let value = parser.value(0)?;
    parser.skip_space();
    (parser.at == bytes.len()).then_some(value)
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// What comes behind white space.
    fn token(&mut self) -> Option<u8> {
        self.skip_space();
        self.take()
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        self.skip_space();
        match self.peek()? {
            b'{' => self.object(depth + 1),
            b'[' => self.array(depth + 1),
            b'"' => self.text().map(Json::Text),
            b'-' | b'0'..=b'9' => self.number(),
            b'n' => self.word(b"null", Json::Null),
            b't' => self.word(b"true", Json::Bool(true)),
            b'f' => self.word(b"false", Json::Bool(false)),
            _ => None,
        }
    }

    fn word(&mut self, word: &[u8], value: Json) -> Option<Json> {
        let is_there = self.bytes[self.at..].starts_with(word);
        self.at += word.len();
        is_there.then_some(value)
    }

    fn object(&mut self, depth: usize) -> Option<Json> {
        if depth > JSON_DEPTH_MAX {
            return None;
        }
        self.at += 1;
        let mut entries = Vec::new();
        self.skip_space();
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(Json::Object(entries));
        }
        loop {
            self.skip_space();
            if self.peek()? != b'"' {
                return None;
            }
            let key = self.text()?;
            if self.token()? != b':' {
                return None;
            }
            entries.push((key, self.value(depth)?));
            match self.token()? {
                b',' => {}
                b'}' => return Some(Json::Object(entries)),
                _ => return None,
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Json> {
        if depth > JSON_DEPTH_MAX {
            return None;
        }
        self.at += 1;
        let mut values = Vec::new();
        self.skip_space();
        if self.peek()? == b']' {
            self.at += 1;
            return Some(Json::Array(values));
        }
        loop {
            values.push(self.value(depth)?);
            match self.token()? {
                b',' => {}
                b']' => return Some(Json::Array(values)),
                _ => return None,
            }
        }
    }

    fn number(&mut self) -> Option<Json> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.at;
        if self.digits() == 0 || (self.bytes[first] == b'0' && self.at - first > 1) {
            return None;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return None;
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if self.digits() == 0 {
                return None;
            }
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).ok()?;
        Some(Json::Number(text.to_owned()))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn text(&mut self) -> Option<String> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            // Most of a block in hexadecimal is one run.
            let run = self.bytes[self.at..].iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
            out.extend_from_slice(&self.bytes[self.at..self.at + run]);
            self.at += run;
            match self.take()? {
                b'"' => return String::from_utf8(out).ok(),
                b'\\' => self.escape(&mut out)?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let byte = match self.take()? {
            letter @ (b'"' | b'\\' | b'/') => letter,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let letter = self.code_point()?;
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                return Some(());
            }
            _ => return None,
        };
        out.push(byte);
        Some(())
    }

    /// Four digits, and four more where they are the first half of a pair.
    fn code_point(&mut self) -> Option<char> {
        let high = self.hex4()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        if self.take()? != b'\\' || self.take()? != b'u' {
            return None;
        }
        let low = self.hex4()?;
        if !(0xdc00..0xe000).contains(&low) {
            return None;
        }
        char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    }

    fn hex4(&mut self) -> Option<u32> {
        let mut value = 0;
        for _ in 0..4 {
            value = value << 4 | char::from(self.take()?).to_digit(16)?;
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::write_value;

    fn again(text: &str) -> Option<String> {
        let mut out = Vec::new();
        write_value(&parse(text.as_bytes())?, &mut out);
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn what_is_taken_is_written_as_it_stood() {
        for (text, written) in [
            (" [1, 1.50,-0 , 1e+5,\"\\u0041\\ud83d\\ude00\\/\\n\"] ", "[1,1.50,-0,1e+5,\"A\u{1f600}/\\n\"]"),
            ("{\"b\":{},\"a\":[],\"b\":null}", "{\"b\":{},\"a\":[],\"b\":null}"),
            ("\"\\u0000\\u001f\\u007f\"", "\"\\u0000\\u001f\\u007f\""),
            ("true", "true"),
            ("18446744073709551616", "18446744073709551616"),
        ] {
            assert_eq!(again(text).as_deref(), Some(written));
        }
    }

    #[test]
    fn what_core_refuses_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "[,1]",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{1:2}",
            "[1 2]",
            "01",
            "-",
            "-a",
            "1.",
            ".5",
            "1e",
            "+1",
            "nul",
            "tru",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "\"a\nb\"",
            "\"a",
            "[] []",
            "{}1",
            "[1}",
            "'a'",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"\"\xff\""), None);
        assert_eq!(parse(b"\"\xed\xa0\x80\""), None, "half a pair as bytes");
    }

    /// limit: JSON_DEPTH_MAX at
    /// limit: JSON_DEPTH_MAX above
    #[test]
    fn so_deep_and_no_deeper() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        assert!(parse(&nested(JSON_DEPTH_MAX)).is_some());
        assert!(parse(&nested(JSON_DEPTH_MAX + 1)).is_none());
        let nested = |depth: usize| ["{\"a\":".repeat(depth), "1".to_owned(), "}".repeat(depth)].concat();
        assert!(parse(nested(JSON_DEPTH_MAX).as_bytes()).is_some());
        assert!(parse(nested(JSON_DEPTH_MAX + 1).as_bytes()).is_none());
    }
}
