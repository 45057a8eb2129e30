use super::*;
use crate::limits::{ANSWER_BYTES, GETDATA_COUNT_MAX, MESSAGE_UNIT_BYTES, MESSAGES_BURST, MESSAGES_PER_SECOND};
use crate::{MemoryBudget, MemoryPlan};
use lydian_wire::{Command, Inv, InvType, Message};

const MAGIC: [u8; 4] = [1, 2, 3, 4];

/// A message with this payload, as bytes of the wire.
fn message(size: usize) -> Vec<u8> {
    let mut sender = Transport::v1(MAGIC);
    sender.send(Command::BLOCK, &vec![7; size]);
    sender.take_output()
}

/// Accounts of two connections, without a common part.
fn memory(share: usize) -> PeerMemory {
    let plan = MemoryPlan { total: usize::MAX, connections_max: 2, share, rooms: 0, common: 0, receive_common: 0 };
    PeerMemory::open(&MemoryBudget::new(plan)).unwrap()
}

/// Bytes are processed in short parts while there is no room for all of them, and not at all while there is none.
#[test]
fn memory_decides_how_much_is_processed() {
    let memory = memory(100_000);
    let mut channel = Channel::new(Transport::v1(MAGIC), memory.clone(), 1_000_000);
    let bytes = message(20_000);
    let (count, result) = channel.receive(&bytes, Duration::ZERO);
    assert!(result.is_ok() && count == SHORT_READ_BYTES && !channel.is_short());
    channel.count_memory(0);
    let other = memory.charge_received(100_000);
    let (count, result) = channel.receive(&bytes[SHORT_READ_BYTES..], Duration::ZERO);
    assert!(result.is_ok() && count == 0 && channel.is_short());
    assert!(channel.needed_bytes() > SHORT_READ_BYTES);
    drop(other);
    let mut done = SHORT_READ_BYTES;
    while done < bytes.len() {
        let (count, result) = channel.receive(&bytes[done..], Duration::ZERO);
        assert!(result.is_ok() && count > 0);
        channel.count_memory(0);
        done += count;
    }
    assert_eq!(channel.transport().message_count(), 1);
    assert!(memory.used() >= 20_000);
    let handover = channel.next_message(0, Duration::ZERO).unwrap();
    assert!(handover.charge.bytes() >= 20_000 && handover.received.payload == [7; 20_000]);
    drop(handover);
    assert_eq!(memory.used(), 0);
}

/// No more bytes are processed while the messages that wait fill the receive buffer.
#[test]
fn a_full_receive_buffer_is_not_filled_further() {
    let mut channel = Channel::new(Transport::v1(MAGIC), PeerMemory::default(), 1_000);
    let bytes = message(2_000);
    assert_eq!(channel.receive(&bytes, Duration::ZERO).0, bytes.len(), "a message may be larger than the buffer");
    assert!(!channel.may_receive() && channel.receive(&bytes, Duration::ZERO).0 == 0 && !channel.is_short());
    assert!(channel.next_message(0, Duration::ZERO).is_some() && channel.may_receive());
}

/// A message is handed over only with memory for its answer.
#[test]
fn a_message_waits_for_memory_for_its_answer() {
    let memory = memory(1_000_000);
    let mut channel = Channel::new(Transport::v1(MAGIC), memory.clone(), 1_000_000);
    channel.receive(&message(100), Duration::ZERO).1.unwrap();
    let queued = memory.charge_to_send(2_000_000);
    assert!(channel.next_message(ANSWER_BYTES, Duration::ZERO).is_none() && channel.transport().message_count() == 1);
    drop(queued);
    let handover = channel.next_message(ANSWER_BYTES, Duration::ZERO).unwrap();
    assert!(handover.answer.bytes() > 0 && memory.used() >= handover.answer.bytes() + 100);
}

/// A block is sent only with memory for it, and other connections see that one waits.
#[test]
fn a_block_waits_for_memory() {
    let memory = memory(1_000_000);
    let mut channel = Channel::new(Transport::v1(MAGIC), memory.clone(), 1_000_000);
    assert!(!channel.may_send(Some(2_000_000)) && channel.is_waiting_to_send() && memory.budget().has_waiting());
    assert!(channel.may_send(Some(500_000)) && !channel.is_waiting_to_send() && memory.used() == 500_000);
    assert!(!memory.budget().has_waiting());
    channel.count_memory(10);
    assert_eq!(memory.used(), 10);
    assert!(!channel.may_send(Some(2_000_000)) && channel.may_send(None) && !channel.is_waiting_to_send());
}

