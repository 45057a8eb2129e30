//! The notifiers and their thread: Core's `CZMQNotificationInterface`.
//!
//! Input: notifiers (a topic and an address each), what happened ([`crate::queue`]). Output: messages on the sockets.
//! Notifiers with the same address share a socket; as in Core, its high-water mark is that of the first. For one event
//! the notifiers act in the order of their topics' names, then of the options.
//!
//! Invariants: each notifier numbers its messages from 0 without a gap, whether or not a subscriber gets them. The
//! thread waits for nothing but events; at its end, what is released is still published, and subscribers have
//! [`LINGER`] to receive it.

use crate::endpoint::{BindError, Listener, bind};
use crate::feed::Feed;
use crate::log::Log;
use crate::queue::{BlockItem, Item, Queue};
use crate::shared::Shared;
use crate::socket::PubSocket;
use crate::topic::Topic;
use crate::zmtp;
use lydian_disk::Disk;
use lydian_engine::InitialDownload;
use lydian_primitives::Txid;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::runtime;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

/// Core's `DEFAULT_ZMQ_SNDHWM`: messages that wait for one subscriber; further ones are dropped.
pub const HIGH_WATER_MARK_DEFAULT: i32 = 1000;

/// The longest time that the end of the node waits for subscribers to receive the last messages.
const LINGER: Duration = Duration::from_millis(100);

/// The most messages that are published before subscribers get their turn. It is half of the lowest high-water mark if
/// that is less, so that only a subscriber that does not read loses messages of a burst.
const MESSAGES_IN_A_ROW: usize = 64;

/// One notifier, as an option names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notifier {
    pub topic: Topic,
    /// `tcp://...` or `ipc://...`.
    pub address: String,
    /// Messages that may wait for one subscriber; 0 means no limit but that of the bytes.
    pub high_water_mark: i32,
}

/// Why notifications cannot be published.
#[derive(Debug)]
pub enum StartError {
    /// The address of a notifier cannot be used.
    Bind {
        notifier: Notifier,
        error: BindError,
    },
    /// The high-water mark is negative.
    HighWaterMark {
        notifier: Notifier,
    },
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Bind { notifier: Notifier { topic, address, .. }, error } => {
                write!(f, "Unable to bind to {address} for -zmq{}: {error}", topic.notifier())
            }
            StartError::HighWaterMark { notifier: Notifier { topic, high_water_mark, .. } } => {
                write!(f, "-zmq{}hwm={high_water_mark} is negative", topic.notifier())
            }
            StartError::Thread(error) => write!(f, "the thread of ZMQ cannot be started: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Publishes until it is dropped.
pub struct Publisher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}

impl Publisher {
    /// Binds the addresses and starts the thread. The notifiers are sorted as Core does.
    pub fn start(
        mut notifiers: Vec<Notifier>,
        initial_download: Arc<InitialDownload>,
        disk: &Arc<dyn Disk>,
        log: Arc<dyn Log>,
    ) -> Result<Publisher, StartError> {
        log.debug("Initialize notification interface");
        notifiers.sort_by_key(|notifier| notifier.topic);
        let (active, sockets) = open(&notifiers, disk, &log)?;
        let topics = notifiers.iter().map(|notifier| notifier.topic).collect();
        let (queue, tip_rule) = (Queue::default(), Mutex::default());
        let shared = Arc::new(Shared { queue, initial_download, tip_rule, topics, log });
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
        let its = Arc::clone(&shared);
        let work = move || runtime.block_on(work(&its, active, sockets));
        let thread = Builder::new().name("zmq".to_owned()).spawn(work).map_err(StartError::Thread)?;
        Ok(Publisher { shared, thread: Some(thread) })
    }

    pub fn feed(&self) -> Feed {
        Feed(Arc::clone(&self.shared))
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.shared.log.debug("Shutdown notification interface");
        self.shared.queue.end();
        if let Some(thread) = self.thread.take() {
            // Its panic was reported on stderr; the node is ending.
            let _ = thread.join();
        }
    }
}

/// A notifier with its socket.
#[derive(Debug)]
struct Active {
    topic: Topic,
    socket: Arc<PubSocket>,
    /// The number of the next message.
    number: u32,
}

/// The sockets of different addresses, each with its listener.
type Sockets = Vec<(Arc<PubSocket>, Listener)>;

fn open(
    notifiers: &[Notifier],
    disk: &Arc<dyn Disk>,
    log: &Arc<dyn Log>,
) -> Result<(Vec<Active>, Sockets), StartError> {
    let (mut active, mut sockets) = (Vec::new(), Sockets::new());
    for notifier in notifiers {
        let Notifier { topic, address, high_water_mark } = notifier;
        let (topic, name) = (*topic, topic.notifier());
        let known =
            sockets.iter().find(|(socket, _)| socket.address() == address).map(|(socket, _)| Arc::clone(socket));
        let mark =
            || log.debug(&format!("Outbound message high water mark for {name} at {address} is {high_water_mark}"));
        let messages =
            usize::try_from(*high_water_mark).map_err(|_| StartError::HighWaterMark { notifier: notifier.clone() })?;
        let socket = match known {
            Some(socket) => {
                log.debug(&format!("Reusing socket for address {address}"));
                mark();
                socket
            }
            None => {
                mark();
                let listener =
                    bind(address, disk).map_err(|error| StartError::Bind { notifier: notifier.clone(), error })?;
                let socket = PubSocket::new(address.clone(), messages, Arc::clone(log));
                sockets.push((Arc::clone(&socket), listener));
                socket
            }
        };
        log.debug(&format!("Notifier {name} ready (address = {address})"));
        active.push(Active { topic, socket, number: 0 });
    }
    Ok((active, sockets))
}

/// However the thread ends, neither validation nor the mempool waits for it.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.queue.end();
    }
}

