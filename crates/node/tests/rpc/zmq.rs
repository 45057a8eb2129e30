//! `-zmqpub...`: what a subscriber of a node receives while its chain changes, message by message. Bitcoin Knots, a
//! fork of Core that is built with ZMQ, goes through the same story if it is installed; the judge is built without.

use crate::alerts::hex;
use crate::programs::{Program, WATCH, python};
use crate::server::Server;
use crate::subscriber::{Message, Subscriber};
use lydian_chains::presets::maker::{FreeCoin, Maker, free_tx, output, seal};
use lydian_oracle::{Scratch, build, free_port};
use lydian_primitives::OutPoint;
use lydian_primitives::build::{MutBlock, MutTx};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const TOPICS: [&str; 5] = ["hashblock", "hashtx", "rawblock", "rawtx", "sequence"];

/// Blocks of the chain before the story; some of them announce themselves until the subscriber is noticed.
const BEFORE: usize = 130;

/// The blocks of the story by name: `a1` to `a3` and `b1` to `b5` on the same block, `c5` and `d5` on `b4`; `d6` on
/// `d5` is invalid, `d7` is on it.
struct Blocks {
    before: Vec<MutBlock>,
    named: BTreeMap<&'static str, MutBlock>,
}

impl Blocks {
    fn new() -> Blocks {
        let mut maker = Maker::new();
        let mut before = Vec::new();
        for _ in 0..BEFORE {
            let block = maker.block(Vec::new());
            maker.advance(&block);
            before.push(block);
        }
        let mut blocks = Blocks { before, named: BTreeMap::new() };
        let fork = maker.clone();
        blocks.branch(&mut fork.clone(), &["a1", "a2", "a3"]);
        let mut of_b = fork;
        blocks.branch(&mut of_b, &["b1", "b2", "b3", "b4"]);
        blocks.branch(&mut of_b.clone(), &["b5"]);
        blocks.branch(&mut of_b.clone(), &["c5"]);
        blocks.branch(&mut of_b, &["d5", "d6", "d7"]);
        blocks
    }

