//! Typed answers: a type that implements [`Answer`] writes itself as JSON and describes what it writes, so that an
//! answer and its documentation cannot differ.
//!
//! Input: values. Output: JSON, appended; [`Form`]s, from which `help`, `docs/rpc.md` and `-rpcdoccheck` are derived.
//!
//! [`result!`] defines an object with its fields, [`cases!`] a choice of answers. The description of a type is a
//! constant; writing a value takes one pass and allocates nothing except room for the text.

mod check;
mod macros;
mod scalar;
mod text;

pub(crate) use check::mismatch;
pub(crate) use macros::{cases, field_name, result};
pub(crate) use scalar::Time;
pub(crate) use text::{sections, table};

use crate::json::write_text;
use std::convert::Infallible;

/// A value of an answer.
pub(crate) trait Answer {
    /// What is written.
    const FORM: Form;

    /// As a field, it may be missing.
    const IS_OPTIONAL: bool = false;

    /// As a field, it is written without its name: its own fields are fields of the surrounding object.
    const IS_INLINE: bool = false;

    /// As a field, it is missing now.
    fn is_omitted(&self) -> bool {
        false
    }

    /// Appends the value as JSON.
    fn write(&self, out: &mut Vec<u8>);

    /// Appends the fields of an object, each followed by a comma.
    fn write_fields(&self, _out: &mut Vec<u8>) {}

    /// Appends the value of one field of an object. Returns false if there is no such field.
    fn write_field(&self, _name: &str, _out: &mut Vec<u8>) -> bool {
        false
    }
}

/// The form of a value: Core's `RPCResult::Type`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Form {
    Text,
    Hex,
    Number,
    /// A number with eight decimals.
    Amount,
    /// A time in seconds since 1970, or a duration.
    Time,
    Bool,
    Null,
    Any,
    Object(&'static [Field]),
    /// An object with data as keys, and the form of its values.
    Map(&'static Form),
    /// The form of the elements.
    Array(&'static Form),
    OneOf(&'static [Case]),
}

/// A described value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Value {
    pub(crate) form: Form,
    pub(crate) words: &'static str,
    /// What stands for the keys of a map in the description.
    pub(crate) key: &'static str,
    /// Describes the elements of an array or map.
    pub(crate) each: &'static str,
}

impl Value {
    /// An element of an array or map.
    fn element(&self, form: &Form) -> Value {
        Value { form: *form, words: self.each, key: "", each: "" }
    }
}

/// A field of an object.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) is_optional: bool,
    /// The value is an object whose fields take the place of this field.
    pub(crate) is_inline: bool,
    pub(crate) value: Value,
}

/// One of several answers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Case {
    pub(crate) condition: &'static str,
    pub(crate) value: Value,
}

/// Calls a function with every field of an object, including those of inline objects.
fn each_field(fields: &'static [Field], visit: &mut dyn FnMut(&'static Field)) {
    for field in fields {
        match field.value.form {
            Form::Object(inner) if field.is_inline => each_field(inner, visit),
            _ => visit(field),
        }
    }
}

/// Appends a field, with `key` being its name in quotes and a colon, and a comma.
pub(crate) fn write_member<T: Answer>(key: &str, value: &T, out: &mut Vec<u8>) {
    if value.is_omitted() {
        return;
    }
    if T::IS_INLINE {
        value.write_fields(out);
        return;
    }
    out.extend_from_slice(key.as_bytes());
    value.write(out);
    out.push(b',');
}

/// Replaces the comma after the last field by the closing bracket.
pub(crate) fn close(bracket: u8, out: &mut Vec<u8>) {
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(bracket);
}

/// Appends an array.
pub(crate) fn write_array<T: Answer>(values: impl IntoIterator<Item = T>, out: &mut Vec<u8>) {
    out.push(b'[');
    for value in values {
        value.write(out);
        out.push(b',');
    }
    close(b']', out);
}

impl<T: Answer + ?Sized> Answer for &T {
    const FORM: Form = T::FORM;

    fn write(&self, out: &mut Vec<u8>) {
        (*self).write(out);
    }
}

impl<T: Answer> Answer for Box<T> {
    const FORM: Form = T::FORM;

    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }
}

impl<T: Answer> Answer for Option<T> {
    const FORM: Form = T::FORM;
    const IS_OPTIONAL: bool = true;

    fn is_omitted(&self) -> bool {
        self.is_none()
    }

    fn write(&self, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.write(out);
        }
    }
}

impl<T: Answer> Answer for Vec<T> {
    const FORM: Form = Form::Array(&T::FORM);

    fn write(&self, out: &mut Vec<u8>) {
        write_array(self, out);
    }
}

impl<T: Answer, const N: usize> Answer for [T; N] {
    const FORM: Form = Form::Array(&T::FORM);

    fn write(&self, out: &mut Vec<u8>) {
        write_array(self, out);
    }
}

/// An object with data as keys.
#[derive(Debug)]
pub(crate) struct Map<K, T>(pub(crate) Vec<(K, T)>);

