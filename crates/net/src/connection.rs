//! One connection: turns the bytes of a socket into messages and messages into bytes.
//!
//! A request is handed on only after the previous messages are processed and while the send queue has room. A peer that
//! requests much and reads little therefore only delays itself: its next request waits until the previous answer is on
//! its way. Bytes are read from the socket until the receive buffer is full, so that two nodes that both wait for the
//! other to read do not wait forever.
//!
//! Messages of a peer that sends more than [`lydian_p2p::pace`] allows wait; meanwhile nothing more is read from it.
//!
//! All bytes held for the peer are charged to its account ([`lydian_p2p::memory`]). Received bytes stay in the read
//! buffer until there is room for what the transport makes of them, and a block is read from disk only when there is
//! room for the block. Two kinds of peers are disconnected for their memory: one that has not been read from for
//! [`MEMORY_WAIT_MAX`] because it sent more than its share at once, and one that does not take the blocks it requested
//! while other peers wait for that memory.

use crate::capture::{Capture, Direction};
use crate::ending::{Ending, rejected};
use crate::event::Event;
use crate::outbox::{Outbox, Outgoing};
use crate::output::Output;
use crate::proxy::{Reader, Writer};
use crate::{Buffers, Events, Host, queues};
use lydian_engine::Engine;
use lydian_p2p::manager::NewPeer;
use lydian_p2p::memory::{Charge, Waiting};
use lydian_p2p::pace::MessagePace;
use lydian_p2p::peer::Permissions;
use lydian_p2p::{PeerMemory, Traffic};
use lydian_primitives::{Block, BlockHash, RawBlock};
use lydian_wire::transport::{FRAME_SIZE_MIN, Framed, Received, Transport, TransportError};
use lydian_wire::{BlockTransactions, BlockTransactionsRequest, Command, CompactBlock, Message, TransportKind};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Maximum bytes per read from a socket, and bytes that are processed at a time while memory is short.
const READ_BYTES: usize = 64 << 10;
const SHORT_READ_BYTES: usize = 4 << 10;

/// Progress of an incomplete message is reported for at least this many new bytes, and at most once per interval.
const PROGRESS_BYTES: usize = 4 << 10;
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Time allowed to send the remaining output to a peer that is being disconnected.
const FAREWELL_TIME: Duration = Duration::from_secs(5);

/// Memory that a waiting message takes in addition to its payload.
const MESSAGE_BYTES: usize = 128;

/// Time until memory is requested again, and until a slow peer is checked again.
const MEMORY_PAUSE: Duration = Duration::from_millis(20);
const SLOW_PAUSE: Duration = Duration::from_secs(1);

/// Minimum time until the next messages of a peer that sends too many are processed.
const PACE_PAUSE: Duration = Duration::from_millis(100);

/// A peer that needs more than its share and has not been read from for this long is disconnected, since others wait
/// for that memory. Peers that fill the common part with incomplete messages wait for each other, and the end of a
/// connection is not seen while its bytes are not read: nothing but this limit frees what they hold. An honest peer is
/// not affected: it sends more than its share only when asked for a block, for which it has room.
const MEMORY_WAIT_MAX: Duration = Duration::from_secs(10);

/// While others wait for memory for blocks, a peer must take the blocks it requested at this rate, after a grace
/// period.
const SLOW_BYTES_PER_SECOND: u64 = 50_000;
const SLOW_TIME: Duration = Duration::from_secs(10);

