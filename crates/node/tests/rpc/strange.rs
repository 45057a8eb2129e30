//! A peer that sends the same strange messages to both, byte for byte: under frozen clocks, `getpeerinfo` reports the
//! same about it.

use crate::peers::{Net, PATIENCE};
use crate::server::Server;
use lydian_consensus::{Chain, Params};
use lydian_primitives::{Amount, Header};
use lydian_wire::message::{CMPCTBLOCKS_VERSION, PROTOCOL_VERSION, SendCmpct, Version};
use lydian_wire::{Command, Endpoint, Message, NetAddr, Services, TimedAddress, Transport};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// The time of both clocks.
const NOW: u32 = 1_800_000_000;

/// A hand-made peer that speaks v1.
pub(crate) struct Strange {
    stream: TcpStream,
    transport: Transport,
    port: u16,
}

impl Strange {
    /// Connects and completes the handshake; `user_agent` may be anything.
    pub(crate) fn connect(port: u16, user_agent: &[u8]) -> Strange {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        Strange::greet(stream, port, user_agent, i64::from(NOW) + 7)
    }

    /// Completes the handshake, by a clock that shows `time`.
    pub(crate) fn greet(stream: TcpStream, port: u16, user_agent: &[u8], time: i64) -> Strange {
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let transport = Transport::v1(Params::new(Chain::Regtest).magic);
        let mut strange = Strange { stream, transport, port };
        strange.send(&Message::Version(Box::new(Version {
            version: PROTOCOL_VERSION,
            services: Services::NETWORK | Services::WITNESS | Services::BLOOM | Services(1 << 24 | 1 << 63),
            time,
            receiver_services: Services::NONE,
            receiver: Endpoint::new(NetAddr::Ipv4([1, 2, 3, 4].into()), 77),
            nonce: 5,
            user_agent: user_agent.to_vec(),
            start_height: 12_345,
            relay: true,
        })));
        strange.wait_for(Command::VERACK);
        for message in [Message::WtxidRelay, Message::SendAddrV2, Message::Verack] {
            strange.send(&message);
        }
        strange
    }

    fn send(&mut self, message: &Message) {
        self.transport.send_message(message);
        self.stream.write_all(&self.transport.take_output()).unwrap();
    }

    fn send_raw(&mut self, command: &str, payload: &[u8]) {
        self.transport.send(Command::new(command).unwrap(), payload);
        self.stream.write_all(&self.transport.take_output()).unwrap();
    }

    fn wait_for(&mut self, command: Command) {
        let began = Instant::now();
        while !self.read().contains(&command) {
            assert!(began.elapsed() < PATIENCE, "{command} of port {}", self.port);
        }
    }

    /// Reads what arrives within a short time; answers pings.
    fn read(&mut self) -> Vec<Command> {
        self.read_whole().unwrap_or_default().into_iter().map(|(command, _)| command).collect()
    }

    /// The messages of a kind that answer a request, up to the answer to a ping behind it; `None` if the connection is
    /// ended.
    pub(crate) fn answers(&mut self, request: &Message, wanted: Command) -> Option<Vec<Vec<u8>>> {
        let nonce = 0x1234_5678_9abc_def0_u64;
        self.send(request);
        // The other side may have gone.
        self.transport.send_message(&Message::Ping(Some(nonce)));
        let _ = self.stream.write_all(&self.transport.take_output());
        let (mut found, began) = (Vec::new(), Instant::now());
        loop {
            assert!(began.elapsed() < PATIENCE, "no answer from port {}", self.port);
            for (command, payload) in self.read_whole()? {
                if command == Command::PONG && payload == nonce.to_le_bytes() {
                    return Some(found);
                }
                if command == wanted {
                    found.push(payload);
                }
            }
        }
    }

    /// Messages as they are; `None` if the connection is ended.
    pub(crate) fn read_whole(&mut self) -> Option<Vec<(Command, Vec<u8>)>> {
        let mut buffer = vec![0; 1 << 16];
        let count = match self.stream.read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) =>
            {
                0
            }
            Err(_) => return None,
        };
        self.transport.receive(&buffer[..count]).unwrap();
        let mut messages = Vec::new();
        while let Some(received) = self.transport.next_message() {
            if received.command == Command::PING {
                self.transport.send(Command::PONG, &received.payload);
                self.stream.write_all(&self.transport.take_output()).unwrap();
            }
            messages.push((received.command, received.payload));
        }
        Some(messages)
    }
}

/// The first peer of both, once its messages are processed.
fn settled(net: &Net, strange: &mut [Strange; 2], is_so: impl Fn(&Value) -> bool) -> [Value; 2] {
    let began = Instant::now();
    loop {
        strange.iter_mut().for_each(|strange| drop(strange.read()));
        let peers = net.both().map(|server: &Server| server.result("getpeerinfo", "[]")[0].clone());
        if peers.iter().all(&is_so) {
            return peers;
        }
        assert!(began.elapsed() < PATIENCE, "{peers:#?}");
    }
}

