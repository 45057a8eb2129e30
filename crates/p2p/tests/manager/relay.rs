//! Relay of transactions between peers through a mempool at work.

use crate::bench::Bench;
use crate::chain::{Made, block_on};
use lydian_engine::{Cancel, Unobserved};
use lydian_p2p::driver;
use lydian_p2p::limits::{
    GETDATA_COUNT_MAX, ORPHAN_WEIGHT_PER_PEER, PEER_ANNOUNCEMENTS_MAX, PEER_SUBMISSIONS_MAX, PEER_SUBMITTED_BYTES_MAX,
};
use lydian_p2p::manager::{PeerId, PeerInfo, Question};
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_p2p::submission::Submitted;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Transaction, Txid};
use lydian_wire::limits::INV_COUNT_MAX;
use lydian_wire::{BlockTransactionsRequest, CompactBlock, Inv, InvType, Message};
use std::sync::Arc;
use std::time::Duration;

/// What the coinbases of the bench pay.
const COIN: i64 = 1_000_000;

/// A node with ten coins that can be spent.
fn bench() -> Bench {
    Bench::relaying(110)
}

/// A bench with peers of these kinds, which are announced to from now on.
fn connected<const N: usize>(kinds: [ConnectionKind; N]) -> (Bench, [PeerId; N]) {
    let mut bench = bench();
    let peers = kinds.map(|kind| bench.connect(kind));
    bench.wait(Duration::from_secs(1));
    (bench, peers)
}

/// The coinbase output of a block.
fn coin(bench: &Bench, index: usize) -> OutPoint {
    bench.chain[index].coins()
}

/// A transaction with one input and one output that anyone can spend. Its witness makes wtxid and txid differ.
fn pay(prevout: OutPoint, value: i64, version: u32) -> Arc<Transaction> {
    pay_with(prevout, value, version, 0)
}

/// The same with an output of this many bytes of data.
fn pay_with(prevout: OutPoint, value: i64, version: u32, data: usize) -> Arc<Transaction> {
    let input = MutInput { prevout, script_sig: Vec::new(), sequence: u32::MAX - 2, witness: Vec::new() };
    let padding = [vec![0x6a], vec![0x51; data.max(20)]].concat();
    let outputs = vec![
        MutOutput { value: Amount(value), script_pubkey: vec![0x51] },
        MutOutput { value: Amount(0), script_pubkey: padding },
    ];
    let tx = MutTx { version, inputs: vec![input], outputs, lock_time: 0 };
    Arc::new(tx.to_transaction().unwrap())
}

fn output(tx: &Transaction) -> OutPoint {
    OutPoint { txid: tx.view().txid(), vout: 0 }
}

fn message(tx: &Transaction) -> Message {
    Message::Tx(tx.as_bytes().to_vec())
}

fn wtx(tx: &Transaction) -> Inv {
    Inv { kind: InvType::WTX, hash: tx.view().wtxid().0 }
}

fn parent_request(txid: Txid) -> Inv {
    Inv { kind: InvType::WITNESS_TX, hash: txid.0 }
}

fn has(bench: &Bench, tx: &Transaction) -> bool {
    bench.mempool.snapshot().get(&tx.view().txid()).is_some()
}

fn info(bench: &Bench, id: PeerId) -> PeerInfo {
    bench.manager.peers(bench.now()).into_iter().find(|peer| peer.id == id).unwrap()
}

/// The transactions announced to a peer since the last call.
fn told(bench: &mut Bench, id: PeerId) -> Vec<Inv> {
    let invs = bench.take_sent(id).into_iter().filter_map(|message| match message {
        Message::Inv(items) => Some(items),
        _ => None,
    });
    invs.flatten().filter(|item| item.kind.is_gen_tx()).collect()
}

/// The transactions and missing items that a peer was sent since the last call.
fn served(bench: &mut Bench, id: PeerId) -> (Vec<Vec<u8>>, Vec<Inv>) {
    let (mut txs, mut missing) = (Vec::new(), Vec::new());
    for message in bench.take_sent(id) {
        match message {
            Message::Tx(bytes) => txs.push(bytes),
            Message::NotFound(items) => missing.extend(items),
            _ => {}
        }
    }
    (txs, missing)
}

