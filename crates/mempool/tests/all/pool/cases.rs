//! Cases that the random stories found, told again with nothing else around them; and blocks that lie about what was
//! verified.

use super::compare::compare;
use super::story::{Shape, tell};
use super::world::{Alone, World, script, to_hex, witness};
use lydian_mempool::policy::Settings;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid};
use lydian_script::Flags;
use serde_json::json;
use std::sync::Arc;

/// A transaction with an output of 95,000 bytes.
fn large(prevout: OutPoint, value: i64) -> MutTx {
    let input = MutInput { prevout, script_sig: Vec::new(), sequence: u32::MAX, witness: witness() };
    let outputs = vec![
        MutOutput { value: Amount(value), script_pubkey: script() },
        MutOutput { value: Amount(0), script_pubkey: [&[0x6a][..], &[0; 95_000]].concat() },
    ];
    MutTx { version: 2, inputs: vec![input], outputs, lock_time: 0 }
}

/// The minimum fee of a full pool halves with time, but only when Core computes it: for a transaction that gets as far
/// as its fee. The story came to a difference after 98,160 steps: time passed, a transaction without inputs came, then
/// a block, which sets the time of the last computation anew. We had computed it for that transaction.
#[test]
fn the_minimum_fee_falls_only_when_it_is_asked_for() {
    let settings = Settings { mempool_bytes_max: 5_000_000, ..Settings::default() };
    let test = "the_minimum_fee_falls_only_when_it_is_asked_for";
    let Some(mut world) = World::new(test, &["-maxmempool=5"], settings) else { return };
    for number in 1..=58 {
        let (prevout, value) = world.coinbase(number);
        let tx = large(prevout, value - 10_000 * i64::try_from(number).unwrap()).to_transaction().unwrap();
        let theirs = world.core.call("sendrawtransaction", &json!([to_hex(tx.as_bytes()), 0, 21]));
        let ours = world.pool.submit(Arc::new(tx), false);
        assert_eq!(theirs.is_ok(), ours.is_ok(), "{number}: {theirs:?}");
    }
    compare(&mut world, "when it is full");
    let full = world.pool.min_fee();
    assert!(full > world.pool.settings().min_relay_fee, "{full}");
    world.generate_with(&[]);
    world.pass(20_000);
    let unfunded = large(OutPoint { txid: Txid([7; 32]), vout: 0 }, 1).to_transaction().unwrap();
    assert!(world.core.call("sendrawtransaction", &json!([to_hex(unfunded.as_bytes()), 0, 21])).is_err());
    assert!(world.pool.submit(Arc::new(unfunded), false).is_err());
    // Its feerate in the snapshot is that of the moment, which readers may look at without a trace.
    assert!(world.pool.snapshot().info().min_fee <= full);
    world.generate_with(&[]);
    assert_eq!(world.pool.min_fee(), full, "nothing asked for it before the block");
    compare(&mut world, "after the block");
    world.pass(20_000);
    assert!(world.pool.min_fee() < full);
    compare(&mut world, "when time has passed after the block");
}

/// After an eviction, Core counts no memory for the chunks of the rest of the cluster until it orders that rest, so it
/// may stop evicting with 312 bytes more than `-maxmempool`, as in step 606 of this story. We evicted one more.
#[test]
fn the_usage_after_an_eviction_lacks_chunks_as_in_core() {
    let settings = Settings { mempool_bytes_max: 5_000_000, ..Settings::default() };
    let shape = Shape { steps: 610, data_max: 95_000, small_percent: 10, seed: 23 };
    let test = "the_usage_after_an_eviction_lacks_chunks_as_in_core";
    let Some(answers) = tell(test, &["-maxmempool=5"], settings, shape) else { return };
    assert!(answers["mempool min fee not met"] > 0, "{answers:?}");
}

/// The scripts of a transaction in the pool are not verified again in its block: in no other place does that count.
/// checklist: 57
#[test]
fn a_cached_verdict_makes_no_block_valid() {
    let world = Alone::new(Settings::default());
    let tx = world.funding();
    world.pool.submit(Arc::clone(&tx), false).unwrap();
    assert!(world.pool.known_scripts().are_valid(&tx.view().wtxid(), Flags::STANDARD));
    let valid = MutTx::from(tx.view());
    // The same txid, with a witness that fails.
    let mut false_twin = valid.clone();
    false_twin.inputs[0].witness = vec![vec![0x00, 0x51]];
    // Another transaction that spends the same coin before.
    let mut rival = valid.clone();
    rival.outputs[0].value.0 -= 1;
    let tip = world.engine.tip();
    for txs in [vec![false_twin], vec![rival, valid.clone()]] {
        world.connect(txs);
        assert_eq!(world.engine.tip(), tip);
        assert_eq!(world.pool.snapshot().len(), 1);
    }
    world.connect(vec![valid]);
    assert_eq!(world.engine.tip().height.0, tip.height.0 + 1);
    assert_eq!(world.pool.snapshot().len(), 0);
}
