//! The examples of `docs/formats/coins.md`: the store writes exactly the files that the page describes, and opens them.

use crate::common::{DIR, MODES, Store, collect, files, settings_of, tip};
use lydian_coins::{Coins, CoinsError};
use lydian_consensus::Coin;
use lydian_disk::{Disk, SimDisk};
use lydian_primitives::{Amount, Height, OutPoint, Txid, hex, to_hex};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const PAGE: &str = include_str!("../../../../docs/formats/coins.md");

/// The files printed on the page, in blocks that start with "```hex NAME". `#` starts a remark, and `..` stands for
/// zeros up to an offset.
fn printed() -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for block in PAGE.split("```hex ").skip(1) {
        let (name, rest) = block.split_once('\n').unwrap();
        let mut bytes = Vec::new();
        for line in rest.split_once("```").unwrap().0.lines() {
            let line = line.split('#').next().unwrap().replace(' ', "");
            match line.strip_prefix("..") {
                Some(offset) => bytes.resize(offset.parse().unwrap(), 0),
                None => bytes.extend(hex(&line).unwrap()),
            }
        }
        files.insert(name.to_owned(), bytes);
    }
    files
}

fn open(disk: &SimDisk, is_low_memory: bool) -> Result<Store, CoinsError> {
    let seed = std::array::from_fn(|index| u8::try_from(index).unwrap());
    let coins = Coins::open(Arc::new(disk.clone()), Path::new(DIR), settings_of(0, is_low_memory), seed, 1)?;
    Ok(Store { coins, collides: false })
}

fn coins() -> [(OutPoint, Coin); 3] {
    let coin = |number: u8, value, script: &[u8]| {
        let outpoint = OutPoint { txid: Txid([number; 32]), vout: number.into() };
        let coin =
            Coin { value: Amount(value), script_pubkey: script.into(), height: Height(100), is_coinbase: number == 1 };
        (outpoint, coin)
    };
    let p2wpkh = [&[0x00, 0x14][..], &[0xaa; 20]].concat();
    [coin(1, 5_000_000_000, &p2wpkh), coin(2, 123_456, &p2wpkh), coin(3, 1, &[0x51])]
}

#[test]
fn the_example_is_what_is_written() {
    for is_low_memory in MODES {
        let disk = SimDisk::new(1);
        let store = open(&disk, is_low_memory).unwrap();
        store.apply(&[], &coins()).unwrap();
        store.coins.checkpoint(tip(100), 1).unwrap();
        store.apply(&[coins()[2].0], &[]).unwrap();
        store.coins.checkpoint(tip(101), 1).unwrap();
        let printed = printed();
        assert_eq!(files(&disk), printed.keys().cloned().collect::<Vec<_>>());
        for name in files(&disk) {
            let written = lydian_disk::read_whole(&disk, &Path::new(DIR).join(&name), 1 << 20).unwrap();
            assert_eq!(to_hex(&written), to_hex(&printed[&name]), "{name}");
        }
    }
}

#[test]
fn the_example_is_read() {
    for is_low_memory in MODES {
        let disk = SimDisk::new(1);
        disk.create_dir(Path::new(DIR)).unwrap();
        for (name, bytes) in printed() {
            disk.write_whole(&Path::new(DIR).join(name), &bytes).unwrap();
        }
        let store = open(&disk, is_low_memory).unwrap();
        assert_eq!(store.coins.tip(), Some(tip(101)));
        assert!(collect(|visit| store.coins.pin().unwrap().export(visit)).unwrap() == coins()[..2]);
        assert!(store.all().unwrap() == coins()[..2].iter().cloned().collect());
    }
}
