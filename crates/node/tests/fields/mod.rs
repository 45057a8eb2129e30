//! The names of the fields of a JSON document, for comparison with the documentation.

use serde_json::Value;
use std::collections::BTreeSet;

/// Adds the names at every depth.
pub(crate) fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            keys(value, found);
        }),
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}
