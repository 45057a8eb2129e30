//! Lax and strict DER from any bytes.
//!
//! Lax DER is compared with a straightforward version of Core's `ecdsa_signature_parse_der_lax`, strict DER with
//! `IsValidSignatureEncoding`. Every strict DER signature is also valid lax DER.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_curve::parse_der_lax;
use lydian_script::is_strict_der;

/// The order of the group.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xba, 0xae, 0xdc,
    0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
];

/// Reads a BER length at position `at`. A length of 8 or more significant bytes is refused.
fn length(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first & 0x80 == 0 {
        return Some(usize::from(first));
    }
    let mut count = usize::from(first & 0x7f);
    if count > bytes.len() - *at {
        return None;
    }
    while count > 0 && bytes[*at] == 0 {
        *at += 1;
        count -= 1;
    }
    if count >= 8 {
        return None;
    }
    let found = bytes[*at..*at + count].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    *at += count;
    Some(found)
}

fn integer<'b>(bytes: &'b [u8], at: &mut usize) -> Option<&'b [u8]> {
    if *bytes.get(*at)? != 2 {
        return None;
    }
    *at += 1;
    let size = length(bytes, at)?;
    let found = bytes[*at..].get(..size)?;
    *at += size;
    Some(found)
}

fn plain(bytes: &[u8]) -> Option<[u8; 64]> {
    if *bytes.first()? != 0x30 {
        return None;
    }
    let mut at = 1;
    // The length of the sequence is skipped without being checked.
    let first = *bytes.get(at)?;
    at += 1;
    if first & 0x80 != 0 {
        let count = usize::from(first & 0x7f);
        if count > bytes.len() - at {
            return None;
        }
        at += count;
    }
    let (r, s) = (integer(bytes, &mut at)?, integer(bytes, &mut at)?);
    let scalar = |integer: &[u8]| {
        let start = integer.iter().position(|byte| *byte != 0).unwrap_or(integer.len());
        let digits = &integer[start..];
        let mut word = [0; 32];
        word.get_mut(32_usize.checked_sub(digits.len())?..)?.copy_from_slice(digits);
        (word < ORDER).then_some(word)
    };
    let mut compact = [0; 64];
    if let (Some(r), Some(s)) = (scalar(r), scalar(s)) {
        compact[..32].copy_from_slice(&r);
        compact[32..].copy_from_slice(&s);
    }
    Some(compact)
}

/// Core's `IsValidSignatureEncoding`, check by check.
fn plain_strict(sig: &[u8]) -> bool {
    if !(9..=73).contains(&sig.len()) || sig[0] != 0x30 || usize::from(sig[1]) != sig.len() - 3 {
        return false;
    }
    let r_size = usize::from(sig[3]);
    if 5 + r_size >= sig.len() {
        return false;
    }
    let s_size = usize::from(sig[5 + r_size]);
    let is_integer = |tag: u8, integer: &[u8]| {
        let is_positive = integer.first().is_some_and(|first| first & 0x80 == 0);
        let is_padded = integer.len() > 1 && integer[0] == 0 && integer[1] & 0x80 == 0;
        tag == 2 && is_positive && !is_padded
    };
    r_size + s_size + 7 == sig.len()
        && is_integer(sig[2], &sig[4..4 + r_size])
        && is_integer(sig[r_size + 4], &sig[r_size + 6..r_size + 6 + s_size])
}

fuzz_target!(|bytes: &[u8]| {
    assert_eq!(parse_der_lax(bytes), plain(bytes));
    let is_strict = is_strict_der(bytes);
    assert_eq!(is_strict, plain_strict(bytes));
    if is_strict {
        assert!(parse_der_lax(&bytes[..bytes.len() - 1]).is_some());
    }
});
