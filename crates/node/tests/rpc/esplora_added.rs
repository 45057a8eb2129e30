//! `-esplora`: the paths that mempool/electrs added follow from what Core's RPC says, too.

use crate::electrum_model::{Script, text};
use crate::esplora::{Expected, Site, wait_for, without_asm};
use crate::server::Server;
use lydian_hash::sha256;
use lydian_primitives::{Txid, to_hex};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The answer to a request, without assembly text.
fn answer(site: &Site, verb: &str, path: &str, body: &Value) -> Vec<Value> {
    let answer = site.ask(verb, path, &body.to_string());
    let mut value = serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{path}: {}", answer.text()));
    without_asm(&mut value);
    value.as_array().unwrap().clone()
}

fn hash_of(script: &Script) -> String {
    to_hex(&sha256(&script.script))
}

/// Height, position and txid of the confirmed transactions of scripts, the newest first.
fn confirmed(expected: &Expected, scripts: &[&Script]) -> Vec<(u64, usize, String)> {
    let place = |(height, txid): &(u64, String)| {
        let block = &expected.model.blocks[usize::try_from(*height).unwrap()];
        (*height, block.iter().position(|other| other == txid).unwrap(), txid.clone())
    };
    let places: BTreeSet<_> = scripts.iter().flat_map(|script| script.confirmed.iter().map(place)).collect();
    places.into_iter().rev().collect()
}

/// The entries of a summary.
fn summary(expected: &Expected, scripts: &[&Script]) -> Vec<Value> {
    let names: BTreeSet<String> = scripts.iter().map(|script| to_hex(&script.script)).collect();
    let worth = |output: &Value| match names.contains(output["scriptpubkey"].as_str().unwrap_or_default()) {
        true => output["value"].as_i64().unwrap(),
        false => 0,
    };
    let entry = |(height, position, txid): (u64, usize, String)| {
        let tx = &expected.transactions[&txid];
        let paid: i64 = tx["vout"].as_array().unwrap().iter().map(worth).sum();
        let spent: i64 = tx["vin"].as_array().unwrap().iter().map(|input| worth(&input["prevout"])).sum();
        json!({
            "txid": txid, "height": height, "value": paid - spent, "time": tx["status"]["block_time"],
            "tx_position": position,
        })
    };
    confirmed(expected, scripts).into_iter().map(entry).collect()
}

/// Asks page by page.
fn pages(site: &Site, verb: &str, path: &str, body: &Value, count: usize) -> Vec<Value> {
    let mut all = answer(site, verb, &format!("{path}?max_txs={count}"), body);
    while let Some(last) = all.last() {
        let page = answer(site, verb, &format!("{path}/{}?max_txs={count}", text(&last["txid"])), body);
        assert!(page.len() <= count);
        if page.is_empty() {
            break;
        }
        all.extend(page);
    }
    all
}

fn check_summaries(site: &Site, expected: &Expected) {
    for script in expected.model.scripts.values() {
        let path = format!("/scripthash/{}/txs/summary", hash_of(script));
        let entries = summary(expected, &[script]);
        let given = site.ask("GET", &path, "");
        assert_eq!(serde_json::from_slice::<Value>(&given.body).unwrap(), json!(entries), "{path}");
        assert_eq!(given.header("x-total-results"), Some(entries.len().to_string()));
        assert_eq!(pages(site, "GET", &path, &Value::Null, 1 + entries.len() / 3), entries, "{path}");
        // A transaction of the mempool is above all of the chain.
        if let Some((_, txid, _)) = script.pool.first() {
            assert_eq!(answer(site, "GET", &format!("{path}/{txid}"), &Value::Null), entries);
        }
    }
}

