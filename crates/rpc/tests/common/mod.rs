//! A context without a node, and one with an engine and a mempool.
#![allow(clippy::unwrap_used, dead_code, reason = "each test file uses its part, and fails by panicking")]

use lydian_consensus::{Chain, Params, U256};
use lydian_disk::SimDisk;
use lydian_engine::{
    Engine, Follower, InitialDownload, Layout, LogLine, Settings, TIP_AGE_SECONDS_DEFAULT, Unobserved,
};
use lydian_mempool::pool::BlockOptions;
use lydian_mempool::{Clock, Mempool, Secrets};
use lydian_rpc::{Context, Host, NodeSettings, ProgressOf, PruneMode};
use std::sync::Arc;

/// A program with a clock that stands still.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn unix_seconds(&self) -> i64 {
        1_700_000_000
    }
}

impl Host for Still {
    fn unix_micros(&self) -> u64 {
        1_700_000_000_000_000
    }

    fn steady_micros(&self) -> u64 {
        0
    }

    fn set_mock_time(&self, _: i64) {}

    fn request_stop(&self) {}

    fn fill_random(&self, _: &mut [u8]) {}

    fn log_path(&self) -> String {
        String::new()
    }

    fn log_categories(&self) -> Vec<(&'static str, bool)> {
        vec![("net", false)]
    }

    fn set_log_category(&self, name: &str, _: bool) -> bool {
        name == "net"
    }

    fn log_line(&self, _: &LogLine) {}

    fn verification_progress(&self, _: &ProgressOf, _: i64) -> f64 {
        1.0
    }
}

pub(crate) fn context() -> Context {
    context_of(Arc::new(Still))
}

/// The context of a program.
pub(crate) fn context_of(host: Arc<dyn Host>) -> Context {
    let settings = NodeSettings {
        notifiers: Vec::new(),
        params: Params::new(Chain::Regtest),
        minimum_chain_work: U256::ZERO,
        initial_download: Arc::new(InitialDownload::new(U256::ZERO, TIP_AGE_SECONDS_DEFAULT)),
        warnings: Arc::default(),
        is_fast_prune: false,
        prune: PruneMode::Never,
        cache_bytes: 1 << 20,
        check_blocks: 6,
        check_level: 3,
        deprecated: Vec::new(),
        checks_help: true,
        block_version: None,
        block: BlockOptions::default(),
    };
    Context::new(host, settings, Arc::new(Unobserved))
}

/// A node whose disk is memory and whose mempool accepts transactions that are not standard.
pub(crate) struct Node {
    pub(crate) context: Context,
    pub(crate) engine: Arc<Engine>,
    pub(crate) mempool: Arc<Mempool>,
}

/// A node at the genesis block of regtest that answers.
pub(crate) fn node() -> Node {
    node_of(context(), Vec::new())
}

/// The same with a context, and with followers beside the mempool.
pub(crate) fn node_of(context: Context, mut followers: Vec<Box<dyn Follower>>) -> Node {
    let settings = lydian_mempool::policy::Settings { require_standard: false, ..Default::default() };
    let mempool = Arc::new(Mempool::new(settings, Arc::new(Still), Secrets { salt: [1; 32], seed: 2 }));
    let layout = Layout { blocks: "/blocks".into(), index: "/index".into(), coins: "/coins".into() };
    let settings = Settings { known_scripts: Some(mempool.known_scripts()), ..Settings::new(2) };
    let (disk, params) = (Arc::new(SimDisk::new(1)), Params::new(Chain::Regtest));
    followers.insert(0, mempool.follower());
    let engine = Arc::new(Engine::open(disk, &layout, params, settings, followers).unwrap().engine);
    mempool.start(Arc::clone(&engine), 1).unwrap();
    mempool.set_loaded();
    context.set_mempool(Arc::clone(&mempool));
    context.set_ready(&engine);
    Node { context, engine, mempool }
}
