//! Descriptors inferred from output scripts alone: Core's `InferDescriptor` without keys.
//!
//! Input: a script and its type. Output: text.

use crate::checksum::checksum;
use crate::solver::TxoutType;
use lydian_primitives::push_hex;
use lydian_script::uncompressed_key;

/// Appends the descriptor with its checksum. `address` is the address of the script.
pub fn write_inferred(script: &[u8], script_type: &TxoutType<'_>, address: Option<&str>, out: &mut Vec<u8>) {
    let start = out.len();
    match (script_type, address) {
        (TxoutType::Pubkey(key), _) if is_plain_key(key) => {
            out.extend_from_slice(b"pk(");
            push_hex(out, key);
        }
        (TxoutType::Multisig { required, keys }, _) if keys.iter().all(|key| is_plain_key(key)) => {
            out.extend_from_slice(format!("multi({required}").as_bytes());
            for key in keys {
                out.push(b',');
                push_hex(out, key);
            }
        }
        (TxoutType::WitnessV1Taproot(key), _) if is_x_only(key) => {
            out.extend_from_slice(b"rawtr(");
            push_hex(out, *key);
        }
        (_, Some(address)) => {
            out.extend_from_slice(b"addr(");
            out.extend_from_slice(address.as_bytes());
        }
        _ => {
            out.extend_from_slice(b"raw(");
            push_hex(out, script);
        }
    }
    out.push(b')');
    if let Some(checksum) = checksum(&out[start..]) {
        out.push(b'#');
        out.extend_from_slice(&checksum);
    }
}

/// Returns whether the key is compressed or uncompressed, and not hybrid.
fn is_plain_key(key: &[u8]) -> bool {
    matches!(key.first(), Some(2..=4))
}

/// Returns whether the key is the x coordinate of a curve point.
fn is_x_only(key: &[u8; 32]) -> bool {
    let mut compressed = [2; 33];
    compressed[1..].copy_from_slice(key);
    uncompressed_key(&compressed).is_some()
}
