//! The methods `server.*`.

use super::{Call, Method};
use crate::fault::{Fault, code};
use crate::hosts;
use crate::limits::PONG_SIZE_MAX;
use crate::version::{MAX, MIN, V1_7, Version};
use crate::write::{Json, text};
use serde_json::{Value, json};

pub(super) const METHODS: &[Method] = &[
    Method::new("server.version", version).takes(&["client_name", "protocol_version"], 0).costs(5),
    Method::new("server.banner", banner),
    Method::new("server.donation_address", donation_address),
    Method::new("server.features", features),
    Method::new("server.peers.subscribe", peers),
    Method::new("server.add_peer", add_peer).takes(&["features"], 1).costs(10),
    Method::new("server.ping", ping).takes(&["pong_len", "data"], 0),
];

/// The first call is accepted only.
fn version(call: &Call<'_>) -> Result<Json, Fault> {
    let wrong = || Fault::params("argument 2 (protocol_version) must be a version such as \"1.4\", or a pair of them");
    let read = |value: &Value| value.as_str().and_then(Version::parse).ok_or_else(wrong);
    let (min, max) = match call.params.value(1) {
        None => (MIN, MIN),
        Some(Value::Array(pair)) => match &pair[..] {
            [min, max] => (read(min)?, read(max)?),
            _ => return Err(wrong()),
        },
        Some(one) => (read(one)?, read(one)?),
    };
    let agreed = Version::agree(min, max).ok_or_else(|| {
        call.session.close_after_answer();
        Fault::bad(format!("unsupported protocol version: {min} to {max}; this server speaks {MIN} to {MAX}"))
    })?;
    let name = call.params.value(0).and_then(Value::as_str).unwrap_or_default();
    if !call.session.agree(agreed, name) {
        return Err(Fault::bad("server.version was sent already"));
    }
    Ok(json!([call.shared.identity.name, agreed.to_string()]).to_string().into_bytes())
}

fn banner(call: &Call<'_>) -> Result<Json, Fault> {
    Ok(text(&call.shared.live.get().banner))
}

fn donation_address(call: &Call<'_>) -> Result<Json, Fault> {
    Ok(text(&call.shared.live.get().donation_address))
}

fn features(call: &Call<'_>) -> Result<Json, Fault> {
    let identity = &call.shared.identity;
    let mut features = json!({
        "genesis_hash": identity.genesis.to_string(),
        "hosts": hosts::features(&call.shared.live.get().hosts),
        "protocol_min": MIN.to_string(),
        "protocol_max": MAX.to_string(),
        "pruning": null,
        "server_version": identity.name,
        "services": [],
    });
    if call.version < V1_7 {
        features["hash_function"] = Value::from("sha256");
    }
    Ok(features.to_string().into_bytes())
}

/// Those that the operator named.
fn peers(call: &Call<'_>) -> Result<Json, Fault> {
    Ok(hosts::peers(&call.shared.live.get().peers).to_string().into_bytes())
}

/// The list of other servers takes no additions.
fn add_peer(_: &Call<'_>) -> Result<Json, Fault> {
    Ok(b"false".to_vec())
}

fn ping(call: &Call<'_>) -> Result<Json, Fault> {
    if call.version < V1_7 {
        return Ok(b"null".to_vec());
    }
    pong(call.params.number_or(0, 0)? as usize)
}

/// So many characters.
fn pong(size: usize) -> Result<Json, Fault> {
    if size > PONG_SIZE_MAX {
        let words = format!("argument 1 (pong_len) must be at most {PONG_SIZE_MAX}");
        return Err(Fault::new(code::INVALID_PARAMS, words));
    }
    Ok(json!({ "data": "0".repeat(size) }).to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// limit: PONG_SIZE_MAX at
    /// limit: PONG_SIZE_MAX above
    #[test]
    fn a_pong_is_as_long_as_asked_for() {
        assert_eq!(pong(3).unwrap(), b"{\"data\":\"000\"}");
        assert_eq!(pong(PONG_SIZE_MAX).unwrap().len(), PONG_SIZE_MAX + 11);
        assert_eq!(pong(PONG_SIZE_MAX + 1).unwrap_err().code, code::INVALID_PARAMS);
    }
}
