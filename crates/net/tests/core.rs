//! Connects to Bitcoin Core: each node syncs from the other over v1 and v2, also through reorganisations, and each
//! accepts the blocks that the other finds.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads the clock for its node"
)]

#[allow(dead_code, reason = "each test file uses its part")]
mod support;

use lydian_engine::{Engine, Unobserved};
use lydian_oracle::{Daemon, Scratch};
use lydian_p2p::manager::ConnectSettings;
use serde_json::{Value, json};
use std::sync::Arc;
use support::{TestHost, core, wait_until};

/// An address without a known private key.
const ADDRESS: &str = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";
const OTHER_ADDRESS: &str = "bcrt1qqyqszqgpqyqszqgpqyqszqgpqyqszqgpvxat9t";

/// A Lydian node: an engine and a network.
struct Node {
    engine: Arc<Engine>,
    network: lydian_net::Network,
    _scratch: Scratch,
}

fn node(name: &'static str, connect: &[String], v2: bool) -> Node {
    let scratch = Scratch::new(name);
    let (engine, mempool) = support::node(scratch.path(), 2);
    let settings = support::settings(ConnectSettings {
        specified: connect.to_vec(),
        default_port: 18444,
        v2,
        ..ConnectSettings::default()
    });
    let host = Arc::new(TestHost::new(name));
    let network = lydian_net::Network::start(&engine, &mempool, &settings, host, Arc::new(Unobserved)).unwrap();
    Node { engine, network, _scratch: scratch }
}

impl Node {
    fn tip(&self) -> String {
        self.engine.tip().hash.to_string()
    }

    fn address(&self) -> String {
        self.network.addresses()[0].to_string()
    }

    /// The hash of the UTXO set, as Core prints it.
    fn utxo_hash(&self) -> String {
        lydian_primitives::BlockHash(self.engine.utxo_hashes().unwrap().hash_serialized_3).to_string()
    }
}

fn mine(core: &mut Daemon, blocks: u32, address: &str) {
    core.call("generatetoaddress", &json!([blocks, address])).unwrap();
}

fn core_utxo_hash(core: &mut Daemon) -> String {
    let answer = core.call("gettxoutsetinfo", &json!(["hash_serialized_3"])).unwrap();
    answer["hash_serialized_3"].as_str().unwrap().to_owned()
}

/// checklist: 90
#[test]
fn lydian_syncs_from_core_and_follows_it() {
    for v2 in [true, false] {
        let Some((mut core, address)) = core("net::core", v2, &[]) else { return };
        mine(&mut core, 2_100, ADDRESS);
        let node = node("from-core", &[address], true);
        wait_until("the chain is synced", || node.tip() == core.best_block_hash().unwrap());
        assert_eq!(node.utxo_hash(), core_utxo_hash(&mut core));
        let peers = core.call("getpeerinfo", &json!([])).unwrap();
        let kind = if v2 { "v2" } else { "v1" };
        assert_eq!(peers[0]["transport_protocol_type"], kind, "{peers}");
        assert_eq!(peers[0]["subver"], "/Satoshi:31.0.0/Lydian:0.1.0/");
        mine(&mut core, 1, ADDRESS);
        wait_until("a new block comes", || node.tip() == core.best_block_hash().unwrap());
        for depth in [10, 150] {
            let height = core.height().unwrap() - depth + 1;
            let fork = core.call("getblockhash", &json!([height])).unwrap();
            core.call("invalidateblock", &json!([fork])).unwrap();
            mine(&mut core, u32::try_from(depth).unwrap() + 1, OTHER_ADDRESS);
            wait_until("the reorganisation is followed", || node.tip() == core.best_block_hash().unwrap());
            assert_eq!(node.utxo_hash(), core_utxo_hash(&mut core), "after a reorganisation of {depth} blocks");
        }
    }
}

#[test]
fn core_syncs_from_lydian_and_follows_it() {
    for v2 in [true, false] {
        let Some((mut first, address)) = core("net::core", v2, &[]) else { return };
        mine(&mut first, 2_100, ADDRESS);
        let node = node("to-core", &[address], v2);
        wait_until("the chain is synced", || node.tip() == first.best_block_hash().unwrap());
        let Some((mut second, _)) = core("net::core", v2, &[]) else { return };
        second.call("addnode", &json!([node.address(), "onetry", v2])).unwrap();
        wait_until("Core syncs from Lydian", || second.best_block_hash().unwrap() == node.tip());
        let connection = |value: &Value| value[0]["transport_protocol_type"].clone();
        assert_eq!(connection(&second.call("getpeerinfo", &json!([])).unwrap()), if v2 { "v2" } else { "v1" });
        // From one Core node to the other through this node, in both directions.
        mine(&mut first, 1, ADDRESS);
        wait_until("a block goes through", || second.best_block_hash().unwrap() == first.best_block_hash().unwrap());
        mine(&mut second, 1, ADDRESS);
        wait_until("a block goes back", || first.best_block_hash().unwrap() == second.best_block_hash().unwrap());
        wait_until("and is here", || node.tip() == first.best_block_hash().unwrap());
        let fork = first.height().unwrap() - 9;
        let fork = first.call("getblockhash", &json!([fork])).unwrap();
        first.call("invalidateblock", &json!([fork])).unwrap();
        mine(&mut first, 11, OTHER_ADDRESS);
        wait_until("a reorganisation goes through", || {
            second.best_block_hash().unwrap() == first.best_block_hash().unwrap()
        });
    }
}

