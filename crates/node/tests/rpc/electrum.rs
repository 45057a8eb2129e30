//! `-electrum`: the answers follow from Core's blocks and mempool, for every script, in every version of the protocol;
//! subscribers are notified of exactly what changed. The model is computed from nothing but answers of Core's RPC.

use crate::chain::Pair;
use crate::electrum_model::{Model, Script, Wallet, check_script, scripthash, text};
use crate::server::Server;
use lydian_hash::{sha256, sha256d};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid, to_hex};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// The default ports of TLS and of websockets are those of one node at a time.
pub(crate) const NO_TLS: &str = "-electrumtlsbind=0";
pub(crate) const NO_WEBSOCKET: &str = "-electrumwsbind=0";

/// The root that a branch leads to.
pub(crate) fn root_of(leaf: &str, mut position: usize, branch: &Value) -> String {
    let bytes = |text: &str| text.parse::<Txid>().unwrap().0;
    let mut hash = bytes(leaf);
    for sibling in branch.as_array().unwrap() {
        let sibling = bytes(sibling.as_str().unwrap());
        let pair = if position.is_multiple_of(2) { [hash, sibling] } else { [sibling, hash] };
        hash = sha256d(&pair.concat());
        position /= 2;
    }
    assert_eq!(position, 0, "the branch is as long as the tree is high");
    Txid(hash).to_string()
}

/// The root of all block hashes up to a height.
fn root_of_all(hashes: &[String]) -> String {
    let mut level: Vec<[u8; 32]> = hashes.iter().map(|hash| hash.parse::<Txid>().unwrap().0).collect();
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| sha256d(&[pair[0], pair[pair.len() - 1]].concat())).collect();
    }
    Txid(level[0]).to_string()
}

/// Compares headers, proofs and transactions with the model.
pub(crate) fn check_chain(wallet: &mut Wallet, pair: &Pair, model: &Model) {
    let tip = model.headers.len() - 1;
    let subscribed = wallet.result("blockchain.headers.subscribe", &json!([]));
    assert_eq!(subscribed, json!({"hex": model.headers[tip], "height": tip}));
    for height in (0..=tip).step_by(1 + tip / 60).chain([tip]) {
        let header = wallet.result("blockchain.block.header", &json!([height]));
        assert_eq!(header, model.headers[height]);
        let last = (height + (height * 7) % 50).min(tip).max(1);
        let proof = wallet.result("blockchain.block.header", &json!([height, last]));
        assert_eq!(proof["root"], root_of_all(&model.hashes[..=last]), "{height} of {last}");
        assert_eq!(root_of(&model.hashes[height], height, &proof["branch"]), text(&proof["root"]), "{height} {last}");
        let many = wallet.result("blockchain.block.headers", &json!([height, 100, tip]));
        let expected = &model.headers[height..(height + 100).min(tip + 1)];
        assert_eq!((&many["count"], &many["max"]), (&json!(expected.len()), &json!(2_016)));
        match &many["headers"] {
            Value::Null => assert_eq!(many["hex"], expected.concat()),
            headers => assert_eq!(*headers, json!(expected)),
        }
        assert_eq!(many["root"], root_of_all(&model.hashes[..=tip]));
        let txids = &model.blocks[height];
        for (position, txid) in txids.iter().enumerate().step_by(1 + txids.len() / 3) {
            let proof = wallet.result("blockchain.transaction.get_merkle", &json!([txid, height]));
            assert_eq!((&proof["block_height"], &proof["pos"]), (&json!(height), &json!(position)));
            assert_eq!(root_of(txid, position, &proof["merkle"]), model.roots[height]);
            let params = json!([height, position, true]);
            let by_position = wallet.result("blockchain.transaction.id_from_pos", &params);
            assert_eq!(by_position, json!({"merkle": proof["merkle"], "tx_hash": txid}));
            if height > 0 {
                let raw = pair.core.result("getblock", &format!("[\"{}\",2]", model.hashes[height]));
                assert_eq!(wallet.result("blockchain.transaction.get", &json!([txid])), raw["tx"][position]["hex"]);
            }
        }
    }
}

/// Both programs; the first serves wallets.
fn start(test: &str) -> Option<(Pair, u16)> {
    let mut pair = Pair::start(test, &["-acceptnonstdtxn=0"])?;
    let port = lydian_oracle::free_port().unwrap();
    let bind = format!("-electrumbind=127.0.0.1:{port}");
    pair.lydian.restart(&["-acceptnonstdtxn=0", "-electrum", &bind, NO_TLS, NO_WEBSOCKET]);
    Some((pair, port))
}

