//! Any transaction with any outputs that it spends: whether it is standard, its dust and its size are what Core's
//! `IsStandardTx`, `ValidateInputsStandardness`, `IsWitnessStandard` and their neighbours say.

use lydian_consensus::{Coin, first_broken};
use lydian_mempool::policy::inputs::{check_inputs_standard, spends_witness_program};
use lydian_mempool::policy::standard::{STANDARD_CHECKS, standard_facts};
use lydian_mempool::policy::witness::check_witness_standard;
use lydian_mempool::policy::{FeeRate, Rejection, Settings, dust_outputs, virtual_size};
use lydian_oracle::generate::{Random, random_case};
use lydian_oracle::{Answer, Judge, Prevout, StandardReport, StandardRequest};
use lydian_primitives::build::{MutOutput, MutTx};
use lydian_primitives::{Amount, Height, Output, Transaction};
use lydian_script::builder::scripts::{multisig, p2pk, p2pkh, p2sh, witness_program};
use lydian_script::{Flags, ScriptBuilder, TxContext};

/// What the judge and we say.
pub(crate) struct Verdict {
    pub(crate) is_standard: bool,
    pub(crate) has_standard_inputs: bool,
}

/// Draws a transaction, and compares. `None` if it is no transaction.
pub(crate) fn check(judge: &mut Judge, random: &mut Random) -> Option<Verdict> {
    let settings = settings(random);
    let case = random_case(random, &[]);
    let (mut tx, mut spent) = (case.tx, case.spent);
    if random.chance(70) {
        // Most cases have no standard form: their scripts are for the interpreter.
        tx.version = 2;
        tx.outputs
            .iter_mut()
            .for_each(|output| *output = MutOutput { value: Amount(9_999), script_pubkey: p2pkh(&[1; 20]) });
        for (input, output) in tx.inputs.iter_mut().zip(&mut spent) {
            output.script_pubkey = script(random);
            input.script_sig.clear();
            if random.chance(50) {
                input.witness.clear();
            }
        }
    }
    for _ in 0..random.below(5) {
        change(&mut tx, &mut spent, random);
    }
    let tx = tx.to_transaction()?;
    compare(judge, &settings, &tx, &spent)
}

fn settings(random: &mut Random) -> Settings {
    Settings {
        dust_relay_fee: FeeRate::per_kvb(random.pick(&[3_000, 0, 1, 100_000])),
        datacarrier_bytes_max: random.pick(&[Some(100_000), None, Some(83), Some(0)]),
        permit_bare_multisig: random.chance(50),
        bytes_per_sigop: random.pick(&[20, 0, 100, u32::MAX]),
        ..Settings::default()
    }
}

/// Bytes in which small ones, which are opcodes of meaning, are frequent.
fn bytes(random: &mut Random, size: usize) -> Vec<u8> {
    (0..size).map(|_| random.byte()).collect()
}

fn key(random: &mut Random) -> Vec<u8> {
    let size = random.pick(&[33, 65, 32, 34]);
    let mut key = bytes(random, size);
    key[0] = random.pick(&[2, 3, 4, 6, 7, 5]);
    key
}

/// A scriptPubKey of some kind.
fn script(random: &mut Random) -> Vec<u8> {
    let filler = random.byte();
    match random.below(10) {
        0 => p2pkh(&[filler; 20]),
        1 => p2sh(&[filler; 20]),
        2 => witness_program(0, &vec![filler; random.pick(&[20, 32, 21])]),
        3 => witness_program(1, &vec![filler; random.pick(&[32, 2, 40])]),
        4 => witness_program(1, &[0x4e, 0x73]),
        5 => witness_program(u8::try_from(random.below(17)).unwrap_or(16), &vec![filler; random.below(42)]),
        6 => {
            let keys: Vec<Vec<u8>> = (0..random.below(5)).map(|_| key(random)).collect();
            multisig(u8::try_from(random.below(5)).unwrap_or(1), &keys.iter().map(Vec::as_slice).collect::<Vec<_>>())
        }
        7 => p2pk(&key(random)),
        8 => {
            let size = random.pick(&[0, 40, 80, 300]);
            let data = bytes(random, size);
            match random.chance(70) {
                true => ScriptBuilder::new().raw(&[0x6a]).push_slice(&data).into_bytes(),
                false => [&[0x6a][..], &data].concat(),
            }
        }
        _ => {
            let size = random.below(40);
            bytes(random, size)
        }
    }
}

