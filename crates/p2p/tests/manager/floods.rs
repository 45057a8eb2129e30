//! Peers that request and announce a lot: what it costs, and what is answered.

use crate::bench::Bench;
use crate::chain::block_on;
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_primitives::BlockHash;
use lydian_wire::limits::INV_COUNT_MAX;
use lydian_wire::{BlockTransactionsRequest, Inv, InvType, Message};
use std::time::Duration;

fn hash(number: usize) -> [u8; 32] {
    let mut hash = [1; 32];
    hash[..8].copy_from_slice(&u64::try_from(number).unwrap().to_le_bytes());
    hash
}

fn many(kind: InvType, count: usize) -> Vec<Inv> {
    (0..count).map(|number| Inv { kind, hash: hash(number) }).collect()
}

/// The maximum number of unknown blocks in one message, repeatedly: one request for headers in two minutes. One more
/// block is punished.
/// checklist: 62
#[test]
fn an_inv_of_fifty_thousand_blocks_is_one_question() {
    let mut bench = Bench::synced(3);
    let peer = bench.connect_synced(ConnectionKind::Inbound);
    for _ in 0..3 {
        bench.send(peer, Message::Inv(many(InvType::BLOCK, INV_COUNT_MAX)));
    }
    let sent = bench.take_sent(peer);
    let questions = sent.iter().filter(|message| matches!(message, Message::GetHeaders(_))).count();
    assert!(questions <= 1 && sent.len() == questions, "{sent:?}");
    bench.elapsed += Duration::from_secs(121);
    bench.send(peer, Message::Inv(many(InvType::BLOCK, INV_COUNT_MAX)));
    assert!(matches!(bench.take_sent(peer)[..], [Message::GetHeaders(_)]));
    assert!(bench.ended.is_empty());
    bench.send(peer, Message::Inv(many(InvType::BLOCK, INV_COUNT_MAX + 1)));
    assert!(bench.is_discouraged(peer));
}

/// Until the headers of a peer are synced, each newly announced block causes a request to one more peer, however many
/// peers announce it.
/// checklist: 62
#[test]
fn a_block_makes_one_more_peer_be_asked() {
    let mut bench = Bench::new();
    let peers: Vec<_> = (0..5).map(|_| bench.connect(ConnectionKind::Inbound)).collect();
    for peer in &peers {
        bench.take_sent(*peer);
    }
    let mut asked = 0;
    for peer in &peers {
        bench.send(*peer, Message::Inv(many(InvType::BLOCK, 1)));
        asked += bench.take_sent(*peer).iter().filter(|message| matches!(message, Message::GetHeaders(_))).count();
    }
    assert!(asked <= 1, "{asked}");
}

/// Transactions announced to a node that accepts none: the peer is disconnected, without punishment. Of the two kinds
/// of transaction ids, the one that was not negotiated is ignored. Peers with the relay permission may announce.
/// checklist: 79
#[test]
fn unwanted_transactions() {
    for (kind, permissions, is_ended) in [
        (InvType::WTX, Permissions::NONE, true),
        (InvType::WITNESS_TX, Permissions::NONE, true),
        (InvType::TX, Permissions::NONE, false),
        (InvType::WTX, Permissions::RELAY, false),
        (InvType(77), Permissions::NONE, false),
    ] {
        let mut bench = Bench::synced(1);
        let peer = bench.connect_with(ConnectionKind::Inbound, permissions, None);
        bench.send(peer, Message::Inv(many(kind, 3)));
        assert_eq!(bench.ended.contains_key(&peer), is_ended, "{kind:?}");
        assert!(!bench.is_discouraged(peer));
    }
}

/// The largest `getdata`, of each kind: missing transactions are reported in one message, other unknown items are
/// ignored, and available items cost one action each until they are sent.
/// checklist: 63
#[test]
fn the_largest_getdata() {
    let mut bench = Bench::synced(3);
    let peer = bench.connect_synced(ConnectionKind::Inbound);
    for kind in [InvType::BLOCK, InvType::CMPCT_BLOCK, InvType::FILTERED_BLOCK, InvType(0), InvType(77)] {
        bench.send(peer, Message::GetData(many(kind, INV_COUNT_MAX)));
        assert!(bench.take_sent(peer).is_empty() && bench.served.is_empty(), "{kind:?}");
    }
    bench.send(peer, Message::GetData(many(InvType::WTX, INV_COUNT_MAX)));
    assert!(matches!(&bench.take_sent(peer)[..], [Message::NotFound(missing)] if missing.len() == INV_COUNT_MAX));
    let tip = bench.tip_hash();
    for kind in [InvType::CMPCT_BLOCK, InvType::WITNESS_BLOCK] {
        bench.send(peer, Message::GetData(vec![Inv::block(kind, tip); INV_COUNT_MAX]));
    }
    assert_eq!((bench.served_compact.len(), bench.served.len()), (INV_COUNT_MAX, INV_COUNT_MAX));
    assert!(bench.take_sent(peer).is_empty(), "nothing is read before its turn");
    bench.send(peer, Message::GetData(many(InvType::BLOCK, INV_COUNT_MAX + 1)));
    assert!(bench.is_discouraged(peer));
}

