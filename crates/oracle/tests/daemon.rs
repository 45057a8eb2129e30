//! The daemon interface: handmade blocks, Core's verdicts on them, and how to get a reason for every rejection.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "an integration test")]

mod common;

use common::{TestBlock, hex, report, shown, unhex};
use lydian_oracle::limits::{MAX_RPC_BATCH, MAX_RPC_BATCH_BYTES, MAX_RPC_REQUEST_BYTES};
use lydian_oracle::{Daemon, Judge, RpcError, ScriptError, Submission, Unavailable, or_skip};
use serde_json::json;

/// An output of 50 coins to OP_TRUE as in a coinbase: value, script length, script.
const PAYS_50: &str = "00f2052a010000000151";
const PAYS_50_AND_1: &str = "01f2052a010000000151";

fn rejected(reason: &str) -> Submission {
    Submission::Rejected(reason.into())
}

/// Returns the next block, valid and not submitted, paying to `descriptor`.
fn next(daemon: &mut Daemon, descriptor: &str) -> TestBlock {
    let made = daemon.call("generateblock", &json!([descriptor, [], false])).unwrap();
    TestBlock::of_one(&unhex(made["hex"].as_str().unwrap()))
}

fn both(test: &str, options: &[&str]) -> Option<(Judge, Daemon)> {
    Some((or_skip(test, Judge::start())?, or_skip(test, Daemon::start(options))?))
}

#[test]
fn a_valid_block_is_accepted_and_then_known() {
    let Some((mut judge, mut daemon)) = both("daemon: valid block", &[]) else { return };
    let block = next(&mut daemon, "raw(51)");
    assert_eq!(daemon.height().unwrap(), 0);
    assert_eq!(daemon.propose_block(&block.bytes()).unwrap(), Submission::Accepted);
    assert_eq!(daemon.height().unwrap(), 0, "a proposal changes nothing");
    assert_eq!(daemon.submit_block(&block.bytes()).unwrap(), Submission::Accepted);
    assert_eq!(daemon.height().unwrap(), 1);
    assert_eq!(daemon.best_block_hash().unwrap(), shown(&block.hash(&mut judge)));
    assert_eq!(daemon.submit_block(&block.bytes()).unwrap(), Submission::Duplicate);
}

#[test]
fn each_kind_of_rejection_has_its_reason() {
    let Some((mut judge, mut daemon)) = both("daemon: reasons", &[]) else { return };
    let judge = &mut judge;
    let good = next(&mut daemon, "raw(51)");
    let mut ask = |block: &TestBlock| daemon.submit_block(&block.bytes()).unwrap();

    let mut block = good.clone();
    block.grind(judge, false);
    assert_eq!(ask(&block), rejected("high-hash"));

    let mut block = good.clone();
    block.header[40] ^= 1;
    block.grind(judge, true);
    assert_eq!(ask(&block), rejected("bad-txnmrklroot"));
    assert_eq!(ask(&block), rejected("bad-txnmrklroot"), "a failed CheckBlock is not remembered");

    let mut block = good.clone();
    block.header[4] ^= 1;
    block.grind(judge, true);
    assert_eq!(ask(&block), rejected("prev-blk-not-found"));

    let mut block = good.clone();
    block.header[68..72].copy_from_slice(&u32::MAX.to_le_bytes());
    block.grind(judge, true);
    assert_eq!(ask(&block), rejected("time-too-new"));

    let mut block = good.clone();
    block.header[..4].copy_from_slice(&1u32.to_le_bytes());
    block.grind(judge, true);
    assert_eq!(ask(&block), rejected("bad-version(0x00000001)"), "the reason names the version");

    let mut greedy = good.clone();
    greedy.replace(&unhex(PAYS_50), &unhex(PAYS_50_AND_1));
    greedy.seal(judge);
    assert_eq!(ask(&greedy), rejected("bad-cb-amount"));
    assert_eq!(ask(&greedy), rejected("duplicate-invalid"), "a failed ConnectBlock is remembered");
    let mut child = good.clone();
    child.header[4..36].copy_from_slice(&greedy.hash(judge));
    child.grind(judge, true);
    assert_eq!(ask(&child), rejected("bad-prevblk"));

    let bytes = good.bytes();
    for length in [0, 79, 80, bytes.len() - 1] {
        assert_eq!(daemon.submit_block(&bytes[..length]).unwrap(), Submission::Undecodable, "{length}");
    }
    let behind = [&bytes[..], b"more"].concat();
    assert_eq!(daemon.submit_block(&behind).unwrap(), Submission::Accepted, "Core ignores bytes behind a block");
}

