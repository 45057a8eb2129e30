//! Damaged files of the indexes, and files of a later version: whatever happens to one of them, the node names it and
//! runs without that index, or does not start with `-indexrequired`; no answer is wrong. An index that is switched off
//! and on again has the blocks that came meanwhile.

use crate::electrum::{pay, script};
use crate::electrum_model::{Wallet, scripthash};
use crate::server::Server;
use lydian_disk::record::{Records, encode_record};
use lydian_oracle::copy_folder;
use lydian_primitives::{OutPoint, to_hex};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const OPTIONS: [&str; 5] =
    ["-txindex", "-txospenderindex", "-addressindex=full", "-blockfilterindex=basic", "-coinstatsindex"];

/// The folder of an index, and its names in `getindexinfo`.
struct Index {
    folder: &'static str,
    names: &'static [&'static str],
}

const TABLES: Index = Index { folder: "tables", names: &["txindex", "txospenderindex", "addressindex"] };
const FILTERS: Index = Index { folder: "blockfilter/basic", names: &["basic block filter index"] };
const COINSTATS: Index = Index { folder: "coinstats", names: &["coinstatsindex"] };

/// More than a group of blocks, so that the tables have a segment.
const BLOCKS: u32 = 300;

/// A height in the first group of blocks: the blocks above it leave.
const LOWER: u32 = 250;

/// Heights between those that are asked about.
const STEP: usize = 9;

/// The version in a record that has one: behind a text of 16 bytes.
const VERSION_AT: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Removed,
    Cut,
    /// One bit flipped, at this many thousandths of the file.
    Flipped(usize),
    /// A directory in its place, which cannot be read, not even by root.
    Directory,
    /// Of a later version; only files that have a version.
    Newer,
}

/// All of them with `LYDIAN_DAMAGE_OFFSETS`, as in `make crash`.
fn kinds() -> Vec<Damage> {
    let mut kinds = vec![Damage::Removed, Damage::Flipped(300), Damage::Newer];
    if std::env::var_os("LYDIAN_DAMAGE_OFFSETS").is_some() {
        kinds.extend([Damage::Cut, Damage::Flipped(5), Damage::Flipped(999), Damage::Directory]);
    }
    kinds
}

impl Damage {
    /// Returns false if it cannot happen to this file.
    fn apply(self, file: &Path) -> bool {
        let mut bytes = fs::read(file).unwrap();
        match self {
            Damage::Removed => fs::remove_file(file).unwrap(),
            Damage::Cut => fs::write(file, &bytes[..bytes.len() / 2]).unwrap(),
            Damage::Flipped(thousandths) => {
                let at = bytes.len() * thousandths / 1_000;
                bytes[at] ^= 0x10;
                fs::write(file, bytes).unwrap();
            }
            Damage::Directory => {
                fs::remove_file(file).unwrap();
                fs::create_dir(file).unwrap();
            }
            Damage::Newer => return make_newer(file, &bytes),
        }
        true
    }
}

/// The size of the record at the end of a table of pages.
const FOOT_BYTES: usize = 12 + 16 + 4 + 8 + 8 + 4 + 8;

/// Raises the version in the record at the start of a file, or in the one at its end.
fn make_newer(file: &Path, bytes: &[u8]) -> bool {
    for at in [0, bytes.len().saturating_sub(FOOT_BYTES)] {
        let Some(Ok(payload)) = Records::read(&bytes[at..], 0).next() else { continue };
        if payload.starts_with(b"lydian ") {
            let mut payload = payload.to_vec();
            payload[VERSION_AT] += 1;
            let mut changed = bytes[..at].to_vec();
            encode_record(&payload, 0, &mut changed);
            changed.extend_from_slice(&bytes[changed.len()..]);
            fs::write(file, changed).unwrap();
            return true;
        }
    }
    false
}

pub(crate) fn mine(server: &Server, count: u32, number: u8) {
    server.result("generatetodescriptor", &format!("[{count},\"raw({})\"]", to_hex(&script(number))));
}

fn hash_at(server: &Server, height: usize) -> Value {
    server.result("getblockhash", &json!([height]).to_string())
}

