//! `GET /metrics`: the values are those of RPC; Debian's `promtool` has nothing to complain about; a real Prometheus
//! scrapes the node and evaluates every expression of our dashboard, of our alerts, and of the dashboard of
//! bitcoin-prometheus-exporter.
//!
//! Without these programs the second test says so and does not run; with `LYDIAN_REQUIRE_PROMETHEUS=1` it fails then.

use crate::electrum::{NO_TLS, NO_WEBSOCKET, Paid, pay, script};
use crate::electrum_model::Wallet;
use crate::esplora::Site;
use crate::feed::{self, Stream};
use crate::http::{Answer, send};
use crate::page_client::{Client, wait};
use crate::server::Server;
use lydian_primitives::build::MutTx;
use lydian_primitives::{OutPoint, to_hex};
use lydian_stdx::base64;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A user of `-rpcauth` that may call no method, and its password.
const USER: &str = "-rpcauth=prometheus:7d9ba5ae63c3d4dc30583ff4fe65a67e$573328d9c5922eb32970eddc80ae61c0907acf874f97139e240c07612b5a0e0b";
const PASSWORD: &str = "scrape";

/// A node with servers for wallets, a peer, a few hundred blocks, a mempool and a ban.
struct Story {
    node: Server,
    /// Connected to the node.
    peer: Server,
    page: u16,
    wallet: Wallet,
    site: Site,
    /// Of the feed.
    _stream: Stream,
}

impl Story {
    fn begin(test: &str) -> Story {
        let [page, electrum, esplora, feed, listen] = [(); 5].map(|()| lydian_oracle::free_port().unwrap());
        let node = Server::lydian(
            test,
            &[
                "-page=1",
                &format!("-pageport={page}"),
                USER,
                "-rpcwhitelist=prometheus:lydian_figures",
                "-rpcwhitelistdefault=0",
                "-electrum",
                &format!("-electrumbind=127.0.0.1:{electrum}"),
                NO_TLS,
                NO_WEBSOCKET,
                "-esplora",
                &format!("-esplorabind=127.0.0.1:{esplora}"),
                &format!("-feedbind=127.0.0.1:{feed}"),
                "-coinstatsindex",
                "-blockfilterindex",
                "-listen=1",
                &format!("-bind=127.0.0.1:{listen}"),
            ],
        );
        mine(&node, 120);
        let coins: Vec<Paid> = (1..=12).map(|height| coinbase(&node, height)).collect();
        let send = |coin: &Paid| {
            let (tx, paid) = pay(&[*coin], &[1, 2, 3], 10_000);
            node.result("sendrawtransaction", &json!([to_hex(&tx.encode())]).to_string());
            paid
        };
        coins[..8].iter().for_each(|coin| drop(send(coin)));
        mine(&node, 1);
        coins[8..].iter().for_each(|coin| drop(send(coin)));
        // A branch that is known and not followed.
        let tip = node.result("getbestblockhash", "[]");
        node.result("invalidateblock", &json!([tip]).to_string());
        mine(&node, 100);
        pay_fees(&node);
        coins_again(&node);
        node.result("setban", "[\"192.0.2.7\",\"add\",86400]");
        node.result("setban", "[\"192.0.2.8\",\"add\",3600]");
        let peer = Server::lydian(test, &[]);
        peer.result("addnode", &json!([format!("127.0.0.1:{listen}"), "onetry"]).to_string());
        let mut wallet = Wallet::connect(electrum, "1.6");
        wallet.result("blockchain.headers.subscribe", &json!([]));
        wallet.error("blockchain.nonsense", &json!([]));
        let site = Site(esplora);
        site.get("/blocks/tip/height");
        site.error("GET", "/nonsense", "");
        node.call("getblockhash", "[1000000]");
        assert_eq!(feed::ask(feed, "/feed/1/ask", b"?").0, "400");
        let story = Story { node, peer, page, wallet, site, _stream: Stream::open(feed) };
        story.wait("the peer has the chain", |story| story.peer.result("getblockcount", "[]") == 228);
        story
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Story) -> bool) {
        self.wait_saying(what, &RefCell::default(), is_so);
    }

    /// The same; `reasons` are why it is not so yet.
    fn wait_saying(&self, what: &str, reasons: &RefCell<Vec<String>>, is_so: impl Fn(&Story) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            let reasons = reasons.borrow();
            assert!(began.elapsed() < Duration::from_secs(60), "not so within a minute: {what} {reasons:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn get(&self, path: &str, login: Option<&str>) -> Answer {
        let login = login.map(|login| format!("Authorization: Basic {}\r\n", base64(login.as_bytes())));
        let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}\r\n", self.page, login.unwrap_or_default());
        send(self.page, head.as_bytes()).unwrap()
    }

    fn scrape(&self) -> String {
        let answer = self.get("/metrics", Some(&format!("prometheus:{PASSWORD}")));
        assert!(answer.status.contains(" 200 "), "{answer:?}");
        assert!(answer.headers.iter().any(|line| line == "content-type: text/plain; version=0.0.4; charset=utf-8"));
        answer.body
    }

    /// What each series has, by its name with its labels.
    fn values(&self) -> BTreeMap<String, f64> {
        let text = self.scrape();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').unwrap();
                (name.to_owned(), value.parse().unwrap())
            })
            .collect()
    }

    /// Requests of every server, and a block.
    fn go_on(&mut self) {
        mine(&self.node, 1);
        self.wallet.result("server.ping", &json!([]));
        self.site.get("/blocks/tip/hash");
        self.node.result("getmempoolinfo", "[]");
    }
}

