//! Transactions between two nodes that are connected: one each way, and a block with both.

use crate::process::{Running, agree};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid, to_hex};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Announcements come after a few seconds at random.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a coinbase pays, in satoshi.
const COIN: i64 = 50_0000_0000;

/// The address of P2SH of OP_TRUE, which every node relays and any script of one push spends.
pub(crate) fn address(node: &Running) -> String {
    node.call("decodescript", &json!(["51"]))["p2sh"].as_str().unwrap().to_owned()
}

/// Pays all but a fee from an output of that address to itself.
fn pay(txid: &str, value: i64, script: &[u8]) -> MutTx {
    let mut hash = [0; 32];
    for (index, byte) in hash.iter_mut().rev().enumerate() {
        *byte = u8::from_str_radix(&txid[2 * index..2 * index + 2], 16).unwrap();
    }
    let prevout = OutPoint { txid: Txid(hash), vout: 0 };
    let input = MutInput { prevout, script_sig: vec![1, 0x51], sequence: u32::MAX, witness: Vec::new() };
    let output = MutOutput { value: Amount(value - 10_000), script_pubkey: script.to_vec() };
    MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 }
}

fn wait_until_known(node: &Running, txid: &str) {
    let began = Instant::now();
    while !node.call("getrawmempool", &json!([])).as_array().unwrap().contains(&json!(txid)) {
        assert!(began.elapsed() < PATIENCE, "{txid} does not arrive");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The first block pays to [`address`], and its coinbase is mature.
pub(crate) fn relay_both_ways(node: &Running, other: &Running) {
    let block = node.call("getblockhash", &json!([1]));
    let coinbase = node.call("getblock", &json!([block, 2]))["tx"][0].clone();
    let script: Vec<u8> = coinbase["vout"][0]["scriptPubKey"]["hex"].as_str().unwrap().as_bytes().to_vec();
    let script: Vec<u8> =
        script.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
    let send = |from: &Running, to: &Running, tx: &MutTx| {
        let txid = from.call("sendrawtransaction", &json!([to_hex(&tx.encode())]));
        let txid = txid.as_str().unwrap().to_owned();
        wait_until_known(to, &txid);
        txid
    };
    let first = send(node, other, &pay(coinbase["txid"].as_str().unwrap(), COIN, &script));
    let child = send(other, node, &pay(&first, COIN - 10_000, &script));
    let mined = node.call("generatetoaddress", &json!([1, address(node)]))[0].clone();
    agree("a block of both comes", node, other);
    let txs: Vec<Value> = node.call("getblock", &json!([mined]))["tx"].as_array().unwrap()[1..].to_vec();
    assert_eq!(txs, [json!(first), json!(child)]);
    for one in [node, other] {
        assert_eq!(one.call("getrawmempool", &json!([])), json!([]));
    }
}
