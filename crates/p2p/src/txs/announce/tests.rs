//! Timing, order, limits, and what a peer may request.

use super::*;
use crate::peer::{ConnectionKind, Permissions};
use crate::txs::sample::lone;
use lydian_mempool::graph::FeeSize;
use lydian_primitives::build::MutBlock;
use lydian_primitives::{Header, RawBlock};
use rand_chacha::rand_core::SeedableRng;

const PEER: PeerId = PeerId(1);

/// Transactions by number; those with a larger number are mined first. The ids are hashes of the number.
#[derive(Default)]
struct Pool {
    txs: BTreeMap<Wtxid, (u32, RelayedTx)>,
    /// The transactions that can be requested, with their sequence numbers.
    bodies: Vec<(u64, Arc<Transaction>)>,
    sequence: u64,
}

fn wtxid(number: u32) -> Wtxid {
    Wtxid(lydian_hash::sha256(&number.to_le_bytes()))
}

fn txid(number: u32) -> Txid {
    Txid(lydian_hash::sha256(&wtxid(number).0))
}

impl Pool {
    /// 100 virtual bytes that pay one satoshi more than the number.
    fn add(&mut self, number: u32) {
        let (txid, fee) = (txid(number), i64::from(number) + 1);
        let rank = MiningRank::alone(FeeSize::new(fee, 400), txid);
        let tx = RelayedTx { txid, fee: Amount(fee), vsize: 100, rank };
        self.txs.insert(wtxid(number), (number, tx));
    }
}

impl RelayPool for Pool {
    fn relayed(&self, wtxid: &Wtxid) -> Option<RelayedTx> {
        self.txs.get(wtxid).map(|(_, tx)| *tx)
    }

    fn all(&self) -> Vec<(Wtxid, RelayedTx)> {
        let mut all: Vec<_> = self.txs.iter().collect();
        all.sort_by_key(|(_, (number, _))| std::cmp::Reverse(*number));
        all.into_iter().map(|(wtxid, (_, tx))| (*wtxid, *tx)).collect()
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn before(&self, gtxid: &GenTxid, sequence: u64) -> Option<Arc<Transaction>> {
        let is_it = |tx: &Transaction| match gtxid {
            GenTxid::Txid(txid) => tx.view().txid() == *txid,
            GenTxid::Wtxid(wtxid) => tx.view().wtxid() == *wtxid,
        };
        self.bodies.iter().find(|(at, tx)| *at < sequence && is_it(tx)).map(|(_, tx)| Arc::clone(tx))
    }
}

struct World {
    announcer: TxAnnouncer,
    pool: Pool,
    random: ChaCha20Rng,
    now: Duration,
}

impl World {
    /// One peer that was sent announcements before, and is not delayed.
    fn new() -> World {
        World::with_peer(RelayPeer { permissions: Permissions::NO_BAN, ..RelayPeer::sample() })
    }

    fn with_peer(peer: RelayPeer) -> World {
        let mut world = World {
            announcer: TxAnnouncer::default(),
            pool: Pool::default(),
            random: ChaCha20Rng::seed_from_u64(1),
            now: Duration::from_secs(1000),
        };
        world.announcer.connected(PEER, peer);
        assert!(world.due().is_empty());
        world
    }

    fn due(&mut self) -> Vec<Inv> {
        self.announcer.due(PEER, self.now, &self.pool, &mut self.random)
    }

    /// Accepts transactions and queues them.
    fn accept(&mut self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            self.pool.add(number);
            self.announcer.announce(&txid(number), &wtxid(number));
        }
    }

    fn queued_count(&self) -> usize {
        self.announcer.figures(PEER).unwrap().queued_count
    }
}

fn items(numbers: impl IntoIterator<Item = u32>) -> Vec<Inv> {
    numbers.into_iter().map(|number| Inv { kind: InvType::WTX, hash: wtxid(number).0 }).collect()
}

