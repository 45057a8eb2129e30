//! Reads while blocks are connected and disconnected: no call waits for that, and every answer holds at the block that
//! it names.

use crate::server::Server;
use lydian_chains::files::BlockWriter;
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_oracle::{build, or_skip};
use lydian_primitives::{OutPoint, RawBlock};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A call that takes longer has waited for something: for blocks, or for a machine that stalled.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// One of so many calls may take longer.
const LATE_ONE_OF: u64 = 20;

/// The lifetime of every output of a chain.
struct Lives {
    /// Outputs with the heights at which they were created and spent.
    of: Vec<(OutPoint, u64, u64)>,
    height_of: HashMap<String, u64>,
    tip: u64,
}

/// A chain: the folder of its block file, and the lifetimes of its outputs. Created once for all tests.
static CHAIN: LazyLock<(PathBuf, Lives)> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rpc-meanwhile");
    let _ = std::fs::remove_dir_all(&folder);
    let lives = lives(&folder);
    (folder, lives)
});

fn lives(folder: &Path) -> Lives {
    let mut writer = BlockWriter::new(folder, "blk").unwrap();
    let mut of: HashMap<OutPoint, (u64, u64)> = HashMap::new();
    let (mut height_of, mut height) = (HashMap::new(), 0);
    let settings = MixSettings { blocks: 444, full: 4, seed: 9, reuse_per_mille: 0 };
    mainnet_mix::generate(settings, 2, |bytes| {
        writer.write(bytes)?;
        let block = RawBlock::new(bytes).parse().unwrap();
        height_of.insert(block.hash().to_string(), height);
        for tx in block.txs() {
            for input in tx.inputs() {
                if let Some((_, spent)) = of.get_mut(&input.prevout) {
                    *spent = height;
                }
            }
            for (vout, output) in (0..).zip(tx.outputs()) {
                if height > 0 && !output.script_pubkey.starts_with(&[0x6a]) {
                    of.insert(OutPoint { txid: tx.txid(), vout }, (height, u64::MAX));
                }
            }
        }
        height += 1;
        Ok(())
    })
    .unwrap();
    let of = of.into_iter().map(|(outpoint, (made, spent))| (outpoint, made, spent)).collect();
    Lives { of, height_of, tip: height - 1 }
}

/// The answers, and those that came late.
#[derive(Default)]
struct Asked {
    all: AtomicU64,
    late: AtomicU64,
}

/// Asks for coins until `is_over` is set; counts the answers in `asked`.
fn watch(lydian: &Server, lives: &Lives, is_over: &AtomicBool, asked: &Asked, start: usize) {
    // Each thread starts elsewhere; the step is unlikely to be a factor of the number of coins.
    let mut at = start;
    while !is_over.load(Ordering::Relaxed) {
        at = (at + 7_919) % lives.of.len();
        let (outpoint, made, spent) = lives.of[at];
        let begin = Instant::now();
        let coin = lydian.result("gettxout", &format!("[\"{}\",{},false]", outpoint.txid, outpoint.vout));
        asked.late.fetch_add(u64::from(begin.elapsed() > ANSWER_MAX), Ordering::Relaxed);
        asked.all.fetch_add(1, Ordering::Relaxed);
        // A missing coin names no block; it is checked again at the end.
        if let Some(block) = coin["bestblock"].as_str() {
            let height = lives.height_of[block];
            assert!((made..spent).contains(&height), "{outpoint} of {made} to {spent} is there at {height}");
            assert_eq!(coin["confirmations"].as_u64().unwrap(), height - made + 1);
        }
    }
}

/// Regression test. P2P methods were answered with -31 and the port refused connections until everything on disk was
/// validated. Now RPC answers and reports the progress, and a peer connects, while blocks are loaded from disk; and the
/// node stops in the middle of that.
#[test]
fn a_node_serves_while_it_validates_what_is_on_disk() {
    // On a busy machine, all may be validated when the two programs have come so far.
    assert!((0..5).any(|_| serves_while_it_validates()), "the handshake is over only when all blocks are validated");
}

