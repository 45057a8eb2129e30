//! `getblocktemplate` beside Core's: requests of every kind, proposals of arbitrary bytes, and random mempools, which
//! both programs have. Core accepts the blocks of our templates, which pay as much as its own.

use crate::chain::Pair;
use crate::compare::Comparison;
use crate::http::read;
use crate::mempool::{Draft, Story, descriptor};
use crate::server::Server;
use lydian_oracle::{build, or_skip};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Header, OutPoint, Txid, hex, to_hex, write_compact_size};
use lydian_stdx::SplitMix64;
use maker::{Maker, Output};
use serde_json::{Value, json};
use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// What the maker of transactions needs.
mod world {
    pub(crate) fn script() -> Vec<u8> {
        [&[0x00, 0x20][..], &lydian_hash::sha256(&[0x51])].concat()
    }

    pub(crate) fn witness() -> Vec<Vec<u8>> {
        vec![vec![0x51]]
    }
}

#[allow(dead_code, reason = "the tests of the mempool make whole batches")]
#[path = "../../../mempool/tests/all/pool/maker.rs"]
mod maker;

pub(crate) const NOW: u32 = 1_750_000_000;

fn rules() -> Value {
    json!([{"rules": ["segwit"]}])
}

/// A block whose transactions are given as bytes.
#[derive(Clone)]
pub(crate) struct Assembled {
    pub(crate) header: Header,
    pub(crate) coinbase: MutTx,
    /// Txid and bytes of the others.
    txs: Vec<([u8; 32], Vec<u8>)>,
}

impl Assembled {
    /// The block of a template, paying to `script`.
    pub(crate) fn of(template: &Value, script: Vec<u8>) -> Assembled {
        let number = |name: &str| template[name].as_i64().unwrap();
        let text = |name: &str| template[name].as_str().unwrap();
        let height = number("height");
        let mut script_sig = lydian_script::ScriptBuilder::new().push_int(height);
        if height <= 16 {
            script_sig = script_sig.push_int(0);
        }
        let commitment = hex(text("default_witness_commitment")).unwrap();
        let coinbase = MutTx {
            version: 2,
            inputs: vec![MutInput {
                prevout: OutPoint::NULL,
                script_sig: script_sig.into_bytes(),
                sequence: u32::MAX - 1,
                witness: vec![vec![0; 32]],
            }],
            outputs: vec![
                MutOutput { value: Amount(number("coinbasevalue")), script_pubkey: script },
                MutOutput { value: Amount(0), script_pubkey: commitment },
            ],
            lock_time: u32::try_from(height - 1).unwrap(),
        };
        let txs = template["transactions"].as_array().unwrap().iter().map(|tx| {
            let txid: Txid = tx["txid"].as_str().unwrap().parse().unwrap();
            (txid.0, hex(tx["data"].as_str().unwrap()).unwrap())
        });
        let header = Header {
            version: i32::try_from(number("version")).unwrap(),
            prev_block: text("previousblockhash").parse().unwrap(),
            merkle_root: [0; 32],
            time: u32::try_from(number("curtime")).unwrap(),
            bits: u32::from_str_radix(text("bits"), 16).unwrap(),
            nonce: 0,
        };
        let mut block = Assembled { header, coinbase, txs: txs.collect() };
        block.seal();
        block
    }

    pub(crate) fn merkle_root(&self) -> [u8; 32] {
        let mut leaves = vec![self.coinbase.txid().0];
        leaves.extend(self.txs.iter().map(|(txid, _)| *txid));
        lydian_hash::merkle_root(&mut leaves).0
    }

    /// Has the header commit to the transactions.
    pub(crate) fn seal(&mut self) {
        self.header.merkle_root = self.merkle_root();
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = self.header.to_bytes().to_vec();
        write_compact_size(&mut out, self.txs.len() + 1);
        out.extend(self.coinbase.encode());
        self.txs.iter().for_each(|(_, bytes)| out.extend(bytes));
        out
    }
}

fn proposal(bytes: &[u8]) -> Value {
    json!([{"mode": "proposal", "data": to_hex(bytes)}])
}

/// The result of a proposal: both programs must have the same.
fn verdict(pair: &Pair, bytes: &[u8]) -> Value {
    let params = proposal(bytes).to_string();
    let (ours, cores) = (pair.lydian.call("getblocktemplate", &params), pair.core.call("getblocktemplate", &params));
    assert_eq!(ours.body, cores.body, "proposal {}", to_hex(bytes));
    serde_json::from_str::<Value>(&ours.body).unwrap()["result"].clone()
}

