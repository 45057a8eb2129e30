//! Our `feefilter` messages: the fee rate below which peers need not announce transactions to us.
//!
//! Bitcoin Core's `MaybeSendFeefilter` and `FeeFilterRounder`. Input: the minimum fee rate of the mempool, the time.
//! Output: the rate to send to a peer. All rates are per 1,000 virtual bytes.
//!
//! A rate is sent every 10 minutes on average, and within 5 minutes after a large change. It is rounded to one of about
//! 130 values, up or down at random, so that it does not identify the node. During the initial download it is the
//! largest value, because no transaction can be validated; afterwards the real one is sent at once. Memory: 32 bytes
//! per peer. Cost: logarithmic in the number of values.

use super::peer::RelayPeer;
use crate::draw;
use crate::peer::PeerId;
use lydian_primitives::Amount;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use std::collections::BTreeMap;
use std::time::Duration;

/// The average time between messages: Core's `AVG_FEEFILTER_BROADCAST_INTERVAL`.
pub const FEE_FILTER_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// The maximum time until the message after a large change: Core's `MAX_FEEFILTER_CHANGE_DELAY`.
pub const FEE_FILTER_CHANGE_DELAY: Duration = Duration::from_secs(5 * 60);

/// The smallest rate that is not zero: half of Core's `DEFAULT_MIN_RELAY_TX_FEE`.
const RATE_MIN: f64 = 50.0;
/// No rate is larger: Core's `MAX_FILTER_FEERATE`.
const RATE_MAX: f64 = 1e7;
/// The factor between rates: Core's `FEE_FILTER_SPACING`.
const SPACING: f64 = 1.1;

/// The values to which a rate is rounded: Core's `FeeFilterRounder`.
#[derive(Clone, Debug)]
struct Rounder {
    /// In ascending order: zero, then the others.
    rates: Vec<f64>,
}

impl Rounder {
    fn new() -> Rounder {
        let next = |rate: &f64| Some(rate * SPACING);
        let rates = std::iter::successors(Some(RATE_MIN), next).take_while(|rate| *rate <= RATE_MAX);
        Rounder { rates: std::iter::once(0.0).chain(rates).collect() }
    }

    /// Rounds up with a probability of one third, otherwise down.
    #[expect(clippy::cast_precision_loss, reason = "only rates up to 10,000,000 are compared with one of the values")]
    fn round(&self, rate: Amount, random: &mut ChaCha20Rng) -> Amount {
        let above = self.rates.partition_point(|value| *value < rate.0 as f64);
        let is_down = above == self.rates.len() || above > 0 && !random.next_u32().is_multiple_of(3);
        self.value(above - usize::from(is_down))
    }

    /// Returns the result for rates above all values.
    fn largest(&self) -> Amount {
        self.value(self.rates.len() - 1)
    }

    #[expect(clippy::cast_possible_truncation, reason = "Core drops the fraction, and no value is above 10,000,000")]
    fn value(&self, index: usize) -> Amount {
        Amount(self.rates.get(index).map_or(0, |rate| *rate as i64))
    }
}

/// The minimum fee rates of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimumRates {
    /// The minimum of the mempool, which rises when it is full: Core's `CTxMemPool::GetMinFee`.
    pub mempool: Amount,
    /// `-minrelaytxfee`.
    pub relay: Amount,
    /// The initial download is not over.
    pub is_initial_download: bool,
}

/// What a peer was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    rate: Amount,
    /// When the next message is sent; [`Duration::ZERO`]: now.
    next: Duration,
}

/// Our fee filters for all peers.
#[derive(Clone, Debug)]
pub struct FeeFilters {
    rounder: Rounder,
    peers: BTreeMap<PeerId, Sent>,
}

impl Default for FeeFilters {
    fn default() -> FeeFilters {
        FeeFilters { rounder: Rounder::new(), peers: BTreeMap::new() }
    }
}

impl FeeFilters {
    /// The handshake with a peer is complete. `ignores_transactions`: this node runs with `-blocksonly`.
    pub fn connected(&mut self, id: PeerId, peer: &RelayPeer, ignores_transactions: bool) {
        if peer.is_sent_fee_filter(ignores_transactions) {
            self.peers.entry(id).or_default();
        }
    }

    /// A peer is gone.
    pub fn disconnected(&mut self, id: PeerId) {
        self.peers.remove(&id);
    }

    /// Returns the rate that is to be sent to a peer now, if one is.
    pub fn due(&mut self, id: PeerId, rates: &MinimumRates, now: Duration, random: &mut ChaCha20Rng) -> Option<Amount> {
        let sent = self.peers.get_mut(&id)?;
        let rate = if rates.is_initial_download { Amount::MAX_MONEY } else { rates.mempool };
        if !rates.is_initial_download && sent.rate == self.rounder.largest() {
            sent.next = Duration::ZERO;
        }
        if now > sent.next {
            let rounded = self.rounder.round(rate, random).max(rates.relay);
            sent.next = now + draw::exponential(random, FEE_FILTER_INTERVAL);
            let is_new = rounded != sent.rate;
            sent.rate = rounded;
            return is_new.then_some(rounded);
        }
        let is_large_change = rate.0 < 3 * sent.rate.0 / 4 || rate.0 > 4 * sent.rate.0 / 3;
        if now + FEE_FILTER_CHANGE_DELAY < sent.next && is_large_change {
            let delay_us = usize::try_from(FEE_FILTER_CHANGE_DELAY.as_micros()).unwrap_or(usize::MAX);
            sent.next = now + Duration::from_micros(draw::below(random, delay_us) as u64);
        }
        None
    }

