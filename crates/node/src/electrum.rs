//! The Electrum server of a node or of a front end. Input: [`Parts`] of the process, and what the server answers from.
//! Output: a server that answers until it is dropped.
//!
//! Wiring only: `lydian_query` reads, `lydian_electrum` speaks the protocol.

pub(crate) mod bans;
pub(crate) mod files;
mod operator;
mod reload;

use crate::answers::{Answers, Parts, ToLog, everyone};
use crate::clock::{now_nanos, thread_cpu};
use crate::listening::{Service, Transport};
use crate::reload::Reloader;
use crate::run::Session;
use bans::SavedBans;
use lydian_disk::DiskError;
use lydian_electrum::{Clock, Identity, Operator, Server, Settings};
use lydian_query::Source;
use lydian_serve::{BadAddress, Drain, StartError, Subnet, TlsError, bind_addresses};
use lydian_stdx::Current;
use operator::ForRpc;
use reload::Changeable;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Why the server cannot be started.
#[derive(Debug)]
pub(crate) enum ElectrumError {
    Bind(&'static str, BadAddress),
    /// A file of the certificate cannot be read or written.
    File(DiskError),
    /// The certificate or its key.
    Tls(PathBuf, TlsError),
    /// `-electrumbanner` is not UTF-8.
    Banner(PathBuf),
    Start(StartError),
}

impl fmt::Display for ElectrumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElectrumError::Bind(option, error) => write!(f, "-{option}: {error}"),
            ElectrumError::File(error) => write!(f, "Unable to start the Electrum server: {error}"),
            ElectrumError::Tls(path, error) => write!(f, "{}: {error}", path.display()),
            ElectrumError::Banner(path) => write!(f, "-electrumbanner: {} is not UTF-8", path.display()),
            ElectrumError::Start(error) => write!(f, "Unable to start the Electrum server: {error}"),
        }
    }
}

/// The server, and the thread that changes its settings.
#[derive(Debug)]
pub(crate) struct Serving {
    // Declared, and so dropped, before the server.
    _reloader: Reloader,
    server: Server,
}

impl Serving {
    pub(crate) fn operator(&self) -> &Operator {
        self.server.operator()
    }

    /// Closes the addresses; the sessions go on.
    pub(crate) fn close_addresses(&self) {
        self.server.close_addresses();
    }

    pub(crate) fn drain(&self) -> Drain {
        self.server.drain()
    }
}

/// Starts the server of a node, which methods of RPC operate, and whose bans are kept on disk.
pub(crate) fn start_in_node(session: &Session<'_>, answers: &Answers) -> Result<Serving, ElectrumError> {
    start(&session.parts(), answers.source("electrum"), |operator| {
        let directory = session.settings.datadir.join(files::TLS_DIR);
        let saved = SavedBans::new(Arc::clone(&session.disk), directory, Arc::clone(&session.log));
        answers.has_electrum(Arc::new(ForRpc::new(operator.clone(), saved)));
    })
}