/// Headers that extend the genesis block.
fn headers(count: u32) -> Vec<Header> {
    let genesis = Params::new(Chain::Regtest).genesis_block();
    let mut previous = Header::parse(genesis.as_bytes().first_chunk().unwrap());
    (1..=count)
        .map(|height| {
            let mut merkle_root = [0; 32];
            merkle_root[..4].copy_from_slice(&height.to_le_bytes());
            let mut header = Header {
                version: 0x2000_0000,
                prev_block: previous.hash(),
                merkle_root,
                time: previous.time + 600,
                ..previous
            };
            while header.hash().0[31] > 0x7f {
                header.nonce += 1;
            }
            previous = header;
            header
        })
        .collect()
}

/// User agents that try to be more than text, unknown messages, more addresses than permitted, blocks that never
/// arrive.
///
/// checklist: 99
#[test]
fn strange_words() {
    let Some(net) = Net::start("strange_words", &["-whitelist=relay,mempool,addr@127.0.0.9/32"]) else { return };
    net.ask("setmocktime", &json!([NOW]));
    let agent = b"/<script>alert(\"x\")</script>:1.0'\\\n\x1b[2J\xc3\xa4 &amp;/";
    let mut strange = net.ports.map(|port| Strange::connect(port, agent));
    for strange in &mut strange {
        strange.send(&Message::SendCmpct(SendCmpct { high_bandwidth: true, version: CMPCTBLOCKS_VERSION }));
        strange.send(&Message::FeeFilter(Amount(123_456_789)));
        strange.send_raw("nonsense", &[1, 2, 3]);
        strange.send_raw("alert", &[]);
        // A wrong checksum: the message is ignored, and counted.
        let (magic, payload) = (Params::new(Chain::Regtest).magic, [7; 5]);
        let head = [&magic[..], &Command::PING.to_wire(), &5_u32.to_le_bytes(), &[0; 4], &payload].concat();
        strange.stream.write_all(&head).unwrap();
        let address = |host: u8| TimedAddress {
            time: NOW - 100,
            services: Services::NETWORK,
            endpoint: Endpoint::new(NetAddr::Ipv4([host, 9, 9, 9].into()), 8333),
        };
        strange.send(&Message::AddrV2((1..=5).map(address).collect()));
        strange.send(&Message::Headers(headers(2)));
        strange.send(&Message::SendHeaders);
        strange.send(&Message::Ping(Some(9)));
    }
    let [ours, cores] = settled(&net, &mut strange, |peer| {
        !peer["bytesrecv_per_msg"]["ping"].is_null()
            && !peer["bytesrecv_per_msg"]["pong"].is_null()
            && peer["inflight"].as_array().is_some_and(|blocks| blocks.len() == 2)
            && peer["synced_blocks"] == 0
    });
    let same = |field: &str| assert_eq!(ours[field], cores[field], "{field}: {ours:#} {cores:#}");
    // Fields that the comparison ignores, but that depend only on the peer and the clock here.
    ["lastrecv", "conntime", "timeoffset", "bytesrecv", "bytesrecv_per_msg", "last_block"]
        .iter()
        .for_each(|field| same(field));
    assert_eq!(ours["subver"], "/scriptalert(x)/script:1.02J amp;/");
    assert_eq!(ours["timeoffset"], 7);
    assert_eq!(ours["bytesrecv_per_msg"]["*other*"], 27 + 24 + 29);
    assert_eq!(ours["addr_processed"].as_u64().unwrap() + ours["addr_rate_limited"].as_u64().unwrap(), 5);
    assert_eq!(ours["inflight"], json!([1, 2]));
    net.ask("getpeerinfo", &json!([]));
    net.ask("getaddrmaninfo", &json!([]));
    net.pair.comparison.finish();
}

/// Two thousand headers with too little work: the first pass over them continues, and nothing is stored.
#[test]
fn headers_of_little_work() {
    let options = ["-minimumchainwork=0x1000000000000"];
    let Some(net) = Net::start("headers_of_little_work", &options) else { return };
    net.ask("setmocktime", &json!([NOW]));
    let all = headers(2_000);
    let mut strange = net.ports.map(|port| Strange::connect(port, b"/x/"));
    let told = settled(&net, &mut strange, |peer| !peer["bytessent_per_msg"]["getheaders"].is_null());
    assert_eq!(told.each_ref().map(|peer| &peer["presynced_headers"]), [&json!(-1); 2]);
    strange.iter_mut().for_each(|strange| strange.send(&Message::Headers(all.clone())));
    settled(&net, &mut strange, |peer| peer["presynced_headers"] == 2_000);
    net.ask("getpeerinfo", &json!([]));
    net.ask("getchaintips", &json!([]));
    strange.iter_mut().for_each(|strange| strange.send(&Message::Headers(Vec::new())));
    settled(&net, &mut strange, |peer| peer["presynced_headers"] == -1);
    net.ask("getpeerinfo", &json!([]));
    net.pair.comparison.finish();
}