/// Requests of every kind, with and without transactions. The number in the id of a long poll counts changes of the
/// mempool, which Core does too.
#[test]
fn requests_for_templates() {
    let options = ["-vbparams=testdummy:0:9999999999"];
    let Some(mut story) = Story::begin("templates", &options) else { return };
    let ask = |story: &Story, params: &Value| story.pair.ask_about_help("getblocktemplate", &params.to_string());
    for params in [
        json!([]),
        json!([null]),
        json!(["x"]),
        json!([{}, 1]),
        json!([{}]),
        json!([{"rules": []}]),
        json!([{"rules": "segwit"}]),
        json!([{"rules": ["csv"]}]),
        json!([{"rules": [1, "segwit"]}]),
        json!([{"rules": ["segwit", null]}]),
        json!([{"mode": 5, "rules": ["segwit"]}]),
        json!([{"mode": "x", "rules": ["segwit"]}]),
        json!([{"mode": "x", "rules": [1]}]),
        json!([{"mode": "proposal"}]),
        json!([{"mode": "proposal", "data": 5}]),
        json!([{"mode": "proposal", "data": ""}]),
        json!([{"mode": "proposal", "data": "zz"}]),
        json!([{"mode": "proposal", "data": "000"}]),
        json!([{"mode": "proposal", "data": "00".repeat(80), "rules": [1]}]),
        json!([{"mode": "proposal", "data": "00".repeat(81)}]),
        json!([{"longpollid": "00", "rules": ["segwit"]}]),
        json!([{"longpollid": "", "rules": ["segwit"]}]),
        json!([{"longpollid": "x".repeat(64), "rules": ["segwit"]}]),
        // Not the tip: answered at once.
        json!([{"longpollid": "0".repeat(64), "rules": ["segwit"]}]),
        json!([{"longpollid": "0".repeat(64)}]),
        json!([{"longpollid": format!("{}xyz", "1".repeat(64)), "rules": []}]),
    ] {
        ask(&story, &params);
    }
    let good = [
        json!([{"rules": ["segwit"]}]),
        json!([{"mode": null, "rules": ["segwit", "unknown", "!other", "testdummy"]}]),
        json!([{"mode": "template", "capabilities": ["proposal", "longpoll", 7], "rules": ["segwit", "signet"]}]),
        json!([{"longpollid": null, "rules": ["segwit"], "more": {"x": 1}}]),
        json!({"template_request": {"rules": ["segwit"]}}),
    ];
    let look = |story: &Story| good.iter().for_each(|params| ask(story, params));
    look(&story);
    let parent = Draft::spending(&[story.coin()]).paying(3, 20_000);
    let child = Draft::spending(&[parent.output(2), parent.output(0)]).paying(1, 90_000);
    story.send(&parent);
    // The template is 0 seconds old: neither makes a new one.
    look(&story);
    // From 4 seconds on, ours may be made ahead of Core's.
    story.ask("setmocktime", &json!([NOW + 3]));
    look(&story);
    story.ask("setmocktime", &json!([NOW + 6]));
    look(&story);
    story.send(&child);
    story.ask("setmocktime", &json!([NOW + 20]));
    look(&story);
    story.ask("getmininginfo", &json!([]));
    // The deployment is started, locked in and active.
    let mut now = NOW + 20;
    for _ in 0..16 {
        now += 600;
        story.ask("setmocktime", &json!([now]));
        story.ask("generatetodescriptor", &json!([33, descriptor()]));
        look(&story);
    }
    let rules = story.pair.lydian.result("getblocktemplate", &good[0].to_string())["rules"].clone();
    assert_eq!(rules, json!(["csv", "!segwit", "taproot", "testdummy"]));
    // The clock before the tip.
    story.ask("setmocktime", &json!([NOW]));
    look(&story);
    story.ask("invalidateblock", &json!([story.pair.core.result("getbestblockhash", "[]")]));
    look(&story);
    story.pair.comparison.finish();
}

/// The error of a request for a template: code and message, with the name of the program as Core's.
fn refusal(server: &Server, request: &Value) -> Value {
    let answer = server.call("getblocktemplate", &request.to_string()).body.replace("Lydian is", "Bitcoin Core is");
    serde_json::from_str::<Value>(&answer).unwrap()["error"].clone()
}

