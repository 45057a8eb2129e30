//! Signature checks from any bytes: the plain lanes and the kernels of this CPU against libsecp256k1.
//!
//! They must return the same verdicts, without a panic or an access outside a table. The seeds are valid checks; one
//! input byte can replace a field by a number at an edge.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_curve::{Check, Engine, LaneEngine, PublicKeyBytes, Reference};
use std::sync::OnceLock;

const ORDER: &[u8; 32] = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xba\xae\xdc\xe6\xaf\x48\xa0\x3b\xbf\xd2\x5e\x8c\xd0\x36\x41\x41";
const PRIME: &[u8; 32] = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xfc\x2f";

fuzz_target!(|data: &[u8]| {
    static ENGINES: OnceLock<Vec<LaneEngine>> = OnceLock::new();
    let engines = ENGINES.get_or_init(|| LaneEngine::available().into_iter().chain([LaneEngine::plain()]).collect());
    let Some(check) = read(data) else { return };
    let expected = Reference.check(&check);
    for engine in engines {
        let mut verdicts = [!expected; 3];
        engine.verify(&[check; 3], &mut verdicts);
        assert_eq!(verdicts, [expected; 3], "{}: {check:?}", engine.name());
    }
});

/// Reads the kind, the field to replace and the number to put there, and a parity; then key, message (or tweak), r (or
/// output) and s, 32 bytes each.
fn read(data: &[u8]) -> Option<Check> {
    let (&[kind, change, prefix], rest) = data.split_first_chunk::<3>()?;
    let mut fields: [[u8; 32]; 4] = [[0; 32]; 4];
    for (field, bytes) in fields.iter_mut().zip(rest.chunks_exact(32)) {
        field.copy_from_slice(bytes);
    }
    if change & 0x80 != 0 {
        fields[usize::from(change & 3)] = number(change >> 2 & 31);
    }
    let [key, message, r, s] = fields;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(&s);
    match kind % 3 {
        0 => {
            let mut bytes = [2 | prefix & 1; 33];
            bytes[1..].copy_from_slice(&key);
            Some(Check::Ecdsa { key: PublicKeyBytes::new(&bytes)?, message, signature })
        }
        1 => Some(Check::Schnorr { key, message, signature }),
        _ => Some(Check::Tweak { output: r, is_odd: prefix & 1 == 1, internal: key, tweak: message }),
    }
}

/// Numbers near 0, n, p, n / 2 and 2^256.
fn number(which: u8) -> [u8; 32] {
    let mut half = *ORDER;
    for i in (0..32).rev() {
        half[i] = ORDER[i] >> 1 | if i > 0 { ORDER[i - 1] << 7 } else { 0 };
    }
    let mut number = [[0; 32], *ORDER, *PRIME, half][usize::from(which >> 3)];
    let mut carry = i16::from(which & 7) - 3;
    for byte in number.iter_mut().rev() {
        carry += i16::from(*byte);
        *byte = carry.rem_euclid(256).to_be_bytes()[1];
        carry = carry.div_euclid(256);
    }
    number
}
