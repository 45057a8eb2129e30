use super::*;
use crate::address::{Endpoint, NetAddr, Services};
use crate::compact::PrefilledTransaction;
use crate::error::{DecodeError, Penalty};
use crate::limits::*;
use lydian_primitives::{BlockHash, hex, write_compact_size};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The smallest transaction with an input: 1 input, 1 output, no witness.
fn tx(seed: u8) -> Vec<u8> {
    let mut bytes = vec![1, 0, 0, 0, 1];
    bytes.extend_from_slice(&[seed; 36]);
    bytes.extend_from_slice(&[0, 1, 2, 3, 4, 1, 9, 0, 0, 0, 0, 0, 0, 0, 1, seed, 0, 0, 0, 0]);
    bytes
}

fn header(seed: u8) -> Header {
    Header { bits: 0x207f_ffff, ..Header::parse(&[seed; 80]) }
}

fn address(port: u16) -> TimedAddress {
    TimedAddress { time: 1, services: Services(9), endpoint: Endpoint::new(NetAddr::Ipv4([8, 8, 4, 4].into()), port) }
}

fn inv(count: usize) -> Vec<Inv> {
    vec![Inv { kind: InvType::WITNESS_BLOCK, hash: [7; 32] }; count]
}

fn locator(count: usize) -> Locator {
    Locator { hashes: vec![BlockHash([5; 32]); count], stop: BlockHash([6; 32]) }
}

fn version() -> Version {
    Version {
        version: PROTOCOL_VERSION,
        services: Services::NETWORK | Services::WITNESS,
        time: 1_700_000_000,
        receiver_services: Services::NONE,
        receiver: Endpoint::new(NetAddr::Ipv4([1, 2, 3, 4].into()), 8333),
        nonce: 77,
        user_agent: b"/Lydian:0.1.0/".to_vec(),
        start_height: 900_000,
        relay: false,
    }
}

/// One message of every command.
fn samples() -> Vec<Message> {
    let range = FilterRange { filter_type: 0, start_height: 3, stop_hash: BlockHash([4; 32]) };
    let prefilled =
        vec![PrefilledTransaction { skipped: 0, tx: tx(1) }, PrefilledTransaction { skipped: 1, tx: tx(2) }];
    let compact = CompactBlock { header: header(1), nonce: 5, short_ids: vec![1, 0xffff_ffff_ffff], prefilled };
    vec![
        Message::Version(Box::new(version())),
        Message::Verack,
        Message::Addr(vec![address(1), address(2)]),
        Message::AddrV2(vec![address(1), TimedAddress { services: Services(u64::MAX), ..address(3) }]),
        Message::SendAddrV2,
        Message::Inv(inv(2)),
        Message::GetData(inv(1)),
        Message::NotFound(inv(3)),
        Message::MerkleBlock(Box::new(MerkleBlock {
            header: header(3),
            tx_count: 3,
            hashes: vec![[1; 32]; 2],
            flags: vec![5],
        })),
        Message::GetBlocks(locator(2)),
        Message::GetHeaders(locator(3)),
        Message::Tx(tx(3)),
        Message::Headers(vec![header(1), header(2)]),
        Message::Block([&header(1).to_bytes()[..], &[1], &tx(1)].concat()),
        Message::GetAddr,
        Message::MemPool,
        Message::Ping(Some(5)),
        Message::Pong(Some(6)),
        Message::FilterLoad(FilterLoad { data: vec![1, 2], hash_funcs: 3, tweak: 4, flags: 1 }),
        Message::FilterAdd(vec![1, 2, 3]),
        Message::FilterClear,
        Message::SendHeaders,
        Message::FeeFilter(Amount(1000)),
        Message::SendCmpct(SendCmpct { high_bandwidth: true, version: CMPCTBLOCKS_VERSION }),
        Message::CmpctBlock(Box::new(compact)),
        Message::GetBlockTxn(BlockTransactionsRequest {
            block_hash: BlockHash([1; 32]),
            indexes: vec![0, 1, 5, 65_535],
        }),
        Message::BlockTxn(BlockTransactions { block_hash: BlockHash([1; 32]), txs: vec![tx(1), tx(2)] }),
        Message::GetCFilters(range),
        Message::CFilter(CFilter { filter_type: 0, block_hash: BlockHash([1; 32]), filter: vec![1, 2, 3] }),
        Message::GetCFHeaders(range),
        Message::CFHeaders(CFHeaders {
            filter_type: 0,
            stop_hash: BlockHash([1; 32]),
            previous_header: [2; 32],
            filter_hashes: vec![[3; 32]; 2],
        }),
        Message::GetCFCheckpt(GetCFCheckpt { filter_type: 0, stop_hash: BlockHash([1; 32]) }),
        Message::CFCheckpt(CFCheckpt { filter_type: 0, stop_hash: BlockHash([1; 32]), headers: vec![[3; 32]; 2] }),
        Message::WtxidRelay,
        Message::SendTxRcncl(SendTxRcncl { version: 1, salt: 2 }),
        Message::Feature(Feature { id: b"BIP-0".to_vec(), data: vec![1] }),
        Message::Unknown { command: Command::new("reject").unwrap(), payload: vec![1, 2, 3] },
    ]
}

