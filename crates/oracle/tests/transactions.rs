//! Random transactions, intact and damaged, are given to Core and to us.
//!
//! Compared are whether they parse, their ids, sizes, signature operations, and the reject reason of
//! `CheckTransaction`. `LYDIAN_SEED` sets the seed.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking and prints its counts")]

use lydian_consensus::Coin;
use lydian_consensus::spend::sigops_cost;
use lydian_consensus::tx::check_transaction;
use lydian_oracle::generate::Random;
use lydian_oracle::{Answer, Judge, Prevout, TxRequest, or_skip};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Height, OutPoint, Transaction, Txid};
use lydian_script::{Flags, ScriptBuilder, transaction_legacy_sigop_count};
use std::collections::BTreeMap;

const CASES: usize = 30_000;

/// Returns sigops, pushes of every form, some of them truncated, and random bytes.
fn script(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..random.below(20) {
        match random.below(6) {
            0 => out.push(random.pick(&[0xac, 0xad, 0xae, 0xaf])),
            1 => out.extend([0x4f + random.byte() % 20, random.pick(&[0xae, 0xaf])]),
            2 => {
                let size = random.below(6);
                let data = random.bytes(size);
                out.extend(ScriptBuilder::new().push_slice(&data).into_bytes());
            }
            3 => {
                out.push(random.pick(&[0x4c, 0x4d, 0x4e]));
                let size = random.below(5);
                out.extend(random.bytes(size));
            }
            4 => out.push(random.byte() % 0x60),
            _ => out.push(random.byte()),
        }
    }
    out
}

fn witness_program(random: &mut Random) -> Vec<u8> {
    let (version, size) = (random.pick(&[0, 0, 0, 1, 16]), random.pick(&[20, 32, 2, 40, 33]));
    let program = random.bytes(size);
    ScriptBuilder::new().push_int(version).push_slice(&program).into_bytes()
}

fn spent_script(random: &mut Random) -> Vec<u8> {
    match random.below(4) {
        0 => script(random),
        1 => witness_program(random),
        _ => [vec![0xa9, 0x14], random.bytes(20), vec![0x87]].concat(),
    }
}

fn script_sig(random: &mut Random) -> Vec<u8> {
    match random.below(4) {
        0 => ScriptBuilder::new().push_slice(&witness_program(random)).into_bytes(),
        1 => ScriptBuilder::new().push_slice(&script(random)).into_bytes(),
        2 => {
            let size = random.pick(&[1, 2, 100, 101, 5]);
            random.bytes(size)
        }
        _ => script(random),
    }
}

fn transaction(random: &mut Random) -> MutTx {
    let max = Amount::MAX_MONEY.0;
    let has_witness = random.below(2) == 0;
    let input = |random: &mut Random| MutInput {
        prevout: match random.below(5) {
            0 => OutPoint::NULL,
            _ => OutPoint { txid: Txid([random.pick(&[0, 1, 2]); 32]), vout: random.pick(&[0, 1, u32::MAX]) },
        },
        script_sig: script_sig(random),
        sequence: u32::MAX,
        witness: (0..if has_witness { random.below(4) } else { 0 }).map(|_| script(random)).collect(),
    };
    let output = |random: &mut Random| MutOutput {
        value: Amount(random.pick(&[0, 1, max, max - 1, max + 1, -1, i64::MIN, i64::MAX, 5, 5, 5, 5])),
        script_pubkey: script(random),
    };
    MutTx {
        version: u32::from(random.byte()),
        inputs: (0..random.below(4)).map(|_| input(random)).collect(),
        outputs: (0..random.below(4)).map(|_| output(random)).collect(),
        lock_time: u32::from(random.byte()),
    }
}