/// Progress of a long message is reported at intervals, and again if the report was not taken.
#[test]
fn progress_is_reported_at_intervals() {
    let mut channel = Channel::new(Transport::v1(MAGIC), PeerMemory::default(), 1_000_000);
    let bytes = message(100_000);
    let mut now = Duration::from_secs(1);
    let reported = |channel: &mut Channel, now, is_taken| {
        let mut reported = None;
        channel.report_progress(now, |bytes| {
            reported = Some(bytes);
            is_taken
        });
        reported
    };
    channel.receive(&bytes[..PROGRESS_BYTES - 1], Duration::ZERO).1.unwrap();
    assert_eq!(reported(&mut channel, now, true), None, "too few");
    channel.receive(&bytes[PROGRESS_BYTES - 1..3 * PROGRESS_BYTES], Duration::ZERO).1.unwrap();
    let fresh = reported(&mut channel, now, false);
    assert!(fresh >= Some(3 * PROGRESS_BYTES as u64), "{fresh:?}");
    assert_eq!(reported(&mut channel, now, true), fresh, "it was not taken");
    channel.receive(&bytes[3 * PROGRESS_BYTES..5 * PROGRESS_BYTES], Duration::ZERO).1.unwrap();
    assert_eq!(reported(&mut channel, now, true), None, "too early");
    now += PROGRESS_INTERVAL;
    assert!(reported(&mut channel, now, true) >= Some(2 * PROGRESS_BYTES as u64));
    channel.receive(&bytes[5 * PROGRESS_BYTES..], Duration::ZERO).1.unwrap();
    now += PROGRESS_INTERVAL;
    assert_eq!(reported(&mut channel, now, true), None, "the message is complete");
}

/// Messages above the rate wait, blocks do not, and a peer with `noban` is not limited.
#[test]
fn messages_above_the_rate_wait_and_nothing_is_read() {
    let start = Duration::from_secs(100);
    let pings = || {
        let mut sender = Transport::v1(MAGIC);
        (0..=MESSAGES_BURST).for_each(|_| sender.send(Command::PING, &[7; 8]));
        sender.take_output()
    };
    let mut channel = Channel::new(Transport::v1(MAGIC), PeerMemory::default(), 1_000_000);
    channel.receive(&pings(), start).1.unwrap();
    (0..MESSAGES_BURST).for_each(|_| assert!(channel.next_message(0, start).is_some()));
    assert!(channel.paced().is_none() && channel.next_message(0, start).is_none() && channel.paced().is_some());
    assert!(!channel.may_receive() && channel.receive(&message(10), Duration::ZERO).0 == 0 && !channel.is_short());
    let later = start + channel.paced().unwrap();
    assert!(channel.next_message(0, later).is_some() && channel.may_receive());
    channel.receive(&message(10), Duration::ZERO).1.unwrap();
    assert!(channel.next_message(0, later).is_some(), "a block");
    channel.receive(&pings(), start).1.unwrap();
    assert!(channel.next_message(0, later).is_none());
    channel.note_sent(Command::BLOCK, &[]);
    assert!(channel.next_message(0, later).is_some());
    let mut trusted = Channel::new(Transport::v1(MAGIC), PeerMemory::default(), 1_000_000);
    trusted.lift_pace();
    trusted.receive(&pings(), start).1.unwrap();
    assert_eq!(std::iter::from_fn(|| trusted.next_message(0, start)).count(), 1 + MESSAGES_BURST as usize);
}

/// Regression test: 2,000 known headers counted as one message, although they were not requested.
#[test]
fn headers_count_by_their_size_unless_requested() {
    let now = Duration::from_secs(100);
    let taken = |requests: u32| {
        let mut channel = Channel::new(Transport::v1(MAGIC), PeerMemory::default(), 1_000_000);
        channel.receive(&message(10), now).1.unwrap();
        (0..requests).for_each(|_| channel.note_sent(Command::GETHEADERS, &[]));
        channel.note_sent(Command::PING, &[]);
        let mut sender = Transport::v1(MAGIC);
        sender.send(Command::HEADERS, &[0; 100_000]);
        let headers = sender.take_output();
        assert!(channel.next_message(0, now).is_some(), "the block");
        let take = || {
            channel.receive(&headers, now).1.unwrap();
            channel.next_message(0, now)
        };
        std::iter::from_fn(take).count()
    };
    let units = usize::try_from(1 + 100_024 / MESSAGE_UNIT_BYTES).unwrap();
    assert_eq!(taken(0), (MESSAGES_BURST as usize).div_ceil(units));
    assert_eq!(taken(5), taken(0) + 5);
}

/// A peer that is asked for transactions may send them at once, and not more of them.
#[test]
fn requested_transactions_do_not_wait() {
    let now = Duration::from_secs(100);
    let taken = |requested: &[Inv]| {
        let mut channel = Channel::new(Transport::v1(MAGIC), PeerMemory::default(), 10_000_000);
        for items in requested.chunks(100) {
            channel.note_sent(Command::GETDATA, &Message::GetData(items.to_vec()).payload());
        }
        let mut sender = Transport::v1(MAGIC);
        (0..4 * GETDATA_COUNT_MAX).for_each(|_| sender.send(Command::TX, &[0; 500]));
        channel.receive(&sender.take_output(), now).1.unwrap();
        std::iter::from_fn(|| channel.next_message(0, now)).count()
    };
    let items = |kind, count| vec![Inv { kind, hash: [1; 32] }; count];
    let burst = taken(&[]);
    assert_eq!(burst, MESSAGES_BURST as usize);
    for kind in [InvType::WTX, InvType::TX, InvType::WITNESS_TX] {
        assert_eq!(taken(&items(kind, 150)), burst + 150);
    }
    assert_eq!(taken(&items(InvType::WITNESS_BLOCK, 16)), burst);
    assert_eq!(taken(&items(InvType::WTX, GETDATA_COUNT_MAX + 500)), burst + GETDATA_COUNT_MAX);
}

