//! The last blocks, the chain and the miners on the page: every number is the one that RPC gives, after a
//! reorganisation and after a restart too.

use crate::alerts::hex;
use crate::chain::mix;
use crate::page_client::Client;
use crate::peers::PATIENCE;
use crate::server::Server;
use lydian_chains::presets::maker::{Maker, free_tx, output, seal};
use lydian_oracle::free_port;
use lydian_primitives::build::MutBlock;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// A node whose page everyone on this machine may read. The age of its tip does not matter.
struct Shown {
    node: Server,
    page: u16,
}

const OPTIONS: &[&str] = &["-page=1", "-pageopen=1", "-maxtipage=9223372036854775807"];

impl Shown {
    fn start(name: &str, options: &[&str]) -> Shown {
        let page = free_port().unwrap();
        let bind = [format!("-pagebind=127.0.0.1:{page}")];
        let all: Vec<&str> = OPTIONS.iter().copied().chain(bind.iter().map(String::as_str)).collect();
        Shown { node: Server::lydian(name, &[&all, options].concat()), page }
    }

    fn restart(&mut self) {
        let bind = format!("-pagebind=127.0.0.1:{}", self.page);
        self.node.restart(&[OPTIONS, &[bind.as_str()]].concat());
    }

    /// The rows by height, once they are all there and `is_so` holds.
    fn rows(&self, what: &str, is_so: impl Fn(&BTreeMap<u64, Value>) -> bool) -> BTreeMap<u64, Value> {
        let count = self.node.result("getblockcount", "[]").as_u64().unwrap() + 1;
        let began = Instant::now();
        loop {
            let topic = Client::anonymous(self.page).topic("blocks").into_iter();
            let rows: BTreeMap<u64, Value> = topic.filter_map(|(key, row)| Some((key.parse().ok()?, row))).collect();
            if rows.len() as u64 == count.min(2_016) && is_so(&rows) {
                return rows;
            }
            assert!(began.elapsed() < PATIENCE, "{what}: {} rows of {count}", rows.len());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn submit(&self, block: &MutBlock) -> Value {
        self.node.result("submitblock", &format!("[\"{}\"]", hex(&block.encode())))
    }

    fn grow(&self, maker: &mut Maker, count: u32) {
        let sent = maker.grow(count, |_, block| {
            assert_eq!(self.submit(block), Value::Null);
            Ok::<_, ()>(())
        });
        sent.unwrap();
    }

    /// Compares every row with `getblockstats`, `getblock` and `getblockheader`.
    fn check_rows(&self, rows: &BTreeMap<u64, Value>) {
        for (height, row) in rows {
            let hash = self.node.result("getblockhash", &format!("[{height}]"));
            assert_eq!((&row["height"], &row["hash"]), (&json!(height), &hash));
            let stats = self.node.result("getblockstats", &format!("[{height}]"));
            assert_eq!(row["hash"], stats["blockhash"]);
            for name in ["time", "txs", "ins", "outs", "total_size", "total_weight", "totalfee", "avgfeerate"] {
                assert_eq!(row[name], stats[name], "{name} at {height}");
            }
            let block = self.node.result("getblock", &format!("[{hash},1]"));
            for (name, other) in [("size", "size"), ("weight", "weight"), ("txs", "nTx")] {
                assert_eq!(row[name], block[other], "{name} at {height}");
            }
            let header = self.node.result("getblockheader", &format!("[{hash}]"));
            for name in ["time", "version", "bits"] {
                assert_eq!(row[name], header[name], "{name} at {height}");
            }
        }
    }

    /// Compares the tips with `getchaintips`.
    fn check_tips(&self) -> Map<String, Value> {
        let by_hash = |tips: &Value| -> BTreeMap<String, Value> {
            let fields = ["height", "hash", "branchlen", "status"];
            let tip = |tip: &Value| {
                let only: Map<String, Value> =
                    fields.iter().map(|field| ((*field).to_owned(), tip[field].clone())).collect();
                (tip["hash"].as_str().unwrap().to_owned(), Value::Object(only))
            };
            tips.as_array().unwrap().iter().map(tip).collect()
        };
        let chain = Client::anonymous(self.page).topic("chain");
        let tips = self.node.result("getchaintips", "[]");
        assert_eq!(by_hash(&chain["tips"]), by_hash(&tips));
        assert_eq!((&chain["tips"][0]["status"], &chain["leftOut"]), (&json!("active"), &json!(0)));
        for tip in &chain["tips"].as_array().unwrap()[1..] {
            let fork = &tip["fork"];
            let header = self.node.result("getblockheader", &format!("[{}]", fork["hash"]));
            assert_eq!(header["height"], fork["height"]);
        }
        chain
    }

    /// Compares the figures about miners with those of the rows and with RPC.
    fn check_miners(&self, rows: &BTreeMap<u64, Value>) -> Map<String, Value> {
        let tip = self.node.result("getbestblockhash", "[]");
        let began = Instant::now();
        let miners = loop {
            let miners = Client::anonymous(self.page).topic("miners");
            if miners["hash"] == tip && miners["known"] == rows.len() {
                break miners;
            }
            assert!(began.elapsed() < PATIENCE, "{miners:?}");
            std::thread::sleep(Duration::from_millis(200));
        };
        for (name, count) in [("recent", "120"), ("period", "-1"), ("all", "2016")] {
            // The method gives 16 digits.
            let rates = [&miners["hashRate"][name], &self.node.result("getnetworkhashps", &format!("[{count}]"))];
            let [ours, expected] = rates.map(|rate| rate.as_f64().unwrap());
            assert!((ours - expected).abs() <= expected * 1e-15, "{name}: {ours}, {expected}");
        }
        let sum = |name: &str| rows.values().map(|row| row[name].as_i64().unwrap()).sum::<i64>();
        let count = i64::try_from(rows.len()).unwrap();
        assert_eq!(miners["fees"], sum("totalfee"));
        for name in ["size", "weight", "txs"] {
            assert_eq!(miners[name], sum(name) / count, "{name}");
        }
        let pools = miners["pools"].as_array().unwrap();
        assert_eq!(pools.iter().map(|pool| pool["blocks"].as_i64().unwrap()).sum::<i64>(), count);
        let tip = *rows.keys().next_back().unwrap();
        // Regtest counts signals in periods of 144 blocks.
        let spans = [("day", 144), ("period", tip % 144 + 1), ("all", 2_016)];
        for (name, length) in spans {
            let span: Vec<&Value> = rows.range(tip.saturating_sub(length - 1)..).map(|(_, row)| row).collect();
            assert_eq!(miners["versions"]["blocks"][name], span.len());
            let versions = || span.iter().map(|row| row["version"].as_i64().unwrap());
            let signals = |bit: u64| versions().filter(|version| version >> 29 == 1 && version >> bit & 1 == 1).count();
            let counts = miners["versions"]["bits"].as_array().unwrap();
            for bit in 0..29 {
                let counted = counts.iter().find(|counts| counts["bit"] == bit).map_or(&Value::Null, |row| &row[name]);
                assert_eq!(counted.as_u64().unwrap_or(0), signals(bit) as u64, "bit {bit}, {name}");
            }
            let others = versions().filter(|version| version >> 29 != 1).count();
            assert_eq!(miners["versions"]["others"][name], others);
        }
        miners
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

/// A chain with full blocks, one by one: the rows are what RPC says, with what each step took; after a restart without.
#[test]
fn rows_are_what_the_methods_say() {
    let mut shown = Shown::start("page-rows", &[]);
    let began = now();
    let (blocks, _) = mix();
    for block in &blocks {
        assert_eq!(shown.node.result("submitblock", &format!("[\"{}\"]", hex(block))), Value::Null);
    }
    let rows = shown.rows("all blocks are there", |rows| rows.contains_key(&0));
    shown.check_rows(&rows);
    shown.check_tips();
    let miners = shown.check_miners(&rows);
    assert_eq!((&miners["halving"]["height"], &miners["halving"]["left"]), (&json!(450), &json!(450 - blocks.len())));
    assert!(rows[&0].get("ms").is_none(), "the genesis block was not connected");
    let steps = ["queue", "parse", "check", "store", "wait", "fund", "verify", "commit", "apply"];
    for (height, row) in rows.iter().skip(1) {
        assert_eq!((&row["source"], &row["tip"]), (&json!("RPC"), &json!(true)), "at {height}");
        let received = row["received"].as_f64().unwrap();
        assert!(received > began - 1.0 && received < now() + 1.0, "at {height}: {received}");
        let all: f64 = steps.iter().map(|step| row["ms"][step].as_f64().unwrap()).sum();
        let total = row["ms"]["total"].as_f64().unwrap();
        assert!((all - total).abs() < 0.02, "at {height}: {}", row["ms"]);
        let is_verified = row["ms"]["verify"].as_f64() > Some(0.0) || row["checks"] == 0;
        assert!(is_verified && row["ms"].get("read").is_none(), "at {height}: {row}");
    }
    let most = rows.values().max_by_key(|row| row["ins"].as_u64()).unwrap();
    assert!(most["checks"].as_u64() > Some(1_000) && most["avgfeerate"].as_u64() > Some(0), "{most}");

    shown.restart();
    let again = shown.rows("the rows are filled", |rows| rows.len() == blocks.len() + 1);
    shown.check_rows(&again);
    shown.check_miners(&again);
    assert!(again.values().all(|row| row.get("ms").is_none() && row.get("received").is_none()));
    let without = |rows: &BTreeMap<u64, Value>| -> Vec<Value> {
        let mut rows: Vec<Value> = rows.values().cloned().collect();
        for name in ["ms", "received", "source", "tip", "checks"] {
            rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove(name)));
        }
        rows
    };
    assert_eq!(without(&again), without(&rows));
}

/// A block whose coinbase has this text.
fn signed(maker: &Maker, text: &[u8]) -> MutBlock {
    let mut block = maker.template(Vec::new());
    block.txs[0].inputs[0].script_sig.extend_from_slice(text);
    seal(&mut block);
    block
}

/// Two branches: rows, tips and the list follow the chain. Texts of miners are shown, but nothing that hides or turns.
#[test]
fn a_reorganisation_is_listed() {
    let mut shown = Shown::start("page-reorg", &[]);
    let mut maker = Maker::new();
    shown.grow(&mut maker, 4);
    let (mut old, mut new) = (maker.clone(), maker.clone());
    for text in ["\u{202e}<b>old</b>", "/ViaBTC/Mined by x/"] {
        let block = signed(&old, text.as_bytes());
        assert_eq!(shown.submit(&block), Value::Null);
        old.advance(&block);
    }
    let rows = shown.rows("six blocks", |_| true);
    assert_eq!((&rows[&5]["text"], rows[&5].get("pool")), (&json!("lydian-lab <b>old</b>"), None));
    assert_eq!((&rows[&6]["text"], &rows[&6]["pool"]), (&json!("lydian-lab/ViaBTC/Mined by x/"), &json!("ViaBTC")));
    let pools = shown.check_miners(&rows)["pools"].clone();
    assert!(pools.as_array().unwrap().iter().any(|pool| pool["name"] == "ViaBTC" && pool["blocks"] == 1), "{pools}");
    assert_eq!(shown.check_tips()["reorganisations"], json!([]));

    for number in 0..3 {
        let block = signed(&new, format!("new{number}").as_bytes());
        shown.submit(&block);
        new.advance(&block);
    }
    let rows = shown.rows("the new branch", |rows| rows.get(&7).is_some());
    shown.check_rows(&rows);
    assert_eq!((&rows[&5]["text"], &rows[&7]["text"]), (&json!("lydian-labnew0"), &json!("lydian-labnew2")));
    shown.check_miners(&rows);
    let place = |maker: &Maker| json!({"height": maker.height, "hash": maker.tip.to_string()});
    let chain = shown.check_tips();
    let listed = chain["reorganisations"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let reorganisation = &listed[0];
    assert_eq!((&reorganisation["old"], &reorganisation["new"]), (&place(&old), &place(&new)));
    assert_eq!((&reorganisation["fork"], &reorganisation["depth"]), (&place(&maker), &json!(2)));
    assert!((reorganisation["time"].as_f64().unwrap() - now()).abs() < 60.0);
    let branch = chain["tips"].as_array().unwrap().iter().find(|tip| tip["status"] == "valid-fork").unwrap();
    assert_eq!((&branch["fork"]["hash"], &branch["fork"]["of"]), (&json!(maker.tip.to_string()), &place(&new)["hash"]));

    // By hand, back to the old branch and forth.
    shown.node.result("invalidateblock", &json!([rows[&5]["hash"]]).to_string());
    let rows = shown.rows("the old branch", |rows| rows.len() == 7);
    shown.check_rows(&rows);
    let chain = shown.check_tips();
    let invalid = chain["invalid"].as_array().unwrap();
    assert_eq!(invalid.len(), 1, "{invalid:?}");
    assert_eq!((&invalid[0]["height"], invalid[0].get("rule")), (&json!(5), None));
    shown.node.result("reconsiderblock", &json!([invalid[0]["hash"]]).to_string());
    let rows = shown.rows("the new branch again", |rows| rows.len() == 8);
    shown.check_rows(&rows);
    let chain = shown.check_tips();
    assert_eq!(chain["invalid"], json!([]));
    // The old branch has less work, so that the reorganisation was not over, and ended where it began.
    let listed = chain["reorganisations"].as_array().unwrap();
    let outcomes: Vec<_> = listed.iter().map(|listed| (&listed["depth"], &listed["undone"])).collect();
    assert_eq!(outcomes, [(&json!(2), &json!(false)), (&json!(3), &json!(true))]);

    shown.restart();
    let rows = shown.rows("after the restart", |rows| rows.len() == 8);
    shown.check_rows(&rows);
    assert_eq!(&shown.check_tips()["reorganisations"], &chain["reorganisations"], "the file has them");
}

/// What `lydian explain` says about a rule.
fn explained(rule: &str) -> String {
    let told = Command::new(env!("CARGO_BIN_EXE_lydian")).args(["explain", rule]).output().unwrap();
    let words: Vec<String> = String::from_utf8(told.stdout).unwrap().split_whitespace().map(str::to_owned).collect();
    words.join(" ")
}

/// Blocks that break a rule: of coins, and of the block at its height. Each with rule, sentence and place.
#[test]
fn an_invalid_block_is_listed_with_its_rule() {
    let mut shown = Shown::start("page-invalid", &[]);
    let mut maker = Maker::new();
    shown.grow(&mut maker, 3);
    let mut rich = maker.block(Vec::new());
    rich.txs[0].outputs[0].value.0 += 1;
    seal(&mut rich);
    assert_eq!(shown.submit(&rich), json!("bad-cb-amount"));
    // Its descendants are not listed: the reason is not theirs.
    let mut above = maker.clone();
    above.advance(&rich);
    let heir = above.block(Vec::new());
    shown.node.call("submitheader", &format!("[\"{}\"]", hex(&heir.encode()[..80])));
    shown.grow(&mut maker, 1);
    let mut low = maker.block(Vec::new());
    low.txs[0].inputs[0].script_sig = vec![0x01, 0x63, 0x00];
    seal(&mut low);
    assert_eq!(shown.submit(&low), json!("bad-cb-height"));

    let chain = shown.check_tips();
    let invalid = chain["invalid"].as_array().unwrap();
    let expected = [(&rich, 4, "bad-cb-amount"), (&low, 5, "bad-cb-height")];
    assert_eq!(invalid.len(), expected.len(), "{invalid:#?}");
    for (row, (block, height, reason)) in invalid.iter().zip(expected) {
        assert_eq!((&row["hash"], &row["height"]), (&json!(block.header.hash().to_string()), &json!(height)));
        assert_eq!((&row["reason"], &row["rule"]), (&json!(reason), &json!(reason)));
        let sentence = row["sentence"].as_str().unwrap();
        assert!(explained(reason).contains(sentence) && sentence.len() > 20, "{sentence}");
        assert!((row["time"].as_f64().unwrap() - now()).abs() < 60.0);
    }
    assert!(invalid[0]["state"].as_str().unwrap().starts_with("bad-cb-amount, coinbase pays too much"), "{invalid:?}");

    shown.restart();
    let again = shown.check_tips();
    let known: Vec<(&Value, &Value)> =
        again["invalid"].as_array().unwrap().iter().map(|row| (&row["hash"], &row["time"])).collect();
    assert_eq!(known.len(), 2, "{known:?}");
    assert!(invalid.iter().all(|row| known.contains(&(&row["hash"], &Value::Null))), "{known:?}");
}

/// A block from a peer: its row says which peer, how long it took, how many transactions its compact block lacked.
#[test]
fn a_block_from_a_peer_has_its_sender() {
    let port = free_port().unwrap();
    let bind = format!("-bind=127.0.0.1:{port}");
    // The times of the blocks are recent, so that new blocks are fetched as compact ones.
    let clock = format!("-mocktime={}", Maker::new().next_time() + 600 * 102);
    let options = ["-page=0", "-listen=1", &bind, "-uacomment=other node", &clock];
    let peer = Server::lydian("page-peer", &options);
    let connect = format!("-connect=127.0.0.1:{port}");
    let shown = Shown::start("page-sender", &[&connect, &clock]);
    let submit = |block: &MutBlock| peer.result("submitblock", &format!("[\"{}\"]", hex(&block.encode())));
    let mut maker = Maker::new();
    let sent = maker.grow(101, |_, block| {
        assert_eq!(submit(block), Value::Null);
        Ok::<_, ()>(())
    });
    sent.unwrap();
    let began = Instant::now();
    let wait_for = |height: u32| {
        while shown.node.result("getblockcount", "[]") != height {
            assert!(began.elapsed() < PATIENCE, "height {height}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait_for(101);
    let coin = maker.rich_coin().unwrap();
    let block = maker.block(vec![free_tx(&[coin], vec![output(coin.value - 12_345, &[0x51])])]);
    assert_eq!(submit(&block), Value::Null);
    maker.advance(&block);
    wait_for(102);
    let rows = shown.rows("the sender is known", |rows| rows[&102].get("address").is_some());
    shown.check_rows(&rows);
    let row = &rows[&102];
    let info = &shown.node.result("getpeerinfo", "[]")[0];
    assert_eq!((&row["source"], &row["peer"]), (&json!("peer"), &info["id"]));
    assert_eq!((&row["address"], &row["agent"]), (&info["addr"], &info["subver"]));
    assert_eq!((&row["missing"], &row["copies"]), (&json!(1), &json!(0)), "{row}");
    assert_eq!((&row["totalfee"], &row["tip"]), (&json!(12_345), &json!(true)));
    let ms = |step: &str| row["ms"][step].as_f64().unwrap();
    assert!(ms("download") > 0.0 && ms("download") < 60_000.0 && ms("total") > 0.0, "{}", row["ms"]);
}