fn check_several(site: &Site, expected: &Expected) {
    let scripts: Vec<&Script> = expected.model.scripts.values().take(299).collect();
    let mut hashes: Vec<String> = scripts.iter().map(|script| hash_of(script)).collect();
    // One of them twice.
    hashes.extend(hashes.first().cloned());
    let body = json!(hashes);
    let entries = summary(expected, &scripts);
    assert_eq!(answer(site, "POST", "/scripthashes/txs/summary", &body), entries[..entries.len().min(5_000)]);
    let count = 1 + entries.len() / 3;
    assert_eq!(pages(site, "POST", "/scripthashes/txs/summary", &body, count), entries);
    // The mempool first, in an order that Core does not report, then the chain.
    let pooled: BTreeMap<&String, &Value> = scripts
        .iter()
        .flat_map(|script| script.pool.iter().map(|(_, txid, _)| (txid, &expected.transactions[txid])))
        .collect();
    let chain = confirmed(expected, &scripts).into_iter().map(|(.., txid)| &expected.transactions[&txid]);
    let mut given = answer(site, "POST", "/scripthashes/txs", &body);
    assert!(given.len() <= 50);
    for _ in 0..8 {
        let Some(last) = given.last().filter(|_| given.len().is_multiple_of(50)) else { break };
        let page = answer(site, "POST", &format!("/scripthashes/txs?after_txid={}", text(&last["txid"])), &body);
        assert!(page.len() <= 50);
        given.extend(page);
    }
    assert_eq!(given.len(), (pooled.len() + chain.clone().count()).min(given.len().max(400)));
    let of_chain = given.split_off(pooled.len().min(given.len()));
    given.sort_by_key(|tx| text(&tx["txid"]));
    assert_eq!(given, pooled.into_values().cloned().collect::<Vec<_>>());
    assert_eq!(of_chain, chain.take(of_chain.len()).cloned().collect::<Vec<_>>());
    // After each of some transactions, also of the mempool.
    let whole: Vec<Value> = given.into_iter().chain(of_chain).collect();
    for at in (0..whole.len()).step_by(7) {
        let path = format!("/scripthashes/txs?max_txs=2&after_txid={}", text(&whole[at]["txid"]));
        let page = answer(site, "POST", &path, &body);
        if whole[at]["status"]["confirmed"] == true {
            assert_eq!(page, whole[at + 1..whole.len().min(at + 3)]);
        } else {
            assert_eq!(page.len(), 2);
        }
    }
}

fn check_internal(site: &Site, expected: &Expected) {
    let known = |txids: &[String]| txids.iter().map(|txid| expected.transactions[txid].clone()).collect::<Vec<_>>();
    for (hash, txids) in expected.model.hashes.iter().zip(&expected.model.blocks) {
        assert_eq!(answer(site, "GET", &format!("/internal/block/{hash}/txs"), &Value::Null), known(txids));
    }
    let pooled = |(_, tx): &(&String, &Value)| tx["status"]["confirmed"] == false;
    let mut pool: Vec<String> = expected.transactions.iter().filter(pooled).map(|(txid, _)| txid.clone()).collect();
    pool.sort_by_key(|txid| txid.parse::<Txid>().unwrap().0);
    let path = "/internal/mempool/txs";
    assert_eq!(answer(site, "GET", path, &Value::Null), known(&pool));
    assert_eq!(pages(site, "GET", path, &Value::Null, 1), known(&pool));
    let given = site.ask("GET", &format!("{path}?max_txs=1"), "");
    assert_eq!(given.header("x-total-results"), Some(pool.len().to_string()));
    // In the order of the request; what is not known is left out.
    let mut some: Vec<String> = expected.transactions.keys().rev().step_by(5).take(200).cloned().collect();
    some.extend(pool.iter().cloned());
    let body = json!(some.iter().chain([&"11".repeat(32)]).collect::<Vec<_>>());
    assert_eq!(answer(site, "POST", "/internal/txs", &body), known(&some));
    some.retain(|txid| pool.contains(txid));
    assert_eq!(answer(site, "POST", path, &body), known(&some));
    for kind in ["by-txid", "by-outpoint"] {
        let body = match kind {
            "by-txid" => json!(some),
            _ => json!(some.iter().map(|txid| format!("{txid}:0")).collect::<Vec<_>>()),
        };
        let of = |prefix: &str| site.ask("POST", &format!("{prefix}/txs/outspends/{kind}"), &body.to_string()).text();
        assert_eq!(of("/internal"), of(""));
    }
}

