//! Why a script failed: Core's `ScriptError` (script/script_error.h), one variant per error, in Core's order.
//!
//! The table below defines the variant, Core's name and Core's text; numbers follow from the order.

use std::fmt;

macro_rules! script_errors {
    ($($variant:ident, $name:literal, $text:literal;)*) => {
        /// The first rule that a script broke. `SCRIPT_ERR_OK` has no variant: success is `Ok(())`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ScriptError {
            $(#[doc = $text] $variant,)*
        }

        impl ScriptError {
            /// Every error, in Core's order.
            pub const ALL: &[ScriptError] = &[$(ScriptError::$variant),*];

            /// Core's name, such as `SCRIPT_ERR_EVAL_FALSE`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ScriptError::$variant => $name,)*
                }
            }

            /// Core's sentence (`ScriptErrorString`).
            pub const fn text(self) -> &'static str {
                match self {
                    $(ScriptError::$variant => $text,)*
                }
            }
        }
    };
}

script_errors! {
    UnknownError, "SCRIPT_ERR_UNKNOWN_ERROR", "unknown error";
    EvalFalse, "SCRIPT_ERR_EVAL_FALSE", "Script evaluated without error but finished with a false/empty top stack element";
    OpReturn, "SCRIPT_ERR_OP_RETURN", "OP_RETURN was encountered";
    ScriptNum, "SCRIPT_ERR_SCRIPTNUM", "Script number overflowed or is non-minimally encoded";
    ScriptSize, "SCRIPT_ERR_SCRIPT_SIZE", "Script is too big";
    PushSize, "SCRIPT_ERR_PUSH_SIZE", "Push value size limit exceeded";
    OpCount, "SCRIPT_ERR_OP_COUNT", "Operation limit exceeded";
    StackSize, "SCRIPT_ERR_STACK_SIZE", "Stack size limit exceeded";
    SigCount, "SCRIPT_ERR_SIG_COUNT", "Signature count negative or greater than pubkey count";
    PubkeyCount, "SCRIPT_ERR_PUBKEY_COUNT", "Pubkey count negative or limit exceeded";
    Verify, "SCRIPT_ERR_VERIFY", "Script failed an OP_VERIFY operation";
    EqualVerify, "SCRIPT_ERR_EQUALVERIFY", "Script failed an OP_EQUALVERIFY operation";
    CheckMultisigVerify, "SCRIPT_ERR_CHECKMULTISIGVERIFY", "Script failed an OP_CHECKMULTISIGVERIFY operation";
    CheckSigVerify, "SCRIPT_ERR_CHECKSIGVERIFY", "Script failed an OP_CHECKSIGVERIFY operation";
    NumEqualVerify, "SCRIPT_ERR_NUMEQUALVERIFY", "Script failed an OP_NUMEQUALVERIFY operation";
    BadOpcode, "SCRIPT_ERR_BAD_OPCODE", "Opcode missing or not understood";
    DisabledOpcode, "SCRIPT_ERR_DISABLED_OPCODE", "Attempted to use a disabled opcode";
    InvalidStackOperation, "SCRIPT_ERR_INVALID_STACK_OPERATION", "Operation not valid with the current stack size";
    InvalidAltstackOperation, "SCRIPT_ERR_INVALID_ALTSTACK_OPERATION", "Operation not valid with the current altstack size";
    UnbalancedConditional, "SCRIPT_ERR_UNBALANCED_CONDITIONAL", "Invalid OP_IF construction";
    NegativeLockTime, "SCRIPT_ERR_NEGATIVE_LOCKTIME", "Negative locktime";
    UnsatisfiedLockTime, "SCRIPT_ERR_UNSATISFIED_LOCKTIME", "Locktime requirement not satisfied";
    SigHashType, "SCRIPT_ERR_SIG_HASHTYPE", "Signature hash type missing or not understood";
    SigDer, "SCRIPT_ERR_SIG_DER", "Non-canonical DER signature";
    MinimalData, "SCRIPT_ERR_MINIMALDATA", "Data push larger than necessary";
    SigPushOnly, "SCRIPT_ERR_SIG_PUSHONLY", "Only push operators allowed in signatures";
    SigHighS, "SCRIPT_ERR_SIG_HIGH_S", "Non-canonical signature: S value is unnecessarily high";
    SigNullDummy, "SCRIPT_ERR_SIG_NULLDUMMY", "Dummy CHECKMULTISIG argument must be zero";
    PubkeyType, "SCRIPT_ERR_PUBKEYTYPE", "Public key is neither compressed or uncompressed";
    CleanStack, "SCRIPT_ERR_CLEANSTACK", "Stack size must be exactly one after execution";
    MinimalIf, "SCRIPT_ERR_MINIMALIF", "OP_IF/NOTIF argument must be minimal";
    SigNullFail, "SCRIPT_ERR_SIG_NULLFAIL", "Signature must be zero for failed CHECK(MULTI)SIG operation";
    DiscourageUpgradableNops, "SCRIPT_ERR_DISCOURAGE_UPGRADABLE_NOPS", "NOPx reserved for soft-fork upgrades";
    DiscourageUpgradableWitnessProgram, "SCRIPT_ERR_DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM", "Witness version reserved for soft-fork upgrades";
    DiscourageUpgradableTaprootVersion, "SCRIPT_ERR_DISCOURAGE_UPGRADABLE_TAPROOT_VERSION", "Taproot version reserved for soft-fork upgrades";
    DiscourageOpSuccess, "SCRIPT_ERR_DISCOURAGE_OP_SUCCESS", "OP_SUCCESSx reserved for soft-fork upgrades";
    DiscourageUpgradablePubkeyType, "SCRIPT_ERR_DISCOURAGE_UPGRADABLE_PUBKEYTYPE", "Public key version reserved for soft-fork upgrades";
    WitnessProgramWrongLength, "SCRIPT_ERR_WITNESS_PROGRAM_WRONG_LENGTH", "Witness program has incorrect length";
    WitnessProgramWitnessEmpty, "SCRIPT_ERR_WITNESS_PROGRAM_WITNESS_EMPTY", "Witness program was passed an empty witness";
    WitnessProgramMismatch, "SCRIPT_ERR_WITNESS_PROGRAM_MISMATCH", "Witness program hash mismatch";
    WitnessMalleated, "SCRIPT_ERR_WITNESS_MALLEATED", "Witness requires empty scriptSig";
    WitnessMalleatedP2sh, "SCRIPT_ERR_WITNESS_MALLEATED_P2SH", "Witness requires only-redeemscript scriptSig";
    WitnessUnexpected, "SCRIPT_ERR_WITNESS_UNEXPECTED", "Witness provided for non-witness script";
    WitnessPubkeyType, "SCRIPT_ERR_WITNESS_PUBKEYTYPE", "Using non-compressed keys in segwit";
    SchnorrSigSize, "SCRIPT_ERR_SCHNORR_SIG_SIZE", "Invalid Schnorr signature size";
    SchnorrSigHashType, "SCRIPT_ERR_SCHNORR_SIG_HASHTYPE", "Invalid Schnorr signature hash type";
    SchnorrSig, "SCRIPT_ERR_SCHNORR_SIG", "Invalid Schnorr signature";
    TaprootWrongControlSize, "SCRIPT_ERR_TAPROOT_WRONG_CONTROL_SIZE", "Invalid Taproot control block size";
    TapscriptValidationWeight, "SCRIPT_ERR_TAPSCRIPT_VALIDATION_WEIGHT", "Too much signature validation relative to witness weight";
    TapscriptCheckMultisig, "SCRIPT_ERR_TAPSCRIPT_CHECKMULTISIG", "OP_CHECKMULTISIG(VERIFY) is not available in tapscript";
    TapscriptMinimalIf, "SCRIPT_ERR_TAPSCRIPT_MINIMALIF", "OP_IF/NOTIF argument must be minimal in tapscript";
    TapscriptEmptyPubkey, "SCRIPT_ERR_TAPSCRIPT_EMPTY_PUBKEY", "Empty public key in tapscript";
    OpCodeSeparator, "SCRIPT_ERR_OP_CODESEPARATOR", "Using OP_CODESEPARATOR in non-witness script";
    SigFindAndDelete, "SCRIPT_ERR_SIG_FINDANDDELETE", "Signature is found in scriptCode";
}

