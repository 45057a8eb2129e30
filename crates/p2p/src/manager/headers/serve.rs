//! Requests from peers for headers, and what they have in common with those for blocks. The answers, limits and ignored
//! requests are Bitcoin Core's.
//!
//! Input: a locator. Output: headers. Cost: a walk along the active chain.

use super::Headers;
use crate::manager::PeerId;
use crate::manager::context::Context;
use crate::peer::Permissions;
use lydian_chain::{HeaderId, HeaderTree};
use lydian_consensus::Params;
use lydian_primitives::{BlockHash, Height};
use lydian_wire::limits::LOCATOR_COUNT_MAX;
use lydian_wire::{Locator, Message};

/// The maximum number of hashes in an answer to `getblocks`.
pub(in crate::manager) const GETBLOCKS_COUNT_MAX: usize = 500;

/// An older branch is not served, to avoid fingerprinting: Core's `STALE_RELAY_AGE_LIMIT`, in seconds.
const STALE_BRANCH_SECONDS: i64 = 30 * 24 * 60 * 60;

impl Headers {
    pub(in crate::manager) fn serve_headers(context: &mut Context, id: PeerId, request: &Locator) {
        if request.hashes.len() > LOCATOR_COUNT_MAX {
            return context
                .leave(id, format!("getheaders locator size {} > {LOCATOR_COUNT_MAX}", request.hashes.len()));
        }
        let may_always = context.peers.get(&id).is_some_and(|peer| peer.may(Permissions::DOWNLOAD));
        if context.tip().work < context.settings.minimum_chain_work && !may_always {
            context.log_debug(format!(
                "Ignoring getheaders from peer={id} because active chain has too little work; sending empty response"
            ));
            // The empty answer shows the peer that this node is responsive but of no use for its sync.
            return context.send(id, Message::Headers(Vec::new()));
        }
        Self::log_request(context, id, "getheaders", request);
        let params = context.settings.params.clone();
        let mut is_refused = false;
        let answer = context.chain.with_tree(|tree| {
            let first = if request.hashes.is_empty() {
                let asked = tree.find(&request.stop)?;
                is_refused = !may_request(tree, asked, &params);
                return (!is_refused).then(|| (vec![tree.node(asked).header], asked));
            } else {
                tree.height(find_fork(tree, &request.hashes)).0 + 1
            };
            let mut headers = Vec::new();
            for height in first.. {
                let Some(next) = tree.active(Height(height)) else { return Some((headers, tree.tip())) };
                headers.push(tree.node(next).header);
                if headers.len() == crate::limits::HEADERS_COUNT_MAX || *tree.hash(next) == request.stop {
                    return Some((headers, next));
                }
            }
            None
        });
        if let Some((headers, sent)) = answer {
            context.with(id, |peer| peer.sync.best_header_sent = Some(sent));
            context.send(id, Message::Headers(headers));
        } else if is_refused {
            context.log_debug(format!(
                "ProcessMessage: ignoring request from peer={id} for old block header that isn't in the main chain"
            ));
        }
    }

    /// Logs where a peer's request for headers or blocks starts and ends.
    pub(in crate::manager) fn log_request(context: &mut Context, id: PeerId, command: &str, request: &Locator) {
        context.debug(|context| {
            let first = context.chain.with_tree(|tree| {
                let fork = find_fork(tree, &request.hashes);
                tree.active(Height(tree.height(fork).0 + 1)).map_or(-1, |next| i64::from(tree.height(next).0))
            });
            let end = if request.stop == BlockHash::ZERO { "end".to_owned() } else { request.stop.to_string() };
            match command {
                "getblocks" => format!("getblocks {first} to {end} limit {GETBLOCKS_COUNT_MAX} from peer={id}"),
                _ => format!("getheaders {first} to {end} from peer={id}"),
            }
        });
    }
}

/// Returns the last block of a locator on the active chain, or the tip if a block of the locator builds on it: Core's
/// `FindForkInGlobalIndex`.
pub(in crate::manager) fn find_fork(tree: &HeaderTree, locator: &[BlockHash]) -> HeaderId {
    for hash in locator {
        let Some(id) = tree.find(hash) else { continue };
        if tree.is_active(id) {
            return id;
        }
        if tree.ancestor(id, tree.height(tree.tip())) == Some(tree.tip()) {
            return tree.tip();
        }
    }
    HeaderId::GENESIS
}

/// Core's `BlockRequestAllowed`: the active chain, and valid branches of the last month, to prevent fingerprinting by
/// old blocks.
pub(in crate::manager) fn may_request(tree: &HeaderTree, id: HeaderId, params: &Params) -> bool {
    if tree.is_active(id) {
        return true;
    }
    let (node, best) = (tree.node(id), tree.node(tree.best_header()));
    let age = i64::from(best.header.time) - i64::from(node.header.time);
    let behind = i64::from(best.height.0) - i64::from(node.height.0);
    node.is_verified
        && !node.is_invalid
        && age < STALE_BRANCH_SECONDS
        && behind * params.pow_target_spacing < STALE_BRANCH_SECONDS
}
