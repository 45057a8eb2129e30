//! The program is killed at random moments, again and again, while it imports, reindexes or loads blocks; started once more it
//! goes on, and in the end the coins are those of a run that nobody disturbed.
//!
//! `LYDIAN_CRASH_RUNS`: how many kills (default [`KILLS`]; `make crash` wants a thousand). `LYDIAN_CRASH_SEED`: the seed of
//! their moments.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and says what it did")]

use lydian_lab::plan::MixSettings;
use lydian_lab::presets::{mainnet_mix, reorg};
use lydian_lab::rng::Random;
use lydian_oracle::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Kills where nothing else is said.
const KILLS: u64 = 14;

/// Starts of one piece of work after which something must be wrong.
const STARTS_MAX: u32 = 400;

/// Longest a process may take to stop when it is asked to.
const STOP_SECONDS_MAX: u64 = 10;

/// What is done, with how the program is started for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Import,
    Copy,
    LoadBlock,
    Reindex,
    ReindexChainstate,
}

const MODES: [Mode; 5] = [Mode::Import, Mode::Reindex, Mode::Copy, Mode::ReindexChainstate, Mode::LoadBlock];

struct World {
    chain: PathBuf,
    folder: PathBuf,
    /// What `lydian utxohash` says after an undisturbed run, and how long that took.
    hashes: String,
    duration: Duration,
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: a number")))
}

