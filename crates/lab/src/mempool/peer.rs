//! A peer of a node on loopback: handshake over the v1 transport, messages, and the last byte on its own.
//!
//! Input: a port. Output: a connection that accepts transactions and compact blocks of version 2. Cost: the bytes of
//! one message in memory. Must never: wait without limit, or answer anything by itself: a node tolerates an unanswered
//! `ping` for 20 minutes, which is longer than a session uses a peer.

use crate::error::LabError;
use crate::runs::system;
use lydian_chains::files::MAGIC;
use lydian_primitives::Header;
use lydian_wire::message::{CMPCTBLOCKS_VERSION, PROTOCOL_VERSION, SendCmpct};
use lydian_wire::{Endpoint, Message, Services, Transport, Version};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

const CHUNK_BYTES: usize = 1 << 16;
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// Until the node has read everything but the last byte, which it waits for.
const DRAIN_TIME: Duration = Duration::from_millis(300);
/// A message larger than this is not written in one piece, so that a slow node does not make the lab wait forever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(600);

/// One connection.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    transport: Transport,
    chunk: Vec<u8>,
}

impl Peer {
    /// Connects to a node on loopback and completes the handshake. `nonce` distinguishes the peers of a session.
    pub fn connect(port: u16, nonce: u64, height: u32) -> Result<Peer, LabError> {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let (mut peer, _) = Peer::meet(address.into(), MAGIC, nonce, height)?;
        // A node ignores compact blocks of a peer that never announced its version of them.
        peer.send(&Message::SendCmpct(SendCmpct { high_bandwidth: false, version: CMPCTBLOCKS_VERSION }))?;
        Ok(peer)
    }

    /// Connects to a node of the network with this magic and completes the handshake. Returns what the node said about
    /// itself.
    pub fn meet(address: SocketAddr, magic: [u8; 4], nonce: u64, height: u32) -> Result<(Peer, Version), LabError> {
        let stream = TcpStream::connect_timeout(&address, HANDSHAKE_TIMEOUT).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(failed)?;
        let mut peer = Peer { stream, transport: Transport::v1(magic), chunk: vec![0; CHUNK_BYTES] };
        let seconds = Duration::from_secs_f64(system::unix_seconds()).as_secs();
        peer.send(&Message::Version(Box::new(Version {
            version: PROTOCOL_VERSION,
            services: Services::NETWORK | Services::WITNESS,
            time: i64::try_from(seconds).unwrap_or_default(),
            receiver_services: Services::NONE,
            receiver: Endpoint::default(),
            nonce,
            user_agent: b"/lydian-lab/".to_vec(),
            start_height: i32::try_from(height).unwrap_or_default(),
            relay: true,
        })))?;
        let said = peer.wait_for("version", HANDSHAKE_TIMEOUT, |message| matches!(message, Message::Version(_)))?;
        let Message::Version(version) = said else { return Err(failed("no version")) };
        peer.send(&Message::WtxidRelay)?;
        peer.send(&Message::Verack)?;
        peer.wait_for("verack", HANDSHAKE_TIMEOUT, |message| matches!(message, Message::Verack))?;
        Ok((peer, *version))
    }

    /// Asks for new blocks as compact blocks without a request, and announces the node's tip: a node sends a compact
    /// block only to a peer that is known to have the parent.
    pub fn want_compact_blocks(&mut self, tip: Header) -> Result<(), LabError> {
        self.send(&Message::SendCmpct(SendCmpct { high_bandwidth: true, version: CMPCTBLOCKS_VERSION }))?;
        self.send(&Message::Headers(vec![tip]))
    }

    pub fn send(&mut self, message: &Message) -> Result<(), LabError> {
        self.transport.send_message(message);
        let bytes = self.transport.take_output();
        self.stream.write_all(&bytes).map_err(failed)
    }

    /// Sends many messages in large writes.
    pub fn send_all(&mut self, messages: impl Iterator<Item = Message>) -> Result<(), LabError> {
        for message in messages {
            self.transport.send_message(&message);
            if self.transport.output_size() >= CHUNK_BYTES {
                let bytes = self.transport.take_output();
                self.stream.write_all(&bytes).map_err(failed)?;
            }
        }
        let bytes = self.transport.take_output();
        self.stream.write_all(&bytes).map_err(failed)
    }

