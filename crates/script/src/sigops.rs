//! Counts signature operations for the block limits: Core's `GetSigOpCount`, `GetLegacySigOpCount`, `GetP2SHSigOpCount`
//! and `CountWitnessSigOps`. Nothing is executed.
//!
//! Input: scripts and witnesses. Output: counts, not yet scaled by weight. Invariant: a push that is cut off ends a
//! count but keeps the count so far, for scripts of every origin. Cost: one walk over each script, no allocation.

use crate::flags::Flags;
use crate::iter::ops;
use crate::limits::MAX_PUBKEYS_PER_MULTISIG;
use crate::opcodes::{OP_1, OP_16, OP_CHECKMULTISIG, OP_CHECKMULTISIGVERIFY, OP_CHECKSIG, OP_CHECKSIGVERIFY};
use crate::pattern::{WitnessProgram, is_p2sh, is_push_only, witness_program};
use lydian_primitives::{Tx, Witness};

/// Counts the signature operations of one script. If `is_accurate`, a multisig directly after OP_1 to OP_16 counts as
/// that number; otherwise a multisig counts as twenty.
pub fn legacy_sigop_count(script: &[u8], is_accurate: bool) -> usize {
    let (mut count, mut last) = (0, 0xff);
    for op in ops(script).map_while(Result::ok) {
        count += match op.opcode {
            OP_CHECKSIG | OP_CHECKSIGVERIFY => 1,
            OP_CHECKMULTISIG | OP_CHECKMULTISIGVERIFY => match last {
                OP_1..=OP_16 if is_accurate => usize::from(last - OP_1 + 1),
                _ => MAX_PUBKEYS_PER_MULTISIG,
            },
            _ => 0,
        };
        last = op.opcode;
    }
    count
}

/// Signature operations of a transaction's own scripts, not accurate: Core's `GetLegacySigOpCount`. Includes coinbases.
pub fn transaction_legacy_sigop_count(tx: Tx<'_>) -> usize {
    let inputs = tx.inputs().map(|input| legacy_sigop_count(input.script_sig, false));
    let outputs = tx.outputs().map(|output| legacy_sigop_count(output.script_pubkey, false));
    inputs.sum::<usize>() + outputs.sum::<usize>()
}

/// Signature operations of the redeem script, accurate, if the spent output is pay-to-script-hash (BIP-0016). Call it
/// only under the `P2SH` flag, and never for a coinbase.
pub fn p2sh_sigop_count(script_sig: &[u8], script_pubkey: &[u8]) -> usize {
    match last_push(script_sig) {
        Some(redeem_script) if is_p2sh(script_pubkey) => legacy_sigop_count(redeem_script, true),
        _ => 0,
    }
}

/// Signature operations of a witness program, native or in P2SH, accurate and not scaled: Core's `CountWitnessSigOps`.
pub fn witness_sigop_count(script_sig: &[u8], script_pubkey: &[u8], witness: &Witness<'_>, flags: Flags) -> usize {
    if !flags.contains(Flags::WITNESS) {
        return 0;
    }
    if let Some(program) = witness_program(script_pubkey) {
        return program_sigop_count(&program, witness);
    }
    match last_push(script_sig) {
        Some(redeem_script) if is_p2sh(script_pubkey) => {
            witness_program(redeem_script).map_or(0, |program| program_sigop_count(&program, witness))
        }
        _ => 0,
    }
}

fn program_sigop_count(program: &WitnessProgram<'_>, witness: &Witness<'_>) -> usize {
    match (program.version, program.program.len()) {
        (0, 20) => 1,
        (0, 32) => witness.iter().last().map_or(0, |script| legacy_sigop_count(script, true)),
        _ => 0,
    }
}

