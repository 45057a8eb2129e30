//! The second opinion on chains that a real engine validates: verifiers that lie, fail, panic or wait; Bitcoin Core's
//! code, as the judge process and (with the feature) linked into this test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "the modules of one test")]

mod judged;
#[cfg(feature = "bitcoinkernel")]
mod linked;
mod node;
mod real;

use lydian_chains::presets::maker::{Maker, free_tx, output};
use lydian_consensus::{Chain, Params};
use lydian_primitives::build::{MutBlock, MutTx};
use lydian_second_opinion::limits::TIP_BYTES_MAX;
use lydian_second_opinion::{Counts, Liar, Rejection, Report, Spend, Verifier, VerifierError};
use node::{Node, Place};
use std::sync::{Arc, Condvar, Mutex};

fn params() -> Params {
    Params::new(Chain::Regtest)
}

/// A chain on which two coinbases can be spent, and the blocks up to its tip.
fn base() -> (Maker, Vec<MutBlock>) {
    let (mut maker, mut blocks) = (Maker::new(), Vec::new());
    let keep = |_: &Maker, block: &MutBlock| -> Result<(), ()> {
        blocks.push(block.clone());
        Ok(())
    };
    maker.grow(101, keep).unwrap();
    (maker, blocks)
}

/// Two transactions, of which the second spends both outputs of the first.
fn spends(maker: &Maker) -> Vec<MutTx> {
    let coin = maker.spendable()[0];
    let first = free_tx(&[coin], vec![output(coin.value / 2, &[0x51]), output(coin.value / 4, &[0x51])]);
    let mut second = free_tx(&[coin, coin], vec![output(coin.value / 2, &[0x51])]);
    for (vout, input) in (0..).zip(&mut second.inputs) {
        input.prevout = lydian_primitives::OutPoint { txid: first.txid(), vout };
    }
    vec![first, second]
}

/// A verifier that answers as a function does; it is asked about every transaction.
struct Answers<F>(F);

impl<F> std::fmt::Debug for Answers<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answers")
    }
}

type Answer = Result<Option<Rejection>, VerifierError>;

impl<F: FnMut(&Spend<'_>, &dyn Fn() -> bool) -> Answer + Send> Verifier for Answers<F> {
    fn verify(&mut self, spend: &Spend<'_>, is_ended: &dyn Fn() -> bool) -> Answer {
        self.0(spend, is_ended)
    }
}

fn answers<F: FnMut(&Spend<'_>, &dyn Fn() -> bool) -> Answer + Send + 'static>(answer: F) -> Box<dyn Verifier> {
    Box::new(Answers(answer))
}

/// A verifier that lies: the block is reported once, with the first transaction and input, and stays accepted.
#[test]
fn a_lie_is_reported_and_changes_nothing() {
    let (mut maker, blocks) = base();
    let node = Node::open(Box::new(Liar), &params(), Place::Tip);
    blocks.iter().for_each(|block| node.accept(block));
    let block = maker.block(spends(&maker));
    node.accept(&block);
    maker.advance(&block);
    node.accept(&maker.block(Vec::new()));
    node.monitor.wait_until_idle();
    let counts = Counts { tip: 103, rejected: 1, ..Counts::default() };
    assert_eq!(node.monitor.counts(), counts, "a block without inputs gives nothing to reject");
    let rejected: Vec<Report> =
        node.reports().into_iter().filter(|report| !matches!(report, Report::Verified { .. })).collect();
    let [Report::Rejected { height, hash, txid, rejection }] = &rejected[..] else { panic!("{rejected:?}") };
    assert_eq!((height.0, *hash, *txid), (102, block.header.hash(), block.txs[1].txid()));
    assert_eq!(rejection.input, Some(0));
    assert_eq!(node.engine.tip().height.0, 103, "the verdict stays");
    assert!(!node.engine.header_info(hash).unwrap().node.is_invalid);
    assert_eq!(node.close().last(), Some(&Report::Ended(counts)));
}

/// What a verifier is given: every input of the block in order, with the outputs that it spends, those of the same
/// block included.
#[test]
fn every_input_is_passed_with_the_output_it_spends() {
    let (maker, blocks) = base();
    /// A transaction, and the values of the outputs that it spends.
    type Seen = (Vec<u8>, Vec<i64>);
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let verifier = answers(move |spend: &Spend<'_>, _: &dyn Fn() -> bool| {
        let values = spend.spent.iter().map(|output| output.value.0).collect();
        noted.lock().unwrap().push((spend.tx.to_vec(), values));
        assert_eq!(
            spend.flags.names().join(","),
            "P2SH,DERSIG,NULLDUMMY,CHECKLOCKTIMEVERIFY,CHECKSEQUENCEVERIFY,WITNESS,TAPROOT"
        );
        Ok(None)
    });
    let node = Node::open(verifier, &params(), Place::Tip);
    blocks.iter().for_each(|block| node.accept(block));
    let coin = maker.spendable()[0];
    let txs = spends(&maker);
    node.accept(&maker.block(txs.clone()));
    node.monitor.wait_until_idle();
    let expected = [(txs[0].encode(), vec![coin.value]), (txs[1].encode(), vec![coin.value / 2, coin.value / 4])];
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(node.monitor.counts(), Counts { tip: 102, ..Counts::default() });
    let verified = node.reports().pop().unwrap();
    assert!(matches!(verified, Report::Verified { inputs: 3, .. }), "{verified:?}");
}

