//! REST with any path and body, before and after the node is ready: a status that Core uses, and a body that ends as
//! its format does.
//!
//! The first byte chooses the node. The path is what follows `/rest/` up to the first byte 0; the rest is the body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_fuzz::rpc::{cold, warm};
use lydian_rpc::rest::answer;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (path, body) = rest.split_at(end);
    // The server gets text only.
    let Ok(path) = std::str::from_utf8(path) else { return };
    let is_warm = first % 4 != 0;
    let context = if is_warm { warm() } else { cold() };
    let uri = format!("/rest/{path}");
    let Some((status, answer)) = answer(context, &uri, body.get(1..).unwrap_or_default()) else { return };
    // Nothing is found before the engine is ready; the node of the fuzzer reads from memory, which does not fail.
    let statuses: &[u16] = if is_warm { &[200, 400, 404] } else { &[400, 503] };
    assert!(statuses.contains(&status), "{status}");
    if status != 200 {
        assert!(answer.ends_with(b"\r\n"), "{}", String::from_utf8_lossy(&answer));
        return;
    }
    let before_query = uri.rsplit_once('?').map_or(&uri[..], |(path, _)| path);
    if before_query.ends_with(".json") {
        serde_json::from_slice::<serde_json::Value>(&answer).expect("JSON");
    } else if before_query.ends_with(".hex") {
        let digits = answer.strip_suffix(b"\n").expect("a newline");
        assert!(digits.iter().all(u8::is_ascii_hexdigit), "{}", String::from_utf8_lossy(digits));
    } else {
        assert!(before_query.ends_with(".bin"), "{uri}");
    }
});
