//! The Electrum server of the node. Input: a session, the engine, the index, the mempool, and the RPC methods of this
//! process. Output: a server that answers until it is dropped.
//!
//! Wiring only: `lydian_query` reads, `lydian_electrum` speaks the protocol.

use crate::log::Log;
use crate::run::Session;
use lydian_electrum::{Identity, Server, Settings, Source};
use lydian_engine::Engine;
use lydian_index::TxIndexReader;
use lydian_mempool::Mempool;
use lydian_query::{CallError, Calls, Chain, NodeChain, NodeIndex, NodePool, Query, ScriptIndex};
use lydian_rpc::Context;
use lydian_serve::{BadAddress, ClientEvent, Event, StartError, Subnet, bind_addresses};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Why the server cannot be started.
#[derive(Debug)]
pub(crate) enum ElectrumError {
    Bind(BadAddress),
    Start(StartError),
}

impl fmt::Display for ElectrumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElectrumError::Bind(error) => write!(f, "-electrumbind: {error}"),
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
    let index = index.map(|reader| Arc::new(NodeIndex::new(reader, Arc::clone(&chain))) as Arc<dyn ScriptIndex>);
    let pool = Arc::new(NodePool::new(mempool, engine));
    let query = Arc::new(Query::new(lydian_query::Settings { chain, index, pool }));
    let addresses = bind_addresses(&settings.bind, settings.port).map_err(ElectrumError::Bind)?;
    let identity = Identity {
        name: settings.name.clone(),
        banner: format!("Lydian {}: a Bitcoin node that serves wallets itself", env!("CARGO_PKG_VERSION")),
        donation_address: String::new(),
        genesis: session.settings.params.genesis_hash,
    };
    // The option opens the server to every client that reaches the address.
    let allowed = if settings.bind.is_empty() { Vec::new() } else { everyone() };
    let source = Source { query, calls: Arc::new(NodeCalls(context)) };
    let log = Arc::new(ToLog(Arc::clone(&session.log)));
    let server = Server::start(source, Settings { addresses, allowed, identity }, log).map_err(ElectrumError::Start)?;
    if let Some(address) = server.addresses().iter().find(|address| address.is_ipv4()).or(server.addresses().first()) {
        session.log.info(format!("Electrum server: {}", try_it(*address)));
    }
    Ok(server)
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
            Event::Binding(address) if !address.ip().is_loopback() => self.0.warning(format!(
                "The Electrum server on {address} does not encrypt connections and is open to everyone who reaches it"
            )),
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
