//! Tests against Bitcoin Core's daemon on a loopback connection, in v1 and v2: it understands all messages we send, we
//! understand all it sends, and it fails to read exactly the payloads that we fail to read.
//!
//! Settings: `LYDIAN_JUDGE_SECONDS` limits the duration of that comparison (default 5), `LYDIAN_SEED` selects its cases
//! (default 1).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use lydian_oracle::{Daemon, free_port, or_skip};
use lydian_primitives::{Amount, BlockHash, Header, RawBlock, hex, to_hex};
use lydian_wire::compact::PrefilledTransaction;
use lydian_wire::message::{
    CFCheckpt, CMPCTBLOCKS_VERSION, Feature, FilterLoad, FilterRange, GetCFCheckpt, MIN_PEER_PROTO_VERSION,
    PROTOCOL_VERSION, SendCmpct, SendTxRcncl, block_size,
};
use lydian_wire::{
    BlockTransactions, BlockTransactionsRequest, Command, CompactBlock, DecodeError, Endpoint, Inv, InvType, Locator,
    Message, NetAddr, Penalty, Services, Subnet, TimedAddress, Transport, TransportKind, V2Secrets, Version,
};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
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

    /// The next message, or `None` when the connection ends.
    fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(received) = self.transport.next_message() {
                let message = Message::decode_owned(&received.command, received.payload).unwrap();
                // To peers with an old version Core sends the final alert.
                let known = !matches!(message, Message::Unknown { command, .. } if command.as_str() != "alert");
                assert!(known, "{message:?}");
                if let Message::Ping(nonce) = message {
                    self.transport.send_message(&Message::Pong(nonce));
                    let out = self.transport.take_output();
                    let _ = self.stream.write_all(&out);
                }
                return Some(message);
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                // The process was stopped and goes on.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(count) => self.transport.receive(&buffer[..count]).unwrap(),
                Err(error) => panic!("{error}"),
            }
            let out = self.transport.take_output();
            let _ = self.stream.write_all(&out);
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

    /// Exchanges `version` and `verack`, and the messages allowed between them.
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

    /// Whether a ping is answered; false if the connection ends first.
    fn answers(&mut self, nonce: u64) -> bool {
        self.transport.send_message(&Message::Ping(Some(nonce)));
        let out = self.transport.take_output();
        // Core may already have closed the connection.
        let _ = self.stream.write_all(&out);
        loop {
            match self.next() {
                Some(Message::Pong(answer)) if answer == Some(nonce) => return true,
                Some(_) => {}
                None => return false,
            }
        }
    }

    fn ping(&mut self, nonce: u64) {
        self.send(&Message::Ping(Some(nonce)));
        while self.wait_for(Command::PONG) != Message::Pong(Some(nonce)) {}
    }
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

/// Core's information about its only peer.
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

/// Sends every message that Core answers and checks the answer; then every other, so that Core's log would show one
/// that it cannot read.
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

/// Compares the session id that both sides computed, if any.
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
    let port = free_port().unwrap();
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

    // Core connects to us with the requested transport.
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
        // A connection closed by us is not a complaint.
        let line = log.lines().find(|line| line.contains(sign) && !line.contains("socket closed"));
        assert_eq!(line, None, "Core complains");
    }
}

/// A Core that supports only v1 closes the connection without sending a byte, which means: retry with v1.
#[test]
fn core_without_v2_makes_us_try_v1() {
    let port = free_port().unwrap();
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

/// A generator that needs no crate: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    /// Changes, cuts or extends the payload, often near the beginning, where the counts are.
    fn damage(&mut self, payload: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let bytes = [0, 1, 2, 3, 0x7f, 0xfc, 0xfd, 0xfe, 0xff, u8::try_from(self.below(256)).unwrap()];
            let byte = bytes[self.below(bytes.len())];
            let near = [8, 48, 100, usize::MAX][self.below(4)].min(payload.len() + 1);
            let at = self.below(near);
            match self.below(6) {
                0 => payload.truncate(at),
                1 => payload.insert(at, byte),
                2 => payload.push(byte),
                3 if at < payload.len() => drop(payload.remove(at)),
                _ => payload.iter_mut().skip(at).take(1).for_each(|place| *place = byte),
            }
        }
    }
}

