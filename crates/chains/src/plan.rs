//! Plans the whole chain: which transactions spend which coins, decided on one thread, from the seed alone, before
//! anything is signed.
//!
//! Input: [`MixSettings`]. Output: a sequence of [`PlannedBlock`]s, in which coins are identified by the number of the
//! transaction that creates them, since txids are not known yet. Invariants: nothing here depends on signatures,
//! threads or the clock; the transactions of a block spend only earlier outputs; weights are expected values, summed in
//! half units. Cost: under a microsecond per input, 40 bytes per coin. It must never sign.

mod pending;
mod prepared;

use crate::error::ChainsError;
use crate::limits::{CHAIN_BLOCKS_MAX, FULL_BLOCK_HEIGHT_MIN};
use crate::regtest::{BLOCK_WEIGHT_MAX, COINBASE_MATURITY, OUTPUT_VALUE_MIN, VOTED_ACTIVATION_HEIGHT};
use crate::rng::Random;
use crate::wallet::{Kind, Lock};
use pending::Pending;
use prepared::Prepared;
use std::collections::VecDeque;

/// The parameters of a chain of the preset `mainnet-mix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixSettings {
    /// Blocks above the genesis block.
    pub blocks: u32,
    /// The number of blocks, at the end, that are near the weight limit.
    pub full: u32,
    pub seed: u64,
    /// Outputs per thousand that pay a key used before.
    pub reuse_per_mille: u64,
}

/// A spendable output.
#[derive(Clone, Copy, Debug)]
pub struct Coin {
    /// Number of the transaction in the chain, counted from the first coinbase.
    pub tx: usize,
    pub vout: u32,
    pub lock: Lock,
    pub value: i64,
}

#[derive(Clone, Debug)]
pub struct PlannedBlock {
    pub height: u32,
    pub time: u32,
    /// Number of the coinbase in the chain; the other transactions follow.
    pub first_tx: usize,
    pub coinbase: PlannedOutput,
    pub txs: Vec<PlannedTx>,
}

