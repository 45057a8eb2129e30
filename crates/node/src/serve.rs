//! The RPC server of the node. Input: a session. Output: [`Serving`], which answers until it is dropped and then
//! removes its cookie.
//!
//! Wiring only: passes the clock, the log and the stop request to `lydian_rpc`, which does the rest.

use crate::clock::{mock, now_micros, now_nanos};
use crate::listening::{Service, Transport};
use crate::log::{Log, TipLine, progress};
use crate::run::Session;
use crate::settings::Prune;
use crate::settings::rpc::RpcSettings;
use crate::signals::Stop;
use lydian_consensus::{Chain, U256};
use lydian_engine::{Engine, LogLine, LogSwitches, Observer};
use lydian_mempool::Mempool;
use lydian_p2p::manager::Question;
use lydian_primitives::{BlockHash, Height};
use lydian_rpc::{
    Context, Counts, Host, Indexes, MempoolFile, NodeSettings, Peers, ProgressOf, PruneMode, Server, ServerError,
    ServerSettings, SharedObserver, TemplateBuilder, Whitelist,
};
use lydian_serve::{BadAddress, Cookie, CookieError, CookiePermissions, Login, Subnet, Users, bind_addresses};
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A running server.
#[derive(Debug)]
pub(crate) struct Serving {
    context: Arc<Context>,
    // Declared, and so dropped, before the cookie.
    server: Server,
    templates: OnceLock<TemplateBuilder>,
    _cookie: Option<Cookie>,
    users: Users,
    whitelist: Whitelist,
}

/// Why the server could not be started.
#[derive(Debug)]
pub(crate) enum ServeError {
    /// `-rpcbind`.
    Bind(BadAddress),
    Cookie(CookieError),
    Server(ServerError),
    /// `-rpcallowip`.
    Subnet {
        text: String,
    },
    /// `-rpcauth`.
    Auth,
    /// `-rpccookieperms`.
    CookiePermissions {
        text: String,
    },
}

impl ServeError {
    /// Logs the error in Core's words.
    pub(crate) fn log(&self, log: &Log) {
        match self {
            ServeError::Bind(BadAddress::Port { text }) => {
                log.error(format!("Invalid port specified in -rpcbind: '{text}'"))
            }
            ServeError::Bind(BadAddress::Host { text }) => {
                log.error(format!("Could not bind RPC on address {text}: Address lookup failed."))
            }
            ServeError::Cookie(error) => log.error(error),
            ServeError::Server(error) => log.error(error),
            ServeError::Subnet { .. } => {}
            ServeError::Auth => log.warning("Invalid -rpcauth argument."),
            ServeError::CookiePermissions { text } => {
                log.error(format!("Invalid -rpccookieperms={text}; must be one of 'owner', 'group', or 'all'."))
            }
        }
    }
}

/// The text that Core writes to stderr, whatever the reason; the reason is in the log.
impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ServeError::Subnet { text } = self {
            writeln!(
                f,
                "Invalid -rpcallowip subnet specification: {text}. Valid values are a single IP (e.g. 1.2.3.4), a network/netmask (e.g. \
                 1.2.3.4/255.255.255.0), a network/CIDR (e.g. 1.2.3.4/24), all ipv4 (0.0.0.0/0), or all ipv6 (::/0). RFC4193 is allowed only if \
                 -cjdnsreachable=0."
            )?;
            f.write_str("Error: ")?;
        }
        f.write_str("Unable to start HTTP server. See debug log for details.")
    }
}

impl Serving {
    /// Listens, and answers every call with a warm-up error until [`Serving::begins`]. Logs the reason if it fails.
    pub(crate) fn start(session: &Session<'_>, observer: Arc<dyn SharedObserver>) -> Result<Serving, ServeError> {
        Serving::try_start(session, observer).inspect_err(|error| error.log(&session.log))
    }