fn mine(node: &Server, blocks: u32) {
    let descriptor = format!("raw({})", to_hex(&script(1)));
    node.result("generatetodescriptor", &json!([blocks, descriptor]).to_string());
}

/// The output of a block's coinbase.
fn coinbase(node: &Server, height: u32) -> Paid {
    let hash = node.result("getblockhash", &format!("[{height}]"));
    let block = node.result("getblock", &json!([hash, 1]).to_string());
    let txid = block["tx"][0].as_str().unwrap().parse().unwrap();
    (OutPoint { txid, vout: 0 }, 5_000_000_000, 1)
}

/// Transactions of different feerates that confirm in the next block, from which fees are estimated.
fn pay_fees(node: &Server) {
    let send = |tx: &MutTx| drop(node.result("sendrawtransaction", &json!([to_hex(&tx.encode())]).to_string()));
    let (split, coins) = pay(&[coinbase(node, 13)], &[10; 60], 10_000);
    send(&split);
    mine(node, 1);
    for coins in coins.chunks(10) {
        for (coin, fee) in coins.iter().zip((1_000..).step_by(700)) {
            send(&pay(&[*coin], &[11], fee).0);
        }
        mine(node, 1);
    }
}

/// Transactions in the mempool after the last block, and one in it.
fn coins_again(node: &Server) {
    for height in [20, 21] {
        let (tx, _) = pay(&[coinbase(node, height)], &[4], 7_777);
        node.result("sendrawtransaction", &json!([to_hex(&tx.encode())]).to_string());
        if height == 20 {
            mine(node, 1);
        }
    }
}

