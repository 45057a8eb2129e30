//! Sends the same messages to Bitcoin Core and to our [`Peer`] and compares the answers, their order, and the end of
//! the connection.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use lydian_hash::sha256d;
use lydian_oracle::{Daemon, or_skip};
use lydian_p2p::bans::DEFAULT_BAN_TIME_S;
use lydian_p2p::peer::{Connection, ConnectionKind, Context, Event, Local, Permissions, Punishment};
use lydian_p2p::{Bans, Moment, Peer, UnixTime};
use lydian_primitives::BlockHash;
use lydian_wire::message::{Feature, Message, PROTOCOL_VERSION, SendCmpct, Version};
use lydian_wire::{Command, Endpoint, Inv, InvType, Locator, NetAddr, Services, TimedAddress};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];
/// After this time of silence, Core's answers are complete.
const QUIET: Duration = Duration::from_millis(300);
/// Messages that Core sends because of its clock and chain, not as answers.
const UNASKED: [&str; 4] = ["ping", "getheaders", "sendheaders", "addr"];

/// The number of scenarios in which Core disconnects, as a check that there are any.
const ENDS: usize = 26;

type Said = (Vec<String>, bool);
type Raw = (Command, Vec<u8>);

/// checklist: 85
#[test]
fn core_and_we_answer_the_same() {
    let port = lydian_oracle::free_port().unwrap();
    let bind = format!("-bind=127.0.0.1:{port}");
    let options = ["-listen=1", &bind, "-blocksonly=1", "-peerbloomfilters=0", "-v2transport=0", "-listenonion=0"];
    let Some(core) = or_skip("handshakes with Core", Daemon::start(&options)) else { return };
    let mut ends = 0;
    // Eight at a time, because most of the time is spent waiting.
    for some in scenarios().chunks(8) {
        let ask = |messages: &Vec<Raw>| {
            let ours = ask_ours(messages);
            let mut said = ask_core(port, messages, QUIET);
            // On a busy machine, Core may be silent because it is not scheduled.
            for factor in [10, 50] {
                if said != ours {
                    said = ask_core(port, messages, factor * QUIET);
                }
            }
            (ours, said)
        };
        let answers: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|(_, messages)| scope.spawn(move || ask(messages))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for ((name, _), (ours, core_said)) in some.iter().zip(answers) {
            assert_eq!(ours, core_said, "{name} (ours left, Core's right)");
            ends += usize::from(core_said.1);
        }
    }
    assert_eq!(ends, ENDS, "connections that Core ended");
    drop(core);
}

fn ask_core(port: u16, messages: &[Raw], quiet: Duration) -> Said {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(quiet)).unwrap();
    let mut received = Vec::new();
    let mut is_over = false;
    for (command, payload) in messages {
        let mut frame = MAGIC.to_vec();
        frame.extend_from_slice(&command.to_wire());
        frame.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        frame.extend_from_slice(&sha256d(payload)[..4]);
        frame.extend_from_slice(payload);
        // The other side may have disconnected after an earlier message.
        is_over |= stream.write_all(&frame).is_err();
    }
    let mut buffer = [0; 4096];
    while !is_over {
        match stream.read(&mut buffer) {
            Ok(0) => is_over = true,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(_) => is_over = true,
        }
    }
    let mut said = Vec::new();
    let mut rest = &received[..];
    while let Some((header, behind)) = rest.split_first_chunk::<24>() {
        let command = Command::from_wire(*header[4..].first_chunk().unwrap()).unwrap();
        let size = u32::from_le_bytes(*header[16..].first_chunk().unwrap());
        rest = &behind[usize::try_from(size).unwrap().min(behind.len())..];
        said.push(command.as_str().to_owned());
    }
    said.retain(|name| !UNASKED.contains(&name.as_str()));
    (said, is_over)
}

fn ask_ours(messages: &[Raw]) -> Said {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let local = Local {
        services: Services::NETWORK | Services::WITNESS | Services::NETWORK_LIMITED,
        user_agent: b"/Lydian:0.1.0/".to_vec(),
        ignores_transactions: true,
        peer_timeout: Duration::from_secs(60),
        own: lydian_p2p::local_address::LocalAddresses::default(),
    };
    let connection = Connection {
        kind: ConnectionKind::Inbound,
        endpoint: Endpoint::new(NetAddr::Ipv4(Ipv4Addr::LOCALHOST), 5),
        services: Services::NONE,
        permissions: Permissions::NONE,
        is_proxied: false,
        is_onion: false,
        nonce: 6,
    };
    let now = Moment::new(Duration::ZERO, UnixTime(1_790_000_000));
    let mut context = Context {
        local: &local,
        now,
        best_height: 0,
        is_near_tip: false,
        is_initial_block_download: true,
        own_nonces: &BTreeSet::new(),
        bans: &Bans::new(DEFAULT_BAN_TIME_S, &mut random.clone()),
        reachable: &BTreeSet::new(),
        random: &mut random,
    };
    let mut peer = Peer::new(connection, now);
    let mut events = Vec::new();
    for (command, payload) in messages {
        peer.receive(*command, payload.clone(), &mut context, &mut events);
        let is_misbehaviour = events.iter().any(|event| matches!(event, Event::Misbehaving(_)));
        if is_misbehaviour && peer.punishment() != Punishment::None {
            break;
        }
    }
    let is_end = |event: &Event| matches!(event, Event::Disconnect(_) | Event::Misbehaving(_));
    let is_over = events.iter().any(is_end);
    let name = |event: &Event| match event {
        Event::Send(message) => Some(message.command().as_str().to_owned()),
        _ => None,
    };
    (events.iter().filter_map(name).collect(), is_over)
}

