//! What the running node answers. Input: settings, the cookie. Output: the answers to a batch of four calls, or why
//! there are none.

use crate::client::{self, Bounds};
use crate::settings::Settings;
use lydian_disk::Disk;
use lydian_serve::bind_addresses;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Long enough for a node that is busy, and short enough for a person.
const BOUNDS: Bounds = Bounds { wait: Duration::from_secs(3), size_max: 1 << 20 };

const METHODS: [&str; 4] = ["getblockchaininfo", "getnetworkinfo", "getindexinfo", "uptime"];

/// The results of the calls.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    pub(crate) chain: Value,
    pub(crate) network: Value,
    pub(crate) indexes: Value,
    pub(crate) uptime_seconds: u64,
}

/// Where the RPC server answers on this machine.
fn address(settings: &Settings) -> Option<SocketAddr> {
    let here = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port()),
        _ => address,
    };
    let bound = bind_addresses(settings.rpc.bound(), settings.rpc.port).ok()?;
    let bound: Vec<SocketAddr> = bound.into_iter().map(here).collect();
    client::local(&bound).or(bound.first().copied())
}

pub(crate) fn ask(settings: &Settings, disk: &dyn Disk) -> Result<Answers, String> {
    if !settings.rpc.is_on {
        return Err("its RPC server is switched off (-server=0)".to_owned());
    }
    let Some(address) = address(settings) else { return Err("-rpcbind names no address".to_owned()) };
    let credentials = client::credentials(settings, disk)?;
    let calls: Vec<Value> =
        METHODS.iter().enumerate().map(|(id, method)| json!({ "id": id, "method": method })).collect();
    let body = client::post(address, "/", &credentials, &Value::from(calls).to_string(), BOUNDS)
        .map_err(|error| format!("its RPC server does not answer at {address}: {error}"))?;
    answers(&body).ok_or_else(|| match refusal(&body) {
        Some(words) => format!("its RPC server at {address} answers: {words}"),
        None => format!("what answers at {address} is no RPC server, or refuses the cookie"),
    })
}

/// The results of a batch; `None` if one of the calls failed.
fn answers(body: &str) -> Option<Answers> {
    let batch: Vec<Value> = serde_json::from_str(body).ok()?;
    let result = |id: usize| {
        let answer = batch.iter().find(|answer| answer["id"] == json!(id))?;
        answer.get("result").filter(|result| !result.is_null()).cloned()
    };
    Some(Answers { chain: result(0)?, network: result(1)?, indexes: result(2)?, uptime_seconds: result(3)?.as_u64()? })
}

/// The words of the first error in an answer.
fn refusal(body: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(body).ok()?;
    let answers = answer.as_array().cloned().unwrap_or_else(|| vec![answer]);
    answers.iter().find_map(|answer| Some(answer["error"]["message"].as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_all_answers_or_none() {
        let whole = r#"[{"id":1,"result":{}},{"id":0,"result":{"blocks":7}},{"id":2,"result":{}},{"id":3,"result":9}]"#;
        let found = answers(whole).unwrap();
        assert_eq!((&found.chain["blocks"], found.uptime_seconds), (&json!(7), 9));
        let failed = r#"[{"id":0,"result":null,"error":{"code":-28,"message":"Loading block index…"}}]"#;
        assert!(answers(failed).is_none());
        assert_eq!(refusal(failed).as_deref(), Some("Loading block index…"));
        for nonsense in ["", "{}", "<html>", "[]", "[1]"] {
            assert!(answers(nonsense).is_none() && refusal(nonsense).is_none(), "{nonsense}");
        }
    }
}