/// What both programs on main answer to requests of every kind, where `expected` refuses the good ones.
fn refused_on_main(pair: &Pair, expected: &Value) {
    let good = [
        rules(),
        json!([{"rules": []}]),
        json!([{"mode": "template", "rules": ["segwit"], "longpollid": "zz"}]),
        json!([{"rules": ["segwit"], "longpollid": "0".repeat(64)}]),
    ];
    for request in good {
        for server in [&pair.lydian, &pair.core] {
            assert_eq!(refusal(server, &request), *expected, "{request}");
        }
    }
    // These are looked at before.
    for request in [json!([{"mode": "x"}]), json!([{"mode": 1}]), json!([{"rules": [1]}]), json!([5])] {
        let [ours, cores] = [&pair.lydian, &pair.core].map(|server| refusal(server, &request));
        assert!(ours == cores && ours != *expected, "{request}: {ours} {cores}");
    }
    // Proposals need neither.
    let genesis = pair.core.result("getblock", &json!([pair.core.result("getblockhash", "[0]"), 0]).to_string());
    assert_eq!(verdict(pair, &hex(genesis.as_str().unwrap()).unwrap()), "duplicate-inconclusive");
}

/// On a chain that is not for tests, a template needs a peer and a tip that is up to date. Each program names itself.
#[test]
fn templates_of_main() {
    let Some(built) = or_skip("templates-main", build::locate()) else { return };
    let options = ["-dnsseed=0", "-fixedseeds=0"];
    let mut pair = Pair {
        lydian: Server::lydian_on("main", "templates-main", &options),
        core: Server::core_on("main", &built.bitcoind, "templates-main", &options),
        built,
        comparison: Comparison::default(),
    };
    let not_connected = json!({"code": -9, "message": "Bitcoin Core is not connected!"});
    let waits = json!({"code": -10, "message": "Bitcoin Core is in initial sync and waiting for blocks..."});
    refused_on_main(&pair, &not_connected);
    // The genesis block is enough, and recent.
    let ready = ["-minimumchainwork=0", "-maxtipage=2000000000"];
    for (more, expected) in [(&[][..], Some(&waits)), (&ready[..], None)] {
        let port = lydian_oracle::free_port().unwrap();
        let bind = format!("-bind=127.0.0.1:{port}");
        pair.core.restart(&[&options[..], &["-listen=1", &bind], more].concat());
        pair.lydian.restart(&[&options[..], more].concat());
        pair.lydian.result("addnode", &json!([format!("127.0.0.1:{port}"), "onetry"]).to_string());
        let has_peer = |server: &Server| server.result("getconnectioncount", "[]") == 1;
        crate::page_client::wait("the programs are connected", || {
            (has_peer(&pair.lydian) && has_peer(&pair.core)).then_some(())
        });
        match expected {
            Some(expected) => refused_on_main(&pair, expected),
            None => {
                let [ours, cores] = [&pair.lydian, &pair.core].map(|server| {
                    let mut template = server.result("getblocktemplate", &rules().to_string());
                    // The clock.
                    template.as_object_mut().unwrap().remove("curtime").unwrap();
                    template
                });
                assert_eq!(ours, cores);
                assert_eq!(ours["height"], 1);
            }
        }
    }
    // The last peer leaves.
    pair.core.restart(&[&options[..], &ready].concat());
    crate::page_client::wait("the peer has left", || {
        (pair.lydian.result("getconnectioncount", "[]") == 0).then_some(())
    });
    refused_on_main(&pair, &not_connected);
}

