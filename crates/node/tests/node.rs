//! The node as a user runs it: options, the data directory, import and reindex to the same coins, signals and kills,
//! bad directories and bad blocks with their errors and exit codes.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and makes its own files"
)]

mod doctor;
mod fields;
mod formats;
mod indexes;
mod service;
mod shells;

use fields::keys;
use lydian_chains::files::BlockWriter;
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::maker::{Maker, seal};
use lydian_chains::presets::{empty, mainnet_mix};
use lydian_primitives::Amount;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Longer than a stop takes, at any moment, on a busy machine.
const STOP_MAX: Duration = Duration::from_secs(60);

/// A data directory of its own, and the program that runs on it.
struct Place {
    directory: PathBuf,
}

impl Place {
    fn new(name: &str) -> Place {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("node").join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("data")).unwrap();
        Place { directory }
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn chain_folder(&self) -> PathBuf {
        self.data().join("regtest")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
        command.current_dir(&self.directory).env("HOME", &self.directory);
        command
            .arg(format!("-datadir={}", self.data().display()))
            .args(["-regtest", "-server=0", "-listen=0", "-noconnect"])
            .args(arguments);
        command
    }

    /// stdout, stderr and the exit code.
    fn run(&self, arguments: &[&str]) -> (String, String, i32) {
        let Output { stdout, stderr, status } = self.command(arguments).output().unwrap();
        let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert!(!err.contains("panicked"), "{err}");
        (out, err, status.code().unwrap_or(-1))
    }

    fn import(&self, blocks: &Path) -> (String, String, i32) {
        self.run(&["import", blocks.to_str().unwrap()])
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (out, err, code) = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(code, 0, "{err}");
        serde_json::from_str(&out).unwrap()
    }

