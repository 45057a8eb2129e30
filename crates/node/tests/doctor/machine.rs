//! Processors that lack what the fast kernels need, disks that answer late, and a tip that is old.

use super::{Seen, doctor};
use crate::{MIX, Place};
use lydian_oracle::free_port;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An emulator of a processor of 2008, which has SSE4.2 and no AVX.
const EMULATORS: [&str; 2] = ["qemu-x86_64-static", "qemu-x86_64"];
const OLD_PROCESSOR: [&str; 2] = ["-cpu", "Nehalem"];

/// The command on that processor, if the emulator is installed.
#[allow(clippy::print_stderr, reason = "a test says what is missing")]
fn on_old_processor(command: &Command, test: &str) -> Option<Command> {
    let runs = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    let Some(emulator) = EMULATORS.iter().find(runs).filter(|_| cfg!(target_arch = "x86_64")) else {
        assert_ne!(std::env::var("LYDIAN_REQUIRE_QEMU").as_deref(), Ok("1"), "qemu-user-static is not installed");
        eprintln!("not run: {test}: qemu-x86_64 is missing, or this is another architecture");
        return None;
    };
    let mut emulated = Command::new(emulator);
    emulated.args(OLD_PROCESSOR).arg(command.get_program()).args(command.get_args());
    emulated.current_dir(command.get_current_dir().unwrap());
    Some(emulated)
}

#[test]
fn a_processor_without_avx2() {
    let place = Place::new("doctor-old-processor");
    let asked = |arguments: &[&str]| place.command(&[&["doctor", "--json"], arguments].concat());
    let Some(mut auto) = on_old_processor(&asked(&[]), "a_processor_without_avx2") else { return };
    let seen = Seen::of(auto.output().unwrap());
    seen.expect("kernels", "warning", "scalar verifies signatures: nothing faster can run on this processor (");
    let mut named = on_old_processor(&asked(&["-sigengine=avx2"]), "").unwrap();
    let seen = Seen::of(named.output().unwrap());
    seen.expect("kernels", "bad", "-sigengine=avx2: This CPU lacks the instructions of this signature engine");
    assert_eq!(seen.code, 2);
    // The node works there and says in its log what it uses; with the kernel that is missing it does not start.
    let started = place.command(&["-stopafterblockimport"]);
    assert!(on_old_processor(&started, "").unwrap().output().unwrap().status.success());
    assert!(place.log().contains("Using signature engine scalar"), "{}", place.log());
    let refused = place.command(&["-stopafterblockimport", "-sigengine=avx2"]);
    let output = on_old_processor(&refused, "").unwrap().output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("-sigengine=avx2: This CPU lacks") && text.trim_end().lines().count() == 1, "{text}");
}

/// A kernel that this machine has not, if there is one.
#[test]
fn a_kernel_that_the_processor_lacks() {
    let place = Place::new("doctor-kernel");
    let has: Vec<&str> = lydian_curve::engines().iter().map(|engine| engine.name()).collect();
    for name in lydian_curve::ENGINE_NAMES.into_iter().filter(|name| *name != "auto") {
        let option = format!("-sigengine={name}");
        let level = if has.contains(&name) { "ok" } else { "bad" };
        doctor(&place, &[&option]).expect("kernels", level, name);
        let (_, err, code) = place.run(&["-stopafterblockimport", &option]);
        assert_eq!(code, i32::from(level == "bad"), "{name}: {err}");
        assert!(level == "ok" || err.starts_with(&format!("Error: {option}: This CPU lacks")), "{name}: {err}");
    }
}

/// Makes `fdatasync`, and reads past the page cache, wait for so many milliseconds.
const SLOW: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static void wait_for(const char *name) {
  const char *ms = getenv(name);
  if (ms) usleep(1000 * atoi(ms));
}
int fdatasync(int file) {
  wait_for("SLOW_SYNC_MS");
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}
ssize_t pread64(int file, void *to, size_t count, off64_t at) {
  if (fcntl(file, F_GETFL) & O_DIRECT) wait_for("SLOW_READ_MS");
  return ((ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64"))(file, to, count, at);
}
"#;

/// Compiles the library above.
fn slow_library(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("slow.c"), folder.join("slow.so"));
    fs::write(&source, SLOW).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl").output();
    let built = built.unwrap();
    assert!(built.status.success(), "{built:?}");
    library
}

/// The calls of the C library wait, not a device: a slow device would need a module of the kernel that many lack.
#[test]
fn a_disk_that_answers_late() {
    let place = Place::new("doctor-slow");
    assert_eq!(place.run(&["import", MIX.to_str().unwrap(), "--copy"]).2, 0);
    let library = slow_library(&place.directory);
    let seen = |variable: &str, ms: &str| {
        let mut command = place.command(&["doctor", "--json"]);
        Seen::of(command.env("LD_PRELOAD", &library).env(variable, ms).output().unwrap())
    };
    for (check, variable, warning_ms, bad_ms, words) in [
        ("sync-time", "SLOW_SYNC_MS", "200", "1100", "4 KiB are on disk after "),
        ("read-latency", "SLOW_READ_MS", "20", "120", "a random read of 4 KiB takes "),
    ] {
        // A file system without files that have no name, or without reads past the page cache.
        if doctor(&place, &[]).check(check)["level"] == "skipped" {
            continue;
        }
        // A stall of the machine during the measurement makes the disk look slower, so it is measured again.
        let is_so = |one: &Seen, level: &str| one.check(check)["level"] == level;
        for (ms, level) in [(warning_ms, "warning"), (bad_ms, "bad")] {
            let first = seen(variable, ms);
            let last = if is_so(&first, level) {
                None
            } else {
                (0..5).map(|_| seen(variable, ms)).find(|one| is_so(one, level))
            };
            last.unwrap_or(first).expect(check, level, words);
        }
    }
}

/// Killed with the test.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A node of a real chain that has no peers has the genesis block, whose age is some years.
#[test]
fn a_tip_that_is_old() {
    let place = Place::new("doctor-old-tip");
    let options = |command: &mut Command| {
        command.arg(format!("-datadir={}", place.data().display())).args(["-signet", "-listen=0", "-noconnect"]);
    };
    let port = format!("-rpcport={}", free_port().unwrap());
    let program = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
        options(command.env("HOME", &place.directory));
        command.args(["-page=0", "-par=1", &port]);
        command
    };
    let mut node = Node(program().arg("-printtoconsole").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut lines = BufReader::new(node.0.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().map_while(Result::ok).any(|line| line.contains("Done loading")), "the node starts");
    std::thread::spawn(move || lines.count());
    let mut command = program();
    let seen = Seen::of(command.args(["doctor", "--json"]).output().unwrap());
    seen.expect("tip", "bad", "the tip is at height 0 of 0, over a year old");
    seen.expect("rpc", "ok", "the node answers");
}
