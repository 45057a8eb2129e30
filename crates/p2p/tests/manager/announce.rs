//! Announcements of new blocks to peers: which blocks, in which form, and to which peers.

use crate::bench::Bench;
use crate::chain::{Made, block_on};
use lydian_engine::{Cancel, Unobserved};
use lydian_p2p::driver::Event;
use lydian_p2p::manager::PeerId;
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_primitives::BlockHash;
use lydian_wire::Message;

/// Submits blocks as the operator does: the engine has them, and the manager does not know about them yet.
fn submit(bench: &Bench, count: u32) -> Vec<Made> {
    let unix = i64::try_from(bench.now().unix.0).unwrap();
    let next = |_| {
        let made = block_on(bench.tip(), 1, Vec::new());
        bench.engine.store_block(made.parsed(), unix).unwrap().unwrap();
        bench.engine.advance(&Cancel::new(), &Unobserved).unwrap();
        made
    };
    (0..count).map(next).collect()
}

fn announce_tip(bench: &mut Bench) {
    bench.drive(Event::ChainChanged);
}

/// A peer that has our chain. `high_bandwidth`: it wants unrequested compact blocks; `wants_headers`: it wants headers.
fn listener(bench: &mut Bench, high_bandwidth: bool, wants_headers: bool) -> PeerId {
    let id = bench.connect_with(ConnectionKind::Inbound, Permissions::NONE, Some(high_bandwidth));
    if wants_headers {
        bench.send(id, Message::SendHeaders);
    }
    let tip = bench.engine.tip_info().node.header;
    bench.announce(id, &[tip]);
    bench.take_sent(id);
    id
}

/// Returns the announcements that a peer got: their form and the blocks.
fn announcements(bench: &mut Bench, id: PeerId) -> Vec<(&'static str, Vec<BlockHash>)> {
    let sent = bench.take_sent(id);
    let announcements = sent.into_iter().filter_map(|message| match message {
        Message::CmpctBlock(compact) => Some(("compact", vec![compact.header.hash()])),
        Message::Headers(headers) => Some(("headers", headers.iter().map(|header| header.hash()).collect())),
        Message::Inv(inventory) => Some(("hash", inventory.iter().map(|item| BlockHash(item.hash)).collect())),
        _ => None,
    });
    announcements.collect()
}

/// Regression test: a block was mined, and a peer connected before the manager noticed the block: it was announced to
/// this peer as if it were new. (New blocks were announced to all peers that were connected when the manager checked.)
#[test]
fn a_block_older_than_the_connection_is_not_announced() {
    let mut bench = Bench::synced(3);
    let old = listener(&mut bench, false, false);
    let made = submit(&bench, 1);
    let new = bench.connect_with(ConnectionKind::Inbound, Permissions::NONE, Some(false));
    announce_tip(&mut bench);
    assert_eq!(announcements(&mut bench, old), [("hash", vec![made[0].hash])]);
    assert_eq!(announcements(&mut bench, new), []);
    let next = submit(&bench, 1);
    announce_tip(&mut bench);
    assert_eq!(announcements(&mut bench, new), [("hash", vec![next[0].hash])]);
}

/// A block that becomes the tip during a peer's handshake is announced to it afterwards. (Regression test: peers that
/// were not ready never got the announcement.)
#[test]
fn a_block_of_the_time_of_the_handshake_is_announced_after_it() {
    let mut bench = Bench::synced(3);
    let peer = bench.open(ConnectionKind::Inbound, Permissions::NONE);
    let made = submit(&bench, 2);
    announce_tip(&mut bench);
    assert_eq!(announcements(&mut bench, peer), []);
    bench.shake_hands(peer, |_| {});
    assert_eq!(announcements(&mut bench, peer), [("hash", vec![made[1].hash])]);
}

/// Two blocks become active before the manager checks: a peer that wants unrequested compact blocks gets both, as from
/// Core, which announces each when it arrives. (Regression test: it got the hash of the second or two headers, and
/// requested both blocks.) The others get headers or a hash.
#[test]
fn two_blocks_at_once_are_two_compact_blocks() {
    for wants_headers in [false, true] {
        let mut bench = Bench::synced(3);
        let quick = listener(&mut bench, true, wants_headers);
        let other = listener(&mut bench, false, wants_headers);
        let made: Vec<_> = submit(&bench, 2).iter().map(|made| made.hash).collect();
        announce_tip(&mut bench);
        assert_eq!(announcements(&mut bench, quick), [("compact", vec![made[0]]), ("compact", vec![made[1]])]);
        let expected = if wants_headers { ("headers", made) } else { ("hash", vec![made[1]]) };
        assert_eq!(announcements(&mut bench, other), [expected]);
    }
}

/// Eight blocks at once are announced with their headers, nine with the hash of the last.
#[test]
fn many_blocks_at_once() {
    for (count, form) in [(8, "headers"), (9, "hash")] {
        let mut bench = Bench::synced(3);
        let peer = listener(&mut bench, false, true);
        let made: Vec<_> = submit(&bench, count).iter().map(|made| made.hash).collect();
        announce_tip(&mut bench);
        let expected = if form == "hash" { vec![made[8]] } else { made };
        assert_eq!(announcements(&mut bench, peer), [(form, expected)]);
    }
}
