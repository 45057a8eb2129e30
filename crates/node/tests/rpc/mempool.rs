//! The methods of the mempool: both programs get the same transactions, packages, blocks and calls. Answers are
//! compared field by field and errors word by word, also after a reorganisation and with the file of the other program.

use crate::chain::Pair;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid, to_hex};
use serde_json::{Value, json};

const NOW: u32 = 1_750_000_000;

/// P2WSH of OP_TRUE, and what spends it.
fn script() -> Vec<u8> {
    [&[0x00, 0x20][..], &lydian_hash::sha256(&[0x51])].concat()
}

pub(crate) fn descriptor() -> String {
    format!("raw({})", to_hex(&script()))
}

/// Both programs, with coins to spend.
pub(crate) struct Story {
    pub(crate) pair: Pair,
    /// Coinbases of the first blocks.
    coins: Vec<(OutPoint, i64)>,
}

/// A transaction that is made step by step.
#[derive(Clone)]
pub(crate) struct Draft {
    tx: MutTx,
    value: i64,
}

impl Draft {
    pub(crate) fn spending(inputs: &[(OutPoint, i64)]) -> Draft {
        let input = |(prevout, _): &(OutPoint, i64)| MutInput {
            prevout: *prevout,
            script_sig: Vec::new(),
            sequence: 0xffff_fffe,
            witness: vec![vec![0x51]],
        };
        let tx = MutTx { version: 2, inputs: inputs.iter().map(input).collect(), outputs: Vec::new(), lock_time: 0 };
        Draft { tx, value: inputs.iter().map(|(_, value)| value).sum() }
    }

    /// Shares what is left after the fee.
    pub(crate) fn paying(mut self, outputs: usize, fee: i64) -> Draft {
        let each = (self.value - fee) / i64::try_from(outputs).unwrap();
        let last = self.value - fee - each * i64::try_from(outputs - 1).unwrap();
        for index in 0..outputs {
            let value = Amount(if index + 1 == outputs { last } else { each });
            self.tx.outputs.push(MutOutput { value, script_pubkey: script() });
        }
        self
    }

    fn with(mut self, change: impl FnOnce(&mut MutTx)) -> Draft {
        change(&mut self.tx);
        self
    }

    pub(crate) fn hex(&self) -> String {
        to_hex(&self.tx.encode())
    }

    pub(crate) fn txid(&self) -> Txid {
        self.tx.txid()
    }

    pub(crate) fn output(&self, vout: u32) -> (OutPoint, i64) {
        let value = self.tx.outputs[usize::try_from(vout).unwrap()].value.0;
        (OutPoint { txid: self.txid(), vout }, value)
    }
}

impl Story {
    pub(crate) fn begin(test: &str, options: &[&str]) -> Option<Story> {
        let options = [options, &["-acceptnonstdtxn=0"]].concat();
        let mut story = Story { pair: Pair::start(test, &options)?, coins: Vec::new() };
        story.ask("setmocktime", &json!([NOW]));
        story.ask("generatetodescriptor", &json!([130, descriptor()]));
        for height in 1..=30 {
            let hash = story.pair.core.result("getblockhash", &format!("[{height}]"));
            let block = story.pair.core.result("getblock", &format!("[{hash},2]"));
            let txid: Txid = block["tx"][0]["txid"].as_str().unwrap().parse().unwrap();
            story.coins.push((OutPoint { txid, vout: 0 }, 50 * 100_000_000));
        }
        Some(story)
    }

    pub(crate) fn ask(&self, method: &str, params: &Value) {
        self.pair.ask(method, &params.to_string());
    }

    pub(crate) fn coin(&mut self) -> (OutPoint, i64) {
        self.coins.remove(0)
    }

    /// A transaction that both accept.
    pub(crate) fn send(&self, draft: &Draft) {
        self.ask("testmempoolaccept", &json!([[draft.hex()]]));
        self.ask("sendrawtransaction", &json!([draft.hex()]));
        let found = self.pair.lydian.result("getmempoolentry", &json!([draft.txid().to_string()]).to_string());
        assert!(found["vsize"].is_number(), "{found}");
    }