/// Compares every answer with Core's.
pub(crate) fn check_added(site: &Site, expected: &Expected) {
    check_summaries(site, expected);
    check_several(site, expected);
    check_internal(site, expected);
}

#[test]
fn wrong_requests_to_added_paths_have_their_errors() {
    let port = lydian_oracle::free_port().unwrap();
    let options = ["-esplora", &format!("-esplorabind=127.0.0.1:{port}")];
    let (server, site) = (Server::lydian("wrong_requests_to_added_paths_have_their_errors", &options), Site(port));
    wait_for(&site);
    server.result("generatetodescriptor", "[30,\"raw(51)\"]");
    let (unknown, hash) = ("11".repeat(32), to_hex(&sha256(&[0x51])));
    let scripts = |count: usize| json!(vec![hash.clone(); count]).to_string();
    let txids = |count: usize| json!(vec![unknown.clone(); count]).to_string();
    let not_found = format!("after_txid not found: {unknown}");
    let no_txid = "\"all\" is no txid: 64 hexadecimal characters";
    for (verb, path, body, code, words) in [
        ("GET", format!("/scripthash/{hash}/txs/summary/{unknown}"), String::new(), 422, not_found.as_str()),
        ("GET", format!("/scripthash/{hash}/txs/summary/all"), String::new(), 400, no_txid),
        (
            "GET",
            "/scripthash/51/txs/summary".to_owned(),
            String::new(),
            400,
            "\"51\" is no script hash: 64 hexadecimal characters",
        ),
        (
            "GET",
            format!("/scripthash/{hash}/txs/summary?max_txs=x"),
            String::new(),
            400,
            "max_txs must be a whole number, not \"x\"",
        ),
        ("POST", format!("/scripthashes/txs?after_txid={unknown}"), scripts(1), 422, &not_found),
        ("POST", format!("/scripthashes/txs/summary/{unknown}"), scripts(1), 422, &not_found),
        ("POST", "/scripthashes/txs".to_owned(), scripts(301), 400, "301 script hashes are too many: at most 300"),
        (
            "POST",
            "/scripthashes/txs/summary".to_owned(),
            scripts(301),
            400,
            "301 script hashes are too many: at most 300",
        ),
        ("POST", "/addresses/txs".to_owned(), scripts(301), 400, "301 addresses are too many: at most 300"),
        ("GET", format!("/internal/block/{unknown}/txs"), String::new(), 404, &format!("Block not found: {unknown}")),
        ("POST", "/internal/txs".to_owned(), txids(1_001), 400, "1001 txids are too many: at most 1000"),
        ("POST", "/internal/mempool/txs".to_owned(), txids(1_001), 400, "1001 txids are too many: at most 1000"),
        ("POST", "/internal/txs".to_owned(), "[\"all\"]".to_owned(), 400, no_txid),
    ] {
        assert_eq!(site.error(verb, &path, &body), (code, words.to_owned()), "{verb} {path}");
    }
    for (path, what) in [
        ("/addresses/txs", "addresses"),
        ("/scripthashes/txs", "script hashes"),
        ("/addresses/txs/summary", "addresses"),
        ("/internal/txs", "txids"),
        ("/internal/mempool/txs", "txids"),
    ] {
        let (code, words) = site.error("POST", path, "{}");
        assert!(code == 400 && words.starts_with(&format!("the body must be an array of {what}: ")), "{path}: {words}");
    }
    let (code, words) = site.error("POST", "/addresses/txs", "[\"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa\"]");
    assert!(code == 400 && words.contains("is no address of this chain: "), "{words}");
    // At the limits.
    let count = |path: &str, body: String| {
        serde_json::from_slice::<Vec<Value>>(&site.ask("POST", path, &body).body).unwrap().len()
    };
    assert_eq!(count("/scripthashes/txs", scripts(300)), 30);
    assert_eq!(count("/scripthashes/txs?max_txs=7", scripts(1)), 7);
    assert_eq!(count("/scripthashes/txs/summary", scripts(300)), 30);
    assert_eq!(count("/scripthashes/txs", scripts(0)), 0);
    assert_eq!((count("/internal/txs", txids(1_000)), count("/internal/mempool/txs", txids(1_000))), (0, 0));
}
