//! The objects of Esplora's JSON, field by field as its `API.md` has them. Amounts are satoshis.

use crate::asm::asm;
use lydian_consensus::Chain;
use lydian_descriptor::Address;
use lydian_primitives::{Input, Output, difficulty, to_hex};
use lydian_query::{BlockInfo, BlockPlace, BlockSizes, Detailed, ScriptStats, Spending, SpentOutput, SummaryEntry};
use lydian_script::opcodes::{OP_CHECKSIG, OP_PUSHDATA4, OP_RETURN};
use lydian_script::{is_p2sh, ops, witness_program};
use serde::Serialize;

/// Whether and where a transaction is in the chain.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    pub(crate) confirmed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_height: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_time: Option<u32>,
}

impl From<Option<BlockPlace>> for Status {
    fn from(block: Option<BlockPlace>) -> Status {
        Status {
            confirmed: block.is_some(),
            block_height: block.map(|block| block.height),
            block_hash: block.map(|block| block.hash.to_string()),
            block_time: block.map(|block| block.time),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct TransactionJson {
    txid: String,
    version: u32,
    locktime: u32,
    vin: Vec<InputJson>,
    vout: Vec<OutputJson>,
    size: usize,
    weight: usize,
    fee: i64,
    status: Status,
}

impl TransactionJson {
    pub(crate) fn new(detailed: &Detailed, chain: Chain) -> TransactionJson {
        let tx = detailed.tx.view();
        let inputs = tx.inputs().zip(&detailed.spent);
        let spent: Option<i64> = detailed.spent.iter().map(|spent| spent.as_ref().map(|spent| spent.value)).sum();
        let paid: i64 = tx.outputs().map(|output| output.value.0).sum();
        TransactionJson {
            txid: tx.txid().to_string(),
            version: tx.version(),
            locktime: tx.lock_time(),
            vin: inputs.map(|(input, spent)| InputJson::new(&input, spent.as_ref(), chain)).collect(),
            vout: tx.outputs().map(|output| OutputJson::new(&output, chain)).collect(),
            size: tx.total_size(),
            weight: tx.weight(),
            // A coinbase transaction has none, and that of a stale block may be unknown.
            fee: spent.map_or(0, |spent| spent - paid),
            status: detailed.block.into(),
        }
    }
}

#[derive(Debug, Serialize)]
struct InputJson {
    txid: String,
    vout: u32,
    prevout: Option<OutputJson>,
    scriptsig: String,
    scriptsig_asm: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<Vec<String>>,
    is_coinbase: bool,
    sequence: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    inner_redeemscript_asm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inner_witnessscript_asm: Option<String>,
}

impl InputJson {
    fn new(input: &Input<'_>, spent: Option<&SpentOutput>, chain: Chain) -> InputJson {
        let output = |spent: &SpentOutput| OutputJson::of(&spent.script_pubkey, spent.value, chain);
        let redeem = spent.and_then(|spent| redeem_script(&spent.script_pubkey, input.script_sig));
        let is_script_hash =
            |script: &[u8]| witness_program(script).is_some_and(|of| of.version == 0 && of.program.len() == 32);
        let has_witness_script =
            redeem.map_or_else(|| spent.is_some_and(|spent| is_script_hash(&spent.script_pubkey)), is_script_hash);
        InputJson {
            txid: input.prevout.txid.to_string(),
            vout: input.prevout.vout,
            prevout: spent.map(output),
            scriptsig: to_hex(input.script_sig),
            scriptsig_asm: asm(input.script_sig),
            witness: (!input.witness.is_empty()).then(|| input.witness.iter().map(to_hex).collect()),
            is_coinbase: input.prevout.is_null(),
            sequence: input.sequence,
            inner_redeemscript_asm: redeem.map(asm),
            inner_witnessscript_asm: input.witness.iter().last().filter(|_| has_witness_script).map(asm),
        }
    }
}

/// The last push of an input that spends P2SH.
fn redeem_script<'a>(script_pubkey: &[u8], script_sig: &'a [u8]) -> Option<&'a [u8]> {
    let last = ops(script_sig).last().filter(|_| is_p2sh(script_pubkey))?.ok()?;
    (last.opcode <= OP_PUSHDATA4).then_some(last.push)
}

#[derive(Debug, Serialize)]
struct OutputJson {
    scriptpubkey: String,
    scriptpubkey_asm: String,
    scriptpubkey_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scriptpubkey_address: Option<String>,
    value: i64,
}

impl OutputJson {
    fn new(output: &Output<'_>, chain: Chain) -> OutputJson {
        OutputJson::of(output.script_pubkey, output.value.0, chain)
    }

