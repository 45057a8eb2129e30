//! Before the engine is there, and when it is: a context without a node around it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use lydian_consensus::{Chain, Params, U256};
use lydian_engine::Unobserved;
use lydian_rpc::exec::{Reply, execute};
use lydian_rpc::{Context, Host, LogLevel, NodeSettings, ProgressOf, PruneMode, Whitelist, table};
use std::sync::Arc;

/// A program whose clock stands still.
#[derive(Debug)]
struct Still;

impl Host for Still {
    fn unix_micros(&self) -> u64 {
        1_700_000_000_000_000
    }

    fn steady_micros(&self) -> u64 {
        0
    }

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

    fn log(&self, _: LogLevel, _: &str) {}

    fn verification_progress(&self, _: &ProgressOf, _: i64) -> f64 {
        1.0
    }
}

fn context() -> Context {
    let settings = NodeSettings {
        params: Params::new(Chain::Regtest),
        minimum_chain_work: U256::ZERO,
        prune: PruneMode::Never,
        cache_bytes: 1 << 20,
        check_blocks: 6,
        check_level: 3,
    };
    Context::new(Arc::new(Still), settings, Arc::new(Unobserved))
}

fn ask(context: &Context, body: &str) -> Reply {
    execute(context, table::find, &Whitelist::default(), "user", body.as_bytes())
}

/// Every client tries again on -28, whatever it asked for, and goes by the number.
#[test]
fn every_call_is_put_off() {
    let context = context();
    let said = |reply: Reply| (reply.status, String::from_utf8(reply.body.unwrap()).unwrap());
    for method in ["getblockcount", "help", "stop", "nonsense"] {
        let (status, body) = said(ask(&context, &format!("{{\"method\":\"{method}\",\"id\":1}}")));
        assert_eq!(status, 500);
        assert_eq!(body, "{\"result\":null,\"error\":{\"code\":-28,\"message\":\"RPC server started\"},\"id\":1}\n");
    }
    context.set_warmup("Loading block index…");
    let (status, body) = said(ask(&context, "{\"method\":\"uptime\",\"id\":1,\"jsonrpc\":\"2.0\"}"));
    assert_eq!(status, 200);
    let expected = "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-28,\"message\":\"Loading block index…\"},\"id\":1}\n";
    assert_eq!(body, expected);
}
