//! The page's data of the mempool: fee bands, projected blocks, rejections and replacements equal what RPC says, after
//! random changes, blocks and a reorganisation.

use crate::page_client::{Client, Live};
use crate::peers::PATIENCE;
use crate::server::Server;
use lydian_mempool::graph::FeeSize;
use lydian_mempool::pool::{BAND_COUNT, BAND_RATES, band_of};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid, to_hex};
use lydian_stdx::SplitMix64;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// A node with a page that everyone on this machine may read.
pub(crate) struct Page {
    pub(crate) server: Server,
    pub(crate) port: u16,
}

impl Page {
    pub(crate) fn start(name: &str, options: &[&str]) -> Page {
        let port = lydian_oracle::free_port().unwrap();
        let own = ["-page".to_owned(), format!("-pageport={port}"), "-pageopen".to_owned()];
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        Page { server: Server::lydian(name, &[options, &own].concat()), port }
    }

    /// Restarts the node with these options.
    pub(crate) fn restart(&mut self, options: &[&str]) {
        let port = format!("-pageport={}", self.port);
        self.server.restart(&[options, &["-page", &port, "-pageopen"]].concat());
    }

    /// A reader without a login.
    pub(crate) fn client(&self) -> Client {
        Client::anonymous(self.port)
    }

    fn live(&self) -> MempoolData {
        MempoolData { live: self.client().live(), state: Map::new() }
    }
}

/// The live data of the topic `mempool`.
struct MempoolData {
    live: Live,
    state: Map<String, Value>,
}

impl MempoolData {
    /// Reads one change of the topic.
    fn next(&mut self) {
        for (key, value) in self.live.next_of("mempool") {
            match value {
                Value::Null => drop(self.state.remove(&key)),
                value => drop(self.state.insert(key, value)),
            }
        }
    }

    /// Reads until something is so; returns how long it took.
    fn until(&mut self, what: &str, is_so: impl Fn(&Map<String, Value>) -> bool) -> Duration {
        let began = Instant::now();
        while !is_so(&self.state) {
            assert!(began.elapsed() < PATIENCE, "{what}: {:?}", self.state);
            self.next();
        }
        began.elapsed()
    }

    fn rows(&self, kind: &str) -> Vec<Value> {
        let mut rows: Vec<Value> =
            self.state.iter().filter(|(key, _)| key.starts_with(kind)).map(|(_, row)| row.clone()).collect();
        rows.sort_by_key(|row| row["number"].as_u64());
        rows
    }
}

/// P2WSH of OP_TRUE.
pub(crate) fn script() -> Vec<u8> {
    [&[0x00, 0x20][..], &lydian_hash::sha256(&[0x51])].concat()
}

/// A transaction that shares what is left after the fee among outputs of [`script`].
pub(crate) fn spending(inputs: &[(OutPoint, i64)], outputs: usize, fee: i64) -> MutTx {
    let input = |(prevout, _): &(OutPoint, i64)| MutInput {
        prevout: *prevout,
        script_sig: Vec::new(),
        sequence: 0xffff_fffd,
        witness: vec![vec![0x51]],
    };
    let value = inputs.iter().map(|(_, value)| value).sum::<i64>() - fee;
    let output = MutOutput { value: Amount(value / i64::try_from(outputs).unwrap()), script_pubkey: script() };
    MutTx { version: 2, inputs: inputs.iter().map(input).collect(), outputs: vec![output; outputs], lock_time: 0 }
}

pub(crate) fn outputs(tx: &MutTx) -> Vec<(OutPoint, i64)> {
    let txid = tx.txid();
    (0..).zip(&tx.outputs).map(|(vout, output)| (OutPoint { txid, vout }, output.value.0)).collect()
}

impl Page {
    pub(crate) fn generate(&self, count: usize) -> Vec<String> {
        self.generate_to(&script(), count)
    }

    pub(crate) fn generate_to(&self, script: &[u8], count: usize) -> Vec<String> {
        let descriptor = format!("raw({})", to_hex(script));
        serde_json::from_value(self.server.result("generatetodescriptor", &json!([count, descriptor]).to_string()))
            .unwrap()
    }

    /// Coinbases of the first blocks, which can be spent.
    pub(crate) fn coinbases(&self, count: u32) -> Vec<(OutPoint, i64)> {
        let coinbase = |height: u32| {
            let hash = self.server.result("getblockhash", &format!("[{height}]"));
            let block = self.server.result("getblock", &json!([hash]).to_string());
            let txid: Txid = block["tx"][0].as_str().unwrap().parse().unwrap();
            (OutPoint { txid, vout: 0 }, 50 * 100_000_000)
        };
        (1..=count).map(coinbase).collect()
    }