/// Compact blocks are sent for up to five blocks below the tip, transactions for up to ten; older blocks are sent
/// whole. A request for transactions that a block does not have is punished.
/// checklist: 82
#[test]
fn how_deep_compact_blocks_go() {
    let mut bench = Bench::synced(20);
    let peer = bench.connect_synced(ConnectionKind::Inbound);
    let at = |bench: &Bench, depth: usize| bench.chain[bench.chain.len() - 1 - depth].hash;
    for (depth, is_compact) in [(0, true), (5, true), (6, false)] {
        let hash = at(&bench, depth);
        bench.send(peer, Message::GetData(vec![Inv::block(InvType::CMPCT_BLOCK, hash)]));
        assert_eq!(bench.served_compact.drain(..).count() == 1, is_compact, "{depth}");
        assert_eq!(bench.served.drain(..).any(|served| served == (peer, hash, true)), !is_compact, "{depth}");
    }
    for (depth, is_answered) in [(0, true), (10, true), (11, false)] {
        let block_hash = at(&bench, depth);
        bench.send(peer, Message::GetBlockTxn(BlockTransactionsRequest { block_hash, indexes: vec![0] }));
        let answered = bench.take_sent(peer).iter().any(|message| matches!(message, Message::BlockTxn(_)));
        assert_eq!((answered, bench.served.drain(..).count()), (is_answered, usize::from(!is_answered)), "{depth}");
    }
    let unknown = BlockTransactionsRequest { block_hash: BlockHash([3; 32]), indexes: vec![0] };
    bench.send(peer, Message::GetBlockTxn(unknown));
    assert!(bench.ended.is_empty());
    let block_hash = at(&bench, 0);
    bench.send(peer, Message::GetBlockTxn(BlockTransactionsRequest { block_hash, indexes: vec![0, 1] }));
    assert!(bench.is_discouraged(peer));
}

/// A new block is announced once to each peer, in the form that it requested: compact block, header or hash; nothing
/// accumulates for peers that do not answer.
/// checklist: 72
#[test]
fn a_block_is_announced_once_to_each() {
    let mut bench = Bench::synced(3);
    let tip = bench.engine.tip_info().node.header;
    let by_compact = bench.connect_with(ConnectionKind::Inbound, Permissions::NONE, Some(true));
    let by_header = bench.connect_with(ConnectionKind::Inbound, Permissions::NONE, None);
    bench.send(by_header, Message::SendHeaders);
    let by_hash = bench.connect_with(ConnectionKind::Inbound, Permissions::NONE, None);
    let ignorant = bench.connect_with(ConnectionKind::Inbound, Permissions::NONE, Some(true));
    for peer in [by_compact, by_header, by_hash] {
        bench.announce(peer, &[tip]);
    }
    let source = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    bench.wait(Duration::from_secs(1));
    for peer in [by_compact, by_header, by_hash, ignorant] {
        bench.take_sent(peer);
    }
    for round in 0..3 {
        let made = block_on(bench.tip(), round, Vec::new());
        bench.send(source, Message::Block(made.bytes()));
        bench.wait(Duration::from_secs(1));
        let inv = Message::Inv(vec![Inv::block(InvType::BLOCK, made.hash)]);
        let compact = bench.take_sent(by_compact);
        assert!(matches!(&compact[..], [Message::CmpctBlock(block)] if block.header == made.header()), "{compact:?}");
        assert_eq!(bench.take_sent(by_header), [Message::Headers(vec![made.header()])]);
        assert_eq!(bench.take_sent(by_hash), std::slice::from_ref(&inv));
        assert_eq!(bench.take_sent(ignorant), [inv], "it is not known to have the block before");
    }
}
