//! `lydian serve`: a front end, which serves wallets and keeps no data.
//!
//! Input: settings. Output: an exit code, lines on stderr, an Electrum and an Esplora server, `/health` and `/metrics`.
//! The index of scripts is in a store (`lydian_shared_index`), the mempool and the blocks are those of nodes
//! (`lydian_front`); nothing is validated and nothing is written.
//!
//! The end: `/health` fails and the addresses are closed at once, then the sessions are ended at a steady pace
//! ([`lydian_serve::Drain`]), so that the other front ends get them one at a time. A second signal ends the
//! process at once, which loses nothing. While the front end has no current data, `/health` fails too, and the sessions
//! are ended in the same way, so that their wallets find a better one.

mod drain;
pub(crate) mod figures;
mod health;
mod reports;

use crate::answers::{Parts, ToLog, everyone};
use crate::build;
use crate::clock::now_nanos;
use crate::daemon;
use crate::electrum::{self, ElectrumError};
use crate::esplora::{self, EsploraError};
use crate::exit;
use crate::host::Host;
use crate::listening::Listening;
use crate::log::{Console, Log};
use crate::reload::Reloader;
use crate::service;
use crate::settings::Settings;
use crate::shared_index::open_store;
use crate::signals::{self, Hangups, Stop};
use drain::Ending;
use health::Monitored;
use lydian_disk::{Disk, DiskError, RealDisk, read_whole};
use lydian_front::{Front, FrontError, FrontEvent, FrontLog, FrontSettings, Health};
use lydian_index_cassandra::Address;
use lydian_options::Notice;
use lydian_serve::{BadAddress, Monitor, StartError, bind_addresses};
use lydian_shared_index::StoreError;
use reports::Reports;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// How often the front end looks at its own health.
const LOOK: Duration = Duration::from_millis(250);

/// Between two steps of the end.
const STEP: Duration = Duration::from_millis(100);

/// The largest file of `-feedcert`.
const PEM_SIZE_MAX: u64 = 1 << 20;

/// Why the front end cannot start.
#[derive(Debug)]
enum Failure {
    Signals(io::Error),
    /// The system gives no thread.
    Thread(io::Error),
    HealthBind(BadAddress),
    Monitor(StartError),
    /// `-feedcert` cannot be read.
    Roots(DiskError),
    Store(StoreError),
    Front(FrontError),
    Electrum(ElectrumError),
    Esplora(EsploraError),
    /// `-index` or `-feed` is missing, which the settings refuse.
    NoStore,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Signals(error) => write!(f, "signals cannot be caught: {error}"),
            Failure::Thread(error) => write!(f, "a thread cannot be started: {error}"),
            Failure::HealthBind(error) => write!(f, "-healthbind: {error}"),
            Failure::Monitor(error) => write!(f, "Unable to serve /health and /metrics: {error}"),
            Failure::Roots(error) => write!(f, "-feedcert: {error}"),
            // The reason names the store, and is a sentence of its own.
            Failure::Store(StoreError::Refused { reason }) => write!(f, "-index: {reason}"),
            Failure::Store(error) => write!(f, "-index: {error}"),
            Failure::Front(error) => error.fmt(f),
            Failure::Electrum(error) => error.fmt(f),
            Failure::Esplora(error) => error.fmt(f),
            Failure::NoStore => f.write_str("-index is missing"),
        }
    }
}

/// Serves until it is asked to stop. An exit code that is sent through `leave` ends the process at once.
pub(crate) fn run(settings: &Settings, leave: &SyncSender<u8>) -> u8 {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let console = settings.log.console.unwrap_or(true).then_some(Console::Stderr);
    let log = Arc::new(Log::with_console(Arc::clone(&disk), &settings.log, console));
    // It has no file, so nothing can fail.
    let _ = log.open(false);
    greet(settings, &log);
    // Each session is an open file.
    (Host::this().descriptors)(u64::MAX);
    match serve(settings, &disk, &log, leave) {
        Ok(()) => {
            log.info("Shutdown done");
            exit::DONE
        }
        Err(failure) => {
            daemon::complain(&failure.to_string());
            exit::SETTINGS
        }
    }
}

