//! `-txindex`: `getrawtransaction` and `gettxoutproof` of every transaction of the chain are Core's, across
//! reorganisations and restarts, and with an index that is built later.

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