    fn try_start(session: &Session<'_>, observer: Arc<dyn SharedObserver>) -> Result<Serving, ServeError> {
        let settings = session.settings;
        let host = NodeHost {
            log: Arc::clone(&session.log),
            stop: session.stop.clone(),
            chain: settings.params.chain,
            log_path: settings.log.file.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
        };
        let node = NodeSettings {
            params: settings.params.clone(),
            minimum_chain_work: settings.minimum_chain_work,
            initial_download: Arc::clone(&session.initial_download),
            warnings: Arc::clone(&session.warnings),
            prune: match settings.prune {
                Prune::Never => PruneMode::Never,
                Prune::OnRequest => PruneMode::OnRequest,
                Prune::Target { bytes } => PruneMode::Target { bytes },
            },
            is_fast_prune: settings.fastprune,
            cache_bytes: settings.dbcache_bytes,
            check_blocks: i32::try_from(settings.checkblocks).unwrap_or(i32::MAX),
            check_level: i32::from(settings.checklevel),
            block_version: settings.blockversion,
            block: settings.block,
            deprecated: settings.rpc.deprecated.clone(),
            checks_help: settings.rpc.checks_help,
            notifiers: settings.zmq.notifiers().into_iter().map(to_rpc).collect(),
        };
        raise_file_limit();
        let context = Arc::new(Context::new(Arc::new(host), node, observer));
        let rpc = &settings.rpc;
        let allowed = allowed(rpc)?;
        let (users, cookie) = users(session, rpc)?;
        let whitelist = Whitelist::new(&rpc.whitelist, rpc.whitelist_default);
        let server = Server::start(
            Arc::clone(&context),
            ServerSettings {
                addresses: bind_addresses(bound(session, rpc), rpc.port).map_err(ServeError::Bind)?,
                allowed,
                users: users.clone(),
                whitelist: whitelist.clone(),
                has_rest: rpc.has_rest,
                threads: rpc.threads,
                queue: rpc.queue,
                idle: u64::try_from(rpc.idle_seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs),
            },
        )
        .map_err(ServeError::Server)?;
        for address in server.addresses() {
            session.listening.add(Service::Rpc, Transport::Http, *address);
        }
        if let Some(seconds) = settings.mocktime {
            context.set_mock_time(i64::from(seconds));
        }
        Ok(Serving { context, server, templates: OnceLock::new(), _cookie: cookie, users, whitelist })
    }

    /// The observer that must receive everything the engine does; it notifies the others.
    pub(crate) fn observer(&self) -> Arc<dyn Observer + Send> {
        Arc::<Context>::clone(&self.context)
    }

    /// What the methods work on.
    pub(crate) fn context(&self) -> Arc<Context> {
        Arc::clone(&self.context)
    }

    /// What the server counts.
    pub(crate) fn counts(&self) -> Counts {
        self.server.counts().clone()
    }

    /// The users that may log in, for another server.
    pub(crate) fn login(&self) -> Login {
        Login::new(self.users.clone())
    }

    /// The methods that each user may call.
    pub(crate) fn whitelist(&self) -> Whitelist {
        self.whitelist.clone()
    }

    /// Sets the text of the warm-up error: what the node is doing.
    pub(crate) fn set_warmup(&self, words: &str) {
        self.context.set_warmup(words);
    }

    /// The indexes that calls may use, once the engine exists.
    pub(crate) fn has_indexes(&self, indexes: Indexes) {
        self.context.set_indexes(indexes);
    }

    /// The mempool that calls use, once it accepts transactions, and its file.
    pub(crate) fn has_mempool(&self, mempool: &Arc<Mempool>, file: MempoolFile) {
        self.context.set_mempool_file(file);
        self.context.set_mempool(Arc::clone(mempool));
    }

    /// From now on, calls about peers are answered.
    pub(crate) fn has_peers(&self, network: &lydian_net::Network) {
        self.context.set_peers(Arc::new(NetworkPeers(network.handle())));
    }

    /// From now on, all calls are answered, for as long as the engine exists.
    pub(crate) fn begins(&self, engine: &Arc<Engine>) -> io::Result<()> {
        self.context.set_ready(engine);
        // It begins once.
        let _ = self.templates.set(self.context.start_builder()?);
        Ok(())
    }
}

fn to_rpc(notifier: lydian_zmq::Notifier) -> lydian_rpc::Notifier {
    let lydian_zmq::Notifier { topic, address, high_water_mark } = notifier;
    lydian_rpc::Notifier { kind: topic.notifier(), address, high_water_mark }
}

/// The network, as RPC sees it.
#[derive(Debug)]
struct NetworkPeers(lydian_net::Handle);

impl Peers for NetworkPeers {
    fn ask(&self, question: Question) -> bool {
        self.0.ask(question)
    }
}

/// Raises the limit on open files to its maximum: Core's `RaiseFileDescriptorLimit`. If that fails, there are fewer
/// connections.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If the system refuses, the limit stays as it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// The addresses to listen on; logs half a setting, as Core does.
fn bound<'a>(session: &Session<'_>, rpc: &'a RpcSettings) -> &'a [String] {
    if rpc.bind.is_empty() && !rpc.allow.is_empty() {
        let words = "Option -rpcallowip was specified without -rpcbind; this doesn't usually make sense";
        session.log.warning(words);
    }
    if !rpc.bind.is_empty() && rpc.allow.is_empty() {
        let words =
            "Option -rpcbind was ignored because -rpcallowip was not specified, refusing to allow everyone to connect";
        session.log.warning(words);
    }
    rpc.bound()
}

