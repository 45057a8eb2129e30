//! The store before its specification, a `BTreeMap`: random batches, checkpoints, and reopening after each.
#![allow(clippy::unwrap_used, reason = "tests")]

use lydian_coins::{Coins, CoinsError, Key, Settings, Tip};
use lydian_consensus::Coin;
use lydian_disk::SimDisk;
use lydian_primitives::{Amount, BlockHash, Height, OutPoint, Txid};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

type Model = BTreeMap<OutPoint, Coin>;

fn open(disk: &SimDisk) -> Coins {
    Coins::open(Arc::new(disk.clone()), Path::new("/c"), Settings::new(1 << 20), [7; 16], 2).unwrap()
}

fn outpoint(number: u8) -> OutPoint {
    OutPoint { txid: Txid([number / 4; 32]), vout: u32::from(number % 4) }
}

fn coin(height: u32, number: u8) -> Coin {
    Coin {
        value: Amount(i64::from(number) * 1_000),
        script_pubkey: vec![number; usize::from(number)].into(),
        height: Height(height),
        is_coinbase: number.is_multiple_of(3),
    }
}

fn apply(store: &Coins, spends: &[OutPoint], creates: &[(OutPoint, Coin)]) -> Result<(), CoinsError> {
    for partition in 0..lydian_coins::PARTITIONS {
        let is_here = |key: &Key| Coins::partition(key) == partition;
        let spends = spends.iter().map(|outpoint| store.key(*outpoint)).filter(is_here);
        let creates = creates.iter().map(|(outpoint, coin)| (store.key(*outpoint), coin.as_ref()));
        store.apply(partition, spends, creates.filter(|(key, _)| is_here(key)))?;
    }
    Ok(())
}

fn compare(store: &Coins, model: &Model) {
    assert_eq!(store.len(), model.len() as u64);
    for number in 0..=255 {
        let key = store.key(outpoint(number));
        let (mut coins, mut is_there) = (Vec::new(), Vec::new());
        store.get(Coins::partition(&key), &[key], &mut coins).unwrap();
        store.contains(Coins::partition(&key), &[key], &mut is_there).unwrap();
        assert_eq!(coins, [model.get(&key.outpoint).cloned()]);
        assert_eq!(is_there, [model.contains_key(&key.outpoint)]);
    }
    let mut exported = Vec::new();
    store
        .export::<CoinsError>(&mut |outpoint, coin| {
            exported.push((*outpoint, coin.clone()));
            Ok(())
        })
        .unwrap();
    assert!(exported.into_iter().eq(model.clone()));
}

proptest! {
    #[test]
    fn equal_to_the_model(blocks in proptest::collection::vec((proptest::collection::vec(any::<(u8, bool)>(), 0..20), any::<bool>()), 1..12)) {
        let disk = SimDisk::new(1);
        let mut store = open(&disk);
        let (mut model, mut durable) = (Model::new(), Model::new());
        for (height, (touched, is_checkpoint)) in (1u32..).zip(blocks) {
            let spends: Vec<OutPoint> = touched.iter().filter(|(_, spend)| *spend).map(|(number, _)| outpoint(*number)).filter(|outpoint| model.remove(outpoint).is_some()).collect();
            let creates: BTreeMap<OutPoint, Coin> = touched.iter().filter(|(_, spend)| !spend).map(|(number, _)| (outpoint(*number), coin(height, *number))).collect();
            let creates: Vec<(OutPoint, Coin)> = creates.into_iter().collect();
            model.extend(creates.iter().cloned());
            apply(&store, &spends, &creates).unwrap();
            compare(&store, &model);
            if is_checkpoint {
                let tip = Tip { height: Height(height), hash: BlockHash([9; 32]) };
                store.checkpoint(tip, 2).unwrap();
                prop_assert_eq!(store.tip(), Some(tip));
                compare(&store, &model);
                durable = model.clone();
                drop(store);
                store = open(&disk);
                compare(&store, &model);
            }
        }
        drop(store);
        compare(&open(&disk), &durable);
    }
}
