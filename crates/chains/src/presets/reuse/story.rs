//! One script: the number of transactions that touch it, the number of coins it ends with, and the effect of each
//! transaction.
//!
//! Input: the seed's randomness, and a call for each transaction. Output: a payment to the script, or a spend of some
//! of its coins. Invariant, kept by every step: the coins held and still to come exceed those to be left by `to_spend`,
//! with at least one for each remaining spend; so the last step reaches the drawn numbers.

use crate::plan::Coin;
use crate::rng::Random;
use crate::wallet::Lock;

/// A coin, and the height of the block that creates it.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub coin: Coin,
    pub height: u32,
}

/// The effect of a transaction on the script.
#[derive(Clone, Debug)]
pub enum Step {
    /// Pays the script with this number of outputs.
    Pay { outputs: u32 },
    /// Spends these coins, and pays one back to the script if `is_paid_back`.
    Spend { coins: Vec<Held>, is_paid_back: bool },
}

/// A script that is used repeatedly.
#[derive(Clone, Debug)]
pub struct Story {
    pub lock: Lock,
    /// Remaining transactions that pay it. `spends`: those that spend from it.
    pays: u32,
    spends: u32,
    /// Remaining coins in addition to one per payment.
    extra: u32,
    /// Coins to be left at the end.
    left: u32,
    touched: u32,
    coins: Vec<Held>,
}

const TRANSACTIONS_MIN: u64 = 10;
const TRANSACTIONS_MAX: u64 = 999;

/// Per thousand scripts: those never spent from. `EMPTY_PER_MILLE`: those spent until no coin is left.
const KEPT_PER_MILLE: u64 = 150;
const EMPTY_PER_MILLE: u64 = 150;
/// Per thousand scripts: those that some transactions pay twice, or pay their own change.
const EXTRA_PER_MILLE: u64 = 120;
const PAID_BACK_PER_MILLE: u64 = 250;

/// The most coins that a spend takes on average.
const SPEND_COINS_MEAN_MAX: u32 = 20;

impl Story {
    /// 10 to 999 transactions, log-uniformly; from no coins to one per transaction or more.
    pub fn drawn(lock: Lock, random: &mut Random) -> Story {
        let transactions = log_uniform(random, TRANSACTIONS_MIN, TRANSACTIONS_MAX);
        let extra = if random.chance(EXTRA_PER_MILLE) { transactions / 8 } else { 0 };
        let class = random.below(1000);
        if class < KEPT_PER_MILLE {
            return Story::new(lock, transactions, 0, extra, transactions + extra);
        }
        let left = if class < KEPT_PER_MILLE + EMPTY_PER_MILLE {
            0
        } else if random.chance(500) {
            log_uniform(random, 1, u64::from(transactions - 2))
        } else {
            number(random.between(1, u64::from(transactions - 2)))
        };
        let most = (transactions - left) / 2;
        let least = (transactions + extra - left).div_ceil(SPEND_COINS_MEAN_MAX).clamp(1, most);
        let spends = number(random.between(u64::from(least), u64::from(most)));
        Story::new(lock, transactions, spends, extra, left)
    }

    /// A fat script that keeps a single coin: two of five transactions spend.
    pub fn spent(lock: Lock, transactions: u32) -> Story {
        Story::new(lock, transactions, transactions * 2 / 5, 0, 1)
    }

    /// A fat script with about 3 % more coins than transactions, of which one in sixteen spends.
    pub fn kept(lock: Lock, transactions: u32) -> Story {
        let spends = transactions / 16;
        let left = transactions + transactions * 3 / 100;
        Story::new(lock, transactions, spends, left - transactions + 3 * spends, left)
    }

    fn new(lock: Lock, transactions: u32, spends: u32, extra: u32, left: u32) -> Story {
        Story { lock, pays: transactions - spends, spends, extra, left, touched: 0, coins: Vec::new() }
    }

    /// Transactions that have touched it so far.
    pub fn transactions(&self) -> u32 {
        self.touched
    }

    /// Coins it has now.
    pub fn coin_count(&self) -> u32 {
        u32::try_from(self.coins.len()).unwrap_or(u32::MAX)
    }

    /// Remaining transactions.
    pub fn remaining(&self) -> u32 {
        self.pays + self.spends
    }

    /// Adds a coin that the last step created.
    pub fn receive(&mut self, coin: Held) {
        self.coins.push(coin);
    }