fn asked(bench: &mut Bench, id: PeerId) -> Vec<Inv> {
    bench.take_asked(id).into_iter().map(|(kind, hash)| Inv { kind, hash: hash.0 }).collect()
}

/// A transaction is requested from its announcer, accepted, announced to the others by their kind of id, and sent to
/// those that request it.
#[test]
fn a_transaction_goes_from_one_peer_to_the_others() {
    let mut bench = bench();
    let source = bench.connect(ConnectionKind::OutboundFullRelay);
    let by_wtxid = bench.connect(ConnectionKind::Inbound);
    let by_txid = bench.connect_with_version(ConnectionKind::Inbound, |version| version.version = 70_015);
    let deaf = bench.connect_with_version(ConnectionKind::Inbound, |version| version.relay = false);
    let for_blocks = bench.connect(ConnectionKind::BlockRelayOnly);
    bench.wait(Duration::from_secs(1));
    let peers = [source, by_wtxid, by_txid, deaf, for_blocks];
    peers.iter().for_each(|id| drop(bench.take_sent(*id)));
    let tx = pay(coin(&bench, 0), COIN - 1_000, 2);
    bench.send(source, Message::Inv(vec![wtx(&tx)]));
    assert_eq!(asked(&mut bench, source), [wtx(&tx)], "an outbound peer is asked at once");
    assert_eq!(info(&bench, source).last_transaction.0, 0);
    bench.send(source, message(&tx));
    assert!(has(&bench, &tx));
    assert_eq!(info(&bench, source).last_transaction, bench.now().unix);
    assert_eq!(info(&bench, by_wtxid).queued_transactions, 1);
    bench.wait(Duration::from_secs(60));
    assert_eq!(told(&mut bench, by_wtxid), [wtx(&tx)]);
    assert_eq!(told(&mut bench, by_txid), [Inv { kind: InvType::TX, hash: tx.view().txid().0 }]);
    for silent in [source, deaf, for_blocks] {
        assert_eq!(told(&mut bench, silent), []);
    }
    assert_eq!((info(&bench, by_wtxid).queued_transactions, info(&bench, deaf).last_inv_sequence), (0, 0));
    assert_eq!(info(&bench, by_wtxid).last_inv_sequence, bench.mempool.snapshot().info().sequence);
    for (peer, item) in [(by_wtxid, wtx(&tx)), (by_txid, Inv { kind: InvType::TX, hash: tx.view().txid().0 })] {
        bench.send(peer, Message::GetData(vec![item]));
        assert_eq!(served(&mut bench, peer), (vec![tx.as_bytes().to_vec()], vec![]));
    }
    for peer in [deaf, for_blocks] {
        bench.send(peer, Message::GetData(vec![wtx(&tx)]));
        assert_eq!(served(&mut bench, peer), (vec![], vec![]), "no answer");
    }
    assert!(bench.ended.is_empty());
}

/// A transaction is sent only to peers that can know it: it was in the mempool when announcements were last sent to
/// them, or it is in the last block.
#[test]
fn a_transaction_is_not_sent_before_it_is_announced() {
    let (mut bench, [source, other]) = connected([ConnectionKind::OutboundFullRelay, ConnectionKind::Inbound]);
    let tx = pay(coin(&bench, 0), COIN - 1_000, 2);
    bench.send(source, message(&tx));
    assert!(has(&bench, &tx));
    bench.send(other, Message::GetData(vec![wtx(&tx)]));
    assert_eq!(served(&mut bench, other), (vec![], vec![wtx(&tx)]));
    bench.wait(Duration::from_secs(60));
    bench.take_sent(other);
    bench.send(other, Message::GetData(vec![wtx(&tx), Inv { kind: InvType(0), hash: [1; 32] }, wtx(&tx)]));
    assert_eq!(served(&mut bench, other).0.len(), 2);
    // In the last block, and no longer in the mempool.
    let mined = block_on(bench.tip(), 1, vec![MutTx::from(tx.view())]);
    bench.send(source, Message::Block(mined.bytes()));
    assert!(!has(&bench, &tx) && bench.tip_hash() == mined.hash);
    let newcomer = bench.connect(ConnectionKind::Inbound);
    bench.take_sent(newcomer);
    bench.send(newcomer, Message::GetData(vec![wtx(&tx)]));
    assert_eq!(served(&mut bench, newcomer).0, [tx.as_bytes()]);
    // After the next block it is gone.
    bench.grow(1);
    bench.send(newcomer, Message::GetData(vec![wtx(&tx)]));
    assert_eq!(served(&mut bench, newcomer), (vec![], vec![wtx(&tx)]));
}

