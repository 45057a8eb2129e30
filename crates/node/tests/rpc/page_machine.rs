//! The panels Machine, Log and Settings, and the history: what the page shows is what RPC and the system say; a kill
//! loses nothing of the history; no secret is shown.

use crate::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longer than the node takes to record an interval.
const PATIENCE: Duration = Duration::from_secs(40);

/// The page of a node.
struct Page {
    port: u16,
    /// The header of the session; empty without one.
    cookie: String,
    token: String,
}

impl Page {
    /// Logs in with the cookie of RPC.
    fn log_in(lydian: &Server, port: u16) -> Page {
        let cookie = fs::read_to_string(lydian.cookie()).unwrap();
        let (user, password) = cookie.trim().split_once(':').unwrap();
        let page = Page { port, cookie: String::new(), token: String::new() };
        let (head, body) = page.ask("POST", "/api/login", &json!({ "user": user, "password": password }).to_string());
        let line = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let session: Value = serde_json::from_str(&body).unwrap();
        let cookie = format!("Cookie: {}\r\n", line.split(';').next().unwrap());
        Page { port, cookie, token: session["token"].as_str().unwrap().to_owned() }
    }

    fn send(&self, method: &str, path: &str, body: &str, ending: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (Page { port, cookie, token }, size) = (self, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{cookie}X-Lydian-Token: {token}\r\n");
        stream.write_all(format!("{head}Content-Length: {size}\r\n{ending}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (String, String) {
        let mut answer = String::new();
        self.send(method, path, body, "Connection: close\r\n").read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// The names and first values of all topics that this user may read.
    fn topics(&self) -> Vec<(String, Value)> {
        let mut stream = self.send("GET", "/api/live", "", "");
        let mut bytes = Vec::new();
        let mut part = [0; 1 << 16];
        let begin = Instant::now();
        // All first values come at once, the last of them last.
        while !(String::from_utf8_lossy(&bytes).contains("\nevent: machine\n") && stream_is_idle(&mut stream)) {
            assert!(begin.elapsed() < PATIENCE);
            let count = stream.read(&mut part).unwrap();
            bytes.extend_from_slice(&part[..count]);
        }
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        bytes.extend(rest);
        let text = String::from_utf8(bytes).unwrap();
        let event = |event: &str| {
            let (name, rest) = event.split_once("\nid: ")?;
            let data = rest.split_once("\ndata: ")?.1.split("\n\n").next()?;
            Some((name.to_owned(), serde_json::from_str(data).ok()?))
        };
        text.split("event: ").filter_map(event).collect()
    }

    fn topic(&self, name: &str) -> Value {
        let topics = self.topics();
        topics.into_iter().find(|(found, _)| found == name).unwrap_or_else(|| panic!("no topic {name}")).1
    }

    /// The points of a series in the last minutes with their times.
    fn past(&self, name: &str) -> Vec<(u64, f64)> {
        let to = now() + 1;
        let (_, body) = self.ask("GET", &format!("/api/history?series={name}&from={}&to={to}", to - 300), "");
        let answer: Value = serde_json::from_str(&body).unwrap();
        let Some(points) = answer["series"][name].as_array() else { return Vec::new() };
        let (from, step) = (answer["from"].as_u64().unwrap(), answer["step"].as_u64().unwrap());
        assert_eq!(step, 10);
        (from..).step_by(10).zip(points).filter_map(|(time, point)| Some((time, point.as_f64()?))).collect()
    }

    /// Waits for a point that was recorded after now.
    fn next_point(&self, name: &str) -> (u64, f64) {
        let begin = Instant::now();
        let since = now();
        while begin.elapsed() < PATIENCE {
            if let Some(point) = self.past(name).into_iter().rfind(|(time, _)| time + 10 > since) {
                return point;
            }
            sleep(Duration::from_millis(500));
        }
        panic!("no point of {name}");
    }
}

/// Whether nothing comes for a moment; from then on, a read ends soon.
fn stream_is_idle(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let is_idle = stream.peek(&mut [0]).is_err();
    if !is_idle {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    is_idle
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Bytes that the files of a folder occupy.
fn occupied(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(
            |entry| {
                if entry.path().is_dir() { occupied(&entry.path()) } else { entry.metadata().unwrap().blocks() * 512 }
            },
        )
        .sum()
}

fn options(port: u16) -> Vec<String> {
    ["-page=1".to_owned(), format!("-pageport={port}"), "-pageactions".to_owned()].into()
}

fn texts(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

#[test]
fn the_history_has_what_rpc_says_and_survives_a_kill() {
    let port = lydian_oracle::free_port().unwrap();
    let options = options(port);
    let mut lydian = Server::lydian("page-past", &texts(&options));
    let page = Page::log_in(&lydian, port);
    lydian.result("generatetodescriptor", "[7,\"raw(51)\"]");
    page.next_point("height");
    let recorded = page.next_point("height");
    assert_eq!(Some(recorded.1), lydian.result("getblockcount", "[]").as_f64());
    let last = |name: &str| page.past(name).last().unwrap_or_else(|| panic!("no {name}")).1;
    let pool = lydian.result("getmempoolinfo", "[]");
    let counts = [("mempool_count", "size"), ("mempool_vbytes", "bytes"), ("mempool_usage", "usage")];
    for (name, field) in counts {
        assert_eq!(Some(last(name)), pool[field].as_f64(), "{name}");
    }
    assert_eq!(last("mempool_min_fee"), (pool["mempoolminfee"].as_f64().unwrap() * 1e8).round());
    assert_eq!((last("headers"), last("peers_in"), last("peers_out")), (7.0, 0.0, 0.0));
    assert_eq!((last("bytes_received"), last("bytes_sent")), (0.0, 0.0));
    assert!(page.past("blocks").iter().map(|(_, rate)| rate * 10.0).sum::<f64>() <= 8.0);
    assert_eq!((last("mempool_band_0"), last("mempool_band_34")), (0.0, 0.0));
    let memory = lydian.memory_bytes() as f64;
    assert!((last("memory") / memory - 1.0).abs() < 0.5, "{} of {memory}", last("memory"));
    assert!((0.0..=1.0).contains(&last("cpu")));

    let before = page.past("height");
    lydian.kill();
    assert_eq!(fs::metadata(lydian.folder.join("regtest/history.dat")).unwrap().len(), 64 << 20);
    lydian.start_again(&texts(&options));
    let page = Page::log_in(&lydian, port);
    let begin = Instant::now();
    while page.past("height").is_empty() && begin.elapsed() < PATIENCE {
        sleep(Duration::from_millis(100));
    }
    let after = page.past("height");
    assert!(before.iter().all(|point| after.contains(point)), "{before:?} and {after:?}");
    let log = fs::read_to_string(lydian.folder.join("regtest/debug.log")).unwrap();
    assert!(!log.contains("history"), "nothing was damaged: {log}");

    // A damaged file is named, and never stops the node.
    lydian.kill();
    let path = lydian.folder.join("regtest/history.dat");
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 1;
    bytes[16_384 + 20] ^= 1;
    fs::write(&path, bytes).unwrap();
    lydian.start_again(&texts(&options));
    let page = Page::log_in(&lydian, port);
    page.next_point("height");
    assert!(page.past("height").iter().all(|(time, _)| *time > recorded.0));
    let log = fs::read_to_string(lydian.folder.join("regtest/debug.log")).unwrap();
    assert!(log.contains("history.dat: the head of the history is damaged; a new history was begun"), "{log}");
}

#[test]
fn the_machine_is_as_the_system_says() {
    let port = lydian_oracle::free_port().unwrap();
    let options = options(port);
    let lydian = Server::lydian("page-machine", &texts(&options));
    let page = Page::log_in(&lydian, port);
    lydian.result("generatetodescriptor", "[3,\"raw(51)\"]");
    let begin = Instant::now();
    let machine = loop {
        let machine = page.topic("machine");
        // The folders are added up from time to time, first when some of them may be empty.
        let is_there = |name: &str| machine["folders"][name].is_u64();
        if is_there("chainstate") && is_there("blocks/index") || begin.elapsed() > PATIENCE {
            break machine;
        }
    };
    let datadir = lydian.folder.join("regtest");
    assert_eq!(machine["datadir"], json!(datadir.display().to_string()));
    let folders = machine["folders"].as_object().unwrap();
    for name in ["chainstate", "blocks/index"] {
        assert!(folders[name].as_u64().unwrap() <= occupied(&datadir.join(name)) + (1 << 20), "{folders:?}");
    }
    let sum: u64 = folders.values().map(|bytes| bytes.as_u64().unwrap()).sum();
    assert!(sum > 0 && sum <= occupied(&datadir) + (1 << 20), "{folders:?}");
    let resident = machine["resident"].as_u64().unwrap() as f64;
    assert!((resident / lydian.memory_bytes() as f64 - 1.0).abs() < 0.5);
    let threads = fs::read_dir(format!("/proc/{}/task", lydian.id())).unwrap().count() as u64;
    assert!(machine["threads"].as_u64().unwrap().abs_diff(threads) <= 8, "{} and {threads}", machine["threads"]);
    assert!(machine["openFiles"].as_u64().unwrap() > 5);
    assert_eq!(machine["needed"], Value::Null, "the sync is over");
    let engine = &machine["signatures"];
    assert_eq!((&engine["is_trusted"], &engine["disagreements"]), (&json!(true), &json!(0)));
    assert_eq!(machine["secondOpinion"], Value::Null);
    let stages: Vec<&str> =
        machine["stages"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(stages.contains(&"signatures") && stages.contains(&"commit"), "{stages:?}");
}

/// What is planted as a secret.
const PLANTED: &str = "PLANTEDSECRET";

#[test]
fn no_secret_is_shown_and_every_option_is() {
    let port = lydian_oracle::free_port().unwrap();
    let mut options = options(port);
    let salt = "5c6e4ba7b1f0a1d1$b5c915cf7582f23156fd1d1e094d31a0f9cfdad3765b93d909a869df33aee6af";
    options.push(format!("-rpcauth={PLANTED}:{salt}"));
    options.push(format!("-torpassword={PLANTED}"));
    options.push(format!("-blocknotify=true {PLANTED}"));
    options.push("-uacomment=shown".to_owned());
    options.push("-debug=http".to_owned());
    let lydian = Server::lydian("page-settings", &texts(&options));
    let page = Page::log_in(&lydian, port);
    let settings = page.topic("settings");
    assert!(!settings.to_string().contains(PLANTED) && !settings.to_string().contains("5c6e4ba7b1f0a1d1"));
    let of = |name: &str| &settings["options"][name];
    for name in ["rpcauth", "torpassword", "blocknotify"] {
        assert_eq!((&of(name)["values"], &of(name)["isSecret"]), (&json!(["set"]), &json!(true)), "{name}");
    }
    assert_eq!(of("uacomment")["values"], json!(["shown"]));
    assert_eq!(of("uacomment")["source"], json!("command line"));
    assert_eq!((&of("dbcache")["values"], &of("dbcache")["source"]), (&json!([]), &Value::Null));
    assert_eq!(of("dbcache")["default"], json!("450"));
    // docs/config.md is made of the same table.
    let page_text = include_str!("../../../../docs/config.md").replace("\\|", "|");
    for (name, option) in settings["options"].as_object().unwrap() {
        let is_shown = !matches!(option["group"].as_str().unwrap(), "" | "Options without effect");
        assert!(!is_shown || page_text.contains(&format!("| `-{name}")), "{name}");
    }

    let log = page.topic("log");
    let lines: Vec<&Value> =
        log.as_object().unwrap().iter().filter(|(key, _)| key.parse::<u64>().is_ok()).map(|(_, line)| line).collect();
    let text = fs::read_to_string(lydian.folder.join("regtest/debug.log")).unwrap();
    assert!(lines.len() > 20 && lines.iter().all(|line| text.contains(line["text"].as_str().unwrap())));
    assert!(lines.iter().any(|line| line["level"] == json!("info")));
    assert_eq!((&log["categories"]["http"], &log["categories"]["zmq"]), (&json!(true), &json!(false)));
    let body = json!({ "method": "logging", "params": [["zmq"], ["http"]] }).to_string();
    assert!(page.ask("POST", "/api/call", &body).1.contains("\"zmq\":true"));
    // The topic is read once a second.
    let begin = Instant::now();
    while page.topic("log")["categories"]["zmq"] != json!(true) {
        assert!(begin.elapsed() < PATIENCE);
    }
    assert_eq!(page.topic("log")["categories"]["http"], json!(false));
}

#[test]
fn log_and_settings_need_a_login_even_where_reading_is_open() {
    let port = lydian_oracle::free_port().unwrap();
    let mut options = options(port);
    options.push("-pageopen".to_owned());
    let _lydian = Server::lydian("page-open", &texts(&options));
    let page = Page { port, cookie: String::new(), token: String::new() };
    let names: Vec<String> = page.topics().into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().any(|name| name == "machine"), "{names:?}");
    assert!(!names.iter().any(|name| name == "log" || name == "settings"), "{names:?}");
    page.next_point("height");
}
