//! The topic `chain`: the tips of the header tree with the block at which each branch leaves another, reorganisations,
//! invalid blocks with the rule that each breaks, in the words of `lydian explain`.

use crate::blocks::invalid::InvalidBlock;
use crate::blocks::reorgs::{Place, Reorg};
use crate::blocks::text::shown;
use crate::page::PageNode;
use lydian_consensus::Violation;
use lydian_engine::{Branches, ChainTipStatus, Engine};
use lydian_primitives::{BlockHash, Height};
use lydian_stdx::lock;
use serde_json::{Map, Value, json};

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    let Some(engine) = node.engine() else { return Map::new() };
    let branches = engine.branches(&mut lock(&node.leaves));
    let (reorganisations, invalid) = (node.blocks.reorganisations(), node.blocks.invalid());
    super::object(json!({
        "tips": tips(&branches),
        "leftOut": branches.left_out,
        "reorganisations": reorganisations.iter().map(reorganisation).collect::<Vec<_>>(),
        "invalid": invalid_blocks(&engine, &branches, invalid),
    }))
}

fn tips(branches: &Branches) -> Vec<Value> {
    let shown = &branches.shown;
    let tip = |branch: &lydian_engine::Branch| {
        let tip = &branch.tip;
        json!({
            "height": tip.height.0,
            "hash": tip.hash.to_string(),
            "branchlen": tip.branch_length,
            "status": tip.status.name(),
            "fork": branch.fork.map(|fork| json!({
                "of": shown.get(fork.of).map(|other| other.tip.hash.to_string()),
                "height": fork.at.height.0,
                "hash": fork.at.hash.to_string(),
            })),
        })
    };
    shown.iter().map(tip).collect()
}

fn reorganisation(reorg: &Reorg) -> Value {
    let place = |place: Place| json!({ "height": place.height, "hash": place.hash.to_string() });
    json!({
        "number": reorg.number,
        "time": reorg.time,
        "depth": reorg.depth(),
        "old": place(reorg.old),
        "new": place(reorg.new),
        "fork": place(reorg.fork),
        "undone": reorg.is_undone(),
    })
}

/// The blocks that are invalid themselves, not only for their ancestors: those found since the start, and the first one
/// of each branch that was invalid before.
fn invalid_blocks(engine: &Engine, branches: &Branches, mut known: Vec<InvalidBlock>) -> Vec<Value> {
    let ends = branches.shown.iter().filter(|branch| branch.tip.status == ChainTipStatus::Invalid);
    for (hash, height) in ends.filter_map(|branch| first_invalid(engine, &branch.tip.hash)) {
        if !known.iter().any(|block| block.hash == hash) {
            known.insert(0, InvalidBlock { hash, height, time: 0, fault: None });
        }
    }
    known.iter().filter(|block| is_invalid_itself(engine, block)).map(|block| invalid_block(engine, block)).collect()
}

/// The lowest invalid block of the branch that ends here: the descendants of an invalid block are invalid.
fn first_invalid(engine: &Engine, end: &BlockHash) -> Option<(BlockHash, u32)> {
    engine.with_tree(|tree| {
        let end = tree.find(end)?;
        let fork = tree.height(tree.fork(end, tree.tip())).0;
        let (mut valid, mut invalid) = (fork, tree.height(end).0);
        while invalid - valid > 1 {
            let middle = valid + (invalid - valid) / 2;
            match tree.node(tree.ancestor(end, Height(middle))?).is_invalid {
                true => invalid = middle,
                false => valid = middle,
            }
        }
        let first = tree.ancestor(end, Height(invalid))?;
        tree.node(first).is_invalid.then(|| (*tree.hash(first), invalid))
    })
}

/// Whether the mark still stands, and is not that of an ancestor.
fn is_invalid_itself(engine: &Engine, block: &InvalidBlock) -> bool {
    engine.with_tree(|tree| {
        let Some(id) = tree.find(&block.hash) else { return block.fault.is_some() };
        let is_heir = tree.parent(id).is_some_and(|parent| tree.node(parent).is_invalid);
        tree.node(id).is_invalid && !is_heir
    })
}

fn invalid_block(engine: &Engine, block: &InvalidBlock) -> Value {
    let known = block.fault.clone();
    let fault = known.or_else(|| engine.violation_of(&block.hash).map(|violation| (violation, String::new())));
    let mut row = super::object(json!({
        "hash": block.hash.to_string(),
        "height": block.height,
        "time": Some(block.time).filter(|time| *time > 0),
    }));
    if let Some((violation, state)) = fault {
        row.extend(explained(&violation, &state));
    }
    row.into()
}

/// The rule, as `lydian explain` shows it, and where it is broken.
fn explained(violation: &Violation, state: &str) -> Map<String, Value> {
    let rule = violation.rule.info();
    super::object(json!({
        "rule": rule.name,
        "sentence": rule.must,
        "source": rule.source,
        "reason": violation.reject_reason(),
        "state": shown(state),
        "tx": violation.tx,
        "input": violation.input,
    }))
}
