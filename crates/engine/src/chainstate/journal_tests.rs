//! Tests of the journal: what a snapshot sees against a model of the coins, and its limits.

use super::journal::{Change, Expired, Journal, StoredCoins, Wanted};
use crate::limits::{JOURNAL_BYTES, JOURNAL_CHANGES};
use lydian_coins::{Key, PARTITIONS};
use lydian_consensus::Coin;
use lydian_primitives::{Amount, Height, OutPoint, Txid};
use lydian_stdx::SplitMix64;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The keys of the tests, two in each partition. Those of a partition share a hash.
pub(super) const KEYS: u8 = 32;

pub(super) fn key(number: u8) -> Key {
    let txid = Txid([number; 32]);
    Key { outpoint: OutPoint { txid, vout: 0 }, hash: u64::from(number % 16) << 60 }
}

pub(super) fn partition(key: &Key) -> usize {
    lydian_coins::Coins::partition(key)
}

fn coin(value: i64) -> Coin {
    Coin { value: Amount(value), script_pubkey: Box::default(), height: Height(1), is_coinbase: false }
}

/// The coins at one tip.
pub(super) type Coins = BTreeMap<u8, Coin>;

/// A change, with the coins before it.
#[derive(Debug)]
pub(super) struct Changed {
    before: Vec<(u8, Option<Coin>)>,
    bytes: usize,
    is_exact: bool,
}

/// Some changes of the coins at random: the change, and the coins after it.
pub(super) fn random_change(coins: &Coins, random: &mut SplitMix64) -> (Changed, Coins) {
    let (mut before, mut after) = (Vec::new(), coins.clone());
    for number in 0..KEYS {
        if random.below(3) > 0 {
            continue;
        }
        before.push((number, coins.get(&number).cloned()));
        if after.remove(&number).is_none() {
            after.insert(number, coin(i64::try_from(random.next_u64() >> 2).unwrap()));
        }
    }
    (Changed { before, bytes: 1, is_exact: true }, after)
}

impl Changed {
    pub(super) fn decide_by(&self, in_partition: usize, decide: &mut dyn FnMut(&Key, Option<Coin>)) {
        for (number, before) in self.before.iter().filter(|(number, _)| partition(&key(*number)) == in_partition) {
            decide(&key(*number), before.clone());
        }
    }
}