#[test]
fn submitblock_repairs_a_missing_coinbase_witness_and_a_proposal_does_not() {
    let Some((mut judge, mut daemon)) = both("daemon: repair", &[]) else { return };
    let mut block = next(&mut daemon, "raw(51)");
    let report = report(&mut judge, &block.txs[0]);
    // The total additionally has marker and flag, and one witness item of 32 bytes before the lock time.
    assert_eq!(report.total_size - report.base_size, 2 + 1 + 1 + 32);
    let tx = &mut block.txs[0];
    let lock_time = tx.split_off(tx.len() - 4);
    tx.truncate(tx.len() - 34);
    tx.extend(lock_time);
    tx.drain(4..6);
    let stripped = common::report(&mut judge, &block.txs[0]);
    assert_eq!((stripped.txid, stripped.total_size), (report.txid, report.base_size));
    assert_eq!(daemon.propose_block(&block.bytes()).unwrap(), rejected("bad-witness-nonce-size"));
    assert_eq!(daemon.submit_block(&block.bytes()).unwrap(), Submission::Accepted);
}

#[test]
fn a_failed_script_is_named_in_the_judge_s_words() {
    let Some((mut judge, mut daemon)) = both("daemon: script", &[]) else { return };
    let judge = &mut judge;
    let first = next(&mut daemon, "raw(00)");
    assert_eq!(daemon.submit_block(&first.bytes()).unwrap(), Submission::Accepted);
    daemon.call("generatetodescriptor", &json!([100, "raw(51)"])).unwrap();
    let txid = report(judge, &first.txs[0]).txid;
    let spend = format!("02000000 01 {}00000000 00 ffffffff 01 00f2052a01000000 01 51 00000000", hex(&txid));
    let spend = unhex(&spend.replace(' ', ""));
    let mut block = next(&mut daemon, "raw(51)");
    block.txs.push(spend);
    block.seal(judge);
    let eval_false = ScriptError(2);
    assert_eq!(judge.error_name(eval_false), "EVAL_FALSE");
    let reason = format!("block-script-verify-flag-failed ({})", judge.error_text(eval_false));
    assert_eq!(daemon.propose_block(&block.bytes()).unwrap(), rejected(&reason));
    assert_eq!(daemon.submit_block(&block.bytes()).unwrap(), rejected(&reason));
    assert_eq!(daemon.connect_failure(&shown(&block.hash(judge))).unwrap(), Some(reason));
    assert_eq!(daemon.height().unwrap(), 101);
}

#[test]
fn the_reason_of_a_branch_that_fails_later_is_in_the_log() {
    let Some((mut judge, mut daemon)) = both("daemon: branch", &[]) else { return };
    let judge = &mut judge;
    let mut bad = next(&mut daemon, "raw(51)");
    let good = next(&mut daemon, "raw(51)");
    assert_eq!(daemon.submit_block(&good.bytes()).unwrap(), Submission::Accepted);
    bad.replace(&unhex(PAYS_50), &unhex(PAYS_50_AND_1));
    bad.seal(judge);
    let hash = bad.hash(judge);
    assert_eq!(daemon.submit_block(&bad.bytes()).unwrap(), Submission::Inconclusive, "no more work than the tip");
    assert_eq!(daemon.connect_failure(&shown(&hash)).unwrap(), None);
    let mut child = next(&mut daemon, "raw(51)");
    child.header[4..36].copy_from_slice(&hash);
    child.grind(judge, true);
    assert_eq!(daemon.submit_block(&child.bytes()).unwrap(), Submission::Inconclusive);
    assert_eq!(daemon.connect_failure(&shown(&hash)).unwrap().as_deref(), Some("bad-cb-amount"));
    assert_eq!(daemon.best_block_hash().unwrap(), shown(&good.hash(judge)), "back on the first branch");
}

