//! What operators of the Electrum server need: proxies in front of it, costs and what follows from them, settings that
//! change while it runs.

use crate::electrum_model::Wallet;
use crate::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

/// The first bytes of a PROXY header, version 2.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A connection through a proxy, of a client with this address.
fn of_client(port: u16, address: [u8; 4]) -> Wallet {
    let mut wallet = Wallet::open(port);
    let header = [SIGNATURE, &[0x21, 0x11, 0, 12], &address, &[127, 0, 0, 1, 0x10, 0, 0xc3, 0x51]].concat();
    wallet.stream.get_mut().write_all(&header).unwrap();
    wallet
}

/// A connection of the proxy itself, which is on this machine.
fn of_proxy(port: u16) -> Wallet {
    let mut wallet = Wallet::open(port);
    wallet.stream.get_mut().write_all(&[SIGNATURE, &[0x20, 0, 0, 0]].concat()).unwrap();
    wallet
}

/// A node whose wallets come through a proxy on this machine.
fn behind_proxy(test: &str, options: &[&str]) -> (Server, u16) {
    let port = lydian_oracle::free_port().unwrap();
    let bind = format!("-electrumbind=127.0.0.1:{port}");
    let own = ["-electrum", &bind, "-electrumtlsbind=0", "-electrumwsbind=0", "-electrumproxy=127.0.0.1"];
    let server = Server::lydian(test, &[&own, options].concat());
    server.result("generatetodescriptor", "[20,\"raw(51)\"]");
    (server, port)
}

/// The tip that a wallet is told; null if it is not served.
fn tip(wallet: &mut Wallet) -> Value {
    wallet.call("blockchain.headers.subscribe", &json!([]))["result"]["height"].clone()
}

#[test]
fn clients_of_a_subnet_that_cost_much_are_disconnected() {
    let limits = ["-electrumcostsoft=0", "-electrumcosthard=20"];
    let (_server, port) = behind_proxy("clients_of_a_subnet_that_cost_much_are_disconnected", &limits);
    let mut other = of_client(port, [203, 0, 114, 1]);
    assert_eq!(tip(&mut other), 20);
    let mut neighbour = of_client(port, [203, 0, 113, 2]);
    assert_eq!(tip(&mut neighbour), 20);
    let mut busy = of_client(port, [203, 0, 113, 1]);
    // Each request costs a tenth of a unit, so a batch ends in the middle.
    let batch: Vec<Value> = (0..400).map(|id| json!({"id": id, "method": "server.ping"})).collect();
    busy.send(Value::from(batch).to_string().as_bytes());
    let answers = busy.line();
    let codes: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes.len(), 400);
    assert!(codes.iter().any(|code| code.is_null()) && codes.iter().any(|code| **code == -101), "{codes:?}");
    assert_eq!(busy.line(), Value::Null, "the session ends");
    // The other wallet of the subnet, and a new one; not those of others, and not what is on this machine.
    let (code, words) = neighbour.error("server.ping", &json!([]));
    assert_eq!(code, -101);
    assert!(words.starts_with("answers to your network cost 2"), "{words}");
    assert_eq!(neighbour.line(), Value::Null);
    assert_eq!(of_client(port, [203, 0, 113, 3]).error("server.ping", &json!([])).0, -101);
    assert_eq!(tip(&mut other), 20);
    let mut local = of_proxy(port);
    for _ in 0..400 {
        local.result("server.ping", &json!([]));
    }
    // Without a header, there is no answer.
    let mut direct = Wallet::open(port);
    direct.send(b"{\"id\":1,\"method\":\"server.ping\"}");
    assert_eq!(direct.line(), Value::Null);
}

#[test]
fn answers_to_clients_that_cost_much_are_delayed() {
    let limits = ["-electrumcostsoft=2", "-electrumcosthard=0"];
    let (_server, port) = behind_proxy("answers_to_clients_that_cost_much_are_delayed", &limits);
    let mut wallet = of_client(port, [203, 0, 113, 1]);
    let began = Instant::now();
    // A connection costs a unit, 30 requests cost 3: as far above the limit as matters.
    let batch: Vec<Value> = (0..30).map(|id| json!({"id": id, "method": "server.ping"})).collect();
    wallet.send(Value::from(batch).to_string().as_bytes());
    assert_eq!(wallet.line().as_array().map(Vec::len), Some(30));
    wallet.send(b"{\"id\":7,\"method\":\"server.ping\"}");
    // Meanwhile, others are not delayed, and one that is delayed can leave.
    let mut leaving = of_client(port, [203, 0, 113, 2]);
    leaving.send(b"{\"id\":7,\"method\":\"server.ping\"}");
    drop(leaving);
    let mut local = of_proxy(port);
    assert_eq!(tip(&mut local), 20);
    assert_eq!(wallet.line()["id"], 7);
    assert!(began.elapsed() > Duration::from_millis(400), "{:?}", began.elapsed());
}

