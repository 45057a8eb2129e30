//! A wallet of its users on Lydian: Debian's `electrum` receives, spends, sees confirmations and a reorganisation.
//!
//! Without the program the test says so and does not run; with `LYDIAN_REQUIRE_ELECTRUM=1` it fails then.

use crate::server::Server;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Seconds that one command of the wallet may take.
const COMMAND_SECONDS: &str = "60";

/// Whether the wallet is installed.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub(crate) fn is_installed() -> bool {
    let found = Command::new("electrum").arg("--help").output().is_ok_and(|output| output.status.success());
    let is_required = std::env::var("LYDIAN_REQUIRE_ELECTRUM").is_ok_and(|value| value == "1");
    assert!(found || !is_required, "the wallet `electrum` is not installed");
    if !found {
        eprintln!("not run: the wallet `electrum` is not installed; apt-get install electrum");
    }
    found
}

/// The wallet with a folder of its own, and its daemon.
pub(crate) struct Wallet {
    folder: PathBuf,
}

impl Wallet {
    pub(crate) fn start(port: u16, transport: char) -> Wallet {
        let folder = std::env::temp_dir().join(format!("lydian-electrum-wallet-{}-{port}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let wallet = Wallet { folder };
        let server = format!("127.0.0.1:{port}:{transport}");
        wallet.run(&["--offline", "create"]);
        wallet.run(&["daemon", "-d", "--oneserver", "-s", &server]);
        wallet.run(&["load_wallet"]);
        wallet.wait("it is connected", |wallet| wallet.json(&["getinfo"])["connected"] == true);
        wallet
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("timeout");
        command.args([COMMAND_SECONDS, "electrum", "--regtest", "-D"]).arg(&self.folder).args(arguments);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(output.status.success(), "{arguments:?}: {text} {}", String::from_utf8_lossy(&output.stderr));
        text
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let text = self.run(arguments);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// Waits until something is so, which follows from a notification.
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn(&Wallet) -> bool) {
        for _ in 0..60 {
            if is_so(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        panic!("not so within a minute: {what}; {}", self.run(&["onchain_history"]));
    }

    /// The height of a transaction in the wallet's history; 0 in the mempool.
    pub(crate) fn height_of(&self, txid: &str) -> Option<i64> {
        let history = self.json(&["onchain_history"]);
        let mut txs = history["transactions"].as_array().unwrap().iter();
        txs.find(|tx| tx["txid"] == txid).and_then(|tx| tx["height"].as_i64())
    }
}

impl Drop for Wallet {
    fn drop(&mut self) {
        let _ =
            Command::new("timeout").args(["10", "electrum", "--regtest", "-D"]).arg(&self.folder).arg("stop").output();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn the_electrum_wallet_receives_and_spends() {
    if !is_installed() {
        return;
    }
    let (port, tls) = (lydian_oracle::free_port().unwrap(), lydian_oracle::free_port().unwrap());
    let bind = format!("-electrumbind=127.0.0.1:{port}");
    let tls_bind = format!("-electrumtlsbind=127.0.0.1:{tls}");
    let server = Server::lydian(
        "the_electrum_wallet_receives_and_spends",
        &["-electrum", &bind, &tls_bind, "-electrumwsbind=0", "-electrumwssbind=0"],
    );
    server.result("generatetodescriptor", "[1,\"raw(51)\"]");
    let wallet = Wallet::start(tls, 's');
    let address = wallet.run(&["getunusedaddress"]);
    server.result("generatetoaddress", &json!([1, address]).to_string());
    server.result("generatetodescriptor", "[100,\"raw(51)\"]");
    wallet.wait("a mature coinbase", |wallet| wallet.json(&["getbalance"]) == json!({"confirmed": "50"}));
    let other = wallet.run(&["createnewaddress"]);
    let signed = wallet.run(&["payto", &other, "10", "--fee", "0.00001"]);
    let txid = wallet.run(&["broadcast", &signed]);
    assert_eq!(server.result("getrawmempool", "[]"), json!([txid]));
    wallet.wait("unconfirmed", |wallet| wallet.height_of(&txid) == Some(0));
    let block = server.result("generatetodescriptor", "[1,\"raw(51)\"]")[0].clone();
    wallet.wait("confirmed", |wallet| wallet.height_of(&txid) == Some(103));
    // A branch without it is longer.
    server.result("invalidateblock", &json!([block]).to_string());
    server.result("generateblock", "[\"raw(52)\",[]]");
    server.result("generateblock", "[\"raw(52)\",[]]");
    wallet.wait("unconfirmed again", |wallet| wallet.height_of(&txid) == Some(0));
    server.result("generatetodescriptor", "[1,\"raw(51)\"]");
    wallet.wait("confirmed again", |wallet| wallet.height_of(&txid) == Some(105));
    wallet.wait("the balance", |wallet| wallet.json(&["getbalance"]) == json!({"confirmed": "49.99999"}));
    assert_eq!(wallet.json(&["getinfo"])["blockchain_height"], 105);
}
