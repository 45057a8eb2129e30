//! Data directories of releases (`testdata/datadirs`): the current program opens each of them, also after kills during
//! the start, and has the coins and the indexes that the release had. See the parent.
//!
//! The ignored test `make_archive` writes the archive of the current version; see the README of the folder.

use crate::indexes::{Chain, leave_mempool, options, verify};
use crate::peers::{copy, fresh};
use crate::process::{Killed, disturb, lydian, setting, utxohash, words};
use lydian_chains::rng::Random;
use lydian_oracle::Scratch;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Blocks of the chain: more than a coinbase takes to mature.
const BLOCKS: u32 = 150;

/// Bytes of an archive.
const ARCHIVE_SIZE_MAX: usize = 200 << 10;

/// Default number of kills during the start of each directory.
const KILLS: u64 = 3;

/// The part of the kills of `make crash`.
const SHARE: u64 = 20;

/// The highest level of zstd without more memory for the reader.
const ZSTD_LEVEL: i32 = 19;

/// What a directory does not need: locks and logs.
const LEFT_OUT: &[&str] = &[".lock", "debug.log"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/datadirs")
}

/// The archives, each with the file of its coins.
#[allow(clippy::disallowed_methods, reason = "a test reads its own files")]
pub(crate) fn archives() -> Vec<(PathBuf, PathBuf)> {
    let paths = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = paths.filter(|path| path.to_string_lossy().ends_with(".tar.zst")).collect();
    found.sort();
    let coins = |path: &PathBuf| PathBuf::from(path.to_string_lossy().replace(".tar.zst", ".coins.json"));
    found.into_iter().map(|path| (path.clone(), coins(&path))).collect()
}

#[allow(clippy::disallowed_methods, reason = "a test makes its own files")]
pub(crate) fn unpack(archive: &Path, into: &Path) -> PathBuf {
    let bytes = fs::read(archive).unwrap();
    assert!(bytes.len() <= ARCHIVE_SIZE_MAX, "{}: {} bytes", archive.display(), bytes.len());
    let bytes = zstd::stream::decode_all(&bytes[..]).unwrap();
    let datadir = fresh(into);
    let mut tar = Command::new("tar").arg("-x").current_dir(&datadir).stdin(Stdio::piped()).spawn().unwrap();
    tar.stdin.take().unwrap().write_all(&bytes).unwrap();
    assert!(tar.wait().unwrap().success(), "{}", archive.display());
    datadir
}

/// A start with every index, which ends by itself.
fn start(datadir: &Path) -> Command {
    lydian(datadir, &[options(), words(&["-stopafterblockimport"])].concat())
}

/// checklist: 95
#[test]
#[allow(clippy::disallowed_methods, reason = "a test measures its own time and reads its own files")]
fn directories_of_releases_are_opened() {
    let scratch = Scratch::new("crash-datadirs");
    let mut random = Random::new(setting("LYDIAN_CRASH_SEED").unwrap_or(1), "crash-datadirs");
    let kills = setting("LYDIAN_CRASH_RUNS").map_or(KILLS, |runs| runs / SHARE);
    let archives = archives();
    let current = folder().join(format!("{}.tar.zst", env!("CARGO_PKG_VERSION")));
    assert!(archives.iter().any(|(archive, _)| *archive == current), "{}: see its README", current.display());
    for (archive, coins) in archives {
        let expected = fs::read_to_string(&coins).unwrap();
        let whole = unpack(&archive, &scratch.path().join("whole"));
        let datadir = copy(&whole, &scratch.path().join("opened"));
        let began = Instant::now();
        let output = start(&datadir).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}: {output:?}", archive.display());
        let duration = began.elapsed();
        check(&datadir, &expected, &archive);
        for _ in 0..kills {
            let datadir = copy(&whole, &scratch.path().join("opened"));
            let Killed { output, .. } = disturb(start(&datadir).spawn().unwrap(), duration, &mut random);
            assert!(matches!(output.status.code(), None | Some(0)), "{}: {output:?}", archive.display());
            let output = start(&datadir).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}: after a kill: {output:?}", archive.display());
            check(&datadir, &expected, &archive);
        }
        eprintln!("{}: opened after {kills} kills", archive.display());
    }
}

/// Coins and indexes are those of the release, and nothing was begun anew.
#[allow(clippy::disallowed_methods, reason = "a test reads its own files")]
fn check(datadir: &Path, expected: &str, archive: &Path) {
    assert_eq!(utxohash(datadir), expected, "{}", archive.display());
    verify(datadir, false);
    let log = fs::read_to_string(datadir.join("regtest/debug.log")).unwrap();
    for word in ["[warning]", "[error]"] {
        assert!(!log.contains(word), "{}: {log}", archive.display());
    }
}

/// Writes the archive of the current version and the hash of its coins.
#[test]
#[ignore = "not a check: it writes the archive of a new version into testdata/datadirs, once before its release: cargo test -p lydian-node --test crash make_archive -- --ignored"]
#[allow(clippy::disallowed_methods, reason = "a test makes its own files")]
fn make_archive() {
    let scratch = Scratch::new("make-datadir");
    let mut chain = Chain::new();
    chain.grow(BLOCKS, 0);
    let nothing = fresh(&scratch.path().join("nothing"));
    let datadir = chain.node(&nothing, scratch.path(), "datadir", &options());
    leave_mempool(&datadir, &chain.maker);
    // The indexes are written by a clean stop.
    assert_eq!(start(&datadir).output().unwrap().status.code(), Some(0));
    verify(&datadir, false);
    let coins = utxohash(&datadir);
    let mut tar = Command::new("tar");
    tar.args(["-c", "--sparse", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    for name in LEFT_OUT {
        tar.arg(format!("--exclude={name}"));
    }
    let output = tar.arg("-C").arg(&datadir).arg(".").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let bytes = zstd::stream::encode_all(&output.stdout[..], ZSTD_LEVEL).unwrap();
    assert!(bytes.len() <= ARCHIVE_SIZE_MAX, "{} bytes", bytes.len());
    fs::create_dir_all(folder()).unwrap();
    let name = |ending: &str| folder().join(format!("{}.{ending}", env!("CARGO_PKG_VERSION")));
    fs::write(name("tar.zst"), &bytes).unwrap();
    fs::write(name("coins.json"), coins).unwrap();
    eprintln!("{} bytes", bytes.len());
}
