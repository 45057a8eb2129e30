//! Every call fails with the warm-up error until the engine is ready.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::context;
use lydian_rpc::exec::{Reply, execute};
use lydian_rpc::{Context, Whitelist, table};

fn ask(context: &Context, body: &str) -> Reply {
    execute(context, table::METHODS, &Whitelist::default(), "user", body.as_bytes())
}

/// Every client retries after -28, whatever it called, and relies on the number.
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