fn decode(command: Command, payload: &[u8]) -> Result<Message, DecodeError> {
    Message::decode(&command, payload)
}

#[test]
fn every_message_round_trips() {
    let samples = samples();
    for command in Command::ALL {
        assert_eq!(samples.iter().filter(|sample| sample.command() == *command).count(), 1, "{command}");
    }
    for sample in samples {
        let payload = sample.payload();
        assert_eq!(decode(sample.command(), &payload).as_ref(), Ok(&sample), "{}", sample.command());
        assert_eq!(Message::decode_owned(&sample.command(), payload), Ok(sample));
    }
}

/// Cut anywhere, a message is malformed and the peer is not punished, except where Core does not need the missing
/// fields. Bytes after the last field are ignored.
/// checklist: 77
#[test]
fn messages_are_read_by_prefix_as_core_reads_them() {
    for sample in samples() {
        let (command, payload) = (sample.command(), sample.payload());
        for cut in 0..payload.len() {
            match decode(command, &payload[..cut]) {
                Err(DecodeError::InvalidFeature) => assert_eq!(command, Command::FEATURE),
                Err(error) => assert_eq!(error.penalty(), Penalty::Ignore, "{command} at {cut}: {error}"),
                Ok(_) => {
                    let lenient = [Command::VERSION, Command::BLOCK, Command::PING, Command::PONG];
                    assert!(
                        lenient.contains(&command) || matches!(sample, Message::Unknown { .. }),
                        "{command} at {cut}"
                    );
                }
            }
        }
        let read = decode(command, &[&payload[..], &[1, 2, 3]].concat());
        match &sample {
            Message::Feature(_) => assert_eq!(read, Err(DecodeError::InvalidFeature)),
            Message::Block(bytes) => {
                let Ok(Message::Block(longer)) = read else { panic!("{read:?}") };
                assert_eq!(block_size(&longer), Ok(bytes.len()));
            }
            Message::Unknown { .. } => assert!(read.is_ok()),
            _ => assert_eq!(read, Ok(sample)),
        }
    }
}

#[test]
fn old_versions_leave_fields_out() {
    let full = version();
    let payload = Message::Version(Box::new(full.clone())).payload();
    let read = |size: usize| match decode(Command::VERSION, &payload[..size]) {
        Ok(Message::Version(version)) => *version,
        other => panic!("{size}: {other:?}"),
    };
    let agent_at = 4 + 8 + 8 + 26 + 26 + 8;
    let short = Version { nonce: 1, user_agent: Vec::new(), start_height: -1, relay: true, ..full.clone() };
    assert_eq!(read(46), short);
    assert_eq!(read(agent_at), Version { nonce: 77, ..short });
    assert_eq!(read(agent_at + 15), Version { start_height: -1, relay: true, ..full.clone() });
    assert_eq!(read(agent_at + 19), Version { relay: true, ..full.clone() });
    for cut in [45, 47, 72, 79, 81, agent_at + 16] {
        assert!(decode(Command::VERSION, &payload[..cut]).is_err(), "{cut}");
    }
    // Any nonzero byte requests transactions. A peer that is too old to be served may end its message after the
    // address.
    let last = payload.len() - 1;
    let asks = [&payload[..last], &[9]].concat();
    assert!(matches!(decode(Command::VERSION, &asks), Ok(Message::Version(version)) if version.relay));
    let ancient = [&31_799i32.to_le_bytes()[..], &payload[4..50]].concat();
    assert!(matches!(decode(Command::VERSION, &ancient), Ok(Message::Version(version)) if version.version == 31_799));
}

/// CVE-2024-52912: a time far in the past or the future must not overflow computations based on it. A negative time
/// becomes zero.
/// checklist: 61
#[test]
fn times_of_version_are_not_negative() {
    for (time, kept) in [(i64::MIN, 0), (-1, 0), (0, 0), (i64::MAX, i64::MAX)] {
        let payload = Message::Version(Box::new(Version { time, ..version() })).payload();
        let read = decode(Command::VERSION, &payload);
        assert!(matches!(read, Ok(Message::Version(version)) if version.time == kept), "{time}");
    }
}

