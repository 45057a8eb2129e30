//! One connection: two transports, and between them a wire with a rate, a latency and splits chosen by the seed.
//!
//! Input: messages of both sides, the time. Output: what arrives when, as [`Step`]s that the world adds to its queue.
//! The node's side behaves like `lydian_net` with a socket: it does not read while too much waits to be sent.
//! Invariant: nothing is lost, duplicated or reordered. Must never: depend on the meaning of a message.

use lydian_chains::rng::Random;
use lydian_engine::Engine;
use lydian_p2p::limits::PEER_SHARE_MIN;
use lydian_p2p::manager::PeerId;
use lydian_p2p::memory::Charge;
use lydian_p2p::{MemoryPlan, PeerMemory};
use lydian_primitives::BlockHash;
use lydian_wire::transport::{FRAME_SIZE_MIN, Received, Transport, V2Secrets};
use lydian_wire::{BlockTransactions, BlockTransactionsRequest, Command, CompactBlock, Message};
use std::collections::VecDeque;
use std::time::Duration;

/// Size of the send queue above which the node does not read from the peer.
pub const SEND_BUFFER_BYTES: usize = lydian_net::limits::SEND_BUFFER_BYTES;

/// Bytes in flight to the node above which the peer's system accepts no more.
const WIRE_WINDOW: usize = 256 << 10;

/// Maximum number of bytes sent at once.
const CHUNK_MAX: u64 = 64 << 10;

/// How many bytes of a long message must have arrived, and how much time must have passed, before the node reports
/// progress to its manager; as in `lydian_net`.
const PROGRESS_BYTES: usize = 4 << 10;
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// The memory of all peers: so little that hostile peers can fill it, with room for the largest messages of two peers.
pub const MEMORY: MemoryPlan = MemoryPlan {
    total: 0,
    connections_max: 400,
    share: PEER_SHARE_MIN,
    rooms: 6,
    common: 12_000_000,
    receive_common: 8_000_000,
};

/// Bytes that a queued message takes in addition to its payload, as in `lydian_net`.
pub const MESSAGE_BYTES: usize = 128;

/// Bytes that are processed at a time while memory is short, as in the node.
const SHORT_READ_BYTES: usize = 4 << 10;

/// An item in the node's send queue.
#[derive(Debug)]
pub enum Outgoing {
    Message(Message),
    Block { hash: BlockHash, with_witness: bool },
    Compact { hash: BlockHash, nonce: u64 },
    Transactions(BlockTransactionsRequest),
}

/// An event for the world's queue.
#[derive(Debug)]
pub enum Step {
    ToNode(Vec<u8>),
    ToPeer(Vec<u8>),
    NodeMaySend,
    PeerMaySend,
}

/// The properties of a wire.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Bytes per second, in each direction.
    pub rate: u64,
    /// One-way latency.
    pub latency: Duration,
    /// Split into small pieces, so that hardly any message arrives in one piece.
    pub is_shredded: bool,
    /// Both sides use v2.
    pub is_v2: bool,
}

/// A connection.
#[derive(Debug)]
pub struct Link {
    pub id: PeerId,
    /// The index of the actor at the other end.
    pub actor: usize,
    wire: Wire,
    pub node: Transport,
    pub peer: Transport,
    /// The node's messages that are not framed yet, and their size as far as it is known.
    outbox: VecDeque<Outgoing>,
    outbox_bytes: usize,
    /// The node's bytes that the wire has not taken yet.
    node_output: VecDeque<u8>,
    peer_output: VecDeque<u8>,
    is_node_sending: bool,
    is_peer_sending: bool,
    /// Bytes that have arrived and the node has not read.
    unread: VecDeque<Vec<u8>>,
    unread_bytes: usize,
    on_way_to_node: usize,
    /// The error for received bytes that are not a message.
    error: Option<String>,
    /// The peer has stopped reading.
    pub is_deaf: bool,
    /// The node ends the connection once everything is sent.
    pub farewell: Option<String>,
    /// Bytes of the incomplete message that were reported to the manager, and the time of the last report.
    progress: (usize, Duration),
    pub memory: PeerMemory,
    receiving: Charge,
    sending: Charge,
    /// Whether it waits for memory, to be read from or to be sent a block.
    pub is_short: bool,
    /// Requests for transactions that a block does not have.
    pub bad_requests: usize,
}

/// The peer's side of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Index of the actor.
    pub actor: usize,
    pub is_inbound: bool,
    /// The peer does not understand v2, and ends a connection that starts with it.
    pub knows_v1_only: bool,
}

