//! Plans the blocks that prepare many coins, so that the full blocks spend from a set as large as mainnet's.
//!
//! Input: the number of coins. Output: in each block before the full ones, one transaction with as many outputs as a
//! block holds, or fewer if fewer are wanted. Since the subsidies of regtest soon vanish, the mature coinbases are kept
//! in one coin, the fund, of which each block spends a share. Invariants: those of [`Planner`]; the fund is spent
//! completely by the last of these blocks. Cost: that of [`Planner`], and 40 bytes per coin.

use super::{Coin, PlannedInput, PlannedOutput, PlannedTx, Planner, SEQUENCE_FINAL};
use crate::error::ChainsError;
use crate::limits::PREPARED_COINS_PER_BLOCK_MAX;
use crate::regtest::{COINBASE_MATURITY, OUTPUT_VALUE_MIN, VOTED_ACTIVATION_HEIGHT};
use crate::wallet::Kind;

/// The plan of the blocks before the full ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared {
    /// Coins that each of these blocks creates.
    per_block: u64,
    /// What is left of the mature coinbases, with the height of its block.
    fund: Option<(u32, Coin)>,
}

impl Prepared {
    pub(super) fn coin_count(&self) -> usize {
        usize::from(self.fund.is_some())
    }
}

impl Planner {
    /// Lets the blocks before the full ones create at least this many coins in all.
    pub fn prepare_coins(&mut self, coins: u64) -> Result<(), ChainsError> {
        let growing = self.settings.blocks - self.settings.full;
        let blocks = u64::from(growing.saturating_sub(COINBASE_MATURITY));
        let most = blocks * PREPARED_COINS_PER_BLOCK_MAX;
        if coins == 0 || coins > most {
            return Err(ChainsError::Usage(format!(
                "--coins must lie between 1 and {most}, which is {PREPARED_COINS_PER_BLOCK_MAX} for each block from height {} on that is not full",
                COINBASE_MATURITY + 1
            )));
        }
        self.prepared = Some(Prepared { per_block: coins.div_ceil(blocks), fund: None });
        Ok(())
    }

    /// A block before the full ones that creates coins for [`Planner::prepare_coins`].
    pub(super) fn prepared_block(&mut self, mut prepared: Prepared) -> Vec<PlannedTx> {
        let Some(matured) = self.next_mature() else { return Vec::new() };
        let spent = [prepared.fund.take(), Some(matured)].into_iter().flatten();
        let inputs: Vec<PlannedInput> = spent
            .map(|(height, coin)| PlannedInput { coin, sequence: SEQUENCE_FINAL, age: self.height - height })
            .collect();
        let value: i64 = inputs.iter().map(|input| input.coin.value).sum();
        let left = i64::from(self.settings.blocks - self.settings.full - self.height + 1);
        let count = i64::try_from(prepared.per_block).unwrap_or(i64::MAX);
        // An equal share for each block, but enough for its outputs and for fees.
        let share = (value / left).max(count * 2 * OUTPUT_VALUE_MIN).min(value);
        let is_last = value - share < OUTPUT_VALUE_MIN;
        let mut tx = PlannedTx { inputs, outputs: Vec::new(), lock_time: 0, level: 0 };
        tx.outputs = (0..count).map(|_| PlannedOutput::Pay { lock: self.any_lock(), value: 0 }).collect();
        let (number, weight_x2) = (self.next_tx, tx.weight_x2());
        self.settle(&mut tx, if is_last { value } else { share }, weight_x2);
        if !is_last {
            let kind = if self.height < VOTED_ACTIVATION_HEIGHT { Kind::P2pkh } else { Kind::P2wpkh };
            let (lock, value) = (self.fresh_lock(kind), value - share);
            let vout = u32::try_from(tx.outputs.len()).unwrap_or(u32::MAX);
            tx.outputs.push(PlannedOutput::Pay { lock, value });
            prepared.fund = Some((self.height, Coin { tx: number, vout, lock, value }));
        }
        self.prepared = Some(prepared);
        vec![tx]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{MixSettings, subsidy};

    const SETTINGS: MixSettings = MixSettings { blocks: 700, full: 2, seed: 1, reuse_per_mille: 0 };

    /// limit: PREPARED_COINS_PER_BLOCK_MAX at
    /// limit: PREPARED_COINS_PER_BLOCK_MAX above
    #[test]
    fn the_number_of_coins_has_a_limit() {
        let prepare = |coins| Planner::new(SETTINGS).unwrap().prepare_coins(coins);
        assert!(prepare(598 * PREPARED_COINS_PER_BLOCK_MAX).is_ok());
        let error = prepare(598 * PREPARED_COINS_PER_BLOCK_MAX + 1).unwrap_err().to_string();
        assert!(error.contains("--coins must lie between 1 and"), "{error}");
        assert!(prepare(0).is_err());
        // All blocks but two are full, so none has a mature coinbase to spread.
        assert!(
            Planner::new(MixSettings { blocks: 433, full: 1, ..SETTINGS }).unwrap().prepare_coins(9_000_000).is_err()
        );
    }

    /// Every block creates its share and no satoshi is lost; the full blocks find coins of all ages.
    #[test]
    fn the_coins_are_there_before_the_full_blocks() {
        let mut planner = Planner::new(SETTINGS).unwrap();
        planner.prepare_coins(60_000).unwrap();
        let mut coins = 0;
        for height in 1..=698 {
            let block = planner.next_block().unwrap();
            let created: usize = block.txs.iter().map(|tx| tx.outputs.len()).sum();
            assert_eq!(block.txs.len(), usize::from(height > COINBASE_MATURITY), "{height}");
            // The last one leaves no fund.
            let fund = usize::from(height > COINBASE_MATURITY && height < 698);
            assert_eq!(created, if height > COINBASE_MATURITY { 101 + fund } else { 0 }, "{height}");
            let (mut paid, mut spent) = (0, 0);
            for tx in &block.txs {
                spent += tx.inputs.iter().map(|input| input.coin.value).sum::<i64>();
                for output in &tx.outputs {
                    let PlannedOutput::Pay { value, .. } = output else { continue };
                    assert!(*value >= OUTPUT_VALUE_MIN);
                    paid += value;
                }
            }
            let PlannedOutput::Pay { value: reward, .. } = block.coinbase else { panic!("a coinbase pays") };
            assert_eq!(spent - paid, reward - subsidy(height), "{height}: fees");
            coins += created - fund;
            assert_eq!(planner.coin_count(), coins + fund + (height as usize).min(100), "{height}");
        }
        assert!((60_000..61_000).contains(&coins), "{coins}");
        let full = planner.next_block().unwrap();
        let ages: Vec<u32> = full.txs.iter().flat_map(|tx| tx.inputs.iter().map(|input| input.age)).collect();
        assert!(ages.len() > 3_000 && ages.iter().any(|&age| age > 400), "{}", ages.len());
    }
}
