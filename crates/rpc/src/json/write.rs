//! The writer: Core's `UniValue::write`, with and without indentation.
//!
//! Input: values, text. Output: bytes appended.

use super::Json;

/// Writes a value in Core's format, without white space.
pub(crate) fn write_value(value: &Json, out: &mut Vec<u8>) {
    match value {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Number(text) => out.extend_from_slice(text.as_bytes()),
        Json::Text(text) => write_text(text, out),
        Json::Array(values) => {
            out.push(b'[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_value(value, out);
            }
            out.push(b']');
        }
        Json::Object(entries) => {
            out.push(b'{');
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_text(key, out);
                out.push(b':');
                write_value(value, out);
            }
            out.push(b'}');
        }
    }
}

/// Writes a value on several lines. Its parts are indented by `width` times `level` spaces. An empty array or object
/// also takes two lines.
pub(crate) fn write_indented(value: &Json, width: usize, level: usize, out: &mut Vec<u8>) {
    let (brackets, length) = match value {
        Json::Array(values) => (b"[]", values.len()),
        Json::Object(entries) => (b"{}", entries.len()),
        _ => return write_value(value, out),
    };
    out.extend_from_slice(&[brackets[0], b'\n']);
    for index in 0..length {
        out.resize(out.len() + width * level, b' ');
        match value {
            Json::Array(values) => write_indented(&values[index], width, level + 1, out),
            Json::Object(entries) => {
                write_text(&entries[index].0, out);
                out.extend_from_slice(b": ");
                write_indented(&entries[index].1, width, level + 1, out);
            }
            _ => {}
        }
        out.extend_from_slice(if index + 1 < length { b",\n" } else { b"\n" });
    }
    out.resize(out.len() + width * (level - 1), b' ');
    out.push(brackets[1]);
}

/// Writes quoted text, with the escapes of Core's table.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    // Without an exit in the loop, several bytes are looked at together.
    let is_plain = |byte: &u8| *byte >= 0x20 && !matches!(byte, b'"' | b'\\' | 0x7f);
    if text.as_bytes().iter().fold(true, |are_plain, byte| are_plain & is_plain(byte)) {
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    for &byte in text.as_bytes() {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..0x20 | 0x7f => {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                continue;
            }
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each character alone and among others, which are written together if none needs an escape.
    #[test]
    fn escapes_of_every_character() {
        let written = |text: &str| {
            let mut out = Vec::new();
            write_text(text, &mut out);
            String::from_utf8(out).unwrap()
        };
        for byte in 0..=0x7f_u8 {
            let escaped = match byte {
                b'"' => "\\\"".to_owned(),
                b'\\' => "\\\\".to_owned(),
                8 => "\\b".to_owned(),
                12 => "\\f".to_owned(),
                b'\n' => "\\n".to_owned(),
                b'\r' => "\\r".to_owned(),
                b'\t' => "\\t".to_owned(),
                0..0x20 | 0x7f => format!("\\u{byte:04x}"),
                _ => char::from(byte).to_string(),
            };
            let character = char::from(byte);
            assert_eq!(written(&character.to_string()), format!("\"{escaped}\""));
            let long = "\u{fc}abcdefghijklmnopqrstuvwxyz0123456789";
            assert_eq!(written(&format!("{long}{character}{long}")), format!("\"{long}{escaped}{long}\""));
        }
    }

    #[test]
    fn indented_as_core_prints_answers() {
        let value = Json::read(br#"{"a":[],"b":{},"c":[1,{"d":"e"}],"f":null}"#).unwrap();
        let expected = "{\n  \"a\": [\n  ],\n  \"b\": {\n  },\n  \"c\": [\n    1,\n    {\n      \"d\": \"e\"\n    }\n  ],\n  \"f\": null\n}";
        assert_eq!(value.write_indented(2), expected);
        assert_eq!(value.write(), r#"{"a":[],"b":{},"c":[1,{"d":"e"}],"f":null}"#);
        assert_eq!(Json::Text("x".to_owned()).write_indented(2), "\"x\"");
    }
}