/// Before segwit is active, limits and signature operations are those without witnesses.
#[test]
fn templates_before_segwit() {
    let options = ["-testactivationheight=segwit@300", "-blockversion=7"];
    let Some(mut story) = Story::begin("templates-before-segwit", &options) else { return };
    story.ask("getblocktemplate", &rules());
    let to_script = [&[0xa9, 0x14][..], &lydian_hash::hash160(&[0x51]), &[0x87]].concat();
    story.ask("generatetodescriptor", &json!([1, format!("raw({})", to_hex(&to_script))]));
    let hash = story.pair.core.result("getbestblockhash", "[]");
    let paid = story.pair.core.result("getblock", &json!([hash, 2]).to_string())["tx"][0].clone();
    story.ask("generatetodescriptor", &json!([100, descriptor()]));
    let prevout = OutPoint { txid: paid["txid"].as_str().unwrap().parse().unwrap(), vout: 0 };
    let input = MutInput { prevout, script_sig: vec![1, 0x51], sequence: u32::MAX, witness: Vec::new() };
    let to_key = [&[0x76, 0xa9, 0x14][..], &[7; 20], &[0x88, 0xac]].concat();
    let output = MutOutput { value: Amount(4_999_900_000), script_pubkey: to_key };
    let tx = MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
    story.ask("sendrawtransaction", &json!([to_hex(&tx.encode()), 0]));
    story.ask("setmocktime", &json!([NOW + 6]));
    story.ask("getblocktemplate", &rules());
    let template = story.pair.lydian.result("getblocktemplate", &rules().to_string());
    assert_eq!((&template["transactions"][0]["sigops"], &template["weightlimit"]), (&json!(1), &Value::Null));
    // A witness makes the block invalid.
    let witness = Draft::spending(&[story.coin()]).paying(3, 20_000);
    story.ask("sendrawtransaction", &json!([witness.hex()]));
    story.ask("setmocktime", &json!([NOW + 12]));
    story.ask("getblocktemplate", &rules());
    story.ask("generatetodescriptor", &json!([1, descriptor()]));
    story.ask("prioritisetransaction", &json!([witness.txid().to_string(), 0, -100_000]));
    story.ask("generatetodescriptor", &json!([100, descriptor()]));
    story.ask("prioritisetransaction", &json!([witness.txid().to_string(), 0, 100_000]));
    story.ask("getblocktemplate", &rules());
    story.pair.comparison.finish();
}

