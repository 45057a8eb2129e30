//! Answers of RPC methods as keys of a topic.
//!
//! Input: JSON. Output: one key for each row of a list, so that readers get only the rows that changed.

use serde_json::{Map, Value};

/// Calls a method without parameters. The error is its sentence.
pub(super) type Ask<'a> = dyn Fn(&str) -> Result<Value, String> + 'a;

/// Adds a key `KIND:NAME` for each row of a list. Rows without a name are left out.
pub(super) fn add(values: &mut Map<String, Value>, kind: &str, list: &Value, name: impl Fn(&Value) -> Option<String>) {
    for row in list.as_array().into_iter().flatten() {
        if let Some(name) = name(row) {
            values.insert(format!("{kind}:{name}"), row.clone());
        }
    }
}

/// The text of a field.
pub(super) fn text(row: &Value, field: &str) -> Option<String> {
    row.get(field)?.as_str().map(str::to_owned)
}

/// All that a topic has while its methods cannot be called.
pub(super) fn problem(words: &str) -> Map<String, Value> {
    Map::from_iter([("problem".to_owned(), words.into())])
}
