//! [`RemoteCalls`]: the RPC methods of the nodes.
//!
//! Input: a method and its parameters. Output: the result of the node that is followed, or of the next one. What is
//! broadcast goes to two nodes. A single transaction is in the front end's mempool when the call returns, unless that
//! takes too long: so a wallet finds its own transaction.

use crate::client::nodes::Nodes;
use crate::pool::PoolCopy;
use lydian_primitives::Txid;
use lydian_query::{CallError, Calls};
use std::sync::Arc;
use std::time::Duration;

const SEND: &str = "sendrawtransaction";
const PACKAGE: &str = "submitpackage";

/// How long a call waits for its transaction to come back in the feed.
const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct RemoteCalls {
    nodes: Arc<Nodes>,
    pool: Arc<PoolCopy>,
}

impl RemoteCalls {
    pub(crate) fn new(nodes: Arc<Nodes>, pool: Arc<PoolCopy>) -> RemoteCalls {
        RemoteCalls { nodes, pool }
    }
}

impl Calls for RemoteCalls {
    fn call(&self, method: &str, params: &str) -> Result<String, CallError> {
        if method != SEND && method != PACKAGE {
            return self.nodes.call(method, params);
        }
        let answer = self.nodes.broadcast(method, params)?;
        let txid: Option<Txid> = serde_json::from_str::<String>(&answer).ok().and_then(|text| text.parse().ok());
        if let Some(txid) = txid {
            self.pool.wait_for_transaction(&txid, PATIENCE);
        }
        Ok(answer)
    }
}