    /// Returns the last rate that was sent to a peer.
    pub fn sent(&self, id: PeerId) -> Amount {
        self.peers.get(&id).map_or(Amount(0), |sent| sent.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;
    use std::collections::BTreeSet;

    const PEER: PeerId = PeerId(3);

    fn rates(mempool: i64) -> MinimumRates {
        MinimumRates { mempool: Amount(mempool), relay: Amount(100), is_initial_download: false }
    }

    fn filters() -> FeeFilters {
        let mut filters = FeeFilters::default();
        filters.connected(PEER, &RelayPeer::sample(), false);
        filters
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(1_000_000 + count)
    }

    /// The first and the last values of Core's set, computed with its loop in C++.
    #[test]
    fn the_values_are_those_of_core() {
        let rounder = Rounder::new();
        let values: Vec<_> = (0..rounder.rates.len()).map(|index| rounder.value(index).0).collect();
        assert_eq!(values[..12], [0, 50, 55, 60, 66, 73, 80, 88, 97, 107, 117, 129]);
        assert_eq!(values[values.len() - 3..], CORE_LAST);
        assert_eq!(values.len(), CORE_COUNT);
    }

    const CORE_LAST: [i64; 3] = [8_211_988, 9_033_187, 9_936_506];
    const CORE_COUNT: usize = 130;

    #[test]
    fn a_rate_is_rounded_up_one_time_in_three() {
        let (rounder, random) = (Rounder::new(), &mut ChaCha20Rng::seed_from_u64(1));
        let up = (0..3000).filter(|_| rounder.round(Amount(100), random) == Amount(107)).count();
        assert!((900..1100).contains(&up), "{up}");
        let results: BTreeSet<_> = (0..100).map(|_| rounder.round(Amount(100), random)).collect();
        assert!(results.into_iter().eq([Amount(97), Amount(107)]));
        // A rate that is one of the values is rounded down to the one below as often.
        let results: BTreeSet<_> = (0..100).map(|_| rounder.round(Amount(55), random)).collect();
        assert!(results.into_iter().eq([Amount(50), Amount(55)]));
        for rate in [Amount(0), Amount(-5)] {
            assert_eq!(rounder.round(rate, random), Amount(0));
        }
        for rate in [10_000_001, Amount::MAX_MONEY.0, i64::MAX] {
            assert_eq!(rounder.round(Amount(rate), random), rounder.largest());
        }
    }

    #[test]
    fn a_rate_is_sent_first_and_then_only_if_it_changes() {
        let (mut filters, random) = (filters(), &mut ChaCha20Rng::seed_from_u64(1));
        let first = filters.due(PEER, &rates(0), seconds(0), random);
        assert_eq!(first, Some(Amount(100)), "never below the minimum relay fee");
        assert_eq!(filters.sent(PEER), Amount(100));
        assert!((0..100_000).all(|second| filters.due(PEER, &rates(0), seconds(second), random).is_none()));
        filters.disconnected(PEER);
        assert_eq!(filters.due(PEER, &rates(0), seconds(200_000), random), None);
        let silent = RelayPeer { common_version: 70_012, ..RelayPeer::sample() };
        filters.connected(PEER, &silent, false);
        assert_eq!(filters.due(PEER, &rates(0), seconds(200_000), random), None);
    }

    #[test]
    fn a_large_change_is_sent_within_five_minutes_and_a_small_one_in_ten_on_average() {
        let random = &mut ChaCha20Rng::seed_from_u64(1);
        let mut delays = [vec![], vec![]];
        for _ in 0..500 {
            for (kind, rate) in [(0, 100_000), (1, 1100)] {
                let mut filters = filters();
                filters.due(PEER, &rates(1000), seconds(0), random);
                // 1,100 is no large change from either value to which 1,000 is rounded.
                let is_sent = |second: &u64| filters.due(PEER, &rates(rate), seconds(*second), random).is_some();
                let sent = (1..100_000).find(is_sent);
                delays[kind].push(sent.unwrap());
            }
        }
        assert!(delays[0].iter().all(|delay| *delay <= 301), "{:?}", delays[0].iter().max());
        assert!(delays[1].iter().any(|delay| *delay > 900));
        let mean = delays[1].iter().sum::<u64>() / 500;
        assert!((500..2500).contains(&mean), "{mean}");
    }

    #[test]
    fn after_the_initial_download_the_rate_is_sent_at_once() {
        let (mut filters, random) = (filters(), &mut ChaCha20Rng::seed_from_u64(1));
        let initial = MinimumRates { is_initial_download: true, ..rates(0) };
        let largest = filters.rounder.largest();
        assert_eq!(filters.due(PEER, &initial, seconds(0), random), Some(largest));
        assert_eq!(filters.due(PEER, &initial, seconds(1), random), None);
        assert_eq!(filters.due(PEER, &rates(0), seconds(2), random), Some(Amount(100)));
    }
}
