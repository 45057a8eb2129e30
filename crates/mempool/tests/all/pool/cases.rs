//! Cases that the random stories found, told again with nothing else around them.

use super::compare::compare;
use super::world::{World, script, to_hex, witness};
use lydian_mempool::policy::Settings;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid};
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
