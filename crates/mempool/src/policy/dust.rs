//! Dust: outputs that cost more to spend than they are worth. Core's `GetDustThreshold`, `IsDust`, `GetDust`
//! (policy/policy.cpp) and `CheckEphemeralSpends` (policy/ephemeral_policy.cpp).
//!
//! Input: outputs and the dust relay fee; transactions with their unconfirmed parents. Output: which outputs are dust,
//! and whether children spend all dust of their parents. Pure. Cost: linear in the outputs of the parents, each of
//! which is looked at once for each child.

use super::fee_rate::FeeRate;
use super::rejection::Rejection;
use super::rule::PolicyRule;
use lydian_consensus::limits::WITNESS_SCALE_FACTOR;
use lydian_primitives::{OutPoint, Output, Tx, Txid, compact_size_len};
use lydian_script::{is_unspendable, witness_program};
use std::collections::{HashMap, HashSet};

/// Bytes of an input besides its signature and key: outpoint, length of the scriptSig, sequence.
const INPUT_SIZE: usize = 32 + 4 + 1 + 4;
/// Bytes of a signature and a compressed key.
const SIGNATURE_AND_KEY_SIZE: usize = 107;

/// The value in satoshi below which an output is dust.
pub fn dust_threshold(output: &Output<'_>, dust_relay_fee: FeeRate) -> i64 {
    let script = output.script_pubkey;
    if is_unspendable(script) {
        return 0;
    }
    let scale = if witness_program(script).is_some() { WITNESS_SCALE_FACTOR } else { 1 };
    let size = 8 + compact_size_len(script.len()) + script.len() + INPUT_SIZE + SIGNATURE_AND_KEY_SIZE / scale;
    dust_relay_fee.fee(i64::try_from(size).unwrap_or(i64::MAX))
}

pub fn is_dust(output: &Output<'_>, dust_relay_fee: FeeRate) -> bool {
    output.value.0 < dust_threshold(output, dust_relay_fee)
}

/// The indices of a transaction's dust outputs.
pub fn dust_outputs(tx: Tx<'_>, dust_relay_fee: FeeRate) -> impl Iterator<Item = u32> {
    (0..).zip(tx.outputs()).filter(move |(_, output)| is_dust(output, dust_relay_fee)).map(|(vout, _)| vout)
}

/// Checks that each transaction spends all dust of its parents in the package and in the mempool, which `parent` looks
/// up. Returns the index of the first transaction that does not, with its rejection. Core's `CheckEphemeralSpends`. The
/// limits of clusters, which bound the number of parents, must be checked before.
pub fn check_ephemeral_spends<'p>(
    package: &[Tx<'_>],
    dust_relay_fee: FeeRate,
    parent: impl Fn(&Txid) -> Option<Tx<'p>>,
) -> Result<(), (usize, Rejection)> {
    let in_package: HashMap<Txid, Tx<'_>> = package.iter().map(|tx| (tx.txid(), *tx)).collect();
    let dust = |txid: Txid| -> Vec<OutPoint> {
        let all = |tx: Tx<'_>| dust_outputs(tx, dust_relay_fee).map(|vout| OutPoint { txid, vout }).collect();
        in_package.get(&txid).map(|tx| all(*tx)).or_else(|| parent(&txid).map(all)).unwrap_or_default()
    };
    for (index, tx) in package.iter().enumerate() {
        let spent: HashSet<OutPoint> = tx.inputs().map(|input| input.prevout).collect();
        let parents: HashSet<Txid> = spent.iter().map(|prevout| prevout.txid).collect();
        if parents.into_iter().any(|txid| dust(txid).iter().any(|outpoint| !spent.contains(outpoint))) {
            let (txid, wtxid) = (tx.txid(), tx.wtxid());
            let message = format!("tx {txid} (wtxid={wtxid}) did not spend parent's ephemeral dust");
            return Err((index, Rejection::with_message(PolicyRule::MissingEphemeralSpends, message)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::Amount;
    use lydian_script::builder::scripts::{p2pkh, p2sh, witness_program};
    use lydian_script::opcodes::OP_RETURN;

    /// The values that Core documents for the default of 3,000 satoshi per kvB.
    #[test]
    fn thresholds_of_the_common_types() {
        let threshold = |script: Vec<u8>| {
            let output = Output { value: Amount(0), script_pubkey: &script };
            dust_threshold(&output, FeeRate::per_kvb(3000))
        };
        assert_eq!(threshold(p2pkh(&[1; 20])), 546);
        assert_eq!(threshold(p2sh(&[1; 20])), 540);
        assert_eq!(threshold(witness_program(0, &[1; 20])), 294);
        assert_eq!(threshold(witness_program(0, &[1; 32])), 330);
        assert_eq!(threshold(witness_program(1, &[1; 32])), 330);
        assert_eq!(threshold(witness_program(1, &[0x4e, 0x73])), 240);
        assert_eq!(threshold(vec![OP_RETURN]), 0, "cannot be spent");
        let at = Output { value: Amount(546), script_pubkey: &p2pkh(&[1; 20]) };
        let below = Output { value: Amount(545), ..at };
        assert!(!is_dust(&at, FeeRate::per_kvb(3000)) && is_dust(&below, FeeRate::per_kvb(3000)));
    }
}