/// One connection and its buffers.
#[derive(Debug)]
pub(crate) struct Connection {
    new: NewPeer,
    transport: Transport,
    events: Events,
    host: Arc<dyn Host>,
    engine: Arc<Engine>,
    outbox: Arc<Outbox>,
    /// Permits for bytes of messages that the manager has not processed yet.
    room: Arc<Semaphore>,
    receive_buffer: u32,
    /// Maximum bytes that wait to be sent. Above it, nothing is read.
    send_buffer: usize,
    /// Bytes that wait for the socket.
    output: Output,
    /// The messages in `output`.
    framed: VecDeque<Framed>,
    /// Bytes that the socket has taken.
    sent_bytes: u64,
    rejected_bytes: u64,
    /// Bytes of the incomplete message that were reported to the manager, and the time of the report.
    progress_bytes: usize,
    progress_reported: Duration,
    traffic: Arc<Traffic>,
    memory: PeerMemory,
    /// Charge for bytes received and not delivered, and charge for bytes that wait for the socket.
    receiving: Charge,
    sending: Charge,
    /// Permits for reading blocks from disk, shared by all connections.
    reads: Arc<Semaphore>,
    /// Reservation for a block that is being read.
    block: Option<Charge>,
    /// Set while a block is next in the queue and there is no memory for it.
    waiting: Option<Waiting>,
    /// Start of the current measurement of block sending, and `sent_bytes` at that time.
    block_since: Option<(Duration, u64)>,
    /// How fast messages are processed, and how long the next one must wait for that.
    pace: MessagePace,
    paced: Option<Duration>,
    /// Bytes for which there was no memory when they were about to be processed.
    refused_bytes: usize,
    /// Time since which the peer has not been read from because memory is short.
    unread_since: Option<Duration>,
    capture: Option<Arc<Capture>>,
}

impl Connection {
    pub(crate) fn new(
        new: NewPeer,
        transport: Transport,
        events: Events,
        host: Arc<dyn Host>,
        engine: Arc<Engine>,
        (buffers, reads): (Buffers, Arc<Semaphore>),
    ) -> Connection {
        let memory = new.memory.clone();
        let receive_buffer = u32::try_from(buffers.receive).unwrap_or(u32::MAX);
        Connection {
            send_buffer: buffers.send.max(1),
            receive_buffer,
            traffic: Arc::clone(&new.traffic),
            new,
            transport,
            events,
            host,
            engine,
            outbox: Arc::new(Outbox::new(buffers.send, &memory)),
            room: queues::room(receive_buffer),
            output: Output::default(),
            framed: VecDeque::new(),
            sent_bytes: 0,
            rejected_bytes: 0,
            progress_bytes: 0,
            progress_reported: Duration::ZERO,
            receiving: memory.charge_received(0),
            sending: memory.charge_to_send(0),
            memory,
            reads,
            block: None,
            waiting: None,
            block_since: None,
            pace: MessagePace::default(),
            paced: None,
            refused_bytes: 0,
            unread_since: None,
            capture: None,
        }
    }

    /// Writes sent messages to files: `-capturemessages`.
    pub(crate) fn capture_to(self, capture: Option<Arc<Capture>>) -> Connection {
        Connection { capture, ..self }
    }

    /// Runs the connection until it ends.
    pub(crate) async fn run(mut self, reader: Reader, writer: Writer) {
        let peer = self.new.id;
        let connected = Event::Connected { new: self.new.clone(), outbox: Arc::clone(&self.outbox) };
        if self.events.send(connected).await.is_err() {
            return;
        }
        let ending = self.converse(reader, writer).await;
        ending.log(self.host.as_ref(), peer, &self.new.endpoint);
        let wants_v1 = self.transport.should_reconnect_v1();
        let _ = self.events.send(Event::Disconnected { peer, wants_v1 }).await;
    }