#[test]
fn electrum_answers_follow_from_the_blocks() {
    let Some((mut pair, port)) = start("electrum_answers_follow_from_the_blocks") else { return };
    pair.feed_branches();
    let model = Model::of(&pair.core);
    for version in ["1.4", "1.4.2", "1.6", "1.7"] {
        let mut wallet = Wallet::connect(port, version);
        model.scripts.values().for_each(|script| check_script(&mut wallet, script));
        check_chain(&mut wallet, &pair, &model);
    }
    // Switched off and on again; then built anew while the node runs.
    let bind = format!("-electrumbind=127.0.0.1:{port}");
    let options = ["-acceptnonstdtxn=0", "-electrum", &bind, NO_TLS, NO_WEBSOCKET];
    pair.lydian.restart(&[]);
    pair.lydian.restart(&options);
    let mut wallet = Wallet::connect(port, "1.6");
    model.scripts.values().take(5).for_each(|script| check_script(&mut wallet, script));
    pair.lydian.restart(&[]);
    std::fs::remove_dir_all(pair.lydian.folder.join("regtest/indexes/tables")).unwrap();
    pair.lydian.restart(&options);
    let is_built = |_| {
        std::thread::sleep(Duration::from_millis(25));
        pair.lydian.result("getindexinfo", "[]")["addressindex"]["synced"] == true
    };
    assert!((0..4_800).any(is_built));
    let mut wallet = Wallet::connect(port, "1.6");
    model.scripts.values().for_each(|script| check_script(&mut wallet, script));
    check_chain(&mut wallet, &pair, &model);
}

/// P2WSH of OP_1 to OP_16, which need no signature.
pub(crate) fn script(number: u8) -> Vec<u8> {
    [&[0x00, 0x20][..], &sha256(&[0x50 + number])].concat()
}

/// An output with the number of its script.
pub(crate) type Paid = (OutPoint, i64, u8);

/// A transaction that spends outputs and shares the rest equally.
pub(crate) fn pay(from: &[Paid], to: &[u8], fee: i64) -> (MutTx, Vec<Paid>) {
    let input = |(prevout, _, number): &Paid| MutInput {
        prevout: *prevout,
        script_sig: Vec::new(),
        sequence: 0xffff_fffd,
        witness: vec![vec![0x50 + number]],
    };
    let each = (from.iter().map(|(_, value, _)| value).sum::<i64>() - fee) / i64::try_from(to.len()).unwrap();
    let output = |number: &u8| MutOutput { value: Amount(each), script_pubkey: script(*number) };
    let inputs = from.iter().map(input).collect();
    let tx = MutTx { version: 2, inputs, outputs: to.iter().map(output).collect(), lock_time: 0 };
    let txid = tx.txid();
    let paid = (0..).zip(to).map(|(vout, number)| (OutPoint { txid, vout }, each, *number)).collect();
    (tx, paid)
}

/// Both programs and two wallets that watch all scripts.
struct Story {
    pair: Pair,
    wallets: [Wallet; 2],
    statuses: BTreeMap<String, Value>,
    tip: Value,
}

impl Story {
    fn begin(pair: Pair, port: u16) -> Story {
        let wallets = ["1.6", "1.7"].map(|version| Wallet::connect(port, version));
        let mut story = Story { pair, wallets, statuses: BTreeMap::new(), tip: Value::Null };
        let model = Model::of(&story.pair.core);
        for wallet in &mut story.wallets {
            story.tip = wallet.result("blockchain.headers.subscribe", &json!([]));
            for number in 1..=16 {
                let none = Script { script: script(number), ..Script::default() };
                let known = model.scripts.get(&scripthash(&script(number))).unwrap_or(&none);
                check_script(wallet, known);
                story.statuses.insert(scripthash(&script(number)), known.status());
            }
        }
        story
    }

    fn both(&self, method: &str, params: &Value) -> Value {
        let params = params.to_string();
        let (ours, cores) = (self.pair.lydian.call(method, &params), self.pair.core.call(method, &params));
        assert_eq!(ours.body, cores.body, "{method} {params}");
        serde_json::from_str::<Value>(&cores.body).unwrap()["result"].clone()
    }

