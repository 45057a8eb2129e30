//! Faults of the machine, the disk, the directory and the settings.

use super::{Seen, after, doctor, in_shell, state, through};
use crate::{MIX, Place, small_chain};
use lydian_disk::{Disk, RealDisk};
use lydian_oracle::free_port;
use rustix::process::getuid;
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether a program may have file systems of its own here.
#[allow(clippy::print_stderr, reason = "a test says what is missing")]
fn may_mount(test: &str) -> bool {
    let output =
        Command::new("unshare").args(["--mount", "--map-root-user", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    let may = output.is_ok_and(|output| output.status.success());
    if !may {
        eprintln!("not run: {test}: this machine lets no program have a file system of its own");
    }
    may
}

#[test]
fn a_full_file_system_in_memory() {
    if !may_mount("a_full_file_system_in_memory") {
        return;
    }
    let place = Place::new("doctor-full");
    let data = place.data().display().to_string();
    let with = |size: &str| {
        Seen::of(after(&place, &format!("mount -t tmpfs -o size={size} none '{data}' &&"), &[]).output().unwrap())
    };
    let seen = with("40m");
    seen.expect("free-space", "bad", "the node does not start with less than 50 MB");
    seen.expect("file-system", "warning", "tmpfs: everything in it is lost");
    assert_eq!(seen.code, 2);
    with("200m").expect("free-space", "ok", "");
}

#[test]
fn a_file_system_that_is_mounted_read_only() {
    if !may_mount("a_file_system_that_is_mounted_read_only") {
        return;
    }
    let place = Place::new("doctor-read-only");
    assert_eq!(place.import(&small_chain(&place)).2, 0);
    let data = place.data().display().to_string();
    let commands = format!("mount --bind '{data}' '{data}' && mount -o remount,bind,ro '{data}' &&");
    let seen = Seen::of(after(&place, &commands, &[]).output().unwrap());
    seen.expect("permissions", "bad", "is on a file system that is mounted read-only");
    let output = in_shell(&place, &commands, &["-stopafterblockimport"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let words = format!("Error: Cannot write to directory '{}'; check permissions.", place.chain_folder().display());
    assert_eq!((output.status.code(), text.trim_end()), (Some(1), &words[..]));
    doctor(&place, &[]).expect("permissions", "ok", "");
}

#[test]
#[allow(clippy::print_stderr, reason = "a test says what is missing")]
fn a_file_of_another_user() {
    if !getuid().is_root() {
        return;
    }
    let place = Place::new("doctor-foreign");
    assert_eq!(place.import(&small_chain(&place)).2, 0);
    let file = place.chain_folder().join("chainstate/manifest");
    match std::os::unix::fs::chown(&file, Some(12_345), None) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            eprintln!("not run: a_file_of_another_user: this user namespace has no other user");
            return;
        }
        result => result.unwrap(),
    }
    doctor(&place, &[]).expect("permissions", "bad", "chainstate/manifest belongs to user 12345, not to user 0");
}

/// The directory is that of root, and the node runs as a user without its rights.
#[test]
#[allow(clippy::print_stderr, reason = "a test says what is missing")]
fn a_directory_of_another_user() {
    let place = Place::new("doctor-foreign-directory");
    let as_another = |arguments: &[&str]| {
        let inner = place.command(arguments);
        let mut command = Command::new("setpriv");
        command.args(["--reuid=54321", "--regid=54321", "--clear-groups"]).arg(inner.get_program());
        command.args(inner.get_args()).env("HOME", &place.directory).output().unwrap()
    };
    if !getuid().is_root() || !as_another(&["-version"]).status.success() {
        eprintln!("not run: a_directory_of_another_user: it needs root, and a program that every user may run");
        return;
    }
    assert_eq!(place.import(&small_chain(&place)).2, 0);
    let before = state(&place.data());
    let output = as_another(&["-stopafterblockimport"]);
    let text = String::from_utf8_lossy(&output.stderr);
    let file = place.chain_folder().join("settings.json");
    let words = format!("Error: Settings file could not be read:\n- {}. Please check permissions.", file.display());
    assert_eq!((output.status.code(), text.trim_end()), (Some(1), &words[..]), "Core's words");
    let seen = Seen::of(as_another(&["doctor", "--json"]));
    seen.expect("permissions", "bad", "cannot be read and written");
    assert_eq!(state(&place.data()), before, "nothing was written");
}

#[test]
fn limits_of_the_shell() {
    let place = Place::new("doctor-limits");
    let seen = |commands: &str| {
        Seen::of(through(Command::new("sh"), &place, commands, &["doctor", "--json", "-par=1"]).output().unwrap())
    };
    seen("ulimit -n 100 &&").expect("open-files", "bad", "limited to 100");
    seen("ulimit -n 200 &&").expect("open-files", "warning", "fewer peers can connect");
    seen("ulimit -n 1000 &&").expect("open-files", "ok", "");
    seen("ulimit -f 1000 &&").expect("limits", "bad", "ulimit -f");
    seen("ulimit -v 2000000 &&").expect("limits", "bad", "ulimit -v");
    doctor(&place, &["-dbcache=100000000"]).expect("memory", "bad", "-dbcache 100000000 MiB");
}

/// A group of this test with little memory, where the system lets us make one.
#[test]
fn a_control_group_limits_the_memory() {
    let roots = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
    for (root, file) in roots {
        let group = Path::new(root).join(format!("lydian-doctor-{}", std::process::id()));
        if fs::create_dir(&group).is_err() {
            continue;
        }
        // Elsewhere the folder is one of another file system.
        if group.join(file).exists() && fs::write(group.join(file), "400000000").is_ok() {
            let place = Place::new("doctor-group");
            let enter = format!("echo $$ > '{}' &&", group.join("cgroup.procs").display());
            let seen = Seen::of(after(&place, &enter, &["-par=1"]).output().unwrap());
            seen.expect("limits", "bad", "the memory is limited to 0.4 GB (/sys/fs/cgroup");
        }
        fs::remove_dir(&group).unwrap();
    }
}

/// Installs a filter that refuses io_uring_setup (425 on every architecture), and runs its arguments.
const FILTER: &str = "
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = struct.pack('HBBI', 0x20, 0, 0, 0) + struct.pack('HBBI', 0x15, 0, 1, 425)
code += struct.pack('HBBI', 0x06, 0, 0, 0x00050001) + struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000)
buffer = ctypes.create_string_buffer(code)
program = struct.pack('HxxxxxxP', 4, ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
#[allow(clippy::print_stderr, reason = "a test says what is missing")]
fn a_filter_of_system_calls_without_io_uring() {
    let place = Place::new("doctor-filter");
    let inner = place.command(&["doctor", "--json"]);
    let mut command = Command::new("python3");
    command.args(["-c", FILTER]).arg(inner.get_program()).args(inner.get_args()).env("HOME", &place.directory);
    let Ok(output) = command.output() else {
        eprintln!("not run: a_filter_of_system_calls_without_io_uring: python3 is missing");
        return;
    };
    Seen::of(output).expect("io-uring", "warning", "io_uring is refused (Operation not permitted");
}

/// The node reads the coins by its reader threads there, and has the same.
#[test]
#[allow(clippy::print_stderr, reason = "a test says what is missing")]
fn a_node_without_io_uring_has_the_same_coins() {
    let arguments = ["import", MIX.to_str().unwrap(), "-lowmem", "-dbcache=4"];
    let (place, other) = (Place::new("no-io-uring"), Place::new("with-io-uring"));
    let inner = place.command(&arguments);
    let mut command = Command::new("python3");
    command.args(["-c", FILTER]).arg(inner.get_program()).args(inner.get_args()).env("HOME", &place.directory);
    let Ok(output) = command.output() else {
        eprintln!("not run: a_node_without_io_uring_has_the_same_coins: python3 is missing");
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(other.run(&arguments).2, 0);
    assert_eq!(place.coins(), other.coins());
}

#[test]
fn a_port_that_is_taken() {
    let place = Place::new("doctor-port");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let arguments = |port: u16| ["-server=1".to_owned(), "-page=0".to_owned(), format!("-rpcport={port}")];
    let seen = |port| doctor(&place, &arguments(port).each_ref().map(String::as_str));
    let words = format!("127.0.0.1:{port} (RPC) is held by process {} (", std::process::id());
    seen(port).expect("ports", "bad", &words);
    seen(free_port().unwrap()).expect("ports", "ok", "are free");
}

#[test]
fn a_directory_that_another_program_holds() {
    let place = Place::new("doctor-holder");
    assert_eq!(place.import(&small_chain(&place)).2, 0);
    let lock = RealDisk.lock(&place.chain_folder().join(".lock")).unwrap();
    let seen = doctor(&place, &[]);
    seen.expect("holder", "bad", &format!("process {} (", std::process::id()));
    assert_eq!(seen.report["process"], std::process::id());
    drop(lock);
    doctor(&place, &[]).expect("holder", "ok", "no process");
}

#[test]
fn formats_of_a_newer_release_and_records_of_wrong_signatures() {
    let place = Place::new("doctor-formats");
    assert_eq!(place.import(&small_chain(&place)).2, 0);
    let index = place.chain_folder().join("blocks/index");
    fs::write(index.join("sigengine-disagreement-1.json"), "{}").unwrap();
    fs::write(place.chain_folder().join("chainstate/owner"), "lydian 99\nchain regtest\n").unwrap();
    let seen = doctor(&place, &[]);
    seen.expect("formats", "bad", "has format 99, which a newer release of Lydian reads");
    seen.expect("disagreements", "bad", "sigengine-disagreement-1.json");
}

#[test]
fn a_tip_from_the_future() {
    let place = Place::new("doctor-clock");
    assert_eq!(place.import(&small_chain(&place)).2, 0);
    let path = place.chain_folder().join("chainstate/status.json");
    let mut status: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    status["time"] = Value::from(u32::MAX);
    fs::write(&path, status.to_string()).unwrap();
    doctor(&place, &[]).expect("clock", "bad", "more than two hours in the future");
}

/// The begin of a block in a file of regtest.
const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

/// Changes the last byte of every block, which belongs to its last transaction.
fn damage_blocks(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let (mut at, mut count) = (0, 0);
    while bytes.get(at..at + 4) == Some(&MAGIC[..]) {
        let size = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        at += 8 + size;
        bytes[at - 1] ^= 1;
        count += 1;
    }
    assert!(count > 1, "the file has blocks");
    fs::write(path, bytes).unwrap();
}

/// Changes every byte behind the header of the files with an ending.
fn damage_files(folder: &Path, ending: &str) {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<_> = files.filter(|path| path.extension().is_some_and(|last| last == ending)).collect();
    assert!(!found.is_empty(), "no .{ending} in {}", folder.display());
    for path in found {
        let mut bytes = fs::read(&path).unwrap();
        bytes.iter_mut().skip(40).for_each(|byte| *byte ^= 0x55);
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn damage_in_coins_and_blocks() {
    let place = Place::new("doctor-damage");
    let arguments = ["import", MIX.to_str().unwrap(), "--copy", "-blocksxor=0"];
    assert_eq!(place.run(&arguments).2, 0);
    doctor(&place, &[]).expect("sample", "ok", " blocks are as they were written");
    damage_blocks(&place.chain_folder().join("blocks/blk00000.dat"));
    let seen = doctor(&place, &[]);
    seen.expect("sample", "bad", "blocks (-reindex): ");
    seen.expect("sample", "bad", "blk00000.dat:");
    damage_files(&place.chain_folder().join("chainstate"), "coins");
    let seen = doctor(&place, &[]);
    seen.expect("sample", "bad", "coins (-reindex-chainstate): ");
    seen.expect("sample", "bad", ".coins:");
}

/// Changes a byte in every 512 of the first three quarters of the tables, which are pages with checksums; what says
/// where they are is behind them.
fn damage_pages(folder: &Path) {
    let tables = ["blocks", "events", "lists", "numbers", "positions", "sizes", "txids"];
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_table = |path: &PathBuf| path.extension().is_some_and(|last| tables.iter().any(|table| last == *table));
    let found: Vec<_> = files.filter(is_table).collect();
    assert!(!found.is_empty(), "no table in {}", folder.display());
    for path in found {
        let mut bytes = fs::read(&path).unwrap();
        let end = bytes.len() * 3 / 4;
        bytes[..end].iter_mut().skip(100).step_by(512).for_each(|byte| *byte ^= 0x55);
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn damage_in_an_index() {
    let place = Place::new("doctor-index-damage");
    assert_eq!(place.run(&["import", MIX.to_str().unwrap(), "-txindex"]).2, 0);
    let words = doctor(&place, &[]).check("sample")["text"].as_str().unwrap().to_owned();
    assert!(words.contains(" pages of indexes") && !words.contains(" 0 pages"), "{words}");
    damage_pages(&place.chain_folder().join("indexes/tables"));
    let seen = doctor(&place, &[]);
    seen.expect("sample", "bad", "indexes (lydian index drop tables): ");
    seen.expect("sample", "bad", "indexes/tables/0000000-0000256.");
}

#[test]
fn options_that_are_unknown_without_effect_and_against_each_other() {
    let place = Place::new("doctor-options");
    let conf = place.data().join("lydian.conf");
    fs::write(&conf, "dbcahe=100\nwalletdir=/x\n[regtest]\npar=1\npar=2\nrpcport=1000\n").unwrap();
    let seen = doctor(&place, &[]);
    seen.expect("unknown-options", "warning", "'dbcahe' is no option (did you mean 'dbcache'?)");
    seen.expect("core-options", "warning", "-walletdir has no effect: Lydian has no wallet");
    seen.expect("contradictions", "warning", "-par is given with 2 values");
    seen.expect("contradictions", "warning", "-server is off, so that -rpcport has no effect");
    seen.expect("settings", "ok", "");
    fs::write(&conf, "[regtest]\nprune=-1\n").unwrap();
    let seen = doctor(&place, &[]);
    seen.expect("settings", "bad", "Prune cannot be configured with a negative value");
    seen.expect("free-space", "ok", "");
    assert_eq!(seen.code, 2);
    fs::write(&conf, "no equals sign\n").unwrap();
    doctor(&place, &[]).expect("settings", "bad", "parse error on line 1");
    let output = place.command(&["doctor", "--json", "-datadir=/none/such"]).output().unwrap();
    let seen = Seen::of(output);
    seen.expect("settings", "bad", "/none/such");
    seen.expect("holder", "skipped", "");
    seen.expect("io-uring", seen.check("io-uring")["level"].as_str().unwrap(), "");
}
