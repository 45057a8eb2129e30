//! One connection: turns the bytes of a socket into messages and messages into bytes.
//!
//! A request is handed on only after the previous messages are processed and while the send queue has room. A peer that
//! requests much and reads little therefore only delays itself: its next request waits until the previous answer is on
//! its way. Bytes are read from the socket until the receive buffer is full, so that two nodes that both wait for the
//! other to read do not wait forever.
//!
//! Messages of a peer that sends more than [`lydian_p2p::pace`] allows wait; meanwhile nothing more is read from it.
//! The end of a connection is looked for while nothing is read because of its pace or for lack of memory. A peer that
//! goes on sending too much is disconnected.
//!
//! All bytes held for the peer are charged to its account ([`lydian_p2p::memory`]). Received bytes stay in the read
//! buffer until there is room for what the transport makes of them, and a block is read from disk only when there is
//! room for the block. Two kinds of peers are disconnected for their memory: one that has not been read from for
//! [`MEMORY_WAIT_MAX`] because it sent more than its share at once, and one that does not take the blocks it requested
//! while other peers wait for that memory.

use crate::capture::{Capture, Direction};
use crate::ending::{Ending, rejected};
use crate::event::Event;
use crate::outbox::Outbox;
use crate::output::Output;
use crate::proxy::{Reader, Writer};
use crate::{Buffers, Events, Host, queues};
use lydian_engine::Engine;
use lydian_p2p::Traffic;
use lydian_p2p::channel::{Channel, FAREWELL_TIME, Handover};
use lydian_p2p::driver;
use lydian_p2p::limits::FLOOD_TIME_MAX;
use lydian_p2p::manager::NewPeer;
use lydian_p2p::outgoing::{Outgoing, Ready, stored_size};
use lydian_p2p::peer::Permissions;
use lydian_wire::transport::{Framed, Received, Transport, TransportError};
use lydian_wire::{Command, TransportKind};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Maximum bytes per read from a socket.
const READ_BYTES: usize = 64 << 10;

/// Time until memory is requested again, and until a slow peer is checked again.
const MEMORY_PAUSE: Duration = Duration::from_millis(20);
const SLOW_PAUSE: Duration = Duration::from_secs(1);

/// Minimum time until the next messages of a peer that sends too many are processed, and the maximum time until it is
/// noticed that such a peer has left.
const PACE_PAUSE: Duration = Duration::from_millis(100);
const PACE_PAUSE_MAX: Duration = Duration::from_secs(1);

/// A peer that needs more than its share and has not been read from for this long is disconnected, since others wait
/// for that memory. Peers that fill the common part with incomplete messages wait for each other: nothing but this
/// limit frees what they hold. An honest peer is not affected: it sends more than its share only when asked for a
/// block, for which it has room.
const MEMORY_WAIT_MAX: Duration = Duration::from_secs(10);

/// While others wait for memory for blocks, a peer must take the blocks it requested at this rate, after a grace
/// period.
const SLOW_BYTES_PER_SECOND: u64 = 50_000;
const SLOW_TIME: Duration = Duration::from_secs(10);

