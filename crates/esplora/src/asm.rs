//! Scripts as Esplora writes them: the assembly text of the `bitcoin` crate, which names every push.

use lydian_primitives::push_hex;
use lydian_script::opcodes::{
    OP_0, OP_1, OP_1NEGATE, OP_16, OP_CHECKLOCKTIMEVERIFY, OP_CHECKSEQUENCEVERIFY, OP_CHECKSIGADD, OP_PUSHDATA1,
    OP_PUSHDATA2, OP_PUSHDATA4, opcode_name,
};

/// Longest direct push.
const PUSH_MAX: u8 = 75;

/// The operations of a script by name, pushes with their length and bytes.
pub(crate) fn asm(script: &[u8]) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(3 * script.len());
    let mut rest = script;
    while let Some((opcode, after)) = rest.split_first() {
        let Some((size, after)) = push_size(*opcode, after) else {
            out.extend_from_slice(b"<unexpected end>");
            break;
        };
        if !out.is_empty() {
            out.push(b' ');
        }
        out.extend_from_slice(name(*opcode).as_bytes());
        rest = after;
        if size > 0 {
            out.push(b' ');
            let Some((data, after)) = rest.split_at_checked(size) else {
                out.extend_from_slice(b"<push past end>");
                break;
            };
            push_hex(&mut out, data);
            rest = after;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The bytes that an opcode pushes, and what is behind their number; `None` if the number is cut off.
fn push_size(opcode: u8, after: &[u8]) -> Option<(usize, &[u8])> {
    let digits = match opcode {
        OP_PUSHDATA1 => 1,
        OP_PUSHDATA2 => 2,
        OP_PUSHDATA4 => 4,
        _ if opcode <= PUSH_MAX => return Some((usize::from(opcode), after)),
        _ => return Some((0, after)),
    };
    let (number, after) = after.split_at_checked(digits)?;
    let size = number.iter().rev().fold(0, |size, byte| size << 8 | usize::from(*byte));
    Some((size, after))
}

fn name(opcode: u8) -> String {
    match opcode {
        OP_0 => "OP_0".to_owned(),
        1..=PUSH_MAX => format!("OP_PUSHBYTES_{opcode}"),
        OP_1NEGATE => "OP_PUSHNUM_NEG1".to_owned(),
        OP_1..=OP_16 => format!("OP_PUSHNUM_{}", opcode - (OP_1 - 1)),
        OP_CHECKLOCKTIMEVERIFY => "OP_CLTV".to_owned(),
        OP_CHECKSEQUENCEVERIFY => "OP_CSV".to_owned(),
        u8::MAX => "OP_INVALIDOPCODE".to_owned(),
        _ if opcode > OP_CHECKSIGADD => format!("OP_RETURN_{opcode}"),
        _ => opcode_name(opcode).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::hex;

    #[test]
    fn scripts_as_esplora_shows_them() {
        for (script, text) in [
            ("", ""),
            ("00", "OP_0"),
            ("76a90201ff88ac", "OP_DUP OP_HASH160 OP_PUSHBYTES_2 01ff OP_EQUALVERIFY OP_CHECKSIG"),
            ("4f50515960", "OP_PUSHNUM_NEG1 OP_RESERVED OP_PUSHNUM_1 OP_PUSHNUM_9 OP_PUSHNUM_16"),
            (
                "b0b1b2b9babbfeff",
                "OP_NOP1 OP_CLTV OP_CSV OP_NOP10 OP_CHECKSIGADD OP_RETURN_187 OP_RETURN_254 OP_INVALIDOPCODE",
            ),
            ("4c02aabb", "OP_PUSHDATA1 aabb"),
            ("4d0100cc", "OP_PUSHDATA2 cc"),
            ("4e01000000dd", "OP_PUSHDATA4 dd"),
            ("4c00", "OP_PUSHDATA1"),
            ("5103aa", "OP_PUSHNUM_1 OP_PUSHBYTES_3 <push past end>"),
            ("4c", "<unexpected end>"),
            ("514d01", "OP_PUSHNUM_1<unexpected end>"),
        ] {
            assert_eq!(asm(&hex(script).unwrap()), text, "{script}");
        }
    }
}