/// The thread.
async fn work(shared: &Shared, active: Vec<Active>, sockets: Sockets) {
    let _ending = Ending(shared);
    let all: Vec<Arc<PubSocket>> = sockets.iter().map(|(socket, _)| Arc::clone(socket)).collect();
    for (socket, listener) in sockets {
        tokio::spawn(async move {
            let (address, log) = (socket.address().to_owned(), socket.log());
            if let Err(error) = socket.accept_all(listener).await {
                log.debug(&format!("{address} accepts no subscribers: {error}"));
            }
        });
    }
    let marks = all.iter().map(|socket| socket.high_water_mark()).filter(|mark| *mark > 0);
    let in_a_row = marks.map(|mark| (mark / 2).max(1)).min().unwrap_or(MESSAGES_IN_A_ROW).min(MESSAGES_IN_A_ROW);
    let mut publishing = Publishing { active, in_a_row, since_yield: 0, log: Arc::clone(&shared.log) };
    while let Some(item) = shared.queue.next().await {
        publishing.item(&item).await;
    }
    let is_written = async {
        while !all.iter().all(|socket| socket.is_idle()) {
            sleep(Duration::from_millis(1)).await;
        }
    };
    // Subscribers that do not read lose what they have not read.
    let _ = timeout(LINGER, is_written).await;
}

/// Makes messages of items.
struct Publishing {
    active: Vec<Active>,
    /// After this many messages, the tasks of the subscribers have their turn.
    in_a_row: usize,
    since_yield: usize,
    log: Arc<dyn Log>,
}

impl Publishing {
    async fn item(&mut self, item: &Item) {
        match item {
            Item::Block(block) => self.block(block).await,
            Item::Added { txid, bytes, mempool_sequence } => {
                for index in 0..self.active.len() {
                    self.transaction(index, *txid, bytes).await;
                    let words = "hashtx mempool acceptance";
                    self.sequence(index, words, &txid.0, b'A', Some(*mempool_sequence)).await;
                }
            }
            Item::Removed { txid, mempool_sequence } => {
                for index in 0..self.active.len() {
                    self.sequence(index, "hashtx mempool removal", &txid.0, b'R', Some(*mempool_sequence)).await;
                }
            }
        }
    }

    async fn block(&mut self, block: &BlockItem) {
        for (txid, place) in &block.txs {
            let bytes = block.bytes.get(place.clone()).unwrap_or_default();
            for index in 0..self.active.len() {
                self.transaction(index, *txid, bytes).await;
            }
        }
        let (label, words) = match block.is_connected {
            true => (b'C', "sequence block connect"),
            false => (b'D', "sequence block disconnect"),
        };
        for index in 0..self.active.len() {
            self.sequence(index, words, &block.hash.0, label, None).await;
        }
        if !block.is_tip {
            return;
        }
        for index in 0..self.active.len() {
            match self.active[index].topic {
                Topic::HashBlock => self.send(index, "hashblock", &block.hash.0, &reversed(&block.hash.0)).await,
                Topic::RawBlock => self.send(index, "rawblock", &block.hash.0, &block.bytes).await,
                _ => {}
            }
        }
    }

    async fn transaction(&mut self, index: usize, txid: Txid, bytes: &[u8]) {
        match self.active[index].topic {
            Topic::HashTx => self.send(index, "hashtx", &txid.0, &reversed(&txid.0)).await,
            Topic::RawTx => self.send(index, "rawtx", &txid.0, bytes).await,
            _ => {}
        }
    }

    /// The hash, a label, and for the mempool its sequence number.
    async fn sequence(&mut self, index: usize, words: &str, hash: &[u8; 32], label: u8, sequence: Option<u64>) {
        if self.active[index].topic == Topic::Sequence {
            let mut body = reversed(hash).to_vec();
            body.push(label);
            body.extend(sequence.into_iter().flat_map(u64::to_le_bytes));
            self.send(index, words, hash, &body).await;
        }
    }

    /// Publishes one message of a notifier, with its number.
    async fn send(&mut self, index: usize, words: &str, hash: &[u8; 32], body: &[u8]) {
        let Active { topic, socket, number } = &mut self.active[index];
        if self.log.is_on() {
            self.log.debug(&format!("Publish {words} {} to {}", Txid(*hash), socket.address()));
        }
        if socket.is_wanted(*topic) {
            socket.publish(*topic, &zmtp::message(*topic, body, *number));
        }
        *number = number.wrapping_add(1);
        self.since_yield += 1;
        if self.since_yield >= self.in_a_row {
            self.since_yield = 0;
            yield_now().await;
        }
    }
}

/// A hash as it is displayed, and as Core sends it.
fn reversed(hash: &[u8; 32]) -> [u8; 32] {
    let mut bytes = *hash;
    bytes.reverse();
    bytes
}