    /// Returns the reason why the connection ended.
    async fn converse(&mut self, mut reader: Reader, mut writer: Writer) -> Ending {
        let mut buffer = vec![0; READ_BYTES];
        // The part of the buffer that is not processed yet.
        let mut unread = 0..0;
        if self.transport.kind() == TransportKind::V1 {
            self.traffic.note_transport(TransportKind::V1, None);
        }
        self.take_output();
        if self.transport.kind() == TransportKind::Detecting && !self.new.kind.is_inbound() {
            self.host.debug(|| format!("start sending v2 handshake to peer={}", self.new.id));
        }
        loop {
            // Checked even if no byte can be written: a peer that takes nothing must not keep its slot that way.
            if self.outbox.is_ending() {
                return self.end(&mut writer, None).await;
            }
            while self.output.len() < self.send_buffer && self.may_send_next() {
                let Some(item) = self.outbox.pop() else { break };
                if let Err(reason) = self.send(item).await {
                    return self.end(&mut writer, Some(reason)).await;
                }
            }
            self.deliver().await;
            let processed = self.process(&buffer, &mut unread);
            // Messages before an error are processed.
            self.deliver().await;
            let has_memory = match processed {
                Ok(has_memory) => has_memory,
                Err(error) => return Ending::Transport(error),
            };
            if let Some(reason) = self.check_memory(has_memory) {
                return reason;
            }
            let (pause, may_read) = (self.pause(has_memory), unread.is_empty() && self.may_process());
            if has_memory && self.may_process() && !unread.is_empty() {
                continue;
            }
            tokio::select! {
                read = reader.read(&mut buffer), if may_read => match read {
                    Ok(0) => return Ending::SocketClosed,
                    Ok(count) => {
                        unread = 0..count;
                        self.traffic.note_received(count, self.host.now().unix);
                    }
                    Err(error) => return Ending::ReceiveError(error),
                },
                written = writer.write(self.output.next()), if !self.output.is_empty() => match written {
                    Ok(count) => {
                        self.count_sent(count);
                    }
                    Err(error) => return Ending::SendError(error),
                },
                () = self.outbox.changed.notified() => {}
                () = sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            }
        }
    }

    /// Charges what is held now.
    fn count_memory(&mut self) {
        let messages = self.transport.message_bytes() + self.transport.message_count() * MESSAGE_BYTES;
        self.block = None;
        self.receiving.set(self.transport.buffered_size() + messages);
        self.sending.set(self.output.memory_bytes() + self.framed.len() * size_of::<Framed>());
    }

    /// Returns whether the next item may be sent. A block needs memory.
    fn may_send_next(&mut self) -> bool {
        let Some(hash) = self.outbox.next_block() else {
            self.waiting = None;
            return true;
        };
        let size = self.engine.header_info(&hash).and_then(|info| info.node.block).map_or(0, |block| block.size);
        self.block = self.memory.charge_block(usize::try_from(size).unwrap_or(usize::MAX));
        if self.block.is_some() {
            self.waiting = None;
        } else if self.waiting.is_none() {
            self.waiting = Some(self.memory.wait_to_send());
        }
        self.block.is_some()
    }

    /// Returns the reason to end the connection for its use of memory, if there is one.
    fn check_memory(&mut self, has_memory: bool) -> Option<Ending> {
        let now = self.host.now().elapsed;
        let is_trusted = self.new.permissions.contains(Permissions::NO_BAN);
        // Blocks held for sending do not count: for those, the rate at which the peer takes them is checked.
        let needed = self.receiving.bytes() + self.refused_bytes;
        if has_memory || needed <= self.memory.budget().plan().share {
            self.unread_since = None;
        } else {
            let since = *self.unread_since.get_or_insert(now);
            if now.saturating_sub(since) > MEMORY_WAIT_MAX && !is_trusted {
                return Some(Ending::Memory(format!("needs {needed} bytes while memory for peers is short")));
            }
        }
        let (since, sent_before) = self.block_since?;
        let time = now.saturating_sub(since);
        let taken = self.sent_bytes.saturating_sub(sent_before);
        let is_slow = time > SLOW_TIME && taken < SLOW_BYTES_PER_SECOND.saturating_mul(time.as_secs());
        if time > SLOW_TIME && !is_slow {
            self.block_since = Some((now, self.sent_bytes));
        }
        (is_slow && !is_trusted && self.memory.budget().has_waiting()).then(|| {
            let seconds = time.as_secs();
            Ending::Memory(format!("took {taken} bytes of blocks in {seconds} s while others wait for that memory"))
        })
    }

    /// Time until the loop must check again even if nothing happens.
    fn pause(&self, has_memory: bool) -> Option<Duration> {
        let pause = match (has_memory && self.waiting.is_none(), self.block_since) {
            (false, _) => Some(MEMORY_PAUSE),
            (true, Some(_)) => Some(SLOW_PAUSE),
            (true, None) => None,
        };
        [pause, self.paced.map(|wait| wait.max(PACE_PAUSE))].into_iter().flatten().min()
    }