fn lydian(datadir: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
    command.arg("-regtest").arg(format!("-datadir={}", datadir.display())).arg("-par=2").args([
        "-printtoconsole=0",
        "-server=0",
        "-listen=0",
        "-noconnect",
    ]);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn words(text: &[&str]) -> Vec<String> {
    text.iter().map(|word| (*word).to_owned()).collect()
}

fn utxohash(datadir: &Path) -> String {
    let mut command = lydian(datadir, &words(&["utxohash", "--json"]));
    let output = command.stdout(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "utxohash: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

impl World {
    #[allow(clippy::disallowed_methods, reason = "a test measures its own time and makes its own folders")]
    fn new(folder: &Path, write: impl FnOnce(&Path)) -> World {
        let chain = folder.join("chain");
        write(&chain);
        let mut world = World { chain, folder: folder.to_path_buf(), hashes: String::new(), duration: Duration::ZERO };
        let datadir = world.datadir("copied");
        let start = Instant::now();
        let mut command = lydian(&datadir, &world.arguments(Mode::Copy, true));
        let output = command.output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "undisturbed: {output:?}");
        world.duration = start.elapsed();
        world.hashes = utxohash(&datadir);
        world
    }

    /// A data directory, made if it is not there.
    #[allow(clippy::disallowed_methods, reason = "a test makes its own folders")]
    fn datadir(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn arguments(&self, mode: Mode, is_first: bool) -> Vec<String> {
        let chain = self.chain.display().to_string();
        match mode {
            Mode::Import => words(&["import", &chain]),
            Mode::Copy => words(&["-copy", "import", &chain]),
            Mode::LoadBlock => words(&[&format!("-loadblock={chain}/blk00000.dat"), "-stopafterblockimport"]),
            Mode::Reindex if is_first => words(&["-reindex", "-stopafterblockimport"]),
            Mode::ReindexChainstate if is_first => words(&["-reindex-chainstate", "-stopafterblockimport"]),
            Mode::Reindex | Mode::ReindexChainstate => words(&["-stopafterblockimport"]),
        }
    }

    /// One piece of work from its beginning to its end, with at most `kills` kills. Gives how many there were.
    fn piece(&self, mode: Mode, kills: u64, random: &mut Random) -> u64 {
        let is_old = matches!(mode, Mode::Reindex | Mode::ReindexChainstate);
        let datadir = self.datadir(if is_old { "copied" } else { "fresh" });
        let mut killed = 0;
        for start in 0..STARTS_MAX {
            // The first start may have been killed before it took the option in: as often as not it is given again.
            let arguments = self.arguments(mode, start == 0 || (start == 1 && random.chance(500)));
            let child = lydian(&datadir, &arguments).spawn().unwrap();
            let (output, was_killed) =
                if killed < kills { self.disturb(child, random) } else { (child.wait_with_output().unwrap(), false) };
            killed += u64::from(was_killed);
            match output.status.code() {
                // A branch of the chain may be invalid, which the program tells by its exit code.
                Some(0 | 1) if !was_killed => {
                    assert_eq!(utxohash(&datadir), self.hashes, "{mode:?} after {killed} kills");
                    self.remove("fresh");
                    return killed;
                }
                None | Some(0 | 1) if was_killed => {}
                _ => panic!("{mode:?}, start {start}, {killed} kills: {output:?}"),
            }
            if random.chance(100) {
                let info = lydian(&datadir, &words(&["info", "--json"])).output().unwrap();
                assert!(matches!(info.status.code(), Some(0 | 3)), "info after a kill: {info:?}");
            }
        }
        panic!("{mode:?}: not done after {STARTS_MAX} starts and {killed} kills")
    }

    /// Kills the process after a while, mostly, or asks it to stop, if it is still there.
    #[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
    fn disturb(&self, mut child: Child, random: &mut Random) -> (Output, bool) {
        let longest = u64::try_from(self.duration.as_micros()).unwrap();
        let delay = Duration::from_micros(random.below(longest + longest / 4));
        let start = Instant::now();
        while start.elapsed() < delay {
            if child.try_wait().unwrap().is_some() {
                return (child.wait_with_output().unwrap(), false);
            }
            std::thread::sleep(Duration::from_millis(1).min(delay));
        }
        if random.chance(850) {
            child.kill().unwrap();
            return (child.wait_with_output().unwrap(), true);
        }
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        // It may have ended in this very moment.
        let _ = kill_process(pid, Signal::TERM);
        let asked = Instant::now();
        let output = child.wait_with_output().unwrap();
        let seconds = asked.elapsed().as_secs();
        assert!(seconds < STOP_SECONDS_MAX, "stopped after {seconds} s");
        (output, true)
    }

    #[allow(clippy::disallowed_methods, reason = "a test removes its own folders")]
    fn remove(&self, name: &str) {
        let _ = std::fs::remove_dir_all(self.folder.join(name));
    }
}

fn kill_again_and_again(name: &str, share: u64, write: impl FnOnce(&Path)) {
    let scratch = Scratch::new(name);
    let world = World::new(scratch.path(), write);
    let seed = setting("LYDIAN_CRASH_SEED").unwrap_or(1);
    let mut random = Random::new(seed, name);
    let kills = setting("LYDIAN_CRASH_RUNS").unwrap_or(KILLS) * share / 100;
    let (mut killed, mut pieces) = (0, 0);
    while killed < kills {
        let mode = MODES[pieces % MODES.len()];
        let at_once = (kills - killed).min(1 + random.below(6));
        killed += world.piece(mode, at_once, &mut random);
        pieces += 1;
        assert!(pieces < 100 + 20 * usize::try_from(kills).unwrap(), "{killed} kills in {pieces} pieces of work");
    }
    eprintln!("{name}: {killed} kills in {pieces} pieces of work, seed {seed}");
}

/// A long chain with full blocks at its end.
/// checklist: 86, 91
#[test]
fn killed_on_a_long_chain() {
    kill_again_and_again("crash-mix", 60, |folder| {
        let settings = MixSettings { blocks: 440, full: 3, seed: 5, reuse_per_mille: 50 };
        mainnet_mix::write(settings, 2, folder).unwrap();
    });
}

/// A short chain of branches, some of them invalid.
/// checklist: 86, 91
#[test]
fn killed_on_branches() {
    kill_again_and_again("crash-reorg", 40, |folder| drop(reorg::write(folder).unwrap()));
}
