//! The operations that check signatures: `OP_CHECKSIG`, `OP_CHECKSIGADD`, `OP_CHECKMULTISIG` and their verifying forms.
//!
//! Input: a run and its stack. Output: the stack with the verdict in place of the operands. The order of checks is that
//! of Core's `EvalScript` and determines the error; the checks themselves are in `spend.rs`.

use crate::checker::Checker;
use crate::error::ScriptError;
use crate::flags::Flags;
use crate::interpreter::{Run, Version};
use crate::limits::{MAX_OPS_PER_SCRIPT, MAX_PUBKEYS_PER_MULTISIG};
use crate::opcodes::*;
use crate::sighash::TaprootExt;
use crate::spend::EcdsaVersion;
use crate::stack::Element;

/// Weight that every non-empty tapscript signature uses (BIP-0342).
const VALIDATION_WEIGHT_PER_SIGOP_PASSED: i64 = 50;

impl<C: Checker> Run<'_, '_, '_, '_, C> {
    pub(crate) fn execute_signature_op(&mut self, opcode: u8) -> Result<(), ScriptError> {
        match opcode {
            OP_CHECKSIG => self.checksig(),
            OP_CHECKSIGVERIFY => {
                self.checksig()?;
                self.verify(ScriptError::CheckSigVerify)
            }
            OP_CHECKMULTISIG => self.checkmultisig(),
            OP_CHECKMULTISIGVERIFY => {
                self.checkmultisig()?;
                self.verify(ScriptError::CheckMultisigVerify)
            }
            _ => self.checksigadd(),
        }
    }

    /// (signature key -- bool)
    fn checksig(&mut self) -> Result<(), ScriptError> {
        self.stack.require(2)?;
        let (signature, key) = (self.stack.peek(1)?, self.stack.peek(0)?);
        let holds = self.check_signature(signature.as_bytes(), key.as_bytes())?;
        self.stack.drop_top(2);
        self.stack.push(Element::from_bool(holds));
        Ok(())
    }

    /// (signature number key -- number): adds one if the signature is not empty. Tapscript only.
    fn checksigadd(&mut self) -> Result<(), ScriptError> {
        if matches!(self.version, Version::Ecdsa(_)) {
            return Err(ScriptError::BadOpcode);
        }
        self.stack.require(3)?;
        let (signature, number, key) = (self.stack.peek(2)?, self.number(1)?, self.stack.peek(0)?);
        let holds = self.check_signature(signature.as_bytes(), key.as_bytes())?;
        self.stack.drop_top(3);
        self.stack.push(Element::from_number(number + i64::from(holds)));
        Ok(())
    }

    /// Core's `EvalChecksig`.
    fn check_signature(&mut self, signature: &[u8], key: &[u8]) -> Result<bool, ScriptError> {
        match self.version {
            Version::Ecdsa(version) => self.spend.check_ecdsa(version, signature, key, &self.script[self.code_start..]),
            Version::Tapscript(_) => self.check_tapscript_signature(signature, key),
        }
    }

    /// An empty signature is false; any other MUST hold and MUST have its weight. Keys that do not have 32 bytes accept
    /// any signature, except the empty key, which is an error (BIP-0342; Core's `EvalChecksigTapscript`).
    fn check_tapscript_signature(&mut self, signature: &[u8], key: &[u8]) -> Result<bool, ScriptError> {
        let Version::Tapscript(tapscript) = &mut self.version else {
            return Err(ScriptError::UnknownError);
        };
        if !signature.is_empty() {
            tapscript.validation_weight_left -= VALIDATION_WEIGHT_PER_SIGOP_PASSED;
            if tapscript.validation_weight_left < 0 {
                return Err(ScriptError::TapscriptValidationWeight);
            }
        }
        match (key.first_chunk::<32>(), key.len()) {
            (_, 0) => return Err(ScriptError::TapscriptEmptyPubkey),
            (Some(key), 32) if !signature.is_empty() => {
                let leaf = Some((tapscript.leaf_hash, self.code_separator));
                let ext = TaprootExt { annex_hash: tapscript.annex_hash, leaf };
                self.spend.check_schnorr(signature, key, &ext)?;
            }
            (Some(_), 32) => {}
            _ if self.spend.flags.contains(Flags::DISCOURAGE_UPGRADABLE_PUBKEYTYPE) => {
                return Err(ScriptError::DiscourageUpgradablePubkeyType);
            }
            _ => {}
        }
        Ok(!signature.is_empty())
    }

    /// (ignored [signature ...] number_of_signatures [key ...] number_of_keys -- bool)
    fn checkmultisig(&mut self) -> Result<(), ScriptError> {
        let Version::Ecdsa(version) = self.version else {
            return Err(ScriptError::TapscriptCheckMultisig);
        };
        let key_count = usize::try_from(self.number(0)?).unwrap_or(usize::MAX);
        if key_count > MAX_PUBKEYS_PER_MULTISIG {
            return Err(ScriptError::PubkeyCount);
        }
        self.op_count += key_count;
        if self.op_count > MAX_OPS_PER_SCRIPT {
            return Err(ScriptError::OpCount);
        }
        self.stack.require(key_count + 2)?;
        let signature_count = usize::try_from(self.number(key_count + 1)?).unwrap_or(usize::MAX);
        if signature_count > key_count {
            return Err(ScriptError::SigCount);
        }
        let operand_count = key_count + signature_count + 2;
        // The dummy element that is dropped below must exist before any signature is examined.
        self.stack.require(operand_count + 1)?;
        let holds = self.match_signatures(version, signature_count, key_count)?;
        self.stack.drop_top(operand_count);
        self.drop_multisig_dummy()?;
        self.stack.push(Element::from_bool(holds));
        Ok(())
    }

    /// The operands are on the stack in the given numbers.
    fn match_signatures(
        &mut self,
        version: EcdsaVersion,
        signature_count: usize,
        key_count: usize,
    ) -> Result<bool, ScriptError> {
        let elements = self.stack.elements();
        let keys_end = elements.len() - 1;
        let signatures_end = keys_end - key_count - 1;
        let keys = &elements[keys_end - key_count..keys_end];
        let signatures = &elements[signatures_end - signature_count..signatures_end];
        let holds = self.spend.check_multisig(version, signatures, keys, &self.script[self.code_start..])?;
        let all_empty = || signatures.iter().all(|signature| signature.as_bytes().is_empty());
        if !holds && self.spend.flags.contains(Flags::NULLFAIL) && !all_empty() {
            return Err(ScriptError::SigNullFail);
        }
        Ok(holds)
    }

    /// Drops one element more than the operands: a bug of the first version that became consensus. The element MUST be
    /// empty under `NULLDUMMY` (BIP-0147).
    fn drop_multisig_dummy(&mut self) -> Result<(), ScriptError> {
        let dummy = self.stack.pop()?;
        if self.spend.flags.contains(Flags::NULLDUMMY) && !dummy.as_bytes().is_empty() {
            return Err(ScriptError::SigNullDummy);
        }
        Ok(())
    }
}