/// Transactions that are accepted do not count, so that a peer may send as many as the mempool takes; and such a peer
/// is not reported as flooding.
#[test]
fn accepted_transactions_do_not_count() {
    let mut now = Duration::from_secs(100);
    let memory = PeerMemory::default();
    let mut channel = Channel::new(Transport::v1(MAGIC), memory.clone(), 10_000_000);
    let mut sender = Transport::v1(MAGIC);
    let mut accepted = 0;
    for _ in 0..400 {
        (0..100).for_each(|_| sender.send(Command::TX, &[0; 500]));
        channel.receive(&sender.take_output(), now).1.unwrap();
        while channel.next_message(0, now).is_some() {
            memory.allow_message(500);
            accepted += 1;
        }
        now += Duration::from_millis(100);
        assert!(!channel.is_flooding(now));
    }
    assert_eq!(accepted, 40_000);
    assert!(accepted > MESSAGES_BURST + 40 * MESSAGES_PER_SECOND, "more than the pace allows in this time");
}

/// Messages that are dropped because of their checksum count too; a block among them is handed over, but nothing more
/// is read until the rate is kept. Regression test: peers that sent such messages doubled the time of an honest sync.
#[test]
fn dropped_messages_count() {
    let start = Duration::from_secs(100);
    let mut sender = Transport::v1(MAGIC);
    (0..MESSAGES_BURST).for_each(|_| sender.send(Command::PING, &[7; 8]));
    let mut bytes = sender.take_output();
    bytes.chunks_mut(32).for_each(|ping| ping[31] ^= 1);
    bytes.extend(message(10));
    let mut channel = Channel::new(Transport::v1(MAGIC), PeerMemory::default(), 1_000_000);
    let receive = |channel: &mut Channel, now| {
        let (count, result) = channel.receive(&bytes, now);
        result.unwrap();
        count
    };
    assert_eq!(receive(&mut channel, start), bytes.len());
    assert!(!channel.may_receive() && channel.next_message(0, start).is_some(), "the block");
    assert_eq!(receive(&mut channel, start), 0);
    assert!(channel.next_message(0, start).is_none() && channel.paced().is_some() && !channel.is_short());
    let later = start + channel.paced().unwrap();
    assert!(channel.next_message(0, later).is_none() && channel.paced().is_none(), "there is no message");
    assert_eq!(receive(&mut channel, later), bytes.len());
    // By size: few large ones have the same effect.
    let mut channel = Channel::new(Transport::v1(MAGIC), PeerMemory::default(), 1_000_000);
    let mut large = message(2_000_000);
    *large.last_mut().unwrap() ^= 1;
    channel.receive(&large, start).1.unwrap();
    assert!(!channel.may_receive());
    let mut trusted = Channel::new(Transport::v1(MAGIC), PeerMemory::default(), 1_000_000);
    trusted.lift_pace();
    assert_eq!((receive(&mut trusted, start), receive(&mut trusted, start)), (bytes.len(), bytes.len()));
}

/// A peer that never stops sending too much is reported; one that stops is not. Regression test: peers that sent
/// garbage and left stayed connected for twenty minutes, because their end lay behind the garbage.
///
/// limit: FLOOD_TIME_MAX at
/// limit: FLOOD_TIME_MAX above
#[test]
fn a_flood_is_noticed() {
    let start = Duration::from_secs(100);
    let bytes = {
        let mut sender = Transport::v1(MAGIC);
        (0..1_000).for_each(|_| sender.send(Command::PING, &[7; 8]));
        sender.take_output()
    };
    // Sends as fast as is read for 20 s, pauses, and sends again.
    let first_report = |pause: Duration, is_garbage: bool| {
        let mut bytes = bytes.clone();
        if is_garbage {
            bytes.chunks_mut(32).for_each(|ping| ping[31] ^= 1);
        }
        let mut channel = Channel::new(Transport::v1(MAGIC), PeerMemory::default(), 1_000_000);
        let ms = (0..20_000).chain(20_000 + pause.as_millis()..100_000);
        for now in ms.map(|ms| start + Duration::from_millis(u64::try_from(ms).unwrap())) {
            channel.receive(&bytes, now).1.unwrap();
            while channel.next_message(0, now).is_some() {}
            if channel.is_flooding(now) {
                return Some(now - start);
            }
        }
        None
    };
    let late = |reported: Option<Duration>| reported.unwrap().saturating_sub(FLOOD_TIME_MAX);
    assert!((1..20).contains(&late(first_report(Duration::ZERO, false)).as_millis()));
    assert!((1..20).contains(&late(first_report(Duration::ZERO, true)).as_millis()));
    // A pause of half of the burst, and the time that the messages received before it take.
    let rest = Duration::from_secs(5 + 10);
    assert!(first_report(rest, false).unwrap() > 20 * Duration::from_secs(1) + rest + FLOOD_TIME_MAX);
}