impl<K: AsRef<str>, T: Answer> Answer for Map<K, T> {
    const FORM: Form = Form::Map(&T::FORM);

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (name, value) in &self.0 {
            write_text(name.as_ref(), out);
            out.push(b':');
            value.write(out);
            out.push(b',');
        }
        close(b'}', out);
    }
}

/// An object whose fields are fields of the surrounding object.
#[derive(Debug)]
pub(crate) struct Inline<T>(pub(crate) T);

impl<T: Answer> Answer for Inline<T> {
    const FORM: Form = T::FORM;
    const IS_INLINE: bool = true;

    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn write_fields(&self, out: &mut Vec<u8>) {
        self.0.write_fields(out);
    }
}

/// An empty object.
#[derive(Debug)]
pub(crate) struct Empty;

impl Answer for Empty {
    const FORM: Form = Form::Object(&[]);

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{}");
    }
}

/// The answer of a method that always fails.
impl Answer for Infallible {
    const FORM: Form = Form::OneOf(&[]);

    fn write(&self, _: &mut Vec<u8>) {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Amount, Double};
    use crate::output::Hex;

    result! {
        /// An inner object.
        struct Inner {
            /// a number
            n: u32,
            /// a text
            #[name("Text")]
            text: Option<&'static str>,
        }
    }

    result! {
        struct Outer<T> {
            inner: Inline<Inner>,
            /// bytes,
            /// on two lines
            #[each("one of them")]
            list: Vec<T>,
            #[each(key "word" "its number")]
            map: Map<String, Amount>,
            /// nothing
            none: Option<Double>,
        }
    }

    cases! {
        enum Choice {
            /// a word
            #[when("if it is short")]
            Word(String),
            #[when("otherwise")]
            Long(Outer<Hex<[u8; 2]>>),
        }
    }

    fn long() -> Outer<Hex<[u8; 2]>> {
        Outer {
            inner: Inline(Inner { n: 7, text: None }),
            list: vec![Hex([0, 255]), Hex([1, 2])],
            map: Map(vec![("a\"".to_owned(), Amount(1))]),
            none: None,
        }
    }

    fn written(answer: &impl Answer) -> String {
        let mut out = Vec::new();
        answer.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fields_are_written_in_order() {
        let expected = r#"{"n":7,"list":["00ff","0102"],"map":{"a\"":0.00000001}}"#;
        assert_eq!(written(&Choice::Long(long())), expected);
        assert_eq!(written(&Choice::Word("x".to_owned())), "\"x\"");
        assert_eq!(written(&Inner { n: 1, text: Some("b") }), r#"{"n":1,"Text":"b"}"#);
        assert_eq!(written(&Map::<String, u8>(Vec::new())), "{}");
        let mut out = Vec::new();
        assert!(long().write_field("list", &mut out) && !long().write_field("nothing", &mut out));
        assert_eq!(out, b"[\"00ff\",\"0102\"]");
    }

    #[test]
    fn descriptions_have_cores_layout() {
        let expected = "
Result (if it is short):
\"str\"    (string) a word

Result (otherwise):
{                   (json object)
  \"n\" : n,          (numeric) a number
  \"Text\" : \"str\",   (string, optional) a text
  \"list\" : [        (json array) bytes, on two lines
    \"hex\",          (string) one of them
    ...
  ],
  \"map\" : {         (json object)
    \"word\" : n,     (numeric) its number
    ...
  },
  \"none\" : n        (numeric, optional) nothing
}
";
        let value = Value { form: Choice::FORM, words: "", key: "", each: "" };
        let text = sections(&value);
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed(&text), squeezed(expected), "{text}");
    }

    #[test]
    fn answers_are_compared_with_their_description() {
        let check = |text: &str| {
            let answer = crate::json::Json::read(text.as_bytes()).unwrap();
            mismatch(&Choice::FORM, &answer).map(|found| found.write())
        };
        assert_eq!(check(&written(&Choice::Long(long()))), None);
        assert_eq!(check("\"word\""), None);
        assert_eq!(check(r#"{"n":1,"Text":"x","list":[],"map":{},"none":1.5}"#), None);
        let of_both = |words: &str| {
            let word = "returned type is object, but declared as string in doc";
            Some(format!("[\"{word}\",{{{words}}}]"))
        };
        let missing = "key missing, despite not being optional in doc";
        assert_eq!(check(r#"{"list":[],"map":{}}"#), of_both(&format!("\"n\":\"{missing}\"")));
        let extra = "key returned that was not in doc";
        assert_eq!(check(r#"{"n":1,"list":[],"map":{},"x":1}"#), of_both(&format!("\"x\":\"{extra}\"")));
        let wrong = "returned type is number, but declared as string in doc";
        assert_eq!(check(r#"{"n":1,"list":["",1],"map":{}}"#), of_both(&format!("\"list\":{{\"1\":\"{wrong}\"}}")));
        let letters = "returned text is not hexadecimal";
        assert_eq!(check(r#"{"n":1,"list":["x"],"map":{}}"#), of_both(&format!("\"list\":{{\"0\":\"{letters}\"}}")));
    }
}