/// The exporter's figures of a node, computed from RPC as it does, in its units.
fn of_rpc(node: &Server) -> BTreeMap<&'static str, f64> {
    let call = |method: &str| node.result(method, "[]");
    let [chain, net, pool, totals] =
        ["getblockchaininfo", "getnetworkinfo", "getmempoolinfo", "getnettotals"].map(call);
    let memory = call("getmemoryinfo")["locked"].clone();
    let fields = json!(["total_size", "total_weight", "totalfee", "txs", "height", "ins", "outs", "total_out"]);
    let block = node.result("getblockstats", &json!([chain["bestblockhash"], fields]).to_string());
    let bans = call("listbanned");
    let most = |name: &str| bans.as_array().unwrap().iter().filter_map(|ban| ban[name].as_f64()).fold(0.0, f64::max);
    let number = |value: &Value| value.as_f64().unwrap();
    let hashes = |blocks: i32| number(&node.result("getnetworkhashps", &format!("[{blocks}]")));
    let estimate = |target: u32| number(&node.result("estimatesmartfee", &format!("[{target}]"))["feerate"]);
    let count = |value: &Value| value.as_array().unwrap().len() as f64;
    BTreeMap::from([
        ("bitcoin_uptime", number(&call("uptime"))),
        ("bitcoin_blocks", number(&chain["blocks"])),
        ("bitcoin_peers", number(&net["connections"])),
        ("bitcoin_conn_in", number(&net["connections_in"])),
        ("bitcoin_conn_out", number(&net["connections_out"])),
        ("bitcoin_difficulty", number(&chain["difficulty"])),
        ("bitcoin_server_version", number(&net["version"])),
        ("bitcoin_protocol_version", number(&net["protocolversion"])),
        ("bitcoin_size_on_disk", number(&chain["size_on_disk"])),
        ("bitcoin_verification_progress", number(&chain["verificationprogress"])),
        ("bitcoin_hashps", hashes(120)),
        ("bitcoin_hashps_1", hashes(1)),
        ("bitcoin_hashps_neg1", hashes(-1)),
        // Neither test has warnings.
        ("bitcoin_warnings_total", count(&net["warnings"])),
        ("bitcoin_txcount", number(&call("getchaintxstats")["txcount"])),
        ("bitcoin_num_chaintips", count(&call("getchaintips"))),
        ("bitcoin_meminfo_used", number(&memory["used"])),
        ("bitcoin_meminfo_free", number(&memory["free"])),
        ("bitcoin_meminfo_total", number(&memory["total"])),
        ("bitcoin_meminfo_locked", number(&memory["locked"])),
        ("bitcoin_meminfo_chunks_used", number(&memory["chunks_used"])),
        ("bitcoin_meminfo_chunks_free", number(&memory["chunks_free"])),
        ("bitcoin_mempool_bytes", number(&pool["bytes"])),
        ("bitcoin_mempool_size", number(&pool["size"])),
        ("bitcoin_mempool_usage", number(&pool["usage"])),
        ("bitcoin_mempool_minfee", number(&pool["mempoolminfee"])),
        ("bitcoin_mempool_unbroadcast", number(&pool["unbroadcastcount"])),
        ("bitcoin_total_bytes_recv", number(&totals["totalbytesrecv"])),
        ("bitcoin_total_bytes_sent", number(&totals["totalbytessent"])),
        ("bitcoin_latest_block_size", number(&block["total_size"])),
        ("bitcoin_latest_block_txs", number(&block["txs"])),
        ("bitcoin_latest_block_height", number(&block["height"])),
        ("bitcoin_latest_block_weight", number(&block["total_weight"])),
        ("bitcoin_latest_block_inputs", number(&block["ins"])),
        ("bitcoin_latest_block_outputs", number(&block["outs"])),
        ("bitcoin_latest_block_value", number(&block["total_out"]) / 1e8),
        ("bitcoin_latest_block_fee", number(&block["totalfee"]) / 1e8),
        // The exporter has a series for each ban; this is the greatest of them.
        ("bitcoin_ban_created", most("ban_created")),
        ("bitcoin_banned_until", most("banned_until")),
        ("bitcoin_est_smart_fee_2", estimate(2)),
        ("bitcoin_est_smart_fee_3", estimate(3)),
        ("bitcoin_est_smart_fee_5", estimate(5)),
        ("bitcoin_est_smart_fee_20", estimate(20)),
        ("bitcoin_rpc_active", count(&call("getrpcinfo")["active_commands"]) - 1.0),
    ])
}