/// The part of Core's `InitHTTPAllowList` that handles `-rpcallowip`.
fn allowed(rpc: &RpcSettings) -> Result<Vec<Subnet>, ServeError> {
    let subnet =
        |text: &String| Subnet::parse(text, rpc.with_cjdns).map_err(|_| ServeError::Subnet { text: text.clone() });
    rpc.allow.iter().map(subnet).collect()
}

/// Core's `InterpretPermString`.
fn cookie_permissions(rpc: &RpcSettings) -> Result<Option<CookiePermissions>, ServeError> {
    Ok(match rpc.cookie_permissions.as_deref() {
        None => None,
        Some("owner") => Some(CookiePermissions::Owner),
        Some("group") => Some(CookiePermissions::Group),
        Some("all") => Some(CookiePermissions::All),
        Some(text) => return Err(ServeError::CookiePermissions { text: text.to_owned() }),
    })
}

/// Core's `InitRPCAuthentication`.
fn users(session: &Session<'_>, rpc: &RpcSettings) -> Result<(Users, Option<Cookie>), ServeError> {
    let mut users = Users::default();
    let mut cookie = None;
    if rpc.password.0.is_empty() {
        let permissions = cookie_permissions(rpc)?;
        match &rpc.cookie {
            None => session.log.info("RPC authentication cookie file generation is disabled."),
            Some(path) => {
                let made = Cookie::write(Arc::clone(&session.disk), path, permissions);
                let (made, password) = made.map_err(ServeError::Cookie)?;
                session.log.info(format!("Generated RPC authentication cookie {}", made.path().display()));
                session.log.info(format!("Permissions used for cookie: {}", symbolic(permissions)));
                session.log.info("Using random cookie authentication.");
                users.add_cookie(&password).map_err(ServeError::Cookie)?;
                cookie = Some(made);
            }
        }
    } else {
        session.log.info("Using rpcuser/rpcpassword authentication.");
        session.log.warning(
            "The use of rpcuser/rpcpassword is less secure, because credentials are configured in plain text. It is recommended that locally-run \
             instances switch to cookie-based auth, or otherwise to use hashed rpcauth credentials.",
        );
        users.add(&rpc.user.0, &rpc.password.0).map_err(ServeError::Cookie)?;
    }
    if !rpc.auth.is_empty() {
        session.log.info("Using rpcauth authentication.");
    }
    for line in &rpc.auth {
        users.add_rpcauth(&line.0).map_err(|_| ServeError::Auth)?;
    }
    Ok((users, cookie))
}

/// Core's `PermsToSymbolicString` for the cookie file.
fn symbolic(permissions: Option<CookiePermissions>) -> &'static str {
    match permissions {
        None | Some(CookiePermissions::Owner) => "rw-------",
        Some(CookiePermissions::Group) => "rw-r-----",
        Some(CookiePermissions::All) => "rw-r--r--",
    }
}

/// The services that only the program can provide.
#[derive(Debug)]
struct NodeHost {
    log: Arc<Log>,
    stop: Stop,
    chain: Chain,
    log_path: String,
}

impl Host for NodeHost {
    fn unix_micros(&self) -> u64 {
        now_micros()
    }

    fn steady_micros(&self) -> u64 {
        now_nanos() / 1_000
    }

    fn set_mock_time(&self, seconds: i64) {
        mock(u64::try_from(seconds).unwrap_or(0));
    }

    fn request_stop(&self) {
        // As a signal does, because only the signal thread can end some phases.
        if kill_process(getpid(), Signal::TERM).is_err() && self.stop.ask() {
            self.log.info("Shutdown requested. Exiting.");
        }
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        crate::net::fill_random(bytes);
    }

    fn log_path(&self) -> String {
        self.log_path.clone()
    }

    fn log_categories(&self) -> Vec<(&'static str, bool)> {
        self.log.categories().list()
    }

    fn set_log_category(&self, name: &str, is_on: bool) -> bool {
        self.log.set_category(name, is_on)
    }

    fn log_line(&self, line: &LogLine) {
        self.log.take(line.level, line.place, &line.text);
    }

    fn log_switches(&self) -> LogSwitches {
        self.log.switches()
    }

    fn verification_progress(&self, tip: &ProgressOf, now: i64) -> f64 {
        let line = TipLine {
            hash: BlockHash::ZERO,
            height: Height(tip.height),
            version: 0,
            chain_work: U256::ZERO,
            chain_tx_count: tip.transactions,
            time: tip.time,
            headers_height: Height(tip.headers_height),
            cache_bytes: 0,
            cache_coins: 0,
        };
        progress(&line, self.chain, now)
    }
}
