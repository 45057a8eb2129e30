//! The node behind the RPC targets: regtest at its genesis block, an in-memory disk and a clock that does not advance.
//!
//! It is created once and used for all inputs.

use lydian_consensus::{Chain, Params};
use lydian_disk::SimDisk;
use lydian_engine::{Engine, Layout, Settings};
use lydian_rpc::{Context, Server, ServerSettings, Whitelist};
use lydian_serve::Users;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The HTTP header that authenticates [`server`]'s user, `user:password`.
pub const AUTHORIZATION: &str = "Authorization: Basic dXNlcjpwYXNzd29yZA==\r\n";

#[path = "../../crates/rpc/tests/common/mod.rs"]
mod common;

fn context() -> Context {
    let mut context = common::context();
    context.settings.checks_help = false;
    context
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
            has_rest: true,
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