#[derive(Clone, Debug)]
pub struct PlannedTx {
    pub inputs: Vec<PlannedInput>,
    pub outputs: Vec<PlannedOutput>,
    pub lock_time: u32,
    /// Distance from the transactions that spend only earlier blocks: those of one level can be signed in parallel.
    pub level: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct PlannedInput {
    pub coin: Coin,
    pub sequence: u32,
    /// Blocks between the coin's block and this one.
    pub age: u32,
}

#[derive(Clone, Copy, Debug)]
pub enum PlannedOutput {
    Pay {
        lock: Lock,
        value: i64,
    },
    /// OP_RETURN with `size` bytes, generated from the number.
    Data {
        size: u8,
        number: u64,
    },
}

/// Time of height 0, in seconds since 1970; blocks are 600 seconds apart.
pub const FIRST_TIME: u32 = 1_735_689_600;

/// Age in blocks of a spent coin: 6 % in the same block, 35 % within 10 blocks; the rest is drawn between 11 and the
/// age of the chain, with equal shares for each doubling.
const YOUNG_AGES: [(u64, u64, u64); 5] = [(60, 0, 0), (90, 1, 1), (90, 2, 3), (90, 4, 6), (80, 7, 10)];
const YOUNG_PER_MILLE: u64 = 410;
const OLD_AGE_MIN: u32 = 11;
/// Doublings from the minimum old age to the age of a chain of some 500 blocks.
const OLD_AGE_DOUBLINGS: u64 = 5;

const INPUT_COUNTS: [(u64, u64, u64); 6] =
    [(640, 1, 1), (180, 2, 2), (100, 3, 4), (57, 5, 8), (18, 9, 16), (5, 17, 60)];
const OUTPUT_COUNTS: [(u64, u64, u64); 6] =
    [(130, 1, 1), (500, 2, 2), (150, 3, 4), (120, 5, 8), (65, 9, 16), (35, 17, 40)];
const DATA_PER_MILLE: u64 = 160;
const DATA_SIZES: [(u64, u64, u64); 3] = [(50, 20, 20), (30, 32, 40), (20, 41, 75)];

/// Half weight units of a transaction without inputs and outputs: version, lock time, two counts, marker and flag.
const TX_WEIGHT_X2: u64 = 2 * (4 * 10 + 2);

/// Weight left for the header, the transaction count, the coinbase, and for signatures that are longer than expected.
const RESERVED_WEIGHT: u64 = 3_500;

/// A block is full when less than this weight is left and the next transaction does not fit.
const LEFTOVER_WEIGHT: u64 = 3_000;

const SEQUENCE_FINAL: u32 = 0xffff_ffff;
const SEQUENCE_LAST_BUT_ONE: u32 = 0xffff_fffe;
/// Opts in to replacement (BIP-0125).
const SEQUENCE_REPLACEABLE: u32 = 0xffff_fffd;
/// The longest relative lock in blocks (BIP-0068).
const SEQUENCE_LOCKTIME_MASK: u32 = 0xffff;

/// Units of a share of the surplus. All coins of regtest times this stay below 2^63.
const MILLION: i64 = 1_000_000;

/// Keys remembered for reuse.
const REUSE_WINDOW: usize = 4_096;

/// Approximate number of inputs of a full block; determines the number of coins prepared.
const FULL_BLOCK_INPUTS: u64 = 5_500;

/// Outputs of a transaction that spreads a coinbase.
const FAN_OUT_MIN: u64 = 40;
pub(crate) const FAN_OUT_MAX: u64 = 4_000;
/// Full blocks considered when coins are prepared; later ones spend coins of earlier ones.
const FAN_OUT_BLOCKS_MAX: u32 = 1_000;

/// The state of the plan between two blocks.
#[derive(Debug)]
pub struct Planner {
    settings: MixSettings,
    random: Random,
    /// Unspent coins, by height.
    pools: Vec<Vec<Coin>>,
    next_tx: usize,
    next_key: u64,
    recent: Vec<Lock>,
    /// Coinbase coins that are not mature yet, with their heights.
    immature: VecDeque<(u32, Coin)>,
    /// Fees of the block being planned.
    fees: i64,
    height: u32,
    /// The fewest coins over which a block before the full ones spreads a coinbase.
    fan_out_min: u64,
    /// The transactions that wait on top of the chain.
    pending: Option<Pending>,
    /// The coins to prepare, if their number is given.
    prepared: Option<Prepared>,
}

impl Planner {
    /// Refuses settings that are impossible for a chain.
    pub fn new(settings: MixSettings) -> Result<Planner, ChainsError> {
        let growing = settings.blocks.saturating_sub(settings.full);
        if settings.blocks == 0 || settings.blocks > CHAIN_BLOCKS_MAX {
            return Err(ChainsError::Usage(format!("--blocks must lie between 1 and {CHAIN_BLOCKS_MAX}")));
        }
        if settings.full > 0 && growing + 1 < FULL_BLOCK_HEIGHT_MIN {
            return Err(ChainsError::Usage(format!(
                "full blocks must be above height {VOTED_ACTIVATION_HEIGHT}: --blocks must be at least --full + {VOTED_ACTIVATION_HEIGHT}"
            )));
        }
        if settings.reuse_per_mille > 1000 {
            return Err(ChainsError::Usage("--reuse is a share between 0 and 1".into()));
        }
        Ok(Planner {
            settings,
            random: Random::new(settings.seed, "plan"),
            pools: vec![Vec::new()],
            next_tx: 0,
            next_key: 0,
            recent: Vec::new(),
            immature: VecDeque::new(),
            fees: 0,
            height: 0,
            fan_out_min: FAN_OUT_MIN,
            pending: None,
            prepared: None,
        })
    }

    /// The next block; `None` after the last one.
    pub fn next_block(&mut self) -> Option<PlannedBlock> {
        if self.height == self.settings.blocks {
            return None;
        }
        self.height += 1;
        self.fees = 0;
        self.pools.push(Vec::new());
        let first_tx = self.next_tx;
        self.next_tx += 1;
        let txs = if self.height > self.settings.blocks - self.settings.full {
            self.full_block(first_tx)
        } else {
            self.growing_block()
        };
        let coinbase = self.coinbase(first_tx);
        let jitter = u32::try_from(self.random.below(900)).unwrap_or_default();
        Some(PlannedBlock {
            height: self.height,
            time: FIRST_TIME + 600 * self.height + jitter,
            first_tx,
            coinbase,
            txs,
        })
    }

