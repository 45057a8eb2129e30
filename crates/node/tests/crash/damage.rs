//! Every file of a small data directory is removed, cut or changed in turn. The program either arrives at the same
//! coins, or ends with an error that names the file and a remedy, and the remedy must work. See the parent.
//!
//! `LYDIAN_DAMAGE_OFFSETS`: the number of bytes of each file in which one bit is flipped (by default one, with fewer
//! kinds of damage; `make crash` uses more).
#![allow(clippy::disallowed_methods, reason = "a test makes, copies and damages its own files")]

use crate::process::{lydian, setting, utxohash, words};
use lydian_chains::presets::reorg;
use lydian_oracle::{Scratch, copy_folder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// Height of the first of the two checkpoints that the data directory has seen.
const FIRST_HEIGHT: u32 = 150;

/// Exit code of a program that panics.
const PANIC: i32 = 101;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Damage {
    Removed,
    /// Cut to this many thousandths of its size.
    Cut(u64),
    /// Replaced by a directory, so that it cannot be read, not even by root.
    Directory,
    /// One bit flipped in the byte at this many thousandths of the file.
    Flipped(u64),
}

fn kinds() -> Vec<Damage> {
    let Some(offsets) = setting("LYDIAN_DAMAGE_OFFSETS") else {
        return vec![Damage::Removed, Damage::Cut(500), Damage::Flipped(300)];
    };
    let flips = (0..offsets).map(|index| Damage::Flipped(index * 1_000 / offsets));
    [Damage::Removed, Damage::Cut(0), Damage::Cut(10), Damage::Cut(500), Damage::Cut(999), Damage::Directory]
        .into_iter()
        .chain(flips)
        .collect()
}

impl Damage {
    /// Returns false if the file is too small.
    fn apply(self, path: &Path) -> bool {
        let bytes = fs::read(path).unwrap();
        let size = bytes.len() as u64;
        match self {
            Damage::Removed => fs::remove_file(path).unwrap(),
            Damage::Cut(thousandths) if size > 0 => {
                let file = fs::OpenOptions::new().write(true).open(path).unwrap();
                file.set_len(size * thousandths / 1_000).unwrap();
            }
            Damage::Directory => {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            }
            Damage::Flipped(thousandths) if size > 0 => {
                let mut bytes = bytes;
                bytes[usize::try_from(size * thousandths / 1_000).unwrap()] ^= 0x10;
                fs::write(path, bytes).unwrap();
            }
            Damage::Cut(_) | Damage::Flipped(_) => return false,
        }
        true
    }
}

/// The files below a directory, without those that are always empty.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => files(&path, found),
            false if path.ends_with(".lock") => {}
            false => found.push(path),
        }
    }
}

struct World {
    scratch: Scratch,
    chain: String,
    /// Output of `lydian utxohash` for the undamaged directory.
    hashes: String,
}

/// One case of damage.
struct Case<'a> {
    world: &'a World,
    /// The file, below the data directory.
    file: &'a Path,
    damage: Damage,
}

impl World {
    fn new() -> World {
        let scratch = Scratch::new("damage");
        let chain = scratch.path().join("chain");
        reorg::write(&chain).unwrap();
        let chain = chain.display().to_string();
        let whole = scratch.path().join("whole");
        fs::create_dir_all(&whole).unwrap();
        for more in [vec![format!("-stopatheight={FIRST_HEIGHT}")], Vec::new()] {
            let output = lydian(&whole, &[words(&["-copy", "import", &chain]), more].concat()).output().unwrap();
            assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        }
        let hashes = utxohash(&whole);
        World { scratch, chain, hashes }
    }

    fn whole(&self) -> PathBuf {
        self.scratch.path().join("whole")
    }
}