impl Link {
    pub fn new(
        id: PeerId,
        side: Side,
        wire: Wire,
        memory: PeerMemory,
        (magic, random): ([u8; 4], &mut Random),
    ) -> Link {
        let mut secrets = || V2Secrets::generate(|bytes| random.fill(bytes));
        let (node, peer) = match (wire.is_v2, side.is_inbound) {
            (true, false) if side.knows_v1_only => (Transport::v2_initiator(magic, secrets()), Transport::v1(magic)),
            // The node listens for both.
            (false, true) => (Transport::v2_responder(magic, secrets()), Transport::v1(magic)),
            (false, false) => (Transport::v1(magic), Transport::v1(magic)),
            (true, true) => (Transport::v2_responder(magic, secrets()), Transport::v2_initiator(magic, secrets())),
            (true, false) => (Transport::v2_initiator(magic, secrets()), Transport::v2_responder(magic, secrets())),
        };
        Link {
            id,
            actor: side.actor,
            wire,
            node,
            peer,
            outbox: VecDeque::new(),
            outbox_bytes: 0,
            node_output: VecDeque::new(),
            peer_output: VecDeque::new(),
            is_node_sending: false,
            is_peer_sending: false,
            unread: VecDeque::new(),
            unread_bytes: 0,
            on_way_to_node: 0,
            error: None,
            is_deaf: false,
            farewell: None,
            progress: (0, Duration::ZERO),
            receiving: memory.charge_received(0),
            sending: memory.charge_to_send(0),
            memory,
            is_short: false,
            bad_requests: 0,
        }
    }

    /// Queues an item for the manager.
    pub fn push(&mut self, item: Outgoing) {
        self.outbox_bytes += size(&item);
        self.outbox.push_back(item);
    }

    /// Returns the bytes of memory that the node holds for this connection.
    pub fn held_bytes(&self) -> usize {
        self.outbox_bytes
            + self.node_output.len()
            + self.node.output_size()
            + self.node.buffered_size()
            + self.node.message_bytes()
    }

    /// Charges the memory that is held now.
    pub fn count_memory(&mut self) {
        let messages = self.node.message_bytes() + self.node.message_count() * MESSAGE_BYTES;
        self.receiving.set(self.node.buffered_size() + messages);
        self.sending.set(self.outbox_bytes + self.node_output.len() + self.node.output_size());
    }

    /// Whether so much waits to be sent that the node must not read.
    fn is_full(&self) -> bool {
        self.outbox_bytes + self.node_output.len() >= SEND_BUFFER_BYTES
    }

    /// Frames queued items and passes to the wire what it takes.
    pub fn pump_node(&mut self, engine: &Engine, random: &mut Random, later: &mut Vec<(Duration, Step)>) {
        while self.node_output.len() < SEND_BUFFER_BYTES {
            let Some(item) = self.outbox.pop_front() else { break };
            if block_of(&item).is_some_and(|hash| !self.has_room_for(engine, &hash)) {
                self.outbox.push_front(item);
                self.is_short = true;
                break;
            }
            self.outbox_bytes -= size(&item);
            match item {
                Outgoing::Message(message) => self.node.send_message(&message),
                Outgoing::Block { hash, with_witness } => match read_block(engine, &hash, with_witness) {
                    Some(bytes) => self.node.send(Command::BLOCK, &bytes),
                    None => self.farewell = Some("cannot load block from disk".to_owned()),
                },
                Outgoing::Compact { hash, nonce } => match read_compact(engine, &hash, nonce) {
                    Some(compact) => self.node.send_message(&Message::CmpctBlock(Box::new(compact))),
                    None => self.farewell = Some("cannot load block from disk".to_owned()),
                },
                Outgoing::Transactions(request) => match read_transactions(engine, &request) {
                    Some(Some(answer)) => self.node.send_message(&Message::BlockTxn(answer)),
                    Some(None) => self.bad_requests += 1,
                    None => self.farewell = Some("cannot load block from disk".to_owned()),
                },
            }
            self.node_output.extend(self.node.take_output());
            self.count_memory();
        }
        self.node_output.extend(self.node.take_output());
        self.count_memory();
        if self.is_node_sending || self.node_output.is_empty() || self.is_deaf {
            return;
        }
        let (bytes, time) = self.wire.cut(&mut self.node_output, random);
        self.is_node_sending = true;
        later.push((time, Step::NodeMaySend));
        later.push((time + self.wire.latency, Step::ToPeer(bytes)));
    }

    fn has_room_for(&self, engine: &Engine, hash: &BlockHash) -> bool {
        let size = engine.header_info(hash).and_then(|info| info.node.block).map_or(0, |block| block.size);
        self.memory.charge_block(usize::try_from(size).unwrap()).is_some()
    }

    pub fn pump_peer(&mut self, random: &mut Random, later: &mut Vec<(Duration, Step)>) {
        self.peer_output.extend(self.peer.take_output());
        let has_room = self.on_way_to_node + self.unread_bytes < WIRE_WINDOW;
        if self.is_peer_sending || self.peer_output.is_empty() || !has_room {
            return;
        }
        let (bytes, time) = self.wire.cut(&mut self.peer_output, random);
        self.is_peer_sending = true;
        self.on_way_to_node += bytes.len();
        later.push((time, Step::PeerMaySend));
        later.push((time + self.wire.latency, Step::ToNode(bytes)));
    }

    pub fn node_may_send(&mut self) {
        self.is_node_sending = false;
    }