    /// Sends a transaction through the protocol and to Core.
    fn send(&mut self, tx: &MutTx) {
        let raw = to_hex(&tx.encode());
        let sent = self.wallets[0].result("blockchain.transaction.broadcast", &json!([raw]));
        assert_eq!(sent, tx.txid().to_string());
        self.pair.core.result("sendrawtransaction", &json!([raw]).to_string());
    }

    /// Both wallets get exactly the notifications that follow from the change, and then the right answers.
    fn check(&mut self, what: &str) {
        let model = Model::of(&self.pair.core);
        let now = model.statuses();
        let (tip, mut expected) = (model.headers.len() - 1, BTreeMap::new());
        for (hash, before) in &mut self.statuses {
            let after = now.get(hash).cloned().unwrap_or_default();
            if *before != after {
                expected.insert(hash.clone(), after.clone());
                *before = after;
            }
        }
        let header = json!({"hex": model.headers[tip], "height": tip});
        let has_moved = header != self.tip;
        self.tip = header.clone();
        for wallet in &mut self.wallets {
            let mut got: BTreeMap<String, Value> = BTreeMap::new();
            let mut seen = Value::Null;
            while got != expected || has_moved && seen != header {
                let notice = if wallet.notices.is_empty() { wallet.line() } else { wallet.notices.remove(0) };
                let params = &notice["params"];
                match notice["method"].as_str().unwrap_or_else(|| panic!("{what}: got {got:?}, want {expected:?}")) {
                    "blockchain.headers.subscribe" => seen = params[0].clone(),
                    "blockchain.scripthash.subscribe" | "blockchain.scriptpubkey.subscribe" => {
                        got.insert(text(&params[0]), params[1].clone());
                    }
                    other => panic!("{what}: {other}"),
                }
            }
            let none = Script::default();
            for number in 1..=16 {
                let hash = scripthash(&script(number));
                let known = model.scripts.get(&hash).unwrap_or(&none);
                check_script(wallet, &Script { script: script(number), ..known.clone() });
            }
            assert!(wallet.notices.is_empty(), "{what}: {:?}", wallet.notices);
        }
    }
}

#[test]
fn wallets_are_notified_of_what_changed() {
    let Some((pair, port)) = start("wallets_are_notified_of_what_changed") else { return };
    let mut story = Story::begin(pair, port);
    story.both("setmocktime", &json!([1_750_000_000]));
    let descriptor = format!("raw({})", to_hex(&script(1)));
    story.both("generatetodescriptor", &json!([110, descriptor]));
    story.check("blocks");
    let coinbase = |story: &Story, height: u32| -> Paid {
        let hash = story.pair.core.result("getblockhash", &format!("[{height}]"));
        let block = story.pair.core.result("getblock", &format!("[{hash}]"));
        (OutPoint { txid: text(&block["tx"][0]).parse().unwrap(), vout: 0 }, 5_000_000_000, 1)
    };
    let (first, paid) = pay(&[coinbase(&story, 1)], &[2, 3], 1_000);
    story.send(&first);
    story.check("an unconfirmed transaction");
    let (second, chained) = pay(&paid[..1], &[4, 2], 1_000);
    story.send(&second);
    story.check("a chained one");
    let (twice, _) = pay(&[coinbase(&story, 2)], &[5, 5, 5], 1_000);
    story.send(&twice);
    story.check("one that pays a script three times");
    let (replacing, _) = pay(&[coinbase(&story, 2)], &[6], 50_000);
    story.send(&replacing);
    story.check("a replacement");
    let (third, _) = pay(&[chained[0], paid[1]], &[7], 1_000);
    story.send(&third);
    story.check("a transaction with a confirmed and an unconfirmed parent");
    // A block with the first only: the others lose an unconfirmed parent.
    let only = json!([descriptor, [to_hex(&first.encode())]]);
    story.both("generateblock", &only);
    story.check("a block with one of them");
    story.both("generatetodescriptor", &json!([1, descriptor]));
    story.check("a block with all");
    let hash = story.pair.core.result("getbestblockhash", "[]");
    story.both("invalidateblock", &json!([hash]));
    story.check("the block leaves");
    story.both("reconsiderblock", &json!([hash]));
    story.check("the block returns");
    // In one block: created and spent.
    let (parent, out) = pay(&[coinbase(&story, 3)], &[8], 1_000);
    let (child, _) = pay(&out, &[9], 1_000);
    story.send(&parent);
    story.send(&child);
    story.both("generatetodescriptor", &json!([1, descriptor]));
    story.check("spent in its own block");
    // No notification after the end of a subscription.
    let hash = scripthash(&script(10));
    let wallet = &mut story.wallets[0];
    assert_eq!(wallet.result("blockchain.scripthash.unsubscribe", &json!([hash])), true);
    assert_eq!(wallet.result("blockchain.scripthash.unsubscribe", &json!([hash])), false);
    let (last, _) = pay(&[coinbase(&story, 4)], &[10], 1_000);
    story.send(&last);
    let line = story.wallets[1].line();
    assert!(line["params"].to_string().contains(&hash) || line["params"].to_string().contains(&scripthash(&script(1))));
    assert_eq!(story.wallets[0].result("server.ping", &json!([])), Value::Null);
    let told = |wallet: &Wallet| wallet.notices.iter().any(|notice| notice.to_string().contains(&hash));
    assert!(!told(&story.wallets[0]));
}

