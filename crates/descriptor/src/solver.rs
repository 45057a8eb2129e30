//! The type of an output script: Core's `Solver` (script/solver.cpp).
//!
//! Input: a script. Output: its type, with the parts that matter.

use lydian_script::opcodes::{
    OP_1, OP_16, OP_CHECKMULTISIG, OP_CHECKSIG, OP_DUP, OP_EQUALVERIFY, OP_HASH160, OP_PUSHDATA4, OP_RETURN,
};
use lydian_script::{Op, is_minimal_push, is_p2sh, is_push_only, num, ops, witness_program};

/// The type of an output script, with what Core's `Solver` finds in it: Core's `TxoutType`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TxoutType<'a> {
    Nonstandard,
    Anchor,
    Pubkey(&'a [u8]),
    PubkeyHash(&'a [u8; 20]),
    ScriptHash(&'a [u8; 20]),
    Multisig { required: i64, keys: Vec<&'a [u8]> },
    NullData,
    WitnessV0ScriptHash(&'a [u8; 32]),
    WitnessV0KeyHash(&'a [u8; 20]),
    WitnessV1Taproot(&'a [u8; 32]),
    WitnessUnknown { version: u8, program: &'a [u8] },
}

impl TxoutType<'_> {
    /// Core's `GetTxnOutputType`.
    pub fn name(&self) -> &'static str {
        match self {
            TxoutType::Nonstandard => "nonstandard",
            TxoutType::Anchor => "anchor",
            TxoutType::Pubkey(_) => "pubkey",
            TxoutType::PubkeyHash(_) => "pubkeyhash",
            TxoutType::ScriptHash(_) => "scripthash",
            TxoutType::Multisig { .. } => "multisig",
            TxoutType::NullData => "nulldata",
            TxoutType::WitnessV0ScriptHash(_) => "witness_v0_scripthash",
            TxoutType::WitnessV0KeyHash(_) => "witness_v0_keyhash",
            TxoutType::WitnessV1Taproot(_) => "witness_v1_taproot",
            TxoutType::WitnessUnknown { .. } => "witness_unknown",
        }
    }
}

/// Returns the type of an output script: Core's `Solver`.
pub fn solve(script: &[u8]) -> TxoutType<'_> {
    if is_p2sh(script)
        && let Some(hash) = script[2..].first_chunk()
    {
        return TxoutType::ScriptHash(hash);
    }
    if let Some(witness) = witness_program(script) {
        let program = &script[2..];
        return match (witness.version, <&[u8; 20]>::try_from(program), <&[u8; 32]>::try_from(program)) {
            (0, Ok(hash), _) => TxoutType::WitnessV0KeyHash(hash),
            (0, _, Ok(hash)) => TxoutType::WitnessV0ScriptHash(hash),
            (0, ..) => TxoutType::Nonstandard,
            (1, _, Ok(key)) => TxoutType::WitnessV1Taproot(key),
            _ if witness.is_pay_to_anchor() => TxoutType::Anchor,
            (version, ..) => TxoutType::WitnessUnknown { version, program },
        };
    }
    if let Some(hash) = pubkey_hash(script) {
        return TxoutType::PubkeyHash(hash);
    }
    match script {
        [OP_RETURN, pushes @ ..] if is_push_only(pushes) => TxoutType::NullData,
        [size @ (33 | 65), key @ .., OP_CHECKSIG] if key.len() == usize::from(*size) && is_key_size(key) => {
            TxoutType::Pubkey(key)
        }
        [.., OP_CHECKMULTISIG] => multisig(script).unwrap_or(TxoutType::Nonstandard),
        _ => TxoutType::Nonstandard,
    }
}

fn pubkey_hash(script: &[u8]) -> Option<&[u8; 20]> {
    let hash = script.strip_prefix(&[OP_DUP, OP_HASH160, 20])?;
    hash.strip_suffix(&[OP_EQUALVERIFY, OP_CHECKSIG])?.try_into().ok()
}

/// Core's `CPubKey::ValidSize`.
fn is_key_size(key: &[u8]) -> bool {
    match key.first() {
        Some(2 | 3) => key.len() == 33,
        Some(4 | 6 | 7) => key.len() == 65,
        _ => false,
    }
}

/// Core's `MAX_PUBKEYS_PER_MULTISIG`.
const KEYS_MAX: i64 = 20;

fn multisig(script: &[u8]) -> Option<TxoutType<'_>> {
    let mut walk = ops(script);
    let required = small_number(&walk.next()?.ok()?, 1)?;
    let mut keys = Vec::new();
    let count = loop {
        let op = walk.next()?.ok()?;
        if !is_key_size(op.push) {
            break small_number(&op, required)?;
        }
        keys.push(op.push);
    };
    let is_whole = walk.offset() + 1 == script.len();
    (is_whole && i64::try_from(keys.len()).ok()? == count).then_some(TxoutType::Multisig { required, keys })
}

/// `OP_1` to `OP_16`, or a minimally pushed number: Core's `GetScriptNumber`.
fn small_number(op: &Op<'_>, min: i64) -> Option<i64> {
    let number = match op.opcode {
        OP_1..=OP_16 => i64::from(op.opcode - OP_1 + 1),
        1..=OP_PUSHDATA4 if is_minimal_push(op.push, op.opcode) => num::decode(op.push, true).ok()?,
        _ => return None,
    };
    (min..=KEYS_MAX).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::hex;

    #[test]
    fn types_by_their_bytes() {
        let key = format!("02{}", "11".repeat(32));
        let long = format!("04{}", "11".repeat(64));
        for (script, name) in [
            (String::new(), "nonstandard"),
            (format!("21{key}ac"), "pubkey"),
            (format!("41{long}ac"), "pubkey"),
            (format!("2105{}ac", "11".repeat(32)), "nonstandard"),
            (format!("76a914{}88ac", "22".repeat(20)), "pubkeyhash"),
            (format!("a914{}87", "22".repeat(20)), "scripthash"),
            (format!("0014{}", "22".repeat(20)), "witness_v0_keyhash"),
            (format!("0020{}", "22".repeat(32)), "witness_v0_scripthash"),
            (format!("0010{}", "22".repeat(16)), "nonstandard"),
            (format!("5120{}", "22".repeat(32)), "witness_v1_taproot"),
            ("51024e73".to_owned(), "anchor"),
            (format!("5220{}", "22".repeat(32)), "witness_unknown"),
            ("6a".to_owned(), "nulldata"),
            ("6a0411223344".to_owned(), "nulldata"),
            ("6a04112233".to_owned(), "nonstandard"),
            ("6aac".to_owned(), "nonstandard"),
            (format!("5121{key}51ae"), "multisig"),
            (format!("5221{key}21{key}52ae"), "multisig"),
            (format!("5121{key}52ae"), "nonstandard"),
            (format!("5221{key}51ae"), "nonstandard"),
            (format!("0021{key}51ae"), "nonstandard"),
            (format!("5121{key}51ac"), "nonstandard"),
            (format!("51{}0111ae", format!("21{key}").repeat(17)), "multisig"),
            (format!("51{}0115ae", format!("21{key}").repeat(21)), "nonstandard"),
            (format!("010121{key}51ae"), "nonstandard"),
            (format!("5121{key}5151ae"), "nonstandard"),
        ] {
            assert_eq!(solve(&hex(&script).unwrap()).name(), name, "{script}");
        }
    }
}
