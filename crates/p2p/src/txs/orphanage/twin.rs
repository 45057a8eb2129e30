//! The orphanage beside its plain model: after each call, both give the same answers.
//!
//! Input: calls, from a test's generator or from a fuzzer's bytes. It panics where the two differ. For tests and fuzz
//! targets only.
#![allow(clippy::unwrap_used, reason = "a difference panics")]

use super::model::Model;
use super::*;
use crate::txs::sample::{Sample, child, outpoint};
use rand_chacha::rand_core::SeedableRng;

/// Calls that bytes may make.
#[cfg(fuzzing)]
const STEPS_MAX: usize = 100;

/// Compares after each call that the bytes make: two bytes for each, after two for the limits.
#[cfg(fuzzing)]
pub fn compare(bytes: &[u8]) {
    let Some((&[latency, weight], bytes)) = bytes.split_first_chunk::<2>() else { return };
    let limits =
        OrphanLimits { latency_max: u64::from(4 + latency % 26), weight_per_peer: 500 + u64::from(weight) * 76 };
    let step = |&[kind, choice]: &[u8; 2]| {
        let (tx, peer) = (usize::from(choice) % TRANSACTIONS, u64::from(kind >> 5) % PEERS);
        match kind % 19 {
            0..8 => Step::Add { tx, peer },
            8..11 => Step::AddAnnouncer { tx, peer },
            11 => Step::Erase { tx },
            12 => Step::EraseForPeer { peer },
            13 => Step::EraseForBlock { parent: choice % 3, vout: u32::from(choice / 3 % 26) },
            14..17 => Step::Accepted { tx },
            _ => Step::Next { peer },
        }
    };
    run(limits, bytes.as_chunks::<2>().0.iter().take(STEPS_MAX).map(step).collect());
}

pub(super) const PEERS: u64 = 4;
/// Transactions of [`universe`].
pub(super) const TRANSACTIONS: usize = 19;

/// Parents that never arrive, and whose outputs a block may spend.
pub(super) fn parent(number: u8) -> Txid {
    Txid([number; 32])
}

/// Orphans that share parents, differ in the witness only, have up to 25 inputs, and spend each other.
fn universe() -> Vec<Arc<Transaction>> {
    let mut txs = Vec::new();
    for number in 0..12_u32 {
        let inputs = [1, 1, 2, 9, 10, 25][number as usize % 6];
        let prevouts = (0..inputs).map(|vout| outpoint(parent(u8::try_from(number % 3).unwrap()), vout)).collect();
        let size = [1, 400, 3000][number as usize / 4];
        let sample = Sample { prevouts, outputs: 2, salt: number, witness_size: size, witness_salt: 0 };
        txs.push(sample.build());
        if number % 4 == 0 {
            txs.push(Sample { witness_salt: 1, ..sample }.build());
        }
    }
    for number in 0..4 {
        let parents = [txs[number].view().txid(), txs[2 * number].view().txid()];
        txs.push(child(&parents, 100 + u32::try_from(number).unwrap()));
    }
    txs
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Add { tx: usize, peer: u64 },
    AddAnnouncer { tx: usize, peer: u64 },
    Erase { tx: usize },
    EraseForPeer { peer: u64 },
    EraseForBlock { parent: u8, vout: u32 },
    Accepted { tx: usize },
    Next { peer: u64 },
}

fn wtxids(txs: &[Arc<Transaction>]) -> Vec<Wtxid> {
    txs.iter().map(|tx| tx.view().wtxid()).collect()
}

/// Makes the calls on both.
pub(super) fn run(limits: OrphanLimits, steps: Vec<Step>) {
    let txs = universe();
    let (mut real, mut model) = (Orphanage::new(limits), Model::new(limits));
    let mut random = [ChaCha20Rng::seed_from_u64(5), ChaCha20Rng::seed_from_u64(5)];
    for step in steps {
        match step {
            Step::Add { tx, peer } => {
                assert_eq!(real.add(&txs[tx], PeerId(peer)), model.add(&txs[tx], PeerId(peer)));
            }
            Step::AddAnnouncer { tx, peer } => {
                let wtxid = txs[tx].view().wtxid();
                assert_eq!(real.add_announcer(wtxid, PeerId(peer)), model.add_announcer(wtxid, PeerId(peer)));
            }
            Step::Erase { tx } => {
                let wtxid = txs[tx].view().wtxid();
                assert_eq!(real.erase(&wtxid), model.erase(wtxid));
            }
            Step::EraseForPeer { peer } => {
                real.erase_for_peer(PeerId(peer));
                model.erase_for_peer(PeerId(peer));
            }
            Step::EraseForBlock { parent: number, vout } => {
                let spent = [outpoint(parent(number), vout), outpoint(txs[0].view().txid(), 0)];
                real.erase_for_block(spent);
                model.erase_for_block(&spent);
            }
            Step::Accepted { tx } => {
                let added = real.add_children_to_work_set(&txs[tx], &mut random[0]);
                assert_eq!(added, model.add_children_to_work_set(&txs[tx], &mut random[1]));
            }
            Step::Next { peer } => {
                let next = real.next_of_work_set(PeerId(peer)).map(|tx| tx.view().wtxid());
                assert_eq!(next, model.next_of_work_set(PeerId(peer)));
            }
        }
        compare_answers(&real, &model, &txs);
    }
}

/// Compares every answer of the two.
fn compare_answers(real: &Orphanage, model: &Model, txs: &[Arc<Transaction>]) {
    assert!(!model.exceeds_limits() && !real.exceeds_limits());
    assert_eq!(real.total_weight(), model.total_weight());
    assert_eq!(real.total_latency(), model.total_latency());
    assert_eq!(real.announcement_count(), model.announcements.len());
    let prevouts =
        |(wtxid, orphan): (&Wtxid, &Orphan)| orphan.prevouts().map(|prevout| (prevout, *wtxid)).collect::<Vec<_>>();
    let inputs: BTreeSet<_> = real.orphans.iter().flat_map(prevouts).collect();
    assert_eq!(real.by_prevout, inputs);
    assert_eq!(real.by_peer.len(), real.announcements.len());
    assert_eq!(real.peers.keys().copied().collect::<BTreeSet<_>>(), model.peers());
    for peer in (0..PEERS).map(PeerId) {
        assert_eq!(real.weight_of(peer), model.weight_of(peer));
        assert_eq!(real.latency_of(peer), model.latency_of(peer));
        assert_eq!(real.has_work(peer), model.has_work(peer));
        for txid in txs.iter().take(4).map(|tx| tx.view().txid()).chain((0..3).map(parent)) {
            assert_eq!(wtxids(&real.children_from(txid, peer)), model.children_from(txid, peer));
        }
        for wtxid in wtxids(txs) {
            assert_eq!(real.has_from(&wtxid, peer), model.has_from(wtxid, peer));
        }
    }
    let listed = real.orphans();
    assert_eq!(listed.len(), real.len());
    for info in listed {
        let wtxid = info.tx.view().wtxid();
        assert_eq!(real.get(&wtxid).map(|tx| tx.view().wtxid()), Some(wtxid));
        let announcers: BTreeSet<_> = (0..PEERS).map(PeerId).filter(|peer| model.has_from(wtxid, *peer)).collect();
        assert!(!announcers.is_empty() && info.announcers.iter().copied().eq(announcers));
    }
    assert!(txs.iter().all(|tx| real.has(&tx.view().wtxid()) == model.has(tx.view().wtxid())));
}