    /// Sends what is queued before the end as far as the peer takes it in time. If `reason` is already set, only the
    /// bytes that wait for the socket are sent. Returns the reason.
    async fn end(&mut self, writer: &mut Writer, reason: Option<Ending>) -> Ending {
        let mut reason = reason;
        let farewell = async {
            while writer.write_all(self.output.next()).await.is_ok() {
                self.count_sent(self.output.next().len());
                if !self.output.is_empty() {
                    continue;
                }
                if reason.is_some() {
                    return;
                }
                match self.may_send_next().then(|| self.outbox.pop()).flatten() {
                    Some(item) => reason = self.send(item).await.err(),
                    None => return,
                }
            }
        };
        let _ = timeout(FAREWELL_TIME, farewell).await;
        reason.unwrap_or_else(|| {
            // The rest of the queue is dropped.
            let _ = self.outbox.take_end();
            Ending::Asked
        })
    }

    /// Called when the socket has taken bytes of the output.
    fn count_sent(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        if self.output.advance(count) {
            self.count_memory();
        }
        if self.output.is_empty() {
            self.block_since = None;
        }
        self.sent_bytes += count as u64;
        self.traffic.note_sent(count, self.host.now().unix);
        while let Some(framed) = self.framed.pop_front_if(|framed| framed.end <= self.sent_bytes) {
            self.traffic.note_sent_message(framed.command, framed.size);
        }
    }

    /// Whether the received messages that wait leave room for more.
    fn may_process(&self) -> bool {
        self.paced.is_none() && self.transport.message_bytes() < self.receive_buffer.max(1) as usize
    }

    /// Passes received bytes to the transport, all at once or a short part of them. Returns whether there was memory
    /// for it.
    fn process(&mut self, buffer: &[u8], unread: &mut Range<usize>) -> Result<bool, TransportError> {
        self.refused_bytes = 0;
        let bytes = &buffer[unread.clone()];
        if bytes.is_empty() || !self.may_process() {
            return Ok(true);
        }
        for count in [bytes.len(), bytes.len().min(SHORT_READ_BYTES)] {
            let growth = self.transport.growth(count) + count / FRAME_SIZE_MIN * MESSAGE_BYTES;
            if self.receiving.try_receive(growth) {
                unread.start += count;
                let received = self.transport.receive(&bytes[..count]);
                self.note_received();
                self.take_output();
                self.report_progress();
                for message in self.transport.take_rejected() {
                    self.host.debug(|| rejected(&message, self.new.id));
                }
                return received.map(|()| true);
            }
            self.refused_bytes = growth;
        }
        Ok(false)
    }

    /// Counts dropped messages, and notes which transport the peer uses.
    fn note_received(&mut self) {
        let rejected = self.transport.rejected_bytes();
        if rejected > self.rejected_bytes {
            self.traffic.note_received_message(None, rejected - self.rejected_bytes);
            self.rejected_bytes = rejected;
        }
        if self.traffic.transport().0 == TransportKind::Detecting {
            self.traffic.note_transport(self.transport.kind(), self.transport.session_id());
        }
    }

    fn take_output(&mut self) {
        self.framed.extend(self.transport.take_framed());
        self.output.push(self.transport.take_output());
        self.count_memory();
    }

    async fn send(&mut self, item: Outgoing) -> Result<(), Ending> {
        let is_block = !matches!(item, Outgoing::Message(_) | Outgoing::End { .. });
        match item {
            Outgoing::Message(message) => {
                let (command, payload) = (message.command(), message.payload());
                self.frame(command, &payload);
            }
            Outgoing::Block { hash, with_witness } => self.send_block(hash, with_witness).await?,
            Outgoing::Compact { hash, nonce } => {
                let compact = self.read(hash, move |raw| Some(CompactBlock::new(&parse(raw)?, nonce))).await?;
                self.frame(Command::CMPCTBLOCK, &Message::CmpctBlock(Box::new(compact)).payload());
            }
            Outgoing::Transactions(request) => self.send_transactions(request).await?,
            Outgoing::End { .. } => return Err(Ending::Asked),
        }
        self.take_output();
        if is_block {
            self.pace.sent_block();
        }
        if is_block && self.block_since.is_none() {
            self.block_since = Some((self.host.now().elapsed, self.sent_bytes));
        }
        Ok(())
    }

