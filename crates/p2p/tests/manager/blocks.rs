//! Blocks and headers from peers: which are accepted, what is punished, and what one peer cannot do to another.

use crate::bench::{Bench, START};
use crate::chain::{Made, block_on, block_with, mutated, spend};
use lydian_engine::{Cancel, Unobserved};
use lydian_p2p::driver::{Delivery, Event};
use lydian_p2p::manager::{Action, Intake, PeerId, StoreOutcome};
use lydian_p2p::outgoing::Outgoing;
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_primitives::Header;
use lydian_wire::{Command, Inv, InvType, Message, Services};
use std::time::Duration;

/// A block with a valid header but a coinbase without outputs.
fn invalid_on(bench: &Bench, tag: u8) -> Made {
    block_with(bench.tip(), tag, Vec::new(), |block| block.txs[0].outputs.clear())
}

/// Creates this number of empty blocks on top of the tip.
fn branch(bench: &Bench, count: u32, tag: u8) -> Vec<Made> {
    let mut parent = bench.tip();
    let next = |_| {
        let made = block_on(parent, tag, Vec::new());
        parent = (made.hash, made.height, made.header().time + 1);
        made
    };
    (0..count).map(next).collect()
}

fn headers(blocks: &[Made]) -> Vec<Header> {
    blocks.iter().map(Made::header).collect()
}

/// One peer was asked for a block; another, which was not, sends other bytes under its header. The first answers before
/// those are checked: its block is used, it is not asked again, and only the malicious peer is disconnected.
/// (Regression test: its block was dropped as a duplicate.)
/// checklist: 70
#[test]
fn other_bytes_do_not_displace_a_block() {
    for honest_is_quick in [true, false] {
        let mut bench = Bench::synced(3);
        let honest = bench.connect_synced(ConnectionKind::OutboundFullRelay);
        let liar = bench.connect_synced(ConnectionKind::Inbound);
        let made = block_on(bench.tip(), 1, Vec::new());
        bench.announce(honest, &[made.header()]);
        assert_eq!(bench.take_asked(honest).len(), 1);
        bench.holds_back = true;
        bench.send(liar, Message::Block(mutated(&made)));
        if honest_is_quick {
            bench.send(honest, Message::Block(made.bytes()));
            assert_eq!(bench.deliveries.len(), 2, "both are looked at");
        }
        bench.store();
        bench.store();
        assert!(bench.is_discouraged(liar) && !bench.ended.contains_key(&honest));
        bench.wait(Duration::from_secs(1));
        assert!(bench.take_asked(honest).is_empty(), "it was asked already");
        if !honest_is_quick {
            bench.send(honest, Message::Block(made.bytes()));
            bench.store();
        }
        assert_eq!(bench.tip_hash(), made.hash);
    }
}

/// A peer that was asked and sends other bytes is disconnected, and another peer is asked.
/// checklist: 70, 79
#[test]
fn a_liar_that_was_asked_is_replaced() {
    let mut bench = Bench::synced(3);
    let liar = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let honest = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let made = block_on(bench.tip(), 1, Vec::new());
    bench.announce(liar, &[made.header()]);
    bench.announce(honest, &[made.header()]);
    assert_eq!((bench.take_asked(liar).len(), bench.take_asked(honest).len()), (1, 0));
    bench.send(liar, Message::Block(mutated(&made)));
    assert!(bench.is_discouraged(liar));
    assert_eq!(bench.take_asked(honest).len(), 1);
    bench.send(honest, Message::Block(made.bytes()));
    assert_eq!(bench.tip_hash(), made.hash);
}

/// Bytes that are not a block cause no crash and no punishment; the block is requested from another peer.
/// checklist: 77
#[test]
fn what_is_no_block_is_ignored() {
    let mut bench = Bench::synced(3);
    let (peer, other) = (
        bench.connect_synced(ConnectionKind::OutboundFullRelay),
        bench.connect_synced(ConnectionKind::OutboundFullRelay),
    );
    let made = block_on(bench.tip(), 1, Vec::new());
    bench.announce(peer, &[made.header()]);
    bench.announce(other, &[made.header()]);
    let bytes = made.bytes();
    for size in [0, 1, 79] {
        bench.send(peer, Message::Block(bytes[..size].to_vec()));
        assert!(bench.take_asked(other).is_empty(), "no header, so nothing is known of it");
    }
    for size in [80, 81, 82, bytes.len() - 1] {
        bench.send(peer, Message::Block(bytes[..size].to_vec()));
    }
    assert_eq!(bench.take_asked(other).len(), 1);
    // Bytes after a block are ignored.
    bench.send(other, Message::Block([&bytes[..], &[1, 2, 3]].concat()));
    assert_eq!(bench.tip_hash(), made.hash);
    assert!(bench.ended.is_empty());
}

