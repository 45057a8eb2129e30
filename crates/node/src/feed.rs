//! The feed of the node for front ends. Input: a session, and what its servers answer from. Output: a server that
//! answers until it is dropped. SIGHUP makes it read certificate and key again, for the next connections.
//!
//! Wiring only: `lydian_front` follows the mempool and speaks HTTP.

use crate::answers::{Answers, ToLog, everyone};
use crate::electrum::files::PEM_SIZE_MAX;
use crate::listening::{Service, Transport};
use crate::log::Log as NodeLog;
use crate::reload::{Reloader, settings_again};
use crate::run::Session;
use crate::settings::SettingsError;
use crate::settings::feed::{FeedSettings, is_beyond};
use lydian_disk::{Disk, DiskError, read_whole};
use lydian_engine::Engine;
use lydian_front::server::figures::Counts;
use lydian_front::server::{FeedServer, FeedSource};
use lydian_mempool::Mempool;
use lydian_serve::{BadAddress, Event, Log, StartError, Subnet, TlsError, TlsIdentity, bind_addresses};
use lydian_stdx::Current;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the feed cannot be started.
#[derive(Debug)]
pub(crate) enum FeedError {
    Bind(BadAddress),
    /// An address beyond this machine, without token or TLS.
    Open(SettingsError),
    /// A file of the certificate cannot be read.
    File(DiskError),
    /// The certificate or its key.
    Tls(PathBuf, TlsError),
    Start(lydian_front::server::FeedError),
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeedError::Bind(error) => write!(f, "-feedbind: {error}"),
            FeedError::Open(error) => fmt::Display::fmt(error, f),
            FeedError::File(error) => write!(f, "Unable to start the feed: {error}"),
            FeedError::Tls(path, error) => write!(f, "{}: {error}", path.display()),
            FeedError::Start(error) => write!(f, "Unable to start the feed: {error}"),
        }
    }
}

/// The server, and the thread that changes its certificate.
#[derive(Debug)]
pub(crate) struct Feed {
    // Declared, and so dropped, before the server.
    _reloader: Option<Reloader>,
    server: FeedServer,
}

impl Feed {
    /// What the server has done so far.
    pub(crate) fn counts(&self) -> &Counts {
        self.server.counts()
    }
}

/// Starts the server.
pub(crate) fn start(
    session: &Session<'_>,
    answers: &Answers,
    engine: &Arc<Engine>,
    mempool: &Arc<Mempool>,
) -> Result<Feed, FeedError> {
    let settings = &session.settings.feed;
    let addresses = bind_addresses(&settings.bind, settings.port).map_err(FeedError::Bind)?;
    // These are the ones that are bound: a name may have led elsewhere when the settings were read.
    let allowed = allowed(settings, &addresses)?;
    let pem = settings.certificate.as_deref().zip(settings.key.as_deref());
    let tls = pem.map(|(certificate, key)| identity(certificate, key, session.disk.as_ref())).transpose()?;
    let tls = tls.map(Current::new);
    let feed = lydian_front::server::FeedSettings {
        addresses,
        allowed,
        tls: tls.clone(),
        token: Some(settings.token.0.clone()).filter(|token| !token.is_empty()),
    };
    let source = FeedSource {
        engine: Arc::clone(engine),
        mempool: Arc::clone(mempool),
        chain: answers.chain(),
        pool: answers.pool(),
        calls: answers.source("feed").calls,
        genesis: session.settings.params.genesis_hash,
    };
    let log = Arc::new(FeedLog(ToLog::new("feed", &session.log)));
    let server = FeedServer::start(source, feed, log).map_err(FeedError::Start)?;
    for address in server.addresses() {
        session.listening.add(Service::Feed, Transport::Http, *address);
    }
    for address in server.addresses() {
        let words = listens(*address, tls.is_some(), !settings.token.0.is_empty());
        session.log.info(format!("Feed server: {words}"));
    }
    let reloader = tls
        .map(|tls| reloader(session, tls))
        .transpose()
        .map_err(|error| FeedError::Start(lydian_front::server::FeedError::Start(StartError::Threads(error))))?;
    Ok(Feed { _reloader: reloader, server })
}