    async fn send_block(&mut self, hash: BlockHash, with_witness: bool) -> Result<(), Ending> {
        if with_witness {
            let raw = self.read(hash, Some).await?;
            self.frame(Command::BLOCK, raw.as_bytes());
        } else {
            let bytes = self.read(hash, |raw| Some(parse(raw)?.stripped())).await?;
            self.frame(Command::BLOCK, &bytes);
        }
        Ok(())
    }

    async fn send_transactions(&mut self, request: BlockTransactionsRequest) -> Result<(), Ending> {
        let hash = request.block_hash;
        let made = self.read(hash, move |raw| Some(BlockTransactions::new(&parse(raw)?, &request))).await?;
        match made {
            Some(answer) => {
                let answer = Message::BlockTxn(answer);
                self.frame(answer.command(), &answer.payload());
            }
            None => {
                // If the receiver is gone, the network is ending.
                let _ = self.events.send(Event::BadTransactionsRequest { from: self.new.id }).await;
            }
        }
        Ok(())
    }

    /// Reads a block and converts it. Only a few blocks are read at a time for all connections.
    async fn read<T: Send + 'static>(
        &self,
        hash: BlockHash,
        make: impl FnOnce(RawBlock) -> Option<T> + Send + 'static,
    ) -> Result<T, Ending> {
        let engine = Arc::clone(&self.engine);
        let place = Arc::clone(&self.reads).acquire_owned().await;
        let read = tokio::task::spawn_blocking(move || {
            let info = engine.header_info(&hash)?;
            make(engine.raw_block(&info).ok().flatten()?)
        });
        let made = read.await;
        drop(place);
        made.ok().flatten().ok_or(Ending::BlockUnreadable)
    }

    /// Adds a message to the output: Core's `PushMessage`.
    fn frame(&mut self, command: Command, payload: &[u8]) {
        let id = self.new.id;
        self.host.debug(|| format!("sending {} ({} bytes) peer={id}", command.as_str(), payload.len()));
        if let Some(capture) = &self.capture {
            capture.write(&self.new.endpoint, Direction::Sent, command, payload, self.host.as_ref());
        }
        self.transport.send(command, payload);
    }

    /// Reports the progress of a long incomplete message to the manager, at intervals.
    fn report_progress(&mut self) {
        let (buffered, now) = (self.transport.buffered_size(), self.host.now().elapsed);
        if buffered < self.progress_bytes {
            self.progress_bytes = 0;
        }
        let fresh = buffered - self.progress_bytes;
        if fresh < PROGRESS_BYTES || now.saturating_sub(self.progress_reported) < PROGRESS_INTERVAL {
            return;
        }
        let event = Event::Progress { from: self.new.id, bytes: fresh as u64 };
        // If the queue is full, the manager has more important work; the next report covers it.
        if self.events.try_send(event).is_ok() {
            (self.progress_bytes, self.progress_reported) = (buffered, now);
        }
    }

    /// Hands complete messages to the manager while it and the send queue have room.
    async fn deliver(&mut self) {
        self.paced = None;
        while let Some(command) = self.transport.next_command() {
            let is_free = is_block(command) || self.new.permissions.contains(Permissions::NO_BAN);
            if !is_free && let Err(wait) = self.pace.may_take(self.host.now().elapsed) {
                self.paced = Some(wait);
                return;
            }
            let Some(answer) = self.reserve_answer() else { return };
            let Some(received) = self.transport.next_message() else { return };
            if !is_free {
                self.pace.take(self.host.now().elapsed);
            }
            let Received { command, payload, raw_size } = received;
            self.traffic.note_received_message(Some(command), raw_size as u64);
            let size = queues::permits(raw_size, self.receive_buffer);
            let Ok(permit) = Arc::clone(&self.room).acquire_many_owned(size).await else { return };
            let charge = self.memory.charge_received(payload.capacity() + MESSAGE_BYTES);
            self.count_memory();
            let event = Event::Message { from: self.new.id, command, payload, _permit: permit, _charge: charge };
            if self.events.send(event).await.is_err() {
                return;
            }
            if is_request(command) {
                // All permits are back once the manager has processed everything; the answer then counts as bytes that
                // wait to be sent.
                let _ = self.room.acquire_many(self.receive_buffer).await;
            }
            drop(answer);
        }
    }

    /// Memory for the answer to the next message, if the send queue has room.
    fn reserve_answer(&self) -> Option<Charge> {
        let has_room = self.output.len() < self.send_buffer && !self.outbox.is_full();
        let waiting_bytes = self.sending.bytes() + self.outbox.memory_bytes();
        has_room.then(|| self.memory.reserve_answer(waiting_bytes)).flatten()
    }
}

