//! Bitcoin Core's daemon as the other side of a connection on loopback: it understands all that we send, we all that it sends, in v1 and v2.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use lydian_oracle::{Daemon, or_skip};
use lydian_primitives::{Amount, BlockHash, RawBlock, to_hex};
use lydian_wire::message::{
    CFCheckpt, CMPCTBLOCKS_VERSION, Feature, FilterLoad, FilterRange, GetCFCheckpt, PROTOCOL_VERSION, SendCmpct,
    SendTxRcncl,
};
use lydian_wire::{
    BlockTransactionsRequest, Command, CompactBlock, Endpoint, Inv, InvType, Locator, Message, NetAddr, Services,
    TimedAddress, Transport, TransportKind, V2Secrets, Version,
};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];
const BLOCKS: usize = 10;

struct Peer {
    stream: TcpStream,
    transport: Transport,
}

fn secrets() -> V2Secrets {
    let mut byte = 40;
    V2Secrets::generate(|buffer| {
        byte += 1;
        buffer.fill(byte);
    })
}

fn version() -> Version {
    Version {
        version: PROTOCOL_VERSION,
        services: Services::NETWORK | Services::WITNESS,
        time: 1_700_000_000,
        receiver_services: Services::NONE,
        receiver: Endpoint::new(NetAddr::Ipv4(Ipv4Addr::LOCALHOST), 18444),
        nonce: 7,
        user_agent: b"/Lydian:test/".to_vec(),
        start_height: 0,
        relay: true,
    }
}

impl Peer {
    fn new(stream: TcpStream, transport: Transport) -> Peer {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Peer { stream, transport }
    }

    fn send(&mut self, message: &Message) {
        self.transport.send_message(message);
        self.flush();
    }

    fn flush(&mut self) {
        let out = self.transport.take_output();
        self.stream.write_all(&out).unwrap();
    }

