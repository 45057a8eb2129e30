//! Fee estimates: both programs get the same transactions and blocks, and then every estimate is the same, and every
//! byte of `fee_estimates.dat`. Each reads the file of the other, and what it cannot read is logged in the same words.

pub(crate) mod full;
mod killed;

use crate::electrum_model::Wallet;
use crate::esplora::{Site, wait_for};
use crate::http::send;
use crate::mempool::{Draft, Story, descriptor};
use crate::page_client::wait;
use crate::server::Server;
use lydian_primitives::{OutPoint, Txid};
use lydian_stdx::SplitMix64;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// The time of the first blocks of a story.
const NOW: u64 = 1_750_000_000;

/// An unconfirmed transaction, what it spends, and its feerate.
struct Waiting {
    draft: Draft,
    coin: (OutPoint, i64),
    feerate: u64,
}

/// Both programs, with many coins and a fee market.
struct Market {
    story: Story,
    random: SplitMix64,
    coins: Vec<(OutPoint, i64)>,
    waiting: Vec<Waiting>,
    time: u64,
}

fn estimate_calls() -> Vec<String> {
    let call = |method: &str, params: Value| json!({"method": method, "params": params, "id": 1}).to_string();
    let smart = |mode: &'static str| (1..=1_008).map(move |target| call("estimatesmartfee", json!([target, mode])));
    let raw = |threshold: f64| (1..=1_008).map(move |target| call("estimaterawfee", json!([target, threshold])));
    smart("economical").chain(smart("conservative")).chain(raw(0.95)).chain(raw(0.6)).collect()
}

impl Market {
    fn begin(test: &str, seed: u64) -> Option<Market> {
        let story = Story::begin(test, &[])?;
        let (random, time) = (SplitMix64::new(seed), NOW);
        let mut market = Market { story, random, coins: Vec::new(), waiting: Vec::new(), time };
        for _ in 0..6 {
            let coin = market.story.coin();
            let split = Draft::spending(&[coin]).paying(60, 20_000);
            market.send(&split);
            market.coins.extend((0..60).map(|vout| split.output(vout)));
        }
        market.mine(|_, _| true);
        Some(market)
    }

    fn both(&self, method: &str, params: &Value) -> Value {
        let params = params.to_string();
        let [ours, cores] = [&self.story.pair.lydian, &self.story.pair.core].map(|server| server.call(method, &params));
        assert_eq!(ours.body, cores.body, "{method} {params:.300}");
        serde_json::from_str(&ours.body).unwrap()
    }

    fn send(&self, draft: &Draft) -> bool {
        self.both("sendrawtransaction", &json!([draft.hex()]))["error"].is_null()
    }

    /// The clock of both.
    fn pass(&mut self, seconds: u64) {
        self.time += seconds;
        self.both("setmocktime", &json!([self.time]));
    }

    fn below(&mut self, count: u64) -> u64 {
        self.random.next_u64() % count
    }

    /// Satoshi per virtual byte: many are low, few are high.
    fn feerate(&mut self) -> u64 {
        let power = 1 + self.below(9);
        1 + self.below(1 << power)
    }

    /// A transaction without unconfirmed parents; its size is about 95 virtual bytes.
    fn enter(&mut self) {
        if self.coins.is_empty() {
            return;
        }
        let at = self.random.below(self.coins.len());
        let coin = self.coins.swap_remove(at);
        let feerate = self.feerate();
        let fee = i64::try_from(feerate * 95 + self.below(95)).unwrap();
        let draft = Draft::spending(&[coin]).paying(1, fee);
        if self.send(&draft) {
            self.waiting.push(Waiting { draft, coin, feerate });
        } else {
            self.coins.push(coin);
        }
    }

    /// One that does not count: a child, a replacement, or one of a package.
    fn enter_otherwise(&mut self) {
        if self.waiting.is_empty() || self.coins.is_empty() {
            return;
        }
        let at = self.random.below(self.waiting.len());
        match self.random.below(3) {
            0 => {
                let child = Draft::spending(&[self.waiting[at].draft.output(0)]).paying(1, 3_000);
                self.send(&child);
            }
            1 => {
                let old = &self.waiting[at];
                let feerate = old.feerate + 20;
                let draft = Draft::spending(&[old.coin]).paying(1, i64::try_from(feerate * 96).unwrap());
                if self.send(&draft) {
                    self.waiting[at] = Waiting { draft, coin: self.waiting[at].coin, feerate };
                }
            }
            _ => {
                let coin = self.coins.pop().unwrap();
                let parent = Draft::spending(&[coin]).paying(1, 200);
                let child = Draft::spending(&[parent.output(0)]).paying(1, 4_000);
                let answer = self.both("submitpackage", &json!([[parent.hex(), child.hex()]]));
                assert!(answer["error"].is_null(), "{answer}");
            }
        }
    }

