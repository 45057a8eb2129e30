//! [`Request`]: the path after the prefix of its route, its format, its query and its body; and what is answered in
//! each format.
//!
//! Input: text and bytes of a client. Output: parts of the path, arguments, numbers and hashes, read as Core does.

use super::reply::{BYTES_TYPE, Content, JSON_TYPE, Made, Refused, Reply, TEXT_TYPE};
use super::stored;
use crate::context::Context;
use crate::error::{RpcError, code};
use crate::json::Json;
use crate::method::{Call, CallState};
use crate::table::METHODS;
use lydian_engine::{Engine, StoredBytes};
use lydian_primitives::push_hex;
use std::str::FromStr;
use std::sync::Arc;

/// Core's `RESTResponseFormat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Undefined,
    Binary,
    Hex,
    Json,
}

const FORMATS: [(&str, Format); 4] =
    [("", Format::Undefined), ("bin", Format::Binary), ("hex", Format::Hex), ("json", Format::Json)];

/// A request.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) context: &'a Context,
    /// The path after the prefix of the route, without query and format.
    pub(super) path: &'a str,
    pub(super) format: Format,
    pub(super) body: &'a [u8],
    query: Option<&'a str>,
    /// With the room for the answer.
    state: CallState,
}

impl<'a> Request<'a> {
    /// `part`: the path after the prefix of the route, with the query.
    pub(super) fn new(context: &'a Context, part: &'a str, body: &'a [u8]) -> Request<'a> {
        let (path, format) = format_of(part);
        let query = part.split_once('?').map(|(_, query)| query);
        let state = CallState::new(context.answers.room(), 0);
        Request { context, path, format, body, query, state }
    }

    /// The engine, once the warm-up is over: Core's `CheckWarmup`.
    pub(super) fn engine(&self) -> Result<Arc<Engine>, Refused> {
        let engine = self.context.check_ready().and_then(|()| self.context.engine());
        engine.map_err(|error| {
            Refused::Words(503, format!("Service temporarily unavailable: {}", error.message).into_bytes())
        })
    }

    /// The parts of the path between slashes.
    pub(super) fn parts(&self) -> Vec<&'a str> {
        self.path.split('/').collect()
    }

    /// The value of an argument in the query, empty if it has none: Core's `GetQueryParameter`.
    pub(super) fn argument(&self, name: &str) -> Option<Vec<u8>> {
        let pairs = self.query?.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let mut values = pairs.filter(|(key, _)| decoded(key) == name.as_bytes()).map(|(_, value)| decoded(value));
        values.next()
    }

    /// An argument that is `true` or `false`.
    pub(super) fn switch(&self, name: &str, default: bool) -> Result<bool, Refused> {
        match self.argument(name).as_deref() {
            None => Ok(default),
            Some(b"true") => Ok(true),
            Some(b"false") => Ok(false),
            Some(_) => {
                Err(Refused::bad(format!("The \"{name}\" query parameter must be either \"true\" or \"false\".")))
            }
        }
    }

    /// Waits until there is room for an answer of about `bytes` bytes.
    pub(super) fn expect_bytes(&self, bytes: usize) -> Result<(), Refused> {
        if self.state.room.borrow_mut().grow(bytes) { Ok(()) } else { Err(Refused::NoRoom) }
    }

    /// Writes what a method of JSON-RPC answers.
    pub(super) fn call(&self, method: &str, params: &[Json], out: &mut Vec<u8>) -> Result<(), RpcError> {
        let method = METHODS.find(method);
        let method = method.ok_or_else(|| RpcError::new(code::METHOD_NOT_FOUND, "Method not found"))?;
        let call = Call { context: self.context, method, methods: METHODS, params, state: &self.state };
        method.call.run(&call, out)
    }

    /// The answer in the format of the request, from the function for it.
    pub(super) fn reply(
        &self,
        bytes: impl FnOnce() -> Vec<u8>,
        json: impl FnOnce(&mut Vec<u8>) -> Result<(), Refused>,
    ) -> Result<Made, Refused> {
        match self.format {
            Format::Binary => Ok(Made::new(BYTES_TYPE, bytes())),
            Format::Hex => {
                let bytes = bytes();
                self.expect_bytes(3 * bytes.len())?;
                let mut body = Vec::with_capacity(2 * bytes.len() + 1);
                push_hex(&mut body, &bytes);
                body.push(b'\n');
                Ok(Made::new(TEXT_TYPE, body))
            }
            Format::Json => json_reply(json),
            Format::Undefined => Err(no_format()),
        }
    }

