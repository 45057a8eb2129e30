use super::*;
use lydian_wire::limits::MESSAGE_SIZE_MAX;

fn small(connections_max: usize) -> MemoryPlan {
    MemoryPlan { connections_max, share: 1_000, rooms: 2, common: 10_000, receive_common: 4_000, total: usize::MAX }
}

fn sum(plan: &MemoryPlan) -> usize {
    plan.connections_max * (plan.share + PEER_FIXED_BYTES)
        + plan.rooms * BLOCK_ROOM_BYTES
        + BLOCK_READS_MAX * BLOCK_READ_BYTES
        + plan.common
}

/// The parts add up to the total for any number of connections, and a share holds the largest message that is sent
/// unrequested: 2,000 headers.
///
/// limit: PEER_MEMORY_BYTES at
/// limit: PEER_MEMORY_BYTES above
/// limit: PEER_SHARE_MIN at
/// limit: PEER_SHARE_MIN below
/// limit: PEER_SHARE_MAX at
/// limit: PEER_SHARE_MAX above
/// limit: PEER_FIXED_BYTES at
/// limit: PEER_FIXED_BYTES above
/// limit: COMMON_BYTES at
/// limit: COMMON_BYTES above
#[test]
fn the_parts_are_the_whole() {
    let mut shares = Vec::new();
    for connections in [0, 1, 10, 20, 125, 224, 260, 1_000, 10_000] {
        let plan = MemoryPlan::new(connections);
        assert!(sum(&plan) <= plan.total, "{plan:?}");
        assert!(plan.share >= PEER_SHARE_MIN && plan.share <= PEER_SHARE_MAX, "{plan:?}");
        assert!(plan.total == PEER_MEMORY_BYTES || plan.share == PEER_SHARE_MIN, "{plan:?}");
        shares.push(plan.share);
    }
    assert!(shares.first() == Some(&PEER_SHARE_MAX) && shares.last() == Some(&PEER_SHARE_MIN), "{shares:?}");
    assert_eq!(MemoryPlan::new(224).total, 300_000_000);
    assert!(MemoryPlan::new(10_000).total > PEER_MEMORY_BYTES);
    const { assert!(PEER_SHARE_MIN > 24 + 3 + 2_000 * 81) };
}

/// Regression test: one hundred peers held 1,488 MB because each had its own limits and the sum was not limited. What a
/// peer sends beyond its share is processed while the common part has room for all of it, then no longer; the others
/// continue within their shares.
///
/// limit: RECEIVE_COMMON_BYTES at
/// limit: RECEIVE_COMMON_BYTES above
#[test]
fn a_peer_above_its_share_is_not_read_from() {
    let budget = MemoryBudget::new(small(3));
    let [first, second, third] = std::array::from_fn(|_| PeerMemory::open(&budget).unwrap());
    assert!(PeerMemory::open(&budget).is_none(), "no more connections than the plan has");
    let mut greedy = first.charge_received(4_999);
    assert!(!greedy.try_receive(2) && greedy.bytes() == 4_999);
    assert!(greedy.try_receive(1) && greedy.bytes() == 5_000);
    assert!(!greedy.try_receive(1));
    let mut other = second.charge_received(0);
    assert!(!other.try_receive(1_001) && other.try_receive(1_000) && !other.try_receive(1));
    let usage = MemoryUse { used: 6_000, common_used: 4_000, rooms_taken: 0, accounts: 3, peak: 6_000 };
    assert_eq!(budget.usage(), usage);
    greedy.set(1_500);
    assert!(other.try_receive(3_500) && !greedy.try_receive(1) && third.charge_received(0).try_receive(1_000));
    drop((greedy, other));
    assert_eq!(budget.usage(), MemoryUse { used: 0, common_used: 0, peak: 7_000, ..usage });
    // Bytes held for a closed connection keep its account open, so that reconnecting gains no memory.
    let left = first.charge_received(500);
    drop(first);
    assert!(PeerMemory::open(&budget).is_none());
    drop(left);
    assert!(PeerMemory::open(&budget).is_some());
    assert_eq!(RECEIVE_COMMON_BYTES, MemoryPlan::new(1).receive_common);
}

/// Regression test: a peer below its share could double the buffer of its message beyond the share although the common
/// part was full. A hundred such peers used it up, and no block was sent to others.
#[test]
fn growth_counts_before_it_happens() {
    let plan = MemoryPlan::new(125);
    let budget = MemoryBudget::new(plan);
    let peers: Vec<_> = (0..100).map(|_| PeerMemory::open(&budget).unwrap()).collect();
    let mut charges: Vec<_> = peers.iter().map(|peer| peer.charge_received(plan.share - 1)).collect();
    let grown = charges.iter_mut().filter_map(|charge| charge.try_receive(plan.share).then_some(())).count();
    assert_eq!(grown, plan.receive_common / (plan.share - 1));
    assert!(budget.usage().common_used <= plan.receive_common);
    let honest = PeerMemory::open(&budget).unwrap();
    assert!(honest.charge_block(BLOCK_ROOM_BYTES).is_some());
}