/// Bytes of one message type that Core's first peer received or sent, from `bytesrecv_per_msg` or `bytessent_per_msg`.
fn bytes_of(core: &mut Daemon, direction: &str, message: &str) -> u64 {
    let peers = core.call("getpeerinfo", &json!([])).unwrap();
    peers[0][direction][message].as_u64().unwrap_or(0)
}

/// A transaction that spends the anyone-can-spend coinbase output of an old enough block.
fn spend_old_coins(core: &mut Daemon, height: u32) -> String {
    let hash = core.call("getblockhash", &json!([height])).unwrap();
    let block = core.call("getblock", &json!([hash, 1])).unwrap();
    let inputs = json!([{ "txid": block["tx"][0], "vout": 0 }]);
    let tx = core.call("createrawtransaction", &json!([inputs, [{ OTHER_ADDRESS: 1 }]])).unwrap();
    tx.as_str().unwrap().to_owned()
}

/// Blocks with transactions that only their miner has are relayed through this node as compact blocks, three times in
/// one direction and once in the other.
/// checklist: 71, 82
#[test]
fn blocks_go_from_core_to_core_as_compact_ones() {
    let Some((mut first, address)) = core("net::core", true, &[]) else { return };
    let descriptor = first.call("getdescriptorinfo", &json!(["raw(51)"])).unwrap()["descriptor"].clone();
    first.call("generatetodescriptor", &json!([110, descriptor])).unwrap();
    let node = node("compact", &[address], true);
    wait_until("the chain is synced", || node.tip() == first.best_block_hash().unwrap());
    let Some((mut second, _)) = core("net::core", true, &[]) else { return };
    second.call("addnode", &json!([node.address(), "onetry", true])).unwrap();
    wait_until("Core syncs from Lydian", || second.best_block_hash().unwrap() == node.tip());
    // The first block is announced by its header and requested as a compact block. After that, Core may send them
    // unrequested.
    mine(&mut first, 1, ADDRESS);
    wait_until("a block comes", || node.tip() == first.best_block_hash().unwrap());
    wait_until("compact blocks are wanted", || {
        first.call("getpeerinfo", &json!([])).unwrap()[0]["bip152_hb_from"] == json!(true)
    });
    for height in 1..=3 {
        let before = bytes_of(&mut first, "bytessent_per_msg", "blocktxn");
        let blocks = bytes_of(&mut first, "bytessent_per_msg", "block");
        let tx = spend_old_coins(&mut first, height);
        first.call("generateblock", &json!([ADDRESS, [tx]])).unwrap();
        wait_until("a block with a transaction comes", || node.tip() == first.best_block_hash().unwrap());
        wait_until("the transaction was asked for", || bytes_of(&mut first, "bytessent_per_msg", "blocktxn") > before);
        assert_eq!(bytes_of(&mut first, "bytessent_per_msg", "block"), blocks, "no whole block");
        wait_until("it goes through", || second.best_block_hash().unwrap() == node.tip());
    }
    assert!(bytes_of(&mut first, "bytessent_per_msg", "cmpctblock") > 0);
    assert!(bytes_of(&mut second, "bytesrecv_per_msg", "cmpctblock") > 0);
    wait_until("the second Core wants compact blocks of us", || {
        second.call("getpeerinfo", &json!([])).unwrap()[0]["bip152_hb_to"] == json!(true)
    });
    assert!(bytes_of(&mut second, "bytesrecv_per_msg", "blocktxn") > 0);
    // And in the other direction.
    let tx = spend_old_coins(&mut second, 4);
    second.call("generateblock", &json!([ADDRESS, [tx]])).unwrap();
    wait_until("a block goes back", || first.best_block_hash().unwrap() == second.best_block_hash().unwrap());
    wait_until("and is here", || node.tip() == first.best_block_hash().unwrap());
    assert!(bytes_of(&mut first, "bytesrecv_per_msg", "cmpctblock") > 0);
    assert_eq!(bytes_of(&mut first, "bytesrecv_per_msg", "block"), 0, "no whole block was ever needed");
}
