//! `-txindex` and `-txospenderindex`: `getrawtransaction` and `gettxoutproof` of every transaction of the chain, and
//! `gettxspendingprevout` of its outputs, are Core's, across reorganisations and restarts, and with an index that is
//! built later.

use crate::chain::Pair;

const OPTION: &str = "-txindex=1";

/// Asks about the transactions of every block of the chain. Those of other branches only are a known difference: Core's
/// index keeps them.
fn ask_everything(pair: &Pair) {
    let unknown = "11".repeat(32);
    // Both wait until their index is there.
    pair.ask("getrawtransaction", &format!("[\"{unknown}\"]"));
    pair.ask("gettxoutproof", &format!("[[\"{unknown}\"]]"));
    pair.ask("getindexinfo", "[]");
    let tip = pair.core.result("getblockcount", "[]").as_u64().unwrap();
    let blocks = (0..=tip).map(|height| pair.core.result("getblockhash", &format!("[{height}]")));
    let mut asked = 0;
    for hash in blocks {
        let block = pair.core.result("getblock", &format!("[{hash}]"));
        for txid in block["tx"].as_array().unwrap() {
            // Every transaction of a small block, and some of a large one.
            asked += 1;
            if block["nTx"].as_u64().unwrap() > 20 && asked % 50 != 0 {
                continue;
            }
            pair.ask("getrawtransaction", &format!("[{txid}]"));
            pair.ask("gettxoutproof", &format!("[[{txid}]]"));
            if asked % 10 == 0 {
                pair.ask("getrawtransaction", &format!("[{txid},1]"));
                pair.ask("getrawtransaction", &format!("[{txid},2]"));
            }
        }
    }
}

#[test]
fn every_transaction_of_the_chain_is_cores() {
    let Some(pair) = Pair::start("every_transaction_of_the_chain_is_cores", &[OPTION]) else { return };
    pair.feed_mix();
    ask_everything(&pair);
    pair.comparison.finish();
}

#[test]
fn transactions_follow_reorganisations() {
    let Some(mut pair) = Pair::start("transactions_follow_reorganisations", &[OPTION]) else { return };
    pair.feed_branches();
    ask_everything(&pair);
    // Switched off and on; then built anew, from the files, while the node runs.
    pair.lydian.restart(&[]);
    pair.lydian.restart(&[OPTION]);
    ask_everything(&pair);
    pair.rebuild_index("tables", "txindex", OPTION);
    ask_everything(&pair);
    pair.comparison.finish();
}

const SPENDERS: &str = "-txospenderindex=1";

/// Asks about the spenders of the outputs of every block of the chain, spent or not, existing or not.
fn ask_spenders(pair: &Pair) {
    // Both wait until their index is there.
    let unknown = format!("[[{{\"txid\":\"{}\",\"vout\":0}}]]", "11".repeat(32));
    pair.ask("gettxspendingprevout", &unknown);
    let tip = pair.core.result("getblockcount", "[]").as_u64().unwrap();
    let mut spent = 0;
    for height in 0..=tip {
        let hash = pair.core.result("getblockhash", &format!("[{height}]"));
        let block = pair.core.result("getblock", &format!("[{hash}]"));
        let txids = block["tx"].as_array().unwrap();
        // Every transaction of a small block, and some of a large one.
        for txid in txids.iter().step_by(1 + txids.len() / 20) {
            let output = |vout: u32| format!("{{\"txid\":{txid},\"vout\":{vout}}}");
            let outputs = format!("[{},{},{}]", output(0), output(1), output(7));
            pair.ask("gettxspendingprevout", &format!("[{outputs}]"));
            if height % 7 == 0 {
                pair.ask("gettxspendingprevout", &format!("[{outputs},{{\"return_spending_tx\":true}}]"));
                pair.ask("gettxspendingprevout", &format!("[{outputs},{{\"mempool_only\":true}}]"));
            }
            let answer = pair.core.result("gettxspendingprevout", &format!("[[{}]]", output(0)));
            spent += u32::from(!answer[0]["blockhash"].is_null());
        }
    }
    assert!(spent > 10, "{spent} spent outputs");
}

#[test]
fn spenders_of_the_chain_are_cores() {
    let Some(pair) = Pair::start("spenders_of_the_chain_are_cores", &[OPTION, SPENDERS]) else { return };
    pair.feed_mix();
    ask_spenders(&pair);
    pair.comparison.finish();
}

#[test]
fn spenders_follow_reorganisations() {
    let Some(mut pair) = Pair::start("spenders_follow_reorganisations", &[SPENDERS]) else { return };
    pair.feed_branches();
    ask_spenders(&pair);
    // With the transactions alone, which the larger tables have; then built anew while the node runs.
    pair.lydian.restart(&[OPTION]);
    assert_eq!(pair.lydian.result("getindexinfo", "[]")["txospenderindex"], serde_json::Value::Null);
    pair.lydian.restart(&[SPENDERS]);
    ask_spenders(&pair);
    pair.rebuild_index("tables", "txospenderindex", SPENDERS);
    ask_spenders(&pair);
    pair.comparison.finish();
}
