//! `/rest/chaininfo`, `/rest/deploymentinfo` and `/rest/mempool/`: the answers of methods of JSON-RPC.

use super::reply::{Made, Refused};
use super::request::{Request, hash_of};
use crate::error::RpcError;
use crate::json::Json;
use lydian_primitives::BlockHash;

fn failed(error: RpcError) -> Refused {
    Refused::Failed(error.message)
}

/// Core's `rest_chaininfo`. Whatever stands between the prefix and the format is ignored.
pub(super) fn chain_info(request: &Request<'_>) -> Result<Made, Refused> {
    request.engine()?;
    request.reply_json(|out| request.call("getblockchaininfo", &[], out).map_err(failed))
}

/// Core's `rest_deploymentinfo`.
pub(super) fn deployment_info(request: &Request<'_>) -> Result<Made, Refused> {
    let engine = request.engine()?;
    request.reply_json(|out| {
        let mut params = Vec::new();
        if !request.path.is_empty() {
            let hash: BlockHash = hash_of(request.path)?;
            engine.header_info(&hash).ok_or_else(|| Refused::bad("Block not found"))?;
            params.push(Json::Text(request.path.to_owned()));
        }
        request.call("getdeploymentinfo", &params, out).map_err(failed)
    })
}

/// Core's `rest_mempool`.
pub(super) fn mempool(request: &Request<'_>) -> Result<Made, Refused> {
    request.engine()?;
    let shows_contents = match request.path {
        "contents" => true,
        "info" => false,
        _ => return Err(Refused::bad("Invalid URI format. Expected /rest/mempool/<info|contents>.json")),
    };
    request.context.mempool().map_err(|error| Refused::missing(error.message))?;
    request.reply_json(|out| match shows_contents {
        true => contents(request, out),
        false => request.call("getmempoolinfo", &[], out).map_err(failed),
    })
}

fn contents(request: &Request<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
    let is_verbose = request.switch("verbose", true)?;
    let has_sequence = request.switch("mempool_sequence", false)?;
    if is_verbose && has_sequence {
        let words = "Verbose results cannot contain mempool sequence values. (hint: set \"verbose=false\")";
        return Err(Refused::bad(words));
    }
    request.call("getrawmempool", &[Json::Bool(is_verbose), Json::Bool(has_sequence)], out).map_err(failed)
}
