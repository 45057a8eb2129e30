//! Core's `tx_valid.json` and `tx_invalid.json` (transaction_tests.cpp): all inputs of a transaction, with flags that
//! are maximal for the valid ones and minimal for the invalid ones.

use crate::common::lanes::{Batch, Decided};
use crate::common::*;
use lydian_primitives::{Transaction, Txid};
use lydian_script::{Flags, ScriptError, TxContext};
use serde_json::Value;
use std::collections::BTreeMap;

/// Random flag sets tried for each transaction, besides each single flag (Core tries one for each flag).
const RANDOM_FLAG_SETS: usize = 21;

/// A transaction and the outputs it spends.
struct TxTest {
    tx: Transaction,
    spent: Vec<(i64, Vec<u8>)>,
}

impl TxTest {
    fn read(entry: &Value) -> TxTest {
        let tx = Transaction::parse(bytes(&entry[1])).unwrap();
        let mut prevouts = BTreeMap::new();
        for prevout in list(&entry[0]) {
            let txid: Txid = text(&prevout[0]).parse().unwrap();
            let vout = i32::try_from(prevout[1].as_i64().unwrap()).unwrap().cast_unsigned();
            let value = prevout.get(3).map_or(0, |value| value.as_i64().unwrap());
            prevouts.insert((txid, vout), (value, parse_script(text(&prevout[2]))));
        }
        let spent = tx.view().inputs().map(|input| prevouts[&(input.prevout.txid, input.prevout.vout)].clone());
        TxTest { spent: spent.collect(), tx }
    }

    /// The first failure of an input, as in Core's `CheckTxScripts`.
    fn verify(&self, flags: Flags) -> Result<(), ScriptError> {
        let spent = outputs(&self.spent);
        let context = TxContext::new(self.tx.view(), &spent).unwrap();
        (0..self.spent.len()).try_for_each(|input| verify(&context, input, flags))
    }

    /// Like `verify`, and also settles each input together with those of other transactions.
    fn verify_in(&self, flags: Flags, batch: &mut Batch) -> Result<(), ScriptError> {
        let spent = outputs(&self.spent);
        let context = TxContext::new(self.tx.view(), &spent).unwrap();
        let results: Vec<_> = (0..self.spent.len()).map(|input| batch.verify(&context, input, flags)).collect();
        results.into_iter().collect()
    }
}

/// Core's `ExcludeIndividualFlags`: the legal sets with one flag less.
fn one_flag_less(flags: Flags) -> impl Iterator<Item = Flags> {
    Flags::ALL.iter().map(move |(_, flag)| trim_flags(flags.without(*flag))).filter(move |less| *less != flags)
}

/// The entries that are tests; the others are comments.
fn entries(file: &Value) -> impl Iterator<Item = &Value> {
    list(file).iter().filter(|entry| entry[0].is_array())
}

/// checklist: 36, 37, 38, 40, 41, 47
#[test]
fn core_tx_valid_json() {
    let mut count = 0;
    let (mut seeded, mut batch) = (Seeded::new(1), Batch::default());
    for entry in entries(&testdata_json("vectors/core/tx_valid.json")) {
        let test = TxTest::read(entry);
        let excluded = flags(&entry[2]);
        let maximal = all_flags().without(excluded);
        assert!(maximal.is_legal(), "{entry}");
        assert_eq!(test.verify_in(maximal, &mut batch), Ok(()), "{entry}");
        let singles = Flags::ALL.iter().map(|(_, flag)| *flag);
        let random: Vec<_> = (0..RANDOM_FLAG_SETS).map(|_| seeded.flags()).collect();
        for less in singles.chain(random) {
            let fewer = trim_flags(maximal.without(less));
            assert_eq!(test.verify(fewer), Ok(()), "under {fewer}: {entry}");
        }
        for less_excluded in one_flag_less(excluded) {
            assert!(test.verify(all_flags().without(less_excluded)).is_err(), "only {less_excluded} excluded: {entry}");
        }
        count += 1;
    }
    report(&format!("tx_valid: {count}"));
    assert_eq!(count, 121);
    assert_eq!(batch.settle("tx_valid"), Decided { inputs: 169, held: 169, lanes: 101, reference: 6 });
}

/// The nine entries marked BADTX break transaction rules, not script rules; the consensus layer tests them.
///
/// checklist: 36, 37, 38, 40, 41, 47
#[test]
fn core_tx_invalid_json() {
    let (mut count, mut bad_transactions) = (0, 0);
    let (mut seeded, mut batch) = (Seeded::new(2), Batch::default());
    for entry in entries(&testdata_json("vectors/core/tx_invalid.json")) {
        if entry[2] == "BADTX" {
            bad_transactions += 1;
            continue;
        }
        let test = TxTest::read(entry);
        let minimal = flags(&entry[2]);
        assert!(minimal.is_legal(), "{entry}");
        assert!(test.verify_in(minimal, &mut batch).is_err(), "{entry}");
        let singles = Flags::ALL.iter().map(|(_, flag)| *flag);
        let random: Vec<_> = (0..RANDOM_FLAG_SETS).map(|_| seeded.flags()).collect();
        for more in singles.chain(random) {
            let more = fill_flags(minimal | more);
            assert!(test.verify(more).is_err(), "under {more}: {entry}");
        }
        for fewer in one_flag_less(minimal) {
            assert_eq!(test.verify(fewer), Ok(()), "under {fewer}: {entry}");
        }
        count += 1;
    }
    report(&format!("tx_invalid: {count}, and {bad_transactions} that break transaction rules"));
    assert_eq!((count, bad_transactions), (84, 9));
    assert_eq!(batch.settle("tx_invalid"), Decided { inputs: 31, held: 14, lanes: 20, reference: 1 });
}
