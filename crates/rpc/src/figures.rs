//! The figures of the RPC server, and those that jvstein's `bitcoin-prometheus-exporter` computes from RPC, under its
//! names and in its units.
//!
//! Input: a [`Context`], a [`Counts`], what the network counts. Output: two tables. The values are those of the
//! methods, by the same functions. What takes long (files, the last block, all headers) is in [`Slow`], which is read
//! beside the others. Invariant: nothing waits for a thread that validates; the header tree is looked at in steps.

use crate::context::Context;
use crate::http::Counts;
use crate::methods::blockchain::progress;
use crate::methods::blockstats::BlockSums;
use crate::methods::fees::smart_feerate;
use crate::methods::mining::network_hash_rate;
use crate::methods::net::VERSION;
use crate::rest;
use crate::table::counted;
use lydian_chain::HeaderId;
use lydian_engine::Engine;
use lydian_p2p::bans::BanFigures;
use lydian_primitives::{BlockHash, difficulty};
use lydian_serve::figures::{Figure, Label, OTHER, Samples, float};
use lydian_wire::message::PROTOCOL_VERSION;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const METHOD: Label = Label { name: "method", values: || counted().chain([OTHER]).collect() };

const PATH: Label = Label { name: "path", values: || rest::prefixes().chain([OTHER]).collect() };

/// The figures of the RPC server itself.
pub const SERVER_FIGURES: &[Figure<Counts>] = &[
    Figure::gauge(
        "lydian_rpc_connections",
        "connections",
        "Open connections to the RPC server.",
        |counts: &Counts, out| out.count(counts.control.connections() as u64),
    ),
    Figure::histogram(
        "lydian_rpc_request_seconds",
        "Duration of the calls of each RPC method, with waiting. Calls of a method that does not exist, or that only tests call, count as other.",
        |counts: &Counts, out| counts.requests.read_seconds(out),
    )
    .by(&[METHOD]),
    Figure::counter(
        "lydian_rpc_errors_total",
        "calls",
        "Calls of each RPC method that were answered with an error.",
        |counts: &Counts, out| counts.requests.read_errors(out),
    )
    .by(&[METHOD]),
    Figure::histogram(
        "lydian_rest_request_seconds",
        "Duration of the requests for each path of REST, with waiting.",
        |counts: &Counts, out| counts.rest_requests.read_seconds(out),
    )
    .by(&[PATH]),
    Figure::counter(
        "lydian_rest_errors_total",
        "requests",
        "Requests for each path of REST that were answered with another status than 200.",
        |counts: &Counts, out| counts.rest_requests.read_errors(out),
    )
    .by(&[PATH]),
    Figure::counter(
        "lydian_rpc_refused_total",
        "requests",
        "Requests that the RPC server refused because -rpcworkqueue requests waited.",
        |counts: &Counts, out| out.count(counts.refused.load(Ordering::Relaxed)),
    ),
];

/// What the network counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkTotals {
    pub connections_in: u32,
    pub connections_out: u32,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    pub bans: BanFigures,
}

/// The values of one moment. During the start of the node, some are missing.
#[derive(Debug)]
pub struct Reading {
    uptime: u64,
    active: usize,
    warned: u64,
    chain: Option<ChainReading>,
    pool: Option<PoolReading>,
    network: Option<NetworkTotals>,
    slow: Option<Arc<Slow>>,
}

#[derive(Debug)]
struct ChainReading {
    blocks: u32,
    difficulty: f64,
    progress: f64,
    transactions: Option<u64>,
    /// Over 120 blocks, over one, and since the last change of the difficulty.
    hashes: [Option<f64>; 3],
}

#[derive(Debug)]
struct PoolReading {
    count: usize,
    vbytes: u64,
    usage: u64,
    /// In satoshi per 1,000 virtual bytes.
    min_fee: i64,
    unbroadcast: usize,
    /// In satoshi per 1,000 virtual bytes.
    estimates: [Option<i64>; ESTIMATE_TARGETS.len()],
}

impl Reading {
    /// `warned`: how often a reading found a warning of the node, with this one.
    pub fn new(context: &Context, warned: u64, network: Option<NetworkTotals>, slow: Option<Arc<Slow>>) -> Reading {
        let engine = context.engine().ok().filter(|_| context.check_ready().is_ok());
        Reading {
            uptime: context.uptime_seconds(),
            active: context.active().len(),
            warned,
            chain: engine.map(|engine| ChainReading::new(context, &engine)),
            pool: context.mempool().ok().map(|mempool| {
                let (snapshot, least) = (mempool.snapshot(), mempool.settings().min_relay_fee);
                PoolReading {
                    count: snapshot.len(),
                    vbytes: snapshot.info().vsize,
                    usage: snapshot.info().usage,
                    min_fee: mempool.min_fee_at_once().max(least).fee_per_kvb(),
                    unbroadcast: snapshot.unbroadcast().len(),
                    estimates: ESTIMATE_TARGETS.map(|target| smart_feerate(mempool, target)),
                }
            }),
            network,
            slow,
        }
    }
}

