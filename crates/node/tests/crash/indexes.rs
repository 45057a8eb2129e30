//! Kills of a node with every index on: while it syncs from a peer, while it builds the indexes of an existing chain
//! (segments are sealed and merged meanwhile, and `mempool.dat` is loaded), and while it leaves its chain for a peer's,
//! above and below the sealed blocks. After each kill the indexes are compared with a rebuild; in the end every file is
//! that of an undisturbed node with the same key. See the parent.

use crate::index::{WRITTEN_AT, height_in};
use crate::peers::{Goal, Peer, copy, fresh};
use crate::process::{Killed, disturb, lydian, setting, words};
use lydian_chains::assemble::regtest_genesis;
use lydian_chains::files::BlockWriter;
use lydian_chains::presets::maker::{FreeCoin, Maker, free_tx, output, seal};
use lydian_chains::rng::Random;
use lydian_oracle::{Scratch, copy_folder};
use lydian_primitives::to_hex;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Every index; an error of one of them ends the node.
const ALL: [&str; 6] = [
    "-txindex",
    "-txospenderindex",
    "-addressindex=full",
    "-blockfilterindex=basic",
    "-coinstatsindex",
    "-indexrequired",
];

/// Default number of kills of each kind.
const KILLS: u64 = 1;

/// The part of the kills of `make crash` of each kind: 25 of a thousand.
const SHARE: u64 = 40;

/// Blocks that are never sealed, and the blocks of a group.
const UNSEALED: u32 = 1_088;
const GROUP: u32 = 256;

/// Longer than a node takes to build the indexes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const STARTS_MAX: u32 = 100;

/// The heights of the chain and of the two others: one forks off above the sealed blocks, but in blocks that are in
/// segments, the other one below.
struct Heights {
    first: u32,
    above: u32,
    below: u32,
}

impl Heights {
    /// One group is sealed; with many kills nine, of which eight are merged.
    fn new(is_long: bool) -> Heights {
        let first = if is_long { 9 * GROUP + UNSEALED + 40 } else { GROUP + UNSEALED + 40 };
        let (sealed, written) = (sealed(first), (first + 1) / GROUP * GROUP);
        Heights { first, above: written - 30, below: sealed - 100 }
    }
}

fn sealed(height: u32) -> u32 {
    (height + 1).saturating_sub(UNSEALED) / GROUP * GROUP
}

/// The options of a node with every index.
pub fn options() -> Vec<String> {
    words(&ALL)
}

/// Compares every index with a rebuild. Right after a kill there may be nothing that can be compared.
pub fn verify(datadir: &Path, is_killed: bool) {
    let mut command = lydian(datadir, &words(&["index", "verify"]));
    let output = command.stdout(Stdio::piped()).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let early = ["there is no data directory", "is not on the active chain", "a reindex is in progress"];
    // Before the first checkpoint an index has a log, but no record of a block.
    let is_without = |line: &str| line.contains(".tip: there is no such file or directory");
    let is_early = match output.status.code() {
        Some(3) => early.iter().any(|early| text.contains(early)),
        Some(1) => text.lines().filter(|line| line.contains("NOT EQUAL")).all(is_without),
        _ => false,
    };
    assert!(output.status.code() == Some(0) || is_killed && is_early, "{:?}: {text}", output.status);
    if !is_killed {
        assert_eq!(text.matches(": equal to a rebuild up to height ").count(), 3, "{text}");
    }
}

/// A chain that grows: its blocks from the genesis block on.
#[derive(Clone)]
pub struct Chain {
    pub maker: Maker,
    blocks: Vec<Vec<u8>>,
}

impl Chain {
    pub fn new() -> Chain {
        Chain { maker: Maker::new(), blocks: vec![regtest_genesis()] }
    }

