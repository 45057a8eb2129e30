//! Connection attempts, from the request to a connection or a failure. Core's `OpenNetworkConnection` and
//! `ConnectNode`.
//!
//! A name is resolved, and its addresses are tried sequentially in random order. Invariant: an attempt ends exactly
//! once, with [`connected`](crate::manager::PeerManager::connected), with the failure of its last address, or when the
//! network is disabled.

use super::{AttemptFailure, AttemptId, Connections, Destination, Link, Lookup, LookupId, Plan, Slot};
use crate::draw;
use crate::manager::addresses::Addresses;
use crate::manager::context::{Context, NET};
use crate::manager::{Action, PeerId};
use crate::peer::ConnectionKind;
use crate::proxies::Target;
use crate::time::UnixTime;
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

impl Connections {
    /// Starts an attempt, unless that is refused or there is already a connection.
    pub(in crate::manager) fn open(&mut self, context: &mut Context, addresses: &mut Addresses, plan: Plan) -> bool {
        self.open_after(context, addresses, plan, Duration::ZERO)
    }

    pub(super) fn open_after(
        &mut self,
        context: &mut Context,
        addresses: &mut Addresses,
        plan: Plan,
        delay: Duration,
    ) -> bool {
        if !self.is_active {
            return false;
        }
        let mut attempt = Attempt { plan, candidates: Vec::new(), current: None, start: None };
        let id = AttemptId(self.new_id());
        match attempt.plan.to.clone() {
            Destination::Address(address) => {
                if !addresses.may_dial(context, &address.endpoint)
                    || self.is_connected_to_addr(context, &address.endpoint.addr)
                {
                    return false;
                }
                attempt.candidates.push(address.endpoint);
                attempt.start = (!delay.is_zero()).then(|| context.now.elapsed + delay);
                self.attempts.insert(id, attempt);
                self.dial_what_is_due(context);
            }
            Destination::Name(name) => {
                if self.is_connected_to_name(context, &name) {
                    return false;
                }
                self.attempts.insert(id, attempt);
                self.find_addresses(context, id, &name);
            }
        }
        true
    }

    fn find_addresses(&mut self, context: &mut Context, id: AttemptId, name: &str) {
        let settings = &context.settings.connect;
        let (host, port, _) = split_host_port(name, settings.default_port);
        if let Ok(endpoint) = Endpoint::parse(name, settings.default_port) {
            return self.take_addresses(context, id, vec![endpoint]);
        }
        let host = host.to_owned();
        if settings.has_name_proxy {
            self.push_connect(context, id, Target::Name { host, port });
        } else if NetAddr::is_private_name(&host) {
            self.attempts.remove(&id);
            context
                .log_debug(format!("not resolving {host}: it is a name of a privacy network, but not a valid address"));
        } else if settings.resolves_names {
            let lookup = LookupId(self.new_id());
            self.lookups.insert(lookup, Lookup::Attempt(id));
            context.actions.push(Action::Resolve { lookup, host, count_max: NAME_ADDRESSES_MAX });
        } else {
            self.attempts.remove(&id);
        }
    }

    /// A name was resolved to these addresses; the list is empty if that failed.
    pub(in crate::manager) fn resolved(
        &mut self,
        context: &mut Context,
        addresses: &mut Addresses,
        lookup: LookupId,
        found: &[NetAddr],
    ) {
        match self.lookups.remove(&lookup) {
            Some(Lookup::Attempt(id)) => {
                let Some(attempt) = self.attempts.get(&id) else { return };
                let port = split_host_port(attempt.name(), context.settings.connect.default_port).1;
                let found = found.iter().take(NAME_ADDRESSES_MAX);
                self.take_addresses(context, id, found.map(|addr| Endpoint { addr: *addr, port }).collect());
            }
            Some(Lookup::Seed(seed)) if found.is_empty() => self.addr_fetches.push_back(seed.name),
            Some(Lookup::Seed(seed)) => addresses.take_seed_answer(context, &seed, found),
            None => {}
        }
        self.log_seeds_found(context, addresses);
    }

    /// Returns the address to connect to: Core's `MaybeFlipIPv6toCJDNS`. It must be called for every address that is
    /// not from the tables, because the network determines the proxy.
    pub(super) fn classified(&self, context: &Context, endpoint: Endpoint) -> Endpoint {
        let has_cjdns = context.settings.reachable.contains(&Network::Cjdns);
        Endpoint { addr: if has_cjdns { endpoint.addr.maybe_cjdns() } else { endpoint.addr }, ..endpoint }
    }

