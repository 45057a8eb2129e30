//! Writes JSON: answers, and the protocol's forms of hashes and amounts.

use crate::fault::Fault;
use lydian_primitives::{push_hex, push_hex_reversed};
use serde_json::Value;
use std::io::Write;

/// A JSON text.
pub(crate) type Json = Vec<u8>;

/// Appends formatted text.
pub(crate) fn put(out: &mut Json, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

/// A hash as it is displayed, in quotes.
pub(crate) fn put_hash(out: &mut Json, hash: &[u8; 32]) {
    out.push(b'"');
    push_hex_reversed(out, hash);
    out.push(b'"');
}

/// Bytes in hexadecimal, in quotes.
pub(crate) fn put_hex(out: &mut Json, bytes: &[u8]) {
    out.push(b'"');
    push_hex(out, bytes);
    out.push(b'"');
}

/// A list, with what `put` writes of each item.
pub(crate) fn put_list<T>(out: &mut Json, items: impl IntoIterator<Item = T>, put: impl Fn(&mut Json, T)) {
    out.push(b'[');
    let mut is_first = true;
    for item in items {
        if !is_first {
            out.push(b',');
        }
        is_first = false;
        put(out, item);
    }
    out.push(b']');
}

pub(crate) fn text(text: &str) -> Json {
    Value::from(text).to_string().into_bytes()
}

/// Satoshis per 1,000 virtual bytes as BTC.
pub(crate) fn btc(satoshis: i64) -> String {
    let (sign, amount) = (if satoshis < 0 { "-" } else { "" }, satoshis.unsigned_abs());
    format!("{sign}{}.{:08}", amount / 100_000_000, amount % 100_000_000)
}

/// The answer to a request.
pub(crate) fn answer(out: &mut Json, id: &Value, result: Result<Json, Fault>) {
    begin(out, result);
    out.extend(end(id));
}

/// What is behind the result or the error of an answer.
pub(crate) fn end(id: &Value) -> Json {
    format!(",\"id\":{id}}}").into_bytes()
}

/// An answer up to and with its result or error.
pub(crate) fn begin(out: &mut Json, result: Result<Json, Fault>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
    match result {
        Ok(result) => {
            out.extend_from_slice(b"\"result\":");
            out.extend_from_slice(&result);
        }
        Err(Fault { code, message }) => {
            put(out, format_args!("\"error\":{{\"code\":{code},\"message\":{}}}", Value::from(message)));
        }
    }
}

/// A message of the server.
pub(crate) fn notification(out: &mut Json, method: &str, params: &[u8]) {
    put(out, format_args!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":"));
    out.extend_from_slice(params);
    out.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_json() {
        let mut out = Vec::new();
        answer(&mut out, &Value::from(7), Ok(text("a\"b")));
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"jsonrpc":"2.0","result":"a\"b","id":7}"#);
        let mut out = Vec::new();
        answer(&mut out, &Value::Null, Err(Fault::bad("no \"x\"")));
        let expected = r#"{"jsonrpc":"2.0","error":{"code":1,"message":"no \"x\""},"id":null}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!([btc(100), btc(-1), btc(123_456_789)], ["0.00000100", "-0.00000001", "1.23456789"]);
        let mut out = Vec::new();
        put_list(&mut out, [1, 2], |out, number| put(out, format_args!("{number}")));
        put_list(&mut out, [0; 0], |out, number| put(out, format_args!("{number}")));
        assert_eq!(out, b"[1,2][]");
    }
}
