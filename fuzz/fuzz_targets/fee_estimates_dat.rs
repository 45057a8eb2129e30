//! `fee_estimates.dat` with any content: an estimator, or an error of one sentence in Core's words.
//!
//! Whatever was read answers every question, learns from transactions and blocks, and is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_fees::{Estimator, Event, Horizon, Mode, TxInfo};
use lydian_primitives::Txid;

fn ask(estimator: &Estimator) {
    for target in [0, 1, 2, 12, 13, 48, 49, 500, 1_008, 1_009, u32::MAX] {
        for mode in [Mode::Economical, Mode::Conservative] {
            let found = estimator.smart(target, mode);
            assert!(found.target <= target.max(2) && found.feerate.is_none_or(|feerate| feerate > 0));
        }
        for horizon in Horizon::ALL {
            let is_tracked = (1..=estimator.highest_target(horizon)).contains(&target);
            assert_eq!(estimator.raw(target, 0.95, horizon).is_some(), is_tracked);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut estimator = match Estimator::decode(bytes) {
        Ok(estimator) => estimator,
        Err(error) => return assert!(!error.to_string().contains('\n')),
    };
    ask(&estimator);
    // The height of the file is that of its second number.
    let height = u32::from_le_bytes(bytes[4..8].try_into().expect("it was read"));
    let tx = |number, feerate| TxInfo { txid: Txid([number; 32]), feerate, height };
    let txs = [tx(1, 0), tx(2, 1_000), tx(3, i64::MAX), tx(4, -5)];
    for tx in txs {
        estimator.apply(&Event::Added { tx, counts: true });
    }
    estimator.apply(&Event::Removed(txs[0].txid));
    estimator.apply(&Event::Block { height: height.saturating_add(1), txs: txs[..2].to_vec() });
    estimator.apply(&Event::Block { height: u32::MAX, txs: txs.to_vec() });
    ask(&estimator);
    estimator.flush_unconfirmed();
    let written = estimator.encode();
    let again = Estimator::decode(&written).expect("what is written can be read");
    // The range of blocks depends on what was seen since the start, so only the rest is the same.
    assert_eq!(again.encode()[16..], written[16..]);
});
