//! Two lnd nodes on one Lydian: one is notified of blocks and transactions by ZMQ, the other polls RPC (`rpcpolling`).
//! They open a channel whose funding transaction is reorganised out, pay through it, close it together, and close a
//! second one by force. Nothing but lnd touches the coins. lnd's logs may have only errors that are not the node's, and
//! Lydian's log may have none. The same runs on Bitcoin Core, which is built without ZMQ here, so that both poll.
//!
//! `tools/lnd.sh` builds `lnd` and `lncli` from the Go module that `tools/lnd/go.mod` names.

use crate::drivers::RPCAUTH;
use crate::server::Server;
use lydian_oracle::{Scratch, build, free_port};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than lnd takes for anything here on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Confirmations that the second node asks of a funding transaction, and blocks for which it locks a forced close.
const CONFIRMATIONS: u64 = 3;
const DELAY: u64 = 10;

/// Confirmations after which a channel is announced.
const ANNOUNCED: u64 = 6;

/// More blocks than the outputs of a forced close take to be swept.
const SWEEP_BLOCKS_MAX: usize = 60;

/// Value of a channel, of a payment, and what the second channel gives the other side at once, in satoshi.
const CHANNEL: &str = "1000000";
const PAYMENT: &str = "40000";
const PUSHED: &str = "200000";

/// What lnd asks a node, by the node's log; the test fails if it no longer asks.
const ASKED: &[&str] = &[
    "estimatesmartfee",
    "getbestblockhash",
    "getblock",
    "getblockchaininfo",
    "getblockhash",
    "getblockheader",
    "getdeploymentinfo",
    "getmempoolinfo",
    "getnetworkinfo",
    "getrawmempool",
    "getrawtransaction",
    "gettxout",
    "gettxspendingprevout",
    "sendrawtransaction",
    "testmempoolaccept",
];

/// Errors in lnd's log that appear on Core too: so short a chain has no fee estimates; an anchor is worth less than its
/// fees; a proof of a channel or a peer arrives before what announces it; and what lncli is answered, which is checked
/// here.
const OWN_ERRORS: &[&str] = &[
    "LNWL: unable to query estimator: fee estimation data not available yet",
    "SWPR: Failed to init fee function: ",
    "init fee function: fee rate delta is zero",
    "DISC: unable to store the proof for short_chan_id",
    "SRVR: Unable to retrieve advertised address for peer",
    "[ERR] RPCS: ",
];

/// A running lnd, killed when dropped.
struct Node {
    folder: Scratch,
    child: Child,
    lncli: PathBuf,
    rpc: u16,
    peers: u16,
    key: String,
}

