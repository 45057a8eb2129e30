//! Verifies the scripts of transactions, many at once. Input: transactions with their coins. Output: for each, whether
//! every input may spend its coin, or the first input that may not.
//!
//! As for blocks (`lydian_consensus::scripts`): a capture run collects the signature checks of all transactions, the
//! engine settles them in one batch, and exact mode decides every transaction with an input that is not proven valid
//! that way. The verdict on a transaction does not depend on the others. Pure.

use lydian_consensus::Coin;
use lydian_primitives::{Output, Transaction};
use lydian_script::{
    Captured, CheckCounts, Engine, Flags, LegacyCache, Obligations, ScriptError, TxContext, capture_input,
    verify_input_counting,
};
use std::sync::Arc;

/// A transaction with the coins of its inputs, in their order.
#[derive(Clone, Debug)]
pub struct Spend {
    tx: Arc<Transaction>,
    coins: Arc<[Coin]>,
}

impl Spend {
    /// `None` unless there is one coin for each input.
    pub fn new(tx: Arc<Transaction>, coins: Arc<[Coin]>) -> Option<Spend> {
        (tx.view().input_count() == coins.len()).then_some(Spend { tx, coins })
    }

    pub fn tx(&self) -> &Arc<Transaction> {
        &self.tx
    }

    pub fn coins(&self) -> &Arc<[Coin]> {
        &self.coins
    }

    fn outputs(&self) -> Vec<Output<'_>> {
        self.coins.iter().map(Coin::output).collect()
    }

    fn context<'a>(&'a self, outputs: &'a [Output<'a>]) -> TxContext<'a> {
        match TxContext::new(self.tx.view(), outputs) {
            Some(context) => context,
            None => unreachable!("a spend has one coin for each input"),
        }
    }
}

/// The first input whose script fails, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InputFailure {
    pub input: usize,
    pub error: ScriptError,
}

/// Verifies the scripts of transactions under these flags. The results have the order of the spends; the counts are
/// of the signature and tweak checks that were made.
pub fn verify_many(
    spends: &[&Spend],
    flags: Flags,
    engine: &dyn Engine,
    counts: &mut CheckCounts,
) -> Vec<Result<(), InputFailure>> {
    let mut obligations = Obligations::new();
    let mut captured: Vec<Vec<bool>> = Vec::with_capacity(spends.len());
    for spend in spends {
        let outputs = spend.outputs();
        let context = spend.context(&outputs);
        let inputs = 0..outputs.len();
        captured.push(
            inputs.map(|input| capture_input(&context, input, flags, &mut obligations) == Captured::Accepted).collect(),
        );
    }
    let settled = obligations.settle_counting(engine);
    for (check, is_made) in obligations.checks().iter().zip(&settled.made) {
        if *is_made {
            counts.count(check);
        }
    }
    let mut held = settled.held.into_iter();
    let verdicts = spends.iter().zip(captured).map(|(spend, captured)| {
        let proven: Vec<bool> =
            captured.into_iter().map(|is_captured| is_captured && held.next() == Some(true)).collect();
        match proven.iter().all(|is_proven| *is_proven) {
            true => Ok(()),
            false => verify_exactly(spend, flags, |input| !proven[input], counts),
        }
    });
    verdicts.collect()
}

/// Verifies the chosen inputs in exact mode, up to the first failure.
fn verify_exactly(
    spend: &Spend,
    flags: Flags,
    is_chosen: impl Fn(usize) -> bool,
    counts: &mut CheckCounts,
) -> Result<(), InputFailure> {
    let outputs = spend.outputs();
    let context = spend.context(&outputs);
    let mut cache = LegacyCache::new();
    for input in (0..outputs.len()).filter(|input| is_chosen(*input)) {
        verify_input_counting(&context, input, flags, &mut cache, counts)
            .map_err(|error| InputFailure { input, error })?;
    }
    Ok(())
}

#[cfg(test)]
pub(in crate::scripts) mod tests;