fn greet(settings: &Settings, log: &Log) {
    log.info(format!("Lydian front end version v{}", env!("CARGO_PKG_VERSION")));
    log.info(build::line());
    if let Some(conf) = &settings.conf {
        log.info(format!("Config file: {}", conf.display()));
    }
    settings.arguments.iter().for_each(|line| log.info(line));
    for notice in &settings.notices {
        match notice {
            Notice::Warning(text) | Notice::LogWarning(text) => log.warning(text),
            Notice::LogInfo(text) => log.info(text),
            Notice::Stderr(_) => {}
        }
    }
}

/// The servers for wallets.
#[derive(Debug)]
struct Servers {
    electrum: Option<electrum::Serving>,
    esplora: Option<lydian_esplora::Server>,
}

impl Servers {
    fn start(parts: &Parts<'_>, front: &Front) -> Result<Servers, Failure> {
        let settings = parts.settings;
        let electrum = || electrum::start(parts, front.source(), |_| {}).map_err(Failure::Electrum);
        let esplora = || esplora::start(parts, front.source()).map_err(Failure::Esplora);
        let electrum = settings.electrum.is_on.then(electrum).transpose()?;
        Ok(Servers { electrum, esplora: settings.esplora.is_on.then(esplora).transpose()? })
    }

    fn close_addresses(&self) {
        self.electrum.iter().for_each(electrum::Serving::close_addresses);
        self.esplora.iter().for_each(lydian_esplora::Server::close_addresses);
    }

    /// Begins to end all sessions.
    fn ending(&self) -> Ending {
        let electrum = self.electrum.iter().map(electrum::Serving::drain);
        let esplora = self.esplora.iter().map(lydian_esplora::Server::drain);
        Ending::new(electrum.chain(esplora).collect(), now())
    }
}

fn now() -> Duration {
    Duration::from_nanos(now_nanos())
}

fn serve(settings: &Settings, disk: &Arc<dyn Disk>, log: &Arc<Log>, leave: &SyncSender<u8>) -> Result<(), Failure> {
    let (stop, hangups) = (Stop::default(), Hangups::default());
    let leave = leave.clone();
    let end_at_once = move || {
        // It is full only if the process is exiting already.
        let _ = leave.try_send(exit::DONE);
    };
    signals::catch_in_front_end(&stop, &hangups, log, end_at_once).map_err(Failure::Signals)?;
    // Until wallets are served, the process may end at any moment.
    stop.set_open_ended(true);
    let monitored = Arc::new(Monitored::new(stop.clone()));
    let monitor = start_monitor(settings, log, &monitored)?;
    let address = settings.shared_index.as_ref().ok_or(Failure::NoStore)?;
    let front = Arc::new(start_front(settings, disk.as_ref(), log, address)?);
    let listening = Listening::default();
    let parts = Parts { settings, disk, log, hangups: &hangups, listening: &listening };
    let servers = Servers::start(&parts, &front)?;
    let _reloader = trust_again(&parts, &front).map_err(Failure::Thread)?;
    monitored.serves(&front, &servers);
    stop.set_open_ended(false);
    service::is_ready();
    let mut reports = Reports::default();
    stay(&servers, &front, &stop, log, &mut reports);
    service::is_stopping();
    end(&servers, log, &mut reports);
    drop(servers);
    drop(monitor);
    Ok(())
}

/// Starts `/health` and `/metrics`, which say that the front end is starting until it serves.
fn start_monitor(settings: &Settings, log: &Arc<Log>, monitored: &Arc<Monitored>) -> Result<Monitor, Failure> {
    let front = &settings.front;
    let addresses = bind_addresses(&front.health_bind, front.health_port).map_err(Failure::HealthBind)?;
    // The option opens it to every client that reaches the address.
    let allowed = if front.health_bind.is_empty() { Vec::new() } else { everyone() };
    let texts = Arc::<Monitored>::clone(monitored);
    let monitor = Monitor::start(addresses, allowed, texts, ToLog::new("Health", log)).map_err(Failure::Monitor)?;
    let first =
        |addresses: &[SocketAddr]| addresses.iter().find(|address| address.is_ipv4()).or(addresses.first()).copied();
    if let Some(address) = first(monitor.addresses()) {
        log.info(format!("Health: listening on {address}; try it with: curl http://{address}/health"));
    }
    Ok(monitor)
}