/// A child without its parent is kept, the parent is requested from the child's sender, and both are accepted.
#[test]
fn an_orphan_is_accepted_with_its_parent() {
    let (mut bench, [source]) = connected([ConnectionKind::Inbound]);
    bench.take_sent(source);
    let parent = pay(coin(&bench, 0), COIN - 1_000, 2);
    let child = pay(output(&parent), COIN - 2_000, 2);
    let grandchild = pay(output(&child), COIN - 3_000, 2);
    bench.send(source, message(&grandchild));
    bench.send(source, message(&child));
    let orphans = bench.ask(Question::Orphans);
    assert_eq!(orphans.len(), 2);
    assert!(orphans.iter().all(|orphan| orphan.announcers == [source]));
    bench.wait(Duration::from_secs(10));
    let requests = asked(&mut bench, source);
    assert_eq!(requests, [parent_request(parent.view().txid())], "the child is here already");
    bench.send(source, message(&parent));
    assert!([&parent, &child, &grandchild].iter().all(|tx| has(&bench, tx)));
    assert_eq!(bench.ask(Question::Orphans).len(), 0);
    assert_eq!(bench.manager.held().orphan_weight, 0);
}

/// A parent that pays too little is accepted with a child of the same peer that pays for it.
#[test]
fn a_parent_below_the_minimum_is_accepted_with_its_child() {
    for child_first in [true, false] {
        let (mut bench, [source]) = connected([ConnectionKind::OutboundFullRelay]);
        let parent = pay(coin(&bench, 0), COIN, 3);
        let child = pay(output(&parent), COIN - 5_000, 3);
        let order = if child_first { [&child, &parent] } else { [&parent, &child] };
        bench.send(source, message(order[0]));
        assert!(!has(&bench, order[0]));
        bench.send(source, message(order[1]));
        bench.wait(Duration::from_secs(20));
        if !child_first {
            // The parent is requested again, now that a child pays for it.
            assert!(asked(&mut bench, source).contains(&parent_request(parent.view().txid())));
            bench.send(source, message(&parent));
        }
        assert!(has(&bench, &parent) && has(&bench, &child), "{child_first}");
        assert!(bench.ended.is_empty());
    }
}

/// Transactions that policy rejects, or that are invalid, have no consequence for their sender, and are not requested
/// again. Those that were rejected for the first time are used for compact blocks.
/// checklist: 79
#[test]
fn no_peer_is_punished_for_a_transaction() {
    let (mut bench, [source]) = connected([ConnectionKind::Inbound]);
    let first = pay(coin(&bench, 0), COIN - 1_000, 2);
    bench.send(source, message(&first));
    let conflict = pay(coin(&bench, 0), COIN - 999, 2);
    let too_much = pay(coin(&bench, 1), COIN + 1, 2);
    let nothing = pay(coin(&bench, 2), COIN, 2);
    let young = pay(coin(&bench, 109), COIN - 1_000, 2);
    let bad = [conflict, too_much, nothing, young];
    for tx in &bad {
        bench.send(source, message(tx));
        assert!(!has(&bench, tx));
        bench.send(source, Message::Inv(vec![wtx(tx)]));
    }
    bench.send(source, Message::Tx(vec![1, 2, 3]));
    bench.wait(Duration::from_secs(20));
    assert_eq!(asked(&mut bench, source), []);
    assert!(bench.ended.is_empty());
    assert_eq!(bench.manager.held().extra, 4);
    // A new tip gives them another chance.
    bench.grow(1);
    bench.send(source, Message::Inv(bad.iter().map(|tx| wtx(tx)).collect()));
    bench.wait(Duration::from_secs(20));
    assert_eq!(asked(&mut bench, source).len(), 4);
}

/// A replacement takes the place of a transaction, which is kept for compact blocks.
#[test]
fn a_replaced_transaction_is_kept_for_compact_blocks() {
    let (mut bench, [source]) = connected([ConnectionKind::Inbound]);
    let (first, second) = (pay(coin(&bench, 0), COIN - 1_000, 2), pay(coin(&bench, 0), COIN - 9_000, 2));
    bench.send(source, message(&first));
    bench.send(source, message(&second));
    assert!(has(&bench, &second) && !has(&bench, &first));
    assert_eq!(bench.manager.held().extra, 1);
}

