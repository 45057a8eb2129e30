//! Signature operations: exactly at the limit and one above it, counted in each way (BIP-0141).

use super::Bench;
use crate::error::ChainsError;
use crate::presets::maker::{FreeCoin, TRUE_SCRIPT, free_tx, output};
use crate::wallet::script::{OP_0, OP_1, OP_CHECKMULTISIG, OP_CHECKSIG, OP_ENDIF, OP_IF, Script, p2sh, p2wsh};
use lydian_primitives::OutPoint;
use lydian_primitives::build::MutTx;

const RULE_LEGACY: &str = "block-legacy-sigops";
const RULE_COST: &str = "block-sigops-cost";
const REASON: &str = "bad-blk-sigops";

pub(super) fn cases(bench: &mut Bench) -> Result<(), ChainsError> {
    in_outputs(bench)?;
    in_redeem_scripts(bench)?;
    in_witnesses(bench)
}

fn in_outputs(bench: &mut Bench) -> Result<(), ChainsError> {
    let checks = |single: usize, multi: usize| [vec![OP_CHECKSIG; single], vec![OP_CHECKMULTISIG; multi]].concat();
    let paying = |bench: &Bench, script: &[u8]| {
        let mut tx = bench.plain_tx();
        tx.outputs[0].value.0 -= 1;
        tx.outputs.push(output(1, script));
        vec![tx]
    };
    for (name, single, multi) in [("checksig-20001", 20_001, 0), ("checkmultisig-1000-checksig-1", 1, 1_000)] {
        bench.broken(name, RULE_LEGACY, REASON, paying(bench, &checks(single, multi)), |_| ())?;
    }
    bench.broken(
        "checksig-51-of-20001-in-the-coinbase",
        RULE_LEGACY,
        REASON,
        paying(bench, &checks(19_950, 0)),
        |b| {
            b.txs[0].inputs[0].script_sig.extend_from_slice(&[OP_CHECKSIG; 51]);
        },
    )?;
    bench.twin("checksig-20000", RULE_LEGACY, paying(bench, &checks(20_000, 0)), |_| ())?;
    bench.twin("checkmultisig-1000", RULE_LEGACY, paying(bench, &checks(0, 1_000)), |_| ())?;
    bench.twin("checksig-50-of-20000-in-the-coinbase", RULE_LEGACY, paying(bench, &checks(19_950, 0)), |b| {
        b.txs[0].inputs[0].script_sig.extend_from_slice(&[OP_CHECKSIG; 50]);
    })?;
    // Counting ends at a push that extends beyond the script.
    let cut = [checks(20_000, 0), vec![0x4c, 200], checks(100, 0)].concat();
    bench.twin("checksig-behind-a-cut-push", RULE_LEGACY, paying(bench, &cut), |_| ())
}

/// A true script with operations that are counted but never run: 20 for each CHECKMULTISIG, 1 for each CHECKSIG.
pub(super) fn counting(multi: usize, single: usize) -> Vec<u8> {
    let idle = [vec![OP_CHECKMULTISIG; multi], vec![OP_CHECKSIG; single]].concat();
    Script::new().op(OP_0).op(OP_IF).raw(&idle).op(OP_ENDIF).op(OP_1).build()
}

/// Funds these scripts in a block of their own and returns a transaction that spends them, with scriptSigs and
/// witnesses from `unlock`.
fn spending(
    bench: &mut Bench,
    scripts: &[Vec<u8>],
    unlock: impl Fn(usize) -> (Vec<u8>, Vec<Vec<u8>>),
) -> Result<MutTx, ChainsError> {
    let coin = bench.maker.spendable()[0];
    let mut outputs: Vec<_> = scripts.iter().map(|script| output(1_000, script)).collect();
    let rest = coin.value - 1_000 * i64::try_from(scripts.len()).unwrap_or(0);
    outputs.push(output(rest, &TRUE_SCRIPT));
    let funding = free_tx(&[coin], outputs);
    let txid = funding.txid();
    bench.twin("chain", "", vec![funding], |_| ())?;
    let coins: Vec<FreeCoin> = (0..)
        .zip(scripts)
        .map(|(vout, _)| FreeCoin { outpoint: OutPoint { txid, vout }, value: 1_000, coinbase_height: None })
        .collect();
    let mut tx = free_tx(&coins, vec![output(1_000, &TRUE_SCRIPT)]);
    for (index, input) in tx.inputs.iter_mut().enumerate() {
        (input.script_sig, input.witness) = unlock(index);
    }
    Ok(tx)
}

/// Five redeem scripts of 198 CHECKMULTISIG cost 79,200; the rest is 4 x 199 in an output and 4 or 5 in a witness.
fn in_redeem_scripts(bench: &mut Bench) -> Result<(), ChainsError> {
    let redeem = counting(198, 0);
    let (at_limit, above) = (counting(0, 4), counting(0, 5));
    let mut scripts = vec![p2sh(&redeem); 5];
    scripts.extend([p2wsh(&at_limit), p2wsh(&above)]);
    let mut tx = spending(bench, &scripts, |index| match index {
        0..=4 => (Script::new().push(&redeem).build(), Vec::new()),
        5 => (Vec::new(), vec![at_limit.clone()]),
        _ => (Vec::new(), vec![above.clone()]),
    })?;
    tx.outputs.push(output(0, &[OP_CHECKSIG; 199]));
    let without = |index: usize| {
        let mut tx = tx.clone();
        tx.inputs.remove(index);
        vec![tx]
    };
    bench.broken("cost-80001-redeem-scripts", RULE_COST, REASON, without(5), |_| ())?;
    bench.twin("cost-80000-redeem-scripts", RULE_COST, without(6), |_| ())
}

/// Twenty witness scripts of 198 CHECKMULTISIG, then one of 40, or of 40 and a CHECKSIG; the first nested in P2SH.
fn in_witnesses(bench: &mut Bench) -> Result<(), ChainsError> {
    let (large, at_limit, above) = (counting(198, 0), counting(40, 0), counting(40, 1));
    let nested = p2wsh(&large);
    let mut scripts = vec![p2sh(&nested)];
    scripts.extend(vec![p2wsh(&large); 19]);
    scripts.extend([p2wsh(&at_limit), p2wsh(&above)]);
    let tx = spending(bench, &scripts, |index| match index {
        0 => (Script::new().push(&nested).build(), vec![large.clone()]),
        1..=19 => (Vec::new(), vec![large.clone()]),
        20 => (Vec::new(), vec![at_limit.clone()]),
        _ => (Vec::new(), vec![above.clone()]),
    })?;
    let without = |index: usize| {
        let mut tx = tx.clone();
        tx.inputs.remove(index);
        vec![tx]
    };
    bench.broken("cost-80001-witness-scripts", RULE_COST, REASON, without(20), |_| ())?;
    bench.twin("cost-80000-witness-scripts", RULE_COST, without(21), |_| ())
}
