//! The disk is full under the indexes of a running node: a file system in memory, which only the node sees, has room
//! for a part of them. The node ends as for any full disk, although it could go on without an index, and with more room
//! it continues.

use crate::indexes::{Chain, compare, options, settle, verify};
use crate::peers::{copy, fresh};
use crate::process::{lydian, words};
use lydian_oracle::{Scratch, copy_folder};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Makes the file system at `$1/regtest/indexes` with `$2` bytes, moves the indexes into it, runs the node, and moves
/// them back.
const SCRIPT: &str = "set -e
folder=$1 size=$2
shift 2
indexes=$folder/regtest/indexes
cp -a \"$indexes\" \"$folder/saved\"
mount -t tmpfs -o \"size=$size\" none \"$indexes\"
cp -a \"$folder/saved/.\" \"$indexes\"
code=0
\"$0\" -regtest \"-datadir=$folder\" \"$@\" || code=$?
rm -rf \"$folder/saved\"
cp -a \"$indexes\" \"$folder/saved\"
umount \"$indexes\"
rm -rf \"$indexes\"
mv \"$folder/saved\" \"$indexes\"
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

/// Runs a node that ends by itself, with room for so many bytes of indexes.
fn run(datadir: &Path, room: u64) -> Output {
    let options = words(&["-par=2", "-printtoconsole=0", "-server=0", "-listen=0", "-noconnect"]);
    let indexes: Vec<String> = crate::indexes::options().into_iter().filter(|one| one != "-indexrequired").collect();
    let mut command = with_own_files();
    command.args(["timeout", "-s", "KILL", "120", "sh", "-c", SCRIPT, env!("CARGO_BIN_EXE_lydian")]);
    command.arg(datadir).arg(room.to_string()).args(options).args(indexes).output().unwrap()
}

#[test]
fn a_full_disk_under_the_indexes_ends_the_node() {
    let can_mount = with_own_files().args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
    if !can_mount.is_ok_and(|output| output.status.success()) {
        eprintln!("left out: this machine lets no program have a file system of its own");
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
    let pages: u64 = expected.values().map(|bytes| (bytes.len() as u64).div_ceil(PAGE)).sum();

    // The chain without indexes, and indexes without a block but the first.
    let nothing = fresh(&place("nothing"));
    let datadir = chain.node(&nothing, scratch.path(), "node", &[]);
    copy_folder(&empty.join("regtest/indexes"), &datadir.join("regtest/indexes")).unwrap();
    let begun = copy(&datadir, &place("begun"));
    // With more room each time.
    for room in [pages / 3, pages * 2 / 3] {
        let output = run(&datadir, room * PAGE);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(FAILURE), "{room} of {pages} pages: {text}");
        let end = "no space is left on the file system; free some space and start again: everything durable is kept";
        assert!(text.contains("regtest/indexes/") && text.trim_end().ends_with(end), "{room} of {pages} pages: {text}");
    }
    verify(&datadir, true);
    compare(&settle(&datadir, height), &expected, false);
    // An index that cannot even be created.
    fs::remove_dir_all(begun.join("regtest/indexes")).unwrap();
    fs::create_dir(begun.join("regtest/indexes")).unwrap();
    let output = run(&begun, PAGE);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(FAILURE) && text.contains("no space is left"), "{text}");
}