/// Opens the store and follows the nodes.
fn start_front(settings: &Settings, disk: &dyn Disk, log: &Arc<Log>, address: &Address) -> Result<Front, Failure> {
    let nodes = &settings.front.nodes;
    let names: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    log.info(format!("Index: read from {address}"));
    log.info(format!("Feed: the mempool and the blocks of {}", names.join(", ")));
    let read = |path| read_roots(disk, path);
    let front = FrontSettings {
        roots: settings.feed.certificate.as_deref().map(read).transpose()?,
        store: open_store(address).map_err(Failure::Store)?,
        nodes: nodes.clone(),
        token: Some(settings.feed.token.0.clone()).filter(|token| !token.is_empty()),
        genesis: settings.params.genesis_hash,
        filter_bytes: settings.front.filter_bytes,
        clock: now,
    };
    Front::start(front, Arc::new(ToFrontLog(Arc::clone(log)))).map_err(Failure::Front)
}

fn read_roots(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, Failure> {
    read_whole(disk, path, PEM_SIZE_MAX).map_err(Failure::Roots)
}

/// The thread that reads `-feedcert` again. If it is wrong, what was trusted stays trusted. `None` without `-feedcert`.
fn trust_again(parts: &Parts<'_>, front: &Arc<Front>) -> io::Result<Option<Reloader>> {
    let Some(path) = parts.settings.feed.certificate.clone() else { return Ok(None) };
    let (disk, log, front) = (Arc::clone(parts.disk), Arc::clone(parts.log), Arc::clone(front));
    let reload = move || {
        let read = read_roots(disk.as_ref(), &path);
        match read.and_then(|pem| front.trust(&pem).map_err(Failure::Front)) {
            Ok(()) => log.info("Feed: read -feedcert again; new connections to nodes use it"),
            Err(error) => log.error(format!("Feed: the certificates stay as they were: {error}")),
        }
    };
    Reloader::start(parts.hangups, "feed-reload", reload).map(Some)
}

/// Looks at the health until the front end is asked to stop. Without current data, the sessions are ended.
fn stay(servers: &Servers, front: &Front, stop: &Stop, log: &Log, reports: &mut Reports) {
    let mut last = Condition::Starting;
    let mut ending = None;
    while !stop.is_asked() {
        let health = front.health();
        let condition = Condition::of(&health);
        if condition != last {
            last = condition;
            report(&health, log);
            ending = (condition == Condition::Gone).then(|| servers.ending());
        }
        if let Some(ending) = &mut ending {
            ending.step(now());
        }
        reports.report(now(), health::sentence(&health));
        stop.wait(LOOK, || false);
    }
}

/// What is logged when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Starting,
    Fresh,
    Stale,
    Gone,
}

impl Condition {
    fn of(health: &Health) -> Condition {
        match health {
            Health::Fresh { .. } => Condition::Fresh,
            Health::Stale { .. } => Condition::Stale,
            Health::Gone { .. } => Condition::Gone,
        }
    }
}

fn report(health: &Health, log: &Log) {
    match health {
        Health::Fresh { height } => log.info(format!("Health: good, at height {height}")),
        Health::Stale { reason, .. } => log.warning(format!("Health: the answers grow old: {reason}")),
        Health::Gone { reason } => {
            log.error(format!("Health: bad, 5 % of the sessions are ended each second: {reason}"));
        }
    }
}

/// Ends all sessions.
fn end(servers: &Servers, log: &Log, reports: &mut Reports) {
    servers.close_addresses();
    let mut ending = servers.ending();
    log.info(format!(
        "Shutdown in progress: no more clients, and of {} sessions 5 % are ended each second",
        ending.open()
    ));
    while !ending.step(now()) {
        reports.report(now(), format!("stopping, {} sessions are open", ending.open()));
        std::thread::sleep(STEP);
    }
}

/// Writes what happens with nodes and store to the log.
#[derive(Debug)]
struct ToFrontLog(Arc<Log>);

impl FrontLog for ToFrontLog {
    fn event(&self, event: &FrontEvent) {
        match event.is_warning() {
            true => self.0.warning(format!("Front end: {event}")),
            false => self.0.info(format!("Front end: {event}")),
        }
    }
}
