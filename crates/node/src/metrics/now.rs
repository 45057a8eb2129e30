//! [`Now`]: what Lydian's own figures are read from, at one moment. Input: the parts of the node. Output: plain values.
//! Takes snapshots only; short locks of the header tree and the coins, as for one RPC call.

use super::slow::Values;
use super::{EventCounts, Metrics, Peers};
use crate::process;
use crate::shared_index::SHARED_NAME;
use crate::warnings::WARNINGS;
use lydian_coins::CoinsStats;
use lydian_curve::RefereeCounts;
use lydian_engine::{Engine, FollowerInfo, ReviewCounts, Snapshot};
use lydian_index::TxIndexReader;
use lydian_p2p::TrafficTotals;
use lydian_p2p::manager::SyncFigures;
use lydian_second_opinion::Counts as OpinionCounts;
use std::sync::Arc;

/// The values of one moment.
#[derive(Debug)]
pub(super) struct Now {
    pub(super) engine: Option<EngineNow>,
    pub(super) peers: Option<PeersNow>,
    /// What `-maxmempool` limits, and the fees in satoshi.
    pub(super) pool: Option<(u64, i64)>,
    pub(super) opinion: Option<OpinionCounts>,
    pub(super) slow: Arc<Values>,
    pub(super) events: Arc<EventCounts>,
    pub(super) warnings: [(&'static str, bool); WARNINGS.len()],
    pub(super) is_initial_download: bool,
    /// `-dbcache` and `-maxmempool`.
    pub(super) cache_bytes_max: u64,
    pub(super) pool_bytes_max: u64,
    pub(super) blocks_bytes: Option<u64>,
    pub(super) process: process::Usage,
}

/// The engine.
#[derive(Debug)]
pub(super) struct EngineNow {
    pub(super) progress: Snapshot,
    pub(super) coins: CoinsStats,
    /// Of the settled block.
    pub(super) height: u32,
    pub(super) time: u32,
    pub(super) headers: u32,
    pub(super) durable: Option<u32>,
    /// The name and the heights of each index.
    pub(super) indexes: Vec<IndexNow>,
    /// Memory of the tables, with one of their indexes.
    pub(super) index_bytes: Option<u64>,
    pub(super) kernel: &'static str,
    pub(super) is_trusted: bool,
    pub(super) referee: RefereeCounts,
    pub(super) reviews: ReviewCounts,
}

#[derive(Debug)]
pub(super) struct IndexNow {
    pub(super) name: &'static str,
    /// `None` before the genesis block.
    pub(super) height: Option<u32>,
    pub(super) has_failed: bool,
}

/// The peers.
#[derive(Debug)]
pub(super) struct PeersNow {
    pub(super) figures: SyncFigures,
    pub(super) traffic: Arc<TrafficTotals>,
    pub(super) memory_bytes: usize,
}

impl Now {
    pub(super) fn new(metrics: &Metrics, engine: Option<&Engine>, slow: Arc<Values>) -> Now {
        let context = &metrics.context;
        Now {
            engine: engine.map(|engine| EngineNow::new(engine, metrics)),
            peers: metrics.peers.get().map(PeersNow::new),
            pool: metrics.mempool().map(|mempool| {
                let snapshot = mempool.snapshot();
                (snapshot.info().usage, snapshot.info().fees)
            }),
            opinion: metrics.second_opinion.get().map(lydian_second_opinion::Monitor::counts),
            blocks_bytes: slow.core.as_ref().and_then(|core| core.size_on_disk()),
            slow,
            events: Arc::clone(&metrics.events),
            warnings: WARNINGS.map(|kind| (kind.name, metrics.warnings.has(kind.id))),
            is_initial_download: context.is_initial_block_download(),
            cache_bytes_max: metrics.cache_bytes,
            pool_bytes_max: metrics.mempool_bytes,
            process: process::usage(),
        }
    }
}

impl EngineNow {
    fn new(engine: &Engine, metrics: &Metrics) -> EngineNow {
        let tip = engine.settled_info();
        let referee = engine.signatures();
        EngineNow {
            progress: engine.progress(),
            coins: engine.coins_stats(),
            height: tip.node.height.0,
            time: tip.node.header.time,
            headers: engine.best_header_height().0,
            durable: engine.durable_tip().map(|tip| tip.height.0),
            indexes: indexes(engine.followers(), metrics),
            index_bytes: metrics.context.indexes().tables.as_ref().map(TxIndexReader::memory_bytes),
            kernel: referee.kernel().name(),
            is_trusted: referee.is_trusted(),
            referee: referee.counts(),
            reviews: engine.reviews(),
        }
    }
}

/// The indexes, by the names of `getindexinfo`, and the one in the store of `-index`.
fn indexes(followers: Vec<FollowerInfo>, metrics: &Metrics) -> Vec<IndexNow> {
    let shared = metrics.context.indexes().shared.as_ref();
    let names = super::table::index_names();
    let mut all = Vec::new();
    for follower in followers.into_iter().filter(|follower| follower.has_files) {
        let (height, has_failed) = (follower.tip.map(|tip| tip.height.0), follower.error.is_some());
        let index = |name| IndexNow { name, height, has_failed };
        match shared {
            Some((name, indexes)) if *name == follower.name => all.extend(indexes.iter().map(|name| index(*name))),
            _ => all.extend(names.iter().filter(|name| **name == follower.name).map(|name| index(*name))),
        }
    }
    all.extend(metrics.shared_index.get().map(|shared| IndexNow {
        name: SHARED_NAME,
        height: shared.height(),
        has_failed: shared.has_failed(),
    }));
    all
}

impl PeersNow {
    fn new(peers: &Peers) -> PeersNow {
        PeersNow {
            figures: peers.figures.get(),
            traffic: Arc::clone(&peers.traffic),
            memory_bytes: peers.memory.usage().used,
        }
    }
}
