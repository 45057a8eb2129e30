//! The writer: Core's `UniValue::write` without indentation. Input: values, text. Output: bytes appended.

use super::Json;

/// A value in Core's form, no white space in it.
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

/// Text with quotes, escaped as Core's table of escapes has it.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
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
