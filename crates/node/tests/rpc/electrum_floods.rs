//! Clients of the Electrum server that take as much as they can: subscriptions to outputs that do not exist, ten
//! thousand connections, batches of long histories. Memory is bounded, and other wallets are served.

use crate::electrum::{NO_TLS, NO_WEBSOCKET, pay, script};
use crate::electrum_model::{Wallet, scripthash, text};
use crate::http::send;
use crate::server::Server;
use lydian_primitives::build::MutTx;
use lydian_primitives::{OutPoint, Txid, to_hex};
use lydian_stdx::base64;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A node with an Electrum server and some coins, which any wallet may spend.
fn start(test: &str, options: &[&str]) -> (Server, u16) {
    let port = lydian_oracle::free_port().unwrap();
    let own = ["-electrum", &format!("-electrumbind=127.0.0.1:{port}"), NO_WEBSOCKET, "-acceptnonstdtxn=1"];
    let server = Server::lydian(test, &[&own, options].concat());
    server.result("generatetodescriptor", "[120,\"raw(51)\"]");
    (server, port)
}

/// A transaction that spends the coinbase of a block, which pays to OP_1.
fn spend(server: &Server, height: u32, to: &[u8]) -> MutTx {
    let hash = server.result("getblockhash", &format!("[{height}]"));
    let txid = text(&server.result("getblock", &format!("[{hash}]"))["tx"][0]).parse().unwrap();
    let (mut tx, _) = pay(&[(OutPoint { txid, vout: 0 }, 5_000_000_000, 1)], to, 10_000);
    tx.inputs[0].witness.clear();
    tx
}

/// Waits for a notification, and keeps others that come before it.
fn wait_for(wallet: &mut Wallet, method: &str, params: &Value) {
    let is_it = |notice: &Value| notice["method"] == method && notice["params"] == *params;
    loop {
        if let Some(at) = wallet.notices.iter().position(is_it) {
            wallet.notices.remove(at);
            return;
        }
        let notice = wallet.line();
        assert!(!notice.is_null(), "no {method} {params}");
        wallet.notices.push(notice);
    }
}

/// The things that the notifier has looked up, from `/metrics`.
fn lookups(server: &Server, page: u16) -> u64 {
    let cookie = std::fs::read(server.folder.join("regtest/.cookie")).unwrap();
    let login = base64(&cookie);
    let head = format!("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{page}\r\nAuthorization: Basic {login}\r\n\r\n");
    let body = send(page, head.as_bytes()).unwrap().body;
    let line = body.lines().find_map(|line| line.strip_prefix("lydian_electrum_lookups_total ")).unwrap();
    line.trim().parse().unwrap()
}