/// Lydian alone, with a chain of 2,020 blocks.
fn alone(test: &str) -> (Server, u16) {
    let port = lydian_oracle::free_port().unwrap();
    let server = Server::lydian(test, &["-electrum", &format!("-electrumbind=127.0.0.1:{port}"), NO_TLS, NO_WEBSOCKET]);
    server.result("generatetodescriptor", "[2020,\"raw(51)\"]");
    (server, port)
}

#[test]
fn wrong_questions_of_wallets_have_their_errors() {
    let (server, port) = alone("wrong_questions_of_wallets_have_their_errors");
    let mut wallet = Wallet::connect(port, "1.4");
    let headers = |wallet: &mut Wallet, count: u32| {
        wallet.result("blockchain.block.headers", &json!([0, count]))["count"].as_u64().unwrap()
    };
    assert_eq!([2_016, 2_017].map(|count| headers(&mut wallet, count)), [2_016, 2_016]);
    let unknown = "11".repeat(32);
    for (method, params, code, words) in [
        ("nonsense", json!([]), -32601, "unknown method \"nonsense\""),
        (
            "blockchain.scriptpubkey.get_balance",
            json!(["51"]),
            -32601,
            "method blockchain.scriptpubkey.get_balance is not in version 1.4 of the protocol",
        ),
        ("mempool.recent", json!([]), -32601, "method mempool.recent is not in version 1.4 of the protocol"),
        ("server.version", json!(["again", "1.4"]), 1, "server.version was sent already"),
        ("blockchain.block.header", json!([]), -32602, "argument 1 (height) is missing"),
        ("blockchain.block.header", json!([2_021]), 1, "height 2021 is above the tip 2020"),
        ("blockchain.block.header", json!([5, 4]), 1, "cp_height 4 must be between the height 5 and the tip 2020"),
        (
            "blockchain.block.header",
            json!([5, 2_021]),
            1,
            "cp_height 2021 must be between the height 5 and the tip 2020",
        ),
        (
            "blockchain.scripthash.get_balance",
            json!(["51"]),
            -32602,
            "argument 1 (scripthash) must be a script hash: 64 hexadecimal characters",
        ),
        ("blockchain.header.get", json!([unknown]), 1, &*format!("no block of the chain has the hash {unknown}")),
        ("blockchain.header.get", json!([2_021]), 1, "height 2021 is above the tip 2020"),
        (
            "blockchain.header.get",
            json!(["51"]),
            -32602,
            "argument 1 (block_hash) must be the hash of a block, 64 hexadecimal characters, or its height",
        ),
        (
            "blockchain.transaction.get_confirmed_blockhash",
            json!([unknown]),
            2,
            &*format!("no transaction has the txid {unknown}"),
        ),
        ("blockchain.transaction.get", json!([unknown]), 2, &*format!("no transaction has the txid {unknown}")),
        ("blockchain.transaction.get", json!([unknown, true]), 2, &*format!("no transaction has the txid {unknown}")),
        (
            "blockchain.transaction.get_merkle",
            json!([unknown, 7]),
            1,
            &*format!("transaction {unknown} is not in the block at height 7"),
        ),
        (
            "blockchain.transaction.id_from_pos",
            json!([7, 1]),
            1,
            "there is no transaction 1: the block at height 7 has 1",
        ),
        (
            "blockchain.transaction.broadcast",
            json!(["00"]),
            1,
            "the transaction was rejected by network rules.\n\nTX decode failed. Make sure the tx has at least one input.",
        ),
        ("blockchain.transaction.broadcast", json!(["xx"]), -32602, "argument 1 (raw_tx) must be hexadecimal"),
    ] {
        assert_eq!(wallet.error(method, &params), (code, words.to_owned()), "{method} {params}");
    }
    for (line, code) in [(&b"nonsense"[..], -32700), (b"[]", -32600), (b"7", -32600), (b"{\"id\":1}", -32600)] {
        wallet.send(line);
        assert_eq!(wallet.line()["error"]["code"], code);
    }
    // Batches are answered in their order; what has no id is not answered.
    wallet.send(br#"[{"id":1,"method":"server.ping"},{"method":"server.ping"},{"id":"b","method":"x"},7]"#);
    let batch = wallet.line();
    let ids: Vec<&Value> = batch.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!("b"), &Value::Null]);
    let many: Vec<Value> =
        (0..1_000).map(|id| json!({"id": id, "method": "blockchain.block.header", "params": [id]})).collect();
    wallet.send(Value::from(many).to_string().as_bytes());
    let answers = wallet.line();
    assert!(
        answers.as_array().unwrap().iter().enumerate().all(|(at, one)| one["id"] == at && one["result"].is_string())
    );
    // A version that the server does not speak ends the connection.
    let mut old = Wallet::open(port);
    assert_eq!(old.error("server.version", &json!(["old", "1.1"])).0, 1);
    assert_eq!(old.line(), Value::Null);
    let mut new = Wallet::connect(port, "1.7");
    let data = |wallet: &mut Wallet, size: u32| wallet.result("server.ping", &json!([size]))["data"].clone();
    assert_eq!(data(&mut new, 65_536).as_str().unwrap().len(), 65_536);
    assert_eq!(new.error("server.ping", &json!([65_537])).0, -32602);
    assert_eq!(new.error("blockchain.scripthash.subscribe", &json!([unknown])).0, -32601);
    drop(server);
}

