//! Blocks, chain and miners: the panels show what RPC says, and a new block, a reorganisation and an invalid block at
//! once.

use crate::stage::{PATIENCE, SOON, Stage, expect_no_problems, go};
use lydian_browser::Page;
use serde_json::{Value, json};
use std::time::Duration;

/// The tip is decades old otherwise, so that the node would count as catching up.
const OPTIONS: &[&str] = &["-maxtipage=9223372036854775807"];

/// The texts of the cells of a table, by its caption.
fn cells(page: &Page, caption: &str) -> Vec<Vec<String>> {
    let script = format!(
        "[...document.querySelectorAll('[role=region][aria-label=\"{caption}\"] tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"
    );
    serde_json::from_value(page.evaluate(&script).unwrap()).unwrap()
}

/// Waits until a table has this text.
fn wait_for(page: &Page, caption: &str, text: &str) -> Duration {
    let script = format!(
        "document.querySelector('[role=region][aria-label=\"{caption}\"] tbody')?.textContent.includes('{text}') === true"
    );
    page.wait_until(&script, PATIENCE).unwrap_or_else(|error| panic!("{caption}, {text}: {error}"))
}

/// A number as the page writes it.
fn grouped(value: &Value) -> String {
    let digits = value.as_u64().unwrap().to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The end of a hash, which every short form has.
fn tail(hash: &str) -> &str {
    &hash[hash.len() - 8..]
}

#[test]
fn blocks_are_what_the_methods_say() {
    let Some(stage) = Stage::start("blocks_are_what_the_methods_say", OPTIONS) else { return };
    stage.mine(60, 1);
    let hostile = stage.mine_with_text(b"/ViaBTC/<img src=x onerror=alert(1)>");
    let page = stage.enter();
    go(&page, "blocks");
    wait_for(&page, "The last blocks", tail(&hostile));
    let rows = cells(&page, "The last blocks");
    assert_eq!(rows.len(), 50);
    for (row, height) in rows.iter().zip((0..=61).rev()) {
        let stats = stage.call("getblockstats", &json!([height]));
        let block = stage.call("getblock", &json!([stats["blockhash"]]));
        assert_eq!(row[0], grouped(&json!(height)));
        let expected = [&stats["txs"], &block["weight"], &stats["avgfeerate"]].map(grouped);
        assert_eq!([&row[5], &row[7], &row[9]], expected.each_ref(), "{row:?}");
        assert_eq!(row[3], "RPC");
        assert!(row[18].ends_with(tail(block["hash"].as_str().unwrap())), "{row:?}");
    }
    assert_eq!(rows[0][17], "ViaBTC");
    page.click_text("button", "Show all 144").unwrap();
    page.wait_until("document.querySelectorAll('[aria-label=\"The last blocks\"] tbody tr').length === 62", PATIENCE)
        .unwrap();
    // The chart says the same of a block, and opens it.
    for chart in ["avgfeerate", "size", "txs", "weight", "totalfee", "total"] {
        let select = format!(
            "(() => {{ const one = document.querySelector('.tools select'); one.value = '{chart}'; one.dispatchEvent(new Event('change')); }})()"
        );
        page.evaluate(&select).unwrap();
        assert!(page.text("document.querySelector('.plot').getAttribute('aria-label')").unwrap().contains("62 blocks"));
    }
    page.evaluate("document.querySelector('.plot').focus()").unwrap();
    page.press("ArrowLeft").unwrap();
    let words = page.text("document.querySelector('.readout').textContent").unwrap();
    assert!(words.starts_with("Block 61,") && words.contains("1 transaction, ViaBTC"), "{words}");
    let steps = page.text("document.querySelector('.steps').innerText").unwrap();
    for step in ["Parse", "Check", "Fund", "Verify", "Commit", "Apply"] {
        assert!(steps.contains(step), "{steps}");
    }
    // A new block, without a reload.
    let mut times = Vec::new();
    for number in 2..5 {
        let hashes = stage.mine(1, number);
        times.push(wait_for(&page, "The last blocks", tail(&hashes[0])));
    }
    assert!(times.iter().min() <= Some(&SOON), "{times:?}");
    page.evaluate("document.querySelector('.plot').focus()").unwrap();
    (0..3).for_each(|_| page.press("ArrowRight").unwrap());
    page.press("Enter").unwrap();
    let best = stage.call("getbestblockhash", &json!([]));
    let is_there = format!("location.hash === '#/explorer?q={}'", best.as_str().unwrap());
    page.wait_until(&is_there, PATIENCE)
        .unwrap_or_else(|error| panic!("{error}: {}", page.text("location.hash").unwrap()));
    go(&page, "miners");
    wait_for(&page, "Pools", "64");
    let pools = cells(&page, "Pools");
    assert_eq!([&pools[0][0], &pools[0][1]], ["unknown", "64"], "{pools:?}");
    assert_eq!([&pools[1][0], &pools[1][1]], ["ViaBTC", "1"], "{pools:?}");
    assert!(pools[1][7].contains("<img src=x onerror=alert(1)>"), "as text: {pools:?}");
    expect_no_problems(&page, "blocks and miners");
}

#[test]
fn the_chain_shows_branches_and_faults_at_once() {
    let Some(stage) = Stage::start("the_chain_shows_branches_and_faults_at_once", OPTIONS) else { return };
    let main = stage.mine(10, 1);
    let page = stage.enter();
    go(&page, "chain");
    wait_for(&page, "Tips", tail(&main[9]));
    // Two blocks are replaced by three.
    stage.call("invalidateblock", &json!([main[8]]));
    let branch = stage.mine(3, 2);
    let mut times = vec![wait_for(&page, "Reorganisations", tail(&branch[2]))];
    stage.call("reconsiderblock", &json!([main[8]]));
    wait_for(&page, "Tips", "valid-fork");
    let rows = cells(&page, "Reorganisations");
    assert_eq!([&rows[0][0], &rows[0][2], &rows[0][3], &rows[0][6]], ["1", "2", "8", "new chain"], "{rows:?}");
    let mut shown: Vec<(String, String)> =
        cells(&page, "Tips").into_iter().map(|row| (row[0].clone(), row[4].clone())).collect();
    let tips = stage.call("getchaintips", &json!([]));
    let tip = |tip: &Value| (tip["height"].to_string(), tip["status"].as_str().unwrap().to_owned());
    let mut expected: Vec<_> = tips.as_array().unwrap().iter().map(tip).collect();
    shown.sort();
    expected.sort();
    assert_eq!(shown, expected);
    let tree = page.text("document.querySelector('svg.tree').textContent").unwrap();
    assert!(tree.contains("valid-fork, height 10, 2 blocks") && tree.contains("active, height 11"), "{tree}");
    // A block that pays itself too much.
    let refused = stage.submit_rich();
    times.push(wait_for(&page, "Invalid blocks", tail(&refused)));
    let rows = cells(&page, "Invalid blocks");
    assert_eq!([&rows[0][0], &rows[0][3], &rows[0][5]], ["12", "bad-cb-amount", "bad-cb-amount"], "{rows:?}");
    assert!(rows[0][4].len() > 20, "the sentence of the rule: {rows:?}");
    wait_for(&page, "Tips", "invalid");
    // One that was marked by a call has no rule.
    stage.call("invalidateblock", &json!([branch[2]]));
    times.push(wait_for(&page, "Invalid blocks", "marked as invalid by a call"));
    assert!(times.iter().min() <= Some(&SOON), "{times:?}");
    expect_no_problems(&page, "chain");
}
