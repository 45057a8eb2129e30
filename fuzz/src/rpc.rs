//! The node behind the RPC targets: regtest at its genesis block, an in-memory disk and a clock that does not advance.
//!
//! It is created once and used for all inputs.

use lydian_consensus::{Chain, Params, U256};
use lydian_disk::SimDisk;
use lydian_engine::{Engine, InitialDownload, Layout, Settings, TIP_AGE_SECONDS_DEFAULT, Unobserved};
use lydian_rpc::{Context, Host, LogLevel, NodeSettings, ProgressOf, PruneMode, Server, ServerSettings, Whitelist};
use lydian_serve::Users;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The HTTP header that authenticates [`server`]'s user, `user:password`.
pub const AUTHORIZATION: &str = "Authorization: Basic dXNlcjpwYXNzd29yZA==\r\n";

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

    fn log(&self, _: LogLevel, _: &str) {}

    fn verification_progress(&self, _: &ProgressOf, _: i64) -> f64 {
        1.0
    }
}

fn context() -> Context {
    let settings = NodeSettings {
        params: Params::new(Chain::Regtest),
        minimum_chain_work: U256::ZERO,
        initial_download: Arc::new(InitialDownload::new(U256::ZERO, TIP_AGE_SECONDS_DEFAULT)),
        prune: PruneMode::Never,
        proxies: lydian_p2p::proxies::Proxies::default(),
        cache_bytes: 1 << 20,
        check_blocks: 6,
        check_level: 3,
        deprecated: Vec::new(),
        checks_help: false,
        block_version: None,
    };
    Context::new(Arc::new(Still), settings, Arc::new(Unobserved))
}

/// The context of a node that is not ready yet.
pub fn cold() -> &'static Context {
    static COLD: OnceLock<Context> = OnceLock::new();
    COLD.get_or_init(context)
}

/// The context of a node that is ready and stopping, so that no call waits and no block is mined.
pub fn warm() -> &'static Context {
    static WARM: OnceLock<(Context, Arc<Engine>)> = OnceLock::new();
    let make = || {
        let layout = Layout { blocks: "/blocks".into(), index: "/index".into(), coins: "/coins".into() };
        let disk = Arc::new(SimDisk::new(1));
        let opened = Engine::open(disk, &layout, Params::new(Chain::Regtest), Settings::new(1), Vec::new());
        let engine = Arc::new(opened.expect("an empty disk").engine);
        let context = context();
        context.set_ready(&engine);
        context.stop();
        (context, engine)
    };
    &WARM.get_or_init(make).0
}

/// The address of a server whose node is not ready.
pub fn server() -> SocketAddr {
    static SERVER: OnceLock<(Server, SocketAddr)> = OnceLock::new();
    let make = || {
        let mut users = Users::default();
        users.add("user", "password").expect("random numbers");
        let settings = ServerSettings {
            addresses: vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))],
            allowed: Vec::new(),
            users,
            whitelist: Whitelist::default(),
            threads: 2,
            queue: 16,
            idle: Some(Duration::from_secs(5)),
        };
        let server = Server::start(Arc::new(context()), settings).expect("a free port");
        let address = server.addresses()[0];
        (server, address)
    };
    SERVER.get_or_init(make).1
}