/// A client that sends an endless line, half a line, deep nesting or nothing is refused or ignored; others are served.
#[test]
fn hostile_clients_do_not_disturb_wallets() {
    let (server, port) = alone("hostile_clients_do_not_disturb_wallets");
    let mut endless = Wallet::open(port);
    let junk = vec![b'x'; 1 << 20];
    // The connection may be closed while it is sent.
    for _ in 0..4 {
        let _ = endless.stream.get_mut().write_all(&junk);
    }
    let mut half = Wallet::open(port);
    half.stream.get_mut().write_all(b"{\"id\":1,").unwrap();
    let mut deep = Wallet::open(port);
    deep.send("[".repeat(60_000).as_bytes());
    assert_eq!(deep.line()["error"]["code"], -32700);
    let silent: Vec<Wallet> = (0..300).map(|_| Wallet::open(port)).collect();
    // A slow reader: answers of 300 KB each, none of which it reads.
    let mut slow = Wallet::open(port);
    let request = json!({"id": 1, "method": "blockchain.block.headers", "params": [0, 2_016]}).to_string();
    slow.stream.get_mut().set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    for _ in 0..2_000 {
        if slow.stream.get_mut().write_all(format!("{request}\n").as_bytes()).is_err() {
            break;
        }
    }
    let before = server.memory_bytes();
    let mut wallet = Wallet::connect(port, "1.6");
    assert_eq!(wallet.result("blockchain.headers.subscribe", &json!([]))["height"], 2_020);
    server.result("generatetodescriptor", "[1,\"raw(51)\"]");
    assert_eq!(wallet.line()["params"][0]["height"], 2_021);
    assert!(server.memory_bytes() < before + (64 << 20), "{before}");
    drop(silent);
}

