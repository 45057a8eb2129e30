//! Connection attempts, from the request to a connection or a failure. Core's `OpenNetworkConnection` and
//! `ConnectNode`.
//!
//! A name is resolved, and its addresses are tried sequentially in random order. Invariant: an attempt ends exactly
//! once, with [`PeerManager::connected`], with the failure of its last address, or when the network is disabled.

use super::{AttemptFailure, AttemptId, Destination, Link, Lookup, LookupId, Plan, Slot, Target};
use crate::draw;
use crate::manager::context::NET;
use crate::manager::{Action, PeerId, PeerManager};
use crate::peer::ConnectionKind;
use crate::seeding::dns_answer;
use crate::time::{Moment, UnixTime};
use lydian_engine::LogLevel;
use lydian_wire::address::split_host_port;
use lydian_wire::{Endpoint, NetAddr, Network};
use std::time::Duration;

/// The maximum number of addresses of one name that are tried, as in Core.
const NAME_ADDRESSES_MAX: usize = 256;

/// A connection attempt in progress.
#[derive(Clone, Debug)]
pub(in crate::manager) struct Attempt {
    plan: Plan,
    /// The addresses that are still to be tried, the last one first.
    candidates: Vec<Endpoint>,
    current: Option<Endpoint>,
    /// It waits until this time.
    start: Option<Duration>,
}

impl Attempt {
    pub(in crate::manager) fn endpoint(&self) -> Option<Endpoint> {
        self.current.or_else(|| self.candidates.last().copied())
    }

    pub(in crate::manager) fn kind(&self) -> ConnectionKind {
        self.plan.kind
    }

    pub(in crate::manager) fn slot(&self) -> Slot {
        self.plan.slot
    }

    /// The name given by the operator; empty for automatically chosen addresses.
    pub(in crate::manager) fn name(&self) -> &str {
        match &self.plan.to {
            Destination::Name(name) => name,
            Destination::Address(_) => "",
        }
    }

    fn link(&self, endpoint: Endpoint) -> Link {
        let link = Link { slot: self.plan.slot, ..Link::unnamed(endpoint) };
        match &self.plan.to {
            Destination::Address(address) => Link { address: *address, ..link },
            Destination::Name(name) => Link { name: name.clone(), is_named: true, ..link },
        }
    }
}

impl PeerManager {
    /// Starts an attempt, unless that is refused or there is already a connection.
    pub(in crate::manager) fn open(&mut self, plan: Plan) -> bool {
        self.open_after(plan, Duration::ZERO)
    }

    pub(in crate::manager) fn open_after(&mut self, plan: Plan, delay: Duration) -> bool {
        if !self.connector.is_active {
            return false;
        }
        let mut attempt = Attempt { plan, candidates: Vec::new(), current: None, start: None };
        let id = AttemptId(self.connector.new_id());
        match attempt.plan.to.clone() {
            Destination::Address(address) => {
                if !self.may_dial(&address.endpoint) {
                    return false;
                }
                attempt.candidates.push(address.endpoint);
                attempt.start = (!delay.is_zero()).then(|| self.context.now.elapsed + delay);
                self.connector.attempts.insert(id, attempt);
                self.dial_what_is_due();
            }
            Destination::Name(name) => {
                if self.is_connected_to_name(&name) {
                    return false;
                }
                self.connector.attempts.insert(id, attempt);
                self.find_addresses(id, &name);
            }
        }
        true
    }

    /// Core's checks before connecting to an automatically chosen address.
    fn may_dial(&self, endpoint: &Endpoint) -> bool {
        let addr = &endpoint.addr;
        !self.context.settings.local.own.contains(addr)
            && !self.bans.is_discouraged(addr)
            && !self.bans.is_banned(addr, self.context.now.unix)
            && !self.is_connected_to_addr(addr)
    }

