//! `-esplora`: every answer follows from what Core's RPC says of the same chain and mempool.

use crate::chain::Pair;
use crate::electrum::{Paid, pay, script};
use crate::electrum_model::{Model, Script, satoshis, text};
use crate::esplora_added::check_added;
use crate::server::Server;
use lydian_hash::{hash160, sha256};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid, hex, to_hex};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer over HTTP.
pub(crate) struct Answer {
    pub(crate) code: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.to_lowercase().strip_prefix(&format!("{name}: ")).map(str::to_owned))
    }
}

/// The server's port, with questions.
pub(crate) struct Site(pub(crate) u16);

impl Site {
    /// The site at `http://127.0.0.1:<port>`.
    pub(crate) fn of(url: &str) -> Site {
        Site(url.rsplit_once(':').unwrap().1.parse().unwrap())
    }

    pub(crate) fn ask(&self, verb: &str, path: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.0)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let size = body.len();
        let head = format!("{verb} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n");
        stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { code, head, body: answer[end + 4..].to_vec() }
    }

    pub(crate) fn get(&self, path: &str) -> String {
        let answer = self.ask("GET", path, "");
        assert_eq!(answer.code, 200, "{path}: {}", answer.text());
        answer.text()
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path)).unwrap()
    }

    pub(crate) fn error(&self, verb: &str, path: &str, body: &str) -> (u16, String) {
        let answer = self.ask(verb, path, body);
        (answer.code, answer.text())
    }
}

/// A running pair whose first program serves Esplora.
fn start(test: &str) -> Option<(Pair, Site)> {
    let mut pair = Pair::start(test, &["-acceptnonstdtxn=0"])?;
    let site = Site(lydian_oracle::free_port().unwrap());
    let bind = format!("-esplorabind=127.0.0.1:{}", site.0);
    pair.lydian.restart(&["-acceptnonstdtxn=0", "-esplora", &bind]);
    wait_for(&site);
    Some((pair, site))
}

pub(crate) fn wait_for(site: &Site) {
    let is_up = |_| {
        std::thread::sleep(Duration::from_millis(25));
        TcpStream::connect(("127.0.0.1", site.0)).is_ok()
    };
    assert!((0..2_400).any(is_up));
}

/// The fields of an output as Esplora has them, of Core's.
fn output(output: &Value) -> Value {
    let script = &output["scriptPubKey"];
    let bytes = text(&script["hex"]);
    let kind = match (bytes.as_str(), script["type"].as_str().unwrap()) {
        ("", _) => "empty",
        (_, "pubkeyhash") => "p2pkh",
        (_, "scripthash") => "p2sh",
        (_, "witness_v0_keyhash") => "v0_p2wpkh",
        (_, "witness_v0_scripthash") => "v0_p2wsh",
        (_, "witness_v1_taproot") => "v1_p2tr",
        (bytes, _) if bytes.starts_with("6a") => "op_return",
        (bytes, _) if bytes.ends_with("ac") && [70, 134].contains(&bytes.len()) => "p2pk",
        _ => "unknown",
    };
    let mut fields = Map::new();
    fields.insert("scriptpubkey".to_owned(), bytes.into());
    fields.insert("scriptpubkey_type".to_owned(), kind.into());
    if let Some(address) = script.get("address") {
        fields.insert("scriptpubkey_address".to_owned(), address.clone());
    }
    fields.insert("value".to_owned(), satoshis(&output["value"]).into());
    fields.into()
}

/// A transaction as Esplora has it without assembly text, of Core's with its prevouts.
fn transaction(tx: &Value, status: &Value) -> Value {
    let input = |input: &Value| {
        let is_coinbase = input.get("coinbase").is_some();
        let mut fields = Map::new();
        fields.insert("is_coinbase".to_owned(), is_coinbase.into());
        fields.insert("sequence".to_owned(), input["sequence"].clone());
        let (txid, vout, script, prevout) = match is_coinbase {
            true => ("00".repeat(32).into(), json!(u32::MAX), input["coinbase"].clone(), Value::Null),
            false => {
                let script = input["scriptSig"]["hex"].clone();
                (input["txid"].clone(), input["vout"].clone(), script, output(&input["prevout"]))
            }
        };
        fields.insert("txid".to_owned(), txid);
        fields.insert("vout".to_owned(), vout);
        fields.insert("scriptsig".to_owned(), script);
        fields.insert("prevout".to_owned(), prevout);
        if let Some(witness) = input.get("txinwitness") {
            fields.insert("witness".to_owned(), witness.clone());
        }
        Value::from(fields)
    };
    let list = |name: &str| tx[name].as_array().unwrap().clone();
    json!({
        "txid": tx["txid"],
        "version": tx["version"],
        "locktime": tx["locktime"],
        "size": tx["size"],
        "weight": tx["weight"],
        "fee": tx.get("fee").map_or(0, satoshis),
        "vin": list("vin").iter().map(input).collect::<Vec<_>>(),
        "vout": list("vout").iter().map(output).collect::<Vec<_>>(),
        "status": status,
    })
}