/// During the initial download nothing is requested, and transactions are ignored.
#[test]
fn nothing_is_requested_during_the_initial_download() {
    let mut bench = Bench::relaying(0);
    let source = bench.connect(ConnectionKind::OutboundFullRelay);
    let sent = bench.take_sent(source);
    bench.wait(Duration::from_secs(1));
    let filter = |message: &Message| matches!(message, Message::FeeFilter(Amount(rate)) if *rate > 9_000_000);
    assert!(sent.iter().chain(&bench.take_sent(source)).any(filter), "no transactions are wanted");
    let tx = pay(OutPoint { txid: Txid([1; 32]), vout: 0 }, 1, 2);
    bench.send(source, Message::Inv(vec![wtx(&tx)]));
    bench.send(source, message(&tx));
    bench.wait(Duration::from_secs(10));
    assert_eq!(asked(&mut bench, source), []);
    assert_eq!((bench.manager.held().tx_announcements, bench.ask(Question::Orphans).len()), (0, 0));
    bench.grow(1);
    bench.wait(Duration::from_secs(1));
    let minimum = Message::FeeFilter(Amount(100));
    assert!(bench.take_sent(source).contains(&minimum), "now they are");
}

/// Transactions below the filter of a peer are not announced to it.
#[test]
fn the_filter_of_a_peer_is_respected() {
    let (mut bench, [source, other]) = connected([ConnectionKind::OutboundFullRelay, ConnectionKind::Inbound]);
    bench.send(other, Message::FeeFilter(Amount(100_000)));
    let (cheap, dear) = (pay(coin(&bench, 0), COIN - 100, 2), pay(coin(&bench, 1), COIN - 50_000, 2));
    bench.send(source, message(&cheap));
    bench.send(source, message(&dear));
    assert!(has(&bench, &cheap) && has(&bench, &dear));
    bench.wait(Duration::from_secs(60));
    assert_eq!(told(&mut bench, other), [wtx(&dear)]);
}

/// Only with the permission, a peer may request the whole mempool.
#[test]
fn the_mempool_is_announced_to_who_may_ask() {
    for (permissions, is_ended, count) in
        [(Permissions::NONE, true, 0), (Permissions::NO_BAN, false, 0), (Permissions::MEMPOOL, false, 3)]
    {
        let (mut bench, [source]) = connected([ConnectionKind::OutboundFullRelay]);
        for index in 0..3 {
            let tx = pay(coin(&bench, index), COIN - 1_000, 2);
            bench.send(source, message(&tx));
        }
        let peer = bench.connect_with(ConnectionKind::Inbound, permissions, None);
        bench.wait(Duration::from_secs(1));
        bench.take_sent(peer);
        bench.send(peer, Message::MemPool);
        bench.wait(Duration::from_secs(60));
        assert_eq!(bench.ended.contains_key(&peer), is_ended, "{permissions:?}");
        assert_eq!(told(&mut bench, peer).len(), count, "{permissions:?}");
        assert!(!bench.is_discouraged(peer));
    }
}

/// With `-blocksonly`, a peer that sends or announces a transaction is disconnected, except with the permission.
#[test]
fn a_node_for_blocks_takes_transactions_from_trusted_peers_only() {
    for (permissions, is_ended) in [(Permissions::NONE, true), (Permissions::RELAY, false)] {
        let mut bench = Bench::relaying_with(110, |settings| {
            settings.local.ignores_transactions = true;
            settings.blocks_only = true;
        });
        let peer = bench.connect_with(ConnectionKind::Inbound, permissions, None);
        let other = bench.connect(ConnectionKind::Inbound);
        bench.wait(Duration::from_secs(1));
        let sent = [bench.take_sent(peer), bench.take_sent(other)].concat();
        assert!(!sent.iter().any(|message| matches!(message, Message::FeeFilter(_))));
        let tx = pay(coin(&bench, 0), COIN - 1_000, 2);
        bench.send(peer, message(&tx));
        assert_eq!((bench.ended.contains_key(&peer), has(&bench, &tx)), (is_ended, !is_ended));
        bench.wait(Duration::from_secs(60));
        assert_eq!(told(&mut bench, other).len(), usize::from(!is_ended), "it is relayed");
    }
}

