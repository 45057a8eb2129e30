//! Common parts of the store's tests: the model, a `BTreeMap`, and random blocks.
#![allow(dead_code, reason = "each test uses a part")]

use lydian_coins::{Coins, CoinsError, Key, PARTITIONS, PinnedCoins, Settings, Tip};
use lydian_consensus::Coin;
use lydian_disk::{Disk, SimDisk};
use lydian_primitives::{Amount, BlockHash, Height, OutPoint, Txid};
use lydian_stdx::SplitMix64;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

pub(crate) type Model = BTreeMap<OutPoint, Coin>;

pub(crate) const DIR: &str = "/c";

/// A store, and whether its keys are real or have hashes that mostly collide.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) coins: Coins,
    pub(crate) collides: bool,
}

/// Both kinds of store: with the index of all coins, and with little memory.
pub(crate) const MODES: [bool; 2] = [false, true];

/// Settings with little memory or not.
pub(crate) fn settings_of(cache_bytes: u64, is_low_memory: bool) -> Settings {
    if is_low_memory { Settings::low_memory(cache_bytes) } else { Settings::new(cache_bytes) }
}

pub(crate) fn open(disk: &SimDisk, settings: Settings) -> Result<Coins, CoinsError> {
    Coins::open(Arc::new(disk.clone()), Path::new(DIR), settings, [7; 16], 2)
}

pub(crate) fn tip(height: u32) -> Tip {
    Tip { height: Height(height), hash: BlockHash([9; 32]) }
}

pub(crate) fn outpoint(number: u64) -> OutPoint {
    let mut random = SplitMix64::new(number / 4);
    let txid = std::array::from_fn(|_| random.next_u64().to_le_bytes()[0]);
    OutPoint { txid: Txid(txid), vout: u32::try_from(number % 4).unwrap() }
}

/// A coin of any form and size; small ones are more frequent.
pub(crate) fn coin(height: u32, random: &mut SplitMix64) -> Coin {
    let fill = random.next_u64().to_le_bytes();
    let script = match random.below(20) {
        0..5 => [&[0x00, 0x14][..], &[fill[0]; 20]].concat(),
        5..8 => [&[0x76, 0xa9, 0x14][..], &[fill[0]; 20], &[0x88, 0xac]].concat(),
        8..10 => [&[0x51, 0x20][..], &[fill[0]; 32]].concat(),
        10..19 => vec![fill[0]; random.below(90)],
        _ => vec![fill[0]; random.below(3000)],
    };
    Coin {
        value: Amount(i64::try_from(random.next_u64() >> random.below(60) >> 4).unwrap()),
        script_pubkey: script.into(),
        height: Height(height),
        is_coinbase: fill[1] < 8,
    }
}

impl Store {
    pub(crate) fn key(&self, outpoint: OutPoint) -> Key {
        let key = self.coins.key(outpoint);
        // Leaves 2 bits of the fingerprint, 1 of the shard and 1 of the partition.
        if self.collides { Key { hash: key.hash & 0x8010_00c0_0000_0000, ..key } } else { key }
    }

    pub(crate) fn apply(&self, spends: &[OutPoint], creates: &[(OutPoint, Coin)]) -> Result<(), CoinsError> {
        for partition in 0..PARTITIONS {
            let is_here = |key: &Key| Coins::partition(key) == partition;
            let spends = spends.iter().map(|outpoint| self.key(*outpoint)).filter(is_here);
            let creates = creates.iter().map(|(outpoint, coin)| (self.key(*outpoint), coin.as_ref()));
            self.coins.apply(partition, spends, creates.filter(|(key, _)| is_here(key)))?;
        }
        Ok(())
    }