    /// Sets the addresses of a target named by the operator.
    fn take_addresses(&mut self, context: &mut Context, id: AttemptId, candidates: Vec<Endpoint>) {
        let mut candidates: Vec<_> =
            candidates.into_iter().map(|endpoint| self.classified(context, endpoint)).collect();
        let name = self.attempts.get(&id).map_or(String::new(), |attempt| attempt.name().to_owned());
        draw::shuffle(&mut candidates, &mut context.random);
        if let Some(endpoint) = candidates.iter().find(|endpoint| self.is_connected_to(context, endpoint)) {
            let text = format!("Not opening a connection to {name}, already connected to {endpoint}");
            context.log_info(text);
            candidates.clear();
        } else if let Some(endpoint) = candidates.iter().find(|endpoint| !endpoint.addr.is_valid()) {
            context.log_debug(format!("Resolver returned invalid address {endpoint} for {name}"));
            candidates.clear();
        } else if candidates.is_empty() {
            context.log_debug(format!("connection attempt to {name} failed: it has no address"));
        }
        if candidates.is_empty() {
            self.attempts.remove(&id);
        } else if let Some(attempt) = self.attempts.get_mut(&id) {
            attempt.candidates = candidates;
            self.dial(context, id);
        }
    }

    /// Starts the attempts whose delay is over, and new ones.
    pub(super) fn dial_what_is_due(&mut self, context: &mut Context) {
        let now = context.now.elapsed;
        let is_due = |attempt: &Attempt| {
            attempt.current.is_none()
                && !attempt.candidates.is_empty()
                && attempt.start.is_none_or(|start| now >= start)
        };
        let due: Vec<_> = self.attempts.iter().filter(|(_, attempt)| is_due(attempt)).map(|(id, _)| *id).collect();
        due.into_iter().for_each(|id| self.dial(context, id));
    }

    fn dial(&mut self, context: &mut Context, id: AttemptId) {
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        attempt.current = attempt.candidates.pop();
        match attempt.current {
            Some(endpoint) => self.push_connect(context, id, Target::Endpoint(endpoint)),
            None => {
                self.attempts.remove(&id);
            }
        }
    }

    fn push_connect(&mut self, context: &mut Context, id: AttemptId, target: Target) {
        let Some(attempt) = self.attempts.get(&id) else { return };
        let (kind, v2) = (attempt.kind(), attempt.plan.v2);
        let seconds = match &attempt.plan.to {
            Destination::Address(address) => context.now.unix.since(UnixTime::from(address.time)),
            Destination::Name(_) => 0,
        };
        context.debug(|_| {
            let version = if v2 { "v2" } else { "v1" };
            #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
            let hours = seconds as f64 / 3600.0;
            format!("trying {version} connection ({}) to {target}, lastseen={hours:.1}hrs", kind.name())
        });
        context.actions.push(Action::Connect { attempt: id, kind, target, v2 });
    }

    /// An attempt failed.
    pub(in crate::manager) fn attempt_failed(
        &mut self,
        context: &mut Context,
        addresses: &mut Addresses,
        id: AttemptId,
        failure: &AttemptFailure,
    ) {
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        let (endpoint, count_failure) = (attempt.current.take(), attempt.plan.count_failure);
        let is_debug = attempt.plan.kind != ConnectionKind::Manual;
        let target = endpoint.map_or_else(|| attempt.name().to_owned(), |endpoint| endpoint.to_string());
        let text = match failure {
            AttemptFailure::Target { reason } => {
                if let Some(endpoint) = endpoint {
                    addresses.note_attempt(context, &endpoint, count_failure);
                }
                format!("connect() to {target} failed: {reason}")
            }
            AttemptFailure::Proxy { reason } => format!("connecting to {target} through the proxy failed: {reason}"),
        };
        context.log_at(if is_debug { LogLevel::Debug(NET) } else { LogLevel::Info }, text);
        self.dial(context, id);
    }

    /// Ends a successful attempt and returns the data about the connection. `None`: it is no longer wanted.
    pub(super) fn take_attempt(
        &mut self,
        context: &mut Context,
        addresses: &mut Addresses,
        id: AttemptId,
        endpoint: Endpoint,
    ) -> Option<Link> {
        let attempt = self.attempts.remove(&id)?;
        if let Some(dialled) = attempt.current {
            addresses.note_attempt(context, &dialled, attempt.plan.count_failure);
        }
        Some(attempt.link(endpoint))
    }

    /// The other side of an outbound connection closed it before sending anything: after it is closed, it is retried
    /// with v1. Core's `ShouldReconnectV1`.
    pub(in crate::manager) fn retry_with_v1(context: &mut Context, id: PeerId) {
        context.with(id, |peer| peer.link.wants_v1 = true);
    }

    /// A connection was closed: Core's `PerformReconnections`.
    pub(in crate::manager) fn reconnect(
        &mut self,
        context: &mut Context,
        addresses: &mut Addresses,
        id: PeerId,
        kind: ConnectionKind,
        link: Link,
    ) {
        if !link.wants_v1 || kind.is_inbound() {
            return;
        }
        context.log_debug(format!("retrying with v1 transport protocol for peer={id}"));
        let to = if link.is_named { Destination::Name(link.name) } else { Destination::Address(link.address) };
        self.open(context, addresses, Plan { kind, to, v2: false, count_failure: false, slot: link.slot });
    }
}
