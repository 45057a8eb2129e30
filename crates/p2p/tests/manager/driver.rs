//! The driver: what becomes of a block without room in the queue, and the answers to questions.

use crate::bench::Bench;
use crate::chain::block_on;
use lydian_p2p::driver::Event;
use lydian_p2p::manager::{AddressCounts, AddressRefusal, NodeCommand, NodeRefusal, PeerId, Question};
use lydian_p2p::peer::ConnectionKind;
use lydian_wire::{Message, NetAddr, Subnet};
use std::time::Duration;

/// A block that finds the queue of blocks full counts as not received: it is requested again, and its sender is not
/// punished.
#[test]
fn a_block_without_room_is_requested_again() {
    let mut bench = Bench::synced(3);
    let peer = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let made = block_on(bench.tip(), 1, Vec::new());
    bench.announce(peer, &[made.header()]);
    assert_eq!(bench.take_asked(peer).len(), 1);
    bench.deliveries_max = 0;
    bench.send(peer, Message::Block(made.bytes()));
    bench.deliveries_max = 1;
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.take_asked(peer).len(), 1);
    assert!(bench.ended.is_empty() && bench.tip_hash() != made.hash);
    bench.send(peer, Message::Block(made.bytes()));
    assert_eq!(bench.tip_hash(), made.hash);
}

/// The bytes of a queued block are charged to its sender until the result is passed on.
#[test]
fn a_queued_block_is_charged_to_its_sender() {
    let mut bench = Bench::synced(3);
    let peer = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let made = block_on(bench.tip(), 1, Vec::new());
    bench.announce(peer, &[made.header()]);
    bench.holds_back = true;
    bench.send(peer, Message::Block(made.bytes()));
    let mut delivery = bench.deliveries.pop().unwrap();
    let charged = |delivery: &lydian_p2p::driver::Delivery| delivery.charge.as_ref().map(|charge| charge.bytes());
    assert!(charged(&delivery) >= Some(made.bytes().len()));
    let stored = delivery.store(&bench.engine, bench.now()).unwrap();
    assert!(delivery.block.memory_bytes() == 0 && charged(&delivery).is_some());
    assert!(matches!(stored, Event::Stored { from, hash, .. } if from == peer && hash == made.hash));
}

#[test]
fn nodes_are_added_and_removed() {
    let mut bench = Bench::new();
    let mut node = |command, v2| bench.ask(|reply| Question::Node { command, target: "1.2.3.4".to_owned(), v2, reply });
    assert_eq!(node(NodeCommand::Add, Some(true)), Err(NodeRefusal::V2Disabled));
    assert_eq!(node(NodeCommand::Add, None), Ok(()));
    assert_eq!(node(NodeCommand::Add, Some(false)), Err(NodeRefusal::AlreadyAdded));
    assert_eq!(node(NodeCommand::Remove, None), Ok(()));
    assert_eq!(node(NodeCommand::Remove, None), Err(NodeRefusal::NotAdded));
    assert_eq!(node(NodeCommand::OneTry, None), Ok(()));
    assert_eq!(bench.ask(Question::AddedNodes), []);
    assert!(!bench.ask(|reply| Question::DisconnectPeer { id: PeerId(7), reply }));
}

#[test]
fn addresses_and_bans_are_changed() {
    let mut bench = Bench::new();
    let addr = NetAddr::Ipv4([50, 1, 2, 3].into());
    let add = |bench: &mut Bench, addr, is_tried| {
        bench.ask(|reply| Question::AddAddress { addr, port: 8333, is_tried, reply })
    };
    assert_eq!(add(&mut bench, addr, true), Ok(()));
    assert_eq!(add(&mut bench, addr, false), Err(AddressRefusal::New));
    let counts = bench.ask(|reply| Question::AddressCounts { networks: vec![None], reply });
    assert_eq!(counts, [AddressCounts { new: 0, tried: 1 }]);
    let [new, tried] = bench.ask(Question::AddressTables);
    assert!(new.is_empty() && tried[0].0.address.endpoint.addr == addr);
    let some = |bench: &mut Bench| bench.ask(|reply| Question::Addresses { count: 0, network: None, reply });
    assert_eq!(some(&mut bench).len(), 1);
    let (subnet, now): (Subnet, _) = ("50.1.0.0/16".parse().unwrap(), bench.now().unix);
    let single = Subnet::single(addr).unwrap();
    assert!(bench.ask(|reply| Question::Ban { subnet, seconds: 60, is_absolute: false, reply }));
    let is_banned =
        |bench: &mut Bench, subnet, is_single| bench.ask(|reply| Question::IsBanned { subnet, is_single, now, reply });
    assert!(is_banned(&mut bench, subnet, false) && is_banned(&mut bench, single, true));
    assert!(!is_banned(&mut bench, single, false), "no ban is of exactly this address");
    assert!(some(&mut bench).is_empty());
    assert!(bench.ask(|reply| Question::Bans { now, reply }).contains_key(&subnet));
    assert!(!bench.ask(|reply| Question::Unban { subnet: single, reply }));
    assert!(bench.ask(|reply| Question::Unban { subnet, reply }));
    bench.ask(Question::ClearBans);
    assert!(!is_banned(&mut bench, single, true));
}