    /// The next message, or none when the connection ends.
    fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(received) = self.transport.next_message() {
                let message = Message::decode_owned(&received.command, received.payload).unwrap();
                assert!(!matches!(message, Message::Unknown { .. }), "{message:?}");
                if let Message::Ping(nonce) = message {
                    self.send(&Message::Pong(nonce));
                }
                return Some(message);
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Ok(count) => self.transport.receive(&buffer[..count]).unwrap(),
                Err(error) => panic!("{error}"),
            }
            self.flush();
        }
    }

    fn wait_for(&mut self, command: Command) -> Message {
        loop {
            match self.next() {
                Some(message) if message.command() == command => return message,
                Some(_) => {}
                None => panic!("the connection ended before {command}"),
            }
        }
    }

    /// Version and verack, with everything that may stand between them.
    fn shake_hands(&mut self, asks_first: bool) {
        if asks_first {
            self.send(&Message::Version(Box::new(version())));
        }
        let Message::Version(theirs) = self.wait_for(Command::VERSION) else { panic!() };
        assert_eq!(theirs.version, PROTOCOL_VERSION);
        assert!(
            theirs.services.contains(Services::NETWORK | Services::WITNESS | Services::P2P_V2),
            "{:?}",
            theirs.services
        );
        assert!(theirs.clean_user_agent().starts_with("/Satoshi:"), "{}", theirs.clean_user_agent());
        if !asks_first {
            self.send(&Message::Version(Box::new(version())));
        }
        self.send(&Message::WtxidRelay);
        self.send(&Message::SendAddrV2);
        self.send(&Message::SendTxRcncl(SendTxRcncl { version: 1, salt: 5 }));
        self.send(&Message::Feature(Feature { id: b"lydian-test".to_vec(), data: vec![1] }));
        self.wait_for(Command::VERACK);
        self.send(&Message::Verack);
    }

    fn ping(&mut self, nonce: u64) {
        self.send(&Message::Ping(Some(nonce)));
        while self.wait_for(Command::PONG) != Message::Pong(Some(nonce)) {}
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn start(port: u16, v2: bool) -> Result<Daemon, lydian_oracle::Unavailable> {
    let (bind, v2) = (format!("-bind=127.0.0.1:{port}"), format!("-v2transport={}", u8::from(v2)));
    let options = [
        "-listen=1",
        &bind,
        &v2,
        "-debug=net",
        "-peerbloomfilters=1",
        "-blockfilterindex=1",
        "-peerblockfilters=1",
        "-txreconciliation=1",
    ];
    Daemon::start(&options)
}

fn connect(port: u16) -> TcpStream {
    TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap()
}

/// What Core says of its one peer.
fn peer_info(daemon: &mut Daemon) -> Value {
    let answer = daemon.call("getpeerinfo", &json!([])).unwrap();
    assert_eq!(answer.as_array().map(Vec::len), Some(1), "{answer}");
    answer[0].clone()
}

fn wait_until_alone(daemon: &mut Daemon) {
    for _ in 0..600 {
        if daemon.call("getconnectioncount", &json!([])).unwrap() == json!(0) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("Core keeps a connection that was closed");
}

fn hash_of(daemon: &mut Daemon, height: usize) -> BlockHash {
    daemon.call("getblockhash", &json!([height])).unwrap().as_str().unwrap().parse().unwrap()
}

fn fetch_chain(peer: &mut Peer, hashes: &[BlockHash]) -> Vec<Vec<u8>> {
    peer.send(&Message::GetHeaders(Locator { hashes: vec![hashes[0]], stop: BlockHash::ZERO }));
    let Message::Headers(headers) = peer.wait_for(Command::HEADERS) else { panic!() };
    assert_eq!(headers.iter().map(|header| header.hash()).collect::<Vec<_>>(), hashes[1..]);
    let wanted = hashes[1..].iter().map(|hash| Inv::block(InvType::WITNESS_BLOCK, *hash)).collect();
    peer.send(&Message::GetData(wanted));
    let mut blocks = Vec::new();
    for hash in &hashes[1..] {
        let Message::Block(bytes) = peer.wait_for(Command::BLOCK) else { panic!() };
        assert_eq!(RawBlock::new(bytes.clone()).parse().unwrap().hash(), *hash);
        blocks.push(bytes);
    }
    blocks
}

/// Every message that Core answers, and the answer; then every other, so that Core's log would tell of one it cannot read.
fn talk(peer: &mut Peer, hashes: &[BlockHash]) {
    let blocks = fetch_chain(peer, hashes);
    let tip = *hashes.last().unwrap();
    let block = RawBlock::new(blocks[blocks.len() - 1].clone()).parse().unwrap();

    peer.send(&Message::SendCmpct(SendCmpct { high_bandwidth: false, version: CMPCTBLOCKS_VERSION }));
    peer.send(&Message::GetData(vec![Inv::block(InvType::CMPCT_BLOCK, tip)]));
    let Message::CmpctBlock(compact) = peer.wait_for(Command::CMPCTBLOCK) else { panic!() };
    assert_eq!(*compact, CompactBlock::new(&block, compact.nonce));
    peer.send(&Message::GetBlockTxn(BlockTransactionsRequest { block_hash: tip, indexes: vec![0] }));
    let Message::BlockTxn(answer) = peer.wait_for(Command::BLOCKTXN) else { panic!() };
    assert_eq!(answer.txs, [block.tx(0).bytes().to_vec()]);

    let range = FilterRange { filter_type: 0, start_height: 1, stop_hash: tip };
    peer.send(&Message::GetCFilters(range));
    let Message::CFilter(filter) = peer.wait_for(Command::CFILTER) else { panic!() };
    assert_eq!((filter.filter_type, filter.block_hash), (0, hashes[1]));
    peer.send(&Message::GetCFHeaders(range));
    let Message::CFHeaders(headers) = peer.wait_for(Command::CFHEADERS) else { panic!() };
    assert_eq!(headers.filter_hashes.len(), BLOCKS);
    peer.send(&Message::GetCFCheckpt(GetCFCheckpt { filter_type: 0, stop_hash: tip }));
    let checkpoint = CFCheckpt { filter_type: 0, stop_hash: tip, headers: Vec::new() };
    assert_eq!(peer.wait_for(Command::CFCHECKPT), Message::CFCheckpt(checkpoint));

    peer.send(&Message::FilterLoad(FilterLoad { data: vec![0xff; 8], hash_funcs: 1, tweak: 0, flags: 0 }));
    peer.send(&Message::FilterAdd(vec![1; 520]));
    peer.send(&Message::GetData(vec![Inv::block(InvType::FILTERED_BLOCK, tip)]));
    let Message::MerkleBlock(merkle) = peer.wait_for(Command::MERKLEBLOCK) else { panic!() };
    assert_eq!((merkle.header, merkle.tx_count), (*block.header(), 1));
    peer.send(&Message::FilterClear);
    peer.send(&Message::GetBlocks(Locator { hashes: vec![hashes[0]], stop: BlockHash::ZERO }));
    let Message::Inv(inventory) = peer.wait_for(Command::INV) else { panic!() };
    assert_eq!(inventory.len(), BLOCKS);
    let unknown = Inv { kind: InvType::WITNESS_TX, hash: [1; 32] };
    peer.send(&Message::GetData(vec![unknown]));
    assert_eq!(peer.wait_for(Command::NOTFOUND), Message::NotFound(vec![unknown]));

    let v4 = TimedAddress {
        time: 1,
        services: Services::NETWORK,
        endpoint: Endpoint::new(NetAddr::Ipv4([8, 8, 8, 8].into()), 1),
    };
    let onion = TimedAddress { endpoint: Endpoint::new(NetAddr::TorV3([3; 32]), 8333), ..v4 };
    for message in [
        Message::Addr(vec![v4; 2]),
        Message::AddrV2(vec![v4, onion]),
        Message::Inv(vec![Inv { kind: InvType::WTX, hash: [2; 32] }]),
        Message::NotFound(vec![unknown]),
        Message::Headers(vec![*block.header()]),
        Message::CmpctBlock(Box::new(CompactBlock::new(&block, 3))),
        Message::Block(blocks[0].clone()),
        Message::GetAddr,
        Message::MemPool,
        Message::Pong(Some(1)),
        Message::SendHeaders,
        Message::FeeFilter(Amount(1000)),
        Message::Unknown { command: Command::new("reject").unwrap(), payload: vec![1, 2, 3] },
    ] {
        peer.send(&message);
    }
    peer.ping(99);
}

/// The session id that both sides compute, or none.
fn check_info(daemon: &mut Daemon, peer: &Peer) {
    let info = peer_info(daemon);
    assert_eq!(info["transport_protocol_type"], json!(peer.transport.kind().to_string()));
    let id = peer.transport.session_id().map(|id| to_hex(&id)).unwrap_or_default();
    assert_eq!(info["session_id"], json!(id));
    assert_eq!(info["subver"], json!("/Lydian:test/"));
    assert!(info["bytesrecv_per_msg"]["feature"].is_u64() && info["bytesrecv_per_msg"]["*other*"].is_u64(), "{info}");
}

#[test]
fn core_understands_us_and_we_core() {
    let port = free_port();
    let Some(mut daemon) = or_skip("core_understands_us_and_we_core", start(port, true)) else { return };
    daemon.call("generatetodescriptor", &json!([BLOCKS, "raw(51)"])).unwrap();
    daemon.call("syncwithvalidationinterfacequeue", &json!([])).unwrap();
    let hashes: Vec<_> = (0..=BLOCKS).map(|height| hash_of(&mut daemon, height)).collect();

    for transport in [Transport::v1(MAGIC), Transport::v2_initiator(MAGIC, secrets())] {
        let mut peer = Peer::new(connect(port), transport);
        peer.flush();
        peer.shake_hands(true);
        talk(&mut peer, &hashes);
        check_info(&mut daemon, &peer);
        drop(peer);
        wait_until_alone(&mut daemon);
    }

    // Core connects to us, and speaks what it is told to.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let ours = listener.local_addr().unwrap().to_string();
    for (v2, kind) in [(true, TransportKind::V2), (false, TransportKind::V1)] {
        daemon.call("addnode", &json!([ours, "onetry", v2])).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let mut peer = Peer::new(stream, Transport::v2_responder(MAGIC, secrets()));
        peer.shake_hands(false);
        peer.ping(5);
        assert_eq!(peer.transport.kind(), kind);
        let info = peer_info(&mut daemon);
        let id = peer.transport.session_id().map(|id| to_hex(&id)).unwrap_or_default();
        assert_eq!((&info["transport_protocol_type"], &info["session_id"]), (&json!(kind.to_string()), &json!(id)));
        drop(peer);
        wait_until_alone(&mut daemon);
    }

    let log = daemon.log_tail(4 << 20).unwrap();
    for sign in ["Exception '", "Misbehaving", "transport error", "Header error", "disconnecting peer"] {
        // That we close the connection is no complaint.
        let line = log.lines().find(|line| line.contains(sign) && !line.contains("socket closed"));
        assert_eq!(line, None, "Core complains");
    }
}

/// A Core that speaks v1 alone closes without a byte, which says: try again with v1.
#[test]
fn core_without_v2_makes_us_try_v1() {
    let port = free_port();
    let Some(mut daemon) = or_skip("core_without_v2_makes_us_try_v1", start(port, false)) else { return };
    let mut peer = Peer::new(connect(port), Transport::v2_initiator(MAGIC, secrets()));
    peer.flush();
    assert!(peer.next().is_none());
    assert!(peer.transport.should_reconnect_v1());
    let mut peer = Peer::new(connect(port), Transport::v1(MAGIC));
    peer.send(&Message::Version(Box::new(version())));
    peer.wait_for(Command::VERACK);
    assert_eq!(peer_info(&mut daemon)["transport_protocol_type"], json!("v1"));
}