/// Unrequested blocks are stored if their chain has as much work as ours and they are not 289 above our tip; headers of
/// others are stored.
#[test]
fn unrequested_blocks() {
    let mut bench = Bench::synced(20);
    let peer = bench.connect_synced(ConnectionKind::Inbound);
    let has_block =
        |bench: &Bench, made: &Made| bench.engine.header_info(&made.hash).map(|info| info.node.block.is_some());
    let parent = |bench: &Bench, index: usize| {
        let made = &bench.chain[index];
        (made.hash, made.height, made.header().time + 1)
    };
    let lower = block_on(parent(&bench, 10), 1, Vec::new());
    let equal = block_on(parent(&bench, 18), 1, Vec::new());
    let higher = block_on(bench.tip(), 1, Vec::new());
    for made in [&lower, &equal, &higher] {
        bench.send(peer, Message::Block(made.bytes()));
    }
    assert_eq!(has_block(&bench, &lower), Some(false));
    assert_eq!((has_block(&bench, &equal), has_block(&bench, &higher)), (Some(true), Some(true)));
    assert_eq!(bench.tip_hash(), higher.hash);
    let far = branch(&bench, 289, 2);
    bench.announce(peer, &headers(&far));
    bench.send(peer, Message::Block(far[288].bytes()));
    bench.send(peer, Message::Block(far[287].bytes()));
    assert_eq!((has_block(&bench, &far[288]), has_block(&bench, &far[287])), (Some(false), Some(true)));
    assert!(bench.ended.is_empty());
    // A mutated block is punished even if the block is not needed.
    bench.send(peer, Message::Block(mutated(&lower)));
    assert!(bench.is_discouraged(peer) && bench.has_logged("mutated block"));
}

/// A violation of consensus rules is punished, and nothing else: not a clock that is ahead, nor an inbound peer for a
/// block that is known to be invalid; trusted peers are never punished.
/// checklist: 79
#[test]
fn punished_is_what_consensus_forbids() {
    let mut bench = Bench::synced(3);
    let trusted = bench.connect_with(ConnectionKind::Inbound, Permissions::NO_BAN, None);
    let manual = bench.connect(ConnectionKind::Manual);
    let inbound = bench.connect(ConnectionKind::Inbound);
    let bad = invalid_on(&bench, 1);
    for peer in [trusted, manual] {
        bench.send(peer, Message::Block(invalid_on(&bench, u8::try_from(peer.0).unwrap()).bytes()));
        assert!(!bench.ended.contains_key(&peer), "{peer}");
    }
    assert!(bench.has_logged("Not punishing"));
    bench.send(inbound, Message::Block(bad.bytes()));
    assert!(bench.is_discouraged(inbound));
    // A header on top of an invalid block.
    let spent = spend(bench.chain[0].coins(), 1);
    let greedy = block_on(bench.tip(), 2, vec![spent]);
    let relay = bench.connect(ConnectionKind::Inbound);
    bench.send(relay, Message::Block(greedy.bytes()));
    assert!(bench.is_discouraged(relay), "spends what is too young");
    let child = block_on((greedy.hash, greedy.height, greedy.header().time + 1), 1, Vec::new());
    let (inbound, outbound) =
        (bench.connect(ConnectionKind::Inbound), bench.connect(ConnectionKind::OutboundFullRelay));
    bench.announce(inbound, &[greedy.header()]);
    assert!(!bench.ended.contains_key(&inbound), "it may follow other rules");
    bench.announce(outbound, &[greedy.header()]);
    assert!(bench.is_discouraged(outbound));
    bench.announce(inbound, &[child.header()]);
    assert!(bench.is_discouraged(inbound), "but builds on it");
    // A block time that is more than two hours ahead.
    let (tip, height, _) = bench.tip();
    let future = block_on((tip, height, START + 3 * 60 * 60), 3, Vec::new());
    let peer = bench.connect(ConnectionKind::Inbound);
    bench.announce(peer, &[future.header()]);
    bench.send(peer, Message::Block(future.bytes()));
    assert!(!bench.ended.contains_key(&peer));
    assert!(bench.engine.header_info(&future.hash).is_none());
    // A block without a parent.
    let orphan = block_on((lydian_primitives::BlockHash([9; 32]), 7, START), 1, Vec::new());
    bench.send(peer, Message::Block(orphan.bytes()));
    assert!(bench.is_discouraged(peer));
}

