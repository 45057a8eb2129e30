//! `-coinstatsindex`: `gettxoutsetinfo` at every height is Core's to the digit, across reorganisations, and an index
//! that is made later is the same. An index that is damaged is left out, unless it is required.

use crate::alerts::{everywhere, warnings};
use crate::chain::Pair;
use crate::page_client::wait;
use crate::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

const OPTION: &str = "-coinstatsindex=1";

/// Asks about every height, and about every block of every branch by its hash.
fn ask_everything(pair: &Pair) {
    // Both wait until their index is there.
    pair.ask("gettxoutsetinfo", "[\"muhash\"]");
    pair.ask("getindexinfo", "[]");
    let tip = pair.core.result("getblockcount", "[]").as_u64().unwrap();
    for height in 0..=tip {
        pair.ask("gettxoutsetinfo", &format!("[\"muhash\",{height}]"));
    }
    for branch in pair.core.result("getchaintips", "[]").as_array().unwrap() {
        if branch["status"] == "valid-fork" {
            pair.ask("gettxoutsetinfo", &format!("[\"muhash\",{}]", branch["hash"]));
        }
    }
    let middle = tip / 2;
    for params in [
        "[\"none\"]".to_owned(),
        "[\"muhash\",null,false]".to_owned(),
        "[\"hash_serialized_3\"]".to_owned(),
        format!("[\"none\",{middle}]"),
        format!("[\"none\",{middle},true]"),
        format!("[\"none\",{middle},false]"),
        format!("[\"hash_serialized_3\",{middle}]"),
        format!("[\"muhash\",{}]", tip + 1),
        "[\"muhash\",-1]".to_owned(),
        format!("[\"muhash\",\"{}\"]", "11".repeat(32)),
    ] {
        pair.ask("gettxoutsetinfo", &params);
    }
    for params in ["[\"coinstatsindex\"]", "[\"txindex\"]", "[\"\"]"] {
        pair.ask("getindexinfo", params);
    }
}

/// checklist: 97
#[test]
fn the_statistics_of_every_height_are_cores() {
    let Some(pair) = Pair::start("the_statistics_of_every_height_are_cores", &[OPTION, "-rpcdoccheck=1"]) else {
        return;
    };
    pair.feed_mix();
    ask_everything(&pair);
    pair.comparison.finish();
}

/// checklist: 97
#[test]
fn the_statistics_follow_reorganisations() {
    let Some(mut pair) = Pair::start("the_statistics_follow_reorganisations", &[OPTION]) else { return };
    pair.feed_branches();
    ask_everything(&pair);
    // Switched off and on; then built anew, from the files, while the node runs.
    pair.lydian.restart(&[]);
    pair.lydian.restart(&[OPTION]);
    ask_everything(&pair);
    pair.rebuild_index("coinstats", "coinstatsindex", OPTION);
    let tip = pair.core.result("getblockcount", "[]").as_u64().unwrap();
    for height in 0..=tip {
        pair.ask("gettxoutsetinfo", &format!("[\"muhash\",{height}]"));
    }
    pair.comparison.finish();
}

/// The node goes on without an index that it cannot open, and says so; with `-indexrequired` it does not start.
#[test]
fn a_damaged_index_is_left_out() {
    let mut node = Server::lydian("a_damaged_index_is_left_out", &[OPTION]);
    let synced = json!({ "synced": true, "best_block_height": 0 });
    assert_eq!(node.result("getindexinfo", "[]"), json!({ "coinstatsindex": synced }));
    let tip = node.folder.join("regtest/indexes/coinstats/stats.tip");
    node.restart(&[OPTION]);
    let mut bytes = fs::read(&tip).unwrap();
    bytes[40] ^= 1;
    node.kill();
    fs::write(&tip, bytes).unwrap();
    node.start_again(&[OPTION]);
    let info = node.result("getindexinfo", "[]");
    let error = info["coinstatsindex"]["error"].as_str().unwrap();
    assert!(error.contains("stats.tip:0: damaged: its checksum does not match; delete"), "{error}");
    assert_eq!(info["coinstatsindex"]["synced"], Value::Bool(false));
    let answer = node.call("gettxoutsetinfo", "[\"muhash\",0]");
    assert!(
        answer.body.contains("the index coinstatsindex cannot be opened: ") && answer.body.contains("stats.tip:0"),
        "{}",
        answer.body
    );
    assert_eq!(node.result("gettxoutsetinfo", "[\"muhash\"]")["height"], 0);
    let log = fs::read_to_string(node.folder.join("regtest/debug.log")).unwrap();
    assert!(log.contains("Cannot open index coinstatsindex: "), "{log}");
    let warned = wait("there is a warning", || Some(warnings(&node)).filter(|all| all[0] != json!([])));
    let words = format!("The node runs without coinstatsindex: {}. Remove the cause", error.trim_end_matches('.'));
    assert!(warned[0][0].as_str().unwrap().starts_with(&words), "{warned:?}");
    assert_eq!(warned, everywhere(&warned[0]));
    node.kill();
    let mut lydian = Command::new(env!("CARGO_BIN_EXE_lydian"));
    lydian.arg(format!("-datadir={}", node.folder.display())).args(["-regtest", "-listen=0", "-noconnect", OPTION]);
    let output = lydian.arg("-indexrequired").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("coinstatsindex: ") && text.contains("stats.tip:0"), "{text}");
}