/// Takes the assembly text away, which has its own test, and returns how many there were.
pub(crate) fn without_asm(value: &mut Value) -> usize {
    match value {
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().filter(|name| name.ends_with("_asm")).cloned().collect();
            names.iter().for_each(|name| drop(fields.remove(name)));
            names.len() + fields.values_mut().map(without_asm).sum::<usize>()
        }
        Value::Array(list) => list.iter_mut().map(without_asm).sum(),
        _ => 0,
    }
}

/// What Core knows: transactions in Esplora's form, and who spends each output.
pub(crate) struct Expected {
    pub(crate) model: Model,
    /// Esplora's form by txid; blocks in order, then the mempool.
    pub(crate) transactions: BTreeMap<String, Value>,
    spenders: BTreeMap<(String, u64), Value>,
    blocks: Vec<Value>,
}

impl Expected {
    fn of(core: &Server) -> Expected {
        let model = Model::of(core);
        let mut expected =
            Expected { model, transactions: BTreeMap::new(), spenders: BTreeMap::new(), blocks: Vec::new() };
        let mut core_blocks = Vec::new();
        for height in 0..expected.model.hashes.len() {
            let block = core.result("getblock", &format!("[\"{}\",3]", expected.model.hashes[height]));
            let status = json!({
                "confirmed": true, "block_height": height, "block_hash": block["hash"], "block_time": block["time"]
            });
            block["tx"].as_array().unwrap().iter().for_each(|tx| expected.add(transaction(tx, &status)));
            let bits = u32::from_str_radix(block["bits"].as_str().unwrap(), 16).unwrap();
            expected.blocks.push(json!({
                "id": block["hash"],
                "height": height,
                "version": block["version"],
                "timestamp": block["time"],
                "tx_count": block["nTx"],
                "size": block["size"],
                "weight": block["weight"],
                "merkle_root": block["merkleroot"],
                "previousblockhash": block.get("previousblockhash"),
                "mediantime": block["mediantime"],
                "nonce": block["nonce"],
                "bits": bits,
                "difficulty": block["difficulty"],
            }));
            core_blocks.push(block);
        }
        let pool = Model::pool(core);
        let pooled = pool.iter().map(|(tx, _)| tx.clone());
        let all = core_blocks.iter().flat_map(|block| block["tx"].as_array().unwrap().clone()).chain(pooled);
        let outputs: BTreeMap<String, Value> = all.map(|tx| (text(&tx["txid"]), tx["vout"].clone())).collect();
        for (mut tx, fee) in pool {
            // Core names the outputs that are spent for transactions in blocks only.
            for input in tx["vin"].as_array_mut().unwrap() {
                let vout = usize::try_from(input["vout"].as_u64().unwrap()).unwrap();
                input["prevout"] = outputs[&text(&input["txid"])][vout].clone();
            }
            let mut made = transaction(&tx, &json!({"confirmed": false}));
            made["fee"] = fee.into();
            expected.add(made);
        }
        expected
    }

    fn add(&mut self, made: Value) {
        let status = &made["status"];
        for (index, input) in
            made["vin"].as_array().unwrap().iter().enumerate().filter(|(_, of)| of["is_coinbase"] == false)
        {
            let spender = json!({"spent": true, "txid": made["txid"], "vin": index, "status": status});
            self.spenders.insert((text(&input["txid"]), input["vout"].as_u64().unwrap()), spender);
        }
        self.transactions.insert(text(&made["txid"]), made);
    }

    fn spender(&self, txid: &str, vout: u64) -> Value {
        self.spenders.get(&(txid.to_owned(), vout)).cloned().unwrap_or_else(|| json!({"spent": false}))
    }

