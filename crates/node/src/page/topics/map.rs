//! The topic `map`: the blocks around the tip: durable, validated, here, requested, or only their headers known.
//!
//! One letter for each block, from the tip's last blocks up to the end of what can be downloaded at once.

use super::object;
use crate::page::PageNode;
use lydian_engine::Engine;
use lydian_p2p::manager::Question;
use lydian_primitives::Height;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Validated blocks that are shown below the tip.
const BELOW: u32 = 256;

/// Blocks that are shown above the tip: Core's `BLOCK_DOWNLOAD_WINDOW`, twice, since ours is larger.
const ABOVE: u32 = 2_048;

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    let Some(engine) = node.engine() else { return Map::new() };
    let requested: BTreeSet<u32> = node
        .context
        .ask_peers(Question::Peers)
        .into_iter()
        .flatten()
        .flat_map(|peer| peer.in_flight)
        .map(|height| height.0)
        .collect();
    let (from, cells) = cells(&engine, &requested);
    object(json!({ "from": from, "cells": cells }))
}

/// The first height, and a letter for each block: `d`urable, `v`alidated, `h`ere, `r`equested, or `.`.
fn cells(engine: &Engine, requested: &BTreeSet<u32>) -> (u32, String) {
    let durable = engine.durable_tip().map_or(0, |tip| tip.height.0);
    engine.with_tree(|tree| {
        let (tip, best) = (tree.height(tree.tip()).0, tree.best_header());
        let from = tip.saturating_sub(BELOW);
        let to = tree.height(best).0.min(tip + ABOVE);
        let below = (from..=tip).map(|height| if height <= durable { 'd' } else { 'v' });
        let mut above = Vec::new();
        let mut next = tree.ancestor(best, Height(to));
        while let Some(id) = next.filter(|id| tree.height(*id).0 > tip) {
            above.push(match tree.block(id).is_some() {
                true => 'h',
                false if requested.contains(&tree.height(id).0) => 'r',
                false => '.',
            });
            next = tree.parent(id);
        }
        (from, below.chain(above.into_iter().rev()).collect())
    })
}