    /// The height, and the hash of the coins at this height.
    fn coins(&self) -> (u64, String) {
        let set = self.json(&["utxohash"]);
        assert_eq!(set["height"], self.json(&["info"])["height"]);
        (set["height"].as_u64().unwrap(), set["hash_serialized_3"].as_str().unwrap().to_owned())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.chain_folder().join("debug.log")).unwrap()
    }

    /// Starts a node and waits until its log contains this text.
    fn start(&self, arguments: &[&str], until: &str) -> Running {
        let mut command = self.command(arguments);
        let mut child = command.arg("-printtoconsole").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let found = lines.by_ref().map_while(Result::ok).any(|line| line.contains(until));
        assert!(found, "the node ended without '{until}', its log with {:?}", self.log().lines().last());
        // Keep reading, so that a full pipe never blocks the node.
        std::thread::spawn(move || lines.count());
        Running(child)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// A node that is killed when dropped.
struct Running(Child);

impl Running {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// The exit code; the node must end in time.
    fn wait(mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < STOP_MAX, "the node does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const MIX_HEIGHT: u64 = 440;

/// Block files of a chain with some full blocks; made once for all tests.
static MIX: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("node-mix");
    let _ = fs::remove_dir_all(&folder);
    let settings = MixSettings { blocks: 440, full: 4, seed: 2, reuse_per_mille: 0 };
    mainnet_mix::write(settings, 2, &folder).unwrap();
    folder
});

/// 50 blocks with only a coinbase.
fn small_chain(place: &Place) -> PathBuf {
    let folder = place.directory.join("chain");
    empty::write(50, &folder).unwrap();
    folder
}

#[test]
fn a_chain_is_validated_and_reported() {
    let place = Place::new("import");
    let (_, err, code) = place.run(&["info"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("there is no data directory"), "{err}");
    let (out, err, code) = place.import(&MIX);
    assert_eq!(code, 0, "{err}");
    for part in ["signatures ", "blocks       440, to height 440", "ratio ", "memory ", "written", "at height 440"] {
        assert!(out.contains(part), "'{part}' is not in\n{out}");
    }
    let log = place.log();
    let line = log.lines().find(|line| line.contains(" height=440 ")).unwrap();
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(time.len() == 20 && time.ends_with('Z') && rest.starts_with("UpdateTip: new best="), "{line}");
    for part in [" version=0x2000", " log2_work=9.", " tx=", " date='", " progress=", " cache=", "txo)"] {
        assert!(rest.contains(part), "'{part}' is not in {line}");
    }
    let info = place.json(&["info"]);
    assert_eq!((&info["height"], &info["durable_height"]), (&Value::from(MIX_HEIGHT), &Value::from(MIX_HEIGHT)));
    assert_eq!((&info["is_running"], &info["run"]["blocks"]), (&Value::from(false), &Value::from(MIX_HEIGHT)));
    let (height, hash) = place.coins();
    let (out, _, code) = place.run(&["utxohash"]);
    assert!(code == 0 && out.contains(&hash) && height == MIX_HEIGHT, "{out}");
    let (out, _, _) = place.run(&["info"]);
    assert!(out.contains("440 of 440 headers") && out.contains("last run"), "{out}");

    // The blocks stayed where they were; the coins rebuilt from them are the same.
    assert_eq!(fs::metadata(place.chain_folder().join("blocks/blk00000.dat")).unwrap().len(), 293, "genesis alone");
    let (_, err, code) = place.run(&["-reindex-chainstate", "-stopafterblockimport", "-par=1", "-dbcache=4"]);
    assert_eq!((code, place.coins()), (0, (height, hash.clone())), "{err}");
    let (_, err, code) = place.run(&["-reindex", "-stopafterblockimport", "-dbcache=4", "-lowmem"]);
    assert_eq!((code, place.coins()), (0, (height, hash.clone())), "what was imported in place is found again: {err}");
    // Importing again changes nothing, and a copy does not need the original files.
    let (out, _, code) = place.import(&MIX);
    assert!(code == 0 && out.contains("at height 440") && !out.contains("ratio"), "{out}");
    let other = Place::new("copy");
    let (_, err, code) = other.run(&["import", MIX.to_str().unwrap(), "--copy", "-blocksxor=0"]);
    assert_eq!(code, 0, "{err}");
    assert!(other.chain_folder().join("blocks/blk00000.dat").exists());
    let (_, err, code) = other.run(&["-reindex", "-stopatheight=440"]);
    assert_eq!((code, other.coins()), (0, (height, hash)), "{err}");
    assert!(other.log().contains("Wiping block index and chain state"));
}

/// As long as such a file exists, there is a warning at each start and in `info`, and `auto` does not use the kernels.
#[test]
fn a_signature_engine_that_was_wrong_is_remembered() {
    let place = Place::new("wrong");
    let chain = small_chain(&place);
    let best = lydian_curve::choose("auto").unwrap().engine.name();
    // On ARM, each start measures which of two is faster.
    let close = ["neon", "scalar"];
    let is_best = |name: &str| name == best || close.contains(&name) && close.contains(&best);
    let used = |text: &str| text.split("Using signature engine ").nth(1).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(place.import(&chain).2, 0);
    assert!(is_best(&used(&place.log())), "{}", place.log());
    let info = place.json(&["info"]);
    let engine = &info["signature_engine"];
    assert!(is_best(engine["kernel"].as_str().unwrap()) && engine["is_trusted"] == true, "{engine}");
    assert_eq!(
        (&engine["disagreements"], &info["disagreement_files"]),
        (&Value::from(0), &Value::from([""; 0].to_vec()))
    );

    let (first, second) = ("sigengine-disagreement-1.json", "sigengine-disagreement-12.json");
    for name in [second, first] {
        fs::write(place.chain_folder().join("blocks/index").join(name), "{}").unwrap();
    }
    let (out, _, code) = place.run(&["info"]);
    assert_eq!(code, 0);
    let advice = "Run lydian -reindex -sigengine=reference once, then delete the sigengine-disagreement files in \
                  blocks/index.";
    assert!(
        out.contains(&format!("Warning: a signature engine was wrong ({first}, {second}).")) && out.contains(advice),
        "{out}"
    );
    assert_eq!(place.json(&["info"])["disagreement_files"], Value::from(vec![first, second]));
    let (out, err, code) = place.run(&["-stopafterblockimport", "-sigengine=auto"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("[warning] A signature engine was wrong") && out.contains(advice), "{out}");
    assert!(out.contains("Using signature engine reference"), "{out}");
    if best != "reference" {
        let (out, _, _) = place.run(&["-stopafterblockimport", &format!("-sigengine={best}")]);
        assert!(
            out.contains(&format!("Using signature engine {best}")) && out.contains("was wrong"),
            "an engine named explicitly is used: {out}"
        );
    }
    let (out, _, code) = place.run(&["-reindex", "-sigengine=reference", "-stopafterblockimport"]);
    assert!(code == 0 && out.contains("A signature engine was wrong"), "the program deletes nothing: {out}");
    for name in [first, second] {
        fs::remove_file(place.chain_folder().join("blocks/index").join(name)).unwrap();
    }
    let (out, _, code) = place.run(&["-stopafterblockimport"]);
    assert!(code == 0 && is_best(&used(&out)) && !out.contains("was wrong"), "{out}");
}

#[test]
fn documents_have_the_fields_that_are_documented() {
    let place = Place::new("documents");
    assert_eq!(place.import(&small_chain(&place)).2, 0);
    // With an index and a second opinion, whose fields are documented too.
    let options = ["-coinstatsindex", "-secondopinion", "-test=secondopinion_lies", "-stopafterblockimport"];
    let (out, _, code) = place.run(&options);
    assert_eq!(code, 0, "{out}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/info-json.md");
    let page = fs::read_to_string(page).unwrap();
    let mut documented = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cell = line.split('|').nth(1).unwrap();
        documented.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    documented.insert("stage".to_owned());
    let mut written = BTreeSet::new();
    for document in [place.json(&["info"]), place.json(&["utxohash"])] {
        keys(&document, &mut written);
    }
    assert_eq!(documented, written);
}

#[test]
fn a_node_is_stopped_by_signals_and_goes_on_where_it_was() {
    let place = Place::new("signals");
    let import = ["import", MIX.to_str().unwrap(), "-dbcache=4", "-par=1"];
    for (signal, height) in [(Signal::INT, "height=100 "), (Signal::TERM, "height=435 ")] {
        let node = place.start(&import, height);
        node.signal(signal);
        assert_eq!(node.wait(), Some(0));
        assert!(place.log().contains("Shutdown requested. Exiting.") && place.log().contains("Shutdown done"));
        let durable = place.json(&["info"])["durable_height"].as_u64().unwrap();
        assert!(durable >= 100, "what was validated is kept: {durable}");
    }
    // The second run may have ended before it received the signal; from the beginning there is something to kill.
    let again = [&import[..], &["-reindex-chainstate"]].concat();
    let is_killed = |arguments: &[&str], height: &str| {
        let node = place.start(arguments, height);
        node.signal(Signal::KILL);
        node.wait().is_none()
    };
    // On a busy machine a run may have done its work when the signal comes; then all of it is done again.
    let are_killed = |_| {
        is_killed(&again, "height=437 ")
            && place.json(&["info"])["durable_height"].as_u64() < Some(438)
            && is_killed(&import, "height=438 ")
    };
    assert!((0..10).any(are_killed), "it always ends before the signal");
    let (_, err, code) = place.import(&MIX);
    assert_eq!(code, 0, "{err}");
    let undisturbed = Place::new("undisturbed");
    assert_eq!(undisturbed.import(&MIX).2, 0);
    assert_eq!(place.coins(), undisturbed.coins());
}

#[test]
fn a_node_stops_while_it_reads_endless_files() {
    let place = Place::new("endless");
    let blocks = place.directory.join("blocks");
    fs::create_dir(&blocks).unwrap();
    // Zeros that take no space on the disk and minutes to read.
    fs::File::create(blocks.join("blk00000.dat")).unwrap().set_len(1 << 40).unwrap();
    let node = place.start(&["import", blocks.to_str().unwrap()], "Importing 1 block files");
    node.signal(Signal::TERM);
    assert_eq!(node.wait(), Some(0));
    assert!(place.log().contains("Shutdown done") && !place.chain_folder().join("bitcoind.pid").exists());
    let small = small_chain(&place);
    let (_, err, code) = place.import(&small);
    assert_eq!((code, place.coins().0), (0, 50), "{err}");
}

#[test]
fn a_running_node_holds_its_directory() {
    let place = Place::new("running");
    let (started, stopped) = (place.directory.join("started"), place.directory.join("stopped"));
    let (startup, shutdown) =
        (format!("-startupnotify=touch {}", started.display()), format!("-shutdownnotify=touch {}", stopped.display()));
    let node = place.start(&[&startup, &shutdown, "-debug"], "waiting for a signal");
    let pid = fs::read_to_string(place.chain_folder().join("bitcoind.pid")).unwrap();
    assert_eq!(pid.trim().parse::<u32>().unwrap(), node.0.id());
    for arguments in [&[][..], &["import", "."]] {
        let (_, err, code) = place.run(arguments);
        assert_eq!(code, if arguments.is_empty() { 1 } else { 3 }, "the daemon has Core's codes");
        let expected = format!(
            "Error: Cannot obtain a lock on directory {}. Lydian is probably already running.\n",
            place.chain_folder().display()
        );
        assert_eq!(err, expected);
    }
    // These only read.
    assert_eq!(place.json(&["info"])["is_running"], Value::from(true));
    assert_eq!(place.json(&["utxohash"])["height"], Value::from(0));

    // The command of the start runs beside the node.
    let begin = Instant::now();
    while !started.exists() {
        assert!(begin.elapsed() < STOP_MAX, "the command runs");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!stopped.exists());
    // A log that was moved away is reopened for the next line, which is that of the stop. Nothing shows that the node
    // has received the first signal: it has even if the machine stops for a moment.
    let (log, moved) = (place.chain_folder().join("debug.log"), place.directory.join("moved.log"));
    fs::rename(&log, &moved).unwrap();
    node.signal(Signal::HUP);
    std::thread::sleep(Duration::from_secs(5));
    node.signal(Signal::TERM);
    assert_eq!(node.wait(), Some(0));
    assert!(fs::read_to_string(&moved).unwrap().contains("waiting for a signal"));
    assert!(place.log().contains("Shutdown requested") && !place.log().contains("waiting for a signal"));
    assert!(stopped.exists() && !place.chain_folder().join("bitcoind.pid").exists());
    for path in ["", "wallets", "blocks", "chainstate", "debug.log", "blocks/owner", "chainstate/status.json"] {
        let mode = fs::metadata(place.chain_folder().join(path)).unwrap().mode();
        assert_eq!(mode & 0o077, 0, "{path} is its owner's alone");
    }
}

#[test]
fn a_daemon_leaves_the_terminal_and_reports_whether_it_started() {
    let place = Place::new("daemon");
    let (out, err, code) = place.run(&["-daemonwait"]);
    assert_eq!((&out[..], &err[..], code), ("Lydian starting\n", "", 0));
    let pid: i32 = fs::read_to_string(place.chain_folder().join("bitcoind.pid")).unwrap().trim().parse().unwrap();
    let (out, err, code) = place.run(&["-daemonwait"]);
    // Core probes the lock before it leaves the terminal.
    assert_eq!((&out[..], code), ("", 1));
    assert!(err.starts_with("Error: Cannot obtain a lock on directory") && err.lines().count() == 1, "{err}");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_owned();
    assert_eq!(session, pid.to_string(), "a session of its own");
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    let start = Instant::now();
    while place.chain_folder().join("bitcoind.pid").exists() {
        assert!(start.elapsed() < STOP_MAX, "the daemon does not stop");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (out, _, code) = place.run(&["-daemon", "-stopafterblockimport"]);
    assert_eq!((&out[..], code), ("Lydian starting\n", 0));
}

#[test]
fn directories_that_are_not_ours_are_left_alone() {
    let place = Place::new("foreign");
    let folder = place.chain_folder();
    let refuse = |expected: &str| {
        let commands = [
            (&["-stopafterblockimport"][..], 1),
            (&["-reindex"], 1),
            (&["import", "."], 3),
            (&["utxohash"], 3),
            (&["info"], 3),
        ];
        for (command, expected_code) in commands {
            let (_, err, code) = place.run(command);
            assert_eq!(code, expected_code, "{err}");
            assert!(err.contains(expected), "{err}");
        }
    };
    for (name, text) in [
        ("chainstate/CURRENT", "MANIFEST-000001\n"),
        ("blocks/index/000003.log", ""),
        ("blocks/rev00000.dat", "x"),
        ("debug.log", "x"),
        ("wallets/one/wallet.dat", "x"),
    ] {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        refuse("was not written by Lydian (it holds ");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing was written");
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(folder.join("blocks")).unwrap();
    for (text, expected) in [
        ("lydian 1\nchain signet\n", "belongs to the chain signet, not to regtest: choose another -datadir"),
        ("lydian 2\nchain regtest\n", "has format 2, which a newer release of Lydian reads; this one"),
        ("", "file of a directory of Lydian; if the directory is Lydian's, delete the file and start again"),
    ] {
        for name in ["version", "blocks/owner"] {
            fs::write(folder.join(name), text).unwrap();
            refuse(expected);
            fs::remove_file(folder.join(name)).unwrap();
        }
    }
    assert_eq!(place.run(&["-stopafterblockimport"]).2, 0);
    for name in ["blocks/owner", "chainstate/owner"] {
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), "lydian 1\nchain regtest\n");
    }
}

/// Tools look into the data directory of bitcoind, and users tidy it: there are no names but Core's.
#[test]
fn a_new_data_directory_has_the_names_of_cores() {
    let place = Place::new("names");
    fs::remove_dir_all(place.data()).unwrap();
    let arguments = ["-stopafterblockimport", &format!("-pid={}", place.directory.join("x.pid").display())];
    let default = ["-regtest", "-server=0", "-listen=0", "-noconnect"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
    let output = command.env("HOME", &place.directory).args(default).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let base = place.directory.join(".lydian");
    let names = |folder: &Path| -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&base), ["regtest", "wallets"]);
    let known = [
        ".lock",
        "banlist.json",
        "blocks",
        "chainstate",
        "debug.log",
        "fee_estimates.dat",
        "peers.dat",
        "settings.json",
        "wallets",
    ];
    let found = names(&base.join("regtest"));
    assert!(found.iter().all(|name| known.contains(&name.as_str())), "{found:?}");
    for name in [".lock", "blocks", "chainstate", "debug.log", "wallets"] {
        assert!(found.iter().any(|found| found == name), "{name} is not in {found:?}");
    }
    assert_eq!(names(&base.join("wallets")), [""; 0]);
    assert_eq!(names(&base.join("regtest/wallets")), [""; 0]);
}

/// The data directory of Lydian before 0.1.0 had four names of its own. It is recognized by one of them, and then the
/// files are moved; an interrupted move is resumed.
#[test]
fn an_older_data_directory_is_taken_over() {
    let place = Place::new("older");
    assert_eq!(place.import(&small_chain(&place)).2, 0);
    let folder = place.chain_folder();
    let (case, coins) = ("sigengine-disagreement-3.json", place.coins());
    for is_interrupted in [false, true] {
        for (new, old) in [("chainstate/status.json", "status.json"), ("blocks/imported", "imported")] {
            fs::rename(folder.join(new), folder.join(old)).unwrap();
        }
        fs::remove_file(folder.join("blocks/owner")).unwrap();
        if !is_interrupted {
            fs::remove_file(folder.join("chainstate/owner")).unwrap();
        }
        fs::write(folder.join(case), "{}").unwrap();
        fs::write(folder.join("lydian.pid"), "1\n").unwrap();
        fs::write(folder.join("version"), "lydian 1\nchain regtest\n").unwrap();
        assert_eq!(place.json(&["info"])["height"], 50, "it is read where it is");
        assert!(folder.join("version").exists());
        assert_eq!(place.coins(), coins);
        for name in ["version", "status.json", "imported", "lydian.pid", case] {
            assert!(!folder.join(name).exists(), "{name}");
        }
        for name in ["blocks/owner", "chainstate/owner", "chainstate/status.json", "blocks/imported"] {
            assert!(folder.join(name).exists(), "{name}");
        }
        fs::remove_file(folder.join("blocks/index").join(case)).unwrap();
        let (_, err, code) = place.run(&["-reindex", "-stopafterblockimport"]);
        assert_eq!((code, place.coins()), (0, coins.clone()), "what was imported in place is known: {err}");
    }
}

/// Regression test: only `flock` was taken, which Bitcoin Core does not check, and no lock in `blocks` below the data
/// directory.
#[test]
fn locks_of_bitcoin_core_count() {
    let place = Place::new("locks");
    assert_eq!(place.run(&["-stopafterblockimport"]).2, 0);
    for directory in [place.chain_folder(), place.chain_folder().join("blocks")] {
        let file = fs::OpenOptions::new().read(true).write(true).open(directory.join(".lock")).unwrap();
        rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        let (_, err, code) = place.run(&["-stopafterblockimport"]);
        assert_ne!(code, 0);
        assert!(err.contains(&format!("Cannot obtain a lock on directory {}", directory.display())), "{err}");
        drop(file);
        assert_eq!(place.run(&["-stopafterblockimport"]).2, 0);
    }
}

#[test]
fn an_invalid_block_ends_the_chain_below_it() {
    let place = Place::new("invalid");
    let folder = place.directory.join("chain");
    let (mut writer, mut maker) = (BlockWriter::new(&folder, "blk").unwrap(), Maker::new());
    writer.write(&lydian_chains::assemble::regtest_genesis()).unwrap();
    maker.grow(5, |_, block| writer.write(&block.encode()).map(|_| ())).unwrap();
    let mut block = maker.block(Vec::new());
    block.txs[0].outputs[0].value.0 = 50 * Amount::COIN.0 + 1;
    seal(&mut block);
    let hash = block.header.hash().to_string();
    writer.write(&block.encode()).unwrap();
    drop(writer);
    let (out, err, code) = place.import(&folder);
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.contains(&format!("INVALID: block {hash} breaks a rule: bad-cb-amount")), "{err}");
    assert!(out.contains("at height 5, the best valid chain"), "{out}");
    assert!(place.log().contains(&format!("[error] ConnectTip: ConnectBlock {hash} failed, bad-cb-amount")));
    let (_, err, code) = place.import(&folder);
    assert_eq!(code, 1, "known by now: {err}");
    assert_eq!(place.coins().0, 5);
    // The node itself keeps running, as Core does.
    assert_eq!(place.start(&[], "waiting for a signal").0.try_wait().unwrap(), None);
}

#[test]
fn damaged_and_missing_files_are_named() {
    let place = Place::new("damaged");
    let chain = small_chain(&place);
    let file = chain.join("blk00000.dat");
    let whole = fs::read(&file).unwrap();
    let mut bytes = whole.clone();
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let (out, err, code) = place.import(&chain);
    assert_eq!(code, 4, "{out}{err}");
    assert!(err.contains("cannot be read and counts as missing") && out.contains("at height 49"), "{out}{err}");
    fs::write(&file, &whole).unwrap();
    let (out, err, code) = place.import(&chain);
    assert_eq!((code, place.coins().0), (0, 50), "{out}{err}");

    let mut other = whole[..8 + 285].to_vec();
    other[..4].copy_from_slice(&[0xf9, 0xbe, 0xb4, 0xd9]);
    fs::create_dir(place.directory.join("other")).unwrap();
    fs::write(place.directory.join("other/blk00000.dat"), other).unwrap();
    let (_, err, code) = place.run(&["import", "other"]);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("of another chain: main"), "{err}");

    for (path, expected, code) in [
        ("nowhere", "nowhere: there is no such file or directory", 2),
        ("data/regtest/chainstate", "no block files", 2),
    ] {
        let (_, err, found) = place.run(&["import", path]);
        assert_eq!(found, code, "{err}");
        assert!(err.to_lowercase().contains(expected), "{err}");
    }
    fs::remove_file(&file).unwrap();
    let (out, _, code) = place.run(&["-reindex-chainstate", "-stopafterblockimport"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("[error] block") && out.contains("blk00000.dat: there is no such file"), "{out}");
    let (out, _, code) = place.run(&["-reindex", "-stopafterblockimport"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("blocks imported from there are missing now"), "{out}");
}

/// Regression test. A chain whose tip is more than two hours ahead of the clock was accepted. Now the node refuses to
/// start, in Core's words; a correct clock helps, and so does `-reindex` or `-reindex-chainstate`.
#[test]
fn a_tip_from_the_future_is_refused() {
    let place = Place::new("future");
    let chain = small_chain(&place);
    assert_eq!(place.import(&chain).2, 0);
    let time = place.json(&["info"])["time"].as_u64().unwrap();
    let start = |seconds_behind: u64, option: &str| {
        let mocked = format!("-mocktime={}", time - seconds_behind);
        place.run(&[&mocked, option, "-stopafterblockimport", "-printtoconsole=0"])
    };
    let (out, err, code) = start(7_201, "-checkblocks=1");
    let words = "The block database contains a block which appears to be from the future. This may be due to your computer's date and time being set \
                 incorrectly. Only rebuild the block database if you are sure that your computer's date and time are correct.\nPlease restart with \
                 -reindex or -reindex-chainstate to recover.";
    assert_eq!((&out[..], &err[..], code), ("", &format!("Error: {words}\n")[..], 1));
    assert!(place.log().contains(words.split('\n').next().unwrap()));
    assert_eq!((start(7_200, "-checkblocks=1").2, start(7_201, "-reindex-chainstate").2), (0, 0));
    assert_eq!((start(7_201, "-checkblocks=1").2, place.coins().0), (1, 50), "the time counts again");
}

#[test]
fn options_reach_the_node_from_line_and_file() {
    let place = Place::new("options");
    let chain = small_chain(&place);
    let config = format!("[regtest]\nstopatheight=10\nloadblock={}\nfoo=1\n", chain.join("blk00000.dat").display());
    fs::write(place.data().join("lydian.conf"), config).unwrap();
    let (out, err, code) = place.run(&[]);
    assert_eq!((code, place.coins().0), (0, 10), "{err}");
    assert_eq!(err, "", "as Core's");
    assert!(place.log().contains("[warning] Ignoring unknown configuration value regtest.foo\n"));
    assert!(out.lines().any(|line| line.contains("UpdateTip: new best=") && line.contains(" height=10 ")), "{out}");
    assert!(place.log().contains("Config file arg: [regtest] stopatheight=\"10\""));
    let (out, _, code) =
        place.run(&["-stopatheight=20", "-printtoconsole=0", "-logtimemicros", "-debug=bench", "-pid=x.pid"]);
    assert_eq!((&out[..], code, place.coins().0), ("", 0, 20));
    let log = place.log();
    let line = log.lines().find(|line| line.contains(" height=20 ")).unwrap();
    assert_eq!(line.split(' ').next().unwrap().len(), "2026-11-20T12:00:00.000000Z".len());
    assert!(log.contains("[bench] stage"));
    let (out, err, code) = place.run(&["-stopatheight=20", "-nodebuglogfile", "-noconf", "-loadblock=none"]);
    assert!(code == 0 && out.contains("[warning] Could not open blocks file "), "as Core: {out}{err}");
    for (arguments, expected) in [
        (&["-dbcahe=1"][..], "Error: Error parsing command line arguments: Invalid parameter -dbcahe=1\n"),
        (&["-prune=1000", "-reindex-chainstate"], "Error: Prune mode is incompatible with -reindex-chainstate."),
        (&["imprt"], "Error: Command line contains unexpected token 'imprt', see lydian -h for a list of options.\n"),
        (&["-blocksdir=none"], "Error: Specified blocks directory \"none\" does not exist.\n"),
    ] {
        let (_, err, code) = place.run(arguments);
        assert_eq!(code, 1, "{err}");
        assert!(err.starts_with(expected), "{err}");
    }
    assert_eq!(place.run(&["info", "-dbcahe=1"]).2, 2, "commands keep codes of their own");
    for (arguments, expected) in [
        (&["-help"][..], "Common options:"),
        (&["-?"], "-dbcache=<n>"),
        (&["-help-debug"], "-checklevel=<n>"),
        (&["import", "-h"], "lydian import DIR"),
        (&["-version"], "Lydian daemon version v"),
    ] {
        let (out, err, code) = place.run(arguments);
        assert_eq!((&err[..], code), ("", 0));
        assert!(out.contains(expected), "{out}");
    }
}