    /// The effect of the next transaction. Its coins must be received before the next call; must not be called when
    /// none remains.
    pub fn step(&mut self, random: &mut Random) -> Step {
        self.touched += 1;
        // The last spend takes all surplus coins, so everything that comes later must be kept.
        let can_spend = match self.spends {
            0 => false,
            1 => self.pays + self.extra <= self.left,
            _ => !self.coins.is_empty(),
        };
        let is_spend = random.below(u64::from(self.remaining())) < u64::from(self.spends);
        if self.pays == 0 || (can_spend && is_spend) { self.spend(random) } else { self.pay(random) }
    }

    fn pay(&mut self, random: &mut Random) -> Step {
        let (whole, rest) = (self.extra / self.pays, self.extra % self.pays);
        let more = whole + u32::from(random.below(u64::from(self.pays)) < u64::from(rest));
        self.pays -= 1;
        self.extra -= more;
        Step::Pay { outputs: 1 + more }
    }

    fn spend(&mut self, random: &mut Random) -> Step {
        let to_spend = self.coin_count() + self.pays + self.extra - self.left;
        let count = if self.spends == 1 {
            to_spend
        } else {
            let mean = to_spend / self.spends;
            let wanted = number(random.between(1, u64::from((2 * mean).saturating_sub(1).max(1))));
            wanted.min(to_spend - (self.spends - 1)).min(self.coin_count())
        };
        self.spends -= 1;
        let coins = (0..count).map(|_| self.coins.swap_remove(random.index(self.coins.len()))).collect();
        let is_paid_back = self.extra > 0 && random.chance(PAID_BACK_PER_MILLE);
        self.extra -= u32::from(is_paid_back);
        Step::Spend { coins, is_paid_back }
    }
}

/// A log-uniform number: a uniform draw is kept with probability `low` over the number.
fn log_uniform(random: &mut Random, low: u64, high: u64) -> u32 {
    loop {
        let drawn = random.between(low, high);
        if random.below(drawn) < low {
            return number(drawn);
        }
    }
}

fn number(drawn: u64) -> u32 {
    u32::try_from(drawn).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallet::Kind;

    const LOCK: Lock = Lock { kind: Kind::P2wpkh, key: 1 };
    const COIN: Coin = Coin { tx: 0, vout: 0, lock: LOCK, value: 1_000 };

    /// Plays a story to its end; returns the largest number of coins that one step spends.
    fn play(story: &mut Story, random: &mut Random) -> usize {
        let mut most = 0;
        while story.remaining() > 0 {
            let made = match story.step(random) {
                Step::Pay { outputs } => outputs,
                Step::Spend { coins, is_paid_back } => {
                    assert!(!coins.is_empty());
                    most = most.max(coins.len());
                    u32::from(is_paid_back)
                }
            };
            (0..made).for_each(|_| story.receive(Held { coin: COIN, height: 1 }));
        }
        most
    }

    #[test]
    fn every_story_ends_on_the_numbers_drawn() {
        let mut random = Random::new(3, "stories");
        let (mut empty, mut kept) = (0, 0);
        for _ in 0..3_000 {
            let mut story = Story::drawn(LOCK, &mut random);
            let (transactions, left) = (story.remaining(), story.left);
            assert!((10..=999).contains(&transactions));
            let most = play(&mut story, &mut random);
            assert_eq!((story.transactions(), story.coin_count()), (transactions, left));
            assert!(most < 400, "{most} coins at once");
            empty += u32::from(left == 0);
            kept += u32::from(left >= transactions);
        }
        assert!((350..600).contains(&empty) && (350..600).contains(&kept), "{empty} empty, {kept} kept");
    }

    #[test]
    fn fat_ones_end_with_one_coin_and_with_more_coins_than_transactions() {
        let mut random = Random::new(4, "fat");
        let mut spent = Story::spent(LOCK, 20_000);
        assert!(play(&mut spent, &mut random) < 400);
        assert_eq!((spent.transactions(), spent.coin_count()), (20_000, 1));
        let mut kept = Story::kept(LOCK, 47_000);
        assert!(play(&mut kept, &mut random) < 400);
        assert_eq!((kept.transactions(), kept.coin_count()), (47_000, 48_410));
    }

    #[test]
    fn each_doubling_is_as_likely_as_the_next() {
        let mut random = Random::new(5, "log");
        let mut counts = [0u32; 3];
        for _ in 0..30_000 {
            let drawn = log_uniform(&mut random, 10, 999);
            counts[[47, 216].iter().filter(|&&end| drawn >= end).count()] += 1;
        }
        // A third each of the logarithm of 99.9.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
    }
}
