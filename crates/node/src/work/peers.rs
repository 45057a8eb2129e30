//! Runs the node with its peers until it is asked to stop: first while the blocks on disk are loaded in the background,
//! then permanently. Input: a node whose engine is open. Output: an exit code. Logs once what catching up with the
//! peers has cost.

use super::alerts::Alerts;
use super::failure::Failure;
use super::load::{self, Loaded};
use super::watcher::Watcher;
use super::{Node, Task, finish, init_message, mempool, words};
use crate::answers::Answers;
use crate::clock::Stopwatch;
use crate::daemon;
use crate::display::{Doing, Figures};
use crate::exit;
use crate::feed::Feed;
use crate::net::{self, LOOK};
use crate::page::PageNode;
use crate::run::Session;
use crate::serve::Serving;
use crate::signals::Stop;
use crate::{electrum, esplora, feed, pruned};
use lydian_engine::Engine;
use lydian_mempool::Mempool;
use lydian_net::{Network, ValidationEnd};
use lydian_query::PrunedBlocks;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A node this many blocks behind its peers is catching up; fewer blocks arrive one by one.
const CATCHING_UP_BLOCKS: u32 = 12;

/// Serves peers and RPC, loads the blocks on disk, and follows the peers until the node is asked to stop.
pub(super) fn stay(node: Node<'_>, server: Option<Serving>, is_loss: bool) -> Result<u8, Failure> {
    let (session, engine, watcher) = (node.session, Arc::clone(&node.engine), Arc::clone(&node.watcher));
    // Core's `ImportingNow`: until it is over, nothing is downloaded from peers.
    session.initial_download.set_loading(true);
    let (network, wallets) = begin(&node, server.as_ref())?;
    let mut alerts = Alerts::new(session);
    let loaded = load_behind(&node, is_loss, &mut alerts)?;
    session.initial_download.set_loading(false);
    watcher.update_ibd_status(&engine.tip_update());
    if load::ends_by_itself(&node) {
        session.announce_shutdown();
        node.page.iter().for_each(|page| page.metrics.end());
        drop((wallets, network, server));
        // RPC and peers may have added blocks since the checkpoint at the end of loading.
        engine.checkpoint(watcher.as_ref())?;
        return Ok(loaded.code());
    }
    let file = node.mempool.as_ref().map(|mempool| mempool::File::load(session, mempool)).transpose()?;
    let (mempool, page) = (node.mempool.clone(), node.page.clone());
    let synced = sync(node, network, &mut alerts);
    if let Some(mempool) = mempool {
        match &synced {
            // No peer's block moves the chain any more: calls that wait for the end of a reorganisation go on.
            Ok(_) => mempool.set_chain_final(),
            // The next block may never reach the mempool.
            Err(_) => mempool.end(),
        }
    }
    // No block may arrive while the last checkpoint is made.
    page.iter().for_each(|page| page.metrics.end());
    drop((wallets, server));
    if let Some(file) = file {
        file.save();
    }
    let figures = synced?;
    engine.checkpoint(watcher.as_ref())?;
    watcher.ends(&engine, &figures);
    Ok(exit::DONE)
}

/// The servers for wallets and front ends, and what works for the page. They answer until this is dropped.
#[derive(Debug, Default)]
struct Wallets {
    _electrum: Option<electrum::Serving>,
    _esplora: Option<lydian_esplora::Server>,
    _feed: Option<Feed>,
    pruned: Option<PrunedBlocks>,
    page: Option<Arc<PageNode>>,
}

impl Drop for Wallets {
    fn drop(&mut self) {
        // The servers end once their answers are made, which may wait for peers.
        if let Some(pruned) = &self.pruned {
            pruned.end();
        }
        if let Some(page) = &self.page {
            page.ends();
        }
    }
}

/// Starts the servers for wallets and front ends that the settings ask for, and the explorer of the page.
fn serve_wallets(
    node: &Node<'_>,
    mempool: &Arc<Mempool>,
    server: &Serving,
    network: &Network,
) -> Result<Wallets, Failure> {
    let session = node.session;
    let (has_electrum, has_esplora) = (session.settings.electrum.is_on, session.settings.esplora.is_on);
    let has_feed = session.settings.feed.is_on();
    if !has_electrum && !has_esplora && !has_feed && node.page.is_none() {
        return Ok(Wallets::default());
    }
    let pruned = pruned::from_peers(network.handle());
    let answers = Answers::new(&node.engine, mempool, node.scripts.clone(), server.context(), pruned.clone());
    let electrum =
        has_electrum.then(|| electrum::start_in_node(session, &answers)).transpose().map_err(Failure::Electrum)?;
    let esplora = || esplora::start(&session.parts(), answers.source("esplora"));
    let esplora = has_esplora.then(esplora).transpose().map_err(Failure::Esplora)?;
    let feed = has_feed.then(|| feed::start(session, &answers, &node.engine, mempool)).transpose();
    let feed = feed.map_err(Failure::Feed)?;
    let page = node.page.clone();
    if let Some(page) = &page {
        feed.iter().for_each(|server| page.metrics.has_feed(server.counts()));
        electrum.iter().for_each(|serving| page.metrics.has_electrum(serving.operator().clone()));
        esplora.iter().for_each(|server| page.metrics.has_esplora(server.counts()));
        page.serves(&answers, mempool, &node.engine)?;
    }
    Ok(Wallets { _electrum: electrum, _esplora: esplora, _feed: feed, pruned: Some(pruned), page })
}