impl ChainReading {
    fn new(context: &Context, engine: &Engine) -> ChainReading {
        let tip = engine.settled_info();
        ChainReading {
            blocks: tip.node.height.0,
            difficulty: difficulty(tip.node.header.bits),
            progress: progress(context, engine, &tip),
            transactions: engine.chain_transactions(tip.node.height),
            hashes: [120, 1, -1].map(|blocks| network_hash_rate(engine, blocks, -1).ok()),
        }
    }
}

/// Values that take long to read: of the files, the last block, and all headers.
#[derive(Clone, Debug)]
pub struct Slow {
    /// The block that they belong to.
    pub tip: BlockHash,
    size_on_disk: Option<u64>,
    chain_tips: usize,
    block: Option<(u32, BlockSums)>,
}

impl Slow {
    /// Bytes of block and undo files.
    pub fn size_on_disk(&self) -> Option<u64> {
        self.size_on_disk
    }

    /// `None` during the start of the node.
    pub fn read(context: &Context, leaves: &mut Leaves) -> Option<Slow> {
        let engine = context.engine().ok().filter(|_| context.check_ready().is_ok())?;
        let info = engine.settled_info();
        Some(Slow {
            tip: info.node.hash,
            size_on_disk: engine.size_on_disk().ok(),
            chain_tips: leaves.chain_tips(&engine),
            block: BlockSums::of(&engine, &info).ok().map(|sums| (info.node.height.0, sums)),
        })
    }
}

/// The headers without a child among those that were seen. A header never leaves the tree.
#[derive(Debug, Default)]
pub struct Leaves {
    seen: usize,
    leaves: BTreeSet<HeaderId>,
}

/// Headers that are looked at before the tree is given back.
const HEADERS_AT_ONCE: usize = 4_096;

impl Leaves {
    /// The number of tips that `getchaintips` lists: the tip, and the other headers without a child.
    fn chain_tips(&mut self, engine: &Engine) -> usize {
        loop {
            let tips = engine.with_tree(|tree| {
                for id in tree.ids().skip(self.seen).take(HEADERS_AT_ONCE) {
                    if let Some(parent) = tree.parent(id) {
                        self.leaves.remove(&parent);
                    }
                    self.leaves.insert(id);
                    self.seen += 1;
                }
                (self.seen == tree.len()).then(|| self.leaves.len() + usize::from(!self.leaves.contains(&tree.tip())))
            });
            if let Some(tips) = tips {
                return tips;
            }
        }
    }
}

fn of_chain(reading: &Reading, out: &mut Samples, value: fn(&ChainReading) -> Option<f64>) {
    out.known(reading.chain.as_ref().and_then(value));
}

fn of_pool(reading: &Reading, out: &mut Samples, value: fn(&PoolReading) -> f64) {
    out.known(reading.pool.as_ref().map(value));
}

fn of_network(reading: &Reading, out: &mut Samples, value: fn(&NetworkTotals) -> u64) {
    out.known(reading.network.as_ref().map(|totals| float(value(totals))));
}

fn of_bans(reading: &Reading, out: &mut Samples, value: fn(&BanFigures) -> i64) {
    let bans = reading.network.as_ref().map(|totals| totals.bans).filter(|bans| bans.count > 0);
    out.known(bans.map(|bans| signed(value(&bans))));
}

fn of_block(reading: &Reading, out: &mut Samples, value: fn(&BlockSums) -> f64) {
    out.known(reading.slow.as_ref().and_then(|slow| slow.block.as_ref()).map(|(_, sums)| value(sums)));
}

#[allow(clippy::cast_precision_loss, reason = "the exposition format has floating-point numbers only")]
fn signed(number: i64) -> f64 {
    number as f64
}

/// Satoshi as the exporter has them, in bitcoin.
fn bitcoin(satoshi: i64) -> f64 {
    signed(satoshi) / 1e8
}

/// Lydian locks no memory: see `getmemoryinfo`.
const NO_MEMORY: fn(&Reading, &mut Samples) = |_, out| out.count(0);

/// The targets of the exporter's estimates, in blocks.
const ESTIMATE_TARGETS: [u32; 4] = [2, 3, 5, 20];