/// A peer that was asked for a block has room for it, regardless of the other peers, and keeps this room until its
/// bytes are freed.
///
/// limit: BLOCK_ROOMS_MAX at
/// limit: BLOCK_ROOMS_MAX above
/// limit: BLOCK_ROOM_BYTES at
/// limit: BLOCK_ROOM_BYTES above
#[test]
fn a_peer_that_is_asked_has_room() {
    assert_eq!(BLOCK_ROOM_BYTES, MESSAGE_SIZE_MAX);
    let plan = MemoryPlan::new(BLOCK_ROOMS_MAX + 2);
    let budget = MemoryBudget::new(plan);
    let peers: Vec<_> = (0..BLOCK_ROOMS_MAX + 2).map(|_| PeerMemory::open(&budget).unwrap()).collect();
    let _flood = peers[0].charge_received(plan.share + plan.receive_common);
    let share = peers[1].charge_received(plan.share);
    let mut block = peers[1].charge_received(0);
    assert!(!block.try_receive(1) && peers[1].has_block_room());
    peers[1].set_asked(true);
    assert!(!block.try_receive(BLOCK_ROOM_BYTES + 1) && block.try_receive(BLOCK_ROOM_BYTES));
    assert!(!block.try_receive(1));
    peers[2..=BLOCK_ROOMS_MAX].iter().for_each(|peer| peer.set_asked(true));
    assert!(budget.rooms_left() == 0 && !peers[0].has_block_room() && peers[1].has_block_room());
    // The request is over without an answer: the room becomes free when its bytes are freed.
    peers[1].set_asked(false);
    assert_eq!(budget.rooms_left(), 0);
    drop(block);
    assert_eq!(budget.rooms_left(), 1);
    drop(share);
    drop(peers);
    assert_eq!(budget.rooms_left(), BLOCK_ROOMS_MAX);
}

/// A peer whose share is full of requests is answered as long as it receives the answers, even if memory is short:
/// otherwise its queue would never become empty. These answers are part of the fixed cost of a connection.
///
/// limit: ANSWER_BYTES at
/// limit: ANSWER_BYTES above
/// limit: ANSWER_BYTES_MAX at
/// limit: ANSWER_BYTES_MAX above
#[test]
fn answers_wait_for_those_before() {
    let plan = MemoryPlan { receive_common: ANSWER_BYTES_MAX, ..small(2) };
    let budget = MemoryBudget::new(plan);
    let [flood, peer] = std::array::from_fn(|_| PeerMemory::open(&budget).unwrap());
    let _requests = peer.charge_received(plan.share);
    let mut waiting = peer.charge_to_send(ANSWER_BYTES - 1);
    assert!(peer.reserve_answer(waiting.bytes()).is_some());
    waiting.set(ANSWER_BYTES + ANSWER_BYTES_MAX);
    assert_eq!(budget.usage().common_used, 0);
    waiting.set(ANSWER_BYTES + ANSWER_BYTES_MAX + 1);
    assert_eq!(budget.usage().common_used, 1);
    waiting.set(ANSWER_BYTES + ANSWER_BYTES_MAX);
    let answer = peer.reserve_answer(waiting.bytes()).unwrap();
    assert_eq!(budget.usage().common_used, ANSWER_BYTES_MAX);
    assert!(peer.reserve_answer(waiting.bytes()).is_none());
    drop(answer);
    let received = flood.charge_received(plan.share + 1);
    assert!(peer.reserve_answer(waiting.bytes()).is_none() && peer.reserve_answer(ANSWER_BYTES - 1).is_some());
    drop(received);
    assert!(peer.reserve_answer(waiting.bytes()).is_some());
    const { assert!(ANSWER_BYTES_MAX > 24 + 3 + 2_000 * 81) };
}

/// Received messages do not take the memory reserved for blocks to be sent.
#[test]
fn blocks_are_sent_whatever_is_received() {
    let budget = MemoryBudget::new(small(3));
    let [flood, reader, other] = std::array::from_fn(|_| PeerMemory::open(&budget).unwrap());
    let mut received = flood.charge_received(5_000);
    assert!(!received.try_receive(1));
    let own = 1_000 + ANSWERS_BYTES;
    assert!(reader.charge_block(own + 6_001).is_none());
    let mut block = reader.charge_block(own + 6_000).unwrap();
    assert!(other.charge_block(own + 1).is_none(), "nothing is left but its own part");
    assert!(other.charge_block(own).is_some());
    let waiting = other.wait_to_send();
    assert!(budget.has_waiting());
    drop(waiting);
    assert!(!budget.has_waiting());
    block.set(own + 1_000);
    assert_eq!(block.bytes(), own + 1_000);
    assert!(other.charge_block(own + 5_000).is_some() && other.charge_block(own + 5_001).is_none());
}

/// Regression test: after an attack, the process kept 1.0 to 1.1 GB. Memory is returned once after each peak, when most
/// of it is free.
#[test]
fn memory_goes_back_after_a_peak() {
    let budget = MemoryBudget::new(MemoryPlan::new(1));
    let memory = PeerMemory::open(&budget).unwrap();
    let mut charge = memory.charge_received(PEAK_BYTES_MIN - 1);
    charge.set(0);
    assert!(!budget.should_trim());
    charge.set(PEAK_BYTES_MIN);
    assert!(!budget.should_trim());
    charge.set(PEAK_BYTES_MIN / 4 + 1);
    assert!(!budget.should_trim());
    charge.set(PEAK_BYTES_MIN / 4);
    assert!(budget.should_trim() && !budget.should_trim());
}

/// Regression test: after a hundred connections that sent nothing, 30 MB stayed, because only charged bytes counted.
#[test]
fn memory_goes_back_after_many_connections() {
    let budget = MemoryBudget::new(MemoryPlan::new(100));
    for (count, left, expected) in [
        (PEAK_CONNECTIONS_MIN - 1, 0, false),
        (PEAK_CONNECTIONS_MIN, PEAK_CONNECTIONS_MIN / 4 + 1, false),
        (PEAK_CONNECTIONS_MIN, PEAK_CONNECTIONS_MIN / 4, true),
    ] {
        let mut open: Vec<_> = (0..count).map(|_| PeerMemory::open(&budget).unwrap()).collect();
        assert!(!budget.should_trim());
        open.truncate(left);
        assert_eq!(budget.should_trim(), expected, "{count} connections, of which {left} are left");
        assert!(!budget.should_trim());
    }
}
