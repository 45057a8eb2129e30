//! Checks beside a running node, and after one that was killed.

use super::doctor;
use crate::{Place, small_chain};
use lydian_oracle::free_port;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Longer than a node on a busy machine takes to write its status.
const PATIENCE: Duration = Duration::from_secs(120);

/// The options of a node that answers at a port.
fn options(port: u16) -> Vec<String> {
    let fixed = ["-server=1", "-page=0", "-par=1"].map(str::to_owned);
    fixed.into_iter().chain([format!("-rpcport={port}")]).collect()
}

#[test]
fn a_running_node_answers_and_one_that_was_killed_is_noticed() {
    let place = Place::new("doctor-running");
    assert_eq!(place.import(&small_chain(&place)).2, 0);
    let options = options(free_port().unwrap());
    let words: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut node = place.start(&words, "Done loading");
    let process = node.0.id();
    let seen = doctor(&place, &words);
    assert_eq!((&seen.report["is_running"], &seen.report["process"]), (&Value::from(true), &Value::from(process)));
    seen.expect("holder", "ok", &format!("process {process} ("));
    seen.expect("ports", "ok", "the node listens at");
    seen.expect("rpc", "ok", "the node answers");
    seen.expect("peers", "ok", "these settings make none");
    seen.expect("tip", "ok", "at height 50 of 50");
    seen.expect("warnings", "ok", "");
    seen.expect("index-lag", "ok", "");
    seen.expect("clean-stop", "skipped", "a node runs");
    seen.expect("sample", "ok", "");
    seen.expect("open-files", "ok", "and the node has ");
    // Options that are not those of the node.
    let other = doctor(&place, &["-server=1", "-page=0", &format!("-rpcport={}", free_port().unwrap())]);
    other.expect("ports", "warning", "the node does not listen at 127.0.0.1:");
    other.expect("rpc", "warning", "does not answer");
    doctor(&place, &[]).expect("rpc", "warning", "switched off (-server=0)");
    node.0.kill().unwrap();
    node.0.wait().unwrap();
    let seen = doctor(&place, &words);
    seen.expect("clean-stop", "warning", "the last run did not end by itself (");
    seen.expect("rpc", "skipped", "no node runs");
}

#[test]
fn a_node_without_peers_and_with_an_index_that_is_damaged() {
    let place = Place::new("doctor-alone");
    let chain = small_chain(&place);
    assert_eq!(place.run(&["import", chain.to_str().unwrap(), "-coinstatsindex"]).2, 0);
    let log = place.chain_folder().join("indexes/coinstats/stats.tip");
    assert!(log.exists(), "{:?}", super::state(&place.chain_folder().join("indexes")).keys());
    std::fs::write(&log, [7; 500]).unwrap();
    let mut options = options(free_port().unwrap());
    options.extend(["-coinstatsindex", "-connect=127.0.0.1:1"].map(str::to_owned));
    let words: Vec<&str> = options.iter().map(String::as_str).collect();
    let _node = place.start(&words, "Done loading");
    let begin = Instant::now();
    let mut seen = doctor(&place, &words);
    // The node writes the state of its indexes every few seconds.
    while seen.check("index-lag")["level"] != "bad" && begin.elapsed() < PATIENCE {
        seen = doctor(&place, &words);
    }
    seen.expect("peers", "warning", "0 connections to and 0 from other nodes");
    seen.expect("formats", "bad", "index coinstats: ");
    seen.expect("index-lag", "bad", "coinstatsindex is stopped: ");
    seen.expect("warnings", "warning", "");
}
