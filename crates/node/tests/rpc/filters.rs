//! `-blockfilterindex`: `getblockfilter`, `scanblocks` and `getdescriptoractivity` are Core's, across reorganisations
//! and restarts, and with an index that is built later.

use crate::chain::Pair;
use serde_json::Value;

const OPTION: &str = "-blockfilterindex=basic";

/// The blocks of the chain, from Core.
fn blocks(pair: &Pair) -> Vec<Value> {
    let tip = pair.core.result("getblockcount", "[]").as_u64().unwrap();
    let hash = |height: u64| pair.core.result("getblockhash", &format!("[{height}]"));
    (0..=tip).map(|height| pair.core.result("getblock", &format!("[{},2]", hash(height)))).collect()
}

fn ask_everything(pair: &Pair) {
    let blocks = blocks(pair);
    let mut scripts: Vec<String> = Vec::new();
    // The first waits until the index is there.
    for block in blocks.iter().rev() {
        let hash = &block["hash"];
        pair.ask("getblockfilter", &format!("[{hash}]"));
        let outputs = block["tx"].as_array().unwrap().iter().flat_map(|tx| tx["vout"].as_array().unwrap());
        for output in outputs.take(3) {
            let script = format!("\"raw({})\"", output["scriptPubKey"]["hex"].as_str().unwrap());
            if script.len() > 7 && !scripts.contains(&script) {
                scripts.push(script);
            }
        }
    }
    pair.ask("getindexinfo", "[]");
    let tip = blocks.len() - 1;
    let all: Vec<String> = blocks.iter().map(|block| block["hash"].to_string()).collect();
    let mut found = 0;
    for (number, script) in scripts.iter().step_by(1 + scripts.len() / 40).enumerate() {
        pair.ask("scanblocks", &format!("[\"start\",[{script}]]"));
        let range = format!("[\"start\",[{script}],{},{}", number % tip, tip - number % 5);
        pair.ask("scanblocks", &format!("{range},\"basic\",{{\"filter_false_positives\":true}}]"));
        let relevant = pair.core.result("scanblocks", &format!("[\"start\",[{script}]]"));
        let relevant = relevant["relevant_blocks"].as_array().unwrap().clone();
        found += relevant.len();
        let relevant = Value::from(relevant.into_iter().take(20).collect::<Vec<_>>());
        pair.ask("getdescriptoractivity", &format!("[{relevant},[{script}],false]"));
        pair.ask("getdescriptoractivity", &format!("[{relevant},[{script}]]"));
    }
    assert!(found > 20, "{found} blocks");
    let several = scripts.iter().take(5).cloned().collect::<Vec<_>>().join(",");
    pair.ask("scanblocks", &format!("[\"start\",[{several}]]"));
    pair.ask("getdescriptoractivity", &format!("[[{}],[{several}]]", all[all.len() - 10..].join(",")));
}

#[test]
fn filters_of_the_chain_are_cores() {
    let Some(pair) = Pair::start("filters_of_the_chain_are_cores", &[OPTION]) else { return };
    pair.feed_mix();
    ask_everything(&pair);
    pair.comparison.finish();
}

#[test]
fn filters_follow_reorganisations() {
    let Some(mut pair) = Pair::start("filters_follow_reorganisations", &[OPTION]) else { return };
    pair.feed_branches();
    ask_everything(&pair);
    // Blocks of other branches, too: those that were connected have filters.
    for tip in pair.core.result("getchaintips", "[]").as_array().unwrap() {
        pair.ask("getblockfilter", &format!("[{}]", tip["hash"]));
        pair.ask("getdescriptoractivity", &format!("[[{}],[\"raw(51)\"]]", tip["hash"]));
    }
    // Switched off and on; then built anew, from the files, while the node runs.
    pair.lydian.restart(&[]);
    pair.lydian.restart(&[OPTION]);
    ask_everything(&pair);
    pair.rebuild_index("blockfilter/basic", "basic block filter index", OPTION);
    ask_everything(&pair);
    pair.comparison.finish();
}

#[test]
fn wrong_arguments_about_filters_are_refused_as_by_core() {
    let Some(mut pair) = Pair::start("wrong_arguments_about_filters_are_refused_as_by_core", &[OPTION]) else { return };
    pair.feed_branches();
    let tip = pair.core.result("getbestblockhash", "[]");
    let unknown = "11".repeat(32);
    let script = "[\"raw(51)\"]";
    let ask = |pair: &Pair| {
        for params in [format!("[\"{unknown}\"]"), format!("[{tip},\"other\"]"), "[\"xx\"]".to_owned()] {
            pair.ask("getblockfilter", &params);
        }
        for params in [
            format!("[\"start\",{script},-1]"),
            format!("[\"start\",{script},100000]"),
            format!("[\"start\",{script},5,4]"),
            format!("[\"start\",{script},5,5]"),
            format!("[\"start\",{script},0,100000]"),
            format!("[\"start\",{script},0,3,\"other\"]"),
            format!("[\"start\",{script},0,3,\"basic\",{{\"filter_false_positives\":1}}]"),
            "[\"start\",[\"nonsense\"]]".to_owned(),
            "[\"start\",[]]".to_owned(),
            "[\"status\"]".to_owned(),
            "[\"abort\"]".to_owned(),
            "[\"other\"]".to_owned(),
        ] {
            pair.ask("scanblocks", &params);
        }
        for params in [
            format!("[[\"{unknown}\"],{script}]"),
            format!("[[{tip},{tip}],{script}]"),
            format!("[[],{script}]"),
            format!("[[{tip}],[\"nonsense\"]]"),
            format!("[[{tip}],[]]"),
            "[[\"xx\"],[]]".to_owned(),
        ] {
            pair.ask("getdescriptoractivity", &params);
        }
    };
    ask(&pair);
    // Without the index.
    pair.lydian.restart(&[]);
    let without = pair.lydian.call("getblockfilter", &format!("[{tip}]"));
    assert!(without.body.contains("Index is not enabled for filtertype basic"), "{}", without.body);
    pair.comparison.finish();
}