/// An error and a panic of the verifier are reported, and the next block is verified.
#[test]
fn a_failure_ends_nothing() {
    let (mut maker, blocks) = base();
    let mut calls = 0;
    let verifier = answers(move |_: &Spend<'_>, _: &dyn Fn() -> bool| {
        calls += 1;
        match calls {
            1 => Err(VerifierError("out of paper".to_owned())),
            2 => panic!("out of ink"),
            _ => Ok(None),
        }
    });
    let node = Node::open(verifier, &params(), Place::Tip);
    blocks.iter().for_each(|block| node.accept(block));
    let mut failed = Vec::new();
    for _ in 0..3 {
        let block = maker.block(spends(&maker));
        node.accept(&block);
        maker.advance(&block);
        failed.push(block.txs[1].txid());
    }
    node.monitor.wait_until_idle();
    assert_eq!(node.monitor.counts(), Counts { tip: 102, failed: 2, ..Counts::default() });
    let reasons: Vec<String> = node
        .reports()
        .into_iter()
        .filter_map(|report| match report {
            Report::Failed { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    let expected = ["out of paper", "the verifier panicked; its message is on stderr"];
    let expected: Vec<String> =
        failed.iter().zip(expected).map(|(txid, reason)| format!("transaction {txid}: {reason}")).collect();
    assert_eq!(reasons, expected);
    assert_eq!(node.engine.tip().height.0, 104);
}

/// A gate that a verifier waits at until it is opened, or until the node ends.
#[derive(Clone, Debug, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn wait(&self, is_ended: &dyn Fn() -> bool) {
        let mut is_open = self.0.0.lock().unwrap();
        while !*is_open && !is_ended() {
            let short = std::time::Duration::from_millis(1);
            is_open = self.0.1.wait_timeout(is_open, short).unwrap().0;
        }
    }

    fn verifier(&self) -> Box<dyn Verifier> {
        let gate = self.clone();
        answers(move |_, is_ended| {
            gate.wait(is_ended);
            Ok(None)
        })
    }
}

/// A block of 1 MB that has an input.
fn large(maker: &Maker) -> MutBlock {
    let coin = maker.spendable()[0];
    let mut data = vec![0x6a];
    data.resize(900_000, 0);
    maker.block(vec![free_tx(&[coin], vec![output(coin.value, &[0x51]), output(0, &data)])])
}