/// Requests are limited in size. What is not delivered in a minute is requested from another announcer.
/// limit: GETDATA_COUNT_MAX at
/// limit: GETDATA_COUNT_MAX above
#[test]
fn requests_have_at_most_a_thousand_items() {
    for count in [GETDATA_COUNT_MAX, GETDATA_COUNT_MAX + 1] {
        let mut bench = bench();
        let trusted = bench.connect_with(ConnectionKind::OutboundFullRelay, Permissions::RELAY, None);
        let other = bench.connect_with(ConnectionKind::Inbound, Permissions::RELAY, None);
        bench.take_sent(trusted);
        let item = |number: usize| {
            let mut hash = [1; 32];
            hash[..8].copy_from_slice(&(number as u64).to_le_bytes());
            Inv { kind: InvType::WTX, hash }
        };
        let items: Vec<_> = (0..count).map(item).collect();
        bench.send(trusted, Message::Inv(items.clone()));
        bench.send(other, Message::Inv(items));
        let sizes = |bench: &mut Bench, id| -> Vec<usize> {
            let sent = bench.take_sent(id).into_iter();
            sent.filter_map(|message| if let Message::GetData(items) = message { Some(items.len()) } else { None })
                .collect()
        };
        let first = sizes(&mut bench, trusted);
        assert_eq!(first, if count == GETDATA_COUNT_MAX { vec![count] } else { vec![GETDATA_COUNT_MAX, 1] });
        bench.wait(Duration::from_secs(30));
        assert!(sizes(&mut bench, other).is_empty());
        bench.wait(Duration::from_secs(35));
        assert_eq!(sizes(&mut bench, other).iter().sum::<usize>(), count, "the first one did not answer");
        let known: Vec<_> = (0..count).map(item).collect();
        bench.send(other, Message::NotFound(known));
        assert_eq!(bench.manager.held().tx_announcements, 0, "no peer is left to ask");
    }
}

/// A peer may have a number of transactions decided at a time; the others wait.
/// limit: PEER_SUBMISSIONS_MAX at
/// limit: PEER_SUBMISSIONS_MAX above
#[test]
fn a_peer_waits_behind_its_own_transactions() {
    let (mut bench, [source, other]) = connected([ConnectionKind::OutboundFullRelay, ConnectionKind::Inbound]);
    bench.holds_verdicts = true;
    let many = |index: usize| {
        let vout = u32::try_from(index).unwrap();
        pay(OutPoint { txid: Txid([9; 32]), vout }, 1, 2)
    };
    (0..PEER_SUBMISSIONS_MAX).for_each(|index| bench.send(source, message(&many(index))));
    assert_eq!((bench.submissions.len(), bench.manager.held().transactions), (PEER_SUBMISSIONS_MAX, 0));
    bench.send(source, message(&many(PEER_SUBMISSIONS_MAX)));
    assert_eq!((bench.submissions.len(), bench.manager.held().transactions), (PEER_SUBMISSIONS_MAX, 1));
    let tx = pay(coin(&bench, 0), COIN - 1_000, 2);
    bench.send(other, message(&tx));
    assert_eq!(bench.submissions.len(), PEER_SUBMISSIONS_MAX + 1, "another peer does not wait");
    bench.decide();
    assert_eq!((bench.submissions.len(), bench.manager.held().transactions), (PEER_SUBMISSIONS_MAX + 1, 0));
    bench.holds_verdicts = false;
    bench.act();
    assert!(has(&bench, &tx) && bench.manager.held().undecided == 0);
}