#[test]
fn batches_keep_their_order_at_their_limits_and_above() {
    let Some((mut judge, mut daemon)) = both("daemon: batches", &[]) else { return };
    let good = next(&mut daemon, "raw(51)");
    let mut bad = good.clone();
    bad.replace(&unhex(PAYS_50), &unhex(PAYS_50_AND_1));
    bad.seal(&mut judge);
    let (good, bad) = (good.bytes(), bad.bytes());
    let accepted = |i: usize| i.is_multiple_of(3);
    for count in [0, 1, MAX_RPC_BATCH, MAX_RPC_BATCH + 1] {
        let blocks: Vec<_> = (0..count).map(|i| if accepted(i) { &good } else { &bad }).collect();
        let answers = daemon.propose_blocks(&blocks).unwrap();
        assert_eq!(answers.len(), count);
        for (i, answer) in answers.into_iter().enumerate() {
            assert_eq!(answer, if accepted(i) { Submission::Accepted } else { rejected("bad-cb-amount") }, "{i}");
        }
    }
    // Two of these (in hex, with trailing bytes that Core ignores) exceed the size of a batch, so each is sent alone.
    let long = [&bad[..], &vec![0; MAX_RPC_BATCH_BYTES / 4]].concat();
    let answers = daemon.propose_blocks(&[&long, &long, &good]).unwrap();
    assert_eq!(answers, [rejected("bad-cb-amount"), rejected("bad-cb-amount"), Submission::Accepted]);
    let too_long = vec![0; MAX_RPC_REQUEST_BYTES / 2];
    assert!(matches!(daemon.submit_blocks(&[&too_long]), Err(RpcError::TooLong(_))));
    let answers = daemon.submit_blocks(&[&bad, &good[..80].to_vec(), &bad, &good, &good]).unwrap();
    let (invalid, duplicate) = (rejected("duplicate-invalid"), Submission::Duplicate);
    assert_eq!(answers, [rejected("bad-cb-amount"), Submission::Undecodable, invalid, Submission::Accepted, duplicate]);
}

#[test]
fn the_utxo_set_has_its_hashes() {
    let Some(mut daemon) = or_skip("daemon: txoutset", Daemon::start(&[])) else { return };
    daemon.set_mock_time(1_700_000_000).unwrap();
    daemon.call("generatetodescriptor", &json!([7, "raw(51)"])).unwrap();
    let none = daemon.txoutset("none").unwrap();
    assert_eq!((none.height, none.txouts, none.total_amount, &none.hash), (7, 7, 7 * 5_000_000_000, &None));
    assert_eq!(none.best_block, daemon.best_block_hash().unwrap());
    let hashes: Vec<_> =
        ["muhash", "hash_serialized_3"].map(|kind| daemon.txoutset(kind).unwrap().hash.unwrap()).into();
    assert!(hashes.iter().all(|hash| hash.len() == 64) && hashes[0] != hashes[1], "{hashes:?}");
    let header = daemon.call("getblockheader", &json!([none.best_block])).unwrap();
    assert!((1_700_000_000..1_700_000_100).contains(&header["time"].as_u64().unwrap()), "the clock was set");
}

#[test]
fn a_stopped_daemon_leaves_its_files_until_dropped() {
    let Some(mut daemon) = or_skip("daemon: stop", Daemon::start(&["-blocksxor=0"])) else { return };
    daemon.call("generatetodescriptor", &json!([3, "raw(51)"])).unwrap();
    let folder = daemon.chain_folder().to_path_buf();
    let stopped = daemon.stop().unwrap();
    let blocks = std::fs::read(stopped.chain_folder().join("blocks/blk00000.dat")).unwrap();
    assert_eq!(&blocks[..4], unhex("fabfb5da"), "regtest's magic");
    drop(stopped);
    assert!(!folder.exists());
}

#[test]
fn other_chains_and_bad_options() {
    let Some(mut daemon) = or_skip("daemon: main", Daemon::start_on("main", &[])) else { return };
    let genesis = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";
    assert_eq!(daemon.best_block_hash().unwrap(), genesis);
    let error = Daemon::start(&["-testactivationheight=nonsense@5"]).unwrap_err();
    assert!(matches!(&error, Unavailable::Start { text, .. } if text.contains("nonsense")), "{error}");
}
