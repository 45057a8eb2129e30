//! [`BitcoinKernel`]: Bitcoin Core's code, linked into the program by the crate `bitcoinkernel`.
//!
//! Input: a transaction and the outputs it spends. Output: the verdict of Core's `VerifyScript` on each input. Cost:
//! one copy of the transaction and of the outputs. libbitcoinkernel does not return the script error, only that there
//! is one.

use crate::verifier::{Rejection, Spend, Verifier, VerifierError};
use bitcoinkernel::core::{ScriptVerificationFlags, TxOutExt};
use bitcoinkernel::{KernelError as CoreError, PrecomputedTransactionData, ScriptPubkey, ScriptVerifyError};
use bitcoinkernel::{Transaction, TxOut, VERIFY_ALL, verify};
use lydian_primitives::Output;

/// Bitcoin Core's code in this process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BitcoinKernel;

impl Verifier for BitcoinKernel {
    fn verify(&mut self, spend: &Spend<'_>, is_ended: &dyn Fn() -> bool) -> Result<Option<Rejection>, VerifierError> {
        let flags: ScriptVerificationFlags = spend.flags.0;
        if flags & !VERIFY_ALL != 0 {
            return Err(VerifierError(format!("script flags that libbitcoinkernel does not have: {flags:#x}")));
        }
        let Ok(tx) = Transaction::new(spend.tx) else {
            return Ok(Some(Rejection { input: None, reason: "the transaction cannot be decoded".to_owned() }));
        };
        let spent = spend.spent.iter().map(output).collect::<Result<Vec<TxOut>, VerifierError>>()?;
        let data = PrecomputedTransactionData::new(&tx, &spent).map_err(failed)?;
        for (input, output) in spent.iter().enumerate() {
            if is_ended() {
                break;
            }
            match verify(&output.script_pubkey(), Some(output.value()), &tx, input, Some(flags), &data) {
                Ok(()) => {}
                Err(CoreError::ScriptVerify(ScriptVerifyError::Invalid)) => {
                    let reason = ScriptVerifyError::Invalid.to_string();
                    return Ok(Some(Rejection { input: Some(input), reason }));
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(None)
    }
}

fn output(output: &Output<'_>) -> Result<TxOut, VerifierError> {
    let script = ScriptPubkey::new(output.script_pubkey).map_err(failed)?;
    Ok(TxOut::new(&script, output.value.0))
}

fn failed(error: CoreError) -> VerifierError {
    VerifierError(error.to_string())
}