    fn of(script: &[u8], value: i64, chain: Chain) -> OutputJson {
        OutputJson {
            scriptpubkey: to_hex(script),
            scriptpubkey_asm: asm(script),
            scriptpubkey_type: script_type(script),
            scriptpubkey_address: Address::of_script(script).map(|address| address.text(chain)),
            value,
        }
    }
}

/// Esplora's name for a kind of script.
fn script_type(script: &[u8]) -> &'static str {
    if script.is_empty() {
        return "empty";
    }
    if script.first() == Some(&OP_RETURN) {
        return "op_return";
    }
    // Esplora does not look at the key.
    let is_key = |size: usize| script.len() == size + 2 && script.first().map(|push| usize::from(*push)) == Some(size);
    if script.last() == Some(&OP_CHECKSIG) && (is_key(33) || is_key(65)) {
        return "p2pk";
    }
    match Address::of_script(script) {
        Some(Address::PubkeyHash(_)) => "p2pkh",
        Some(Address::ScriptHash(_)) => "p2sh",
        Some(Address::WitnessV0KeyHash(_)) => "v0_p2wpkh",
        Some(Address::WitnessV0ScriptHash(_)) => "v0_p2wsh",
        Some(Address::WitnessV1Taproot(_)) => "v1_p2tr",
        Some(Address::PayToAnchor | Address::WitnessUnknown(_)) | None => "unknown",
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct BlockJson {
    id: String,
    height: u32,
    version: u32,
    timestamp: u32,
    tx_count: usize,
    size: usize,
    weight: usize,
    merkle_root: String,
    previousblockhash: Option<String>,
    mediantime: i64,
    nonce: u32,
    bits: u32,
    difficulty: f64,
}

impl BlockJson {
    pub(crate) fn new(info: &BlockInfo, sizes: BlockSizes) -> BlockJson {
        let header = &info.header;
        BlockJson {
            id: info.hash.to_string(),
            height: info.height,
            version: header.version.cast_unsigned(),
            timestamp: header.time,
            tx_count: sizes.transactions,
            size: sizes.size,
            weight: sizes.weight,
            merkle_root: lydian_primitives::Txid(header.merkle_root).to_string(),
            previousblockhash: (info.height > 0).then(|| header.prev_block.to_string()),
            mediantime: info.median_time,
            nonce: header.nonce,
            bits: header.bits,
            difficulty: difficulty(header.bits),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct BlockStatusJson {
    in_best_chain: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_best: Option<String>,
}

impl From<&BlockInfo> for BlockStatusJson {
    fn from(info: &BlockInfo) -> BlockStatusJson {
        BlockStatusJson {
            in_best_chain: info.is_active,
            height: info.is_active.then_some(info.height),
            next_best: info.next.filter(|_| info.is_active).map(|hash| hash.to_string()),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct StatsJson {
    tx_count: usize,
    funded_txo_count: usize,
    funded_txo_sum: i64,
    spent_txo_count: usize,
    spent_txo_sum: i64,
}

impl From<ScriptStats> for StatsJson {
    fn from(stats: ScriptStats) -> StatsJson {
        StatsJson {
            tx_count: stats.transactions,
            funded_txo_count: stats.funded_count,
            funded_txo_sum: stats.funded_sum,
            spent_txo_count: stats.spent_count,
            spent_txo_sum: stats.spent_sum,
        }
    }
}

/// What a transaction changes in a balance, as mempool/electrs has it.
#[derive(Debug, Serialize)]
pub(crate) struct SummaryJson {
    txid: String,
    height: u32,
    value: i64,
    time: u32,
    tx_position: u32,
}

impl From<&SummaryEntry> for SummaryJson {
    fn from(entry: &SummaryEntry) -> SummaryJson {
        SummaryJson {
            txid: entry.txid.to_string(),
            height: entry.block.height,
            value: entry.value,
            time: entry.block.time,
            tx_position: entry.position,
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct UtxoJson {
    pub(crate) txid: String,
    pub(crate) vout: u32,
    pub(crate) status: Status,
    pub(crate) value: i64,
}

/// Whether and by which input an output is spent.
#[derive(Debug, Serialize)]
pub(crate) struct OutspendJson {
    spent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    txid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vin: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

impl From<Option<Spending>> for OutspendJson {
    fn from(spending: Option<Spending>) -> OutspendJson {
        OutspendJson {
            spent: spending.is_some(),
            txid: spending.map(|spending| spending.txid.to_string()),
            vin: spending.map(|spending| spending.vin),
            status: spending.map(|spending| spending.block.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::hex;

    #[test]
    fn scripts_have_esploras_types() {
        let key = "02".repeat(33);
        for (script, kind) in [
            (String::new(), "empty"),
            ("6a01ff".to_owned(), "op_return"),
            (format!("21{key}ac"), "p2pk"),
            (format!("76a914{}88ac", "11".repeat(20)), "p2pkh"),
            (format!("a914{}87", "11".repeat(20)), "p2sh"),
            (format!("0014{}", "11".repeat(20)), "v0_p2wpkh"),
            (format!("0020{}", "11".repeat(32)), "v0_p2wsh"),
            (format!("5120{}", "11".repeat(32)), "v1_p2tr"),
            ("51024e73".to_owned(), "unknown"),
            (format!("5121{key}51ae"), "unknown"),
            ("51".to_owned(), "unknown"),
        ] {
            assert_eq!(script_type(&hex(&script).unwrap()), kind, "{script}");
        }
    }
}
