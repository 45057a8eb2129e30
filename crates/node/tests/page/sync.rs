//! A node that syncs under an open page: the figures and the map of blocks move, and end as those of RPC.

use crate::server::Server;
use crate::stage::{PATIENCE, Stage, expect_no_problems, go, wait_for_promise};
use lydian_browser::Page;
use lydian_oracle::free_port;
use serde_json::{Value, json};

/// Blocks that the node fetches in each step: first a whole sync, then what its peer mines.
const STEPS: [u32; 3] = [400, 150, 150];

/// The value beside a label, and the line below the map.
const SHOWN: &str = "({fact: (label) => [...document.querySelectorAll('main .facts>div')].find((one) => \
one.children[0].textContent === label)?.children[1].textContent ?? '', \
map: () => document.querySelector('main .map p')?.textContent ?? ''})";

/// Keeps each value that is shown, twenty times a second and whenever `look` is called.
const WATCH: &str = "window.seen = {heights: [], maps: []}; window.look = () => {
  const shown = window.shown;
  for (const [list, text] of [[seen.heights, shown.fact('Validation').split(':')[0]], [seen.maps, shown.map()]])
    if (text !== '' && list.at(-1) !== text) list.push(text);
}; setInterval(look, 50)";

fn fact(page: &Page, label: &str) -> String {
    page.text(&format!("shown.fact('{label}')")).unwrap()
}

/// The line below the map, such as `Heights 0 to 700: 690 durable, 11 validated.`: the first height, the last one, and
/// the count of each kind.
fn map(page: &Page) -> (u64, u64, Vec<(String, u64)>) {
    let line = page.text("shown.map()").unwrap().replace(',', "").replace(" only", "");
    let (place, kinds) = line.trim_end_matches('.').split_once(": ").unwrap();
    let heights: Vec<u64> = place.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let words: Vec<&str> = kinds.split_whitespace().collect();
    let mut counts: Vec<(String, u64)> = Vec::new();
    for word in words {
        match word.parse() {
            Ok(count) => counts.push((String::new(), count)),
            Err(_) => {
                let kind = &mut counts.last_mut().unwrap().0;
                *kind = format!("{kind} {word}").trim().to_owned();
            }
        }
    }
    (heights[0], heights[1], counts)
}

#[test]
fn a_sync_moves_the_figures_of_an_open_page() {
    let address = format!("127.0.0.1:{}", free_port().unwrap());
    let bind = format!("-bind={address}");
    let Some(stage) = Stage::start("a_sync_moves_the_figures", &["-txindex"]) else { return };
    let source = Server::lydian("a_sync_moves_the_figures-source", &["-listen=1", &bind]);
    let page = stage.enter();
    go(&page, "sync");
    page.evaluate(&format!("window.shown = {SHOWN}; {WATCH}; true")).unwrap();
    let wait = |height: u64| {
        let there = format!(
            "shown.fact('Validation').startsWith('height {height}:') && shown.fact('Headers') === '{height}' && \
             document.querySelector('main').textContent.includes('complete, height {height}')"
        );
        page.wait_until(&there, PATIENCE).unwrap_or_else(|error| {
            panic!("{height}: {error}: {}", page.text("document.querySelector('main').innerText").unwrap())
        });
        page.evaluate("look()").unwrap();
    };
    wait(0);
    let mut height = 0;
    for count in STEPS {
        source.result("generatetodescriptor", &json!([count, "raw(51)"]).to_string());
        if height == 0 {
            stage.call("addnode", &json!([address, "onetry"]));
        }
        height += u64::from(count);
        wait(height);
        let chain = stage.call("getblockchaininfo", &json!([]));
        assert_eq!((&chain["blocks"], &chain["headers"]), (&json!(height), &json!(height)));
        assert_eq!(stage.call("getindexinfo", &json!([]))["txindex"]["best_block_height"], height);
        // Every block that the map has up to the tip is validated.
        let is_there = format!(
            "shown.map().includes('to {height}:') && document.querySelector('main .map .cell:is(.here, .requested, .none)') === null"
        );
        page.wait_until(&is_there, PATIENCE)
            .unwrap_or_else(|error| panic!("{error}: {}", page.text("shown.map()").unwrap()));
        page.evaluate("look()").unwrap();
        let (first, last, kinds) = map(&page);
        let done: u64 =
            kinds.iter().filter(|(kind, _)| kind == "durable" || kind == "validated").map(|(_, count)| count).sum();
        assert_eq!((last, first + done), (height, height + 1), "{kinds:?}");
        let cells = page.evaluate("document.querySelectorAll('main .map .cell').length").unwrap();
        assert_eq!(cells, last - first + 1, "a cell for each height");
    }
    let seen = page.evaluate("window.seen").unwrap();
    let heights: Vec<u64> = seen["heights"].as_array().unwrap().iter().map(number).collect();
    assert!(heights.is_sorted() && heights[0] == 0 && heights.len() > STEPS.len(), "{heights:?}");
    assert!(seen["maps"].as_array().unwrap().len() >= STEPS.len(), "{seen}");
    let durable = fact(&page, "Commit");
    assert!(durable.starts_with("durable to height "), "{durable}");
    bandwidth(&page, &stage, &source, height);
    expect_no_problems(&page, "sync");
}

