//! Scripts as assembly text: Core's `ScriptToAsmStr` (core_io.cpp).
//!
//! Input: a script. Output: its operations by name, appended.

use lydian_primitives::push_hex;
use lydian_script::opcodes::{OP_PUSHDATA4, opcode_name};
use lydian_script::{is_strict_der, is_unspendable, num, ops};

/// Appends the operations by name. `may_sign`: a push that looks like a signature is shown with its sighash type.
pub fn write_asm(script: &[u8], may_sign: bool, out: &mut Vec<u8>) {
    let may_sign = may_sign && !is_unspendable(script);
    for (index, op) in ops(script).enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        let Ok(op) = op else {
            out.extend_from_slice(b"[error]");
            return;
        };
        if op.opcode > OP_PUSHDATA4 {
            out.extend_from_slice(opcode_name(op.opcode).as_bytes());
        } else if op.push.len() <= 4 {
            out.extend_from_slice(num::decode(op.push, false).unwrap_or(0).to_string().as_bytes());
        } else {
            match may_sign.then(|| sighash_name(op.push)).flatten() {
                Some(name) => {
                    push_hex(out, &op.push[..op.push.len() - 1]);
                    out.push(b'[');
                    out.extend_from_slice(name.as_bytes());
                    out.push(b']');
                }
                None => push_hex(out, op.push),
            }
        }
    }
}

/// The name of the sighash type, if the bytes are a signature.
fn sighash_name(push: &[u8]) -> Option<&'static str> {
    let name = match push.last()? {
        0x01 => "ALL",
        0x02 => "NONE",
        0x03 => "SINGLE",
        0x81 => "ALL|ANYONECANPAY",
        0x82 => "NONE|ANYONECANPAY",
        0x83 => "SINGLE|ANYONECANPAY",
        _ => return None,
    };
    is_strict_der(push).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::hex;

    #[test]
    fn scripts_as_core_shows_them() {
        let asm = |script: &str, may_sign| {
            let mut out = Vec::new();
            write_asm(&hex(script).unwrap(), may_sign, &mut out);
            String::from_utf8(out).unwrap()
        };
        let der = "3006020101020101";
        for (script, text) in [
            ("", ""),
            ("00", "0"),
            ("4f51600181", "-1 1 16 -1"),
            ("02ffff", "-32767"),
            ("04ffffff7f", "2147483647"),
            ("050102030405", "0102030405"),
            ("76a9ac", "OP_DUP OP_HASH160 OP_CHECKSIG"),
            ("4c", "[error]"),
            ("510511", "1 [error]"),
            ("ba", "OP_CHECKSIGADD"),
            ("fe", "OP_UNKNOWN"),
        ] {
            assert_eq!(asm(script, true), text, "{script}");
        }
        assert_eq!(asm(&format!("09{der}01"), true), format!("{der}[ALL]"));
        assert_eq!(asm(&format!("09{der}83"), true), format!("{der}[SINGLE|ANYONECANPAY]"));
        assert_eq!(asm(&format!("09{der}04"), true), format!("{der}04"));
        assert_eq!(asm(&format!("09{der}01"), false), format!("{der}01"));
        assert_eq!(asm(&format!("6a09{der}01"), true), format!("OP_RETURN {der}01"));
    }
}