    pub fn peer_may_send(&mut self) {
        self.is_peer_sending = false;
    }

    /// Called when bytes have arrived at the node's socket.
    pub fn arrived(&mut self, bytes: Vec<u8>) {
        self.on_way_to_node -= bytes.len();
        self.unread_bytes += bytes.len();
        self.unread.push_back(bytes);
    }

    /// Returns the next message for the manager, if the node would read one now. An error ends the connection.
    pub fn read(&mut self) -> Result<Option<Received>, String> {
        loop {
            if self.is_full() || self.farewell.is_some() {
                return Ok(None);
            }
            if self.node.message_count() > 0 && self.memory.reserve_answer(self.sending.bytes()).is_none() {
                self.is_short = true;
                return Ok(None);
            }
            if let Some(message) = self.node.next_message() {
                return Ok(Some(message));
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            let Some(mut bytes) = self.unread.pop_front() else { return Ok(None) };
            let mut fits = |count: &usize| {
                let growth = self.node.growth(*count) + count / FRAME_SIZE_MIN * MESSAGE_BYTES;
                self.receiving.try_receive(growth)
            };
            let Some(count) = [bytes.len(), bytes.len().min(SHORT_READ_BYTES)].into_iter().find(&mut fits) else {
                self.unread.push_front(bytes);
                self.is_short = true;
                return Ok(None);
            };
            if count < bytes.len() {
                self.unread.push_front(bytes.split_off(count));
            }
            self.unread_bytes -= bytes.len();
            let result = self.node.receive(&bytes);
            self.node_output.extend(self.node.take_output());
            self.count_memory();
            // Messages before an error count.
            self.error = result.err().map(|error| error.to_string());
        }
    }

    /// Returns how many more bytes of a long message have arrived, if a report is due.
    pub fn progress(&mut self, now: Duration) -> Option<u64> {
        let (buffered, (told, at)) = (self.node.buffered_size(), self.progress);
        let told = if buffered < told { 0 } else { told };
        self.progress.0 = told;
        if buffered - told < PROGRESS_BYTES || now.saturating_sub(at) < PROGRESS_INTERVAL {
            return None;
        }
        self.progress = (buffered, now);
        Some((buffered - told) as u64)
    }

    /// Queues raw bytes that bypass the peer's transport.
    pub fn push_raw(&mut self, bytes: &[u8]) {
        self.peer_output.extend(self.peer.take_output());
        self.peer_output.extend(bytes);
    }

    /// Returns how many bytes of the peer wait for the wire.
    pub fn peer_backlog(&self) -> usize {
        self.peer_output.len() + self.peer.output_size()
    }

    /// Whether the node has nothing left to send.
    pub fn is_node_done(&self) -> bool {
        self.outbox.is_empty() && self.node_output.is_empty() && !self.is_node_sending
    }

    pub fn latency(&self) -> Duration {
        self.wire.latency
    }
}

impl Wire {
    /// Returns the next piece, and how long it takes to send.
    fn cut(&self, output: &mut VecDeque<u8>, random: &mut Random) -> (Vec<u8>, Duration) {
        let most = if self.is_shredded { 1 + random.below(700) } else { CHUNK_MAX };
        let count = output.len().min(usize::try_from(most).unwrap());
        let bytes: Vec<u8> = output.drain(..count).collect();
        let nanos = bytes.len() as u64 * 1_000_000_000 / self.rate;
        (bytes, Duration::from_nanos(nanos))
    }
}

/// Returns the size of a queued item.
fn size(item: &Outgoing) -> usize {
    match item {
        Outgoing::Message(message) => 24 + message.payload().len(),
        // As the node packs them.
        Outgoing::Block { .. } | Outgoing::Compact { .. } => size_of::<BlockHash>() + 1,
        Outgoing::Transactions(request) => size_of::<Outgoing>() + 2 * request.indexes.len(),
    }
}

fn block_of(item: &Outgoing) -> Option<BlockHash> {
    match item {
        Outgoing::Message(_) => None,
        Outgoing::Block { hash, .. } | Outgoing::Compact { hash, .. } => Some(*hash),
        Outgoing::Transactions(request) => Some(request.block_hash),
    }
}

fn read_transactions(engine: &Engine, request: &BlockTransactionsRequest) -> Option<Option<BlockTransactions>> {
    let block = engine.block(&engine.header_info(&request.block_hash)?).ok().flatten()?;
    Some(BlockTransactions::new(&block, request))
}

fn read_block(engine: &Engine, hash: &BlockHash, with_witness: bool) -> Option<Vec<u8>> {
    let info = engine.header_info(hash)?;
    let raw = engine.raw_block(&info).ok().flatten()?;
    if with_witness { Some(raw.as_bytes().to_vec()) } else { raw.parse().ok().map(|block| block.stripped()) }
}

fn read_compact(engine: &Engine, hash: &BlockHash, nonce: u64) -> Option<CompactBlock> {
    let block = engine.block(&engine.header_info(hash)?).ok().flatten()?;
    Some(CompactBlock::new(&block, nonce))
}
