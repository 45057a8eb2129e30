//! `-electrum` and `-esplora` on a pruned node: the answers are those of a node with all blocks, since peers send what
//! is deleted; without such a peer, or with one that is silent, an error names the block. What a request may have
//! fetched, and what a distant client pays for it.

use crate::chain::{Pair, mix};
use crate::compare::Comparison;
use crate::electrum::{NO_TLS, NO_WEBSOCKET, Paid, check_chain, pay, script};
use crate::electrum_model::{Model, Script, Wallet, check_script, satoshis, scripthash, text};
use crate::electrum_operators::of_client;
use crate::esplora::{Site, wait_for};
use crate::peers::PATIENCE;
use crate::server::Server;
use lydian_oracle::{build, free_port, or_skip};
use lydian_primitives::OutPoint;
use lydian_primitives::to_hex;
use lydian_query::limits::FETCHES_PER_REQUEST_MAX;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Blocks on top of the mix, so that all of the mix may be pruned.
const BLOCKS_ABOVE: u32 = 340;

/// Lydian, which prunes and serves wallets, and a Core with all blocks.
struct World {
    pair: Pair,
    electrum: u16,
    site: Site,
    options: Vec<String>,
    /// Where Core listens.
    address: String,
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(25));
    }
}

impl World {
    /// Core has the mix and further blocks, which Lydian has synced.
    fn start(test: &str) -> Option<World> {
        let built = or_skip(test, build::locate())?;
        let (blocks, now) = mix();
        let [peer, electrum, esplora] = [(); 3].map(|()| free_port().unwrap());
        let address = format!("127.0.0.1:{peer}");
        let options = [
            "-prune=1",
            "-fastprune",
            "-electrum",
            "-esplora",
            "-debug=net",
            &format!("-mocktime={now}"),
            NO_TLS,
            NO_WEBSOCKET,
            &format!("-electrumbind=127.0.0.1:{electrum}"),
            &format!("-esplorabind=127.0.0.1:{esplora}"),
        ];
        let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
        let core = Server::core(&built.bitcoind, test, &["-listen=1", &format!("-bind={address}"), "-discover=0"]);
        let lydian = Server::lydian(test, &options.iter().map(String::as_str).collect::<Vec<_>>());
        let pair = Pair { lydian, core, built, comparison: Comparison::default() };
        let site = Site(esplora);
        let world = World { pair, electrum, site, options, address };
        world.pair.core.result("setmocktime", &format!("[{now}]"));
        for block in &blocks {
            world.pair.core.result("submitblock", &format!("[\"{}\"]", to_hex(block)));
        }
        world.generate(BLOCKS_ABOVE, 1);
        world.connect();
        world.wait_for_chain();
        Some(world)
    }

    /// Blocks of Core that pay to a script.
    fn generate(&self, count: u32, number: u8) {
        let descriptor = format!("raw({})", to_hex(&script(number)));
        self.pair.core.result("generatetodescriptor", &json!([count, descriptor]).to_string());
    }

    fn connect(&self) {
        self.pair.lydian.result("addnode", &json!([self.address, "onetry"]).to_string());
        wait_until("the peer has said what it has", || {
            let peers = self.pair.lydian.result("getpeerinfo", "[]");
            peers.as_array().unwrap().iter().any(|peer| peer["synced_headers"].as_i64() > Some(0))
        });
    }

    fn wait_for_chain(&self) {
        let tip = self.pair.core.result("getbestblockhash", "[]");
        wait_until("Lydian has the chain", || self.pair.lydian.result("getbestblockhash", "[]") == tip);
        wait_until("the index has the chain", || {
            self.pair.lydian.result("getindexinfo", "[]")["addressindex"]["synced"] == true
        });
    }

    /// Deletes what may be deleted. Returns the heights and hashes of the deleted blocks.
    fn prune(&self) -> BTreeMap<u64, String> {
        let tip = self.pair.lydian.result("getblockcount", "[]").as_u64().unwrap();
        self.pair.lydian.result("pruneblockchain", &format!("[{}]", tip - 288));
        let hash = |height: u64| text(&self.pair.core.result("getblockhash", &format!("[{height}]")));
        let all = (1..=tip).map(|height| (height, hash(height)));
        all.filter(|(_, hash)| is_pruned(&self.pair.lydian, hash)).collect()
    }

    fn restart(&mut self) {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        self.pair.lydian.restart(&options);
        wait_for(&self.site);
    }

