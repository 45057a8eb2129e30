//! The chain of the preset `mainnet-mix`: what the settings promise, counted in the bytes that come out.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use lydian_lab::plan::{MixSettings, Planner};
use lydian_lab::presets::mainnet_mix::generate;
use lydian_lab::regtest::{FULL_BLOCK_WEIGHT_MIN, VOTED_ACTIVATION_HEIGHT};
use lydian_lab::stats::Stats;
use lydian_lab::wallet::Kind;
use lydian_primitives::RawBlock;
use std::collections::HashSet;
use std::sync::OnceLock;

const SMALL: MixSettings = MixSettings { blocks: 440, full: 2, seed: 5, reuse_per_mille: 0 };

fn blocks_of(settings: MixSettings, threads: usize) -> (Vec<Vec<u8>>, Stats) {
    let mut blocks = Vec::new();
    let stats = generate(settings, threads, |block| {
        blocks.push(block.to_vec());
        Ok(())
    })
    .unwrap();
    (blocks, stats)
}

/// The small chain, made once on two threads.
fn small() -> &'static (Vec<Vec<u8>>, Stats) {
    static CHAIN: OnceLock<(Vec<Vec<u8>>, Stats)> = OnceLock::new();
    CHAIN.get_or_init(|| blocks_of(SMALL, 2))
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let (one, _) = blocks_of(SMALL, 1);
    assert!(one == small().0, "threads changed the chain");
    let (other, _) = blocks_of(MixSettings { seed: 6, blocks: 1, full: 0, reuse_per_mille: 0 }, 2);
    assert_ne!(one[1], other[1]);
}

#[test]
fn shares_are_those_promised() {
    let (blocks, stats) = small();
    let near = |what: &str, got: u64, of: u64, per_mille: u64, slack: u64| {
        let share = got * 1000 / of;
        assert!(share.abs_diff(per_mille) <= slack, "{what}: {share} per mille, not {per_mille}");
    };
    // The transactions that spread coinbases are no part of the mix.
    let inputs: u64 = stats.inputs - 338;
    for kind in Kind::ALL {
        let spread = if kind == Kind::P2pkh { 338 } else { 0 };
        let got = stats.inputs_by_kind.get(kind.name()).copied().unwrap_or(0) - spread;
        near(kind.name(), got, inputs, kind.share_per_mille(), 12);
    }
    near("same block", stats.same_block_spends, inputs, 60, 12);
    near("within 10 blocks", stats.spends_within_10_blocks, inputs, 410, 25);
    near("data outputs", stats.data_outputs, stats.transactions - 440 - 338, 160, 25);
    assert!(stats.age_max > 300, "{}", stats.age_max);
    for block in &blocks[439..] {
        let block = RawBlock::new(block.as_slice()).parse().unwrap();
        assert!(block.weight() as u64 >= FULL_BLOCK_WEIGHT_MIN, "{}", block.weight());
        assert!(block.weight() <= 4_000_000, "{}", block.weight());
    }
    assert_eq!(stats.full_blocks, 2);
}

/// Every coin spent was made before, is spent once, and the rest is the size announced for the UTXO set.
#[test]
fn coins_add_up() {
    let (blocks, stats) = small();
    let mut coins = HashSet::new();
    let (mut inputs, mut outputs) = (0, 0);
    for (height, block) in blocks.iter().enumerate().skip(1) {
        let block = RawBlock::new(block.as_slice()).parse().unwrap();
        for (index, tx) in block.txs().enumerate() {
            for input in tx.inputs().filter(|_| index > 0) {
                assert!(coins.remove(&input.prevout), "height {height} transaction {index}");
                inputs += 1;
            }
            for (vout, output) in (0..).zip(tx.outputs()) {
                outputs += 1;
                if !output.script_pubkey.starts_with(&[0x6a]) {
                    coins.insert(lydian_primitives::OutPoint { txid: tx.txid(), vout });
                }
            }
        }
        let has_witness = block.witness_commitment().is_some();
        assert_eq!(has_witness, height >= VOTED_ACTIVATION_HEIGHT as usize, "height {height}");
        assert_eq!(block.header().version, 0x2000_0007);
    }
    assert_eq!((coins.len() as u64, inputs, outputs), (stats.coins, stats.inputs, stats.outputs));
}

/// limit: CHAIN_BLOCKS_MAX at
/// limit: CHAIN_BLOCKS_MAX above
/// limit: FULL_BLOCK_HEIGHT_MIN at
/// limit: FULL_BLOCK_HEIGHT_MIN below
#[test]
fn settings_that_no_chain_can_keep_are_refused() {
    let new = |blocks, full, reuse_per_mille| {
        Planner::new(MixSettings { blocks, full, seed: 1, reuse_per_mille }).map(|_| ())
    };
    assert!(new(433, 1, 1000).is_ok());
    assert!(new(432, 1, 0).is_err(), "a full block at height 432");
    assert!(new(0, 0, 0).is_err());
    assert!(new(90_000, 0, 0).is_ok());
    assert!(new(90_001, 0, 0).is_err());
    assert!(new(433, 1, 1001).is_err());
}