#[test]
fn figures_are_those_of_rpc() {
    let mut story = Story::begin("figures_are_those_of_rpc");
    // What is between two answers of RPC grows, or is the same.
    let others = |story: &Story| -> Vec<String> {
        let (before, values, after) = (of_rpc(&story.node), story.values(), of_rpc(&story.node));
        let differs = |(name, least): (&&str, &f64)| {
            let (most, value) = (after[name], values.get(*name).copied());
            // RPC writes 16 digits of some numbers.
            let slack = most.abs() * 1e-14;
            let range = least.min(most) - slack..=least.max(most) + slack;
            let is_between = value.is_some_and(|value| range.contains(&value));
            (!is_between).then(|| format!("{name}: {value:?} is not between {least} and {most}"))
        };
        before.iter().filter_map(differs).collect()
    };
    story.wait("the indexes have the chain", |story| {
        let tip = story.node.result("getblockcount", "[]");
        let indexes = story.node.result("getindexinfo", "[]");
        indexes.as_object().unwrap().values().all(|index| index["best_block_height"] == tip)
    });
    let last = RefCell::new(Vec::new());
    story.wait_saying("all values are those of RPC", &last, |story| {
        last.replace(others(story));
        last.borrow().is_empty()
    });
    let (expected, values) = (of_rpc(&story.node), story.values());
    let names: Vec<&str> = values.keys().map(String::as_str).filter(|name| name.starts_with("bitcoin_")).collect();
    assert!(names.iter().all(|name| expected.contains_key(name)), "{names:?}");
    assert_eq!(names.len(), 44);
    let of = |name: &str| *values.get(name).unwrap_or_else(|| panic!("{name} is missing: {values:#?}"));
    // A block with a transaction, and the branch that was left.
    assert_eq!([of("bitcoin_latest_block_txs"), of("bitcoin_num_chaintips"), of("lydian_bans")], [2.0, 2.0, 2.0]);
    assert_eq!([of("bitcoin_latest_block_fee"), of("bitcoin_mempool_size")], [0.000_077_77, 1.0]);
    assert_eq!([of("bitcoin_conn_in"), of("lydian_headers_height")], [1.0, of("bitcoin_blocks")]);
    for index in ["addressindex", "coinstatsindex", "basic block filter index"] {
        assert_eq!(of(&format!("lydian_index_height{{index=\"{index}\"}}")), of("bitcoin_blocks"));
        assert_eq!(of(&format!("lydian_index_lag_blocks{{index=\"{index}\"}}")), 0.0);
    }
    let blocks = of("lydian_block_connect_seconds_count");
    assert_eq!(of("lydian_block_connect_seconds_bucket{le=\"+Inf\"}"), blocks);
    assert!(blocks >= 229.0 && of("lydian_stage_seconds_total{stage=\"signatures\"}") >= 0.0);
    assert!(of("lydian_peer_bytes_total{direction=\"sent\",message=\"headers\"}") > 0.0);
    // Requests by the methods of the tables.
    let before = of("lydian_rpc_request_seconds_count{method=\"getmempoolinfo\"}");
    assert!(of("lydian_rpc_errors_total{method=\"getblockhash\"}") >= 1.0);
    for other in [
        "lydian_electrum_errors_total{method=\"other\"}",
        "lydian_esplora_errors_total{path=\"other\"}",
        "lydian_electrum_sessions",
        "lydian_feed_errors_total{path=\"/feed/1/ask\"}",
        "lydian_feed_streams",
    ] {
        assert_eq!(of(other), 1.0, "{other}");
    }
    assert!(of("lydian_feed_sent_bytes_total") > 0.0 && of("lydian_feed_slow_streams_total") == 0.0);
    assert!(!values.keys().any(|name| name.contains("nonsense") || name.contains("127.0.0.1")));
    story.go_on();
    let expected = [
        ("lydian_rpc_request_seconds_count{method=\"getmempoolinfo\"}", before + 1.0),
        ("lydian_electrum_request_seconds_count{method=\"server.ping\"}", 1.0),
        ("lydian_esplora_request_seconds_count{path=\"/blocks/tip/hash\"}", 1.0),
    ];
    // A request may be counted after its answer has come.
    let last = RefCell::new(Vec::new());
    story.wait_saying("each request is counted once", &last, |story| {
        let values = story.values();
        let differs = |(name, count): &&(&str, f64)| values.get(*name) != Some(count);
        last.replace(
            expected.iter().filter(differs).map(|(name, _)| format!("{name}: {:?}", values.get(*name))).collect(),
        );
        last.borrow().is_empty()
    });
    check_login(&story);
    check_time(&story);
}

/// The login of RPC, and no other.
fn check_login(story: &Story) {
    let status = |login| story.get("/metrics", login).status;
    assert!(status(None).contains(" 401 "));
    assert!(status(Some("prometheus:wrong")).contains(" 401 "));
    assert!(status(Some("nobody:scrape")).contains(" 401 "));
    let cookie = fs::read_to_string(story.node.cookie()).unwrap();
    assert!(status(Some(cookie.trim())).contains(" 200 "));
    // The figures as JSON are for the page, with a session.
    assert!(story.get("/api/figures", Some(cookie.trim())).status.contains(" 401 "));
    let client = Client::of_cookie(&story.node, story.page);
    let figures: Value = serde_json::from_str(&client.ask("GET", "/api/figures", "").body).unwrap();
    let blocks = json!({"kind": "gauge", "unit": "blocks", "samples": [{"labels": {}, "value": 229.0}]});
    assert_eq!(figures["bitcoin_blocks"], blocks);
    let pings = &figures["lydian_electrum_request_seconds"]["samples"];
    let is_ping = |one: &&Value| one["labels"]["method"] == "server.ping";
    let ping = pings.as_array().unwrap().iter().find(is_ping).unwrap();
    assert!(ping["count"] == 1 && ping["p50"].as_f64().unwrap() <= ping["p99"].as_f64().unwrap(), "{ping}");
}