/// The lines about assembled blocks in the log of a program, without the time.
fn assembled(server: &Server) -> Vec<String> {
    let log = std::fs::read_to_string(server.folder.join("regtest/debug.log")).unwrap();
    let lines = log.lines().filter(|line| line.contains("CreateNewBlock(): block weight"));
    lines.map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

/// `generate*` checks a block before it is mined, as Core does: of an invalid one nothing is stored. The weight in the
/// log is that of the block, with the script that its coinbase pays.
#[test]
fn blocks_are_checked_before_they_are_mined() {
    let Some(mut story) = Story::begin("templates-checked", &[]) else { return };
    // A script with too many signature operations, one that is too large, and large ones.
    for script in ["ac".repeat(20_001), "51".repeat(1_000_000), "ac".repeat(20_000), "51".repeat(9_000)] {
        story.ask("generatetodescriptor", &json!([1, format!("raw({script})")]));
        story.ask("getmininginfo", &json!([]));
    }
    let coin = story.coin();
    let good = Draft::spending(&[coin]).paying(2, 20_000);
    let child = Draft::spending(&[good.output(0)]).paying(1, 5_000);
    let missing = Draft::spending(&[(OutPoint { txid: Txid([7; 32]), vout: 0 }, 50_000_000)]).paying(1, 1_000);
    let greedy = Draft::spending(&[(coin.0, coin.1 + 1)]).paying(1, 0);
    let hash = story.pair.core.result("getblockhash", "[125]");
    let young = story.pair.core.result("getblock", &json!([hash]).to_string())["tx"][0].clone();
    let young = OutPoint { txid: young.as_str().unwrap().parse().unwrap(), vout: 0 };
    let young = Draft::spending(&[(young, 5_000_000_000)]).paying(1, 1_000);
    let with_end = |draft: &Draft, end: &str| {
        let hex = draft.hex();
        format!("{}{end}", &hex[..hex.len() - end.len()])
    };
    let (wrong_script, not_final) = (with_end(&good, "5200000000"), with_end(&good, "51ffffff7f"));
    let bad = [
        vec![missing.hex()],
        vec![greedy.hex()],
        vec![young.hex()],
        vec![wrong_script],
        vec![not_final],
        vec![child.hex(), good.hex()],
        // With the merkle root of a block that has it once.
        vec![good.hex(), child.hex(), child.hex()],
        vec![good.hex(), good.hex()],
    ];
    for txs in &bad {
        for is_submitted in [false, true] {
            story.ask("generateblock", &json!([descriptor(), txs, is_submitted]));
        }
    }
    story.ask("generateblock", &json!([format!("raw({})", "ac".repeat(20_001)), [missing.hex()]]));
    for method in ["getblockcount", "getbestblockhash", "getchaintips", "getmininginfo"] {
        story.ask(method, &json!([]));
    }
    let answer = story.pair.lydian.call("generateblock", &json!([descriptor(), bad[0]]).to_string());
    let words = "\"code\":-25,\"message\":\"TestBlockValidity failed: bad-txns-inputs-missingorspent";
    assert!(answer.body.contains(words), "{}", answer.body);
    story.pair.core.call("generateblock", &json!([descriptor(), bad[0]]).to_string());
    story.ask("generateblock", &json!([descriptor(), [good.hex(), child.hex()], false]));
    story.ask("generateblock", &json!([descriptor(), [good.hex(), child.hex()]]));
    story.ask("getchaintips", &json!([]));
    story.ask("getblocktemplate", &rules());
    let [ours, cores] = [&story.pair.lydian, &story.pair.core].map(assembled);
    assert_eq!(ours, cores);
    assert!(ours.len() > 150, "{}", ours.len());
    story.pair.comparison.finish();
}

/// Templates and blocks with a version below that of the rules.
#[test]
fn a_version_that_is_too_low_makes_no_block() {
    let Some(pair) = Pair::start("templates-version", &["-blockversion=1"]) else { return };
    pair.ask("setmocktime", &json!([NOW]).to_string());
    for (method, params) in [
        ("getmininginfo", json!([])),
        ("getblocktemplate", rules()),
        ("getmininginfo", json!([])),
        ("getblocktemplate", rules()),
        ("getblocktemplate", json!([{"rules": ["segwit"], "longpollid": "0".repeat(64)}])),
        ("generatetodescriptor", json!([1, descriptor()])),
        ("generateblock", json!([descriptor(), []])),
        ("generateblock", json!([descriptor(), [], false])),
        ("generatetodescriptor", json!([1, format!("raw({})", "ac".repeat(20_001))])),
        ("getblockcount", json!([])),
        ("getmininginfo", json!([])),
    ] {
        pair.ask(method, &params.to_string());
    }
    let answer = pair.lydian.call("getblocktemplate", &rules().to_string()).body;
    let words = "{\"code\":-1,\"message\":\"TestBlockValidity failed: bad-version(0x00000001)";
    assert!(answer.contains(words), "{answer}");
    pair.comparison.finish();
}

/// A block that was changed somewhere, with or without a header that commits to it.
fn changed(block: &Assembled, random: &mut SplitMix64) -> Vec<u8> {
    let mut block = block.clone();
    let mut is_sealed = random.below(4) > 0;
    match random.below(16) {
        0 => block.header.time += [7_201, 1, 100_000_000][random.below(3)],
        1 => block.header.time = NOW - 100_000,
        2 => block.header.bits = [0x1d00_ffff, 0x207f_fffe, 0][random.below(3)],
        3 => block.header.version = [1, 2, 3, 4, -1][random.below(5)],
        4 => block.header.prev_block = BlockHash([7; 32]),
        5 => block.coinbase.outputs[0].value.0 += [1, -1, 1 << 60][random.below(3)],
        6 => block.coinbase.inputs[0].script_sig = vec![0x51; random.below(103)],
        7 => block.coinbase.inputs[0].witness = vec![vec![0; 31]; random.below(3)],
        8 => drop(block.coinbase.outputs.pop()),
        9 => block.coinbase.outputs[1].script_pubkey[10] ^= 1,
        10 if !block.txs.is_empty() => drop(block.txs.remove(random.below(block.txs.len()))),
        11 => block.txs.reverse(),
        12 if !block.txs.is_empty() => {
            let tx = block.txs[random.below(block.txs.len())].clone();
            block.txs.push(tx);
        }
        13 => block.coinbase.outputs.push(MutOutput { value: Amount(0), script_pubkey: vec![0xac; 20_001] }),
        14 => block.coinbase.lock_time = 1_000_000_000,
        _ => is_sealed = false,
    }
    if is_sealed {
        block.seal();
    }
    let mut bytes = block.bytes();
    match random.below(6) {
        0 => bytes.truncate(random.below(bytes.len() + 1)),
        1 => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        2 => bytes.extend(vec![0; random.below(3)]),
        _ => {}
    }
    bytes
}

/// Proposals of arbitrary bytes, and of blocks that are known in every way.
#[test]
fn proposals_are_decided_as_core_does() {
    let Some(mut story) = Story::begin("proposals", &[]) else { return };
    let mut coins = Vec::new();
    for _ in 0..4 {
        let parent = Draft::spending(&[story.coin()]).paying(3, 20_000);
        story.send(&parent);
        coins.push(parent.output(1));
    }
    story.send(&Draft::spending(&coins).paying(2, 5_000));
    let template = story.pair.lydian.result("getblocktemplate", &rules().to_string());
    let block = Assembled::of(&template, world::script());
    assert_eq!(verdict(&story.pair, &block.bytes()), Value::Null);
    let mut random = SplitMix64::new(20);
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..600 {
        let words = verdict(&story.pair, &changed(&block, &mut random)).to_string();
        *seen.entry(words).or_insert(0) += 1;
    }
    assert!(seen.len() > 12 && seen.contains_key("null"), "{seen:?}");
    // Known blocks: genesis, connected, left, invalid, with a header alone.
    for height in [0, 1, 130] {
        let hash = story.pair.core.result("getblockhash", &format!("[{height}]"));
        let raw = story.pair.core.result("getblock", &json!([hash, 0]).to_string());
        let words = verdict(&story.pair, &hex(raw.as_str().unwrap()).unwrap());
        assert!(words.as_str().unwrap().starts_with("duplicate"), "{words}");
    }
    let known = |story: &Story, block: &Value| verdict(&story.pair, &hex(block.as_str().unwrap()).unwrap());
    let next = story.pair.core.result("generateblock", &json!([descriptor(), [], false]).to_string())["hex"].clone();
    assert_eq!(known(&story, &next), Value::Null);
    story.ask("submitheader", &json!([&next.as_str().unwrap()[..160]]));
    assert_eq!(known(&story, &next), "duplicate-inconclusive");
    story.ask("submitblock", &json!([next]));
    assert_eq!(known(&story, &next), "duplicate");
    story.ask("invalidateblock", &json!([story.pair.core.result("getbestblockhash", "[]")]));
    assert_eq!(known(&story, &next), "duplicate-invalid");
    story.pair.comparison.finish();
}

/// A transaction with so many signature operations that five fill a block.
fn sigops_heavy(output: Output) -> MutTx {
    let input =
        MutInput { prevout: output.outpoint, script_sig: Vec::new(), sequence: 0xffff_fffd, witness: world::witness() };
    let outputs = vec![
        MutOutput { value: Amount(output.value - 2_000_000), script_pubkey: world::script() },
        MutOutput { value: Amount(10_000), script_pubkey: vec![0xac; 3_990] },
    ];
    MutTx { version: 2, inputs: vec![input], outputs, lock_time: 0 }
}

/// Both programs with random mempools, one after another: what is left after a block gets more transactions.
struct Mempools {
    pair: Pair,
    maker: Maker,
    now: u32,
    /// Coinbases that were not spent yet.
    coins: Vec<Output>,
    /// Transactions that a template had in all.
    chosen: usize,
}

impl Mempools {
    fn new(test: &str, options: &[&str], random: SplitMix64) -> Option<Mempools> {
        let options = [&["-acceptnonstdtxn=1"][..], options].concat();
        let pair = Pair::start(test, &options)?;
        pair.ask("setmocktime", &json!([NOW]).to_string());
        pair.ask("generatetodescriptor", &json!([200, descriptor()]).to_string());
        let maker = Maker { random, outputs: Vec::new(), data_max: 9_000, small_percent: 70 };
        let mut mempools = Mempools { pair, maker, now: NOW, coins: Vec::new(), chosen: 0 };
        (1..=100).for_each(|height| mempools.add_coin(height));
        Some(mempools)
    }

    fn add_coin(&mut self, height: u32) {
        let hash = self.pair.core.result("getblockhash", &format!("[{height}]"));
        let block = self.pair.core.result("getblock", &format!("[{hash},2]"));
        let tx = &block["tx"][0];
        let txid: Txid = tx["txid"].as_str().unwrap().parse().unwrap();
        let value = (tx["vout"][0]["value"].as_f64().unwrap() * 1e8).round();
        #[allow(clippy::cast_possible_truncation, reason = "a whole number of satoshi")]
        let value = value as i64;
        self.coins.push(Output { outpoint: OutPoint { txid, vout: 0 }, value, version: 0 });
    }

    fn ask(&self, method: &str, params: &Value) {
        self.pair.ask(method, &params.to_string());
    }

    /// More transactions, and other fees for some.
    fn more(&mut self, count: usize) {
        for _ in 0..2 {
            if let Some(coin) = self.coins.pop() {
                self.maker.outputs.push(coin);
            }
        }
        if self.maker.chance(10)
            && let Some(coin) = self.coins.pop()
        {
            self.ask("sendrawtransaction", &json!([to_hex(&sigops_heavy(coin).encode()), 0, 21_000_000]));
        }
        for _ in 0..count {
            let tx = self.maker.random_transaction();
            let params = json!([to_hex(tx.as_bytes()), 0, 21_000_000]).to_string();
            self.pair.ask("sendrawtransaction", &params);
            let is_in = self.pair.lydian.call("getmempoolentry", &json!([tx.view().txid().to_string()]).to_string());
            if is_in.status.contains(" 200 ") {
                self.maker.learn(&tx);
            }
            if self.maker.chance(5) {
                let delta = i64::try_from(self.maker.below(200_000)).unwrap() - 100_000;
                self.ask("prioritisetransaction", &json!([tx.view().txid().to_string(), 0, delta]));
            }
        }
    }

    /// Compares the templates, and has Core look at the block of ours.
    fn look(&mut self) {
        self.now += 6;
        self.ask("setmocktime", &json!([self.now]));
        let template = |server: &Server| server.result("getblocktemplate", &rules().to_string());
        let (ours, cores) = (template(&self.pair.lydian), template(&self.pair.core));
        let value = |template: &Value| template["coinbasevalue"].as_i64().unwrap();
        assert!(value(&ours) >= value(&cores), "{} < {}", value(&ours), value(&cores));
        let txids = |template: &Value| {
            let all = template["transactions"].as_array().unwrap().iter();
            all.map(|tx| tx["txid"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(txids(&ours), txids(&cores), "both choose the same");
        self.ask("getblocktemplate", &rules());
        self.ask("getmininginfo", &json!([]));
        self.chosen += txids(&ours).len();
        let block = Assembled::of(&ours, world::script());
        assert_eq!(verdict(&self.pair, &block.bytes()), Value::Null);
    }

    /// A block of the best, the same by both.
    fn mine(&mut self) {
        self.ask("generatetodescriptor", &json!([1, descriptor()]));
        self.ask("getbestblockhash", &json!([]));
        let height = self.pair.core.result("getblockcount", "[]").as_u64().unwrap();
        self.add_coin(u32::try_from(height).unwrap() - 100);
        if self.maker.outputs.len() > 400 {
            self.maker.outputs.drain(..200);
        }
    }
}

/// Options of mining that random mempools are made with.
const MINING: &[&[&str]] = &[
    &[],
    &["-blockmaxweight=20000", "-blockreservedweight=5000", "-blockmintxfee=0.00004000"],
    &["-blockmaxweight=60000", "-bytespersigop=1", "-maxmempool=5"],
];

/// The least number of random mempools.
const MEMPOOLS_MIN: usize = 20;

/// As many mempools as fit in a time, or a number of them.
#[allow(clippy::print_stderr, reason = "the seed and the size of a random test")]
fn random_mempools(seed: u64, count: usize, limit: Duration) {
    let began = Instant::now();
    let (mut made, mut chosen) = (0, 0);
    for (index, options) in MINING.iter().enumerate() {
        let part = u32::try_from(index + 1).unwrap();
        let random = SplitMix64::new(seed * 10 + u64::from(part));
        let Some(mut mempools) = Mempools::new(&format!("mempools-{index}"), options, random) else { return };
        let until = limit * part / u32::try_from(MINING.len()).unwrap();
        // At least a few, however busy the machine is.
        let least = count.min(MEMPOOLS_MIN).div_ceil(MINING.len());
        for number in 0..count.div_ceil(MINING.len()) {
            if began.elapsed() > until && number >= least {
                break;
            }
            let more = 1 + mempools.maker.below(20);
            mempools.more(more);
            mempools.look();
            made += 1;
            if mempools.maker.chance(30) {
                mempools.mine();
            }
        }
        chosen += mempools.chosen;
        mempools.pair.comparison.finish();
    }
    eprintln!("random mempools: {made} with seed {seed}, {chosen} transactions in their templates");
    assert!(made >= count.min(MEMPOOLS_MIN) && chosen > made, "{made} mempools with {chosen} transactions");
}

fn seed() -> u64 {
    std::env::var("LYDIAN_SEED").ok().map_or(1, |text| text.parse().unwrap())
}

#[test]
fn templates_of_random_mempools() {
    random_mempools(seed(), usize::MAX, Duration::from_secs(20));
}

#[test]
#[ignore = "takes minutes: LYDIAN_SEED=1 cargo test -p lydian-node --test rpc thousand_mempools -- --ignored --nocapture, which make test-peers runs"]
fn templates_of_a_thousand_mempools() {
    random_mempools(seed() + 1_000, 1_000, Duration::from_secs(3_600));
}

/// A call that is on its way.
struct Pending(BufReader<TcpStream>);

impl Pending {
    fn send(server: &Server, method: &str, params: &Value) -> Pending {
        let body = json!({"method": method, "params": params, "id": 1}).to_string();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
        stream.write_all(&server.request(&body)).unwrap();
        Pending(BufReader::new(stream))
    }

    fn answer(mut self) -> Value {
        serde_json::from_str(&read(&mut self.0).unwrap().body).unwrap()
    }

    fn is_answered(&self) -> bool {
        let stream = self.0.get_ref();
        stream.set_nonblocking(true).unwrap();
        let is_answered = stream.peek(&mut [0]).is_ok();
        stream.set_nonblocking(false).unwrap();
        is_answered
    }
}

fn poll(server: &Server) -> Pending {
    let id = server.result("getblocktemplate", &rules().to_string())["longpollid"].clone();
    Pending::send(server, "getblocktemplate", &json!([{"rules": ["segwit"], "longpollid": id}]))
}

/// Many long polls hold no thread; all end when the tip moves, those of clients that left at once.
#[test]
fn long_polls_end_with_a_new_tip() {
    let server = Server::lydian("long-polls", &["-rpcthreads=2"]);
    server.result("setmocktime", &json!([NOW]).to_string());
    server.result("generatetodescriptor", &json!([1, descriptor()]).to_string());
    let polls: Vec<Pending> = (0..60).map(|_| poll(&server)).collect();
    let left: Vec<Pending> = (0..60).map(|_| poll(&server)).collect();
    let waiting = || {
        let info = server.result("getrpcinfo", "[]");
        let active = info["active_commands"].as_array().unwrap().iter();
        active.filter(|call| call["method"] == "getblocktemplate").count()
    };
    let until = |count: usize| {
        let began = Instant::now();
        while waiting() != count {
            assert!(began.elapsed() < Duration::from_secs(60), "{} wait, not {count}", waiting());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until(120);
    drop(left);
    until(60);
    assert!(polls.iter().all(|poll| !poll.is_answered()));
    let hash = server.result("generatetodescriptor", &json!([1, descriptor()]).to_string())[0].clone();
    for poll in polls {
        let answer = poll.answer();
        assert_eq!(answer["result"]["previousblockhash"], hash, "{answer}");
    }
    until(0);
    // The node stops.
    let last = poll(&server);
    until(1);
    server.result("stop", "[]");
    let answer = last.answer();
    assert_eq!(answer["error"], json!({"code": -9, "message": "Shutting down"}));
}

/// A change of the mempool ends a long poll after a minute, one that comes later within ten seconds: both programs
/// wait as long.
#[test]
#[ignore = "waits for more than a minute: cargo test -p lydian-node --test rpc long_poll_ends_with_the_mempool -- --ignored, which make test-peers runs"]
fn long_poll_ends_with_the_mempool() {
    let Some(mut story) = Story::begin("long-poll-mempool", &[]) else { return };
    let (early, late) = (story.coin(), story.coin());
    let began = Instant::now();
    let polls = [&story.pair.lydian, &story.pair.core].map(poll);
    story.send(&Draft::spending(&[early]).paying(1, 5_000));
    let seconds = polls.map(|poll| {
        assert_eq!(poll.answer()["error"], Value::Null);
        began.elapsed().as_secs()
    });
    assert!(seconds.iter().all(|seconds| (60..64).contains(seconds)), "{seconds:?}");
    // Otherwise the template with the number of before is still good.
    story.ask("setmocktime", &json!([NOW + 10]));
    let began = Instant::now();
    let polls = [&story.pair.lydian, &story.pair.core].map(poll);
    std::thread::sleep(Duration::from_secs(63));
    assert!(polls.iter().all(|poll| !poll.is_answered()));
    story.send(&Draft::spending(&[late]).paying(1, 5_000));
    let seconds = polls.map(|poll| {
        assert_eq!(poll.answer()["error"], Value::Null);
        began.elapsed().as_secs()
    });
    assert!(seconds.iter().all(|seconds| (70..74).contains(seconds)), "{seconds:?}");
}
