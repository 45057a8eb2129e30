//! Opens connections and resolves names, as the manager wants it, and takes those of others. Input: a target. Output: a connection that converses until it ends, or why there is
//! none. Decides nothing: whom to connect to, when, and by which transport is the manager's.

use crate::capture::Capture;
use crate::connection::Connection;
use crate::event::Event;
use crate::listen::Listen;
use crate::proxy::{Stream, Ways};
use crate::{Buffers, Events, Host, NetworkSettings, queues};
use lydian_engine::Engine;
use lydian_p2p::manager::{AttemptFailure, AttemptId, ConnectSettings, LookupId, NewPeer, PeerId, Target};
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_p2p::permissions::Whitelist;
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

/// Connections beyond those that may stay: to be refused, or in the place of one that is being ended.
const ACCEPTED_SPARE: usize = 64;

/// Connections that this node opens, beside those accepted: 11 that it chooses, 8 of `-addnode`, and some by `-connect`
/// and by hand.
const OPENED_MAX: usize = 35;

/// Between two looks at what time brings.
const TICK: Duration = Duration::from_millis(100);

/// Who makes connections.
#[derive(Debug)]
pub(crate) struct Dialer {
    magic: [u8; 4],
    v2: bool,
    /// CJDNS can be reached: its addresses are not taken for IPv6 ones.
    has_cjdns: bool,
    ways: Ways,
    buffers: Buffers,
    whitelist: Whitelist,
    host: Arc<dyn Host>,
    events: Events,
    engine: Arc<Engine>,
    next_id: AtomicU64,
    inbound: Arc<Semaphore>,
    /// The memory of all connections, and places for blocks that are read for them.
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

    /// Where messages are written, if they are.
    pub(crate) fn capture(&self) -> Option<&Arc<Capture>> {
        self.capture.as_ref()
    }

    /// An attempt, and the connection that comes of it.
    pub(crate) async fn connect(self: Arc<Self>, attempt: AttemptId, kind: ConnectionKind, target: Target, v2: bool) {
        let endpoint = match &target {
            Target::Endpoint(endpoint) => *endpoint,
            // The proxy alone knows it.
            Target::Name { .. } => Endpoint::default(),
        };
        match self.ways.find(&target).await {
            Ok(stream) => self.converse(stream, endpoint, Origin::Dialled { attempt, kind }, v2).await,
            Err(failure) => {
                // Nobody to listen: the network is ending.
                let _ = self.events.send(Event::AttemptFailed { attempt, failure }).await;
            }
        }
    }

    /// Somebody connected. Forgotten at once if there are far too many.
    pub(crate) fn accept(self: &Arc<Self>, stream: TcpStream, from: SocketAddr, place: Listen) {
        let Ok(room) = Arc::clone(&self.inbound).try_acquire_owned() else { return };
        let dialer = Arc::clone(self);
        let from = dialer.classified(from.into());
        tokio::spawn(async move {
            dialer.converse(Stream::Tcp(stream), from, Origin::Accepted(place), dialer.v2).await;
            drop(room);
        });
    }

    /// Core's `MaybeFlipIPv6toCJDNS`, for addresses that the system names.
    fn classified(&self, endpoint: Endpoint) -> Endpoint {
        Endpoint { addr: if self.has_cjdns { endpoint.addr.maybe_cjdns() } else { endpoint.addr }, ..endpoint }
    }

    /// The addresses of a name; none if it has none.
    pub(crate) async fn resolve(self: Arc<Self>, lookup: LookupId, host: String, count_max: usize) {
        let addresses = match lookup_host((host.as_str(), 0)).await {
            Ok(found) => found.take(count_max).map(|address| NetAddr::from(address.ip())).collect(),
            Err(error) => {
                self.host.debug(|| format!("{host} could not be resolved: {error}"));
                Vec::new()
            }
        };
        let _ = self.events.send(Event::Resolved { lookup, addresses }).await;
    }

    /// One connection from its beginning to its end.
    async fn converse(&self, stream: Stream, endpoint: Endpoint, origin: Origin, v2: bool) {
        let memory = PeerMemory::open(&self.memory).ok_or_else(|| "too many connections".to_owned());
        let opened = memory.and_then(|memory| Ok((stream.local().map_err(|error| error.to_string())?, memory)));
        let (local, memory) = match opened {
            Ok(opened) => opened,
            Err(reason) => {
                if let Origin::Dialled { attempt, .. } = origin {
                    let failure = AttemptFailure::Target { reason };
                    let _ = self.events.send(Event::AttemptFailed { attempt, failure }).await;
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

/// How the memory of peers is divided.
pub(crate) fn plan(connect: &ConnectSettings) -> MemoryPlan {
    MemoryPlan::new(connect.automatic_max.saturating_add(ACCEPTED_SPARE + OPENED_MAX))
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Dialled { attempt: AttemptId, kind: ConnectionKind },
    Accepted(Listen),
}

/// Time passes.
pub(crate) async fn tick(events: Events) {
    let mut interval = interval(TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        interval.tick().await;
        if events.send(Event::Tick).await.is_err() {
            return;
        }
    }
}
