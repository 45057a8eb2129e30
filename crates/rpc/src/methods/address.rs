//! Methods about addresses and scripts alone: `validateaddress`, `decodescript`, and the search for coins by their scripts.

use crate::error::{RpcError, code};
use crate::json::{Amount, Json};
use crate::method::{Arg, Call, Category, Kind, Method, answer};
use crate::output::{ScriptKind, address, expression, push_hex, solve, write_asm, write_inferred, write_script};
use lydian_consensus::Chain;
use lydian_engine::EngineError;
use lydian_hash::{hash160, sha256};
use lydian_primitives::{Height, hex, to_hex};
use lydian_script::builder::scripts;
use lydian_script::opcodes::{OP_CHECKSIGADD, is_op_success};
use lydian_script::{is_unspendable, ops};
use serde::Serialize;
use std::collections::HashMap;

/// How far descriptors go.
const UNDERSTOOD: &str =
    "Understood are addr, raw, pk, pkh, wpkh, combo, rawtr, multi, sortedmulti, sh and wsh, with keys in hexadecimal.";

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "decodescript",
        category: Category::Rawtransactions,
        help: "Tells what a script is, and how outputs would pay it.",
        args: &[Arg::new("hexstring", Kind::Hex, "the script")],
        result: "{asm, desc, address, type, p2sh, segwit: {asm, desc, hex, address, type, p2sh-segwit}}",
        examples: &["\"hexstring\""],
        remark: "The descriptor of `segwit` is that of its address; Core tells what is inside, where it is one of few forms.",
        call: decodescript,
    },
    Method {
        name: "deriveaddresses",
        category: Category::Util,
        help: "Tells the addresses of a descriptor.",
        args: &[
            Arg::new("descriptor", Kind::Text, "the descriptor, with its checksum"),
            Arg::new("range", Kind::Range, "the end, or [begin,end], of a descriptor that derives").omitted(),
        ],
        result: "[address, ...]",
        examples: &["\"raw(51)#8lvh9jxk\""],
        remark: UNDERSTOOD,
        call: deriveaddresses,
    },
    Method {
        name: "getdescriptorinfo",
        category: Category::Util,
        help: "Tells of a descriptor.",
        args: &[Arg::new("descriptor", Kind::Text, "the descriptor")],
        result: "{descriptor, checksum, isrange, issolvable, hasprivatekeys}",
        examples: &["\"raw(51)\""],
        remark: UNDERSTOOD,
        call: getdescriptorinfo,
    },
    Method {
        name: "scantxoutset",
        category: Category::Blockchain,
        help: "Looks for the unspent outputs of descriptors. Reads all outputs.",
        args: &[
            Arg::new("action", Kind::Text, "\"start\"; \"abort\" and \"status\" of a search that goes on"),
            Arg {
                oneline: "[scanobjects,...]",
                ..Arg::new("scanobjects", Kind::Array, "descriptors").omitted().of(&[
                    Arg::new("descriptor", Kind::Text, "a descriptor").omitted(),
                    Arg::new("", Kind::Object, "a descriptor with its range").omitted().of(&[
                        Arg::new("desc", Kind::Text, "the descriptor"),
                        Arg::new("range", Kind::Range, "of what is derived").default("1000"),
                    ]),
                ])
            },
        ],
        result: "{success, txouts, height, bestblock, unspents: [{txid, vout, scriptPubKey, desc, amount, coinbase, height, blockhash, confirmations}], \
                 total_amount}",
        examples: &["start '[\"raw(76a91411b366edfc0a8b66feebae5c2e25a7b6a5d1cf3188ac)\"]'"],
        remark: "A search cannot be aborted. Understood are addr, raw, pk, pkh, wpkh, combo, rawtr, multi, sortedmulti, sh and wsh, with keys in \
                 hexadecimal; `desc` is what the script alone tells.",
        call: scantxoutset,
    },
    Method {
        name: "validateaddress",
        category: Category::Util,
        help: "Tells whether a text is an address, and of what.",
        args: &[Arg::new("address", Kind::Text, "the text")],
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
        ScriptKind::PubkeyHash(_) => (Some(false), false, None),
        ScriptKind::ScriptHash(_) => (Some(true), false, None),
        ScriptKind::WitnessV0KeyHash(program) => (Some(false), true, Some((0, *program))),
        ScriptKind::WitnessV0ScriptHash(program) => (Some(true), true, Some((0, *program))),
        ScriptKind::WitnessV1Taproot(program) => (Some(true), true, Some((1, *program))),
        ScriptKind::WitnessUnknown { version, program } => (None, true, Some((*version, *program))),
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

#[derive(Debug, Serialize)]
struct DescriptorInfo {
    descriptor: String,
    checksum: String,
    isrange: bool,
    issolvable: bool,
    hasprivatekeys: bool,
}

fn bad_descriptor(words: String) -> RpcError {
    RpcError::new(code::INVALID_ADDRESS_OR_KEY, words)
}

fn getdescriptorinfo(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let described = expression::describe(call.text(0)?, call.context.settings.params.chain).map_err(bad_descriptor)?;
    answer(
        out,
        &DescriptorInfo {
            descriptor: described.canonical,
            checksum: described.checksum,
            isrange: false,
            issolvable: described.is_solvable,
            hasprivatekeys: false,
        },
    )
}

fn deriveaddresses(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let (text, chain) = (call.text(0)?, call.context.settings.params.chain);
    if let Some(range) = call.given(1) {
        check_range(range)?;
    }
    if !text.contains('#') {
        return Err(bad_descriptor("Missing checksum".to_owned()));
    }
    let scripts = expression::scripts_of(text, chain).map_err(bad_descriptor)?;
    if call.params.len() > 1 {
        return Err(RpcError::parameter("Range should not be specified for an un-ranged descriptor"));
    }
    let mut addresses = Vec::with_capacity(scripts.len());
    for script in &scripts {
        let kind = solve(script);
        match address::encode(&kind, chain) {
            Some(address) => addresses.push(address),
            // Of the scripts of combo() this one has none.
            None if scripts.len() > 1 && matches!(kind, ScriptKind::Pubkey(_)) => {}
            None => return Err(bad_descriptor("Descriptor does not have a corresponding address".to_owned())),
        }
    }
    answer(out, &addresses)
}

/// Core's `ParseDescriptorRange`.
fn check_range(range: &Json) -> Result<(), RpcError> {
    let (low, high): (i64, i64) = match range {
        Json::Number(_) => (0, range.as_integer()?),
        Json::Array(ends) => match &ends[..] {
            [low @ Json::Number(_), high @ Json::Number(_)] => (low.as_integer()?, high.as_integer()?),
            _ => return Err(RpcError::parameter("Range must be specified as end or as [begin,end]")),
        },
        _ => return Err(RpcError::parameter("Range must be specified as end or as [begin,end]")),
    };
    if matches!(range, Json::Array(_)) && low > high {
        return Err(RpcError::parameter("Range specified as [begin,end] must not have begin after end"));
    }
    if low < 0 {
        return Err(RpcError::parameter("Range should be greater or equal than 0"));
    }
    if high >> 31 != 0 {
        return Err(RpcError::parameter("End of range is too high"));
    }
    if high >= low + 1_000_000 {
        return Err(RpcError::parameter("Range is too large"));
    }
    Ok(())
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
            // The object goes on.
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

/// Whether pay-to-script-hash of it makes sense.
fn can_wrap(script: &[u8], kind: &ScriptKind<'_>) -> bool {
    let is_of_kind = matches!(
        kind,
        ScriptKind::Multisig { .. }
            | ScriptKind::Nonstandard
            | ScriptKind::Pubkey(_)
            | ScriptKind::PubkeyHash(_)
            | ScriptKind::WitnessV0KeyHash(_)
            | ScriptKind::WitnessV0ScriptHash(_)
    );
    /// Core's `MAX_OPCODE` and `MAX_SCRIPT_ELEMENT_SIZE`, which `HasValidOps` compares with.
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

/// The witness program that pays it, where there may be one.
fn witness_script(script: &[u8], kind: &ScriptKind<'_>) -> Option<Vec<u8>> {
    match kind {
        ScriptKind::Pubkey(key) if key.len() == 33 => Some(scripts::witness_program(0, &hash160(key))),
        ScriptKind::PubkeyHash(hash) => Some(scripts::witness_program(0, hash)),
        ScriptKind::Multisig { keys, .. } if keys.iter().all(|key| key.len() == 33) => {
            Some(scripts::witness_program(0, &sha256(script)))
        }
        ScriptKind::Nonstandard => Some(scripts::witness_program(0, &sha256(script))),
        _ => None,
    }
}

#[derive(Debug, Serialize)]
struct Scan {
    success: bool,
    txouts: u64,
    height: u32,
    bestblock: String,
    unspents: Vec<Unspent>,
    total_amount: Amount,
}

#[derive(Debug, Serialize)]
struct Unspent {
    txid: String,
    vout: u32,
    #[serde(rename = "scriptPubKey")]
    script: String,
    desc: String,
    amount: Amount,
    coinbase: bool,
    height: u32,
    blockhash: String,
    confirmations: u32,
}

fn scantxoutset(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    match call.text(0)? {
        "start" => {}
        "status" => return answer(out, &()),
        "abort" => return answer(out, &false),
        other => return Err(RpcError::parameter(format!("Invalid action '{other}'"))),
    }
    if call.params.len() < 2 {
        return Err(RpcError::misc("scanobjects argument is required for the start action"));
    }
    let chain = call.context.settings.params.chain;
    // Each wanted script with its descriptor.
    let mut wanted: HashMap<Vec<u8>, String> = HashMap::new();
    for object in call.arg(1).as_array()? {
        for script in expression::scripts_of(descriptor_of(object)?, chain)
            .map_err(|words| RpcError::new(code::INVALID_ADDRESS_OR_KEY, words))?
        {
            let kind = solve(&script);
            let mut described = Vec::new();
            write_inferred(&script, &kind, address::encode(&kind, chain).as_deref(), &mut described);
            wanted.insert(script.clone(), String::from_utf8_lossy(&described).into_owned());
        }
    }
    let engine = call.context.engine()?;
    let (mut txouts, mut found, mut total) = (0, Vec::new(), 0);
    let tip = engine.visit_coins(&mut |outpoint, coin| -> Result<(), EngineError> {
        txouts += 1;
        if let Some(desc) = wanted.get(&*coin.script_pubkey) {
            total += coin.value.0;
            found.push((*outpoint, coin.clone(), desc.clone()));
        }
        Ok(())
    })?;
    let unspents = found.into_iter().map(|(outpoint, coin, desc)| Unspent {
        txid: outpoint.txid.to_string(),
        vout: outpoint.vout,
        script: {
            let mut text = Vec::new();
            push_hex(&mut text, &coin.script_pubkey);
            String::from_utf8_lossy(&text).into_owned()
        },
        desc,
        amount: Amount(coin.value.0),
        coinbase: coin.is_coinbase,
        height: coin.height.0,
        blockhash: engine.hash_at(Height(coin.height.0)).map(|hash| hash.to_string()).unwrap_or_default(),
        confirmations: (tip.height.0 + 1).saturating_sub(coin.height.0),
    });
    let unspents = unspents.collect();
    let (height, bestblock) = (tip.height.0, tip.hash.to_string());
    answer(out, &Scan { success: true, txouts, height, bestblock, unspents, total_amount: Amount(total) })
}

/// The text of a scan object.
fn descriptor_of(object: &Json) -> Result<&str, RpcError> {
    match object {
        Json::Text(text) => Ok(text),
        Json::Object(_) => match object.get("desc") {
            Some(desc) => desc.as_text(),
            None => Err(RpcError::parameter("Descriptor needs to be provided in scan object")),
        },
        _ => Err(RpcError::parameter("Scan object needs to be either a string or an object")),
    }
}
