//! Opens connections and resolves names for the manager, and accepts incoming connections.
//!
//! Input: a target. Output: a connection that runs until it ends, or the reason for the failure. Decides nothing: the
//! manager chooses the targets, the time and the transport.

use crate::capture::Capture;
use crate::connection::Connection;
use crate::listen::Listen;
use crate::proxy::{Stream, Ways};
use crate::{Buffers, Events, Host, NetworkSettings, queues};
use lydian_engine::Engine;
use lydian_p2p::driver::Event;
use lydian_p2p::manager::{AttemptFailure, AttemptId, ConnectSettings, LookupId, NewPeer, PeerId};
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_p2p::permissions::Whitelist;
use lydian_p2p::proxies::Target;
use lydian_p2p::{MemoryBudget, MemoryPlan, PeerMemory, Traffic, TrafficTotals};
use lydian_wire::transport::{Transport, V2Secrets};
use lydian_wire::{Endpoint, NetAddr, Network};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};

/// Connections beyond the maximum: those to be refused, and those that replace one that is being closed.
const ACCEPTED_SPARE: usize = 64;

/// Connections that this node opens, in addition to those it accepts: 11 automatic ones, 8 for `-addnode`, and some for
/// `-connect` and the `addnode` RPC.
const OPENED_MAX: usize = 35;

/// Interval of timer events.
const TICK: Duration = Duration::from_millis(100);

/// Makes connections.
#[derive(Debug)]
pub(crate) struct Dialer {
    magic: [u8; 4],
    v2: bool,
    /// Whether CJDNS is reachable: its addresses are then not treated as IPv6.
    has_cjdns: bool,
    ways: Ways,
    buffers: Buffers,
    whitelist: Whitelist,
    host: Arc<dyn Host>,
    events: Events,
    engine: Arc<Engine>,
    next_id: AtomicU64,
    inbound: Arc<Semaphore>,
    /// The memory of all connections, and the permits for reading blocks for them.
    memory: Arc<MemoryBudget>,
    reads: Arc<Semaphore>,
    totals: Arc<TrafficTotals>,
    capture: Option<Arc<Capture>>,
}

impl Dialer {
    pub(crate) fn new(
        settings: &NetworkSettings,
        host: Arc<dyn Host>,
        events: Events,
        engine: Arc<Engine>,
        totals: Arc<TrafficTotals>,
    ) -> Dialer {
        let connect = &settings.manager.connect;
        Dialer {
            magic: settings.manager.params.magic,
            v2: connect.v2,
            has_cjdns: settings.manager.reachable.contains(&Network::Cjdns),
            ways: Ways::new(connect.proxies.clone(), settings.connect_timeout, Arc::clone(&host)),
            buffers: settings.buffers,
            whitelist: settings.whitelist.clone(),
            host,
            events,
            engine,
            next_id: AtomicU64::new(0),
            inbound: Arc::new(Semaphore::new(
                connect.automatic_max.saturating_add(ACCEPTED_SPARE).min(Semaphore::MAX_PERMITS),
            )),
            memory: MemoryBudget::new(plan(connect)),
            reads: queues::reads(),
            totals,
            capture: settings
                .data
                .clone()
                .filter(|_| settings.captures_messages)
                .map(|data| Arc::new(Capture::new(data))),
        }
    }

    /// The memory of all connections.
    pub(crate) fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Makes a connection attempt and runs the resulting connection.
    pub(crate) async fn connect(self: Arc<Self>, attempt: AttemptId, kind: ConnectionKind, target: Target, v2: bool) {
        let endpoint = match &target {
            Target::Endpoint(endpoint) => *endpoint,
            // Only the proxy knows the address.
            Target::Name { .. } => Endpoint::default(),
        };
        match self.ways.find(&target).await {
            Ok(stream) => self.converse(stream, endpoint, Origin::Dialled { attempt, kind }, v2).await,
            Err(failure) => {
                // If there is no receiver, the network is ending.
                let _ = self.events.send(Event::AttemptFailed { attempt, failure }.into()).await;
            }
        }
    }