    /// A block with the waiting transactions that are chosen; the outputs can be spent afterwards. A transaction that
    /// is no longer in the mempool is in no block, and its coin is lost.
    fn mine(&mut self, chosen: impl Fn(&mut SplitMix64, &Waiting) -> bool) {
        self.pass(600);
        let known = self.both("getrawmempool", &json!([]));
        let mut known: Vec<Txid> = known["result"].as_array().unwrap().iter().map(txid_of).collect();
        if self.waiting.is_empty() {
            self.both("generatetodescriptor", &json!([1, descriptor()]));
            return;
        }
        let mut block = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            let Some(at) = known.iter().position(|txid| *txid == waiting.draft.txid()) else { continue };
            known.swap_remove(at);
            if chosen(&mut self.random, &waiting) {
                block.push(waiting.draft.txid().to_string());
                self.coins.push(waiting.draft.output(0));
            } else {
                self.waiting.push(waiting);
            }
        }
        let answer = self.both("generateblock", &json!([descriptor(), block]));
        assert!(answer["error"].is_null(), "{answer}");
    }

    /// A block that spends the coin of a waiting transaction otherwise.
    fn conflict(&mut self) {
        let Some(waiting) = self.waiting.pop() else { return };
        self.pass(600);
        let other = Draft::spending(&[waiting.coin]).paying(1, 777);
        let answer = self.both("generateblock", &json!([descriptor(), [other.hex()]]));
        assert!(answer["error"].is_null(), "{answer}");
    }

    /// Two blocks leave the chain, and three others join it.
    fn reorganise(&mut self) {
        let height = self.both("getblockcount", &json!([]))["result"].as_u64().unwrap();
        let hash = self.both("getblockhash", &json!([height - 1]))["result"].clone();
        self.both("invalidateblock", &json!([hash]));
        self.enter();
        self.pass(60);
        self.both("generatetodescriptor", &json!([3, "raw(51)"]));
    }

    /// One block of the market: what enters, and what a miner takes.
    fn step(&mut self, number: u64) {
        for _ in 0..2 + self.below(4) {
            self.enter();
        }
        if self.random.below(3) == 0 {
            self.enter_otherwise();
        }
        match number % 40 {
            17 => self.conflict(),
            29 => self.reorganise(),
            // The tip is too old for transactions to count.
            33 => {
                self.pass(4 * 60 * 60);
                self.enter();
                self.both("generatetodescriptor", &json!([1, "raw(51)"]));
            }
            _ => {
                let floor = 1 + number % 7 * 9;
                self.mine(|random, waiting| waiting.feerate >= floor || random.below(20) == 0);
            }
        }
    }

    /// Every estimate.
    fn compare(&self) {
        for calls in estimate_calls().chunks(504) {
            self.story.pair.ask_body("estimates", &format!("[{}]", calls.join(",")));
        }
    }

    /// The file of each program once it has ended.
    fn files(&self) -> [PathBuf; 2] {
        [&self.story.pair.lydian, &self.story.pair.core].map(file)
    }

    /// The bytes of both files, which are the same.
    fn equal_files(&self, what: &str) -> [Vec<u8>; 2] {
        let bytes = self.files().map(|file| fs::read(file).unwrap());
        let first = bytes[0].iter().zip(&bytes[1]).position(|(ours, cores)| ours != cores);
        let sizes = bytes.each_ref().map(Vec::len);
        assert!(bytes[0] == bytes[1], "{what}: {sizes:?} bytes, the first difference is at {first:?}");
        bytes
    }

    fn stop(&mut self) {
        for server in [&mut self.story.pair.lydian, &mut self.story.pair.core] {
            server.result("stop", "[]");
            assert_eq!(server.wait(), Some(0));
        }
    }

    fn start(&mut self, options: &[&str]) {
        self.story.pair.lydian.start_again(options);
        self.story.pair.core.start_again(options);
        // Until then, the clock decides about the end of the initial download, and about transactions of mempool.dat.
        for server in [&self.story.pair.lydian, &self.story.pair.core] {
            wait("the mempool is loaded", || (server.result("getmempoolinfo", "[]")["loaded"] == true).then_some(()));
        }
        self.both("setmocktime", &json!([self.time]));
    }

    /// The same lines about the file at the last start.
    fn compare_logs(&self, what: &str) {
        let [ours, cores] = [&self.story.pair.lydian, &self.story.pair.core].map(lines);
        assert!(!cores.is_empty() && ours == cores, "{what}: {ours:#?} {cores:#?}");
    }
}