/// The transactions of the block at a height.
fn txids(server: &Server, height: usize) -> Vec<Value> {
    let block = server.result("getblock", &json!([hash_at(server, height)]).to_string());
    block["tx"].as_array().unwrap().clone()
}

/// Spends the first coinbases, one in each of the next blocks.
pub(crate) fn spend(server: &Server, heights: std::ops::Range<usize>) {
    for height in heights {
        let coinbase = txids(server, height)[0].as_str().unwrap().parse().unwrap();
        let (tx, _) = pay(&[(OutPoint { txid: coinbase, vout: 0 }, 5_000_000_000, 1)], &[2, 3, 3], 10_000);
        server.result("sendrawtransaction", &json!([to_hex(&tx.encode())]).to_string());
        mine(server, 1, 4);
    }
}

/// Every answer that an index gives, by its question: a part of the heights, all scripts.
fn answers(server: &Server, port: u16) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let mut ask = |method: &str, params: Value| {
        let params = params.to_string();
        let answer: Value = serde_json::from_str(&server.call(method, &params).body).unwrap();
        let answer = if answer["error"].is_null() { answer["result"].clone() } else { answer["error"].clone() };
        all.insert(format!("{method} {params}"), answer);
    };
    let tip = usize::try_from(server.result("getblockcount", "[]").as_u64().unwrap()).unwrap();
    for height in (0..=tip).step_by(STEP) {
        for txid in txids(server, height).iter().filter(|_| height > 0) {
            ask("getrawtransaction", json!([txid]));
            ask("gettxspendingprevout", json!([[{"txid": txid, "vout": 0}], {"mempool_only": false}]));
        }
        ask("gettxoutsetinfo", json!(["muhash", height]));
    }
    for height in 0..=tip {
        ask("getblockfilter", json!([hash_at(server, height)]));
    }
    let mut wallet = Wallet::connect(port, "1.6");
    for number in 1..=5 {
        for question in ["get_history", "listunspent"] {
            let method = format!("blockchain.scripthash.{question}");
            let answer = wallet.call(&method, &json!([scripthash(&script(number))]));
            let answer = if answer["error"].is_null() { answer["result"].clone() } else { answer["error"].clone() };
            all.insert(format!("{question} {number}"), answer);
        }
    }
    all
}

