use super::cipher::{KEY_SIZE, LENGTH_SIZE, TAG_SIZE, TERMINATOR_SIZE};
use super::*;
use crate::limits::{GARBAGE_SIZE_MAX, MESSAGE_SIZE_MAX, PACKET_CONTENTS_SIZE_MAX};
use proptest::collection::vec;
use proptest::prelude::*;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

fn secrets(byte: u8, garbage: usize) -> V2Secrets {
    V2Secrets::from_parts([byte; 32], [byte; 32], vec![byte; garbage]).unwrap()
}

fn v2_pair(garbage_a: usize, garbage_b: usize) -> (Transport, Transport) {
    (Transport::v2_initiator(MAGIC, secrets(1, garbage_a)), Transport::v2_responder(MAGIC, secrets(2, garbage_b)))
}

/// Exchanges bytes until neither side has output.
fn settle(a: &mut Transport, b: &mut Transport) {
    loop {
        let (from_a, from_b) = (a.take_output(), b.take_output());
        if from_a.is_empty() && from_b.is_empty() {
            return;
        }
        b.receive(&from_a).unwrap();
        a.receive(&from_b).unwrap();
    }
}

fn connected() -> (Transport, Transport) {
    let (mut a, mut b) = v2_pair(10, 20);
    settle(&mut a, &mut b);
    (a, b)
}

fn frame(command: Command, payload: &[u8]) -> Vec<u8> {
    let mut sender = Transport::v1(MAGIC);
    sender.send(command, payload);
    sender.take_output()
}

fn messages(transport: &mut Transport) -> Vec<(Command, Vec<u8>)> {
    std::iter::from_fn(|| transport.next_message()).map(|one| (one.command, one.payload)).collect()
}

fn some_messages() -> Vec<(Command, Vec<u8>)> {
    vec![
        (Command::VERSION, vec![1; 102]),
        (Command::VERACK, Vec::new()),
        (Command::BLOCK, (0..200_000u32).map(|index| index.to_le_bytes()[1]).collect()),
        (Command::new("new").unwrap(), vec![9; 3]),
        (Command::PING, vec![0; 8]),
    ]
}

#[test]
fn frames_are_those_of_the_protocol() {
    let text = lydian_primitives::to_hex(&frame(Command::VERACK, &[]));
    assert_eq!(text, "fabfb5da76657261636b000000000000000000005df6e0e2");
    let mut known = Transport::v1(MAGIC);
    known.send_with_checksum(Command::PING, &[7; 8], checksum(&[7; 8]));
    assert_eq!(known.take_output(), frame(Command::PING, &[7; 8]));
    let mut typed = Transport::v1(MAGIC);
    typed.send_message(&Message::Ping(Some(0x0707_0707_0707_0707)));
    assert_eq!(typed.take_output(), frame(Command::PING, &[7; 8]));
}

#[test]
fn v1_drops_what_is_damaged_and_goes_on() {
    let mut receiver = Transport::v1(MAGIC);
    let mut wrong_checksum = frame(Command::PING, &[7; 8]);
    wrong_checksum[24] ^= 1;
    let mut wrong_name = frame(Command::PING, &[7; 8]);
    wrong_name[10] = b'x';
    let bytes = [wrong_checksum, wrong_name, frame(Command::PONG, &[1])].concat();
    receiver.receive(&bytes).unwrap();
    assert_eq!(messages(&mut receiver), [(Command::PONG, vec![1])]);
    assert_eq!(receiver.rejected_bytes(), 64);
    assert_eq!(receiver.dropped(), Dropped { count: 2, bytes: 64 });
    assert_eq!(
        (receiver.kind(), receiver.session_id(), receiver.should_reconnect_v1()),
        (TransportKind::V1, None, false)
    );
}

