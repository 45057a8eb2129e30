//! Differences from Bitcoin Core found by comparing with it. The comment of each test describes what happened.

use lydian_curve::Reference;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Output};
use lydian_script::opcodes::*;
use lydian_script::{Flags, ScriptBuilder, ScriptError, TxContext, verify_input, verify_input_by_capture};

fn verify(script_sig: &[u8], script_pubkey: &[u8], flags: Flags) -> Result<(), ScriptError> {
    let script_sig = script_sig.to_vec();
    let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: 0, witness: Vec::new() };
    let outputs = vec![MutOutput { value: Amount(0), script_pubkey: Vec::new() }];
    let tx = MutTx { version: 1, inputs: vec![input], outputs, lock_time: 0 }.to_transaction().unwrap();
    let spent = [Output { value: Amount(0), script_pubkey }];
    let context = TxContext::new(tx.view(), &spent).unwrap();
    let exact = verify_input(&context, 0, flags);
    assert_eq!(verify_input_by_capture(&context, 0, flags, &Reference), exact);
    exact
}

/// The first comparison with the judge found multisigs without the dummy element. Core counts it among the operands and
/// returns INVALID_STACK_OPERATION before it checks a signature; Lydian checked the signatures first and returned
/// NULLFAIL or SIG_FINDANDDELETE. Both refused the spend, but for different reasons.
#[test]
fn a_multisig_without_its_superfluous_element() {
    let key = [2; 33];
    let script = ScriptBuilder::new().push_int(1).push_slice(&key).push_int(1).op(OP_CHECKMULTISIG).into_bytes();
    let signature = ScriptBuilder::new().push_slice(&[1]).into_bytes();
    let missing = verify(&signature, &script, Flags::NULLFAIL);
    assert_eq!(missing, Err(ScriptError::InvalidStackOperation));
    let there = verify(&[&[OP_0][..], &signature].concat(), &script, Flags::NULLFAIL);
    assert_eq!(there, Err(ScriptError::SigNullFail));
}
