//! The Electrum server of the node. Input: a session, the engine, the index, the mempool, and the RPC methods of this
//! process. Output: a server that answers until it is dropped.
//!
//! Wiring only: `lydian_query` reads, `lydian_electrum` speaks the protocol.

use crate::log::Log;
use crate::run::Session;
use lydian_disk::{DiskError, OwnDir, OwnFile, PathKind, Proof, read_whole};
use lydian_electrum::{Identity, Server, Settings, Source};
use lydian_engine::Engine;
use lydian_index::TxIndexReader;
use lydian_mempool::Mempool;
use lydian_query::{CallError, Calls, Chain, NodeChain, NodeIndex, NodePool, Query, ScriptIndex};
use lydian_rpc::Context;
use lydian_serve::{BadAddress, ClientEvent, Event, StartError, Subnet, TlsError, TlsIdentity, bind_addresses};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Starts the server. `index` is `None` with `-addressindex=0`, or if it could not be opened.
pub(crate) fn start(
    session: &Session<'_>,
    engine: &Arc<Engine>,
    mempool: &Arc<Mempool>,
    index: Option<TxIndexReader>,
    context: Arc<Context>,
) -> Result<Server, ElectrumError> {
    let settings = &session.settings.electrum;
    let chain: Arc<dyn Chain> = Arc::new(NodeChain::new(engine));
    let index = index.filter(TxIndexReader::has_scripts);
    let index =
        index.map(|reader| Arc::new(NodeIndex::new(reader, Arc::clone(&chain), engine)) as Arc<dyn ScriptIndex>);
    let pool = Arc::new(NodePool::new(mempool, engine));
    let query = Arc::new(Query::new(lydian_query::Settings { chain, index, pool }));
    let bind = |option, texts: &[String], port| {
        bind_addresses(texts, port).map_err(|error| ElectrumError::Bind(option, error))
    };
    let addresses = bind("electrumbind", &settings.bind, settings.port)?;
    let tls = match &settings.tls_bind {
        Some(texts) => Some((bind("electrumtlsbind", texts, settings.port + 1)?, identity_of(session)?)),
        None => None,
    };
    let identity = Identity {
        name: settings.name.clone(),
        banner: format!("Lydian {}: a Bitcoin node that serves wallets itself", env!("CARGO_PKG_VERSION")),
        donation_address: String::new(),
        genesis: session.settings.params.genesis_hash,
    };
    // The option opens the server to every client that reaches the address.
    let is_open = !settings.bind.is_empty() || settings.tls_bind.as_ref().is_some_and(|texts| !texts.is_empty());
    let allowed = if is_open { everyone() } else { Vec::new() };
    let source = Source { query, calls: Arc::new(NodeCalls(context)) };
    let log = Arc::new(ToLog(Arc::clone(&session.log)));
    let server =
        Server::start(source, Settings { addresses, tls, allowed, identity }, log).map_err(ElectrumError::Start)?;
    if let Some(address) = server.addresses().iter().find(|address| address.is_ipv4()).or(server.addresses().first()) {
        session.log.info(format!("Electrum server: {}", try_it(*address)));
    }
    Ok(server)
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

fn everyone() -> Vec<Subnet> {
    ["0.0.0.0/0", "::/0"].into_iter().filter_map(|text| Subnet::parse(text, true).ok()).collect()
}

/// The RPC methods of this process.
#[derive(Debug)]
struct NodeCalls(Arc<Context>);

/// An answer of RPC.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<AnswerError>,
}

#[derive(Deserialize)]
struct AnswerError {
    code: i32,
    message: String,
}

impl Calls for NodeCalls {
    fn call(&self, method: &str, params: &str) -> Result<String, CallError> {
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":{},\"params\":{params}}}", json!(method));
        let (methods, whitelist) = (lydian_rpc::table::METHODS, lydian_rpc::Whitelist::default());
        let reply = lydian_rpc::exec::execute(&self.0, methods, &whitelist, "electrum", body.as_bytes());
        let body = reply.body.unwrap_or_default();
        let unreadable = |error: serde_json::Error| CallError { code: -32603, message: error.to_string() };
        let answer: Answer<'_> = serde_json::from_slice(&body).map_err(unreadable)?;
        match (answer.error, answer.result) {
            (Some(AnswerError { code, message }), _) => Err(CallError { code, message }),
            (None, Some(result)) => Ok(result.get().to_owned()),
            (None, None) => Ok("null".to_owned()),
        }
    }
}

/// Writes what happens in the server to the log.
#[derive(Debug)]
struct ToLog(Arc<Log>);

impl lydian_serve::Log for ToLog {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Binding(address) if !address.ip().is_loopback() => {
                self.0.warning(format!("The Electrum server on {address} is open to everyone who reaches it"))
            }
            Event::BindFailed(failure) => {
                self.0.warning(format!("Electrum server: {failure}"));
            }
            Event::NoPlace(address) => {
                self.0.debug(crate::log::Category::NET, || format!("Electrum: no place for {address}"));
            }
            Event::AcceptFailed(error) => {
                self.0.debug(crate::log::Category::NET, || format!("Electrum: cannot accept a connection: {error}"));
            }
            Event::Client { address, id, event: ClientEvent::Accepted } => {
                self.0.debug(crate::log::Category::NET, || format!("Electrum: client {id} connected from {address}"));
            }
            Event::Client { id, event: ClientEvent::TlsFailed(error), .. } => {
                self.0.debug(crate::log::Category::NET, || format!("Electrum: client {id}: TLS: {error}"));
            }
            Event::Client { id, event: ClientEvent::Disconnected, .. } => {
                self.0.debug(crate::log::Category::NET, || format!("Electrum: client {id} disconnected"));
            }
            Event::Binding(_) | Event::Client { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_try_names_a_reachable_address() {
        let of = |text: &str| try_it(text.parse().unwrap());
        assert!(of("0.0.0.0:7").ends_with("| nc -q 1 127.0.0.1 7"));
        assert!(of("[::1]:7").ends_with("| nc -q 1 ::1 7"));
        assert_eq!(everyone().len(), 2);
    }
}
