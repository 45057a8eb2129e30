//! Connections: listening, connecting to where one is wanted, again and again, by v2 first and by v1 where that is all the other side knows.

use crate::connection::Connection;
use crate::event::Event;
use crate::{Events, Host, NetworkError, NetworkSettings};
use lydian_engine::Engine;
use lydian_p2p::manager::{NewPeer, PeerId};
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

/// Between two attempts to connect to where one is wanted; doubles up to the second.
const RECONNECT_TIME: Duration = Duration::from_millis(500);
const RECONNECT_TIME_MAX: Duration = Duration::from_secs(60);

/// Between two looks at what time brings.
const TICK: Duration = Duration::from_millis(100);

/// Who makes connections.
#[derive(Debug)]
pub(crate) struct Dialer {
    magic: [u8; 4],
    v2: bool,
    default_port: u16,
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
        Dialer {
            magic: settings.manager.params.magic,
            v2: settings.v2,
            default_port: settings.default_port,
            host,
            events,
            engine,
            next_id: AtomicU64::new(0),
            inbound: Arc::new(Semaphore::new(settings.inbound_max)),
            totals,
        }
    }

    /// Connects to a name or an address, and again when the connection ends.
    pub(crate) async fn keep_connected(self: Arc<Self>, target: String) {
        let (mut pause, mut uses_v2) = (RECONNECT_TIME, self.v2);
        loop {
            match self.connect(&target).await {
                Ok(stream) => {
                    let is_v1_wanted = self.converse(stream, ConnectionKind::Manual, uses_v2).await;
                    if is_v1_wanted && uses_v2 {
                        // At once, since the peer is there and only speaks otherwise.
                        uses_v2 = false;
                        continue;
                    }
                    (pause, uses_v2) = (RECONNECT_TIME, self.v2);
                }
                Err(reason) => {
                    self.host.log(true, &format!("connection attempt to {target} failed: {reason}"));
                    pause = (pause * 2).min(RECONNECT_TIME_MAX);
                }
            }
            sleep(pause).await;
        }
    }

    async fn connect(&self, target: &str) -> Result<TcpStream, String> {
        let named = match target.parse::<SocketAddr>() {
            Ok(address) => address.to_string(),
            // A host with a port, or without one.
            Err(_) if target.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => target.to_owned(),
            Err(_) => format!("{target}:{}", self.default_port),
        };
        let addresses = lookup_host(&named).await.map_err(|error| error.to_string())?;
        let mut last = format!("{named} has no address");
        for address in addresses {
            match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => last = "timeout".to_owned(),
            }
        }
        Err(last)
    }

    /// One connection from its beginning to its end. Whether the other side should be tried with v1.
    async fn converse(&self, stream: TcpStream, kind: ConnectionKind, uses_v2: bool) -> bool {
        let Ok(address) = stream.peer_addr() else { return false };
        // Messages are small and wait for answers.
        let _ = stream.set_nodelay(true);
        let id = PeerId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let secrets = || V2Secrets::generate(|bytes| self.host.fill_random(bytes));
        let transport = match (uses_v2, kind.is_inbound()) {
            (false, _) => Transport::v1(self.magic),
            (true, true) => Transport::v2_responder(self.magic, secrets()),
            (true, false) => Transport::v2_initiator(self.magic, secrets()),
        };
        let endpoint = Endpoint::new(NetAddr::from(address.ip()), address.port());
        let traffic = Arc::new(Traffic::new(Arc::clone(&self.totals)));
        let new = NewPeer { id, kind, endpoint, permissions: Permissions::NONE, traffic };
        let (host, engine) = (Arc::clone(&self.host), Arc::clone(&self.engine));
        Connection::new(new, transport, self.events.clone(), host, engine).run(stream).await
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
                sleep(RECONNECT_TIME).await;
                continue;
            };
            let Ok(place) = Arc::clone(&dialer.inbound).try_acquire_owned() else { continue };
            let dialer = Arc::clone(&dialer);
            tokio::spawn(async move {
                dialer.converse(stream, ConnectionKind::Inbound, dialer.v2).await;
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
