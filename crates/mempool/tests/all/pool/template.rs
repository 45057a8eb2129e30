//! Blocks that Core makes from its pool, and what would be in ours.

use super::compare::compare;
use super::maker::random_batch;
use super::world::{Fixed, World, script, to_hex, witness};
use lydian_consensus::HeaderView;
use lydian_consensus::limits::MAX_BLOCK_WEIGHT;
use lydian_mempool::Mempool;
use lydian_mempool::graph::FeeSize;
use lydian_mempool::policy::{FeeRate, Settings};
use lydian_mempool::pool::{BAND_COUNT, Band, BlockContent, BlockOptions, Member, Snapshot, band_of};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Height, OutPoint, Transaction, Txid};
use lydian_stdx::SplitMix64;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;

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

/// The next blocks, each made of a list from which the blocks before it were crossed out: what [`Snapshot::projection`]
/// computes in one go. The pool has no signature operations to speak of, and every transaction is final.
fn plain_projection(snapshot: &Snapshot, options: &BlockOptions, count: usize) -> Vec<Vec<Txid>> {
    let (mut blocks, mut taken): (Vec<Vec<Txid>>, HashSet<Txid>) = (Vec::new(), HashSet::new());
    for _ in 0..count {
        let (mut block, mut weight) = (Vec::new(), options.reserved_weight);
        let mut closed: HashSet<Txid> = HashSet::new();
        for chunk in snapshot.chunks_in_mining_order() {
            let cluster = chunk.cluster.entries().next().unwrap().txid();
            let txids: Vec<Txid> = chunk.entries().map(|entry| entry.txid()).collect();
            let size = usize::try_from(chunk.chunk.feerate.size).unwrap();
            if taken.contains(&txids[0]) || closed.contains(&cluster) {
                continue;
            }
            if weight + size < options.weight_max {
                weight += size;
                block.extend(txids);
            } else {
                closed.insert(cluster);
            }
        }
        if block.is_empty() {
            break;
        }
        taken.extend(&block);
        blocks.push(block);
    }
    blocks
}

/// A pool with transactions of all feerates: clusters of a parent with children, and what chance makes on them.
fn wide_pool(world: &Fixed, clusters: usize, children: usize) -> Mempool {
    let pool = world.pool(Settings::default());
    let mut random = SplitMix64::new(9);
    for coin in &world.coins()[..clusters] {
        let parent = spending(*coin, children, 200 + i64::try_from(random.below(40_000)).unwrap());
        pool.submit(Arc::clone(&parent), false).unwrap();
        for (vout, output) in (0..).zip(parent.view().outputs()) {
            let outpoint = OutPoint { txid: parent.view().txid(), vout };
            let rate = [1, 3, 20, 300][random.below(4)];
            let fee = rate * (20 + i64::try_from(random.below(400)).unwrap());
            pool.submit(spending((outpoint, output.value.0), 1, fee), false).unwrap();
        }
    }
    pool
}

/// A transaction that divides an output into `count`.
fn spending((prevout, value): (OutPoint, i64), count: usize, fee: i64) -> Arc<Transaction> {
    let input = MutInput { prevout, script_sig: Vec::new(), sequence: 0xffff_fffd, witness: witness() };
    let part = (value - fee) / i64::try_from(count).unwrap();
    let output = MutOutput { value: Amount(part), script_pubkey: script() };
    let tx = MutTx { version: 2, inputs: vec![input], outputs: vec![output; count], lock_time: 0 };
    Arc::new(tx.to_transaction().unwrap())
}