/// Changes bytes, mostly at counts and flags.
fn damage(random: &mut Random, raw: &mut Vec<u8>) {
    let head = raw.len().min(60);
    match random.below(5) {
        0 => {
            let at = random.below(raw.len());
            raw[at] ^= 1 << random.below(8);
        }
        1 => {
            let at = random.below(head);
            raw[at] = random.pick(&[0, 1, 2, 3, 0xfd, 0xfe, 0xff]);
        }
        2 => raw.insert(random.below(raw.len()), random.byte()),
        3 => drop(raw.remove(random.below(raw.len()))),
        _ => {
            let at = random.below(head);
            let longer: [&[u8]; 3] = [&[0xfd, raw[at], 0], &[0xfe, raw[at], 0, 0, 0], &[0xfe, 1, 0, 0, 2]];
            let longer = random.pick(&longer).to_vec();
            raw.splice(at..=at, longer);
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    undecodable: usize,
    accepted: usize,
    reasons: BTreeMap<String, usize>,
}

fn compare(judge: &mut Judge, random: &mut Random, raw: &[u8], counts: &mut Counts) {
    let flags = random.pick(&[Flags::NONE, Flags::P2SH, Flags::P2SH.union(Flags::WITNESS)]);
    let parsed = Transaction::parse(raw);
    let input_count = parsed.as_ref().map_or(0, |tx| tx.view().input_count());
    // The same outpoint has the same script, as in any UTXO set.
    let mut known = BTreeMap::new();
    let mut script_of = |index: usize| {
        let outpoint = parsed.as_ref().unwrap().view().input(index).prevout;
        known.entry(outpoint).or_insert_with(|| spent_script(random)).clone()
    };
    let scripts: Vec<Vec<u8>> = (0..input_count).map(&mut script_of).collect();
    let prevouts: Vec<_> = scripts.iter().map(|script| Prevout { value: 5, script_pubkey: script }).collect();
    let answer = judge.tx(&TxRequest { flags: flags.0, tx: raw, prevouts: Some(&prevouts) }).unwrap();
    match (answer, parsed) {
        (Answer::Undecodable(_), Err(_)) => counts.undecodable += 1,
        (Answer::Known(core), Ok(tx)) => {
            let view = tx.view();
            let coin = |script: &Vec<u8>| Coin {
                value: Amount(5),
                script_pubkey: script.clone().into(),
                height: Height(1),
                is_coinbase: false,
            };
            let coins: Vec<_> = if view.is_coinbase() { Vec::new() } else { scripts.iter().map(coin).collect() };
            let reason = check_transaction(view).err().map(|rule| rule.info().reject_reason.to_owned());
            assert_eq!((view.txid().0, view.wtxid().0), (core.txid, core.wtxid), "{raw:02x?}");
            let sizes = [view.base_size(), view.total_size(), transaction_legacy_sigop_count(view)];
            let of_core = [core.base_size, core.total_size, core.legacy_sigops];
            assert_eq!(sizes.map(|size| u32::try_from(size).unwrap()), of_core, "{raw:02x?}");
            let cost = i64::try_from(sigops_cost(view, &coins, flags)).unwrap();
            assert_eq!(Some(cost), core.sigop_cost, "{raw:02x?} {flags}");
            assert_eq!(reason, core.reject_reason, "{raw:02x?}");
            match reason {
                Some(reason) => *counts.reasons.entry(reason).or_default() += 1,
                None => counts.accepted += 1,
            }
        }
        (answer, parsed) => panic!("Core: {answer:?}, we: {:?}, of {raw:02x?}", parsed.err()),
    }
}

/// checklist: 1, 2, 8, 11, 12, 55
#[test]
fn random_transactions_before_core() {
    let Some(mut judge) = or_skip("random_transactions_before_core", Judge::start()) else { return };
    let seed = std::env::var("LYDIAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = Random::new(seed, "transactions");
    let mut counts = Counts::default();
    for _ in 0..CASES {
        let mut raw = transaction(&mut random).encode();
        for _ in 0..random.pick(&[0, 0, 1, 1, 2, 5]) {
            damage(&mut random, &mut raw);
        }
        compare(&mut judge, &mut random, &raw, &mut counts);
    }
    eprintln!("seed {seed}: {CASES} transactions, {counts:?}");
    assert!(counts.undecodable > CASES / 10 && counts.accepted > CASES / 100, "{counts:?}");
    // Every reason except bad-txns-oversize, which needs a megabyte.
    assert_eq!(counts.reasons.len(), 8, "{counts:?}");
}
