//! Blocks that readers of this node order: the peers that are asked, what a reader gets, what an order does not change.

use crate::bench::Bench;
use crate::chain::{Made, mutated};
use lydian_consensus::U256;
use lydian_engine::{InitialDownload, TIP_AGE_SECONDS_DEFAULT};
use lydian_p2p::driver::Event;
use lydian_p2p::limits::{BLOCK_TIMEOUT, COMPACT_BLOCKS_PER_PEER_MAX, ORDER_PATIENCE, ORDER_TIMEOUT, ORDERS_MAX};
use lydian_p2p::manager::{PeerId, Question};
use lydian_p2p::order::{BlockTaker, Order, OrderFailure};
use lydian_p2p::peer::ConnectionKind;
use lydian_primitives::{Block, BlockHash};
use lydian_wire::{Inv, InvType, Message, Services};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const STEP: Duration = Duration::from_millis(100);

/// What a reader got: the bytes of a block, or a failure.
type Got = Result<Vec<u8>, OrderFailure>;

/// A reader: keeps what it gets.
#[derive(Debug, Default)]
struct Reader(Mutex<Vec<Got>>);

impl BlockTaker for Reader {
    fn take(&self, _: &BlockHash, result: Result<Arc<Block>, OrderFailure>) {
        self.0.lock().unwrap().push(result.map(|block| block.as_bytes().to_vec()));
    }
}

