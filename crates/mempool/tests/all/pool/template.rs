//! Blocks that Core makes from its pool, and what would be in ours.

use super::compare::compare;
use super::maker::random_batch;
use super::world::{World, to_hex};
use lydian_consensus::HeaderView;
use lydian_consensus::limits::MAX_BLOCK_WEIGHT;
use lydian_mempool::policy::{FeeRate, Settings};
use lydian_mempool::pool::{BlockContent, BlockOptions};
use lydian_primitives::{Amount, Height};
use lydian_stdx::SplitMix64;
use serde_json::json;

impl World {
    fn content(&self, options: &BlockOptions) -> BlockContent {
        let snapshot = self.pool.snapshot();
        let tip = self.engine.tip_info();
        let median_time = self.engine.with_tree(|tree| {
            let height = tree.height(tree.tip());
            tree.branch(tree.tip()).median_time_past(height).unwrap()
        });
        assert_eq!(snapshot.info().tip.hash, tip.node.hash);
        snapshot.block_content(options, Height(tip.node.height.0 + 1), median_time)
    }
}

/// Blocks of little weight and of a least fee, until nothing is left that fits.
#[test]
fn blocks_are_filled_as_cores() {
    let options = ["-blockmaxweight=20000", "-blockreservedweight=5000", "-blockmintxfee=0.00004000"];
    let test = "blocks_are_filled_as_cores";
    let Some(mut world) = World::new(test, &options, Settings::default()) else { return };
    let coins: Vec<_> = (1..=50).map(|height| world.coinbase(height)).collect();
    for tx in random_batch(SplitMix64::new(11), &coins, 300) {
        let ours = world.pool.submit(tx.clone(), false).is_ok();
        let cores = world.core.call("sendrawtransaction", &json!([to_hex(tx.as_bytes()), 0, 21_000_000]));
        assert_eq!(ours, cores.is_ok(), "{cores:?}");
    }
    let weight_max = 20_000;
    let options = BlockOptions {
        weight_max,
        reserved_weight: 5_000,
        min_feerate: FeeRate::per_kvb(4_000),
        ..BlockOptions::default()
    };
    let (mut blocks, mut left) = (0, compare(&mut world, "before the first block"));
    assert!(left > 20, "{left} transactions");
    let all = world.content(&BlockOptions { min_feerate: FeeRate::ZERO, ..BlockOptions::default() });
    assert_eq!((all.entries.len(), all.fees), (left, Amount(world.pool.snapshot().info().fees)));
    assert!(all.weight < MAX_BLOCK_WEIGHT && all.sigops_cost >= 400);
    loop {
        let content = world.content(&options);
        world.generate(1);
        let hash = world.ask("getbestblockhash", json!([]));
        let block = world.ask("getblock", json!([hash, 1]));
        let cores: Vec<&str> = block["tx"].as_array().unwrap().iter().skip(1).map(|tx| tx.as_str().unwrap()).collect();
        let ours: Vec<String> = content.entries.iter().map(|entry| entry.txid().to_string()).collect();
        assert_eq!(ours, cores, "block {blocks}");
        let info = world.ask("getmininginfo", json!([]));
        assert_eq!(info["currentblockweight"], json!(content.weight));
        assert!(content.weight < weight_max);
        let now = compare(&mut world, "after a block");
        assert_eq!(now, left - ours.len());
        if ours.is_empty() {
            break;
        }
        (left, blocks) = (now, blocks + 1);
    }
    // Some are too cheap or too large for these blocks.
    assert!(blocks > 1 && left > 0, "{blocks} blocks, {left} left");
}
