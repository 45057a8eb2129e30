//! Peers on the page: its numbers are those of `getpeerinfo`, and its actions do what the methods do, for those who may
//! call them.

use crate::electrum_operators::of_client;
use crate::http::Answer;
use crate::page_client::{Client, request, wait};
use crate::server::Server;
use lydian_oracle::free_port;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

/// A node with its page and, as a peer, a second one that listens.
struct World {
    node: Server,
    page: u16,
    _peer: Server,
    /// Where the peer listens.
    address: String,
}

impl World {
    fn start(test: &str, options: &[&str]) -> World {
        let [page, port] = [(); 2].map(|()| free_port().unwrap());
        let bind = format!("-pagebind=127.0.0.1:{page}");
        let node = Server::lydian(test, &[&["-page=1", &bind], options].concat());
        let listen = format!("-bind=127.0.0.1:{port}");
        let peer = Server::lydian(test, &["-page=0", "-listen=1", &listen, "-uacomment=the other node"]);
        World { node, page, _peer: peer, address: format!("127.0.0.1:{port}") }
    }

    /// The peers of the node, once there are so many and each has finished its handshake.
    fn peers(&self, count: usize) -> Vec<Value> {
        wait("so many peers", || {
            let peers = self.node.result("getpeerinfo", "[]").as_array().unwrap().clone();
            let is_done = |peer: &Value| !peer["bytesrecv_per_msg"]["verack"].is_null();
            (peers.len() == count && peers.iter().all(is_done)).then_some(peers)
        })
    }

    fn log(&self) -> String {
        fs::read_to_string(self.node.folder.join("regtest/debug.log")).unwrap()
    }
}

#[test]
fn every_field_of_a_peer_is_on_the_page() {
    let world = World::start("every_field_of_a_peer_is_on_the_page", &[]);
    world.node.result("addnode", &json!([world.address, "add"]).to_string());
    world.node.result("setban", &json!(["203.0.113.0/24", "add", 1000]).to_string());
    world.peers(1);
    world.node.result("generatetodescriptor", "[3,\"raw(51)\"]");
    let browser = Client::of_cookie(&world.node, world.page);
    // Peers send messages at any time, so all is compared until nothing changed between two answers of RPC.
    let rows = |method: &str| world.node.result(method, "[]");
    wait("the page shows what RPC reports", || {
        let answers = || ["getpeerinfo", "listbanned", "getaddednodeinfo", "getnetworkinfo"].map(rows);
        let before = answers();
        std::thread::sleep(Duration::from_millis(1_100));
        let topic = browser.topic("peers");
        let after = answers();
        let without_time = |bans: &Value| {
            let mut bans = bans.clone();
            bans[0].as_object_mut().unwrap().remove("time_remaining");
            bans
        };
        if (&before[0], &before[2..]) != (&after[0], &after[2..]) {
            return None;
        }
        let id = &after[0][0]["id"];
        assert_eq!(topic[&format!("peer:{id}")], after[0][0]);
        assert_eq!(without_time(&json!([topic["ban:203.0.113.0/24"]])), without_time(&after[1]));
        assert_eq!(topic[&format!("added:{}", world.address)], after[2][0]);
        assert_eq!(topic["network"], after[3]);
        // A message may have come after the other answers.
        if topic["totals"]["totalbytesrecv"] != rows("getnettotals")["totalbytesrecv"] {
            return None;
        }
        assert_eq!(topic.keys().filter(|key| key.starts_with("peer:")).count(), 1);
        assert_eq!(after[0][0]["subver"].as_str().unwrap().split_once('(').unwrap().1, "the other node)/");
        Some(())
    });
    // The history has a point after five seconds.
    let id = &world.peers(1)[0]["id"];
    wait("a point of the history", || {
        let topic = browser.topic("peers");
        let history = &topic[&format!("history:{id}")];
        let points = history["received"].as_array().unwrap().len();
        assert_eq!((points, history["step"].as_u64()), (history["ping"].as_array().unwrap().len(), Some(5)));
        (points > 0).then_some(())
    });
}

