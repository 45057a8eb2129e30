//! Kills during an import, a reindex or the loading of blocks. See the parent.

use crate::indexes;
use crate::process::{Killed, disturb, lydian, setting, utxohash, words};
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::{mainnet_mix, reorg};
use lydian_chains::rng::Random;
use lydian_oracle::Scratch;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Default number of kills.
const KILLS: u64 = 14;

/// Starts of one piece of work after which the test fails.
const STARTS_MAX: u32 = 400;

/// The work to do; determines how the program is started.
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
    /// Output of `lydian utxohash` after an undisturbed run, and the time that the run took.
    hashes: String,
    duration: Duration,
    /// Options of every start: those of the indexes.
    options: Vec<String>,
}

impl World {
    #[allow(clippy::disallowed_methods, reason = "a test measures its own time and makes its own folders")]
    fn new(folder: &Path, options: &[String], write: impl FnOnce(&Path)) -> World {
        let chain = folder.join("chain");
        write(&chain);
        let (folder, options) = (folder.to_path_buf(), options.to_vec());
        let mut world = World { chain, folder, hashes: String::new(), duration: Duration::ZERO, options };
        let datadir = world.datadir("copied");
        let start = Instant::now();
        let mut command = lydian(&datadir, &world.arguments(Mode::Copy, true));
        let output = command.output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "undisturbed: {output:?}");
        world.duration = start.elapsed();
        world.hashes = utxohash(&datadir);
        world
    }

    /// A data directory, created if it is missing.
    #[allow(clippy::disallowed_methods, reason = "a test makes its own folders")]
    fn datadir(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn arguments(&self, mode: Mode, is_first: bool) -> Vec<String> {
        let chain = self.chain.display().to_string();
        let own = match mode {
            Mode::Import => words(&["import", &chain]),
            Mode::Copy => words(&["-copy", "import", &chain]),
            Mode::LoadBlock => words(&[&format!("-loadblock={chain}/blk00000.dat"), "-stopafterblockimport"]),
            Mode::Reindex if is_first => words(&["-reindex", "-stopafterblockimport"]),
            Mode::ReindexChainstate if is_first => words(&["-reindex-chainstate", "-stopafterblockimport"]),
            Mode::Reindex | Mode::ReindexChainstate => words(&["-stopafterblockimport"]),
        };
        [own, self.options.clone()].concat()
    }

    /// Does one piece of work from its beginning to its end, with at most `kills` kills. Returns the number of kills.
    fn piece(&self, mode: Mode, kills: u64, random: &mut Random) -> u64 {
        let is_old = matches!(mode, Mode::Reindex | Mode::ReindexChainstate);
        let datadir = self.datadir(if is_old { "copied" } else { "fresh" });
        let mut killed = 0;
        for start in 0..STARTS_MAX {
            // The first start may have been killed before it handled the option, so in half of the cases it is given
            // again.
            let arguments = self.arguments(mode, start == 0 || (start == 1 && random.chance(500)));
            let child = lydian(&datadir, &arguments).spawn().unwrap();
            let Killed { output, was_killed } = match killed < kills {
                true => disturb(child, self.duration, random),
                false => Killed { output: child.wait_with_output().unwrap(), was_killed: false },
            };
            killed += u64::from(was_killed);
            match output.status.code() {
                // A branch of the chain may be invalid, which the exit code reports.
                Some(0 | 1) if !was_killed => {
                    assert_eq!(utxohash(&datadir), self.hashes, "{mode:?} after {killed} kills");
                    self.verify(&datadir);
                    self.remove("fresh");
                    return killed;
                }
                None | Some(0 | 1) if was_killed => self.verify(&datadir),
                _ => panic!("{mode:?}, start {start}, {killed} kills: {output:?}"),
            }
            if random.chance(100) {
                let info = lydian(&datadir, &words(&["info", "--json"])).output().unwrap();
                assert!(matches!(info.status.code(), Some(0 | 3)), "info after a kill: {info:?}");
            }
        }
        panic!("{mode:?}: not done after {STARTS_MAX} starts and {killed} kills")
    }

    /// Compares the indexes with a rebuild, if there are any. They may be behind, and at a block that left the chain.
    fn verify(&self, datadir: &Path) {
        if !self.options.is_empty() {
            indexes::verify(datadir, true);
        }
    }

    #[allow(clippy::disallowed_methods, reason = "a test removes its own folders")]
    fn remove(&self, name: &str) {
        let _ = std::fs::remove_dir_all(self.folder.join(name));
    }
}

fn kill_again_and_again(name: &str, share: u64, options: &[String], write: impl FnOnce(&Path)) {
    let scratch = Scratch::new(name);
    let world = World::new(scratch.path(), options, write);
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
    kill_again_and_again("crash-mix", 60, &[], |folder| {
        let settings = MixSettings { blocks: 440, full: 3, seed: 5, reuse_per_mille: 50 };
        mainnet_mix::write(settings, 2, folder).unwrap();
    });
}

/// A short chain of branches, some of them invalid.
/// checklist: 86, 91
#[test]
fn killed_on_branches() {
    kill_again_and_again("crash-reorg", 30, &[], |folder| drop(reorg::write(folder).unwrap()));
}

/// With every index on.
/// checklist: 86, 91, 97
#[test]
fn killed_on_branches_with_every_index_on() {
    let write = |folder: &Path| drop(reorg::write(folder).unwrap());
    kill_again_and_again("crash-reorg-indexes", 10, &indexes::options(), write);
}
