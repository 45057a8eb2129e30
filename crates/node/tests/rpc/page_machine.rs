//! The panels Machine, Log and Settings, and the history: what the page shows is what RPC and the system say; a kill
//! loses nothing of the history; no secret is shown.

use crate::page_client::{Client, wait};
use crate::server::Server;
use serde_json::{Map, Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longer than the node takes to record an interval, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

impl Client {
    /// The points of a series in the last minutes with their times.
    fn past(&self, name: &str) -> Vec<(u64, f64)> {
        let to = now() + 1;
        let answer = self.ask("GET", &format!("/api/history?series={name}&from={}&to={to}", to - 300), "");
        let answer: Value = serde_json::from_str(&answer.body).unwrap();
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
    let page = Client::of_cookie(&lydian, port);
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
    // A rate is over the time between two readings, which on a busy machine is not just ten seconds.
    assert!(page.past("blocks").iter().map(|(_, rate)| rate * 10.0).sum::<f64>() <= 8.0 * 1.6);
    assert_eq!((last("mempool_band_0"), last("mempool_band_34")), (0.0, 0.0));
    let memory = lydian.memory_bytes() as f64;
    assert!((last("memory") / memory - 1.0).abs() < 0.5, "{} of {memory}", last("memory"));
    assert!((0.0..=1.0).contains(&last("cpu")));

    let before = page.past("height");
    lydian.kill();
    assert_eq!(fs::metadata(lydian.folder.join("regtest/history.dat")).unwrap().len(), 64 << 20);
    lydian.start_again(&texts(&options));
    let page = Client::of_cookie(&lydian, port);
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
    let page = Client::of_cookie(&lydian, port);
    page.next_point("height");
    assert!(page.past("height").iter().all(|(time, _)| *time > recorded.0));
    let log = fs::read_to_string(lydian.folder.join("regtest/debug.log")).unwrap();
    assert!(log.contains("history.dat: the head of the history is damaged; a new history was begun"), "{log}");
}

#[test]
fn the_machine_is_as_the_system_says() {
    let port = lydian_oracle::free_port().unwrap();
    let mut options = options(port);
    options.push("-txindex".to_owned());
    let lydian = Server::lydian("page-machine", &texts(&options));
    let page = Client::of_cookie(&lydian, port);
    lydian.result("generatetodescriptor", "[3,\"raw(51)\"]");
    // The topic is read once a second, and the folders are added up less often.
    let began = Instant::now();
    loop {
        let different = differences(&page.topic("machine").into(), &lydian);
        if different.is_empty() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{different:?}");
    }
}

/// What the panel Machine shows of an idle node, and the system and the node say otherwise.
fn differences(machine: &Value, lydian: &Server) -> Vec<String> {
    let datadir = lydian.folder.join("regtest");
    let number = |name: &str| machine[name].as_u64().unwrap_or_default();
    let none = Map::new();
    let folders = machine["folders"].as_object().unwrap_or(&none);
    let is_within = |bytes: u64, folder: &Path| bytes <= occupied(folder) + (1 << 20);
    let bytes = |name: &str| folders.get(name).and_then(Value::as_u64);
    let has = |name: &str| bytes(name).is_some_and(|bytes| is_within(bytes, &datadir.join(name)));
    let sum = folders.values().filter_map(Value::as_u64).sum();
    let threads = fs::read_dir(format!("/proc/{}/task", lydian.id())).unwrap().count() as u64;
    let engine = &machine["signatures"];
    let stages = machine["stages"].as_array().map_or(&[][..], Vec::as_slice);
    let has_stage = |name: &str| stages.iter().any(|stage| stage["name"] == json!(name));
    let checks = [
        ("datadir", machine["datadir"] == json!(datadir.display().to_string())),
        ("chainstate", has("chainstate")),
        ("blocks/index", has("blocks/index")),
        ("sum of the folders", sum > 0 && is_within(sum, &datadir)),
        ("memory", ["coins", "headers", "index"].iter().all(|name| machine["memory"][name].as_u64() > Some(0))),
        ("memory of the mempool", machine["memory"]["mempool"] == lydian.result("getmempoolinfo", "[]")["usage"]),
        ("resident", (number("resident") as f64 / lydian.memory_bytes() as f64 - 1.0).abs() < 0.5),
        ("threads", number("threads").abs_diff(threads) <= 8),
        ("openFiles", number("openFiles") > 5),
        ("needed, since the sync is over", machine["needed"].is_null()),
        ("signatures", engine["is_trusted"] == json!(true) && engine["disagreements"] == json!(0)),
        ("secondOpinion", machine["secondOpinion"].is_null()),
        ("stages", has_stage("signatures") && has_stage("commit")),
    ];
    let wrong = checks.iter().filter(|(_, is_so)| !is_so);
    wrong.map(|(name, _)| format!("{name} with {threads} threads and {machine:?}")).collect()
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
    let page = Client::of_cookie(&lydian, port);
    let settings = page.topic("settings");
    let text = Value::from(settings.clone()).to_string();
    assert!(!text.contains(PLANTED) && !text.contains("5c6e4ba7b1f0a1d1"));
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
    let lines: Vec<&Value> = log.iter().filter(|(key, _)| key.parse::<u64>().is_ok()).map(|(_, line)| line).collect();
    let text = fs::read_to_string(lydian.folder.join("regtest/debug.log")).unwrap();
    assert!(lines.len() > 20 && lines.iter().all(|line| text.contains(line["text"].as_str().unwrap())));
    assert!(lines.iter().any(|line| line["level"] == json!("info")));
    assert_eq!((&log["categories"]["http"], &log["categories"]["zmq"]), (&json!(true), &json!(false)));
    assert_eq!(page.result("logging", &json!([["zmq"], ["http"]]))["zmq"], json!(true));
    // The topic is read once a second.
    wait("one category is on, and the other off", || {
        let categories = &page.topic("log")["categories"];
        (categories["zmq"] == json!(true) && categories["http"] == json!(false)).then_some(())
    });
}

#[test]
fn log_and_settings_need_a_login_even_where_reading_is_open() {
    let port = lydian_oracle::free_port().unwrap();
    let mut options = options(port);
    options.push("-pageopen".to_owned());
    let _lydian = Server::lydian("page-open", &texts(&options));
    let page = Client::anonymous(port);
    let names = page.topics();
    assert!(names.iter().any(|name| name == "machine"), "{names:?}");
    assert!(!names.iter().any(|name| name == "log" || name == "settings"), "{names:?}");
    page.next_point("height");
}