/// Messages whose payload Core reads after the handshake, with lists of several entries.
fn readable(block: &[u8], header: Header, tx: &[u8]) -> Vec<Message> {
    let one =
        TimedAddress { time: 1, services: Services(9), endpoint: Endpoint::new(NetAddr::Ipv4([8, 8, 8, 8].into()), 1) };
    let others = [
        NetAddr::TorV3([3; 32]),
        NetAddr::I2p([4; 32]),
        NetAddr::Cjdns("fc00::1".parse().unwrap()),
        NetAddr::UNSPECIFIED,
    ];
    let others = others.map(|addr| TimedAddress { endpoint: Endpoint::new(addr, 8333), ..one });
    let inv = |kind| vec![Inv { kind, hash: [2; 32] }; 3];
    let locator = Locator { hashes: vec![BlockHash([9; 32]); 3], stop: BlockHash([1; 32]) };
    let range = FilterRange { filter_type: 0, start_height: 1, stop_hash: BlockHash([1; 32]) };
    let prefilled = |skipped| PrefilledTransaction { skipped, tx: tx.to_vec() };
    let compact =
        CompactBlock { header, nonce: 1, short_ids: vec![1, 2, 3], prefilled: vec![prefilled(0), prefilled(1)] };
    vec![
        Message::Addr(vec![one; 3]),
        Message::AddrV2([&[one][..], &others].concat()),
        Message::Inv(inv(InvType::WTX)),
        Message::GetData(inv(InvType::WITNESS_TX)),
        Message::NotFound(inv(InvType::TX)),
        Message::GetBlocks(locator.clone()),
        Message::GetHeaders(locator),
        Message::Headers(vec![header; 2]),
        Message::Tx(tx.to_vec()),
        Message::Block(block.to_vec()),
        Message::CmpctBlock(Box::new(compact)),
        Message::GetBlockTxn(BlockTransactionsRequest { block_hash: BlockHash([1; 32]), indexes: vec![0, 3, 300] }),
        Message::BlockTxn(BlockTransactions { block_hash: BlockHash([1; 32]), txs: vec![tx.to_vec(); 2] }),
        Message::GetCFilters(range),
        Message::GetCFHeaders(range),
        Message::GetCFCheckpt(GetCFCheckpt { filter_type: 0, stop_hash: BlockHash([1; 32]) }),
        Message::FilterLoad(FilterLoad { data: vec![1; 8], hash_funcs: 3, tweak: 4, flags: 1 }),
        Message::FilterAdd(vec![1; 20]),
        Message::FeeFilter(Amount(1000)),
        Message::SendCmpct(SendCmpct { high_bandwidth: false, version: CMPCTBLOCKS_VERSION }),
        Message::Pong(Some(1)),
    ]
}

#[allow(clippy::disallowed_methods, reason = "the time of a test")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// The part of Core's log written from now on.
struct Log(std::fs::File);

impl Log {
    fn new(daemon: &Daemon) -> Log {
        #[allow(clippy::disallowed_methods, reason = "tests only: Core's own log")]
        let mut file = std::fs::File::open(daemon.chain_folder().join("debug.log")).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        Log(file)
    }