    /// Accepts an incoming connection. Drops it immediately if there are far too many.
    pub(crate) fn accept(self: &Arc<Self>, stream: TcpStream, from: SocketAddr, place: Listen) {
        let Ok(room) = Arc::clone(&self.inbound).try_acquire_owned() else { return };
        let dialer = Arc::clone(self);
        let from = dialer.classified(from.into());
        tokio::spawn(async move {
            dialer.converse(Stream::Tcp(stream), from, Origin::Accepted(place), dialer.v2).await;
            drop(room);
        });
    }

    /// Core's `MaybeFlipIPv6toCJDNS`, for addresses that the system reports.
    fn classified(&self, endpoint: Endpoint) -> Endpoint {
        Endpoint { addr: if self.has_cjdns { endpoint.addr.maybe_cjdns() } else { endpoint.addr }, ..endpoint }
    }

    /// Resolves a name. If that fails, the result is empty.
    pub(crate) async fn resolve(self: Arc<Self>, lookup: LookupId, host: String, count_max: usize) {
        let addresses = match lookup_host((host.as_str(), 0)).await {
            Ok(found) => found.take(count_max).map(|address| NetAddr::from(address.ip())).collect(),
            Err(error) => {
                self.host.debug(|| format!("{host} could not be resolved: {error}"));
                Vec::new()
            }
        };
        let _ = self.events.send(Event::Resolved { lookup, addresses }.into()).await;
    }

    /// Runs one connection from start to end.
    async fn converse(&self, stream: Stream, endpoint: Endpoint, origin: Origin, v2: bool) {
        let memory = PeerMemory::open(&self.memory).ok_or_else(|| "too many connections".to_owned());
        let opened = memory.and_then(|memory| Ok((stream.local().map_err(|error| error.to_string())?, memory)));
        let (local, memory) = match opened {
            Ok(opened) => opened,
            Err(reason) => {
                if let Origin::Dialled { attempt, .. } = origin {
                    let failure = AttemptFailure::Target { reason };
                    let _ = self.events.send(Event::AttemptFailed { attempt, failure }.into()).await;
                }
                return;
            }
        };
        let id = PeerId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let secrets = || V2Secrets::generate(|bytes| self.host.fill_random(bytes));
        let (kind, attempt, permissions, is_onion) = match origin {
            Origin::Dialled { attempt, kind: ConnectionKind::Manual } => {
                (ConnectionKind::Manual, Some(attempt), self.whitelist.manual(&endpoint.addr), false)
            }
            Origin::Dialled { attempt, kind } => (kind, Some(attempt), Permissions::NONE, false),
            Origin::Accepted(place) => {
                let addr = (!place.is_onion).then_some(&endpoint.addr);
                let permissions = self.whitelist.inbound(place.permissions, addr);
                (ConnectionKind::Inbound, None, permissions, place.is_onion)
            }
        };
        let transport = match (v2, kind.is_inbound()) {
            (false, _) => Transport::v1(self.magic),
            (true, true) => Transport::v2_responder(self.magic, secrets()),
            (true, false) => Transport::v2_initiator(self.magic, secrets()),
        };
        let local = if kind.is_inbound() { self.classified(local) } else { local };
        let new = NewPeer {
            id,
            kind,
            endpoint,
            permissions,
            is_onion,
            attempt,
            local,
            v2,
            traffic: Arc::new(Traffic::new(Arc::clone(&self.totals))),
            memory,
        };
        let (host, engine) = (Arc::clone(&self.host), Arc::clone(&self.engine));
        let (reader, writer) = stream.split();
        let limits = (self.buffers, Arc::clone(&self.reads));
        Connection::new(new, transport, self.events.clone(), host, engine, limits)
            .capture_to(self.capture.clone())
            .run(reader, writer)
            .await;
    }
}

/// How the memory for peers is divided.
pub(crate) fn plan(connect: &ConnectSettings) -> MemoryPlan {
    MemoryPlan::new(connect.automatic_max.saturating_add(ACCEPTED_SPARE + OPENED_MAX))
}

/// Origin of a connection.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Dialled { attempt: AttemptId, kind: ConnectionKind },
    Accepted(Listen),
}

/// Sends a timer event every [`TICK`].
pub(crate) async fn tick(events: Events) {
    let mut interval = interval(TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        interval.tick().await;
        if events.send(Event::Tick.into()).await.is_err() {
            return;
        }
    }
}
