//! [`ROUTES`]: every path that is served, with the function that answers it. Data only.

use crate::answers::{block, broadcast, mempool, script, transaction};
use crate::call::Call;
use crate::fault::Fault;
use crate::reply::Reply;

/// An HTTP method of a route. `HEAD` is answered wherever `GET` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
}

/// A path with its answer.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub verb: Verb,
    /// Variable parts are in braces.
    pub path: &'static str,
    /// One line of documentation.
    pub purpose: &'static str,
    pub(crate) answer: fn(&Call<'_>) -> Result<Reply, Fault>,
}

type Answer = fn(&Call<'_>) -> Result<Reply, Fault>;

const fn get(path: &'static str, purpose: &'static str, answer: Answer) -> Route {
    Route { verb: Verb::Get, path, purpose, answer }
}

const fn post(path: &'static str, purpose: &'static str, answer: Answer) -> Route {
    Route { verb: Verb::Post, path, purpose, answer }
}

/// Every path, in the order of Esplora's `API.md`; then those that mempool/electrs added.
#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    get("/tx/{txid}", "a transaction with the outputs that it spends", transaction::whole),
    get("/tx/{txid}/status", "whether and where it is confirmed", transaction::status),
    get("/tx/{txid}/hex", "its bytes in hexadecimal", transaction::hex),
    get("/tx/{txid}/raw", "its bytes", transaction::raw),
    get("/tx/{txid}/merkleblock-proof", "proof of its block as bitcoind's `merkleblock`", transaction::merkleblock_proof),
    get("/tx/{txid}/merkle-proof", "proof of its block as in Electrum's protocol", transaction::merkle_proof),
    get("/tx/{txid}/outspend/{vout}", "the input that spends an output", transaction::outspend),
    get("/tx/{txid}/outspends", "the inputs that spend its outputs", transaction::outspends),
    post("/tx", "broadcasts a transaction in hexadecimal; its txid", broadcast::transaction),
    get("/broadcast", "the same with `?tx=`, for old clients", broadcast::by_query),
    post("/txs/package", "submits a package: bitcoind's `submitpackage`", broadcast::package),
    get("/address/{address}", "counts and sums of an address", script::stats),
    get("/scripthash/{scripthash}", "counts and sums of a script", script::stats),
    get("/address/{address}/txs", "50 transactions of the mempool and 25 of the chain, or those after `?after_txid=`", script::transactions),
    get("/scripthash/{scripthash}/txs", "the same of a script", script::transactions),
    get("/address/{address}/txs/chain", "25 transactions of the chain, the newest first", script::of_chain),
    get("/scripthash/{scripthash}/txs/chain", "the same of a script", script::of_chain),
    get("/address/{address}/txs/chain/{last_seen}", "the 25 after a transaction", script::of_chain),
    get("/scripthash/{scripthash}/txs/chain/{last_seen}", "the same of a script", script::of_chain),
    get("/address/{address}/txs/mempool", "50 transactions of the mempool", script::of_pool),
    get("/scripthash/{scripthash}/txs/mempool", "the same of a script", script::of_pool),
    get("/address/{address}/utxo", "unspent outputs", script::utxo),
    get("/scripthash/{scripthash}/utxo", "the same of a script", script::utxo),
    get("/address-prefix/{prefix}", "always an error: there is no search by prefix", script::prefix),
    get("/block/{hash}", "a block without its transactions", block::whole),
    get("/block/{hash}/header", "its header in hexadecimal", block::header),
    get("/block/{hash}/status", "whether it is on the active chain, and the next block", block::status),
    get("/block/{hash}/txs", "its first 25 transactions", block::transactions),
    get("/block/{hash}/txs/{start}", "25 transactions from a position that is a multiple of 25", block::transactions),
    get("/block/{hash}/txids", "its txids", block::txids),
    get("/block/{hash}/txid/{index}", "the txid at a position", block::txid),
    get("/block/{hash}/raw", "its bytes", block::raw),
    get("/block-height/{height}", "the hash of the block at a height", block::at_height),
    get("/blocks", "the 10 newest blocks", block::page),
    get("/blocks/{start}", "10 blocks from a height downwards", block::page),
    get("/blocks/tip/height", "the height of the tip", block::tip_height),
    get("/blocks/tip/hash", "the hash of the tip", block::tip_hash),
    get("/mempool", "sums and the fee histogram", mempool::totals),
    get("/mempool/txids", "all txids", mempool::txids),
    get("/mempool/recent", "the 10 transactions that came last", mempool::recent),
    get("/block-template", "the next block as bitcoind's `getblocktemplate` returns it", mempool::template),
    get("/fee-estimates", "estimated fee rates in sat/vB by target: 1 to 25, 144, 504 and 1,008 blocks", mempool::fee_estimates),
    get("/mempool/txids/page", "10,000 txids, by their bytes", mempool::txids_page),
    get("/mempool/txids/page/{last_seen}", "the 10,000 after a txid", mempool::txids_page),
    get("/address/{address}/txs/summary", "what the 5,000 newest transactions of the chain change in the balance", script::summary),
    get("/scripthash/{scripthash}/txs/summary", "the same of a script", script::summary),
    get("/address/{address}/txs/summary/{last_seen}", "the 5,000 after a transaction", script::summary),
    get("/scripthash/{scripthash}/txs/summary/{last_seen}", "the same of a script", script::summary),
    post("/addresses/txs", "50 transactions of up to 300 addresses of a JSON array, or those after `?after_txid=`", script::of_addresses),
    post("/scripthashes/txs", "the same of scripts", script::of_scripts),
    post("/addresses/txs/summary", "what the 5,000 newest transactions change in the balance of up to 300 addresses together", script::summary_of_addresses),
    post("/scripthashes/txs/summary", "the same of scripts", script::summary_of_scripts),
    post("/addresses/txs/summary/{last_seen}", "the 5,000 after a transaction", script::summary_of_addresses),
    post("/scripthashes/txs/summary/{last_seen}", "the same of scripts", script::summary_of_scripts),
    get("/txs/outspends", "as `/tx/{txid}/outspends` for up to 50 of `?txids=`, with commas between them", transaction::outspends_of_query),
    post("/txs/outspends/by-txid", "the same for the txids of a JSON array", transaction::outspends_by_txid),
    post("/txs/outspends/by-outpoint", "the inputs that spend outputs, a JSON array of `txid:vout`", transaction::outspends_by_outpoint),
    post("/txs/test", "tests transactions of a JSON array: bitcoind's `testmempoolaccept`", broadcast::test),
    get("/internal/block/{hash}/txs", "all transactions of a block", block::all_transactions),
    post("/internal/txs", "those of up to 1,000 txids of a JSON array that are known", transaction::several),
    post("/internal/txs/outspends/by-txid", "as `/txs/outspends/by-txid`", transaction::outspends_by_txid),
    post("/internal/txs/outspends/by-outpoint", "as `/txs/outspends/by-outpoint`", transaction::outspends_by_outpoint),
    get("/internal/mempool/txs", "1,000 transactions of the mempool, by the bytes of their txids", mempool::transactions_page),
    get("/internal/mempool/txs/all", "all transactions of the mempool, if they are at most as large as a page can be", mempool::all_transactions),
    get("/internal/mempool/txs/{last_seen}", "the 1,000 after a txid", mempool::transactions_page),
    post("/internal/mempool/txs", "those of up to 1,000 txids of a JSON array that the mempool has", mempool::several),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_documentation_lists_every_route() {
        let text = include_str!("../../../docs/esplora.md");
        for Route { verb, path, purpose, .. } in ROUTES {
            let verb = if *verb == Verb::Get { "GET" } else { "POST" };
            let row = format!("| `{verb} {path}` | {purpose} |");
            assert!(text.contains(&row), "docs/esplora.md lacks the line\n{row}");
        }
        let paths: BTreeSet<(bool, &str)> = ROUTES.iter().map(|route| (route.verb == Verb::Get, route.path)).collect();
        assert_eq!(paths.len(), ROUTES.len());
    }
}
