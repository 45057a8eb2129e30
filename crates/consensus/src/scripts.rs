//! From [`FundedBlock`] to [`VerifiedBlock`]: verifies the scripts of every input.
//!
//! Input: a funded block. Output: the block, or the first input whose scripts fail. There are two modes with the same
//! verdict. Exact mode verifies one input at a time and is the specification. Capture mode collects the signature
//! checks, an engine settles them, and exact mode decides every input that is not proven valid that way. A block can be
//! split into [`Part`]s that are verified in any order; one batch ([`Batch`]) may contain parts of several blocks. A
//! [`Tally`] combines the verdicts. Pure.

use crate::coins::FundedBlock;
use crate::rule::{Rule, Violation};
use crate::view::Coin;
use lydian_primitives::{BlockHash, Output, Tx, Wtxid};
use lydian_script::Engine;
use lydian_script::{
    Captured, CheckCounts, Flags, LegacyCache, Obligations, ScriptError, TxContext, capture_input,
    verify_input_counting,
};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// A block that breaks no rule.
#[derive(Clone, Debug)]
pub struct VerifiedBlock {
    funded: Arc<FundedBlock>,
    checks: CheckCounts,
}

impl VerifiedBlock {
    pub fn funded(&self) -> &FundedBlock {
        &self.funded
    }

    /// Signature and tweak checks that were made or settled for the block.
    pub fn checks(&self) -> &CheckCounts {
        &self.checks
    }

    pub fn into_funded(self) -> Arc<FundedBlock> {
        self.funded
    }
}

/// The way in which scripts are verified.
#[derive(Clone, Copy)]
pub enum Mode<'a> {
    /// Verifies each signature immediately with the reference implementation.
    Exact,
    /// Collects the signatures of the block and lets the engine settle them.
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

/// Verifies all scripts of a block. Core's `CheckInputScripts` for every transaction except the coinbase.
pub fn verify_scripts(funded: FundedBlock, mode: Mode<'_>) -> Result<VerifiedBlock, Violation> {
    let funded = Arc::new(funded);
    let mut tally = Tally::new(&funded);
    for part in parts(&funded, usize::MAX) {
        let verdict = match mode {
            Mode::Exact => verify_exactly(&funded, part),
            Mode::Capture(engine) => {
                let mut batch = Batch::default();
                batch.capture(&funded, part);
                let mut settled = batch.settle(engine);
                settled.verdict(&funded)
            }
        };
        tally.add(&funded, verdict);
    }
    tally.finish(funded)
}

/// A range of consecutive inputs of one block, without the coinbase's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Index of the first transaction with an input in this part, and index of that transaction's first input among the
    /// spent coins.
    tx: usize,
    tx_start: usize,
    /// Indices among the spent coins.
    start: usize,
    end: usize,
}

impl Part {
    pub fn input_count(&self) -> usize {
        self.end - self.start
    }
}

/// Splits a block into parts of at most `inputs_max` inputs.
pub fn parts(funded: &FundedBlock, inputs_max: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    split(funded, (1, 0), funded.spent().len(), inputs_max, &mut parts);
    parts
}

/// Splits the inputs from the first one of a transaction, given with the index of its coin, up to an index of a coin.
fn split(funded: &FundedBlock, from: (usize, usize), to: usize, inputs_max: usize, parts: &mut Vec<Part>) {
    assert!(inputs_max > 0, "a part has an input");
    let (mut tx, mut tx_start) = from;
    let mut start = tx_start;
    while start < to {
        let block = funded.checked().block();
        while tx_start + block.tx(tx).input_count() <= start {
            tx_start += block.tx(tx).input_count();
            tx += 1;
        }
        let end = start.saturating_add(inputs_max).min(to);
        parts.push(Part { tx, tx_start, start, end });
        start = end;
    }
}

/// Which transactions were verified before, for instance when a mempool accepted them: Core's script cache
/// (`CheckInputScripts`).
///
/// The wtxid is the hash of everything that scripts depend on but the flags: of the transaction with its witnesses, and
/// (through the txids of the coins) of the outputs that it spends.
pub trait KnownScripts: Debug + Send + Sync {
    /// Whether the scripts of every input succeeded with these flags, or with these and more: a further flag can only
    /// make a script fail.
    fn are_valid(&self, wtxid: &Wtxid, flags: Flags) -> bool;
}

/// The parts of a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KnownParts {
    /// Those to be verified.
    pub unknown: Vec<Part>,
    /// Those that were verified before.
    pub known: Vec<Part>,
}

