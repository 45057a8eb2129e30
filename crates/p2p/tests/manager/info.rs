//! Information about peers, and requests of the operator.

use crate::bench::Bench;
use crate::chain::{Made, block_on};
use lydian_consensus::U256;
use lydian_p2p::manager::{PeerId, PeerInfo};
use lydian_p2p::peer::ConnectionKind;
use lydian_primitives::{Amount, Header, Height};
use lydian_wire::{Inv, InvType, Message};
use std::time::Duration;

fn info(bench: &Bench, id: PeerId) -> PeerInfo {
    bench.manager.peers(bench.now()).into_iter().find(|peer| peer.id == id).unwrap()
}

/// Creates a chain of blocks on top of the tip.
fn blocks(bench: &Bench, count: u32, tag: u8) -> Vec<Made> {
    let (mut parent, mut made) = (bench.tip(), Vec::new());
    for _ in 0..count {
        let block = block_on(parent, tag, Vec::new());
        parent = (block.hash, block.height, parent.2 + 1);
        made.push(block);
    }
    made
}

fn headers(blocks: &[Made]) -> Vec<Header> {
    blocks.iter().map(Made::header).collect()
}

#[test]
fn what_a_peer_has_and_what_it_was_asked_for() {
    let mut bench = Bench::synced(5);
    let peer = bench.connect(ConnectionKind::OutboundFullRelay);
    let told = info(&bench, peer);
    assert_eq!((told.synced_headers, told.synced_blocks, told.in_flight.len()), (None, None, 0));
    let new = blocks(&bench, 2, 1);
    bench.announce(peer, &headers(&new));
    bench.wait(Duration::from_millis(200));
    let told = info(&bench, peer);
    assert_eq!((told.synced_headers, told.synced_blocks), (Some(Height(7)), Some(Height(5))));
    assert_eq!(told.in_flight, [Height(6), Height(7)]);
    new.iter().for_each(|block| bench.send(peer, Message::Block(block.bytes())));
    bench.wait(Duration::from_millis(200));
    let told = info(&bench, peer);
    assert_eq!((told.synced_blocks, told.in_flight.len()), (Some(Height(7)), 0));
    assert_eq!(told.last_block, bench.now().unix);
}

#[test]
fn the_first_pass_over_headers_of_little_work() {
    let mut bench = Bench::with(|settings| settings.minimum_chain_work = U256::MAX);
    let peer = bench.connect(ConnectionKind::OutboundFullRelay);
    assert_eq!(info(&bench, peer).presynced_headers, None);
    let all = headers(&blocks(&bench, 2_000, 0));
    bench.announce(peer, &all);
    let told = info(&bench, peer);
    assert_eq!((told.presynced_headers, told.synced_headers), (Some(Height(2_000)), None));
    bench.announce(peer, &[]);
    assert!(bench.manager.peers(bench.now()).iter().all(|peer| peer.presynced_headers.is_none()));
}

#[test]
fn what_a_transaction_must_pay_for_a_peer() {
    let mut bench = Bench::synced(1);
    let peer = bench.connect(ConnectionKind::OutboundFullRelay);
    bench.send(peer, Message::FeeFilter(Amount(1_000)));
    assert_eq!(info(&bench, peer).fee_filter, Amount(1_000));
    for nonsense in [-1, 21_000_000 * 100_000_000 + 1] {
        bench.send(peer, Message::FeeFilter(Amount(nonsense)));
        assert_eq!(info(&bench, peer).fee_filter, Amount(1_000));
    }
    bench.send(peer, Message::FeeFilter(Amount(0)));
    assert_eq!(info(&bench, peer).fee_filter, Amount(0));
    let blocks_only = bench.connect(ConnectionKind::BlockRelayOnly);
    bench.send(blocks_only, Message::FeeFilter(Amount(1_000)));
    assert_eq!(info(&bench, blocks_only).fee_filter, Amount(0));
}

#[test]
fn a_ping_to_everyone() {
    let mut bench = Bench::synced(1);
    let peers = [ConnectionKind::Inbound, ConnectionKind::OutboundFullRelay].map(|kind| bench.connect_synced(kind));
    bench.wait(Duration::from_secs(1));
    let answer = |bench: &mut Bench, id| {
        for message in bench.take_sent(id) {
            if let Message::Ping(nonce) = message {
                bench.send(id, Message::Pong(nonce));
            }
        }
    };
    peers.iter().for_each(|id| answer(&mut bench, *id));
    bench.manager.ping_all();
    bench.wait(Duration::from_millis(300));
    for id in peers {
        assert_eq!(info(&bench, id).ping_wait, Some(Duration::from_millis(200)));
        answer(&mut bench, id);
        let told = info(&bench, id);
        assert_eq!((told.ping_wait, told.ping_times.unwrap().0), (None, Duration::from_millis(200)));
    }
}

/// A block that would not be accepted otherwise, requested by the operator.
#[test]
fn a_block_of_a_certain_peer() {
    let mut bench = Bench::synced(10);
    let [first, second] = [ConnectionKind::Inbound; 2].map(|kind| bench.connect_synced(kind));
    let aside = block_on((bench.chain[6].hash, 7, bench.chain[6].header().time), 9, Vec::new());
    bench.send(first, Message::Block(aside.bytes()));
    let is_here = |bench: &Bench| bench.engine.header_info(&aside.hash).is_some_and(|info| info.node.block.is_some());
    assert!(!is_here(&bench), "it has too little work to be taken unasked");
    bench.announce(first, &[aside.header()]);
    let now = bench.now();
    assert_eq!(bench.manager.fetch_block(PeerId(77), &aside.hash, now), Err("Peer does not exist"));
    assert_eq!(bench.manager.fetch_block(first, &aside.hash, now), Ok(()));
    assert_eq!(bench.manager.fetch_block(second, &aside.hash, now), Ok(()));
    bench.wait(Duration::from_millis(100));
    let wish = Message::GetData(vec![Inv::block(InvType::WITNESS_BLOCK, aside.hash)]);
    assert!([first, second].iter().all(|id| bench.take_sent(*id).contains(&wish)));
    assert_eq!((info(&bench, first).in_flight, info(&bench, second).in_flight), (vec![], vec![Height(8)]));
    bench.send(second, Message::Block(aside.bytes()));
    assert!(is_here(&bench));
    assert_eq!(info(&bench, second).in_flight, []);
}

/// The clock offsets of outbound peers, from five of them on.
#[test]
fn clocks_of_peers() {
    let mut bench = Bench::synced(1);
    for _ in 0..5 {
        assert_eq!(bench.manager.median_time_offset_s(), 0);
        bench.connect(ConnectionKind::Inbound);
        bench.connect_at(ConnectionKind::OutboundFullRelay, 33);
    }
    assert_eq!(bench.manager.median_time_offset_s(), 33);
}