/// Starts the network and lets RPC and the servers for wallets answer: Core's steps 12 and 13.
fn begin(node: &Node<'_>, server: Option<&Serving>) -> Result<(Network, Wallets), Failure> {
    let session = node.session;
    words::before_network(session, &node.engine);
    init_message(session, server, "Starting network threads…");
    let Some(mempool) = &node.mempool else { unreachable!("a node with peers has a mempool") };
    let network = net::start(session, &node.engine, mempool, node.filters.clone(), Arc::clone(&node.observer))
        .map_err(Failure::Network)?;
    node.watcher.has_senders(&network);
    node.page.iter().for_each(|page| page.metrics.has_network(&network));
    if let Some(server) = server {
        server.has_peers(&network);
    }
    let wallets = server.map(|server| serve_wallets(node, mempool, server, &network)).transpose()?.unwrap_or_default();
    // Last, as in Core: a program whose call is answered may use all other servers.
    server.iter().try_for_each(|server| server.begins(&node.engine))?;
    init_message(session, server, "Done loading");
    session.notifier.start(&session.settings.startupnotify, "");
    daemon::ready();
    Ok((network, wallets))
}

/// Loads the blocks on disk in a thread, Core's `initload`.
fn load_behind(node: &Node<'_>, is_loss: bool, alerts: &mut Alerts) -> Result<Loaded, Failure> {
    let stop = &node.session.stop;
    let is_over = AtomicBool::new(false);
    let has_ended = || is_over.load(Ordering::Acquire);
    thread::scope(|scope| {
        let load = || {
            let _wakes = Wakes { is_over: &is_over, stop };
            load::load(node, &Task::Run, is_loss)
        };
        let loading = thread::Builder::new().name("initload".to_owned()).spawn_scoped(scope, load)?;
        while !has_ended() && !stop.is_asked() {
            node.watcher.aims_at(node.engine.best_header_height());
            alerts.look(&node.engine, &node.watcher);
            stop.wait(LOOK, has_ended);
        }
        if node.session.stop.is_asked() {
            node.session.announce_shutdown();
        }
        loading.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Wakes the thread that waits for the end of loading, however it ends.
struct Wakes<'a> {
    is_over: &'a AtomicBool,
    stop: &'a Stop,
}

impl Drop for Wakes<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.stop.wake();
    }
}

/// Follows the chain of the peers.
fn sync(node: Node<'_>, network: Network, alerts: &mut Alerts) -> Result<Figures, Failure> {
    let Node { session, engine, watcher, style, display, .. } = node;
    let began = Began { figures: figures(session, &engine, None), watch: Stopwatch::start() };
    if session.settings.net.is_wanted() {
        display.show(Doing::Syncing(engine.shared_meter(), look(&watcher, &network)));
    } else {
        display.wait(engine.shared_meter(), look(&watcher, &network));
        finish::report_waiting(session, style);
    }
    let (mut is_behind, mut is_shown) = (false, false);
    let end = net::wait(session, &engine, &network, &mut || {
        watcher.aims_at(engine.best_header_height());
        alerts.look(&engine, &watcher);
        let figures = network.figures().get();
        alerts.look_at_clock(&figures);
        let sync = watcher.look(figures);
        is_behind |= sync.blocks_left() >= CATCHING_UP_BLOCKS;
        if is_behind && !is_shown && sync.is_in_step() {
            is_shown = true;
            display.around(|| finish::report_sync(session, &engine, &began.since(session, &engine), style));
        }
    });
    session.announce_shutdown();
    drop((network, display));
    let figures = began.since(session, &engine);
    if is_behind && !is_shown {
        finish::report_sync(session, &engine, &figures, style);
    }
    match end {
        Some(ValidationEnd::Failed(error)) => Err(error.into()),
        Some(ValidationEnd::Stopped) | None => Ok(figures),
    }
}

/// Returns a function that reports the current state of the sync.
fn look(watcher: &Arc<Watcher>, network: &Network) -> crate::display::Look {
    let (watcher, figures) = (Arc::clone(watcher), Arc::clone(network.figures()));
    Arc::new(move || watcher.look(figures.get()))
}

/// The figures and the time when the sync began.
#[derive(Debug)]
struct Began {
    figures: Figures,
    watch: Stopwatch,
}

impl Began {
    fn since(&self, session: &Session<'_>, engine: &Engine) -> Figures {
        figures(session, engine, Some(&self.watch)).since(&self.figures)
    }
}

fn figures(session: &Session<'_>, engine: &Engine, watch: Option<&Stopwatch>) -> Figures {
    let (wall_seconds, cpu_seconds) = watch.map_or((0.0, 0.0), |watch| {
        let seconds = watch.seconds();
        (seconds.wall_seconds, seconds.cpu_seconds.unwrap_or_default())
    });
    Figures::new(&engine.progress(), session.settings.threads, wall_seconds, cpu_seconds)
}
