//! The checks that capture runs leave to be verified: flat lists for many inputs of many transactions.
//!
//! Input: the checks that [`crate::Capture`] records. Output: for each captured input, whether all its obligations
//! hold. Invariants: an input is added only if its script succeeded under the assumption that every obligation holds.
//! So "holds" proves that the input is valid, and anything else proves nothing. Cost: about 200 bytes per check, no
//! allocation per input once the lists have grown. Must never report an input as invalid.

use crate::hashes::Hashes;
use crate::sighash::LegacyCache;
use lydian_curve::{Check, Engine};
use std::ops::Range;

/// A condition that must hold for a captured input to be valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obligation {
    /// The check at this index holds.
    Single { check: u32 },
    /// Each of `required` signatures matches a different one of `keys` keys, both in order. `pairs` are the candidates,
    /// ordered by signature, then by key.
    Multi { required: u8, keys: u8, pairs: Range<u32> },
    /// The HASH160 at this index is the expected one.
    Hash { hash: u32 },
}

/// A signature and a key of one multisig that may match, by their positions in the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub signature: u8,
    pub key: u8,
    /// Index of the check that decides whether they match.
    pub check: u32,
}

/// The obligations of many inputs, and the cache that is kept between captures.
#[derive(Debug, Default)]
pub struct Obligations {
    pub(crate) lists: ObligationLists,
    pub(crate) legacy_cache: LegacyCache,
}

/// The lists of obligations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObligationLists {
    checks: Vec<Check>,
    pairs: Vec<Pair>,
    hashes: Hashes,
    obligations: Vec<Obligation>,
    /// For each captured input, the end of its range in `obligations`.
    inputs: Vec<u32>,
}

/// Lengths of the lists, for rolling them back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    checks: usize,
    pairs: usize,
    hashes: usize,
    obligations: usize,
}

impl Obligations {
    pub fn new() -> Obligations {
        Obligations::default()
    }

    /// The number of captured inputs.
    pub fn input_count(&self) -> usize {
        self.lists.inputs.len()
    }

    /// All checks of all inputs.
    pub fn checks(&self) -> &[Check] {
        &self.lists.checks
    }

    /// The lists, for comparing and counting.
    pub fn lists(&self) -> &ObligationLists {
        &self.lists
    }

    /// Clears the lists and keeps their memory.
    pub fn clear(&mut self) {
        self.lists.checks.clear();
        self.lists.pairs.clear();
        self.lists.hashes.truncate(0);
        self.lists.obligations.clear();
        self.lists.inputs.clear();
    }

    /// Lets `engine` make the necessary checks. Returns for each captured input, in order, whether all its obligations
    /// hold.
    ///
    /// An input whose obligations do not hold must be verified again in exact mode; only that decides.
    pub fn settle(&self, engine: &dyn Engine) -> Vec<bool> {
        self.settle_counting(engine).held
    }

    /// Like [`Obligations::settle`], but also returns which checks were made.
    ///
    /// Works in rounds: every single check and the first candidate of every multisig in one batch, then the next
    /// candidates of the multisigs that are still undecided. A multisig therefore costs the checks of Core's loop, from
    /// the last signature and key to the first, and not all its candidates.
    pub fn settle_counting(&self, engine: &dyn Engine) -> Settled {
        let lists = &self.lists;
        let mut verdicts = Verdicts { known: vec![None; lists.checks.len()], hashes: lists.hashes.settle() };
        let mut open: Vec<Walk<'_>> = Vec::new();
        let mut round: Vec<u32> = Vec::with_capacity(lists.checks.len());
        for obligation in &lists.obligations {
            match obligation {
                Obligation::Hash { .. } => {}
                Obligation::Single { check } => round.push(*check),
                Obligation::Multi { required, keys, pairs } => {
                    open.push(Walk { signatures_left: *required, keys_left: *keys, pairs: lists.pairs(pairs) });
                }
            }
        }
        loop {
            open.retain_mut(|walk| match walk.next_check(&verdicts) {
                Some(check) => {
                    round.push(check);
                    true
                }
                None => false,
            });
            if round.is_empty() {
                break;
            }
            verdicts.find(engine, &lists.checks, &round);
            round.clear();
        }
        let held = (0..self.input_count()).map(|input| lists.input_holds(input, &verdicts)).collect();
        Settled { held, made: verdicts.known.iter().map(Option::is_some).collect() }
    }
}

/// The result of settling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// For each captured input, whether all its obligations hold.
    pub held: Vec<bool>,
    /// For each of [`Obligations::checks`], whether it had to be made.
    pub made: Vec<bool>,
}

/// The verdicts of the checks made so far, and of all hashes.
struct Verdicts {
    known: Vec<Option<bool>>,
    /// For each hash, whether it is the expected one.
    hashes: Vec<bool>,
}