    /// Sends a message except for its last byte, waits until the node has read it, and returns the last byte.
    pub fn send_but_last(&mut self, message: &Message) -> Result<u8, LabError> {
        self.transport.send_message(message);
        let mut bytes = self.transport.take_output();
        let last = bytes.pop().unwrap_or_default();
        self.stream.write_all(&bytes).map_err(failed)?;
        std::thread::sleep(DRAIN_TIME);
        Ok(last)
    }

    /// Sends one byte and returns the time just before.
    pub fn send_last(&mut self, last: u8) -> Result<Instant, LabError> {
        let start = system::now();
        self.stream.write_all(&[last]).map_err(failed)?;
        Ok(start)
    }

    /// The next message; `None` if none arrives in time.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Message>, LabError> {
        let start = system::now();
        loop {
            if let Some(received) = self.transport.next_message() {
                let decoded = Message::decode_owned(&received.command, received.payload);
                return decoded.map(Some).map_err(|error| failed(format!("{}: {error}", received.command.as_str())));
            }
            let Some(left) = timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) else {
                return Ok(None);
            };
            self.stream.set_read_timeout(Some(left)).map_err(failed)?;
            match self.stream.read(&mut self.chunk) {
                Ok(0) => return Err(failed("the node closed the connection")),
                Ok(size) => {
                    let bytes = self.chunk.get(..size).unwrap_or_default();
                    self.transport.receive(bytes).map_err(failed)?;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Reads messages until one fits. It is an error if none does in time.
    pub fn wait_for(
        &mut self,
        what: &str,
        timeout: Duration,
        fits: impl Fn(&Message) -> bool,
    ) -> Result<Message, LabError> {
        let start = system::now();
        while let Some(left) = timeout.checked_sub(start.elapsed()) {
            match self.next(left)? {
                Some(message) if fits(&message) => return Ok(message),
                _ => {}
            }
        }
        Err(failed(format!("no {what} within {} s", timeout.as_secs())))
    }
}

fn failed(reason: impl std::fmt::Display) -> LabError {
    LabError::program("peer of the lab", reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A node that completes the handshake, then returns what it receives until the connection ends.
    fn node(listener: TcpListener) -> Vec<Message> {
        let (mut stream, _) = listener.accept().unwrap();
        let mut transport = Transport::v1(MAGIC);
        let (mut messages, mut chunk) = (Vec::new(), vec![0; 4_096]);
        while let Ok(size) = stream.read(&mut chunk) {
            if size == 0 {
                break;
            }
            transport.receive(&chunk[..size]).unwrap();
            while let Some(received) = transport.next_message() {
                let message = Message::decode_owned(&received.command, received.payload).unwrap();
                match &message {
                    Message::Version(version) => transport.send_message(&Message::Version(version.clone())),
                    Message::Verack => transport.send_message(&Message::Verack),
                    Message::Ping(nonce) => transport.send_message(&Message::Pong(*nonce)),
                    _ => {}
                }
                messages.push(message);
            }
            stream.write_all(&transport.take_output()).unwrap();
        }
        messages
    }

    #[test]
    fn a_message_arrives_with_its_last_byte() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let node = std::thread::spawn(move || node(listener));
        let mut peer = Peer::connect(port, 7, 3).unwrap();
        assert!(peer.next(Duration::from_millis(20)).unwrap().is_none());
        let last = peer.send_but_last(&Message::Ping(Some(5))).unwrap();
        assert!(peer.next(Duration::from_millis(50)).unwrap().is_none(), "answered before its last byte");
        peer.send_last(last).unwrap();
        let pong =
            peer.wait_for("pong", Duration::from_secs(30), |message| matches!(message, Message::Pong(_))).unwrap();
        assert_eq!(pong, Message::Pong(Some(5)));
        let error = peer.wait_for("tx", Duration::from_millis(20), |message| matches!(message, Message::Tx(_)));
        assert!(error.unwrap_err().to_string().contains("no tx within"), "no error");
        peer.send_all((0..3).map(|number| Message::Pong(Some(number)))).unwrap();
        drop(peer);
        let received = node.join().unwrap();
        assert_eq!(received.len(), 4 + 1 + 3);
        assert_eq!((&received[1], &received[2]), (&Message::WtxidRelay, &Message::Verack));
    }

    #[test]
    fn a_closed_connection_is_an_error() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let closer = std::thread::spawn(move || drop(listener.accept()));
        assert!(Peer::connect(port, 1, 1).is_err());
        closer.join().unwrap();
    }
}