/// Headers that do not connect cause a request, every time; non-continuous headers are punished; a locator of 101
/// hashes is answered, a longer one causes only a disconnection.
/// checklist: 80
#[test]
fn headers_that_do_not_connect_and_locators() {
    let mut bench = Bench::synced(3);
    let peer = bench.connect_synced(ConnectionKind::Inbound);
    let far = branch(&bench, 4, 1);
    for _ in 0..20 {
        bench.elapsed += Duration::from_secs(121);
        bench.announce(peer, &[far[3].header()]);
        assert!(bench.take_sent(peer).iter().any(|message| matches!(message, Message::GetHeaders(_))));
    }
    assert!(bench.ended.is_empty());
    bench.announce(peer, &[far[0].header(), far[2].header()]);
    assert!(bench.is_discouraged(peer) && bench.has_logged("non-continuous headers sequence"));
    for (count, is_answered) in [(101, true), (102, false)] {
        let peer = bench.connect(ConnectionKind::Inbound);
        bench.take_sent(peer);
        let locator = lydian_wire::Locator {
            hashes: vec![bench.chain[0].hash; count],
            stop: lydian_primitives::BlockHash([0; 32]),
        };
        bench.send(peer, Message::GetHeaders(locator));
        let answered = bench
            .take_sent(peer)
            .iter()
            .any(|message| matches!(message, Message::Headers(headers) if headers.len() == 2));
        assert_eq!((answered, bench.ended.contains_key(&peer)), (is_answered, !is_answered), "{count}");
        assert!(!bench.is_discouraged(peer));
    }
}

/// A low-work chain is not stored, whether it arrives as headers, blocks or compact blocks.
/// checklist: 60
#[test]
fn nothing_of_a_chain_of_little_work_is_kept() {
    let mut bench = Bench::with(|settings| settings.minimum_chain_work = lydian_consensus::U256::from_u64(200));
    let peer = bench.connect(ConnectionKind::Inbound);
    let chain = branch(&bench, 5, 1);
    bench.announce(peer, &headers(&chain));
    bench.send(peer, Message::Block(chain[0].bytes()));
    let compact = lydian_wire::CompactBlock::new(&chain[0].parsed(), 1);
    bench.send(peer, Message::CmpctBlock(Box::new(compact)));
    assert_eq!(bench.engine.best_header_height().0, 0);
    assert!(bench.has_logged("Ignoring low-work compact block") && bench.ended.is_empty());
    // While the node itself has too little work, an outbound peer must have more.
    let outbound = bench.connect(ConnectionKind::OutboundFullRelay);
    bench.announce(outbound, &headers(&chain));
    assert!(!bench.is_discouraged(outbound));
}

/// A tip that becomes old does not restart the initial download: blocks are announced, and inbound peers are asked.
#[test]
fn the_initial_download_ends_once() {
    let mut bench = Bench::synced(3);
    assert!(bench.has_logged("Leaving InitialBlockDownload (latching to false)"));
    let peer = bench.connect_with(ConnectionKind::Inbound, Permissions::NONE, Some(false));
    bench.send(peer, Message::SendHeaders);
    let tip = bench.engine.tip_info().node.header;
    bench.announce(peer, &[tip]);
    bench.elapsed += Duration::from_secs(3 * 24 * 60 * 60);
    let other = bench.connect(ConnectionKind::Inbound);
    let made = block_on(bench.tip(), 1, Vec::new());
    bench.take_sent(peer);
    bench.send(other, Message::Block(made.bytes()));
    assert_eq!(bench.tip_hash(), made.hash);
    let sent = bench.take_sent(peer);
    assert!(sent.contains(&Message::Headers(vec![made.header()])), "{sent:?}");
    assert_eq!(bench.log.iter().filter(|line| line.contains("Leaving")).count(), 1);
}

