//! The rules one by one, the limits, and a network of careless and hostile peers.

mod recorded;

use super::*;
use crate::peer::{ConnectionKind, Permissions};
use crate::txs::sample::{Sample, child, lone, outpoint};
use lydian_primitives::build::{MutBlock, MutTx};
use lydian_primitives::{Header, RawBlock};
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The ids that the mempool has.
#[derive(Default)]
struct Pool(BTreeSet<GenTxid>);

impl Pool {
    fn insert(&mut self, tx: &Transaction) {
        self.0.extend([GenTxid::Txid(tx.view().txid()), GenTxid::Wtxid(tx.view().wtxid())]);
    }
}

impl PoolView for Pool {
    fn has(&self, gtxid: &GenTxid) -> bool {
        self.0.contains(gtxid)
    }
}

/// A download with its surroundings.
struct World {
    download: TxDownload,
    pool: Pool,
    random: ChaCha20Rng,
    now: Duration,
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn wtxid(tx: &Transaction) -> GenTxid {
    GenTxid::Wtxid(tx.view().wtxid())
}

fn txid(tx: &Transaction) -> GenTxid {
    GenTxid::Txid(tx.view().txid())
}

impl World {
    /// Peers 0 to 2 are outbound and relay by wtxid.
    fn new() -> World {
        let mut random = ChaCha20Rng::seed_from_u64(1);
        let mut world =
            World { download: TxDownload::new(&mut random), pool: Pool::default(), random, now: seconds(1000) };
        (0..3).for_each(|id| world.connect(id, RelayPeer::outbound()));
        world
    }

    fn connect(&mut self, id: u64, peer: RelayPeer) {
        self.download.connected(PeerId(id), peer);
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut TxDownload, &mut DownloadContext<'_>) -> T) -> T {
        let mut context = DownloadContext { pool: &self.pool, now: self.now, random: &mut self.random };
        act(&mut self.download, &mut context)
    }

    fn announced(&mut self, id: u64, gtxid: GenTxid) -> bool {
        self.with(|download, context| download.announced(PeerId(id), &gtxid, context))
    }

    /// The requests to a peer this many seconds after the start.
    fn requests(&mut self, id: u64, second: u64) -> Vec<GenTxid> {
        self.now = seconds(1000 + second);
        self.with(|download, context| download.requests_to_send(PeerId(id), context)).wanted
    }

    fn received(&mut self, id: u64, tx: &Arc<Transaction>) -> Received {
        self.with(|download, context| download.received(PeerId(id), tx, context))
    }

    fn rejected(&mut self, id: u64, tx: &Arc<Transaction>, class: RejectClass) -> Rejected {
        self.with(|download, context| download.rejected(tx, class, PeerId(id), true, context))
    }

    /// The peer sends it, and the mempool rejects it.
    fn send_rejected(&mut self, id: u64, tx: &Arc<Transaction>, class: RejectClass) -> Rejected {
        assert!(matches!(self.received(id, tx), Received::Validate));
        self.rejected(id, tx, class)
    }

    fn accepted(&mut self, tx: &Transaction) -> Vec<(Wtxid, PeerId)> {
        self.pool.insert(tx);
        self.download.accepted(tx, &mut self.random)
    }

