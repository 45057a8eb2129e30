use super::*;
use lydian_stdx::SplitMix64;

/// What a subscriber sends first.
fn hello(minor: u8, mechanism: &[u8], socket_type: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, minor];
    bytes.extend_from_slice(mechanism);
    bytes.resize(GREETING_SIZE, 0);
    let mut body = b"\x05READY\x0bSocket-Type\0\0\0".to_vec();
    body.push(u8::try_from(socket_type.len()).unwrap());
    body.extend_from_slice(socket_type);
    body.extend_from_slice(b"\x08Identity\0\0\0\0");
    frame(COMMAND, &body, &mut bytes);
    bytes
}

fn subscribe_by_command(name: &[u8], prefix: &[u8]) -> Vec<u8> {
    let mut body = vec![u8::try_from(name.len()).unwrap()];
    body.extend_from_slice(name);
    body.extend_from_slice(prefix);
    let mut out = Vec::new();
    frame(COMMAND, &body, &mut out);
    out
}

fn subscribe_by_message(label: u8, prefix: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame(0, &[&[label], prefix].concat(), &mut out);
    out
}

/// The state after a conversation, and what was replied.
fn talk(bytes: &[u8], piece: usize) -> Result<(Session, Vec<u8>), ProtocolError> {
    let (mut session, mut replies) = (Session::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        session.receive(piece, &mut replies)?;
    }
    Ok((session, replies))
}

fn wanted(session: &Session) -> Vec<&'static str> {
    Topic::ALL.into_iter().filter(|topic| session.wants(*topic)).map(Topic::name).collect()
}

