//! From [`FundedBlock`] to [`VerifiedBlock`]: every script of every input.
//!
//! Input: a funded block. Output: the block, or the first input whose scripts fail. Two ways with one verdict: exact mode,
//! one input after the other, which is the specification; and capture mode, where signature checks are collected and
//! settled by an engine, and whatever is not thereby proven valid is decided by exact mode. Pure.

use crate::coins::FundedBlock;
use crate::rule::{Rule, Violation};
use crate::view::Coin;
use lydian_primitives::{Output, Tx};
use lydian_script::Engine;
use lydian_script::{
    Captured, CheckCounts, Flags, LegacyCache, Obligations, ScriptError, TxContext, capture_input,
    verify_input_counting,
};

/// A block that breaks no rule.
#[derive(Clone, Debug)]
pub struct VerifiedBlock {
    funded: FundedBlock,
    checks: CheckCounts,
}

impl VerifiedBlock {
    pub fn funded(&self) -> &FundedBlock {
        &self.funded
    }

    /// Signature and tweak checks that were made or settled for it.
    pub fn checks(&self) -> &CheckCounts {
        &self.checks
    }

    pub fn into_funded(self) -> FundedBlock {
        self.funded
    }
}

/// How scripts are verified.
#[derive(Clone, Copy)]
pub enum Mode<'a> {
    /// Each signature at once, by the reference.
    Exact,
    /// Signatures collected over the block and settled by the engine.
    Capture(&'a dyn Engine),
}

impl std::fmt::Debug for Mode<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Mode::Exact => f.write_str("Exact"),
            Mode::Capture(engine) => write!(f, "Capture({})", engine.name()),
        }
    }
}

/// Verifies all scripts of a block. Core's `CheckInputScripts` for every transaction but the coinbase.
pub fn verify_scripts(funded: FundedBlock, mode: Mode<'_>) -> Result<VerifiedBlock, Violation> {
    let mut checks = CheckCounts::default();
    let failure = match mode {
        Mode::Exact => first_failure(&funded, &mut checks),
        Mode::Capture(engine) => first_failure_captured(&funded, engine, &mut checks),
    };
    match failure {
        None => Ok(VerifiedBlock { funded, checks }),
        Some((tx, input, error)) => {
            let place = Violation::in_input(Rule::ScriptVerify, tx, input);
            Err(Violation { script_error: Some(error), ..place })
        }
    }
}

type Failure = (usize, usize, ScriptError);

/// Transactions but the coinbase with the coins they spend.
fn spends(funded: &FundedBlock) -> impl Iterator<Item = (usize, Tx<'_>, &[Coin])> {
    let mut rest = funded.spent();
    funded.checked().block().txs().enumerate().skip(1).map(move |(index, tx)| {
        let (coins, later) = rest.split_at(tx.input_count());
        rest = later;
        (index, tx, coins)
    })
}

fn outputs(coins: &[Coin]) -> Vec<Output<'_>> {
    coins.iter().map(Coin::output).collect()
}

fn context<'a>(tx: Tx<'a>, spent: &'a [Output<'a>]) -> TxContext<'a> {
    match TxContext::new(tx, spent) {
        Some(context) => context,
        None => unreachable!("a funded block has one coin for each input"),
    }
}

fn first_failure(funded: &FundedBlock, checks: &mut CheckCounts) -> Option<Failure> {
    let flags = funded.checked().flags();
    spends(funded).find_map(|(index, tx, coins)| {
        let spent = outputs(coins);
        let failure = first_failure_of_inputs(&context(tx, &spent), 0..tx.input_count(), flags, checks);
        failure.map(|(input, error)| (index, input, error))
    })
}

/// Inputs of one transaction in exact mode. They share one context and one cache: a new one for each input would hash the
/// transaction anew for each.
fn first_failure_of_inputs(
    context: &TxContext<'_>,
    mut inputs: impl Iterator<Item = usize>,
    flags: Flags,
    checks: &mut CheckCounts,
) -> Option<(usize, ScriptError)> {
    let mut cache = LegacyCache::new();
    inputs.find_map(|input| {
        verify_input_counting(context, input, flags, &mut cache, checks).err().map(|error| (input, error))
    })
}

/// Collects what can be collected, settles it, and reruns in exact mode every input that is not proven valid.
fn first_failure_captured(funded: &FundedBlock, engine: &dyn Engine, checks: &mut CheckCounts) -> Option<Failure> {
    let flags = funded.checked().flags();
    let mut obligations = Obligations::default();
    // For each input: where it stands in the obligations, or nothing if only exact mode can tell.
    let mut inputs = Vec::new();
    for (index, tx, coins) in spends(funded) {
        let spent = outputs(coins);
        let context = context(tx, &spent);
        for input in 0..tx.input_count() {
            let captured = capture_input(&context, input, flags, &mut obligations);
            inputs.push((index, input, captured == Captured::Accepted));
        }
    }
    obligations.checks().iter().for_each(|check| checks.count(check));
    let mut held = obligations.settle(engine).into_iter();
    let doubtful = inputs.into_iter().filter(|&(_, _, is_captured)| !is_captured || held.next() != Some(true));
    let mut doubtful = doubtful.map(|(index, input, _)| (index, input)).peekable();
    spends(funded).find_map(|(index, tx, coins)| {
        doubtful.peek().filter(|(of, _)| *of == index)?;
        let spent = outputs(coins);
        let inputs = std::iter::from_fn(|| doubtful.next_if(|(of, _)| *of == index).map(|(_, input)| input));
        let failure = first_failure_of_inputs(&context(tx, &spent), inputs, flags, checks);
        failure.map(|(input, error)| (index, input, error))
    })
}
