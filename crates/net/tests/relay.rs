//! Relays transactions between nodes of Bitcoin Core through a Lydian node, in both directions.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads the clock for its node"
)]

#[allow(dead_code, reason = "each test file uses its part")]
mod support;

use lydian_engine::{Engine, Unobserved};
use lydian_mempool::Mempool;
use lydian_oracle::{Daemon, Scratch};
use lydian_p2p::manager::{ConnectSettings, Question, Reply};
use lydian_primitives::Amount;
use serde_json::{Value, json};
use std::sync::Arc;
use support::{TestHost, core, wait_until};

/// Only standard transactions are relayed, and peers are not disconnected for silence.
const OPTIONS: [&str; 2] = ["-acceptnonstdtxn=0", "-peertimeout=3000"];

/// What a coinbase pays, in bitcoin.
const COIN: f64 = 50.0;

/// Two Core nodes that only a Lydian node connects. The first one has mined coins that anyone can spend.
struct World {
    first: Daemon,
    second: Daemon,
    engine: Arc<Engine>,
    mempool: Arc<Mempool>,
    // Dropped before the folder.
    network: lydian_net::Network,
    _scratch: Scratch,
}

/// P2WSH of OP_TRUE: standard, and anyone can spend it.
fn descriptor(core: &mut Daemon) -> Value {
    let script = [&[0x00, 0x20][..], &lydian_hash::sha256(&[0x51])].concat();
    let text = format!("raw({})", lydian_primitives::to_hex(&script));
    core.call("getdescriptorinfo", &json!([text])).unwrap()["descriptor"].clone()
}

impl World {
    fn new(name: &'static str, v2: bool) -> Option<World> {
        let (mut first, first_address) = core("net::relay", v2, &OPTIONS)?;
        let (second, second_address) = core("net::relay", v2, &OPTIONS)?;
        let descriptor = descriptor(&mut first);
        first.call("generatetodescriptor", &json!([130, descriptor])).unwrap();
        let scratch = Scratch::new(name);
        let (engine, mempool) = support::node(scratch.path(), 2);
        let mut settings = support::settings(ConnectSettings {
            specified: vec![first_address, second_address],
            default_port: 18444,
            v2,
            ..ConnectSettings::default()
        });
        settings.manager.local.ignores_transactions = false;
        let host = Arc::new(TestHost::new(name));
        let network = lydian_net::Network::start(&engine, &mempool, &settings, host, Arc::new(Unobserved)).unwrap();
        let mut world = World { first, second, engine, mempool, network, _scratch: scratch };
        world.wait_for_tip();
        world.wait_for_fee_filters();
        Some(world)
    }

    /// Waits until every node has the fee filter that the others send after their initial download. Before that,
    /// transactions are neither announced nor accepted, and no peer announces them again.
    fn wait_for_fee_filters(&mut self) {
        let rate = json!(0.000_001);
        wait_until("all nodes take transactions", || {
            let cores = [&mut self.first, &mut self.second];
            let is_told = cores.map(|core| core.call("getpeerinfo", &json!([])).unwrap()[0]["minfeefilter"] == rate);
            let (reply, answer) = Reply::pair();
            assert!(self.network.handle().ask(Question::Peers(reply)));
            let peers = answer.recv().unwrap();
            is_told == [true; 2] && peers.len() == 2 && peers.iter().all(|peer| peer.fee_filter == Amount(100))
        });
    }

    fn wait_for_tip(&mut self) {
        let best = self.first.best_block_hash().unwrap();
        wait_until("all have the chain", || {
            self.engine.tip().hash.to_string() == best && self.second.best_block_hash().unwrap() == best
        });
    }

    /// The coinbase output of a block.
    fn coin(&mut self, height: u32) -> (String, u32) {
        let hash = self.first.call("getblockhash", &json!([height])).unwrap();
        let block = self.first.call("getblock", &json!([hash, 1])).unwrap();
        (block["tx"][0].as_str().unwrap().to_owned(), 0)
    }

    fn has(&self, txid: &str) -> bool {
        self.mempool.snapshot().get(&txid.parse().unwrap()).is_some()
    }
}

/// A transaction that spends an output of anyone and pays to anyone, with its txid.
fn pay((txid, vout): (&str, u32), value: f64, version: u32) -> (String, String) {
    use lydian_primitives::build::{MutInput, MutOutput, MutTx};
    use lydian_primitives::{Amount, OutPoint};
    let script = [&[0x00, 0x20][..], &lydian_hash::sha256(&[0x51])].concat();
    let prevout = OutPoint { txid: txid.parse().unwrap(), vout };
    let input = MutInput { prevout, script_sig: Vec::new(), sequence: u32::MAX - 2, witness: vec![vec![0x51]] };
    #[allow(clippy::cast_possible_truncation, reason = "a number of satoshi")]
    let value = Amount((value * 1e8).round() as i64);
    let output = MutOutput { value, script_pubkey: script };
    let tx = MutTx { version, inputs: vec![input], outputs: vec![output], lock_time: 0 }.to_transaction().unwrap();
    (lydian_primitives::to_hex(tx.as_bytes()), tx.view().txid().to_string())
}

