//! The explorer: everything that its field finds, pages of many transactions, links from an output to what spends it
//! and back, and what it says without indexes.

use crate::stage::{self, PATIENCE, Stage, expect_no_problems, go, pay, raw, script};
use lydian_browser::Page;
use lydian_primitives::to_hex;
use serde_json::{Value, json};

/// A page of the explorer has this many transactions.
const PAGE: usize = 25;

/// Searches, and waits for a heading of the result.
fn search(page: &Page, text: &str, heading: &str) {
    enter(page, text);
    wait(
        page,
        text,
        &format!("[...document.querySelectorAll('main h2')].some((one) => one.textContent.includes('{heading}'))"),
    );
}

fn enter(page: &Page, text: &str) {
    stage::search(page, text, |page| page.press("Enter"));
}

fn wait(page: &Page, what: &str, is_so: &str) {
    page.wait_until(is_so, PATIENCE).unwrap_or_else(|error| {
        panic!(
            "{what}: {error}; {}",
            page.text("location.hash + document.querySelector('main').innerText.slice(0, 3000)").unwrap()
        )
    });
}

fn fact(page: &Page, label: &str) -> String {
    let script = format!(
        "[...document.querySelectorAll('main .facts>div')].find((one) => one.children[0].textContent === '{label}')?.children[1].textContent"
    );
    // While the page draws again, the fact is absent for a moment. So the waiting keeps its text.
    wait(page, label, &format!("(globalThis.lastFact = {script}) !== undefined"));
    page.text("lastFact").unwrap()
}

/// Clicks the first link whose address begins so, and which is in an element.
fn follow(page: &Page, within: &str, address: &str) {
    let link = format!("document.querySelector('main {within} a[href*=\"{address}\"]')");
    wait(page, address, &link);
    page.evaluate(&format!("{link}.click()")).unwrap();
}

#[test]
fn one_field_finds_all_and_links_lead_both_ways() {
    let Some(stage) = Stage::start("one_field_finds_all", &["-addressindex=full"]) else { return };
    stage.mine(110, 1);
    let (parent, coins) = pay(stage.coin(1, 1), 3, 2, 5_000);
    let (child, _) = pay(coins[1], 2, 3, 7_000);
    for tx in [&parent, &child] {
        stage.call("sendrawtransaction", &json!([raw(tx)]));
    }
    let block = stage.mine(1, 1).remove(0);
    let [parent, child] = [&parent, &child].map(|tx| tx.txid().to_string());
    let decoded = stage.call("decodescript", &json!([to_hex(&script(2))]));
    let (address, descriptor) = (decoded["address"].as_str().unwrap(), decoded["desc"].as_str().unwrap());
    let page = stage.enter();
    go(&page, "explorer");
    // Height and hash, txid and output, address, script and descriptor.
    for text in ["111", &block] {
        search(&page, text, "Block 111");
        assert_eq!(fact(&page, "Hash"), block);
        assert_eq!(fact(&page, "Merkle root"), stage.call("getblock", &json!([block]))["merkleroot"]);
    }
    search(&page, &child, "Inputs (1)");
    assert_eq!((fact(&page, "txid"), fact(&page, "Fee")), (child.clone(), "7,000 sat".to_owned()));
    search(&page, &format!("{parent}:2"), "Outputs (3)");
    assert_eq!(page.text("document.querySelector('main .io .marked .iohead').textContent.slice(0, 3)").unwrap(), "#2 ");
    for text in [address, &to_hex(&script(2))] {
        search(&page, text, "Balance");
        assert_eq!((fact(&page, "Address"), fact(&page, "Unspent outputs")), (address.to_owned(), "2".to_owned()));
        let scanned = stage.call("scantxoutset", &json!(["start", [descriptor]]));
        assert_eq!(fact(&page, "Balance"), format!("{:.8} BTC", scanned["total_amount"].as_f64().unwrap()));
    }
    search(&page, descriptor, "Descriptor");
    follow(&page, "", "script=");
    wait(
        &page,
        "the script of the descriptor",
        "[...document.querySelectorAll('main h2')].some((one) => one.textContent === 'Balance')",
    );
    // From an output to what spends it, and back to the output.
    search(&page, &parent, "Outputs (3)");
    follow(&page, ".io li:nth-child(2)", &format!("tx={child}"));
    wait(&page, "the spender", &format!("document.querySelector('main .mono')?.textContent === '{child}'"));
    follow(&page, ".io li", &format!("tx={parent}&vout=1"));
    wait(&page, "the output", "document.querySelector('main .io .marked')?.textContent.startsWith('#1 ')");
    // Raw and decoded, as RPC has them.
    let raw_tx = stage.call("getrawtransaction", &json!([parent, 0, block]));
    page.click_text("summary", "Raw").unwrap();
    wait(&page, "raw", &format!("document.querySelector('main pre')?.textContent === {raw_tx}"));
    page.click_text("summary", "Decoded").unwrap();
    wait(&page, "decoded", "document.querySelectorAll('main pre').length === 2");
    let shown: Value =
        serde_json::from_str(&page.text("document.querySelectorAll('main pre')[1].textContent").unwrap()).unwrap();
    assert_eq!(shown, stage.call("decoderawtransaction", &json!([raw_tx])));
    // A script with many transactions, page by page: each once, the newest first.
    search(&page, &to_hex(&script(1)), "Transactions, the newest first");
    let mut seen: Vec<String> = Vec::new();
    loop {
        wait(&page, "a page of transactions", "document.querySelector('main .tx')");
        let txids =
            page.evaluate("[...document.querySelectorAll('main .txhead .hash')].map((one) => one.title)").unwrap();
        let txids: Vec<String> = serde_json::from_value(txids).unwrap();
        assert!(txids.len() <= PAGE && !seen.contains(&txids[0]), "{txids:?} after {seen:?}");
        let is_last = page
            .evaluate(
                "[...document.querySelectorAll('main .pager a')].every((one) => !one.textContent.startsWith('older'))",
            )
            .unwrap();
        seen.extend(txids);
        if is_last == true {
            break;
        }
        let first = seen[seen.len() - 1].clone();
        page.click_text("main .pager a", "older ›").unwrap();
        let turned = format!(
            "document.querySelector('main .tx') && ![...document.querySelectorAll('main .txhead .hash')].some((one) => one.title === '{first}')"
        );
        wait(&page, "the next page", &turned);
    }
    // 111 coinbases and the transaction that spends one of them.
    assert_eq!(seen.len(), 112);
    assert!(fact(&page, "Transactions").starts_with("112"));
    // A block of an unknown hash, and an address of another network: sentences.
    for (text, words) in [
        (&"77".repeat(32)[..], "No block has the hash"),
        ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "mainnet"),
        ("999999", "height"),
        ("nonsense!", "nonsense!"),
    ] {
        enter(&page, text);
        wait(
            &page,
            text,
            &format!(
                "!document.querySelector('main .note.bad').hidden && document.querySelector('main .note.bad').textContent.includes('{words}')"
            ),
        );
    }
    expect_no_problems(&page, "explorer");
}

