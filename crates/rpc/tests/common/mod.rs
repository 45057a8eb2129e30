//! A context without a node.

use lydian_consensus::{Chain, Params, U256};
use lydian_engine::LogLine;
use lydian_engine::{InitialDownload, TIP_AGE_SECONDS_DEFAULT, Unobserved};
use lydian_rpc::{Context, Host, NodeSettings, ProgressOf, PruneMode};
use std::sync::Arc;

/// A program with a clock that stands still.
#[derive(Debug)]
struct Still;

impl Host for Still {
    fn unix_micros(&self) -> u64 {
        1_700_000_000_000_000
    }

    fn steady_micros(&self) -> u64 {
        0
    }

    fn set_mock_time(&self, _: i64) {}

    fn request_stop(&self) {}

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
    };
    Context::new(Arc::new(Still), settings, Arc::new(Unobserved))
}