/// limit: PEER_SUBMITTED_BYTES_MAX at
/// limit: PEER_SUBMITTED_BYTES_MAX above
#[test]
fn a_peer_waits_behind_its_large_transactions() {
    let (mut bench, [source]) = connected([ConnectionKind::OutboundFullRelay]);
    bench.holds_verdicts = true;
    let size = |data: usize| pay_with(coin(&bench, 0), 1, 2, data).as_bytes().len();
    let overhead = size(1_000) - 1_000;
    let exact = pay_with(coin(&bench, 0), 1, 2, PEER_SUBMITTED_BYTES_MAX - overhead - 2);
    let below = pay_with(coin(&bench, 1), 1, 2, PEER_SUBMITTED_BYTES_MAX - overhead - 3);
    assert_eq!(
        (exact.as_bytes().len(), below.as_bytes().len()),
        (PEER_SUBMITTED_BYTES_MAX, PEER_SUBMITTED_BYTES_MAX - 1)
    );
    let small = pay(coin(&bench, 2), COIN - 1_000, 2);
    bench.send(source, message(&below));
    bench.send(source, message(&exact));
    bench.send(source, message(&small));
    assert_eq!((bench.submissions.len(), bench.manager.held().transactions), (2, 1));
    bench.decide();
    assert_eq!(bench.submissions.len(), 1, "one that is at the limit alone");
    bench.decide();
    assert_eq!((bench.submissions.len(), bench.manager.held().transactions), (1, 0));
}

/// What finds no room in the mempool's queue is submitted later, in order; nothing is lost.
#[test]
fn nothing_is_lost_when_the_queue_is_full() {
    let (mut bench, [source]) = connected([ConnectionKind::OutboundFullRelay]);
    bench.submissions_max = 0;
    let mut txs = vec![pay(coin(&bench, 0), COIN - 1_000, 2)];
    for index in 1..5 {
        txs.push(pay(output(&txs[index - 1]), COIN - 1_000 * i64::try_from(index + 1).unwrap(), 2));
    }
    txs.iter().for_each(|tx| bench.send(source, message(tx)));
    assert_eq!(bench.manager.held().transactions, 5);
    bench.wait(Duration::from_secs(1));
    assert!(!has(&bench, &txs[0]));
    bench.submissions_max = usize::MAX;
    bench.wait(Duration::from_secs(1));
    assert!(txs.iter().all(|tx| has(&bench, tx)));
    let held = bench.manager.held();
    assert_eq!((held.transactions, held.undecided, held.orphan_announcements), (0, 0, 0));
}

/// What finds no room a second time keeps its place.
#[test]
fn what_is_refused_again_stays_first() {
    let (mut bench, [source]) = connected([ConnectionKind::OutboundFullRelay]);
    bench.holds_verdicts = true;
    bench.send(source, message(&pay(coin(&bench, 0), COIN - 1_000, 2)));
    bench.submissions_max = 0;
    let txs = [1, 2, 3].map(|index| pay(coin(&bench, index), COIN - 1_000, 2));
    txs.iter().for_each(|tx| bench.send(source, message(tx)));
    bench.wait(Duration::from_secs(1));
    // The first is tried again, without success.
    bench.decide();
    bench.submissions_max = usize::MAX;
    bench.wait(Duration::from_secs(1));
    let submitted = bench.submissions.iter().map(|submission| match &submission.submitted {
        Submitted::Transaction { tx, .. } => tx.view().txid(),
        Submitted::Package(_) => unreachable!("all are single transactions"),
    });
    assert_eq!(submitted.collect::<Vec<_>>(), txs.map(|tx| tx.view().txid()));
}

/// A peer that requests everything and reads nothing makes the node hold its requests, not the transactions. Blocks
/// keep their place between them.
/// checklist: 63
#[test]
fn what_is_requested_waits_for_room() {
    let (mut bench, [source, greedy]) = connected([ConnectionKind::OutboundFullRelay, ConnectionKind::Inbound]);
    let tx = pay(coin(&bench, 0), COIN - 1_000, 2);
    bench.send(source, message(&tx));
    bench.wait(Duration::from_secs(60));
    bench.take_sent(greedy);
    bench.full.insert(greedy);
    let block = Inv::block(InvType::WITNESS_BLOCK, bench.tip_hash());
    let items = [vec![block], vec![wtx(&tx); INV_COUNT_MAX - 2], vec![block]].concat();
    bench.send(greedy, Message::GetData(items));
    assert_eq!((bench.served.len(), bench.manager.held().requested), (1, INV_COUNT_MAX - 1));
    bench.wait(Duration::from_secs(1));
    assert_eq!(served(&mut bench, greedy), (vec![], vec![]));
    bench.full.clear();
    bench.wait(Duration::from_millis(100));
    assert_eq!(served(&mut bench, greedy).0.len(), INV_COUNT_MAX - 2);
    assert_eq!((bench.served.len(), bench.manager.held().requested), (2, 0));
    // A peer that leaves takes its requests along.
    bench.full.insert(greedy);
    bench.send(greedy, Message::GetData(vec![wtx(&tx); 3]));
    assert_eq!(bench.manager.held().requested, 3);
    bench.drive(driver::Event::Disconnected { peer: greedy, wants_v1: false });
    assert_eq!(bench.manager.held().requested, 0);
}

