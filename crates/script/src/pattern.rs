//! Script patterns that consensus recognises by their bytes, and Core's other predicates on a whole script
//! (script/script.cpp): pay-to-script-hash, witness program, push only.
//!
//! Input: any bytes. Cost: a few comparisons, or one walk for [`is_push_only`]. No allocation.

use crate::iter::ops;
use crate::limits::{MAX_SCRIPT_ELEMENT_SIZE, MAX_SCRIPT_SIZE};
use crate::opcodes::*;

/// Version and program of an output that is spent by a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WitnessProgram<'a> {
    /// 0 to 16.
    pub version: u8,
    /// 2 to 40 bytes.
    pub program: &'a [u8],
}

impl WitnessProgram<'_> {
    /// Pay-to-anchor, which anyone can spend: version 1 with the program 0x4e73.
    pub fn is_pay_to_anchor(&self) -> bool {
        self.version == 1 && *self.program == [0x4e, 0x73]
    }
}

/// Exactly `HASH160 <20 bytes> EQUAL` (BIP-0016; Core's `IsPayToScriptHash`). No other push of 20 bytes counts.
#[inline]
pub fn is_p2sh(script: &[u8]) -> bool {
    matches!(script, [OP_HASH160, 0x14, .., OP_EQUAL]) && script.len() == 23
}

/// One number opcode and one direct push of 2 to 40 bytes (BIP-0141; Core's `IsWitnessProgram`).
#[inline]
pub fn witness_program(script: &[u8]) -> Option<WitnessProgram<'_>> {
    let &[version, size, ref program @ ..] = script else {
        return None;
    };
    if !(4..=42).contains(&script.len()) || usize::from(size) != program.len() {
        return None;
    }
    let version = match version {
        OP_0 => 0,
        OP_1..=OP_16 => version - (OP_1 - 1),
        _ => return None,
    };
    Some(WitnessProgram { version, program })
}

/// No opcode above `OP_16` and no push that is cut off (Core's `IsPushOnly`, which accepts `OP_RESERVED`).
pub fn is_push_only(script: &[u8]) -> bool {
    ops(script).all(|op| op.is_ok_and(|op| op.opcode <= OP_16))
}

/// Whether no input can ever spend the output, so that it never enters the UTXO set: Core's `CScript::IsUnspendable`.
#[inline]
pub fn is_unspendable(script: &[u8]) -> bool {
    script.first() == Some(&OP_RETURN) || script.len() > MAX_SCRIPT_SIZE
}

/// Whether every opcode is known and every push is whole and at most 520 bytes: Core's `HasValidOps`, which knows no
/// opcode after `OP_NOP10`.
pub fn has_valid_ops(script: &[u8]) -> bool {
    ops(script).all(|op| op.is_ok_and(|op| op.opcode <= OP_NOP10 && op.push.len() <= MAX_SCRIPT_ELEMENT_SIZE))
}