/// Whether a peer has connected before all blocks were validated. If so, the validation goes on, and the node stops.
fn serves_while_it_validates() -> bool {
    let (folder, lives) = &*CHAIN;
    let file = format!("-loadblock={}", folder.join("blk00000.dat").display());
    let port = lydian_oracle::free_port().unwrap();
    let bind = format!("-bind=127.0.0.1:{port}");
    let peer = Server::lydian("behind-peer", &[]);
    let mut lydian = Server::lydian("behind", &[&file, "-par=1", "-listen=1", &bind]);
    assert_eq!(peer.result("addnode", &format!("[\"127.0.0.1:{port}\",\"onetry\"]")), Value::Null);
    let began = Instant::now();
    let shakes_hands = |peers: &Value| peers[0]["bytesrecv_per_msg"]["verack"].is_u64();
    while !shakes_hands(&lydian.result("getpeerinfo", "[]")) {
        assert!(began.elapsed() < PATIENCE, "a peer connects");
        std::thread::sleep(Duration::from_millis(20));
    }
    let info = lydian.result("getblockchaininfo", "[]");
    assert_eq!(info["initialblockdownload"], true);
    let blocks = info["blocks"].as_u64().unwrap();
    if blocks == lives.tip {
        return false;
    }
    let later = lydian.result("waitforblockheight", &format!("[{},60000]", blocks + 1));
    assert!(later["height"].as_u64().unwrap() > blocks, "the validation goes on");
    let asked = Instant::now();
    lydian.result("stop", "[]");
    assert_eq!(lydian.wait(), Some(0));
    assert!(asked.elapsed() < PATIENCE, "it took {:?}", asked.elapsed());
    true
}