fn txid_of(value: &Value) -> Txid {
    value.as_str().unwrap().parse().unwrap()
}

fn file(server: &Server) -> PathBuf {
    server.folder.join("regtest/fee_estimates.dat")
}

/// What a program logged about the file since its log was removed, without the time and the data directory.
fn lines(server: &Server) -> Vec<String> {
    let log = fs::read_to_string(server.folder.join("regtest/debug.log")).unwrap();
    let is_about = |line: &&str| {
        ["fee_estimates.dat", "policy estimator", "fee estimation data"].iter().any(|words| line.contains(words))
    };
    let folder = server.folder.display().to_string();
    let text = |line: &str| line.split_once(' ').unwrap().1.replace(&folder, "DIR");
    // Core keeps no copy of a file that it cannot read.
    log.lines().filter(is_about).filter(|line| !line.contains(" Kept the contents of ")).map(text).collect()
}

fn run(test: &str, seed: u64, blocks: u64) {
    let Some(mut market) = Market::begin(test, seed) else { return };
    for number in 1..=blocks {
        market.step(number);
        if number % 100 == 50 {
            market.both("estimatesmartfee", &json!([6, "conservative"]));
            market.both("estimaterawfee", &json!([2]));
        }
    }
    market.compare();
    let is_known = |target: u64| {
        let answer = market.both("estimatesmartfee", &json!([target]));
        answer["result"]["feerate"].is_number()
    };
    assert!([2, 6, 25].map(is_known).iter().all(|known| *known), "the market has estimates");
    market.stop();
    let bytes = market.equal_files("the files are equal");
    // Each reads the file of the other.
    let [ours, cores] = market.files();
    fs::write(&ours, &bytes[1]).unwrap();
    fs::write(&cores, &bytes[0]).unwrap();
    market.start(&[]);
    market.compare();
    // What enters at the height of the file counts at once.
    market.waiting.clear();
    for number in 1..=8 {
        market.step(number);
    }
    market.compare();
    market.stop();
    market.equal_files("the files are equal after a restart");
    compare_readers(&mut market);
    market.story.pair.comparison.finish();
}

/// What the other servers and the metrics say is what Core's RPC says.
fn compare_readers(market: &mut Market) {
    let [electrum, esplora, page] = [(); 3].map(|()| lydian_oracle::free_port().unwrap());
    market.story.pair.core.start_again(&[]);
    market.story.pair.lydian.start_again(&[
        "-electrum",
        &format!("-electrumbind=127.0.0.1:{electrum}"),
        "-electrumtlsbind=0",
        "-electrumwsbind=0",
        "-esplora",
        &format!("-esplorabind=127.0.0.1:{esplora}"),
        "-page=1",
        &format!("-pageport={page}"),
    ]);
    let core = &market.story.pair.core;
    let estimate = |target: u64, mode: &str| {
        core.result("estimatesmartfee", &json!([target, mode]).to_string())["feerate"].as_f64()
    };
    let site = Site::of(&format!("http://127.0.0.1:{esplora}"));
    wait_for(&site);
    let shown = site.json("/fee-estimates");
    let expected: Vec<u64> =
        (1..=25).chain([144, 504, 1_008]).filter(|target| estimate(*target, "economical").is_some()).collect();
    assert!(!expected.is_empty() && shown.as_object().unwrap().len() == expected.len(), "{shown}");
    for target in expected {
        let (ours, cores) = (&shown[target.to_string()], estimate(target, "economical").unwrap() * 100_000.0);
        assert!((ours.as_f64().unwrap() - cores).abs() < 1e-6, "{target}: {ours} {cores}");
    }
    let mut wallet = Wallet::connect(electrum, "1.4");
    for (params, mode) in [(json!([6]), "economical"), (json!([6, "CONSERVATIVE"]), "conservative")] {
        let ours = wallet.result("blockchain.estimatefee", &params);
        assert_eq!(ours.as_f64(), estimate(6, mode), "{params}");
    }
    assert_eq!(wallet.result("blockchain.estimatefee", &json!([5_000])).as_f64(), estimate(1_008, "economical"));
    let server = &market.story.pair.lydian;
    let head = format!("Host: 127.0.0.1:{page}\r\nAuthorization: Basic {}\r\n", server.authorization());
    let figures = send(page, format!("GET /metrics HTTP/1.1\r\n{head}\r\n").as_bytes()).unwrap().body;
    for target in [2, 3, 5, 20] {
        let name = format!("bitcoin_est_smart_fee_{target} ");
        let ours = figures.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_else(|| panic!("{figures}"));
        assert_eq!(ours.parse().ok(), estimate(target, "economical"), "{target}");
    }
}