/// Whether the opcode is the shortest way to push the data. For opcodes up to `OP_PUSHDATA4` (Core's
/// `CheckMinimalPush`).
#[inline]
pub fn is_minimal_push(data: &[u8], opcode: u8) -> bool {
    match (data.len(), data) {
        (0, _) => opcode == OP_0,
        (1, [1..=16 | 0x81]) => false,
        (size @ 1..=75, _) => usize::from(opcode) == size,
        (76..=255, _) => opcode == OP_PUSHDATA1,
        (256..=65_535, _) => opcode == OP_PUSHDATA2,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{ScriptBuilder, scripts};

    #[test]
    fn opcodes_and_pushes_are_valid_up_to_their_ends() {
        assert!(has_valid_ops(&[]) && has_valid_ops(&[OP_NOP10, OP_RESERVED]));
        assert!(!has_valid_ops(&[OP_NOP10 + 1]) && !has_valid_ops(&[2, 1]));
        let push = |size| ScriptBuilder::new().push_slice(&vec![0; size]).into_bytes();
        assert!(has_valid_ops(&push(520)) && !has_valid_ops(&push(521)));
    }

    /// checklist: 48
    #[test]
    fn p2sh_is_exactly_23_bytes_with_a_direct_push() {
        let script = scripts::p2sh(&[7; 20]);
        assert!(is_p2sh(&script));
        assert!(!is_p2sh(&script[..22]));
        assert!(!is_p2sh(&[&script[..], &[OP_NOP]].concat()));
        let with_pushdata = [&[OP_HASH160, OP_PUSHDATA1, 20][..], &[7; 20], &[OP_EQUAL]].concat();
        assert!(!is_p2sh(&with_pushdata));
        assert!(!is_p2sh(&[&[OP_HASH160, 0x13][..], &[7; 20], &[OP_EQUAL]].concat()));
    }

    /// checklist: 49
    #[test]
    fn witness_programs_have_2_to_40_bytes_and_version_0_to_16() {
        for (version, opcode) in (0..=16).zip([OP_0].into_iter().chain(OP_1..=OP_16)) {
            for size in [2, 20, 32, 40] {
                let script = scripts::witness_program(version, &vec![9; size]);
                assert_eq!(script[0], opcode);
                assert_eq!(witness_program(&script), Some(WitnessProgram { version, program: &vec![9; size] }));
                assert_eq!(witness_program(&script[..script.len() - 1]), None);
                assert_eq!(witness_program(&[&script[..], &[0]].concat()), None);
            }
            assert_eq!(witness_program(&scripts::witness_program(version, &[9])), None);
            assert_eq!(witness_program(&scripts::witness_program(version, &[9; 41])), None);
        }
        for opcode in [OP_1NEGATE, OP_RESERVED, OP_NOP] {
            assert_eq!(witness_program(&[&[opcode, 20][..], &[0; 20]].concat()), None);
        }
        let pushdata = [&[OP_0, OP_PUSHDATA1, 20][..], &[0; 20]].concat();
        assert_eq!(witness_program(&pushdata), None);
    }

    /// checklist: 49
    #[test]
    fn pay_to_anchor_is_one_program_of_version_1() {
        let is_anchor = |script: &[u8]| witness_program(script).is_some_and(|program| program.is_pay_to_anchor());
        assert!(is_anchor(&[OP_1, 2, 0x4e, 0x73]));
        assert!(!is_anchor(&[OP_2, 2, 0x4e, 0x73]));
        assert!(!is_anchor(&[OP_1, 2, 0x4e, 0x74]));
    }

    #[test]
    fn push_only() {
        assert!(is_push_only(&[]));
        assert!(is_push_only(&[OP_0, OP_1NEGATE, OP_RESERVED, OP_16, 1, OP_CHECKSIG]));
        assert!(!is_push_only(&[OP_NOP]));
        assert!(!is_push_only(&[2, 1]), "cut off");
    }

    /// Compares with the builder: its pushes are minimal; those with any other prefix are not.
    ///
    /// checklist: 44
    #[test]
    fn minimal_pushes() {
        assert!(is_minimal_push(&[], OP_0) && !is_minimal_push(&[], OP_PUSHDATA1));
        for value in (1..=16).chain([0x81]) {
            assert!(!is_minimal_push(&[value], 1), "{value} has its own opcode");
        }
        for data in [&[0][..], &[17], &[0x80], &[0x82], &[1, 0], &[5; 75], &[5; 76], &[5; 255], &[5; 256], &[5; 65_536]]
        {
            let minimal = ScriptBuilder::new().push_slice(data).into_bytes()[0];
            for opcode in [1, 2, 75, OP_PUSHDATA1, OP_PUSHDATA2, OP_PUSHDATA4] {
                // Core requires nothing of pushes that are possible only with PUSHDATA4.
                let expected = opcode == minimal || data.len() > 65_535;
                assert_eq!(is_minimal_push(data, opcode), expected, "{} bytes by {opcode:#x}", data.len());
            }
        }
    }

    /// limit: MAX_SCRIPT_SIZE at
    /// limit: MAX_SCRIPT_SIZE above
    /// checklist: 21
    #[test]
    fn unspendable_outputs() {
        assert!(is_unspendable(&[OP_RETURN]) && is_unspendable(&[OP_RETURN, OP_1]));
        assert!(!is_unspendable(&[]) && !is_unspendable(&[OP_1, OP_RETURN]));
        assert!(!is_unspendable(&[OP_1; MAX_SCRIPT_SIZE]));
        assert!(is_unspendable(&[OP_1; MAX_SCRIPT_SIZE + 1]));
    }
}
