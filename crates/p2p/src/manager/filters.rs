//! Requests from peers for block filters (BIP-0157): Core's `PrepareBlockFilterRequest` and what follows it.

use super::context::Context;
use super::headers::may_request;
use super::{Action, PeerId};
use crate::filters::{
    BASIC_FILTER, CFHEADERS_COUNT_MAX, CFILTERS_COUNT_MAX, FilterAnswer, FilterRequest, FilterSource,
};
use crate::outgoing::Outgoing;
use lydian_chain::HeaderId;
use lydian_primitives::{BlockHash, Height};
use lydian_wire::{FilterRange, GetCFCheckpt, Services};
use std::sync::Arc;

/// Where the filters come from, if the node serves them.
#[derive(Debug, Default)]
pub(super) struct Filters {
    pub(super) source: Option<Arc<dyn FilterSource>>,
}

impl Filters {
    pub(super) fn serve_filters(&self, context: &mut Context, id: PeerId, request: &FilterRange) {
        let (from, stop) = (request.start_height, request.stop_hash);
        let Some(stop) = Self::check(context, id, request.filter_type, from, stop, CFILTERS_COUNT_MAX) else { return };
        let blocks: Vec<BlockHash> = context.chain.with_tree(|tree| {
            let heights = from..=tree.height(stop).0;
            heights.filter_map(|height| tree.ancestor(stop, Height(height))).map(|id| *tree.hash(id)).collect()
        });
        blocks.into_iter().for_each(|block| self.send(context, id, FilterRequest::Filter(block)));
    }

    pub(super) fn serve_headers(&self, context: &mut Context, id: PeerId, request: &FilterRange) {
        let (from, stop) = (request.start_height, request.stop_hash);
        if Self::check(context, id, request.filter_type, from, stop, CFHEADERS_COUNT_MAX).is_some() {
            self.send(context, id, FilterRequest::Headers { from: Height(from), stop });
        }
    }

    pub(super) fn serve_checkpoints(&self, context: &mut Context, id: PeerId, request: &GetCFCheckpt) {
        if let Some(stop) = Self::check(context, id, request.filter_type, 0, request.stop_hash, u32::MAX) {
            let height = context.chain.with_tree(|tree| tree.height(stop));
            self.send(context, id, FilterRequest::Checkpoints { height, stop: request.stop_hash });
        }
    }

    fn send(&self, context: &mut Context, to: PeerId, request: FilterRequest) {
        if let Some(source) = self.source.clone() {
            context.actions.push(Action::Send { to, item: Outgoing::Filters(FilterAnswer { source, request }) });
        }
    }

    /// The last block of a request, which the peer may ask for. Another request ends the connection.
    fn check(context: &mut Context, id: PeerId, kind: u8, from: u32, stop: BlockHash, most: u32) -> Option<HeaderId> {
        if kind != BASIC_FILTER || !context.settings.local.services.contains(Services::COMPACT_FILTERS) {
            context.leave(id, format!("peer requested unsupported block filter type: {kind}"));
            return None;
        }
        let params = context.settings.params.clone();
        let found = context.chain.with_tree(|tree| {
            let stop = tree.find(&stop).filter(|stop| may_request(tree, *stop, &params))?;
            Some((stop, tree.height(stop).0))
        });
        let Some((stop, height)) = found else {
            context.leave(id, format!("peer requested invalid block hash: {stop}"));
            return None;
        };
        if from > height {
            let heights = format!("start height {from} and stop height {height}");
            context.leave(id, format!("peer sent invalid getcfilters/getcfheaders with {heights}"));
            return None;
        }
        if height - from >= most {
            let count = u64::from(height - from) + 1;
            context.leave(id, format!("peer requested too many cfilters/cfheaders: {count} / {most}"));
            return None;
        }
        Some(stop)
    }
}