/// Two blocks at one height: the second is also fetched from the peer that announced it, as in Core, so that blocks on
/// top of it can be followed.
#[test]
fn the_rival_of_a_tip_is_fetched() {
    let mut bench = Bench::synced(3);
    let parent = bench.tip();
    let (first, rival) = (block_on(parent, 1, Vec::new()), block_on(parent, 2, Vec::new()));
    let (one, two) = (bench.connect_synced(ConnectionKind::Inbound), bench.connect_synced(ConnectionKind::Inbound));
    bench.send(one, Message::Block(first.bytes()));
    assert_eq!(bench.tip_hash(), first.hash);
    bench.announce(two, &[rival.header()]);
    assert_eq!(bench.take_asked(two), [(InvType::CMPCT_BLOCK, rival.hash)]);
    bench.send(two, Message::Block(rival.bytes()));
    assert_eq!(bench.tip_hash(), first.hash, "the first seen stays");
    let child = block_on((rival.hash, rival.height, rival.header().time + 1), 1, Vec::new());
    bench.announce(two, &[child.header()]);
    bench.send(two, Message::Block(child.bytes()));
    assert_eq!(bench.tip_hash(), child.hash);
    // A peer that does not send a block requested outside the path is disconnected after ten minutes.
    let late = block_on(parent, 3, Vec::new());
    let late_child = block_on((late.hash, late.height, late.header().time + 1), 3, Vec::new());
    bench.announce(one, &[late.header(), late_child.header()]);
    assert_eq!(bench.take_asked(one).len(), 2);
    bench.elapsed += Duration::from_secs(601);
    bench.wait(Duration::from_secs(1));
    assert!(bench.ended[&one].contains("Timeout downloading block"));
}

/// A large block on a slow link: as long as its bytes arrive, its sender is not disconnected, even if others send.
/// checklist: 71
#[test]
fn a_block_that_comes_slowly_is_no_stall() {
    for is_told in [true, false] {
        let mut bench = Bench::synced(3);
        let slow = bench.connect_synced(ConnectionKind::OutboundFullRelay);
        let chain = branch(&bench, 2, 1);
        bench.announce(slow, &headers(&chain));
        assert_eq!(bench.take_asked(slow).len(), 2);
        // Late blocks are also requested from another peer, which keeps the link alive.
        let other = bench.connect_synced(ConnectionKind::OutboundFullRelay);
        bench.announce(other, &headers(&chain));
        for _ in 0..150 {
            bench.wait(Duration::from_millis(100));
            bench.manager.progressed(other, 5_000, bench.now());
            if is_told {
                bench.manager.progressed(slow, 5_000, bench.now());
            }
        }
        assert!(!bench.take_asked(other).is_empty() && !bench.ended.contains_key(&other));
        assert_eq!(bench.ended.contains_key(&slow), !is_told, "{:?}", bench.ended);
    }
}

/// Times at both ends of their range have no effect and cause no overflow.
/// checklist: 61
#[test]
fn absurd_times_in_version_messages() {
    for time in [i64::MIN, -1, 0, i64::MAX] {
        let mut bench = Bench::synced(1);
        let id = bench.connect_with_version(ConnectionKind::Inbound, |version| version.time = time);
        assert!(bench.ended.is_empty(), "{time}");
        bench.wait(Duration::from_secs(1));
        bench.send(id, Message::Ping(Some(3)));
        assert!(bench.take_sent(id).contains(&Message::Pong(Some(3))));
    }
}

/// Unknown messages, a second `version` and a second `verack` are ignored; messages before the end of the handshake are
/// too.
/// checklist: 85
#[test]
fn messages_out_of_order() {
    let mut bench = Bench::synced(1);
    let peer = bench.connect(ConnectionKind::Inbound);
    bench.take_sent(peer);
    let unknown = Command::new("nosuchthing").unwrap();
    bench.manager.received(peer, unknown, vec![1; 100], bench.now());
    bench.send(peer, Message::Verack);
    bench.send(peer, Message::Ping(Some(1)));
    assert_eq!(bench.take_sent(peer), [Message::Pong(Some(1))]);
    bench.send(peer, Message::WtxidRelay);
    assert!(bench.ended.contains_key(&peer) && !bench.is_discouraged(peer));
}

/// Sends all blocks that are requested from a peer, repeatedly.
fn serve(bench: &mut Bench, peer: PeerId, blocks: &[Made]) {
    loop {
        let asked = bench.take_asked(peer);
        if asked.is_empty() {
            return;
        }
        for (_, hash) in asked {
            let made = blocks.iter().find(|made| made.hash == hash).unwrap();
            bench.send(peer, Message::Block(made.bytes()));
        }
    }
}