    /// `sendrawtransaction`: an error has Core's words.
    pub(crate) fn send(&self, tx: &MutTx) -> Result<(), String> {
        let answer = self.server.call("sendrawtransaction", &json!([to_hex(&tx.encode()), 0]).to_string());
        let answer: Value = serde_json::from_str(&answer.body).unwrap();
        match answer["error"]["message"].as_str() {
            Some(message) => Err(message.to_owned()),
            None => Ok(()),
        }
    }
}

fn satoshi(value: &Value) -> i64 {
    #[allow(clippy::cast_possible_truncation, reason = "eight decimals")]
    let satoshi = (value.as_f64().unwrap() * 1e8).round() as i64;
    satoshi
}

/// The bands, counted from `getrawmempool true`.
fn recount(entries: &Map<String, Value>) -> Value {
    let (mut vsize, mut count, mut fees) = ([0_u64; BAND_COUNT], [0_u64; BAND_COUNT], [0_i64; BAND_COUNT]);
    for entry in entries.values() {
        let size = i32::try_from(entry["chunkweight"].as_i64().unwrap()).unwrap();
        let band = band_of(FeeSize::new(satoshi(&entry["fees"]["chunk"]), size));
        vsize[band] += entry["vsize"].as_u64().unwrap();
        count[band] += 1;
        fees[band] += satoshi(&entry["fees"]["base"]);
    }
    json!({ "vsize": vsize.as_slice(), "count": count.as_slice(), "fees": fees.as_slice() })
}

/// Waits until the topic shows the mempool as RPC does.
fn check_sums(page: &Page, live: &mut MempoolData, when: &str) -> usize {
    let entries = page.server.result("getrawmempool", "[true]");
    let info = page.server.result("getmempoolinfo", "[]");
    let expected = recount(entries.as_object().unwrap());
    live.until(when, |state| state.get("bands") == Some(&expected));
    live.until(when, |state| state["usage"] == info["usage"] && state["minFee"] == satoshi(&info["mempoolminfee"]));
    let state = &live.state;
    assert_eq!((&state["count"], &state["vsize"]), (&info["size"], &info["bytes"]), "{when}");
    assert_eq!(state["fees"].as_i64(), Some(satoshi(&info["total_fee"])), "{when}");
    assert_eq!(state["minFee"].as_i64(), Some(satoshi(&info["mempoolminfee"])), "{when}");
    assert_eq!(state["usageMax"], info["maxmempool"], "{when}");
    assert_eq!(state["unbroadcast"], info["unbroadcastcount"], "{when}");
    entries.as_object().unwrap().len()
}

/// Random transactions: of all feerates, with children that pay for parents, and replacements.
fn send_many(page: &Page, random: &mut SplitMix64, coins: &mut Vec<(OutPoint, i64)>, count: usize) -> usize {
    let mut sent = 0;
    for _ in 0..count {
        let place = random.below(coins.len());
        let coin = coins[place];
        let rate = [0, 1, 1, 3, 8, 30, 120, 900][random.below(8)];
        let tx = spending(&[coin], 1 + random.below(3), 12 + rate * i64::try_from(100 + random.below(90)).unwrap());
        if page.send(&tx).is_ok() {
            sent += 1;
            coins.extend(outputs(&tx));
        }
        // Some are spent twice, which replaces what spent them.
        if random.below(4) > 0 {
            coins.swap_remove(place);
        }
    }
    sent
}

/// Coins in clusters that are not too large.
fn fan_out(page: &Page, coinbases: &[(OutPoint, i64)]) -> Vec<(OutPoint, i64)> {
    let mut coins = Vec::new();
    for coin in coinbases {
        let tx = spending(&[*coin], 20, 10_000);
        page.send(&tx).unwrap();
        coins.extend(outputs(&tx));
    }
    page.generate(1);
    coins
}

#[test]
fn the_fee_bands_are_those_of_the_mempool() {
    let page = Page::start("page-bands", &[]);
    page.generate(130);
    let mut live = page.live();
    live.until("the first data", |state| state.contains_key("bands"));
    assert_eq!(live.state["rates"], json!(BAND_RATES.as_slice()));
    let mut coins = fan_out(&page, &page.coinbases(10));
    let mut random = SplitMix64::new(3);
    for round in 0..3 {
        let sent = send_many(&page, &mut random, &mut coins, 60);
        assert!(sent > 20, "{sent} were sent");
        check_sums(&page, &mut live, &format!("round {round}"));
    }
    let count = check_sums(&page, &mut live, "all are sent");
    let filled = live.state["bands"]["count"].as_array().unwrap().iter().filter(|count| **count != json!(0)).count();
    assert!(count > 60 && filled >= 5, "{count} transactions in {filled} bands");
    // A fee delta moves a cluster to another band, and no transaction comes or goes.
    let cheapest = page.server.result("getrawmempool", "[]").as_array().unwrap().last().unwrap().clone();
    page.server.result("prioritisetransaction", &json!([cheapest, 0, 50_000_000]).to_string());
    let before = live.state["bands"].clone();
    check_sums(&page, &mut live, "after prioritisetransaction");
    assert_ne!(live.state["bands"], before);
    let hashes = page.generate(1);
    assert_eq!(check_sums(&page, &mut live, "after a block"), 0);
    send_many(&page, &mut random, &mut coins, 20);
    page.server.result("invalidateblock", &json!([hashes[0]]).to_string());
    let returned = check_sums(&page, &mut live, "after a reorganisation");
    assert!(returned >= count, "{returned} of {count} returned");
    page.server.result("reconsiderblock", &json!([hashes[0]]).to_string());
    check_sums(&page, &mut live, "after the block is back");
}

