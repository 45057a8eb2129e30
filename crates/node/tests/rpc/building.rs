//! A node whose indexes are being built: what needs an index is answered with an error that says how far it is, and
//! everything else is answered. Afterwards all of it is.
//!
//! The build is held up at a height for as long as the test needs: a named pipe stands where the index of transactions
//! writes its next commit record, and has no reader.

use crate::electrum::script;
use crate::electrum_model::{Wallet, scripthash};
use crate::esplora::{Site, wait_for};
use crate::server::Server;
use lydian_primitives::to_hex;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::time::Duration;

const OPTIONS: [&str; 5] =
    ["-txindex", "-txospenderindex", "-addressindex=full", "-blockfilterindex=basic", "-coinstatsindex"];

const NAMES: [&str; 5] = ["txindex", "txospenderindex", "addressindex", "basic block filter index", "coinstatsindex"];

/// The height at which the build is held up, and the tip.
const HELD: u64 = 105;
const TIP: u64 = 110;

pub(crate) fn mine(server: &Server, count: u64) {
    server.result("generatetodescriptor", &format!("[{count},\"raw({})\"]", to_hex(&script(1))));
}

pub(crate) fn wait_until(server: &Server, what: &str, is_so: impl Fn(&Value) -> bool) {
    for _ in 0..2_400 {
        let info = server.result("getindexinfo", "[]");
        if info.as_object().unwrap().values().all(&is_so) {
            return;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("{what}: {}", server.result("getindexinfo", "[]"));
}

/// The message of a call that fails.
fn message(server: &Server, method: &str, params: &Value) -> String {
    let answer: Value = serde_json::from_str(&server.call(method, &params.to_string()).body).unwrap();
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{method} {params}: {answer}")).to_owned()
}

/// `lydian index status` beside the running node, once it prints what is expected.
fn index_status(server: &Server, is_expected: impl Fn(&str) -> bool) -> String {
    for _ in 0..1_200 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
        command.arg(format!("-datadir={}", server.folder.display())).args(["-regtest", "index", "status"]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        if is_expected(&text) {
            return text;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("lydian index status does not print it");
}

/// A block and its coinbase.
struct Asked {
    hash: Value,
    coinbase: Value,
}

fn at(server: &Server, height: u64) -> Asked {
    let hash = server.result("getblockhash", &json!([height]).to_string());
    let block = server.result("getblock", &json!([hash]).to_string());
    Asked { coinbase: block["tx"][0].clone(), hash }
}

/// Every RPC method that needs an index, with Core's words while the index is being built.
fn check_rpc(server: &Server) {
    let Asked { hash, coinbase } = at(server, TIP);
    let spending = json!([[{"txid": coinbase, "vout": 0}], {"mempool_only": false}]);
    for (method, params, expected) in [
        ("getrawtransaction", json!([coinbase]), "Blockchain transactions are still in the process of being indexed"),
        ("gettxspendingprevout", spending, "Mempool lacks a relevant spend, and txospenderindex is unavailable."),
        ("getblockfilter", json!([hash]), "Block filters are still in the process of being indexed."),
        (
            "gettxoutsetinfo",
            json!(["muhash", TIP]),
            "Unable to get data because coinstatsindex is still syncing. Current height: 105",
        ),
    ] {
        let found = message(server, method, &params);
        assert!(found.contains(expected), "{method}: {found}");
    }
    // What needs no index is answered.
    assert_eq!(server.result("getblockcount", "[]"), TIP);
    assert_eq!(server.result("gettxoutsetinfo", "[\"muhash\",null,false]")["height"], TIP);
    assert_eq!(server.result("getrawtransaction", &json!([coinbase, 1, hash]).to_string())["txid"], coinbase);
    assert!(server.result("gettxoutproof", &json!([[coinbase], hash]).to_string()).is_string());
}

fn check_electrum(port: u16) {
    for version in ["1.4", "1.6", "1.7"] {
        let mut wallet = Wallet::connect(port, version);
        let (kind, subject) = match version {
            "1.7" => ("scriptpubkey", to_hex(&script(1))),
            _ => ("scripthash", scripthash(&script(1))),
        };
        for question in ["get_balance", "get_history", "listunspent", "subscribe"] {
            let method = format!("blockchain.{kind}.{question}");
            let (_, message) = wallet.error(&method, &json!([subject]));
            let expected = format!("the index of scripts is being built: it has {HELD} of {TIP} blocks");
            assert!(message.contains(&expected), "{version}: {method}: {message}");
        }
        assert_eq!(wallet.result("blockchain.headers.subscribe", &json!([]))["height"], TIP);
        assert!(wallet.result("blockchain.block.header", &json!([TIP])).is_string());
        assert_eq!(wallet.result("blockchain.block.headers", &json!([0, 200]))["count"], TIP + 1);
        assert!(wallet.result("server.banner", &json!([])).is_string());
        assert!(wallet.result("mempool.get_fee_histogram", &json!([])).is_array());
    }
}

fn check_esplora(site: &Site, tip: &Asked) {
    let (hash, script) = (tip.hash.as_str().unwrap(), scripthash_of_esplora());
    for path in
        [format!("/scripthash/{script}"), format!("/scripthash/{script}/txs"), format!("/scripthash/{script}/utxo")]
    {
        let (code, text) = site.error("GET", &path, "");
        let expected = format!("the index of scripts is being built: it has {HELD} of {TIP} blocks");
        assert!(code == 503 && text.contains(&expected), "{path}: {code} {text}");
    }
    assert_eq!(site.get("/blocks/tip/height"), TIP.to_string());
    assert_eq!(site.get(&format!("/block-height/{TIP}")), hash);
    assert_eq!(site.json(&format!("/block/{hash}"))["height"], TIP);
    assert!(site.json("/mempool").is_object() && site.json("/fee-estimates").is_object());
}

/// The hash of the script as Esplora has it: not reversed.
fn scripthash_of_esplora() -> String {
    to_hex(&lydian_hash::sha256(&script(1)))
}

#[test]
fn answers_while_the_indexes_are_built() {
    let [electrum, esplora] = [(); 2].map(|()| lydian_oracle::free_port().unwrap());
    let mut server = Server::lydian("answers_while_the_indexes_are_built", &OPTIONS);
    wait_until(&server, "the indexes are made", |index| index["synced"] == true);
    server.restart(&[]);
    mine(&server, HELD);
    server.result("stop", "[]");
    assert_eq!(server.wait(), Some(0));
    let pipe = server.folder.join("regtest/indexes/tables/commit.new");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let binds = [format!("-electrumbind=127.0.0.1:{electrum}"), format!("-esplorabind=127.0.0.1:{esplora}")];
    let servers = ["-electrum", "-electrumtlsbind=0", "-electrumwsbind=0", "-esplora", &binds[0], &binds[1]];
    let options = [&OPTIONS[..], &servers].concat();
    server.start_again(&options);

    wait_until(&server, "the build is held up", |index| index["best_block_height"] == HELD);
    mine(&server, TIP - HELD);
    let info = server.result("getindexinfo", "[]");
    let expected: Value =
        NAMES.iter().map(|name| ((*name).to_owned(), json!({"synced": false, "best_block_height": HELD}))).collect();
    assert_eq!(info, expected, "as Core's");
    // The node writes down its progress every few seconds.
    let expected = format!("being built, at height {HELD}");
    let status = index_status(&server, |status| status.matches(&expected).count() == 3);
    assert!(status.contains("a node runs; its indexes as of "), "{status}");
    assert_eq!(status.matches("height 0 at the last checkpoint").count(), 3, "{status}");
    check_rpc(&server);
    check_electrum(electrum);
    let (site, tip) = (Site(esplora), at(&server, TIP));
    wait_for(&site);
    check_esplora(&site, &tip);

    // As if it had been killed there.
    server.kill();
    fs::remove_file(&pipe).unwrap();
    server.start_again(&options);
    wait_until(&server, "the build ends", |index| index["synced"] == true && index["best_block_height"] == TIP);
    let tip = at(&server, TIP);
    assert!(server.result("getrawtransaction", &json!([tip.coinbase]).to_string()).is_string());
    assert!(server.result("getblockfilter", &json!([tip.hash]).to_string())["filter"].is_string());
    assert_eq!(server.result("gettxoutsetinfo", &json!(["muhash", TIP]).to_string())["height"], TIP);
    let history = Wallet::connect(electrum, "1.6").list("get_history", &script(1));
    assert_eq!(history.as_array().map(Vec::len), usize::try_from(TIP).ok());
    wait_for(&site);
    let found = site.json(&format!("/scripthash/{}", scripthash_of_esplora()));
    assert_eq!(found["chain_stats"]["tx_count"], TIP);
}

/// A node whose index of scripts fails: the disk refuses a file that it must create.
#[test]
fn an_index_that_fails_is_named_with_the_reason() {
    let [electrum, esplora] = [(); 2].map(|()| lydian_oracle::free_port().unwrap());
    let mut server = Server::lydian("an_index_that_fails_is_named_with_the_reason", &OPTIONS);
    wait_until(&server, "the indexes are made", |index| index["synced"] == true);
    server.restart(&[]);
    mine(&server, HELD);
    server.result("stop", "[]");
    assert_eq!(server.wait(), Some(0));
    // Each index replaces a file at its checkpoints, by way of one with this name.
    let folder = server.folder.join("regtest/indexes");
    let refused = ["tables/commit.new", "blockfilter/basic/filters.tip.new", "coinstats/stats.tip.new"];
    let refused = refused.map(|name| folder.join(name));
    refused.iter().for_each(|path| fs::create_dir(path).unwrap());
    let binds = [format!("-electrumbind=127.0.0.1:{electrum}"), format!("-esplorabind=127.0.0.1:{esplora}")];
    let servers = ["-electrum", "-electrumtlsbind=0", "-electrumwsbind=0", "-esplora", &binds[0], &binds[1]];
    let options = [&OPTIONS[..], &servers].concat();
    server.start_again(&options);
    let site = Site(esplora);
    wait_for(&site);

    // Each index fails at its checkpoint, and the node goes on.
    wait_until(&server, "the indexes fail", |index| index["error"].is_string());
    mine(&server, TIP - HELD);
    let Asked { hash, coinbase } = at(&server, TIP);
    let info = server.result("getindexinfo", "[]");
    for name in NAMES {
        assert!(info[name]["best_block_height"] == HELD && info[name]["synced"] == false, "{info}");
    }
    let sentence = |name: &str| {
        let error = info[name]["error"].as_str().unwrap();
        assert!(error.contains("/indexes/"), "{error}");
        format!("the index {name} is stopped at height {HELD}: {error}; a restart of the node tries again")
    };

    let spending = json!([[{"txid": coinbase, "vout": 0}], {"mempool_only": false}]);
    for (method, params, name) in [
        ("getrawtransaction", json!([coinbase]), "txindex"),
        ("gettxspendingprevout", spending, "txospenderindex"),
        ("getblockfilter", json!([hash]), "basic block filter index"),
        ("scanblocks", json!(["start", ["raw(51)"]]), "basic block filter index"),
        ("gettxoutsetinfo", json!(["muhash", TIP]), "coinstatsindex"),
    ] {
        assert_eq!(message(&server, method, &params), sentence(name), "{method}");
    }
    let by_script = sentence("addressindex");
    let mut wallet = Wallet::connect(electrum, "1.6");
    for question in ["get_balance", "get_history", "listunspent", "subscribe"] {
        let method = format!("blockchain.scripthash.{question}");
        let error = wallet.error(&method, &json!([scripthash(&script(1))]));
        assert_eq!(error, (-32603, by_script.clone()), "{method}");
    }
    assert_eq!(wallet.result("blockchain.headers.subscribe", &json!([]))["height"], TIP);
    let path = format!("/scripthash/{}", scripthash_of_esplora());
    for path in [path.clone(), format!("{path}/txs"), format!("{path}/utxo")] {
        assert_eq!(site.error("GET", &path, ""), (500, by_script.clone()), "{path}");
    }
    assert_eq!(site.get("/blocks/tip/height"), TIP.to_string());
    let status = index_status(&server, |status| status.matches("stopped at height").count() == 3);
    assert!(status.contains(info["txindex"]["error"].as_str().unwrap()), "{status}");

    // The reason is gone, and a restart tries again.
    server.result("stop", "[]");
    assert_eq!(server.wait(), Some(0));
    refused.iter().for_each(|path| fs::remove_dir(path).unwrap());
    server.start_again(&options);
    wait_until(&server, "the build goes on", |index| index["synced"] == true && index["best_block_height"] == TIP);
    let history = Wallet::connect(electrum, "1.6").list("get_history", &script(1));
    assert_eq!(history.as_array().map(Vec::len), usize::try_from(TIP).ok());
}
