//! Plans which scripts are paid and spent in which block, on one thread, from the seed alone.
//!
//! Input: [`ReuseSettings`]. Output: a sequence of [`PlannedBlock`]s. First, the transactions of each script are
//! assigned to random blocks, in shares of very different size; then each block combines one to four scripts in a
//! transaction. The remaining value comes from funds: coins of new keys, prepared from coinbases below the activation
//! height, and change. Invariants: a transaction touches a script at most once; what does not fit moves to the next
//! block. Cost: a few us per transaction. It must never sign.

use super::ReuseSettings;
use super::story::{Held, Step, Story};
use crate::error::ChainsError;
use crate::plan::{Coin, FIRST_TIME, PlannedBlock, PlannedInput, PlannedOutput, PlannedTx, subsidy};
use crate::regtest::{BLOCK_WEIGHT_MAX, COINBASE_MATURITY, OUTPUT_VALUE_MIN, VOTED_ACTIVATION_HEIGHT};
use crate::rng::Random;
use crate::wallet::{Kind, Lock};
use std::collections::VecDeque;

/// Number of scripts that a transaction touches.
const GROUPS: [(u64, u64, u64); 4] = [(250, 1, 1), (400, 2, 2), (200, 3, 3), (150, 4, 4)];
const GROUPS_MEAN_X100: u64 = 225;

/// Shares of blocks: most are small, few are large.
const BLOCK_SHARES: [(u64, u64, u64); 5] = [(60, 1, 10), (25, 11, 40), (10, 41, 100), (4, 101, 250), (1, 251, 400)];

/// Transactions of the large block, including the coinbase: as many as in a full block of mainnet. At most an eighth of
/// all.
const LARGE_BLOCK_TRANSACTIONS: u64 = 2_900;
/// Of these, the transactions that touch scripts; the others fill up the number.
const LARGE_BLOCK_TOUCHING: u64 = 2_700;

/// Nothing is added to a block above this weight: room for the heaviest possible transaction.
const BLOCK_WEIGHT_STOP: u64 = BLOCK_WEIGHT_MAX - 400_000;

/// The number of coins into which a coinbase below the activation height is split.
const FAN_OUT: usize = 40;
/// A block ends when there are fewer funds.
const FUNDS_MIN: usize = 16;
/// The most blocks after the last planned one for the remaining transactions.
const OVERTIME_BLOCKS_MAX: u32 = 1_000;

/// A payment is between this and 256 times as much, each doubling equally likely.
const PAYMENT_MIN: i64 = 5_000;
const PAYMENT_DOUBLINGS: u64 = 8;
/// Reserved for the fee until the size is known. `FEE_RESERVE_INPUT` is added for each input.
const FEE_RESERVE: i64 = 5_000;
const FEE_RESERVE_INPUT: i64 = 3_000;

const DATA_PER_MILLE: u64 = 50;
const LOCK_TIME_PER_MILLE: u64 = 200;
const LEAF_SIZE_MAX: u64 = 400;
const SEQUENCE_LAST_BUT_ONE: u32 = 0xffff_fffe;
const SEQUENCE_REPLACEABLE: u32 = 0xffff_fffd;

/// The state of the plan between two blocks.
#[derive(Debug)]
pub struct Planner {
    settings: ReuseSettings,
    random: Random,
    stories: Vec<Story>,
    /// Scripts to be touched, by block above the activation height.
    slots: VecDeque<Vec<u32>>,
    /// Scripts that did not fit in their block.
    carried: Vec<u32>,
    large_height: u32,
    large_transactions: usize,
    funds: Vec<Held>,
    /// Funds created in the block being planned: spent only in later ones.
    new_funds: Vec<Held>,
    immature: VecDeque<Held>,
    next_tx: usize,
    next_key: u64,
    fees: i64,
    height: u32,
}

/// The block being planned.
struct Draft {
    first_tx: usize,
    txs: Vec<PlannedTx>,
    weight_x2: u64,
}

/// A transaction being planned: outputs with the script they pay, if it is one of the reused ones.
#[derive(Default)]
struct Parts {
    inputs: Vec<Held>,
    outputs: Vec<(Option<u32>, PlannedOutput)>,
}