    fn block_of(&mut self, txs: &[&Transaction]) {
        let block =
            MutBlock { header: Header::parse(&[0; 80]), txs: txs.iter().map(|tx| MutTx::from(tx.view())).collect() };
        let block = RawBlock::new(block.encode()).parse().unwrap();
        self.download.block_connected(&block, &mut self.random);
    }
}

/// The second after which a first announcement is requested.
fn delay_of(world: &mut World, id: u64, gtxid: GenTxid) -> u64 {
    let start = world.now - seconds(1000);
    assert!(!world.announced(id, gtxid));
    (0..10).find(|delay| !world.requests(id, start.as_secs() + delay).is_empty()).unwrap()
}

#[test]
fn requests_are_delayed_as_in_core() {
    let inbound = RelayPeer::sample();
    let old = RelayPeer { wtxid_relay: false, ..inbound };
    let mut world = World::new();
    for (id, peer) in [(3, inbound), (4, old), (5, RelayPeer { is_preferred: true, ..old })] {
        world.connect(id, peer);
    }
    assert_eq!(delay_of(&mut world, 0, wtxid(&lone(1))), 0);
    assert_eq!(delay_of(&mut world, 3, wtxid(&lone(2))), 2);
    assert_eq!(delay_of(&mut world, 4, txid(&lone(3))), 4);
    assert_eq!(delay_of(&mut world, 5, txid(&lone(4))), 2);
    // Without peers that relay by wtxid, txids are not delayed.
    (0..4).for_each(|id| world.download.disconnected(PeerId(id)));
    assert_eq!(delay_of(&mut world, 4, txid(&lone(5))), 2);
    assert_eq!(delay_of(&mut world, 5, txid(&lone(6))), 0);
}

/// limit: TX_REQUESTS_IN_FLIGHT_MAX at
/// limit: TX_REQUESTS_IN_FLIGHT_MAX above
#[test]
fn peers_with_many_requests_are_asked_later() {
    let mut world = World::new();
    world.connect(3, RelayPeer { permissions: Permissions::RELAY, ..RelayPeer::outbound() });
    for (id, delay) in [(0, 2), (3, 0)] {
        world.now = seconds(1000);
        let salts = 10_000 * u32::try_from(id).unwrap()..;
        let mut txs = salts.map(|salt| wtxid(&lone(salt)));
        for gtxid in txs.by_ref().take(TX_REQUESTS_IN_FLIGHT_MAX - 1) {
            world.announced(id, gtxid);
        }
        assert_eq!(world.requests(id, 0).len(), TX_REQUESTS_IN_FLIGHT_MAX - 1);
        assert_eq!(delay_of(&mut world, id, txs.next().unwrap()), 0);
        assert_eq!(world.download.requests().in_flight_count(PeerId(id)), TX_REQUESTS_IN_FLIGHT_MAX);
        assert_eq!(delay_of(&mut world, id, txs.next().unwrap()), delay, "peer {id} is overloaded, or may be");
    }
}

/// limit: PEER_ANNOUNCEMENTS_MAX at
/// limit: PEER_ANNOUNCEMENTS_MAX above
/// checklist: 65
#[test]
fn a_peer_may_announce_a_limited_number() {
    let mut world = World::new();
    world.connect(3, RelayPeer { permissions: Permissions::RELAY, ..RelayPeer::sample() });
    let id_of = |number: usize| GenTxid::Wtxid(Wtxid(lydian_hash::sha256(&number.to_le_bytes())));
    for id in [0, 3] {
        (0..PEER_ANNOUNCEMENTS_MAX - 1).for_each(|number| assert!(!world.announced(id, id_of(number))));
        // The parents of an orphan count too, all or none.
        let two = child(&[Txid([1; 32]), Txid([2; 32])], 1);
        world.send_rejected(id, &two, RejectClass::MissingInputs);
        let has_permission = id == 3;
        assert_eq!(world.download.orphanage().has_from(&two.view().wtxid(), PeerId(id)), has_permission);
        world.download.orphanage.erase(&two.view().wtxid());
        for number in PEER_ANNOUNCEMENTS_MAX..PEER_ANNOUNCEMENTS_MAX + 3 {
            assert!(!world.announced(id, id_of(number)), "it is not here");
        }
        let expected = PEER_ANNOUNCEMENTS_MAX + if has_permission { 4 } else { 0 };
        assert_eq!(world.download.requests().count(PeerId(id)), expected);
    }
}

/// limit: TX_REQUEST_TIMEOUT at
/// limit: TX_REQUEST_TIMEOUT above
#[test]
fn a_silent_peer_delays_a_transaction_by_a_minute() {
    let mut world = World::new();
    let tx = lone(1);
    world.announced(0, wtxid(&tx));
    assert_eq!(world.requests(0, 0), [wtxid(&tx)]);
    world.announced(1, wtxid(&tx));
    assert_eq!(world.requests(1, 59), []);
    world.now = seconds(1000) + TX_REQUEST_TIMEOUT;
    let requests = world.with(|download, context| download.requests_to_send(PeerId(1), context));
    assert_eq!(requests, Requests { wanted: vec![wtxid(&tx)], expired: vec![(PeerId(0), wtxid(&tx))] });
    // `notfound` needs no timeout.
    world.announced(2, wtxid(&tx));
    world.download.not_found(PeerId(1), [wtxid(&tx)]);
    assert_eq!(world.requests(2, 60), [wtxid(&tx)]);
}

#[test]
fn what_is_here_is_not_requested() {
    let mut world = World::new();
    let (pooled, rejected, confirmed, low) = (lone(1), lone(2), lone(3), lone(4));
    world.pool.insert(&pooled);
    world.send_rejected(0, &rejected, RejectClass::Other);
    world.send_rejected(0, &low, RejectClass::Reconsiderable);
    world.block_of(&[&confirmed]);
    for tx in [&pooled, &rejected, &confirmed, &low] {
        assert!(world.announced(1, wtxid(tx)));
        assert!(matches!(world.received(1, tx), Received::Ignore));
    }
    // A witness that was rejected says nothing about another one.
    assert!(world.announced(1, txid(&pooled)) && world.announced(1, txid(&confirmed)));
    assert!(!world.announced(1, txid(&rejected)) && !world.announced(1, txid(&low)));
    assert_eq!(world.requests(1, 2), [txid(&rejected), txid(&low)]);
    // A new tip gives rejected ones another chance, a disconnected block confirmed ones.
    world.download.tip_changed(&mut world.random);
    assert!(!world.announced(2, wtxid(&rejected)) && world.announced(2, wtxid(&confirmed)));
    world.download.block_disconnected(&mut world.random);
    assert!(!world.announced(2, wtxid(&confirmed)));
}

#[test]
fn an_announced_transaction_that_arrives_otherwise_is_not_requested() {
    let mut world = World::new();
    let tx = lone(1);
    world.connect(3, RelayPeer::sample());
    world.announced(3, wtxid(&tx));
    world.pool.insert(&tx);
    assert_eq!(world.requests(3, 10), []);
    assert!(world.download.requests().is_empty());
}

#[test]
fn the_parents_of_an_orphan_are_requested_from_each_announcer() {
    let mut world = World::new();
    let (known, missing) = (lone(1), lone(2));
    world.pool.insert(&known);
    let orphan = child(&[known.view().txid(), missing.view().txid()], 3);
    world.announced(0, wtxid(&orphan));
    world.announced(1, wtxid(&orphan));
    let first = (0..2).find(|id| world.requests(*id, 0) == [wtxid(&orphan)]).unwrap();
    let result = world.send_rejected(first, &orphan, RejectClass::MissingInputs);
    assert_eq!(result.parents, [missing.view().txid()]);
    assert!(result.is_extra_for_compact_blocks && result.package.is_none());
    // A later announcement adds a source too, but not twice.
    assert!(world.announced(2, wtxid(&orphan)) && world.announced(2, wtxid(&orphan)));
    let orphans = world.download.orphans();
    assert_eq!(orphans.len(), 1);
    assert_eq!(orphans[0].announcers, [0, 1, 2].map(PeerId));
    assert!((0..3).all(|id| world.requests(id, 1).is_empty()), "by txid, two seconds later");
    let asked = (0..3).find(|id| world.requests(*id, 2) == [txid(&missing)]).unwrap();
    world.download.disconnected(PeerId(asked));
    let others: Vec<_> = (0..3).filter(|id| world.requests(*id, 2) == [txid(&missing)]).collect();
    assert!(others.len() == 1 && others[0] != asked);
    // The parent arrives: the orphan is validated again, for one of its announcers.
    assert!(matches!(world.received(others[0], &missing), Received::Validate));
    let added = world.accepted(&missing);
    let (_, worker) = added[0];
    assert!(added.len() == 1 && worker != PeerId(asked) && world.download.has_work(worker));
    let again = world.download.next_orphan(worker).unwrap();
    assert_eq!(again.view().wtxid(), orphan.view().wtxid());
    assert!(world.announced(0, wtxid(&orphan)), "it is an orphan until the verdict");
    world.accepted(&again);
    assert!(world.download.orphanage().is_empty() && world.download.requests().is_empty());
}

#[test]
fn an_orphan_with_a_rejected_parent_is_rejected() {
    let mut world = World::new();
    // By txid only if no witness can help.
    let (stripped, hopeless) = (lone(1), lone(2));
    world.send_rejected(0, &stripped, RejectClass::Other);
    world.send_rejected(0, &hopeless, RejectClass::InputsNotStandard);
    let kept = child(&[stripped.view().txid()], 3);
    world.send_rejected(0, &kept, RejectClass::MissingInputs);
    let refused = child(&[hopeless.view().txid()], 4);
    let result = world.send_rejected(0, &refused, RejectClass::MissingInputs);
    assert!(world.download.orphanage().has(&kept.view().wtxid()));
    assert!(!world.download.orphanage().has(&refused.view().wtxid()) && result.parents.is_empty());
    assert!(world.announced(1, txid(&refused)) && world.announced(1, wtxid(&refused)));
}

/// Transactions without witness: their txid is their wtxid, so that orphans find them among the rejects.
fn low(salt: u32) -> Arc<Transaction> {
    Sample { prevouts: vec![outpoint(Txid([0xdd; 32]), salt)], outputs: 2, salt, ..Sample::default() }.build()
}

#[test]
fn one_parent_may_need_a_package_two_may_not() {
    let mut world = World::new();
    let (one, two) = (low(1), low(2));
    world.send_rejected(0, &one, RejectClass::Reconsiderable);
    world.send_rejected(0, &two, RejectClass::Reconsiderable);
    let single = child(&[one.view().txid()], 3);
    let double = child(&[one.view().txid(), two.view().txid()], 4);
    assert_eq!(world.send_rejected(0, &single, RejectClass::MissingInputs).parents, [one.view().txid()]);
    assert_eq!(world.send_rejected(0, &double, RejectClass::MissingInputs).parents, []);
    assert!(!world.download.orphanage().has(&double.view().wtxid()));
    // If one of them is in the mempool after all, it does not count.
    world.download.tip_changed(&mut world.random);
    world.rejected(0, &one, RejectClass::Reconsiderable);
    world.rejected(0, &two, RejectClass::Reconsiderable);
    world.pool.insert(&two);
    assert_eq!(world.send_rejected(0, &double, RejectClass::MissingInputs).parents, [one.view().txid()]);
    assert!(world.download.orphanage().has(&double.view().wtxid()));
}

#[test]
fn packages_are_tried_with_each_child_of_the_sender_once() {
    let mut world = World::new();
    let parent = low(1);
    let children: Vec<_> = (2..5).map(|salt| child(&[parent.view().txid()], salt)).collect();
    for (orphan, id) in children.iter().zip([0, 0, 1]) {
        world.send_rejected(id, orphan, RejectClass::MissingInputs);
    }
    // The newest child of the same peer first.
    let package = world.send_rejected(0, &parent, RejectClass::Reconsiderable).package.unwrap();
    assert_eq!(package.child.view().wtxid(), children[1].view().wtxid());
    assert_eq!((package.parent_sender, package.child_sender), (PeerId(0), PeerId(0)));
    assert_eq!(world.download.pending_count(), 2);
    world.download.package_decided(&package, false, &mut world.random);
    assert_eq!(world.download.pending_count(), 0);
    let Received::ValidatePackage(package) = world.received(0, &parent) else { panic!("no other child is tried") };
    assert_eq!(package.child.view().wtxid(), children[0].view().wtxid());
    world.download.package_decided(&package, false, &mut world.random);
    assert!(matches!(world.received(0, &parent), Received::Ignore), "all were tried");
    let Received::ValidatePackage(package) = world.received(1, &parent) else { panic!("peer 1 has a child too") };
    assert_eq!(package.child.view().wtxid(), children[2].view().wtxid());
    world.download.package_decided(&package, true, &mut world.random);
    world.accepted(&package.child);
    world.accepted(&package.parent);
    assert!(!world.download.orphanage().has(&children[2].view().wtxid()));
    assert!(matches!(world.received(0, &parent), Received::Ignore));
}

/// A transaction without its witness: the attack is to send it first, so that the valid one is not downloaded.
#[test]
fn a_stripped_transaction_does_not_stop_the_real_one() {
    let mut world = World::new();
    let real = lone(1);
    let stripped = Sample { prevouts: vec![outpoint(Txid([0xee; 32]), 0)], outputs: 1, salt: 1, ..Sample::default() };
    let stripped = stripped.build();
    assert_eq!(stripped.view().txid(), real.view().txid());
    world.announced(0, wtxid(&real));
    world.announced(1, wtxid(&real));
    let result = world.send_rejected(2, &stripped, RejectClass::WitnessStripped);
    assert!(!result.is_extra_for_compact_blocks);
    let asked = (0..2).filter(|id| world.requests(*id, 0) == [wtxid(&real)]).count();
    assert_eq!(asked, 1);
    assert!(matches!(world.received(0, &real), Received::Validate));
}

#[test]
fn a_block_ends_the_download_of_its_transactions_and_of_conflicting_orphans() {
    let mut world = World::new();
    let (confirmed, parent) = (lone(1), lone(2));
    let conflict = child(&[parent.view().txid()], 3);
    world.send_rejected(0, &conflict, RejectClass::MissingInputs);
    world.announced(0, wtxid(&confirmed));
    let spender = child(&[parent.view().txid()], 4);
    world.block_of(&[&confirmed, &spender]);
    assert!(world.download.orphanage().is_empty());
    assert_eq!(world.requests(0, 5), [txid(&parent)], "only the parent of the former orphan");
}

/// The mempool is slow: several peers announce and send the same transaction before it decides.
#[test]
fn a_pending_transaction_is_not_requested_again_but_its_announcers_are_kept() {
    let mut world = World::new();
    let tx = lone(1);
    (0..2).for_each(|id| assert!(!world.announced(id, wtxid(&tx))));
    let first = (0..2).find(|id| !world.requests(*id, 0).is_empty()).unwrap();
    let second = 1 - first;
    assert!(matches!(world.received(first, &tx), Received::Validate));
    assert!(!world.announced(2, wtxid(&tx)), "it may turn out to be needed");
    assert!((0..3).all(|id| world.requests(id, 30).is_empty()));
    assert!(matches!(world.received(second, &tx), Received::Ignore));
    // There is no verdict: the next announcer is asked.
    world.download.dropped(&tx);
    assert_eq!(world.requests(2, 30), [wtxid(&tx)]);
    // Or inputs are missing: all announcers are sources of the parents.
    assert!(matches!(world.received(2, &tx), Received::Validate));
    world.announced(second, wtxid(&tx));
    world.rejected(2, &tx, RejectClass::MissingInputs);
    assert_eq!(world.download.orphans()[0].announcers, [PeerId(second), PeerId(2)]);
    assert_eq!(world.download.pending_count(), 0);
}

#[test]
fn a_package_may_come_from_a_peer_that_sent_the_parent_second() {
    let mut world = World::new();
    let parent = low(1);
    let orphan = child(&[parent.view().txid()], 2);
    world.send_rejected(1, &orphan, RejectClass::MissingInputs);
    assert!(matches!(world.received(0, &parent), Received::Validate));
    assert!(matches!(world.received(1, &parent), Received::Ignore));
    let package = world.rejected(0, &parent, RejectClass::Reconsiderable).package.unwrap();
    assert_eq!((package.parent_sender, package.child_sender), (PeerId(1), PeerId(1)));
}

#[test]
fn an_orphan_is_not_validated_twice_at_the_same_time() {
    let mut world = World::new();
    let parents = [lone(1), lone(2)];
    let orphan = child(&[parents[0].view().txid(), parents[1].view().txid()], 3);
    world.send_rejected(0, &orphan, RejectClass::MissingInputs);
    world.accepted(&parents[0]);
    let tx = world.download.next_orphan(PeerId(0)).unwrap();
    world.accepted(&parents[1]);
    assert!(world.download.has_work(PeerId(0)) && world.download.next_orphan(PeerId(0)).is_none());
    // The verdict was about the mempool before the second parent: the orphan is tried again.
    world.with(|download, context| download.rejected(&tx, RejectClass::MissingInputs, PeerId(0), false, context));
    let tx = world.download.next_orphan(PeerId(0)).unwrap();
    let result = world.with(|download, context| download.rejected(&tx, RejectClass::Other, PeerId(0), false, context));
    assert!(!result.is_extra_for_compact_blocks && world.download.orphanage().is_empty());
}

#[test]
fn nothing_remains_of_disconnected_peers() {
    let mut world = World::new();
    for id in 0..3 {
        for salt in 0..50 {
            world.announced(id, wtxid(&lone(salt)));
        }
        world.requests(id, 0);
        world.send_rejected(id, &child(&[Txid([9; 32])], u32::try_from(id).unwrap()), RejectClass::MissingInputs);
    }
    (0..3).for_each(|id| world.download.disconnected(PeerId(id)));
    assert!(world.download.requests().is_empty() && world.download.orphanage().is_empty());
    assert_eq!((world.download.wtxid_peer_count, world.download.peers.len()), (0, 0));
    // A peer that is gone is no source, whatever arrives late.
    world.rejected(0, &child(&[Txid([9; 32])], 7), RejectClass::MissingInputs);
    assert!(world.download.requests().is_empty() && world.download.orphanage().is_empty());
}

/// How a peer of the network below behaves.
#[derive(Clone, Copy, PartialEq)]
enum Will {
    Honest,
    /// Announces everything and sends nothing.
    Silent,
    /// Answers each request with `notfound`.
    Lacks,
    /// Sends transactions without their witness, and with another one.
    Malleates,
}

/// What a mempool does that accepts everything but cheap transactions on their own.
fn decide(world: &World, tx: &Transaction, known: &BTreeMap<Wtxid, bool>) -> Option<RejectClass> {
    let has_parents = tx.view().inputs().all(|input| {
        let parent = input.prevout.txid;
        parent == Txid([0xee; 32]) || world.pool.has(&GenTxid::Txid(parent))
    });
    match known.get(&tx.view().wtxid()) {
        None if tx.view().has_witness() => Some(RejectClass::Other),
        None => Some(RejectClass::WitnessStripped),
        Some(_) if !has_parents => Some(RejectClass::MissingInputs),
        Some(true) => Some(RejectClass::Reconsiderable),
        Some(false) => None,
    }
}

fn submit(world: &mut World, id: u64, tx: &Arc<Transaction>, known: &BTreeMap<Wtxid, bool>, is_first: bool) {
    let Some(class) = decide(world, tx, known) else {
        world.accepted(tx);
        return;
    };
    let result = world.with(|download, context| download.rejected(tx, class, PeerId(id), is_first, context));
    if let Some(package) = result.package {
        submit_package(world, &package);
    }
}

fn submit_package(world: &mut World, package: &Package) {
    world.download.package_decided(package, true, &mut world.random);
    world.accepted(&package.child);
    world.accepted(&package.parent);
}

fn malleated(tx: &Transaction, witness: Vec<Vec<u8>>) -> Arc<Transaction> {
    let mut mutable = MutTx::from(tx.view());
    mutable.inputs.iter_mut().for_each(|input| input.witness.clone_from(&witness));
    Arc::new(mutable.to_transaction().unwrap())
}

/// Chains of transactions, with cheap ones that need their child, reach the mempool from one honest peer among hostile
/// ones, in bounded time.
/// checklist: 65
#[test]
fn every_transaction_of_an_honest_peer_arrives() {
    for seed in 0..20 {
        let mut world = World::new();
        (0..3).for_each(|id| world.download.disconnected(PeerId(id)));
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let wills = [Will::Honest, Will::Silent, Will::Lacks, Will::Malleates];
        for id in 0..4 {
            let kind = if random.next_u32() % 2 == 0 { RelayPeer::outbound() } else { RelayPeer::sample() };
            let kind = RelayPeer { kind: ConnectionKind::Inbound, ..kind };
            world.connect(id, kind);
        }
        // Each transaction spends the one before it or none; a cheap one is followed by its child.
        let mut txs: Vec<Arc<Transaction>> = Vec::new();
        let mut known = BTreeMap::new();
        for salt in 0..40 {
            let spends_previous = salt % 4 == 3 || salt % 4 != 2 && random.next_u32() % 2 == 0;
            let tx = match txs.last() {
                Some(previous) if spends_previous => child(&[previous.view().txid()], salt),
                _ => lone(salt),
            };
            known.insert(tx.view().wtxid(), salt % 4 == 2);
            txs.push(tx);
        }
        let by_id: BTreeMap<_, _> = txs.iter().flat_map(|tx| [(txid(tx), tx), (wtxid(tx), tx)]).collect();
        for tx in &txs {
            assert!((0..4).all(|id| !world.announced(id, wtxid(tx))));
        }
        for second in 0..400 {
            for id in 0..4 {
                while let Some(tx) = world.download.next_orphan(PeerId(id)) {
                    submit(&mut world, id, &tx, &known, false);
                }
                for gtxid in world.requests(id, second) {
                    let Some(tx) = by_id.get(&gtxid) else { continue };
                    let sent = match wills[usize::try_from(id).unwrap()] {
                        Will::Silent => continue,
                        Will::Lacks => {
                            world.download.not_found(PeerId(id), [gtxid]);
                            continue;
                        }
                        Will::Honest => vec![Arc::clone(tx)],
                        Will::Malleates => vec![malleated(tx, vec![]), malleated(tx, vec![vec![9; 9]])],
                    };
                    for tx in sent {
                        match world.received(id, &tx) {
                            Received::Validate => submit(&mut world, id, &tx, &known, true),
                            Received::ValidatePackage(package) => submit_package(&mut world, &package),
                            Received::Ignore => {}
                        }
                    }
                }
            }
        }
        let lacking = txs.iter().filter(|tx| !world.pool.has(&wtxid(tx))).count();
        assert_eq!(lacking, 0, "seed {seed}");
        assert!(world.download.orphanage().is_empty() && world.download.pending_count() == 0);
    }
}