    /// The answer with bytes of a stored block, in binary or hexadecimal, sent while they are read; `None` if they
    /// cannot be read.
    pub(super) fn reply_stored(&self, bytes: StoredBytes) -> Option<Made> {
        let kind = if self.format == Format::Hex { TEXT_TYPE } else { BYTES_TYPE };
        let pieces = stored::pieces(bytes, self.format)?;
        Some(Made { status: 200, kind, content: Content::Pieces(pieces) })
    }

    /// The answer of a path that has JSON only.
    pub(super) fn reply_json(&self, json: impl FnOnce(&mut Vec<u8>) -> Result<(), Refused>) -> Result<Made, Refused> {
        match self.format {
            Format::Json => json_reply(json),
            _ => Err(Refused::missing("output format not found (available: json)")),
        }
    }

    /// Gives the answer its room.
    pub(super) fn finish(self, made: Made) -> Result<Reply, Refused> {
        let Made { status, kind, mut content } = made;
        let mut room = self.state.room.into_inner();
        let size = match &content {
            Content::Whole(body) => body.len(),
            Content::Pieces(_) => stored::MEMORY,
        };
        if !room.grow(size) {
            return Err(Refused::NoRoom);
        }
        if let Content::Whole(body) = &mut content {
            body.shrink_to_fit();
        }
        room.shrink(size);
        Ok(Reply { status, kind, content, room })
    }
}

/// The answer to a request whose format is none of those that the path has.
pub(super) fn no_format() -> Refused {
    Refused::missing("output format not found (available: .bin, .hex, .json)")
}

fn json_reply(json: impl FnOnce(&mut Vec<u8>) -> Result<(), Refused>) -> Result<Made, Refused> {
    let mut body = Vec::new();
    json(&mut body)?;
    body.push(b'\n');
    Ok(Made::new(JSON_TYPE, body))
}

/// Core's `ParseDataFormat`: the path without query and suffix, and the format.
fn format_of(part: &str) -> (&str, Format) {
    let path = part.rsplit_once('?').map_or(part, |(path, _)| path);
    let Some((before, suffix)) = path.rsplit_once('.') else { return (path, Format::Undefined) };
    match FORMATS.iter().find(|(name, _)| *name == suffix) {
        Some((_, format)) => (before, *format),
        None => (path, Format::Undefined),
    }
}

/// Core's `UrlDecode`: `%` and two digits are a byte, and a `%` without them stands for itself.
fn decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    while let [first, behind @ ..] = rest {
        rest = behind;
        let pair = match behind {
            [high, low, ..] if *first == b'%' => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match pair {
            Some((high, low)) => {
                out.push(high << 4 | low);
                rest = &behind[2..];
            }
            None => out.push(*first),
        }
    }
    out
}

/// Core's `ToIntegral`: decimal digits without a sign, except `-` for a signed type.
pub(super) fn integer<T: FromStr>(text: &[u8]) -> Option<T> {
    let text = str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?;
    text.parse().ok()
}

/// A hash in its displayed form: Core's `FromHex`.
pub(super) fn hash_of<T: FromStr>(text: &str) -> Result<T, Refused> {
    text.parse().map_err(|_| Refused::bad(format!("Invalid hash: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_cut_off_as_core_cuts_them() {
        for (part, path, format) in [
            ("ab.json", "ab", Format::Json),
            ("ab.hex?count=1", "ab", Format::Hex),
            ("ab.bin?x?y", "ab.bin?x", Format::Undefined),
            ("ab.", "ab", Format::Undefined),
            ("ab.xml", "ab.xml", Format::Undefined),
            ("ab.json.bin", "ab.json", Format::Binary),
            ("", "", Format::Undefined),
            (".json", "", Format::Json),
        ] {
            assert_eq!(format_of(part), (path, format), "{part}");
        }
    }

    #[test]
    fn arguments_are_decoded_as_core_decodes_them() {
        for (text, expected) in [
            ("a%20b", &b"a b"[..]),
            ("%41%4a%4A", b"AJJ"),
            ("%", b"%"),
            ("%4", b"%4"),
            ("%4g1", b"%4g1"),
            ("%+1", b"%+1"),
            ("a+b", b"a+b"),
            ("%ff%00", &[0xff, 0]),
            ("%%41", b"%A"),
        ] {
            assert_eq!(decoded(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_have_no_plus_and_no_space() {
        assert_eq!(integer::<u64>(b"0018446744073709551615"), Some(u64::MAX));
        assert_eq!(integer::<i32>(b"-0"), Some(0));
        for text in [&b""[..], b"+1", b" 1", b"1 ", b"-1", b"-0", b"1x", b"18446744073709551616", b"\xff"] {
            assert_eq!(integer::<u64>(text), None, "{}", String::from_utf8_lossy(text));
        }
    }
}
