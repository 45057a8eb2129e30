//! Hostile peers over real sockets: many connections, each sending data that makes the node hold memory, and reading
//! none or all of the answers. Input: an attack, a port. Output: load, until dropped.
//!
//! One thread writes to all sockets in turn, a bounded number of bytes per round, so that the attack costs the node
//! memory and not all of the processor.

use lydian_consensus::{Chain, Params};
use lydian_primitives::{BlockHash, Header};
use lydian_wire::message::{PROTOCOL_VERSION, Version};
use lydian_wire::transport::Transport;
use lydian_wire::{Command, Endpoint, Inv, InvType, Locator, Message, Services, TimedAddress};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The behaviour of the peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Most of the largest message, and nothing after it.
    UnfinishedMessages,
    /// The largest messages, one after another.
    LargeMessages,
    /// Small messages, as many as possible.
    Pings,
    /// Requests for all headers; the answers are not read.
    UnreadHeaders,
    /// Requests for as many blocks as one message can name; the answers are not read.
    UnreadBlocks,
    /// The same, for blocks without witnesses.
    UnreadStrippedBlocks,
    /// Announcements of blocks that do not exist, as many as one message can name.
    Inventories,
    /// Requests for blocks that do not exist, as many as one message can name.
    UnknownBlocks,
    /// Addresses of nodes that do not exist, as many as one message can name.
    Addresses,
    /// Headers that the node has.
    KnownHeaders,
    /// Messages whose checksum is wrong, which are dropped.
    BadChecksums,
    /// Connections that send nothing.
    Silence,
    /// Connections that are opened and closed.
    Churn,
}

impl Attack {
    pub const ALL: [Attack; 13] = [
        Attack::UnfinishedMessages,
        Attack::LargeMessages,
        Attack::Pings,
        Attack::UnreadHeaders,
        Attack::UnreadBlocks,
        Attack::UnreadStrippedBlocks,
        Attack::Inventories,
        Attack::UnknownBlocks,
        Attack::Addresses,
        Attack::KnownHeaders,
        Attack::BadChecksums,
        Attack::Silence,
        Attack::Churn,
    ];

    fn reads(self) -> bool {
        matches!(
            self,
            Attack::LargeMessages
                | Attack::Inventories
                | Attack::UnknownBlocks
                | Attack::Addresses
                | Attack::KnownHeaders
                | Attack::BadChecksums
                | Attack::Churn
        )
    }
}

/// Bytes of the largest message.
const MESSAGE_BYTES: usize = 4_000_000;

/// Bytes written to one socket in one round, and the pause between two rounds.
const ROUND_BYTES: usize = 64 << 10;
const ROUND_PAUSE: Duration = Duration::from_millis(2);

/// Rounds after which a connection of [`Attack::Churn`] ends, and after which a refused one is tried again.
const CHURN_ROUNDS: usize = 20;
const RETRY_ROUNDS: usize = 100;

/// What the attacked node has.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Blocks that are requested.
    pub blocks: Vec<BlockHash>,
    /// Successive headers.
    pub headers: Vec<Header>,
}

/// Running peers of an attack.
pub struct Attackers {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Attackers {
    /// Starts this many peers.
    pub fn start(attack: Attack, count: usize, port: u16, known: &Known) -> Attackers {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, known) = (Arc::clone(&is_over), known.clone());
        let thread = std::thread::spawn(move || {
            let mut peers: Vec<_> = (0..count).map(|_| Peer::new(attack, port, &known)).collect();
            while !over.load(Ordering::Acquire) {
                peers.iter_mut().for_each(Peer::step);
                std::thread::sleep(ROUND_PAUSE);
            }
        });
        Attackers { is_over, thread: Some(thread) }
    }
}

impl Drop for Attackers {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Peer {
    attack: Attack,
    port: u16,
    /// Sent after the handshake, repeatedly except for [`Attack::UnfinishedMessages`].
    load: Arc<Vec<u8>>,
    hello: Vec<u8>,
    stream: Option<TcpStream>,
    /// Bytes of the handshake and the load that were sent.
    sent: usize,
    rounds: usize,
}

impl Peer {
    fn new(attack: Attack, port: u16, known: &Known) -> Peer {
        let (load, hello) =
            (Arc::new(load(attack, known)), if attack == Attack::Silence { Vec::new() } else { hello() });
        Peer { attack, port, load, hello, stream: None, sent: 0, rounds: RETRY_ROUNDS }
    }