#[test]
fn nothing_is_queued_during_the_handshake() {
    let mut announcer = TxAnnouncer::default();
    let (mut pool, random) = (Pool::default(), &mut ChaCha20Rng::seed_from_u64(1));
    announcer.connected(PEER, RelayPeer { permissions: Permissions::NO_BAN, ..RelayPeer::sample() });
    pool.add(1);
    announcer.announce(&txid(1), &wtxid(1));
    assert_eq!(announcer.figures(PEER), Some(AnnounceFigures { last_sequence: 1, ..AnnounceFigures::default() }));
    assert_eq!(announcer.due(PEER, Duration::from_secs(9), &pool, random), []);
    announcer.announce(&txid(1), &wtxid(1));
    assert_eq!(announcer.due(PEER, Duration::from_secs(9), &pool, random), items([1]));
    announcer.announce(&txid(1), &wtxid(1));
    assert_eq!(announcer.figures(PEER).unwrap().queued_count, 0, "it was announced");
    // Peers without transaction relay have no queue at all.
    announcer.disconnected(PEER);
    announcer.connected(PEER, RelayPeer { kind: ConnectionKind::BlockRelayOnly, ..RelayPeer::outbound() });
    assert_eq!(announcer.figures(PEER), None);
}

#[test]
fn the_best_are_announced_first_and_those_that_left_are_dropped() {
    let mut world = World::new();
    world.accept(0..200);
    world.pool.txs.remove(&wtxid(199));
    world.pool.txs.remove(&wtxid(0));
    let count = u32::try_from(ANNOUNCED_AT_ONCE).unwrap();
    assert_eq!(world.due(), items((199 - count..199).rev()));
    assert_eq!(world.queued_count(), 198 - ANNOUNCED_AT_ONCE, "one that left is not announced later either");
    world.due();
    assert_eq!(world.due(), items((1..199 - 2 * count).rev()));
    assert_eq!((world.queued_count(), world.due()), (0, vec![]));
}

/// Core's numbers: 70, and 5 more for each 1,000 in the queue.
#[test]
fn a_long_queue_is_emptied_faster() {
    let mut world = World::new();
    world.accept(0..999);
    assert_eq!(world.due().len(), 70);
    world.accept(1000..1071);
    assert_eq!((world.queued_count(), world.due().len()), (1000, 75));
    world.accept(2000..5000);
    assert_eq!((world.queued_count(), world.due().len()), (3925, 85));
}

#[test]
fn what_the_peer_knows_is_not_announced() {
    let mut world = World::new();
    world.accept([1, 2]);
    world.announcer.note_known(PEER, &wtxid(1).0, &mut world.random);
    world.announcer.note_known(PEER, &txid(2).0, &mut world.random);
    world.announcer.note_known(PEER, &wtxid(3).0, &mut world.random);
    world.accept([3]);
    assert_eq!((world.queued_count(), world.due()), (2, items([2])), "the txid means nothing to this peer");
    // A peer without wtxid relay is announced txids.
    let old = RelayPeer { wtxid_relay: false, permissions: Permissions::NO_BAN, ..RelayPeer::sample() };
    let mut world = World::with_peer(old);
    world.accept([1, 2]);
    world.announcer.note_known(PEER, &wtxid(1).0, &mut world.random);
    world.announcer.note_known(PEER, &txid(2).0, &mut world.random);
    assert_eq!(world.due(), [Inv { kind: InvType::TX, hash: txid(1).0 }]);
}

#[test]
fn the_fee_filter_of_the_peer_is_kept_to() {
    let mut world = World::new();
    // 100 virtual bytes at 451 per 1,000 cost 46, rounded up; number 45 pays exactly that.
    world.announcer.set_fee_filter(PEER, Amount(451));
    for refused in [Amount(-1), Amount(Amount::MAX_MONEY.0 + 1)] {
        world.announcer.set_fee_filter(PEER, refused);
    }
    assert_eq!(world.announcer.figures(PEER).unwrap().fee_filter, Amount(451));
    world.accept([44, 45]);
    assert_eq!((world.due(), world.queued_count()), (items([45]), 0));
    world.announcer.set_fee_filter(PEER, Amount::MAX_MONEY);
    world.accept([u32::MAX]);
    assert_eq!(world.due(), []);
    assert_eq!([fee_at(Amount(1000), 250), fee_at(Amount(1), 1), fee_at(Amount(0), 9)], [250, 1, 0]);
}