    fn news(&mut self) -> String {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Whether we fail to decode the payload, and what Core must then do with the peer.
fn our_verdict(command: Command, payload: &[u8]) -> Option<Penalty> {
    match Message::decode(&command, payload) {
        Ok(Message::Block(bytes)) => block_size(&bytes).err().map(|_| Penalty::Ignore),
        Ok(_) => None,
        Err(DecodeError::TooMany { command: Command::NOTFOUND, .. }) => None,
        Err(error) => Some(error.penalty()),
    }
}

/// Thousands of damaged payloads: Core throws exactly for those that we call malformed, and ends the connection where
/// we expect it.
/// checklist: 77, 85
#[test]
fn core_fails_to_read_what_we_fail_to_read() {
    const ROUNDS_MIN: u64 = 100;
    let limit = Duration::from_secs(setting("LYDIAN_JUDGE_SECONDS", 5));
    let port = free_port().unwrap();
    let Some(mut daemon) = or_skip("core_fails_to_read_what_we_fail_to_read", start(port, true)) else { return };
    daemon.call("generatetodescriptor", &json!([1, "raw(51)"])).unwrap();
    let tip = hash_of(&mut daemon, 1);
    let text = daemon.call("getblock", &json!([tip.to_string(), 0])).unwrap();
    let bytes = hex(text.as_str().unwrap()).unwrap();
    let block = RawBlock::new(bytes.clone()).parse().unwrap();
    let samples = readable(&bytes, *block.header(), block.tx(0).bytes());
    let mut log = Log::new(&daemon);
    let mut random = Random(setting("LYDIAN_SEED", 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut peer: Option<Peer> = None;
    let (mut failed, mut ended) = (0, 0);
    let start = now();
    for round in (0..).take_while(|round| *round < ROUNDS_MIN || start.elapsed() < limit) {
        let mut open = peer.take().unwrap_or_else(|| {
            let mut peer = Peer::new(connect(port), Transport::v1(MAGIC));
            peer.shake_hands(true);
            // Without it, Core does not process compact blocks.
            peer.send(&Message::SendCmpct(SendCmpct { high_bandwidth: false, version: CMPCTBLOCKS_VERSION }));
            peer.ping(u64::MAX);
            peer
        });
        log.news();
        let sample = &samples[random.below(samples.len())];
        let (command, mut payload) = (sample.command(), sample.payload());
        random.damage(&mut payload);
        open.transport.send(command, &payload);
        open.flush();
        let answered = open.answers(round + 1);
        let news = log.news();
        let threw = news.contains("Exception '");
        let ours = our_verdict(command, &payload);
        let read = Message::decode(&command, &payload).map(|_| ());
        let about = || format!("round {round}: {command} {} ours {read:?}, Core:\n{news}", to_hex(&payload));
        assert_eq!(threw, ours == Some(Penalty::Ignore), "{}", about());
        assert!(!answered || matches!(ours, None | Some(Penalty::Ignore)), "{}", about());
        failed += u32::from(threw);
        ended += u32::from(!answered);
        peer = answered.then_some(open);
    }
    assert!(failed > 10 && ended > 3, "{failed} {ended}");
}

/// The same for `version`, each on its own connection. A valid one follows, which shows whether Core could read the
/// first.
#[test]
fn core_fails_to_read_the_versions_that_we_fail_to_read() {
    const ROUNDS: u64 = 60;
    let port = free_port().unwrap();
    let test = "core_fails_to_read_the_versions_that_we_fail_to_read";
    let Some(daemon) = or_skip(test, start(port, true)) else { return };
    let mut log = Log::new(&daemon);
    let mut random = Random(0xfedc_ba98_7654_3211);
    let mut failed = 0;
    for round in 0..ROUNDS {
        let mut payload = Message::Version(Box::new(version())).payload();
        random.damage(&mut payload);
        let mut peer = Peer::new(connect(port), Transport::v1(MAGIC));
        log.news();
        peer.transport.send(Command::VERSION, &payload);
        peer.transport.send_message(&Message::Version(Box::new(version())));
        peer.transport.send_message(&Message::Verack);
        peer.flush();
        let answered = peer.answers(round + 1);
        let news = log.news();
        let ours = Message::decode(&Command::VERSION, &payload);
        let about = || format!("round {round}: {} ours {ours:?}, Core:\n{news}", to_hex(&payload));
        assert_eq!(news.contains("Exception '"), ours.is_err(), "{}", about());
        let obsolete = matches!(&ours, Ok(Message::Version(read)) if read.version < MIN_PEER_PROTO_VERSION);
        assert_eq!(answered, !obsolete, "{}", about());
        failed += u32::from(ours.is_err());
    }
    assert!(failed > 10, "{failed}");
}

/// Which texts Core accepts as an address or a subnet, and how it prints them.
#[test]
fn core_reads_and_prints_addresses_as_we_do() {
    let test = "core_reads_and_prints_addresses_as_we_do";
    let Some(mut daemon) = or_skip(test, Daemon::start(&[])) else { return };
    let onion = "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion";
    let i2p = "UKEU3K5OYCGAAUNEQGTNVSELMT4YEMVOILKLN7JPVAMVFX7DNKDQ.b32.I2P";
    let texts = [
        "1.2.3.4",
        "127.1",
        "127.0x10",
        "0x7f.010.1",
        "010.0.0.1",
        "08.1.1.1",
        "4294967295",
        "4294967296",
        "16909060",
        "1.2.65535",
        "1.2.65536",
        "1.256.1",
        "256.1.1.1",
        "1.2.3.4.5",
        "1.2.3.",
        ".1.2.3",
        "1..3",
        "0x",
        "0x.1.1.1",
        "+1.2.3.4",
        "-1.2.3.4",
        "1.2.3.4 ",
        " 1.2.3.4",
        "0.0.0.0",
        "255.255.255.255",
        "[1.2.3.4]",
        "[::1]",
        "::1",
        "::",
        "1::",
        "::ffff:1.2.3.4",
        "::1.2.3.4",
        "64:ff9b::1.2.3.4",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7::",
        "::2:3:4:5:6:7:8",
        "1:0:0:2:0:0:0:3",
        "1:0:0:2:3:0:0:4",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "12345::",
        "1:::2",
        "g::1",
        "2001:db8::1",
        "fe80::1",
        "FD00::ABCD",
        "fd87:d87e:eb43:edb1:8e4:3588:e546:35ca",
        "fd6b:88c0:8724:edb1:8e4:3588:e546:35ca",
        "fc00::1",
        onion,
        i2p,
        "x.onion",
        "1.2.3.4/24",
        "1.2.3.4/0",
        "1.2.3.4/32",
        "1.2.3.4/33",
        "1.2.3.4/-1",
        "1.2.3.4/+8",
        "1.2.3.4/ 8",
        "1.2.3.4/08",
        "1.2.3.4/008",
        "1.2.3.4/",
        "/8",
        "1.2.3.4/255.255.0.0",
        "1.2.3.4/255.0.255.0",
        "1.2.3.4/255.255",
        "1.2.3.4/0.0.0.0",
        "1.2.3.4/ffff::",
        "::1/ffff::",
        "::1/ffff:0:ffff::",
        "::1/128",
        "::1/129",
        "2a00::1/47",
        "::ffff:1.2.3.4/16",
        "[2a00::1]/32",
        "[2a00::1/32]",
        "1.2.3.4/8/8",
        "256",
        "1.2.3.4:80",
    ];
    let onion_net = format!("{onion}/8");
    for text in texts.into_iter().chain([onion_net.as_str()]) {
        let banned = daemon.call("setban", &json!([text, "add"])).is_ok();
        let list = daemon.call("listbanned", &json!([])).unwrap();
        daemon.call("clearbanned", &json!([])).unwrap();
        // Core refuses single addresses that are not valid.
        let ours = if text.contains('/') {
            text.parse::<Subnet>().ok()
        } else {
            text.parse::<NetAddr>().ok().filter(NetAddr::is_valid).and_then(Subnet::single)
        };
        let printed = list[0]["address"].as_str().map(str::to_owned);
        assert_eq!((banned, printed), (ours.is_some(), ours.map(|subnet| subnet.to_string())), "{text}");
    }
}