impl Reader {
    fn take_all(&self) -> Vec<Got> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn order(bench: &mut Bench, made: &BlockHash) -> Arc<Reader> {
    let reader = Arc::<Reader>::default();
    bench.drive(Event::Ask(Question::Order(Order::new(*made, Arc::<Reader>::clone(&reader)))));
    reader
}

/// A node with a chain, and a block of it that is ordered.
fn world() -> (Bench, Made) {
    let bench = Bench::synced(20);
    let made = Made { hash: bench.chain[4].hash, height: 5, block: bench.chain[4].block.clone() };
    (bench, made)
}

/// The peers that were asked for the block since the last call.
fn asked(bench: &mut Bench, peers: &[PeerId], made: &Made) -> Vec<PeerId> {
    let wish = (InvType::WITNESS_BLOCK, made.hash);
    peers.iter().copied().filter(|id| bench.take_asked(*id).contains(&wish)).collect()
}

fn full(bench: &mut Bench, count: usize) -> Vec<PeerId> {
    (0..count).map(|_| bench.connect_synced(ConnectionKind::OutboundFullRelay)).collect()
}

/// One peer is asked that serves all blocks and has this one, rather one that we chose; the reader gets the block,
/// which is not stored; what is sent again is looked at like any block that no peer was asked for.
#[test]
fn an_ordered_block_comes_from_a_peer_that_has_it() {
    let (mut bench, made) = world();
    let limited = bench.connect_with_version(ConnectionKind::OutboundFullRelay, |version| {
        version.services = Services::NETWORK_LIMITED | Services::WITNESS;
    });
    let tip = bench.engine.tip_info().node.header;
    bench.announce(limited, &[tip]);
    let behind = bench.connect(ConnectionKind::OutboundFullRelay);
    let third = bench.chain[2].header();
    bench.announce(behind, &[third]);
    let addresses = bench.connect_synced(ConnectionKind::AddrFetch);
    let inbound = bench.connect_synced(ConnectionKind::Inbound);
    let chosen = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let all = [limited, behind, addresses, inbound, chosen];
    all.iter().for_each(|id| drop(bench.take_sent(*id)));

    let before = bench.engine.header_info(&made.hash).unwrap().node;
    let reader = order(&mut bench, &made.hash);
    assert_eq!(asked(&mut bench, &all, &made), [chosen]);
    assert_eq!(reader.take_all(), [] as [Got; 0]);
    // A peer that was not asked does not answer an order.
    bench.send(inbound, Message::Block(made.bytes()));
    assert_eq!(reader.take_all(), [] as [Got; 0]);
    bench.send(chosen, Message::Block(made.bytes()));
    assert_eq!(reader.take_all(), [Ok(made.bytes())]);
    bench.send(chosen, Message::Block(made.bytes()));
    assert_eq!(reader.take_all(), [] as [Got; 0]);
    let after = bench.engine.header_info(&made.hash).unwrap().node;
    assert_eq!((before.block, before.undo, before.sequence), (after.block, after.undo, after.sequence));
    bench.wait(BLOCK_TIMEOUT * 2);
    assert!(asked(&mut bench, &all, &made).is_empty());
    assert!(!bench.has_logged("Timeout downloading block"));

    // The one that chose us, if there is no other.
    bench.drive(Event::Disconnected { peer: chosen, wants_v1: false });
    let reader = order(&mut bench, &made.hash);
    assert_eq!(asked(&mut bench, &all, &made), [inbound]);
    bench.send(inbound, Message::Block(made.bytes()));
    assert_eq!(reader.take_all(), [Ok(made.bytes())]);
}

#[test]
fn an_order_that_no_peer_can_carry_out_fails_at_once() {
    let (mut bench, made) = world();
    assert_eq!(order(&mut bench, &made.hash).take_all(), [Err(OrderFailure::NoPeer)]);
    full(&mut bench, 1);
    assert_eq!(order(&mut bench, &BlockHash([7; 32])).take_all(), [Err(OrderFailure::NoPeer)]);
    let initial_download = Arc::new(InitialDownload::new(U256::ZERO, TIP_AGE_SECONDS_DEFAULT));
    initial_download.set_loading(true);
    let mut loading = Bench::with(|settings| settings.initial_download = Arc::clone(&initial_download));
    loading.grow(3);
    let hash = loading.tip_hash();
    assert_eq!(order(&mut loading, &hash).take_all(), [Err(OrderFailure::Loading)]);
}

/// Whatever a peer does instead of sending the block, another one is asked at once; only one that sends other bytes
/// under the header is punished.
#[test]
fn another_peer_is_asked_if_one_fails() {
    let (mut bench, made) = world();
    let peers = full(&mut bench, 5);
    let reader = order(&mut bench, &made.hash);
    let turn = |bench: &mut Bench| {
        let [peer] = asked(bench, &peers, &made)[..] else { panic!("one peer is asked") };
        peer
    };
    let liar = turn(&mut bench);
    bench.send(liar, Message::Block(mutated(&made)));
    assert!(bench.is_discouraged(liar));
    let mumbler = turn(&mut bench);
    bench.send(mumbler, Message::Block(made.bytes()[..100].to_vec()));
    let without = turn(&mut bench);
    bench.send(without, Message::NotFound(vec![Inv::block(InvType::WITNESS_BLOCK, made.hash)]));
    let leaver = turn(&mut bench);
    bench.drive(Event::Disconnected { peer: leaver, wants_v1: false });
    bench.wait(STEP);
    let busy = turn(&mut bench);
    // No room for the block where it is looked into.
    bench.deliveries_max = 0;
    bench.send(busy, Message::Block(made.bytes()));
    assert_eq!(reader.take_all(), [Err(OrderFailure::NotSent { asked: 5 })]);
    assert!([mumbler, without, busy].iter().all(|id| !bench.ended.contains_key(id)), "{:?}", bench.ended);

    bench.deliveries_max = usize::MAX;
    let reader = order(&mut bench, &made.hash);
    let [peer] = asked(&mut bench, &peers, &made)[..] else { panic!("a new order begins anew") };
    // What follows the block is ignored.
    bench.send(peer, Message::Block([made.bytes(), vec![1, 2, 3]].concat()));
    assert_eq!(reader.take_all(), [Ok(made.bytes())]);
}

/// A silent peer costs its patience, not the order. After the time limit the reader gets an error; a block that arrives
/// after that is passed on too, and a peer that never sends it is disconnected as for any other block.
/// limit: ORDER_PATIENCE at
/// limit: ORDER_PATIENCE above
/// limit: ORDER_TIMEOUT at
/// limit: ORDER_TIMEOUT above
#[test]
fn silent_peers() {
    let (mut bench, made) = world();
    let peers = full(&mut bench, 4);
    let reader = order(&mut bench, &made.hash);
    let mut silent = asked(&mut bench, &peers, &made);
    for count in 1..=3 {
        assert_eq!(silent.len(), count);
        bench.wait(ORDER_PATIENCE - STEP);
        assert_eq!(asked(&mut bench, &peers, &made), []);
        assert_eq!(reader.take_all(), [] as [Got; 0]);
        bench.wait(STEP);
        silent.extend(asked(&mut bench, &peers, &made));
    }
    assert_eq!((silent.len(), ORDER_PATIENCE * 3), (3, ORDER_TIMEOUT), "as many as are asked for any block");
    assert_eq!(reader.take_all(), [Err(OrderFailure::TimedOut { asked: 3 })]);
    // The next order waits for the same peers, and asks the one that is left.
    let next = order(&mut bench, &made.hash);
    bench.send(silent[1], Message::Block(made.bytes()));
    assert_eq!((next.take_all(), reader.take_all()), (vec![Ok(made.bytes())], vec![]));

    let hash = bench.chain[9].hash;
    let late = order(&mut bench, &hash);
    let tenth = Made { hash: bench.chain[9].hash, height: 10, block: bench.chain[9].block.clone() };
    let [slow] = asked(&mut bench, &peers, &tenth)[..] else { panic!("one peer is asked") };
    assert!(!silent.contains(&slow) || slow == silent[1], "those that are late are asked last");
    bench.wait(ORDER_TIMEOUT);
    assert!(matches!(late.take_all()[..], [Err(OrderFailure::TimedOut { .. })]));
    bench.send(slow, Message::Block(tenth.bytes()));
    assert_eq!(late.take_all(), [Ok(tenth.bytes())]);

    bench.idle(&peers, 11);
    assert!(bench.has_logged(&format!("Timeout downloading block {}", made.hash)));
    assert!([silent[0], silent[2]].iter().all(|id| bench.ended.contains_key(id)), "{:?}", bench.ended);
}

/// limit: ORDERS_MAX at
/// limit: ORDERS_MAX above
#[test]
fn orders_at_a_time() {
    let (mut bench, _) = world();
    let peers = full(&mut bench, 2);
    let hashes: Vec<BlockHash> = bench.chain.iter().map(|made| made.hash).collect();
    let readers: Vec<Arc<Reader>> = hashes[..ORDERS_MAX].iter().map(|hash| order(&mut bench, hash)).collect();
    assert_eq!(order(&mut bench, &hashes[ORDERS_MAX]).take_all(), [Err(OrderFailure::TooMany)]);
    let counts: Vec<usize> = peers.iter().map(|id| bench.take_asked(*id).len()).collect();
    assert_eq!(counts, [ORDERS_MAX / 2; 2], "shared equally");
    assert!(readers.iter().all(|reader| reader.take_all().is_empty()));
    let first = bench.chain[0].bytes();
    peers.iter().for_each(|id| bench.send(*id, Message::Block(first.clone())));
    assert_eq!(readers[0].take_all(), [Ok(first)]);
    let last = order(&mut bench, &hashes[ORDERS_MAX]);
    assert!(last.take_all().is_empty());
    // The network ends.
    drop(bench);
    assert!(readers[1..].iter().chain([&last]).all(|reader| reader.take_all() == [Err(OrderFailure::Ended)]));
}

/// A peer that never answers is not asked for any number of blocks. Further orders wait for another peer, and fail only
/// when their time is over.
/// limit: COMPACT_BLOCKS_PER_PEER_MAX at
/// limit: COMPACT_BLOCKS_PER_PEER_MAX above
#[test]
fn requests_to_one_silent_peer_are_bounded() {
    let (mut bench, _) = world();
    let peer = full(&mut bench, 1)[0];
    let hashes: Vec<BlockHash> = bench.chain.iter().map(|made| made.hash).collect();
    let place = |bench: &mut Bench, range: std::ops::Range<usize>| -> Vec<Arc<Reader>> {
        hashes[range].iter().map(|hash| order(bench, hash)).collect()
    };
    let mut asked = Vec::new();
    for range in [0..8, 8..16] {
        let readers = place(&mut bench, range);
        asked.push(bench.take_asked(peer).len());
        bench.wait(ORDER_TIMEOUT);
        assert!(readers.iter().all(|reader| reader.take_all() == [Err(OrderFailure::TimedOut { asked: 1 })]));
    }
    assert_eq!(asked, [COMPACT_BLOCKS_PER_PEER_MAX / 2; 2]);

    let readers = place(&mut bench, 16..18);
    bench.wait(ORDER_TIMEOUT - STEP);
    assert!(
        readers.iter().all(|reader| reader.take_all().is_empty()),
        "the peer has the blocks, and may be free again"
    );
    bench.wait(STEP);
    assert!(readers.iter().all(|reader| reader.take_all() == [Err(OrderFailure::NoneFree)]));
    assert!(bench.take_asked(peer).is_empty());

    // As soon as the peer has answered one, it is asked for the next.
    let readers = place(&mut bench, 16..18);
    let first = bench.chain[0].bytes();
    bench.send(peer, Message::Block(first));
    bench.wait(STEP);
    let [(_, next)] = bench.take_asked(peer)[..] else { panic!("one more") };
    // Another peer is asked at the next look.
    let other = full(&mut bench, 1)[0];
    bench.wait(STEP);
    let [(_, last)] = bench.take_asked(other)[..] else { panic!("the other one") };
    assert_ne!(next, last);
    for (from, hash) in [(peer, next), (other, last)] {
        let at = hashes.iter().position(|one| *one == hash).unwrap();
        let bytes = bench.chain[at].bytes();
        bench.send(from, Message::Block(bytes.clone()));
        assert_eq!(readers[at - 16].take_all(), [Ok(bytes)]);
    }
}