fn wait_until_synced(server: &Server) {
    let count = server.result("getblockcount", "[]");
    for _ in 0..4_800 {
        let info = server.result("getindexinfo", "[]");
        let mut all = info.as_object().unwrap().values();
        if all.all(|index| index["synced"] == true && index["best_block_height"] == count) {
            return;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("not synced: {}", server.result("getindexinfo", "[]"));
}

/// A node with all indexes on a chain, its folder before any damage, and its answers.
struct World {
    server: Server,
    saved: PathBuf,
    port: u16,
    options: Vec<String>,
    /// The answers at the tip, and those after blocks have left, down to those of a segment.
    answers: BTreeMap<String, Value>,
    lower: BTreeMap<String, Value>,
}

impl World {
    fn new(test: &str) -> World {
        let port = lydian_oracle::free_port().unwrap();
        let mut options: Vec<String> = OPTIONS.iter().map(|option| (*option).to_owned()).collect();
        let electrum = ["-electrum", "-electrumtlsbind=0", "-electrumwsbind=0"].map(str::to_owned);
        options.extend(electrum.into_iter().chain([format!("-electrumbind=127.0.0.1:{port}")]));
        let words: Vec<&str> = options.iter().map(String::as_str).collect();
        let server = Server::lydian(test, &words);
        let saved = server.folder.with_extension("saved");
        World { server, saved, port, options, answers: BTreeMap::new(), lower: BTreeMap::new() }
    }

    fn restart(&mut self) {
        let options = self.options.clone();
        self.server.restart(&options.iter().map(String::as_str).collect::<Vec<_>>());
    }

    fn start_again(&mut self) {
        let options = self.options.clone();
        self.server.start_again(&options.iter().map(String::as_str).collect::<Vec<_>>());
    }

    fn answers(&self) -> BTreeMap<String, Value> {
        answers(&self.server, self.port)
    }

    /// The files of an index.
    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.server.folder.join("regtest/indexes").join(folder)).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    /// Starts a node that requires its indexes, which ends at once; the error if it does not start.
    fn required(&self) -> Option<String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
        command.arg(format!("-datadir={}", self.server.folder.display()));
        command.args(["-regtest", "-server=0", "-listen=0", "-noconnect", "-printtoconsole=0"]);
        let output = command.args(OPTIONS).args(["-indexrequired", "-stopafterblockimport"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!text.contains("panicked"), "{text}");
        (!output.status.success()).then_some(text)
    }

    /// One piece of damage. Returns what became of it.
    fn check(&mut self, names: &[&str], file: &Path, damage: Damage) -> &'static str {
        copy_folder(&self.saved, &self.server.folder).unwrap();
        if !damage.apply(file) {
            return "has no version";
        }
        let label = format!("{damage:?} {}", file.display());
        let path = file.display().to_string();
        let error = self.required();
        if let Some(error) = &error {
            let is_newer = error.contains("which a newer release of Lydian reads");
            assert_eq!(is_newer, damage == Damage::Newer, "{label}: {error}");
            let has_advice = is_newer || error.contains("; delete ") || damage == Damage::Directory;
            assert!(error.contains(&path) && has_advice, "{label}: {error}");
        }
        let newer = (damage == Damage::Newer).then(|| fs::read(file).unwrap());
        self.start_again();
        let info = self.server.result("getindexinfo", "[]");
        for (name, index) in info.as_object().unwrap() {
            let is_named = index["error"].as_str().is_some_and(|error| error.contains(&path));
            assert_eq!(is_named, error.is_some() && names.contains(&name.as_str()), "{label}: {info}");
            assert_eq!(index["error"].is_string(), is_named, "{label}: {info}");
        }
        let refused = if error.is_some() {
            self.compare(&self.answers, None, &label)
        } else {
            wait_until_synced(&self.server);
            let refused = self.compare(&self.answers, Some(&path), &label);
            self.leave();
            refused + self.compare(&self.lower, Some(&path), &label)
        };
        self.server.kill();
        if error.is_some()
            && let Some(newer) = newer
        {
            assert!(fs::read(file).unwrap() == newer, "{label}: the node changed it");
        }
        match (error, refused) {
            (Some(_), _) => "named at the start",
            (None, 0) => "repaired or not needed",
            (None, _) => "named in answers",
        }
    }

    /// Leaves blocks, down to those of a segment; waits until every index has or has failed.
    fn leave(&self) {
        let height = usize::try_from(LOWER).unwrap();
        self.server.result("invalidateblock", &json!([hash_at(&self.server, height + 1)]).to_string());
        for _ in 0..4_800 {
            let info = self.server.result("getindexinfo", "[]");
            let is_done = |index: &Value| {
                // One that is built again passes this height before it is synced.
                index["error"].is_string() || index["best_block_height"] == LOWER && index["synced"] == true
            };
            if info.as_object().unwrap().values().all(is_done) {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("the indexes did not follow: {}", self.server.result("getindexinfo", "[]"));
    }

    /// Every answer is right or an error, which names the file if there is one, or whose index does: one that met the
    /// damage by itself is switched off from then on. Returns the number of errors.
    fn compare(&self, expected: &BTreeMap<String, Value>, path: Option<&str>, label: &str) -> usize {
        let answers = self.answers();
        let wrong: Vec<_> =
            answers.iter().filter(|(question, answer)| expected.get(*question) != Some(*answer)).collect();
        let indexes = self.server.result("getindexinfo", "[]");
        let errors: Vec<&str> =
            indexes.as_object().unwrap().values().filter_map(|index| index["error"].as_str()).collect();
        for (question, answer) in &wrong {
            let is_error = answer["code"].is_i64() && answer["message"].is_string();
            let by_index = |path: &str| errors.iter().any(|error| error.contains(path));
            let is_named = path.is_none_or(|path| answer.to_string().contains(path) || by_index(path));
            assert!(is_error && is_named, "{label}: {question}: {answer}");
        }
        assert!(answers.len() == expected.len() && wrong.len() < answers.len(), "{label}: the node answers");
        wrong.len()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.saved);
    }
}

/// A node that has stopped, with all indexes on a chain with a segment.
fn saved(test: &str) -> World {
    let mut world = World::new(test);
    mine(&world.server, 20, 1);
    mine(&world.server, BLOCKS - 40, 5);
    spend(&world.server, 1..20);
    mine(&world.server, 21, 4);
    // The checkpoint of the stop logs a full group, which the next start makes a segment.
    world.restart();
    wait_until_synced(&world.server);
    let has_segment = |world: &World| world.files("tables").iter().any(|file| file.ends_with("0000000-0000256.events"));
    let is_written = |_| {
        std::thread::sleep(Duration::from_millis(25));
        has_segment(&world)
    };
    assert!((0..4_800).any(is_written));
    world.restart();
    world.answers = world.answers();
    world.server.result("stop", "[]");
    assert_eq!(world.server.wait(), Some(0));
    copy_folder(&world.server.folder, &world.saved).unwrap();
    world.start_again();
    world.leave();
    world.lower = world.answers();
    world.server.kill();
    for answers in [&world.answers, &world.lower] {
        assert!(answers.values().all(|answer| answer["code"].is_null()), "{answers:?}");
    }
    world
}

/// Damages every file of an index.
fn damage(test: &str, index: &Index, files: &[&str]) {
    let mut world = saved(test);
    copy_folder(&world.saved, &world.server.folder).unwrap();
    let found = world.files(index.folder);
    let names: Vec<_> = found.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, files);
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for file in &found {
        for damage in kinds() {
            let became = world.check(index.names, file, damage);
            *counts.entry(became).or_default() += 1;
        }
    }
    assert!(counts["named at the start"] > 0, "{counts:?}");
    // The advice helps.
    copy_folder(&world.saved, &world.server.folder).unwrap();
    fs::remove_dir_all(found[0].parent().unwrap()).unwrap();
    world.start_again();
    wait_until_synced(&world.server);
    assert_eq!(world.compare(&world.answers, None, "built anew"), 0);
}

