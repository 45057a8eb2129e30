//! The numbers of each panel are those of RPC, and the log and the settings those of the node.

use crate::busy::busy;
use crate::stage::{PATIENCE, expect_no_problems, go, panels};
use lydian_browser::Page;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

type Texts = BTreeMap<String, String>;

/// Titles of a panel's facts, with their values.
const FACTS: &str = "[Object.fromEntries([...document.querySelectorAll('main .facts>div')].map((one) => \
[one.children[0].textContent, one.children[1].textContent]))]";

/// The rows of a table: titles of columns, with the text of the cells.
fn table(caption: &str) -> String {
    format!(
        "(() => {{ const table = [...document.querySelectorAll('main table')].find((one) => one.caption?.textContent === '{caption}');
        if (!table?.tHead) return [];
        const titles = [...table.tHead.rows[0].cells].map((one) => one.textContent);
        return [...table.tBodies[0].rows].map((row) => Object.fromEntries([...row.cells].map((cell, place) => [titles[place], cell.textContent]))); }})()"
    )
}

/// Texts without the commas between thousands.
fn read(page: &Page, script: &str) -> Vec<Texts> {
    let rows = page.evaluate(script).unwrap();
    let row = |row: &Value| -> Texts {
        let cells = row.as_object().unwrap().iter();
        cells.map(|(title, text)| (title.clone(), text.as_str().unwrap().replace(',', ""))).collect()
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

/// Reads until a row is as expected: a topic is read once a second.
fn expect(page: &Page, what: &str, script: &str, expected: &[(&str, String)]) {
    let is_so =
        |row: &Texts| expected.iter().all(|(title, text)| row.get(*title).is_some_and(|shown| shown.contains(text)));
    let began = std::time::Instant::now();
    loop {
        let rows = read(page, script);
        if rows.iter().any(is_so) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {expected:?} is not in {rows:#?}");
        page.listen(Duration::from_millis(100)).unwrap();
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The end of a hash, as tables show it.
fn end(hash: &Value) -> String {
    text(hash)[56..].to_owned()
}

fn bitcoin(value: &Value, digits: usize) -> String {
    format!("{:.digits$}", value.as_f64().unwrap())
}

#[test]
fn the_numbers_of_the_panels_are_those_of_rpc() {
    let Some(busy) = busy("the_numbers_of_the_panels") else { return };
    let stage = &busy.stage;
    stage.mine(1, 1);
    let (tx, _) = crate::stage::pay(busy.coins[0], 3, 2, 7_000);
    stage.call("sendrawtransaction", &json!([crate::stage::raw(&tx)]));
    let page = stage.enter();
    let ask = |method: &str| stage.call(method, &json!([]));
    let (chain, network, pool) = (ask("getblockchaininfo"), ask("getnetworkinfo"), ask("getmempoolinfo"));
    let tip = &chain["bestblockhash"];

    go(&page, "overview");
    let peers = format!("{} out {} in", network["connections_out"], network["connections_in"]);
    let overview = [
        ("Height", text(&chain["blocks"])),
        ("Headers known", text(&chain["headers"])),
        ("Last block", end(tip)),
        ("Peers", peers),
        ("Mempool", format!("{} transaction", pool["size"])),
        ("Chain", text(&chain["chain"])),
    ];
    expect(&page, "overview", FACTS, &overview);
    go(&page, "sync");
    expect(
        &page,
        "sync",
        FACTS,
        &[("Headers", text(&chain["headers"])), ("Validation", format!("height {}", chain["blocks"]))],
    );

    go(&page, "blocks");
    let blocks = table("The last blocks");
    for height in (0..=chain["blocks"].as_u64().unwrap()).rev().take(12) {
        let stats = stage.call("getblockstats", &json!([height]));
        let fees = stats["totalfee"].as_f64().unwrap() / 1e8;
        let row = [
            ("Height", height.to_string()),
            ("Transactions", text(&stats["txs"])),
            ("Weight", text(&stage.call("getblock", &json!([stats["blockhash"]]))["weight"])),
            ("Fees BTC", format!("{fees:.4}")),
            ("sat/vB", text(&stats["avgfeerate"])),
            ("Hash", end(&stats["blockhash"])),
        ];
        // The commas of titles stay.
        let row = row.map(|(title, text)| (if title == "Fees BTC" { "Fees, BTC" } else { title }, text));
        expect(&page, "blocks", &blocks, &row);
    }
    assert!(stage.call("getblockstats", &json!([chain["blocks"]]))["totalfee"].as_u64() > Some(0), "a block with fees");

    go(&page, "chain");
    let tips = ask("getchaintips");
    for tip in tips.as_array().unwrap() {
        let row = [
            ("Height", text(&tip["height"])),
            ("Hash", end(&tip["hash"])),
            ("Branch, blocks", text(&tip["branchlen"])),
            ("Status", text(&tip["status"])),
        ];
        expect(&page, "chain", &table("Tips"), &row);
    }
    assert_eq!(read(&page, &table("Tips")).len(), tips.as_array().unwrap().len());

    go(&page, "miners");
    let known = chain["blocks"].as_u64().unwrap() + 1;
    expect(&page, "miners", FACTS, &[("Blocks looked at", format!("{known} heights 0 to {}", chain["blocks"]))]);

    go(&page, "peers");
    let connected = ask("getpeerinfo");
    for peer in connected.as_array().unwrap() {
        let row = [("Id", text(&peer["id"])), ("Address", text(&peer["addr"])), ("User agent", text(&peer["subver"]))];
        expect(&page, "peers", &table("Connected peers"), &row);
    }
    assert_eq!(read(&page, &table("Connected peers")).len(), connected.as_array().unwrap().len());
    expect(&page, "bans", &table("Bans"), &[("Address or subnet", text(&ask("listbanned")[0]["address"]))]);

    go(&page, "mempool");
    let sums = [
        ("Transactions", text(&pool["size"])),
        ("Virtual bytes", text(&pool["bytes"])),
        ("Fees", bitcoin(&pool["total_fee"], 8)),
    ];
    expect(&page, "mempool", FACTS, &sums);

    page.evaluate(&format!("location.hash = '#/explorer?q=' + {}", chain["blocks"])).unwrap();
    let (block, stats) = (stage.call("getblock", &json!([tip])), stage.call("getblockstats", &json!([tip])));
    let facts = [
        ("Hash", text(tip)),
        ("Transactions", text(&block["nTx"])),
        ("Weight", text(&block["weight"])),
        ("Fees", format!("{:.8}", stats["totalfee"].as_f64().unwrap() / 1e8)),
        ("Merkle root", text(&block["merkleroot"])),
        ("Confirmations", text(&block["confirmations"])),
        ("Nonce", text(&block["nonce"])),
    ];
    expect(&page, "explorer", FACTS, &facts);

    go(&page, "serving");
    (0..7).for_each(|_| drop(ask("getdifficulty")));
    expect(
        &page,
        "serving",
        &table("Requests by method"),
        &[("Method", "getdifficulty".to_owned()), ("Requests", "7".to_owned())],
    );

    expect_no_problems(&page, "numbers");
    others(&page, &busy.stage);
}

/// The panels that show no answer of RPC.
fn others(page: &Page, stage: &crate::stage::Stage) {
    let has = |text: &str| {
        page.wait_until(&format!("document.querySelector('main').textContent.includes({})", json!(text)), PATIENCE)
            .unwrap();
    };
    go(page, "machine");
    has(&stage.server.folder.join("regtest").display().to_string());
    go(page, "log");
    let log = std::fs::read_to_string(stage.server.folder.join("regtest/debug.log")).unwrap();
    let line = log.lines().rfind(|line| line.contains("UpdateTip")).unwrap();
    has(line.split_once(' ').unwrap().1);
    go(page, "settings");
    has(&format!("{}", stage.port));
    let row = page.text("document.querySelector('#option-pageport').textContent").unwrap();
    assert!(row.contains(&stage.port.to_string()) && row.contains("command line"), "{row}");
    go(page, "connect");
    has(&format!("http://127.0.0.1:{}", stage.server.port));
    assert_eq!(panels(page).len(), 13, "each panel has its numbers compared above");
}
