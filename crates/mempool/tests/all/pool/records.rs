//! What is recorded of the pool for people who watch it.

use super::world::{Alone, script, witness};
use lydian_mempool::limits::BLOCKS_MAX;
use lydian_mempool::policy::Settings;
use lydian_mempool::pool::BlockOptions;
use lydian_mempool::{Mined, Replacement, SubmitError};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Height, OutPoint, Transaction};
use std::sync::Arc;

/// A transaction that spends an output and leaves `fee`.
fn spending((prevout, value): (OutPoint, i64), fee: i64) -> Arc<Transaction> {
    let input = MutInput { prevout, script_sig: Vec::new(), sequence: 0xffff_fffd, witness: witness() };
    let output = MutOutput { value: Amount(value - fee), script_pubkey: script() };
    let tx = MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
    Arc::new(tx.to_transaction().unwrap())
}

fn output(tx: &Transaction) -> (OutPoint, i64) {
    (OutPoint { txid: tx.view().txid(), vout: 0 }, tx.view().output(0).value.0)
}

#[test]
fn rejections_and_replacements_are_recorded_as_they_were_answered() {
    let alone = Alone::new(Settings::default());
    let coins = alone.coins();
    let (first, pool) = (spending(coins[0], 1_000), &alone.pool);
    pool.submit(Arc::clone(&first), false).unwrap();
    assert!(pool.submit(spending(coins[0], 1_001), false).is_err());
    assert_eq!(pool.records().version(), 0, "not switched on");
    pool.records().switch_on();
    let child = spending(output(&first), 2_000);
    pool.submit(Arc::clone(&child), false).unwrap();
    let poor = spending(coins[0], 1_001);
    let Err(SubmitError::Rejected(rejection)) = pool.submit(Arc::clone(&poor), false) else {
        panic!("it pays too little")
    };
    pool.submit(Arc::clone(&poor), true).unwrap_err();
    let rejects = pool.records().rejects(9);
    assert_eq!(rejects.len(), 1, "a test is no rejection");
    let (reject, view) = (&rejects[0], poor.view());
    assert_eq!((reject.txid, reject.wtxid, &reject.reason), (view.txid(), view.wtxid(), &rejection.state()));
    assert!(reject.reason.starts_with("insufficient fee, rejecting replacement "), "{}", reject.reason);
    let better = spending(coins[0], 50_000);
    let accepted = pool.submit(Arc::clone(&better), false).unwrap();
    let replacements = pool.records().replacements(9);
    let mut replaced = vec![first.view().txid(), child.view().txid()];
    replaced.sort_unstable();
    let sizes = [&first, &child].map(|tx| i64::try_from(tx.view().weight().div_ceil(4)).unwrap());
    let expected = Replacement {
        number: 1,
        time: replacements[0].time,
        txid: better.view().txid(),
        vsize: accepted.vsize,
        fee: Amount(50_000),
        replaced,
        replaced_count: 2,
        replaced_vsize: sizes.iter().sum(),
        replaced_fees: Amount(3_000),
    };
    assert_eq!(replacements, [expected]);
    assert_eq!((pool.records().rejects(0).len(), pool.records().replacements(0).len()), (0, 0));
}

/// limit: BLOCKS_MAX at
/// limit: BLOCKS_MAX above
#[test]
fn a_block_is_recorded_with_the_pool_before_it() {
    let alone = Alone::new(Settings::default());
    let (pool, coins) = (&alone.pool, alone.coins());
    pool.records().switch_on();
    alone.connect(Vec::new());
    assert!(pool.records().take_blocks().is_empty(), "the pool was empty");
    let expected = spending(coins[0], 5_000);
    pool.submit(Arc::clone(&expected), false).unwrap();
    let before = pool.snapshot();
    let added = spending(coins[1], 7_000);
    alone.connect(vec![MutTx::from(added.view())]);
    let blocks = pool.records().take_blocks();
    let [Mined { tip, txids, fees, before: seen, .. }] = &blocks[..] else { panic!("{} blocks", blocks.len()) };
    assert_eq!((*tip, &txids[..], *fees), (alone.engine.tip(), &[added.view().txid()][..], Amount(7_000)));
    assert_eq!((seen.info().sequence, seen.info().tip), (before.info().sequence, before.info().tip));
    let content = seen.block_content(&BlockOptions::default(), Height(tip.height.0), 0);
    assert_eq!(content.entries.iter().map(|entry| entry.txid()).collect::<Vec<_>>(), [expected.view().txid()]);
    let heights = |blocks: Vec<Mined>| blocks.iter().map(|block| block.tip.height.0).collect::<Vec<u32>>();
    let first = tip.height.0 + 1;
    let all = u32::try_from(BLOCKS_MAX).unwrap();
    (0..all).for_each(|_| alone.connect(Vec::new()));
    assert_eq!(heights(pool.records().take_blocks()), (first..first + all).collect::<Vec<_>>());
    (0..=all).for_each(|_| alone.connect(Vec::new()));
    assert_eq!(heights(pool.records().take_blocks()), (first + all + 1..=first + 2 * all).collect::<Vec<_>>());
}