/// The average pause between announcements, in milliseconds, and whether two peers get them at the same times.
fn rhythm(peers: [RelayPeer; 2]) -> (u128, bool) {
    let mut world = World::with_peer(peers[0]);
    world.announcer.connected(PeerId(2), peers[1]);
    let mut times = [vec![], vec![]];
    for step in 1..100_000 {
        world.now = Duration::from_secs(1000) + step * Duration::from_millis(100);
        for (index, id) in [PEER, PeerId(2)].into_iter().enumerate() {
            world.pool.sequence += 1;
            world.announcer.due(id, world.now, &world.pool, &mut world.random);
            if world.announcer.figures(id).unwrap().last_sequence == world.pool.sequence {
                times[index].push(world.now);
            }
        }
    }
    // The second peer is new: its first announcements are not delayed.
    let is_same = times[0] == times[1][1..];
    ((Duration::from_secs(10_000) / u32::try_from(times[0].len()).unwrap()).as_millis(), is_same)
}

#[test]
fn announcements_come_at_random_times() {
    let (inbound, outbound) = (RelayPeer::sample(), RelayPeer::outbound());
    let (pause, is_same) = rhythm([inbound, inbound]);
    assert!((4700..5500).contains(&pause) && is_same, "{pause}");
    let (pause, is_same) = rhythm([inbound, RelayPeer { network_key: 2, ..inbound }]);
    assert!((4700..5500).contains(&pause) && !is_same, "{pause}");
    let (pause, is_same) = rhythm([outbound, outbound]);
    assert!((1900..2300).contains(&pause) && !is_same, "{pause}");
    let (pause, _) = rhythm([RelayPeer { permissions: Permissions::NO_BAN, ..inbound }, inbound]);
    assert_eq!(pause, 100, "a trusted peer does not wait");
}

/// limit: INBOUND_TIMERS_MAX at
/// limit: INBOUND_TIMERS_MAX above
#[test]
fn the_number_of_timers_is_limited() {
    let mut world = World::new();
    for key in 0..2 * INBOUND_TIMERS_MAX as u64 {
        let id = PeerId(10 + key);
        world.announcer.connected(id, RelayPeer { network_key: key, ..RelayPeer::sample() });
        world.announcer.due(id, world.now, &world.pool, &mut world.random);
        let expected = INBOUND_TIMERS_MAX.min(usize::try_from(key).unwrap() + if key == 0 { 2 } else { 1 });
        assert_eq!(world.announcer.inbound_timers.len(), expected.max(2), "{key}");
    }
}

#[test]
fn a_mempool_message_is_answered_with_everything_that_pays_enough() {
    let mut world = World::new();
    world.accept(0..300);
    world.announcer.set_fee_filter(PEER, Amount(1000));
    world.announcer.request_mempool(PEER);
    assert_eq!(world.due(), items((99..300).rev()));
    assert_eq!((world.due(), world.queued_count()), (vec![], 0));
    // What the peer knows is announced too, as in Core.
    world.announcer.request_mempool(PEER);
    assert_eq!(world.due().len(), 201);
}