    /// Unspent outputs: the size of the UTXO set.
    pub fn coin_count(&self) -> usize {
        let fund = self.prepared.as_ref().map_or(0, Prepared::coin_count);
        self.pools.iter().map(Vec::len).sum::<usize>() + self.immature.len() + fund
    }

    /// Pays subsidy and fees to one key; the coin waits until it is mature.
    fn coinbase(&mut self, tx: usize) -> PlannedOutput {
        let kind = if self.height < VOTED_ACTIVATION_HEIGHT { Kind::P2pkh } else { Kind::P2wpkh };
        let lock = self.fresh_lock(kind);
        let value = subsidy(self.height) + self.fees;
        self.immature.push_back((self.height, Coin { tx, vout: 0, lock, value }));
        PlannedOutput::Pay { lock, value }
    }

    /// The oldest coinbase coin that this block may spend, with its height.
    fn next_mature(&mut self) -> Option<(u32, Coin)> {
        let &(height, _) = self.immature.front()?;
        if height + COINBASE_MATURITY > self.height {
            return None;
        }
        self.immature.pop_front()
    }

    /// A block before the full ones: one transaction spreads a coinbase over many coins.
    fn growing_block(&mut self) -> Vec<PlannedTx> {
        if let Some(prepared) = self.prepared {
            return self.prepared_block(prepared);
        }
        let Some((height, coin)) = self.next_mature() else { return Vec::new() };
        let input = PlannedInput { coin, sequence: SEQUENCE_FINAL, age: self.height - height };
        let mut tx = PlannedTx { inputs: vec![input], outputs: Vec::new(), lock_time: 0, level: 0 };
        let count = fan_out(self.settings.blocks - self.settings.full - self.height, self.settings.full);
        let count = count.max(self.fan_out_min).min(FAN_OUT_MAX);
        tx.outputs = (0..count).map(|_| PlannedOutput::Pay { lock: self.any_lock(), value: 0 }).collect();
        let weight_x2 = tx.weight_x2();
        self.settle(&mut tx, coin.value, weight_x2);
        vec![tx]
    }

    /// Draws transactions until none fits any more.
    fn full_block(&mut self, first_tx: usize) -> Vec<PlannedTx> {
        while let Some((height, coin)) = self.next_mature() {
            self.pools[height as usize].push(coin);
        }
        let mut txs: Vec<PlannedTx> = Vec::new();
        let mut left_x2 = 2 * (BLOCK_WEIGHT_MAX - RESERVED_WEIGHT);
        while let Some(mut tx) = self.draw_tx(first_tx, &txs) {
            let weight_x2 = tx.weight_x2();
            if weight_x2 > left_x2 {
                tx.inputs.iter().for_each(|input| self.pools[(self.height - input.age) as usize].push(input.coin));
                if left_x2 < 2 * LEFTOVER_WEIGHT {
                    break;
                }
                continue;
            }
            let value = tx.inputs.iter().map(|input| input.coin.value).sum();
            self.settle(&mut tx, value, weight_x2);
            left_x2 -= tx.weight_x2();
            txs.push(tx);
        }
        txs
    }

    /// A transaction whose outputs have no values yet; `None` if there are no coins left.
    fn draw_tx(&mut self, first_tx: usize, before: &[PlannedTx]) -> Option<PlannedTx> {
        self.draw_tx_by(first_tx, before, Planner::draw_input)
    }

    /// The same with inputs from `draw_input`.
    fn draw_tx_by(
        &mut self,
        first_tx: usize,
        before: &[PlannedTx],
        draw_input: fn(&mut Planner) -> Option<PlannedInput>,
    ) -> Option<PlannedTx> {
        let inputs: Vec<PlannedInput> =
            (0..self.random.from_table(&INPUT_COUNTS)).map_while(|_| draw_input(self)).collect();
        if inputs.is_empty() {
            return None;
        }
        let level_above = |input: &PlannedInput| match input.coin.tx.checked_sub(first_tx + 1) {
            Some(index) => before.get(index).map_or(0, |parent| parent.level + 1),
            None => 0,
        };
        let level = inputs.iter().map(level_above).max().unwrap_or(0);
        let mut outputs: Vec<PlannedOutput> = (0..self.random.from_table(&OUTPUT_COUNTS))
            .map(|_| PlannedOutput::Pay { lock: self.any_lock(), value: 0 })
            .collect();
        if self.random.chance(DATA_PER_MILLE) {
            let size = u8::try_from(self.random.from_table(&DATA_SIZES)).unwrap_or(20);
            outputs.push(PlannedOutput::Data { size, number: self.random.next_u64() });
        }
        let lock_time = if self.random.chance(200) { self.height - 1 } else { 0 };
        Some(PlannedTx { inputs, outputs, lock_time, level })
    }