/// Some hundred blocks with transactions of all kinds.
#[test]
fn estimates_are_those_of_core() {
    run("fees", 1, 160);
}

/// A thousand blocks.
#[test]
#[ignore = "takes 20 s or more: cargo test -p lydian-node --test rpc fees::estimates_after_a_thousand_blocks -- --ignored, which make test-peers runs"]
fn estimates_after_a_thousand_blocks() {
    run("fees-thousand", 2, 1_000);
}

#[test]
fn calls_with_wrong_arguments() {
    let Some(market) = Market::begin("fees-calls", 3) else { return };
    let story = &market.story;
    for params in [
        json!([]),
        json!([0]),
        json!([1]),
        json!([-1]),
        json!([1_008]),
        json!([1_009]),
        json!([2_147_483_648_i64]),
        json!([4_294_967_297_i64]),
        json!([1.5]),
        json!(["6"]),
        json!([null]),
        json!([6, "economical"]),
        json!([6, "CONSERVATIVE"]),
        json!([6, "Unset"]),
        json!([6, ""]),
        json!([6, "fast"]),
        json!([6, null]),
        json!([6, 1]),
        json!([0, "fast"]),
        json!({"conf_target": 6, "estimate_mode": "unset"}),
        json!({"estimate_mode": "unset"}),
    ] {
        story.pair.ask_about_help("estimatesmartfee", &params.to_string());
    }
    for params in [
        json!([]),
        json!([0]),
        json!([1]),
        json!([12]),
        json!([13]),
        json!([49]),
        json!([1_009]),
        json!([6, 0]),
        json!([6, 1]),
        json!([6, 1.01]),
        json!([6, -0.1]),
        json!([6, "0.5"]),
        json!([6, null]),
        json!({"conf_target": 6, "threshold": 0.5}),
    ] {
        story.pair.ask_about_help("estimaterawfee", &params.to_string());
    }
    market.story.pair.comparison.finish();
}

/// As in Core, a node that takes no transactions of peers estimates nothing.
#[test]
fn without_transactions_of_peers_there_are_no_estimates() {
    let Some(mut market) = Market::begin("fees-blocksonly", 4) else { return };
    market.stop();
    let before = market.files().map(|file| fs::read(file).unwrap());
    market.start(&["-blocksonly"]);
    for (method, params) in
        [("estimatesmartfee", json!([6])), ("estimatesmartfee", json!([0, "x"])), ("estimaterawfee", json!([6]))]
    {
        let answer = market.both(method, &params);
        assert_eq!(answer["error"]["message"], "Fee estimation disabled");
    }
    market.stop();
    assert_eq!(market.files().map(|file| fs::read(file).unwrap()), before, "the file stays");
}