fn raw(message: &Message) -> Raw {
    (message.command(), message.payload())
}

fn version(number: i32) -> Raw {
    raw(&Message::Version(Box::new(Version {
        version: number,
        services: Services::NETWORK | Services::WITNESS,
        time: 1_790_000_000,
        receiver_services: Services::NONE,
        receiver: Endpoint::default(),
        nonce: 77,
        user_agent: b"/test/".to_vec(),
        start_height: 0,
        relay: true,
    })))
}

fn feature(id: &[u8]) -> Raw {
    raw(&Message::Feature(Feature { id: id.to_vec(), data: vec![1] }))
}

fn cut(mut message: Raw, size: usize) -> Raw {
    message.1.truncate(size);
    message
}

/// Messages before, between and after `version` and `verack`: complete, truncated, and above their limits.
fn scenarios() -> Vec<(String, Vec<Raw>)> {
    let hello = version(PROTOCOL_VERSION);
    let verack = raw(&Message::Verack);
    let ping = raw(&Message::Ping(Some(3)));
    let mut all: Vec<(String, Vec<Raw>)> = Vec::new();
    let mut add = |name: &str, messages: Vec<Raw>| all.push((name.to_owned(), messages));
    add("a handshake", vec![hello.clone(), verack.clone(), ping.clone()]);
    add("verack first", vec![verack.clone(), hello.clone(), ping.clone(), verack.clone(), ping.clone()]);
    add("version twice", vec![hello.clone(), hello.clone(), verack.clone(), hello.clone(), ping.clone()]);
    add("a cut version, then a whole one", vec![cut(version(70016), 45), hello.clone(), verack.clone()]);
    add("a version of 46 bytes", vec![cut(hello.clone(), 46), verack.clone(), ping.clone()]);
    for number in [0, 31799, 31800, 60000, 60001, 70014, 70015, 70016, 70017, 80000] {
        // Core sends peers with versions in between the final alert, which we do not.
        if !(31800..=70012).contains(&number) {
            add(&format!("version {number}"), vec![version(number), verack.clone(), ping.clone()]);
        }
    }
    let early = [
        raw(&Message::WtxidRelay),
        raw(&Message::SendAddrV2),
        raw(&Message::SendHeaders),
        raw(&Message::SendCmpct(SendCmpct { high_bandwidth: true, version: 2 })),
        (Command::SENDCMPCT, vec![2, 2, 0, 0, 0, 0, 0, 0, 0]),
        (Command::SENDCMPCT, vec![2]),
        feature(b"any feature"),
        feature(b"abc"),
        feature(b"abcd"),
        feature(&[b'x'; 80]),
        feature(&[b'x'; 81]),
        (Command::FEATURE, vec![4, b'a']),
        (Command::SENDTXRCNCL, vec![0; 3]),
        raw(&Message::GetAddr),
        raw(&Message::MemPool),
        raw(&Message::FilterClear),
        (Command::FILTERLOAD, vec![1]),
        (Command::FILTERADD, vec![1]),
        (Command::TX, vec![9]),
        (Command::PING, vec![1, 2]),
        (Command::PONG, vec![1, 2]),
        (Command::ADDR, vec![0xff]),
        (Command::new("nonsense").unwrap(), vec![1, 2, 3]),
        (Command::new("reject").unwrap(), vec![]),
    ];
    for (number, message) in early.iter().enumerate() {
        let name = |when: &str| format!("{} ({number}) {when}", message.0.as_str());
        add(&name("before version"), vec![message.clone(), hello.clone(), verack.clone(), ping.clone()]);
        add(
            &name("before verack"),
            vec![hello.clone(), message.clone(), message.clone(), verack.clone(), ping.clone()],
        );
        add(&name("after verack"), vec![hello.clone(), verack.clone(), message.clone(), ping.clone()]);
    }
    add("feature of an old version", vec![version(70016), feature(b"any feature"), verack.clone()]);
    add("wtxidrelay of an old version", vec![version(70015), raw(&Message::WtxidRelay), verack.clone(), ping.clone()]);
    let address = TimedAddress { time: 1, services: Services::NETWORK, endpoint: Endpoint::default() };
    let inv = Inv { kind: InvType(77), hash: [7; 32] };
    let locator =
        |count| Message::GetHeaders(Locator { hashes: vec![BlockHash::default(); count], stop: BlockHash::default() });
    for (name, message) in [
        ("1000 addresses", Message::Addr(vec![address; 1000])),
        ("1001 addresses", Message::Addr(vec![address; 1001])),
        ("1001 addresses in the new form", Message::AddrV2(vec![address; 1001])),
        ("50000 announcements", Message::Inv(vec![inv; 50_000])),
        ("50001 announcements", Message::Inv(vec![inv; 50_001])),
        ("50001 requests", Message::GetData(vec![inv; 50_001])),
        ("a locator of 102", locator(102)),
    ] {
        add(name, vec![hello.clone(), verack.clone(), raw(&message), ping.clone()]);
    }
    all
}