impl Planner {
    pub fn new(settings: ReuseSettings) -> Result<Planner, ChainsError> {
        settings.check()?;
        let mut planner = Planner {
            settings,
            random: Random::new(settings.seed, "reuse"),
            stories: Vec::new(),
            slots: VecDeque::new(),
            carried: Vec::new(),
            large_height: 0,
            large_transactions: 0,
            funds: Vec::new(),
            new_funds: Vec::new(),
            immature: VecDeque::new(),
            next_tx: 0,
            next_key: 0,
            fees: 0,
            height: 0,
        };
        planner.draw_stories();
        planner.throw_slots();
        Ok(planner)
    }

    /// The scripts, those with 10 to 999 transactions first.
    pub fn stories(&self) -> &[Story] {
        &self.stories
    }

    /// Unspent outputs: the size of the UTXO set.
    pub fn coin_count(&self) -> usize {
        let of_scripts: usize = self.stories.iter().map(|story| story.coin_count() as usize).sum();
        of_scripts + self.funds.len() + self.immature.len()
    }

    /// The next block; `None` once every script has had its transactions.
    pub fn next_block(&mut self) -> Result<Option<PlannedBlock>, ChainsError> {
        let overtime = self.height.saturating_sub(self.settings.blocks());
        if self.height >= self.settings.blocks() && self.slots.is_empty() && self.carried.is_empty() {
            return Ok(None);
        }
        if overtime > OVERTIME_BLOCKS_MAX {
            return Err(ChainsError::Usage("the transactions of the scripts do not fit in the chain".into()));
        }
        self.height += 1;
        self.fees = 0;
        let mut draft = Draft { first_tx: self.next_tx, txs: Vec::new(), weight_x2: 0 };
        self.next_tx += 1;
        if self.height > VOTED_ACTIVATION_HEIGHT {
            self.fill(&mut draft)?;
        } else if let Some(coin) = self.next_mature() {
            self.fan_out(&mut draft, coin)?;
        }
        let coinbase = self.coinbase(draft.first_tx);
        self.funds.append(&mut self.new_funds);
        let jitter = number(self.random.below(900));
        let time = FIRST_TIME + 600 * self.height + jitter;
        Ok(Some(PlannedBlock { height: self.height, time, first_tx: draft.first_tx, coinbase, txs: draft.txs }))
    }

    fn draw_stories(&mut self) {
        for _ in 0..self.settings.scripts {
            let kind = Kind::at(self.random.below(1000));
            let lock = self.fresh_lock(kind);
            self.stories.push(Story::drawn(lock, &mut self.random));
        }
        if self.settings.fat_spent > 0 {
            let lock = self.fresh_lock(Kind::P2wpkh);
            self.stories.push(Story::spent(lock, self.settings.fat_spent));
        }
        if self.settings.fat_kept > 0 {
            let lock = self.fresh_lock(Kind::P2pkh);
            self.stories.push(Story::kept(lock, self.settings.fat_kept));
        }
    }

    /// Assigns the transactions of each script to random blocks above the activation height: half of the scripts are
    /// used over the whole chain, the others over a fifth of it or more.
    fn throw_slots(&mut self) {
        let count = self.settings.blocks() - VOTED_ACTIVATION_HEIGHT;
        let mut shares: Vec<u64> = (0..count).map(|_| self.random.from_table(&BLOCK_SHARES)).collect();
        let slots: u64 = self.stories.iter().map(|story| u64::from(story.remaining())).sum();
        let transactions = slots * 100 / GROUPS_MEAN_X100;
        let large = LARGE_BLOCK_TRANSACTIONS.min(transactions / 8).max(1);
        let touching = large * LARGE_BLOCK_TOUCHING / LARGE_BLOCK_TRANSACTIONS;
        let at = count * 3 / 5;
        shares[at as usize] = 0;
        shares[at as usize] = shares.iter().sum::<u64>() * touching / (transactions - touching).max(1);
        self.large_height = VOTED_ACTIVATION_HEIGHT + 1 + at;
        self.large_transactions = usize::try_from(large).unwrap_or(usize::MAX);

        let ends: Vec<u64> = shares
            .iter()
            .scan(0, |sum, share| {
                *sum += share;
                Some(*sum)
            })
            .collect();
        let all = ends.last().copied().unwrap_or(0);
        let mut slots = vec![Vec::new(); count as usize];
        for (script, story) in (0..).zip(&self.stories) {
            let is_fat = script >= self.settings.scripts;
            let per_cent = if is_fat || self.random.chance(500) { 100 } else { self.random.between(20, 100) };
            let length = (all * per_cent / 100).max(1);
            let start = self.random.below(all - length + 1);
            for _ in 0..story.remaining() {
                let point = start + self.random.below(length);
                slots[ends.partition_point(|&end| end <= point)].push(script);
            }
        }
        self.slots = slots.into();
    }