#[test]
fn user_agents_are_shown_without_what_harms() {
    let shown = Version { user_agent: b"/a\x1b[31m:1<b>(c;\xff d)/\n".to_vec(), ..version() }.clean_user_agent();
    assert_eq!(shown, "/a31m:1b(c; d)/");
}

/// limit: USER_AGENT_SIZE_MAX at
/// limit: USER_AGENT_SIZE_MAX above
#[test]
fn user_agents_have_a_limit() {
    let read = |size: usize| {
        let sample = Version { user_agent: vec![b'x'; size], ..version() };
        decode(Command::VERSION, &Message::Version(Box::new(sample)).payload())
    };
    assert!(read(USER_AGENT_SIZE_MAX).is_ok());
    let size = USER_AGENT_SIZE_MAX + 1;
    assert_eq!(read(size), Err(DecodeError::TextTooLong { size, limit: USER_AGENT_SIZE_MAX }));
}

fn check_limit(message: impl Fn(usize) -> Message, limit: usize, penalty: Penalty) {
    let command = message(0).command();
    for count in [0, 1, limit] {
        let sample = message(count);
        assert_eq!(decode(command, &sample.payload()), Ok(sample), "{command} of {count}");
    }
    let payload = message(limit + 1).payload();
    let error = DecodeError::TooMany { command, count: limit + 1, limit };
    assert_eq!(decode(command, &payload), Err(error));
    assert_eq!(error.penalty(), penalty);
    // The same count, but cut off: Core fails to read it and logs nothing. Only for headers it checks the count first.
    let cut = decode(command, &payload[..payload.len() - 1]);
    match cut {
        Err(DecodeError::TooMany { .. }) => assert_eq!(command, Command::HEADERS),
        other => assert!(matches!(other, Err(DecodeError::Malformed(_))), "{other:?}"),
    }
}

/// limit: INV_COUNT_MAX at
/// limit: INV_COUNT_MAX above
/// limit: NOTFOUND_COUNT_MAX at
/// limit: NOTFOUND_COUNT_MAX above
/// limit: ADDR_COUNT_MAX at
/// limit: ADDR_COUNT_MAX above
/// limit: HEADERS_COUNT_MAX at
/// limit: HEADERS_COUNT_MAX above
/// limit: LOCATOR_COUNT_MAX at
/// limit: LOCATOR_COUNT_MAX above
/// checklist: 62, 63, 80
#[test]
fn lists_have_cores_limits() {
    check_limit(|count| Message::Inv(inv(count)), INV_COUNT_MAX, Penalty::Misbehaving);
    check_limit(|count| Message::GetData(inv(count)), INV_COUNT_MAX, Penalty::Misbehaving);
    check_limit(|count| Message::NotFound(inv(count)), NOTFOUND_COUNT_MAX, Penalty::Ignore);
    check_limit(|count| Message::Addr(vec![address(1); count]), ADDR_COUNT_MAX, Penalty::Misbehaving);
    check_limit(|count| Message::AddrV2(vec![address(1); count]), ADDR_COUNT_MAX, Penalty::Misbehaving);
    check_limit(|count| Message::Headers(vec![header(1); count]), HEADERS_COUNT_MAX, Penalty::Misbehaving);
    check_limit(|count| Message::GetBlocks(locator(count)), LOCATOR_COUNT_MAX, Penalty::Disconnect);
    check_limit(|count| Message::GetHeaders(locator(count)), LOCATOR_COUNT_MAX, Penalty::Disconnect);
}

/// limit: BLOOM_FILTER_SIZE_MAX at
/// limit: BLOOM_FILTER_SIZE_MAX above
/// limit: BLOOM_HASH_FUNCS_MAX at
/// limit: BLOOM_HASH_FUNCS_MAX above
/// limit: FILTERADD_SIZE_MAX at
/// limit: FILTERADD_SIZE_MAX above
#[test]
fn filters_have_cores_limits() {
    let load = |size: usize, hash_funcs: u32| {
        let sample = Message::FilterLoad(FilterLoad { data: vec![1; size], hash_funcs, tweak: 0, flags: 0 });
        decode(Command::FILTERLOAD, &sample.payload()).map(|read| assert_eq!(read, sample))
    };
    assert_eq!(load(BLOOM_FILTER_SIZE_MAX, BLOOM_HASH_FUNCS_MAX), Ok(()));
    for (size, hash_funcs) in [(BLOOM_FILTER_SIZE_MAX + 1, 1), (1, BLOOM_HASH_FUNCS_MAX + 1)] {
        let error = DecodeError::BloomFilterTooLarge { size, hash_funcs };
        assert_eq!(load(size, hash_funcs), Err(error));
        assert_eq!(error.penalty(), Penalty::Misbehaving);
    }
    let add = |size: usize| decode(Command::FILTERADD, &Message::FilterAdd(vec![1; size]).payload());
    assert!(add(FILTERADD_SIZE_MAX).is_ok());
    let error = DecodeError::FilterAddTooLarge { size: FILTERADD_SIZE_MAX + 1 };
    assert_eq!(add(FILTERADD_SIZE_MAX + 1), Err(error));
    assert_eq!(error.penalty(), Penalty::Misbehaving);
}