#[test]
fn a_damaged_file_of_the_tables_is_named() {
    let tables = ["blocks", "events", "lists", "numbers", "positions", "sizes", "txids"];
    let mut files: Vec<String> = tables.iter().map(|table| format!("0000000-0000256.{table}")).collect();
    files.extend(["0000000.log", "0000256.log", "commit"].map(str::to_owned));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    damage("a_damaged_file_of_the_tables_is_named", &TABLES, &files);
}

#[test]
fn a_damaged_file_of_the_filters_is_named() {
    damage("a_damaged_file_of_the_filters_is_named", &FILTERS, &["filters.log", "filters.tip", "headers.log"]);
}

#[test]
fn a_damaged_file_of_the_statistics_is_named() {
    damage("a_damaged_file_of_the_statistics_is_named", &COINSTATS, &["stats.log", "stats.tip"]);
}

#[test]
fn an_index_that_was_off_has_the_blocks_that_came_meanwhile() {
    let mut world = World::new("an_index_that_was_off_has_the_blocks_that_came_meanwhile");
    mine(&world.server, 20, 1);
    mine(&world.server, 90, 5);
    spend(&world.server, 1..6);
    world.restart();
    wait_until_synced(&world.server);
    let before = world.answers();
    // Another chain from below the index's tip on, and more blocks.
    world.server.restart(&[]);
    assert_eq!(world.server.result("getindexinfo", "[]"), json!({}));
    let left = hash_at(&world.server, 113);
    world.server.result("invalidateblock", &json!([left]).to_string());
    mine(&world.server, 4, 2);
    spend(&world.server, 6..9);
    world.restart();
    wait_until_synced(&world.server);
    let caught_up = world.answers();
    assert_ne!(caught_up, before);
    assert!(caught_up.values().all(|answer| answer["code"].is_null()), "{caught_up:?}");
    // As if it had always been on.
    world.server.result("stop", "[]");
    assert_eq!(world.server.wait(), Some(0));
    fs::remove_dir_all(world.server.folder.join("regtest/indexes")).unwrap();
    world.start_again();
    wait_until_synced(&world.server);
    assert_eq!(world.answers(), caught_up);
}