/// Regression test: `-reindex` read the headers of all block files before RPC left its warm-up and the network started.
/// As in Core both answer meanwhile, nothing is validated until all headers are read, and a reindex that was killed is
/// completed by the next start without the option.
#[test]
fn a_node_serves_while_it_reindexes() {
    const BLOCKS: u64 = 320;
    let mut servers = vec![Server::lydian("reindex", &["-fastprune"])];
    if let Some(built) = or_skip("a_node_serves_while_it_reindexes", build::locate()) {
        servers.push(Server::core(&built.bitcoind, "reindex", &["-fastprune"]));
    }
    let (mut answers, mut bodies) = (Vec::new(), Vec::new());
    for server in &mut servers {
        server.result("generatetodescriptor", &format!("[{BLOCKS},\"raw(51)\"]"));
        server.result("stop", "[]");
        assert_eq!(server.wait(), Some(0));
        let blocks = server.folder.join("regtest/blocks");
        let file = |number: u64| blocks.join(format!("blk{number:05}.dat"));
        let count = (0..).find(|number| !file(*number).exists()).unwrap();
        // The search for a block in it does not end while the test runs.
        File::create(file(count)).unwrap().set_len(1 << 40).unwrap();
        server.start_again(&["-fastprune", "-reindex"]);
        let log = log_of(server);
        let last = format!("Reindexing block file {} ({}% complete)...", name(&file(count)), count * 100 / (count + 1));
        let began = Instant::now();
        while !log().contains(&last) {
            assert!(began.elapsed() < PATIENCE, "{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        let info = server.result("getblockchaininfo", "[]");
        assert_eq!(server.result("ping", "[]"), Value::Null);
        assert_eq!(server.result("getpeerinfo", "[]"), serde_json::json!([]));
        let fields = ["blocks", "headers", "initialblockdownload", "pruned"].map(|field| info[field].clone());
        answers.push(Value::from(fields.to_vec()));
        // These wait neither for the files nor for their blocks.
        let genesis = server.result("getblock", &format!("[{},0]", info["bestblockhash"]));
        let coins = server.result("gettxoutsetinfo", "[\"none\"]");
        bodies.push((genesis, coins["height"].clone(), coins["txouts"].clone()));
        server.kill();
        std::fs::remove_file(file(count)).unwrap();
        server.start_again(&["-fastprune"]);
        assert_eq!(server.result("waitforblockheight", &format!("[{BLOCKS},60000]"))["height"], BLOCKS);
        assert_eq!(log().matches("Reindexing finished").count(), 1);
    }
    let expected = serde_json::json!([0, BLOCKS, true, false]);
    assert!(answers.iter().all(|answer| *answer == expected), "{answers:?}");
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    let log = log_of(&servers[0])();
    let at = |words: &str| log.find(words).unwrap_or_else(|| panic!("{words}: {log}"));
    let start = at("Wiping block index and chain state");
    let loaded = start + log[start..].find("init message: Done loading").unwrap();
    assert!(loaded < at("Reindexing block file blk00000.dat (0% complete)..."), "{log}");
}

/// Reads the log.
fn log_of(server: &Server) -> impl Fn() -> String + use<> {
    let path = server.folder.join("regtest/debug.log");
    move || std::fs::read_to_string(&path).unwrap()
}

fn name(path: &Path) -> std::path::Display<'_> {
    Path::new(path.file_name().unwrap()).display()
}

/// Regression test: the latch of initial block download used the true time at the start, so that a tip that is old by
/// `-mocktime` ended it.
#[test]
fn the_initial_download_goes_by_the_mocked_time_from_the_start() {
    let maker = Server::lydian("maker", &["-blocksxor=0"]);
    let hash = maker.result("generatetodescriptor", "[1,\"raw(51)\"]");
    let header = maker.result("getblockheader", &format!("[{}]", hash[0]));
    let now = header["time"].as_u64().unwrap();
    let file = format!("-loadblock={}", maker.folder.join("regtest/blocks/blk00000.dat").display());
    for (seconds, is_initial) in [(25 * 60 * 60, true), (60, false)] {
        let mocked = format!("-mocktime={}", now + seconds);
        let lydian = Server::lydian("mocked", &[&file, &mocked]);
        assert_eq!(lydian.result("waitforblockheight", "[1,60000]")["height"], 1);
        let began = Instant::now();
        while lydian.result("getblockchaininfo", "[]")["initialblockdownload"] != is_initial {
            assert!(began.elapsed() < PATIENCE, "{seconds} seconds after the block");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(lydian.result("getblockchaininfo", "[]")["initialblockdownload"], is_initial);
    }
}

#[test]
fn coins_while_blocks_come_and_go() {
    let (folder, lives) = &*CHAIN;
    let file = format!("-loadblock={}", folder.join("blk00000.dat").display());
    let lydian = Server::lydian("meanwhile", &[&file]);
    let (is_over, asked) = (AtomicBool::new(false), Asked::default());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (lydian, is_over, asked) = (&lydian, &is_over, &asked);
            scope.spawn(move || watch(lydian, lives, is_over, asked, thread));
        }
        // The watchers must end whatever happens here.
        let story = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let tip = lydian.result("waitforblockheight", &format!("[{},120000]", lives.tip));
            assert_eq!(tip["height"], lives.tip);
            for depth in [1, 30, 5] {
                let hash = lydian.result("getblockhash", &format!("[{}]", lives.tip - depth));
                assert_eq!(lydian.result("invalidateblock", &format!("[{hash}]")), Value::Null);
                assert_eq!(lydian.result("getblockcount", "[]"), lives.tip - depth - 1);
                assert_eq!(lydian.result("reconsiderblock", &format!("[{hash}]")), Value::Null);
                assert_eq!(lydian.result("getblockcount", "[]"), lives.tip);
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = story {
            std::panic::resume_unwind(panic);
        }
    });
    let (asked, late) = (asked.all.into_inner(), asked.late.into_inner());
    assert!(asked > 100 && late * LATE_ONE_OF <= asked, "{late} of {asked} calls waited");
    // At the end exactly the unspent coins exist.
    for (outpoint, _, spent) in lives.of.iter().step_by(97) {
        let coin = lydian.result("gettxout", &format!("[\"{}\",{},false]", outpoint.txid, outpoint.vout));
        assert_eq!(coin.is_null(), *spent <= lives.tip, "{outpoint}");
    }
}