    /// How often each block was requested from a peer for a reader.
    fn requests(&self) -> BTreeMap<String, usize> {
        let log = fs::read_to_string(self.pair.lydian.folder.join("regtest/debug.log")).unwrap();
        let mut requests = BTreeMap::new();
        for line in log.lines() {
            if let Some((_, rest)) = line.split_once("Requesting block ")
                && let Some((hash, _)) = rest.split_once(" from peer=")
            {
                *requests.entry(hash.to_owned()).or_default() += 1;
            }
        }
        requests
    }
}

fn is_pruned(server: &Server, hash: &str) -> bool {
    server.call("getblock", &format!("[\"{hash}\",0]")).body.contains("Block not available (pruned data)")
}

/// A script whose first transaction is in a deleted block.
fn deleted<'a>(model: &'a Model, pruned: &BTreeMap<u64, String>) -> &'a Script {
    let has = |script: &&Script| script.confirmed.first().is_some_and(|(height, _)| pruned.contains_key(height));
    model.scripts.values().find(has).unwrap()
}

/// What Esplora answers about blocks and their transactions.
fn pages(world: &World, model: &Model) -> Vec<(String, Value)> {
    let mut paths = Vec::new();
    for height in (1..model.hashes.len()).step_by(1 + model.hashes.len() / 40) {
        let hash = &model.hashes[height];
        paths.extend([format!("/block/{hash}/txids"), format!("/block/{hash}/txs")]);
        for txid in model.blocks[height].iter().take(2) {
            paths.extend([format!("/tx/{txid}"), format!("/tx/{txid}/merkle-proof"), format!("/tx/{txid}/outspends")]);
        }
    }
    paths.extend(
        model.scripts.keys().step_by(1 + model.scripts.len() / 40).map(|hash| format!("/scripthash/{hash}/txs")),
    );
    paths.into_iter().map(|path| (path.clone(), world.site.json(&path))).collect()
}

#[test]
fn wallets_of_a_pruned_node_get_all_answers() {
    let Some(mut world) = World::start("wallets_of_a_pruned_node_get_all_answers") else { return };
    let model = Model::of(&world.pair.core);
    let before = pages(&world, &model);
    let pruned = world.prune();
    assert!(pruned.len() > 200 && pruned.contains_key(&441), "{} blocks are deleted", pruned.len());

    let mut wallet = Wallet::connect(world.electrum, "1.6");
    model.scripts.values().for_each(|script| check_script(&mut wallet, script));
    for version in ["1.4", "1.7"] {
        let mut wallet = Wallet::connect(world.electrum, version);
        model.scripts.values().step_by(20).for_each(|script| check_script(&mut wallet, script));
        check_chain(&mut wallet, &world.pair, &model);
    }
    assert_eq!(pages(&world, &model), before);
    // Core's object of a transaction, as far as it has no spent outputs.
    let txid = &model.blocks[441][3];
    let verbose = wallet.result("blockchain.transaction.get", &json!([txid, true]));
    let cores = world.pair.core.result("getrawtransaction", &format!("[\"{txid}\",1,\"{}\"]", model.hashes[441]));
    assert_eq!(verbose, cores);
    // Each block was fetched once, and none is stored.
    let requests = world.requests();
    assert!(requests.len() > 100 && requests.values().all(|count| *count == 1), "{requests:?}");
    assert!(requests.keys().all(|hash| is_pruned(&world.pair.lydian, hash)));
    assert!(pruned.values().all(|hash| is_pruned(&world.pair.lydian, hash)));

    // After a restart nothing that was fetched is left, and there is no peer.
    world.restart();
    let mut wallet = Wallet::connect(world.electrum, "1.6");
    let script_of_old = deleted(&model, &pruned);
    let (height, _) = &script_of_old.confirmed[0];
    let question = json!([scripthash(&script_of_old.script)]);
    let mut error = wallet.error("blockchain.scripthash.get_history", &question);
    while error.1.ends_with("blocks on disk are being loaded; try again later") {
        thread::sleep(Duration::from_millis(25));
        error = wallet.error("blockchain.scripthash.get_history", &question);
    }
    let reason = "no peer that has all blocks is connected";
    let words = format!("block {} at height {height} is pruned and cannot be fetched: {reason}", pruned[height]);
    assert_eq!(error, (1, words));
    let label = scripthash(&script(1));
    check_script(&mut wallet, &model.scripts[&label]);
    world.connect();
    model.scripts.values().step_by(15).for_each(|script| check_script(&mut wallet, script));

    // A reorganisation, and what wallets are notified of.
    let left = world.pair.core.result("getblockhash", &format!("[{}]", model.hashes.len() - 5));
    world.pair.core.result("invalidateblock", &json!([left]).to_string());
    world.generate(8, 2);
    world.wait_for_chain();
    let model = Model::of(&world.pair.core);
    // Its history has deleted blocks, which are needed again.
    let expected = json!([label, model.scripts[&label].status()]);
    while wallet.notices.iter().all(|notice| notice["params"] != expected) {
        let notice = wallet.line();
        assert_ne!(notice, Value::Null, "{:?}", wallet.notices);
        wallet.notices.push(notice);
    }
    model.scripts.values().step_by(15).for_each(|script| check_script(&mut wallet, script));
    check_chain(&mut wallet, &world.pair, &model);
}