/// One connection and its buffers.
#[derive(Debug)]
pub(crate) struct Connection {
    new: NewPeer,
    channel: Channel,
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
    traffic: Arc<Traffic>,
    /// Permits for reading blocks from disk, shared by all connections.
    reads: Arc<Semaphore>,
    /// Start of the current measurement of block sending, and `sent_bytes` at that time.
    block_since: Option<(Duration, u64)>,
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
        let receive_buffer = u32::try_from(buffers.receive).unwrap_or(u32::MAX);
        let mut channel = Channel::new(transport, new.memory.clone(), receive_buffer as usize);
        if new.permissions.contains(Permissions::NO_BAN) {
            channel.lift_pace();
        }
        Connection {
            send_buffer: buffers.send.max(1),
            receive_buffer,
            traffic: Arc::clone(&new.traffic),
            outbox: Arc::new(Outbox::new(buffers.send, &new.memory)),
            channel,
            new,
            events,
            host,
            engine,
            room: queues::room(receive_buffer),
            output: Output::default(),
            framed: VecDeque::new(),
            sent_bytes: 0,
            rejected_bytes: 0,
            reads,
            block_since: None,
            unread_since: None,
            capture: None,
        }
    }

    /// Writes all messages to files: `-capturemessages`.
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
        let wants_v1 = self.channel.transport().should_reconnect_v1();
        let _ = self.events.send(driver::Event::Disconnected { peer, wants_v1 }.into()).await;
    }

    /// Returns the reason why the connection ended.
    async fn converse(&mut self, mut reader: Reader, mut writer: Writer) -> Ending {
        let mut buffer = vec![0; READ_BYTES];
        // The part of the buffer that is not processed yet.
        let mut unread = 0..0;
        if self.channel.transport().kind() == TransportKind::V1 {
            self.traffic.note_transport(TransportKind::V1, None);
        }
        self.take_output();
        if self.channel.transport().kind() == TransportKind::Detecting && !self.new.kind.is_inbound() {
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
            if let Some(reason) = self.check_load(has_memory) {
                return reason;
            }
            let (pause, may_read) = (self.pause(has_memory), unread.is_empty() && self.channel.may_receive());
            if has_memory && self.channel.may_receive() && !unread.is_empty() {
                continue;
            }
            if (!has_memory || self.channel.paced().is_some()) && reader.is_closed() {
                return Ending::SocketClosed;
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
        self.channel.count_memory(self.output.memory_bytes() + self.framed.len() * size_of::<Framed>());
    }

    /// Returns whether the next item may be sent. A block needs memory.
    fn may_send_next(&mut self) -> bool {
        let block = self.outbox.next_block();
        self.channel.may_send(block.map(|hash| stored_size(&self.engine, &hash)))
    }

    /// Returns the reason to end the connection for what it sends or for its use of memory, if there is one.
    fn check_load(&mut self, has_memory: bool) -> Option<Ending> {
        let now = self.host.now().elapsed;
        if self.channel.is_flooding(now) {
            let seconds = FLOOD_TIME_MAX.as_secs();
            return Some(Ending::Load(format!("sent more messages than are processed for {seconds} s")));
        }
        let is_trusted = self.new.permissions.contains(Permissions::NO_BAN);
        // Blocks held for sending do not count: for those, the rate at which the peer takes them is checked.
        let needed = self.channel.needed_bytes();
        if has_memory || needed <= self.new.memory.budget().plan().share {
            self.unread_since = None;
        } else {
            let since = *self.unread_since.get_or_insert(now);
            if now.saturating_sub(since) > MEMORY_WAIT_MAX && !is_trusted {
                return Some(Ending::Load(format!("needs {needed} bytes while memory for peers is short")));
            }
        }
        let (since, sent_before) = self.block_since?;
        let time = now.saturating_sub(since);
        let taken = self.sent_bytes.saturating_sub(sent_before);
        let is_slow = time > SLOW_TIME && taken < SLOW_BYTES_PER_SECOND.saturating_mul(time.as_secs());
        if time > SLOW_TIME && !is_slow {
            self.block_since = Some((now, self.sent_bytes));
        }
        (is_slow && !is_trusted && self.new.memory.budget().has_waiting()).then(|| {
            let seconds = time.as_secs();
            Ending::Load(format!("took {taken} bytes of blocks in {seconds} s while others wait for that memory"))
        })
    }

    /// Time until the loop must check again even if nothing happens.
    fn pause(&self, has_memory: bool) -> Option<Duration> {
        let pause = match (has_memory && !self.channel.is_waiting_to_send(), self.block_since) {
            (false, _) => Some(MEMORY_PAUSE),
            (true, Some(_)) => Some(SLOW_PAUSE),
            (true, None) => None,
        };
        [pause, self.channel.paced().map(|wait| wait.clamp(PACE_PAUSE, PACE_PAUSE_MAX))].into_iter().flatten().min()
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

    /// Passes received bytes to the transport. Returns whether there was memory for some of them.
    fn process(&mut self, buffer: &[u8], unread: &mut Range<usize>) -> Result<bool, TransportError> {
        let (count, received) = self.channel.receive(&buffer[unread.clone()], self.host.now().elapsed);
        if count == 0 {
            return Ok(!self.channel.is_short());
        }
        unread.start += count;
        self.note_received();
        self.take_output();
        self.report_progress();
        for message in self.channel.transport_mut().take_rejected() {
            self.host.debug(|| rejected(&message, self.new.id));
        }
        received.map(|()| true)
    }

    /// Counts dropped messages, and notes which transport the peer uses.
    fn note_received(&mut self) {
        let rejected = self.channel.transport().rejected_bytes();
        if rejected > self.rejected_bytes {
            self.traffic.note_received_message(None, rejected - self.rejected_bytes);
            self.rejected_bytes = rejected;
        }
        if self.traffic.transport().0 == TransportKind::Detecting {
            let transport = self.channel.transport();
            self.traffic.note_transport(transport.kind(), transport.session_id());
        }
    }

    fn take_output(&mut self) {
        let transport = self.channel.transport_mut();
        self.framed.extend(transport.take_framed());
        self.output.push(transport.take_output());
        self.count_memory();
    }

    async fn send(&mut self, item: Outgoing) -> Result<(), Ending> {
        let is_block = item.block().is_some();
        match self.make_ready(item).await {
            Ready::Message { command, payload } => {
                self.channel.note_sent(command, &payload);
                self.frame(command, &payload);
            }
            Ready::BadTransactionsRequest => {
                let event = driver::Event::BadTransactionsRequest { from: self.new.id };
                // If the receiver is gone, the network is ending.
                let _ = self.events.send(event.into()).await;
            }
            Ready::Unreadable => return Err(Ending::BlockUnreadable),
            Ready::Nothing => {}
            Ready::End => return Err(Ending::Asked),
        }
        self.take_output();
        if is_block && self.block_since.is_none() {
            self.block_since = Some((self.host.now().elapsed, self.sent_bytes));
        }
        Ok(())
    }

    /// Makes the message of an item. Only a few blocks are read at a time for all connections.
    async fn make_ready(&self, item: Outgoing) -> Ready {
        let engine = Arc::clone(&self.engine);
        if !item.reads() {
            return item.ready(&engine);
        }
        let place = Arc::clone(&self.reads).acquire_owned().await;
        let read = tokio::task::spawn_blocking(move || item.ready(&engine)).await;
        drop(place);
        read.unwrap_or(Ready::Unreadable)
    }

    /// Adds a message to the output: Core's `PushMessage`.
    fn frame(&mut self, command: Command, payload: &[u8]) {
        let id = self.new.id;
        self.host.debug(|| format!("sending {} ({} bytes) peer={id}", command.as_str(), payload.len()));
        self.capture(Direction::Sent, command, payload);
        self.channel.transport_mut().send(command, payload);
    }

    fn capture(&self, direction: Direction, command: Command, payload: &[u8]) {
        if let Some(capture) = &self.capture {
            capture.write(&self.new.endpoint, direction, command, payload, self.host.as_ref());
        }
    }

    /// Reports the progress of a long incomplete message to the manager, at intervals.
    fn report_progress(&mut self) {
        let (from, events) = (self.new.id, &self.events);
        // If the queue is full, the manager has more important work; the next report covers it.
        let report = |bytes| events.try_send(driver::Event::Progress { from, bytes }.into()).is_ok();
        self.channel.report_progress(self.host.now().elapsed, report);
    }

    /// Hands complete messages to the manager while it and the send queue have room.
    async fn deliver(&mut self) {
        while self.output.len() < self.send_buffer && !self.outbox.is_full() {
            let (queued_bytes, now) = (self.outbox.memory_bytes(), self.host.now().elapsed);
            let Some(handover) = self.channel.next_message(queued_bytes, now) else { return };
            let Handover { received: Received { command, payload, raw_size }, charge, answer } = handover;
            self.traffic.note_received_message(Some(command), raw_size as u64);
            let size = queues::permits(raw_size, self.receive_buffer);
            let Ok(permit) = Arc::clone(&self.room).acquire_many_owned(size).await else { return };
            self.capture(Direction::Received, command, &payload);
            let event = driver::Event::Message { from: self.new.id, command, payload, charge };
            if self.events.send(Event::Message { event, permit }).await.is_err() {
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
}

/// Messages that may have answers much larger than themselves.
fn is_request(command: Command) -> bool {
    matches!(command, Command::GETDATA | Command::GETBLOCKTXN | Command::GETHEADERS | Command::GETBLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Stream;
    use lydian_consensus::{Chain, Params};
    use lydian_disk::SimDisk;
    use lydian_engine::{Layout, Settings};
    use lydian_p2p::limits::MESSAGES_BURST;
    use lydian_p2p::manager::PeerId;
    use lydian_p2p::peer::{ConnectionKind, Permissions};
    use lydian_p2p::{Moment, PeerMemory};
    use lydian_wire::{Endpoint, Message};
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

    impl crate::proxy::PeerReader for tokio::io::DuplexStream {
        fn is_closed(&self) -> bool {
            false
        }
    }

    fn new_peer() -> NewPeer {
        NewPeer {
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
        }
    }

    fn is_end(event: &Event) -> bool {
        matches!(event, Event::Other(driver::Event::Disconnected { peer: PeerId(7), .. }))
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
            let (events, mut incoming) = mpsc::channel(16);
            let transport = Transport::v1([1, 2, 3, 4]);
            let buffers = Buffers { receive: 1000, send: 1000 };
            let reads = Arc::new(Semaphore::new(1));
            let connection =
                Connection::new(new_peer(), transport, events, Arc::new(Still), engine(), (buffers, reads));
            let ((ours, _theirs), (quiet, _speaker)) = (duplex(64), duplex(64));
            let running = tokio::spawn(connection.run(Box::new(quiet), Box::new(ours)));
            let Some(Event::Connected { outbox, .. }) = incoming.recv().await else { panic!("no connection") };
            let many = || Outgoing::Message(Message::Unknown { command: Command::TX, payload: vec![0; 2000] });
            (0..3).for_each(|_| outbox.push(many()));
            tokio::time::sleep(Duration::from_millis(50)).await;
            outbox.push(Outgoing::End { reason: "enough".to_owned() });
            let ended = timeout(FAREWELL_TIME * 4, incoming.recv()).await;
            assert!(ended.unwrap().as_ref().is_some_and(is_end));
            running.await.unwrap();
        });
    }

    /// A peer that has sent too many messages, or garbage, is not read from; that it leaves is noticed nevertheless.
    /// Regression test: it was noticed two minutes later, when a ping could not be sent.
    #[test]
    fn the_end_of_a_peer_that_is_not_read_from_is_noticed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for is_garbage in [false, true] {
                let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
                let mut peer = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                let (reader, writer) = Stream::Tcp(listener.accept().await.unwrap().0).split();
                let (events, mut incoming) = mpsc::channel(16);
                let buffers = (Buffers { receive: 100_000, send: 1_000 }, Arc::new(Semaphore::new(1)));
                let transport = Transport::v1([1, 2, 3, 4]);
                let connection = Connection::new(new_peer(), transport, events, Arc::new(Still), engine(), buffers);
                let running = tokio::spawn(connection.run(reader, writer));
                let mut sender = Transport::v1([1, 2, 3, 4]);
                (0..3 * MESSAGES_BURST).for_each(|_| sender.send(Command::PING, &[7; 8]));
                let mut bytes = sender.take_output();
                if is_garbage {
                    bytes.chunks_mut(32).for_each(|ping| ping[31] ^= 1);
                }
                // Room for all of it in the buffers of the sockets.
                peer.write_all(&bytes).await.unwrap();
                drop(peer);
                let mut messages = 0;
                let next = async {
                    loop {
                        match incoming.recv().await {
                            Some(Event::Message { .. }) => messages += 1,
                            Some(event) if is_end(&event) => return,
                            Some(_) => {}
                            None => panic!("no end"),
                        }
                    }
                };
                timeout(10 * PACE_PAUSE_MAX, next).await.unwrap();
                assert_eq!(messages, if is_garbage { 0 } else { MESSAGES_BURST }, "the rest waited");
                running.await.unwrap();
            }
        });
    }
}