/// The last push of a push-only script: the redeem script. Empty if the last operation pushes no bytes or the script is
/// empty; `None` if the script is not push-only.
fn last_push(script_sig: &[u8]) -> Option<&[u8]> {
    is_push_only(script_sig).then(|| ops(script_sig).flatten().last().map_or(&[][..], |op| op.push))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::{hex, write_compact_size};

    const P2SH: &str = "a914000000000000000000000000000000000000000087";
    const P2WPKH: &str = "00140000000000000000000000000000000000000000";
    const P2WSH: &str = "00200000000000000000000000000000000000000000000000000000000000000000";

    fn check(script: &str, plain: usize, accurate: usize) {
        let script = hex(script).unwrap();
        assert_eq!(legacy_sigop_count(&script, false), plain, "{script:02x?}");
        assert_eq!(legacy_sigop_count(&script, true), accurate, "{script:02x?}, accurate");
    }

    /// Counting ends at a push that is cut off, and keeps the count so far.
    ///
    /// checklist: 11
    #[test]
    fn a_bad_push_ends_the_count_and_keeps_it() {
        check("acac02ac", 2, 2);
        check("ac4c", 1, 1);
        check("ac4e01000000", 1, 1);
        check("52ae4dffffac", 20, 2);
        check("02acacac", 1, 1);
    }

    /// A number directly before CHECKMULTISIG counts in accurate mode only.
    ///
    /// checklist: 12
    #[test]
    fn accurate_counts_take_the_number_before_multisig() {
        check("ac", 1, 1);
        check("ad", 1, 1);
        check("51ae", 20, 1);
        check("60af", 20, 16);
        check("00ae", 20, 20);
        check("4fae", 20, 20);
        check("0103ae", 20, 20);
        check("5361ae", 20, 20);
        check("ae", 20, 20);
        check("52ae52ae", 40, 4);
        check("ba", 0, 0);
    }

    /// Core's `GetSigOpCount` test (sigopcount_tests.cpp), and scriptSigs that are not push-only.
    ///
    /// checklist: 12
    #[test]
    fn p2sh_counts_the_last_push() {
        let count = |script_sig: &str, script_pubkey: &str| {
            p2sh_sigop_count(&hex(script_sig).unwrap(), &hex(script_pubkey).unwrap())
        };
        assert_eq!(count("0453ae53ac", P2SH), 23 - 19, "one multisig of three and one signature");
        assert_eq!(count("0453ae53ac51", P2SH), 0, "OP_1 pushes no bytes that count");
        assert_eq!(count("0453ae53ac61", P2SH), 0, "OP_NOP is no push");
        assert_eq!(count("02ac", P2SH), 0, "the push is cut off");
        assert_eq!(count("", P2SH), 0);
        assert_eq!(count("01ac", &P2SH.replace("87", "88")), 0, "not that pattern");
        assert_eq!(count("01ac", P2WPKH), 0);
    }

    fn witness_count(script_sig: &str, script_pubkey: &str, items: &[&str], flags: Flags) -> usize {
        let mut bytes = Vec::new();
        for item in items {
            let item = hex(item).unwrap();
            write_compact_size(&mut bytes, item.len());
            bytes.extend_from_slice(&item);
        }
        let witness = Witness::parse(&bytes, items.len()).unwrap();
        witness_sigop_count(&hex(script_sig).unwrap(), &hex(script_pubkey).unwrap(), &witness, flags)
    }

    /// The cases of Core's `GetTxSigOpCost` test (sigopcount_tests.cpp) for each kind of program.
    ///
    /// checklist: 11, 12
    #[test]
    fn witness_programs_count_their_script() {
        let flags = Flags::P2SH | Flags::WITNESS;
        assert_eq!(witness_count("", P2WPKH, &[], flags), 1);
        assert_eq!(witness_count("", P2WPKH, &[], Flags::P2SH), 0, "not active");
        assert_eq!(witness_count("", &P2WPKH.replacen("00", "51", 1), &[], flags), 0, "no other version counts");
        assert_eq!(witness_count("", P2WSH, &["ac", "5253ae"], flags), 3);
        assert_eq!(witness_count("", P2WSH, &["ac", "5361ae"], flags), 20);
        assert_eq!(witness_count("", P2WSH, &["ac02"], flags), 1, "kept at a bad push");
        assert_eq!(witness_count("", P2WSH, &[], flags), 0);
        assert_eq!(witness_count("", &P2WSH.replacen("00", "51", 1), &["ac"], flags), 0);
        let in_p2sh = |program: &str| format!("{:02x}{program}", program.len() / 2);
        assert_eq!(witness_count(&in_p2sh(P2WPKH), P2SH, &[], flags), 1);
        assert_eq!(witness_count(&in_p2sh(P2WSH), P2SH, &["52ae"], flags), 2);
        assert_eq!(witness_count(&format!("{}61", in_p2sh(P2WPKH)), P2SH, &[], flags), 0, "not push only");
        assert_eq!(witness_count(&in_p2sh(P2WPKH), "51", &[], flags), 0, "not P2SH");
        assert_eq!(witness_count("", "0003000000", &["ac"], flags), 0, "neither 20 nor 32 bytes");
    }

    /// limit: MAX_PUBKEYS_PER_MULTISIG at
    #[test]
    fn a_multisig_of_unknown_size_counts_as_the_largest() {
        assert_eq!(legacy_sigop_count(&[OP_CHECKMULTISIG], true), MAX_PUBKEYS_PER_MULTISIG);
    }
}