    /// Counts and sums of a script over transactions.
    fn stats<'a>(&self, script: &str, txids: impl Iterator<Item = &'a String>) -> Value {
        let (mut count, mut funded, mut spent) = (0, (0, 0), (0, 0));
        for txid in txids {
            count += 1;
            let tx = &self.transactions[txid];
            for output in tx["vout"].as_array().unwrap().iter().filter(|output| output["scriptpubkey"] == script) {
                funded = (funded.0 + 1, funded.1 + output["value"].as_i64().unwrap());
            }
            for input in tx["vin"].as_array().unwrap() {
                let output = &input["prevout"];
                if output["scriptpubkey"] == script {
                    spent = (spent.0 + 1, spent.1 + output["value"].as_i64().unwrap());
                }
            }
        }
        json!({
            "tx_count": count,
            "funded_txo_count": funded.0,
            "funded_txo_sum": funded.1,
            "spent_txo_count": spent.0,
            "spent_txo_sum": spent.1,
        })
    }
}

/// A list of transactions without assembly text.
fn list(site: &Site, path: &str) -> Vec<Value> {
    let mut all = site.json(path);
    without_asm(&mut all);
    all.as_array().unwrap().clone()
}

fn check_script(site: &Site, expected: &Expected, script: &Script) {
    let (bytes, hash) = (to_hex(&script.script), to_hex(&sha256(&script.script)));
    let base = format!("/scripthash/{hash}");
    let confirmed: Vec<&String> = script.confirmed.iter().map(|(_, txid)| txid).collect();
    let pool: Vec<&String> = script.pool.iter().map(|(_, txid, _)| txid).collect();
    let (chain_stats, pool_stats) =
        (expected.stats(&bytes, confirmed.iter().copied()), expected.stats(&bytes, pool.iter().copied()));
    let stats = json!({"scripthash": hash, "chain_stats": chain_stats, "mempool_stats": pool_stats});
    assert_eq!(site.json(&base), stats, "sums of {bytes}");
    // The mempool's order is that of arrival, which Core does not tell.
    let by_txid = |mut txs: Vec<Value>| {
        txs.sort_by_key(|tx| text(&tx["txid"]));
        txs
    };
    let in_pool: Vec<Value> = pool.iter().map(|txid| expected.transactions[*txid].clone()).collect();
    let in_pool = by_txid(in_pool);
    assert_eq!(by_txid(list(site, &format!("{base}/txs/mempool"))), in_pool, "mempool of {bytes}");
    let newest: Vec<Value> = confirmed.iter().rev().map(|txid| expected.transactions[*txid].clone()).collect();
    let mut both = list(site, &format!("{base}/txs"));
    let chain = both.split_off(in_pool.len());
    assert_eq!((by_txid(both), chain), (in_pool, newest[..newest.len().min(25)].to_vec()), "transactions of {bytes}");
    // Page by page.
    let mut pages = list(site, &format!("{base}/txs/chain"));
    for _ in 0..8 {
        let Some(last) = pages.last().filter(|_| pages.len().is_multiple_of(25)) else { break };
        let next = list(site, &format!("{base}/txs/chain/{}", text(&last["txid"])));
        let same = list(site, &format!("{base}/txs?after_txid={}", text(&last["txid"])));
        assert_eq!(next, same);
        assert!(next.len() <= 25);
        if next.is_empty() {
            break;
        }
        pages.extend(next);
    }
    let count = pages.len();
    assert_eq!(pages, newest[..count].to_vec(), "pages of {bytes}");
    assert!(count == newest.len() || count > 200, "{count} of {} for {bytes}", newest.len());
    let coins: Vec<Value> = script
        .coins
        .iter()
        .map(|(_, txid, vout, value)| {
            json!({"txid": txid, "vout": vout, "value": value, "status": expected.transactions[txid]["status"]})
        })
        .collect();
    let answer = site.ask("GET", &format!("{base}/utxo"), "");
    assert_eq!(answer.header("x-total-results"), Some(coins.len().to_string()));
    assert_eq!(serde_json::from_slice::<Value>(&answer.body).unwrap(), Value::from(coins), "coins of {bytes}");
}

