//! One input being verified: its transaction, flags and checker, and all checks of signatures and lock times that
//! scripts need. Interpreter and templates both use these, so that there is only one implementation.
//!
//! Invariant: with a capturing checker, each check is either recorded as an obligation and answered with "holds", or
//! answered with an error, after which the run proves nothing.

use crate::checker::Checker;
use crate::encoding::{check_public_key, check_signature};
use crate::error::ScriptError;
use crate::find_and_delete::find_and_delete;
use crate::flags::Flags;
use crate::limits::MAX_PUBKEYS_PER_MULTISIG;
use crate::sighash::{LegacyCache, TaprootExt, TxContext};
use crate::stack::Element;
use lydian_curve::{Check, PublicKeyBytes, parse_der_lax};
use std::borrow::Cow;

/// Lock times from this value on are seconds; smaller ones are heights.
const LOCKTIME_THRESHOLD: i64 = 500_000_000;
/// The sequence of a final input.
const SEQUENCE_FINAL: u32 = 0xffff_ffff;
/// A sequence with this bit is not a relative lock (BIP-0068).
pub(crate) const SEQUENCE_LOCKTIME_DISABLE_FLAG: i64 = 1 << 31;
/// A relative lock with this bit is in units of 512 seconds, otherwise in blocks.
const SEQUENCE_LOCKTIME_TYPE_FLAG: i64 = 1 << 22;
const SEQUENCE_LOCKTIME_MASK: i64 = 0xffff;

/// The signature hash that a script before tapscript uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcdsaVersion {
    Base,
    WitnessV0,
}

/// An input being verified.
#[derive(Debug)]
pub(crate) struct Spend<'s, 'a, C> {
    pub(crate) context: &'s TxContext<'a>,
    pub(crate) input: usize,
    pub(crate) flags: Flags,
    pub(crate) checker: &'s mut C,
    pub(crate) legacy_cache: &'s mut LegacyCache,
}

/// The result of a capture run that cannot continue. Not the script's error: exact mode finds that.
const CAPTURE_ENDS: ScriptError = ScriptError::UnknownError;

/// A decodable signature, split from its hash type.
struct EcdsaSignature<'a> {
    whole: &'a [u8],
    compact: [u8; 64],
    hash_type: u8,
}

impl EcdsaSignature<'_> {
    fn parse(signature: &[u8]) -> Option<EcdsaSignature<'_>> {
        let (&hash_type, der) = signature.split_last()?;
        Some(EcdsaSignature { whole: signature, compact: parse_der_lax(der)?, hash_type })
    }
}

