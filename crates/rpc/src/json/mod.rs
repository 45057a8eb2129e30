//! JSON as Core's `UniValue` reads and writes it.
//!
//! Input: bytes of a request. Output: [`Json`], with the original text of numbers and the original order of keys,
//! including repeated ones; typed access with Core's error messages; text again.
//!
//! Invariants: no input causes a panic; at most [`crate::limits::JSON_DEPTH_MAX`] levels. It accepts and refuses
//! exactly the requests that Core accepts and refuses, which no general parser guarantees. Cost: one pass; each value
//! is a separate allocation.

mod number;
mod parse;
mod write;

pub use number::{Amount, Double};
pub(crate) use number::{double_text, parse_fixed_point};
pub(crate) use parse::{Member, count, member_after, parse};
pub(crate) use write::{write_indented, write_text, write_value};

use crate::error::{RpcError, code};
use std::str::FromStr;

/// A JSON value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Json {
    #[default]
    Null,
    Bool(bool),
    /// The original text.
    Number(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a value, followed by nothing but white space: Core's `UniValue::read`.
    pub fn read(bytes: &[u8]) -> Option<Json> {
        parse(bytes)
    }

    /// Writes the value on one line without white space.
    pub fn write(&self) -> String {
        let mut out = Vec::new();
        write_value(self, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Writes the value on several lines, with `width` spaces of indentation per level: Core's `UniValue::write` with
    /// indentation.
    pub fn write_indented(&self, width: usize) -> String {
        let mut out = Vec::new();
        write_indented(self, width, 1, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Core's `uvTypeName`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "bool",
            Json::Number(_) => "number",
            Json::Text(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }

    pub fn is_null(&self) -> bool {
        *self == Json::Null
    }

    /// The first value of a key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Result<bool, RpcError> {
        match self {
            Json::Bool(value) => Ok(*value),
            _ => Err(self.is_not("bool")),
        }
    }

    pub fn as_text(&self) -> Result<&str, RpcError> {
        match self {
            Json::Text(text) => Ok(text),
            _ => Err(self.is_not("string")),
        }
    }

    pub fn as_array(&self) -> Result<&[Json], RpcError> {
        match self {
            Json::Array(values) => Ok(values),
            _ => Err(self.is_not("array")),
        }
    }

    /// An integer of type `T`: Core's `getInt`. `1.0` and `1e0` are not integers.
    pub fn as_integer<T: FromStr>(&self) -> Result<T, RpcError> {
        match self {
            Json::Number(text) => {
                text.parse().map_err(|_| RpcError::new(code::MISC_ERROR, "JSON integer out of range"))
            }
            _ => Err(self.is_not("number")),
        }
    }

    /// A floating-point number: Core's `get_real`.
    pub(crate) fn as_double(&self) -> Result<f64, RpcError> {
        match self {
            Json::Number(text) => {
                let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
                number.ok_or_else(|| RpcError::new(code::MISC_ERROR, "JSON double out of range"))
            }
            _ => Err(self.is_not("number")),
        }
    }

    /// An amount in bitcoin, as a number or a string: Core's `AmountFromValue`. In satoshis.
    pub(crate) fn as_amount(&self) -> Result<lydian_primitives::Amount, RpcError> {
        let refuse = |words: &str| RpcError::new(code::TYPE_ERROR, words);
        let (Json::Number(text) | Json::Text(text)) = self else {
            return Err(refuse("Amount is not a number or string"));
        };
        let amount = parse_fixed_point(text, 8).map(lydian_primitives::Amount);
        let amount = amount.ok_or_else(|| refuse("Invalid amount"))?;
        if amount.is_in_money_range() { Ok(amount) } else { Err(refuse("Amount out of range")) }
    }

    /// Bytes in hex: Core's `ParseHexV`. Any value but a string counts as an empty one, which is refused.
    pub(crate) fn as_hex(&self, name: &str) -> Result<Vec<u8>, RpcError> {
        let text = self.as_text().unwrap_or_default();
        let bytes = lydian_primitives::hex(text).ok().filter(|bytes| !bytes.is_empty());
        bytes.ok_or_else(|| RpcError::parameter(format!("{name} must be hexadecimal string (not '{text}')")))
    }

    /// The value of a key, or null: Core's `find_value`.
    pub(crate) fn field(&self, key: &str) -> &Json {
        self.get(key).unwrap_or(&Json::Null)
    }

    /// A field of an object, `None` if it is missing: Core's `RPCTypeCheckObj` for one field.
    pub(crate) fn typed_field(&self, name: &str, expected: &str, is_required: bool) -> Result<Option<&Json>, RpcError> {
        let value = self.field(name);
        let type_error = |message: String| Err(RpcError::new(code::TYPE_ERROR, message));
        match value {
            Json::Null if is_required => type_error(format!("Missing {name}")),
            Json::Null => Ok(None),
            _ if value.type_name() == expected => Ok(Some(value)),
            _ => {
                let found = value.type_name();
                type_error(format!("JSON value of type {found} for field {name} is not of expected type {expected}"))
            }
        }
    }

    /// The entries of an object.
    pub(crate) fn as_object(&self) -> Result<&[(String, Json)], RpcError> {
        match self {
            Json::Object(entries) => Ok(entries),
            _ => Err(self.is_not("object")),
        }
    }

    fn is_not(&self, expected: &str) -> RpcError {
        let found = self.type_name();
        RpcError::new(code::TYPE_ERROR, format!("JSON value of type {found} is not of expected type {expected}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_reported_in_cores_words() {
        let error = Json::Bool(true).as_text().unwrap_err();
        assert_eq!((error.code, &error.message[..]), (-3, "JSON value of type bool is not of expected type string"));
        let number = |text: &str| Json::Number(text.to_owned());
        assert_eq!(number("-7").as_integer::<i32>().unwrap(), -7);
        for text in ["1.0", "1e0", "2147483648", "-2147483649"] {
            let error = number(text).as_integer::<i32>().unwrap_err();
            assert_eq!((error.code, &error.message[..]), (-1, "JSON integer out of range"));
        }
        assert!(number("-1").as_integer::<u32>().is_err());
    }
}
