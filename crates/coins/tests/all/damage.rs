//! Damaged files: flipped bits, lost bytes, lost files, files of another store and of newer versions.

use crate::common;
use crate::common::{DIR, MODES, Model, Store, block, files, open, settings_of, tip};
use lydian_coins::{CoinsError, Settings};
use lydian_disk::{Disk, DiskErrorKind, SimDisk};
use lydian_stdx::SplitMix64;
use std::path::{Path, PathBuf};

const NUMBERS: u64 = 400;

fn scene() -> (SimDisk, Model) {
    let mut random = SplitMix64::new(11);
    let disk = SimDisk::new(11);
    let mut model = Model::new();
    let store = Store { coins: open(&disk, Settings::new(1 << 12)).unwrap(), collides: false };
    for height in 1..=4 {
        block(&mut model, height, 60, NUMBERS, &mut random).apply(&store).unwrap();
        store.coins.checkpoint(tip(height), 1).unwrap();
    }
    (disk, model)
}

/// Reads all coins in a store of both kinds, which find the same coins or damage in the same file.
fn read(disk: &SimDisk) -> Result<Model, CoinsError> {
    let [found, with_little_memory] = MODES.map(|is_low_memory| read_with(disk, is_low_memory));
    match (&found, &with_little_memory) {
        (Ok(found), Ok(other)) => assert!(found == other),
        // Groups of records are read as a whole, so damage of dead records is found, too.
        (Ok(_), Err(CoinsError::Damaged { path, .. })) => assert!(path.extension().is_some_and(|name| name == "coins")),
        (Err(error), Err(other)) => assert_eq!(std::mem::discriminant(error), std::mem::discriminant(other)),
        other => panic!("{other:?}"),
    }
    match with_little_memory {
        Err(CoinsError::Damaged { path, offset, what }) => {
            if let Err(CoinsError::Damaged { path: named, .. }) = found {
                assert_eq!(named, path);
            }
            Err(CoinsError::Damaged { path, offset, what })
        }
        _ => found,
    }
}

fn read_with(disk: &SimDisk, is_low_memory: bool) -> Result<Model, CoinsError> {
    let store = Store { coins: open(disk, settings_of(1 << 12, is_low_memory))?, collides: false };
    let all: Vec<_> = (0..NUMBERS).map(common::outpoint).collect();
    let found = store.get(&all)?;
    let exported = store.all()?;
    assert!(exported.iter().all(|(outpoint, coin)| found.get(outpoint) == Some(&Some(coin.clone()))));
    Ok(exported)
}

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

/// Records of spent coins are never read again; everything else is.
///
/// checklist: 94
#[test]
fn a_flipped_bit_in_any_file_is_found_and_named() {
    let (disk, model) = scene();
    for name in files(&disk) {
        let path = path(&name);
        let size = disk.open(&path).unwrap().size();
        let mut unseen = 0;
        for offset in 0..size {
            let disk = disk.kill();
            disk.flip(&path, offset, 1 << (offset % 8)).unwrap();
            match read(&disk) {
                Err(CoinsError::Damaged { path: named, .. } | CoinsError::NotAManifest { path: named }) => {
                    assert_eq!(named, path);
                }
                Err(CoinsError::NewerFormat(error)) => {
                    assert_eq!((error.path, name.as_str()), (path.clone(), "manifest"))
                }
                Err(other) => panic!("{name}:{offset}: {other}"),
                Ok(found) => {
                    assert!(found == model, "{name}:{offset}: wrong coins");
                    unseen += 1;
                }
            }
        }
        assert!(unseen == 0 || name.ends_with(".coins") && unseen < size, "{name}: {unseen} of {size} unseen");
    }
}

/// checklist: 94
#[test]
fn lost_bytes_and_lost_files_are_found_and_named() {
    let (disk, _) = scene();
    for name in files(&disk) {
        let path = path(&name);
        let size = disk.open(&path).unwrap().size();
        for cut in [1, 8, size / 2, size] {
            let disk = disk.kill();
            disk.truncate_file(&path, size - cut).unwrap();
            let error = read(&disk).unwrap_err();
            assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
        }
        let disk = disk.kill();
        disk.remove_file(&path).unwrap();
        match read(&disk).unwrap_err() {
            CoinsError::ManifestMissing { path } => assert_eq!((path, name.as_str()), (DIR.into(), "manifest")),
            CoinsError::Disk(error) => assert_eq!((error.path, error.kind), (path, DiskErrorKind::NotFound)),
            other => panic!("{name}: {other}"),
        }
        assert_eq!(files(&disk).len() + 1, files(&scene().0).len(), "nothing was removed");
    }
}

#[test]
fn files_of_another_store_are_refused() {
    let (disk, _) = scene();
    let other = SimDisk::new(3);
    let coins =
        lydian_coins::Coins::open(std::sync::Arc::new(other.clone()), Path::new(DIR), Settings::new(0), [8; 16], 1);
    let store = Store { coins: coins.unwrap(), collides: false };
    for height in 1..=4 {
        block(&mut Model::new(), height, 60, NUMBERS, &mut SplitMix64::new(11)).apply(&store).unwrap();
        store.coins.checkpoint(tip(height), 1).unwrap();
    }
    for name in files(&disk).iter().filter(|name| !name.starts_with("manifest")) {
        let disk = disk.kill();
        let path = path(name);
        let Ok(bytes) = lydian_disk::read_whole(&other, &path, 1 << 20) else { continue };
        disk.write_whole(&path, &bytes).unwrap();
        assert!(matches!(read(&disk), Err(CoinsError::Damaged { path: named, .. }) if named == path));
    }
}

/// The directory may contain foreign files. Files of an unfinished checkpoint are removed, others are left alone.
#[test]
fn only_files_of_the_store_are_removed() {
    let (disk, model) = scene();
    for name in
        ["00000099.coins", "00000099.index", "00000099.deaths", "manifest.new", "export-00.scratch", "notes.txt"]
    {
        disk.write_whole(&path(name), b"x").unwrap();
    }
    assert!(read(&disk).unwrap() == model);
    let left: Vec<String> =
        files(&disk).into_iter().filter(|name| name.contains("99") || !name.starts_with('0')).collect();
    assert_eq!(left, ["manifest", "notes.txt"]);
}