/// The pruned node is killed and started while its index is behind: nothing that the index needs is deleted.
#[test]
fn nothing_is_pruned_that_the_index_needs() {
    let Some(mut world) = World::start("nothing_is_pruned_that_the_index_needs") else { return };
    let model = Model::of(&world.pair.core);
    // The index has nothing durable when blocks are deleted, and begins anew.
    world.pair.lydian.restart(&["-prune=1", "-fastprune"]);
    fs::remove_dir_all(world.pair.lydian.folder.join("regtest/indexes/tables")).unwrap();
    for _ in 0..4 {
        let options: Vec<&str> = world.options.iter().map(String::as_str).collect();
        world.pair.lydian.result("stop", "[]");
        assert_eq!(world.pair.lydian.wait(), Some(0));
        world.pair.lydian.start_again(&options);
        for _ in 0..3 {
            let tip = world.pair.lydian.result("getblockcount", "[]").as_u64().unwrap();
            world.pair.lydian.result("pruneblockchain", &format!("[{}]", tip - 288));
            thread::sleep(Duration::from_millis(20));
        }
        world.pair.lydian.kill();
        world.pair.lydian.start_again(&options);
    }
    world.wait_for_chain();
    assert!(world.prune().len() > 200);
    world.connect();
    let mut wallet = Wallet::connect(world.electrum, "1.6");
    model.scripts.values().step_by(9).for_each(|script| check_script(&mut wallet, script));
}

/// A peer that stalls costs the requests that need it some time; others are answered, and another peer is asked.
#[test]
fn a_stalled_peer_does_not_stall_the_others() {
    let Some(world) = World::start("a_stalled_peer_does_not_stall_the_others") else { return };
    let model = Model::of(&world.pair.core);
    let pruned = world.prune();
    let second = free_port().unwrap();
    let listen = ["-listen=1", &format!("-bind=127.0.0.1:{second}"), "-discover=0"];
    let full = Server::lydian("a_stalled_peer_second", &listen);
    let now = world.pair.lydian.result("getblockchaininfo", "[]")["mediantime"].as_u64().unwrap() + 7_200;
    full.result("setmocktime", &format!("[{now}]"));
    full.result("addnode", &json!([world.address, "onetry"]).to_string());
    let tip = world.pair.core.result("getbestblockhash", "[]");
    wait_until("the second node has the chain", || full.result("getbestblockhash", "[]") == tip);

    world.pair.core.signal("STOP");
    let heights: Vec<u64> = pruned.keys().copied().take(40).collect();
    let ask = |height: u64| {
        let port = world.electrum;
        thread::spawn(move || {
            let mut wallet = Wallet::connect(port, "1.6");
            wallet.call("blockchain.transaction.id_from_pos", &json!([height, 0]))
        })
    };
    let waiting: Vec<_> = heights.iter().map(|height| ask(*height)).collect();
    // The threads of the server are not used up.
    let began = Instant::now();
    let mut wallet = Wallet::connect(world.electrum, "1.6");
    for height in 0..50 {
        let header = wallet.result("blockchain.block.header", &json!([height]));
        assert_eq!(header, model.headers[height]);
    }
    check_script(&mut wallet, &model.scripts[&scripthash(&script(1))]);
    // Behind the others, they would come after the 30 seconds that a peer has.
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    let errors: Vec<String> = waiting.into_iter().map(|one| text(&one.join().unwrap()["error"]["message"])).collect();
    let count = |words: &str| errors.iter().filter(|error| error.contains(words)).count();
    let (late, busy) = (count("time-out: no peer sent it within 30 s, of 1 asked"), count("try again"));
    assert_eq!((late + busy, late), (40, 8), "{errors:#?}");

    // Another peer is asked first, as the one that stalls is late.
    world.pair.lydian.result("addnode", &json!([format!("127.0.0.1:{second}"), "onetry"]).to_string());
    wait_until("both peers are there", || {
        let peers = world.pair.lydian.result("getpeerinfo", "[]");
        peers.as_array().unwrap().iter().filter(|peer| peer["synced_headers"].as_i64() > Some(0)).count() == 2
    });
    let began = Instant::now();
    for height in &heights {
        let params = json!([height, 0, true]);
        let found = wallet.result("blockchain.transaction.id_from_pos", &params);
        assert_eq!(found["tx_hash"], model.blocks[usize::try_from(*height).unwrap()][0]);
    }
    assert!(began.elapsed() < Duration::from_secs(28), "{:?}", began.elapsed());
    world.pair.core.signal("CONT");
}