#[test]
fn without_indexes_it_has_blocks_and_their_transactions() {
    let Some(stage) = Stage::start("without_indexes", &[]) else { return };
    stage.mine(105, 1);
    let (parent, coins) = pay(stage.coin(1, 1), 3, 2, 5_000);
    stage.call("sendrawtransaction", &json!([raw(&parent)]));
    stage.mine(1, 1);
    let (child, _) = pay(coins[0], 1, 3, 6_000);
    stage.call("sendrawtransaction", &json!([raw(&child)]));
    let parent = parent.txid().to_string();
    let child = child.txid().to_string();
    let page = stage.enter();
    go(&page, "explorer");
    search(&page, "106", "Block 106");
    follow(&page, ".tx", &format!("tx={parent}"));
    wait(&page, "the transaction", "document.querySelectorAll('main .io').length === 2");
    assert_eq!(
        (fact(&page, "txid"), fact(&page, "Fee"), fact(&page, "Block")),
        (parent.clone(), "5,000 sat".to_owned(), "106".to_owned())
    );
    assert!(page.text("document.querySelector('main .note.warn').textContent").unwrap().contains("-addressindex"));
    // What the mempool spends is known, and what is not spent.
    let outputs =
        page.evaluate("[...document.querySelectorAll('main .io')[1].children].map((one) => one.textContent)").unwrap();
    let outputs: Vec<String> = serde_json::from_value(outputs).unwrap();
    assert!(outputs[0].contains("spent by") && outputs[1].contains("unspent"), "{outputs:?}");
    follow(&page, ".io", &format!("tx={child}"));
    wait(
        &page,
        "a transaction of the mempool",
        &format!("document.querySelector('main .mono')?.textContent === '{child}'"),
    );
    assert_eq!((fact(&page, "Status"), fact(&page, "Fee")), ("unconfirmed".to_owned(), "6,000 sat".to_owned()));
    follow(&page, ".io", &format!("tx={parent}"));
    wait(
        &page,
        "one of an unknown block",
        "document.querySelector('main .note.bad:not([hidden])')?.textContent.includes('not found')",
    );
    // An address is shown, and that its history needs an index.
    let address = stage.call("decodescript", &json!([to_hex(&script(2))]))["address"].as_str().unwrap().to_owned();
    enter(&page, &address);
    wait(&page, "an address", "document.querySelector('main .note.warn')?.textContent.includes('addressindex')");
    assert_eq!(fact(&page, "Address"), address);
    expect_no_problems(&page, "without indexes");
}