    fn draw_input(&mut self) -> Option<PlannedInput> {
        let wanted = self.draw_age();
        let (coin, age) = self.take_coin(wanted)?;
        let sequence = match self.random.below(100) {
            0 | 1 if age > 0 => age.min(SEQUENCE_LOCKTIME_MASK),
            0..=59 => SEQUENCE_REPLACEABLE,
            _ => SEQUENCE_LAST_BUT_ONE,
        };
        Some(PlannedInput { coin, sequence, age })
    }

    fn draw_age(&mut self) -> u32 {
        if self.random.below(1000) < YOUNG_PER_MILLE {
            return u32::try_from(self.random.from_table(&YOUNG_AGES)).unwrap_or_default();
        }
        // Below this height only coinbases pay anyone, and those have been spread.
        let oldest = self.height.saturating_sub(COINBASE_MATURITY + 1).max(OLD_AGE_MIN);
        let doublings = (oldest / OLD_AGE_MIN).ilog2() + 1;
        let low = OLD_AGE_MIN << self.random.below(u64::from(doublings));
        let high = (2 * low - 1).min(oldest);
        u32::try_from(self.random.between(u64::from(low), u64::from(high))).unwrap_or_default()
    }

    /// A coin of this age, or of the nearest age that has one.
    fn take_coin(&mut self, age: u32) -> Option<(Coin, u32)> {
        let target = self.height - age;
        let newer = (target..=self.height).filter(|&height| height < self.height || age == 0);
        let older = (0..target).rev();
        let height = newer.chain(older).find(|&height| !self.pools[height as usize].is_empty())?;
        let pool = &mut self.pools[height as usize];
        let index = self.random.index(pool.len());
        Some((pool.swap_remove(index), self.height - height))
    }

    fn fresh_lock(&mut self, kind: Kind) -> Lock {
        self.next_key += 1;
        Lock { kind, key: self.next_key }
    }

    /// A lock for a payment: the kind by its share, the key new or, with the configured probability, used before.
    fn any_lock(&mut self) -> Lock {
        if self.random.chance(self.settings.reuse_per_mille) && !self.recent.is_empty() {
            return self.recent[self.random.index(self.recent.len())];
        }
        let kind = Kind::at(self.random.below(1000));
        let lock = self.fresh_lock(kind);
        if self.recent.len() < REUSE_WINDOW {
            self.recent.push(lock);
        } else {
            let at = self.random.index(REUSE_WINDOW);
            self.recent[at] = lock;
        }
        lock
    }

    /// Decides fee and values, drops outputs that cannot be paid for, and adds the new coins to the pool.
    fn settle(&mut self, tx: &mut PlannedTx, value: i64, weight_x2: u64) {
        let size = i64::try_from(weight_x2 / 8).unwrap_or(i64::MAX);
        let rate = i64::try_from(self.random.between(1, 15)).unwrap_or(1);
        let fee = (size * rate).min(value / 10);
        let payments = tx.outputs.iter().filter(|output| matches!(output, PlannedOutput::Pay { .. })).count();
        let affordable = usize::try_from((value - fee) / OUTPUT_VALUE_MIN).unwrap_or(0).max(1);
        let mut excess = payments.saturating_sub(affordable);
        tx.outputs.retain(|output| {
            let goes = excess > 0 && matches!(output, PlannedOutput::Pay { .. });
            excess -= usize::from(goes);
            !goes
        });
        let mut unpaid = i64::try_from(payments.min(affordable)).unwrap_or(1);
        let mut surplus = value - fee - unpaid * OUTPUT_VALUE_MIN;
        let number = self.next_tx;
        for (vout, output) in (0..).zip(&mut tx.outputs) {
            let PlannedOutput::Pay { lock, value } = output else { continue };
            let part = if unpaid == 1 { surplus } else { surplus * self.part_of(unpaid) / MILLION };
            surplus -= part;
            unpaid -= 1;
            *value = OUTPUT_VALUE_MIN + part;
            self.pools[self.height as usize].push(Coin { tx: number, vout, lock: *lock, value: *value });
        }
        self.fees += fee;
        self.next_tx += 1;
    }