/// Splits a block into parts of at most `inputs_max` inputs, apart from those of transactions whose scripts are known
/// to be valid.
pub fn parts_besides(funded: &FundedBlock, inputs_max: usize, known: &dyn KnownScripts) -> KnownParts {
    let (block, flags) = (funded.checked().block(), funded.checked().flags());
    let mut parts = KnownParts::default();
    let (mut from, mut is_known) = ((1, 0), false);
    let mut start = 0;
    for (index, tx) in block.txs().enumerate().skip(1) {
        let is_this_known = known.are_valid(&tx.wtxid(), flags);
        if is_this_known != is_known {
            let part = if is_known { &mut parts.known } else { &mut parts.unknown };
            split(funded, from, start, inputs_max, part);
            (from, is_known) = ((index, start), is_this_known);
        }
        start += tx.input_count();
    }
    let part = if is_known { &mut parts.known } else { &mut parts.unknown };
    split(funded, from, start, inputs_max, part);
    parts
}

/// The verdict on a part: the first input that fails, if any, and the number of checks made.
#[derive(Clone, Copy, Debug)]
pub struct PartVerdict {
    part: Part,
    failure: Option<Failure>,
    checks: CheckCounts,
}

/// Transaction, input and error. The minimum is the first in block order.
type Failure = (usize, usize, ScriptError);

/// Combines the verdicts on the parts of one block, which may arrive in any order.
#[derive(Clone, Debug)]
pub struct Tally {
    block: BlockHash,
    inputs_left: usize,
    failure: Option<Failure>,
    checks: CheckCounts,
}

impl Tally {
    pub fn new(funded: &FundedBlock) -> Tally {
        Tally {
            block: funded.checked().block().hash(),
            inputs_left: funded.spent().len(),
            failure: None,
            checks: CheckCounts::default(),
        }
    }

    /// Counts a part whose scripts are known to be valid. The caller is responsible.
    pub fn trust(&mut self, part: Part) {
        assert!(self.inputs_left >= part.input_count(), "each input is verified once");
        self.inputs_left -= part.input_count();
    }

    /// Adds the verdict on a part. Each part of [`parts`] must be added exactly once.
    pub fn add(&mut self, funded: &FundedBlock, verdict: PartVerdict) {
        assert_eq!(self.block, funded.checked().block().hash(), "a tally is of one block");
        assert!(self.inputs_left >= verdict.part.input_count(), "each input is verified once");
        self.inputs_left -= verdict.part.input_count();
        self.checks.add(&verdict.checks);
        let place = |failure: &Failure| (failure.0, failure.1);
        self.failure = self.failure.into_iter().chain(verdict.failure).min_by_key(place);
    }

    /// Whether every input has a verdict.
    pub fn is_complete(&self) -> bool {
        self.inputs_left == 0
    }

    /// The verdict on the block.
    pub fn finish(self, funded: Arc<FundedBlock>) -> Result<VerifiedBlock, Violation> {
        assert_eq!(self.block, funded.checked().block().hash(), "a tally is of one block");
        assert!(self.is_complete(), "every input is verified");
        match self.failure {
            None => Ok(VerifiedBlock { funded, checks: self.checks }),
            Some((tx, input, error)) => {
                let place = Violation::in_input(Rule::ScriptVerify, tx, input);
                Err(Violation { script_error: Some(error), ..place })
            }
        }
    }
}

/// Accepts a block without verifying its scripts. The caller is responsible: this node has verified the block before,
/// or it is below the assumed valid block.
pub fn trust_scripts(funded: Arc<FundedBlock>) -> VerifiedBlock {
    VerifiedBlock { funded, checks: CheckCounts::default() }
}

/// Some inputs of one transaction: its index, the index of its first coin, and the range of inputs.
type Inputs = (usize, usize, Range<usize>);

/// Iterates over the part, transaction by transaction.
fn transactions(funded: &FundedBlock, part: Part) -> impl Iterator<Item = Inputs> {
    let mut tx_start = part.tx_start;
    (part.tx..).map_while(move |index| {
        if tx_start >= part.end {
            return None;
        }
        let (first, count) = (tx_start, funded.checked().block().tx(index).input_count());
        tx_start += count;
        Some((index, first, part.start.max(first) - first..part.end.min(tx_start) - first))
    })
}

fn outputs(coins: &[Coin]) -> Vec<Output<'_>> {
    coins.iter().map(Coin::output).collect()
}

/// The coins that a transaction spends, the first of which has index `first`.
fn coins<'a>(funded: &'a FundedBlock, tx: Tx<'_>, first: usize) -> Vec<Output<'a>> {
    outputs(&funded.spent()[first..first + tx.input_count()])
}

