//! The results of the lab as files, and everything that is made of them: tables, charts, comparisons, projections to
//! mainnet, the published history.
//!
//! Input: result files. Output: text, pages, smaller files. Invariant: a run that does not count is in no figure, and a
//! system that took no part is in every table with its reason. It must never start a program, read a clock, or know
//! how a chain is made.

#![forbid(unsafe_code)]

pub mod articles;
pub mod compare;
pub mod electrum;
pub mod error;
pub mod history;
pub mod limits;
#[cfg(test)]
mod made_up;
pub mod mempool;
pub mod page;
pub mod project;
pub mod read;
pub mod results;
pub mod scaling;
pub mod summary;
pub mod systems;
pub mod thin;
pub mod validity;

pub use error::ReportError;

/// The names of all fields of a value, for tests that compare a document with what is written.
#[cfg(test)]
fn names_in(value: &serde_json::Value, names: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                names.push(name.clone());
                names_in(value, names);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| names_in(value, names)),
        _ => {}
    }
}
