//! The redeem script of an input, for policy, which looks at it before any script is verified.
//!
//! Input: an input of a transaction. Output: what its scriptSig leaves on top of the stack, or the scriptSig's error.
//! Core's call of `EvalScript` with no flags and `BaseSignatureChecker` (policy/policy.cpp). Invariant: every signature
//! counts as wrong, so no digest is computed. Cost: one run of the scriptSig. Decides nothing about validity.

use crate::checker::RefuseAll;
use crate::error::ScriptError;
use crate::flags::Flags;
use crate::interpreter::{Version, evaluate};
use crate::sighash::{LegacyCache, TxContext};
use crate::spend::{EcdsaVersion, Spend};
use crate::stack::Stack;

/// The element that the scriptSig of an input leaves on top of the stack; `None` if the stack is empty.
///
/// Panics if there is no such input.
pub fn redeem_script(context: &TxContext<'_>, input: usize) -> Result<Option<Vec<u8>>, ScriptError> {
    let (mut checker, mut cache) = (RefuseAll, LegacyCache::new());
    let script_sig = context.tx().input(input).script_sig;
    let mut spend = Spend::new(context, input, Flags::NONE, &mut checker, &mut cache);
    let mut stack = Stack::new();
    evaluate(&mut spend, &mut stack, script_sig, Version::Ecdsa(EcdsaVersion::Base))?;
    Ok(stack.elements().last().map(|top| top.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opcodes::*;
    use lydian_primitives::build::{MutInput, MutOutput, MutTx};
    use lydian_primitives::{Amount, OutPoint, Output};

    fn top(script_sig: &[u8]) -> Result<Option<Vec<u8>>, ScriptError> {
        let input =
            MutInput { prevout: OutPoint::NULL, script_sig: script_sig.to_vec(), sequence: 0, witness: Vec::new() };
        let outputs = vec![MutOutput { value: Amount(0), script_pubkey: Vec::new() }];
        let tx = MutTx { version: 1, inputs: vec![input], outputs, lock_time: 0 }.to_transaction().unwrap();
        let spent = [Output { value: Amount(0), script_pubkey: &[] }];
        redeem_script(&TxContext::new(tx.view(), &spent).unwrap(), 0)
    }

    #[test]
    fn the_top_of_the_stack_or_the_error() {
        assert_eq!(top(&[]), Ok(None));
        assert_eq!(top(&[OP_1, 2, 7, 8]), Ok(Some(vec![7, 8])));
        assert_eq!(top(&[OP_0]), Ok(Some(Vec::new())));
        assert_eq!(top(&[OP_16]), Ok(Some(vec![16])));
        assert_eq!(top(&[OP_RESERVED]), Err(ScriptError::BadOpcode));
        assert_eq!(top(&[2, 7]), Err(ScriptError::BadOpcode), "cut off");
        assert_eq!(top(&[OP_DROP]), Err(ScriptError::InvalidStackOperation));
        assert_eq!(top(&[&[OP_PUSHDATA2, 9, 2][..], &[0; 521]].concat()), Err(ScriptError::PushSize));
        assert_eq!(top(&[OP_1; 1000]), Ok(Some(vec![1])));
        assert_eq!(top(&[OP_1; 1001]), Err(ScriptError::StackSize));
    }

    #[test]
    fn every_signature_is_wrong() {
        let key = [&[33, 2][..], &[0x11; 32]].concat();
        let signature = [&[9, 0x30, 6, 2, 1, 1, 2, 1, 1, 1][..]].concat();
        assert_eq!(top(&[&signature[..], &key, &[OP_CHECKSIG]].concat()), Ok(Some(Vec::new())));
    }
}