/// A branch that forks off further below the tip than the download window holds blocks: none of it can be activated
/// before more blocks are here than fit into the window, but it is activated anyway.
#[test]
fn a_reorganisation_deeper_than_the_window() {
    let mut bench = Bench::with(|settings| settings.download_bytes = 1000);
    bench.grow(5);
    let (own, rival) = (branch(&bench, 20, 6), branch(&bench, 30, 7));
    let unix = i64::try_from(bench.now().unix.0).unwrap();
    for made in &own {
        bench.engine.store_block(made.parsed(), unix).unwrap().unwrap();
    }
    bench.engine.advance(&Cancel::new(), &Unobserved).unwrap();
    assert_eq!(bench.tip_hash(), own[19].hash);
    let peer = bench.connect(ConnectionKind::Manual);
    bench.announce(peer, &headers(&rival));
    serve(&mut bench, peer, &rival);
    assert_eq!(bench.tip_hash(), rival[29].hash);
    // And back again, to the rest of a chain that was here before.
    let back = branch(&bench, 4, 8);
    bench.announce(peer, &headers(&back));
    serve(&mut bench, peer, &back);
    assert_eq!(bench.tip_hash(), back[3].hash);
}

/// The only peer says that it does not have a block yet. Another block at that height is requested from it immediately,
/// the same one later.
#[test]
fn what_a_peer_has_not_it_may_have_later() {
    let mut bench = Bench::synced(3);
    let peer = bench.connect_synced(ConnectionKind::Manual);
    let (first, second) = (block_on(bench.tip(), 1, Vec::new()), branch(&bench, 2, 2));
    let not_found = |made: &Made| Message::NotFound(vec![Inv::block(InvType::WITNESS_BLOCK, made.hash)]);
    bench.announce(peer, &[first.header()]);
    assert_eq!(bench.take_asked(peer).len(), 1);
    bench.send(peer, not_found(&first));
    bench.wait(Duration::from_secs(60));
    assert!(bench.take_asked(peer).is_empty());
    bench.announce(peer, &headers(&second));
    let asked: Vec<_> = bench.take_asked(peer).into_iter().map(|(_, hash)| hash).collect();
    assert_eq!(asked, [second[0].hash, second[1].hash]);
    bench.send(peer, not_found(&second[0]));
    bench.send(peer, Message::Block(second[1].bytes()));
    bench.wait(Duration::from_secs(11 * 60));
    assert!(bench.take_asked(peer).iter().any(|(_, hash)| *hash == second[0].hash));
    bench.send(peer, Message::Block(second[0].bytes()));
    assert_eq!(bench.tip_hash(), second[1].hash);
    assert!(bench.ended.is_empty());
}

/// A peer that is being disconnected may take a while to close: its requests go to others before that.
#[test]
fn what_a_peer_owes_that_is_sent_away_is_asked_of_others() {
    let mut bench = Bench::synced(3);
    let bad = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let good = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let made = block_on(bench.tip(), 1, Vec::new());
    bench.announce(bad, &[made.header()]);
    bench.announce(good, &[made.header()]);
    assert_eq!((bench.take_asked(bad).len(), bench.take_asked(good).len()), (1, 0));
    let broken = Message::Headers(vec![made.header(), made.header()]);
    bench.manager.received(bad, broken.command(), broken.payload(), bench.now());
    bench.manager.tick(bench.now());
    let actions = bench.manager.take_actions();
    assert!(
        actions.iter().any(|action| matches!(action, Action::Send { to, item: Outgoing::End { .. } } if *to == bad))
    );
    let is_request = |item: &Outgoing| matches!(item, Outgoing::Message(Message::GetData(_)));
    let asks = |action: &Action| matches!(action, Action::Send { to, item } if *to == good && is_request(item));
    assert!(actions.iter().any(asks), "{actions:?}");
}

/// No peer has headers of today, because there are none: peers are disconnected for that sequentially, as in Core, and
/// not all at once.
#[test]
fn a_network_that_stands_still_keeps_its_peers() {
    let mut bench = Bench::synced(3);
    bench.elapsed += Duration::from_secs(2 * 24 * 60 * 60);
    let peers = [(); 4].map(|()| bench.connect_synced(ConnectionKind::OutboundFullRelay));
    bench.wait(Duration::from_secs(17 * 60));
    assert_eq!(bench.ended.len(), 1, "{:?}", bench.ended);
    assert!(peers.iter().any(|peer| bench.ended.get(peer).is_some_and(|reason| reason.contains("headers"))));
}

/// Creates this number of blocks on top of the genesis block, a week old, so that the node stays in the initial
/// download.
fn old_chain(bench: &Bench, count: u32) -> Vec<Made> {
    let (genesis, height, _) = bench.tip();
    let mut parent = (genesis, height, START - 7 * 24 * 60 * 60);
    let next = |_| {
        let made = block_on(parent, 1, Vec::new());
        parent = (made.hash, made.height, made.header().time + 1);
        made
    };
    (0..count).map(next).collect()
}

