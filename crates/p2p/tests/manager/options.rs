//! Effects of settings on peers: old blocks beyond `-maxuploadtarget`, our own address.

use crate::bench::{Bench, START};
use crate::chain::block_on;
use lydian_engine::{Cancel, Unobserved};
use lydian_p2p::local_address::{LocalAddress, LocalAddresses, LocalSettings};
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_wire::{Endpoint, Inv, InvType, Message};
use std::time::Duration;

const MONTH: u32 = 30 * 24 * 60 * 60;

/// A peer that requests an old block when the daily target is reached is disconnected, unless it has the permission;
/// blocks of the last week are sent to all peers.
#[test]
fn old_blocks_beyond_the_target_of_a_day() {
    let served = |target: u64, permissions: Permissions, wants_old: bool| {
        let mut bench = Bench::with(|settings| settings.connect.upload_target = target);
        let (genesis, height, _) = bench.tip();
        let old = block_on((genesis, height, START - MONTH), 0, Vec::new());
        bench.engine.store_block(old.parsed(), i64::from(START)).unwrap().unwrap();
        bench.engine.advance(&Cancel::new(), &Unobserved).unwrap();
        bench.grow(3);
        let peer = bench.connect_with(ConnectionKind::Inbound, permissions, None);
        let hash = if wants_old { old.hash } else { bench.tip_hash() };
        bench.send(peer, Message::GetData(vec![Inv::block(InvType::WITNESS_BLOCK, hash)]));
        (bench.served.len(), bench.ended.get(&peer).cloned())
    };
    // Less than what is reserved for the blocks of a day.
    let target = 100 << 20;
    let refused = Some("historical block serving limit reached".to_owned());
    assert_eq!(served(target, Permissions::NONE, true), (0, refused));
    assert_eq!(served(target, Permissions::DOWNLOAD, true), (1, None));
    assert_eq!(served(target, Permissions::NO_BAN, true), (1, None), "noban implies download");
    assert_eq!(served(target, Permissions::NONE, false), (1, None));
    assert_eq!(served(0, Permissions::NONE, true), (1, None), "no target");
    assert_eq!(served(1 << 40, Permissions::NONE, true), (1, None), "not reached");
}

/// Inbound peers that reach us at an address increase its score, and the best address is advertised to all peers.
#[test]
fn our_address_is_known_by_those_who_reach_it() {
    let own = Endpoint::parse("8.8.8.8:8333", 0).unwrap();
    let mut bench = Bench::with(|settings| {
        let local = LocalSettings { listens: true, external: vec![own], ..LocalSettings::default() };
        settings.local.own = LocalAddresses::new(&local, &settings.reachable);
    });
    // So that the node is not in the initial download.
    bench.grow(1);
    let score = |bench: &Bench| bench.manager.local_addresses();
    assert_eq!(score(&bench), [LocalAddress { endpoint: own, score: 4 }]);
    let inbound = bench.connect(ConnectionKind::Inbound);
    assert_eq!(score(&bench)[0].score, 5, "it says that it connected there");
    let outbound = bench.connect(ConnectionKind::OutboundFullRelay);
    assert_eq!(score(&bench)[0].score, 5, "whoever we connected to tells nothing of that");
    bench.send(inbound, Message::GetAddr);
    bench.wait(Duration::from_millis(100));
    for peer in [inbound, outbound] {
        let told = bench.take_sent(peer).into_iter().find_map(|message| match message {
            Message::Addr(list) | Message::AddrV2(list) => Some(list),
            _ => None,
        });
        let told: Vec<_> = told.unwrap().iter().map(|address| address.endpoint).collect();
        assert_eq!(told, [own]);
    }
}