fn submit(core: &mut Daemon, tx: &str) {
    core.call("sendrawtransaction", &json!([tx])).unwrap();
}

fn has(core: &mut Daemon, txid: &str) -> bool {
    core.call("getmempoolentry", &json!([txid])).is_ok()
}

/// A transaction of one Core node reaches the other one through Lydian, in both directions, also chains of them and
/// replacements.
fn relay_transactions(name: &'static str, v2: bool) {
    let Some(mut world) = World::new(name, v2) else { return };
    let coin = world.coin(1);
    let (tx, txid) = pay((&coin.0, coin.1), COIN - 0.0001, 2);
    let (child, child_id) = pay((&txid, 0), COIN - 0.0002, 2);
    submit(&mut world.first, &tx);
    submit(&mut world.first, &child);
    wait_until("both come through", || has(&mut world.second, &txid) && has(&mut world.second, &child_id));
    assert!(world.has(&txid) && world.has(&child_id));
    let coin = world.coin(2);
    let (back, back_id) = pay((&coin.0, coin.1), COIN - 0.0001, 2);
    submit(&mut world.second, &back);
    wait_until("one goes back", || has(&mut world.first, &back_id));
    let (better, better_id) = pay((&coin.0, coin.1), COIN - 0.001, 2);
    submit(&mut world.first, &better);
    wait_until("it is replaced everywhere", || has(&mut world.second, &better_id));
    assert!(world.has(&better_id) && !world.has(&back_id));
    // A block of known transactions comes and goes as a compact one, and no node asks for a transaction.
    let descriptor = descriptor(&mut world.first);
    world.first.call("generatetodescriptor", &json!([1, descriptor])).unwrap();
    world.wait_for_tip();
    assert!(world.mempool.snapshot().is_empty());
    for core in [&mut world.first, &mut world.second] {
        let peers = core.call("getpeerinfo", &json!([])).unwrap();
        assert_eq!(peers.as_array().unwrap().len(), 1, "{peers}");
        assert_eq!(peers[0]["relaytxes"], json!(true));
        assert_eq!(peers[0]["minfeefilter"], json!(0.000_001));
        assert!(peers[0]["bytesrecv_per_msg"].get("blocktxn").is_none(), "{peers}");
        assert!(peers[0]["bytesrecv_per_msg"].get("notfound").is_none(), "{peers}");
    }
}

#[test]
fn transactions_go_from_core_to_core_over_v2() {
    relay_transactions("relay-v2", true);
}

#[test]
fn transactions_go_from_core_to_core_over_v1() {
    relay_transactions("relay-v1", false);
}

/// A parent that pays too little reaches the other node with its child, as a package of both.
#[test]
fn a_package_goes_from_core_to_core() {
    let Some(mut world) = World::new("relay-package", true) else { return };
    let coin = world.coin(1);
    let (parent, parent_id) = pay((&coin.0, coin.1), COIN, 3);
    let (child, child_id) = pay((&parent_id, 0), COIN - 0.0001, 3);
    let result = world.first.call("submitpackage", &json!([[parent, child]])).unwrap();
    assert_eq!(result["package_msg"], "success");
    wait_until("both come through", || has(&mut world.second, &parent_id) && has(&mut world.second, &child_id));
    assert!(world.has(&parent_id) && world.has(&child_id));
}

/// Compact blocks of transactions that all nodes know need no `getblocktxn`, from Core and to Core.
#[test]
fn blocks_of_known_transactions_need_no_request() {
    let Some(mut world) = World::new("relay-compact", true) else { return };
    let descriptor = descriptor(&mut world.first);
    // The first block is requested. After that, blocks are sent unrequested.
    world.first.call("generatetodescriptor", &json!([1, descriptor])).unwrap();
    world.wait_for_tip();
    let high_bandwidth =
        |core: &mut Daemon, key: &str| core.call("getpeerinfo", &json!([])).unwrap()[0][key] == json!(true);
    wait_until("compact blocks are wanted", || {
        high_bandwidth(&mut world.first, "bip152_hb_from") && high_bandwidth(&mut world.second, "bip152_hb_to")
    });
    for height in 1..=3 {
        let coin = world.coin(height);
        let (tx, txid) = pay((&coin.0, coin.1), COIN - 0.0001, 2);
        submit(&mut world.first, &tx);
        wait_until("the transaction comes through", || has(&mut world.second, &txid));
        world.first.call("generatetodescriptor", &json!([1, descriptor])).unwrap();
        world.wait_for_tip();
        assert!(!world.has(&txid));
    }
    for core in [&mut world.first, &mut world.second] {
        let peers = core.call("getpeerinfo", &json!([])).unwrap();
        for direction in ["bytesrecv_per_msg", "bytessent_per_msg"] {
            for command in ["getblocktxn", "blocktxn"] {
                assert!(peers[0][direction].get(command).is_none(), "{peers}");
            }
        }
    }
    let second = world.second.call("getpeerinfo", &json!([])).unwrap();
    assert!(second[0]["bytesrecv_per_msg"]["cmpctblock"].as_u64() > Some(0), "{second}");
    assert_eq!(second[0]["bip152_hb_to"], json!(true));
}
