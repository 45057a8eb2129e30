//! The Esplora server of a node or of a front end. Input: [`Parts`] of the process, and what the server answers from.
//! Output: a server that answers until it is dropped.
//!
//! Wiring only: `lydian_query` reads, `lydian_esplora` speaks HTTP.

use crate::answers::{Parts, ToLog, everyone};
use crate::listening::{Service, Transport};
use lydian_esplora::{Server, Settings};
use lydian_query::Source;
use lydian_serve::{BadAddress, StartError, bind_addresses};
use std::fmt;

/// Why the server cannot be started.
#[derive(Debug)]
pub(crate) enum EsploraError {
    Bind(BadAddress),
    Start(StartError),
}

impl fmt::Display for EsploraError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EsploraError::Bind(error) => write!(f, "-esplorabind: {error}"),
            EsploraError::Start(error) => write!(f, "Unable to start the Esplora server: {error}"),
        }
    }
}

/// Starts the server.
pub(crate) fn start(parts: &Parts<'_>, source: Source) -> Result<Server, EsploraError> {
    let settings = &parts.settings.esplora;
    let addresses = bind_addresses(&settings.bind, settings.port).map_err(EsploraError::Bind)?;
    // The option opens the server to every client that reaches the address.
    let allowed = if settings.bind.is_empty() { Vec::new() } else { everyone() };
    let settings = Settings { addresses, allowed, chain: parts.settings.params.chain, cors: settings.cors.clone() };
    let server = Server::start(source, settings, ToLog::new("Esplora", parts.log)).map_err(EsploraError::Start)?;
    for address in server.addresses() {
        parts.listening.add(Service::Esplora, Transport::Http, *address);
    }
    if let Some(address) = server.addresses().iter().find(|address| address.is_ipv4()).or(server.addresses().first()) {
        let words = format!("listening on {address}; try it with: curl http://{address}/blocks/tip/height");
        parts.log.info(format!("Esplora server: {words}"));
    }
    Ok(server)
}