    /// Pays subsidy and fees to a new key; the coin waits until it is mature.
    fn coinbase(&mut self, tx: usize) -> PlannedOutput {
        let kind = if self.height < VOTED_ACTIVATION_HEIGHT { Kind::P2pkh } else { Kind::P2wpkh };
        let lock = self.fresh_lock(kind);
        let value = subsidy(self.height) + self.fees;
        self.immature.push_back(Held { coin: Coin { tx, vout: 0, lock, value }, height: self.height });
        PlannedOutput::Pay { lock, value }
    }

    /// The oldest coinbase coin, if this block may spend it.
    fn next_mature(&mut self) -> Option<Held> {
        let is_mature = self.immature.front().is_some_and(|held| held.height + COINBASE_MATURITY <= self.height);
        if is_mature { self.immature.pop_front() } else { None }
    }

    /// Splits a coinbase between new keys.
    fn fan_out(&mut self, draft: &mut Draft, coin: Held) -> Result<(), ChainsError> {
        let part = coin.coin.value / i64::try_from(FAN_OUT + 1).unwrap_or(1);
        let mut parts = Parts { inputs: vec![coin], outputs: Vec::new() };
        (0..FAN_OUT)
            .for_each(|_| parts.outputs.push((None, PlannedOutput::Pay { lock: self.any_lock(), value: part })));
        self.settle(draft, parts)
    }

    /// Fills a block above the activation height with its own slots and those carried over.
    fn fill(&mut self, draft: &mut Draft) -> Result<(), ChainsError> {
        while let Some(held) = self.next_mature() {
            self.funds.push(held);
        }
        let mut queue = std::mem::take(&mut self.carried);
        queue.extend(self.slots.pop_front().unwrap_or_default());
        for last in (1..queue.len()).rev() {
            queue.swap(last, self.random.index(last + 1));
        }
        let is_large = self.height == self.large_height;
        let count_max = if is_large { self.large_transactions - 1 } else { usize::MAX };
        let has_room = |draft: &Draft, funds: usize| {
            draft.weight_x2 < 2 * BLOCK_WEIGHT_STOP && draft.txs.len() < count_max && funds >= FUNDS_MIN
        };
        while !queue.is_empty() && has_room(draft, self.funds.len()) {
            let group = self.draw_group(&mut queue);
            let parts = self.touch(&group);
            self.settle(draft, parts)?;
        }
        self.carried = queue;
        while is_large && has_room(draft, self.funds.len()) {
            let value = self.payment();
            let outputs = vec![(None, PlannedOutput::Pay { lock: self.any_lock(), value })];
            self.settle(draft, Parts { inputs: Vec::new(), outputs })?;
        }
        Ok(())
    }

    /// Takes one to four different scripts from the end of the queue.
    fn draw_group(&mut self, queue: &mut Vec<u32>) -> Vec<u32> {
        let wanted = usize::try_from(self.random.from_table(&GROUPS)).unwrap_or(1);
        let mut group: Vec<u32> = Vec::with_capacity(wanted);
        let mut again = Vec::new();
        while group.len() < wanted
            && let Some(script) = queue.pop()
        {
            if group.contains(&script) { again.push(script) } else { group.push(script) }
        }
        queue.append(&mut again);
        group
    }

    /// The inputs and outputs of a transaction that touches these scripts.
    fn touch(&mut self, group: &[u32]) -> Parts {
        let mut parts = Parts::default();
        for &script in group {
            let story = &mut self.stories[script as usize];
            let lock = story.lock;
            let outputs = match story.step(&mut self.random) {
                Step::Pay { outputs } => outputs,
                Step::Spend { coins, is_paid_back } => {
                    parts.inputs.extend(coins);
                    u32::from(is_paid_back)
                }
            };
            for _ in 0..outputs {
                let value = self.payment();
                parts.outputs.push((Some(script), PlannedOutput::Pay { lock, value }));
            }
        }
        if self.random.chance(DATA_PER_MILLE) {
            parts.outputs.push((None, PlannedOutput::Data { size: 40, number: self.random.next_u64() }));
        }
        parts
    }