/// Files that are cut, of other versions, with wrong numbers or too old: the log has Core's words, both programs start,
/// and estimates begin anew.
#[test]
fn files_that_cannot_be_read() {
    let Some(mut market) = Market::begin("fees-files", 5) else { return };
    for number in 1..=8 {
        market.step(number);
    }
    market.stop();
    let whole = fs::read(&market.files()[0]).unwrap();
    let with = |offset: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed[offset..offset + bytes.len()].copy_from_slice(bytes);
        changed
    };
    let cases = [
        ("an empty file", Vec::new()),
        ("a part of the version", whole[..3].to_vec()),
        ("the numbers only", whole[..16].to_vec()),
        ("a part of the buckets", whole[..100].to_vec()),
        ("without the last byte", whole[..whole.len() - 1].to_vec()),
        ("a newer version", with(0, &309_901_i32.to_le_bytes())),
        ("an older version", with(0, &309_899_i32.to_le_bytes())),
        ("a range that is none", with(8, &u32::MAX.to_le_bytes())),
        ("a vector that is too long", with(16, &[0xfe, 0xff, 0xff, 0xff, 0xff])),
        ("a count in a longer form", with(16, &[0xfd, 0x05, 0x00])),
        ("no decay", with(17 + 8 * usize::from(whole[16]), &[0; 8])),
    ];
    for (what, bytes) in cases {
        for server in [&market.story.pair.lydian, &market.story.pair.core] {
            fs::write(file(server), &bytes).unwrap();
            fs::remove_file(server.folder.join("regtest/debug.log")).unwrap();
        }
        market.start(&[]);
        market.compare_logs(what);
        let kept = file(&market.story.pair.lydian).with_extension("dat.bak");
        assert_eq!(fs::read(kept).unwrap(), bytes, "{what}");
        let answer = market.both("estimatesmartfee", &json!([6]));
        assert!(answer["result"]["errors"].is_array(), "{what}: {answer}");
        market.both("estimaterawfee", &json!([6]));
        market.stop();
    }
    for (options, is_read) in [(&[][..], false), (&["-acceptstalefeeestimates"], true)] {
        for server in [&market.story.pair.lydian, &market.story.pair.core] {
            fs::write(file(server), &whole).unwrap();
            let old = std::time::SystemTime::now() - std::time::Duration::from_secs(61 * 3_600 + 60);
            fs::File::options().write(true).open(file(server)).unwrap().set_modified(old).unwrap();
            fs::remove_file(server.folder.join("regtest/debug.log")).unwrap();
        }
        market.start(options);
        if !is_read {
            market.compare_logs("an old file");
        }
        market.both("estimaterawfee", &json!([6]));
        market.stop();
    }
}

/// A file that could not be opened was taken for a missing one and replaced when the node ended. A symbolic link to
/// itself stands for it, since the tests may run with every permission.
#[test]
fn a_file_that_cannot_be_opened_stays() {
    let mut server = Server::lydian("fees-unopened", &[]);
    let path = file(&server);
    server.result("stop", "[]");
    assert_eq!(server.wait(), Some(0));
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&path, &path).unwrap();
    server.start_again(&[]);
    server.restart(&["-blocksonly"]);
    assert_eq!(fs::read_link(&path).unwrap(), path);
    let log = fs::read_to_string(server.folder.join("regtest/debug.log")).unwrap();
    for words in ["[warning] Cannot open fee estimates: ", "[warning] Leaving ", "are not saved."] {
        assert_eq!(log.matches(words).count(), 1, "{words}");
    }
}

/// Every byte is refused, as by a disk without room: the file stays, the log names it, and the node goes on and ends.
#[test]
fn a_full_disk_keeps_the_file() {
    let Some(mut market) = Market::begin("fees-full", 7) else { return };
    market.stop();
    market.start(&[]);
    let server = &market.story.pair.lydian;
    let (before, path) = (fs::read(file(server)).unwrap(), server.folder.join("regtest"));
    let refuse = || std::os::unix::fs::symlink("/dev/full", path.join("fee_estimates.dat.new")).unwrap();
    refuse();
    market.step(1);
    market.story.pair.lydian.result("mockscheduler", "[3600]");
    let has_failed = |count: usize| {
        let log = fs::read_to_string(path.join("debug.log")).unwrap();
        log.matches("[warning] Failed to write fee estimates to ").count() == count
    };
    let waits = |_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        has_failed(1)
    };
    assert!((0..1_200).any(waits), "within a minute");
    refuse();
    market.both("estimatesmartfee", &json!([6]));
    market.stop();
    assert!(has_failed(2));
    assert_eq!(fs::read(&market.files()[0]).unwrap(), before);
}

/// `mockscheduler` brings the hourly writing forward.
#[test]
fn the_file_is_written_every_hour() {
    let Some(market) = Market::begin("fees-hour", 6) else { return };
    let files = market.files();
    assert!(files.iter().all(|file| !file.exists()));
    market.both("mockscheduler", &json!([3_600]));
    let is_written = |_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        files.iter().all(|file| file.exists())
    };
    assert!((0..1_200).any(is_written), "within a minute");
}