    /// A transaction that both refuse, whatever is asked.
    fn refuse(&self, draft: &Draft) {
        self.ask("testmempoolaccept", &json!([[draft.hex()]]));
        self.ask("sendrawtransaction", &json!([draft.hex()]));
        self.ask("submitpackage", &json!([[draft.hex()]]));
        let answer = self.pair.lydian.call("getmempoolentry", &json!([draft.txid().to_string()]).to_string());
        assert!(answer.body.contains("Transaction not in mempool"), "{}", answer.body);
    }

    /// Everything that shows the mempool.
    fn look(&self) {
        for (method, params) in [
            // First: Core orders what changed when it is asked for the order, and has less memory in use until then.
            ("getrawmempool", json!([])),
            ("getmempoolinfo", json!([])),
            ("getrawmempool", json!([true])),
            ("getrawmempool", json!([false, true])),
            ("getrawmempool", json!([true, true])),
            ("getmempoolfeeratediagram", json!([])),
            ("getprioritisedtransactions", json!([])),
            ("getmininginfo", json!([])),
            ("getbestblockhash", json!([])),
        ] {
            self.ask(method, &params);
        }
        let txids = self.pair.core.result("getrawmempool", "[]");
        for txid in txids.as_array().unwrap() {
            self.ask("getmempoolentry", &json!([txid]));
            self.ask("getmempoolcluster", &json!([txid]));
            self.ask("getrawtransaction", &json!([txid, 2]));
            for is_verbose in [false, true] {
                self.ask("getmempoolancestors", &json!([txid, is_verbose]));
                self.ask("getmempooldescendants", &json!([txid, is_verbose]));
            }
            for vout in 0..3 {
                self.ask("gettxout", &json!([txid, vout]));
                self.ask("gettxout", &json!([txid, vout, false]));
                self.ask("gettxspendingprevout", &json!([[{"txid": txid, "vout": vout}]]));
            }
        }
    }
}

#[test]
fn the_mempool_as_core_shows_it() {
    let Some(mut story) = Story::begin("mempool", &["-deprecatedrpc=bip125"]) else { return };
    story.look();
    let a = Draft::spending(&[story.coin()]).paying(3, 20_000);
    let b = Draft::spending(&[a.output(0)]).paying(2, 3_000).with(|tx| tx.inputs[0].sequence = 0xffff_fffd);
    let c = Draft::spending(&[a.output(1), story.coin()]).paying(1, 400);
    let d = Draft::spending(&[b.output(1), c.output(0)]).paying(2, 90_000);
    let e = Draft::spending(&[story.coin(), story.coin()]).paying(1, 500);
    for draft in [&a, &b, &c, &d, &e] {
        story.send(draft);
    }
    story.look();
    // Again, and with another witness.
    story.ask("sendrawtransaction", &json!([e.hex()]));
    story.ask("testmempoolaccept", &json!([[e.hex()]]));
    let other = e.clone().with(|tx| tx.inputs[0].witness = vec![vec![1], vec![0x51]]);
    story.ask("sendrawtransaction", &json!([other.hex()]));
    story.ask("testmempoolaccept", &json!([[other.hex()]]));
    story.ask("submitpackage", &json!([[other.hex()]]));

    let coin = json!({"txid": a.tx.inputs[0].prevout.txid.to_string(), "vout": 0});
    let output = json!({"vout": 0, "txid": a.txid().to_string()});
    for params in [
        json!([[coin, output]]),
        json!([[coin, output], {"return_spending_tx": true}]),
        json!([[coin], {"mempool_only": false}]),
        json!([[output, {"txid": d.txid().to_string(), "vout": 1}], {"mempool_only": false}]),
        json!([[coin], {"mempool_only": null}]),
        json!([[coin], {"mempool_only": 1}]),
        json!([[coin], {"other": true}]),
        json!([[]]),
        json!([[{}]]),
        json!([[5]]),
        json!([[{"txid": "00", "vout": 0}]]),
        json!([[{"txid": a.txid().to_string(), "vout": -1}]]),
        json!([[{"txid": a.txid().to_string(), "vout": 1.5}]]),
        json!([[{"txid": a.txid().to_string(), "vout": "0"}]]),
        json!([[{"txid": a.txid().to_string(), "vout": 0, "more": 1}]]),
    ] {
        story.ask("gettxspendingprevout", &params);
    }
    let unknown = "1".repeat(64);
    for method in ["getmempoolentry", "getmempoolancestors", "getmempooldescendants", "getmempoolcluster"] {
        story.ask(method, &json!([unknown]));
        story.ask(method, &json!(["zz"]));
    }
    story.ask("getmempoolancestors", &json!(["zz", 1]));

    for (txid, dummy, delta) in [
        (e.txid(), json!(null), 50_000),
        (c.txid(), json!(0.0), -2_000),
        (e.txid(), json!(0), -10_000),
        (Txid([7; 32]), json!(0), 1),
        (b.txid(), json!(0), 5),
        (b.txid(), json!(0), -5),
        (b.txid(), json!(1), 5),
        (b.txid(), json!(1.5e-9), 5),
    ] {
        story.ask("prioritisetransaction", &json!([txid.to_string(), dummy, delta]));
        story.look();
    }
    story.ask("prioritisetransaction", &json!([b.txid().to_string(), 0, 1.5]));
    story.ask("prioritisetransaction", &json!(["00", 0, 1]));
    story.pair.comparison.check_all_used();
    story.pair.comparison.finish();
}