#[test]
fn v1_of_another_network_ends_the_connection() {
    let mut receiver = Transport::v1(MAGIC);
    let mut other = frame(Command::PING, &[7; 8]);
    other[3] ^= 1;
    let bytes = [frame(Command::PONG, &[]), other].concat();
    assert_eq!(receiver.receive(&bytes), Err(TransportError::WrongMagic { magic: [0xfa, 0xbf, 0xb5, 0xdb] }));
    assert_eq!(receiver.receive(&[]), Err(TransportError::Failed));
    assert_eq!(messages(&mut receiver).len(), 1);
    // The magic alone does not decide: the header is checked when it is complete.
    let mut receiver = Transport::v1(MAGIC);
    assert_eq!(receiver.receive(&[0; 23]), Ok(()));
    assert!(receiver.receive(&[0]).is_err());
}

/// limit: MESSAGE_SIZE_MAX at
/// limit: MESSAGE_SIZE_MAX above
/// checklist: 85, 74
#[test]
fn v1_messages_have_a_limit() {
    let mut receiver = Transport::v1(MAGIC);
    receiver.receive(&frame(Command::BLOCK, &vec![1; MESSAGE_SIZE_MAX])).unwrap();
    assert_eq!(messages(&mut receiver)[0].1.len(), MESSAGE_SIZE_MAX);
    for size in [MESSAGE_SIZE_MAX + 1, u32::MAX as usize] {
        let mut header = frame(Command::BLOCK, &[]);
        header[16..20].copy_from_slice(&u32::try_from(size).unwrap().to_le_bytes());
        let mut receiver = Transport::v1(MAGIC);
        assert_eq!(
            receiver.receive(&header),
            Err(TransportError::MessageTooLarge { size, command: Some(Command::BLOCK) })
        );
        assert_eq!(receiver.buffered_size(), 24, "nothing is held for it");
    }
}

/// CVE-2015-3641: a declared size costs no memory, received bytes cost at most twice their size.
/// checklist: 66
#[test]
fn buffers_grow_with_bytes_received() {
    let payload = vec![1; 1_000_000];
    let bytes = frame(Command::BLOCK, &payload);
    let (mut a, mut b) = connected();
    a.send(Command::BLOCK, &payload);
    let packet = a.take_output();
    let mut v1 = Transport::v1(MAGIC);
    for (receiver, bytes) in [(&mut v1, bytes), (&mut b, packet)] {
        let mut received = 0;
        for chunk in bytes[..bytes.len() - 1].chunks(1000) {
            let allowed = receiver.buffered_size() + receiver.growth(chunk.len());
            receiver.receive(chunk).unwrap();
            received += chunk.len();
            assert!(receiver.buffered_size() <= allowed, "{received}: {} of {allowed}", receiver.buffered_size());
            assert!(receiver.buffered_size() <= 2 * received + 64, "{received}: {}", receiver.buffered_size());
        }
        receiver.receive(&bytes[bytes.len() - 1..]).unwrap();
        assert_eq!(messages(receiver), [(Command::BLOCK, payload.clone())]);
        assert!(receiver.buffered_size() <= 64);
    }
}

#[test]
fn v2_exchanges_messages_both_ways() {
    let (mut a, mut b) = v2_pair(0, GARBAGE_SIZE_MAX);
    assert_eq!((a.output_size(), b.output_size()), (KEY_SIZE, 0));
    for (command, payload) in some_messages() {
        a.send(command, &payload);
        b.send(command, &payload);
    }
    assert_eq!((a.kind(), b.kind()), (TransportKind::Detecting, TransportKind::Detecting));
    assert_eq!((a.output_size(), b.output_size()), (KEY_SIZE, 0), "messages wait for the keys");
    settle(&mut a, &mut b);
    assert_eq!(a.message_count(), 5);
    assert_eq!(a.message_bytes(), b.message_bytes());
    assert_eq!(a.message_bytes(), 5 * 20 + (13 + 102) + 13 + (1 + 200_000) + (13 + 3) + (1 + 8));
    assert_eq!(messages(&mut a), some_messages());
    assert_eq!((a.message_count(), a.message_bytes()), (0, 0));
    assert_eq!(messages(&mut b), some_messages());
    assert_eq!((a.kind(), b.kind()), (TransportKind::V2, TransportKind::V2));
    assert!(a.session_id().is_some() && a.session_id() == b.session_id());
    assert!(!a.should_reconnect_v1() && !b.should_reconnect_v1());
}

