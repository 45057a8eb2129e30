//! Four thousand transactions of 2024 from the shared data, with Core's verdict.
//!
//! As they are, Core on the main chain decides whether they are standard by themselves: it has none of their coins.
//! Then their scripts and witnesses are put on a regtest chain whose coins have the scripts that they spend. There Core
//! and we go through inputs and witnesses up to the signatures, which sign something else. So do random spends.

use super::duel::{Counts, ask, compare, count};
use super::locate::{read, report, shared};
use super::model::Model;
use super::world::{World, open_lock, output};
use lydian_consensus::{Ancestor, Chain, Coin, HeaderView, Params};
use lydian_mempool::policy::steps::{check_alone, check_coins, check_payment};
use lydian_mempool::policy::{BrokenRule, NextBlock, PolicyRule, Rejection, Settings};
use lydian_oracle::generate::{Random, random_case};
use lydian_oracle::{Daemon, or_skip};
use lydian_primitives::build::MutTx;
use lydian_primitives::{Amount, Height, OutPoint, Transaction, hex};
use serde_json::Value;

/// A transaction and the coins that it spends.
struct Real {
    tx: Transaction,
    coins: Vec<Coin>,
}

fn transactions() -> Option<Vec<Real>> {
    let text = String::from_utf8(read(&shared("txs/mempool_2024.ndjson.zst")?)).unwrap();
    let real = |line: &str| {
        let json: Value = serde_json::from_str(line).unwrap();
        let bytes = |value: &Value| hex(value.as_str().unwrap()).unwrap();
        let coin = |spent: &Value| Coin {
            value: Amount(spent[0].as_i64().unwrap()),
            script_pubkey: bytes(&spent[1]).into(),
            height: Height(0),
            is_coinbase: false,
        };
        let coins = json["prevouts"].as_array().unwrap().iter().map(coin).collect();
        Real { tx: Transaction::parse(bytes(&json["hex"])).unwrap(), coins }
    };
    Some(text.lines().map(real).collect())
}

struct Genesis(Params);

impl HeaderView for Genesis {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        let header = *self.0.genesis_block().parse().unwrap().header();
        (height == Height(0)).then(|| Ancestor { hash: header.hash(), header })
    }
}

#[test]
fn transactions_of_2024_alone() {
    let Some(all) = transactions() else { return };
    let Some(mut daemon) = or_skip("transactions_of_2024_alone", Daemon::start_on("main", &[])) else { return };
    let genesis = Genesis(Params::new(Chain::Main));
    let next = NextBlock { height: Height(1), headers: &genesis };
    let mut counts = Counts::new();
    for real in &all {
        let view = real.tx.view();
        let ours =
            check_alone(view, &next, &Settings::default()).and_then(|()| Err(Rejection::of(PolicyRule::MissingInputs)));
        compare(&view.txid().to_string(), &ours, &ask(&mut daemon, &[&real.tx])[0]);
        count(&mut counts, &ours);
    }
    report(&format!("policy: transactions of 2024 alone, {counts:?}"));
    assert_eq!(counts.values().sum::<usize>(), 4000);
}

/// A chain so high and late that every lock has passed.
struct Late;

impl HeaderView for Late {
    fn ancestor(&self, _: Height) -> Option<Ancestor> {
        None
    }

    fn median_time_past(&self, height: Height) -> Option<i64> {
        Some(i64::from(height.0) * 2000)
    }
}

/// With their own coins and values. They come from mempools of 2024, whose limits are today's or stricter.
#[test]
fn transactions_of_2024_are_standard() {
    let Some(all) = transactions() else { return };
    let next = NextBlock { height: Height(1_000_000), headers: &Late };
    let settings = Settings::default();
    for Real { tx, coins } in &all {
        let view = tx.view();
        let checked = check_alone(view, &next, &settings).and_then(|()| check_coins(view, coins, &next, &settings));
        let paid = checked.and_then(|spending| check_payment(view, &spending, spending.base_fee, &settings));
        assert_eq!(paid, Ok(()), "{}", view.txid());
    }
}

