//! The page and bad conditions: a port that is taken, an address or a certificate that cannot be used, a damaged file,
//! a thousand readers. Each is a sentence, and the node goes on.

use crate::page_client::{Client, request, wait};
use crate::server::Server;
use lydian_oracle::free_port;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::time::Duration;

fn log(server: &Server) -> String {
    fs::read_to_string(server.folder.join("regtest/debug.log")).unwrap()
}

/// The node answers, makes blocks and stops as usual.
fn goes_on(server: &mut Server) {
    let height = server.result("getblockcount", "[]").as_u64().unwrap();
    server.result("generatetodescriptor", "[1,\"raw(51)\"]");
    assert_eq!(server.result("getblockcount", "[]"), height + 1);
    server.result("stop", "[]");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_page_that_cannot_start_does_not_stop_the_node() {
    // Not one that the system chooses: it may give that to a connection of another test as soon as it is free.
    let port = free_port().unwrap();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let page_port = format!("-pageport={port}");
    let unable = format!("[warning] Page server: Unable to bind to 127.0.0.1:{port} on this computer.");
    // A machine without IPv6 has one address for the page.
    let other = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).ok();
    let mut node = Server::lydian("page-port-taken", &["-page", &page_port]);
    let begin = format!("[warning] The page is not served (port {port}): ");
    let end = "; -pageport selects another port, -page=0 switches the page off";
    let expect = |node: &Server, words: &str| {
        let log = log(node);
        let reason = log.lines().filter_map(|line| line.split_once(&begin)).next_back();
        let (_, reason) = reason.unwrap_or_else(|| panic!("no such line: {log}"));
        assert!(reason.contains(words) && reason.ends_with(end), "{reason}");
    };
    expect(&node, &format!("127.0.0.1:{port} on this computer"));
    goes_on(&mut node);
    if other.is_some() {
        drop(other);
        node.start_again(&["-page", &page_port]);
        assert!(log(&node).contains(&unable), "{}", log(&node));
        assert!(TcpStream::connect((Ipv6Addr::LOCALHOST, port)).is_ok(), "the other address is served");
        goes_on(&mut node);
    }
    drop(taken);

    // An address that is not of this machine.
    node.start_again(&["-page", &page_port, "-pagebind=192.0.2.1"]);
    expect(&node, "192.0.2.1");
    goes_on(&mut node);

    // A certificate that is none, for an address beyond this machine.
    let (cert, key) = (node.folder.join("cert.pem"), node.folder.join("key.pem"));
    fs::write(&cert, "no certificate").unwrap();
    fs::write(&key, "no key").unwrap();
    let files = [format!("-pagecert={}", cert.display()), format!("-pagekey={}", key.display())];
    node.start_again(&["-page", &page_port, "-pagebind=0.0.0.0", &files[0], &files[1]]);
    expect(&node, "cert.pem");
    goes_on(&mut node);

    // A file where the folder of the page should be: without it, sessions end with the process.
    let _ = fs::remove_dir_all(node.folder.join("regtest/page"));
    fs::write(node.folder.join("regtest/page"), "").unwrap();
    node.start_again(&["-page", &page_port]);
    assert!(Client::of_cookie(&node, port).topic("overview").contains_key("sentence"));
    assert!(log(&node).contains("regtest/page"), "{}", log(&node));
    goes_on(&mut node);
}

#[test]
fn a_history_that_cannot_be_opened_does_not_stop_the_page() {
    let port = free_port().unwrap();
    let options = ["-page".to_owned(), format!("-pageport={port}")];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut node = Server::lydian("page-no-history", &options);
    node.result("stop", "[]");
    assert_eq!(node.wait(), Some(0));
    let path = node.folder.join("regtest/history.dat");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    node.start_again(&options);
    wait("the log says it", || {
        let log = log(&node);
        let line = log.lines().find(|line| line.contains("[warning] History of the page: "))?.to_owned();
        assert!(line.contains("history.dat") && line.ends_with("; the page has no history"), "{line}");
        Some(())
    });
    let page = Client::of_cookie(&node, port);
    let answer = page.ask("GET", "/api/history?series=height&from=1&to=2", "");
    assert!(answer.status.contains(" 503 "), "{answer:?}");
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert!(body["error"]["message"].as_str().unwrap().contains("history"), "{body}");
    assert!(page.topic("overview").contains_key("sentence"));
    goes_on(&mut node);
}