/// Changes one thing.
fn change(tx: &mut MutTx, spent: &mut [MutOutput], random: &mut Random) {
    let index = random.below(tx.inputs.len());
    match random.below(9) {
        0 => tx.version = random.pick(&[1, 2, 3, 0, 4, u32::MAX]),
        1 | 2 => {
            let value = random.pick(&[0, 1, 239, 240, 293, 294, 329, 330, 545, 546, 1_000_000, -1]);
            tx.outputs.push(MutOutput { value: Amount(value), script_pubkey: script(random) });
        }
        3 => tx.outputs.truncate(random.below(3)),
        4 if !tx.inputs.is_empty() => spent[index].script_pubkey = script(random),
        5 if !tx.inputs.is_empty() => {
            let size = random.pick(&[0, 5, 1_650, 1_651]);
            let fill = random.pick(&[0, 0x51, 0x61, 0xac]);
            tx.inputs[index].script_sig = vec![fill; size];
        }
        6 if !tx.inputs.is_empty() => {
            // A redeem script, whatever is spent.
            let redeem = script(random);
            tx.inputs[index].script_sig = ScriptBuilder::new().push_slice(&redeem).into_bytes();
            if random.chance(70) {
                spent[index].script_pubkey = p2sh(&lydian_hash::hash160(&redeem));
            }
        }
        7 if !tx.inputs.is_empty() => {
            let count = random.pick(&[0, 1, 2, 3, 101, 102]);
            let size = random.pick(&[0, 1, 80, 81, 33]);
            let fill = random.pick(&[0x50, 0xc0, 0xc1, 0xc2, 0]);
            tx.inputs[index].witness = vec![vec![fill; size]; count];
        }
        8 if !tx.inputs.is_empty() => {
            // A last element at the limit of witness scripts, or of any kind.
            let last = match random.chance(50) {
                true => vec![0x61; random.pick(&[3_600, 3_601])],
                false => script(random),
            };
            tx.inputs[index].witness.push(last);
        }
        _ => tx.lock_time = 0,
    }
}

fn compare(judge: &mut Judge, settings: &Settings, tx: &Transaction, spent: &[MutOutput]) -> Option<Verdict> {
    let view = tx.view();
    // Others are refused before.
    if lydian_consensus::tx::check_transaction(view).is_err() || view.is_coinbase() {
        return None;
    }
    let prevouts: Vec<Prevout<'_>> =
        spent.iter().map(|output| Prevout { value: 0, script_pubkey: &output.script_pubkey }).collect();
    let request = StandardRequest {
        dust_relay_fee: settings.dust_relay_fee.fee_per_kvb(),
        datacarrier_bytes_max: settings.datacarrier_bytes_max,
        permit_bare_multisig: settings.permit_bare_multisig,
        bytes_per_sigop: settings.bytes_per_sigop,
        tx: tx.as_bytes(),
        prevouts: &prevouts,
    };
    let answer = judge.ask(&request).unwrap();
    let Answer::Known(report) = answer else { panic!("{answer:?}: {}", lydian_primitives::to_hex(tx.as_bytes())) };
    let what = format!("{settings:?}, {spent:?}, {}, {report:?}", lydian_primitives::to_hex(tx.as_bytes()));
    let outputs: Vec<Output<'_>> =
        spent.iter().map(|output| Output { value: Amount(0), script_pubkey: &output.script_pubkey }).collect();
    let context = TxContext::new(view, &outputs).unwrap();
    let StandardReport { reason, dust_count, inputs, is_witness_standard, spends_witness_program: spends, vsize } =
        report;
    let ours = first_broken(STANDARD_CHECKS, &standard_facts(view, settings));
    assert_eq!(ours.map(|rule| Rejection::of(rule).reject_reason()), reason, "{what}");
    assert_eq!(dust_outputs(view, settings.dust_relay_fee).count(), dust_count as usize, "{what}");
    let ours = check_inputs_standard(&context).err();
    let texts = ours.map(|rejection| (rejection.reject_reason(), rejection.debug_message));
    assert_eq!(texts, inputs, "{what}");
    if inputs.is_none() {
        assert_eq!(check_witness_standard(&context).is_ok(), is_witness_standard, "{what}");
    }
    assert_eq!(spends_witness_program(&context), spends, "{what}");
    let coins: Vec<Coin> = outputs.iter().map(|output| Coin::new(*output, Height(1), false)).collect();
    let sigops_cost = lydian_consensus::spend::sigops_cost(view, &coins, Flags::STANDARD);
    if settings.bytes_per_sigop < u32::MAX {
        assert_eq!(virtual_size(view.weight(), sigops_cost, settings.bytes_per_sigop), vsize, "{what}");
    }
    Some(Verdict { is_standard: reason.is_none(), has_standard_inputs: inputs.is_none() })
}