/// Regression test. An output that did not exist was looked up after every change of the mempool, so that a flood of
/// subscriptions to such outputs made each change cost one lookup for each of them. Now an output is looked up when its
/// transaction, or one that spends it, is in the change.
#[test]
fn a_flood_of_unknown_outputs_costs_no_lookups() {
    const FLOOD: u32 = 30_000;
    let page = lydian_oracle::free_port().unwrap();
    let options = [NO_TLS, "-page=1", &format!("-pageport={page}")];
    let (server, port) = start("a_flood_of_unknown_outputs_costs_no_lookups", &options);
    let mut wallet = Wallet::connect(port, "1.7");
    // Wallets such as Sparrow send batches only to servers whose name they know.
    let features = wallet.result("server.features", &json!([]));
    let name = features["server_version"].as_str().unwrap().to_owned();
    assert!(name.starts_with("Lydian ") && name.to_lowercase().contains("electrumx"), "{name}");
    let txs = [1, 2, 3].map(|height| spend(&server, height, &[2, 3]));
    let [first, second, direct] = txs.each_ref().map(MutTx::txid);
    let mut hostile = Wallet::connect(port, "1.7");
    let before = server.memory_bytes();
    for batch in 0..FLOOD / 5_000 {
        let member = |number: u32| {
            // All of one txid, and of many.
            let txid = if number.is_multiple_of(2) { Txid([7; 32]) } else { Txid([number.to_le_bytes()[0]; 32]) };
            let params = json!([txid.to_string(), number]);
            json!({"id": number, "method": "blockchain.outpoint.subscribe", "params": params})
        };
        let members: Vec<Value> = (batch * 5_000..(batch + 1) * 5_000).map(member).collect();
        hostile.send(Value::Array(members).to_string().as_bytes());
        let answers = hostile.line();
        assert!(answers.as_array().unwrap().iter().all(|answer| answer["result"] == json!({})));
    }
    // Fewer than 200 bytes each, and what the answers took.
    let grown = server.memory_bytes().saturating_sub(before);
    assert!(grown < u64::from(FLOOD) * 200 + (24 << 20), "{grown}");
    let [of_first, of_direct] = [first, direct].map(|txid| json!([txid.to_string(), 1]));
    for outpoint in [&of_first, &of_direct] {
        assert_eq!(wallet.result("blockchain.outpoint.subscribe", outpoint), json!({}));
    }
    let mut older = Wallet::connect(port, "1.6");
    for txid in [first, second, direct] {
        assert_eq!(older.result("blockchain.transaction.subscribe", &json!([txid.to_string()])), Value::Null);
    }
    let start = lookups(&server, page);
    let notice = |outpoint: &Value, height: u32| json!([outpoint[0], outpoint[1], {"funder_height": height}]);
    for tx in &txs[..2] {
        server.result("sendrawtransaction", &json!([to_hex(&tx.encode())]).to_string());
    }
    wait_for(&mut wallet, "blockchain.outpoint.subscribe", &notice(&of_first, 0));
    for txid in [first, second] {
        wait_for(&mut older, "blockchain.transaction.subscribe", &json!([txid.to_string(), 0]));
    }
    // In a block without having been in the mempool; the others follow.
    server.result("generateblock", &json!(["raw(51)", [to_hex(&txs[2].encode())]]).to_string());
    wait_for(&mut wallet, "blockchain.outpoint.subscribe", &notice(&of_direct, 121));
    server.result("generatetodescriptor", "[1,\"raw(51)\"]");
    wait_for(&mut wallet, "blockchain.outpoint.subscribe", &notice(&of_first, 122));
    for (txid, height) in [(direct, 121), (first, 122), (second, 122)] {
        wait_for(&mut older, "blockchain.transaction.subscribe", &json!([txid.to_string(), height]));
    }
    // Each of five is looked up a few times, whatever the number of looks.
    let looked_up = lookups(&server, page) - start;
    assert!((8..100).contains(&looked_up), "{looked_up}");
    assert_eq!(hostile.result("server.ping", &json!([])), json!({"data": ""}));
    assert!(hostile.notices.is_empty(), "{:?}", hostile.notices);
    let unsubscribe = json!([first.to_string()]);
    assert_eq!(older.result("blockchain.transaction.unsubscribe", &unsubscribe), true);
    assert_eq!(older.result("blockchain.transaction.unsubscribe", &unsubscribe), false);
}

/// Ten thousand connections are open at once, half of them in the middle of a line and half in the middle of a
/// handshake. The server keeps 2,048 of them, and serves those that speak the protocol.
#[test]
fn ten_thousand_connections_keep_no_wallet_out() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const CONNECTIONS: usize = 10_000;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let tls = lydian_oracle::free_port().unwrap();
    let options = [&*format!("-electrumtlsbind=127.0.0.1:{tls}"), "-electrumwssbind=0", "-electrumname=electrs/0.12"];
    let (server, port) = start("ten_thousand_connections_keep_no_wallet_out", &options);
    let mut wallet = Wallet::open(port);
    assert_eq!(wallet.result("server.version", &json!(["test", "1.6"])), json!(["electrs/0.12", "1.6"]));
    wallet.result("blockchain.headers.subscribe", &json!([]));
    let before = server.memory_bytes();
    // The head of a message of TLS with 512 bytes, and its beginning.
    let half_handshake = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let connect = |index: usize| {
        let (port, sent) =
            if index.is_multiple_of(2) { (port, &b"{\"id\":1,"[..]) } else { (tls, &half_handshake[..]) };
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        // The server may have closed it in favour of a newer one.
        let _ = stream.write_all(sent);
        stream
    };
    let held: Vec<TcpStream> = (0..CONNECTIONS).map(connect).collect();
    assert_eq!(wallet.result("server.ping", &json!([])), Value::Null);
    server.result("generatetodescriptor", "[1,\"raw(51)\"]");
    assert_eq!(wallet.line()["params"][0]["height"], 121);
    let mut new = Wallet::connect(port, "1.6");
    assert_eq!(new.result("blockchain.headers.subscribe", &json!([]))["height"], 121);
    let sessions = server.result("listelectrumsessions", "[]").as_array().unwrap().len();
    assert!(sessions <= lydian_serve::limits::CONNECTIONS_MAX, "{sessions}");
    let grown = server.memory_bytes().saturating_sub(before);
    assert!(grown < 160 << 20, "{grown}");
    drop(held);
    assert_eq!(new.result("server.ping", &json!([])), Value::Null);
}