    fn step(&mut self) {
        self.rounds += 1;
        let is_gone = match &mut self.stream {
            None => {
                if self.rounds >= RETRY_ROUNDS {
                    (self.stream, self.sent, self.rounds) = (dial(self.port), 0, 0);
                }
                return;
            }
            Some(stream) => {
                let mut buffer = [0; 8 << 10];
                let is_read = self.attack.reads() || self.sent < self.hello.len();
                match is_read.then(|| stream.read(&mut buffer)) {
                    None => false,
                    Some(Ok(count)) => count == 0,
                    Some(Err(error)) => error.kind() != ErrorKind::WouldBlock,
                }
            }
        };
        if is_gone || self.attack == Attack::Churn && self.rounds > CHURN_ROUNDS {
            (self.stream, self.rounds) = (None, RETRY_ROUNDS.saturating_sub(CHURN_ROUNDS));
            return;
        }
        self.write();
    }

    fn write(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let mut budget = ROUND_BYTES;
        while budget > 0 {
            let rest = match self.sent.checked_sub(self.hello.len()) {
                None => &self.hello[self.sent..],
                Some(_) if self.load.is_empty() => return,
                Some(sent) if self.attack == Attack::UnfinishedMessages && sent >= self.load.len() => return,
                Some(sent) => &self.load[sent % self.load.len()..],
            };
            let rest = &rest[..rest.len().min(budget)];
            match stream.write(rest) {
                Ok(count) => (self.sent, budget) = (self.sent + count, budget - count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    (self.stream, self.rounds) = (None, 0);
                    return;
                }
            }
        }
    }
}

fn dial(port: u16) -> Option<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}

fn framed(messages: &[Message]) -> Vec<u8> {
    let mut transport = Transport::v1(Params::new(Chain::Regtest).magic);
    messages.iter().for_each(|message| transport.send_message(message));
    transport.take_output()
}

/// The handshake of a peer that waits for nothing.
pub fn hello() -> Vec<u8> {
    let version = Version {
        version: PROTOCOL_VERSION,
        services: Services::NETWORK | Services::WITNESS,
        time: 1_790_000_000,
        receiver_services: Services::NONE,
        receiver: Endpoint::default(),
        nonce: 7,
        user_agent: b"/hostile/".to_vec(),
        start_height: 0,
        relay: false,
    };
    framed(&[Message::Version(Box::new(version)), Message::Verack])
}

/// The first byte of the checksum in the header of a message.
const CHECKSUM_AT: usize = 20;

/// The largest number of items in one message, none of which exists.
fn unknown() -> Vec<Inv> {
    let hash = |number: u32| {
        let mut bytes = [7; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        BlockHash(bytes)
    };
    (0..50_000).map(|number| Inv::block(InvType::BLOCK, hash(number))).collect()
}

/// A routable address of its own network group.
fn address(number: u16) -> TimedAddress {
    let [high, low] = number.to_be_bytes();
    let endpoint = Endpoint::parse(&format!("{}.{low}.7.7", 60 + high), 8333).unwrap();
    TimedAddress { time: 1_790_000_000, services: Services::NETWORK, endpoint }
}

fn load(attack: Attack, known: &Known) -> Vec<u8> {
    let large = || Message::Unknown { command: Command::new("unheardof").unwrap(), payload: vec![1; MESSAGE_BYTES] };
    let blocks = known.blocks.iter();
    let many =
        |kind| Message::GetData(blocks.clone().cycle().take(50_000).map(|hash| Inv::block(kind, *hash)).collect());
    let all = || Locator { hashes: known.blocks.first().copied().into_iter().collect(), stop: BlockHash([0; 32]) };
    match attack {
        Attack::UnfinishedMessages => {
            let mut bytes = framed(&[large()]);
            bytes.truncate(bytes.len() - 1);
            bytes
        }
        Attack::LargeMessages => framed(&[large()]),
        Attack::Pings => framed(&vec![Message::Ping(Some(7)); 1_000]),
        Attack::UnreadHeaders => framed(&vec![Message::GetHeaders(all()); 100]),
        Attack::UnreadBlocks => framed(&[many(InvType::WITNESS_BLOCK)]),
        Attack::UnreadStrippedBlocks => framed(&[many(InvType::BLOCK)]),
        Attack::Inventories => framed(&[Message::Inv(unknown())]),
        Attack::UnknownBlocks => framed(&[Message::GetData(unknown())]),
        Attack::Addresses => framed(&[Message::Addr((0..1_000).map(address).collect())]),
        Attack::KnownHeaders => framed(&[Message::Headers(known.headers.clone())]),
        Attack::BadChecksums => {
            // As many as in a load of [`Attack::Pings`], so that sending them does not cost more than that.
            let ping = framed(&[Message::Ping(Some(7))]);
            let mut bytes = ping.repeat(1_000);
            bytes.chunks_mut(ping.len()).for_each(|ping| ping[CHECKSUM_AT] ^= 1);
            bytes
        }
        Attack::Silence | Attack::Churn => Vec::new(),
    }
}