/// A verifier that hangs: the engine goes on, the memory is bounded, and each block that is left out is reported. The
/// end does not wait for it.
#[test]
fn a_slow_verifier_delays_no_block() {
    let (mut maker, blocks) = base();
    let gate = Gate::default();
    let node = Node::open(gate.verifier(), &params(), Place::Tip);
    blocks.iter().for_each(|block| node.accept(block));
    node.monitor.wait_until_idle();
    let count = TIP_BYTES_MAX / 900_000 + 3;
    let mut hashes = Vec::new();
    for _ in 0..count {
        let block = large(&maker);
        node.accept(&block);
        hashes.push(block.header.hash());
        maker.advance(&block);
    }
    assert_eq!(node.engine.tip().height.0 as usize, 101 + count);
    let left_out: Vec<_> = node
        .reports()
        .into_iter()
        .filter_map(|report| match report {
            Report::LeftOut { hash, .. } => Some(hash),
            _ => None,
        })
        .collect();
    assert!((2..6).contains(&left_out.len()), "{}", left_out.len());
    assert_eq!(left_out, hashes[count - left_out.len()..], "the last ones");
    let left = u64::try_from(left_out.len()).unwrap();
    assert_eq!(node.monitor.counts(), Counts { tip: 101, left_out: left, ..Counts::default() });
    // When it goes on, there is room again.
    gate.open();
    node.monitor.wait_until_idle();
    let block = large(&maker);
    node.accept(&block);
    node.monitor.wait_until_idle();
    let tip = 101 + u64::try_from(count).unwrap() - left + 1;
    assert_eq!(node.monitor.counts(), Counts { tip, left_out: left, ..Counts::default() });
}

/// What still waits at the end is counted as left out.
#[test]
fn the_end_does_not_wait_for_a_slow_verifier() {
    let (mut maker, blocks) = base();
    let node = Node::open(Gate::default().verifier(), &params(), Place::Tip);
    blocks.iter().for_each(|block| node.accept(block));
    node.monitor.wait_until_idle();
    for _ in 0..3 {
        let block = maker.block(spends(&maker));
        node.accept(&block);
        maker.advance(&block);
    }
    let counts = Counts { tip: 101, left_out: 3, ..Counts::default() };
    assert_eq!(node.close().last(), Some(&Report::Ended(counts)));
}

/// During the sync a sample is verified; a block of the sample that finds no room is only counted.
#[test]
fn the_sync_is_sampled() {
    let (mut maker, mut blocks) = base();
    for _ in 0..30 {
        let block = maker.block(spends(&maker));
        maker.advance(&block);
        blocks.push(block);
    }
    let verified = |one_in| {
        let node = Node::open(Box::new(Liar), &params(), Place::Sync { one_in });
        blocks.iter().for_each(|block| node.accept(block));
        node.monitor.wait_until_idle();
        let counts = node.monitor.counts();
        assert_eq!((counts.tip, counts.failed, counts.left_out, counts.skipped), (0, 0, 0, 0));
        (counts.sampled, counts.rejected)
    };
    assert_eq!(verified(1), (131, 30));
    let (sampled, rejected) = verified(4);
    assert!((12..60).contains(&sampled) && rejected < 30, "{sampled} {rejected}");
    assert_eq!(verified(u64::MAX), (0, 0));

    let gate = Gate::default();
    let node = Node::open(gate.verifier(), &params(), Place::Sync { one_in: 1 });
    blocks.iter().for_each(|block| node.accept(block));
    for _ in 0..24 {
        let block = large(&maker);
        node.accept(&block);
        maker.advance(&block);
    }
    let skipped = node.monitor.counts().skipped;
    assert!((3..10).contains(&skipped), "{skipped}");
    assert!(!node.reports().iter().any(|report| matches!(report, Report::LeftOut { .. })));
}

/// A block that is disconnected was accepted before: it is verified all the same, and the blocks that replace it too.
#[test]
fn reorganisations_are_followed() {
    let (maker, blocks) = base();
    let node = Node::open(answers(|_, _| Ok(None)), &params(), Place::Tip);
    blocks.iter().for_each(|block| node.accept(block));
    let stale = maker.block(spends(&maker));
    node.accept(&stale);
    let mut other = maker.template(spends(&maker));
    other.header.time += 1;
    lydian_chains::presets::maker::seal(&mut other);
    let mut branch = maker.clone();
    branch.advance(&other);
    node.accept(&other);
    node.accept(&branch.block(Vec::new()));
    node.monitor.wait_until_idle();
    assert_eq!(node.engine.tip().height.0, 103);
    assert_eq!(node.monitor.counts(), Counts { tip: 104, ..Counts::default() });
    let followers = node.engine.followers();
    assert_eq!((followers[0].has_files, followers[0].error.clone()), (false, None));
}
