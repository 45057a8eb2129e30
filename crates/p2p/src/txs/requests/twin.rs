//! The tracker beside its plain model: after each call, both give the same answers.
//!
//! Input: calls, from a test's generator or from a fuzzer's bytes. It panics where the two differ. For tests and fuzz
//! targets only.

use super::model::Model;
use super::*;
use rand_chacha::rand_core::SeedableRng;

pub(super) const PEERS: u64 = 4;
pub(super) const HASHES: u8 = 4;
/// Calls that bytes may make.
#[cfg(fuzzing)]
const STEPS_MAX: usize = 200;

pub(super) fn tracker(seed: u64) -> TxRequests {
    TxRequests::new(&mut ChaCha20Rng::seed_from_u64(seed))
}

pub(super) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(super) fn txid(number: u8) -> GenTxid {
    GenTxid::Txid(Txid([number; 32]))
}

/// Compares after each call that the bytes make: two bytes for each, after one for the seed.
#[cfg(fuzzing)]
pub fn compare(bytes: &[u8]) {
    let Some((seed, bytes)) = bytes.split_first() else { return };
    let step = |&[kind, choice]: &[u8; 2]| {
        let (peer, hash) = (u64::from(choice) % PEERS, choice / 4 % HASHES);
        match kind % 24 {
            0..6 => {
                let (is_wtxid, is_preferred) = (choice & 16 != 0, choice & 32 != 0);
                Step::Announced { peer, hash, is_wtxid, is_preferred, delay: u64::from(choice >> 6) }
            }
            6..12 => Step::Requestable { peer, take: usize::from(hash % 3) },
            12..14 => Step::Requested { peer, hash },
            14..17 => Step::Responded { peer, hash },
            17 => Step::Forget { hash },
            18 => Step::Disconnected { peer },
            _ => Step::Wait(i64::from(choice % 8) - 2),
        }
    };
    run(u64::from(*seed), bytes.as_chunks::<2>().0.iter().take(STEPS_MAX).map(step).collect());
}

/// One call; peers, hashes and times are small numbers.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Announced {
        peer: u64,
        hash: u8,
        is_wtxid: bool,
        is_preferred: bool,
        delay: u64,
    },
    /// Asks what to request, and requests as many of the answers as `take` says.
    Requestable {
        peer: u64,
        take: usize,
    },
    /// Requests without having asked.
    Requested {
        peer: u64,
        hash: u8,
    },
    Responded {
        peer: u64,
        hash: u8,
    },
    Forget {
        hash: u8,
    },
    Disconnected {
        peer: u64,
    },
    /// Moves the clock, backwards if negative.
    Wait(i64),
}

/// Makes the calls on both.
pub(super) fn run(seed: u64, steps: Vec<Step>) {
    const EXPIRY: Duration = Duration::from_secs(6);
    let mut real = tracker(seed);
    let mut model = Model::new(real.priorities);
    let mut now = seconds(100);
    for step in steps {
        match step {
            Step::Announced { peer, hash, is_wtxid, is_preferred, delay } => {
                let gtxid = if is_wtxid { GenTxid::Wtxid(Wtxid([hash; 32])) } else { txid(hash) };
                let at = now + seconds(delay);
                real.announced(PeerId(peer), &gtxid, is_preferred, at);
                model.announced(PeerId(peer), gtxid, is_preferred, at);
            }
            Step::Requestable { peer, take } => {
                let mut expired = Vec::new();
                let wanted = real.requestable(PeerId(peer), now, &mut expired);
                let (expected, mut expected_expired) = model.requestable(PeerId(peer), now);
                assert_eq!(wanted, expected);
                expired.sort_unstable();
                expected_expired.sort_unstable();
                assert_eq!(expired, expected_expired);
                for gtxid in wanted.iter().take(take) {
                    real.requested(PeerId(peer), &gtxid.hash(), now + EXPIRY);
                    model.requested(PeerId(peer), &gtxid.hash(), now + EXPIRY);
                }
            }
            Step::Requested { peer, hash } => {
                real.requested(PeerId(peer), &[hash; 32], now + EXPIRY);
                model.requested(PeerId(peer), &[hash; 32], now + EXPIRY);
            }
            Step::Responded { peer, hash } => {
                real.responded(PeerId(peer), &[hash; 32]);
                model.responded(PeerId(peer), &[hash; 32]);
            }
            Step::Forget { hash } => {
                real.forget(&[hash; 32]);
                model.forget(&[hash; 32]);
            }
            Step::Disconnected { peer } => {
                real.disconnected(PeerId(peer));
                model.disconnected(PeerId(peer));
            }
            Step::Wait(by) if by < 0 => now -= seconds(by.unsigned_abs()),
            Step::Wait(by) => now += seconds(by.unsigned_abs()),
        }
        real.check();
        for peer in (0..PEERS).map(PeerId) {
            let counts = (real.count(peer), real.candidate_count(peer), real.in_flight_count(peer));
            assert_eq!(counts, model.counts(peer));
        }
        for hash in 0..HASHES {
            let (mut found, mut expected) = (real.candidates(&[hash; 32]), model.candidates(&[hash; 32]));
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}

impl TxRequests {
    /// Panics if an index or a count is wrong, or a hash breaks a rule.
    pub(super) fn check(&self) {
        let states = |wanted: &[State]| {
            self.announcements.values().filter(|announcement| wanted.contains(&announcement.state)).count()
        };
        assert_eq!(self.by_hash.len(), self.announcements.len());
        assert_eq!(self.waiting.len(), states(&[State::Delayed, State::Requested]));
        assert_eq!(self.best.len(), states(&[State::Best]));
        let mut counts = BTreeMap::<PeerId, Counts>::new();
        for (key, announcement) in &self.announcements {
            assert!(self.by_hash.contains(&self.hash_entry(*key, *announcement)));
            let count = counts.entry(key.0).or_default();
            count.total += 1;
            count.requested += usize::from(announcement.state == State::Requested);
            count.completed += usize::from(announcement.state == State::Completed);
            let of_hash: Vec<_> = self.of_hash(&key.1).map(|entry| entry.1).collect();
            let count_of = |wanted| of_hash.iter().filter(|state| **state == wanted).count();
            assert!(of_hash.iter().any(|state| *state != State::Completed), "a finished hash was kept");
            assert!(count_of(State::Best) + count_of(State::Requested) <= 1);
            assert!(count_of(State::Ready) == 0 || count_of(State::Best) + count_of(State::Requested) == 1);
        }
        assert_eq!(counts, self.peers);
    }
}