#[test]
fn a_peer_may_request_what_was_here_before_its_last_announcements() {
    let mut world = World::new();
    let (old, new) = (lone(1), lone(2));
    world.pool.bodies = vec![(5, Arc::clone(&old)), (6, Arc::clone(&new))];
    world.pool.sequence = 6;
    world.due();
    let recent = RecentBlock::default();
    let serve = |world: &World, recent: &RecentBlock, tx: &Transaction, kind| {
        let hash = if kind == InvType::WTX { tx.view().wtxid().0 } else { tx.view().txid().0 };
        world.announcer.serve(PEER, &Inv { kind, hash }, &world.pool, recent)
    };
    let found = |tx: &Transaction, bytes: &[u8]| Served::Found { txid: tx.view().txid(), bytes: bytes.to_vec() };
    for kind in [InvType::WTX, InvType::WITNESS_TX] {
        assert_eq!(serve(&world, &recent, &old, kind), found(&old, old.as_bytes()));
        assert_eq!(serve(&world, &recent, &new, kind), Served::NotFound);
    }
    let stripped = MutTx::from(old.view()).encode_stripped();
    assert!(stripped.len() < old.as_bytes().len());
    assert_eq!(serve(&world, &recent, &old, InvType::TX), found(&old, &stripped));
    // The most recent block is there for every peer that relays transactions.
    let block = MutBlock { header: Header::parse(&[0; 80]), txs: vec![MutTx::from(new.view())] };
    let recent = RecentBlock::new(Arc::new(RawBlock::new(block.encode()).parse().unwrap()));
    assert_eq!(serve(&world, &recent, &new, InvType::WTX), found(&new, new.as_bytes()));
    assert_eq!(serve(&world, &recent, &lone(3), InvType::WTX), Served::NotFound);
    world.announcer.disconnected(PEER);
    assert_eq!(serve(&world, &recent, &new, InvType::WTX), Served::Ignored);
}

/// limit: ANNOUNCEMENT_QUEUE_MAX at
/// limit: ANNOUNCEMENT_QUEUE_MAX above
/// limit: ANNOUNCEMENT_QUEUE_KEPT_MAX at
/// limit: ANNOUNCEMENT_QUEUE_KEPT_MAX above
/// checklist: 72
#[test]
fn a_flood_of_cheap_transactions_leaves_room_for_better_ones() {
    let mut world = World::new();
    let number = |count: usize| u32::try_from(count).unwrap();
    let (max, kept) = (number(ANNOUNCEMENT_QUEUE_MAX), number(ANNOUNCEMENT_QUEUE_KEPT_MAX));
    world.accept(0..max);
    assert_eq!(world.queued_count(), ANNOUNCEMENT_QUEUE_MAX);
    world.accept(max..max + 1);
    assert_eq!(world.queued_count(), ANNOUNCEMENT_QUEUE_MAX);
    let at_once = world.due();
    assert_eq!(at_once.len(), 70 + 500);
    assert_eq!(world.queued_count(), ANNOUNCEMENT_QUEUE_KEPT_MAX);
    // The best ones are kept, and a better one is announced first.
    let queue = &world.announcer.queues[&PEER].to_send;
    let best = (max - 570 - kept..max - 570).map(wtxid);
    assert!(queue.iter().copied().eq(best.collect::<BTreeSet<_>>()));
    world.accept([u32::MAX]);
    assert_eq!(world.due()[0], items([u32::MAX])[0]);
    assert!(world.queued_count() < ANNOUNCEMENT_QUEUE_KEPT_MAX, "below this number, none is dropped");
}

/// limit: KNOWN_TXS_MAX at
/// limit: KNOWN_TXS_MAX above
#[test]
fn the_newest_known_transactions_are_remembered() {
    let mut world = World::new();
    let note = |world: &mut World, number| world.announcer.note_known(PEER, &wtxid(number).0, &mut world.random);
    (0..KNOWN_TXS_MAX).for_each(|number| note(&mut world, number));
    world.accept([0]);
    assert_eq!(world.queued_count(), 0);
    (KNOWN_TXS_MAX..3 * KNOWN_TXS_MAX).for_each(|number| note(&mut world, number));
    world.accept([0]);
    assert_eq!(world.queued_count(), 1, "forgotten: it may be announced again");
}
