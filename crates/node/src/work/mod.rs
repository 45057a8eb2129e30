//! The work of the node between its start and its end: opens the engine, serves, imports files, validates, makes the
//! result durable. Input: a [`Session`] and a [`Task`]. Output: an exit code, lines in the log, the display. Contains
//! no validation logic: the engine decides.
//!
//! As in Core, a node serves peers and RPC before it validates what is on disk: that may take hours, and clients get
//! answers meanwhile.

mod advice;
mod alerts;
pub(crate) mod beside;
mod changes;
mod failure;
mod faults;
mod fees;
mod filters;
mod finish;
pub(crate) mod imported;
mod load;
mod mempool;
mod opening;
mod opinion;
mod peers;
mod shared_tasks;
mod shared_writer;
mod signatures;
pub(crate) mod space;
mod transactions;
mod verify_indexes;
mod watcher;
mod words;
mod zmq;

use crate::daemon;
use crate::display::{Display, Doing, Style};
use crate::exit;
use crate::page::{self, PageNode};
use crate::run::Session;
use crate::serve::Serving;
use crate::service;
pub(crate) use shared_tasks::SharedTask;
pub(crate) use shared_writer::Progress as SharedProgress;

use failure::Failure;
use lydian_engine::{Engine, Observer};
use lydian_index::{IndexKind, TXINDEX_NAME, TXOSPENDERINDEX_NAME, TxIndexReader};
use lydian_index_cassandra::Address;
use lydian_mempool::Mempool;
use lydian_p2p::filters::FilterSource;
use lydian_rpc::{Indexes, SpenderIndex, TransactionIndex};
use lydian_zmq::Publisher;
use opening::{Opened, Opening};
use shared_writer::SharedWriter;
use signatures::SignatureChoice;
use std::path::PathBuf;
use std::sync::Arc;
use watcher::Watcher;

/// The task of the process.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Validate the blocks on disk, and keep running.
    Run,
    /// Validate the block files of a directory, then exit.
    Import(PathBuf),
    /// Compute the hashes of the coins, then exit.
    UtxoHash,
    /// Compare the indexes with a rebuild, then exit.
    VerifyIndexes(Vec<IndexKind>),
    /// Write the index to a store, or compare both, then exit.
    Store(SharedTask, Address),
}

pub(crate) fn work(session: &Session<'_>, task: &Task, style: Style) -> u8 {
    if let Task::VerifyIndexes(kinds) = task {
        return verify_indexes::run(session, kinds, style);
    }
    if let Task::Store(task, address) = task {
        return shared_tasks::run(session, *task, address, style);
    }
    match go(session, task, style) {
        Ok(code) => code,
        Err(failure) => {
            session.log.error(&failure);
            daemon::complain(&failure.to_string());
            failure.code()
        }
    }
}

/// A node whose engine is open.
struct Node<'a> {
    session: &'a Session<'a>,
    engine: Arc<Engine>,
    /// `None` for tasks that end by themselves.
    mempool: Option<Arc<Mempool>>,
    /// The block filters that are served to peers: `-peerblockfilters`.
    filters: Option<Arc<dyn FilterSource>>,
    /// The tables that the Electrum server reads.
    scripts: Option<TxIndexReader>,
    /// What the page shows, if it is served.
    page: Option<Arc<PageNode>>,
    watcher: Arc<Watcher>,
    /// Receives the events of the engine and passes them on.
    observer: Arc<dyn Observer + Send>,
    style: Style,
    display: Display,
}

impl Node<'_> {
    fn show(&self, words: &str) {
        self.display.show(Doing::Something(words.to_owned()));
    }
}

