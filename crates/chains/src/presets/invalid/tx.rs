//! Faults of transactions alone: Core's `CheckTransaction`.

use super::Bench;
use crate::error::ChainsError;
use crate::presets::maker::{TRUE_SCRIPT, free_input, output};
use lydian_primitives::build::MutTx;
use lydian_primitives::{Amount, OutPoint};

pub(super) fn cases(bench: &mut Bench) -> Result<(), ChainsError> {
    let max = Amount::MAX_MONEY.0;
    let plain = bench.plain_tx();
    let with = |change: &dyn Fn(&mut MutTx)| {
        let mut tx = plain.clone();
        change(&mut tx);
        tx
    };
    let broken = [
        ("no-inputs", "bad-txns-vin-empty", MutTx { version: 2, ..MutTx::default() }),
        ("no-outputs", "bad-txns-vout-empty", with(&|tx| tx.outputs.clear())),
        ("output-of-minus-1", "bad-txns-vout-negative", with(&|tx| tx.outputs[0].value = Amount(-1))),
        ("output-of-the-least-number", "bad-txns-vout-negative", with(&|tx| tx.outputs[0].value = Amount(i64::MIN))),
        ("output-above-all-money", "bad-txns-vout-toolarge", with(&|tx| tx.outputs[0].value = Amount(max + 1))),
        ("output-of-the-largest-number", "bad-txns-vout-toolarge", with(&|tx| tx.outputs[0].value = Amount(i64::MAX))),
        (
            "outputs-together-above-all-money",
            "bad-txns-txouttotal-toolarge",
            with(&|tx| tx.outputs = vec![output(max, &TRUE_SCRIPT), output(1, &TRUE_SCRIPT)]),
        ),
        (
            // The overflow of 2010: two outputs whose sum exceeds 2^63.
            "outputs-together-overflow",
            "bad-txns-vout-toolarge",
            with(&|tx| {
                tx.outputs = vec![output(i64::MAX / 2 + 1, &TRUE_SCRIPT), output(i64::MAX / 2 + 1, &TRUE_SCRIPT)]
            }),
        ),
        ("same-input-twice", "bad-txns-inputs-duplicate", with(&|tx| tx.inputs.push(tx.inputs[0].clone()))),
        (
            "same-input-first-and-last",
            "bad-txns-inputs-duplicate",
            with(&|tx| {
                tx.inputs.push(free_input(OutPoint { vout: tx.inputs[0].prevout.vout + 1, ..tx.inputs[0].prevout }));
                tx.inputs.push(tx.inputs[0].clone());
            }),
        ),
        ("null-prevout", "bad-txns-prevout-null", with(&|tx| tx.inputs.push(free_input(OutPoint::NULL)))),
    ];
    for (name, rule, tx) in broken {
        bench.broken(name, rule, rule, vec![tx], |_| ())?;
    }
    Ok(())
}