/// limit: FEATURE_ID_SIZE_MIN at
/// limit: FEATURE_ID_SIZE_MIN below
/// limit: FEATURE_ID_SIZE_MAX at
/// limit: FEATURE_ID_SIZE_MAX above
/// limit: FEATURE_DATA_SIZE_MAX at
/// limit: FEATURE_DATA_SIZE_MAX above
/// checklist: 85
#[test]
fn features_have_cores_limits() {
    let read = |id: usize, data: usize| {
        let sample = Message::Feature(Feature { id: vec![b'x'; id], data: vec![1; data] });
        decode(Command::FEATURE, &sample.payload()).map(|read| assert_eq!(read, sample))
    };
    for (id, data) in [(FEATURE_ID_SIZE_MIN, 0), (FEATURE_ID_SIZE_MAX, FEATURE_DATA_SIZE_MAX)] {
        assert_eq!(read(id, data), Ok(()));
    }
    for (id, data) in [(FEATURE_ID_SIZE_MIN - 1, 0), (FEATURE_ID_SIZE_MAX + 1, 0), (5, FEATURE_DATA_SIZE_MAX + 1)] {
        assert_eq!(read(id, data), Err(DecodeError::InvalidFeature));
    }
    assert_eq!(DecodeError::InvalidFeature.penalty(), Penalty::Disconnect);
}

#[test]
fn single_fields_have_cores_rules() {
    let send = |value: u8| decode(Command::SENDCMPCT, &[value, 2, 0, 0, 0, 0, 0, 0, 0]);
    assert!(send(0).is_ok() && send(1).is_ok());
    assert_eq!(send(2), Err(DecodeError::InvalidAnnounceField { value: 2 }));
    assert_eq!(DecodeError::InvalidAnnounceField { value: 2 }.penalty(), Penalty::Misbehaving);
    assert!(matches!(decode(Command::SENDCMPCT, &[2]), Err(DecodeError::Malformed(_))), "cut off counts first");
    assert_eq!(decode(Command::PING, &[]), Ok(Message::Ping(None)));
    assert!(decode(Command::PING, &[1; 7]).is_err());
    assert_eq!(decode(Command::PONG, &[1; 7]), Ok(Message::Pong(None)));
    // The transaction count after a header is ignored, whatever its value.
    let mut headers = Message::Headers(vec![header(4)]).payload();
    headers[81] = 200;
    assert_eq!(decode(Command::HEADERS, &headers), Ok(Message::Headers(vec![header(4)])));
    headers[81] = 0xfd;
    assert!(decode(Command::HEADERS, &headers).is_err());
    assert_eq!(inv(1)[0].to_string(), format!("witness-block {}", "07".repeat(32)));
    assert_eq!(Inv { kind: InvType(9), hash: [0; 32] }.to_string(), format!("0x00000009 {}", "00".repeat(32)));
    assert!(InvType::WITNESS_TX.is_gen_tx() && !InvType::BLOCK.is_gen_tx() && InvType::CMPCT_BLOCK.is_gen_block());
}

/// A declared count costs nothing until the bytes arrive.
/// checklist: 66
#[test]
fn declared_counts_reserve_nothing() {
    for command in Command::ALL {
        for front in [0, 4, 32, 33, 65, 80, 84, 88] {
            let mut payload = vec![0; front];
            write_compact_size(&mut payload, 0x0200_0000);
            assert!(decode(*command, &payload).map_or(true, |message| message.payload().len() < 1000), "{command}");
        }
    }
}

