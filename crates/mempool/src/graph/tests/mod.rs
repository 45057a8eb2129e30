//! Tests of the graph: against Core's own answers, against a plain model, and of large clusters.

mod basics;
mod judge;
mod large;
mod random;
mod replay;

/// Returns the text of a file of vectors: the one that the environment variable `name` names, or else the one in
/// testdata. Both are written by `tools/txgraph/dump.sh`.
#[expect(clippy::disallowed_methods, reason = "test vectors")]
fn vectors(name: &str, file: &str) -> String {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vectors/core");
    let path = std::env::var_os(name).map_or_else(|| std::path::Path::new(own).join(file), Into::into);
    std::fs::read_to_string(path).unwrap()
}
