//! The topic `log`: the last lines of the log by their numbers, and the categories that are logged. It needs a login.

use crate::log::Line;
use crate::page::PageNode;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Changes when there are new lines or other categories.
pub(super) fn version(node: &PageNode) -> u64 {
    let log = &node.machine.log;
    // Categories change rarely, each by a bit of its own; a line is one more.
    log.line_count().wrapping_mul(1 << 32) ^ u64::from(log.categories().bits())
}

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    let log = &node.machine.log;
    let categories: Map<String, Value> =
        log.categories().list().into_iter().map(|(name, is_on)| (name.to_owned(), json!(is_on))).collect();
    let mut values: Map<String, Value> = log.recent().into_iter().map(row).collect();
    values.insert("categories".to_owned(), Value::Object(categories));
    values.insert("file".to_owned(), json!(log.path().map(|path| path.display().to_string())));
    values
}

/// A line has a number as its key.
fn row((number, line): (u64, Arc<Line>)) -> (String, Value) {
    let Line { micros, level, category, text } = line.as_ref();
    let row = json!({ "time": micros / 1_000, "level": level.name(), "category": category, "text": text });
    (number.to_string(), row)
}