fn check_transactions(site: &Site, pair: &Pair, expected: &Expected) {
    for (index, (txid, tx)) in expected.transactions.iter().enumerate() {
        let mut got = site.json(&format!("/tx/{txid}"));
        let count = without_asm(&mut got);
        assert!(count >= tx["vin"].as_array().unwrap().len() + tx["vout"].as_array().unwrap().len());
        assert_eq!(got, *tx);
        let outputs = u64::try_from(tx["vout"].as_array().unwrap().len()).unwrap();
        let spenders: Vec<Value> = (0..outputs).map(|vout| expected.spender(txid, vout)).collect();
        assert_eq!(site.json(&format!("/tx/{txid}/outspends")), Value::from(spenders.clone()), "{txid}");
        if index % 5 > 0 {
            continue;
        }
        assert_eq!(site.json(&format!("/tx/{txid}/status")), tx["status"]);
        assert_eq!(site.json(&format!("/tx/{txid}/outspend/0")), spenders[0]);
        let status = &tx["status"];
        if status["confirmed"] == true && status["block_height"] != 0 {
            let raw = pair.core.result("getrawtransaction", &json!([txid, 0, status["block_hash"]]).to_string());
            assert_eq!(site.get(&format!("/tx/{txid}/hex")), text(&raw));
            let bytes = site.ask("GET", &format!("/tx/{txid}/raw"), "").body;
            assert_eq!(bytes, hex(&text(&raw)).unwrap());
        }
        if status["confirmed"] == true {
            let proof = pair.core.result("gettxoutproof", &json!([[txid], status["block_hash"]]).to_string());
            assert_eq!(site.get(&format!("/tx/{txid}/merkleblock-proof")), text(&proof));
            let proof = site.json(&format!("/tx/{txid}/merkle-proof"));
            let height = usize::try_from(status["block_height"].as_u64().unwrap()).unwrap();
            assert_eq!(proof["block_height"], height);
            let position = usize::try_from(proof["pos"].as_u64().unwrap()).unwrap();
            let root = crate::electrum::root_of(txid, position, &proof["merkle"]);
            assert_eq!(root, expected.model.roots[height]);
        }
    }
}

fn check_blocks(site: &Site, pair: &Pair, expected: &Expected) {
    let tip = expected.blocks.len() - 1;
    assert_eq!(site.get("/blocks/tip/height"), tip.to_string());
    assert_eq!(site.get("/blocks/tip/hash"), expected.model.hashes[tip]);
    let from = |height: usize| {
        let first = (height + 1).saturating_sub(10);
        Value::from(expected.blocks[first..=height].iter().rev().cloned().collect::<Vec<_>>())
    };
    assert_eq!(site.json("/blocks"), from(tip));
    assert_eq!(site.json("/blocks/3"), from(3));
    for (height, block) in expected.blocks.iter().enumerate() {
        let hash = text(&block["id"]);
        assert_eq!(site.json(&format!("/block/{hash}")), *block);
        assert_eq!(site.get(&format!("/block-height/{height}")), hash);
        assert_eq!(site.get(&format!("/block/{hash}/header")), expected.model.headers[height]);
        let mut status = json!({"in_best_chain": true, "height": height});
        if let Some(next) = expected.model.hashes.get(height + 1) {
            status["next_best"] = next.clone().into();
        }
        assert_eq!(site.json(&format!("/block/{hash}/status")), status);
        let txids = &expected.model.blocks[height];
        assert_eq!(site.json(&format!("/block/{hash}/txids")), json!(txids));
        assert_eq!(site.get(&format!("/block/{hash}/txid/{}", txids.len() - 1)), txids[txids.len() - 1]);
        for start in (0..txids.len()).step_by(25) {
            let page = list(site, &format!("/block/{hash}/txs/{start}"));
            let page_txids = &txids[start..txids.len().min(start + 25)];
            assert_eq!(page, page_txids.iter().map(|txid| expected.transactions[txid].clone()).collect::<Vec<_>>());
        }
        if height % 20 == 0 {
            let raw = pair.core.result("getblock", &format!("[\"{hash}\",0]"));
            assert_eq!(site.ask("GET", &format!("/block/{hash}/raw"), "").body, hex(&text(&raw)).unwrap());
        }
    }
}