    fn find_addresses(&mut self, id: AttemptId, name: &str) {
        let settings = &self.connector.settings;
        let (host, port, _) = split_host_port(name, settings.default_port);
        if let Ok(endpoint) = Endpoint::parse(name, settings.default_port) {
            return self.take_addresses(id, vec![endpoint]);
        }
        let host = host.to_owned();
        if settings.has_name_proxy {
            self.push_connect(id, Target::Name { host, port });
        } else if NetAddr::is_private_name(&host) {
            self.connector.attempts.remove(&id);
            self.context
                .log_debug(format!("not resolving {host}: it is a name of a privacy network, but not a valid address"));
        } else if settings.resolves_names {
            let lookup = LookupId(self.connector.new_id());
            self.connector.lookups.insert(lookup, Lookup::Attempt(id));
            self.context.actions.push(Action::Resolve { lookup, host, count_max: NAME_ADDRESSES_MAX });
        } else {
            self.connector.attempts.remove(&id);
        }
    }

    /// A name was resolved to these addresses; the list is empty if that failed.
    pub fn resolved(&mut self, lookup: LookupId, addresses: &[NetAddr], now: Moment) {
        self.context.now = now;
        match self.connector.lookups.remove(&lookup) {
            Some(Lookup::Attempt(id)) => {
                let Some(attempt) = self.connector.attempts.get(&id) else { return };
                let port = split_host_port(attempt.name(), self.connector.settings.default_port).1;
                let addresses = addresses.iter().take(NAME_ADDRESSES_MAX);
                self.take_addresses(id, addresses.map(|addr| Endpoint { addr: *addr, port }).collect());
            }
            Some(Lookup::Seed(seed)) if addresses.is_empty() => {
                self.connector.addr_fetches.push_back(seed.name);
            }
            Some(Lookup::Seed(seed)) => {
                let port = self.connector.settings.default_port;
                let found = dns_answer(addresses, port, now.unix, &mut self.context.random);
                self.connector.seed_addresses += found.len();
                self.addrman.add(&found, &seed.source, 0, now.unix);
            }
            None => {}
        }
        self.log_seeds_found();
    }

    /// Returns the address to connect to: Core's `MaybeFlipIPv6toCJDNS`. It must be called for every address that is
    /// not from the tables, because the network determines the proxy.
    pub(in crate::manager) fn classified(&self, endpoint: Endpoint) -> Endpoint {
        let has_cjdns = self.context.settings.reachable.contains(&Network::Cjdns);
        Endpoint { addr: if has_cjdns { endpoint.addr.maybe_cjdns() } else { endpoint.addr }, ..endpoint }
    }

    /// Sets the addresses of a target named by the operator.
    fn take_addresses(&mut self, id: AttemptId, candidates: Vec<Endpoint>) {
        let mut candidates: Vec<_> = candidates.into_iter().map(|endpoint| self.classified(endpoint)).collect();
        let name = self.connector.attempts.get(&id).map_or(String::new(), |attempt| attempt.name().to_owned());
        draw::shuffle(&mut candidates, &mut self.context.random);
        if let Some(endpoint) = candidates.iter().find(|endpoint| self.is_connected_to(endpoint)) {
            let text = format!("Not opening a connection to {name}, already connected to {endpoint}");
            self.context.log_info(text);
            candidates.clear();
        } else if let Some(endpoint) = candidates.iter().find(|endpoint| !endpoint.addr.is_valid()) {
            self.context.log_debug(format!("Resolver returned invalid address {endpoint} for {name}"));
            candidates.clear();
        } else if candidates.is_empty() {
            self.context.log_debug(format!("connection attempt to {name} failed: it has no address"));
        }
        if candidates.is_empty() {
            self.connector.attempts.remove(&id);
        } else if let Some(attempt) = self.connector.attempts.get_mut(&id) {
            attempt.candidates = candidates;
            self.dial(id);
        }
    }