/// An answer takes 5 ms with the program that is measured, and not much more with this one. The shortest time counts,
/// and this machine may be some times slower than usual.
fn check_time(story: &Story) {
    let time = || {
        let began = Instant::now();
        story.scrape();
        began.elapsed()
    };
    let times: Vec<Duration> = (0..21).map(|_| time()).collect();
    assert!(times.iter().min() < Some(&Duration::from_millis(250)), "{times:?}");
}

/// Whether Prometheus and its tool are installed.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn is_installed() -> bool {
    let runs = |name: &str| {
        let mut command = Command::new(name);
        command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let found = runs("prometheus") && runs("promtool");
    let is_required = std::env::var("LYDIAN_REQUIRE_PROMETHEUS").is_ok_and(|value| value == "1");
    assert!(found || !is_required, "`prometheus` is not installed");
    if !found {
        eprintln!("not run: `prometheus` is not installed; apt-get install prometheus");
    }
    found
}

/// Runs `promtool`, which must have nothing to say.
fn promtool(arguments: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    let mut child =
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "promtool {arguments:?}: {words}");
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A running Prometheus with a folder of its own.
struct Prometheus {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Prometheus {
    /// Scrapes the node with our configuration, but every second.
    fn start(page: u16) -> Prometheus {
        let folder = Prometheus::folder("node");
        let password = folder.join("password");
        fs::write(&password, PASSWORD).unwrap();
        fs::copy(repository("contrib/prometheus/lydian.rules.yml"), folder.join("lydian.rules.yml")).unwrap();
        let ours = fs::read_to_string(repository("contrib/prometheus/lydian.yml")).unwrap();
        let changed = ours
            .replace("15s", "1s")
            .replace("127.0.0.1:8380", &format!("127.0.0.1:{page}"))
            .replace("/etc/prometheus/lydian.password", &password.display().to_string());
        assert_ne!(ours, changed);
        Prometheus::start_on(folder, &changed)
    }