    /// Adds funds, fee and change, and assigns the new coins to their owners.
    fn settle(&mut self, draft: &mut Draft, mut parts: Parts) -> Result<(), ChainsError> {
        let paid: i64 = parts.outputs.iter().map(|(_, output)| value_of(output)).sum();
        let mut value: i64 = parts.inputs.iter().map(|held| held.coin.value).sum();
        let is_enough = |value: i64, inputs: usize| {
            let reserve = FEE_RESERVE + FEE_RESERVE_INPUT.saturating_mul(i64::try_from(inputs).unwrap_or(i64::MAX));
            inputs > 0 && value >= paid + reserve
        };
        while !is_enough(value, parts.inputs.len()) {
            if self.funds.is_empty() {
                return Err(ChainsError::Usage("the coins of the chain do not pay for this number of scripts".into()));
            }
            let held = self.funds.swap_remove(self.random.index(self.funds.len()));
            value += held.coin.value;
            parts.inputs.push(held);
        }
        let change = self.any_lock();
        parts.outputs.push((None, PlannedOutput::Pay { lock: change, value: 0 }));
        let at = self.random.index(parts.outputs.len());
        let last = parts.outputs.len() - 1;
        parts.outputs.swap(at, last);
        let mut tx = self.transaction(draft, &parts);
        let weight_x2 = tx.weight_x2();
        let size = i64::try_from(weight_x2 / 8).unwrap_or(i64::MAX);
        let rate = i64::try_from(self.random.between(1, 15)).unwrap_or(1);
        let fee = size.saturating_mul(rate).min((value - paid - OUTPUT_VALUE_MIN) / 2);
        if let PlannedOutput::Pay { value: of_change, .. } = &mut tx.outputs[at] {
            *of_change = value - paid - fee;
        }
        for (vout, (output, (script, _))) in (0..).zip(tx.outputs.iter().zip(&parts.outputs)) {
            let PlannedOutput::Pay { lock, value } = *output else { continue };
            let held = Held { coin: Coin { tx: self.next_tx, vout, lock, value }, height: self.height };
            match script {
                Some(script) => self.stories[*script as usize].receive(held),
                None => self.new_funds.push(held),
            }
        }
        self.fees += fee;
        self.next_tx += 1;
        draft.weight_x2 += weight_x2;
        draft.txs.push(tx);
        Ok(())
    }

    fn transaction(&mut self, draft: &Draft, parts: &Parts) -> PlannedTx {
        let level_above = |held: &Held| match held.coin.tx.checked_sub(draft.first_tx + 1) {
            Some(index) => draft.txs.get(index).map_or(0, |parent| parent.level + 1),
            None => 0,
        };
        let level = parts.inputs.iter().map(level_above).max().unwrap_or(0);
        let lock_time = if self.random.chance(LOCK_TIME_PER_MILLE) { self.height - 1 } else { 0 };
        let sequence = if self.random.chance(600) { SEQUENCE_REPLACEABLE } else { SEQUENCE_LAST_BUT_ONE };
        let input = |held: &Held| PlannedInput { coin: held.coin, sequence, age: self.height - held.height };
        PlannedTx {
            inputs: parts.inputs.iter().map(input).collect(),
            outputs: parts.outputs.iter().map(|(_, output)| *output).collect(),
            lock_time,
            level,
        }
    }

    fn payment(&mut self) -> i64 {
        let low = PAYMENT_MIN << self.random.below(PAYMENT_DOUBLINGS);
        low + i64::try_from(self.random.below(low.unsigned_abs())).unwrap_or(0)
    }

    fn any_lock(&mut self) -> Lock {
        let kind = Kind::at(self.random.below(1000));
        self.fresh_lock(kind)
    }

    /// A new key, without a large leaf, which would be repeated in every spend.
    fn fresh_lock(&mut self, kind: Kind) -> Lock {
        loop {
            self.next_key += 1;
            let lock = Lock { kind, key: self.next_key };
            if lock.leaf_size() <= LEAF_SIZE_MAX {
                return lock;
            }
        }
    }
}

fn value_of(output: &PlannedOutput) -> i64 {
    match output {
        PlannedOutput::Pay { value, .. } => *value,
        PlannedOutput::Data { .. } => 0,
    }
}

fn number(drawn: u64) -> u32 {
    u32::try_from(drawn).unwrap_or(u32::MAX)
}
