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

/// Regression test: one hundred peers held 1,488 MB because each had its own limits and the sum was not limited. A peer
/// that has used its share is read from while the common part has room, then no longer; the others continue within
/// their shares.
///
/// limit: RECEIVE_COMMON_BYTES at
/// limit: RECEIVE_COMMON_BYTES above
#[test]
fn a_peer_above_its_share_is_not_read_from() {
    let budget = MemoryBudget::new(small(3));
    let [first, second, third] = std::array::from_fn(|_| PeerMemory::open(&budget).unwrap());
    assert!(PeerMemory::open(&budget).is_none(), "no more connections than the plan has");
    let mut greedy = first.charge(4_999);
    assert!(first.may_receive() && second.may_receive(), "the common part has one byte left");
    greedy.set(5_000);
    assert!(!first.may_receive() && second.may_receive());
    let other = second.charge(1_000);
    assert!(!second.may_receive() && third.may_receive());
    let usage = MemoryUse { used: 6_000, common_used: 4_000, rooms_taken: 0, accounts: 3, peak: 6_000 };
    assert_eq!(budget.usage(), usage);
    greedy.set(1_500);
    assert!(first.may_receive() && second.may_receive());
    drop((greedy, other));
    assert_eq!(budget.usage(), MemoryUse { used: 0, common_used: 0, ..usage });
    // Bytes held for a closed connection keep its account open, so that reconnecting gains no memory.
    let left = first.charge(500);
    drop(first);
    assert!(PeerMemory::open(&budget).is_none());
    drop(left);
    assert!(PeerMemory::open(&budget).is_some());
    assert_eq!(RECEIVE_COMMON_BYTES, MemoryPlan::new(1).receive_common);
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
    let _flood = peers[0].charge(plan.share + plan.receive_common);
    let share = peers[1].charge(plan.share);
    assert!(!peers[1].may_receive() && peers[1].has_block_room());
    peers[1].set_asked(true);
    let mut block = peers[1].charge(BLOCK_ROOM_BYTES - 1);
    assert!(peers[1].may_receive());
    block.set(BLOCK_ROOM_BYTES);
    assert!(!peers[1].may_receive());
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
/// otherwise its queue would never become empty.
///
/// limit: ANSWER_BYTES at
/// limit: ANSWER_BYTES above
#[test]
fn answers_wait_for_those_before() {
    let budget = MemoryBudget::new(small(2));
    let [flood, peer] = std::array::from_fn(|_| PeerMemory::open(&budget).unwrap());
    assert!(peer.may_answer(usize::MAX));
    let received = flood.charge(5_000);
    assert!(peer.may_answer(ANSWER_BYTES - 1) && !peer.may_answer(ANSWER_BYTES));
    drop(received);
    assert!(peer.may_answer(ANSWER_BYTES));
}

/// Received messages do not take the memory reserved for blocks to be sent.
#[test]
fn blocks_are_sent_whatever_is_received() {
    let budget = MemoryBudget::new(small(3));
    let [flood, reader, other] = std::array::from_fn(|_| PeerMemory::open(&budget).unwrap());
    let _received = flood.charge(5_000);
    assert!(!flood.may_receive());
    assert!(reader.charge_block(7_001).is_none());
    let mut block = reader.charge_block(7_000).unwrap();
    assert!(other.charge_block(1_001).is_none(), "nothing is left but its share");
    assert!(other.charge_block(1_000).is_some());
    let waiting = other.wait_to_send();
    assert!(budget.has_waiting());
    drop(waiting);
    assert!(!budget.has_waiting());
    block.set(2_000);
    assert_eq!(block.bytes(), 2_000);
    assert!(other.charge_block(6_000).is_some());
}

/// Regression test: after an attack, the process kept 1.0 to 1.1 GB. Memory is returned once after each peak, when most
/// of it is free.
#[test]
fn memory_goes_back_after_a_peak() {
    let budget = MemoryBudget::new(MemoryPlan::new(1));
    let memory = PeerMemory::open(&budget).unwrap();
    let mut charge = memory.charge(PEAK_BYTES_MIN - 1);
    charge.set(0);
    assert!(!budget.should_trim());
    charge.set(PEAK_BYTES_MIN);
    assert!(!budget.should_trim());
    charge.set(PEAK_BYTES_MIN / 4 + 1);
    assert!(!budget.should_trim());
    charge.set(PEAK_BYTES_MIN / 4);
    assert!(budget.should_trim() && !budget.should_trim());
}
