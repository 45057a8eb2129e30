//! Signatures of many inputs, made and verified together.
//!
//! Input: the signatures that a first, planning pass over the inputs asks for, and those that it meets. Output: in the
//! second pass, each of them from a table; one that was not planned is made or verified alone. Invariants: the second
//! pass decides everything, so a plan that asks for too little or too much changes no result; each signature is
//! verified before it is returned, as Core does, because a wrong one may reveal the private key; private keys are wiped
//! after planning. Cost: some 10 us of CPU time per ECDSA signature with AVX-512, a third of them for
//! the verification. The first pass solves each script, too.

use super::PrivateKey;
use lydian_curve::{Check, Engine, PublicKeyBytes, Reference, Scheme, ToSign};
use lydian_script::LegacyCache;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// What is signed, by which key: the key's hash, and the tweak of a BIP-0340 signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub(super) key_hash: [u8; 20],
    pub(super) digest: [u8; 32],
    pub(super) scheme: Scheme,
    pub(super) tweak: Option<[u8; 32]>,
}

/// Makes and verifies signatures.
pub struct Batch<'e> {
    engine: &'e dyn Engine,
    seed: [u8; 32],
    state: RefCell<State>,
    legacy: RefCell<LegacyCache>,
}

#[derive(Default)]
struct State {
    is_planning: bool,
    /// The input that is planned has a signature that is not made yet.
    is_waiting: bool,
    wanted: HashSet<Wanted>,
    /// In the order in which they were first asked for, with the checks that verify them.
    to_sign: Vec<(Wanted, ToSign, Option<Check>)>,
    made: HashMap<Wanted, [u8; 64]>,
    to_verify: Vec<Check>,
    verdicts: HashMap<Check, bool>,
}

/// Stands for a signature until it is made.
const PLACEHOLDER: [u8; 64] = [1; 64];

impl<'e> Batch<'e> {
    /// `seed`: random bytes, on which no signature depends ([`Engine::sign`]).
    pub fn new(engine: &'e dyn Engine, seed: [u8; 32]) -> Batch<'e> {
        Batch { engine, seed, state: RefCell::default(), legacy: RefCell::default() }
    }

    /// Runs a pass that asks for signatures and verifies some, without an effect of its own; then makes and verifies
    /// all of them.
    pub fn plan(&self, pass: impl FnOnce()) {
        self.state.borrow_mut().is_planning = true;
        pass();
        let mut state = self.state.borrow_mut();
        state.is_planning = false;
        state.wanted.clear();
        let planned = std::mem::take(&mut state.to_sign);
        let mut checks = std::mem::take(&mut state.to_verify);
        let mut wanted = Vec::with_capacity(planned.len());
        let mut to_sign = Vec::with_capacity(planned.len());
        for (what, one, check) in planned {
            wanted.push((what, check));
            to_sign.push(one);
        }
        let signatures = self.engine.sign(&to_sign, &self.seed);
        let first = checks.len();
        for ((_, check), signature) in wanted.iter().zip(&signatures) {
            checks.extend(check.zip(*signature).map(|(check, signature)| with_signature(check, signature)));
        }
        let mut verdicts = vec![false; checks.len()];
        self.engine.verify(&checks, &mut verdicts);
        let mut of_made = verdicts[first..].iter();
        for (((what, check), signature), one) in wanted.into_iter().zip(signatures).zip(&to_sign) {
            let Some(signature) = signature else { continue };
            let holds = check.is_some() && of_made.next() == Some(&true);
            // A lane that computes a wrong signature must not reveal the key. A right one does not hold for the key of
            // an output that a PSBT describes wrongly; Core makes it, too.
            let signature = if holds { Some(signature) } else { one.verified_by_library() };
            state.made.extend(signature.map(|signature| (what, signature)));
        }
        state.verdicts.extend(checks.into_iter().zip(verdicts));
    }

    /// Begins to plan or to solve an input.
    pub(super) fn begin(&self) {
        self.state.borrow_mut().is_waiting = false;
    }

    /// Whether the input has placeholders instead of signatures, so that there is nothing to verify.
    pub(super) fn is_waiting(&self) -> bool {
        self.state.borrow().is_waiting
    }

    /// A signature, or a placeholder while planning. `output_key`: the x-only key for which a BIP-0340 signature is
    /// made.
    pub(super) fn sign(&self, key: &PrivateKey, wanted: Wanted, output_key: Option<[u8; 32]>) -> Option<[u8; 64]> {
        let mut state = self.state.borrow_mut();
        if let Some(signature) = state.made.get(&wanted) {
            return Some(*signature);
        }
        let one = key.to_sign(wanted.digest, wanted.scheme, wanted.tweak)?;
        if state.is_planning {
            state.is_waiting = true;
            if state.wanted.insert(wanted) {
                state.to_sign.push((wanted, one, check_of(key, &wanted, output_key)));
            }
            return Some(PLACEHOLDER);
        }
        let signature = one.verified_by_library()?;
        state.made.insert(wanted, signature);
        Some(signature)
    }

    /// Whether a check holds; while planning, every check is assumed to hold.
    pub(super) fn check(&self, check: Check) -> bool {
        let mut state = self.state.borrow_mut();
        if state.is_planning {
            if !state.verdicts.contains_key(&check) {
                state.to_verify.push(check);
            }
            return true;
        }
        match state.verdicts.get(&check) {
            Some(verdict) => *verdict,
            None => Reference.check(&check),
        }
    }

    /// Lends the midstates of legacy signature hashes.
    pub(super) fn with_legacy<T>(&self, work: impl FnOnce(&mut LegacyCache) -> T) -> T {
        work(&mut self.legacy.borrow_mut())
    }
}

impl Default for Batch<'_> {
    /// Makes and verifies each signature with libsecp256k1.
    fn default() -> Self {
        Batch::new(&Reference, [0; 32])
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("engine", &self.engine.name()).finish_non_exhaustive()
    }
}

/// The check that verifies a signature, without the signature.
fn check_of(key: &PrivateKey, wanted: &Wanted, output_key: Option<[u8; 32]>) -> Option<Check> {
    let (message, signature) = (wanted.digest, PLACEHOLDER);
    match wanted.scheme {
        Scheme::Ecdsa => PublicKeyBytes::new(key.public_key()).map(|key| Check::Ecdsa { key, message, signature }),
        Scheme::Schnorr => output_key.map(|key| Check::Schnorr { key, message, signature }),
    }
}

fn with_signature(check: Check, signature: [u8; 64]) -> Check {
    match check {
        Check::Ecdsa { key, message, .. } => Check::Ecdsa { key, message, signature },
        Check::Schnorr { key, message, .. } => Check::Schnorr { key, message, signature },
        Check::Tweak { .. } => check,
    }
}
