//! Decides signature checks while a script runs. The interpreter is generic over [`Checker`]: [`Inline`] decides each
//! check at once and is exact; [`Capture`] records it as an obligation, assumes that it holds and continues.
//!
//! Invariant: a checker receives only checks with a defined encoding: a key whose length matches its first byte, and a
//! signature as r and s. Digests are passed as closures, so a checker that needs no digest does not compute one.

use crate::obligations::{Mark, ObligationLists};
use lydian_curve::{Check, PublicKeyBytes, Reference};
use lydian_hash::hash160;

pub trait Checker {
    /// Whether the ECDSA signature holds.
    fn ecdsa(&mut self, key: PublicKeyBytes, signature: [u8; 64], digest: impl FnOnce() -> [u8; 32]) -> bool;

    /// Called with a key and a whole signature, hash type included, for which [`Checker::ecdsa`] returned true. Signers
    /// collect the signatures of an unfinished input with it.
    fn ecdsa_held(&mut self, _key: &[u8], _signature: &[u8]) {}

    /// Whether the BIP-0340 signature holds. `None` if no digest is defined for its hash type.
    fn schnorr(
        &mut self,
        key: [u8; 32],
        signature: [u8; 64],
        digest: impl FnOnce() -> Option<[u8; 32]>,
    ) -> Option<bool>;

    /// Whether `output`, with a y coordinate of this parity, is `internal` plus `tweak` times the generator.
    fn tweak(&mut self, output: [u8; 32], is_odd: bool, internal: [u8; 32], tweak: [u8; 32]) -> bool;

    /// Whether the HASH160 of the message is `expected`. Only for templates: the caller may do nothing with the verdict
    /// but accept or refuse the input.
    fn hash160_is(&mut self, message: &[u8], expected: &[u8; 20]) -> bool {
        hash160(message) == *expected
    }

    /// Every lock time holds, as in an estimate of what an input will be.
    fn assumes_lock_times(&self) -> bool {
        false
    }

    /// The lists that receive obligations, if verdicts are assumed instead of computed.
    fn capture(&mut self) -> Option<&mut ObligationLists> {
        None
    }
}

/// Decides each check at once, with libsecp256k1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Checker for Inline {
    fn ecdsa(&mut self, key: PublicKeyBytes, signature: [u8; 64], digest: impl FnOnce() -> [u8; 32]) -> bool {
        Reference.check(&Check::Ecdsa { key, message: digest(), signature })
    }

    fn schnorr(
        &mut self,
        key: [u8; 32],
        signature: [u8; 64],
        digest: impl FnOnce() -> Option<[u8; 32]>,
    ) -> Option<bool> {
        Some(Reference.check(&Check::Schnorr { key, message: digest()?, signature }))
    }

    fn tweak(&mut self, output: [u8; 32], is_odd: bool, internal: [u8; 32], tweak: [u8; 32]) -> bool {
        Reference.check(&Check::Tweak { output, is_odd, internal, tweak })
    }
}

/// Refuses every check: Core's `BaseSignatureChecker`. No digest is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefuseAll;

impl Checker for RefuseAll {
    fn ecdsa(&mut self, _: PublicKeyBytes, _: [u8; 64], _: impl FnOnce() -> [u8; 32]) -> bool {
        false
    }

    fn schnorr(&mut self, _: [u8; 32], _: [u8; 64], _: impl FnOnce() -> Option<[u8; 32]>) -> Option<bool> {
        Some(false)
    }

    fn tweak(&mut self, _: [u8; 32], _: bool, _: [u8; 32], _: [u8; 32]) -> bool {
        false
    }
}

/// The number of checks made, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckCounts {
    pub ecdsa: u64,
    pub schnorr: u64,
    pub tweak: u64,
}

impl CheckCounts {
    pub fn add(&mut self, other: &CheckCounts) {
        self.ecdsa += other.ecdsa;
        self.schnorr += other.schnorr;
        self.tweak += other.tweak;
    }

    /// Counts one check by its kind.
    pub fn count(&mut self, check: &Check) {
        match check {
            Check::Ecdsa { .. } => self.ecdsa += 1,
            Check::Schnorr { .. } => self.schnorr += 1,
            Check::Tweak { .. } => self.tweak += 1,
        }
    }
}

/// Decides like [`Inline`] and counts the checks.
#[derive(Debug)]
pub(crate) struct Counting<'c>(pub(crate) &'c mut CheckCounts);

impl Checker for Counting<'_> {
    fn ecdsa(&mut self, key: PublicKeyBytes, signature: [u8; 64], digest: impl FnOnce() -> [u8; 32]) -> bool {
        self.0.ecdsa += 1;
        Inline.ecdsa(key, signature, digest)
    }

    fn schnorr(
        &mut self,
        key: [u8; 32],
        signature: [u8; 64],
        digest: impl FnOnce() -> Option<[u8; 32]>,
    ) -> Option<bool> {
        self.0.schnorr += 1;
        Inline.schnorr(key, signature, digest)
    }

    fn tweak(&mut self, output: [u8; 32], is_odd: bool, internal: [u8; 32], tweak: [u8; 32]) -> bool {
        self.0.tweak += 1;
        Inline.tweak(output, is_odd, internal, tweak)
    }
}

/// Assumes that every check holds and records it as an obligation.
#[derive(Debug)]
pub struct Capture<'o> {
    lists: &'o mut ObligationLists,
}

impl<'o> Capture<'o> {
    pub(crate) fn new(lists: &'o mut ObligationLists) -> Capture<'o> {
        Capture { lists }
    }

    pub(crate) fn mark(&self) -> Mark {
        self.lists.mark()
    }

    pub(crate) fn fall_back(&mut self, mark: Mark) {
        self.lists.fall_back(mark);
    }
}

impl Checker for Capture<'_> {
    fn ecdsa(&mut self, key: PublicKeyBytes, signature: [u8; 64], digest: impl FnOnce() -> [u8; 32]) -> bool {
        self.lists.push_single(Check::Ecdsa { key, message: digest(), signature });
        true
    }

    fn schnorr(
        &mut self,
        key: [u8; 32],
        signature: [u8; 64],
        digest: impl FnOnce() -> Option<[u8; 32]>,
    ) -> Option<bool> {
        self.lists.push_single(Check::Schnorr { key, message: digest()?, signature });
        Some(true)
    }

    fn tweak(&mut self, output: [u8; 32], is_odd: bool, internal: [u8; 32], tweak: [u8; 32]) -> bool {
        self.lists.push_single(Check::Tweak { output, is_odd, internal, tweak });
        true
    }

    fn hash160_is(&mut self, message: &[u8], expected: &[u8; 20]) -> bool {
        self.lists.push_hash160(message, expected);
        true
    }

    fn capture(&mut self) -> Option<&mut ObligationLists> {
        Some(self.lists)
    }
}
