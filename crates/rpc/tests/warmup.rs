//! Every call fails with the warm-up error until the engine is ready.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::context;
use lydian_rpc::exec::{Reply, execute};
use lydian_rpc::{Context, Whitelist, rest, table};

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

/// So does every path of REST, but one whose arguments are looked at before.
#[test]
fn every_path_is_put_off() {
    let context = context();
    context.set_warmup("Loading block index…");
    let said = |uri: &str| {
        let (status, body) = rest::answer(&context, uri, b"").unwrap();
        (status, String::from_utf8(body).unwrap())
    };
    for path in [
        "tx/",
        "block/notxdetails/x.json",
        "block/",
        "blockpart/x?offset=1&size=2",
        "blockfilter/basic",
        "blockfilterheaders/",
        "chaininfo.json",
        "mempool/info.json",
        "headers/",
        "getutxos",
        "deploymentinfo/",
        "deploymentinfo.json",
        "blockhashbyheight/x",
        "spenttxouts/",
    ] {
        let expected = "Service temporarily unavailable: Loading block index…\r\n".to_owned();
        assert_eq!(said(&format!("/rest/{path}")), (503, expected), "{path}");
    }
    assert_eq!(said("/rest/blockpart/"), (400, "Block part offset missing or invalid\r\n".to_owned()));
    assert_eq!(rest::answer(&context, "/rest/nothing", b""), None);
}