/// Messages written by other software: a Core fixture, the protocol documentation and an example of BIP-0037.
#[test]
fn messages_that_others_wrote() {
    // Core's fixture of three addresses (net_tests): ::1 at port 0, ::1 at port 0x00f1, ::1 at port 0xf1f2.
    let text = "03\
        61bc6649 00 02 10 00000000000000000000000000000001 0000\
        79627683 01 02 10 00000000000000000000000000000001 00f1\
        ffffffff fd4804 02 10 00000000000000000000000000000001 f1f2";
    let Ok(Message::AddrV2(list)) = decode(Command::ADDRV2, &hex(&text.replace(' ', "")).unwrap()) else { panic!() };
    let seen: Vec<_> = list.iter().map(|one| (one.time, one.services.0, one.endpoint.to_string())).collect();
    let expected = [
        (0x4966_bc61, 0, "[::1]:0".to_owned()),
        (0x8376_6279, 1, "[::1]:241".to_owned()),
        (0xffff_ffff, 0x448, "[::1]:61938".to_owned()),
    ];
    assert_eq!(seen, expected);
    let text = "03\
        61bc6649 0000000000000000 00000000000000000000000000000001 0000\
        79627683 0100000000000000 00000000000000000000000000000001 00f1\
        ffffffff 4804000000000000 00000000000000000000000000000001 f1f2";
    assert_eq!(decode(Command::ADDR, &hex(&text.replace(' ', "")).unwrap()), Ok(Message::Addr(list)));
    // The example of `version` in the protocol documentation: Satoshi 0.7.2 of 2012.
    let text = "62ea0000 0100000000000000 11b2d05000000000 0100000000000000 00000000000000000000ffff00000000 0000\
        0100000000000000 00000000000000000000ffff00000000 0000 3b2eb35d8ce61765 0f2f5361746f7368693a302e372e322f c03e0300";
    let Ok(Message::Version(version)) = decode(Command::VERSION, &hex(&text.replace(' ', "")).unwrap()) else {
        panic!()
    };
    assert_eq!(
        (version.version, version.clean_user_agent().as_str(), version.start_height, version.relay),
        (60002, "/Satoshi:0.7.2/", 212_672, true)
    );
    // BIP-0037's example of filterload.
    let text = "02 b50f 0b000000 00000000 00";
    let Ok(Message::FilterLoad(filter)) = decode(Command::FILTERLOAD, &hex(&text.replace(' ', "")).unwrap()) else {
        panic!()
    };
    assert_eq!((filter.data, filter.hash_funcs), (vec![0xb5, 0x0f], 11));
}

proptest! {
    #[test]
    fn any_payload_is_read_or_refused(command in select(Command::ALL), payload in vec(any::<u8>(), 0..400)) {
        if let Ok(message) = decode(command, &payload) {
            // A decoded message is encoded, and decodes to the same message.
            prop_assert_eq!(message.command(), command);
            prop_assert_eq!(decode(command, &message.payload()), Ok(message));
        }
    }

    #[test]
    fn damaged_messages_are_read_or_refused(
        which: Index,
        changes in vec((any::<Index>(), any::<u8>()), 1..4),
        cut: Index,
    ) {
        let samples = samples();
        let sample = &samples[which.index(samples.len())];
        let mut payload = sample.payload();
        if !payload.is_empty() {
            for (at, byte) in changes {
                let at = at.index(payload.len());
                payload[at] = byte;
            }
            payload.truncate(cut.index(payload.len()) + 1);
        }
        if let Ok(message) = decode(sample.command(), &payload) {
            prop_assert_eq!(decode(sample.command(), &message.payload()), Ok(message));
        }
    }

    #[test]
    fn any_version_round_trips(time in 0i64.., agent in vec(any::<u8>(), 0..=256), height: i32, relay: bool, nonce: u64, number in MIN_PEER_PROTO_VERSION..) {
        let sample = Version { version: number, time, user_agent: agent, start_height: height, relay, nonce, ..version() };
        let sample = Message::Version(Box::new(sample));
        prop_assert_eq!(decode(Command::VERSION, &sample.payload()), Ok(sample));
    }

    #[test]
    fn any_locator_and_request_round_trip(hashes in vec(any::<[u8; 32]>(), 0..=101), stop: [u8; 32], indexes in proptest::collection::btree_set(any::<u16>(), 0..300)) {
        let sample = Message::GetHeaders(Locator { hashes: hashes.into_iter().map(BlockHash).collect(), stop: BlockHash(stop) });
        prop_assert_eq!(decode(Command::GETHEADERS, &sample.payload()), Ok(sample));
        let request = BlockTransactionsRequest { block_hash: BlockHash(stop), indexes: indexes.into_iter().collect() };
        let sample = Message::GetBlockTxn(request);
        prop_assert_eq!(decode(Command::GETBLOCKTXN, &sample.payload()), Ok(sample));
    }
}