/// Starts the server. `prepare` is called before it accepts the first connection.
pub(crate) fn start(
    parts: &Parts<'_>,
    source: Source,
    prepare: impl FnOnce(&Operator),
) -> Result<Serving, ElectrumError> {
    let Parts { settings: all, disk, log, listening, .. } = parts;
    let settings = &all.electrum;
    let bind = |option, texts: &[String], port| {
        bind_addresses(texts, port).map_err(|error| ElectrumError::Bind(option, error))
    };
    let mut addresses = bind("electrumbind", &settings.bind, settings.port)?;
    let mut transports = vec![Transport::Tcp; addresses.len()];
    if let Some(texts) = &settings.ws_bind {
        addresses.extend(bind("electrumwsbind", texts, settings.port + 2)?);
    }
    transports.resize(addresses.len(), Transport::Ws);
    let mut of_tls = Vec::new();
    if let Some(texts) = &settings.tls_bind {
        of_tls.extend(bind("electrumtlsbind", texts, settings.port + 1)?);
    }
    transports.resize(addresses.len() + of_tls.len(), Transport::Tls);
    // Without a certificate for one, the other's default would be a surprise.
    if let Some(texts) = settings.wss_bind.as_ref().filter(|texts| settings.tls_bind.is_some() || !texts.is_empty()) {
        of_tls.extend(bind("electrumwssbind", texts, settings.port + 3)?);
    }
    transports.resize(addresses.len() + of_tls.len(), Transport::Wss);
    let live = Current::new(files::live(settings, disk.as_ref())?);
    let mut tls = None;
    if !of_tls.is_empty() {
        let identity = files::identity(settings, &all.datadir, disk.as_ref())?;
        let fingerprint = identity.fingerprint();
        log.info(format!("Electrum server: the SHA-256 of the TLS certificate is {fingerprint}"));
        let identity = Current::new(identity);
        listening.has_certificate(&identity);
        tls = Some((of_tls, identity));
    }
    let changeable = Changeable { live: live.clone(), identity: tls.as_ref().map(|(_, identity)| identity.clone()) };
    let identity = Identity { name: settings.name.clone(), genesis: all.params.genesis_hash, chain: all.params.chain };
    // The option opens the server to every client that reaches the address.
    let of_options = [&settings.tls_bind, &settings.ws_bind, &settings.wss_bind];
    let is_open = !settings.bind.is_empty() || of_options.into_iter().flatten().any(|texts| !texts.is_empty());
    let allowed = if is_open { everyone() } else { Vec::new() };
    let server = Server::start(
        source,
        Settings {
            addresses,
            tls,
            allowed,
            proxies: settings.proxies.clone(),
            identity,
            live,
            clock: Arc::new(NodeClock),
            origin: settings.cors.clone(),
        },
        ToLog::new("Electrum", log),
        prepare,
    )
    .map_err(ElectrumError::Start)?;
    if let Some(address) = server.addresses().iter().find(|address| address.is_ipv4()).or(server.addresses().first()) {
        log.info(format!("Electrum server: {}", try_it(*address, &settings.proxies)));
    }
    for (transport, address) in transports.into_iter().zip(server.bound()) {
        if let Some(address) = address {
            listening.add(Service::Electrum, transport, *address);
        }
    }
    let reloader = reload::start(parts, changeable);
    let reloader = reloader.map_err(|error| ElectrumError::Start(StartError::Threads(error)))?;
    Ok(Serving { _reloader: reloader, server })
}

/// The clock of the node.
#[derive(Debug)]
struct NodeClock;

impl Clock for NodeClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(now_nanos())
    }

    fn thread_cpu(&self) -> Duration {
        thread_cpu()
    }
}

/// What a user can type to see that it answers. Nothing if it would count as a proxy: see `-electrumproxy`.
fn try_it(address: SocketAddr, proxies: &[Subnet]) -> String {
    let (ip, port) = (address.ip(), address.port());
    let ip = if ip.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { ip };
    if proxies.iter().any(|subnet| subnet.contains(ip)) {
        return format!("listening on {address}");
    }
    let question = r#"{"id":0,"method":"blockchain.headers.subscribe"}"#;
    format!("listening on {address}; try it with: echo '{question}' | nc -q 1 {ip} {port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_try_names_a_reachable_address() {
        let of = |text: &str, proxies: &[Subnet]| try_it(text.parse().unwrap(), proxies);
        assert!(of("0.0.0.0:7", &[]).ends_with("| nc -q 1 127.0.0.1 7"));
        assert!(of("[::1]:7", &[]).ends_with("| nc -q 1 ::1 7"));
        let proxies = [Subnet::parse("127.0.0.1", true).unwrap()];
        assert_eq!(of("0.0.0.0:7", &proxies), "listening on 0.0.0.0:7");
        assert!(of("[::1]:7", &proxies).ends_with("| nc -q 1 ::1 7"));
    }
}