/// The estimate for the target at this place of [`ESTIMATE_TARGETS`].
fn of_estimate(reading: &Reading, out: &mut Samples, place: usize) {
    out.known(reading.pool.as_ref().and_then(|pool| pool.estimates[place]).map(bitcoin));
}

/// The figures of the exporter, in its order.
#[rustfmt::skip]
pub const CORE_FIGURES: &[Figure<Reading>] = &[
    Figure::gauge("bitcoin_blocks", "blocks", "Height of the tip of the validated chain.", |reading, out| of_chain(reading, out, |chain| Some(chain.blocks.into()))),
    Figure::gauge("bitcoin_difficulty", "", "Difficulty of the tip.", |reading, out| of_chain(reading, out, |chain| Some(chain.difficulty))),
    Figure::gauge("bitcoin_peers", "peers", "Open connections to peers.", |reading, out| of_network(reading, out, |totals| u64::from(totals.connections_in) + u64::from(totals.connections_out))),
    Figure::gauge("bitcoin_conn_in", "peers", "Open inbound connections.", |reading, out| of_network(reading, out, |totals| totals.connections_in.into())),
    Figure::gauge("bitcoin_conn_out", "peers", "Open outbound connections.", |reading, out| of_network(reading, out, |totals| totals.connections_out.into())),
    Figure::gauge("bitcoin_hashps", "hashes per second", "Estimated hash rate of the network over the last 120 blocks.", |reading, out| of_chain(reading, out, |chain| chain.hashes[0])),
    Figure::gauge("bitcoin_hashps_1", "hashes per second", "Estimated hash rate of the network over the last block.", |reading, out| of_chain(reading, out, |chain| chain.hashes[1])),
    Figure::gauge("bitcoin_hashps_neg1", "hashes per second", "Estimated hash rate of the network since the last change of the difficulty.", |reading, out| of_chain(reading, out, |chain| chain.hashes[2])),
    Figure::gauge("bitcoin_est_smart_fee_2", "BTC/kvB", "Estimated fee rate for confirmation within 2 blocks. Missing until the node has an estimate.", |reading, out| of_estimate(reading, out, 0)),
    Figure::gauge("bitcoin_est_smart_fee_3", "BTC/kvB", "Estimated fee rate for confirmation within 3 blocks. Missing until the node has an estimate.", |reading, out| of_estimate(reading, out, 1)),
    Figure::gauge("bitcoin_est_smart_fee_5", "BTC/kvB", "Estimated fee rate for confirmation within 5 blocks. Missing until the node has an estimate.", |reading, out| of_estimate(reading, out, 2)),
    Figure::gauge("bitcoin_est_smart_fee_20", "BTC/kvB", "Estimated fee rate for confirmation within 20 blocks. Missing until the node has an estimate.", |reading, out| of_estimate(reading, out, 3)),
    Figure::counter("bitcoin_warnings_total", "scrapes", "Scrapes at which the node had a warning: the exporter's bitcoin_warnings, as its library writes it.", |reading, out| out.count(reading.warned)),
    Figure::gauge("bitcoin_uptime", "seconds", "Time since the start of the node.", |reading, out| out.count(reading.uptime)),
    Figure::gauge("bitcoin_meminfo_used", "bytes", "Locked memory that is in use. Always 0: Lydian locks no memory.", NO_MEMORY),
    Figure::gauge("bitcoin_meminfo_free", "bytes", "Locked memory that is free. Always 0: Lydian locks no memory.", NO_MEMORY),
    // A gauge of the exporter; promtool expects a counter by its name.
    Figure::counter("bitcoin_meminfo_total", "bytes", "Locked memory. Always 0: Lydian locks no memory.", NO_MEMORY),
    Figure::gauge("bitcoin_meminfo_locked", "bytes", "Memory that could be locked. Always 0: Lydian locks no memory.", NO_MEMORY),
    Figure::gauge("bitcoin_meminfo_chunks_used", "chunks", "Chunks of locked memory in use. Always 0: Lydian locks no memory.", NO_MEMORY),
    Figure::gauge("bitcoin_meminfo_chunks_free", "chunks", "Free chunks of locked memory. Always 0: Lydian locks no memory.", NO_MEMORY),
    Figure::gauge("bitcoin_mempool_bytes", "vbytes", "Sum of the virtual sizes of the transactions in the mempool.", |reading, out| of_pool(reading, out, |pool| float(pool.vbytes))),
    Figure::gauge("bitcoin_mempool_size", "transactions", "Transactions in the mempool.", |reading, out| of_pool(reading, out, |pool| float(pool.count as u64))),
    Figure::gauge("bitcoin_mempool_usage", "bytes", "Memory that Bitcoin Core would need for the mempool; -maxmempool limits it.", |reading, out| of_pool(reading, out, |pool| float(pool.usage))),
    Figure::gauge("bitcoin_mempool_minfee", "BTC/kvB", "Fee rate that a transaction must pay to enter the mempool.", |reading, out| of_pool(reading, out, |pool| bitcoin(pool.min_fee))),
    Figure::gauge("bitcoin_mempool_unbroadcast", "transactions", "Transactions of this node that no peer has requested yet.", |reading, out| of_pool(reading, out, |pool| float(pool.unbroadcast as u64))),
    Figure::gauge("bitcoin_latest_block_height", "blocks", "Height of the block that the figures of the latest block belong to.", |reading, out| out.known(reading.slow.as_ref().and_then(|slow| slow.block.as_ref()).map(|(height, _)| (*height).into()))),
    Figure::gauge("bitcoin_latest_block_weight", "weight units", "Weight of the transactions of the latest block, without the coinbase.", |reading, out| of_block(reading, out, |sums| signed(sums.weight))),
    Figure::gauge("bitcoin_latest_block_size", "bytes", "Size of the transactions of the latest block, without the coinbase.", |reading, out| of_block(reading, out, |sums| signed(sums.size))),
    Figure::gauge("bitcoin_latest_block_txs", "transactions", "Transactions of the latest block.", |reading, out| of_block(reading, out, |sums| signed(sums.transactions))),
    Figure::gauge("bitcoin_txcount", "transactions", "Transactions of the validated chain.", |reading, out| of_chain(reading, out, |chain| chain.transactions.map(float))),
    Figure::gauge("bitcoin_num_chaintips", "branches", "Tips of all known branches of headers.", |reading, out| out.known(reading.slow.as_ref().map(|slow| float(slow.chain_tips as u64)))),
    Figure::gauge("bitcoin_total_bytes_recv", "bytes", "Bytes received from peers since the start of the node.", |reading, out| of_network(reading, out, |totals| totals.bytes_received)),
    Figure::gauge("bitcoin_total_bytes_sent", "bytes", "Bytes sent to peers since the start of the node.", |reading, out| of_network(reading, out, |totals| totals.bytes_sent)),
    Figure::gauge("bitcoin_latest_block_inputs", "inputs", "Inputs of the latest block, without the coinbase.", |reading, out| of_block(reading, out, |sums| signed(sums.inputs))),
    Figure::gauge("bitcoin_latest_block_outputs", "outputs", "Outputs of the latest block.", |reading, out| of_block(reading, out, |sums| signed(sums.outputs))),
    Figure::gauge("bitcoin_latest_block_value", "BTC", "Value of the outputs of the latest block, without the coinbase.", |reading, out| of_block(reading, out, |sums| bitcoin(sums.value))),
    Figure::gauge("bitcoin_latest_block_fee", "BTC", "Fees of the latest block.", |reading, out| of_block(reading, out, |sums| bitcoin(sums.fees))),
    Figure::gauge("bitcoin_ban_created", "seconds since 1970", "When the newest ban was made; missing without bans. The exporter has a series for each ban, with the address.", |reading, out| of_bans(reading, out, |bans| bans.newest)),
    Figure::gauge("bitcoin_banned_until", "seconds since 1970", "When the last ban ends; missing without bans. The exporter has a series for each ban, with the address.", |reading, out| of_bans(reading, out, |bans| bans.last_end)),
    Figure::gauge("bitcoin_server_version", "", "Version of the Bitcoin Core release with this interface.", |_, out| out.number(VERSION.into())),
    Figure::gauge("bitcoin_protocol_version", "", "Version of the peer-to-peer protocol.", |_, out| out.number(PROTOCOL_VERSION.into())),
    Figure::gauge("bitcoin_size_on_disk", "bytes", "Size of the block and undo files.", |reading, out| out.known(reading.slow.as_ref().and_then(|slow| slow.size_on_disk).map(float))),
    Figure::gauge("bitcoin_verification_progress", "", "Estimated share of the chain's transactions that are validated, from 0 to 1.", |reading, out| of_chain(reading, out, |chain| Some(chain.progress))),
    Figure::gauge("bitcoin_rpc_active", "calls", "RPC calls that are being answered.", |reading, out| out.count(reading.active as u64)),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the exporter's figures about the node.
    #[test]
    fn every_figure_of_the_exporter_is_in_the_table() {
        let names: BTreeSet<&str> = CORE_FIGURES.iter().map(|figure| figure.about.name).collect();
        assert_eq!((names.len(), CORE_FIGURES.len()), (44, 44));
        assert!(names.iter().all(|name| name.starts_with("bitcoin_")));
        assert!(CORE_FIGURES.iter().all(|figure| figure.about.labels.is_empty()));
    }
}
