//! The Electrum server of the node. Input: a session, and what its servers answer from. Output: a server that answers
//! until it is dropped.
//!
//! Wiring only: `lydian_query` reads, `lydian_electrum` speaks the protocol.

use crate::answers::{Answers, ToLog, everyone};
use crate::clock::{now_nanos, thread_cpu};
use crate::run::Session;
use crate::settings::electrum::ElectrumSettings;
use lydian_disk::{DiskError, OwnDir, OwnFile, PathKind, Proof, read_whole};
use lydian_electrum::{Clock, Identity, Live, Server, Settings};
use lydian_serve::{BadAddress, StartError, TlsError, TlsIdentity, bind_addresses};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
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
    Start(StartError),
}

impl fmt::Display for ElectrumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElectrumError::Bind(option, error) => write!(f, "-{option}: {error}"),
            ElectrumError::File(error) => write!(f, "Unable to start the Electrum server: {error}"),
            ElectrumError::Tls(path, error) => write!(f, "{}: {error}", path.display()),
            ElectrumError::Start(error) => write!(f, "Unable to start the Electrum server: {error}"),
        }
    }
}

/// Starts the server.
pub(crate) fn start(session: &Session<'_>, answers: &Answers) -> Result<Server, ElectrumError> {
    let settings = &session.settings.electrum;
    let bind = |option, texts: &[String], port| {
        bind_addresses(texts, port).map_err(|error| ElectrumError::Bind(option, error))
    };
    let mut addresses = bind("electrumbind", &settings.bind, settings.port)?;
    if let Some(texts) = &settings.ws_bind {
        addresses.extend(bind("electrumwsbind", texts, settings.port + 2)?);
    }
    let mut of_tls = Vec::new();
    if let Some(texts) = &settings.tls_bind {
        of_tls.extend(bind("electrumtlsbind", texts, settings.port + 1)?);
    }
    // Without a certificate for one, the other's default would be a surprise.
    if let Some(texts) = settings.wss_bind.as_ref().filter(|texts| settings.tls_bind.is_some() || !texts.is_empty()) {
        of_tls.extend(bind("electrumwssbind", texts, settings.port + 3)?);
    }
    let tls = if of_tls.is_empty() { None } else { Some((of_tls, identity_of(session)?)) };
    let identity = Identity { name: settings.name.clone(), genesis: session.settings.params.genesis_hash };
    // The option opens the server to every client that reaches the address.
    let of_options = [&settings.tls_bind, &settings.ws_bind, &settings.wss_bind];
    let is_open = !settings.bind.is_empty() || of_options.into_iter().flatten().any(|texts| !texts.is_empty());
    let allowed = if is_open { everyone() } else { Vec::new() };
    let log = ToLog::new("Electrum", &session.log);
    let server = Server::start(
        answers.source("electrum"),
        Settings {
            addresses,
            tls,
            allowed,
            proxies: settings.proxies.clone(),
            identity,
            live: live(settings),
            clock: Arc::new(NodeClock),
            origin: settings.cors.clone(),
        },
        log,
    )
    .map_err(ElectrumError::Start)?;
    if let Some(address) = server.addresses().iter().find(|address| address.is_ipv4()).or(server.addresses().first()) {
        session.log.info(format!("Electrum server: {}", try_it(*address)));
    }
    Ok(server)
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

/// The settings that can change while the server runs.
fn live(settings: &ElectrumSettings) -> Live {
    Live {
        banner: format!("Lydian {}: a Bitcoin node that serves wallets itself", env!("CARGO_PKG_VERSION")),
        donation_address: String::new(),
        costs: settings.costs,
    }
}

/// The files of a self-made certificate, in [`TLS_DIR`].
pub(crate) const TLS_FILES: &[OwnFile] =
    &[OwnFile { name: CERTIFICATE, proof: Proof::Directory }, OwnFile { name: KEY, proof: Proof::Directory }];

/// The directory, relative to the data directory of the chain, to which only its owner has access.
pub(crate) const TLS_DIR: &str = "electrum";

const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";

/// The largest file of a certificate or a key.
const PEM_SIZE_MAX: u64 = 1 << 20;

/// The certificate of the options; otherwise one that is made at the first start. Its fingerprint is logged.
fn identity_of(session: &Session<'_>) -> Result<TlsIdentity, ElectrumError> {
    let settings = &session.settings.electrum;
    let dir = session.settings.datadir.join(TLS_DIR);
    let (certificate, key) = match (&settings.certificate, &settings.key) {
        (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
        _ => {
            let (certificate, key) = (dir.join(CERTIFICATE), dir.join(KEY));
            if session.disk.kind(&certificate) != Ok(PathKind::File) || session.disk.kind(&key) != Ok(PathKind::File) {
                session.disk.create_dir(&dir).map_err(ElectrumError::File)?;
                let own = OwnDir::new(&dir, TLS_FILES);
                let made = TlsIdentity::self_made().map_err(|error| ElectrumError::Tls(dir.clone(), error))?;
                for (path, text) in [(&key, &made.key), (&certificate, &made.certificate)] {
                    own.replace(session.disk.as_ref(), path, text.as_bytes()).map_err(ElectrumError::File)?;
                }
            }
            (certificate, key)
        }
    };
    let read = |path: &Path| read_whole(session.disk.as_ref(), path, PEM_SIZE_MAX).map_err(ElectrumError::File);
    let identity = TlsIdentity::from_pem(&read(&certificate)?, &read(&key)?);
    let identity = identity.map_err(|error| ElectrumError::Tls(certificate, error))?;
    session.log.info(format!("Electrum server: the SHA-256 of the TLS certificate is {}", identity.fingerprint()));
    Ok(identity)
}

/// What a user can type to see that it answers.
fn try_it(address: SocketAddr) -> String {
    let (ip, port) = (address.ip(), address.port());
    let ip = if ip.is_unspecified() { "127.0.0.1".to_owned() } else { ip.to_string() };
    let question = r#"{"id":0,"method":"blockchain.headers.subscribe"}"#;
    format!("listening on {address}; try it with: echo '{question}' | nc -q 1 {ip} {port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_try_names_a_reachable_address() {
        let of = |text: &str| try_it(text.parse().unwrap());
        assert!(of("0.0.0.0:7").ends_with("| nc -q 1 127.0.0.1 7"));
        assert!(of("[::1]:7").ends_with("| nc -q 1 ::1 7"));
    }
}
