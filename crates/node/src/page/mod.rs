//! The page of the node. Input: a session, the RPC methods, what the display sees. Output: a server that answers until
//! it is dropped, and the parts of the node that it shows, as they come into being: it is there before the engine.
//!
//! Wiring only: `lydian_dashboard` serves; the topics read what other modules keep anyway.

mod calls;
mod explorer;
mod exported;
mod host;
mod link;
mod machine;
mod node;
mod past;
mod pool;
mod pool_lists;
mod qr;
mod topics;

pub(crate) use link::run as print_link;
pub(crate) use machine::folder_sizes;
pub(crate) use node::PageNode;

use crate::answers::{ToLog, everyone};
use crate::display::{Sight, Style};
use crate::electrum::files::identity_in;
use crate::metrics::EventCounts;
use crate::run::Session;
use crate::serve::Serving;
use calls::PageCalls;
use exported::Exported;
use host::PageHost;
use lydian_dashboard::{Ports, Server, Settings};
use lydian_serve::{BadAddress, StartError, TlsIdentity, bind_addresses};
use machine::Folders;
use past::Recorder;
use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use topics::NodeTopics;

/// The folder of the page, relative to the data directory of the chain.
pub(crate) const PAGE_DIR: &str = "page";

/// The user of the link that is printed at the start.
const LINK_USER: &str = "__cookie__";

/// A running page.
#[derive(Debug)]
pub(crate) struct Page {
    server: Server,
    _recorder: Recorder,
    _folders: Folders,
}

/// Why the page cannot be started. The node goes on without it.
#[derive(Debug)]
enum PageError {
    Bind(BadAddress),
    Tls(crate::electrum::ElectrumError),
    Start(StartError),
    Threads(io::Error),
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageError::Bind(error) => write!(f, "-pagebind: {error}"),
            PageError::Tls(error) => error.fmt(f),
            PageError::Start(error) => error.fmt(f),
            PageError::Threads(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

/// Starts the page. If it cannot start, the log says why, and the node goes on.
pub(crate) fn start(
    session: &Session<'_>,
    serving: &Serving,
    sight: Sight,
    events: &Arc<EventCounts>,
    style: Style,
) -> Option<(Page, Arc<PageNode>)> {
    if !session.settings.page.is_on {
        return None;
    }
    match try_start(session, serving, sight, events) {
        Ok((page, node)) => {
            announce(session, &page.server, style);
            Some((page, node))
        }
        Err(error) => {
            let port = session.settings.page.port;
            let advice = "-pageport selects another port, -page=0 switches the page off";
            session.log.warning(format!("The page is not served (port {port}): {error}; {advice}"));
            None
        }
    }
}

fn try_start(
    session: &Session<'_>,
    serving: &Serving,
    sight: Sight,
    events: &Arc<EventCounts>,
) -> Result<(Page, Arc<PageNode>), PageError> {
    let settings = &session.settings.page;
    let addresses = bind_addresses(&settings.bind, settings.port).map_err(PageError::Bind)?;
    let (local, beyond): (Vec<SocketAddr>, Vec<SocketAddr>) =
        addresses.into_iter().partition(|address| address.ip().to_canonical().is_loopback());
    let tls = if beyond.is_empty() { None } else { Some((beyond, identity(session)?)) };
    let node = Arc::new(PageNode::new(session, serving, sight, events));
    let host = Arc::new(PageHost::new(&session.log));
    let ports = Ports {
        calls: Arc::new(PageCalls::new(serving, &node)),
        topics: Arc::new(NodeTopics::new(Arc::clone(&node))),
        metrics: Arc::new(Exported(Arc::clone(&node))),
        past: Arc::<PageNode>::clone(&node),
        host,
        login: serving.login(),
        disk: Arc::clone(&session.disk),
        log: ToLog::new("Page", &session.log),
    };
    let settings = Settings {
        addresses: local,
        allowed: if tls.is_some() { everyone() } else { Vec::new() },
        tls,
        hosts: settings.hosts.clone(),
        has_actions: settings.has_actions,
        is_open: settings.is_open,
        port: settings.port,
        chain: session.settings.params.chain.name(),
        directory: session.settings.datadir.join(PAGE_DIR),
    };
    let server = Server::start(settings, ports).map_err(PageError::Start)?;
    let recorder = Recorder::start(&node).map_err(PageError::Threads)?;
    let folders = Folders::start(&node).map_err(PageError::Threads)?;
    Ok((Page { server, _recorder: recorder, _folders: folders }, node))
}

/// The certificate of addresses beyond this machine.
fn identity(session: &Session<'_>) -> Result<TlsIdentity, PageError> {
    let settings = &session.settings.page;
    let given = settings.certificate.clone().zip(settings.key.clone());
    let directory = session.settings.datadir.join(PAGE_DIR);
    let identity = identity_in(given, &directory, session.disk.as_ref()).map_err(PageError::Tls)?;
    session.log.info(format!("Page: the SHA-256 of the TLS certificate is {}", identity.fingerprint()));
    Ok(identity)
}

/// Says where the page is. The link itself is a secret: it goes to a terminal, never to the log.
fn announce(session: &Session<'_>, server: &Server, style: Style) {
    let addresses = server.addresses();
    let Some(address) = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first()) else { return };
    let scheme = if address.ip().to_canonical().is_loopback() { "http" } else { "https" };
    session.log.info(format!("Page: {scheme}://{address}; \"lydian page\" prints a link that logs in"));
    if style != Style::Terminal {
        return;
    }
    if let Some(link) = server.first_link(LINK_USER) {
        // If stderr is closed, there is nowhere to print it.
        let _ =
            writeln!(io::stderr().lock(), "The page of this node: {scheme}://{address}/#link={link} (logs in once)");
    }
}