#[test]
fn every_command_arrives_under_its_own_name() {
    let (mut a, mut b) = connected();
    let names: Vec<Command> = Command::ALL.iter().copied().chain([Command::new("twelve_chars").unwrap()]).collect();
    for command in &names {
        a.send(*command, &[1, 2]);
    }
    settle(&mut a, &mut b);
    let sizes: Vec<_> =
        std::iter::from_fn(|| b.next_message()).map(|one| (one.command, one.payload, one.raw_size)).collect();
    let long = [
        Command::VERSION,
        Command::VERACK,
        Command::SENDADDRV2,
        Command::GETADDR,
        Command::SENDHEADERS,
        Command::WTXIDRELAY,
        Command::SENDTXRCNCL,
        names[36],
    ];
    for ((command, payload, raw_size), name) in sizes.into_iter().zip(names) {
        // BIP-0324: messages without a short id are sent as id 0 and twelve characters.
        let prefix = if long.contains(&name) { 13 } else { 1 };
        assert_eq!((command, payload, raw_size), (name, vec![1, 2], 3 + 1 + prefix + 2 + 16));
    }
}

#[test]
fn a_responder_speaks_v1_to_who_speaks_v1() {
    for cut in 0..30 {
        let mut v1 = Transport::v1(MAGIC);
        let mut v2 = Transport::v2_responder(MAGIC, secrets(2, 5));
        v2.send(Command::PONG, &[5]);
        v1.send(Command::VERSION, &[1; 100]);
        let bytes = v1.take_output();
        v2.receive(&bytes[..cut]).unwrap();
        assert_eq!(v2.kind(), if cut < 16 { TransportKind::Detecting } else { TransportKind::V1 }, "{cut}");
        v2.receive(&bytes[cut..]).unwrap();
        assert_eq!(messages(&mut v2), [(Command::VERSION, vec![1; 100])]);
        assert_eq!(v2.take_output(), frame(Command::PONG, &[5]), "what waited is sent as v1");
        v2.send(Command::VERACK, &[]);
        assert_eq!(v2.take_output(), frame(Command::VERACK, &[]));
        assert_eq!((v2.kind(), v2.session_id()), (TransportKind::V1, None));
    }
    // A first message other than `version` is treated as a key, and the responder sends its own key and waits for 64
    // bytes.
    let mut v2 = Transport::v2_responder(MAGIC, secrets(2, 0));
    v2.receive(&frame(Command::PING, &[1; 8])).unwrap();
    assert_eq!((v2.kind(), v2.output_size()), (TransportKind::Detecting, KEY_SIZE));
}

/// checklist: 81
#[test]
fn a_responder_knows_v1_of_another_network() {
    let mut bytes = frame(Command::VERSION, &[1; 100]);
    bytes[0] ^= 1;
    let magic = [0xfb, 0xbf, 0xb5, 0xda];
    let mut whole = Transport::v2_responder(MAGIC, secrets(2, 0));
    assert_eq!(whole.receive(&bytes), Err(TransportError::V1WrongMagic { magic }));
    let mut single = Transport::v2_responder(MAGIC, secrets(2, 0));
    let results: Vec<_> = bytes.iter().map(|byte| single.receive(&[*byte])).collect();
    assert_eq!(results.iter().position(Result::is_err), Some(15));
    // An initiator does not check for v1 in the answer: any 64 bytes are a key.
    let mut initiator = Transport::v2_initiator(MAGIC, secrets(1, 0));
    assert_eq!(initiator.receive(&bytes), Ok(()));
}