    fn branch(&mut self, maker: &mut Maker, names: &[&'static str]) {
        for name in names {
            // A transaction beside the coinbase, of which no mempool takes the script; its value is the block's name.
            let coin = maker.spendable()[0];
            let tag = i64::from(name.as_bytes()[0]) * 10 + i64::from(name.as_bytes()[1]);
            let mut block = maker.block(vec![free_tx(&[coin], vec![output(coin.value - tag, &[0x51])])]);
            if *name == "d6" {
                block.txs[0].outputs[0].value.0 += 100_000_000_000;
                seal(&mut block);
            }
            maker.advance(&block);
            self.named.insert(name, block);
        }
    }

    fn hash(&self, name: &str) -> String {
        self.named[name].header.hash().to_string()
    }
}

/// One step: a call, and the changes of the chain that it causes: `+` connects, `-` disconnects, `!` marks a new tip.
type Step = (&'static str, &'static str, &'static str);

const STORY: &[Step] = &[
    ("submitblock", "a1", "+a1!"),
    ("submitblock", "a2", "+a2!"),
    ("submitblock", "a3", "+a3!"),
    ("submitblock", "b1", ""),
    ("submitblock", "b2", ""),
    ("submitblock", "b3", ""),
    ("submitblock", "b4", "-a3 -a2 -a1 +b1 +b2 +b3 +b4!"),
    ("submitblock", "b5", "+b5!"),
    ("invalidateblock", "b3", "-b5 -b4 -b3 -b2 -b1 +a1 +a2 +a3!"),
    ("reconsiderblock", "b3", "-a3 -a2 -a1 +b1 +b2 +b3 +b4! +b5!"),
    ("submitblock", "c5", ""),
    ("preciousblock", "c5", "-b5 +c5!"),
    ("invalidateblock", "c5", "-c5 +b5!"),
    ("invalidateblock", "b5", "-b5"),
    ("reconsiderblock", "b5", "+b5!"),
    // It is still the preferred one of two with the same work.
    ("reconsiderblock", "c5", "-b5 +c5!"),
    ("submitheader", "d5", ""),
    ("submitheader", "d6", ""),
    ("submitheader", "d7", ""),
    ("submitblock", "d7", ""),
    ("submitblock", "d6", ""),
    // The branch is better until its second block turns out to be invalid.
    ("submitblock", "d5", "-c5 +d5 -d5 +c5"),
];

fn display(mut hash: [u8; 32]) -> Vec<u8> {
    hash.reverse();
    hash.to_vec()
}

/// The messages of the changes in `story`, without numbers.
fn messages(blocks: &Blocks, story: &str, announces_tips: bool) -> Vec<(&'static str, Vec<u8>)> {
    let mut found = Vec::new();
    for word in story.split_whitespace() {
        let (label, name) = (if word.starts_with('+') { b'C' } else { b'D' }, word[1..].trim_end_matches('!'));
        let block = &blocks.named[name];
        for tx in &block.txs {
            found.push(("hashtx", display(tx.txid().0)));
            found.push(("rawtx", tx.encode()));
        }
        let hash = display(block.header.hash().0);
        found.push(("sequence", [&hash[..], &[label]].concat()));
        if word.ends_with('!') && announces_tips {
            found.push(("hashblock", hash));
            found.push(("rawblock", block.encode()));
        }
    }
    found
}

fn submit(server: &Server, block: &MutBlock) {
    assert_eq!(server.result("submitblock", &json!([hex(&block.encode())]).to_string()), Value::Null);
}

/// Goes through the story and compares every message with what it should be. Returns them. `before` is called after
/// each of the last blocks before the story.
fn live_through_it(server: &Server, address: &str, announces_tips: bool, mut before: impl FnMut()) -> Vec<Message> {
    let blocks = Blocks::new();
    let mut subscriber = Subscriber::connect(address, &[""]);
    let mut left = blocks.before.iter();
    subscriber.wait_until_subscribed(|| submit(server, left.next().unwrap()));
    left.for_each(|block| {
        submit(server, block);
        before();
    });
    let (mut all, mut numbers) = (Vec::new(), BTreeMap::<String, u32>::new());
    // What comes before the story ends with the last message of the last block.
    let last = blocks.before.last().unwrap();
    let last = match announces_tips {
        true => ("rawblock", last.encode()),
        false => ("sequence", [&display(last.header.hash().0)[..], b"C"].concat()),
    };
    loop {
        let message = subscriber.next();
        let is_last = (message.topic.as_str(), &message.body) == (last.0, &last.1);
        numbers.insert(message.topic, message.number);
        if is_last {
            break;
        }
    }
    for (method, name, changes) in STORY {
        let params = match *method {
            "submitblock" => json!([hex(&blocks.named[name].encode())]),
            "submitheader" => json!([hex(&blocks.named[name].encode()[..80])]),
            _ => json!([blocks.hash(name)]),
        };
        server.call(method, &params.to_string());
        let expected = messages(&blocks, changes, announces_tips);
        let mut received: Vec<Message> = (0..expected.len()).map(|_| subscriber.next()).collect();
        received.extend(subscriber.next_within(Duration::from_millis(100)));
        for message in &received {
            let number =
                numbers.entry(message.topic.clone()).and_modify(|number| *number += 1).or_insert(message.number);
            assert_eq!(*number, message.number, "{method} {name}: {}", message.topic);
        }
        all.extend(received.iter().cloned());
        let received: Vec<(&str, Vec<u8>)> =
            received.iter().map(|message| (&message.topic[..], message.body.clone())).collect();
        assert!(
            received == expected,
            "{method} {name}: {:?}",
            received.iter().map(|(topic, body)| (topic, hex(body))).collect::<Vec<_>>()
        );
    }
    all
}

/// Options for all topics at one address. The blocks are old: `-maxtipage` decides whether the node is in initial block
/// download, in which no tip is announced.
fn options(address: &str, announces_tips: bool) -> Vec<String> {
    let mut options: Vec<String> = TOPICS.map(|topic| format!("-zmqpub{topic}={address}")).to_vec();
    options.extend(TOPICS.map(|topic| format!("-zmqpub{topic}hwm=0")));
    options.extend(announces_tips.then(|| "-maxtipage=2000000000".to_owned()));
    options
}

fn address() -> String {
    format!("tcp://127.0.0.1:{}", free_port().unwrap())
}

#[test]
fn every_change_of_the_chain_is_published_in_order() {
    for announces_tips in [true, false] {
        let address = address();
        let options = options(&address, announces_tips);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        live_through_it(&Server::lydian("zmq", &options), &address, announces_tips, || ());
    }
}

/// `pyzmq`, that is ZeroMQ's own library, which nearly every subscriber uses, receives the same messages.
#[test]
fn zeromqs_own_library_receives_the_same() {
    let Some(python) = python("zeromqs_own_library_receives_the_same") else { return };
    let address = address();
    let options = options(&address, true);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::lydian("zmq-library", &options);
    let library = Program::start(Command::new(python).args(["-c", WATCH, "zmq", &address]));
    let mut first = None;
    let expected = live_through_it(&server, &address, true, || {
        // Python may start slowly; it is waited for at each block, and not any more once it has begun.
        first = first.take().or_else(|| library.line_within(Duration::from_millis(500)));
    });
    assert!(first.is_some(), "the library subscribes before the story");
    let mut received: Vec<Message> = Vec::new();
    while received.last() != expected.last() {
        let line = library.line_within(Duration::from_secs(60)).unwrap();
        let (topic, body, number): (String, String, u32) = serde_json::from_str(&line).unwrap();
        received.push(Message { topic, body: lydian_primitives::hex(&body).unwrap(), number });
    }
    assert!(received.ends_with(&expected), "{} messages are not the {} expected", received.len(), expected.len());
}

/// A program that starts the package of Knots with its own libraries.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn knots(folder: &Scratch) -> Option<PathBuf> {
    let root = build::cache_folder().parent()?.join("knots/root/usr");
    let (libraries, program) = (root.join("lib/x86_64-linux-gnu"), root.join("bin/bitcoind"));
    let loader = libraries.join("ld-linux-x86-64.so.2");
    if !program.exists() {
        eprintln!("not run: Bitcoin Knots is not installed; `lydian-lab peers install knots` installs it");
        return None;
    }
    fs::create_dir_all(folder.path()).unwrap();
    let script = folder.path().join("knots");
    let (loader, libraries, program) = (loader.display(), libraries.display(), program.display());
    fs::write(&script, format!("#!/bin/sh\nexec {loader} --library-path {libraries} {program} \"$@\"\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    Some(script)
}

#[test]
fn knots_publishes_the_same_in_the_same_order() {
    let folder = Scratch::new("zmq-knots");
    let Some(program) = knots(&folder) else { return };
    for announces_tips in [true, false] {
        let address = address();
        let options = options(&address, announces_tips);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        live_through_it(&Server::core(&program, "zmq-knots", &options), &address, announces_tips, || ());
    }
}

/// A message about the mempool: the topic, the transaction, and for `sequence` the label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Notice {
    Tx(&'static str, &'static str),
    Sequence(char, &'static str),
}

/// The messages of a change of the mempool or the chain: `+t` enters the mempool, `-t` leaves it, `Ctu` is a block that
/// joins the chain with the transactions t and u, `Dtu` one that leaves it.
fn notices(word: &'static str) -> Vec<Notice> {
    let published = |name| [Notice::Tx("hashtx", name), Notice::Tx("rawtx", name)];
    let (label, names) = word.split_at(1);
    match label {
        "+" => [&published(names)[..], &[Notice::Sequence('A', names)]].concat(),
        "-" => vec![Notice::Sequence('R', names)],
        _ => {
            let of_block = (0..names.len()).flat_map(|at| published(&names[at..=at]));
            of_block.chain([Notice::Sequence(if label == "C" { 'C' } else { 'D' }, "block")]).collect()
        }
    }
}

/// Sends transactions, replaces one, and lets blocks with some of them and with conflicting ones join and leave.
/// Compares the messages, their order, and the numbers of the mempool's changes.
fn change_the_mempool(server: &Server, address: &str) {
    let mut maker = Maker::new();
    let mut subscriber = Subscriber::connect(address, &["hashtx", "rawtx", "sequence"]);
    let mut next = || {
        let block = maker.block(Vec::new());
        maker.advance(&block);
        submit(server, &block);
    };
    subscriber.wait_until_subscribed(&mut next);
    (0..BEFORE).for_each(|_| next());
    // Up to the last message of the last block.
    let last = [&display(maker.tip.0)[..], b"C"].concat();
    while subscriber.next().body != last {}
    let coins = maker.spendable();
    let pay = |coin: usize, fee: i64| {
        let outputs = vec![output(coins[coin].value - fee - 1_000, &[0x51]), output(1_000, &[0x51])];
        free_tx(&[coins[coin]], outputs)
    };
    // `a` and its child `b`, `r` in place of `a`, `x` in conflict with `r`, and `t` beside them.
    let (a, r, x, t) = (pay(0, 1_000), pay(0, 5_000), pay(0, 2_000), pay(1, 1_000));
    let b = free_tx(
        &[FreeCoin { outpoint: OutPoint { txid: a.txid(), vout: 0 }, value: a.outputs[0].value.0, ..coins[0] }],
        vec![output(a.outputs[0].value.0 - 2_000, &[0x51]), output(1_000, &[0x51])],
    );
    let block = maker.block(vec![x.clone(), t.clone()]);
    let named = BTreeMap::from([("a", &a), ("b", &b), ("r", &r), ("x", &x), ("t", &t), ("c", &block.txs[0])]);
    let send = |tx: &MutTx| drop(server.result("sendrawtransaction", &json!([hex(&tx.encode()), 0]).to_string()));
    let hash = json!([block.header.hash().to_string()]).to_string();
    let steps: [(&dyn Fn(), &[&'static str]); 7] = [
        (&|| send(&a), &["+a"]),
        (&|| send(&b), &["+b"]),
        (&|| send(&t), &["+t"]),
        (&|| send(&r), &["-b", "-a", "+r"]),
        (&|| submit(server, &block), &["-r", "Ccxt"]),
        (&|| drop(server.result("invalidateblock", &hash)), &["Dcxt", "+x", "+t"]),
        (&|| drop(server.result("reconsiderblock", &hash)), &["Ccxt"]),
    ];
    let (mut last, label_of) = (None, |body: &[u8]| char::from(body[32]));
    for (number, (act, words)) in steps.into_iter().enumerate() {
        act();
        let expected: Vec<Notice> = words.iter().flat_map(|word| notices(word)).collect();
        let name =
            |id: &[u8]| named.iter().find(|(_, tx)| display(tx.txid().0) == id).map_or("block", |(name, _)| name);
        let mut messages: Vec<Message> = (0..expected.len()).map(|_| subscriber.next()).collect();
        messages.extend(subscriber.next_within(Duration::from_millis(100)));
        let mut received = Vec::new();
        for Message { topic, body, .. } in &messages {
            received.push(match topic.as_str() {
                "hashtx" => Notice::Tx("hashtx", name(body)),
                "rawtx" => Notice::Tx("rawtx", named.iter().find(|(_, tx)| tx.encode() == *body).unwrap().0),
                _ => Notice::Sequence(label_of(body), name(&body[..32])),
            });
            if topic == "sequence" && ['A', 'R'].contains(&label_of(body)) {
                let sequence = u64::from_le_bytes(body[33..41].try_into().unwrap());
                // Transactions that leave with a block are counted too, without a message.
                assert!(last.is_none_or(|last| sequence > last), "step {number}: {sequence} after {last:?}");
                last = Some(sequence);
            }
        }
        // Which of the replaced transactions leaves first depends on the version of Core.
        let sorted = |notices: &[Notice]| {
            let mut notices = notices.to_vec();
            if number == 3 {
                notices[..2].sort_by_key(|notice| format!("{notice:?}"));
            }
            notices
        };
        assert_eq!(sorted(&received), sorted(&expected), "step {number}");
    }
    let snapshot = server.result("getrawmempool", "[false, true]");
    assert_eq!(snapshot["mempool_sequence"].as_u64(), last.map(|last| last + 3), "two left with the block");
}

fn options_for_the_mempool(address: &str) -> Vec<String> {
    let mut options = options(address, true);
    options.push("-acceptnonstdtxn=1".to_owned());
    options
}

#[test]
fn every_change_of_the_mempool_is_published_in_order() {
    let address = address();
    let options = options_for_the_mempool(&address);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    change_the_mempool(&Server::lydian("zmq-mempool", &options), &address);
}

#[test]
fn knots_publishes_the_same_changes_of_the_mempool() {
    let folder = Scratch::new("zmq-mempool-knots");
    let Some(program) = knots(&folder) else { return };
    let address = address();
    let options = options_for_the_mempool(&address);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    change_the_mempool(&Server::core(&program, "zmq-mempool-knots", &options), &address);
}

/// The block that a message names is the tip for RPC too: programs ask at once.
#[test]
fn a_published_block_can_be_asked_for() {
    let address = address();
    let options = options(&address, true);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::lydian("zmq-ask", &options);
    let mut subscriber = Subscriber::connect(&address, &["hashblock"]);
    let generate = |count: u32| server.result("generatetodescriptor", &format!("[{count},\"raw(51)\"]"));
    subscriber.wait_until_subscribed(|| drop(generate(1)));
    // A message of these blocks may come late.
    let made = generate(1);
    while made[0] != hex(&subscriber.next().body) {}
    for _ in 0..50 {
        generate(1);
        let hash = hex(&subscriber.next().body);
        assert_eq!(server.result("getbestblockhash", "[]"), json!(hash));
        assert_eq!(server.result("getblockheader", &format!("[\"{hash}\"]"))["confirmations"], json!(1));
    }
}

#[test]
fn getzmqnotifications_lists_the_notifiers_in_cores_order() {
    let folder = Scratch::new("zmq-list");
    fs::create_dir_all(folder.path()).unwrap();
    let (tcp, path) = (address(), folder.path().join("socket").display().to_string());
    let (unix, sequence) = (format!("-zmqpubhashblock=unix:{path}"), format!("-zmqpubsequence={tcp}"));
    let (raw, hash) = (format!("-zmqpubrawtx={tcp}"), format!("-zmqpubhashblock={tcp}"));
    let server =
        Server::lydian("zmq-list", &[&sequence, &raw, &unix, &hash, "-zmqpubrawtxhwm=7", "-zmqpubhashblockhwm=0"]);
    let expected = json!([
        {"type": "pubhashblock", "address": format!("ipc://{path}"), "hwm": 0},
        {"type": "pubhashblock", "address": tcp, "hwm": 0},
        {"type": "pubrawtx", "address": tcp, "hwm": 7},
        {"type": "pubsequence", "address": tcp, "hwm": 1000},
    ]);
    assert_eq!(server.result("getzmqnotifications", "[]"), expected);
    assert_eq!(Server::lydian("zmq-none", &[]).result("getzmqnotifications", "[]"), json!([]));
}

#[test]
fn an_address_in_use_ends_the_start() {
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", held.local_addr().unwrap());
    let folder = Scratch::new("zmq-held");
    fs::create_dir_all(folder.path()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_lydian"))
        .arg(format!("-datadir={}", folder.path().display()))
        .args(["-regtest", "-noconnect", "-listen=0", "-server=0", &format!("-zmqpubhashtx={address}")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, format!("Error: Unable to bind to {address} for -zmqpubhashtx: Address already in use\n"));
    assert_eq!(output.status.code(), Some(1));
}