// tidy: long function: the order in which the parts of a node start
fn go(session: &Session<'_>, task: &Task, style: Style) -> Result<u8, Failure> {
    let signatures = SignatureChoice::start(session)?;
    let watcher = Arc::new(Watcher::new(session));
    let display = start_display(session, &watcher, style)?;
    session.stop.set_open_ended(true);
    let (server, observer) = serve(session, task, &watcher)?;
    let page =
        server.as_ref().and_then(|server| page::start(session, server, display.sight(), watcher.events(), style));
    let (_page, shown) = page.unzip();
    watcher.records(shown.as_ref().map(|node| &node.blocks));
    // Dropped after the engine has made everything durable.
    let publisher = zmq::start(session, task)?;
    let feed = publisher.as_ref().map(Publisher::feed);
    watcher.feeds(feed.clone());
    let begins = |words: &str| init_message(session, server.as_ref(), words);
    let show = |words: String| display.show(Doing::Something(words));
    let (background, feed) = (Arc::clone(&observer), feed.as_ref());
    let opening = Opening { task, background, feed, signatures, begins: &begins, show: &show };
    let Opened { engine, mempool, passing_on, mut indexes, transactions, second_opinion, is_loss } =
        opening::open(session, opening)?;
    // Ends before the publisher does.
    let _passing_on = passing_on;
    let engine = Arc::new(engine);
    shown.iter().for_each(|node| node.has_engine(&engine));
    let _filler = shown.as_ref().map(|node| node.fill_blocks(&engine)).transpose()?;
    if let Some(reader) = &transactions {
        add_transactions(session, reader, &engine, &mut indexes);
    }
    let filters = indexes.filters.clone().filter(|_| session.settings.peerblockfilters);
    let filters = filters.map(|reader| filters::source(reader, &engine));
    if let Some(mempool) = &mempool {
        mempool::start(session, mempool, &engine)?;
        watcher.has_mempool(mempool);
        shown.iter().for_each(|node| node.has_mempool(mempool));
        if let Some(server) = &server {
            server.has_mempool(mempool, mempool::file(session));
        }
    }
    let _fees = mempool.as_ref().map(|mempool| fees::Keeper::start(session, mempool)).transpose()?;
    let _ends = mempool.clone().map(mempool::End);
    watcher.has_indexes(&indexes);
    if let Some(monitor) = second_opinion {
        shown.iter().for_each(|node| node.metrics.has_second_opinion(monitor.clone()));
        shown.iter().for_each(|node| node.has_second_opinion(monitor.clone()));
        watcher.has_second_opinion(monitor);
    }
    if let Some(server) = &server {
        server.has_indexes(indexes);
    }
    if matches!(task, Task::Run) && engine.is_reindexing() {
        session.initial_download.set_loading(true);
    }
    let shared = write_to_store(session, task, transactions.as_ref(), &engine)?;
    if let (Some(writer), Some(node)) = (&shared, &shown) {
        node.metrics.has_shared_index(writer.progress());
    }
    watcher.begins(&engine);
    let node = Node {
        session,
        engine,
        mempool,
        filters,
        scripts: transactions,
        page: shown,
        watcher,
        observer,
        style,
        display,
    };
    match task {
        Task::Run => peers::stay(node, server, is_loss),
        Task::Import(_) => Ok(load::load(&node, task, is_loss)?.code()),
        Task::UtxoHash => hash_coins(node),
        Task::VerifyIndexes(_) | Task::Store(..) => unreachable!("it needs no node"),
    }
}

/// Starts the display, whose thread also keeps the status file and reports to the service manager.
fn start_display(session: &Session<'_>, watcher: &Arc<Watcher>, style: Style) -> Result<Display, Failure> {
    let keeper = Arc::clone(watcher);
    let log = Arc::clone(&session.log);
    let to_log = Box::new(move |line: &str| log.info(line));
    let keep_status = move |sentence: &str| {
        keeper.keep_status();
        service::is_alive(sentence);
    };
    Ok(Display::start(style, session.settings.threads, to_log, keep_status)?)
}

/// `-txindex` and `-txospenderindex`, which are the tables of the address index.
fn add_transactions(session: &Session<'_>, reader: &TxIndexReader, engine: &Arc<Engine>, indexes: &mut Indexes) {
    let source = |name| transactions::source(reader, name, engine);
    let settings = session.settings;
    indexes.transactions = settings.txindex.then(|| source(TXINDEX_NAME) as Arc<dyn TransactionIndex>);
    indexes.spenders = settings.txospenderindex.then(|| source(TXOSPENDERINDEX_NAME) as Arc<dyn SpenderIndex>);
}

/// `-index`: ends before the engine and its indexes do.
fn write_to_store(
    session: &Session<'_>,
    task: &Task,
    reader: Option<&TxIndexReader>,
    engine: &Arc<Engine>,
) -> Result<Option<SharedWriter>, Failure> {
    let Some(address) = session.settings.shared_index.as_ref().filter(|_| matches!(task, Task::Run)) else {
        return Ok(None);
    };
    // An index that could not be opened is reported already.
    let Some(reader) = reader else { return Ok(None) };
    SharedWriter::start(session, address, reader, engine).map(Some)
}

/// `lydian utxohash`, without a node beside it.
fn hash_coins(node: Node<'_>) -> Result<u8, Failure> {
    load::reindex(&node)?;
    node.show("reading all coins");
    let hashes = node.engine.utxo_hashes()?;
    drop(node.display);
    finish::print_hashes(node.session.settings.json, &hashes);
    Ok(exit::DONE)
}

/// Starts the RPC server, if it is enabled. Returns it and the observer of everything that the engine does.
fn serve(
    session: &Session<'_>,
    task: &Task,
    watcher: &Arc<Watcher>,
) -> Result<(Option<Serving>, Arc<dyn Observer + Send>), Failure> {
    if !matches!(task, Task::Run) || !session.settings.rpc.is_on {
        return Ok((None, Arc::<Watcher>::clone(watcher)));
    }
    let server = Serving::start(session, Arc::<Watcher>::clone(watcher))?;
    let server_observer = server.observer();
    Ok((Some(server), server_observer))
}

/// Core's `InitMessage`: the next part of the start begins. Calls that arrive before the start is complete are answered
/// with this text.
fn init_message(session: &Session<'_>, server: Option<&Serving>, words: &str) {
    session.log.info(format!("init message: {words}"));
    if let Some(server) = server {
        server.set_warmup(words);
    }
}
