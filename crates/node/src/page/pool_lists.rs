//! The whole lists of the mempool's panel, for users of the page alone: what the topic has only the last rows of.
//!
//! Input: a method and its parameters. Output: JSON.

use super::PageNode;
use super::topics::mempool::{reject, replacement, row};
use lydian_dashboard::CallError;
use lydian_rpc::code;
use serde_json::{Value, json};

type Method = fn(&PageNode, &Value) -> Result<Value, CallError>;

const METHODS: &[(&str, Method)] = &[
    ("lydian_minedblock", mined_block),
    ("lydian_rejects", |node, _| Ok(rejects(node))),
    ("lydian_replacements", |node, _| Ok(replacements(node))),
];

/// Calls a method; `None` if there is none of this name.
pub(super) fn call(node: &PageNode, method: &str, params: &str) -> Option<Result<String, CallError>> {
    let (_, call) = METHODS.iter().find(|(name, _)| *name == method)?;
    let params = serde_json::from_str(params).unwrap_or_default();
    Some(call(node, &params).map(|value| value.to_string()))
}

/// All rejections that are kept, the newest first.
fn rejects(node: &PageNode) -> Value {
    let Some(mempool) = node.mempool() else { return json!([]) };
    mempool.records().rejects(usize::MAX).iter().map(reject).collect()
}

/// All replacements that are kept, the newest first.
fn replacements(node: &PageNode) -> Value {
    let Some(mempool) = node.mempool() else { return json!([]) };
    mempool.records().replacements(usize::MAX).iter().map(replacement).collect()
}

/// A mined block beside its projection, with the first txids of what was missing and added.
fn mined_block(node: &PageNode, params: &Value) -> Result<Value, CallError> {
    let hash = params[0].as_str().unwrap_or_default();
    let compared = node.serving().map(|serving| serving.pool.compared()).unwrap_or_default();
    let found = compared.iter().find(|one| one.hash.to_string() == hash);
    let found = found.ok_or_else(|| CallError {
        code: code::INVALID_ADDRESS_OR_KEY,
        message: format!("Block {hash} was not compared with its projection, or that was too long ago."),
    })?;
    let texts = |txids: &[lydian_primitives::Txid]| txids.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut value = row(found);
    value["missingTxids"] = json!(texts(&found.missing_txids));
    value["addedTxids"] = json!(texts(&found.added_txids));
    Ok(value)
}