/// Regression test: during the initial download, an outbound peer did not have the whole chain, and an inbound one did.
/// The inbound one was not asked, not even for headers, as long as the other was connected. Core asks it when no block
/// from others is in flight.
#[test]
fn an_inbound_peer_is_asked_for_what_others_lack() {
    let mut bench = Bench::new();
    let chain = old_chain(&bench, 30);
    let outbound = bench.connect(ConnectionKind::OutboundFullRelay);
    let inbound = bench.connect(ConnectionKind::Inbound);
    bench.announce(outbound, &headers(&chain[..2]));
    let asks_headers = |message: &Message| matches!(message, Message::GetHeaders(_));
    assert!(!bench.take_sent(inbound).iter().any(asks_headers), "blocks are on their way");
    bench.announce(inbound, &headers(&chain[..2]));
    assert!(bench.take_asked(inbound).is_empty(), "the outbound peer was asked");
    for made in &chain[..2] {
        bench.send(outbound, Message::Block(made.bytes()));
    }
    bench.wait(Duration::from_secs(6));
    assert!(bench.take_sent(inbound).iter().any(asks_headers), "the outbound peer has said all it has");
    bench.announce(inbound, &headers(&chain));
    serve(&mut bench, inbound, &chain);
    assert_eq!(bench.tip_hash(), chain[29].hash);
    assert!(bench.ended.is_empty());
}

/// A peer that offers neither all blocks nor the last ones announces a block: it is requested from the peer, as in
/// Core. Other blocks are not.
#[test]
fn who_serves_no_blocks_is_asked_for_those_it_announces() {
    let mut bench = Bench::synced(3);
    let peer = bench.connect_with_version(ConnectionKind::Inbound, |version| version.services = Services::WITNESS);
    let chain = branch(&bench, 2, 1);
    bench.take_sent(peer);
    bench.announce(peer, &headers(&chain[..1]));
    assert_eq!(bench.take_asked(peer), [(InvType::WITNESS_BLOCK, chain[0].hash)]);
    bench.send(peer, Message::Block(chain[0].bytes()));
    assert_eq!(bench.tip_hash(), chain[0].hash);
    // A block that another peer announced is not requested from it.
    let other = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    bench.announce(other, &[chain[1].header()]);
    assert_eq!(bench.take_asked(other).len(), 1);
    bench.send(other, Message::NotFound(vec![Inv::block(InvType::WITNESS_BLOCK, chain[1].hash)]));
    bench.wait(Duration::from_secs(1));
    assert!(bench.take_asked(peer).is_empty());
    bench.announce(peer, &[chain[1].header()]);
    assert_eq!(bench.take_asked(peer).len(), 1);
    bench.send(peer, Message::Block(chain[1].bytes()));
    assert_eq!(bench.tip_hash(), chain[1].hash);
}

/// Up to 16 announced blocks are requested at once. (Regression test: two were requested from a new peer, and the rest
/// only after they had arrived.) If more are missing, the download starts with two; when the other 15 are announced
/// again, there is room for 14.
#[test]
fn all_blocks_of_an_announcement_are_requested() {
    for (count, asked, again) in [(16, 16, 0), (17, 2, 14)] {
        let mut bench = Bench::synced(3);
        let peer = bench.connect_synced(ConnectionKind::OutboundFullRelay);
        let chain = branch(&bench, count, 1);
        bench.announce(peer, &headers(&chain));
        assert_eq!(bench.take_asked(peer).len(), asked);
        bench.announce(peer, &headers(&chain));
        assert_eq!(bench.take_asked(peer).len(), again);
        chain[..asked + again].iter().for_each(|made| bench.send(peer, Message::Block(made.bytes())));
        serve(&mut bench, peer, &chain);
        assert_eq!(bench.tip_hash(), chain.last().unwrap().hash);
    }
}