/// Blocks that pay to script 3, one more than a request may have fetched, and a transaction that spends all of them;
/// both are in deleted blocks. Returns the height of the first one, the txid, and the hash of its block.
fn many_parents(world: &World) -> (usize, String, String) {
    let core = &world.pair.core;
    let first = usize::try_from(core.result("getblockcount", "[]").as_u64().unwrap()).unwrap() + 1;
    world.generate(u32::try_from(FETCHES_PER_REQUEST_MAX + 1).unwrap(), 3);
    world.generate(100, 1);
    let coinbase = |height: usize| -> Paid {
        let hash = core.result("getblockhash", &format!("[{height}]"));
        let block = core.result("getblock", &json!([hash, 2]).to_string());
        let txid = text(&block["tx"][0]["txid"]).parse().unwrap();
        (OutPoint { txid, vout: 0 }, satoshis(&block["tx"][0]["vout"][0]["value"]), 3)
    };
    let coins: Vec<Paid> = (first..=first + FETCHES_PER_REQUEST_MAX).map(coinbase).collect();
    let (tx, _) = pay(&coins, &[4], 100_000);
    core.result("sendrawtransaction", &json!([to_hex(&tx.encode())]).to_string());
    world.generate(1, 1);
    let block = text(&core.result("getbestblockhash", "[]"));
    world.generate(600, 1);
    world.wait_for_chain();
    let pruned = world.prune();
    let heights = (first..=first + FETCHES_PER_REQUEST_MAX).map(|height| u64::try_from(height).unwrap());
    assert!(
        heights.into_iter().all(|height| pruned.contains_key(&height)) && pruned.values().any(|hash| *hash == block)
    );
    (first, tx.txid().to_string(), block)
}

fn too_many(needed: usize) -> String {
    format!(
        "the answer needs at least {needed} deleted blocks, and a request may have {FETCHES_PER_REQUEST_MAX} fetched; \
         with -addressindex=full, histories and unspent outputs need none"
    )
}

