//! [`Server`]: starts, serves, stops.

use crate::cost::{Accounts, Clock};
use crate::figures::Counts;
use crate::limits::{ANSWERS_SIZE_MAX, LINE_SIZE_MAX, LINES_SIZE_MAX};
use crate::live::Live;
use crate::notify;
use crate::registry::{Operator, Registry};
use crate::session::Electrum;
use crate::subscriptions::Subscriptions;
use lydian_consensus::Chain;
use lydian_primitives::BlockHash;
use lydian_query::{Calls, Query, Source};
use lydian_serve::{Budget, Drain, ListenSettings, Listener, Log, Origin, StartError, Subnet, TlsIdentity, Websocket};
use lydian_stdx::Current;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, available_parallelism};
use std::time::Duration;

/// How the server presents itself.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The name that `server.version` answers. Some wallets send batches to servers of names that they know only.
    pub name: String,
    pub genesis: BlockHash,
    /// Addresses are those of this chain.
    pub chain: Chain,
}

/// Settings of the server.
#[derive(Clone, Debug)]
pub struct Settings {
    pub addresses: Vec<SocketAddr>,
    /// Further addresses, with TLS.
    pub tls: Option<(Vec<SocketAddr>, Current<TlsIdentity>)>,
    /// Addresses that may use the server, in addition to this machine.
    pub allowed: Vec<Subnet>,
    /// Reverse proxies, whose connections begin with a PROXY header.
    pub proxies: Vec<Subnet>,
    pub identity: Identity,
    pub live: Current<Live>,
    pub clock: Arc<dyn Clock>,
    /// The web pages that may connect over a websocket, which every address serves too.
    pub origin: Option<Origin>,
}

/// What all sessions share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) query: Arc<Query>,
    /// The same answers for the notifier, which must not wait for peers.
    pub(crate) prompt: Arc<Query>,
    pub(crate) calls: Arc<dyn Calls>,
    pub(crate) identity: Identity,
    pub(crate) live: Current<Live>,
    pub(crate) accounts: Accounts,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) registry: Arc<Registry>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) answers: Arc<Budget>,
    pub(crate) lines: Arc<Budget>,
    /// Threads that answer one batch.
    pub(crate) threads: usize,
    /// Threads that look at what is watched.
    pub(crate) notifier_threads: usize,
    pub(crate) is_stopping: AtomicBool,
}

/// A running server. It answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    server: Option<lydian_serve::Server>,
    operator: Operator,
    shared: Arc<Shared>,
    notifier: Option<JoinHandle<()>>,
}

/// A connection without a request for this long ends, as in ElectrumX: clients send pings.
const IDLE: Duration = Duration::from_secs(600);

/// Threads that answer requests.
const THREADS: usize = 64;

/// Threads that answer one batch, and those that look at what is watched, if each answer waits for other machines.
const REMOTE_THREADS: usize = 16;

/// Threads that look at what is watched, if answers come from this machine: the other cores go on with their work.
const NOTIFIER_THREADS_MAX: usize = 4;

impl Server {
    /// `prepare` is called before the first connection is accepted: bans that it makes cover every client.
    pub fn start(
        source: Source,
        settings: Settings,
        log: Arc<dyn Log>,
        prepare: impl FnOnce(&Operator),
    ) -> Result<Server, StartError> {
        let Settings { addresses, tls, allowed, proxies, identity, live, clock, origin } = settings;
        let answers = Budget::new(ANSWERS_SIZE_MAX);
        let listen = ListenSettings {
            name: "electrum",
            addresses,
            tls,
            allowed,
            proxies,
            blocking_threads: THREADS,
            idle: Some(IDLE),
            answers: Arc::clone(&answers),
        };
        let listener = Listener::bind(listen, log)?;
        let cores = available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(Shared {
            query: source.query,
            prompt: source.prompt,
            calls: source.calls,
            identity,
            live,
            accounts: Accounts::new(clock),
            subscriptions: Subscriptions::default(),
            registry: Arc::default(),
            counts: Arc::default(),
            answers,
            lines: Budget::new(LINES_SIZE_MAX),
            threads: if source.is_remote { REMOTE_THREADS } else { cores },
            notifier_threads: if source.is_remote { REMOTE_THREADS } else { cores.min(NOTIFIER_THREADS_MAX) },
            is_stopping: AtomicBool::new(false),
        });
        let notifying = Arc::clone(&shared);
        let run = move || notify::run(&notifying);
        let notifier = Builder::new().name("electrum-notify".to_owned()).spawn(run).map_err(StartError::Threads)?;
        let websocket = Websocket { message_max: LINE_SIZE_MAX, lines: Arc::clone(&shared.lines), origin };
        let (registry, counts) = (Arc::clone(&shared.registry), Arc::clone(&shared.counts));
        let operator = Operator { registry, control: listener.control(), counts };
        prepare(&operator);
        let server = listener.serve(Electrum { shared: Arc::clone(&shared), websocket });
        Ok(Server { server: Some(server), operator, shared, notifier: Some(notifier) })
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.as_ref().map_or(&[], lydian_serve::Server::addresses)
    }

    /// For each address of the settings, those with TLS last, the one it listens on, if it could be bound.
    pub fn bound(&self) -> &[Option<SocketAddr>] {
        self.server.as_ref().map_or(&[], lydian_serve::Server::bound)
    }

    /// Closes the addresses, so that no more clients come; those that are there are served on.
    pub fn close_addresses(&self) {
        self.server.iter().for_each(lydian_serve::Server::close_addresses);
    }

    /// Ends the sessions at a steady pace, as its caller takes its steps.
    pub fn drain(&self) -> Drain {
        self.operator.control.drain()
    }

    /// What an operator may see and do.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        if let Some(server) = self.server.take() {
            // Connections that are still open end with the threads.
            let _ = server.close();
            server.end();
        }
        if let Some(notifier) = self.notifier.take() {
            // A panic was printed by then.
            let _ = notifier.join();
        }
    }
}
