//! Transactions as JSON: Core's `TxToUniv` (core_io.cpp).
//!
//! Input: a transaction, and the coins it spends, if known. Output: text. Cost: one pass; only addresses are allocated.

use super::script::write_script;
use lydian_consensus::{Chain, Coin};
use lydian_descriptor::write_asm;
use lydian_primitives::{Amount, Tx, push_hex, push_hex_reversed};
use std::io::Write;

/// How much is written about inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The contents of the transaction itself.
    Plain,
    /// Also the spent outputs.
    Prevouts,
}

/// Appends numbers. Writing to memory does not fail.
macro_rules! push {
    ($out:expr, $($part:tt)*) => {
        let _ = write!($out, $($part)*);
    };
}

/// Writes one transaction. `spent` has a coin for each input.
pub(crate) fn write_transaction(tx: Tx<'_>, spent: Option<&[Coin]>, detail: Detail, chain: Chain, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"txid\":\"");
    push_hex_reversed(out, &tx.txid().0);
    out.extend_from_slice(b"\",\"hash\":\"");
    push_hex_reversed(out, &tx.wtxid().0);
    let weight = tx.weight();
    push!(out, "\",\"version\":{},\"size\":{},\"vsize\":{}", tx.version(), tx.total_size(), weight.div_ceil(4));
    push!(out, ",\"weight\":{weight},\"locktime\":{},\"vin\":[", tx.lock_time());
    write_inputs(tx, spent, detail, chain, out);
    out.extend_from_slice(b"],\"vout\":[");
    let mut total_out = 0;
    for (index, output) in tx.outputs().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push!(out, "{{\"value\":{},\"n\":{index},\"scriptPubKey\":", output.value);
        write_script(output.script_pubkey, chain, out);
        out.push(b'}');
        total_out += i128::from(output.value.0);
    }
    out.push(b']');
    if let Some(spent) = spent {
        let total_in: i128 = spent.iter().map(|coin| i128::from(coin.value.0)).sum();
        push!(out, ",\"fee\":{}", Amount(i64::try_from(total_in - total_out).unwrap_or(0)));
    }
    out.extend_from_slice(b",\"hex\":\"");
    push_hex(out, tx.bytes());
    out.extend_from_slice(b"\"}");
}

fn write_inputs(tx: Tx<'_>, spent: Option<&[Coin]>, detail: Detail, chain: Chain, out: &mut Vec<u8>) {
    let is_coinbase = tx.is_coinbase();
    for (index, input) in tx.inputs().enumerate() {
        out.extend_from_slice(if index > 0 { b",{" } else { b"{" });
        if is_coinbase {
            out.extend_from_slice(b"\"coinbase\":\"");
            push_hex(out, input.script_sig);
            out.extend_from_slice(b"\",");
        } else {
            out.extend_from_slice(b"\"txid\":\"");
            push_hex_reversed(out, &input.prevout.txid.0);
            push!(out, "\",\"vout\":{},\"scriptSig\":{{\"asm\":\"", input.prevout.vout);
            write_asm(input.script_sig, true, out);
            out.extend_from_slice(b"\",\"hex\":\"");
            push_hex(out, input.script_sig);
            out.extend_from_slice(b"\"},");
        }
        if !input.witness.is_empty() {
            out.extend_from_slice(b"\"txinwitness\":[");
            for (place, item) in input.witness.iter().enumerate() {
                out.extend_from_slice(if place > 0 { b",\"" } else { b"\"" });
                push_hex(out, item);
                out.push(b'"');
            }
            out.extend_from_slice(b"],");
        }
        if let Some(coin) = spent.and_then(|spent| spent.get(index)).filter(|_| detail == Detail::Prevouts) {
            push!(out, "\"prevout\":{{\"generated\":{},\"height\":{}", coin.is_coinbase, coin.height);
            push!(out, ",\"value\":{},\"scriptPubKey\":", coin.value);
            write_script(&coin.script_pubkey, chain, out);
            out.extend_from_slice(b"},");
        }
        push!(out, "\"sequence\":{}}}", input.sequence);
    }
}
