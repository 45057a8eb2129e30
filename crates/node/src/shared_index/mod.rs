//! The index in a store: what `-index` and `lydian index load|status|verify` share. Input: the address of a store.
//! Output: the store, or one sentence. `work::shared_writer` writes the index, `work::shared_tasks` loads and compares
//! it without a node.

mod blocks;
mod status;

pub(crate) use blocks::{FileBlocks, NoBlocks};
pub(crate) use status::status;

use crate::clock::now_micros;
use crate::exit;
use lydian_index_cassandra::{Address, Settings, create, open};
use lydian_shared_index::{Store, StoreError, WriterError};
use std::sync::Arc;
use std::time::Duration;

/// The name of the index in the store among the indexes of `/metrics`.
pub(crate) const SHARED_NAME: &str = "shared";

/// Copies of each value in a keyspace that `lydian index load` creates: a node may fail.
const COPIES: u32 = 3;

/// The clocks of the store are compared with the system clock, which `setmocktime` does not change.
fn now() -> Duration {
    Duration::from_micros(now_micros())
}

/// Opens the keyspace.
pub(crate) fn open_store(address: &Address) -> Result<Arc<dyn Store>, StoreError> {
    open(&Settings { address: address.clone(), now })
}

/// Opens the keyspace, which is created if it does not exist.
pub(crate) fn open_or_create(address: &Address) -> Result<Arc<dyn Store>, StoreError> {
    create(&Settings { address: address.clone(), now }, COPIES)?;
    open_store(address)
}

/// The exit code of a command that the store or the index failed.
pub(crate) fn code_of(error: &WriterError) -> u8 {
    match error {
        WriterError::Store(StoreError::Refused { .. }) | WriterError::Replaced { .. } | WriterError::NoIndex => {
            exit::SETTINGS
        }
        WriterError::Store(_) | WriterError::Index(_) => exit::DISK,
    }
}

/// Documents compared with `docs/formats/index-json.md`.
#[cfg(test)]
pub(crate) mod documented {
    use serde::Serialize;
    use serde_json::Value;
    use std::collections::BTreeSet;

    const PAGE: &str = include_str!("../../../../docs/formats/index-json.md");

    fn keys(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                found.insert(key.clone());
                keys(value, found);
            }),
            Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }

    /// The fields of a document of `lydian index COMMAND cassandra://...` are those that the page names.
    pub(crate) fn assert_fields(command: &str, document: &impl Serialize) {
        let heading = format!("\n## `lydian index {command} cassandra://... --json`\n");
        let (_, section) = PAGE.split_once(&heading).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let names = section.split('`').skip(1).step_by(2).filter(|name| !["null", "true", "false"].contains(name));
        let documented: BTreeSet<String> = names.map(str::to_owned).collect();
        let mut written = BTreeSet::new();
        keys(&serde_json::to_value(document).unwrap(), &mut written);
        assert_eq!(documented, written, "{command}");
    }
}