/// A request that needs too many deleted blocks is an error before they are fetched, and distant clients pay for each.
#[test]
fn a_request_has_a_limited_number_of_blocks_fetched() {
    let Some(mut world) = World::start("a_request_has_a_limited_number_of_blocks_fetched") else { return };
    let (first, txid, block) = many_parents(&world);
    let most = FETCHES_PER_REQUEST_MAX;
    // Its own block, and those of what it spends; the next question needs only these.
    let [tx, page] = [format!("/tx/{txid}"), format!("/block/{block}/txs")];
    assert_eq!(world.site.error("GET", &tx, ""), (503, too_many(most + 2)));
    assert_eq!(world.site.error("GET", &page, "").0, 503);
    let of_block = world.site.error("GET", &format!("/internal/block/{block}/txs"), "");
    assert_eq!(of_block, (503, too_many(most + 1)));
    let several = world.site.error("POST", "/internal/txs", &json!([txid]).to_string());
    assert_eq!(several, (503, too_many(most + 1)));
    let mut wallet = Wallet::connect(world.electrum, "1.6");
    let hash = scripthash(&script(3));
    let whole = json!([hash]);
    // The block of the transaction is here.
    assert_eq!(wallet.error("blockchain.scripthash.get_history", &whole), (-101, too_many(most + 1)));
    assert_eq!(wallet.error("blockchain.scripthash.subscribe", &whole), (-101, too_many(most + 1)));
    assert_eq!(world.requests().into_keys().collect::<Vec<_>>(), [block.as_str()], "nothing else was fetched");

    // As many as may be, and then the one that is left.
    let some = wallet.result("blockchain.scripthash.get_history", &json!([hash, first, first + most]));
    assert_eq!((some.as_array().unwrap().len(), world.requests().len()), (most, most + 1));
    assert_eq!(wallet.result("blockchain.scripthash.get_history", &whole).as_array().unwrap().len(), most + 2);
    assert_eq!(world.site.json(&tx)["vin"].as_array().unwrap().len(), most + 1);
    assert_eq!(world.site.json(&page).as_array().unwrap().len(), 2);
    assert_eq!(world.requests().len(), most + 2);

    // After a restart, nothing that was fetched is left.
    world.options.push("-electrumproxy=127.0.0.1".to_owned());
    world.restart();
    world.connect();
    let mut distant = of_client(world.electrum, [203, 0, 113, 1]);
    let costs = |world: &World| world.pair.lydian.result("listelectrumsessions", "[]")[0]["cost"].as_u64().unwrap();
    while distant.call("blockchain.transaction.get", &json!([txid]))["error"] != Value::Null {
        thread::sleep(Duration::from_millis(25));
    }
    assert!((101..=1_000).contains(&costs(&world)), "{}", costs(&world));
    // Blocks that do not come cost nothing.
    let before = world.requests().values().sum::<usize>();
    let (code, words) = distant.error("blockchain.scripthash.get_history", &json!([hash, first, first + most]));
    assert!(code == -101 && words.starts_with("the answer needs a deleted block, which costs 100 units"), "{words}");
    assert!((9_900..=10_500).contains(&costs(&world)), "{}", costs(&world));
    let fetched = world.requests().values().sum::<usize>() - before;
    assert!((90..=105).contains(&fetched), "{fetched}");
    // Its session goes on with what needs no block.
    assert_eq!(distant.result("blockchain.block.header", &json!([0])).as_str().map(str::len), Some(160));
}

/// The end of a program that was started on a folder: stderr and exit code.
fn run(program: &Path, folder: &Path, options: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new(program);
    command.arg(format!("-datadir={}", folder.display())).args(["-regtest", "-listen=0", "-connect=0", "-server=0"]);
    command.args(["-printtoconsole=0"]).args(options);
    let output = command.stdin(Stdio::null()).output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

/// An index that needs deleted blocks is an error at the start, in Core's words; `-reindex` builds it.
#[test]
fn an_index_that_needs_pruned_blocks_is_an_error_at_the_start() {
    let options = ["-prune=1", "-fastprune"];
    let Some(mut pair) = Pair::start("an_index_that_needs_pruned_blocks", &options) else { return };
    for server in [&pair.lydian, &pair.core] {
        server.result("setmocktime", "[1750000000]");
        server.result("generatetodescriptor", &format!("[1000,\"raw({})\"]", "51".repeat(200)));
        server.result("pruneblockchain", "[600]");
        let first = text(&server.result("getblockhash", "[1]"));
        assert!(is_pruned(server, &first));
        server.result("stop", "[]");
    }
    let lydian = Path::new(env!("CARGO_BIN_EXE_lydian"));
    assert_eq!((pair.lydian.wait(), pair.core.wait()), (Some(0), Some(0)));
    for index in ["-coinstatsindex", "-blockfilterindex"] {
        let all = [&options[..], &[index]].concat();
        let (ours, cores) =
            (run(lydian, &pair.lydian.folder, &all), run(&pair.built.bitcoind, &pair.core.folder, &all));
        // Core has a further line, since its node already runs by then.
        let first = cores.0.lines().next().unwrap_or_default();
        assert_eq!((ours.0.as_str(), ours.1), (&*format!("{first}\n"), cores.1), "{index}: {}", cores.0);
        assert!(first.contains("goes beyond pruned data") && cores.1 == Some(1), "{cores:?}");
    }
    let with_index = [&options[..], &["-addressindex"]].concat();
    let words = "Error: addressindex best block of the index goes beyond pruned data (including undo data). Please disable the index or \
                 reindex (which will download the whole blockchain again)\n";
    assert_eq!(run(lydian, &pair.lydian.folder, &with_index), (words.to_owned(), Some(1)));
    // Without the index, or with a reindex, the node starts.
    pair.lydian.start_again(&options);
    assert_eq!(pair.lydian.result("getblockcount", "[]"), 1_000);
    let reindex = [&with_index[..], &["-reindex"]].concat();
    pair.lydian.restart(&reindex);
    wait_until("the index is built as far as there are blocks", || {
        pair.lydian.result("getindexinfo", "[]")["addressindex"]["synced"] == true
    });
}
