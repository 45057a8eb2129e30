//! The disk is full under a folder of a node: a file system in memory, which only the node sees, has room for a part of
//! it. Under the indexes of a running node, which ends although it could go on without an index; and under the block
//! index at the first start of a newer release, which raises its format. With more room the node continues.

use crate::datadirs::{archives, unpack};
use crate::indexes::{Chain, compare, options, settle, verify};
use crate::peers::{copy, fresh};
use crate::process::{lydian, utxohash, words};
use lydian_chain::INDEX_VERSION;
use lydian_disk::record::{Records, encode_record};
use lydian_oracle::{Scratch, copy_folder};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Makes the file system at `$1/regtest/$2` with `$3` bytes, moves what is there into it, runs the node, and moves it
/// back.
const SCRIPT: &str = "set -e
folder=$1 part=$1/regtest/$2 size=$3
shift 3
cp -a \"$part\" \"$folder/saved\"
mount -t tmpfs -o \"size=$size\" none \"$part\"
cp -a \"$folder/saved/.\" \"$part\"
code=0
\"$0\" -regtest \"-datadir=$folder\" \"$@\" || code=$?
rm -rf \"$folder/saved\"
cp -a \"$part\" \"$folder/saved\"
umount \"$part\"
rm -rf \"$part\"
mv \"$folder/saved\" \"$part\"
exit $code";

/// The exit code of a daemon that fails, as in Core.
const FAILURE: i32 = 1;

/// Size of a page of memory, in which the file system counts.
const PAGE: u64 = 4_096;

/// Runs a command with a file system of its own.
fn with_own_files() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user"]).stdin(Stdio::null());
    command
}

/// Runs a node that ends by itself, with room for so many bytes in a folder.
fn run(datadir: &Path, part: &str, room: u64, more: &[&str]) -> Output {
    let options = words(&["-par=2", "-printtoconsole=0", "-server=0", "-listen=0", "-noconnect"]);
    let indexes: Vec<String> = crate::indexes::options().into_iter().filter(|one| one != "-indexrequired").collect();
    let mut command = with_own_files();
    command.args(["timeout", "-s", "KILL", "120", "sh", "-c", SCRIPT, env!("CARGO_BIN_EXE_lydian")]);
    command.arg(datadir).arg(part).arg(room.to_string()).args(options).args(indexes).args(more).output().unwrap()
}

/// Whether a program may have file systems of its own here.
fn may_mount() -> bool {
    let can_mount = with_own_files().args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
    let may = can_mount.is_ok_and(|output| output.status.success());
    if !may {
        eprintln!("left out: this machine lets no program have a file system of its own");
    }
    may
}

/// The end of the sentence about a full disk.
const ADVICE: &str = "no space is left on the file system; free some space and start again: everything durable is kept";

fn pages(bytes: &[u8]) -> u64 {
    (bytes.len() as u64).div_ceil(PAGE)
}

/// Every file of a folder without folders.
#[allow(clippy::disallowed_methods, reason = "a test reads its own files")]
fn files_in(folder: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn a_full_disk_under_the_indexes_ends_the_node() {
    if !may_mount() {
        return;
    }
    let scratch = Scratch::new("crash-full");
    let place = |name: &str| scratch.path().join(name);
    let mut chain = Chain::new();
    let height = 300;
    chain.grow(height, 0);
    let empty = fresh(&place("empty"));
    let output = lydian(&empty, &[options(), words(&["-stopafterblockimport"])].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let expected = settle(&chain.node(&empty, scratch.path(), "undisturbed", &options()), height);
    let pages: u64 = expected.values().map(|bytes| pages(bytes)).sum();

    // The chain without indexes, and indexes without a block but the first.
    let nothing = fresh(&place("nothing"));
    let datadir = chain.node(&nothing, scratch.path(), "node", &[]);
    copy_folder(&empty.join("regtest/indexes"), &datadir.join("regtest/indexes")).unwrap();
    let begun = copy(&datadir, &place("begun"));
    // With more room each time.
    for room in [pages / 3, pages * 2 / 3] {
        let output = run(&datadir, "indexes", room * PAGE, &[]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(FAILURE), "{room} of {pages} pages: {text}");
        assert!(
            text.contains("regtest/indexes/") && text.trim_end().ends_with(ADVICE),
            "{room} of {pages} pages: {text}"
        );
    }
    verify(&datadir, true);
    compare(&settle(&datadir, height), &expected, false);
    // An index that cannot even be created.
    fs::remove_dir_all(begun.join("regtest/indexes")).unwrap();
    fs::create_dir(begun.join("regtest/indexes")).unwrap();
    let output = run(&begun, "indexes", PAGE, &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(FAILURE) && text.contains("no space is left"), "{text}");
}

/// Where the number of its format is in the log of the block index, behind the frame of a record of 12 bytes.
const NUMBER_AT: usize = 12;

/// Gives a log of the block index the format of the release before, which is the same but for the number.
fn make_older(log: &[u8]) -> Vec<u8> {
    let mut head = Records::read(log, 0).next().unwrap().unwrap().to_vec();
    assert_eq!(head[NUMBER_AT..NUMBER_AT + 4], INDEX_VERSION.to_le_bytes());
    head[NUMBER_AT..NUMBER_AT + 4].copy_from_slice(&(INDEX_VERSION - 1).to_le_bytes());
    let mut changed = Vec::new();
    encode_record(&head, 0, &mut changed);
    changed.extend_from_slice(&log[changed.len()..]);
    changed
}

/// The directory of a release whose block index has the number before: the first start writes the index anew with the
/// current number. If the disk has no room for that, one sentence says so, the index is as it was, and nothing else is
/// there.
///
/// checklist: 93
#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads and writes its own files")]
fn a_full_disk_while_a_format_is_raised_leaves_the_old_one() {
    if !may_mount() {
        return;
    }
    let scratch = Scratch::new("crash-full-upgrade");
    let archives = archives();
    let (archive, coins) = archives.last().unwrap();
    let datadir = unpack(archive, &scratch.path().join("datadir"));
    let folder = datadir.join("regtest/blocks/index");
    let log = folder.join("index.log");
    let older = make_older(&fs::read(&log).unwrap());
    fs::write(&log, &older).unwrap();
    let before = files_in(&folder);
    let used: u64 = before.values().map(|bytes| pages(bytes)).sum();
    // The new file is written beside the old one.
    for free in [0, 1, pages(&older) / 2, pages(&older) - 1] {
        let output = run(&datadir, "blocks/index", (used + free) * PAGE, &["-stopafterblockimport"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(FAILURE), "{free} free pages: {text}");
        assert!(text.contains("blocks/index/index.log") && text.trim_end().ends_with(ADVICE), "{text}");
        assert_eq!(text.trim_end().lines().count(), 1, "{text}");
        assert!(files_in(&folder) == before, "{free} free pages: {:?}", files_in(&folder).keys());
    }
    let room = (used + 2 * pages(&older) + 1) * PAGE;
    let output = run(&datadir, "blocks/index", room, &["-stopafterblockimport"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let raised = fs::read(&log).unwrap();
    let head = Records::read(&raised, 0).next().unwrap().unwrap().to_vec();
    assert_eq!(head[NUMBER_AT..NUMBER_AT + 4], INDEX_VERSION.to_le_bytes());
    assert_eq!(utxohash(&datadir), fs::read_to_string(coins).unwrap());
    verify(&datadir, false);
}