#[test]
fn an_initiator_tries_v1_when_nothing_came_back() {
    let mut a = Transport::v2_initiator(MAGIC, secrets(1, 0));
    assert!(!a.should_reconnect_v1(), "nothing was sent");
    a.take_output();
    assert!(a.should_reconnect_v1());
    a.receive(&[]).unwrap();
    assert!(a.should_reconnect_v1());
    a.receive(&[1]).unwrap();
    assert!(!a.should_reconnect_v1(), "something speaks there");
    let mut b = Transport::v2_responder(MAGIC, secrets(1, 0));
    b.receive(&[1; 20]).unwrap();
    b.take_output();
    assert!(!b.should_reconnect_v1());
}

/// The cipher state of a scripted peer.
struct Peer {
    cipher: super::cipher::Cipher,
}

impl Peer {
    /// The other side of a new responder after the key exchange. No garbage or packets are sent yet.
    fn facing_responder() -> (Peer, Transport) {
        let mut responder = Transport::v2_responder(MAGIC, secrets(2, 0));
        let (handshake, _) = secrets(1, 0).into_handshake();
        responder.receive(&handshake.our_key()).unwrap();
        let theirs = responder.take_output();
        let cipher = handshake.finish(*theirs.first_chunk().unwrap(), true, MAGIC);
        (Peer { cipher }, responder)
    }

    fn packet(&mut self, contents: &[u8], aad: &[u8], ignore: bool) -> Vec<u8> {
        let mut out = Vec::new();
        self.cipher.encrypt(&[contents], aad, ignore, &mut out);
        out
    }
}

/// limit: GARBAGE_SIZE_MAX at
/// limit: GARBAGE_SIZE_MAX above
/// checklist: 81
#[test]
fn garbage_received_has_a_limit() {
    for size in [0, 1, 15, 16, 17, GARBAGE_SIZE_MAX, GARBAGE_SIZE_MAX + 1] {
        for step in [1, 7, 10_000] {
            let (mut peer, mut responder) = Peer::facing_responder();
            let garbage = vec![9; size];
            let terminator = peer.cipher.send_terminator;
            let version = peer.packet(&[], &garbage, false);
            let bytes = [&garbage[..], &terminator, &version].concat();
            let result: Result<(), _> = bytes.chunks(step).try_for_each(|chunk| responder.receive(chunk));
            if size <= GARBAGE_SIZE_MAX {
                assert_eq!((result, responder.kind()), (Ok(()), TransportKind::V2), "{size} by {step}");
            } else {
                assert_eq!(result, Err(TransportError::MissingGarbageTerminator));
            }
        }
    }
    let (mut peer, mut responder) = Peer::facing_responder();
    peer.cipher.send_terminator[15] ^= 1;
    let bytes = [&peer.cipher.send_terminator[..], &vec![0; GARBAGE_SIZE_MAX - 1]].concat();
    assert_eq!(responder.receive(&bytes), Ok(()));
    assert_eq!(responder.receive(&[0]), Err(TransportError::MissingGarbageTerminator));
}

/// Decoys may precede the version packet and any message. The first packet, even a decoy, authenticates the garbage.
/// checklist: 81
#[test]
fn decoys_are_dropped() {
    let (mut peer, mut responder) = Peer::facing_responder();
    let terminator = peer.cipher.send_terminator;
    let mut bytes = [&[3; 40][..], &terminator].concat();
    bytes.extend(peer.packet(&[1; 300], &[3; 40], true));
    bytes.extend(peer.packet(&[], &[], true));
    assert_eq!(responder.receive(&bytes), Ok(()));
    assert_eq!(responder.kind(), TransportKind::Detecting);
    assert_eq!(responder.receive(&peer.packet(b"future version", &[], false)), Ok(()));
    assert_eq!(responder.kind(), TransportKind::V2);
    let bytes = [peer.packet(&[18, 1, 2], &[], true), peer.packet(&[18, 5, 6], &[], false)].concat();
    assert_eq!(responder.receive(&bytes), Ok(()));
    assert_eq!(messages(&mut responder), [(Command::PING, vec![5, 6])]);
    assert_eq!((responder.dropped().count, responder.rejected_bytes()), (3, 0));
    let (mut a, mut b) = connected();
    a.send_decoy(&[0; 99]);
    assert_eq!(a.output_size(), 3 + 1 + 99 + 16);
    settle(&mut a, &mut b);
    assert_eq!(messages(&mut b), []);
}