fn check_pool(site: &Site, pair: &Pair) {
    let info = pair.core.result("getmempoolinfo", "[]");
    let got = site.json("/mempool");
    assert_eq!((&got["count"], &got["vsize"]), (&info["size"], &info["bytes"]));
    assert_eq!(got["total_fee"], satoshis(&info["total_fee"]));
    let bins = got["fee_histogram"].as_array().unwrap();
    assert_eq!(bins.iter().map(|bin| bin[1].as_u64().unwrap()).sum::<u64>(), info["bytes"].as_u64().unwrap());
    let sorted = |value: &Value| {
        let mut all: Vec<String> = value.as_array().unwrap().iter().map(text).collect();
        all.sort();
        all
    };
    let pool = sorted(&pair.core.result("getrawmempool", "[]"));
    assert_eq!(sorted(&site.json("/mempool/txids")), pool);
    assert_eq!(sorted(&site.json("/mempool/txids/page")), pool);
    let mut by_bytes = pool.clone();
    by_bytes.sort_by_key(|txid| txid.parse::<Txid>().unwrap().0);
    if let Some((first, rest)) = by_bytes.split_first() {
        assert_eq!(site.json(&format!("/mempool/txids/page/{first}")), json!(rest));
    }
    for recent in site.json("/mempool/recent").as_array().unwrap() {
        let entry = pair.core.result("getmempoolentry", &json!([recent["txid"]]).to_string());
        assert_eq!(recent["fee"], satoshis(&entry["fees"]["base"]));
        assert_eq!(recent["vsize"], entry["vsize"]);
        let tx = pair.core.result("getrawtransaction", &json!([recent["txid"], 1]).to_string());
        let value: i64 = tx["vout"].as_array().unwrap().iter().map(|output| satoshis(&output["value"])).sum();
        assert_eq!(recent["value"], value);
    }
}

/// Compares every answer with Core's.
fn check_all(site: &Site, pair: &Pair) -> Expected {
    let expected = Expected::of(&pair.core);
    expected.model.scripts.values().for_each(|script| check_script(site, &expected, script));
    check_transactions(site, pair, &expected);
    check_blocks(site, pair, &expected);
    check_pool(site, pair);
    check_added(site, &expected);
    expected
}

/// P2SH of OP_1.
fn script_hash() -> Vec<u8> {
    [&[0xa9, 0x14][..], &hash160(&[0x51]), &[0x87]].concat()
}

/// An output of each kind, together 800,000 satoshis.
pub(crate) fn kinds() -> Vec<MutOutput> {
    let key = [&[0x02][..], &[0x79; 32]].concat();
    let scripts = vec![
        [&[0x21][..], &key, &[0xac]].concat(),
        [&[0x76, 0xa9, 0x14][..], &hash160(&key), &[0x88, 0xac]].concat(),
        script_hash(),
        [&[0x00, 0x14][..], &hash160(&key)].concat(),
        [&[0x51, 0x20][..], &[0x11; 32]].concat(),
        vec![0x51, 0x02, 0x4e, 0x73],
        [&[0x52, 0x20][..], &[0x22; 32]].concat(),
        vec![0x6a, 0x02, 0xaa, 0xbb],
        [&[0x51, 0x21][..], &key, &[0x51, 0xae]].concat(),
    ];
    let value = |script: &[u8]| Amount(if script.first() == Some(&0x6a) { 0 } else { 100_000 });
    scripts.into_iter().map(|script| MutOutput { value: value(&script), script_pubkey: script }).collect()
}

/// Calls both.
pub(crate) fn both(pair: &Pair, method: &str, params: &Value) -> Value {
    pair.lydian.result(method, &params.to_string());
    pair.core.result(method, &params.to_string())
}

pub(crate) fn coinbase(pair: &Pair, height: u32) -> Paid {
    let hash = pair.core.result("getblockhash", &format!("[{height}]"));
    let block = pair.core.result("getblock", &format!("[{hash}]"));
    (OutPoint { txid: text(&block["tx"][0]).parse().unwrap(), vout: 0 }, 5_000_000_000, 1)
}

/// By address as by script hash.
fn check_addresses(site: &Site, expected: &Expected) -> usize {
    let outputs = expected.transactions.values().flat_map(|tx| tx["vout"].as_array().unwrap());
    let addresses: BTreeMap<String, String> = outputs
        .filter_map(|output| Some((text(output.get("scriptpubkey_address")?), text(&output["scriptpubkey"]))))
        .collect();
    for (address, script) in &addresses {
        let hash = to_hex(&sha256(&hex(script).unwrap()));
        let (mut of, by) = (site.json(&format!("/address/{address}")), site.json(&format!("/scripthash/{hash}")));
        assert_eq!(of["address"], *address);
        let fields = of.as_object_mut().unwrap();
        fields.remove("address");
        fields.insert("scripthash".to_owned(), hash.clone().into());
        assert_eq!(of, by);
        for path in ["txs", "txs/chain", "txs/mempool", "txs/summary", "utxo"] {
            let of_address = site.get(&format!("/address/{address}/{path}"));
            assert_eq!(of_address, site.get(&format!("/scripthash/{hash}/{path}")));
        }
        for path in ["txs", "txs/summary"] {
            let of_addresses = site.ask("POST", &format!("/addresses/{path}"), &json!([address]).to_string()).text();
            let of_scripts = site.ask("POST", &format!("/scripthashes/{path}"), &json!([hash]).to_string()).text();
            assert_eq!(of_addresses, of_scripts);
        }
    }
    addresses.len()
}

