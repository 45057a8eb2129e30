//! Requests from peers for headers, blocks and compact blocks. The answers, limits and ignored requests are Bitcoin
//! Core's.

use super::Blocks;
use crate::manager::context::Context;
use crate::manager::headers::{GETBLOCKS_COUNT_MAX, Headers, find_fork, may_request};
use crate::manager::{Action, PeerId};
use crate::outgoing::Outgoing;
use crate::peer::Permissions;
use lydian_engine::HeaderInfo;
use lydian_primitives::{BlockHash, Height};
use lydian_wire::limits::LOCATOR_COUNT_MAX;
use lydian_wire::{BlockTransactionsRequest, Inv, InvType, Locator, Message, Services};
use rand_chacha::rand_core::Rng;

/// The maximum depth of blocks below the tip for which compact blocks are made: Core's `MAX_CMPCTBLOCK_DEPTH` and
/// `MAX_BLOCKTXN_DEPTH`.
const COMPACT_DEPTH_MAX: u32 = 5;
const BLOCKTXN_DEPTH_MAX: u32 = 10;

/// A pruned node serves no older blocks: `NODE_NETWORK_LIMITED_MIN_BLOCKS` and two for races.
const LIMITED_BLOCKS: u32 = 288 + 2;

/// Core's `MIN_BLOCKS_TO_KEEP`, and how long a peer may take to request an announced block, in seconds.
const BLOCKS_TO_KEEP_MIN: u32 = 288;
const PRUNE_RACE_SECONDS: u32 = 3_600;

/// The reason why an answer to `getblocks` ends before the tip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The peer's stop hash.
    Asked,
    /// The block is pruned, or may be soon.
    Pruned,
    /// [`GETBLOCKS_COUNT_MAX`].
    Limit,
}

/// An older block may be refused if the upload target is reached: Core's `HISTORICAL_BLOCK_AGE`.
const HISTORICAL_BLOCK_SECONDS: i64 = 7 * 24 * 60 * 60;

impl Blocks {
    pub(in crate::manager) fn serve_inv(context: &mut Context, id: PeerId, request: &Locator) {
        if request.hashes.len() > LOCATOR_COUNT_MAX {
            return context.leave(id, format!("getblocks locator size {} > {LOCATOR_COUNT_MAX}", request.hashes.len()));
        }
        Headers::log_request(context, id, "getblocks", request);
        let (hashes, end) = Self::inventory_after(context, request);
        match end {
            None => {}
            Some((End::Asked, height, hash)) => context.log_debug(format!(" getblocks stopping at {height} {hash}")),
            Some((End::Pruned, height, hash)) => {
                context.log_debug(format!(" getblocks stopping, pruned or too old block at {height} {hash}"));
            }
            Some((End::Limit, height, hash)) => {
                context.log_debug(format!(" getblocks stopping at limit {height} {hash}"));
                context.with(id, |peer| peer.blocks.continuation = Some(hash));
            }
        }
        if hashes.is_empty() {
            return;
        }
        let inventory = hashes.into_iter().map(|hash| Inv::block(InvType::BLOCK, hash)).collect();
        context.send(id, Message::Inv(inventory));
    }

    /// Returns the hashes that answer a `getblocks`, and the block at which they end if that is before the tip. A
    /// pruned node announces no block that may be pruned before it is requested.
    fn inventory_after(context: &Context, request: &Locator) -> (Vec<BlockHash>, Option<(End, u32, BlockHash)>) {
        let keeps_all = context.settings.local.services.contains(Services::NETWORK);
        let spacing = u32::try_from(context.settings.params.pow_target_spacing).unwrap_or(1).max(1);
        let likely_kept = BLOCKS_TO_KEEP_MIN - (PRUNE_RACE_SECONDS / spacing).min(BLOCKS_TO_KEEP_MIN);
        context.chain.with_tree(|tree| {
            let tip = tree.height(tree.tip()).0;
            let mut hashes = Vec::new();
            for height in tree.height(find_fork(tree, &request.hashes)).0 + 1.. {
                let Some(next) = tree.active(Height(height)) else { break };
                let node = tree.node(next);
                if node.hash == request.stop {
                    return (hashes, Some((End::Asked, height, node.hash)));
                }
                if node.block.is_none() || !keeps_all && tip - height >= likely_kept {
                    return (hashes, Some((End::Pruned, height, node.hash)));
                }
                hashes.push(node.hash);
                if hashes.len() == GETBLOCKS_COUNT_MAX {
                    return (hashes, Some((End::Limit, height, node.hash)));
                }
            }
            (hashes, None)
        })
    }