/// A wallet of version 1.7 follows outputs from before they exist until they are spent, and back.
#[test]
fn wallets_follow_outputs() {
    let Some((pair, port)) = start("wallets_follow_outputs") else { return };
    let mut story = Story::begin(pair, port);
    story.both("setmocktime", &json!([1_750_000_000]));
    let descriptor = format!("raw({})", to_hex(&script(1)));
    let blocks = story.both("generatetodescriptor", &json!([110, descriptor]));
    let coinbase = |story: &Story, at: usize| -> Paid {
        let block = story.pair.core.result("getblock", &format!("[{}]", blocks[at]));
        (OutPoint { txid: text(&block["tx"][0]).parse().unwrap(), vout: 0 }, 5_000_000_000, 1)
    };
    let (first, paid) = pay(&[coinbase(&story, 0)], &[2, 3], 1_000);
    let (second, _) = pay(&paid[..1], &[4], 1_000);
    let mut wallet = Wallet::connect(port, "1.7");
    let of = |outpoint: &OutPoint| json!([outpoint.txid.to_string(), outpoint.vout]);
    let (known, unknown) = (paid[0].0, paid[1].0);
    let hinted = json!([known.txid.to_string(), known.vout, to_hex(&script(2))]);
    assert_eq!(wallet.result("blockchain.outpoint.subscribe", &hinted), json!({}));
    assert_eq!(wallet.result("blockchain.outpoint.subscribe", &of(&unknown)), json!({}));
    let expect = |wallet: &mut Wallet, outpoint: &OutPoint, status: &Value| {
        // Others may come first, and states between two moments.
        let expected = json!([outpoint.txid.to_string(), outpoint.vout, status]);
        loop {
            let notice = if wallet.notices.is_empty() { wallet.line() } else { wallet.notices.remove(0) };
            assert_eq!(notice["method"], "blockchain.outpoint.subscribe", "waiting for {expected}");
            if notice["params"] == expected {
                break;
            }
        }
        assert_eq!(wallet.result("blockchain.outpoint.get_status", &of(outpoint)), *status);
    };
    story.send(&first);
    expect(&mut wallet, &known, &json!({"funder_height": 0}));
    assert_eq!(wallet.result("blockchain.outpoint.get_status", &of(&unknown)), json!({"funder_height": 0}));
    let spender = second.txid().to_string();
    let spent = |funder: i64, height: i64| json!({"funder_height": funder, "spender_height": height, "spender_txhash": spender});
    story.send(&second);
    expect(&mut wallet, &known, &spent(0, -1));
    let block = story.both("generatetodescriptor", &json!([1, descriptor]))[0].clone();
    expect(&mut wallet, &known, &spent(111, 111));
    story.both("invalidateblock", &json!([block]));
    expect(&mut wallet, &known, &spent(0, -1));
    story.both("reconsiderblock", &json!([block]));
    expect(&mut wallet, &known, &spent(111, 111));
    assert_eq!(wallet.result("blockchain.outpoint.get_status", &of(&unknown)), json!({"funder_height": 111}));
    let missing = OutPoint { vout: 2, ..known };
    assert_eq!(wallet.result("blockchain.outpoint.get_status", &of(&missing)), json!({}));
    for is_there in [true, false] {
        assert_eq!(wallet.result("blockchain.outpoint.unsubscribe", &of(&known)), is_there);
    }
    // Arguments by name.
    let named = json!({"scriptpubkey": to_hex(&script(3)), "to_height": 112});
    let expected = json!({"history": [{"height": 111, "tx_hash": first.txid().to_string()}]});
    assert_eq!(wallet.result("blockchain.scriptpubkey.get_history", &named), expected);
    // Fulcrum's question about a coin, which 1.7 does not have.
    let mut older = Wallet::connect(port, "1.4");
    assert_eq!(older.result("blockchain.utxo.get_info", &of(&known)), Value::Null);
    let value = paid[1].1;
    let coin = json!({"confirmed_height": 111, "scripthash": scripthash(&script(3)), "value": value});
    assert_eq!(older.result("blockchain.utxo.get_info", &of(&unknown)), coin);
    let txid = first.txid().to_string();
    assert_eq!(older.result("blockchain.transaction.get_height", &json!([txid])), 111);
    let header = story.pair.core.result("getblockheader", &json!([block, false]).to_string());
    let found = json!({"block_hash": block, "block_height": 111});
    assert_eq!(older.result("blockchain.transaction.get_confirmed_blockhash", &json!([txid])), found);
    let found = json!({"block_hash": block, "block_header": header, "block_height": 111});
    assert_eq!(older.result("blockchain.transaction.get_confirmed_blockhash", &json!([txid, true])), found);
    // A header by its hash or its height, and a proof without the height.
    let found = json!({"height": 111, "hex": header});
    for of in [block.clone(), json!(111)] {
        assert_eq!(older.result("blockchain.header.get", &json!([of])), found);
    }
    let proof = |params: Value, wallet: &mut Wallet| wallet.result("blockchain.transaction.get_merkle", &params);
    assert_eq!(proof(json!([txid]), &mut older), proof(json!([txid, 111]), &mut older));
    check_addresses(&mut older, &story.pair.core);
    let verbose = older.result("blockchain.transaction.get", &json!([txid, true]));
    assert_eq!((&verbose["blockhash"], &verbose["confirmations"]), (&block, &json!(1)));
    let use_of = older.result("blockchain.scripthash.get_first_use", &json!([scripthash(&script(3))]));
    assert_eq!(use_of, json!({"block_hash": block, "height": 111, "tx_hash": txid}));
}

