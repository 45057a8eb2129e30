//! Opens connections, resolves names and listens, as the manager wants it. Input: a target. Output: a connection that converses until it ends, or why there is
//! none. Decides nothing: whom to connect to, when, and by which transport is the manager's.

use crate::connection::Connection;
use crate::event::Event;
use crate::{Events, Host, NetworkError, NetworkSettings};
use lydian_engine::Engine;
use lydian_p2p::manager::{AttemptFailure, AttemptId, LookupId, NewPeer, PeerId, Target};
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_p2p::{Traffic, TrafficTotals};
use lydian_wire::transport::{Transport, V2Secrets};
use lydian_wire::{Endpoint, NetAddr};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// To open a connection: Core's `DEFAULT_CONNECT_TIMEOUT`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Until connections are taken again when the system has no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Connections beyond those that may stay: to be refused, or in the place of one that is being ended.
const ACCEPTED_SPARE: usize = 64;

/// Between two looks at what time brings.
const TICK: Duration = Duration::from_millis(100);

/// Who makes connections.
#[derive(Debug)]
pub(crate) struct Dialer {
    magic: [u8; 4],
    v2: bool,
    host: Arc<dyn Host>,
    events: Events,
    engine: Arc<Engine>,
    next_id: AtomicU64,
    inbound: Arc<Semaphore>,
    totals: Arc<TrafficTotals>,
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
            host,
            events,
            engine,
            next_id: AtomicU64::new(0),
            inbound: Arc::new(Semaphore::new(connect.automatic_max + ACCEPTED_SPARE)),
            totals,
        }
    }

    /// An attempt, and the connection that comes of it.
    pub(crate) async fn connect(self: Arc<Self>, attempt: AttemptId, kind: ConnectionKind, target: Target, v2: bool) {
        match dial(&target).await {
            Ok(stream) => self.converse(stream, kind, Some(attempt), v2).await,
            Err(reason) => {
                let failure = AttemptFailure::Target { reason };
                // Nobody to listen: the network is ending.
                let _ = self.events.send(Event::AttemptFailed { attempt, failure }).await;
            }
        }
    }

    /// The addresses of a name; none if it has none.
    pub(crate) async fn resolve(self: Arc<Self>, lookup: LookupId, host: String, count_max: usize) {
        let addresses = match lookup_host((host.as_str(), 0)).await {
            Ok(found) => found.take(count_max).map(|address| NetAddr::from(address.ip())).collect(),
            Err(error) => {
                self.host.log(true, &format!("{host} could not be resolved: {error}"));
                Vec::new()
            }
        };
        let _ = self.events.send(Event::Resolved { lookup, addresses }).await;
    }

    /// One connection from its beginning to its end.
    async fn converse(&self, stream: TcpStream, kind: ConnectionKind, attempt: Option<AttemptId>, v2: bool) {
        let (address, local) = match (stream.peer_addr(), stream.local_addr()) {
            (Ok(address), Ok(local)) => (address, local),
            (Err(error), _) | (_, Err(error)) => {
                if let Some(attempt) = attempt {
                    let failure = AttemptFailure::Target { reason: error.to_string() };
                    let _ = self.events.send(Event::AttemptFailed { attempt, failure }).await;
                }
                return;
            }
        };
        // Messages are small and wait for answers.
        let _ = stream.set_nodelay(true);
        let id = PeerId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let secrets = || V2Secrets::generate(|bytes| self.host.fill_random(bytes));
        let transport = match (v2, kind.is_inbound()) {
            (false, _) => Transport::v1(self.magic),
            (true, true) => Transport::v2_responder(self.magic, secrets()),
            (true, false) => Transport::v2_initiator(self.magic, secrets()),
        };
        let new = NewPeer {
            id,
            kind,
            endpoint: Endpoint::from(address),
            permissions: Permissions::NONE,
            attempt,
            local: Endpoint::from(local),
            v2,
            traffic: Arc::new(Traffic::new(Arc::clone(&self.totals))),
        };
        let (host, engine) = (Arc::clone(&self.host), Arc::clone(&self.engine));
        Connection::new(new, transport, self.events.clone(), host, engine).run(stream).await;
    }
}

async fn dial(target: &Target) -> Result<TcpStream, String> {
    let Target::Endpoint(endpoint) = target else { return Err("there is no proxy for names".to_owned()) };
    let Some(address) = endpoint.socket_addr() else { return Err("there is no proxy for its network".to_owned()) };
    match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("timeout".to_owned()),
    }
}

/// Takes connections at an address; gives the address.
pub(crate) async fn listen(address: SocketAddr, dialer: &Arc<Dialer>) -> Result<SocketAddr, NetworkError> {
    let failed = |error: std::io::Error| NetworkError::Bind { address, reason: error.to_string() };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let dialer = Arc::clone(dialer);
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // No file descriptors, for instance.
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let Ok(place) = Arc::clone(&dialer.inbound).try_acquire_owned() else { continue };
            let dialer = Arc::clone(&dialer);
            tokio::spawn(async move {
                dialer.converse(stream, ConnectionKind::Inbound, None, dialer.v2).await;
                drop(place);
            });
        }
    });
    Ok(bound)
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