/// `lydian utxohash` beside a running node reads the coins of its last checkpoint, in files that the node replaces.
#[test]
fn a_second_process_hashes_the_coins_of_a_running_node() {
    let lydian = Server::lydian("second", &[]);
    let datadir = format!("-datadir={}", lydian.folder.display());
    let hash = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lydian"));
        let output = command.args([&datadir, "-regtest", "utxohash", "-json"]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!((&hash()["height"], &hash()["coins"]), (&0.into(), &0.into()));
    for blocks in [3, 150] {
        lydian.result("generatetodescriptor", &format!("[{blocks},\"raw(51)\"]"));
        // It makes a checkpoint.
        let expected = lydian.result("gettxoutsetinfo", "[]");
        lydian.result("generatetodescriptor", "[2,\"raw(51)\"]");
        let found = hash();
        for name in ["height", "bestblock", "hash_serialized_3"] {
            assert_eq!(found[name], expected[name], "{name}");
        }
        assert_eq!(found["coins"], expected["txouts"]);
    }
    std::thread::scope(|scope| {
        let making = scope.spawn(|| {
            for _ in 0..40 {
                lydian.result("generatetodescriptor", "[1,\"raw(51)\"]");
                lydian.result("gettxoutsetinfo", "[]");
            }
        });
        while !making.is_finished() {
            let found = hash();
            assert_eq!(found["height"], found["coins"]);
        }
    });
    assert_eq!(hash()["height"], lydian.result("getblockcount", "[]"));
}

/// A search for coins reports its progress, permits no second one, and ends when aborted.
#[test]
fn a_search_for_coins_is_watched_and_ended() {
    let lydian = Server::lydian("scan", &[]);
    // This many keys take seconds to derive.
    let key = "tpubD6NzVbkrYhZ4XgiXtGrdW5XDAPFCL9h7we1vwNCpn8tGbBcgfVYjXyhWo4E1xkh56hjod1RhGjxbaTLV3X4FyWuejifB9jusQ46QzG87VKp";
    let made = lydian.result("generatetodescriptor", &format!("[2,\"wpkh({key}/7)\"]"));
    assert_eq!(made.as_array().unwrap().len(), 2);
    let start = format!("[\"start\",[{{\"desc\":\"wpkh({key}/*)\",\"range\":[0,60000]}}]]");
    assert_eq!(lydian.result("scantxoutset", "[\"abort\"]"), Value::Bool(false));
    let scan = std::thread::scope(|scope| {
        let running = scope.spawn(|| lydian.result("scantxoutset", &start));
        let begin = Instant::now();
        while lydian.result("scantxoutset", "[\"status\"]").is_null() {
            assert!(begin.elapsed() < PATIENCE && !running.is_finished(), "it is not seen");
        }
        assert_eq!(lydian.result("scantxoutset", "[\"status\"]"), serde_json::json!({ "progress": 0 }));
        let second: Value =
            serde_json::from_str(&lydian.call("scantxoutset", "[\"start\",[\"raw(51)\"]]").body).unwrap();
        let words = "Scan already in progress, use action \"abort\" or \"status\"";
        assert_eq!((&second["error"]["code"], &second["error"]["message"]), (&(-8).into(), &words.into()));
        assert_eq!(lydian.result("scantxoutset", "[\"abort\"]"), Value::Bool(true));
        running.join().unwrap()
    });
    assert_eq!((&scan["success"], &scan["txouts"], &scan["height"]), (&false.into(), &0.into(), &2.into()));
    let scan = lydian.result("scantxoutset", &format!("[\"start\",[\"wpkh({key}/*)\"]]"));
    assert_eq!(
        (&scan["success"], &scan["txouts"], scan["unspents"].as_array().unwrap().len()),
        (&true.into(), &2.into(), 2)
    );
    assert_eq!(lydian.result("scantxoutset", "[\"status\"]"), Value::Null);
}