    pub(crate) fn get(&self, outpoints: &[OutPoint]) -> Result<BTreeMap<OutPoint, Option<Coin>>, CoinsError> {
        let mut found = BTreeMap::new();
        for partition in 0..PARTITIONS {
            let keys: Vec<Key> = outpoints
                .iter()
                .map(|outpoint| self.key(*outpoint))
                .filter(|key| Coins::partition(key) == partition)
                .collect();
            let (mut coins, mut is_there) = (vec![None], vec![true]);
            self.coins.get(partition, &keys, &mut coins)?;
            self.coins.contains(partition, &keys, &mut is_there)?;
            assert_eq!((coins.len(), is_there.len()), (keys.len() + 1, keys.len() + 1));
            assert!(coins.iter().zip(&is_there).skip(1).all(|(coin, is_there)| coin.is_some() == *is_there));
            found.extend(keys.iter().map(|key| key.outpoint).zip(coins.into_iter().skip(1)));
        }
        Ok(found)
    }

    /// All coins as they are now.
    pub(crate) fn all(&self) -> Result<Model, CoinsError> {
        collect(|visit| self.coins.each(visit)).map(|all| {
            let model: Model = all.iter().cloned().collect();
            assert_eq!(model.len(), all.len(), "a coin was visited twice");
            model
        })
    }

    /// Compares the first `numbers` outpoints, and all coins, with the model.
    pub(crate) fn compare(&self, model: &Model, numbers: u64) {
        assert_eq!(self.coins.len(), model.len() as u64);
        let all: Vec<OutPoint> = (0..numbers).map(outpoint).collect();
        let found = self.get(&all).unwrap();
        for outpoint in &all {
            assert_eq!(found[outpoint].as_ref(), model.get(outpoint), "{outpoint}");
        }
        assert!(self.all().unwrap() == *model);
    }
}

/// The coins that a scan visits, in its order.
pub(crate) fn collect(
    scan: impl FnOnce(&mut dyn FnMut(&OutPoint, &Coin) -> ControlFlow<()>) -> Result<ControlFlow<()>, CoinsError>,
) -> Result<Vec<(OutPoint, Coin)>, CoinsError> {
    let mut visited = Vec::new();
    let end = scan(&mut |outpoint, coin| {
        visited.push((*outpoint, coin.clone()));
        ControlFlow::Continue(())
    });
    assert!(end.as_ref().map_or(true, ControlFlow::is_continue));
    end.map(|_| visited)
}

/// Compares both scans of a pin with the model.
pub(crate) fn compare_pinned(pinned: &PinnedCoins, model: &Model) {
    assert_eq!((pinned.len(), pinned.is_empty()), (model.len() as u64, model.is_empty()));
    let exported = collect(|visit| pinned.export(visit)).unwrap();
    assert!(exported.iter().map(|(outpoint, coin)| (outpoint, coin)).eq(model.iter()));
    let mut each = collect(|visit| pinned.each(visit)).unwrap();
    each.sort_by_key(|(outpoint, _)| *outpoint);
    assert!(each == exported);
}

/// A random block: spends coins of the model and creates coins, some of which already exist.
pub(crate) fn block(model: &mut Model, height: u32, size: usize, numbers: u64, random: &mut SplitMix64) -> Block {
    let mut block = Block::default();
    for _ in 0..random.below(size + 1) {
        let outpoint = outpoint(random.next_u64() % numbers);
        if model.remove(&outpoint).is_some() {
            block.spends.push(outpoint);
        } else {
            let coin = coin(height, random);
            block.creates.insert(outpoint, coin);
        }
    }
    for (outpoint, old) in model.iter().step_by(37).take(3) {
        block.creates.insert(*outpoint, Coin { height: Height(height), ..old.clone() });
    }
    model.extend(block.creates.clone());
    block
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) spends: Vec<OutPoint>,
    pub(crate) creates: Model,
}

impl Block {
    pub(crate) fn apply(&self, store: &Store) -> Result<(), CoinsError> {
        let creates: Vec<(OutPoint, Coin)> = self.creates.clone().into_iter().collect();
        store.apply(&self.spends, &creates)
    }
}

/// The files of the store.
pub(crate) fn files(disk: &SimDisk) -> Vec<String> {
    let files = disk.list(Path::new(DIR)).unwrap();
    files.into_iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}