#[test]
fn garbage_that_was_changed_is_noticed() {
    let (mut peer, mut responder) = Peer::facing_responder();
    let terminator = peer.cipher.send_terminator;
    let version = peer.packet(&[], &[3; 40], false);
    let bytes = [&[3; 39][..], &[4], &terminator, &version].concat();
    assert_eq!(responder.receive(&bytes), Err(TransportError::PacketNotAuthentic { size: 0 }));
}

/// Contents without a message, with an unprintable name, or with an id out of range.
/// checklist: 85
#[test]
fn packets_without_a_name_are_dropped() {
    let (mut peer, mut responder) = Peer::facing_responder();
    let terminator = peer.cipher.send_terminator;
    let start = [&terminator[..], &peer.packet(&[], &[], false)].concat();
    responder.receive(&start).unwrap();
    let wrong: [&[u8]; 6] = [&[], &[38], &[255, 1], &[0], b"\0elevenchars", b"\0ver\0ion\0\0\0\0\0"];
    for contents in wrong {
        assert_eq!(responder.receive(&peer.packet(contents, &[], false)), Ok(()));
        assert_eq!(messages(&mut responder), [], "{contents:?}");
    }
    assert_eq!(responder.rejected_bytes(), 6 * 20 + 1 + 2 + 1 + 12 + 13);
    // Reserved ids have the empty name, and the long form may name a message that has an id.
    for (contents, name) in [
        (&[29u8, 1][..], Command::EMPTY),
        (&[36, 1], Command::EMPTY),
        (b"\0ping\0\0\0\0\0\0\0\0\x01", Command::PING),
        (&[37, 1], Command::FEATURE),
    ] {
        responder.receive(&peer.packet(contents, &[], false)).unwrap();
        assert_eq!(messages(&mut responder), [(name, vec![1])]);
    }
}

/// limit: PACKET_CONTENTS_SIZE_MAX at
/// limit: PACKET_CONTENTS_SIZE_MAX above
/// checklist: 81
#[test]
fn packets_have_a_limit() {
    let (mut a, mut b) = connected();
    let longest = Command::new("twelve_chars").unwrap();
    a.send(longest, &vec![1; MESSAGE_SIZE_MAX]);
    assert_eq!(a.output_size(), LENGTH_SIZE + 1 + PACKET_CONTENTS_SIZE_MAX + TAG_SIZE);
    settle(&mut a, &mut b);
    assert_eq!(messages(&mut b), [(longest, vec![1; MESSAGE_SIZE_MAX])]);
    a.send(longest, &vec![1; MESSAGE_SIZE_MAX + 1]);
    let packet = a.take_output();
    let size = PACKET_CONTENTS_SIZE_MAX + 1;
    assert_eq!(b.receive(&packet[..3]), Err(TransportError::PacketTooLarge { size }), "the length alone decides");
    assert_eq!(b.receive(&packet[3..]), Err(TransportError::Failed));
}

/// checklist: 81
#[test]
fn packets_that_were_changed_or_repeated_end_the_connection() {
    let change = |at: usize| {
        let (mut a, mut b) = connected();
        a.send(Command::PING, &[7; 8]);
        let mut packet = a.take_output();
        packet[at] ^= 1;
        let result = b.receive(&[&packet[..], &[0; 300]].concat());
        assert!(messages(&mut b).is_empty());
        result
    };
    for at in 3..29 {
        assert_eq!(change(at), Err(TransportError::PacketNotAuthentic { size: 9 }), "{at}");
    }
    assert!(change(0).is_err(), "another length");
    let (mut a, mut b) = connected();
    a.send(Command::PING, &[7; 8]);
    let packet = a.take_output();
    assert_eq!(b.receive(&packet), Ok(()));
    // The length of the copy decrypts to another value, and the packet assembled from it is not authentic.
    let copies = packet.repeat(MESSAGE_SIZE_MAX / packet.len() + 2);
    assert!(b.receive(&copies).is_err());
    assert_eq!(messages(&mut b).len(), 1);
}

