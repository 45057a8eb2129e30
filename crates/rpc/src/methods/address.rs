//! Methods that only concern addresses and scripts: `validateaddress`, `decodescript`.

use crate::error::RpcError;
use crate::method::{Arg, Call, Category, Kind, Method, answer};
use crate::output::write_script;
use lydian_consensus::Chain;
use lydian_descriptor::{TxoutType, address, solve, write_asm, write_inferred};
use lydian_hash::{hash160, sha256};
use lydian_primitives::{hex, to_hex};
use lydian_script::builder::scripts;
use lydian_script::opcodes::{OP_CHECKSIGADD, is_op_success};
use lydian_script::{is_unspendable, ops};
use serde::Serialize;

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "decodescript",
        category: Category::Rawtransactions,
        help: "Returns the type of a script, and the addresses of outputs that would pay it.",
        args: &[Arg::new("hexstring", Kind::Hex, "the script")],
        result: "{asm, desc, address, type, p2sh, segwit: {asm, desc, hex, address, type, p2sh-segwit}}",
        examples: &["\"hexstring\""],
        remark: "The descriptor of `segwit` is that of its address; Core describes the inner script if it has one of a few forms.",
        call: decodescript,
    },
    Method {
        name: "validateaddress",
        category: Category::Util,
        help: "Returns whether a string is a valid address, and what it pays to.",
        args: &[Arg::new("address", Kind::Text, "the string to check")],
        result: "{isvalid, address, scriptPubKey, isscript, iswitness, witness_version, witness_program}, or {isvalid, error_locations, error}",
        examples: &["\"bc1q09vm5lfy0j5reeulh4x5752q25uqqvz34hufdl\""],
        remark: "",
        call: validateaddress,
    },
];

#[derive(Debug, Default, Serialize)]
struct AddressAnswer {
    isvalid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(rename = "scriptPubKey", skip_serializing_if = "Option::is_none")]
    script: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    isscript: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iswitness: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness_version: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness_program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_locations: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn validateaddress(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let chain = call.context.settings.params.chain;
    let script = match address::decode(call.text(0)?, chain) {
        Ok(script) => script,
        Err(bad) => {
            let (error_locations, error) = (Some(bad.places), Some(bad.words));
            return answer(out, &AddressAnswer { error_locations, error, ..AddressAnswer::default() });
        }
    };
    let kind = solve(&script);
    let (isscript, iswitness, program) = match &kind {
        TxoutType::PubkeyHash(_) => (Some(false), false, None),
        TxoutType::ScriptHash(_) => (Some(true), false, None),
        TxoutType::WitnessV0KeyHash(program) => (Some(false), true, Some((0, *program))),
        TxoutType::WitnessV0ScriptHash(program) => (Some(true), true, Some((0, *program))),
        TxoutType::WitnessV1Taproot(program) => (Some(true), true, Some((1, *program))),
        TxoutType::WitnessUnknown { version, program } => (None, true, Some((*version, *program))),
        _ => (Some(true), true, None),
    };
    answer(
        out,
        &AddressAnswer {
            isvalid: true,
            address: address::encode(&kind, chain),
            script: Some(to_hex(&script)),
            isscript,
            iswitness: Some(iswitness),
            witness_version: program.map(|(version, _)| version),
            witness_program: program.map(|(_, program)| to_hex(program)),
            ..AddressAnswer::default()
        },
    )
}

fn decodescript(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let text = call.text(0)?;
    let script = hex(text);
    let script =
        script.map_err(|_| RpcError::parameter(format!("argument must be hexadecimal string (not '{text}')")))?;
    let chain = call.context.settings.params.chain;
    let kind = solve(&script);
    let own_address = address::encode(&kind, chain);
    out.extend_from_slice(b"{\"asm\":\"");
    write_asm(&script, false, out);
    out.extend_from_slice(b"\",\"desc\":\"");
    write_inferred(&script, &kind, own_address.as_deref(), out);
    if let Some(address) = own_address {
        out.extend_from_slice(format!("\",\"address\":\"{address}").as_bytes());
    }
    out.extend_from_slice(format!("\",\"type\":\"{}\"", kind.name()).as_bytes());
    if can_wrap(&script, &kind) {
        push_address(out, ",\"p2sh\"", &scripts::p2sh(&hash160(&script)), chain);
        if let Some(witness) = witness_script(&script, &kind) {
            out.extend_from_slice(b",\"segwit\":");
            write_script(&witness, chain, out);
            // The object is continued.
            out.pop();
            push_address(out, ",\"p2sh-segwit\"", &scripts::p2sh(&hash160(&witness)), chain);
            out.push(b'}');
        }
    }
    out.push(b'}');
    Ok(())
}

fn push_address(out: &mut Vec<u8>, key: &str, script: &[u8], chain: Chain) {
    let address = address::encode(&solve(script), chain).unwrap_or_default();
    out.extend_from_slice(format!("{key}:\"{address}\"").as_bytes());
}

/// Whether wrapping the script in pay-to-script-hash makes sense.
fn can_wrap(script: &[u8], kind: &TxoutType<'_>) -> bool {
    let is_of_kind = matches!(
        kind,
        TxoutType::Multisig { .. }
            | TxoutType::Nonstandard
            | TxoutType::Pubkey(_)
            | TxoutType::PubkeyHash(_)
            | TxoutType::WitnessV0KeyHash(_)
            | TxoutType::WitnessV0ScriptHash(_)
    );
    /// Core's `MAX_OPCODE` and `MAX_SCRIPT_ELEMENT_SIZE`, which `HasValidOps` checks.
    const OPCODE_MAX: u8 = 0xb9;
    const ELEMENT_SIZE_MAX: usize = 520;
    let is_plain = |op: lydian_script::Op<'_>| {
        op.opcode <= OPCODE_MAX
            && op.push.len() <= ELEMENT_SIZE_MAX
            && op.opcode != OP_CHECKSIGADD
            && !is_op_success(op.opcode)
    };
    is_of_kind && !is_unspendable(script) && ops(script).all(|op| op.is_ok_and(is_plain))
}

/// The witness program that pays the script, if there can be one.
fn witness_script(script: &[u8], kind: &TxoutType<'_>) -> Option<Vec<u8>> {
    match kind {
        TxoutType::Pubkey(key) if key.len() == 33 => Some(scripts::witness_program(0, &hash160(key))),
        TxoutType::PubkeyHash(hash) => Some(scripts::witness_program(0, hash)),
        TxoutType::Multisig { keys, .. } if keys.iter().all(|key| key.len() == 33) => {
            Some(scripts::witness_program(0, &sha256(script)))
        }
        TxoutType::Nonstandard => Some(scripts::witness_program(0, &sha256(script))),
        _ => None,
    }
}