/// Requests of the explorer for what does not exist, and for what is nothing.
#[test]
fn bad_requests_get_a_sentence() {
    let port = free_port().unwrap();
    let page_port = format!("-pageport={port}");
    let node = Server::lydian("page-bad-requests", &["-page", &page_port, "-addressindex=full"]);
    let page = Client::of_cookie(&node, port);
    node.result("generatetodescriptor", "[3,\"raw(51)\"]");
    let error = |method: &str, params: Value| page.try_result(method, &params).unwrap_err().1;
    let (hash, mut wrong) = ("ab".repeat(32), Vec::new());
    for (method, params, words) in [
        ("lydian_explore", json!(["/block-height/4"]), "height"),
        ("lydian_explore", json!(["/block-height/-1"]), "height"),
        ("lydian_explore", json!(["/block-height/99999999999999999999"]), "height"),
        ("lydian_explore", json!([format!("/block/{hash}")]), "block"),
        ("lydian_explore", json!(["/block/xyz"]), "hash"),
        ("lydian_explore", json!([format!("/tx/{hash}")]), "transaction"),
        ("lydian_explore", json!(["/address/1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"]), "address"),
        ("lydian_explore", json!(["/address/nonsense"]), "address"),
        ("lydian_explore", json!(["/none"]), "/none"),
        ("lydian_explore", json!([7]), "The path must be a text."),
        ("lydian_scriptcoins", json!(["00"]), "\"00\" is not a script hash: it has 64 hexadecimal digits."),
        ("lydian_search", json!([]), "The text to search for must be a text."),
        ("getblockhash", json!([4]), "Block height out of range"),
        ("getblock", json!([hash]), "Block not found"),
    ] {
        let found = error(method, params.clone());
        if !found.to_lowercase().contains(&words.to_lowercase()) || !found.contains(' ') {
            wrong.push(format!("{method} {params}: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // A body of one byte more than a MiB.
    let answer = page.ask("POST", "/api/call", &"x".repeat((1 << 20) + 1));
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert!(answer.status.contains(" 413 "), "{answer:?}");
    assert_eq!(body["error"]["message"], "A request has at most 1048576 bytes.");
    let answer = page.ask("GET", "/nowhere", "");
    assert!(answer.status.contains(" 404 ") && answer.body.contains("There is nothing at /nowhere."), "{answer:?}");
}

/// A thousand readers that do not read: 64 have a place, the others get a sentence, and all else is answered.
#[test]
fn a_thousand_idle_streams_cost_no_service() {
    const READERS: usize = 1_000;
    const MEMORY_MAX: u64 = 64 << 20;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let port = free_port().unwrap();
    let page_port = format!("-pageport={port}");
    let mut node = Server::lydian("page-idle-streams", &["-page", &page_port]);
    let page = Client::of_cookie(&node, port);
    // It stays: the place of a reader that leaves is free only once the server has noticed.
    let mut first = page.live();
    first.next_of("overview");
    let before = node.memory_bytes();
    let head = format!("GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{}\r\n", page.headers());
    let open = |_| {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let mut streams: Vec<TcpStream> = (0..READERS).map(open).collect();
    let status = |stream: &mut TcpStream| {
        let mut first = [0; 12];
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.read_exact(&mut first).unwrap();
        String::from_utf8_lossy(&first).into_owned()
    };
    let all: Vec<String> = streams.iter_mut().map(status).collect();
    let count = |status: &str| all.iter().filter(|one| *one == status).count();
    assert_eq!((count("HTTP/1.1 200"), count("HTTP/1.1 503")), (63, READERS - 63));
    let refused = request(port, "GET", "/api/live", &page.headers(), "");
    assert!(refused.status.contains(" 503 "), "{refused:?}");
    assert!(refused.body.contains("64 pages are open already. Close one and try again."), "{refused:?}");
    for _ in 0..3 {
        assert_eq!(page.result("getblockcount", &json!([])), node.result("getblockcount", "[]"));
        node.result("generatetodescriptor", "[1,\"raw(51)\"]");
    }
    assert!(page.ask("GET", "/", "").status.contains(" 200 "));
    let after = node.memory_bytes();
    assert!(after < before + MEMORY_MAX, "{before} and {after}");
    // Those that have a place get what happens.
    let place = all.iter().position(|status| status == "HTTP/1.1 200").unwrap();
    let (mut got, mut part) = (String::new(), [0; 4_096]);
    while !got.contains("event: blocks\n") {
        let size = streams[place].read(&mut part).unwrap();
        assert!(size > 0, "the stream ended: {got}");
        got.push_str(&String::from_utf8_lossy(&part[..size]));
    }
    drop((first, streams));
    wait("the places are free again", || {
        let answer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
            stream.write_all(head.as_bytes())?;
            Ok(status(&mut stream))
        });
        (answer.unwrap() == "HTTP/1.1 200").then_some(())
    });
    goes_on(&mut node);
}