impl Change for Changed {
    fn decide(&self, in_partition: usize, wanted: &mut Wanted) {
        self.decide_by(in_partition, &mut |key, before| wanted.decide(key, || before.clone()));
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn is_exact(&self) -> bool {
        self.is_exact
    }
}

/// Reads every key as a reader does: the store, then the journal.
fn read(journal: &Journal<u32, Changed>, position: u64, store: &Coins) -> Result<Coins, Expired> {
    let mut coins = Coins::new();
    for at in 0..PARTITIONS {
        // Some keys twice.
        let numbers: Vec<u8> = (0..KEYS).chain(3..5).filter(|number| partition(&key(*number)) == at).collect();
        let keys: Vec<Key> = numbers.iter().map(|number| key(*number)).collect();
        let found = numbers.iter().map(|number| store.get(number).cloned()).collect();
        let decided = journal.decide(position, vec![StoredCoins { partition: at, keys: &keys, found }])?;
        for (number, coin) in numbers.into_iter().zip(decided.into_iter().flat_map(|coins| coins.found)) {
            if let Some(coin) = coin {
                assert!(coins.insert(number, coin.clone()).is_none_or(|twice| twice == coin));
            }
        }
    }
    Ok(coins)
}

/// Enters a change, applies it to every partition and settles it.
fn settle_change(journal: &Journal<u32, Changed>, tip: u32, change: Changed) {
    journal.publish(tip, Arc::new(change));
    (0..PARTITIONS).for_each(|at| journal.applied(at, 1));
    assert_eq!(journal.applied_tip(), tip);
    assert_eq!(journal.settle(tip).map(|(settled, changes)| (settled.id, changes.len())), Some((tip, 1)));
}

fn change_of(bytes: usize) -> Changed {
    Changed { before: Vec::new(), bytes, is_exact: true }
}

#[test]
fn a_snapshot_sees_the_coins_of_its_tip() {
    for seed in 0..200 {
        let mut random = SplitMix64::new(seed);
        let journal = Journal::<u32, Changed>::new(0);
        let (mut store, mut snapshots) = (Coins::new(), Vec::new());
        for tip in 1..=30 {
            if random.below(3) == 0 {
                snapshots.push((journal.hold(), store.clone()));
            }
            let (change, after) = random_change(&store, &mut random);
            settle_change(&journal, tip, change);
            store = after;
            for (settled, coins) in &snapshots {
                assert_eq!(read(&journal, settled.position, &store).as_ref(), Ok(coins), "seed {seed}, tip {tip}");
            }
            if random.below(4) == 0 && !snapshots.is_empty() {
                let (settled, _) = snapshots.swap_remove(random.below(snapshots.len()));
                journal.release(settled.position);
            }
        }
        snapshots.iter().for_each(|(settled, _)| journal.release(settled.position));
        assert_eq!(journal.kept(), 0, "seed {seed}: nothing is kept without a snapshot");
    }
}

/// More changes than are read at once, of which the last decides.
#[test]
fn a_snapshot_sees_far_back() {
    let journal = Journal::<u32, Changed>::new(0);
    let settled = journal.hold();
    let before = Coins::from([(3, coin(7))]);
    (1..700).for_each(|tip| settle_change(&journal, tip, change_of(1)));
    assert_eq!(read(&journal, settled.position, &before).as_ref(), Ok(&before), "nothing has changed");
    let spent = Changed { before: vec![(3, Some(coin(7)))], bytes: 1, is_exact: true };
    settle_change(&journal, 700, spent);
    assert_eq!(read(&journal, settled.position, &Coins::new()), Ok(before));
}

/// A partition may be ahead of the settled block, and a block may settle that is the tip for the second time.
#[test]
fn blocks_settle_once_every_partition_has_them() {
    let journal = Journal::<u32, Changed>::new(0);
    for tip in [1, 2, 1] {
        journal.publish(tip, Arc::new(change_of(0)));
    }
    for at in 0..PARTITIONS {
        assert_eq!((journal.settle(1).is_none(), journal.may_settle(), journal.applied_tip()), (true, false, 0));
        journal.applied(at, 1 + at);
    }
    assert!(journal.may_settle());
    assert_eq!(journal.applied_tip(), 1);
    assert_eq!(journal.settle(2).map(|_| ()), None, "one partition does not have it");
    assert_eq!(journal.settle(1).map(|(settled, _)| (settled.position, settled.sequence)), Some((1, 1)));
    journal.applied(0, 2);
    journal.applied(1, 1);
    let (settled, changes) = journal.settle(1).unwrap();
    assert_eq!((settled.position, settled.sequence, changes.len()), (3, 2, 2));
    assert_eq!(journal.settled(), settled);
}

/// limit: JOURNAL_BYTES at
/// limit: JOURNAL_BYTES above
#[test]
fn the_oldest_snapshots_expire_beyond_the_bytes() {
    let journal = Journal::<u32, Changed>::new(0);
    let first = journal.hold();
    settle_change(&journal, 1, change_of(JOURNAL_BYTES - 10));
    let second = journal.hold();
    settle_change(&journal, 2, change_of(10));
    assert_eq!(journal.check(first.position), Ok(()), "as much as is allowed");
    settle_change(&journal, 3, change_of(1));
    assert_eq!(journal.check(first.position), Err(Expired));
    assert_eq!(read(&journal, first.position, &Coins::new()), Err(Expired));
    assert_eq!(journal.check(second.position), Ok(()));
    journal.release(first.position);
    assert_eq!(journal.kept(), 2, "what the second one needs");
    journal.release(second.position);
    assert_eq!(journal.kept(), 0);
}

/// limit: JOURNAL_CHANGES at
/// limit: JOURNAL_CHANGES above
#[test]
fn the_oldest_snapshots_expire_beyond_the_blocks() {
    let journal = Journal::<u32, Changed>::new(0);
    let first = journal.hold();
    let mut tip = 0;
    for expected in [Ok(()), Err(Expired)] {
        while u64::from(tip) < JOURNAL_CHANGES + u64::from(expected.is_err()) {
            tip += 1;
            settle_change(&journal, tip, change_of(1));
        }
        assert_eq!(journal.check(first.position), expected);
    }
    assert_eq!(journal.kept(), 0, "no snapshot needs them any more");
}

#[test]
fn a_change_without_the_coins_before_it_ends_older_snapshots() {
    let journal = Journal::<u32, Changed>::new(0);
    let first = journal.hold();
    journal.publish(1, Arc::new(Changed { before: Vec::new(), bytes: 0, is_exact: false }));
    let second = journal.hold();
    assert_eq!([first, second].map(|settled| journal.check(settled.position)), [Err(Expired); 2]);
    (0..PARTITIONS).for_each(|at| journal.applied(at, 1));
    journal.settle(1).unwrap();
    assert_eq!(journal.check(journal.hold().position), Ok(()));
}
