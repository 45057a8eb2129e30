//! Descriptors inferred from output scripts alone: Core's `InferDescriptor` without keys.
//!
//! Input: a script and its type. Output: text. Cost: a square root (5 us) for a taproot output, unless [`OffCurve`] has
//! decided about many of them.

use crate::checksum::checksum;
use crate::solver::{TxoutType, solve};
use lydian_primitives::push_hex;
use lydian_script::are_x_only;
use std::collections::HashSet;

/// The taproot outputs among many scripts whose key is no point on the curve: they have no descriptor but their
/// address. All keys are decided together, which takes a fraction of the time.
#[derive(Debug, Default)]
pub struct OffCurve(HashSet<[u8; 32]>);

impl OffCurve {
    pub fn among<'a>(scripts: impl Iterator<Item = &'a [u8]>) -> OffCurve {
        let key = |script| match solve(script) {
            TxoutType::WitnessV1Taproot(key) => Some(*key),
            _ => None,
        };
        let keys: Vec<[u8; 32]> = scripts.filter_map(key).collect();
        let are_points = are_x_only(&keys);
        OffCurve(keys.into_iter().zip(are_points).filter(|(_, is_point)| !is_point).map(|(key, _)| key).collect())
    }
}

/// Appends the descriptor with its checksum. `address` is the address of the script. `off_curve`: of scripts that
/// include this one.
pub fn write_inferred(
    script: &[u8],
    script_type: &TxoutType<'_>,
    address: Option<&str>,
    off_curve: Option<&OffCurve>,
    out: &mut Vec<u8>,
) {
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
        (TxoutType::WitnessV1Taproot(key), _) if is_x_only(key, off_curve) => {
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
fn is_x_only(key: &[u8; 32], off_curve: Option<&OffCurve>) -> bool {
    match off_curve {
        Some(off_curve) => !off_curve.0.contains(key),
        None => are_x_only(&[*key]) == [true],
    }
}