/// Transactions that are refused, for every argument that may refuse them.
#[test]
fn refused_transactions() {
    let Some(mut story) = Story::begin("mempool-refused", &[]) else { return };
    let a = Draft::spending(&[story.coin()]).paying(3, 20_000);
    story.send(&a);
    let good = Draft::spending(&[story.coin()]).paying(2, 10_000);
    let data = |size: usize| move |tx: &mut MutTx| tx.outputs[0].script_pubkey = vec![0x6a; size];
    let coins: Vec<(OutPoint, i64)> = (0..3).map(|_| story.coin()).collect();
    for draft in [
        // Unknown coin, no fee, double spend that pays less, not final, dust, too early, not standard, no fee at all.
        Draft::spending(&[(OutPoint { txid: Txid([9; 32]), vout: 0 }, 1_000_000)]).paying(1, 1_000),
        Draft::spending(&coins[..1]).paying(1, 0),
        Draft::spending(&coins[..1]).paying(1, -1),
        Draft { tx: a.tx.clone(), value: 0 }
            .with(|tx| tx.outputs.truncate(1))
            .with(|tx| tx.outputs[0].value.0 += 99 * 100_000_000),
        Draft::spending(&[story.coins[0]]).paying(1, 1_000).with(|tx| tx.lock_time = 1_000),
        Draft::spending(&coins[1..2]).paying(2, 1_000).with(|tx| tx.outputs[0].value = Amount(1)),
        Draft::spending(&coins[1..2]).paying(2, 1_000).with(|tx| tx.version = 4),
        Draft::spending(&coins[1..2]).paying(2, 1_000).with(|tx| tx.inputs[0].witness = vec![vec![0x50]]),
        Draft::spending(&coins[1..2]).paying(2, 1_000).with(|tx| tx.inputs[0].witness.clear()),
        Draft::spending(&coins[1..2]).paying(2, 1_000).with(|tx| tx.outputs[1].script_pubkey = vec![0x51]),
        Draft::spending(&[coins[1], coins[1]]).paying(2, 1_000),
        Draft::spending(&coins[1..2]).paying(2, 1_000).with(|tx| tx.inputs[0].sequence = 1_000),
        Draft::spending(&[(a.tx.inputs[0].prevout, 50 * 100_000_000)]).paying(1, 100),
    ] {
        story.refuse(&draft);
    }
    let burning = good.clone().with(data(5));
    for (draft, arguments) in [
        (&good, json!([0.0001])),
        (&good, json!(["0.00001"])),
        (&good, json!([1])),
        (&good, json!([0.99999999])),
        (&good, json!([-1])),
        (&good, json!(["x"])),
        (&good, json!([true])),
        (&burning, json!([])),
        (&burning, json!([0.1, 0.00000001])),
        (&burning, json!([0.1, 26])),
        (&burning, json!([null, "y"])),
    ] {
        let with = |first: Value| Value::Array([vec![first], arguments.as_array().unwrap().clone()].concat());
        story.ask("submitpackage", &with(json!([draft.hex()])));
        story.ask("sendrawtransaction", &with(json!(draft.hex())));
        story.ask("testmempoolaccept", &json!([[draft.hex()], arguments.get(0)]));
    }
    let dear = Draft::spending(&coins[2..]).paying(1, 10_000_000);
    for feerate in [json!(null), json!(0.0001), json!(0)] {
        story.ask("testmempoolaccept", &json!([[dear.hex()], feerate]));
        story.ask("submitpackage", &json!([[dear.hex()], feerate]));
        story.ask("sendrawtransaction", &json!([dear.hex(), feerate]));
    }
    for text in ["", "00", "zz", "0200000000010000000000"] {
        story.ask("sendrawtransaction", &json!([text]));
        story.ask("testmempoolaccept", &json!([[text]]));
        story.ask("submitpackage", &json!([[good.hex(), text]]));
    }
    for list in [json!([]), json!(vec![good.hex(); 26]), json!([1]), json!(vec![good.hex(); 2])] {
        story.ask("testmempoolaccept", &json!([list]));
        story.ask("submitpackage", &json!([list]));
    }
    story.look();
    // Its outputs are in the chain.
    story.ask("generatetodescriptor", &json!([1, descriptor()]));
    story.look();
    story.ask("sendrawtransaction", &json!([a.hex()]));
    story.ask("testmempoolaccept", &json!([[a.hex()]]));
    story.ask("submitpackage", &json!([[a.hex()]]));
    story.pair.comparison.finish();
}