    /// Starts the attempts whose delay is over, and new ones.
    pub(in crate::manager) fn dial_what_is_due(&mut self) {
        let now = self.context.now.elapsed;
        let is_due = |attempt: &Attempt| {
            attempt.current.is_none()
                && !attempt.candidates.is_empty()
                && attempt.start.is_none_or(|start| now >= start)
        };
        let due: Vec<_> =
            self.connector.attempts.iter().filter(|(_, attempt)| is_due(attempt)).map(|(id, _)| *id).collect();
        due.into_iter().for_each(|id| self.dial(id));
    }

    fn dial(&mut self, id: AttemptId) {
        let Some(attempt) = self.connector.attempts.get_mut(&id) else { return };
        attempt.current = attempt.candidates.pop();
        match attempt.current {
            Some(endpoint) => self.push_connect(id, Target::Endpoint(endpoint)),
            None => {
                self.connector.attempts.remove(&id);
            }
        }
    }

    fn push_connect(&mut self, id: AttemptId, target: Target) {
        let Some(attempt) = self.connector.attempts.get(&id) else { return };
        let (kind, v2) = (attempt.kind(), attempt.plan.v2);
        let seconds = match &attempt.plan.to {
            Destination::Address(address) => self.context.now.unix.since(UnixTime::from(address.time)),
            Destination::Name(_) => 0,
        };
        self.context.debug(|_| {
            let version = if v2 { "v2" } else { "v1" };
            #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
            let hours = seconds as f64 / 3600.0;
            format!("trying {version} connection ({}) to {target}, lastseen={hours:.1}hrs", kind.name())
        });
        self.context.actions.push(Action::Connect { attempt: id, kind, target, v2 });
    }

    /// An attempt failed.
    pub fn attempt_failed(&mut self, id: AttemptId, failure: &AttemptFailure, now: Moment) {
        self.context.now = now;
        let Some(attempt) = self.connector.attempts.get_mut(&id) else { return };
        let (endpoint, count_failure) = (attempt.current.take(), attempt.plan.count_failure);
        let is_debug = attempt.plan.kind != ConnectionKind::Manual;
        let target = endpoint.map_or_else(|| attempt.name().to_owned(), |endpoint| endpoint.to_string());
        let text = match failure {
            AttemptFailure::Target { reason } => {
                if let Some(endpoint) = endpoint {
                    self.addrman.attempt(&endpoint, count_failure, now.unix);
                }
                format!("connect() to {target} failed: {reason}")
            }
            AttemptFailure::Proxy { reason } => format!("connecting to {target} through the proxy failed: {reason}"),
        };
        self.context.log_at(if is_debug { LogLevel::Debug(NET) } else { LogLevel::Info }, text);
        self.dial(id);
    }

    /// Ends a successful attempt and returns the data about the connection. `None`: it is no longer wanted.
    pub(in crate::manager) fn take_attempt(&mut self, id: AttemptId, endpoint: Endpoint) -> Option<Link> {
        let attempt = self.connector.attempts.remove(&id)?;
        if let Some(dialled) = attempt.current {
            self.addrman.attempt(&dialled, attempt.plan.count_failure, self.context.now.unix);
        }
        Some(attempt.link(endpoint))
    }

    /// The other side of an outbound connection closed it before sending anything: after it is closed, it is retried
    /// with v1. Core's `ShouldReconnectV1`.
    pub fn retry_with_v1(&mut self, id: PeerId) {
        self.context.with(id, |peer| peer.link.wants_v1 = true);
    }

    /// A connection was closed: Core's `PerformReconnections`.
    pub(in crate::manager) fn reconnect(&mut self, id: PeerId, kind: ConnectionKind, link: Link) {
        if !link.wants_v1 || kind.is_inbound() {
            return;
        }
        self.context.log_debug(format!("retrying with v1 transport protocol for peer={id}"));
        let to = if link.is_named { Destination::Name(link.name) } else { Destination::Address(link.address) };
        self.open(Plan { kind, to, v2: false, count_failure: false, slot: link.slot });
    }
}