/// The chart of the bandwidth, as a table: what came since a point of the history is in the next ones, and is shown.
fn bandwidth(page: &Page, stage: &Stage, source: &Server, height: u64) {
    let recorded = "(async () => { const now = Math.floor(Date.now() / 1000); \
        const found = await (await fetch(`/api/history?series=bytes_received&from=${now - 600}&to=${now + 10}`)).json(); \
        return found.series.bytes_received.filter((value) => value !== null).map((value) => value * found.step); })()";
    let received = || stage.call("getnettotals", &json!([]))["totalbytesrecv"].as_f64().unwrap();
    wait_for_promise(page, "a point is recorded", &format!("{recorded}.then((points) => points.length > 0)"));
    let sum = "points.reduce((sum, value) => sum + value, 0)";
    let recorded_bytes = || page.evaluate(&format!("{recorded}.then((points) => {sum})")).unwrap().as_f64().unwrap();
    let (before, recorded_before) = (received(), recorded_bytes());
    source.result("generatetodescriptor", &json!([STEPS[0], "raw(51)"]).to_string());
    let height = height + u64::from(STEPS[0]);
    page.wait_until(&format!("shown.fact('Headers').replace(',', '') === '{height}'"), PATIENCE).unwrap();
    let came = received() - before;
    assert!(came > 10_000.0, "{came} bytes for {} blocks", STEPS[0]);
    // A point is a rate over the time between two readings, which on a busy machine is not just ten seconds.
    let least = recorded_before + came * 0.6;
    wait_for_promise(page, "what came is recorded", &format!("{recorded}.then((points) => {sum} >= {least})"));
    let all = recorded_bytes();
    assert!(all <= received() * 1.6, "{all} of {} bytes", received());
    let card = "[...document.querySelectorAll('main .card')].find((one) => one.querySelector('h2')?.textContent === 'Bandwidth')";
    page.evaluate(&format!(
        "[...{card}.querySelectorAll('button')].find((one) => one.textContent === 'Table').click()"
    ))
    .unwrap();
    let most =
        format!("{recorded}.then(async (points) => (await import('/assets/ui.js')).rate(Math.max(...points) / 10))");
    let is_shown = format!("{most}.then((most) => {card}.querySelector('table').textContent.includes(most))");
    wait_for_promise(page, "the table has the highest rate", &is_shown);
}

fn number(text: &Value) -> u64 {
    text.as_str().unwrap().trim_start_matches("height ").replace(',', "").parse().unwrap()
}
