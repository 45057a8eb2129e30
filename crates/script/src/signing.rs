//! Single checks of one input, for those who sign it: the parts of Core's `BaseSignatureChecker` that script/sign.cpp
//! uses outside a whole verification.
//!
//! Input: a transaction with the outputs it spends, and the input's index. Output: whether a signature or a lock time
//! holds; the stack that a scriptSig leaves. Never used by validation.

use crate::checker::{Checker, Inline, RefuseAll};
use crate::flags::Flags;
use crate::interpreter::{Version, evaluate};
use crate::sighash::{LegacyCache, TxContext};
use crate::spend::{EcdsaVersion, Spend};
use crate::stack::Stack;

/// One input of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct InputChecks<'s, 'a> {
    context: &'s TxContext<'a>,
    input: usize,
}

impl<'s, 'a> InputChecks<'s, 'a> {
    /// Its methods panic if there is no such input.
    pub fn new(context: &'s TxContext<'a>, input: usize) -> InputChecks<'s, 'a> {
        InputChecks { context, input }
    }

    /// Whether the signature, with its hash type, holds for the key and the script code: Core's `CheckECDSASignature`.
    pub fn ecdsa_holds(&self, is_witness_v0: bool, signature: &[u8], key: &[u8], code: &[u8]) -> bool {
        let version = if is_witness_v0 { EcdsaVersion::WitnessV0 } else { EcdsaVersion::Base };
        self.with(&mut Inline, Flags::NONE, |spend| spend.holds_alone(version, signature, key, code))
    }

    /// BIP-0065: Core's `CheckLockTime`.
    pub fn lock_time_holds(&self, lock_time: i64) -> bool {
        self.with(&mut Inline, Flags::NONE, |spend| spend.check_lock_time(lock_time))
    }

    /// BIP-0112: Core's `CheckSequence`.
    pub fn sequence_holds(&self, sequence: i64) -> bool {
        self.with(&mut Inline, Flags::NONE, |spend| spend.check_sequence(sequence))
    }

    /// The stack after the script, or when it failed. No signature holds meanwhile, as in Core's `Stacks`.
    pub fn stack_after(&self, script: &[u8]) -> Vec<Vec<u8>> {
        let mut stack = Stack::new();
        self.with(&mut RefuseAll, Flags::STRICTENC, |spend| {
            // What was pushed before an error counts.
            let _ = evaluate(spend, &mut stack, script, Version::Ecdsa(EcdsaVersion::Base));
        });
        stack.elements().iter().map(|element| element.as_bytes().to_vec()).collect()
    }

    fn with<C: Checker, T>(&self, checker: &mut C, flags: Flags, check: impl FnOnce(&mut Spend<'_, 'a, C>) -> T) -> T {
        let mut cache = LegacyCache::new();
        check(&mut Spend::new(self.context, self.input, flags, checker, &mut cache))
    }
}
