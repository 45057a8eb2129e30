//! Random sequences against the model, the limits, and the rules one by one.

use super::twin::{PEERS, Step, TRANSACTIONS, parent, run};
use super::*;
use crate::txs::sample::{Sample, child, core_trace, lone, outpoint};
use proptest::prelude::*;
use rand_chacha::rand_core::SeedableRng;

fn step() -> impl Strategy<Value = Step> {
    let (tx, peer) = (0..TRANSACTIONS, 0..PEERS);
    prop_oneof![
        8 => (tx.clone(), peer.clone()).prop_map(|(tx, peer)| Step::Add { tx, peer }),
        3 => (tx.clone(), peer.clone()).prop_map(|(tx, peer)| Step::AddAnnouncer { tx, peer }),
        1 => tx.clone().prop_map(|tx| Step::Erase { tx }),
        1 => peer.clone().prop_map(|peer| Step::EraseForPeer { peer }),
        1 => (0..3_u8, 0..26_u32).prop_map(|(parent, vout)| Step::EraseForBlock { parent, vout }),
        3 => tx.prop_map(|tx| Step::Accepted { tx }),
        2 => peer.prop_map(|peer| Step::Next { peer }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_sequence_has_the_result_of_the_model(
        latency_max in 4..30_u64,
        weight_per_peer in 500..20_000_u64,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        run(OrphanLimits { latency_max, weight_per_peer }, steps);
    }
}

/// A transaction of exactly this weight, a multiple of 4 apart from the witness.
fn of_weight(weight: usize, salt: u32) -> Arc<Transaction> {
    let sample = |witness_size| Sample {
        prevouts: vec![outpoint(parent(9), salt)],
        outputs: 1,
        salt,
        witness_size,
        witness_salt: 0,
    };
    let base = sample(300).build().view().weight();
    let mut size = 300 + weight - base;
    while sample(size).build().view().weight() > weight {
        size -= 1;
    }
    let tx = sample(size).build();
    assert_eq!(tx.view().weight(), weight);
    tx
}

/// limit: ORPHAN_WEIGHT_MAX at
/// limit: ORPHAN_WEIGHT_MAX above
#[test]
fn a_transaction_above_the_standard_weight_is_no_orphan() {
    let mut orphanage = Orphanage::default();
    assert!(orphanage.add(&of_weight(ORPHAN_WEIGHT_MAX, 1), PeerId(0)));
    assert!(!orphanage.add(&of_weight(ORPHAN_WEIGHT_MAX + 1, 2), PeerId(0)));
    assert_eq!(orphanage.len(), 1);
}

/// limit: ORPHAN_WEIGHT_PER_PEER at
/// limit: ORPHAN_WEIGHT_PER_PEER above
/// checklist: 64
#[test]
fn each_peer_has_its_weight_reserved() {
    let share = usize::try_from(ORPHAN_WEIGHT_PER_PEER).unwrap();
    let mut orphanage = Orphanage::default();
    let first = of_weight(share / 2, 1);
    orphanage.add(&first, PeerId(0));
    orphanage.add(&of_weight(share / 2, 2), PeerId(0));
    assert_eq!((orphanage.total_weight(), orphanage.len()), (ORPHAN_WEIGHT_PER_PEER, 2));
    orphanage.add(&of_weight(1000, 3), PeerId(0));
    assert_eq!(orphanage.len(), 2);
    assert!(!orphanage.has(&first.view().wtxid()), "the oldest is evicted");
    // A second peer has a share of its own; the first one may use what is left of it, and loses that again.
    let small = of_weight(1000, 4);
    orphanage.add(&small, PeerId(1));
    orphanage.add(&of_weight(share / 2, 5), PeerId(0));
    orphanage.add(&of_weight(share / 2, 6), PeerId(0));
    assert!(orphanage.weight_of(PeerId(0)) > ORPHAN_WEIGHT_PER_PEER);
    orphanage.add(&of_weight(share / 2, 7), PeerId(1));
    orphanage.add(&of_weight(share / 2 - 1000, 8), PeerId(1));
    assert_eq!(orphanage.weight_of(PeerId(1)), ORPHAN_WEIGHT_PER_PEER);
    assert!(orphanage.weight_of(PeerId(0)) <= ORPHAN_WEIGHT_PER_PEER);
    assert!(orphanage.has(&small.view().wtxid()), "no peer evicts the orphans of another one");
    // Without the second peer the limit is lower again.
    orphanage.erase_for_peer(PeerId(1));
    assert!(orphanage.total_weight() <= ORPHAN_WEIGHT_PER_PEER);
}

/// limit: ORPHANAGE_LATENCY_MAX at
/// limit: ORPHANAGE_LATENCY_MAX above
/// checklist: 64
#[test]
fn a_flood_of_orphans_evicts_the_orphans_of_the_flooder_only() {
    let mut orphanage = Orphanage::default();
    let honest = lone(0);
    orphanage.add(&honest, PeerId(7));
    for salt in 1..u32::try_from(ORPHANAGE_LATENCY_MAX).unwrap() {
        orphanage.add(&lone(salt), PeerId(8));
    }
    assert_eq!(orphanage.total_latency(), ORPHANAGE_LATENCY_MAX);
    assert!(orphanage.has(&lone(1).view().wtxid()));
    orphanage.add(&lone(1_000_000), PeerId(8));
    assert_eq!(orphanage.total_latency(), ORPHANAGE_LATENCY_MAX);
    assert!(!orphanage.has(&lone(1).view().wtxid()));
    // Announcing the orphan of the honest peer does not remove it either.
    orphanage.add_announcer(honest.view().wtxid(), PeerId(8));
    for salt in 0..6000 {
        orphanage.add(&lone(2_000_000 + salt), PeerId(8));
    }
    assert!(orphanage.has_from(&honest.view().wtxid(), PeerId(7)));
    assert!(!orphanage.has_from(&honest.view().wtxid(), PeerId(8)));
    assert_eq!(orphanage.len(), usize::try_from(ORPHANAGE_LATENCY_MAX).unwrap());
}

/// CVE-2024-52914: each accepted transaction made all orphans of a peer be validated again, with all their inputs.
/// checklist: 64
#[test]
fn the_children_of_one_parent_are_each_validated_once() {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let mut orphanage = Orphanage::default();
    let (parent, other) = (lone(0), lone(1));
    let count = u32::try_from(ORPHANAGE_LATENCY_MAX).unwrap();
    for salt in 0..count {
        let of = if salt % 3 == 0 { &other } else { &parent };
        assert!(orphanage.add(&child(&[of.view().txid()], 10 + salt), PeerId(u64::from(salt) % PEERS)));
    }
    let added = orphanage.add_children_to_work_set(&parent, &mut random);
    let distinct: std::collections::BTreeSet<Wtxid> = added.iter().map(|(wtxid, _)| *wtxid).collect();
    assert_eq!(
        (added.len(), distinct.len()),
        (count as usize / 3 * 2, added.len()),
        "its own children only, once each"
    );
    assert!(orphanage.add_children_to_work_set(&parent, &mut random).is_empty(), "they wait already");
    let mut take = |peer| std::iter::from_fn(|| orphanage.next_of_work_set(PeerId(peer))).count();
    assert_eq!((0..PEERS).map(&mut take).sum::<usize>(), added.len());
    assert_eq!((0..PEERS).map(take).sum::<usize>(), 0);
}

/// Both peers use twice their share: one of the latency score, the other of the weight.
#[test]
fn of_equal_uses_that_of_the_latency_score_is_worse() {
    let mut orphanage = Orphanage::new(OrphanLimits { latency_max: 6, weight_per_peer: 10_000 });
    (0..6).for_each(|salt| assert!(orphanage.add(&lone(salt), PeerId(0))));
    orphanage.add(&of_weight(20_000, 7), PeerId(1));
    // The first peer loses one, which is not enough; then the use of the second peer is the larger one.
    assert_eq!(orphanage.announcement_count_of(PeerId(0)), 5);
    assert!(!orphanage.has(&lone(0).view().wtxid()) && orphanage.weight_of(PeerId(1)) == 0);
}

/// More peers than the latency score allows for: Core asserts that this does not happen.
#[test]
fn more_peers_than_announcements_are_allowed_for() {
    let mut orphanage = Orphanage::new(OrphanLimits { latency_max: 3, ..OrphanLimits::default() });
    let tx = lone(0);
    for peer in 0..10 {
        orphanage.add(&tx, PeerId(peer));
        assert!(orphanage.total_latency() <= 3);
    }
    assert!(orphanage.has_from(&tx.view().wtxid(), PeerId(0)), "the newest peer is the worst");
}

/// An attacker announces the orphan too, and disconnects when it gets the work.
#[test]
fn work_that_a_peer_leaves_undone_is_assigned_again_by_the_next_parent() {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let (first, second) = (lone(1), lone(2));
    let orphan = child(&[first.view().txid(), second.view().txid()], 3);
    let mut orphanage = Orphanage::default();
    orphanage.add(&orphan, PeerId(0));
    orphanage.add(&orphan, PeerId(1));
    let chosen = orphanage.add_children_to_work_set(&first, &mut random);
    assert_eq!(chosen.len(), 1);
    assert_eq!(orphanage.add_children_to_work_set(&second, &mut random), [], "it is in a work set already");
    let (wtxid, leaver) = chosen[0];
    orphanage.erase_for_peer(leaver);
    let stayer = PeerId(1 - leaver.0);
    assert!(!orphanage.has_work(stayer) && orphanage.has(&wtxid));
    assert_eq!(orphanage.add_children_to_work_set(&second, &mut random), [(wtxid, stayer)]);
    assert_eq!(orphanage.next_of_work_set(stayer).map(|tx| tx.view().wtxid()), Some(wtxid));
    assert!(orphanage.next_of_work_set(stayer).is_none() && orphanage.has(&wtxid));
}

/// The oldest come first, but what waits for its validation is evicted last.
#[test]
fn work_sets_are_evicted_last() {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let mut orphanage = Orphanage::new(OrphanLimits { latency_max: 3, ..OrphanLimits::default() });
    let parent = lone(1);
    let orphan = child(&[parent.view().txid()], 2);
    orphanage.add(&orphan, PeerId(0));
    assert_eq!(orphanage.add_children_to_work_set(&parent, &mut random).len(), 1);
    for salt in 10..20 {
        orphanage.add(&lone(salt), PeerId(0));
    }
    assert!(orphanage.has(&orphan.view().wtxid()) && orphanage.has_work(PeerId(0)));
    assert_eq!(orphanage.len(), 3);
}

impl Orphanage {
    /// All announcements, and whether each is in the work set of its peer.
    pub(in crate::txs) fn announcements(&self) -> impl Iterator<Item = (Wtxid, PeerId, bool)> {
        self.announcements.iter().map(|((wtxid, peer), one)| (*wtxid, *peer, one.is_in_work_set))
    }

    /// Moves an orphan between work sets, as if the random choice had been another one.
    pub(in crate::txs) fn reassign(&mut self, wtxid: Wtxid, from: PeerId, to: PeerId) {
        for (peer, is_in_work_set) in [(from, false), (to, true)] {
            let announcement = self.announcements.get_mut(&(wtxid, peer)).unwrap();
            self.by_peer.remove(&(peer, announcement.is_in_work_set, announcement.sequence, wtxid));
            announcement.is_in_work_set = is_in_work_set;
            self.by_peer.insert((peer, is_in_work_set, announcement.sequence, wtxid));
        }
    }
}

/// Random calls of Core's `TxOrphanage` with its answers. The columns are: call, transaction, peer, answer, the weight
/// and the latency score of all orphans, and each orphan with its announcers.
#[test]
fn recorded_calls_of_core_have_the_same_results() {
    let trace = core_trace(include_bytes!("../../../../../testdata/vectors/core/txorphanage_trace.txt.zst"));
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let (mut real, mut txs) = (Orphanage::default(), Vec::<Arc<Transaction>>::new());
    let mut calls = 0;
    for line in trace.lines() {
        let columns: Vec<_> = line.split(' ').collect();
        let (call, tx, peer, answer) = match columns[..] {
            ["limits", latency, weight] => {
                let (latency_max, weight_per_peer) = (latency.parse().unwrap(), weight.parse().unwrap());
                real = Orphanage::new(OrphanLimits { latency_max, weight_per_peer });
                txs.clear();
                continue;
            }
            ["tx", hex] => {
                let bytes = lydian_primitives::hex(hex).unwrap();
                txs.push(Arc::new(Transaction::parse(bytes).unwrap()));
                continue;
            }
            [call, tx, peer, answer, ..] => (call, tx, peer.parse().unwrap(), answer),
            _ => panic!("{line}"),
        };
        let (tx, peer) = (Arc::clone(&txs[tx.parse::<usize>().unwrap()]), PeerId(peer));
        let wtxid = tx.view().wtxid();
        let number = |wtxid: Wtxid| txs.iter().position(|tx| tx.view().wtxid() == wtxid).unwrap();
        let flag = |is: bool| u8::from(is).to_string();
        let found = match call {
            "add" => flag(real.add(&tx, peer)),
            "announcer" => flag(real.add_announcer(wtxid, peer)),
            "erase" => flag(real.erase(&wtxid)),
            "gone" => {
                real.erase_for_peer(peer);
                "-".to_owned()
            }
            "block" => {
                real.erase_for_block(tx.view().inputs().map(|input| input.prevout));
                "-".to_owned()
            }
            "accepted" => {
                let added = real.add_children_to_work_set(&tx, &mut random);
                let chosen: Vec<_> = answer.split(',').skip(1).filter_map(|entry| entry.split_once(':')).collect();
                assert_eq!(added.len(), chosen.len(), "{line}");
                for ((wtxid, own), (child, worker)) in added.iter().zip(&chosen) {
                    assert_eq!(number(*wtxid).to_string(), *child, "{line}");
                    real.reassign(*wtxid, *own, PeerId(worker.parse().unwrap()));
                }
                answer.to_owned()
            }
            "next" => match real.next_of_work_set(peer) {
                Some(tx) => number(tx.view().wtxid()).to_string(),
                None => "-".to_owned(),
            },
            "children" => {
                let children = real.children_from(tx.view().txid(), peer);
                let children = children.iter().map(|child| format!(",{}", number(child.view().wtxid())));
                format!("-{}", children.collect::<String>())
            }
            _ => panic!("{line}"),
        };
        let mut all = format!("{found} {} {} -", real.total_weight(), real.total_latency());
        for info in real.orphans() {
            all += &format!(",{}", number(info.tx.view().wtxid()));
            info.announcers.iter().for_each(|peer| all += &format!(":{peer}"));
        }
        assert_eq!(all, columns[3..].join(" "), "call {calls}: {line}");
        calls += 1;
    }
    assert_eq!(calls, 12_000);
}