/// Regression test: a branch that forks off 20 blocks below the tip and has as much work was never fetched, because
/// only up to 16 blocks outside the best chain were requested, and only when they were announced: when the branch grew,
/// 21 blocks were missing. Core fetches it.
#[test]
fn a_long_branch_with_as_much_work_is_fetched() {
    let mut bench = Bench::synced(3);
    let (own, rival) = (branch(&bench, 20, 6), branch(&bench, 20, 7));
    let unix = i64::try_from(bench.now().unix.0).unwrap();
    for made in &own {
        bench.engine.store_block(made.parsed(), unix).unwrap().unwrap();
    }
    bench.engine.advance(&Cancel::new(), &Unobserved).unwrap();
    let (one, two) = (bench.connect(ConnectionKind::Inbound), bench.connect(ConnectionKind::Inbound));
    bench.announce(one, &headers(&rival));
    let first: Vec<_> = bench.take_asked(one).into_iter().map(|(_, hash)| hash).collect();
    assert_eq!(first, rival[..16].iter().map(|made| made.hash).collect::<Vec<_>>());
    // The rest is requested from another peer, and nothing twice.
    bench.announce(two, &headers(&rival));
    assert_eq!(bench.take_asked(two).len(), 4);
    rival[16..].iter().for_each(|made| bench.send(two, Message::Block(made.bytes())));
    // A block that one peer does not have is requested from the other.
    let not_found = Message::NotFound(vec![Inv::block(InvType::WITNESS_BLOCK, rival[0].hash)]);
    bench.send(one, not_found);
    assert_eq!(bench.take_asked(two), [(InvType::WITNESS_BLOCK, rival[0].hash)]);
    assert!(bench.take_asked(one).is_empty());
    bench.send(two, Message::Block(rival[0].bytes()));
    rival[1..16].iter().for_each(|made| bench.send(one, Message::Block(made.bytes())));
    let is_here = |made: &Made| bench.engine.header_info(&made.hash).unwrap().node.block.is_some();
    assert!(rival.iter().all(is_here));
    assert_eq!(bench.tip_hash(), own[19].hash, "the first seen stays");
    let last = (rival[19].hash, rival[19].height, rival[19].header().time + 1);
    let child = block_on(last, 7, Vec::new());
    bench.announce(two, &[child.header()]);
    bench.send(two, Message::Block(child.bytes()));
    assert_eq!(bench.tip_hash(), child.hash);
    assert!(bench.ended.is_empty());
}

/// Regression test: a peer sent an invalid block twice before it was validated. The second copy, which was already
/// here, removed the record of the sender, and no peer was punished. It is also punished if validation finishes before
/// the report that the block is stored.
/// checklist: 79
#[test]
fn who_sends_an_invalid_block_twice_is_punished() {
    for is_validation_quick in [false, true] {
        let mut bench = Bench::synced(3);
        let peer = bench.connect_synced(ConnectionKind::Inbound);
        let greedy = block_on(bench.tip(), 2, vec![spend(bench.chain[0].coins(), 1)]);
        bench.holds_back = true;
        bench.send(peer, Message::Block(greedy.bytes()));
        bench.send(peer, Message::Block(greedy.bytes()));
        let deliveries = std::mem::take(&mut bench.deliveries);
        assert_eq!(deliveries.len(), 2);
        let store = |mut delivery: Delivery| match delivery.store(&bench.engine, bench.now()).unwrap() {
            Event::Stored { intake, outcome, .. } => (intake, outcome),
            other => panic!("{other:?}"),
        };
        let outcomes: Vec<_> = deliveries.into_iter().map(store).collect();
        let unrequested = |outcome| (Intake::Unrequested, outcome);
        assert_eq!(outcomes, [StoreOutcome::Stored, StoreOutcome::Known].map(unrequested));
        let validate = |bench: &mut Bench| {
            let advance = bench.engine.advance(&Cancel::new(), &Unobserved).unwrap();
            assert_eq!(advance.invalid.len(), 1);
            bench.manager.block_invalid(&greedy.hash, bench.now());
        };
        if is_validation_quick {
            validate(&mut bench);
        }
        for (intake, outcome) in &outcomes {
            bench.manager.block_stored(peer, &greedy.hash, *intake, outcome, bench.now());
        }
        if !is_validation_quick {
            validate(&mut bench);
        }
        bench.act();
        assert!(bench.is_discouraged(peer), "{is_validation_quick}");
        assert_eq!(bench.manager.held().sources, 0);
    }
}

/// The same header with other bytes that have the same Merkle root: the last transaction is duplicated (CVE-2012-2459).
fn twin(made: &Made) -> Vec<u8> {
    let mut block = made.block.clone();
    assert!(block.txs.len() % 2 == 1);
    block.txs.extend(block.txs.last().cloned());
    block.encode()
}