#[test]
fn projected_blocks_are_mined() {
    let page = Page::start("page-projection", &[]);
    page.generate(130);
    let mut live = page.live();
    let mut coins = fan_out(&page, &page.coinbases(12));
    let mut random = SplitMix64::new(8);
    send_many(&page, &mut random, &mut coins, 150);
    let count = check_sums(&page, &mut live, "all are sent");
    // The block builder of RPC takes all of them, since they are few.
    let projected_count = |state: &Map<String, Value>| {
        state.get("projected")?.as_array().map(|all| all.iter().map(|block| block["count"].as_u64().unwrap()).sum())
    };
    live.until("the projection", |state| projected_count(state) == Some(count as u64));
    let projected = live.state["projected"].clone();
    let entries = page.server.result("getrawmempool", "[true]");
    let rate = |entry: &Value| {
        let chunk = FeeSize::new(
            satoshi(&entry["fees"]["chunk"]),
            i32::try_from(entry["chunkweight"].as_i64().unwrap()).unwrap(),
        );
        i128::from(chunk.fee) * 4_000 / i128::from(chunk.size)
    };
    let rates: Vec<i128> = entries.as_object().unwrap().values().map(rate).collect();
    let thousandths = |value: &Value| {
        #[allow(clippy::cast_possible_truncation, reason = "three decimals")]
        let value = (value.as_f64().unwrap() * 1_000.0).round() as i128;
        value
    };
    assert_eq!(thousandths(&projected[0]["max"]), *rates.iter().max().unwrap());
    assert_eq!(thousandths(&projected[0]["min"]), *rates.iter().min().unwrap());
    let hash = page.generate(1).remove(0);
    let stats = page.server.result("getblockstats", &json!([hash]).to_string());
    let block = page.server.result("getblock", &json!([hash, 1]).to_string());
    assert_eq!(projected[0]["fees"], stats["totalfee"]);
    assert_eq!(projected[0]["weight"], stats["total_weight"]);
    assert_eq!(projected[0]["count"].as_u64().unwrap() + 1, block["nTx"].as_u64().unwrap());
    let key = format!("block:{hash}");
    live.until("the comparison", |state| state.contains_key(&key));
    let row = &live.state[&key];
    let mined = block["nTx"].as_u64().unwrap() - 1;
    let expected = json!({
        "height": block["height"], "hash": hash, "time": block["time"], "expected": mined, "mined": mined, "missing": 0,
        "added": 0, "unknown": 0, "expectedFees": stats["totalfee"], "fees": stats["totalfee"],
    });
    assert_eq!(*row, expected);
    live.until("an empty mempool has no projection", |state| state["projected"] == json!([]));
    check_a_block_of_another_miner(&page, &mut live, &mut coins);
}

