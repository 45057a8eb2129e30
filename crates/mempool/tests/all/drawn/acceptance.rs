//! A package in one pool, and its transactions one by one in another.
//!
//! Whatever is accepted alone is accepted with the package, with the same fees; if all of it is, the two pools are
//! equal. A result says whether a transaction is in the pool, and a refused package leaves the pool as it was.

use super::world::{Fixed, script, witness};
use lydian_mempool::policy::{Settings, check_submitted_package};
use lydian_mempool::pool::{Accepted, PackageResult, Snapshot, TxResult};
use lydian_mempool::{Mempool, SubmitError};
use lydian_oracle::generate::Random;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Transaction, Tx};
use std::sync::Arc;

/// How many transactions of a package were accepted alone, and how many only together with others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) alone: usize,
    pub(crate) together: usize,
}

/// An output with its value.
type Coin = (OutPoint, i64);

/// Draws a pool and a package, and compares.
pub(crate) fn check(world: &Fixed, random: &mut Random) -> Counts {
    let settings = Settings::default();
    let pools = [world.pool(settings.clone()), world.pool(settings)];
    let mut coins: Vec<Coin> = world.coins()[..8].to_vec();
    for _ in 0..random.below(4) {
        let tx = draw(&coins, random);
        let [one, other] = pools.each_ref().map(|pool| pool.submit(Arc::clone(&tx), false));
        assert_eq!(words(&one), words(&other));
        if one.is_ok() {
            coins.extend(outputs(&tx));
        }
    }
    let before = pools[0].snapshot();
    let package = package(&coins, random);
    let alone: Vec<Result<Accepted, SubmitError>> =
        package.iter().map(|tx| pools[1].submit(Arc::clone(tx), false)).collect();
    let result = pools[0].submit_package(package.clone(), None).unwrap();
    let after = pools[0].snapshot();
    let views: Vec<Tx<'_>> = package.iter().map(|tx| tx.view()).collect();
    if let Err(rejection) = check_submitted_package(&views) {
        assert_eq!(result.rejection, Some(rejection));
        assert_eq!(content(&before), content(&after), "a package that was not looked at");
        return Counts::default();
    }
    compare(&package, &alone, &result, &before, &pools)
}

fn compare(
    package: &[Arc<Transaction>],
    alone: &[Result<Accepted, SubmitError>],
    result: &PackageResult,
    before: &Snapshot,
    pools: &[Mempool; 2],
) -> Counts {
    let after = pools[0].snapshot();
    let mut counts = Counts::default();
    for (tx, alone) in package.iter().zip(alone) {
        let view = tx.view();
        let found = after.get(&view.txid()).map(|member| member.entry().wtxid());
        match (result.results.get(&view.wtxid()), alone) {
            (Some(TxResult::Accepted(accepted)), _) => {
                assert_eq!(found, Some(view.wtxid()));
                match alone {
                    Ok(alone) => {
                        counts.alone += 1;
                        assert_eq!(words(&Ok(accepted.clone())), words(&Ok(alone.clone())));
                    }
                    Err(_) => counts.together += 1,
                }
            }
            (_, Ok(alone)) => panic!("accepted alone: {alone:?}, but not in the package: {result:?}"),
            (Some(TxResult::InPool { .. }), Err(_)) => assert_eq!(found, Some(view.wtxid())),
            (Some(TxResult::OtherWitness(other)), Err(_)) => assert_eq!(found, Some(*other)),
            (Some(TxResult::Rejected(_)) | None, Err(_)) => assert_eq!(found, None),
        }
    }
    if alone.iter().all(Result::is_ok) {
        assert!(result.rejection.is_none(), "{result:?}");
    }
    match (counts.alone, counts.together) {
        (0, 0) => assert_eq!(content(before), content(&after), "nothing was accepted"),
        (_, 0) => assert_eq!(content(&after), content(&pools[1].snapshot()), "nothing was accepted together"),
        _ => {}
    }
    counts
}

/// What is compared of an answer.
fn words(answer: &Result<Accepted, SubmitError>) -> String {
    match answer {
        Ok(Accepted { replaced, vsize, fee, effective_feerate, effective_of }) => {
            let replaced: Vec<String> = replaced.iter().map(|entry| entry.txid().to_string()).collect();
            format!("{replaced:?} {vsize} {} {effective_feerate} {effective_of:?}", fee.0)
        }
        Err(error) => error.to_string(),
    }
}

/// The transactions in mining order with their modified fees, and the sums.
fn content(snapshot: &Snapshot) -> (Vec<String>, u64, i64, u64) {
    let member =
        |member: &&lydian_mempool::pool::Member| format!("{} {}", member.entry().wtxid(), member.modified_fee());
    let info = snapshot.info();
    (snapshot.in_mining_order().iter().map(member).collect(), info.vsize, info.fees, info.usage)
}

fn outputs(tx: &Transaction) -> Vec<Coin> {
    let txid = tx.view().txid();
    (0..).zip(tx.view().outputs()).map(|(vout, output)| (OutPoint { txid, vout }, output.value.0)).collect()
}

fn draw(coins: &[Coin], random: &mut Random) -> Arc<Transaction> {
    let from: Vec<Coin> = (0..1 + random.below(2)).map(|_| coins[random.below(coins.len())]).collect();
    spend(&from, random)
}

/// A transaction that spends these coins, more or less.
fn spend(from: &[Coin], random: &mut Random) -> Arc<Transaction> {
    let fee = random.pick(&[1_000, 5_000, 10_000, 1_000_000, 0, 0, 0, 20, 100, -5]);
    let count = 1 + i64::try_from(random.below(3)).unwrap();
    let value = from.iter().map(|(_, value)| value).sum::<i64>() - fee;
    let script_pubkey = script();
    let mut outputs: Vec<MutOutput> =
        (0..count).map(|_| MutOutput { value: Amount(value / count), script_pubkey: script_pubkey.clone() }).collect();
    outputs[0].value.0 += value % count;
    if random.chance(10) {
        outputs.push(MutOutput { value: Amount(i64::from(random.chance(50))), script_pubkey });
    }
    // A wrong witness script makes one of the inputs fail.
    let wrong = if random.chance(10) { random.below(from.len()) } else { from.len() };
    let inputs: Vec<MutInput> = from
        .iter()
        .enumerate()
        .map(|(index, (prevout, _))| MutInput {
            prevout: *prevout,
            script_sig: Vec::new(),
            sequence: u32::MAX - 2,
            witness: if index == wrong { vec![vec![0, 0x51]] } else { witness() },
        })
        .collect();
    let version = random.pick(&[2, 2, 2, 2, 2, 2, 3, 3, 1, 4]);
    Arc::new(MutTx { version, inputs, outputs, lock_time: 0 }.to_transaction().unwrap())
}

/// A child with its parents, more or less.
fn package(coins: &[Coin], random: &mut Random) -> Vec<Arc<Transaction>> {
    let mut package: Vec<Arc<Transaction>> = Vec::new();
    let count = random.pick(&[0, 1, 1, 1, 2, 3, 5]);
    let mut known = coins.to_vec();
    for _ in 0..count {
        let tx = draw(&known, random);
        if random.chance(30) {
            known.extend(outputs(&tx));
        }
        package.push(tx);
    }
    let mut from: Vec<Coin> = package.iter().map(|tx| outputs(tx)[0]).collect();
    if from.is_empty() || random.chance(20) {
        from.push(coins[random.below(coins.len())]);
    }
    if random.chance(90) {
        package.push(spend(&from, random));
    }
    package
}