/// A transaction of the operator is announced by request, and again until a peer has requested it.
#[test]
fn a_transaction_of_the_operator_is_announced_until_a_peer_has_it() {
    let (mut bench, [first]) = connected([ConnectionKind::OutboundFullRelay]);
    let tx = pay(coin(&bench, 0), COIN - 1_000, 2);
    bench.mempool.submit(Arc::clone(&tx), false).unwrap();
    bench.mempool.add_unbroadcast(tx.view().txid());
    bench.wait(Duration::from_secs(60));
    assert_eq!(told(&mut bench, first), [], "nothing is announced by itself");
    let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
    bench.ask(|reply| Question::Announce { txid, wtxid, reply });
    bench.wait(Duration::from_secs(60));
    assert_eq!(told(&mut bench, first), [wtx(&tx)]);
    // It does not ask for it. Another one connects, and is told too.
    let second = bench.connect(ConnectionKind::OutboundFullRelay);
    bench.idle(&[first, second], 1);
    bench.take_sent(second);
    let delta = Duration::from_secs(15 * 60);
    bench.ask(|reply| Question::MockForward { delta, reply });
    bench.wait(Duration::from_secs(60));
    assert_eq!(told(&mut bench, second), [wtx(&tx)]);
    bench.send(second, Message::GetData(vec![wtx(&tx)]));
    assert_eq!(served(&mut bench, second).0.len(), 1);
    // The mempool's thread notes that.
    bench.mempool.settle();
    assert!(bench.mempool.snapshot().unbroadcast().is_empty());
}

/// Connects a peer that may send compact blocks unrequested: it has sent a valid block.
fn announcer(bench: &mut Bench) -> PeerId {
    let id = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let made = block_on(bench.tip(), 77, Vec::new());
    bench.send(id, Message::Block(made.bytes()));
    assert_eq!(bench.tip_hash(), made.hash);
    bench.take_sent(id);
    id
}

fn send_compact(bench: &mut Bench, id: PeerId, made: &Made) {
    bench.send(id, Message::CmpctBlock(Box::new(CompactBlock::new(&made.parsed(), 5))));
}

/// A compact block of known transactions needs no further message: they are in the mempool, were replaced, or were
/// rejected.
/// checklist: 82
#[test]
fn a_compact_block_of_known_transactions_is_complete() {
    let (mut bench, [source]) = connected([ConnectionKind::OutboundFullRelay]);
    let peer = announcer(&mut bench);
    let pooled = pay(coin(&bench, 0), COIN - 1_000, 2);
    let replaced = pay(coin(&bench, 1), COIN - 1_000, 2);
    let replacement = pay(coin(&bench, 1), COIN - 9_000, 2);
    let too_cheap = pay(coin(&bench, 2), COIN, 2);
    let unknown = pay(coin(&bench, 3), COIN - 1_000, 2);
    for tx in [&pooled, &replaced, &replacement, &too_cheap] {
        bench.send(source, message(tx));
    }
    assert!(has(&bench, &replacement) && !has(&bench, &too_cheap));
    let known = [&pooled, &replaced, &too_cheap].map(|tx| MutTx::from(tx.view()));
    let made = block_on(bench.tip(), 1, known.to_vec());
    send_compact(&mut bench, peer, &made);
    assert_eq!(bench.tip_hash(), made.hash);
    assert!(!bench.take_sent(peer).iter().any(|message| matches!(message, Message::GetBlockTxn(_))));
    assert!(bench.mempool.snapshot().is_empty(), "one was confirmed, one is in conflict");
    let made = block_on(bench.tip(), 1, vec![MutTx::from(unknown.view())]);
    send_compact(&mut bench, peer, &made);
    assert!(bench.take_sent(peer).iter().any(|message| matches!(message, Message::GetBlockTxn(_))));
}

