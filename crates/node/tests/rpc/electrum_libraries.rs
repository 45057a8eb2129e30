//! The libraries of wallets in JavaScript on Lydian: `@electrum-cash/network` over websocket,
//! `@mempool/electrum-client` over TCP and TLS. They agree on a version, ask for a history, and are notified of a block
//! and of a transaction.
//!
//! `make test-peers` installs them with npm; `LYDIAN_ELECTRUM_LIBRARIES` names the folder.

use crate::electrum::{pay, script};
use crate::electrum_model::scripthash;
use crate::server::Server;
use lydian_hash::sha256;
use lydian_primitives::{OutPoint, to_hex};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than a library takes for anything here.
const PATIENCE: Duration = Duration::from_secs(60);

const SCRIPT: &str = include_str!("electrum_libraries.mjs");

/// What the chain pays to, and others.
const OWN: u8 = 3;
const OTHER: u8 = 4;

/// A wallet in JavaScript, killed when dropped.
struct Wallet {
    child: Child,
    lines: Receiver<String>,
}

impl Wallet {
    fn start(folder: &str, arguments: &[&str]) -> Wallet {
        let mut command = Command::new("node");
        command.args(["--input-type=module", "-e", SCRIPT]).args(arguments);
        command.env("NODE_TLS_REJECT_UNAUTHORIZED", "0").current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (send, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Wallet { child, lines }
    }

    /// The next line must be this one.
    fn expect(&self, what: &str, value: &Value) {
        let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), json!([what, value]));
    }

    /// The next lines must be these, in any order.
    fn expect_all(&self, mut expected: Vec<Value>) {
        while !expected.is_empty() {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error}: {expected:?}"));
            let line: Value = serde_json::from_str(&line).unwrap();
            let at = expected.iter().position(|other| *other == line);
            expected.remove(at.unwrap_or_else(|| panic!("{line} is none of {expected:?}")));
        }
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
        assert_eq!(self.lines.recv().ok(), None, "nothing more was said");
    }
}

impl Drop for Wallet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mine(server: &Server, count: u32, number: u8) {
    server.result("generatetodescriptor", &format!("[{count},\"raw({})\"]", to_hex(&script(number))));
}

/// The coinbase at a height: its txid and bytes.
fn coinbase(server: &Server, height: u64) -> (String, Value) {
    let hash = server.result("getblockhash", &json!([height]).to_string());
    let tx = server.result("getblock", &json!([hash, 2]).to_string())["tx"][0].clone();
    (tx["txid"].as_str().unwrap().to_owned(), tx["hex"].clone())
}

/// The tip, as it is announced.
fn header(server: &Server) -> Value {
    let hash = server.result("getbestblockhash", "[]");
    let hex = server.result("getblockheader", &json!([hash, false]).to_string());
    json!({"hex": hex, "height": server.result("getblockcount", "[]")})
}

fn status(history: &[(String, i64)]) -> String {
    let text: String = history.iter().map(|(txid, height)| format!("{txid}:{height}:")).collect();
    to_hex(&sha256(text.as_bytes()))
}

/// A story with one library; block 1 and one more pay to the script.
fn tell(folder: &str, server: &Server, [library, transport]: [&str; 2], port: u16) {
    let hash = scripthash(&script(OWN));
    let heights = [1, server.result("getblockcount", "[]").as_u64().unwrap()];
    let coinbases = heights.map(|height| coinbase(server, height));
    let mut history: Vec<(String, i64)> = coinbases
        .iter()
        .zip(heights)
        .map(|((txid, _), height)| (txid.clone(), i64::try_from(height).unwrap()))
        .collect();
    let port = port.to_string();
    let wallet = Wallet::start(folder, &[library, transport, &port, &hash, &coinbases[0].0]);
    let name = server.result("getnetworkinfo", "[]")["subversion"].as_str().unwrap().to_owned();
    let line = wallet.lines.recv_timeout(PATIENCE).unwrap();
    assert!(line.to_lowercase().contains("lydian"), "{line} of {name}");
    let entries: Vec<Value> = history.iter().map(|(txid, height)| json!({"tx_hash": txid, "height": height})).collect();
    wallet.expect("history", &json!(entries));
    wallet.expect("histories", &json!([entries, []]));
    let coin = |(txid, height): &(String, i64)| json!({"tx_hash": txid, "tx_pos": 0, "height": height, "value": 5_000_000_000_i64});
    wallet.expect("coins", &json!(history.iter().map(coin).collect::<Vec<_>>()));
    wallet.expect("balance", &json!({"confirmed": 10_000_000_000_i64, "unconfirmed": 0}));
    wallet.expect("transaction", &coinbases[0].1);
    wallet.expect("blockchain.headers.subscribe", &json!([header(server)]));
    wallet.expect("blockchain.scripthash.subscribe", &json!([hash, status(&history)]));
    wallet.expect("ready", &Value::Null);

    // A transaction, then the block with it.
    let paid = (OutPoint { txid: coinbases[0].0.parse().unwrap(), vout: 0 }, 5_000_000_000, OWN);
    let (spend, _) = pay(&[paid], &[OTHER], 10_000);
    server.result("sendrawtransaction", &json!([to_hex(&spend.encode())]).to_string());
    history.push((spend.txid().to_string(), 0));
    wallet.expect("blockchain.scripthash.subscribe", &json!([hash, status(&history)]));
    mine(server, 1, OTHER);
    history.last_mut().unwrap().1 = server.result("getblockcount", "[]").as_i64().unwrap();
    wallet.expect_all(vec![
        json!(["blockchain.headers.subscribe", [header(server)]]),
        json!(["blockchain.scripthash.subscribe", [hash, status(&history)]]),
    ]);
    wallet.end();
}

#[test]
#[ignore = "needs two libraries from npm, which make test-peers installs; then: LYDIAN_ELECTRUM_LIBRARIES=~/.cache/lydian/electrum-libraries-1 cargo test -p lydian-node --test rpc electrum_libraries -- --ignored, which make test-peers runs"]
fn wallets_in_javascript_are_served() {
    let folder = std::env::var("LYDIAN_ELECTRUM_LIBRARIES").unwrap();
    let ports = [(); 4].map(|()| lydian_oracle::free_port().unwrap());
    let names = ["electrumbind", "electrumtlsbind", "electrumwsbind", "electrumwssbind"];
    let binds: Vec<String> = names.iter().zip(ports).map(|(name, port)| format!("-{name}=127.0.0.1:{port}")).collect();
    let mut options: Vec<&str> = binds.iter().map(String::as_str).collect();
    options.push("-electrum");
    let [lines, tls, messages, tls_messages] = ports;
    let wallets = [
        (["network", "ws"], messages),
        (["network", "ws"], lines),
        (["network", "wss"], tls_messages),
        (["mempool", "tcp"], lines),
        (["mempool", "tls"], tls),
    ];
    for (wallet, port) in wallets {
        let server = Server::lydian("wallets_in_javascript_are_served", &options);
        mine(&server, 1, OWN);
        mine(&server, 100, OTHER);
        mine(&server, 1, OWN);
        tell(&folder, &server, wallet, port);
    }
}