    fn folder(of: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("lydian-prometheus-{of}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn start_on(folder: PathBuf, configuration: &str) -> Prometheus {
        let config = folder.join("prometheus.yml");
        fs::write(&config, configuration).unwrap();
        promtool(&["check", "config", &config.display().to_string()], "");
        let port = lydian_oracle::free_port().unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Prometheus { child, port, folder }
    }

    /// What an expression of a file of ours gives for all that is scraped.
    fn evaluate(&self, expression: &str, job: &str) -> Vec<Value> {
        let filled = expression
            .replace("$__rate_interval", "1m")
            .replace("$job", job)
            .replace("$instance", ".+")
            .replace("$node_var", "instance")
            .replace("$node", ".+");
        self.query(&filled)
    }

    /// The data of an answer; `None` while it does not answer.
    fn ask(&self, path: &str) -> Option<Value> {
        // Version 1.0, since a long answer of 1.1 comes in chunks.
        let request = format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n");
        let answer = send(self.port, request.as_bytes()).ok()?;
        let body: Value = serde_json::from_str(&answer.body).ok()?;
        assert!(body["status"] == "success", "{path}: {body}");
        Some(body["data"].clone())
    }

    fn query(&self, expression: &str) -> Vec<Value> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let data = self.ask(&format!("/api/v1/query?query={encoded}"));
        data.map_or_else(Vec::new, |data| data["result"].as_array().unwrap().clone())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The expressions of a dashboard of ours.
fn of_grafana(name: &str) -> Vec<String> {
    let text = fs::read_to_string(repository("contrib/grafana").join(name)).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn prometheus_evaluates_every_expression() {
    if !is_installed() {
        return;
    }
    let mut story = Story::begin("prometheus_evaluates_every_expression");
    let prometheus = Prometheus::start(story.page);
    promtool(&["check", "metrics"], &story.scrape());
    for rules in ["lydian.rules.yml", "lydian-front.rules.yml"] {
        promtool(&["check", "rules", &repository("contrib/prometheus").join(rules).display().to_string()], "");
    }
    // A rate needs two scrapes with a series.
    for _ in 0..5 {
        story.go_on();
        std::thread::sleep(Duration::from_millis(900));
    }
    let scrapes = |story: &Story| {
        let _ = story;
        prometheus.query("count_over_time(lydian_build_info[1m])").iter().any(|one| one["value"][1] != "1")
    };
    story.wait("Prometheus has scraped the node twice", scrapes);
    let exporters = fs::read_to_string(repository("testdata/prometheus/exporter-dashboard.txt")).unwrap();
    let ours = of_grafana("lydian.json");
    assert!(ours.len() > 80 && exporters.lines().count() == 20, "{}", ours.len());
    for expression in ours.iter().map(String::as_str).chain(exporters.lines()) {
        wait_for_values(expression, || prometheus.evaluate(expression, "lydian"));
    }
    check_alerts(&prometheus, 10, &["LydianNoPeers", "LydianDiskNearlyFull"]);
    let is_one = |values: &[Value], expected: &str| values.first().is_some_and(|one| one["value"][1] == expected);
    story.wait("it is up", |_| is_one(&prometheus.query("up{job=\"lydian\"}"), "1"));
    let height = story.node.result("getblockcount", "[]").to_string();
    story.wait("it has the height", |_| is_one(&prometheus.query("bitcoin_blocks"), &height));
}

/// Waits until an expression has values: if the machine stalls for longer than a scrape may take, there are none until
/// the next one.
fn wait_for_values(expression: &str, evaluate: impl Fn() -> Vec<Value>) {
    wait(expression, || (!evaluate().is_empty()).then_some(()));
}

/// Each rule is evaluated; what it compares has values, and none holds but `expected`.
fn check_alerts(prometheus: &Prometheus, rules_min: usize, expected: &[&str]) {
    // They are evaluated every second. An alert that a failed scrape on a busy machine raised ends with the next one.
    let is_settled = |rule: &Value| {
        let is_expected = expected.contains(&rule["name"].as_str().unwrap());
        rule["health"] != "unknown" && (rule["state"] == "inactive" || is_expected)
    };
    let began = Instant::now();
    let data = loop {
        let data = prometheus.ask("/api/v1/rules").unwrap_or_default();
        let rules = data["groups"][0]["rules"].as_array();
        if rules.is_some_and(|rules| rules.iter().all(is_settled)) {
            break data;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{data}");
        std::thread::sleep(Duration::from_millis(200));
    };
    let rules = data["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() >= rules_min, "{data}");
    for rule in rules {
        assert_eq!((&rule["health"], rule["lastError"].as_str()), (&json!("ok"), None), "{rule}");
        let expression = rule["query"].as_str().unwrap();
        let compared = expression.replace("> ", "> bool ").replace("< ", "< bool ").replace("== ", "== bool ");
        wait_for_values(&compared, || prometheus.query(&compared));
    }
}

/// A real Prometheus evaluates every expression for front ends: those of the dashboard and of the alerts, on front ends
/// whose `/metrics` are at these ports. All of them serve.
#[cfg(feature = "cassandra")]
pub(crate) fn check_front_ends(ports: &[u16], mut ask: impl FnMut()) {
    if !is_installed() {
        return;
    }
    let folder = Prometheus::folder("front");
    let rules = repository("contrib/prometheus/lydian-front.rules.yml").display().to_string();
    let targets: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    // The lines of docs/scale.md, with other targets.
    let page = fs::read_to_string(repository("docs/scale.md")).unwrap();
    let (_, documented) = page.split_once("```yaml\n").unwrap();
    let documented = documented.split("```").next().unwrap();
    let own =
        documented.replace("\"10.0.1.1:3004\", \"10.0.1.2:3004\"", &json!(targets).to_string().replace(['[', ']'], ""));
    assert_ne!(own, documented);
    let own = own.replace("lydian-front.rules.yml", &rules);
    let prometheus =
        Prometheus::start_on(folder, &format!("global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\n{own}"));
    let began = Instant::now();
    let is_scraped = || {
        let counts = prometheus.query("count_over_time(lydian_front_up[1m])");
        counts.len() == ports.len() && counts.iter().all(|one| one["value"][1] != "1")
    };
    // A rate needs two scrapes with a series.
    for round in 0.. {
        ask();
        std::thread::sleep(Duration::from_millis(900));
        if round >= 4 && is_scraped() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "Prometheus does not scrape the front ends");
    }
    let expressions = of_grafana("lydian-front.json");
    assert!(expressions.len() > 25, "{}", expressions.len());
    for expression in &expressions {
        wait_for_values(expression, || prometheus.evaluate(expression, "lydian-front"));
    }
    check_alerts(&prometheus, 5, &[]);
}
