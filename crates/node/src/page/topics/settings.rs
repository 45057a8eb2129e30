//! The topic `settings`: every option with its value, where that was given, its default and its help. It needs a login.
//! Secrets were replaced when the options were read.

use crate::page::PageNode;
use crate::settings::Shown;
use serde_json::{Map, Value, json};

/// Nothing changes while the node runs.
pub(super) fn version(_: &PageNode) -> u64 {
    1
}

/// The options by name, their order, and remarks about settings that others have changed.
pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    let row = |(place, shown): (usize, &Shown)| {
        let Shown { name, group, argument, default, help, values, source, is_secret } = shown;
        let row = json!({
            "place": place,
            "group": group,
            "argument": argument,
            "default": default,
            "help": help,
            "values": values,
            "source": source,
            "isSecret": is_secret,
        });
        ((*name).to_owned(), row)
    };
    let options: Map<String, Value> = node.machine.shown.iter().enumerate().map(row).collect();
    let mut values = Map::new();
    values.insert("options".to_owned(), Value::Object(options));
    values.insert("interactions".to_owned(), json!(node.machine.interactions));
    values
}