    pub(in crate::manager) fn log_getdata(context: &mut Context, id: PeerId, inventory: &[Inv]) {
        context.log_debug(format!("received getdata ({} invsz) peer={id}", inventory.len()));
        if let Some(first) = inventory.first() {
            context.log_debug(format!("received getdata for: {first} peer={id}"));
        }
    }

    /// Core's `ProcessGetBlockData`.
    pub(in crate::manager) fn serve_block(&mut self, context: &mut Context, id: PeerId, item: Inv) {
        let hash = BlockHash(item.hash);
        let params = context.settings.params.clone();
        let Some(info) = context.chain.header_info(&hash) else { return };
        let is_allowed = context.chain.with_tree(|tree| may_request(tree, info.id, &params));
        let Some(peer) = context.peers.get(&id) else { return };
        if !is_allowed {
            return context.log_debug(format!(
                "ProcessGetBlockData: ignoring request from peer={id} for old block that isn't in the main chain"
            ));
        }
        if self.is_beyond_upload_target(context, &info, item.kind) && !peer.may(Permissions::DOWNLOAD) {
            return context.leave(id, "historical block serving limit reached");
        }
        let depth = info.tip.height.0.saturating_sub(info.node.height.0);
        let is_limited = !context.settings.local.services.contains(Services::NETWORK);
        if is_limited && depth > LIMITED_BLOCKS && !peer.may(Permissions::NO_BAN) {
            return context.leave(id, "Ignore block request below NODE_NETWORK_LIMITED threshold");
        }
        if info.node.block.is_none() {
            return;
        }
        let is_compact =
            item.kind == InvType::CMPCT_BLOCK && depth <= COMPACT_DEPTH_MAX && context.can_fetch_directly();
        match item.kind {
            // Bloom filters are not supported.
            InvType::FILTERED_BLOCK => {}
            // Built only when it is sent: thousands may be requested at once.
            _ if is_compact => {
                let nonce = context.random.next_u64();
                context.actions.push(Action::Send { to: id, item: Outgoing::Compact { hash, nonce } });
            }
            kind => {
                let with_witness = kind != InvType::BLOCK;
                context.actions.push(Action::Send { to: id, item: Outgoing::Block { hash, with_witness } });
            }
        }
        if context.peers.get(&id).is_some_and(|peer| peer.blocks.continuation == Some(hash)) {
            context.with(id, |peer| peer.blocks.continuation = None);
            let tip = context.tip().hash;
            context.send(id, Message::Inv(vec![Inv::block(InvType::BLOCK, tip)]));
        }
    }

    /// Core's `OutboundTargetReached`: blocks of the last week are sent regardless of `-maxuploadtarget`.
    fn is_beyond_upload_target(&self, context: &Context, info: &HeaderInfo, kind: InvType) -> bool {
        let best = context.best_header();
        let age = i64::from(best.time) - i64::from(info.node.header.time);
        let is_historical = age > HISTORICAL_BLOCK_SECONDS || kind == InvType::FILTERED_BLOCK;
        is_historical && self.upload.is_reached_for_historical_blocks(context)
    }

    pub(in crate::manager) fn serve_block_transactions(
        context: &mut Context,
        id: PeerId,
        request: BlockTransactionsRequest,
    ) {
        let info = context.chain.header_info(&request.block_hash).filter(|info| info.node.block.is_some());
        let Some(info) = info else {
            return context.log_debug(format!("Peer {id} sent us a getblocktxn for a block we don't have"));
        };
        let depth = info.tip.height.0.saturating_sub(info.node.height.0);
        if depth > BLOCKTXN_DEPTH_MAX {
            context.log_debug(format!("Peer {id} sent us a getblocktxn for a block > {BLOCKTXN_DEPTH_MAX} deep"));
            // A peer that requests such an old block must receive everything that was read for it.
            let item = Outgoing::Block { hash: request.block_hash, with_witness: true };
            return context.actions.push(Action::Send { to: id, item });
        }
        // Read only when it is sent, like a block: a hundred peers may request all transactions of the largest block.
        context.actions.push(Action::Send { to: id, item: Outgoing::Transactions(request) });
    }
}