    /// Grows up to a height. Two of three blocks spend coins; a branch of another number has other blocks.
    pub fn grow(&mut self, height: u32, branch: u8) {
        while self.maker.height < height {
            let spend = |(coin, number): (FreeCoin, u8)| {
                let half = coin.value / 2;
                let outputs = vec![
                    output(half, &[0x51]),
                    output(half / 2, &[0x52, branch, number]),
                    output(0, &[0x6a, branch]),
                    output(0, &[]),
                ];
                free_tx(&[coin], outputs)
            };
            let coins = self.maker.spendable().into_iter().take(self.maker.height as usize % 3);
            let mut block = self.maker.template(coins.zip(0..).map(spend).collect());
            block.txs[0].outputs[0].value.0 -= i64::from(branch);
            seal(&mut block);
            self.blocks.push(block.encode());
            self.maker.advance(&block);
        }
    }

    /// A node with this chain, and with the files of `base`.
    pub fn node(&self, base: &Path, folder: &Path, name: &str, options: &[String]) -> PathBuf {
        let (datadir, blocks) = (copy(base, &folder.join(name)), folder.join(format!("{name}-blocks")));
        let mut writer = BlockWriter::new(&blocks, "blk").unwrap();
        self.blocks.iter().for_each(|block| drop(writer.write(block).unwrap()));
        let arguments = words(&["-copy", "import", &blocks.display().to_string()]);
        let output = lydian(&datadir, &[arguments, options.to_vec()].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        datadir
    }
}

/// Every file of the indexes.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

#[allow(clippy::disallowed_methods, reason = "a test reads its own files")]
fn files(datadir: &Path) -> Files {
    let mut found = Files::new();
    for dir in ["tables", "blockfilter/basic", "coinstats"] {
        for entry in fs::read_dir(datadir.join("regtest/indexes").join(dir)).unwrap().map(Result::unwrap) {
            // One that was about to replace another when the node was killed is no file of the index.
            if entry.path().extension().is_none_or(|end| end != "new") {
                found.insert(Path::new(dir).join(entry.file_name()), fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

/// Whether the records of all indexes name the block at this height, and every segment that there can be.
fn is_settled(datadir: &Path, height: u32) -> bool {
    let dir = datadir.join("regtest/indexes");
    // Record head, text, version, genesis hash; of the tables also the salt, two heights, and a byte.
    let tip = 12 + 16 + 4 + 32;
    let expected = [
        (dir.join("coinstats/stats.tip"), tip, height),
        (dir.join("blockfilter/basic/filters.tip"), tip, height),
        (dir.join("tables/commit"), WRITTEN_AT - 4, sealed(height)),
        (dir.join("tables/commit"), WRITTEN_AT, (height + 1) / GROUP * GROUP),
        (dir.join("tables/commit"), WRITTEN_AT + 4 + 1, height),
    ];
    expected.iter().all(|(file, at, height)| height_in(file, *at) == Some(*height))
}

/// Runs a node without peers until its indexes have the block at this height and every segment; then stops it.
#[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
pub fn settle(datadir: &Path, height: u32) -> Files {
    let (node, began) = (Peer::start_with(datadir, &ALL), Instant::now());
    while !is_settled(datadir, height) {
        assert!(began.elapsed() < PATIENCE, "{:?}", node.call("getindexinfo", "[]"));
        std::thread::sleep(Duration::from_millis(5));
    }
    node.stop();
    let files = files(datadir);
    assert!(is_settled(datadir, height), "after the stop");
    files
}

/// The files are those of an undisturbed node. The log of the statistics also has the blocks that left the chain.
pub fn compare(found: &Files, expected: &Files, has_left: bool) {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<PathBuf>>();
    assert_eq!(names(found), names(expected));
    for (name, bytes) in found {
        assert!(has_left && name.starts_with("coinstats") || *bytes == expected[name], "{}", name.display());
    }
}

/// A transaction waits in the mempool of a node when it stops.
pub fn leave_mempool(datadir: &Path, maker: &Maker) {
    let peer = Peer::start_with(datadir, &["-acceptnonstdtxn"]);
    let is_loaded = |_| {
        std::thread::sleep(Duration::from_millis(25));
        peer.call("getmempoolinfo", "[]").is_some_and(|info| info["loaded"] == true)
    };
    assert!((0..2_400).any(is_loaded));
    // Late coinbases and their parts are worth less than a fee.
    let coin = maker.rich_coin().unwrap();
    let tx = free_tx(&[coin], vec![output(coin.value - 100_000, &[0x51; 60])]);
    peer.call("sendrawtransaction", &format!("[\"{}\",0]", to_hex(&tx.encode()))).unwrap();
    peer.stop();
    assert!(datadir.join("regtest/mempool.dat").exists());
}

/// Kills while the indexes of an existing chain are built.
#[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
fn catch_up(prepare: &dyn Fn() -> PathBuf, height: u32, expected: &Files, kills: u64, random: &mut Random) {
    let (mut datadir, began) = (prepare(), Instant::now());
    compare(&settle(&datadir, height), expected, false);
    let duration = began.elapsed();
    datadir = prepare();
    let (mut killed, mut pieces) = (0, 0);
    while killed < kills {
        assert!(pieces + killed < kills * u64::from(STARTS_MAX), "{killed} kills");
        let child = lydian(&datadir, &[options(), words(&["-acceptnonstdtxn"])].concat()).spawn().unwrap();
        let Killed { output, was_killed } = disturb(child, duration, random);
        assert!(was_killed, "it runs until it is stopped: {output:?}");
        assert!(matches!(output.status.code(), None | Some(0)), "{output:?}");
        killed += 1;
        verify(&datadir, true);
        if random.chance(300) || killed == kills {
            compare(&settle(&datadir, height), expected, false);
            verify(&datadir, false);
            pieces += 1;
            datadir = prepare();
        }
    }
    eprintln!("crash-indexes: {killed} kills in {pieces} builds");
}

/// checklist: 86, 91, 97
#[test]
fn killed_with_every_index_on() {
    let scratch = Scratch::new("crash-indexes");
    let place = |name: &str| scratch.path().join(name);
    // A part of this is left to `make crash`.
    let is_long = setting("LYDIAN_CRASH_RUNS").is_some();
    let heights = Heights::new(is_long);
    let kills = setting("LYDIAN_CRASH_RUNS").map_or(KILLS, |runs| runs.div_ceil(SHARE));
    let mut random = Random::new(setting("LYDIAN_CRASH_SEED").unwrap_or(1), "crash-indexes");

    // Indexes without a block but the first, so that all nodes have the same key.
    let empty = fresh(&place("empty"));
    let output = lydian(&empty, &[options(), words(&["-stopafterblockimport"])].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let nothing = fresh(&place("nothing"));
    let mut first = Chain::new();
    first.grow(heights.below, 0);
    let mut below = first.clone();
    first.grow(heights.above, 0);
    let mut above = first.clone();
    first.grow(heights.first, 0);
    above.grow(heights.first + 10, 1);
    below.grow(heights.first + 20, 2);
    let [above_height, below_height] = [&above, &below].map(|chain| chain.maker.height);

    // During a sync.
    let synced = first.node(&empty, scratch.path(), "first", &options());
    let expected = settle(&synced, heights.first);
    if is_long {
        let goal = Goal::of(&synced, heights.first).with(options(), verify);
        let settled = |datadir: &Path| compare(&settle(datadir, heights.first), &expected, false);
        goal.reach(&|| copy(&empty, &place("client")), &settled, kills, &mut random);
    }

    // During a build, with a mempool that is loaded meanwhile.
    let without = first.node(&nothing, scratch.path(), "without", &[]);
    leave_mempool(&without, &first.maker);
    let with_key = || {
        let datadir = copy(&without, &place("client"));
        copy_folder(&empty.join("regtest/indexes"), &datadir.join("regtest/indexes")).unwrap();
        datadir
    };
    catch_up(&with_key, heights.first, &expected, kills, &mut random);

    // During reorganisations: of blocks that are in segments, but not sealed; and of sealed ones.
    let others = [(&above, above_height, "above"), (&below, below_height, "below")];
    for (chain, height, name) in others.into_iter().take(if is_long { 2 } else { 1 }) {
        let other = chain.node(&empty, scratch.path(), name, &options());
        let expected = settle(&other, height);
        let goal = Goal::of(&other, height).with(options(), verify);
        let settled = |datadir: &Path| compare(&settle(datadir, height), &expected, true);
        goal.reach(&|| copy(&synced, &place("client")), &settled, kills, &mut random);
    }
}
