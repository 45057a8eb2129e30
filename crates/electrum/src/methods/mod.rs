//! The table of methods: names, versions, arguments.
//!
//! Input: a request. Output: the JSON of its result, or an error. A method that another version of the protocol has is
//! unknown to a client that speaks this one.

mod chain;
mod mempool;
mod script;
mod server;
mod transaction;

use crate::cost::{Points, REQUEST};
use crate::fault::{Fault, code};
use crate::params::Params;
use crate::server::Shared;
use crate::session::Session;
use crate::stream::Slot;
use crate::version::{MAX, MIN, V1_7, Version};
use crate::watched::{Found, Watch};
use crate::write::{Json, notification, put, put_hash};
use serde_json::Value;

/// What a method works on.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: &'a Session,
    pub(crate) version: Version,
    pub(crate) params: Params,
    /// Where the rest of a long answer goes.
    pub(crate) slot: &'a Slot,
}

/// A method.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// The versions that have it.
    pub(crate) from: Version,
    pub(crate) to: Version,
    pub(crate) params: &'static [&'static str],
    /// So many of them must be given.
    pub(crate) required: usize,
    /// What a call costs, in addition to bytes and time.
    pub(crate) cost: Points,
    pub(crate) call: fn(&Call<'_>) -> Result<Json, Fault>,
}

impl Method {
    /// A method of all versions without arguments.
    pub(crate) const fn new(name: &'static str, call: fn(&Call<'_>) -> Result<Json, Fault>) -> Method {
        Method { name, from: MIN, to: MAX, params: &[], required: 0, cost: REQUEST, call }
    }

    pub(crate) const fn takes(self, params: &'static [&'static str], required: usize) -> Method {
        Method { params, required, ..self }
    }

    pub(crate) const fn from(self, from: Version) -> Method {
        Method { from, ..self }
    }

    /// So many times as much as most.
    pub(crate) const fn costs(self, times: Points) -> Method {
        Method { cost: times * REQUEST, ..self }
    }

    pub(crate) const fn to(self, to: Version) -> Method {
        Method { to, ..self }
    }
}

const PARTS: &[&[Method]] = &[server::METHODS, chain::METHODS, script::METHODS, transaction::METHODS, mempool::METHODS];

/// All methods.
pub(crate) fn methods() -> impl Iterator<Item = &'static Method> {
    PARTS.iter().copied().flatten()
}

/// Calls a method, unless the client has cost too much.
pub(crate) fn call(shared: &Shared, session: &Session, name: &str, params: Value, slot: &Slot) -> Result<Json, Fault> {
    let mut timer = shared.counts.requests.begin(name);
    session.check_cost(shared)?;
    let cost = methods().find(|method| method.name == name).map_or(REQUEST, |method| method.cost);
    let make = || call_unmeasured(shared, session, name, params, slot);
    let result = session.meter.measure(cost, shared.live.get().costs, make);
    if result.is_ok() {
        timer.answered();
    }
    result
}

fn call_unmeasured(shared: &Shared, session: &Session, name: &str, params: Value, slot: &Slot) -> Result<Json, Fault> {
    let version = session.version();
    let found = methods().find(|method| method.name == name && (method.from..=method.to).contains(&version));
    let Some(method) = found else {
        let other = methods().find(|method| method.name == name);
        let words = match other {
            Some(_) => format!("method {name} is not in version {version} of the protocol"),
            None => format!("unknown method \"{name}\""),
        };
        return Err(Fault::new(code::UNKNOWN_METHOD, words));
    };
    let params = match (name, params) {
        // More than two arguments are ignored, so that later versions may add some.
        ("server.version", Value::Array(mut values)) => {
            values.truncate(method.params.len());
            Value::Array(values)
        }
        (_, params) => params,
    };
    let params = Params::read(params, method.params, method.required)?;
    (method.call)(&Call { shared, session, version, params, slot })
}

/// The notifications that a session is to be sent.
pub(crate) fn notices(shared: &Shared, session: &Session) -> Json {
    let marks = session.outbox.take();
    let mut out = Vec::new();
    if marks.has_header
        && let Ok((height, header)) = shared.query.tip()
        && session.is_new_header(&header.hash())
    {
        let mut params = vec![b'['];
        params.extend(chain::tip_of(height, &header));
        params.push(b']');
        notification(&mut out, "blockchain.headers.subscribe", &params);
    }
    let is_new = session.version() >= V1_7;
    let of_scripts = if is_new { "blockchain.scriptpubkey.subscribe" } else { "blockchain.scripthash.subscribe" };
    for (watch, found) in marks.changed.iter().filter_map(|number| shared.subscriptions.known(*number)) {
        let mut params = vec![b'['];
        let name = match watch {
            Watch::Script(hash) => {
                put_hash(&mut params, &hash.0);
                of_scripts
            }
            Watch::Output(outpoint) => {
                put_hash(&mut params, &outpoint.txid.0);
                put(&mut params, format_args!(",{}", outpoint.vout));
                "blockchain.outpoint.subscribe"
            }
            Watch::Transaction(txid) => {
                put_hash(&mut params, &txid.0);
                "blockchain.transaction.subscribe"
            }
        };
        params.push(b',');
        params.extend(found_json(&found));
        params.push(b']');
        notification(&mut out, name, &params);
    }
    out
}

/// The form of what is sent to a subscriber.
fn found_json(found: &Found) -> Json {
    match found {
        Found::Script(status) => script::status_json(*status),
        Found::Output(status) => script::outpoint_json(status),
        Found::Transaction(height) => transaction::height_json(*height),
    }
}

/// Answers a subscription.
fn subscribe(call: &Call<'_>, watch: Watch) -> Result<Json, Fault> {
    Ok(found_json(&call.session.subscribe(call.shared, watch)?))
}

/// Answers whether there was a subscription.
fn unsubscribe(call: &Call<'_>, watch: &Watch) -> Result<Json, Fault> {
    Ok(call.session.unsubscribe(call.shared, watch).to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_method_has_its_own_name_and_versions() {
        let mut seen = BTreeSet::new();
        for method in methods() {
            assert!(seen.insert(method.name), "{} is there twice", method.name);
            assert!(method.from <= method.to && method.required <= method.params.len(), "{}", method.name);
        }
    }
}
