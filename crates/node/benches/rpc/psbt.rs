//! PSBTs of 1,000 inputs: decoded, finalized and signed; and the same transaction signed with private keys.
//!
//! Input: Core, which makes the PSBTs. Output: calls. Every input spends a P2WPKH output of its own previous
//! transaction, which the PSBT contains as wallets want it; all inputs have the same key, so that the signatures are
//! what is measured and not the derivation of keys.

use crate::server::Server;
use lydian_primitives::build::{MutInput, MutOutput, MutTx, write_var_bytes};
use lydian_primitives::{Amount, OutPoint, Txid, hex, to_hex};
use lydian_stdx::base64;
use serde_json::Value;

const INPUTS: u16 = 1_000;

/// The private key 1 on test chains, and the hash of its public key.
const KEY: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
const KEY_HASH: &str = "751e76e8199196d454941c45d1b3a323f1433bd6";

/// Satoshi in each output that is spent.
const VALUE: i64 = 100_000;

/// The transaction that an input spends.
fn previous(index: u16, script: &[u8]) -> MutTx {
    let mut txid = [7; 32];
    txid[..2].copy_from_slice(&index.to_le_bytes());
    let prevout = OutPoint { txid: Txid(txid), vout: 0 };
    MutTx {
        version: 2,
        inputs: vec![MutInput { prevout, script_sig: Vec::new(), sequence: 0xffff_fffd, witness: Vec::new() }],
        outputs: vec![MutOutput { value: Amount(VALUE), script_pubkey: script.to_vec() }],
        lock_time: 0,
    }
}

fn field(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    out.extend_from_slice(&[1, kind]);
    write_var_bytes(out, value);
}

/// Name, body and number of calls.
pub(crate) fn calls(core: &Server, call: impl Fn(&str, &str) -> String) -> Vec<(String, String, u32)> {
    let script = [&[0, 20][..], &hex(KEY_HASH).unwrap()].concat();
    let previous: Vec<MutTx> = (0..INPUTS).map(|index| previous(index, &script)).collect();
    let spend = |tx: &MutTx| {
        let prevout = OutPoint { txid: tx.txid(), vout: 0 };
        MutInput { prevout, script_sig: Vec::new(), sequence: 0xffff_fffd, witness: Vec::new() }
    };
    let tx = MutTx {
        version: 2,
        inputs: previous.iter().map(spend).collect(),
        outputs: vec![MutOutput { value: Amount(VALUE), script_pubkey: script.clone() }],
        lock_time: 0,
    };
    let mut psbt = b"psbt\xff".to_vec();
    field(&mut psbt, 0, &tx.encode_stripped());
    psbt.push(0);
    for tx in &previous {
        let mut utxo = VALUE.to_le_bytes().to_vec();
        write_var_bytes(&mut utxo, &script);
        field(&mut psbt, 0, &tx.encode_stripped());
        field(&mut psbt, 1, &utxo);
        psbt.push(0);
    }
    psbt.push(0);
    let unsigned = base64(&psbt);
    let sign = |finalize: bool| format!("[\"{unsigned}\",[\"wpkh({KEY})\"],\"ALL\",true,{finalize}]");
    let signed = core.result("descriptorprocesspsbt", &sign(false));
    let signed: &Value = &signed["psbt"];
    let spent: Vec<String> = tx.inputs.iter().map(|input| describe(&input.prevout, &script)).collect();
    let by_key = format!("[\"{}\",[\"{KEY}\"],[{}]]", to_hex(&tx.encode()), spent.join(","));
    vec![
        ("decodepsbt of 1,000 inputs".to_owned(), call("decodepsbt", &format!("[{signed}]")), 40),
        ("finalizepsbt of 1,000 inputs".to_owned(), call("finalizepsbt", &format!("[{signed}]")), 20),
        ("descriptorprocesspsbt of 1,000 inputs".to_owned(), call("descriptorprocesspsbt", &sign(true)), 20),
        ("signrawtransactionwithkey of 1,000 inputs".to_owned(), call("signrawtransactionwithkey", &by_key), 20),
    ]
}

/// An output for `prevtxs`.
fn describe(prevout: &OutPoint, script: &[u8]) -> String {
    let (txid, vout, script) = (prevout.txid, prevout.vout, to_hex(script));
    format!("{{\"txid\":\"{txid}\",\"vout\":{vout},\"scriptPubKey\":\"{script}\",\"amount\":0.001}}")
}
