//! Model checks of the journal: `journal.rs` compiled again with locks that `shuttle` schedules, so that readers meet a
//! writer in every order of threads.

mod sync {
    pub(super) use shuttle::sync::atomic::{AtomicU64, Ordering};
    pub(super) use shuttle::sync::{Mutex, MutexGuard};
}
#[path = "journal.rs"]
#[allow(clippy::duplicate_mod, dead_code, reason = "the code under test, over other locks")]
mod journal;

use super::journal_tests::{Changed, Coins, KEYS, key, partition, random_change};
use journal::{Change, Journal, StoredCoins, Wanted};
use lydian_coins::PARTITIONS;
use lydian_stdx::SplitMix64;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::Mutex;
use shuttle::thread::{spawn, yield_now};
use shuttle::{Config, Runner};
use std::sync::Arc;

const ORDERS: usize = 1_000;
const BLOCKS: u32 = 4;

impl Change for Changed {
    fn decide(&self, in_partition: usize, wanted: &mut Wanted) {
        self.decide_by(in_partition, &mut |key, before| wanted.decide(key, || before.clone()));
    }

    fn bytes(&self) -> usize {
        0
    }
}

struct World {
    journal: Journal<u32, Changed>,
    /// The two halves of the store, as two workers apply them.
    store: [Mutex<Coins>; 2],
    /// The coins at each tip.
    expected: Vec<Coins>,
    /// Held while the settled block moves.
    settling: Mutex<()>,
}

fn half(number: u8) -> usize {
    partition(&key(number)) / (PARTITIONS / 2)
}

impl World {
    /// Applies a block to one half of the store.
    fn apply(&self, which: usize, tip: u32) {
        let after = self.expected[tip as usize].iter().filter(|(number, _)| half(**number) == which);
        let after = after.map(|(number, coin)| (*number, coin.clone())).collect();
        *self.store[which].lock().unwrap() = after;
        for at in (0..PARTITIONS).filter(|at| at / (PARTITIONS / 2) == which) {
            self.journal.applied(at, 1);
        }
        if self.journal.may_settle() {
            let _in_order = self.settling.lock().unwrap();
            self.journal.settle(self.journal.applied_tip());
        }
    }

    /// Reads every key at a snapshot, some half a store at a time.
    fn look(&self) {
        let settled = self.journal.hold();
        yield_now();
        let mut coins = Coins::new();
        for at in 0..2 {
            let numbers: Vec<u8> = (0..KEYS).filter(|number| half(*number) == at).collect();
            let stored = self.store[at].lock().unwrap().clone();
            yield_now();
            for number in numbers {
                let found = vec![stored.get(&number).cloned()];
                let keys = [key(number)];
                let stored = vec![StoredCoins { partition: partition(&keys[0]), keys: &keys, found }];
                let mut decided = self.journal.decide(settled.position, stored).unwrap();
                coins.extend(decided[0].found.pop().flatten().map(|coin| (number, coin)));
            }
        }
        assert_eq!(coins, self.expected[settled.id as usize], "at tip {}", settled.id);
        self.journal.release(settled.position);
    }
}

fn check() {
    let mut random = SplitMix64::new(thread_rng().r#gen());
    let (mut expected, mut changes) = (vec![Coins::new()], Vec::new());
    for tip in 0..BLOCKS {
        let (change, after) = random_change(&expected[tip as usize], &mut random);
        expected.push(after);
        changes.push(change);
    }
    let store = [Mutex::new(Coins::new()), Mutex::new(Coins::new())];
    let world = Arc::new(World { journal: Journal::new(0), store, expected, settling: Mutex::new(()) });
    let committed = Arc::new(shuttle::sync::atomic::AtomicU32::new(0));
    let mut threads = Vec::new();
    for which in 0..2 {
        let (world, committed) = (Arc::clone(&world), Arc::clone(&committed));
        threads.push(spawn(move || {
            for tip in 1..=BLOCKS {
                while committed.load(shuttle::sync::atomic::Ordering::SeqCst) < tip {
                    yield_now();
                }
                world.apply(which, tip);
            }
        }));
    }
    for _ in 0..2 {
        let world = Arc::clone(&world);
        threads.push(spawn(move || (0..2).for_each(|_| world.look())));
    }
    for (tip, change) in (1..).zip(changes) {
        world.journal.publish(tip, Arc::new(change));
        committed.store(tip, shuttle::sync::atomic::Ordering::SeqCst);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(world.journal.settled().id, BLOCKS);
    assert_eq!(world.journal.kept(), 0);
}

#[test]
fn readers_see_one_tip_in_every_order() {
    Runner::new(RandomScheduler::new(ORDERS), Config::new()).run(check);
    Runner::new(PctScheduler::new(3, ORDERS), Config::new()).run(check);
}