#[test]
fn esplora_answers_follow_from_the_blocks() {
    let Some((pair, site)) = start("esplora_answers_follow_from_the_blocks") else { return };
    pair.feed_branches();
    check_all(&site, &pair);
    // A block beside the active chain.
    let tips = pair.core.result("getchaintips", "[]");
    let stale = tips.as_array().unwrap().iter().find(|tip| tip["status"] == "valid-fork").unwrap();
    let hash = text(&stale["hash"]);
    assert_eq!(site.json(&format!("/block/{hash}/status")), json!({"in_best_chain": false}));
    let block = pair.core.result("getblock", &format!("[\"{hash}\"]"));
    assert_eq!(site.json(&format!("/block/{hash}/txids")), block["tx"]);
    for path in ["block", "internal/block"] {
        let page = site.json(&format!("/{path}/{hash}/txs"));
        assert_eq!(page.as_array().unwrap().len(), block["tx"].as_array().unwrap().len().min(25));
        assert_eq!(page[0]["status"], json!({"confirmed": false}));
    }
}

#[test]
fn esplora_answers_follow_from_the_mempool() {
    let Some((pair, site)) = start("esplora_answers_follow_from_the_mempool") else { return };
    both(&pair, "setmocktime", &json!([1_750_000_000]));
    let descriptor = format!("raw({})", to_hex(&script(1)));
    both(&pair, "generatetodescriptor", &json!([140, descriptor]));
    // Sent through the interface to the one, over RPC to the other.
    let send = |tx: &MutTx| {
        let raw = to_hex(&tx.encode());
        let tested = site.ask("POST", "/txs/test", &json!([raw]).to_string()).text();
        assert!(tested.contains("\"allowed\":true"), "{tested}");
        assert_eq!(site.ask("POST", "/tx", &raw).text(), tx.txid().to_string());
        pair.core.result("sendrawtransaction", &json!([raw]).to_string());
    };
    // One output of each kind, and P2WSH outputs that the next ones spend.
    let (mut first, paid) = pay(&[coinbase(&pair, 1)], &[2, 3, 4], 810_000);
    first.outputs.extend(kinds());
    let first_txid = first.txid();
    send(&first);
    let paid: Vec<Paid> =
        paid.into_iter().map(|(from, value, number)| (OutPoint { txid: first_txid, ..from }, value, number)).collect();
    check_all(&site, &pair);
    // A chain of unconfirmed transactions; one input spends P2SH.
    let (mut second, chained) = pay(&paid[..2], &[5, 2, 2], 10_000);
    let prevout = OutPoint { txid: first_txid, vout: 5 };
    second.inputs.push(MutInput { prevout, script_sig: vec![0x01, 0x51], sequence: u32::MAX, witness: Vec::new() });
    let second_txid = second.txid();
    send(&second);
    let chained = (OutPoint { txid: second_txid, ..chained[0].0 }, chained[0].1, chained[0].2);
    let (third, _) = pay(&[chained, coinbase(&pair, 2)], &[6], 20_000);
    send(&third);
    let expected = check_all(&site, &pair);
    assert!(check_addresses(&site, &expected) >= 10);
    let asm = &site.json(&format!("/tx/{second_txid}"))["vin"];
    assert_eq!(
        (&asm[0]["inner_witnessscript_asm"], &asm[2]["inner_redeemscript_asm"]),
        (&json!("OP_PUSHNUM_2"), &json!("OP_PUSHNUM_1"))
    );
    let several = site.json(&format!("/txs/outspends?txids={first_txid},{second_txid},{}", "22".repeat(32)));
    let of = |txid: Txid| site.json(&format!("/tx/{txid}/outspends"));
    assert_eq!(several, json!([of(first_txid), of(second_txid), []]));
    let by_txid = site.ask("POST", "/txs/outspends/by-txid", &json!([first_txid.to_string()]).to_string()).text();
    assert_eq!(serde_json::from_str::<Value>(&by_txid).unwrap(), json!([of(first_txid)]));
    let outpoints = json!([format!("{first_txid}:0"), format!("{first_txid}:2")]).to_string();
    let by_outpoint = site.ask("POST", "/txs/outspends/by-outpoint", &outpoints).text();
    assert_eq!(serde_json::from_str::<Value>(&by_outpoint).unwrap(), json!([of(first_txid)[0], of(first_txid)[2]]));
    // Refused by the rules: Core's code and message are in the error.
    let (double, _) = pay(&[coinbase(&pair, 2)], &[7], 15_000);
    let (code, words) = site.error("POST", "/tx", &to_hex(&double.encode()));
    assert!(code == 400 && words.contains("\"code\":-26") && words.contains("insufficient fee"), "{words}");
    // A package whose child pays for both.
    let (parent, out) = pay(&[coinbase(&pair, 3)], &[8], 1_000);
    let (child, _) = pay(&out, &[9], 9_000);
    let package = json!([to_hex(&parent.encode()), to_hex(&child.encode())]).to_string();
    let sent = site.ask("POST", "/txs/package", &package).text();
    assert!(sent.contains("\"package_msg\":\"success\""), "{sent}");
    pair.core.result("submitpackage", &format!("[{package}]"));
    check_all(&site, &pair);
    // Mined; then the block leaves, and returns.
    both(&pair, "generatetodescriptor", &json!([1, descriptor]));
    let expected = check_all(&site, &pair);
    assert!(check_addresses(&site, &expected) >= 10);
    let hash = pair.core.result("getbestblockhash", "[]");
    both(&pair, "invalidateblock", &json!([hash]));
    check_all(&site, &pair);
    for path in ["/addresses/txs", "/scripthashes/txs", "/addresses/txs/summary"] {
        assert_eq!(site.ask("POST", path, "[]").text(), "[]", "of no address, after a reorganisation");
    }
    both(&pair, "reconsiderblock", &json!([hash]));
    check_all(&site, &pair);
}