impl Node {
    /// `backend` is how it learns of blocks and transactions by the node at `port`.
    fn start(programs: &Path, name: &str, port: u16, backend: &str) -> Node {
        let folder = Scratch::new(&format!("lnd-{name}-{port}"));
        fs::create_dir_all(folder.path()).unwrap();
        let (rpc, peers) = (free_port().unwrap(), free_port().unwrap());
        let conf = format!(
            "[Application Options]\nalias={name}\nnoseedbackup=true\nlisten=127.0.0.1:{peers}\n\
             rpclisten=127.0.0.1:{rpc}\nnorest=true\nnobootstrap=true\n\
             [Bitcoin]\nbitcoin.regtest=true\nbitcoin.node=bitcoind\nbitcoin.defaultchanconfs={CONFIRMATIONS}\n\
             bitcoin.defaultremotedelay={DELAY}\n\
             [Bitcoind]\nbitcoind.rpchost=127.0.0.1:{port}\nbitcoind.rpcuser=user\nbitcoind.rpcpass=password\n{backend}"
        );
        fs::write(folder.path().join("lnd.conf"), conf).unwrap();
        let child = Command::new(programs.join("lnd"))
            .arg(format!("--lnddir={}", folder.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut node = Node { folder, child, lncli: programs.join("lncli"), rpc, peers, key: String::new() };
        node.key = node.wait("lnd is up", |node| {
            let answer = node.ask(&["getinfo"]).ok()?;
            answer["identity_pubkey"].as_str().map(str::to_owned)
        });
        node
    }

    fn ask(&self, words: &[&str]) -> Result<Value, String> {
        let output = Command::new(&self.lncli)
            .arg(format!("--lnddir={}", self.folder.path().display()))
            .arg(format!("--rpcserver=127.0.0.1:{}", self.rpc))
            .args(["--network=regtest"])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        match output.status.success() {
            true => serde_json::from_str(&text).map_err(|error| format!("{words:?}: {error}: {text}")),
            false => Err(format!("{words:?}: {text}{}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn json(&self, words: &[&str]) -> Value {
        self.ask(words).unwrap()
    }

    fn string(&self, words: &[&str], field: &str) -> String {
        let answer = self.json(words);
        answer[field].as_str().unwrap_or_else(|| panic!("{words:?}: no {field} in {answer}")).to_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("logs/bitcoin/regtest/lnd.log")).unwrap_or_default()
    }

    fn wait<T>(&self, what: &str, mut look: impl FnMut(&Node) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            if began.elapsed() > PATIENCE {
                let log = self.log();
                let lines: Vec<&str> = log.lines().rev().take(30).collect();
                panic!("not so in time: {what}; {:?}; the log, last line first: {lines:#?}", self.ask(&["getinfo"]));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// The only channel that waits to be opened.
    fn confirmations_left(&self) -> Option<u64> {
        let pending = self.json(&["pendingchannels"]);
        pending["pending_open_channels"][0]["confirmations_until_active"].as_u64()
    }

    /// Its only channel is active and announced, with what both sides ask for payments.
    fn is_announced(&self) -> bool {
        let channels = self.json(&["listchannels"]);
        let channel = &channels["channels"][0];
        let Some(point) = channel["channel_point"].as_str() else { return false };
        let is_known = |edge: Value| ["node1_policy", "node2_policy"].iter().all(|policy| edge[policy].is_object());
        channel["active"] == true && self.ask(&["getchaninfo", "--chan_point", point]).is_ok_and(is_known)
    }

    /// No channel is being opened or closed.
    fn has_settled(&self) -> bool {
        let pending = self.json(&["pendingchannels"]);
        let lists = ["pending_open_channels", "pending_force_closing_channels", "waiting_close_channels"];
        lists.iter().all(|name| pending[name].as_array().is_none_or(Vec::is_empty))
    }

    fn balance(&self) -> u64 {
        self.string(&["walletbalance"], "confirmed_balance").parse().unwrap()
    }

    /// How its channels were closed.
    fn closed(&self) -> Vec<String> {
        let closed = self.json(&["closedchannels"]);
        let kinds = closed["channels"].as_array().unwrap().iter();
        kinds.map(|channel| channel["close_type"].as_str().unwrap().to_owned()).collect()
    }

    /// Ends lnd; its log must have no other errors than its own. Those of the end itself do not count.
    fn stop(mut self) {
        let log = self.log();
        let is_error = |line: &&str| line.contains(" [ERR] ") || line.contains(" [CRT] ");
        let is_own = |line: &&str| OWN_ERRORS.iter().any(|own| line.contains(own));
        let errors: Vec<&str> = log.lines().filter(is_error).filter(|line| !is_own(line)).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        self.json(&["stop"]);
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "lnd does not stop");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The node and the two Lightning nodes on it.
struct Lightning {
    server: Server,
    alice: Node,
    bob: Node,
    is_notified: bool,
}

impl Lightning {
    /// `start` starts the node with options, and with ZMQ if Alice is notified.
    fn begin(is_notified: bool, start: impl Fn(&[&str]) -> Server) -> Lightning {
        let programs = programs();
        let [block, tx] = [(); 2].map(|()| format!("tcp://127.0.0.1:{}", free_port().unwrap()));
        let zmq = [format!("-zmqpubrawblock={block}"), format!("-zmqpubrawtx={tx}")];
        let options = [RPCAUTH, "-debug=rpc", &zmq[0], &zmq[1]];
        let server = start(if is_notified { &options } else { &options[..2] });
        // lnd waits for a tip of the last hours.
        server.result("generatetodescriptor", "[1,\"raw(51)\"]");
        let zmq = format!("bitcoind.zmqpubrawblock={block}\nbitcoind.zmqpubrawtx={tx}\n");
        let polling = "bitcoind.rpcpolling=true\nbitcoind.blockpollinginterval=200ms\n\
                       bitcoind.txpollinginterval=200ms\nbitcoind.estimatemode=ECONOMICAL\n";
        let alice = Node::start(&programs, "alice", server.port, if is_notified { &zmq } else { polling });
        let bob = Node::start(&programs, "bob", server.port, polling);
        Lightning { server, alice, bob, is_notified }
    }

    /// Both lnds are at the tip of the node.
    fn settle(&self) {
        let tip = self.server.result("getbestblockhash", "[]");
        for node in [&self.alice, &self.bob] {
            node.wait(&format!("the tip {tip}"), |node| {
                let info = node.json(&["getinfo"]);
                (info["block_hash"] == tip && info["synced_to_chain"] == true).then_some(())
            });
        }
    }

    fn mine(&self, count: u64) {
        self.server.result("generatetodescriptor", &json!([count, "raw(51)"]).to_string());
        self.settle();
    }

    /// Waits until the node has this transaction of lnd in its mempool.
    fn wait_for_transaction(&self, txid: &str) {
        self.alice.wait(&format!("{txid} is in the mempool"), |_| {
            let pool = self.server.result("getrawmempool", "[]");
            pool.as_array().unwrap().iter().any(|other| other == txid).then_some(())
        });
    }

    /// Alice opens a channel; returns the id of the funding transaction, which is in the mempool.
    fn open(&self, more: &[&str]) -> String {
        let words = [&["openchannel", "--node_key", &self.bob.key, "--local_amt", CHANNEL], more].concat();
        let txid = self.alice.string(&words, "funding_txid");
        self.wait_for_transaction(&txid);
        txid
    }

    fn wait_until_announced(&self) {
        self.mine(ANNOUNCED);
        for node in [&self.alice, &self.bob] {
            node.wait("the channel is announced", |node| node.is_announced().then_some(()));
        }
    }

    /// Alice closes the only channel; the closing transaction is in the mempool.
    fn close(&self, more: &[&str]) {
        let channels = self.alice.json(&["listchannels"]);
        let point = channels["channels"][0]["channel_point"].as_str().unwrap().to_owned();
        let words = [&["closechannel", "--chan_point", &point], more].concat();
        let txid = self.alice.string(&words, "closing_txid");
        self.wait_for_transaction(&txid);
    }

    /// Mines until the last output of closed channels is swept.
    fn sweep(&self) {
        for _ in 0..SWEEP_BLOCKS_MAX {
            if self.alice.has_settled() && self.bob.has_settled() {
                return;
            }
            self.mine(1);
        }
        panic!("not swept: {} {}", self.alice.json(&["pendingchannels"]), self.bob.json(&["pendingchannels"]));
    }

    /// Each gets the coins of blocks, by address.
    fn fund(&self) {
        for (node, kind) in [(&self.alice, "p2tr"), (&self.bob, "p2wkh")] {
            let address = node.string(&["newaddress", kind], "address");
            self.server.result("generatetoaddress", &json!([1, address]).to_string());
        }
        self.mine(100);
        for node in [&self.alice, &self.bob] {
            node.wait("a mature coin", |node| (node.balance() == 5_000_000_000).then_some(()));
        }
    }

    /// A block with the funding transaction is replaced by empty ones; afterwards it confirms again.
    fn open_through_a_reorganisation(&self) {
        let txid = self.open(&[]);
        self.mine(1);
        let first = self.server.result("getbestblockhash", "[]");
        for node in [&self.alice, &self.bob] {
            node.wait("one confirmation", |node| (node.confirmations_left() == Some(CONFIRMATIONS - 1)).then_some(()));
        }
        self.server.result("invalidateblock", &json!([first]).to_string());
        for _ in 0..2 {
            self.server.result("generateblock", "[\"raw(52)\",[]]");
        }
        self.settle();
        self.wait_for_transaction(&txid);
        for node in [&self.alice, &self.bob] {
            node.wait("no confirmation", |node| (node.confirmations_left() == Some(CONFIRMATIONS)).then_some(()));
        }
        self.wait_until_announced();
    }

    fn pay(&self) {
        let invoice = self.bob.json(&["addinvoice", "--amt", PAYMENT]);
        let [request, hash] = ["payment_request", "r_hash"].map(|field| invoice[field].as_str().unwrap());
        let paid = self.alice.json(&["payinvoice", "--force", "--json", request]);
        assert_eq!(paid["status"], "SUCCEEDED", "{paid}");
        assert_eq!(self.bob.json(&["lookupinvoice", hash])["state"], "SETTLED");
    }

    /// Ends both; the node was asked what is expected, and has nothing to complain about.
    fn end(self) {
        self.alice.stop();
        self.bob.stop();
        let log = fs::read_to_string(self.server.folder.join("regtest/debug.log")).unwrap();
        let bad: Vec<&str> =
            log.lines().filter(|line| line.contains("[error]") || line.contains("[warning]")).collect();
        assert!(bad.is_empty(), "{bad:#?}");
        let is_asked = |method: &str| log.contains(&format!("method={method} "));
        assert_eq!(is_asked("getzmqnotifications"), self.is_notified);
        let unasked: Vec<_> = ASKED.iter().filter(|method| !is_asked(method)).collect();
        assert!(unasked.is_empty(), "lnd does not ask {unasked:?}");
    }
}

/// The folder of `lnd` and `lncli`, named after their version, which `tools/lnd.sh` makes.
fn programs() -> PathBuf {
    let module = include_str!("../../../../../tools/lnd/go.mod");
    let mut lines = module.lines();
    let version = lines.find_map(|line| line.strip_prefix("require github.com/lightningnetwork/lnd v")).unwrap();
    let path = build::cache_folder().with_file_name(format!("lnd-{version}"));
    assert!(path.join("lnd").exists(), "{} is missing; `tools/lnd.sh` builds it", path.join("lnd").display());
    path
}

/// The whole story, on the node that `start` starts with options.
fn live(is_notified: bool, start: impl Fn(&[&str]) -> Server) {
    let lightning = Lightning::begin(is_notified, start);
    lightning.fund();
    let (alice, bob) = (&lightning.alice, &lightning.bob);
    alice.json(&["connect", &format!("{}@127.0.0.1:{}", bob.key, bob.peers)]);

    lightning.open_through_a_reorganisation();
    lightning.pay();
    lightning.close(&[]);
    lightning.sweep();
    for node in [alice, bob] {
        assert_eq!(node.closed(), ["COOPERATIVE_CLOSE"]);
    }
    bob.wait("the payment", |bob| (bob.balance() == 5_000_040_000).then_some(()));

    lightning.open(&["--push_amt", PUSHED]);
    lightning.wait_until_announced();
    lightning.close(&["--force"]);
    lightning.sweep();
    assert_eq!(alice.closed(), ["COOPERATIVE_CLOSE", "LOCAL_FORCE_CLOSE"]);
    assert_eq!(bob.closed(), ["COOPERATIVE_CLOSE", "REMOTE_FORCE_CLOSE"]);
    // What Alice gave away and fees of at most 0.001 BTC.
    let (mine, given) = (alice.balance(), 240_000);
    assert!((4_999_900_000..5_000_000_000).contains(&(mine + given)), "{mine}");
    lightning.end();
}

#[test]
#[ignore = "needs lnd, which takes four minutes to build: tools/lnd.sh; then: cargo test -p lydian-node --test rpc two_lnds_on -- --ignored, which make test-peers runs"]
fn two_lnds_on_lydian_open_use_and_close_channels() {
    live(true, |options| Server::lydian("lnd", options));
}

#[test]
#[ignore = "needs lnd, which takes four minutes to build: tools/lnd.sh; then: cargo test -p lydian-node --test rpc two_lnds_on -- --ignored, which make test-peers runs"]
fn two_lnds_on_core_open_use_and_close_channels() {
    let test = "two_lnds_on_core_open_use_and_close_channels";
    let Some(core) = lydian_oracle::or_skip(test, build::locate()) else { return };
    live(false, |options| Server::core(&core.bitcoind, "lnd-core", options));
}
