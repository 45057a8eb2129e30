//! Random sequences against the model, and the rules one by one.

use super::twin::{HASHES, PEERS, Step, run, seconds, tracker, txid};
use super::*;
use crate::txs::sample::core_trace;
use proptest::prelude::*;

fn requestable(tracker: &mut TxRequests, peer: u64, now: u64) -> Vec<GenTxid> {
    tracker.requestable(PeerId(peer), seconds(now), &mut Vec::new())
}

fn step() -> impl Strategy<Value = Step> {
    let (peer, hash) = (0..PEERS, 0..HASHES);
    prop_oneof![
        6 => (peer.clone(), hash.clone(), any::<bool>(), any::<bool>(), 0..5_u64).prop_map(
            |(peer, hash, is_wtxid, is_preferred, delay)| {
                Step::Announced { peer, hash, is_wtxid, is_preferred, delay }
            }
        ),
        6 => (peer.clone(), 0..3_usize).prop_map(|(peer, take)| Step::Requestable { peer, take }),
        2 => (peer.clone(), hash.clone()).prop_map(|(peer, hash)| Step::Requested { peer, hash }),
        3 => (peer.clone(), hash.clone()).prop_map(|(peer, hash)| Step::Responded { peer, hash }),
        1 => hash.prop_map(|hash| Step::Forget { hash }),
        1 => peer.prop_map(|peer| Step::Disconnected { peer }),
        4 => (-2..5_i64).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_sequence_has_the_result_of_the_model(seed: u64, steps in prop::collection::vec(step(), 1..80)) {
        run(seed, steps);
    }
}

#[test]
fn a_transaction_is_requested_from_one_peer_at_a_time() {
    let mut tracker = tracker(1);
    for peer in 0..3 {
        tracker.announced(PeerId(peer), &txid(1), peer == 2, seconds(10));
    }
    for peer in 0..3 {
        assert_eq!(requestable(&mut tracker, peer, 9), [], "the request time is in the future");
    }
    // The preferred peer comes first.
    assert_eq!(requestable(&mut tracker, 0, 10), []);
    assert_eq!(requestable(&mut tracker, 2, 10), [txid(1)]);
    tracker.requested(PeerId(2), &[1; 32], seconds(70));
    assert_eq!((tracker.in_flight_count(PeerId(2)), tracker.candidate_count(PeerId(2))), (1, 0));
    assert_eq!((requestable(&mut tracker, 0, 69), requestable(&mut tracker, 1, 69)), (vec![], vec![]));
    // After the expiry, exactly one of the others is asked, and the first one never again.
    let mut expired = Vec::new();
    let first = tracker.requestable(PeerId(0), seconds(70), &mut expired);
    assert_eq!(expired, [(PeerId(2), txid(1))]);
    let (asked, other) = if first.is_empty() { (1, 0) } else { (0, 1) };
    assert_eq!(requestable(&mut tracker, asked, 70), [txid(1)]);
    assert_eq!(requestable(&mut tracker, other, 70), []);
    tracker.announced(PeerId(2), &txid(1), true, seconds(0));
    tracker.requested(PeerId(asked), &[1; 32], seconds(130));
    tracker.responded(PeerId(asked), &[1; 32]);
    assert_eq!(requestable(&mut tracker, 2, 71), []);
    assert_eq!(requestable(&mut tracker, other, 71), [txid(1)]);
    tracker.responded(PeerId(other), &[1; 32]);
    assert!(tracker.is_empty(), "without candidates, the hash is forgotten");
}

/// An attacker that announces first must not be asked first more often than others.
/// checklist: 65
#[test]
fn the_salt_decides_among_equal_peers() {
    let mut first_asked = [0_u32; 2];
    for seed in 0..1000 {
        let mut tracker = tracker(seed);
        tracker.announced(PeerId(0), &txid(1), false, seconds(1));
        tracker.announced(PeerId(1), &txid(1), false, seconds(2));
        let asked = usize::from(requestable(&mut tracker, 0, 2).is_empty());
        first_asked[asked] += 1;
    }
    assert!(first_asked.iter().all(|count| (440..560).contains(count)), "{first_asked:?}");
}

#[test]
fn answers_come_in_the_order_of_announcement() {
    let mut tracker = tracker(3);
    for number in [5, 3, 9, 1, 7] {
        tracker.announced(PeerId(0), &txid(number), true, seconds(u64::from(10 - number)));
    }
    assert_eq!(requestable(&mut tracker, 0, 20), [5, 3, 9, 1, 7].map(txid));
    assert_eq!(requestable(&mut tracker, 0, 5), [5, 9, 7].map(txid), "the clock went back");
}

/// Work for many announcements of one hash must not grow with their number.
/// checklist: 65
#[test]
fn ten_thousand_announcers_of_one_hash_are_no_problem() {
    let mut tracker = tracker(4);
    for peer in 0..10_000 {
        tracker.announced(PeerId(peer), &txid(1), false, seconds(0));
    }
    for peer in 0..10_000 {
        if let [gtxid] = requestable(&mut tracker, peer, 1)[..] {
            tracker.requested(PeerId(peer), &gtxid.hash(), seconds(61));
            tracker.responded(PeerId(peer), &gtxid.hash());
        }
        tracker.disconnected(PeerId(peer));
    }
    assert!(tracker.is_empty());
}

/// Random calls of Core's `TxRequestTracker` with its answers. The columns are: call, peer, hash, whether it is a
/// wtxid, whether the peer is preferred, time in seconds, answer, then the numbers of all announcements, and of those,
/// the requests and the candidates of the peer.
#[test]
fn recorded_calls_of_core_have_the_same_results() {
    let trace = core_trace(include_bytes!("../../../../../testdata/vectors/core/txrequest_trace.txt.zst"));
    let mut real = tracker(0);
    let mut calls = 0;
    for line in trace.lines() {
        let columns: Vec<_> = line.split(' ').collect();
        let [call, peer, hash, is_wtxid, is_preferred, time, answer, counts @ ..] = &columns[..] else {
            assert_eq!(line, "round");
            real = TxRequests::with_key((0, 0));
            continue;
        };
        let peer = PeerId(peer.parse().unwrap());
        let mut bytes = [0; 32];
        bytes[0] = hash.parse().unwrap();
        let time = seconds(time.parse().unwrap());
        let mut found = String::from("-");
        match *call {
            "announced" => {
                let gtxid = if *is_wtxid == "1" { GenTxid::Wtxid(Wtxid(bytes)) } else { GenTxid::Txid(Txid(bytes)) };
                real.announced(peer, &gtxid, *is_preferred == "1", time);
            }
            "requestable" => {
                let mut expired = Vec::new();
                for gtxid in real.requestable(peer, time, &mut expired) {
                    found += &format!(",{}:{}", gtxid.hash()[0], u8::from(gtxid.is_wtxid()));
                }
                let expired: BTreeSet<_> =
                    expired.iter().map(|(peer, gtxid)| format!(",{}:{peer}", gtxid.hash()[0])).collect();
                found += &format!(";{}", expired.into_iter().collect::<String>());
            }
            "requested" => real.requested(peer, &bytes, time),
            "responded" => real.responded(peer, &bytes),
            "candidates" => {
                let peers: BTreeSet<_> = real.candidates(&bytes).into_iter().collect();
                found += &peers.into_iter().map(|peer| format!(",{peer}")).collect::<String>();
            }
            "forget" => real.forget(&bytes),
            "gone" => real.disconnected(peer),
            _ => panic!("{line}"),
        }
        real.check();
        let now = [real.len(), real.count(peer), real.in_flight_count(peer), real.candidate_count(peer)];
        assert_eq!(found, *answer, "{line}");
        assert_eq!(now.map(|count| count.to_string()), counts, "{line}");
        calls += 1;
    }
    assert_eq!(calls, 20_000);
}
