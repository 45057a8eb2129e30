//! Sizes that consensus allows, and some larger ones: the store must support all of them.

use crate::common;
use crate::common::{MODES, Store, open, settings_of, tip};
use lydian_coins::Settings;
use lydian_consensus::Coin;
use lydian_disk::SimDisk;
use lydian_primitives::{Amount, Height, OutPoint, Txid};

fn coin(script_size: usize) -> Coin {
    Coin { value: Amount(1), script_pubkey: vec![0x51; script_size].into(), height: Height(1), is_coinbase: false }
}

/// In March 2013 the lock limit of a database determined which blocks were valid, and the chain forked. Here all
/// outputs of a block, as many as its weight allows, are created and spent in one batch, with a cache far too small for
/// them.
///
/// checklist: 92
#[test]
fn all_outputs_of_the_largest_block_in_one_batch() {
    // An output has at least 9 bytes, each of weight 4.
    let count = 4_000_000 / (9 * 4);
    let outpoints: Vec<OutPoint> = (0..count).map(|vout| OutPoint { txid: Txid([5; 32]), vout }).collect();
    let creates: Vec<(OutPoint, Coin)> = outpoints.iter().map(|outpoint| (*outpoint, coin(0))).collect();
    for is_low_memory in MODES {
        let disk = SimDisk::new(1);
        let store = Store { coins: open(&disk, settings_of(1 << 12, is_low_memory)).unwrap(), collides: false };
        store.apply(&[], &creates).unwrap();
        assert_eq!(store.coins.len(), u64::from(count));
        store.coins.checkpoint(tip(1), 2).unwrap();
        assert!(store.get(&outpoints).unwrap().values().all(|found| *found == Some(coin(0))));
        store.apply(&outpoints, &[]).unwrap();
        store.coins.checkpoint(tip(2), 2).unwrap();
        assert_eq!((store.coins.len(), store.coins.stats().segments), (0, 0));
    }
}

/// checklist: 92
#[test]
fn scripts_of_any_size() {
    MODES.into_iter().for_each(|is_low_memory| store_scripts_of_any_size(settings_of(1 << 12, is_low_memory)));
}

fn store_scripts_of_any_size(settings: Settings) {
    let disk = SimDisk::new(1);
    let mut store = Store { coins: open(&disk, settings).unwrap(), collides: false };
    let sizes = [0, 1, 87, 88, 89, 127, 128, 200, 9_999, 10_000, 10_001, 65_490, 65_536, 1_000_000, 4_000_000];
    let creates: Vec<(OutPoint, Coin)> = (0..).map(common::outpoint).zip(sizes.map(coin)).collect();
    store.apply(&[], &creates).unwrap();
    let check = |store: &Store| {
        let found = store.get(&creates.iter().map(|(outpoint, _)| *outpoint).collect::<Vec<_>>()).unwrap();
        assert!(creates.iter().all(|(outpoint, coin)| found[outpoint].as_ref() == Some(coin)));
        assert!(store.all().unwrap() == creates.iter().cloned().collect());
    };
    check(&store);
    store.coins.checkpoint(tip(1), 1).unwrap();
    check(&store);
    common::compare_pinned(&store.coins.pin().unwrap(), &creates.iter().cloned().collect());
    store = Store { coins: open(&disk, settings).unwrap(), collides: false };
    check(&store);
    store.apply(&creates.iter().map(|(outpoint, _)| *outpoint).collect::<Vec<_>>(), &[]).unwrap();
    assert!(store.coins.is_empty());
}
