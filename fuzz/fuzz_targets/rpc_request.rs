//! A request body with any bytes, before and after the node is ready: the response is JSON with a status that Core
//! uses.
//!
//! The first byte chooses the node. The ready node is already stopping, so that methods that wait return; `stop` is
//! left out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_fuzz::rpc::{cold, warm};
use lydian_rpc::exec::execute;
use lydian_rpc::{Method, Methods, Whitelist, table};
use std::sync::LazyLock;

/// All methods except `stop`, which can sleep for as long as the request says.
static METHODS: LazyLock<Methods> = LazyLock::new(|| {
    let methods: Vec<Method> = table::METHODS.iter().filter(|method| method.name != "stop").copied().collect();
    let methods: &'static [Method] = methods.leak();
    Methods::new(vec![methods].leak())
});

fuzz_target!(|bytes: &[u8]| {
    let Some((first, body)) = bytes.split_first() else { return };
    let is_warm = first % 4 != 0;
    let context = if is_warm { warm() } else { cold() };
    let reply = execute(context, *METHODS, &Whitelist::default(), "user", body);
    assert!([200, 204, 400, 404, 500].contains(&reply.status), "{}", reply.status);
    assert_eq!(reply.body.is_some(), reply.status != 204);
    let Some(answer) = reply.body else { return };
    let answer: serde_json::Value = serde_json::from_slice(&answer).expect("an answer is JSON");
    let answers = answer.as_array().cloned().unwrap_or(vec![answer]);
    for answer in answers {
        let is_answer = answer.get("result").is_some() || answer.get("error").is_some();
        assert!(is_answer, "{answer}");
        // No request succeeds before the engine is ready.
        assert!(is_warm || !answer["error"].is_null(), "{answer}");
    }
});
