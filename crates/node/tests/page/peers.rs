//! Peers, servers and addresses by click: what a person does on the panels happens in the node, and is on the page at
//! once.

use crate::server::Server;
use crate::stage::{PATIENCE, SOON, Stage, expect_no_problems, go};
use lydian_browser::Page;
use lydian_oracle::free_port;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// A node with another one that listens, to which it may connect.
struct World {
    stage: Stage,
    _other: Server,
    address: String,
}

impl World {
    fn start(name: &str, options: &[&str]) -> Option<World> {
        let stage = Stage::start(name, options)?;
        let address = format!("127.0.0.1:{}", free_port().unwrap());
        let bind = format!("-bind={address}");
        let other = Server::lydian(&format!("{name}-other"), &["-page=0", "-listen=1", &bind, "-uacomment=other"]);
        Some(World { stage, _other: other, address })
    }

    fn connect(&self) {
        self.stage.call("addnode", &json!([self.address, "onetry"]));
        self.wait_for_peers(1);
    }

    fn wait_for_peers(&self, count: usize) {
        let began = Instant::now();
        let is_done = |peer: &Value| !peer["bytesrecv_per_msg"]["verack"].is_null();
        loop {
            let peers = self.stage.call("getpeerinfo", &json!([]));
            let peers = peers.as_array().unwrap();
            if peers.len() == count && peers.iter().all(is_done) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{peers:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The text of a table's body, by its caption.
fn rows(caption: &str) -> String {
    format!("document.querySelector('[role=region][aria-label=\"{caption}\"] tbody').textContent")
}

/// Waits until a table of the page has this text, or has it no more.
pub(crate) fn wait_for_row(page: &Page, caption: &str, text: &str, is_there: bool) -> Duration {
    let script = format!("{}.includes('{text}') === {is_there}", rows(caption));
    page.wait_until(&script, PATIENCE).unwrap_or_else(|error| panic!("{caption}, {text}: {error}"))
}

/// Confirms the dialog that asks, and waits for the sentence that says what came of it.
pub(crate) fn confirm(page: &Page, sentence: &str) {
    page.click("dialog.confirm button[type=submit]").unwrap();
    let script =
        format!("[...document.querySelectorAll('.outcome')].some((one) => one.textContent.includes('{sentence}'))");
    page.wait_until(&script, PATIENCE).unwrap_or_else(|error| panic!("{sentence}: {error}"));
}

#[test]
fn peers_are_disconnected_banned_and_added_by_click() {
    let Some(world) = World::start("peers_are_disconnected_banned_and_added_by_click", &["-pageactions"]) else {
        return;
    };
    let (stage, address) = (&world.stage, world.address.as_str());
    let page = stage.enter();
    go(&page, "peers");
    world.connect();
    wait_for_row(&page, "Connected peers", address, true);
    wait_for_row(&page, "Connected peers", "(other)", true);
    // The details have what getpeerinfo has.
    page.click("tbody button.link").unwrap();
    let peer = stage.call("getpeerinfo", &json!([]))[0].clone();
    for field in ["addr", "subver", "session_id", "connection_type", "services"] {
        let text = peer[field].as_str().unwrap();
        page.wait_until(&format!("document.querySelector('dialog.sheet').textContent.includes('{text}')"), PATIENCE)
            .unwrap();
    }
    assert!(page.text("document.querySelector('dialog.sheet table').textContent").unwrap().contains("verack"));
    // A dialog that is cancelled does nothing.
    page.click_text("dialog.sheet button", "Disconnect…").unwrap();
    page.click_text("dialog.confirm button", "Cancel").unwrap();
    page.wait_until("document.querySelector('dialog.confirm') === null", PATIENCE).unwrap();
    world.wait_for_peers(1);
    page.click_text("dialog.sheet button", "Disconnect…").unwrap();
    confirm(&page, "Disconnected peer");
    world.wait_for_peers(0);
    page.wait_until("document.querySelector('dialog.sheet').textContent.includes('not connected any more')", PATIENCE)
        .unwrap();
    page.press("Escape").unwrap();
    page.wait_until("document.querySelector('dialog.sheet') === null", PATIENCE).unwrap();
    wait_for_row(&page, "Connected peers", address, false);
    // A ban ends the connection, and is in the table.
    world.connect();
    wait_for_row(&page, "Connected peers", address, true);
    page.click("tbody button.link").unwrap();
    page.click_text("dialog.sheet button", "Ban…").unwrap();
    confirm(&page, "Banned 127.0.0.1 for a day.");
    world.wait_for_peers(0);
    page.press("Escape").unwrap();
    let mut took = vec![wait_for_row(&page, "Bans", "127.0.0.1/32", true)];
    assert_eq!(stage.call("listbanned", &json!([]))[0]["ban_duration"], 86_400);
    page.click("button[aria-label='Unban 127.0.0.1/32']").unwrap();
    confirm(&page, "Unbanned 127.0.0.1/32.");
    took.push(wait_for_row(&page, "Bans", "127.0.0.1/32", false));
    assert!(took.iter().min() <= Some(&SOON), "{took:?}");
    assert_eq!(stage.call("listbanned", &json!([])), json!([]));
    // A peer by its address; the second time the node refuses, in its words.
    for sentence in [format!("Added {address}."), "addnode failed: Error: Node already added".to_owned()] {
        page.click_text("button", "Add a peer…").unwrap();
        page.fill("dialog.confirm input", address).unwrap();
        confirm(&page, &sentence);
    }
    wait_for_row(&page, "Added peers", address, true);
    world.wait_for_peers(1);
    page.click(&format!("button[aria-label='Remove {address}']")).unwrap();
    confirm(&page, &format!("Removed {address}."));
    wait_for_row(&page, "Added peers", address, false);
    assert_eq!(stage.call("getaddednodeinfo", &json!([])), json!([]));
    expect_no_problems(&page, "peers");
}

#[test]
fn columns_are_chosen_and_kept() {
    let Some(world) = World::start("columns_are_chosen_and_kept", &[]) else { return };
    world.connect();
    let page = world.stage.enter();
    go(&page, "peers");
    wait_for_row(&page, "Connected peers", &world.address, true);
    let head = "document.querySelector('[aria-label=\"Connected peers\"] thead').textContent";
    assert!(!page.text(head).unwrap().contains("Session id"));
    page.click(".picker summary").unwrap();
    page.evaluate(
        "[...document.querySelectorAll('.choices label')].find((one) => one.textContent === 'Session id').click()",
    )
    .unwrap();
    page.wait_until(&format!("{head}.includes('Session id')"), PATIENCE).unwrap();
    let id = world.stage.call("getpeerinfo", &json!([]))[0]["session_id"].as_str().unwrap()[..32].to_owned();
    wait_for_row(&page, "Connected peers", &id, true);
    expect_no_problems(&page, "before");
    page.reload().unwrap();
    // The worker of the stream ends with its last tab, which Chromium reports as a crash.
    let problems = page.take_problems().unwrap();
    assert!(problems.iter().all(|one| one == "the page crashed"), "{problems:#?}");
    go(&page, "peers");
    page.wait_until(&format!("{head}.includes('Session id')"), PATIENCE).unwrap();
    // Every field that getpeerinfo has can be chosen, apart from the two that are tables.
    let peer = world.stage.call("getpeerinfo", &json!([]))[0].clone();
    let known = page.evaluate(
        "import('/assets/panels/peer-fields.js').then(({FIELDS, NESTED}) => [...Object.keys(FIELDS), ...NESTED])",
    );
    let known: Vec<String> = serde_json::from_value(known.unwrap()).unwrap();
    for field in peer.as_object().unwrap().keys() {
        assert!(known.contains(field), "{field}");
    }
    // Words of the filter that no peer has.
    wait_for_row(&page, "Connected peers", &world.address, true);
    page.fill(".search input", "no such peer").unwrap();
    wait_for_row(&page, "Connected peers", &world.address, false);
    page.fill(".search input", "OTHER").unwrap();
    wait_for_row(&page, "Connected peers", &world.address, true);
    // Without -pageactions, there is no button that changes anything.
    for words in ["Add a peer", "Ban", "Remove", "Switch"] {
        let script = format!(
            "[...document.querySelectorAll('main button')].some((one) => one.textContent.startsWith('{words}'))"
        );
        assert_eq!(page.evaluate(&script).unwrap(), false, "{words}");
    }
    expect_no_problems(&page, "columns");
}

/// The codes are those of the addresses: what a camera reads is drawn from the rows that the node made.
#[test]
fn wallets_are_told_where_to_connect() {
    let [tcp, tls] = [(); 2].map(|()| free_port().unwrap());
    let (bind, tls_bind) = (format!("-electrumbind=127.0.0.1:{tcp}"), format!("-electrumtlsbind=127.0.0.1:{tls}"));
    let options = [
        "-electrum",
        &bind,
        &tls_bind,
        "-electrumwsbind=0",
        "-electrumwssbind=0",
        "-electrumhost=ssl://node.example:443",
    ];
    let Some(stage) = Stage::start("wallets_are_told_where_to_connect", &options) else { return };
    let page = stage.enter();
    go(&page, "connect");
    let shows = |words: &str| {
        let script = format!("document.querySelector('main').textContent.includes('{words}')");
        page.wait_until(&script, PATIENCE).unwrap_or_else(|error| panic!("{words}: {error}"));
    };
    shows(&format!("ssl://127.0.0.1:{tls}"));
    shows(&format!("tcp://127.0.0.1:{tcp}"));
    shows("electrum --oneserver --server node.example:443:s");
    shows(&format!("http://127.0.0.1:{}", stage.server.port));
    shows("esplora=1");
    let drawn =
        page.evaluate("[...document.querySelectorAll('svg.qr')].map((one) => one.getAttribute('aria-label'))").unwrap();
    assert!(drawn.as_array().unwrap().contains(&json!("QR code of node.example:443:s")), "{drawn}");
    // As many dark modules as the rows have.
    let counts = page
        .evaluate(
            "(() => { const svg = document.querySelector('svg.qr'); const runs = svg.querySelector('path').getAttribute('d').matchAll(/h(\\d+)v1/g); \
             return [Number(svg.getAttribute('viewBox').split(' ')[2]), [...runs].reduce((sum, run) => sum + Number(run[1]), 0)]; })()",
        )
        .unwrap();
    assert!(counts[0].as_u64().unwrap() >= 21 + 8 && counts[1].as_u64().unwrap() > 200, "{counts}");
    let words = page.text("document.querySelector('main').textContent").unwrap();
    let cookie = std::fs::read_to_string(stage.server.cookie()).unwrap();
    assert!(!words.contains(cookie.trim().split_once(':').unwrap().1), "no password is shown");
    expect_no_problems(&page, "connect");
}

/// A line to the Electrum server, and its answer.
fn electrum(wallet: &mut BufReader<TcpStream>, method: &str, params: &Value) -> Value {
    let line = json!({"id": 1, "method": method, "params": params}).to_string() + "\n";
    wallet.get_mut().write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    wallet.read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn requests_and_sessions_of_the_servers_are_shown() {
    let port = free_port().unwrap();
    let bind = format!("-electrumbind=127.0.0.1:{port}");
    let off = ["-electrumtlsbind=0", "-electrumwsbind=0", "-electrumwssbind=0", "-pageactions"];
    let options = [&["-electrum", &bind][..], &off].concat();
    let Some(stage) = Stage::start("requests_and_sessions_of_the_servers_are_shown", &options) else { return };
    let page = stage.enter();
    go(&page, "serving");
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut wallet = BufReader::new(stream);
    // The name of a client is shown as it is, and nothing of what it asks for.
    let name = "<img src=x onerror=alert(1)>";
    electrum(&mut wallet, "server.version", &json!([name, "1.4"]));
    let hash = "77".repeat(32);
    electrum(&mut wallet, "blockchain.scripthash.subscribe", &json!([hash]));
    assert!(electrum(&mut wallet, "blockchain.nonsense", &json!([]))["error"].is_object());
    stage.server.call("getblockhash", "[77777]");
    wait_for_row(&page, "Sessions of Electrum wallets", name, true);
    for method in ["blockchain.scripthash.subscribe", "server.version", "other", "getblockhash"] {
        wait_for_row(&page, "Requests by method", method, true);
    }
    let row = |method: &str| {
        let script = format!(
            "[...document.querySelectorAll('[aria-label=\"Requests by method\"] tbody tr')].find((one) => one.textContent.startsWith('{method}')).textContent"
        );
        page.text(&script).unwrap()
    };
    assert!(row("other").contains("Electrum11 (100.0 %)"), "{}", row("other"));
    assert!(row("getblockhash").contains("RPC11 (100.0 %)"), "{}", row("getblockhash"));
    assert!(row("server.version").contains("Electrum10"), "{}", row("server.version"));
    let has_subscription = "document.querySelector('main').textContent.includes('Subscriptions1')";
    page.wait_until(has_subscription, PATIENCE).unwrap();
    let words = page.text("document.querySelector('main').textContent").unwrap();
    assert!(!words.contains(&hash[..16]), "no script is shown");
    assert_eq!(page.evaluate("document.querySelectorAll('main img').length").unwrap(), 0);
    page.click_text("[aria-label='Sessions of Electrum wallets'] button", "Disconnect").unwrap();
    confirm(&page, "Disconnected session");
    let mut rest = String::new();
    assert_eq!(wallet.read_line(&mut rest).unwrap(), 0, "the session has ended");
    wait_for_row(&page, "Sessions of Electrum wallets", name, false);
    expect_no_problems(&page, "serving");
}