    /// Millionths of the surplus for one of `unpaid` outputs: between a half and three halves of a fair share.
    fn part_of(&mut self, unpaid: i64) -> i64 {
        (MILLION / 2 + i64::try_from(self.random.below(1_000_000)).unwrap_or(0)) / unpaid.max(2)
    }
}

impl PlannedTx {
    /// Expected weight, times two.
    pub fn weight_x2(&self) -> u64 {
        let has_witness = self.inputs.iter().any(|input| input.coin.lock.kind.has_witness());
        let input = |input: &PlannedInput| {
            let lock = input.coin.lock;
            lock.kind.input_weight_x2(lock.leaf_size()) + if has_witness && !lock.kind.has_witness() { 2 } else { 0 }
        };
        let output = |output: &PlannedOutput| match output {
            PlannedOutput::Pay { lock, .. } => 8 * (9 + lock.kind.script_pubkey_size()),
            PlannedOutput::Data { size, .. } => 8 * (11 + u64::from(*size)),
        };
        TX_WEIGHT_X2 + self.inputs.iter().map(input).sum::<u64>() + self.outputs.iter().map(output).sum::<u64>()
    }
}

/// The number of coins to prepare `distance` blocks before the last growing one: as many as the full blocks will spend
/// at this age.
fn fan_out(distance: u32, full: u32) -> u64 {
    let at_age = |age: u32| match age {
        0..OLD_AGE_MIN => FULL_BLOCK_INPUTS * 35 / u64::from(OLD_AGE_MIN - 1),
        _ => FULL_BLOCK_INPUTS * (100 - 41) / OLD_AGE_DOUBLINGS / u64::from(OLD_AGE_MIN << (age / OLD_AGE_MIN).ilog2()),
    };
    let wanted: u64 = (1..=full.min(FAN_OUT_BLOCKS_MAX)).map(|block| at_age(distance + block)).sum();
    // A quarter more, since empty pools shift the ages.
    (wanted / 80).clamp(FAN_OUT_MIN, FAN_OUT_MAX)
}

/// Core's `GetBlockSubsidy` on regtest: halved every 150 blocks.
pub fn subsidy(height: u32) -> i64 {
    (50 * 100_000_000_i64).checked_shr(height / 150).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallet::{Spending, Wallet, sign_input};
    use lydian_primitives::build::{MutInput, MutOutput, MutTx};
    use lydian_primitives::{Amount, OutPoint, Txid};

    /// The weight of a signed transaction with one input of each kind is within a signature's spread of the expected
    /// weight.
    #[test]
    fn weights_are_as_planned() {
        let wallet = Wallet::new(9);
        for kind in Kind::ALL {
            let mut difference_x2 = 0i64;
            for key in 0..200 {
                let lock = Lock { kind, key };
                let coin = Coin { tx: 0, vout: 0, lock, value: 5_000 };
                let planned = PlannedTx {
                    inputs: vec![PlannedInput { coin, sequence: 0, age: 0 }],
                    outputs: vec![PlannedOutput::Pay { lock, value: 4_000 }],
                    lock_time: 0,
                    level: 0,
                };
                let opened = wallet.open(lock);
                let spent = [(5_000, opened.script_pubkey.clone())];
                let prevout = OutPoint { txid: Txid([7; 32]), vout: 0 };
                let mut tx = MutTx {
                    version: 2,
                    inputs: vec![MutInput { prevout, script_sig: Vec::new(), sequence: 0, witness: Vec::new() }],
                    outputs: vec![MutOutput { value: Amount(4_000), script_pubkey: opened.script_pubkey.clone() }],
                    lock_time: 0,
                };
                sign_input(&mut tx, 0, lock, &opened, &mut Spending::new(&spent));
                let weight = 3 * tx.encode_stripped().len() + tx.encode().len();
                difference_x2 += 2 * weight as i64 - planned.weight_x2() as i64;
            }
            assert!((difference_x2 / 200).abs() <= 8, "{}: {} half units each", kind.name(), difference_x2 / 200);
        }
    }
}