fn feed(transport: &mut Transport, bytes: &[u8], cuts: &[usize]) -> Result<(), TransportError> {
    let mut rest = bytes;
    for cut in cuts.iter().cycle().take_while(|_| !bytes.is_empty()) {
        if rest.is_empty() {
            break;
        }
        let (front, back) = rest.split_at((*cut).clamp(1, rest.len()));
        transport.receive(front)?;
        rest = back;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn cuts_do_not_matter(
        list in vec((0usize..36, vec(any::<u8>(), 0..600)), 0..12),
        cuts in vec(1usize..700, 1..20),
        byte_by_byte: bool,
        garbage in 0..=GARBAGE_SIZE_MAX,
        decoys in vec(0usize..50, 0..5),
    ) {
        let cuts = if byte_by_byte { vec![1] } else { cuts };
        let list: Vec<(Command, Vec<u8>)> = list.into_iter().map(|(name, payload)| (Command::ALL[name], payload)).collect();
        // v1
        let bytes: Vec<u8> = list.iter().flat_map(|(command, payload)| frame(*command, payload)).collect();
        let mut receiver = Transport::v1(MAGIC);
        prop_assert_eq!(feed(&mut receiver, &bytes, &cuts), Ok(()));
        prop_assert_eq!(messages(&mut receiver), list.clone());
        // v2, with garbage and decoys
        let (mut a, mut b) = v2_pair(garbage, GARBAGE_SIZE_MAX - garbage);
        feed(&mut b, &a.take_output(), &cuts).unwrap();
        feed(&mut a, &b.take_output(), &cuts).unwrap();
        for (command, payload) in &list {
            a.send(*command, payload);
            decoys.iter().for_each(|size| a.send_decoy(&vec![1; *size]));
        }
        feed(&mut b, &a.take_output(), &cuts).unwrap();
        prop_assert_eq!(messages(&mut b), list);
        prop_assert_eq!(b.kind(), TransportKind::V2);
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..6000), cuts in vec(1usize..100, 1..5), kind in 0..4) {
        let mut receiver = match kind {
            0 => Transport::v1(MAGIC),
            1 => Transport::v2_initiator(MAGIC, secrets(1, 3)),
            2 => Transport::v2_responder(MAGIC, secrets(1, 3)),
            _ => connected().1,
        };
        let bytes = if kind == 0 { [&frame(Command::PING, &[])[..16], &bytes].concat() } else { bytes };
        let first = feed(&mut receiver, &bytes, &cuts);
        if first.is_err() {
            prop_assert_eq!(receiver.receive(&[1]), Err(TransportError::Failed));
        }
        prop_assert!(receiver.buffered_size() <= 2 * bytes.len() + GARBAGE_SIZE_MAX + TERMINATOR_SIZE + 64);
        receiver.send(Command::PING, &[1; 8]);
    }

    /// However a v1 connection is cut off or changed, the received messages are among the sent ones.
    #[test]
    fn damage_makes_no_messages(at: prop::sample::Index, value: u8, truncate: bool) {
        let list = some_messages();
        let mut bytes: Vec<u8> = list.iter().flat_map(|(command, payload)| frame(*command, payload)).collect();
        let at = at.index(bytes.len());
        if truncate { bytes.truncate(at) } else { bytes[at] = value }
        let mut receiver = Transport::v1(MAGIC);
        let _ = receiver.receive(&bytes);
        for received in messages(&mut receiver) {
            // The name is not covered by the checksum.
            prop_assert!(list.iter().any(|(_, payload)| *payload == received.1));
        }
    }
}
