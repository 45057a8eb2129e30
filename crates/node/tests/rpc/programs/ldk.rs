//! LDK's `lightning-block-sync`, over RPC and over REST: its `SpvClient` reports to a Lightning node which blocks were
//! connected and disconnected. Both clients also check the outputs of channels that are announced.

use super::{Watch, live};
use crate::electrum_model::text;
use crate::server::Server;
use bdk_electrum::bdk_core::bitcoin::block::Header;
use bdk_electrum::bdk_core::bitcoin::{Network, OutPoint};
use lightning::chain::transaction::TransactionData;
use lightning::chain::{BestBlock, Listen};
use lightning_block_sync::gossip::UtxoSource;
use lightning_block_sync::http::HttpEndpoint;
use lightning_block_sync::init::validate_best_block_header;
use lightning_block_sync::poll::ChainPoller;
use lightning_block_sync::rest::RestClient;
use lightning_block_sync::rpc::RpcClient;
use lightning_block_sync::{SpvClient, UnboundedCache};
use serde_json::{Value, json};
use std::mem::take;
use std::sync::{Arc, Mutex};
use tokio::runtime::{Builder, Runtime};

/// The events that a Lightning node receives.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Listen for Events {
    fn filtered_block_connected(&self, header: &Header, txdata: &TransactionData, height: u32) {
        let txids: Vec<String> = txdata.iter().map(|(at, tx)| format!("{at} {}", tx.compute_txid())).collect();
        self.0.lock().unwrap().push(format!("connected {height} {} {txids:?}", header.block_hash()));
    }

    fn blocks_disconnected(&self, fork: BestBlock) {
        self.0.lock().unwrap().push(format!("disconnected down to {} {}", fork.height, fork.block_hash));
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A client that lives as long as the test process, as the borrows of `SpvClient` require.
fn follow<S: UtxoSource + Send + Sync>(source: S) -> Watch {
    let (runtime, source, events) = (runtime(), Arc::new(source), Events::default());
    let tip = runtime.block_on(validate_best_block_header(&*source)).unwrap();
    let cache = Box::leak(Box::new(UnboundedCache::new()));
    let poller = ChainPoller::new(Arc::clone(&source), Network::Regtest);
    let mut spv = SpvClient::new(tip, poller, cache, Arc::new(events.clone()));
    Box::new(move || {
        runtime.block_on(async {
            spv.poll_best_tip().await.unwrap();
            let mut lines = take(&mut *events.0.lock().unwrap());
            let (hash, height) = source.get_best_block().await.unwrap();
            lines.push(format!("tip {hash} {height:?}"));
            for height in 1..=height.unwrap() {
                let hash = source.get_block_hash_by_height(height).await.unwrap();
                let header = source.get_header(&hash, Some(height)).await.unwrap();
                lines.push(format!("{height} {hash} {header:?}"));
            }
            lines
        })
    })
}

fn endpoint(server: &Server, path: &str) -> HttpEndpoint {
    HttpEndpoint::for_host("127.0.0.1".to_owned()).with_port(server.port).with_path(path.to_owned())
}

fn by_rpc(server: &Server) -> RpcClient {
    RpcClient::new(&server.authorization(), endpoint(server, "/"))
}

fn by_rest(server: &Server) -> RestClient {
    RestClient::new(endpoint(server, "/rest"))
}

/// The result of a method, called by LDK's client.
async fn result(client: &RpcClient, method: &str, params: &[Value]) -> Value {
    client.call_method(method, params).await.unwrap()
}

/// The same and, for every transaction of the mempool and the one whose output is spent first, whether outputs are
/// unspent.
fn with_outputs<S: UtxoSource + Send + Sync>(server: &Server, connect: impl Fn(&Server) -> S) -> Watch {
    let (mut follow, source, rpc, runtime) = (follow(connect(server)), connect(server), by_rpc(server), runtime());
    Box::new(move || {
        let mut lines = follow();
        runtime.block_on(async {
            let hash = result(&rpc, "getblockhash", &[json!(1)]).await;
            let spent = result(&rpc, "getblock", &[hash, json!(1)]).await["tx"][0].clone();
            let pool = result(&rpc, "getrawmempool", &[]).await;
            let txids = pool.as_array().unwrap().iter().chain([&spent]).map(text);
            let mut outputs: Vec<OutPoint> =
                txids.flat_map(|txid| [0, 1].map(|vout| OutPoint::new(txid.parse().unwrap(), vout))).collect();
            outputs.sort_unstable();
            for output in outputs {
                lines.push(format!("{output} unspent {}", source.is_output_unspent(output).await.unwrap()));
            }
        });
        lines
    })
}

#[test]
fn ldk_syncs_the_same_over_rpc() {
    live("ldk_syncs_the_same_over_rpc", &[], |server| with_outputs(server, by_rpc));
}

#[test]
fn ldk_syncs_the_same_over_rest() {
    live("ldk_syncs_the_same_over_rest", &[], |server| with_outputs(server, by_rest));
}
