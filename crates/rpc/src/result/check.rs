//! Compares an answer with its description: Core's `RPCResult::MatchesType`, for `-rpcdoccheck`.
//!
//! Input: a form and a parsed answer. Output: what differs, by field.

use super::{Field, Form, each_field};
use crate::json::Json;

/// Returns what differs; `None` if the value has the form.
pub(crate) fn mismatch(form: &Form, value: &Json) -> Option<Json> {
    let expected = match form {
        Form::Any => return None,
        Form::OneOf(cases) => {
            let mut found = Vec::new();
            for case in *cases {
                found.push(mismatch(&case.value.form, value)?);
            }
            return Some(if found.len() == 1 { found.swap_remove(0) } else { Json::Array(found) });
        }
        Form::Null => "null",
        Form::Text | Form::Hex => "string",
        Form::Number | Form::Amount | Form::Time => "number",
        Form::Bool => "bool",
        Form::Array(_) => "array",
        Form::Object(_) | Form::Map(_) => "object",
    };
    let type_name = value.type_name();
    if type_name != expected {
        return Some(words(&format!("returned type is {type_name}, but declared as {expected} in doc")));
    }
    let wrong: Vec<(String, Json)> = match (form, value) {
        (Form::Hex, Json::Text(text)) => {
            let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
            return (!is_hex).then(|| words("returned text is not hexadecimal"));
        }
        (Form::Array(inner), Json::Array(values)) => {
            let values = values.iter().enumerate();
            values.filter_map(|(index, value)| Some((index.to_string(), mismatch(inner, value)?))).collect()
        }
        (Form::Map(inner), Json::Object(entries)) => {
            entries.iter().filter_map(|(name, value)| Some((name.clone(), mismatch(inner, value)?))).collect()
        }
        (Form::Object(fields), Json::Object(entries)) => wrong_fields(fields, value, entries),
        _ => return None,
    };
    (!wrong.is_empty()).then_some(Json::Object(wrong))
}

fn wrong_fields(fields: &'static [Field], value: &Json, entries: &[(String, Json)]) -> Vec<(String, Json)> {
    let mut known = Vec::new();
    each_field(fields, &mut |field| known.push(field));
    let unknown = entries.iter().filter(|(name, _)| !known.iter().any(|field| field.name == name));
    let unknown = unknown.map(|(name, _)| (name.clone(), words("key returned that was not in doc")));
    let mut wrong: Vec<(String, Json)> = unknown.collect();
    for field in known {
        let found = match value.get(field.name) {
            Some(value) => mismatch(&field.value.form, value),
            None => (!field.is_optional).then(|| words("key missing, despite not being optional in doc")),
        };
        wrong.extend(found.map(|found| (field.name.to_owned(), found)));
    }
    wrong
}

fn words(text: &str) -> Json {
    Json::Text(text.to_owned())
}
