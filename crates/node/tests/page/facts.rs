//! Machine, Miners, Settings and Connect: what they show is what RPC, the system and the program's help say.

use crate::busy::busy;
use crate::stage::{PATIENCE, expect_no_problems, go};
use lydian_browser::Page;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::process::Command;

/// A value as the page writes it, by a function of `ui.js`.
fn written(page: &Page, format: &str, value: &Value) -> String {
    page.text(&format!("import('/assets/ui.js').then((ui) => ui.{format}({value}))")).unwrap()
}

/// Waits until a label has a value: topics are read once a second.
fn expect(page: &Page, what: &str, rows: &str, label: &str, text: &str) {
    let value = format!(
        "[...document.querySelectorAll('main {rows}')].find((one) => one.children[0].textContent === '{label}')?.lastElementChild.textContent"
    );
    let is_so = format!("{value}?.includes({})", json!(text));
    page.wait_until(&is_so, PATIENCE)
        .unwrap_or_else(|error| panic!("{what}, {label}, {text}: {error}: {:?}", page.text(&value)));
}

#[test]
fn machine_miners_settings_and_connect_are_as_the_node_says() {
    let Some(busy) = busy("machine_miners_settings_and_connect") else { return };
    let stage = &busy.stage;
    let page = stage.enter();

    go(&page, "machine");
    let pool = stage.call("getmempoolinfo", &json!([]));
    expect(&page, "machine", ".stage", "mempool", &written(&page, "bytes", &pool["usage"]));
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total: u64 = memory.split_whitespace().nth(1).unwrap().parse().unwrap();
    expect(&page, "machine", ".facts>div", "Memory of the machine", &written(&page, "bytes", &json!(total << 10)));
    let cores = std::thread::available_parallelism().unwrap();
    expect(&page, "machine", ".facts>div", "CPU now", &format!(" of {cores} cores"));
    expect(&page, "machine", ".facts>div", "Disagreements", "0");
    expect(&page, "machine", ".facts>div", "Data directory", &stage.server.folder.display().to_string());

    go(&page, "miners");
    let tip = stage.call("getblockcount", &json!([])).as_u64().unwrap();
    let stats: Vec<Value> = (0..=tip).map(|height| stage.call("getblockstats", &json!([height]))).collect();
    let sum = |key: &str| stats.iter().map(|one| one[key].as_u64().unwrap()).sum::<u64>();
    let blocks = format!("{}, heights 0 to {tip}", tip + 1);
    expect(&page, "miners", ".facts>div", "Blocks looked at", &blocks);
    let fees = format!("{:.8}", sum("totalfee") as f64 / 1e8);
    expect(
        &page,
        "miners",
        ".facts>div",
        "Fees in all",
        &format!("{} BTC", fees.trim_end_matches('0').trim_end_matches('.')),
    );
    let hash_rate = stage.call("getnetworkhashps", &json!([120]));
    expect(&page, "miners", ".facts>div", "Hash rate, 120 blocks", &written(&page, "hashRate", &hash_rate));
    expect(&page, "miners", ".facts>div", "Height of the next halving", "150");
    let pools = page.evaluate("[...document.querySelectorAll('main table')].find((one) => one.caption.textContent === 'Pools').tBodies[0].innerText").unwrap();
    let counted = page.evaluate("[...[...document.querySelectorAll('main table')].find((one) => one.caption.textContent === 'Pools').tBodies[0].rows].reduce((sum, row) => sum + Number(row.cells[1].textContent), 0)").unwrap();
    assert_eq!(counted, tip + 1, "each block has a pool: {pools}");

    settings(&page, &stage.server.proc("cmdline"));

    go(&page, "connect");
    page.wait_until("document.querySelectorAll('main .addresses code').length > 2", PATIENCE).unwrap();
    let urls = page
        .evaluate("[...document.querySelectorAll('main .addresses .copied code')].map((one) => one.textContent)")
        .unwrap();
    let urls: Vec<String> = serde_json::from_value(urls).unwrap();
    for url in &urls {
        let address = url.rsplit_once("//").map_or(url.as_str(), |(_, address)| address);
        TcpStream::connect(address).unwrap_or_else(|error| panic!("{url} is shown, and does not answer: {error}"));
    }
    assert!(urls.contains(&format!("http://127.0.0.1:{}", stage.server.port)), "{urls:?}");
    expect_no_problems(&page, "facts");
}

/// Options of the command line have their values, and all others the help of the program.
fn settings(page: &Page, command_line: &str) {
    go(page, "settings");
    page.wait_until("document.querySelectorAll('main .option').length > 100", PATIENCE).unwrap();
    let read = "Object.fromEntries([...document.querySelectorAll('main .option')].map((one) => \
        [one.id.slice('option-'.length), [one.querySelector('.value').textContent, one.querySelector('.help').textContent]]))";
    let shown: BTreeMap<String, (String, String)> = serde_json::from_value(page.evaluate(read).unwrap()).unwrap();
    let mut given: BTreeMap<&str, &str> = BTreeMap::new();
    for option in command_line.split('\0').filter_map(|argument| argument.strip_prefix('-')) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        // The last one counts.
        match name.strip_prefix("no").filter(|name| shown.contains_key(*name)) {
            Some(negated) => given.insert(negated, "0"),
            None if shown.contains_key(name) => given.insert(name, value),
            None => None,
        };
    }
    for (name, value) in given {
        let (text, _) = &shown[name];
        assert!(text.contains(value) && text.contains("command line"), "-{name}={value}: {text}");
    }
    let help = Command::new(env!("CARGO_BIN_EXE_lydian")).arg("-help-debug").arg("-help").output().unwrap();
    let help: String = String::from_utf8(help.stdout).unwrap().split_whitespace().collect();
    let mut compared = 0;
    for (name, (value, words)) in &shown {
        let words: String =
            words.replace(" Its value is never shown.", "").trim_end_matches('.').split_whitespace().collect();
        if value.ends_with("default") && help.contains(&words) {
            compared += 1;
        } else {
            assert!(!value.ends_with("default") || !help.contains(&format!("-{name}=")), "-{name}: {words}");
        }
    }
    assert!(compared > 100, "{compared} of {}", shown.len());
}
