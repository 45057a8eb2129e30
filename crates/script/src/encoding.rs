//! The encodings required of signatures and public keys under the flags (Core's `CheckSignatureEncoding` and
//! `CheckPubKeyEncoding`, script/interpreter.cpp). Nothing here computes on the curve.

use crate::error::ScriptError;
use crate::flags::Flags;
use lydian_curve::parse_der_lax;

/// Half of the group order; a greater s is high.
const HALF_ORDER: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x5d, 0x57, 0x6e,
    0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
];

/// A signature MUST be empty or, as far as the flags require, strict DER with a low s and a defined hash type
/// (BIP-0066).
///
/// `signature` includes the hash type at its end.
#[inline]
pub(crate) fn check_signature(signature: &[u8], flags: Flags) -> Result<(), ScriptError> {
    const STRICT: Flags = Flags(Flags::DERSIG.0 | Flags::LOW_S.0 | Flags::STRICTENC.0);
    if signature.is_empty() || !flags.intersects(STRICT) {
        return Ok(());
    }
    if !is_strict_der(signature) {
        return Err(ScriptError::SigDer);
    }
    if flags.contains(Flags::LOW_S) && !is_low_s(&signature[..signature.len() - 1]) {
        return Err(ScriptError::SigHighS);
    }
    if flags.contains(Flags::STRICTENC) && !has_defined_hash_type(signature) {
        return Err(ScriptError::SigHashType);
    }
    Ok(())
}

/// A key MUST have one of the known encodings under `STRICTENC`, and be compressed in witness v0 under
/// `WITNESS_PUBKEYTYPE` (both policy).
#[inline]
pub(crate) fn check_public_key(key: &[u8], flags: Flags, is_witness_v0: bool) -> Result<(), ScriptError> {
    if flags.contains(Flags::STRICTENC) && !is_compressed(key) && !is_uncompressed(key) {
        return Err(ScriptError::PubkeyType);
    }
    if is_witness_v0 && flags.contains(Flags::WITNESS_PUBKEYTYPE) && !is_compressed(key) {
        return Err(ScriptError::WitnessPubkeyType);
    }
    Ok(())
}

fn is_compressed(key: &[u8]) -> bool {
    key.len() == 33 && matches!(key[0], 2 | 3)
}

fn is_uncompressed(key: &[u8]) -> bool {
    key.len() == 65 && key[0] == 4
}

fn has_defined_hash_type(signature: &[u8]) -> bool {
    matches!(signature.last(), Some(1..=3 | 0x81..=0x83))
}

/// Core's `CheckLowS`. If r or s exceeds the group order, Core's parser returns zeros, and zero is low.
fn is_low_s(der: &[u8]) -> bool {
    parse_der_lax(der).is_some_and(|compact| compact[32..] <= HALF_ORDER[..])
}

/// `30 [length] 02 [length] r 02 [length] s hash-type`, with r and s positive and without unnecessary leading zeros
/// (BIP-0066; Core's `IsValidSignatureEncoding`).
pub fn is_strict_der(signature: &[u8]) -> bool {
    if !(9..=73).contains(&signature.len()) {
        return false;
    }
    let &[0x30, length, ref body @ .., _hash_type] = signature else {
        return false;
    };
    if usize::from(length) != body.len() {
        return false;
    }
    let Some((r, rest)) = split_integer(body) else {
        return false;
    };
    let Some((s, rest)) = split_integer(rest) else {
        return false;
    };
    rest.is_empty() && is_positive_and_short(r) && is_positive_and_short(s)
}

fn split_integer(body: &[u8]) -> Option<(&[u8], &[u8])> {
    match *body {
        [0x02, size, ref rest @ ..] => rest.split_at_checked(usize::from(size)),
        _ => None,
    }
}

fn is_positive_and_short(integer: &[u8]) -> bool {
    match *integer {
        [] => false,
        [first, ..] if first & 0x80 != 0 => false,
        [0, second, ..] => second & 0x80 != 0,
        _ => true,
    }
}