#[test]
fn wrong_requests_have_their_errors() {
    let port = lydian_oracle::free_port().unwrap();
    let options = ["-esplora", &format!("-esplorabind=127.0.0.1:{port}"), "-esploracors=*"];
    let (server, site) = (Server::lydian("wrong_requests_have_their_errors", &options), Site(port));
    wait_for(&site);
    server.result("generatetodescriptor", "[30,\"raw(51)\"]");
    let (unknown, tip) = ("11".repeat(32), site.get("/blocks/tip/hash"));
    let txid = site.get(&format!("/block/{tip}/txid/0"));
    let none = format!("Transaction not found: {unknown}");
    let many = json!(vec!["51".repeat(60); 26]).to_string();
    let spent = |count: usize| vec![txid.as_str(); count].join(",");
    for (verb, path, body, code, words) in [
        ("GET", "/".to_owned(), "", 404, "endpoint does not exist: /"),
        ("GET", "/tx".to_owned(), "", 405, "/tx does not answer GET"),
        ("GET", "/tx/12".to_owned(), "", 400, "\"12\" is no txid: 64 hexadecimal characters"),
        ("GET", format!("/tx/{unknown}"), "", 404, &none),
        ("GET", format!("/tx/{unknown}/hex"), "", 404, &none),
        ("GET", format!("/tx/{unknown}/outspends"), "", 404, &none),
        ("GET", format!("/tx/{txid}/outspend/x"), "", 400, "vout must be a whole number, not \"x\""),
        (
            "GET",
            format!("/tx/{unknown}/merkle-proof"),
            "",
            404,
            &format!("Transaction not found or is unconfirmed: {unknown}"),
        ),
        ("GET", "/block/zz".to_owned(), "", 400, "\"zz\" is no block hash: 64 hexadecimal characters"),
        ("GET", format!("/block/{unknown}"), "", 404, &format!("Block not found: {unknown}")),
        ("GET", format!("/block/{unknown}/status"), "", 404, &format!("Block not found: {unknown}")),
        ("GET", format!("/block/{tip}/txs/1"), "", 400, "start index must be a multiple of 25"),
        ("GET", format!("/block/{tip}/txs/25"), "", 404, "start index out of range: the block has 1 transactions"),
        ("GET", format!("/block/{tip}/txid/1"), "", 404, "tx index out of range: the block has 1 transactions"),
        ("GET", "/block-height/31".to_owned(), "", 404, "height 31 is above the tip 30"),
        ("GET", "/block-height/-1".to_owned(), "", 400, "height must be a whole number, not \"-1\""),
        ("GET", "/blocks/31".to_owned(), "", 404, "height 31 is above the tip 30"),
        ("GET", "/scripthash/51".to_owned(), "", 400, "\"51\" is no script hash: 64 hexadecimal characters"),
        ("GET", "/address-prefix/bc1".to_owned(), "", 400, "address search disabled"),
        (
            "POST",
            "/tx".to_owned(),
            "zz",
            400,
            "sendrawtransaction RPC error: {\"code\":-22,\"message\":\"TX decode failed. Make sure the tx has at least one input.\"}",
        ),
        ("GET", "/broadcast".to_owned(), "", 400, "Missing tx"),
        ("POST", "/txs/package".to_owned(), &many, 400, "26 transactions are too many: at most 25"),
        ("POST", "/txs/package?maxfeerate=x".to_owned(), "[]", 400, "Invalid maxfeerate"),
        ("POST", "/txs/test".to_owned(), &many, 400, "26 transactions are too many: at most 25"),
        ("GET", "/txs/outspends".to_owned(), "", 400, "the query has no txids"),
        ("GET", format!("/txs/outspends?txids={}", spent(51)), "", 400, "51 txids are too many: at most 50"),
        ("POST", "/txs/outspends/by-outpoint".to_owned(), "[\"5\"]", 400, "\"5\" is no outpoint: txid:vout"),
    ] {
        assert_eq!(site.error(verb, &path, body), (code, words.to_owned()), "{verb} {path}");
    }
    let of_mainnet = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa";
    let (code, words) = site.error("GET", &format!("/address/{of_mainnet}/utxo"), "");
    assert!(code == 400 && words.starts_with(&format!("\"{of_mainnet}\" is no address of this chain: ")), "{words}");
    let (code, words) = site.error("POST", "/txs/package", "nonsense");
    assert!(code == 400 && words.starts_with("the body must be an array of transactions in hexadecimal: "), "{words}");
    // At the limits.
    assert_eq!(site.json(&format!("/txs/outspends?txids={}", spent(50))).as_array().unwrap().len(), 50);
    assert_eq!(site.json("/blocks").as_array().unwrap().len(), 10);
    let package = json!(vec!["51".repeat(60); 25]).to_string();
    let (code, words) = site.error("POST", "/txs/package", &package);
    assert!(code == 400 && words.contains("submitpackage RPC error"), "{words}");
    let answer = site.ask("GET", &format!("/block-height/{}", 20), "");
    assert_eq!(answer.header("cache-control"), Some("public, max-age=157784630".to_owned()));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*".to_owned()));
    assert_eq!(answer.header("access-control-expose-headers"), Some("x-total-results".to_owned()));
    let preflight = site.ask("OPTIONS", "/txs/package", "");
    assert_eq!((preflight.code, preflight.body.len()), (204, 0));
    assert_eq!(preflight.header("access-control-allow-origin"), Some("*".to_owned()));
    assert_eq!(preflight.header("access-control-allow-methods"), Some("get, head, post".to_owned()));
    assert_eq!(preflight.header("access-control-allow-headers"), Some("content-type".to_owned()));
    // As in Blockstream's electrs, these are no errors.
    assert_eq!(site.json(&format!("/tx/{unknown}/status")), json!({"confirmed": false}));
    for outspend in [format!("/tx/{unknown}/outspend/0"), format!("/tx/{txid}/outspend/7")] {
        assert_eq!(site.json(&outspend), json!({"spent": false}));
    }
    assert_eq!(site.json("/internal/mempool/txs/all"), json!([]));
    let template = site.json("/block-template");
    assert_eq!((&template["height"], &template["previousblockhash"]), (&json!(31), &json!(tip)));
    assert_eq!(template, server.result("getblocktemplate", "[{\"rules\":[\"segwit\"]}]"));
    assert_eq!(site.ask("HEAD", "/blocks/tip/hash", "").code, 200);
    assert_eq!(site.json("/fee-estimates"), json!({}));
}