/// Fulcrum's questions about addresses are those about their scripts.
fn check_addresses(wallet: &mut Wallet, core: &Server) {
    let decoded = core.result("decodescript", &json!([to_hex(&script(3))]).to_string());
    let hash = json!([scripthash(&script(3))]);
    let address = json!([decoded["address"]]);
    assert_eq!(wallet.result("blockchain.address.get_scripthash", &address), hash[0]);
    for question in ["get_balance", "get_history", "get_mempool", "listunspent", "get_first_use"] {
        let [of_address, of_hash] = ["address", "scripthash"].map(|of| format!("blockchain.{of}.{question}"));
        assert_eq!(wallet.result(&of_address, &address), wallet.result(&of_hash, &hash), "{question}");
    }
}

/// Fees, and packages, through the protocol.
#[test]
fn wallets_submit_packages_and_ask_for_fees() {
    let Some((pair, port)) = start("wallets_submit_packages_and_ask_for_fees") else { return };
    let mut story = Story::begin(pair, port);
    story.both("setmocktime", &json!([1_750_000_000]));
    let descriptor = format!("raw({})", to_hex(&script(1)));
    let blocks = story.both("generatetodescriptor", &json!([110, descriptor]));
    let block = story.pair.core.result("getblock", &format!("[{}]", blocks[0]));
    let coin: Paid = (OutPoint { txid: text(&block["tx"][0]).parse().unwrap(), vout: 0 }, 5_000_000_000, 1);
    let (parent, paid) = pay(&[coin], &[2], 0);
    let (child, _) = pay(&paid, &[3], 10_000);
    let [old, new] = &mut story.wallets;
    let raw = |tx: &MutTx| to_hex(&tx.encode());
    let tested = new.result("blockchain.transaction.testmempoolaccept", &json!([[raw(&parent)]]));
    assert_eq!((&tested[0]["allowed"], &tested[0]["txid"]), (&json!(false), &json!(parent.txid().to_string())));
    assert!(tested[0]["reason"].as_str().unwrap().contains("min relay fee not met"), "{tested}");
    let alone = old.error("blockchain.transaction.broadcast", &json!([raw(&parent)]));
    assert_eq!(alone.0, 1);
    assert!(alone.1.contains("min relay fee not met"), "{}", alone.1);
    let package = json!([[raw(&parent), raw(&child)]]);
    assert_eq!(old.result("blockchain.transaction.broadcast_package", &package), json!({"success": true}));
    let recent = new.result("mempool.recent", &json!([]));
    let fees: BTreeMap<String, i64> =
        recent.as_array().unwrap().iter().map(|tx| (text(&tx["txid"]), tx["fee"].as_i64().unwrap())).collect();
    assert_eq!(fees, BTreeMap::from([(parent.txid().to_string(), 0), (child.txid().to_string(), 10_000)]));
    let histogram = old.result("mempool.get_fee_histogram", &json!([]));
    let vsize: i64 = recent.as_array().unwrap().iter().map(|tx| tx["vsize"].as_i64().unwrap()).sum();
    assert_eq!((histogram.as_array().unwrap().len(), &histogram[0][1]), (1, &json!(vsize)), "one chunk: {histogram}");
    let info = old.result("mempool.get_info", &json!([]));
    let cores = story.pair.core.result("getmempoolinfo", "[]");
    for name in ["mempoolminfee", "minrelaytxfee", "incrementalrelayfee"] {
        assert_eq!(info[name], cores[name], "{name}");
    }
    assert_eq!(old.result("blockchain.estimatefee", &json!([6, "ECONOMICAL"])), -1);
    let mut oldest = Wallet::connect(port, "1.4");
    assert_eq!(oldest.result("blockchain.relayfee", &json!([])), cores["minrelaytxfee"]);
    let features = oldest.result("server.features", &json!([]));
    assert_eq!((&features["protocol_min"], &features["hash_function"]), (&json!("1.4"), &json!("sha256")));
}

