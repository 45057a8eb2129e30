//! Arbitrary bytes as a request get an answer and never cause a panic.
//!
//! Every method is called with arguments of every type and form, and the bytes of such requests are truncated,
//! duplicated and flipped. The node is already stopping, so that no call waits or mines.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Node, node};
use lydian_rpc::exec::{Reply, execute};
use lydian_rpc::{Context, Whitelist, table};

const GENESIS: &str = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";

fn ask(context: &Context, body: &[u8]) -> Reply {
    let reply = execute(context, table::METHODS, &Whitelist::default(), "user", body);
    let is_known = [200, 204, 400, 404, 500].contains(&reply.status);
    assert!(is_known && reply.body.is_some() == (reply.status != 204), "{reply:?}");
    if let Some(body) = &reply.body {
        let text = String::from_utf8_lossy(body);
        assert!(serde_json::from_slice::<serde_json::Value>(body).is_ok(), "{text}");
        assert!(!text.contains("returned incorrect type"), "{text}");
    }
    reply
}

/// Every method with every list of up to three of these values.
#[test]
fn every_method_answers_whatever_it_is_asked() {
    let Node { context, engine: _engine, mempool: _mempool } = node();
    context.stop();
    let hash = format!("\"{GENESIS}\"");
    let values =
        ["null", "true", "-1", "0", "1", "2147483647", "1e99", "\"\"", "\"00\"", &hash, "[]", "[\"raw(51)\"]", "{}"];
    let mut lists = vec![String::new()];
    for first in values {
        lists.push(first.to_owned());
        for second in values {
            lists.push(format!("{first},{second}"));
            lists.extend(["null", "true", "0"].map(|third| format!("{first},{second},{third}")));
        }
    }
    let mut answers = 0;
    // `stop` sleeps for as long as its argument says.
    for method in table::METHODS.iter().filter(|method| method.name != "stop") {
        for list in &lists {
            let body = format!("{{\"method\":\"{}\",\"params\":[{list}],\"id\":1}}", method.name);
            answers += usize::from(ask(&context, body.as_bytes()).status == 200);
        }
    }
    assert!(answers > 100, "{answers} calls succeeded");
}

/// Malformed requests.
#[test]
fn mangled_requests_are_answered() {
    let Node { context, engine: _engine, mempool: _mempool } = node();
    context.stop();
    let requests = [
        format!("{{\"method\":\"getblock\",\"params\":[\"{GENESIS}\",2],\"id\":\"\\u0041\"}}"),
        format!("[{{\"method\":\"getblockheader\",\"params\":{{\"blockhash\":\"{GENESIS}\"}},\"jsonrpc\":\"2.0\"}},5]"),
        "{\"method\":\"validateaddress\",\"params\":[\"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080\"],\"id\":1.5}".to_owned(),
        "{\"method\":\"decodescript\",\"params\":[\"5121020202020202020202020202020202020202020202020202020202020202020251ae\"]}".to_owned(),
        "{\"method\":\"getdescriptorinfo\",\"params\":[\"sh(multi(1,0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798))\"]}"
            .to_owned(),
        "{\"method\":\"submitheader\",\"params\":[\"00\"],\"id\":{\"a\":[1,{\"b\":null}]}}".to_owned(),
    ];
    // A linear congruential generator by Knuth; any generator would do.
    let mut state: u64 = 1;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for round in 0..10_000 {
        let mut bytes = requests[round % requests.len()].clone().into_bytes();
        for _ in 0..=next(3) {
            let at = next(bytes.len());
            match next(5) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] ^= 1 << next(8),
                2 => bytes.insert(at, b"{}[],:\"\\0-.e\x00\xff"[next(14)]),
                3 => {
                    bytes.remove(at);
                    bytes.push(b' ');
                }
                _ => {
                    let end = at + next(bytes.len() - at);
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        ask(&context, &bytes);
    }
}
