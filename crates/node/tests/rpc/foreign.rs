//! Lydian on the directories of Bitcoin Core, while Core runs and after it was stopped: it reads the blocks and changes
//! nothing. Also the reverse: Core on the directories of Lydian.

use crate::server::Server;
use lydian_oracle::{Scratch, build, or_skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An address without a known key.
const ADDRESS: &str = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";

/// Blocks of the chain: with 64 KiB per file, two files.
const BLOCKS: u32 = 320;

/// Every file below a directory, with its bytes.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    found
}

/// The paths that differ between two snapshots.
fn changes(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<String> {
    let names = before.keys().chain(after.keys());
    let changed = names.filter(|path| before.get(*path) != after.get(*path));
    changed.map(|path| path.display().to_string()).collect()
}

fn lydian(folder: &Path, arguments: &[&str]) -> Output {
    let options = ["-regtest", "-server=0", "-listen=0", "-noconnect", "-printtoconsole=0"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
    command.env("HOME", folder).args(options).args(arguments).output().unwrap()
}

/// Runs everything that could write into a directory of Core's; all of it must be refused.
fn refuses(core: &Path, scratch: &Path) {
    let own = scratch.join("refused");
    fs::create_dir_all(&own).unwrap();
    let datadir = format!("-datadir={}", core.display());
    let (blocksdir, own) = (format!("-blocksdir={}", core.display()), format!("-datadir={}", own.display()));
    for place in [&[datadir.as_str()][..], &[own.as_str(), blocksdir.as_str()], &[datadir.as_str(), blocksdir.as_str()]]
    {
        for task in [
            &["-stopafterblockimport"][..],
            &["-reindex", "-stopafterblockimport"],
            &["-reindex-chainstate", "-stopafterblockimport"],
            &["-prune=550", "-reindex", "-stopafterblockimport"],
            &["-daemonwait"],
            &["utxohash"],
            &["info"],
            &["import", scratch.to_str().unwrap()],
        ] {
            let arguments = [place, task].concat();
            let output = lydian(scratch, &arguments);
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{arguments:?}");
            let is_told = err.contains("was not written by Lydian (it holds ")
                && err.contains("is left as it is: choose another");
            // `info` only looks at a data directory, and there is none yet.
            assert!(
                is_told || (task == ["info"] && err.contains("there is no data directory")),
                "{arguments:?}: {err}"
            );
        }
    }
}

/// The blocks are read in place, and the coins are Core's.
fn reads(core: &Server, scratch: &Path, name: &str, muhash: &Value) {
    let own = scratch.join(name);
    fs::create_dir_all(&own).unwrap();
    let (datadir, blocks) = (format!("-datadir={}", own.display()), core.folder.join("regtest/blocks"));
    let output = lydian(scratch, &[&datadir, "import", blocks.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let output = lydian(scratch, &[&datadir, "utxohash", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["height"], &found["muhash"]), (&Value::from(BLOCKS), muhash), "{name}");
    let verify = [blocks.join("blk00000.dat"), blocks.join("blk00001.dat")];
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
    let output = command.arg("verify").args(verify).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // And one file with -loadblock.
    let load = format!("-loadblock={}", blocks.join("blk00000.dat").display());
    let output = lydian(scratch, &[&datadir, "-reindex", &load, "-stopafterblockimport"]);
    assert!(output.status.success(), "{output:?}");
    fs::remove_dir_all(own).unwrap();
}

/// Regression test: `lydian -blocksdir=DIR` on the directory of Bitcoin Core, or a data directory without
/// `chainstate/CURRENT`, overwrote and deleted Core's undo files, even while Core ran, appended to its last block file,
/// and exited with 0.
#[test]
fn the_directories_of_core_are_read_and_never_written() {
    let Some(built) = or_skip("the_directories_of_core_are_read_and_never_written", build::locate()) else { return };
    let scratch = Scratch::new("foreign");
    let mut core = Server::core(&built.bitcoind, "foreign", &["-fastprune"]);
    core.result("generatetoaddress", &format!("[{BLOCKS}, \"{ADDRESS}\"]"));
    let muhash = core.result("gettxoutsetinfo", "[\"muhash\"]")["muhash"].clone();
    assert!(core.folder.join("regtest/blocks/rev00001.dat").exists());

    // While Core runs, which writes its own log meanwhile.
    let blocks = core.folder.join("regtest/blocks");
    let before = snapshot(&blocks);
    refuses(&core.folder, scratch.path());
    reads(&core, scratch.path(), "running", &muhash);
    assert_eq!(changes(&before, &snapshot(&blocks)), [""; 0]);
    assert_eq!(core.result("verifychain", "[4, 0]"), Value::Bool(true));

    // After it was stopped, not a byte may change.
    core.result("stop", "[]");
    assert_eq!(core.wait(), Some(0));
    let before = snapshot(&core.folder);
    refuses(&core.folder, scratch.path());
    reads(&core, scratch.path(), "stopped", &muhash);
    assert_eq!(changes(&before, &snapshot(&core.folder)), [""; 0]);
    // Nor when the files that mark a directory as Core's are missing.
    let chain = core.folder.join("regtest");
    for missing in ["chainstate/CURRENT", "chainstate", "blocks/index"] {
        let aside = scratch.path().join("aside");
        fs::rename(chain.join(missing), &aside).unwrap();
        let before = snapshot(&core.folder);
        refuses(&core.folder, scratch.path());
        assert_eq!(changes(&before, &snapshot(&core.folder)), [""; 0], "without {missing}");
        fs::rename(aside, chain.join(missing)).unwrap();
    }
    core.start_again(&["-fastprune"]);
    assert_eq!(core.result("verifychain", "[4, 0]"), Value::Bool(true));
    assert_eq!(core.result("gettxoutsetinfo", "[\"muhash\"]")["muhash"], muhash);
}

/// The way back: Core reads our block files and our key with `-reindex`, and has the same coins.
#[test]
fn blocks_move_back_to_core() {
    let Some(built) = or_skip("blocks_move_back_to_core", build::locate()) else { return };
    let mut node = Server::lydian("moving-back", &["-fastprune"]);
    node.result("generatetoaddress", &format!("[{BLOCKS}, \"{ADDRESS}\"]"));
    let info = node.result("gettxoutsetinfo", "[\"muhash\"]");
    node.result("stop", "[]");
    assert_eq!(node.wait(), Some(0));

    let mut core = Server::core(&built.bitcoind, "moving-back", &[]);
    core.result("stop", "[]");
    assert_eq!(core.wait(), Some(0));
    let (ours, cores) = (node.folder.join("regtest"), core.folder.join("regtest"));
    for directory in ["blocks", "chainstate"] {
        fs::remove_dir_all(cores.join(directory)).unwrap();
    }
    fs::create_dir_all(cores.join("blocks")).unwrap();
    let mut copied = Vec::new();
    for path in snapshot(&ours.join("blocks")).into_keys() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "xor.dat" || lydian_chain::is_block_file_name(&path) {
            fs::copy(&path, cores.join("blocks").join(&name)).unwrap();
            copied.push(name);
        }
    }
    copied.sort();
    assert_eq!(copied, ["blk00000.dat", "blk00001.dat", "xor.dat"]);
    assert_ne!(fs::read(ours.join("blocks/xor.dat")).unwrap(), [0; 8], "a key");
    core.start_again(&["-fastprune", "-reindex"]);
    for _ in 0..2_400 {
        if core.result("getblockcount", "[]") == BLOCKS {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let found = core.result("gettxoutsetinfo", "[\"muhash\"]");
    for field in ["height", "bestblock", "txouts", "muhash"] {
        assert_eq!(found[field], info[field], "{field}");
    }
}

/// Core starts neither on the data directory nor on the blocks of a running node of ours, and leaves both unchanged.
#[test]
fn core_is_kept_out_of_the_directories_of_a_running_node() {
    let Some(built) = or_skip("core_is_kept_out_of_the_directories_of_a_running_node", build::locate()) else { return };
    let scratch = Scratch::new("kept-out");
    let outside = scratch.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    let blocksdir = format!("-blocksdir={}", outside.display());
    let options: [&[&str]; 2] = [&[], &[blocksdir.as_str()]];
    for options in options {
        let mut node = Server::lydian("kept-out", options);
        let empty = scratch.path().join("core");
        let datadir = |folder: &Path| format!("-datadir={}", folder.display());
        let blocks = if options.is_empty() { node.folder.clone() } else { outside.clone() };
        for arguments in
            [vec![datadir(&node.folder)], vec![datadir(&empty), format!("-blocksdir={}", blocks.display())]]
        {
            let _ = fs::remove_dir_all(&empty);
            fs::create_dir_all(&empty).unwrap();
            let before = snapshot(&blocks.join("regtest/blocks"));
            let mut core = Command::new(&built.bitcoind);
            let output =
                core.args(["-regtest", "-listen=0", "-server=0", "-connect=0"]).args(&arguments).output().unwrap();
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(err.contains("Cannot obtain a lock on directory"), "{arguments:?}: {err}");
            assert_eq!(output.status.code(), Some(1));
            let mut changed = changes(&before, &snapshot(&blocks.join("regtest/blocks")));
            // Written by our node, some time after its start; Core has no files of these names.
            changed.retain(|path| !path.ends_with("/index/index.log"));
            assert_eq!(changed, [""; 0]);
        }
        node.result("stop", "[]");
        assert_eq!(node.wait(), Some(0));
    }
}

/// Regression test. The node kept block and undo files open, so that it answered from files that had been renamed or
/// deleted; Core opens them for each read. And without `blocks/index` the index was silently rebuilt, where Core stops
/// with an error.
#[test]
fn files_that_are_taken_away_are_missed_as_in_core() {
    let Some(built) = or_skip("files_that_are_taken_away_are_missed_as_in_core", build::locate()) else { return };
    let scratch = Scratch::new("taken-away");
    fs::create_dir_all(scratch.path()).unwrap();
    let options = ["-blocksxor=0"];
    let mut both = [Server::lydian("taken-away", &options), Server::core(&built.bitcoind, "taken-away", &options)];
    for hash in both[1].result("generatetoaddress", &format!("[5, \"{ADDRESS}\"]")).as_array().unwrap() {
        let block = both[1].result("getblock", &format!("[{hash}, 0]"));
        both[0].result("submitblock", &format!("[{block}]"));
    }
    let answers = |server: &Server| {
        let hash = server.result("getblockhash", "[3]");
        [0, 1, 2, 3].map(|verbosity| server.call("getblock", &format!("[{hash}, {verbosity}]")).body).join("\n")
    };
    assert_eq!(answers(&both[0]), answers(&both[1]));
    for name in ["rev00000.dat", "blk00000.dat"] {
        let aside = |server: &Server| {
            (server.folder.join("regtest/blocks").join(name), scratch.path().join(server.port.to_string()))
        };
        for server in &both {
            let (path, aside) = aside(server);
            fs::rename(path, aside).unwrap();
        }
        let found = answers(&both[0]);
        assert_eq!(found, answers(&both[1]), "{name}");
        assert!(found.contains("\"error\":{"), "{name}: {found}");
        for server in &both {
            let (path, aside) = aside(server);
            fs::rename(aside, path).unwrap();
        }
        assert_eq!(answers(&both[0]), answers(&both[1]));
        assert!(!answers(&both[0]).contains("\"error\":{"), "{name} was put back");
    }
    for server in &mut both {
        server.result("stop", "[]");
        assert_eq!(server.wait(), Some(0));
        fs::remove_dir_all(server.folder.join("regtest/blocks/index")).unwrap();
    }
    let start = |program: &Path, folder: &Path, more: &[&str]| {
        let datadir = format!("-datadir={}", folder.display());
        let mut command = Command::new(program);
        let options =
            ["-regtest", "-server=0", "-listen=0", "-connect=0", "-printtoconsole=0", "-stopafterblockimport"];
        command.arg(datadir).args(options).args(more).output().unwrap()
    };
    let programs = [Path::new(env!("CARGO_BIN_EXE_lydian")), &built.bitcoind];
    for (program, server) in programs.into_iter().zip(&both) {
        let output = start(program, &server.folder, &[]);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && err.contains("Error initializing block database"), "{err}");
        assert!(err.contains("lease restart with -reindex"), "{err}");
        let output = start(program, &server.folder, &["-reindex"]);
        assert!(output.status.success(), "{output:?}");
    }
}