#[test]
fn packages() {
    let Some(mut story) = Story::begin("mempool-packages", &[]) else { return };
    let package = |drafts: &[&Draft]| json!(drafts.iter().map(|draft| draft.hex()).collect::<Vec<_>>());
    let parent = Draft::spending(&[story.coin()]).paying(2, 0);
    let second = Draft::spending(&[story.coin()]).paying(2, 0);
    let child = Draft::spending(&[parent.output(0), second.output(1)]).paying(1, 9_000);
    let grandchild = Draft::spending(&[child.output(0)]).paying(1, 9_000);
    let cheap = Draft::spending(&[parent.output(0)]).paying(1, 10);
    let between = Draft::spending(&[parent.output(1)]).paying(1, 300);
    let both = Draft::spending(&[parent.output(0), between.output(0)]).paying(1, 300);
    for drafts in [
        &[&parent, &second, &child, &grandchild][..],
        &[&child, &parent],
        &[&parent, &parent],
        &[&parent, &cheap, &child],
        &[&parent, &cheap],
        &[&parent, &second],
        &[&parent, &between, &both],
        &[&second, &child],
    ] {
        story.ask("testmempoolaccept", &json!([package(drafts)]));
        story.ask("submitpackage", &json!([package(drafts)]));
        story.look();
    }
    let third = [&parent, &second, &child];
    story.ask("submitpackage", &json!([package(&third), 0.00001]));
    story.ask("submitpackage", &json!([package(&third)]));
    story.look();
    // Some are in the mempool; and a replacement.
    story.ask("submitpackage", &json!([package(&third)]));
    story.ask("submitpackage", &json!([package(&[&child, &grandchild])]));
    let replaced = Draft::spending(&[story.coin()]).paying(1, 1_000);
    story.send(&replaced);
    let instead = Draft::spending(&[(replaced.tx.inputs[0].prevout, 50 * 100_000_000)]).paying(1, 700);
    let payer = Draft::spending(&[instead.output(0)]).paying(1, 30_000);
    story.ask("testmempoolaccept", &json!([package(&[&instead, &payer])]));
    story.ask("submitpackage", &json!([package(&[&instead, &payer])]));
    story.look();
    let dear = Draft::spending(&[story.coin()]).paying(1, 5_000_000);
    let after = Draft::spending(&[dear.output(0)]).paying(1, 1_000);
    for feerate in [json!(0.001), json!(0)] {
        story.ask("testmempoolaccept", &json!([package(&[&dear, &after]), feerate]));
        story.ask("submitpackage", &json!([package(&[&dear, &after]), feerate]));
    }
    story.look();
    story.pair.comparison.finish();
}