impl ScriptError {
    /// Core's number (`SCRIPT_ERR_OK` is 0).
    pub const fn number(self) -> u32 {
        self as u32 + 1
    }

    /// Returns the error with Core's number `number`.
    pub fn from_number(number: u32) -> Option<ScriptError> {
        ScriptError::ALL.iter().copied().find(|error| error.number() == number)
    }

    /// The name used in Core's test vectors (script_tests.cpp): without `SCRIPT_ERR_`, and `NULLFAIL` for
    /// `SCRIPT_ERR_SIG_NULLFAIL`.
    pub fn short_name(self) -> &'static str {
        match self {
            ScriptError::SigNullFail => "NULLFAIL",
            _ => self.name().trim_start_matches("SCRIPT_ERR_"),
        }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for ScriptError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers were counted by hand in Core's header.
    #[test]
    fn numbers_and_names() {
        assert_eq!(ScriptError::UnknownError.number(), 1);
        assert_eq!(ScriptError::EvalFalse.number(), 2);
        assert_eq!(ScriptError::ScriptNum.number(), 4);
        assert_eq!(ScriptError::BadOpcode.number(), 16);
        assert_eq!(ScriptError::SchnorrSigSize.number(), 45);
        assert_eq!(ScriptError::SigFindAndDelete.number(), 54);
        assert_eq!(ScriptError::ALL.len(), 54);
        assert_eq!(ScriptError::SigNullFail.short_name(), "NULLFAIL");
        assert_eq!(ScriptError::EvalFalse.short_name(), "EVAL_FALSE");
        assert_eq!(ScriptError::EvalFalse.name(), "SCRIPT_ERR_EVAL_FALSE");
        assert_eq!(ScriptError::OpReturn.to_string(), "OP_RETURN was encountered");
        for &error in ScriptError::ALL {
            assert_eq!(ScriptError::from_number(error.number()), Some(error));
        }
        assert_eq!(ScriptError::from_number(0), None);
        assert_eq!(ScriptError::from_number(55), None);
    }
}
