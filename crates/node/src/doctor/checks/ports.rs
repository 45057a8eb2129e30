//! The check of ports: every address that the settings name is free, or the node itself listens there.

use super::with_settings;
use crate::doctor::check::Answer;
use crate::doctor::facts::Facts;
use crate::doctor::procfs::{self, Listener};
use crate::settings::Settings;
use lydian_serve::{BadAddress, bind_addresses};
use std::net::SocketAddr;

/// An address that the node listens at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    service: &'static str,
    address: SocketAddr,
    /// The node goes on without it.
    is_optional: bool,
}

/// All of them, or the first that cannot be read.
fn wanted(settings: &Settings) -> Result<Vec<Wanted>, (&'static str, BadAddress)> {
    let mut found = Vec::new();
    if settings.net.listens {
        found.extend(settings.net.binds.iter().map(|bind| Wanted {
            service: "peers",
            address: bind.address,
            is_optional: bind.is_optional || bind.is_onion,
        }));
    }
    // On loopback one of the two families is enough.
    let mut add = |service, texts: &[String], port| {
        let addresses = bind_addresses(texts, port).map_err(|error| (service, error))?;
        let is_optional = |address: &SocketAddr| texts.is_empty() && address.is_ipv6();
        found.extend(addresses.iter().map(|address| Wanted {
            service,
            address: *address,
            is_optional: is_optional(address),
        }));
        Ok(())
    };
    if settings.rpc.is_on {
        add("RPC", settings.rpc.bound(), settings.rpc.port)?;
    }
    if settings.page.is_on {
        add("the page", &settings.page.bind, settings.page.port)?;
    }
    if settings.esplora.is_on {
        add("Esplora", &settings.esplora.bind, settings.esplora.port)?;
    }
    if settings.feed.is_on() {
        add("the feed", &settings.feed.bind, settings.feed.port)?;
    }
    if settings.electrum.is_on {
        let electrum = &settings.electrum;
        let transports = [Some(&electrum.bind), electrum.tls_bind.as_ref(), electrum.ws_bind.as_ref()];
        for (texts, port) in transports.into_iter().zip(electrum.port..) {
            if let Some(texts) = texts {
                add("Electrum", texts, port)?;
            }
        }
    }
    for notifier in settings.zmq.notifiers() {
        let address = notifier.address.strip_prefix("tcp://").and_then(|address| address.parse().ok());
        found.extend(address.map(|address| Wanted { service: "ZMQ", address, is_optional: false }));
    }
    found.dedup();
    Ok(found)
}

pub(crate) fn ports(facts: &Facts<'_>) -> Answer {
    with_settings(facts, |settings| match wanted(settings) {
        Err((service, error)) => Answer::bad(format!("the address of {service} cannot be used: {error}")),
        Ok(wanted) if wanted.is_empty() => Answer::ok("these settings listen nowhere"),
        Ok(wanted) => {
            let listeners = procfs::listeners();
            let findings = wanted.iter().filter_map(|one| finding(facts, one, &listeners)).collect();
            Answer::worst(findings, || {
                let count = wanted.len();
                Answer::ok(match facts.is_running() {
                    true => format!("the node listens at the {count} addresses of these settings"),
                    false => format!("the {count} addresses of these settings are free"),
                })
            })
        }
    })
}

/// What is wrong with an address.
fn finding(facts: &Facts<'_>, wanted: &Wanted, listeners: &[Listener]) -> Option<Answer> {
    let Wanted { service, address, .. } = wanted;
    let Some(listener) = listeners.iter().find(|listener| listener.takes(*address)) else {
        let is_missing = facts.is_running() && !wanted.is_optional;
        return is_missing.then(|| {
            Answer::warning(format!("the node does not listen at {address} ({service}); it may have other options"))
        });
    };
    match (listener.process(), facts.is_running()) {
        (process, true) if process == facts.node_process() || process.is_none() => None,
        (Some(process), _) => {
            Some(Answer::bad(format!("{address} ({service}) is held by {}", procfs::words_of(process))))
        }
        (None, _) => Some(Answer::bad(format!("{address} ({service}) is held by a process of another user"))),
    }
}