fn context<'a>(tx: Tx<'a>, spent: &'a [Output<'a>]) -> TxContext<'a> {
    match TxContext::new(tx, spent) {
        Some(context) => context,
        None => unreachable!("a funded block has one coin for each input"),
    }
}

/// Verifies a part in exact mode, up to the first failure.
pub fn verify_exactly(funded: &FundedBlock, part: Part) -> PartVerdict {
    let flags = funded.checked().flags();
    let mut checks = CheckCounts::default();
    let failure = transactions(funded, part).find_map(|(index, first, inputs)| {
        let tx = funded.checked().block().tx(index);
        let spent = coins(funded, tx, first);
        let failure = first_failure_of_inputs(&context(tx, &spent), inputs, flags, &mut checks);
        failure.map(|(input, error)| (index, input, error))
    });
    PartVerdict { part, failure, checks }
}

/// Verifies inputs of one transaction in exact mode. They share one context and one cache; otherwise the transaction
/// would be hashed again for every input.
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

/// Parts with signature checks that are collected and settled together.
#[derive(Debug, Default)]
pub struct Batch {
    obligations: Obligations,
    parts: Vec<CapturedPart>,
}

#[derive(Debug)]
struct CapturedPart {
    part: Part,
    /// For each input, whether its capture run succeeded.
    captured: Vec<bool>,
    /// The part's range of checks within the batch.
    checks: Range<usize>,
}

impl Batch {
    /// Number of signature checks collected so far.
    pub fn check_count(&self) -> usize {
        self.obligations.checks().len()
    }

    /// Runs the scripts of a part and collects their signature and tweak checks.
    pub fn capture(&mut self, funded: &FundedBlock, part: Part) {
        let flags = funded.checked().flags();
        let first_check = self.obligations.checks().len();
        let mut captured = Vec::with_capacity(part.input_count());
        for (index, first, inputs) in transactions(funded, part) {
            let tx = funded.checked().block().tx(index);
            let spent = coins(funded, tx, first);
            let context = context(tx, &spent);
            for input in inputs {
                let outcome = capture_input(&context, input, flags, &mut self.obligations);
                captured.push(outcome == Captured::Accepted);
            }
        }
        let checks = first_check..self.obligations.checks().len();
        self.parts.push(CapturedPart { part, captured, checks });
    }

    /// Settles all checks with the engine. The verdicts are in the order in which the parts were captured.
    pub fn settle(self, engine: &dyn Engine) -> SettledBatch {
        let settled = self.obligations.settle_counting(engine);
        SettledBatch {
            obligations: self.obligations,
            held: settled.held.into_iter(),
            made: settled.made,
            parts: self.parts.into_iter(),
        }
    }
}

/// A batch with settled checks.
#[derive(Debug)]
pub struct SettledBatch {
    obligations: Obligations,
    held: std::vec::IntoIter<bool>,
    made: Vec<bool>,
    parts: std::vec::IntoIter<CapturedPart>,
}

impl SettledBatch {
    /// Number of signature and tweak checks that the engine made.
    pub fn checks_made(&self) -> u64 {
        self.made.iter().filter(|made| **made).count() as u64
    }

    /// The verdict on the next part, which must belong to this block. Every input that is not proven valid is verified
    /// again in exact mode, which alone decides.
    ///
    /// # Panics
    /// If called more often than parts were captured.
    pub fn verdict(&mut self, funded: &FundedBlock) -> PartVerdict {
        let Some(CapturedPart { part, captured, checks: range }) = self.parts.next() else {
            panic!("one verdict for each part");
        };
        let mut checks = CheckCounts::default();
        let made = range.clone().filter(|check| self.made[*check]);
        made.for_each(|check| checks.count(&self.obligations.checks()[check]));
        let held = &mut self.held;
        let proven: Vec<bool> =
            captured.into_iter().map(|is_captured| is_captured && held.next() == Some(true)).collect();
        if proven.iter().all(|proven| *proven) {
            return PartVerdict { part, failure: None, checks };
        }
        let flags = funded.checked().flags();
        let failure = transactions(funded, part).find_map(|(index, first, inputs)| {
            let is_doubtful = |input: &usize| !proven[first + input - part.start];
            let mut doubtful = inputs.filter(is_doubtful).peekable();
            doubtful.peek()?;
            let tx = funded.checked().block().tx(index);
            let spent = coins(funded, tx, first);
            let failure = first_failure_of_inputs(&context(tx, &spent), doubtful, flags, &mut checks);
            failure.map(|(input, error)| (index, input, error))
        });
        PartVerdict { part, failure, checks }
    }
}
