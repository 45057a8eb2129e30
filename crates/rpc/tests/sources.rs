//! Transactions of the mempool and of a transaction index, as methods find them. The index is a small map here, on a
//! chain that was made by the node's own methods.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Node, node};
use lydian_primitives::{BlockHash, Transaction, Txid, hex};
use lydian_rpc::exec::execute;
use lydian_rpc::{Context, Indexes, TransactionIndex, Whitelist, table};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn ask(context: &Context, method: &str, params: &str) -> Value {
    let body = format!("{{\"method\":\"{method}\",\"params\":{params},\"id\":1}}");
    let reply = execute(context, table::METHODS, &Whitelist::default(), "user", body.as_bytes());
    serde_json::from_slice(&reply.body.unwrap()).unwrap()
}

fn parse(text: &Value) -> Transaction {
    Transaction::parse(hex(text.as_str().unwrap()).unwrap()).unwrap()
}

#[derive(Debug)]
struct Index {
    is_synced: AtomicBool,
    entry: (Transaction, BlockHash),
}

impl TransactionIndex for Index {
    fn wait_until_synced(&self) -> Result<bool, String> {
        Ok(self.is_synced.load(Ordering::Relaxed))
    }

    fn find(&self, txid: &Txid) -> Result<Option<(Transaction, BlockHash)>, String> {
        Ok(Some(self.entry.clone()).filter(|(tx, _)| tx.view().txid() == *txid))
    }
}

#[test]
fn the_mempool_and_the_index_answer() {
    let Node { context, engine: _engine, mempool } = node();
    let result = |method: &str, params: &str| {
        let answer = ask(&context, method, params);
        assert!(answer["error"].is_null(), "{method} {params}: {answer}");
        answer["result"].clone()
    };
    let error = |method: &str, params: &str| ask(&context, method, params)["error"]["message"].clone();
    let made = result("generatetodescriptor", "[101,\"raw(51)\"]");
    let coinbase = result("getblock", &format!("[{}]", made[0]))["tx"][0].clone();
    // Spends the first coinbase to itself, in the mempool; the index has the transaction that is spent.
    let input = |txid: &Value| format!("{{\"txid\":{txid},\"vout\":0}}");
    let address = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let hex_of = |input: String| result("createrawtransaction", &format!("[[{input}],{{\"{address}\":1}}]"));
    let unconfirmed = parse(&hex_of(input(&coinbase)));
    let txid = Value::from(unconfirmed.view().txid().to_string());
    let words = "No such mempool transaction. Use -txindex or provide a block hash to enable blockchain transaction \
                 queries. Use gettransaction for wallet transactions.";
    assert_eq!(error("getrawtransaction", &format!("[{txid}]")), words);
    assert_eq!(error("gettxoutproof", &format!("[[{txid}]]")), "Transaction not yet in block");

    let block: BlockHash = made[0].as_str().unwrap().parse().unwrap();
    let spent = parse(&result("getrawtransaction", &format!("[{coinbase},0,{}]", made[0])));
    let index = Arc::new(Index { is_synced: AtomicBool::new(false), entry: (spent, block) });
    let shared: Arc<dyn TransactionIndex> = Arc::<Index>::clone(&index);
    context.set_indexes(Indexes { transactions: Some(shared), ..Indexes::default() });
    mempool.submit(Arc::new(unconfirmed), false).unwrap();
    let found = result("getrawtransaction", &format!("[{txid},2]"));
    assert!(found["txid"] == txid && found.get("blockhash").is_none() && found.get("fee").is_none(), "{found}");
    let confirmed = result("getrawtransaction", &format!("[{coinbase},1]"));
    assert_eq!((&confirmed["blockhash"], &confirmed["confirmations"]), (&made[0], &Value::from(101)));
    assert!(confirmed.get("in_active_chain").is_none());
    let unknown = format!("\"{}\"", "1".repeat(64));
    let said = error("getrawtransaction", &format!("[{unknown}]"));
    assert!(said.as_str().unwrap().contains("still in the process of being indexed"), "{said}");
    index.is_synced.store(true, Ordering::Relaxed);
    let said = error("getrawtransaction", &format!("[{unknown}]"));
    assert!(said.as_str().unwrap().starts_with("No such mempool or blockchain transaction."), "{said}");

    // An output of the mempool is signed without being described, as far as the keys go; one that does not exist is
    // not found.
    let child = hex_of(input(&txid));
    let signed = result(
        "signrawtransactionwithkey",
        &format!("[{child},[\"cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA\"]]"),
    );
    assert_eq!(signed["complete"], true, "{signed}");
    let missing = hex_of(input(&txid).replace("\"vout\":0", "\"vout\":1"));
    let unsigned = result("signrawtransactionwithkey", &format!("[{missing},[]]"));
    assert_eq!(unsigned["errors"][0]["error"], "Input not found or already spent");
    // A block takes it by its id.
    let mined = result("generateblock", &format!("[\"raw(51)\",[{txid}]]"));
    let proof = result("gettxoutproof", &format!("[[{coinbase}]]"));
    assert_eq!(result("verifytxoutproof", &format!("[{proof}]"))[0], coinbase, "its output is spent: by the index");
    let details = result("getrawtransaction", &format!("[{txid},2,{}]", mined["hash"]));
    assert_eq!(details["vin"][0]["prevout"]["height"], 1);
}