/// Value of each coin, and of each output: enough not to be dust.
const COIN: i64 = 1_000_000;
const OUTPUT: i64 = 1000;
/// Coins that one coinbase pays for.
const COINS: usize = 4500;

#[test]
fn transactions_of_2024_on_regtest() {
    let Some(all) = transactions() else { return };
    let scripts = |coins: Vec<Coin>| coins.into_iter().map(|coin| coin.script_pubkey.into()).collect();
    let all: Vec<_> = all.into_iter().map(|real| (MutTx::from(real.tx.view()), scripts(real.coins))).collect();
    let Some(counts) = transplant("transactions_of_2024_on_regtest", &all, &[], Settings::default()) else { return };
    report(&format!("policy: transactions of 2024 on regtest, {counts:?}"));
    assert!(counts[&BrokenRule::Policy(PolicyRule::ScriptVerify)] > 3500);
}

/// Random spends of every kind of script, of which most are valid where they come from, and damaged ones.
#[test]
fn wild_spends_on_regtest() {
    let seed = std::env::var("LYDIAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = Random::new(seed, "wild");
    let spends = |random: &mut Random| -> Vec<(MutTx, Vec<Vec<u8>>)> {
        let case = |_| {
            let mut case = random_case(random, &[]);
            // Only the inputs are wild.
            (case.tx.version, case.tx.outputs) = (2, vec![output(OUTPUT, open_lock().script_pubkey())]);
            (case.tx, case.spent.into_iter().map(|output| output.script_pubkey).collect())
        };
        (0..WILD).map(case).collect()
    };
    let nonstandard = Settings { require_standard: false, ..Settings::default() };
    for (options, settings) in [(&[][..], Settings::default()), (&["-acceptnonstdtxn=1"], nonstandard)] {
        let all = spends(&mut random);
        let Some(counts) = transplant("wild_spends_on_regtest", &all, options, settings) else { return };
        report(&format!("policy: wild spends with {options:?}, {counts:?}"));
        assert!(counts.values().sum::<usize>() > WILD / 2);
    }
}

/// Random spends under each set of options.
const WILD: usize = 2000;

/// Puts transactions on a regtest chain whose coins have the scripts that they spend, and compares the verdicts.
fn transplant(test: &str, all: &[(MutTx, Vec<Vec<u8>>)], options: &[&str], settings: Settings) -> Option<Counts> {
    let scripts: Vec<&Vec<u8>> = all.iter().flat_map(|(_, spent)| spent).collect();
    let list = |scripts: &[&Vec<u8>]| scripts.iter().map(|script| output(COIN, script.to_vec())).collect();
    let world = World::with_outputs(scripts.chunks(COINS).map(list).collect());
    let mut daemon = world.daemon(test, options)?;
    let outpoints = world.splits.iter().flat_map(|split| {
        let txid = split.txid();
        (0..).zip(&split.outputs).map(move |(vout, _)| OutPoint { txid, vout })
    });
    let (mut outpoints, mut counts) = (outpoints.collect::<Vec<_>>().into_iter(), Counts::new());
    let model = Model::new(&world, settings);
    for (index, (original, _)) in all.iter().enumerate() {
        let mut tx = original.clone();
        tx.lock_time = 0;
        for input in &mut tx.inputs {
            (input.prevout, input.sequence) = (outpoints.next().unwrap(), u32::MAX);
        }
        tx.outputs.iter_mut().for_each(|output| output.value = Amount(OUTPUT));
        let Some(tx) = tx.to_transaction() else { continue };
        let ours = model.check(tx.view());
        compare(&format!("{test}, {index}, {}", original.txid()), &ours, &ask(&mut daemon, &[&tx])[0]);
        count(&mut counts, &ours);
    }
    assert_eq!(outpoints.len(), 0, "each input has its coin");
    Some(counts)
}
