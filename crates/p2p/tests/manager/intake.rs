//! Received blocks until the result of storing them is known: the manager has read only their headers, and they wait
//! for the thread that parses and stores them.

use crate::bench::{Bench, START};
use crate::chain::{block_on, mutated};
use lydian_consensus::{Chain, Params};
use lydian_p2p::driver::Event;
use lydian_p2p::limits::UNREQUESTED_BLOCKS_MAX;
use lydian_p2p::manager::Intake;
use lydian_p2p::peer::ConnectionKind;
use lydian_primitives::BlockHash;
use lydian_wire::Message;

/// A block without a parent is read, because bytes that are not a block are not punished, but it is never stored. Its
/// sender is disconnected.
/// checklist: 70
#[test]
fn blocks_without_a_parent_are_not_stored() {
    let mut bench = Bench::synced(3);
    bench.holds_back = true;
    let peer = bench.connect_synced(ConnectionKind::Inbound);
    // The genesis block has no parent and is already here.
    let genesis = Params::new(Chain::Regtest).genesis_block();
    bench.send(peer, Message::Block(genesis.as_bytes().to_vec()));
    assert!(bench.ended.is_empty() && bench.deliveries.is_empty(), "Core passes over the genesis block");
    let nowhere = block_on((BlockHash([9; 32]), 7, START), 1, Vec::new());
    let bytes = nowhere.bytes();
    for (bytes, is_punished) in [(&bytes[..bytes.len() - 1], false), (&bytes[..], true)] {
        bench.send(peer, Message::Block(bytes.to_vec()));
        assert!(bench.deliveries.iter().all(|delivery| delivery.intake == Intake::Unneeded));
        bench.store();
        assert_eq!(bench.is_discouraged(peer), is_punished, "bytes that are not a block are not punished");
    }
    assert!(bench.engine.header_info(&nowhere.hash).is_none());
    assert_eq!(bench.manager.held().pending, 0);
}

/// Unrequested blocks that wait to be looked into are few; further ones are ignored, and a requested block is not.
/// limit: UNREQUESTED_BLOCKS_MAX at
/// limit: UNREQUESTED_BLOCKS_MAX above
#[test]
fn unrequested_blocks_do_not_fill_the_queue() {
    let mut bench = Bench::synced(3);
    bench.holds_back = true;
    let (noisy, honest) =
        (bench.connect_synced(ConnectionKind::Inbound), bench.connect_synced(ConnectionKind::OutboundFullRelay));
    let wanted = block_on(bench.tip(), 1, Vec::new());
    bench.announce(honest, &[wanted.header()]);
    assert_eq!(bench.take_asked(honest).len(), 1);
    let orphan = block_on((BlockHash([9; 32]), 7, START), 1, Vec::new()).bytes();
    for count in 1..=UNREQUESTED_BLOCKS_MAX + 1 {
        bench.send(noisy, Message::Block(orphan.clone()));
        assert_eq!(bench.deliveries.len(), count.min(UNREQUESTED_BLOCKS_MAX));
    }
    bench.send(honest, Message::Block(wanted.bytes()));
    assert_eq!(bench.manager.held().pending, UNREQUESTED_BLOCKS_MAX + 1);
    bench.store();
    assert!(bench.is_discouraged(noisy) && bench.tip_hash() == wanted.hash);
    assert_eq!(bench.manager.held().pending, 0);
    // There is room again.
    let other = bench.connect_synced(ConnectionKind::Inbound);
    bench.send(other, Message::Block(orphan));
    bench.store();
    assert!(bench.is_discouraged(other));
}

/// An unrequested block is not trusted until it was looked into: other bytes under the header of a new block neither
/// keep the block from being requested nor mark anything, and their sender is punished.
/// checklist: 70
#[test]
fn mutated_bytes_that_wait_hide_no_block() {
    let mut bench = Bench::synced(3);
    let honest = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let liar = bench.connect_synced(ConnectionKind::Inbound);
    let made = block_on(bench.tip(), 1, Vec::new());
    bench.holds_back = true;
    bench.send(liar, Message::Block(mutated(&made)));
    assert_eq!(bench.deliveries.iter().map(|delivery| delivery.intake).collect::<Vec<_>>(), [Intake::Unrequested]);
    assert!(bench.ended.is_empty() && bench.engine.header_info(&made.hash).is_none());
    bench.announce(honest, &[made.header()]);
    assert_eq!(bench.take_asked(honest).len(), 1);
    bench.store();
    assert!(bench.is_discouraged(liar) && bench.has_logged("Received mutated block"));
    bench.send(honest, Message::Block(made.bytes()));
    bench.store();
    assert!(bench.tip_hash() == made.hash && !bench.ended.contains_key(&honest));
}

/// The sender of an unrequested block disconnects before the block was looked into: the result changes nothing for
/// others, and nothing is left of it.
#[test]
fn who_leaves_before_the_result_leaves_nothing() {
    let mut bench = Bench::synced(3);
    bench.holds_back = true;
    let made = block_on(bench.tip(), 1, Vec::new());
    for (bytes, is_block) in [(mutated(&made), false), (made.bytes(), true)] {
        let peer = bench.connect_synced(ConnectionKind::Inbound);
        bench.send(peer, Message::Block(bytes));
        assert_eq!(bench.manager.held().pending, 1);
        bench.drive(Event::Disconnected { peer, wants_v1: false });
        bench.store();
        assert!(bench.ended.is_empty());
        assert_eq!(bench.tip_hash() == made.hash, is_block);
        let held = bench.manager.held();
        assert_eq!((held.pending, held.in_flight, held.peers), (0, 0, 0));
    }
    bench.drive(Event::ChainChanged);
}

/// A received block that waits to be stored is not requested from the next peer that announces it.
#[test]
fn a_block_that_waits_to_be_stored_is_not_requested() {
    let mut bench = Bench::synced(3);
    let (one, two) = (bench.connect_synced(ConnectionKind::Inbound), bench.connect_synced(ConnectionKind::Inbound));
    // On the best chain, and outside it.
    let (parent, made) = (bench.tip(), block_on(bench.tip(), 1, Vec::new()));
    for made in [made, block_on(parent, 2, Vec::new())] {
        bench.announce(one, &[made.header()]);
        assert_eq!(bench.take_asked(one).len(), 1);
        bench.holds_back = true;
        bench.send(one, Message::Block(made.bytes()));
        bench.announce(two, &[made.header()]);
        assert!(bench.take_asked(two).is_empty());
        bench.holds_back = false;
        bench.store();
    }
}
