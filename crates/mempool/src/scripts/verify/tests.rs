use super::*;
use lydian_curve::Reference;
use lydian_oracle::generate::{Case, Random, random_case};
use lydian_primitives::{Amount, Height};
use lydian_script::verify_input;

pub(in crate::scripts) fn spend_of(case: &Case) -> Option<Spend> {
    let coin = |output: &lydian_primitives::build::MutOutput| Coin {
        value: Amount(output.value.0),
        script_pubkey: output.script_pubkey.clone().into(),
        height: Height(1),
        is_coinbase: false,
    };
    Spend::new(Arc::new(case.tx.to_transaction()?), case.spent.iter().map(coin).collect())
}

/// The first failure, one input after the other in exact mode: the specification.
fn plainly(spend: &Spend, flags: Flags) -> Result<(), InputFailure> {
    let outputs = spend.outputs();
    let context = spend.context(&outputs);
    (0..outputs.len())
        .try_for_each(|input| verify_input(&context, input, flags).map_err(|error| InputFailure { input, error }))
}

/// In batches of any size, with every engine, each transaction gets the verdict that it gets alone.
#[test]
fn batches_decide_like_one_transaction_at_a_time() {
    let mut random = Random::new(5, "batches");
    let lanes = lydian_curve::choose("auto").unwrap().engine;
    let (mut valid, mut invalid) = (0, 0);
    for round in 0..120 {
        let spends: Vec<Spend> =
            (0..1 + random.below(40)).filter_map(|_| spend_of(&random_case(&mut random, &[]))).collect();
        let flags = if round % 3 == 0 { Flags::MANDATORY } else { Flags::STANDARD };
        let expected: Vec<_> = spends.iter().map(|spend| plainly(spend, flags)).collect();
        let all: Vec<&Spend> = spends.iter().collect();
        let mut counts = CheckCounts::default();
        let engine: &dyn Engine = if round % 2 == 0 { &Reference } else { &*lanes };
        assert_eq!(verify_many(&all, flags, engine, &mut counts), expected, "round {round}");
        valid += expected.iter().filter(|verdict| verdict.is_ok()).count();
        invalid += expected.iter().filter(|verdict| verdict.is_err()).count();
    }
    assert!(valid > 200 && invalid > 200, "{valid} valid, {invalid} invalid");
}

/// What succeeds under some flags does so under fewer: the ground of the cache.
#[test]
fn a_verdict_holds_under_fewer_flags() {
    let mut random = Random::new(6, "flags");
    let mut held = 0;
    for _ in 0..4_000 {
        let Some(spend) = spend_of(&random_case(&mut random, &[])) else { continue };
        if plainly(&spend, Flags::STANDARD).is_err() {
            continue;
        }
        held += 1;
        for (name, flag) in Flags::ALL {
            let fewer = Flags::STANDARD.without(*flag);
            if fewer.is_legal() {
                assert_eq!(plainly(&spend, fewer), Ok(()), "without {name}: {spend:?}");
            }
        }
        for flags in [Flags::MANDATORY, Flags::P2SH, Flags::NONE] {
            assert_eq!(plainly(&spend, flags), Ok(()), "{flags}: {spend:?}");
        }
    }
    assert!(held > 300, "{held}");
}