fn parse(raw: RawBlock) -> Option<Block> {
    raw.parse().ok()
}

/// Messages with a block or a part of one, which a peer sends when asked.
fn is_block(command: Command) -> bool {
    matches!(command, Command::BLOCK | Command::CMPCTBLOCK | Command::BLOCKTXN)
}

/// Messages that may have answers much larger than themselves.
fn is_request(command: Command) -> bool {
    matches!(command, Command::GETDATA | Command::GETBLOCKTXN | Command::GETHEADERS | Command::GETBLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_consensus::{Chain, Params};
    use lydian_disk::SimDisk;
    use lydian_engine::{Layout, Settings};
    use lydian_p2p::Moment;
    use lydian_p2p::manager::PeerId;
    use lydian_p2p::peer::{ConnectionKind, Permissions};
    use lydian_wire::Endpoint;
    use std::path::PathBuf;
    use tokio::io::duplex;
    use tokio::sync::mpsc;

    #[derive(Debug)]
    struct Still;

    impl Host for Still {
        fn now(&self) -> Moment {
            Moment::default()
        }

        fn log_line(&self, _: &lydian_engine::LogLine) {}

        fn fill_random(&self, bytes: &mut [u8]) {
            bytes.fill(1);
        }
    }

    fn engine() -> Arc<Engine> {
        let root = PathBuf::from("node");
        let layout = Layout { blocks: root.join("blocks"), index: root.join("index"), coins: root.join("coins") };
        let (disk, params) = (Arc::new(SimDisk::new(1)), Params::new(Chain::Regtest));
        Arc::new(Engine::open(disk, &layout, params, Settings::new(1), Vec::new()).unwrap().engine)
    }

    /// A peer that reads nothing, with so much queued that no more messages are framed, is still disconnected.
    #[test]
    fn who_takes_nothing_is_sent_away() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let new = NewPeer {
                id: PeerId(7),
                kind: ConnectionKind::Inbound,
                endpoint: Endpoint::default(),
                permissions: Permissions::NONE,
                is_onion: false,
                attempt: None,
                local: Endpoint::default(),
                v2: false,
                traffic: Arc::default(),
                memory: PeerMemory::default(),
            };
            let (events, mut incoming) = mpsc::channel(16);
            let transport = Transport::v1([1, 2, 3, 4]);
            let buffers = Buffers { receive: 1000, send: 1000 };
            let reads = Arc::new(Semaphore::new(1));
            let connection = Connection::new(new, transport, events, Arc::new(Still), engine(), (buffers, reads));
            let ((ours, _theirs), (quiet, _speaker)) = (duplex(64), duplex(64));
            let running = tokio::spawn(connection.run(Box::new(quiet), Box::new(ours)));
            let Some(Event::Connected { outbox, .. }) = incoming.recv().await else { panic!("no connection") };
            let many = || Outgoing::Message(Message::Unknown { command: Command::TX, payload: vec![0; 2000] });
            (0..3).for_each(|_| outbox.push(many()));
            tokio::time::sleep(Duration::from_millis(50)).await;
            outbox.push(Outgoing::End { reason: "enough".to_owned() });
            let ended = timeout(FAREWELL_TIME * 4, incoming.recv()).await;
            assert!(matches!(ended, Ok(Some(Event::Disconnected { peer: PeerId(7), .. }))));
            running.await.unwrap();
        });
    }
}