/// limit: FRAME_SIZE_MAX at
#[test]
fn both_forms_of_subscriptions_arrive_in_any_pieces() {
    let conversation = [
        hello(1, b"NULL", b"SUB"),
        subscribe_by_command(b"SUBSCRIBE", b"raw"),
        subscribe_by_message(1, b"hashtx"),
        subscribe_by_message(1, b"sequence"),
        subscribe_by_command(b"CANCEL", b"sequence"),
        subscribe_by_message(0, b"never subscribed"),
        subscribe_by_message(1, &[b'x'; FRAME_SIZE_MAX - 1]),
    ]
    .concat();
    for piece in [1, 2, 7, 63, 64, 65, 10_000] {
        let (session, replies) = talk(&conversation, piece).unwrap();
        assert!(session.is_open());
        assert_eq!(wanted(&session), ["hashtx", "rawblock", "rawtx"]);
        assert_eq!(replies, b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB");
        assert!(session.input.is_empty());
    }
}

#[test]
fn an_empty_prefix_means_every_topic_and_each_subscription_is_cancelled_once() {
    let start = [hello(0, b"NULL", b"XSUB"), subscribe_by_message(1, b""), subscribe_by_message(1, b"")].concat();
    assert_eq!(wanted(&talk(&start, 1).unwrap().0).len(), 5);
    let one = [start, subscribe_by_message(0, b"")].concat();
    assert_eq!(wanted(&talk(&one, 1).unwrap().0).len(), 5);
    let none = [one, subscribe_by_message(0, b""), subscribe_by_message(0, b"")].concat();
    assert_eq!(wanted(&talk(&none, 1).unwrap().0).len(), 0);
}

/// Prefixes that no topic has are not kept, so that no number of them takes memory.
#[test]
fn subscriptions_are_bounded() {
    let mut session = talk(&hello(1, b"NULL", b"SUB"), 100).unwrap().0;
    let mut random = SplitMix64::new(1);
    for _ in 0..10_000 {
        let prefix = random.next_u64().to_le_bytes();
        session.receive(&subscribe_by_message(1, &prefix), &mut Vec::new()).unwrap();
    }
    for topic in Topic::ALL {
        for length in 0..=topic.name().len() {
            let prefix = &topic.name().as_bytes()[..length];
            session.receive(&subscribe_by_message(1, prefix), &mut Vec::new()).unwrap();
        }
    }
    assert!(session.subscriptions.len() <= 1 + "hashblockhashtxrawblockrawtxsequence".len());
    assert_eq!(wanted(&session).len(), 5);
}

#[test]
fn a_ping_is_answered_with_its_context() {
    let ping = subscribe_by_command(b"PING", b"\0\x0athere");
    let (_, replies) = talk(&[hello(1, b"NULL", b"SUB"), ping].concat(), 3).unwrap();
    assert!(replies.ends_with(b"\x04\x0a\x04PONGthere"), "{replies:?}");
}

/// limit: FRAME_SIZE_MAX above
#[test]
fn what_is_not_a_subscriber_of_zmtp_3_is_refused() {
    let refused = |bytes: &[u8]| talk(bytes, 5).map(|_| ()).unwrap_err();
    assert_eq!(refused(b"GET / HTTP/1.1\r\n"), ProtocolError::NotZmtp3);
    assert_eq!(refused(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01"), ProtocolError::NotZmtp3, "version 2");
    assert_eq!(refused(b"\x01\0"), ProtocolError::NotZmtp3, "version 1");
    assert_eq!(refused(&hello(1, b"PLAIN", b"SUB")), ProtocolError::Mechanism);
    assert_eq!(refused(&hello(1, b"NULLX", b"SUB")), ProtocolError::Mechanism);
    assert_eq!(refused(&hello(1, b"NULL", b"PUB")), ProtocolError::SocketType);
    assert_eq!(refused(&hello(1, b"NULL", b"")), ProtocolError::SocketType);
    let with = |frame: &[u8]| refused(&[&hello(1, b"NULL", b"SUB"), frame].concat());
    assert_eq!(with(b"\x08\x01a"), ProtocolError::Frame { flags: 8, size: 1 });
    assert_eq!(with(b"\x05\x01a"), ProtocolError::Frame { flags: 5, size: 1 });
    let size = FRAME_SIZE_MAX as u64 + 1;
    assert_eq!(with(&[&b"\x02"[..], &size.to_be_bytes()].concat()), ProtocolError::Frame { flags: 2, size });
    assert_eq!(with(b"\x02\xff\xff\xff\xff\xff\xff\xff\xff"), ProtocolError::Frame { flags: 2, size: u64::MAX });
    assert_eq!(with(b"\x04\x00"), ProtocolError::Command);
    assert_eq!(with(b"\x04\x02\x05PI"[..4].as_ref()), ProtocolError::Command);
    assert_eq!(with(b"\x04\x06\x04PING\0"), ProtocolError::Command);
    assert_eq!(with(b"\x04\x08\x05ERROR\x01x"), ProtocolError::Reported);
    let mut early = hello(1, b"NULL", b"SUB")[..GREETING_SIZE].to_vec();
    early.extend(subscribe_by_message(1, b""));
    assert_eq!(refused(&early), ProtocolError::NotReady);
}

#[test]
fn large_bodies_have_long_frames() {
    let body = vec![7; 256];
    let bytes = message(Topic::RawTx, &body, 0x0102_0304);
    assert_eq!(bytes[..7], *b"\x01\x05rawtx");
    assert_eq!(bytes[7..16], *b"\x03\0\0\0\0\0\0\x01\0");
    assert_eq!(bytes[16..272], body);
    assert_eq!(bytes[272..], *b"\0\x04\x04\x03\x02\x01");
    assert_eq!(message(Topic::RawTx, &[7; 255], 0)[7..9], *b"\x01\xff");
}

/// Any bytes after a good beginning: an answer, and never more kept than a frame and what was just read.
#[test]
fn any_bytes_end_in_a_verdict_and_bounded_memory() {
    let mut random = SplitMix64::new(7);
    for _ in 0..5_000 {
        let mut session = talk(&hello(1, b"NULL", b"SUB"), 64).unwrap().0;
        for _ in 0..20 {
            let words: Vec<u8> = (0..random.next_u64() % 9).flat_map(|_| random.next_u64().to_le_bytes()).collect();
            // Small numbers make plausible frames.
            let bytes: Vec<u8> = words.iter().map(|byte| if byte % 3 == 0 { *byte } else { byte % 9 }).collect();
            if session.receive(&bytes, &mut Vec::new()).is_err() {
                break;
            }
            assert!(session.input.len() <= FRAME_SIZE_MAX + 9);
        }
    }
}