/// Outputs of a script, and transactions that spend them: above the 8,192 entries from which answers are sent in parts.
const MANY: usize = 9_000;
const MANY_SPENT: usize = 8_300;

/// Long histories and coins are those that were mined: alone on a line, with entries of the mempool at the end, and in
/// a batch, which is not sent in parts.
#[test]
fn long_lists_are_sent_in_parts() {
    let (server, port) = alone("long_lists_are_sent_in_parts");
    let hash = server.result("getblockhash", "[1]");
    let coinbase = text(&server.result("getblock", &format!("[{hash}]"))["tx"][0]).parse().unwrap();
    let (mut first, paid) = pay(&[(OutPoint { txid: coinbase, vout: 0 }, 5_000_000_000, 1)], &[2; MANY], 50_000);
    // It spends an output to OP_1 itself.
    first.inputs[0].witness.clear();
    let mine = |txs: &[MutTx]| {
        let txs: Vec<String> = txs.iter().map(|tx| to_hex(&tx.encode())).collect();
        server.result("generateblock", &json!(["raw(51)", txs]).to_string());
    };
    mine(&[first.clone()]);
    let coin = |(outpoint, value, _): &Paid| json!({"height": 2_021, "tx_hash": outpoint.txid.to_string(), "tx_pos": outpoint.vout, "value": value});
    let coins: Vec<Value> = paid.iter().map(coin).collect();
    let mut wallets = ["1.6", "1.7"].map(|version| Wallet::connect(port, version));
    for wallet in &mut wallets {
        assert_eq!(wallet.list("listunspent", &script(2)), Value::Array(coins.clone()));
    }
    let spending: Vec<MutTx> = paid[..MANY_SPENT].iter().map(|paid| pay(&[*paid], &[3], 1_000).0).collect();
    mine(&spending);
    let (unconfirmed, _) = pay(&paid[MANY_SPENT..=MANY_SPENT], &[2], 1_000);
    let raw = to_hex(&unconfirmed.encode());
    wallets[0].result("blockchain.transaction.broadcast", &json!([raw]));
    let entry = |height: u32, tx: &MutTx| json!({"height": height, "tx_hash": tx.txid().to_string()});
    let mut history = vec![entry(2_021, &first)];
    history.extend(spending.iter().map(|tx| entry(2_022, tx)));
    history.push(json!({"fee": 1_000, "height": 0, "tx_hash": unconfirmed.txid().to_string()}));
    let of_mempool = json!([{"fee": 1_000, "height": 0, "tx_hash": unconfirmed.txid().to_string()}]);
    for wallet in &mut wallets {
        assert_eq!(wallet.list("get_mempool", &script(2)), of_mempool);
        assert_eq!(wallet.list("get_history", &script(2)), Value::Array(history.clone()));
        // Only the end of the first list is left of the coins, and what the mempool makes.
        let mut left = coins[MANY_SPENT + 1..].to_vec();
        let value = paid[MANY_SPENT].1 - 1_000;
        left.push(json!({"height": 0, "tx_hash": unconfirmed.txid().to_string(), "tx_pos": 0, "value": value}));
        assert_eq!(wallet.list("listunspent", &script(2)), Value::Array(left));
        // The stream goes on behind it.
        wallet.result("server.ping", &json!([]));
    }
    let request =
        |id: &str| json!({"id": id, "method": "blockchain.scripthash.get_history", "params": [scripthash(&script(2))]});
    wallets[0].send(json!([request("a"), request("b")]).to_string().as_bytes());
    let answers = wallets[0].line();
    for (answer, id) in answers.as_array().unwrap().iter().zip(["a", "b"]) {
        assert_eq!((&answer["id"], &answer["result"]), (&json!(id), &Value::Array(history.clone())));
    }
    assert_eq!(answers.as_array().unwrap().len(), 2);
    // No answer is due to a request without an id; the long one does not appear.
    let mut silent = request("c");
    silent.as_object_mut().unwrap().remove("id");
    wallets[0].send(silent.to_string().as_bytes());
    assert_eq!(wallets[0].result("server.ping", &json!([])), Value::Null);
    let status: String =
        history.iter().map(|entry| format!("{}:{}:", text(&entry["tx_hash"]), entry["height"])).collect();
    let told = wallets[0].of_script("subscribe", &script(2));
    assert_eq!(told, to_hex(&sha256(status.as_bytes())));
}
