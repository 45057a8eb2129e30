//! The branches of the header tree: the tips that `getchaintips` gives, each with the block at which it leaves another.

use crate::expected::{Expected, Order};
use crate::lydian::{How, Lydian, Place};
use crate::seeds::for_seeds;
use crate::story::{NOW, Story, sealed};
use lydian_chains::rng::Random;
use lydian_consensus::{Chain, Params};
use lydian_engine::limits::BRANCHES_MAX;
use lydian_engine::{Branches, Leaves};
use lydian_primitives::{Block, RawBlock};
use std::collections::HashSet;

/// Asserts that the branches are the tips, and that each leaves another where it says. Returns them.
fn checked(lydian: &Lydian, leaves: &mut Leaves, when: &str) -> Branches {
    let engine = &lydian.engine;
    let branches = engine.branches(leaves);
    assert_eq!(branches, engine.branches(&mut Leaves::default()), "from the start, {when}");
    let mut tips: Vec<_> = branches.shown.iter().map(|branch| branch.tip).collect();
    assert_eq!((tips[0].hash, branches.shown[0].fork), (engine.tip().hash, None), "{when}");
    let mut expected = engine.chain_tips();
    assert_eq!(tips.len() + branches.left_out, expected.len(), "{when}");
    if branches.left_out == 0 {
        tips.sort_by_key(|tip| (std::cmp::Reverse(tip.height), tip.hash));
        expected.sort_by_key(|tip| (std::cmp::Reverse(tip.height), tip.hash));
        assert_eq!(tips, expected, "{when}");
    }
    for (index, branch) in branches.shown.iter().enumerate().skip(1) {
        let fork = branch.fork.unwrap();
        assert!(fork.of < index && fork.at.height < branch.tip.height, "{when}: {branch:?}");
        engine.with_tree(|tree| {
            let id = |hash: &lydian_primitives::BlockHash| tree.find(hash).unwrap();
            let (tip, other) = (id(&branch.tip.hash), id(&branches.shown[fork.of].tip.hash));
            assert_eq!(*tree.hash(tree.fork(tip, other)), fork.at.hash, "{when}");
            let above = tree.ancestor(tip, lydian_primitives::Height(fork.at.height.0 + 1)).unwrap();
            let others = &branches.shown[..index];
            let is_shared = |other: &lydian_engine::Branch| tree.fork(above, id(&other.tip.hash)) == above;
            assert!(!others.iter().any(is_shared), "{when}: a higher block is shared");
        });
    }
    branches
}

#[test]
fn they_are_the_tips_as_a_tree() {
    let mut forks_of_forks = 0;
    for_seeds("branches::they_are_the_tips_as_a_tree", 20, |seed| {
        let mut random = Random::new(seed, "branches");
        let story = Story::new(seed);
        let expected = Expected::new(&story, Order::ALL[random.index(3)], &mut random);
        let how = How::random(&mut random);
        let place = Place::new(&how, &format!("branches-{seed}"));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        let mut leaves = Leaves::default();
        for (index, fed) in expected.fed.iter().enumerate() {
            let _ = lydian.accept(&fed.block).unwrap();
            checked(&lydian, &mut leaves, &format!("after block {index} under {how:?}"));
        }
    });
    // Three branches, one of which leaves another below its own end.
    let how = How { stop_at: None, ..How::random(&mut Random::new(1, "branches")) };
    let params = Params::new(Chain::Regtest);
    let place = Place::new(&how, "branches-nested");
    let lydian = Lydian::open(&place, &params, &how).unwrap();
    let mut leaves = Leaves::default();
    let grow = |from: &[Block], count: usize, tag: &[u8]| {
        let mut chain = from.to_vec();
        for _ in 0..count {
            let tip = chain.last().map_or(params.genesis_hash, Block::hash);
            let height = u32::try_from(chain.len()).unwrap();
            let block = RawBlock::new(sealed(tip, height, tag, Vec::new()).encode()).parse().unwrap();
            let _ = lydian.engine.accept_block(block.clone(), i64::from(NOW), &lydian_engine::Unobserved).unwrap();
            chain.push(block);
        }
        chain
    };
    let main = grow(&[], 6, b"main");
    let side = grow(&main[..2], 3, b"side");
    let twig = grow(&side[..4], 2, b"twig");
    let branches = checked(&lydian, &mut leaves, "by hand");
    for (index, branch) in branches.shown.iter().enumerate() {
        forks_of_forks += usize::from(branch.fork.is_some_and(|fork| fork.of > 0));
        if index > 0 {
            assert!(branch.tip.hash == side[4].hash() || branch.tip.hash == twig[5].hash());
        }
    }
    assert_eq!((branches.shown.len(), forks_of_forks), (3, 1));
}

/// limit: BRANCHES_MAX at
/// limit: BRANCHES_MAX above
#[test]
fn the_highest_are_shown() {
    let how = How { stop_at: None, ..How::random(&mut Random::new(1, "many")) };
    let params = Params::new(Chain::Regtest);
    let place = Place::new(&how, "branches-many");
    let lydian = Lydian::open(&place, &params, &how).unwrap();
    let mut leaves = Leaves::default();
    for count in 1..=BRANCHES_MAX + 1 {
        let block = sealed(params.genesis_hash, 0, &count.to_le_bytes(), Vec::new()).encode();
        let _ = lydian.accept(&block).unwrap();
        let branches = checked(&lydian, &mut leaves, &format!("with {count}"));
        let hashes: HashSet<_> = branches.shown.iter().map(|branch| branch.tip.hash).collect();
        assert_eq!((hashes.len(), branches.left_out), (count.min(BRANCHES_MAX), count.saturating_sub(BRANCHES_MAX)));
    }
}