/// A block that lacks some transactions, and has one that no mempool had.
fn check_a_block_of_another_miner(page: &Page, live: &mut MempoolData, coins: &mut Vec<(OutPoint, i64)>) {
    let mut unconfirmed = Vec::new();
    while unconfirmed.len() < 5 {
        let tx = spending(&[coins.pop().unwrap()], 1, 5_000);
        if page.send(&tx).is_ok() {
            unconfirmed.push(tx.txid().to_string());
        }
    }
    let secret = loop {
        let tx = spending(&[coins.pop().unwrap()], 1, 3_333);
        let tested = page.server.result("testmempoolaccept", &json!([[to_hex(&tx.encode())]]).to_string());
        if tested[0]["allowed"] == true {
            break tx;
        }
    };
    let txs = json!([unconfirmed[0], unconfirmed[3], to_hex(&secret.encode())]);
    let descriptor = format!("raw({})", to_hex(&script()));
    let made = page.server.result("generateblock", &json!([descriptor, txs]).to_string());
    let hash = made["hash"].as_str().unwrap();
    let key = format!("block:{hash}");
    live.until("the comparison", |state| state.contains_key(&key));
    let row = &live.state[&key];
    let figures = ["expected", "mined", "missing", "added", "unknown", "expectedFees", "fees"]
        .map(|name| row[name].as_i64().unwrap());
    assert_eq!(figures, [5, 3, 3, 1, 1, 25_000, 13_333]);
    let found = page.client().result("lydian_minedblock", &json!([hash]));
    let mut missing: Vec<&str> =
        found["missingTxids"].as_array().unwrap().iter().map(|txid| txid.as_str().unwrap()).collect();
    missing.sort_unstable();
    let mut expected = [1, 2, 4].map(|place: usize| unconfirmed[place].as_str());
    expected.sort_unstable();
    assert_eq!(missing, expected);
    assert_eq!(found["addedTxids"], json!([secret.txid().to_string()]));
    let error = page.client().try_result("lydian_minedblock", &json!(["00"])).unwrap_err();
    assert_eq!(error, (-5, "Block 00 was not compared with its projection, or that was too long ago.".to_owned()));
}

#[test]
fn rejections_and_replacements_are_shown_within_two_seconds() {
    let page = Page::start("page-rejects", &[]);
    page.generate(130);
    let coins = fan_out(&page, &page.coinbases(2));
    let mut live = page.live();
    live.until("the first data", |state| state.contains_key("bands"));
    assert!(live.rows("reject:").is_empty() && live.rows("replacement:").is_empty());
    let first = spending(&[coins[0]], 1, 1_000);
    page.send(&first).unwrap();
    let dust =
        MutTx { outputs: vec![MutOutput { value: Amount(1), script_pubkey: script() }], ..spending(&[coins[1]], 1, 0) };
    let wrong = MutTx {
        inputs: vec![MutInput { witness: vec![vec![0x52]], ..spending(&[coins[2]], 1, 0).inputs[0].clone() }],
        ..spending(&[coins[2]], 1, 1_000)
    };
    let unknown = spending(&[(OutPoint { txid: Txid([7; 32]), vout: 0 }, 1_000_000)], 1, 1_000);
    let poor = spending(&[coins[0]], 1, 1_001);
    let cheap = spending(&[coins[3]], 1, 0);
    let mut times = Vec::new();
    for tx in [&dust, &wrong, &unknown, &poor, &cheap] {
        let count = live.rows("reject:").len();
        // A test is not a rejection.
        let tested = page.server.result("testmempoolaccept", &json!([[to_hex(&tx.encode())]]).to_string());
        assert_eq!(tested[0]["allowed"], false);
        let words = page.send(tx).unwrap_err();
        let took =
            live.until("the rejection", |state| state.keys().filter(|key| key.starts_with("reject:")).count() > count);
        times.push(took);
        let row = live.rows("reject:").pop().unwrap();
        assert_eq!(row["reason"], json!(words), "as sendrawtransaction answered");
        // Core's own word for missing inputs in testmempoolaccept is another.
        let reason = tested[0]["reject-reason"].as_str().unwrap();
        assert!(words.starts_with(reason) || reason == "missing-inputs", "{words} {reason}");
        assert_eq!((&row["txid"], &row["wtxid"]), (&tested[0]["txid"], &tested[0]["wtxid"]));
        let decoded = page.server.result("decoderawtransaction", &json!([to_hex(&tx.encode())]).to_string());
        assert_eq!(row["vsize"], decoded["vsize"]);
    }
    let better = spending(&[coins[0]], 1, 9_000);
    page.send(&better).unwrap();
    times.push(live.until("the replacement", |state| state.keys().any(|key| key.starts_with("replacement:"))));
    // The shortest time counts, as the machine may stall.
    assert!(times.iter().min() < Some(&Duration::from_secs(2)), "{times:?}");
    let row = live.rows("replacement:").pop().unwrap();
    let vsize = |tx: &MutTx| tx.to_transaction().unwrap().view().weight().div_ceil(4);
    let expected = json!({
        "number": 5, "time": row["time"], "txid": better.txid().to_string(), "vsize": vsize(&better), "fee": 9_000,
        "replaced": [first.txid().to_string()], "replacedCount": 1, "replacedVsize": vsize(&first), "replacedFees": 1_000,
    });
    assert_eq!(row, expected);
    let mut rejects = page.client().result("lydian_rejects", &json!([]));
    rejects.as_array_mut().unwrap().reverse();
    assert_eq!(rejects, json!(live.rows("reject:")));
    assert_eq!(page.client().result("lydian_replacements", &json!([])), json!([row]));
    assert_eq!(page.client().result("getorphantxs", &json!([1])), page.server.result("getorphantxs", "[1]"));
}