/// The lines of the log that contain these words.
fn logged(server: &Server, words: &str) -> Vec<String> {
    let text = fs::read_to_string(server.folder.join("regtest/debug.log")).unwrap();
    text.lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
}

/// Sends SIGHUP, and waits for a further line with these words.
fn hang_up(server: &Server, words: &str) -> String {
    let before = logged(server, words).len();
    server.signal("HUP");
    let began = Instant::now();
    loop {
        let lines = logged(server, words);
        if lines.len() > before {
            return lines[before].clone();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no line with: {words}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn settings_change_while_the_server_runs() {
    const READ: &str = "Electrum server: read the settings again";
    const KEPT: &str = "Electrum server: the settings stay as they were";
    let [port, tls] = [(); 2].map(|()| lydian_oracle::free_port().unwrap());
    let (bind, tls) = (format!("-electrumbind=127.0.0.1:{port}"), format!("-electrumtlsbind=127.0.0.1:{tls}"));
    let options = ["-electrum", &bind, &tls, "-electrumwsbind=0", "-electrumwssbind=0", "-electrumproxy=127.0.0.1"];
    let server = Server::lydian("settings_change_while_the_server_runs", &options);
    let mut wallet = of_client(port, [203, 0, 113, 1]);
    let shown = |wallet: &mut Wallet| {
        ["server.banner", "server.donation_address"].map(|method| wallet.result(method, &json!([])))
    };
    let [banner, donation] = shown(&mut wallet);
    assert!(banner.as_str().unwrap().starts_with("Lydian "));
    assert_eq!(donation, "");
    let fingerprint = |line: &str| line.rsplit(' ').next().unwrap().to_owned();
    let first = fingerprint(&logged(&server, "the SHA-256 of the TLS certificate is")[0]);
    // A banner, an address, another certificate, lower limits.
    let conf = server.folder.join("lydian.conf");
    let address = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let banner = server.folder.join("banner.txt");
    fs::write(&banner, "Welcome!\nSecond line\n").unwrap();
    let given = format!("[regtest]\nelectrumbanner={}\nelectrumdonation={address}\n", banner.display());
    fs::write(&conf, &given).unwrap();
    fs::remove_file(server.folder.join("regtest/electrum/cert.pem")).unwrap();
    let second = fingerprint(&hang_up(&server, READ));
    assert_ne!(first, second);
    let expected = [json!("Welcome!\nSecond line\n"), json!(address)];
    assert_eq!(shown(&mut wallet), expected);
    // If one value is wrong, none changes.
    fs::write(&banner, "Another").unwrap();
    for (wrong, reason) in [
        ("electrumdonation=nonsense\n", "Invalid -electrumdonation: \"nonsense\" is not an address of this chain."),
        ("electrumcert=/nowhere/c.pem\nelectrumkey=/nowhere/k.pem\n", "/nowhere/c.pem"),
        ("electrumcert=c.pem\n", "-electrumcert and -electrumkey must be given together."),
        ("electrumbanner=/nowhere/b.txt\n", "/nowhere/b.txt"),
        ("nonsense\n", "parse error on line 2"),
    ] {
        fs::write(&conf, format!("[regtest]\n{wrong}")).unwrap();
        let line = hang_up(&server, KEPT);
        assert!(line.contains(reason), "{line}");
        assert_eq!(shown(&mut wallet), expected);
    }
    // The limits of costs count for the sessions that are open.
    fs::write(&conf, format!("{given}electrumcosthard=1\n")).unwrap();
    assert_eq!(fingerprint(&hang_up(&server, READ)), second);
    let refused = (0..100).map(|_| wallet.call("server.ping", &json!([]))).find(|answer| answer.get("error").is_some());
    assert_eq!(refused.unwrap()["error"]["code"], -101);
    assert_eq!(wallet.line(), Value::Null);
}
