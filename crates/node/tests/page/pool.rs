//! The panels Mempool and Explorer: what they show is what RPC says, and follows within two seconds.

use crate::busy::busy;
use crate::peers::confirm;
use crate::stage::{self, PATIENCE, SOON, Stage, expect_no_problems, go, pay, raw, script, wait_for_promise};
use lydian_browser::Page;
use lydian_primitives::build::MutTx;
use lydian_primitives::to_hex;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What was read is drawn.
const SETTLE: Duration = Duration::from_millis(300);

/// The value beside a label of a card.
fn fact(label: &str) -> String {
    format!(
        "[...document.querySelectorAll('main .facts div')].find((one) => one.querySelector('dt').textContent === \
         '{label}')?.querySelector('dd').textContent"
    )
}

/// The rows of the table with a caption, as lists of texts.
fn rows(page: &Page, caption: &str) -> Vec<Vec<String>> {
    let script = format!(
        "[...document.querySelectorAll('main table')].find((one) => one.caption?.textContent === '{caption}').tBodies[0].rows"
    );
    let found = page.evaluate(&format!("[...{script}].map((row) => [...row.cells].map((cell) => cell.textContent))"));
    serde_json::from_value(found.unwrap()).unwrap()
}

/// A whole number as the page writes it.
fn number(value: &Value) -> String {
    let digits = value.as_u64().unwrap().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn wait_for_fact(page: &Page, label: &str, expected: &str) -> Duration {
    let is_so = format!("{} === '{expected}'", fact(label));
    page.wait_until(&is_so, PATIENCE).unwrap_or_else(|error| panic!("{label} is {expected}: {error}"))
}

#[test]
fn the_mempool_is_that_of_rpc() {
    let Some(busy) = busy("the_mempool_is_that_of_rpc") else { return };
    let stage = &busy.stage;
    let page = stage.enter();
    go(&page, "mempool");
    page.evaluate("window.mark = 1").unwrap();
    page.wait_until(&fact("Transactions"), PATIENCE).unwrap();
    let sends = |tx: &MutTx, sentence: &str| {
        page.click_text("button", "Send a transaction…").unwrap();
        page.fill("dialog.confirm input", &raw(tx)).unwrap();
        confirm(&page, sentence);
    };
    let sent = pay(busy.coins[0], 1, 8, 3_000).0;
    sends(&sent, &format!("Sent {}.", sent.txid()));
    assert_eq!(stage.call("getmempoolentry", &json!([sent.txid().to_string()]))["fees"]["base"], json!(0.00003));
    let info = stage.call("getmempoolinfo", &json!([]));
    wait_for_fact(&page, "Transactions", &number(&info["size"]));
    wait_for_fact(&page, "Virtual bytes", &number(&info["bytes"]));
    // Its number falls while peers ask for transactions.
    let unbroadcast = || number(&stage.call("getmempoolinfo", &json!([]))["unbroadcastcount"]);
    let began = Instant::now();
    while page.text(&fact("Not broadcast yet")).unwrap() != unbroadcast() {
        assert!(began.elapsed() < PATIENCE, "{} of RPC is not shown", unbroadcast());
        std::thread::sleep(SETTLE);
    }
    for target in [2, 6, 24, 144] {
        let found = stage.call("estimatesmartfee", &json!([target]));
        let expected = match found["feerate"].as_f64() {
            Some(fee) => page.text(&format!("import('/assets/ui.js').then((ui) => ui.satvb({fee} * 1e8))")).unwrap(),
            None => "not enough data yet".to_owned(),
        };
        let is_so = format!("{} === '{expected}'", fact(&format!("Estimate for {target} blocks")));
        page.wait_until(&is_so, PATIENCE).unwrap_or_else(|error| panic!("{target}, {expected}: {error}"));
    }
    let count = |page: &Page| {
        let counts = rows(page, "Fee bands").into_iter().map(|row| row[1].replace(',', "").parse::<u64>().unwrap());
        counts.sum::<u64>()
    };
    // The table is drawn every two seconds.
    let began = Instant::now();
    while count(&page) != info["size"].as_u64().unwrap() {
        assert!(began.elapsed() < PATIENCE, "{:?} of {info}", rows(&page, "Fee bands"));
        page.listen(SETTLE).unwrap();
    }
    expect_bands_of_the_history(&page);
    // The busy node has refused one transaction and replaced another.
    assert_eq!((rows(&page, "Rejected transactions").len(), rows(&page, "Replacements").len()), (1, 1));
    let poor = pay(stage.coin(13, 1), 1, 3, 0).0;
    let refused = stage.server.call("sendrawtransaction", &json!([raw(&poor)]).to_string());
    let refused: Value = serde_json::from_str(&refused.body).unwrap();
    let reason = refused["error"]["message"].as_str().unwrap();
    let shown = format!("[...document.querySelectorAll('main .reason')].some((one) => one.textContent === '{reason}')");
    let mut times = vec![page.wait_until(&shown, PATIENCE).unwrap_or_else(|error| panic!("{reason}: {error}"))];
    sends(&poor, &format!("sendrawtransaction failed: {reason}"));
    // Every transaction is in the next block, which the page sees.
    let next =
        format!("document.querySelector('main .next')?.textContent.includes('{} transactions')", number(&info["size"]));
    page.wait_until(&next, PATIENCE).unwrap();
    let hash = stage.mine(1, 1).remove(0);
    times.push(wait_for_fact(&page, "Transactions", "0"));
    let mined = format!("document.querySelector('main a[href=\"#/explorer?block={hash}\"]')");
    page.wait_until(&mined, PATIENCE).unwrap();
    // The shortest time counts, as the machine may stall.
    assert!(times.iter().min() <= Some(&SOON), "{times:?}");
    let row = rows(&page, "Mined blocks beside their projection").remove(0);
    let size = number(&info["size"]);
    assert_eq!(row[2..8], [&size, &size, "0", "0", "0", "100.0 %"].map(str::to_owned));
    assert_eq!(page.evaluate("window.mark").unwrap(), 1, "without a reload");
    expect_no_problems(&page, "mempool");
}

/// The feerates of the chart's areas are those of the bands in the history and now.
fn expect_bands_of_the_history(page: &Page) {
    let ask = "const ask = async (names) => { const now = Math.floor(Date.now() / 1000); \
        return (await (await fetch(`/api/history?series=${names}&from=${now - 600}&to=${now + 10}`)).json()).series; };";
    let is_recorded = format!(
        "(async () => {{ {ask} return (await ask('mempool_vbytes')).mempool_vbytes.some((value) => value > 0); }})()"
    );
    wait_for_promise(page, "the history has the mempool", &is_recorded);
    let recorded = format!(
        "(async () => {{ {ask} const {{ rates, bands }} = (await import('/assets/live.js')).state('mempool'); \
        const names = rates.map((_, place) => `mempool_band_${{place}}`); const series = await ask(names); \
        return rates.map((rate, place) => [`${{rate / 1000}} – ${{rates[place + 1] / 1000}} sat/vB`, [bands.vsize[place], ...series[names[place]]]]) \
            .filter(([, values]) => values.some((value) => value > 0)).map(([range]) => range).sort(); }})()"
    );
    go(page, "overview");
    let reads = || {
        let requests = page.requests().unwrap();
        requests.iter().filter(|one| one.url.contains("series=mempool_band_0,") && one.status == 200).count()
    };
    let before = reads();
    go(page, "mempool");
    let began = Instant::now();
    while reads() == before {
        assert!(began.elapsed() < PATIENCE, "the panel reads the history");
        page.listen(SETTLE).unwrap();
    }
    // It is drawn after it was read.
    let drawn = "[...document.querySelectorAll('main .bands polygon title')].map((one) => one.textContent).sort()";
    loop {
        let [drawn, recorded] = [drawn, &recorded].map(|script| page.evaluate(script).unwrap());
        if drawn == recorded {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{drawn} is not {recorded}");
        page.listen(SETTLE).unwrap();
    }
}

/// Estimates of a node that has seen transactions come and confirm, on the page and in the figures.
#[test]
fn estimates_are_those_of_rpc() {
    let Some(stage) = Stage::start("estimates_are_those_of_rpc", &[]) else { return };
    stage.mine(120, 1);
    let (split, coins) = pay(stage.coin(1, 1), 60, 2, 10_000);
    stage.call("sendrawtransaction", &json!([raw(&split)]));
    stage.mine(1, 1);
    for coins in coins.chunks(10) {
        for (coin, fee) in coins.iter().zip((1_000..).step_by(700)) {
            stage.call("sendrawtransaction", &json!([raw(&pay(*coin, 1, 3, fee).0)]));
        }
        stage.mine(1, 1);
    }
    let page = stage.enter();
    go(&page, "mempool");
    let mut seen = Vec::new();
    for target in [2, 6, 24, 144] {
        let fee = stage.call("estimatesmartfee", &json!([target]))["feerate"].as_f64().unwrap();
        let expected = page.text(&format!("import('/assets/ui.js').then((ui) => ui.satvb({fee} * 1e8))")).unwrap();
        assert!(expected.ends_with(" sat/vB"), "{expected}");
        let is_so = format!("{} === '{expected}'", fact(&format!("Estimate for {target} blocks")));
        page.wait_until(&is_so, PATIENCE).unwrap_or_else(|error| panic!("{target}, {expected}: {error}"));
        seen.push(fee);
    }
    assert!(seen.is_sorted_by(|soon, late| soon >= late) && seen[0] > 1e-5, "{seen:?}");
    for target in [2, 3, 5, 20] {
        let fee = stage.call("estimatesmartfee", &json!([target]))["feerate"].clone();
        let figure = format!(
            "fetch('/api/figures').then((one) => one.json()).then((all) => all.bitcoin_est_smart_fee_{target}.samples[0].value)"
        );
        assert_eq!(page.evaluate(&figure).unwrap(), fee, "{target}");
    }
    expect_no_problems(&page, "estimates");
}

/// Types into the field, and presses the button.
fn search(page: &Page, text: &str) {
    stage::search(page, text, |page| page.click(".explorer-search button"));
}

fn wait_for(page: &Page, what: &str, is_so: &str) {
    page.wait_until(is_so, PATIENCE).unwrap_or_else(|error| {
        let shown = page.text("document.querySelector('main').innerText.slice(0, 2000)").unwrap();
        panic!("{what}: {error}; {shown}")
    });
}

#[test]
fn the_explorer_finds_all_in_one_field() {
    let Some(stage) = Stage::start("the_explorer_finds_all", &["-addressindex=full"]) else { return };
    stage.mine(130, 1);
    let (tx, _) = pay(stage.coin(1, 1), 3, 2, 5_000);
    stage.call("sendrawtransaction", &json!([raw(&tx)]));
    let block = stage.mine(1, 1).remove(0);
    let page = stage.enter();
    go(&page, "explorer");
    let title = |words: &str| {
        format!("[...document.querySelectorAll('main h2')].some((one) => one.textContent.includes('{words}'))")
    };
    wait_for(&page, "the newest blocks", &title("The newest blocks"));
    search(&page, "131");
    wait_for(&page, "a block", &title("Block 131"));
    wait_for(&page, "its hash", &format!("{} === '{block}'", fact("Hash")));
    // From the block to its transaction.
    let txid = tx.txid().to_string();
    wait_for(&page, "its transactions", &format!("document.querySelector('main .tx a[href*=\"tx={txid}\"]')"));
    page.evaluate(&format!("document.querySelector('main .tx a[href*=\"tx={txid}\"]').click()")).unwrap();
    wait_for(&page, "the transaction", &format!("{} === '{txid}'", fact("txid")));
    assert_eq!(page.text(&fact("Fee")).unwrap(), "5,000 sat");
    page.click_text("summary", "Raw").unwrap();
    wait_for(&page, "its bytes", &format!("document.querySelector('main pre')?.textContent === '{}'", raw(&tx)));
    // An address, and one of another network.
    let decoded = stage.call("decodescript", &json!([to_hex(&script(2))]));
    search(&page, decoded["address"].as_str().unwrap());
    wait_for(&page, "the address", &title("Balance"));
    let scanned = stage.call("scantxoutset", &json!(["start", [decoded["desc"]]]));
    let balance = format!("{:.8} BTC", scanned["total_amount"].as_f64().unwrap());
    assert_eq!(page.text(&fact("Balance")).unwrap(), balance);
    search(&page, "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa");
    let words = "is an address of mainnet; this node follows regtest.";
    wait_for(&page, "an error", &format!("document.querySelector('main .note.bad')?.textContent.endsWith('{words}')"));
    page.evaluate("history.back()").unwrap();
    wait_for(&page, "the address again", &title("Balance"));
    search(&page, "raw(51)");
    wait_for(&page, "a descriptor", &title("Descriptor"));
    expect_no_problems(&page, "explorer");
}
