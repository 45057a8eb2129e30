//! What capture runs leave to be proven: flat lists for many inputs of many transactions.
//!
//! Input: checks, as [`crate::Capture`] meets them. Output: for each captured input, whether all its obligations hold.
//! Invariants: an input is entered only if its script succeeded under the assumption that every obligation holds; so
//! "holds" proves the input valid, and anything else proves nothing. Cost: about 200 bytes a check, no allocation per input
//! once the lists have grown. Must never: say that an input is invalid.

use crate::sighash::LegacyCache;
use lydian_curve::{Check, Engine};
use std::ops::Range;

/// Something that must hold for a captured input to be valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obligation {
    /// The check of this index holds.
    Single { check: u32 },
    /// `required` signatures each match another one of `keys` keys, both in their order; `pairs` are the candidates, in
    /// the order of signatures, then keys.
    Multi { required: u8, keys: u8, pairs: Range<u32> },
}

/// A signature and a key of one multisig that may belong together, by their places in the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub signature: u8,
    pub key: u8,
    /// Index of the check that says so.
    pub check: u32,
}

/// The obligations of many inputs, and what is worth keeping between captures.
#[derive(Debug, Default)]
pub struct Obligations {
    pub(crate) lists: ObligationLists,
    pub(crate) legacy_cache: LegacyCache,
}

/// The lists themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObligationLists {
    checks: Vec<Check>,
    pairs: Vec<Pair>,
    obligations: Vec<Obligation>,
    /// For each captured input, the end of its run of `obligations`.
    inputs: Vec<u32>,
}

/// Lengths of the lists, to fall back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    checks: usize,
    pairs: usize,
    obligations: usize,
}

impl Obligations {
    pub fn new() -> Obligations {
        Obligations::default()
    }

    /// Captured inputs.
    pub fn input_count(&self) -> usize {
        self.lists.inputs.len()
    }

    /// Every check of every input.
    pub fn checks(&self) -> &[Check] {
        &self.lists.checks
    }

    /// The lists, to compare and to count.
    pub fn lists(&self) -> &ObligationLists {
        &self.lists
    }

    /// Empties the lists and keeps their memory.
    pub fn clear(&mut self) {
        self.lists.checks.clear();
        self.lists.pairs.clear();
        self.lists.obligations.clear();
        self.lists.inputs.clear();
    }

    /// Lets `engine` decide the checks; for each captured input, in order, whether all its obligations hold.
    ///
    /// An input whose obligations do not hold is to be verified again in exact mode; only that decides.
    pub fn settle(&self, engine: &dyn Engine) -> Vec<bool> {
        let mut verdicts = vec![false; self.lists.checks.len()];
        engine.verify(&self.lists.checks, &mut verdicts);
        self.settle_with(&verdicts)
    }

    /// The same with verdicts found elsewhere, one for each of [`Obligations::checks`].
    pub fn settle_with(&self, verdicts: &[bool]) -> Vec<bool> {
        let inputs = 0..self.input_count();
        inputs.map(|input| self.lists.of_input(input).iter().all(|one| self.lists.holds(one, verdicts))).collect()
    }
}

impl ObligationLists {
    pub fn obligations(&self) -> &[Obligation] {
        &self.obligations
    }

    /// The obligations of one captured input.
    pub fn of_input(&self, input: usize) -> &[Obligation] {
        let start = input.checked_sub(1).map_or(0, |before| self.inputs[before]);
        &self.obligations[start as usize..self.inputs[input] as usize]
    }

    /// The candidates of a [`Obligation::Multi`].
    pub fn pairs(&self, range: &Range<u32>) -> &[Pair] {
        &self.pairs[range.start as usize..range.end as usize]
    }

    fn holds(&self, obligation: &Obligation, verdicts: &[bool]) -> bool {
        match obligation {
            Obligation::Single { check } => verdicts[*check as usize],
            Obligation::Multi { required, pairs, .. } => self.multisig_holds(*required, self.pairs(pairs), verdicts),
        }
    }

    /// Gives each signature the first key behind the last one given that matches it. If any assignment in order exists,
    /// this finds one: taking the first leaves the most keys for the rest.
    fn multisig_holds(&self, required: u8, pairs: &[Pair], verdicts: &[bool]) -> bool {
        let (mut next_signature, mut next_key) = (0, 0);
        for pair in pairs {
            let fits = pair.signature == next_signature && pair.key >= next_key;
            if fits && verdicts[pair.check as usize] {
                next_signature += 1;
                next_key = pair.key + 1;
            }
        }
        next_signature == required
    }

    pub(crate) fn push_single(&mut self, check: Check) {
        let check = self.push_check(check);
        self.obligations.push(Obligation::Single { check });
    }

    /// Enters a multisig whose candidate pairs `push_pair` has entered since `mark`.
    pub(crate) fn push_multi(&mut self, required: u8, keys: u8, mark: Mark) {
        let pairs = narrow(mark.pairs)..narrow(self.pairs.len());
        self.obligations.push(Obligation::Multi { required, keys, pairs });
    }

    pub(crate) fn push_pair(&mut self, signature: u8, key: u8, check: Check) {
        let check = self.push_check(check);
        self.pairs.push(Pair { signature, key, check });
    }

    fn push_check(&mut self, check: Check) -> u32 {
        self.checks.push(check);
        narrow(self.checks.len() - 1)
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { checks: self.checks.len(), pairs: self.pairs.len(), obligations: self.obligations.len() }
    }

    /// Forgets what a capture run entered that proves nothing.
    pub(crate) fn fall_back(&mut self, mark: Mark) {
        self.checks.truncate(mark.checks);
        self.pairs.truncate(mark.pairs);
        self.obligations.truncate(mark.obligations);
    }

    /// Everything entered since the last input belongs to this one.
    pub(crate) fn finish_input(&mut self) {
        self.inputs.push(narrow(self.obligations.len()));
    }
}

/// Indices have 32 bits: a list of 2^32 checks would fill a terabyte first.
fn narrow(index: usize) -> u32 {
    match u32::try_from(index) {
        Ok(index) => index,
        Err(_) => panic!("more than 2^32 checks in one batch"),
    }
}