impl Case<'_> {
    fn datadir(&self) -> PathBuf {
        self.world.scratch.path().join("damaged")
    }

    /// Returns stdout, stderr and the exit code; fails on a panic.
    fn run(&self, arguments: &[&str]) -> (String, String, i32) {
        let mut command = lydian(&self.datadir(), &words(arguments));
        let Output { stdout, stderr, status } = command.stdout(Stdio::piped()).output().unwrap();
        let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        let code = status.code().unwrap_or(PANIC);
        assert!(code != PANIC && !err.contains("panicked"), "{self:?} {arguments:?}: {code} {err}");
        (out, err, code)
    }

    /// Whether the coins are those of the undamaged directory.
    fn is_whole(&self) -> bool {
        let (out, _, code) = self.run(&["utxohash", "--json"]);
        code == 0 && out == self.world.hashes
    }

    fn check(&self) {
        copy_folder(&self.world.whole(), &self.datadir()).unwrap();
        let path = self.datadir().join(self.file);
        if !self.damage.apply(&path) {
            return;
        }
        let (out, err, code) = self.run(&["utxohash", "--json"]);
        if code == 0 {
            assert_eq!(out, self.world.hashes, "{self:?}: other coins");
            return;
        }
        let (name, directory) = (path.display().to_string(), path.parent().unwrap().display().to_string());
        let is_named = err.contains(&name) || err.contains(&format!("{directory}: "));
        // An error in the bytes of a block names the block.
        let is_block = self.is_block_file() && err.contains("the stored block ");
        assert!(is_named || is_block, "{self:?}: the file is not named: {err}");
        self.follow(&path, &err);
    }

    /// Does what the error advises.
    fn follow(&self, path: &Path, err: &str) {
        if self.damage == Damage::Directory {
            fs::remove_dir(path).unwrap();
        }
        let options: &[&str] = match err {
            err if err.contains("-reindex or -reindex-chainstate") => &["-reindex-chainstate", "-reindex"],
            err if err.contains("-reindex-chainstate") => &["-reindex-chainstate"],
            err if err.contains("-reindex") => &["-reindex"],
            err if err.contains("from a copy") => {
                fs::copy(self.world.whole().join(self.file), path).unwrap();
                &[]
            }
            // A directory in its place is gone already.
            err if err.contains("delete the file") => {
                assert!(fs::remove_file(path).is_ok() || self.damage == Damage::Directory);
                &[]
            }
            err if self.damage == Damage::Directory && err.contains("move it away") => &[],
            err => panic!("{self:?}: the error gives no advice: {err}"),
        };
        let mut told = String::new();
        let is_helped = self.is_whole_after(options, &mut told);
        // Lost blocks must be provided again, by peers or from files.
        let is_brought_again = || {
            // The first run finds out what cannot be read.
            (0..2).any(|_| {
                self.run(&["-copy", "import", &self.world.chain]);
                self.is_whole()
            })
        };
        let is_whole = is_helped || (self.is_block_file() && is_brought_again());
        assert!(is_whole, "{self:?}: this did not help: {err}{told}");
    }

    fn is_block_file(&self) -> bool {
        self.file.file_name().unwrap().to_string_lossy().starts_with("blk")
    }

    fn is_whole_after(&self, options: &[&str], told: &mut String) -> bool {
        if options.is_empty() {
            return self.is_whole();
        }
        options.iter().any(|option| {
            let (_, err, _) = self.run(&[option, "-stopafterblockimport"]);
            *told += &err;
            self.is_whole()
        })
    }
}

impl std::fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.file.display(), self.damage)
    }
}

/// Regression test: of 182 damaged files, a missing or unreadable one among the coins ended with "start again to go
/// on", which gave the same error for ever.
#[test]
fn every_file_damaged_in_turn() {
    let world = World::new();
    let mut found = Vec::new();
    // Damage to the other files of a data directory is handled as in Core.
    for directory in ["blocks", "chainstate"] {
        files(&world.whole().join("regtest").join(directory), &mut found);
    }
    let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    for ending in
        ["blk00000.dat", "rev00000.dat", "xor.dat", "index.log", "manifest", ".coins", ".index", ".deaths", "owner"]
    {
        assert!(names.iter().any(|name| name.ends_with(ending)), "{ending} is not among {names:?}");
    }
    let mut count = 0;
    for path in &found {
        let file = path.strip_prefix(world.whole()).unwrap();
        for damage in kinds() {
            Case { world: &world, file, damage }.check();
            count += 1;
        }
    }
    eprintln!("{count} pieces of damage to {} files", found.len());
}
