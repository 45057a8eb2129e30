//! `bdk_bitcoind_rpc`, with which wallets made with BDK read the chain of a node, and `bitcoincore-rpc` below it: its
//! `Emitter` follows blocks and mempool, its `FilterIter` reads the filters of blocks and the blocks that match.

use super::{Watch, live};
use crate::electrum::script;
use crate::server::Server;
use bdk_bitcoind_rpc::bip158::FilterIter;
use bdk_bitcoind_rpc::bitcoincore_rpc::{Auth, Client, RpcApi};
use bdk_bitcoind_rpc::{Emitter, NO_EXPECTED_MEMPOOL_TXS};
use bdk_electrum::bdk_core::bitcoin::ScriptBuf;
use bdk_electrum::bdk_core::{BlockId, CheckPoint};
use serde_json::Value;
use std::sync::Arc;

fn client(server: &Server) -> Client {
    Client::new(&format!("http://127.0.0.1:{}", server.port), Auth::CookieFile(server.cookie())).unwrap()
}

/// The chain that a new wallet knows.
fn genesis(client: &Client) -> CheckPoint {
    CheckPoint::new(BlockId { height: 0, hash: client.get_block_hash(0).unwrap() })
}

#[test]
fn bdk_emits_the_same_from_both() {
    live("bdk_emits_the_same_from_both", &[], |server| {
        let client = Arc::new(client(server));
        let mut emitter = Emitter::new(Arc::clone(&client), genesis(&client), 0, NO_EXPECTED_MEMPOOL_TXS);
        let watch: Watch = Box::new(move || {
            let mut lines = Vec::new();
            while let Some(event) = emitter.next_block().unwrap() {
                let (height, hash, below) = (event.block_height(), event.block_hash(), event.connected_to());
                let txids: Vec<String> = event.block.txdata.iter().map(|tx| tx.compute_txid().to_string()).collect();
                lines.push(format!("block {height} {hash} on {} {}: {txids:?}", below.height, below.hash));
            }
            let event = emitter.mempool_at(1).unwrap();
            let mut pool: Vec<String> =
                event.update.iter().map(|(tx, _)| format!("mempool {} {:?}", tx.compute_txid(), tx)).collect();
            pool.extend(event.evicted.iter().map(|(txid, _)| format!("evicted {txid}")));
            pool.sort_unstable();
            lines.extend(pool);
            lines
        });
        watch
    });
}

#[test]
fn bdk_reads_the_same_filters_from_both() {
    live("bdk_reads_the_same_filters_from_both", &[], |server| {
        let client = client(server);
        let mut tip = genesis(&client);
        let watch: Watch = Box::new(move || {
            let watched = [2, 6, 9].map(|number| ScriptBuf::from(script(number)));
            let mut lines = Vec::new();
            for event in FilterIter::new(&client, tip.clone(), watched) {
                let event = event.unwrap();
                let found = event.block.as_ref().map(|block| block.txdata.len());
                lines.push(format!("block {} {}: {found:?} transactions", event.height(), event.cp.hash()));
                tip = event.cp;
            }
            // What a wallet asks for beside the blocks.
            // By name: the type of the crate has a field that Core 31 no longer sends.
            let pool: Value = client.call("getrawmempool", &[true.into()]).unwrap();
            lines.push(format!("mempool {pool}"));
            let info = client.get_blockchain_info().unwrap();
            lines.push(format!("{} {} {} {}", info.chain, info.blocks, info.best_block_hash, info.pruned));
            lines.push(format!("{:?}", client.get_tx_out_set_info(None, None, None).unwrap().total_amount));
            lines
        });
        watch
    });
}
