//! What the vector tests share: where data lie, JSON, hexadecimal, Core's way of writing scripts as text.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests read their data and fail on a bad file")]

use lydian_primitives::{Amount, Output, hex};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The folder of data that is always there.
fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// A JSON file under `testdata/`, `.zst` or not.
pub(crate) fn testdata_json(path: &str) -> Value {
    json(&workspace_root().join("testdata").join(path))
}

/// A JSON file under `tests/vectors/`.
pub(crate) fn vectors_json(name: &str) -> Value {
    json(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name))
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A file, decompressed if its name ends in `.zst`.
pub(crate) fn read(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_some_and(|ext| ext == "zst") { zstd::decode_all(&bytes[..]).unwrap() } else { bytes }
}

/// A file of the shared data folder (`LYDIAN_SHARED`, or `shared` beside the checkout). When it is absent, that is said, and
/// `None` is the answer.
#[allow(clippy::print_stderr, reason = "what is not run must be seen")]
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("LYDIAN_SHARED").map_or_else(|| workspace_root().join("../shared"), PathBuf::from);
    let file = root.join(path);
    if file.exists() {
        return Some(file);
    }
    eprintln!("NOT RUN: {path} is missing in the shared data folder {} (set LYDIAN_SHARED)", root.display());
    None
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("text expected: {value}"))
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    hex(text(value)).unwrap_or_else(|error| panic!("{value}: {error}"))
}

pub(crate) fn array32(value: &Value) -> [u8; 32] {
    bytes(value).try_into().unwrap()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("list expected: {value}"))
}

/// Views of outputs that a test owns.
pub(crate) fn outputs(owned: &[(i64, Vec<u8>)]) -> Vec<Output<'_>> {
    owned.iter().map(|(value, script)| Output { value: Amount(*value), script_pubkey: script }).collect()
}