#[test]
fn projected_blocks_are_those_of_the_builder() {
    let world = Fixed::new();
    let pool = wide_pool(&world, 30, 40);
    for tx in random_batch(SplitMix64::new(5), &world.coins()[30..], 400) {
        let _ = pool.submit(tx, false);
    }
    let snapshot = pool.snapshot();
    assert!(snapshot.len() > 1_200, "{}", snapshot.len());
    let by_rank = snapshot.in_mining_order().into_iter().map(|member| member.entry().txid());
    let by_chunk = snapshot.chunks_in_mining_order().flat_map(|chunk| chunk.entries()).map(|entry| entry.txid());
    assert!(by_chunk.eq(by_rank), "the kept order is that of a sort");
    let (height, median_time) = (Height(snapshot.info().tip.height.0 + 1), 2_000_000_000);
    for (weight_max, count) in [(12_000, 8), (40_000, 3), (60_000, 8), (4_000_000, 8), (9_000, 200)] {
        let options = BlockOptions { weight_max, ..BlockOptions::default() };
        let options = BlockOptions { min_feerate: FeeRate::ZERO, ..options };
        let projection = snapshot.projection(&options, height, median_time, count);
        let ids = |content: &BlockContent| content.entries.iter().map(|entry| entry.txid()).collect::<Vec<_>>();
        let blocks: Vec<Vec<Txid>> = projection.blocks.iter().map(|block| ids(&block.content)).collect();
        assert_eq!(blocks, plain_projection(&snapshot, &options, count), "{weight_max} {count}");
        let first = snapshot.block_content(&options, height, median_time);
        assert_eq!(blocks.first(), Some(&ids(&first)), "the next block is that of the builder");
        for block in &projection.blocks {
            let vsize: u64 = block.content.entries.iter().map(|entry| u64::from(entry.vsize().unsigned_abs())).sum();
            assert_eq!(block.vsize, vsize);
            let rank = |low: &FeeSize, high: &FeeSize| low.compare_feerate(high).is_le();
            assert!(rank(&block.min, &block.median) && rank(&block.median, &block.max));
        }
    }
    let none = world.pool(Settings::default()).snapshot();
    assert!(none.projection(&BlockOptions::default(), height, median_time, 8).blocks.is_empty());
}

/// The work for a change is that of its cluster, however many transactions there are.
#[test]
fn fee_bands_are_kept_by_moving_what_changed() {
    let world = Fixed::new();
    let pool = wide_pool(&world, 40, 60);
    let first = pool.snapshot();
    let of_large = |member: &&Member| member.cluster().len() > 60 && first.children(member.entry()).is_empty();
    let leaves = first.members().filter(of_large).take(50).map(|leaf| {
        let view = leaf.entry().tx().view();
        let output = OutPoint { txid: view.txid(), vout: 0 };
        spending((output, view.output(0).value.0), 1, 700)
    });
    let mut most = 0;
    for tx in leaves.chain(random_batch(SplitMix64::new(6), &world.coins()[30..], 400)) {
        let before = pool.snapshot().bands().moves();
        let Ok(accepted) = pool.submit(Arc::clone(&tx), false) else { continue };
        let snapshot = pool.snapshot();
        let member = snapshot.get(&tx.view().txid()).unwrap();
        // Its cluster is counted anew, and so may be what replaced transactions left of theirs.
        let clusters = 1 + accepted.replaced.len();
        let moved = snapshot.bands().moves() - before;
        assert!(moved <= (2 * 64 * clusters) as u64, "{moved} for a cluster of {}", member.cluster().len());
        most = most.max(moved);
    }
    let snapshot = pool.snapshot();
    assert!(snapshot.len() > 2_400 && most > 60, "{} transactions", snapshot.len());
    let mut bands = [Band::default(); BAND_COUNT];
    for member in snapshot.members() {
        let feerate = member.cluster().chunk_of(member.position()).unwrap().feerate;
        let band = &mut bands[band_of(feerate)];
        band.count += 1;
        band.vsize += u64::from(member.entry().vsize().unsigned_abs());
        band.fees += member.entry().fee().0;
    }
    assert_eq!(*snapshot.bands().all(), bands);
    assert!(bands.iter().filter(|band| band.count > 0).count() > 5, "{bands:?}");
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
