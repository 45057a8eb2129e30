//! How the signatures of an input are decided while it is signed: exactly, or not at all for an estimate.

use super::{Batch, Signatures};
use lydian_curve::{Check, PublicKeyBytes};
use lydian_hash::hash160;
use lydian_script::{Checker, Inline};

/// Decides each check, and collects the ECDSA signatures that hold: Core's `SignatureExtractorChecker`.
#[derive(Debug)]
pub(super) struct Collector<'b> {
    batch: &'b Batch<'b>,
    has_schnorr: bool,
    pub(super) signatures: Signatures,
}

impl<'b> Collector<'b> {
    /// `has_schnorr`: BIP-0340 signatures are decided; if not, they do not hold.
    pub(super) fn new(batch: &'b Batch<'b>, has_schnorr: bool) -> Collector<'b> {
        Collector { batch, has_schnorr, signatures: Signatures::new() }
    }
}

impl Checker for Collector<'_> {
    fn ecdsa(&mut self, key: PublicKeyBytes, signature: [u8; 64], digest: impl FnOnce() -> [u8; 32]) -> bool {
        self.batch.check(Check::Ecdsa { key, message: digest(), signature })
    }

    fn ecdsa_held(&mut self, key: &[u8], signature: &[u8]) {
        self.signatures.entry(hash160(key)).or_insert_with(|| (key.to_vec(), signature.to_vec()));
    }

    fn schnorr(
        &mut self,
        key: [u8; 32],
        signature: [u8; 64],
        digest: impl FnOnce() -> Option<[u8; 32]>,
    ) -> Option<bool> {
        let message = self.has_schnorr.then(digest).flatten()?;
        Some(self.batch.check(Check::Schnorr { key, message, signature }))
    }

    fn tweak(&mut self, output: [u8; 32], is_odd: bool, internal: [u8; 32], tweak: [u8; 32]) -> bool {
        self.batch.check(Check::Tweak { output, is_odd, internal, tweak })
    }
}

/// Every signature and every lock time holds: Core's `DummySignatureChecker`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimating;

impl Checker for Estimating {
    fn ecdsa(&mut self, _: PublicKeyBytes, _: [u8; 64], _: impl FnOnce() -> [u8; 32]) -> bool {
        true
    }

    fn schnorr(&mut self, _: [u8; 32], _: [u8; 64], _: impl FnOnce() -> Option<[u8; 32]>) -> Option<bool> {
        Some(true)
    }

    fn tweak(&mut self, output: [u8; 32], is_odd: bool, internal: [u8; 32], tweak: [u8; 32]) -> bool {
        Inline.tweak(output, is_odd, internal, tweak)
    }

    fn assumes_lock_times(&self) -> bool {
        true
    }
}