/// A block that extends the tip is sent to high-bandwidth peers before it is validated, even if it turns out to be
/// invalid, and not again afterwards. A request for it waits until it is validated.
#[test]
fn a_compact_block_is_passed_on_before_it_is_validated() {
    for is_valid in [true, false] {
        let mut bench = bench();
        let source = bench.connect_synced(ConnectionKind::OutboundFullRelay);
        let listener = bench.connect_with(ConnectionKind::Inbound, Permissions::NONE, Some(true));
        let tip = bench.engine.tip_info().node.header;
        bench.announce(listener, &[tip]);
        bench.wait(Duration::from_secs(1));
        bench.take_sent(listener);
        let value = if is_valid { COIN } else { COIN + 1 };
        let made = block_on(bench.tip(), 1, vec![MutTx::from(pay(coin(&bench, 0), value, 2).view())]);
        bench.holds_back = true;
        bench.send(source, Message::Block(made.bytes()));
        let mut delivery = bench.deliveries.remove(0);
        let stored = delivery.store(&bench.engine, bench.now()).unwrap();
        bench.drive(stored);
        let is_compact =
            |message: &Message| matches!(message, Message::CmpctBlock(block) if block.header.hash() == made.hash);
        assert!(bench.take_sent(listener).iter().any(is_compact), "before validation");
        bench
            .send(listener, Message::GetBlockTxn(BlockTransactionsRequest { block_hash: made.hash, indexes: vec![1] }));
        assert!(bench.take_sent(listener).iter().any(|message| matches!(message, Message::BlockTxn(_))));
        bench.send(listener, Message::GetData(vec![Inv::block(InvType::WITNESS_BLOCK, made.hash)]));
        assert!(bench.served.is_empty());
        let advance = bench.engine.advance(&Cancel::new(), &Unobserved).unwrap();
        driver::validated(advance).for_each(|event| bench.drive(event));
        assert_eq!(bench.tip_hash() == made.hash, is_valid);
        bench.wait(Duration::from_secs(1));
        assert_eq!(bench.served.len(), usize::from(is_valid));
        assert!(
            bench
                .take_sent(listener)
                .iter()
                .all(|message| !matches!(message, Message::CmpctBlock(_) | Message::Headers(_) | Message::Inv(_)))
        );
        assert_eq!(bench.manager.held().requested, 0);
    }
}

/// A block that does not extend the tip is not passed on before it is validated.
#[test]
fn a_block_of_a_branch_is_not_passed_on_early() {
    let mut bench = bench();
    let source = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let listener = bench.connect_with(ConnectionKind::Inbound, Permissions::NONE, Some(true));
    let tip = bench.engine.tip_info().node.header;
    bench.announce(listener, &[tip]);
    bench.wait(Duration::from_secs(1));
    bench.take_sent(listener);
    let below = bench.chain[bench.chain.len() - 2].clone();
    let rival = block_on((below.hash, below.height, below.header().time + 1), 9, Vec::new());
    bench.send(source, Message::Headers(vec![rival.header()]));
    bench.send(source, Message::Block(rival.bytes()));
    bench.wait(Duration::from_secs(1));
    assert!(!bench.take_sent(listener).iter().any(|message| matches!(message, Message::CmpctBlock(_))));
}

/// Of peers without permission, five thousand announcements are tracked; orphans are bounded whatever is sent.
#[test]
fn floods_of_announcements_and_orphans_are_bounded() {
    let (mut bench, [source, other]) = connected([ConnectionKind::Inbound, ConnectionKind::Inbound]);
    let item = |number: usize| {
        let mut hash = [1; 32];
        hash[..8].copy_from_slice(&(number as u64).to_le_bytes());
        Inv { kind: InvType::WTX, hash }
    };
    for round in 0..4 {
        let items = (round * 5_000..(round + 1) * 5_000).map(item).collect();
        bench.send(source, Message::Inv(items));
    }
    assert_eq!(bench.manager.held().tx_announcements, PEER_ANNOUNCEMENTS_MAX);
    for number in 0..300 {
        let prevout = OutPoint { txid: Txid([3; 32]), vout: number };
        bench.send(other, message(&pay_with(prevout, 1, 2, 5_000)));
    }
    let held = bench.manager.held();
    assert!(held.orphan_weight <= ORPHAN_WEIGHT_PER_PEER && held.orphan_announcements > 10, "{held:?}");
    assert_eq!((held.undecided, held.transactions), (0, 0));
    assert!(bench.ended.is_empty());
}