/// The thread that reads certificate and key again. If they are wrong, they stay as they were.
fn reloader(session: &Session<'_>, current: Current<TlsIdentity>) -> io::Result<Reloader> {
    let (disk, log) = (Arc::clone(&session.disk), Arc::clone(&session.log));
    Reloader::start(&session.hangups, "feed-reload", move || reload(&current, disk.as_ref(), &log))
}

fn reload(current: &Current<TlsIdentity>, disk: &dyn Disk, log: &NodeLog) {
    let kept = |reason: &dyn fmt::Display| log.error(format!("Feed server: the certificate stays as it was: {reason}"));
    let settings = match settings_again(disk) {
        Ok(settings) => settings.feed,
        Err(error) => return kept(&error),
    };
    let Some((certificate, key)) = settings.certificate.as_deref().zip(settings.key.as_deref()) else {
        return kept(&"-feedcert and -feedkey are not given any more; restart the node to serve without TLS");
    };
    match identity(certificate, key, disk) {
        Ok(identity) => {
            let fingerprint = identity.fingerprint();
            current.set(identity);
            log.info(format!("Feed server: read the certificate again; its SHA-256 is {fingerprint}"));
        }
        Err(FeedError::File(error)) => kept(&error),
        Err(error) => kept(&error),
    }
}

/// Who may connect: this machine, or everyone if an address is beyond it, which needs token and TLS.
fn allowed(settings: &FeedSettings, addresses: &[SocketAddr]) -> Result<Vec<Subnet>, FeedError> {
    settings.check_open(addresses).map_err(FeedError::Open)?;
    Ok(if addresses.iter().any(is_beyond) { everyone() } else { Vec::new() })
}

fn identity(certificate: &Path, key: &Path, disk: &dyn Disk) -> Result<TlsIdentity, FeedError> {
    let read = |path: &Path| read_whole(disk, path, PEM_SIZE_MAX).map_err(FeedError::File);
    let identity = TlsIdentity::from_pem(&read(certificate)?, &read(key)?);
    identity.map_err(|error| FeedError::Tls(certificate.to_owned(), error))
}

/// Where it listens, and what a user can type to see that it answers.
fn listens(address: SocketAddr, has_tls: bool, has_token: bool) -> String {
    match (has_tls, has_token) {
        (true, _) => format!("listening on {address} with TLS"),
        (false, true) => format!("listening on {address}"),
        (false, false) => {
            format!("listening on {address}; try it with: curl -sm 2 http://{address}/feed/1/stream | head -c 49 | xxd")
        }
    }
}

/// The log without the warning about open addresses: those of the feed need a token.
#[derive(Debug)]
struct FeedLog(Arc<ToLog>);

impl Log for FeedLog {
    fn event(&self, event: &Event<'_>) {
        if !matches!(event, Event::Binding(_)) {
            self.0.event(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::rpc::Secret;

    #[test]
    fn addresses_beyond_this_machine_need_token_and_tls_when_they_are_bound() {
        let addresses =
            |texts: &[&str]| -> Vec<SocketAddr> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        let with = |has_token: bool, has_tls: bool| FeedSettings {
            // It was looked up when the settings were read, and may lead elsewhere now.
            bind: vec!["myhost".to_owned()],
            token: Secret(if has_token { "0123456789abcdef".to_owned() } else { String::new() }),
            certificate: has_tls.then(|| "/cert.pem".into()),
            key: has_tls.then(|| "/key.pem".into()),
            ..FeedSettings::default()
        };
        let open = addresses(&["127.0.0.1:3003", "203.0.113.7:3003"]);
        for (has_token, has_tls) in [(false, false), (true, false), (false, true)] {
            for addresses in [&open[..], &addresses(&["0.0.0.0:1"]), &addresses(&["[::ffff:10.0.0.1]:1"])] {
                assert!(matches!(allowed(&with(has_token, has_tls), addresses), Err(FeedError::Open(_))));
            }
        }
        let error = allowed(&with(true, false), &open).unwrap_err().to_string();
        let words =
            "-feedbind: 203.0.113.7:3003 is not on this machine, so that -feedtoken, -feedcert and -feedkey are";
        assert_eq!(error, format!("{words} needed."));
        assert_eq!(allowed(&with(true, true), &open).unwrap(), everyone());
        let own = addresses(&["127.0.0.1:3003", "[::1]:3003", "[::ffff:127.0.0.1]:3003"]);
        assert_eq!(allowed(&with(false, false), &own).unwrap(), Vec::new());
    }
}