/// Blocks take the best of the mempool, and give it back when they leave.
#[test]
fn blocks_from_the_mempool() {
    let Some(mut story) = Story::begin("mempool-blocks", &[]) else { return };
    let mut drafts = Vec::new();
    for fee in [300, 9_000, 2_000, 50_000] {
        let parent = Draft::spending(&[story.coin()]).paying(3, fee);
        let child = Draft::spending(&[parent.output(1)]).paying(1, 11 * (10_000 - fee / 10));
        drafts.extend([parent, child]);
    }
    for draft in &drafts {
        story.send(draft);
    }
    // Below the least fee of a block, if it were not for its child.
    story.ask("prioritisetransaction", &json!([drafts[7].txid().to_string(), 0, -200_000]));
    story.look();
    story.ask("generatetodescriptor", &json!([1, descriptor()]));
    story.look();
    let tip = story.pair.core.result("getbestblockhash", "[]");
    story.ask("getblock", &json!([tip, 2]));
    let late = Draft::spending(&[drafts[0].output(0)]).paying(1, 4_000);
    story.send(&late);
    story.ask("invalidateblock", &json!([tip]));
    story.look();
    story.ask("reconsiderblock", &json!([tip]));
    story.look();
    story.ask("generateblock", &json!([descriptor(), [late.txid().to_string()], false]));
    let raw = Draft::spending(&[story.coin()]).paying(1, 1);
    story.ask("generateblock", &json!([descriptor(), [raw.hex(), late.txid().to_string()]]));
    story.look();
    story.ask("generateblock", &json!([descriptor(), ["1".repeat(64)]]));
    story.ask("generateblock", &json!([descriptor(), [raw.hex()]]));
    // Four blocks leave, each with a transaction that spends one of the block before.
    let mut last = late;
    let first = story.pair.core.result("getblockcount", "[]").as_u64().unwrap() + 1;
    for _ in 0..4 {
        last = Draft::spending(&[last.output(0)]).paying(1, 2_000);
        story.send(&last);
        story.ask("generatetodescriptor", &json!([1, descriptor()]));
    }
    let hash = story.pair.core.result("getblockhash", &format!("[{first}]"));
    story.ask("invalidateblock", &json!([hash]));
    story.look();
    story.ask("generatetodescriptor", &json!([5, descriptor()]));
    story.look();
    story.ask("reconsiderblock", &json!([hash]));
    story.look();
    story.pair.comparison.finish();
}

/// Each program reads the file of the other.
#[test]
fn files_of_the_mempool() {
    let Some(mut story) = Story::begin("mempool-files", &["-persistmempool=0"]) else { return };
    let parent = Draft::spending(&[story.coin()]).paying(2, 5_000);
    let child = Draft::spending(&[parent.output(0)]).paying(2, 700);
    let alone = Draft::spending(&[story.coin()]).paying(1, 900);
    for draft in [&parent, &child, &alone] {
        story.send(draft);
    }
    story.ask("prioritisetransaction", &json!([child.txid().to_string(), 0, 12_345]));
    story.ask("prioritisetransaction", &json!([Txid([3; 32]).to_string(), 0, -7]));
    let saved = |story: &Story| {
        let names = [&story.pair.lydian, &story.pair.core].map(|server| {
            let saved = server.result("savemempool", "[]");
            assert_eq!(saved["filename"], json!(server.folder.join("regtest/mempool.dat").display().to_string()));
            saved["filename"].clone()
        });
        let [ours, cores] = names;
        (ours, cores)
    };
    let (ours, cores) = saved(&story);
    for options in [
        json!({}),
        json!({"use_current_time": false, "apply_fee_delta_priority": true, "apply_unbroadcast_set": true}),
        json!({"use_current_time": true, "apply_fee_delta_priority": true}),
    ] {
        story.pair.lydian.restart(&["-acceptnonstdtxn=0", "-persistmempool=0"]);
        story.pair.core.restart(&["-acceptnonstdtxn=0", "-persistmempool=0"]);
        story.ask("setmocktime", &json!([NOW + 1_000]));
        // A new block ends the initial download after a restart.
        story.ask("generatetodescriptor", &json!([1, "raw(51)"]));
        story.ask("getmempoolinfo", &json!([]));
        let answers = [
            story.pair.lydian.result("importmempool", &json!([cores, options]).to_string()),
            story.pair.core.result("importmempool", &json!([ours, options]).to_string()),
        ];
        assert_eq!(answers[0], answers[1]);
        assert_eq!(story.pair.lydian.result("getmempoolinfo", "[]")["size"], 3);
        story.look();
        // The mempool is empty again after the restart, but the blocks are there: none takes it.
    }
    for params in [
        json!(["/nonexistent/mempool.dat"]),
        json!([""]),
        json!([ours, {"use_current_time": 1}]),
        json!([ours, {"apply_unbroadcast_set": "x"}]),
        json!([5]),
    ] {
        story.ask("importmempool", &params);
    }
    story.look();
    story.pair.comparison.finish();
}
