//! Transactions in hex, as arguments: Core's `DecodeHexTx` (core_io.cpp).
//!
//! Input: text. Output: a transaction, which may have outputs but no inputs. The bytes do not say whether they follow
//! BIP-0144: `0001` after the version is its marker, or no inputs and one output. Both readings are tried, and the one
//! with plausible scripts is taken. Cost: at most two passes.

use lydian_primitives::{Transaction, Tx, hex};
use lydian_script::has_valid_ops;
use lydian_script::limits::MAX_SCRIPT_SIZE;

/// Which readings are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    WithWitness,
    WithoutWitness,
    Either,
}

/// Decodes a transaction. `None` if the text is not exactly one.
pub(crate) fn decode(text: &str, reading: Reading) -> Option<Transaction> {
    // No text is no bytes for `hex`, but not hexadecimal for Core.
    let bytes = hex(text).ok().filter(|bytes| !bytes.is_empty())?;
    let extended = match reading {
        Reading::WithoutWitness => None,
        _ => Transaction::parse(bytes.clone()).ok(),
    };
    if extended.as_ref().is_some_and(has_plausible_scripts) {
        return extended;
    }
    let legacy = match reading {
        Reading::WithWitness => None,
        _ => Transaction::parse_without_witness(bytes).ok(),
    };
    match legacy {
        Some(legacy) if extended.is_none() || has_plausible_scripts(&legacy) => Some(legacy),
        _ => extended,
    }
}

/// Core's `CheckTxScriptsSanity`.
fn has_plausible_scripts(tx: &Transaction) -> bool {
    let tx: Tx<'_> = tx.view();
    let is_plausible = |script: &[u8]| script.len() <= MAX_SCRIPT_SIZE && has_valid_ops(script);
    (tx.is_coinbase() || tx.inputs().all(|input| is_plausible(input.script_sig)))
        && tx.outputs().all(|output| is_plausible(output.script_pubkey))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_INPUTS: &str = "02000000000100e1f505000000000151";
    const LOCK_TIME: &str = "00000000";

    #[test]
    fn no_inputs_and_the_marker_are_told_apart() {
        let legacy = format!("{NO_INPUTS}{LOCK_TIME}");
        for reading in [Reading::Either, Reading::WithoutWitness] {
            let tx = decode(&legacy, reading).unwrap();
            assert_eq!((tx.view().input_count(), tx.view().output_count()), (0, 1));
            assert_eq!(tx.view().total_size(), tx.as_bytes().len());
        }
        assert!(decode(&legacy, Reading::WithWitness).is_none());
        let input = format!("01{}ffffffff00ffffffff", "11".repeat(32));
        let witness = format!("020000000001{input}0000010151{LOCK_TIME}");
        // One input, no outputs, a witness of one byte.
        let witness = witness.replacen("0000010151", "00010151", 1);
        assert!(decode(&witness, Reading::Either).unwrap().view().has_witness());
        assert!(decode(&witness, Reading::WithoutWitness).is_none());
        for text in ["", "0", "zz", "00"] {
            assert!(decode(text, Reading::Either).is_none());
        }
    }

    /// Bytes that parse both ways: with the marker as one input, one output and a witness; without it as one output,
    /// whose script contains all that. `in_script` is the output script of the first reading, and `in_txid` an opcode
    /// of the second.
    fn ambiguous(in_script: u8, in_txid: u8) -> String {
        let mut txid = [0_u8; 32];
        // The size of the script in the second reading.
        (txid[7], txid[20]) = (47, in_txid);
        let input = format!("01{}000000000000000000", lydian_primitives::to_hex(&txid));
        format!("020000000001{input}01000000000000000001{in_script:02x}010151{LOCK_TIME}")
    }

    /// rpc_rawtransaction.py tests the same with transactions of the chain.
    #[test]
    fn plausible_scripts_decide() {
        const PLAUSIBLE: u8 = 0x51;
        const CUT_OFF: u8 = 0x4c;
        const UNKNOWN: u8 = 0xff;
        for (in_script, in_txid, inputs) in
            [(PLAUSIBLE, 0, 1), (PLAUSIBLE, UNKNOWN, 1), (CUT_OFF, 0, 0), (CUT_OFF, UNKNOWN, 1)]
        {
            let text = ambiguous(in_script, in_txid);
            let inputs_of = |reading| decode(&text, reading).unwrap().view().input_count();
            assert_eq!(inputs_of(Reading::WithWitness), 1, "{text}");
            assert_eq!(inputs_of(Reading::WithoutWitness), 0, "{text}");
            assert_eq!(inputs_of(Reading::Either), inputs, "{text}");
        }
    }
}
