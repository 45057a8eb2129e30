//! Access to parts of replies, with the behaviour of Core's `UniValue`: a missing value is null.
//!
//! Input: JSON. Output: JSON, or [`CallError::Shape`].

use crate::error::CallError;
use lydian_rpc::Json;

static NULL: Json = Json::Null;

/// Returns the value of a key; null if it is missing or `value` is not an object.
pub(crate) fn part<'a>(value: &'a Json, key: &str) -> &'a Json {
    value.get(key).unwrap_or(&NULL)
}

/// Returns a value without quotes: a string, a number as written, `1` for true, else nothing.
pub(crate) fn plain(value: &Json) -> &str {
    match value {
        Json::Text(text) | Json::Number(text) => text,
        Json::Bool(true) => "1",
        _ => "",
    }
}

/// Parses a floating-point number.
pub(crate) fn real(value: &Json) -> Result<f64, CallError> {
    match value {
        Json::Number(text) => text.parse().map_err(|_| CallError::Shape("JSON double out of range".to_owned())),
        other => {
            let found = other.type_name();
            Err(CallError::Shape(format!("JSON value of type {found} is not of expected type number")))
        }
    }
}

pub(crate) fn object<'a>(entries: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    Json::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Returns a reply with this result.
pub(crate) fn result(value: Json) -> Json {
    object([("jsonrpc", Json::Text("2.0".to_owned())), ("result", value), ("id", Json::Number("1".to_owned()))])
}

pub(crate) fn must_be_object(value: Json) -> Result<Json, CallError> {
    match value {
        Json::Object(_) => Ok(value),
        other => {
            let found = other.type_name();
            Err(CallError::Shape(format!("JSON value of type {found} is not of expected type object")))
        }
    }
}

/// Returns the replies to a batch, ordered by their ids.
pub(crate) fn batch(reply: Json) -> Result<Vec<Json>, CallError> {
    let Json::Array(members) = reply else { return Err(CallError::Shape("Batch must be an array".to_owned())) };
    let mut batch = vec![Json::Null; members.len()];
    for member in members {
        if !matches!(member, Json::Object(_)) {
            return Err(CallError::Shape("Batch member must be an object".to_owned()));
        }
        let id = usize::try_from(part(&member, "id").as_integer::<i32>()?).ok();
        let place = id.and_then(|id| batch.get_mut(id));
        *place.ok_or_else(|| CallError::Shape("Batch member id is larger than batch size".to_owned()))? = member;
    }
    Ok(batch)
}

/// Returns a reply of a batch, or null if it has fewer.
pub(crate) fn member(batch: &[Json], index: usize) -> &Json {
    batch.get(index).unwrap_or(&NULL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_in_the_order_of_its_ids() {
        let read = |text: &str| batch(Json::read(text.as_bytes()).unwrap()).map_err(|error| error.to_string());
        let replies = read(r#"[{"id":1,"result":"b"},{"id":0,"result":"a"}]"#).unwrap();
        let results: Vec<_> = replies.iter().map(|reply| plain(part(reply, "result"))).collect();
        assert_eq!(results, ["a", "b"]);
        assert!(member(&replies, 2).is_null());
        assert_eq!(read("{}").unwrap_err(), "Batch must be an array");
        assert_eq!(read("[1]").unwrap_err(), "Batch member must be an object");
        assert_eq!(read("[{\"id\":1}]").unwrap_err(), "Batch member id is larger than batch size");
        assert_eq!(read("[{\"id\":-1}]").unwrap_err(), "Batch member id is larger than batch size");
        assert_eq!(read("[{}]").unwrap_err(), "JSON value of type null is not of expected type number");
    }
}