impl<C: Checker> Spend<'_, '_, C> {
    /// The script code of signatures before segwit MUST NOT contain them; under `CONST_SCRIPTCODE` (policy) a script
    /// code that does fails.
    fn without_signature<'c>(
        &self,
        version: EcdsaVersion,
        code: Cow<'c, [u8]>,
        signature: &[u8],
    ) -> Result<Cow<'c, [u8]>, ScriptError> {
        if version != EcdsaVersion::Base {
            return Ok(code);
        }
        let (deleted, found) = find_and_delete(&code, signature);
        if found == 0 {
            return Ok(code);
        }
        if self.flags.contains(Flags::CONST_SCRIPTCODE) {
            return Err(ScriptError::SigFindAndDelete);
        }
        Ok(Cow::Owned(deleted.into_owned()))
    }

    /// Checks one signature of `OP_CHECKSIG` before tapscript (Core's `EvalChecksigPreTapscript`).
    pub(crate) fn check_ecdsa(
        &mut self,
        version: EcdsaVersion,
        signature: &[u8],
        key: &[u8],
        code: &[u8],
    ) -> Result<bool, ScriptError> {
        let code = self.without_signature(version, Cow::Borrowed(code), signature)?;
        self.check_encodings(version, signature, key)?;
        let holds = match EcdsaSignature::parse(signature) {
            Some(parsed) => self.ecdsa(version, &parsed, key, &code, &mut None),
            None => self.undefined_signature()?,
        };
        if !holds && self.flags.contains(Flags::NULLFAIL) && !signature.is_empty() {
            return Err(ScriptError::SigNullFail);
        }
        Ok(holds)
    }

    fn check_encodings(&self, version: EcdsaVersion, signature: &[u8], key: &[u8]) -> Result<(), ScriptError> {
        check_signature(signature, self.flags)?;
        check_public_key(key, self.flags, version == EcdsaVersion::WitnessV0)
    }

    /// Core's `CheckECDSASignature`. `digest` caches the signature's hash for the next key.
    fn ecdsa(
        &mut self,
        version: EcdsaVersion,
        signature: &EcdsaSignature<'_>,
        key: &[u8],
        code: &[u8],
        digest: &mut Option<[u8; 32]>,
    ) -> bool {
        let Some(parsed) = PublicKeyBytes::new(key) else {
            return false;
        };
        let Spend { context, input, checker, legacy_cache, .. } = self;
        let compute = || ecdsa_digest(context, *input, version, code, signature.hash_type, legacy_cache);
        let holds = checker.ecdsa(parsed, signature.compact, || *digest.get_or_insert_with(compute));
        if holds {
            checker.ecdsa_held(key, signature.whole);
        }
        holds
    }

    /// Core's `CheckECDSASignature`, without the checks of encodings that depend on flags.
    pub(crate) fn holds_alone(&mut self, version: EcdsaVersion, signature: &[u8], key: &[u8], code: &[u8]) -> bool {
        EcdsaSignature::parse(signature).is_some_and(|parsed| self.ecdsa(version, &parsed, key, code, &mut None))
    }

    /// A signature that is empty or cannot be decoded is false. A capture run ends there.
    fn undefined_signature(&mut self) -> Result<bool, ScriptError> {
        if self.checker.capture().is_some() { Err(CAPTURE_ENDS) } else { Ok(false) }
    }

    /// Whether all `signatures` match keys in order. Both are in stack order, first to last.
    pub(crate) fn check_multisig(
        &mut self,
        version: EcdsaVersion,
        signatures: &[Element<'_>],
        keys: &[Element<'_>],
        code: &[u8],
    ) -> Result<bool, ScriptError> {
        debug_assert!(signatures.len() <= keys.len() && keys.len() <= MAX_PUBKEYS_PER_MULTISIG);
        let mut code = Cow::Borrowed(code);
        for signature in signatures.iter().rev() {
            code = self.without_signature(version, code, signature.as_bytes())?;
        }
        if self.checker.capture().is_some() {
            self.capture_multisig(version, signatures, keys, &code).map(|()| true)
        } else {
            self.walk_multisig(version, signatures, keys, &code)
        }
    }

    /// Core's loop in `OP_CHECKMULTISIG`, from the last signature and key to the first. Which encodings are checked
    /// depends on which signatures hold.
    fn walk_multisig(
        &mut self,
        version: EcdsaVersion,
        signatures: &[Element<'_>],
        keys: &[Element<'_>],
        code: &[u8],
    ) -> Result<bool, ScriptError> {
        let (mut signatures_left, mut keys_left) = (signatures.len(), keys.len());
        let mut digest = None;
        while signatures_left > 0 {
            if signatures_left > keys_left {
                return Ok(false);
            }
            let (signature, key) = (signatures[signatures_left - 1].as_bytes(), keys[keys_left - 1].as_bytes());
            self.check_encodings(version, signature, key)?;
            let parsed = EcdsaSignature::parse(signature);
            if parsed.is_some_and(|parsed| self.ecdsa(version, &parsed, key, code, &mut digest)) {
                signatures_left -= 1;
                digest = None;
            }
            keys_left -= 1;
        }
        Ok(true)
    }

    /// Adds every pair that an assignment in order can use: signature i with key j where i <= j <= n - m + i.
    fn capture_multisig(
        &mut self,
        version: EcdsaVersion,
        signatures: &[Element<'_>],
        keys: &[Element<'_>],
        code: &[u8],
    ) -> Result<(), ScriptError> {
        let Spend { context, input, flags, checker, legacy_cache } = self;
        let Some(lists) = checker.capture() else { return Err(CAPTURE_ENDS) };
        let mark = lists.mark();
        let slack = keys.len() - signatures.len();
        if !signatures.is_empty() {
            let is_witness_v0 = version == EcdsaVersion::WitnessV0;
            keys.iter().try_for_each(|key| check_public_key(key.as_bytes(), *flags, is_witness_v0))?;
        }
        for (index, signature) in (0_u8..).zip(signatures) {
            check_signature(signature.as_bytes(), *flags)?;
            let parsed = EcdsaSignature::parse(signature.as_bytes()).ok_or(CAPTURE_ENDS)?;
            let message = ecdsa_digest(context, *input, version, code, parsed.hash_type, legacy_cache);
            let candidates = (index..).zip(&keys[usize::from(index)..=usize::from(index) + slack]);
            for (key_index, key) in candidates {
                // A key whose length does not match its first byte matches no signature.
                if let Some(key) = PublicKeyBytes::new(key.as_bytes()) {
                    lists.push_pair(index, key_index, Check::Ecdsa { key, message, signature: parsed.compact });
                }
            }
        }
        lists.push_multi(count(signatures.len()), count(keys.len()), mark);
        Ok(())
    }

    /// Checks a BIP-0340 signature of a key path or of tapscript (Core's `CheckSchnorrSignature`).
    pub(crate) fn check_schnorr(
        &mut self,
        signature: &[u8],
        key: &[u8; 32],
        ext: &TaprootExt,
    ) -> Result<(), ScriptError> {
        let (compact, hash_type) = match signature.split_first_chunk::<64>() {
            Some((compact, [])) => (compact, 0),
            Some((_, [0])) => return Err(ScriptError::SchnorrSigHashType),
            Some((compact, [hash_type])) => (compact, *hash_type),
            _ => return Err(ScriptError::SchnorrSigSize),
        };
        match self.checker.schnorr(*key, *compact, || self.context.taproot(self.input, hash_type, ext)) {
            None => Err(ScriptError::SchnorrSigHashType),
            Some(false) => Err(ScriptError::SchnorrSig),
            Some(true) => Ok(()),
        }
    }

    /// BIP-0065 (Core's `CheckLockTime`): the transaction's lock time has the same unit and is at least `lock_time`,
    /// and this input's sequence does not disable it.
    pub(crate) fn check_lock_time(&self, lock_time: i64) -> bool {
        if self.checker.assumes_lock_times() {
            return true;
        }
        let tx = self.context.tx();
        let of_tx = i64::from(tx.lock_time());
        (of_tx < LOCKTIME_THRESHOLD) == (lock_time < LOCKTIME_THRESHOLD)
            && lock_time <= of_tx
            && tx.input(self.input).sequence != SEQUENCE_FINAL
    }

    /// BIP-0112 (Core's `CheckSequence`): the input's relative lock is enabled, has the same unit and is at least
    /// `sequence`. The version is compared as unsigned.
    pub(crate) fn check_sequence(&self, sequence: i64) -> bool {
        if self.checker.assumes_lock_times() {
            return true;
        }
        const MASK: i64 = SEQUENCE_LOCKTIME_TYPE_FLAG | SEQUENCE_LOCKTIME_MASK;
        let tx = self.context.tx();
        let of_input = i64::from(tx.input(self.input).sequence);
        if tx.version() < 2 || of_input & SEQUENCE_LOCKTIME_DISABLE_FLAG != 0 {
            return false;
        }
        let (of_input, wanted) = (of_input & MASK, sequence & MASK);
        (of_input < SEQUENCE_LOCKTIME_TYPE_FLAG) == (wanted < SEQUENCE_LOCKTIME_TYPE_FLAG) && wanted <= of_input
    }
}

fn ecdsa_digest(
    context: &TxContext<'_>,
    input: usize,
    version: EcdsaVersion,
    code: &[u8],
    hash_type: u8,
    legacy_cache: &mut LegacyCache,
) -> [u8; 32] {
    match version {
        EcdsaVersion::Base => context.legacy(input, code, u32::from(hash_type), legacy_cache),
        EcdsaVersion::WitnessV0 => context.segwit_v0(input, code, u32::from(hash_type)),
    }
}

/// Narrows a count, which is at most 20 (`MAX_PUBKEYS_PER_MULTISIG`).
fn count(of: usize) -> u8 {
    u8::try_from(of).unwrap_or(u8::MAX)
}
