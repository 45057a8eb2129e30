//! Bitcoin Core's code as the second opinion: it agrees on a chain with every kind of script, and it finds the fault in
//! blocks that are given to it although they are invalid.

use crate::node::{Node, Place, second_opinion};
use crate::{answers, base, params};
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_chains::presets::maker::{free_tx, output};
use lydian_consensus::{Coin, Params};
use lydian_engine::{ChainTotals, ConnectedBlock, Follower};
use lydian_oracle::{Answer, Judge, Prevout, SpendRequest, or_skip};
use lydian_primitives::build::MutBlock;
use lydian_primitives::{Block, Height, OutPoint, RawBlock};
use lydian_second_opinion::{Counts, Rejection, Report, Spend, Verifier, VerifierError, bitcoin_core};
use std::collections::BTreeMap;

/// The judge, and Core's code in this program if it was built with it.
pub fn verifiers(test: &str) -> Vec<(&'static str, Box<dyn Verifier>)> {
    let mut found: Vec<(&'static str, Box<dyn Verifier>)> = Vec::new();
    if let Some(judge) = or_skip(test, Judge::start()) {
        found.push(("the judge", judged(judge)));
    }
    found.extend(bitcoin_core().map(|core| ("libbitcoinkernel", core)));
    assert_eq!(cfg!(feature = "bitcoinkernel"), bitcoin_core().is_some());
    found
}

/// Asks the judge about all inputs of a transaction.
fn judged(mut judge: Judge) -> Box<dyn Verifier> {
    answers(move |spend, _| {
        let prevout = |output: &lydian_primitives::Output<'_>| (output.value.0, output.script_pubkey.to_vec());
        let spent: Vec<(i64, Vec<u8>)> = spend.spent.iter().map(prevout).collect();
        let prevouts: Vec<Prevout<'_>> =
            spent.iter().map(|(value, script)| Prevout { value: *value, script_pubkey: script }).collect();
        let flags = judge.flag_bits(&spend.flags.names().join(",")).unwrap();
        let failed = |text: &dyn std::fmt::Display| VerifierError(text.to_string());
        match judge.spend(&SpendRequest { flags, tx: spend.tx, prevouts: &prevouts }) {
            Ok(Answer::Known(errors)) => {
                assert_eq!(errors.len(), spend.spent.len());
                let first = errors.iter().position(|error| *error != lydian_oracle::ScriptError::OK);
                Ok(first
                    .map(|input| Rejection { input: Some(input), reason: judge.error_name(errors[input]).to_owned() }))
            }
            Ok(Answer::Undecodable(reason)) => Ok(Some(Rejection { input: None, reason })),
            Ok(Answer::Refused(text)) => Err(failed(&text)),
            Err(error) => Err(failed(&error)),
        }
    })
}

/// Blocks with inputs of every kind, as bytes, from height 1.
fn mix() -> (Vec<Vec<u8>>, BTreeMap<&'static str, u64>) {
    let mut blocks = Vec::new();
    let settings = MixSettings { blocks: 434, full: 1, seed: 3, reuse_per_mille: 20 };
    let stats = mainnet_mix::generate(settings, 2, |block| {
        blocks.push(block.to_vec());
        Ok(())
    });
    blocks.remove(0);
    (blocks, stats.unwrap().inputs_by_kind)
}

fn parsed(block: &MutBlock) -> Block {
    RawBlock::new(block.encode()).parse().unwrap()
}

/// A block with the coins that it spends, as the engine has them.
fn connected(node: &Node, height: u32) -> (Block, Vec<Coin>) {
    let info = node.engine.header_info_at(Height(height)).unwrap();
    let block = node.engine.block(&info).unwrap().unwrap();
    let spent = node.engine.spent_coins(&info, &block).unwrap().unwrap();
    (block, spent)
}

/// What a verifier finds in a block that it is given as if an engine had accepted it.
pub fn opinion(verifier: Box<dyn Verifier>, params: &Params, height: u32, block: &Block, spent: &[Coin]) -> Report {
    let (mut follower, reports) = second_opinion(verifier, params, Place::Tip);
    let below = ChainTotals { transactions: 0, outputs: 0 };
    follower.connect(&ConnectedBlock { height: Height(height), block, spent, below }, None).unwrap();
    follower.monitor().wait_until_idle();
    reports.all().remove(0)
}

/// Core agrees on every input of the mix. Then one byte of each kind of witness and scriptSig is changed in turn, and
/// Core names the input.
#[test]
fn core_agrees_on_every_kind_of_script_and_finds_each_fault() {
    let test = "core_agrees_on_every_kind_of_script_and_finds_each_fault";
    let (blocks, kinds) = mix();
    assert_eq!(kinds.len(), lydian_chains::wallet::Kind::ALL.len());
    assert!(kinds.values().all(|count| *count > 0), "{kinds:?}");
    for (name, verifier) in verifiers(test) {
        let node = Node::open(verifier, &params(), Place::Tip);
        blocks.iter().for_each(|block| {
            node.accept_bytes(block);
            node.monitor.wait_until_idle();
        });
        let tip = u64::try_from(blocks.len()).unwrap();
        assert_eq!(node.monitor.counts(), Counts { tip, ..Counts::default() }, "{name}: {:?}", node.reports().last());
        let height = u32::try_from(blocks.len()).unwrap();
        let (block, spent) = connected(&node, height);
        let faults = faults(&block, &spent);
        assert!(faults.len() >= 7, "{}", faults.len());
        for (fault, tx, input) in faults {
            let (_, verifier) = verifiers(test).into_iter().find(|(other, _)| *other == name).unwrap();
            let report = opinion(verifier, &params(), height, &parsed(&fault), &spent);
            let Report::Rejected { txid, rejection, .. } = &report else { panic!("{name}: {report:?}") };
            assert_eq!((*txid, rejection.input), (fault.txs[tx].txid(), Some(input)), "{name}: {rejection:?}");
        }
    }
}

/// For the first input of each form of output script: the block with one byte of that input's signature changed, the
/// transaction and the input. Only the first input of a transaction is taken, so that no other input fails before it.
fn faults(block: &Block, spent: &[Coin]) -> Vec<(MutBlock, usize, usize)> {
    let whole = MutBlock::from(block);
    let mut seen = Vec::new();
    let (mut faults, mut next) = (Vec::new(), 0);
    for (index, tx) in whole.txs.iter().enumerate().skip(1) {
        let coin = &spent[next];
        next += tx.inputs.len();
        let input = &tx.inputs[0];
        let script = &coin.script_pubkey;
        let form = (script.len(), script[0], input.witness.len(), input.script_sig.is_empty());
        if seen.contains(&form) {
            continue;
        }
        seen.push(form);
        let mut fault = whole.clone();
        let changed = &mut fault.txs[index].inputs[0];
        // Byte 10 is inside r of every signature, whether in DER after a push or in 64 bytes.
        let signature = changed.witness.iter_mut().find(|item| item.len() >= 64).unwrap_or(&mut changed.script_sig);
        signature[10] ^= 1;
        faults.push((fault, index, 0));
    }
    faults
}

/// The flags are those of the block: an extra element of OP_CHECKMULTISIG that is not empty is valid below the height
/// of BIP-0147, and invalid from it on.
#[test]
fn the_flags_depend_on_the_height() {
    let late = params().with_activation_height("segwit@1000").unwrap();
    let (mut maker, blocks) = base();
    // OP_0 OP_0 OP_CHECKMULTISIG: no keys, no signatures.
    let script = [0, 0, 0xae];
    let coin = maker.spendable()[0];
    let funding = free_tx(&[coin], vec![output(1_000, &script)]);
    let prevout = OutPoint { txid: funding.txid(), vout: 0 };
    let block = maker.block(vec![funding]);
    maker.advance(&block);
    let mut spend =
        free_tx(&[lydian_chains::presets::maker::FreeCoin { outpoint: prevout, ..coin }], vec![output(900, &[0x51])]);
    spend.inputs[0].script_sig = vec![0x51];
    let last = maker.block(vec![spend]);
    for (name, verifier) in verifiers("the_flags_depend_on_the_height") {
        let node = Node::open(verifier, &late, Place::Tip);
        blocks.iter().for_each(|block| node.accept(block));
        node.accept(&block);
        node.accept(&last);
        node.monitor.wait_until_idle();
        assert_eq!(node.monitor.counts(), Counts { tip: 103, ..Counts::default() }, "{name}");
        let (_, spent) = connected(&node, 103);
        let (_, verifier) =
            verifiers("the_flags_depend_on_the_height").into_iter().find(|(other, _)| *other == name).unwrap();
        let report = opinion(verifier, &params(), 103, &parsed(&last), &spent);
        let Report::Rejected { txid, rejection, .. } = &report else { panic!("{name}: {report:?}") };
        assert_eq!((*txid, rejection.input), (last.txs[1].txid(), Some(0)), "{name}");
        assert!(name != "the judge" || rejection.reason == "SIG_NULLDUMMY", "{rejection:?}");
    }
}

/// A transaction that Core cannot decode is a disagreement too.
#[test]
fn what_core_cannot_decode_is_rejected() {
    for (name, mut verifier) in verifiers("what_core_cannot_decode_is_rejected") {
        let spend = Spend { tx: &[1, 0, 0], spent: &[], flags: lydian_script::Flags::NONE };
        let rejection = verifier.verify(&spend, &|| false).unwrap().unwrap();
        assert_eq!(rejection.input, None, "{name}: {rejection:?}");
    }
}

/// The judge and the crate that is linked into the program have the same source of Core.
#[test]
fn the_judge_and_the_program_have_one_version_of_core() {
    let lock = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    #[allow(clippy::disallowed_methods, reason = "a test reads the checkout")]
    let lock = std::fs::read_to_string(lock).unwrap();
    let entry = format!("name = \"libbitcoinkernel-sys\"\nversion = \"{}\"\n", lydian_oracle::build::VERSION);
    assert!(lock.contains(&entry), "Cargo.lock has another version than {}", lydian_oracle::build::VERSION);
}