/// The members of a batch share 128 MiB with all other answers. A wallet whose answers take more gets all of them, one
/// after another, and so does one that finds the memory full of answers that another client does not read.
#[test]
fn long_histories_in_batches_are_answered_whatever_they_take() {
    const ENTRIES: usize = 9_000;
    const MEMBERS: usize = 200;
    let (server, port) = start("long_histories_in_batches_are_answered_whatever_they_take", &[NO_TLS]);
    let outputs = spend(&server, 1, &[2; ENTRIES]);
    let block = |txs: &[MutTx]| {
        let txs: Vec<String> = txs.iter().map(|tx| to_hex(&tx.encode())).collect();
        server.result("generateblock", &json!(["raw(51)", txs]).to_string());
    };
    block(std::slice::from_ref(&outputs));
    let (txid, value) = (outputs.txid(), outputs.outputs[0].value.0);
    let spends =
        (0..u32::try_from(ENTRIES).unwrap()).map(|vout| pay(&[(OutPoint { txid, vout }, value, 2)], &[3], 100).0);
    block(&spends.collect::<Vec<_>>());
    let member = |id: usize| {
        let method =
            ["blockchain.scripthash.get_history", "blockchain.scripthash.listunspent"][usize::from(id % 9 == 8)];
        json!({"id": id, "method": method, "params": [scripthash(&script(if id % 9 == 8 { 3 } else { 2 }))]})
    };
    let batch = Value::Array((0..MEMBERS).map(member).collect()).to_string();
    let expected = {
        let mut wallet = Wallet::connect(port, "1.6");
        let mut alone = |id: usize| {
            wallet.send(member(id).to_string().as_bytes());
            let mut line = String::new();
            wallet.stream.read_line(&mut line).unwrap();
            line.len() - format!(",\"id\":{id}}}\n").len()
        };
        [alone(0), alone(8)]
    };
    let check = |wallet: &mut Wallet| {
        let mut line = String::new();
        wallet.stream.read_line(&mut line).unwrap();
        assert!(line.starts_with("[{") && line.ends_with("}]\n"), "{}", line.len());
        let ends: Vec<usize> = line.match_indices(",\"id\":").map(|(at, _)| at).collect();
        assert_eq!(ends.len(), MEMBERS);
        let mut begin = 1;
        for (id, end) in ends.into_iter().enumerate() {
            assert_eq!(end - begin, expected[usize::from(id % 9 == 8)], "answer {id}");
            begin = end + format!(",\"id\":{id}}},").len();
            assert!(line[end..].starts_with(&format!(",\"id\":{id}}}")), "answer {id}");
        }
        assert_eq!(begin, line.len() - 1, "nothing follows");
    };
    // One that does not read: its answers fill the memory until others need it.
    let mut hog = Wallet::connect(port, "1.6");
    let before = server.memory_bytes();
    hog.send(batch.as_bytes());
    let full = Instant::now();
    while server.memory_bytes() < before + (60 << 20) {
        assert!(full.elapsed() < PATIENCE, "its answers are not made");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut wallet = Wallet::connect(port, "1.6");
    wallet.send(batch.as_bytes());
    check(&mut wallet);
    assert_eq!(wallet.result("server.ping", &json!([])), Value::Null);
    let grown = crate::abuse::peak_bytes(&server) - before;
    assert!(grown < 400 << 20, "{grown}");
}
