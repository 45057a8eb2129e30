//! One connection: two transports, and between them a wire with a rate, a latency and splits chosen by the seed.
//!
//! Input: messages of both sides, the time. Output: what arrives when, as [`Step`]s that the world adds to its queue.
//! The node's side is the shipped [`Channel`], with a wire in place of a socket: the node does not read while too much
//! waits to be sent.
//! Invariant: nothing is lost, duplicated or reordered. Must never: depend on the meaning of a message.

use lydian_chains::rng::Random;
use lydian_engine::Engine;
use lydian_net::limits::RECEIVE_BUFFER_BYTES;
use lydian_p2p::channel::{Channel, Handover};
use lydian_p2p::limits::PEER_SHARE_MIN;
use lydian_p2p::manager::PeerId;
use lydian_p2p::outgoing::{Outgoing, Ready, stored_size};
use lydian_p2p::{MemoryPlan, PeerMemory};
use lydian_primitives::BlockHash;
use lydian_wire::transport::{Transport, V2Secrets};
use std::collections::VecDeque;
use std::time::Duration;

/// Size of the send queue above which the node does not read from the peer.
pub const SEND_BUFFER_BYTES: usize = lydian_net::limits::SEND_BUFFER_BYTES;

/// Bytes in flight to the node above which the peer's system accepts no more.
const WIRE_WINDOW: usize = 256 << 10;

/// Maximum number of bytes sent at once.
const CHUNK_MAX: u64 = 64 << 10;

/// The memory of all peers: so little that hostile peers can fill it, with room for the largest messages of two peers.
pub const MEMORY: MemoryPlan = MemoryPlan {
    total: 0,
    connections_max: 400,
    share: PEER_SHARE_MIN,
    rooms: 6,
    common: 12_000_000,
    receive_common: 8_000_000,
};

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
    pub node: Channel,
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
            node: Channel::new(node, memory, RECEIVE_BUFFER_BYTES),
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
        let transport = self.node.transport();
        self.bytes_to_send() + transport.buffered_size() + transport.message_bytes()
    }

    /// Charges the memory that is held now.
    pub fn count_memory(&mut self) {
        self.node.count_memory(self.bytes_to_send());
    }

    fn bytes_to_send(&self) -> usize {
        self.outbox_bytes + self.node_output.len() + self.node.transport().output_size()
    }

    /// Whether so much waits to be sent that the node must not read.
    fn is_full(&self) -> bool {
        self.outbox_bytes + self.node_output.len() >= SEND_BUFFER_BYTES
    }

    /// Returns the bytes that wait to be sent; `None` if nothing should be added.
    pub fn queued_bytes(&self) -> Option<usize> {
        (!self.is_full()).then_some(self.outbox_bytes + self.node_output.len())
    }

    /// Frames queued items and passes to the wire what it takes.
    pub fn pump_node(&mut self, engine: &Engine, random: &mut Random, later: &mut Vec<(Duration, Step)>) {
        while self.node_output.len() < SEND_BUFFER_BYTES {
            let Some(item) = self.outbox.pop_front() else { break };
            if !self.node.may_send(item.block().map(|hash| stored_size(engine, &hash))) {
                self.outbox.push_front(item);
                self.is_short = true;
                break;
            }
            self.outbox_bytes -= size(&item);
            match item.ready(engine) {
                Ready::Message { command, payload } => {
                    self.node.note_sent(command, &payload);
                    self.node.transport_mut().send(command, &payload);
                }
                Ready::BadTransactionsRequest => self.bad_requests += 1,
                Ready::Unreadable => self.farewell = Some("cannot load block from disk".to_owned()),
                // The world keeps the end of the connection in `farewell`.
                Ready::Nothing | Ready::End => {}
            }
            self.take_output();
        }
        self.take_output();
        if self.is_node_sending || self.node_output.is_empty() || self.is_deaf {
            return;
        }
        let (bytes, time) = self.wire.cut(&mut self.node_output, random);
        self.is_node_sending = true;
        later.push((time, Step::NodeMaySend));
        later.push((time + self.wire.latency, Step::ToPeer(bytes)));
    }

    /// Takes what the transport has to send.
    fn take_output(&mut self) {
        self.node_output.extend(self.node.transport_mut().take_output());
        self.count_memory();
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
    pub fn read(&mut self, now: Duration) -> Result<Option<Handover>, String> {
        loop {
            if self.is_full() || self.farewell.is_some() {
                return Ok(None);
            }
            if let Some(message) = self.node.next_message(0, now) {
                return Ok(Some(message));
            }
            if self.node.is_flooding(now) {
                return Err("it sent more messages than are processed".to_owned());
            }
            if self.node.paced().is_some() {
                return Ok(None);
            }
            if self.node.transport().message_count() > 0 {
                self.is_short = true;
                return Ok(None);
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            let Some(mut bytes) = self.unread.pop_front() else { return Ok(None) };
            let (count, result) = self.node.receive(&bytes, now);
            self.unread_bytes -= count;
            if count < bytes.len() {
                self.unread.push_front(bytes.split_off(count));
            }
            if count == 0 {
                self.is_short = true;
                return Ok(None);
            }
            self.take_output();
            // Messages before an error count.
            self.error = result.err().map(|error| error.to_string());
        }
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
        Outgoing::Filters(_) => size_of::<Outgoing>(),
        Outgoing::End { .. } => 0,
    }
}