/// Regression test: a peer that must not be punished sent a mutated twin of a block. It announced the block again, and
/// the block was not requested from it for ten minutes, although no other peer had it.
/// checklist: 70
#[test]
fn after_a_mutated_twin_the_block_is_requested_again() {
    for (kind, permissions) in
        [(ConnectionKind::Inbound, Permissions::NO_BAN), (ConnectionKind::Manual, Permissions::NONE)]
    {
        for is_recent in [true, false] {
            let mut bench = Bench::synced(105);
            let peer = bench.connect_with(kind, permissions, None);
            let txs = vec![spend(bench.chain[0].coins(), 1), spend(bench.chain[1].coins(), 1)];
            let made = block_on(bench.tip(), 1, txs);
            // Directly while the tip is recent (20 block intervals), otherwise by the download.
            bench.elapsed += if is_recent { Duration::ZERO } else { Duration::from_secs(20 * 600) };
            bench.announce(peer, &[made.header()]);
            assert_eq!(bench.take_asked(peer).len(), 1);
            bench.send(peer, Message::Block(twin(&made)));
            let is_noban = permissions == Permissions::NO_BAN;
            let words = if is_noban { "Not punishing noban peer" } else { "Not punishing manually connected peer" };
            assert!(bench.has_logged(words) && bench.ended.is_empty());
            bench.announce(peer, &[made.header()]);
            assert_eq!(bench.take_asked(peer).len(), 1, "{kind:?} {is_recent}");
            bench.send(peer, Message::Block(made.bytes()));
            assert_eq!(bench.tip_hash(), made.hash);
        }
    }
}

/// Regression test: the chain with the most work is withheld, and a new peer announces the next best one. Each block
/// was requested from it twice: directly because of the announcement, and then by the download, which did not know the
/// peer when the request was made.
#[test]
fn a_new_peer_is_asked_for_a_block_once() {
    let mut bench = Bench::synced(3);
    let mute = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let (best, next) = (branch(&bench, 5, 1), branch(&bench, 4, 2));
    bench.announce(mute, &headers(&best));
    bench.wait(Duration::from_secs(8));
    let new = bench.connect(ConnectionKind::OutboundFullRelay);
    bench.take_sent(new);
    bench.announce(new, &headers(&next));
    bench.wait(Duration::from_millis(200));
    let asked: Vec<_> = bench.take_asked(new).into_iter().map(|(_, hash)| hash).collect();
    assert_eq!(asked, next.iter().map(|made| made.hash).collect::<Vec<_>>());
    next.iter().for_each(|made| bench.send(new, Message::Block(made.bytes())));
    assert_eq!(bench.tip_hash(), next[3].hash);
}

/// Regression test: a block that the operator requests from a peer with an unknown chain (`getblockfrompeer`) was also
/// requested from another peer.
#[test]
fn a_block_that_the_operator_requests_is_requested_once() {
    let mut bench = Bench::synced(3);
    let announcer = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let made = block_on(bench.tip(), 1, Vec::new());
    bench.announce(announcer, &[made.header()]);
    assert_eq!(bench.take_asked(announcer).len(), 1);
    let silent = bench.connect(ConnectionKind::OutboundFullRelay);
    bench.take_sent(silent);
    bench.manager.fetch_block(silent, &made.hash, bench.now()).unwrap();
    bench.wait(Duration::from_millis(200));
    assert_eq!(bench.take_asked(silent), [(InvType::WITNESS_BLOCK, made.hash)]);
    assert!(bench.take_asked(announcer).is_empty());
    bench.send(silent, Message::Block(made.bytes()));
    assert_eq!(bench.tip_hash(), made.hash);
}

/// Blocks outside the path arrive sequentially over a slow link: the timeout of each starts with the previous one.
#[test]
fn the_time_for_a_block_beside_the_path_counts_from_the_block_before() {
    let mut bench = Bench::synced(3);
    let (own, rival) = (branch(&bench, 2, 6), branch(&bench, 2, 7));
    let unix = i64::try_from(bench.now().unix.0).unwrap();
    for made in &own {
        bench.engine.store_block(made.parsed(), unix).unwrap().unwrap();
    }
    bench.engine.advance(&Cancel::new(), &Unobserved).unwrap();
    let peer = bench.connect(ConnectionKind::Inbound);
    bench.announce(peer, &headers(&rival));
    assert_eq!(bench.take_asked(peer).len(), 2);
    for made in &rival {
        bench.idle(&[peer], 9);
        assert!(bench.ended.is_empty(), "{:?}", bench.ended);
        bench.send(peer, Message::Block(made.bytes()));
    }
}
