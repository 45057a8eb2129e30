//! The parser: Core's `UniValue::read`.
//!
//! Input: bytes. Output: the value, or `None`, since Core reports no reason either.
//!
//! The same grammar runs in two modes: it builds the value, or it only checks the bytes and counts the values in them.
//! A request is checked as a whole before anything is built; the members of a batch are then built one at a time.

use super::Json;
use crate::limits::JSON_DEPTH_MAX;

/// Parses a value, followed by nothing but white space.
pub(crate) fn parse(bytes: &[u8]) -> Option<Json> {
    let mut parser = Parser { bytes, at: 0, values: 0 };
    let value = parser.value::<true>(0)?;
    parser.skip_space();
    (parser.at == bytes.len()).then_some(value)
}

/// Checks that the bytes are a value and counts the values in it. Allocates nothing.
pub(crate) fn count(bytes: &[u8]) -> Option<usize> {
    let mut parser = Parser { bytes, at: 0, values: 0 };
    parser.value::<false>(0)?;
    parser.skip_space();
    (parser.at == bytes.len()).then_some(parser.values)
}

/// A member of the outermost array: its position, and the number of values in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) values: usize,
}

/// Returns the member of the outermost array after a position (0: the first), or `None` at the end. The bytes must have
/// been checked by [`count`].
pub(crate) fn member_after(bytes: &[u8], at: usize) -> Option<Member> {
    let mut parser = Parser { bytes, at, values: 0 };
    // The opening bracket, or the comma after the last member.
    if !matches!(parser.token()?, b'[' | b',') {
        return None;
    }
    parser.skip_space();
    let start = parser.at;
    if parser.peek()? == b']' {
        return None;
    }
    parser.value::<false>(1)?;
    Some(Member { start, end: parser.at, values: parser.values })
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    values: usize,
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

    /// The next byte after white space.
    fn token(&mut self) -> Option<u8> {
        self.skip_space();
        self.take()
    }

    /// With `KEEP`, the value; otherwise null in place of every value.
    fn value<const KEEP: bool>(&mut self, depth: usize) -> Option<Json> {
        self.skip_space();
        self.values += 1;
        match self.peek()? {
            b'{' => self.object::<KEEP>(depth + 1),
            b'[' => self.array::<KEEP>(depth + 1),
            b'"' => self.text::<KEEP>().map(Json::Text),
            b'-' | b'0'..=b'9' => self.number::<KEEP>(),
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

    fn object<const KEEP: bool>(&mut self, depth: usize) -> Option<Json> {
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
            let key = self.text::<KEEP>()?;
            if self.token()? != b':' {
                return None;
            }
            let value = self.value::<KEEP>(depth)?;
            if KEEP {
                entries.push((key, value));
            }
            match self.token()? {
                b',' => {}
                b'}' => return Some(Json::Object(entries)),
                _ => return None,
            }
        }
    }

    fn array<const KEEP: bool>(&mut self, depth: usize) -> Option<Json> {
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
            let value = self.value::<KEEP>(depth)?;
            if KEEP {
                values.push(value);
            }
            match self.token()? {
                b',' => {}
                b']' => return Some(Json::Array(values)),
                _ => return None,
            }
        }
    }

    fn number<const KEEP: bool>(&mut self) -> Option<Json> {
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
        if !KEEP {
            return Some(Json::Null);
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

    fn text<const KEEP: bool>(&mut self) -> Option<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            // Most of a block in hex is a single run. A character cannot start in a run and continue after an escape.
            let run = self.bytes[self.at..].iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
            let letters = std::str::from_utf8(&self.bytes[self.at..self.at + run]).ok()?;
            self.at += run;
            if KEEP {
                out.push_str(letters);
            }
            match self.take()? {
                b'"' => return Some(out),
                b'\\' => {
                    let letter = self.escape()?;
                    if KEEP {
                        out.push(letter);
                    }
                }
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        Some(match self.take()? {
            letter @ (b'"' | b'\\' | b'/') => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.code_point(),
            _ => return None,
        })
    }

    /// Four hex digits, and four more if they are the first half of a surrogate pair.
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
            assert_eq!(count(text.as_bytes()), None, "{text}");
        }
        assert_eq!((parse(b"\"\xff\""), count(b"\"\xff\"")), (None, None));
        assert_eq!(parse(b"\"\xc3\\n\xa4\""), None, "a character with an escape inside it");
        assert_eq!(parse(b"\"\xed\xa0\x80\""), None, "half a surrogate pair as bytes");
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

    /// The members of a batch are found in order, each with the number of its values.
    #[test]
    fn members_one_after_the_other() {
        let bytes = b" [ {\"a\":[1,2]} , 5,\"]\" ,[] ] ";
        assert_eq!(count(bytes), Some(8));
        let (mut at, mut found) = (0, Vec::new());
        while let Some(member) = member_after(bytes, at) {
            let value = parse(&bytes[member.start..member.end]).unwrap();
            found.push((value.write(), member.values));
            at = member.end;
        }
        let found: Vec<_> = found.iter().map(|(text, values)| (&text[..], *values)).collect();
        assert_eq!(found, [("{\"a\":[1,2]}", 4), ("5", 1), ("\"]\"", 1), ("[]", 1)]);
        assert_eq!(member_after(b"[]", 0), None);
    }
}