impl Verdicts {
    fn find(&mut self, engine: &dyn Engine, checks: &[Check], round: &[u32]) {
        let mut verdicts = vec![false; round.len()];
        if round.len() == checks.len() && round.windows(2).all(|pair| pair[0] < pair[1]) {
            engine.verify(checks, &mut verdicts);
        } else {
            let chosen: Vec<Check> = round.iter().map(|&check| checks[check as usize]).collect();
            engine.verify(&chosen, &mut verdicts);
        }
        round.iter().zip(verdicts).for_each(|(&check, verdict)| self.known[check as usize] = Some(verdict));
    }

    fn holds(&self, check: u32) -> bool {
        self.known[check as usize] == Some(true)
    }
}

/// A multisig in progress: Core's loop, which pauses when it needs a verdict that is not known yet.
struct Walk<'a> {
    signatures_left: u8,
    keys_left: u8,
    /// Candidates that are not yet examined; the last one comes next.
    pairs: &'a [Pair],
}

impl Walk<'_> {
    /// The check that decides the next step; `None` when the walk is finished.
    fn next_check(&mut self, verdicts: &Verdicts) -> Option<u32> {
        while let Some((pair, rest)) = self.pairs.split_last() {
            // Each signature needs a key of its own among the remaining ones.
            if self.signatures_left == 0 || self.signatures_left > self.keys_left {
                return None;
            }
            if pair.signature + 1 == self.signatures_left && pair.key < self.keys_left {
                match verdicts.known[pair.check as usize] {
                    None => return Some(pair.check),
                    Some(true) => self.signatures_left -= 1,
                    Some(false) => {}
                }
                self.keys_left = pair.key;
            }
            self.pairs = rest;
        }
        None
    }

    fn holds(mut self, verdicts: &Verdicts) -> bool {
        // All multisigs are decided; a walk that still needs a check reached one that was never made.
        self.next_check(verdicts).is_none() && self.signatures_left == 0
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

    /// A copy without hashes. The interpreter computes a hash at once, so this is what it records where a template
    /// records hashes as well.
    pub fn without_hashes(&self) -> ObligationLists {
        let mut copy =
            ObligationLists { hashes: Hashes::default(), obligations: Vec::new(), inputs: Vec::new(), ..self.clone() };
        for input in 0..self.inputs.len() {
            let kept = self.of_input(input).iter().filter(|obligation| !matches!(obligation, Obligation::Hash { .. }));
            copy.obligations.extend(kept.cloned());
            copy.finish_input();
        }
        copy
    }

    /// Whether the hashes of each captured input are the expected ones.
    pub fn hashes_hold(&self) -> Vec<bool> {
        let hashes = self.hashes.settle();
        let holds = |obligation: &Obligation| match obligation {
            Obligation::Hash { hash } => hashes[*hash as usize],
            Obligation::Single { .. } | Obligation::Multi { .. } => true,
        };
        (0..self.inputs.len()).map(|input| self.of_input(input).iter().all(holds)).collect()
    }

    /// The candidates of an [`Obligation::Multi`].
    pub fn pairs(&self, range: &Range<u32>) -> &[Pair] {
        &self.pairs[range.start as usize..range.end as usize]
    }

    fn input_holds(&self, input: usize, verdicts: &Verdicts) -> bool {
        self.of_input(input).iter().all(|obligation| match obligation {
            Obligation::Hash { hash } => verdicts.hashes[*hash as usize],
            Obligation::Single { check } => verdicts.holds(*check),
            Obligation::Multi { required, keys, pairs } => {
                Walk { signatures_left: *required, keys_left: *keys, pairs: self.pairs(pairs) }.holds(verdicts)
            }
        })
    }

    pub(crate) fn push_single(&mut self, check: Check) {
        let check = self.push_check(check);
        self.obligations.push(Obligation::Single { check });
    }

    /// Adds the condition that the HASH160 of `message` is `expected`.
    pub(crate) fn push_hash160(&mut self, message: &[u8], expected: &[u8; 20]) {
        let hash = narrow(self.hashes.len());
        self.hashes.push(message, expected);
        self.obligations.push(Obligation::Hash { hash });
    }

    /// Adds a multisig with the candidate pairs that `push_pair` has added since `mark`.
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
        Mark {
            checks: self.checks.len(),
            pairs: self.pairs.len(),
            hashes: self.hashes.len(),
            obligations: self.obligations.len(),
        }
    }

    /// Removes everything added since `mark`, after a capture run that proves nothing.
    pub(crate) fn fall_back(&mut self, mark: Mark) {
        self.checks.truncate(mark.checks);
        self.pairs.truncate(mark.pairs);
        self.hashes.truncate(mark.hashes);
        self.obligations.truncate(mark.obligations);
    }

    /// Assigns everything added since the last input to this one.
    pub(crate) fn finish_input(&mut self) {
        self.inputs.push(narrow(self.obligations.len()));
    }
}

/// Indices have 32 bits: a list of 2^32 checks would need almost a terabyte.
pub(crate) fn narrow(index: usize) -> u32 {
    match u32::try_from(index) {
        Ok(index) => index,
        Err(_) => panic!("more than 2^32 checks in one batch"),
    }
}