#[test]
fn actions_of_the_page_work_and_are_logged() {
    let world = World::start("actions_of_the_page_work_and_are_logged", &["-pageactions"]);
    let browser = Client::of_cookie(&world.node, world.page);
    browser.result("addnode", &json!([world.address, "onetry"]));
    let id = world.peers(1)[0]["id"].clone();
    browser.result("disconnectnode", &json!(["", id]));
    world.peers(0);
    browser.result("addnode", &json!([world.address, "add"]));
    world.peers(1);
    assert!(browser.topic("peers").contains_key(&format!("added:{}", world.address)));
    browser.result("addnode", &json!([world.address, "remove"]));
    // A ban ends the connection; the page shows it within its period.
    browser.result("setban", &json!(["127.0.0.0/8", "add", 3600]));
    world.peers(0);
    wait("the ban is on the page", || {
        let ban = browser.topic("peers").get("ban:127.0.0.0/8")?.clone();
        assert_eq!(ban["ban_duration"], 3600);
        Some(())
    });
    browser.result("setban", &json!(["127.0.0.0/8", "remove"]));
    wait("the ban is over", || (!browser.topic("peers").contains_key("ban:127.0.0.0/8")).then_some(()));
    browser.result("setban", &json!(["192.0.2.1", "add"]));
    browser.result("clearbanned", &json!([]));
    assert_eq!(world.node.result("listbanned", "[]"), json!([]));
    browser.result("setnetworkactive", &json!([false]));
    browser.result("setnetworkactive", &json!([true]));
    browser.result("logging", &json!([["net"], []]));
    // An error of the method is its answer.
    let refused: Value = serde_json::from_str(&browser.call("disconnectnode", &json!(["", 77])).body).unwrap();
    assert_eq!(refused, json!({"error": {"code": -29, "message": "Node not found in connected nodes"}}));
    let log = world.log();
    for words in [
        "Page: __cookie__ called addnode",
        "Page: __cookie__ called disconnectnode",
        "Page: __cookie__ called setban",
        "Page: __cookie__ called clearbanned",
        "Page: __cookie__ called setnetworkactive",
        "Page: __cookie__ called logging",
        "Node not found in connected nodes",
    ] {
        assert!(log.contains(words), "{words}");
    }
    // Line breaks in parameters make no lines of the log.
    let body = "{\"method\":\"setban\",\"params\":[\"192.0.2.9\",\n\"x\\nPage: forged\"]}";
    browser.ask("POST", "/api/call", body);
    assert!(!world.log().lines().any(|line| line.starts_with("Page: forged") || line.starts_with("\"x")));
}

#[test]
fn sessions_of_wallets_are_ended_on_the_page() {
    let [electrum, tls] = [(); 2].map(|()| free_port().unwrap());
    let (bind, tls_bind) = (format!("-electrumbind=127.0.0.1:{electrum}"), format!("-electrumtlsbind=127.0.0.1:{tls}"));
    let options = [
        "-pageactions",
        "-electrum",
        &bind,
        &tls_bind,
        "-electrumwsbind=0",
        "-electrumwssbind=0",
        "-electrumproxy=127.0.0.1",
    ];
    let world = World::start("sessions_of_wallets_are_ended_on_the_page", &options);
    let browser = Client::of_cookie(&world.node, world.page);
    let mut wallet = of_client(electrum, [203, 0, 113, 7]);
    wallet.result("server.version", &json!(["<img src=x>", "1.4"]));
    let hash = "00".repeat(31) + "77";
    wallet.result("blockchain.scripthash.subscribe", &json!([hash]));
    let session = wait("the session is on the page", || {
        let topic = browser.topic("sessions");
        let (_, session) = topic.iter().find(|(key, _)| key.starts_with("session:"))?;
        assert!(!Value::from(topic.clone()).to_string().contains(&hash), "no script is shown");
        (session["subscriptions"] == 1).then(|| session.clone())
    });
    assert!(session["addr"].as_str().unwrap().starts_with("203.0.113.7:"));
    assert_eq!((&session["client"], &session["local"]), (&json!("<img src=x>"), &json!(false)));
    browser.result("disconnectelectrumsession", &json!([session["id"]]));
    assert_eq!(wallet.line(), Value::Null, "the session has ended");
    wait("no session is left", || {
        (!browser.topic("sessions").keys().any(|key| key.starts_with("session:"))).then_some(())
    });
    browser.result("setelectrumban", &json!(["203.0.113.0/24", "add", 600]));
    wait("the ban is on the page", || browser.topic("sessions").contains_key("ban:203.0.113.0/24").then_some(()));
    browser.result("setelectrumban", &json!(["203.0.113.0/24", "remove"]));
    browser.result("clearelectrumbans", &json!([]));
    assert_eq!(browser.result("listelectrumbans", &json!([])), json!([]));
    assert!(!world.log().contains(&hash), "no script is logged");
    // Where wallets connect, with the certificate that the log names.
    let topic = browser.topic("connect");
    let service = &topic["service:electrum"];
    let bound: Vec<&Value> = service["places"].as_array().unwrap().iter().map(|place| &place["bound"]).collect();
    assert_eq!(bound, [&json!(format!("127.0.0.1:{electrum}")), &json!(format!("127.0.0.1:{tls}"))]);
    assert_eq!(service["places"][1]["urls"][0]["url"], format!("ssl://127.0.0.1:{tls}"));
    assert_eq!(service["reach"], "machine");
    let words = "the SHA-256 of the TLS certificate is ";
    let log = world.log();
    let fingerprint = log.lines().find_map(|line| line.split_once(words)).unwrap().1;
    assert_eq!(service["certificate"], fingerprint);
    assert_eq!(topic["service:rpc"]["places"][0]["transport"], "http");
    assert_eq!(topic["service:p2p"]["listens"], false);
    assert_eq!(topic["service:esplora"]["on"], false);
    assert!(topic.contains_key(&format!("qr:127.0.0.1:{tls}:s")));
    assert_eq!(topic["lightning"]["chain"], "regtest");
    let cookie = fs::read_to_string(world.node.cookie()).unwrap();
    let password = cookie.trim().split_once(':').unwrap().1;
    assert!(!Value::from(topic).to_string().contains(password), "no password is shown");
}

/// Two users, whose password is "password": `rpcauth.py` made the hash for any name.
const USERS: [&str; 2] = [
    "-rpcauth=reader:5c6e4ba7b1f0a1d1$b5c915cf7582f23156fd1d1e094d31a0f9cfdad3765b93d909a869df33aee6af",
    "-rpcauth=user:5c6e4ba7b1f0a1d1$b5c915cf7582f23156fd1d1e094d31a0f9cfdad3765b93d909a869df33aee6af",
];

#[test]
fn actions_are_refused_to_those_who_may_not() {
    let lists = ["-rpcwhitelist=reader:getpeerinfo,listbanned", "-rpcwhitelistdefault=0"];
    let options = [&["-pageactions"][..], &USERS, &lists].concat();
    let mut world = World::start("actions_are_refused_to_those_who_may_not", &options);
    world.node.result("addnode", &json!([world.address, "add"]).to_string());
    let id = world.peers(1)[0]["id"].clone();
    let (user, reader) =
        (Client::log_in(world.page, "user", "password"), Client::log_in(world.page, "reader", "password"));
    let action = json!(["", id]);
    let refused = |answer: &Answer, status: &str, words: &str| {
        assert!(answer.status.contains(status), "{answer:?}");
        assert!(answer.body.contains(words), "{answer:?}");
    };
    let headers = |browser: &Client, token: &str, origin: &str| {
        let token = if token.is_empty() { String::new() } else { format!("X-Lydian-Token: {token}\r\n") };
        format!("Origin: {origin}\r\nCookie: {}\r\n{token}", browser.cookie)
    };
    let ours = format!("http://127.0.0.1:{}", world.page);
    let act = |headers: &str| user.call_with(headers, "disconnectnode", &action);
    // No token, the token of another session, a changed one, another origin, no session.
    for token in ["", &reader.token, &user.token[1..], "x"] {
        refused(&act(&headers(&user, token, &ours)), " 403 ", "The token of the session is missing or not current");
    }
    for origin in ["http://127.0.0.1:1", "https://evil.example", "null"] {
        refused(&act(&headers(&user, &user.token, origin)), " 403 ", "another web site");
    }
    refused(&act(&format!("Origin: {ours}\r\nX-Lydian-Token: {}\r\n", user.token)), " 401 ", "This needs a login");
    // The session has ended, and its token with it.
    let old = Client::log_in(world.page, "user", "password");
    let answer = old.ask("POST", "/api/logout", "");
    assert!(answer.status.contains(" 200 "), "{answer:?}");
    refused(&old.call("disconnectnode", &action), " 401 ", "This needs a login");
    refused(&act(&headers(&user, &old.token, &ours)), " 403 ", "The token of the session is missing or not current");
    // The user may read, not act; and not read everything.
    refused(&reader.call("disconnectnode", &action), " 200 ", "-rpcwhitelist does not let");
    refused(&reader.call("getblockcount", &json!([])), " 200 ", "-rpcwhitelist does not let");
    assert_eq!(reader.result("getpeerinfo", &json!([])).as_array().map(Vec::len), Some(1));
    // No table has these methods.
    for method in ["stop", "invalidateblock", "addconnection", "submitblock", "nonsense", "<b>"] {
        refused(&user.call(method, &json!([])), " 403 ", "not a method that the page may call");
    }
    assert_eq!(world.peers(1)[0]["id"], id, "nothing was done");
    assert!(world.log().contains("User reader not allowed to call method disconnectnode"));
    // A wrong login waits.
    let began = Instant::now();
    let body = json!({"user": "user", "password": "wrong"}).to_string();
    refused(&request(world.page, "POST", "/api/login", "", &body), " 401 ", "The user or the password is wrong");
    assert!(began.elapsed() >= Duration::from_millis(250));
    // Without -pageactions, no user acts.
    let bind = format!("-pagebind=127.0.0.1:{}", world.page);
    world.node.restart(&[&["-page=1", &bind][..], &USERS].concat());
    let user = Client::log_in(world.page, "user", "password");
    world.node.result("addnode", &json!([world.address, "onetry"]).to_string());
    let id = world.peers(1)[0]["id"].clone();
    for (method, params) in [
        ("disconnectnode", json!(["", id])),
        ("setban", json!(["127.0.0.1", "add"])),
        ("clearbanned", json!([])),
        ("addnode", json!([world.address, "add"])),
        ("setnetworkactive", json!([false])),
        ("logging", json!([["net"], []])),
        ("disconnectelectrumsession", json!([1])),
        ("setelectrumban", json!(["192.0.2.1", "add"])),
        ("clearelectrumbans", json!([])),
    ] {
        refused(&user.call(method, &params), " 403 ", "takes no actions from the page");
    }
    assert_eq!(world.peers(1)[0]["id"], id);
    assert_eq!(world.node.result("listbanned", "[]"), json!([]));
}
