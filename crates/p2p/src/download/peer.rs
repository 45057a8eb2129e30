//! [`Peer`]: the outstanding requests to one peer, and its speed.
//!
//! Input: requests, arrivals, the time. Output: how much more to request, and when the requested blocks will arrive.
//!
//! The rate of a block is the number of bytes received between its request and its arrival, divided by the time since
//! the last bytes before its request. So neither latency nor pauses without work count against a peer with a full link.
//! A sample from a link that was not full can only raise the rate. Invariant: `bytes_in_flight` is the sum of the
//! requests. Cost: one step per request.

use super::{PeerChain, PeerId, PeerLimits, RequestTime};
use crate::limits::BLOCK_TIMEOUT;
use lydian_primitives::{BlockHash, Height};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Assumed until measured: a link of 4 Mbit/s, half way around the world.
const RATE_GUESSED: f64 = 500_000.0;
const LATENCY_GUESSED: Duration = Duration::from_millis(300);

/// The queue at the peer beyond what its link holds, so that a delayed request leaves no gap.
const QUEUE: Duration = Duration::from_millis(250);

/// More is requested than the link held so far, so that a faster link is noticed.
const GROWTH: f64 = 1.25;

/// The weight of a lower sample, per second of its duration.
const DECAY_PER_SECOND: f64 = 0.3;

/// The number of blocks requested from a peer at any rate, so that one is in flight while the next request is sent.
const BLOCKS_MIN: usize = 2;

/// The current transfer is compared with the measured rate once it has taken this long beyond the latency.
const SLOWER_AFTER: Duration = Duration::from_millis(500);

/// Added to twice the expected time: a peer that is silent for longer gets no new requests.
const SUSPECT_AFTER: Duration = Duration::from_secs(1);

/// A requested block.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) height: Height,
    hash: BlockHash,
    size: u32,
    sent: Duration,
    /// The same on the clock of timeouts.
    asked: Duration,
    /// The bytes delivered before this request was sent, and the time of the last of them.
    delivered: u64,
    delivered_at: Duration,
    /// `was_idle`: nothing else was in flight, and nothing has arrived since. `was_full`: the link was full.
    was_idle: bool,
    was_full: bool,
}

#[derive(Debug)]
pub(super) struct Peer {
    limits: PeerLimits,
    /// There is no memory for a block from it: it gets no new requests.
    pub(super) lacks_room: bool,
    pub(super) chain: PeerChain,
    /// It is treated as having no blocks below this height.
    pub(super) lowest: Height,
    /// When `lowest` was first checked.
    lowest_since: Option<Duration>,
    requests: VecDeque<Request>,
    bytes_in_flight: u64,
    /// When the current first request became the first, on the clock of timeouts: Core's `m_downloading_since`.
    first_since: Duration,
    /// The received bytes of the incomplete block.
    partial: u64,
    delivered: u64,
    delivered_at: Duration,
    rate: Option<f64>,
    /// The last sample that raised the rate by a tenth: until the rate is stable, the link may allow more.
    grew_at: Duration,
    latency: Option<Duration>,
}

impl Peer {
    pub(super) fn new(limits: PeerLimits, now: Duration) -> Peer {
        Peer {
            limits,
            lacks_room: false,
            chain: PeerChain::default(),
            lowest: Height(0),
            lowest_since: None,
            requests: VecDeque::new(),
            bytes_in_flight: 0,
            first_since: Duration::ZERO,
            partial: 0,
            delivered: 0,
            delivered_at: now,
            rate: None,
            grew_at: now,
            latency: None,
        }
    }

    pub(super) fn has(&self, height: Height) -> bool {
        self.range().contains(&height)
    }

    /// Returns the heights of the path that can be requested from it.
    pub(super) fn range(&self) -> RangeInclusive<Height> {
        let range = self.chain.range(self.limits.is_limited);
        self.lowest.max(*range.start())..=*range.end()
    }

    /// It seems to have neither this block nor older ones.
    pub(super) fn lacks(&mut self, height: Height) {
        self.lowest = self.lowest.max(Height(height.0.saturating_add(1)));
        self.lowest_since = None;
    }

    /// After ten minutes, it may have the blocks that it lacked, and there may be no other peer.
    pub(super) fn forgive(&mut self, now: Duration) {
        if self.lowest > Height(0) && now.saturating_sub(*self.lowest_since.get_or_insert(now)) > BLOCK_TIMEOUT {
            self.forgive_all();
        }
    }

    /// It may have all blocks of its chain.
    pub(super) fn forgive_all(&mut self) {
        (self.lowest, self.lowest_since) = (Height(0), None);
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter()
    }

    /// When the block was requested, if it has not arrived.
    pub(super) fn requested_at(&self, hash: &BlockHash) -> Option<Duration> {
        self.requests.iter().find(|request| request.hash == *hash).map(|request| request.sent)
    }

    pub(super) fn blocks_in_flight(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    pub(super) fn rate(&self) -> Option<f64> {
        self.rate
    }

    pub(super) fn latency(&self) -> Option<Duration> {
        self.latency
    }

    fn latency_or_guess(&self) -> Duration {
        self.latency.unwrap_or(LATENCY_GUESSED)
    }

    /// Returns whether its rate is more than a guess.
    pub(super) fn is_measured(&self, now: Duration) -> bool {
        self.rate.is_some() || self.rate_now(now) < RATE_GUESSED
    }

    /// Returns whether its rate is still unknown: it was still rising within the last half second plus two round trips.
    pub(super) fn is_growing(&self, now: Duration) -> bool {
        now.saturating_sub(self.grew_at) < SLOWER_AFTER + self.latency_or_guess() * 2
    }

    /// Returns the rate to count on: the measured one, or less if the current transfer is slower.
    pub(super) fn rate_now(&self, now: Duration) -> f64 {
        let rate = self.rate.unwrap_or(RATE_GUESSED);
        let Some(first) = self.requests.front() else { return rate.max(1.0) };
        let took = now.saturating_sub(first.sent.max(first.delivered_at)).saturating_sub(self.latency_or_guess());
        let came = self.delivered - first.delivered + self.partial;
        let observed = if took < SLOWER_AFTER { rate } else { as_f64(came) / took.as_secs_f64() };
        rate.min(observed).max(1.0)
    }

    fn time_of(bytes: u64, rate: f64) -> Duration {
        Duration::from_secs_f64((as_f64(bytes) / rate).min(1e6))
    }

    /// Returns whether a block of this size may be requested from it now. A slow peer has a short queue beyond what its
    /// link holds, but long enough to notice if it becomes faster.
    pub(super) fn has_room(&self, size: u32, is_slow: bool) -> bool {
        if self.requests.len() >= self.limits.blocks_in_flight_max {
            return false;
        }
        let blocks_min = if is_slow { 1 } else { BLOCKS_MIN };
        self.requests.len() < blocks_min
            || self.rate.is_some_and(|rate| {
                let latency = self.latency_or_guess();
                let queue = if is_slow { QUEUE / 4 } else { QUEUE };
                as_f64(self.bytes_in_flight + u64::from(size)) <= rate * (latency + queue).as_secs_f64() * GROWTH
            })
    }

    /// Returns whether one more block may be requested from it out of turn.
    pub(super) fn may_rescue(&self) -> bool {
        self.requests.len() < self.limits.blocks_in_flight_max
    }

    pub(super) fn request(&mut self, height: Height, hash: BlockHash, size: u32, at: RequestTime) {
        let RequestTime { sent: now, asked } = at;
        let was_idle = self.requests.is_empty();
        if was_idle {
            (self.delivered_at, self.partial, self.first_since) = (now, 0, asked);
        }
        self.bytes_in_flight += u64::from(size);
        let was_full = self.rate.is_none_or(|rate| {
            as_f64(self.bytes_in_flight) >= rate * (self.latency_or_guess() + QUEUE / 2).as_secs_f64()
        });
        let (delivered, delivered_at) = (self.delivered, self.delivered_at);
        self.requests.push_back(Request {
            height,
            hash,
            size,
            sent: now,
            asked,
            delivered,
            delivered_at,
            was_idle,
            was_full,
        });
    }

    pub(super) fn progress(&mut self, bytes: u64, now: Duration) {
        self.learn_latency(now);
        self.partial += bytes;
        self.delivered_at = now;
    }

    /// Removes the request, if there is one, and updates the measurements.
    pub(super) fn arrived(&mut self, hash: &BlockHash, bytes: u32, now: Duration, timeout_now: Duration) {
        self.learn_latency(now);
        self.partial = 0;
        self.delivered += u64::from(bytes);
        self.delivered_at = now;
        let was_first = self.requests.front().is_some_and(|first| first.hash == *hash);
        let Some(request) = self.take(hash) else { return };
        if was_first {
            self.first_since = timeout_now;
        }
        let took = now.saturating_sub(request.delivered_at).as_secs_f64().max(1e-4);
        let sample = as_f64(self.delivered - request.delivered) / took;
        if self.rate.is_none_or(|rate| sample > rate * 1.1) {
            self.grew_at = now;
        }
        self.rate = Some(match self.rate {
            None => sample,
            Some(rate) if sample >= rate => sample,
            Some(rate) if request.was_full => rate + (sample - rate) * (DECAY_PER_SECOND * took).min(0.5),
            Some(rate) => rate,
        });
    }

    /// The first bytes after a pause show the round-trip time.
    fn learn_latency(&mut self, now: Duration) {
        let Some(first) = self.requests.front_mut().filter(|first| first.was_idle) else { return };
        first.was_idle = false;
        let sample = now.saturating_sub(first.sent);
        let drifted = self.latency.map_or(sample, |latency| latency + latency / 16 + Duration::from_micros(100));
        self.latency = Some(sample.min(drifted).max(Duration::from_micros(100)));
    }

    /// It will not send the block.
    pub(super) fn cancel(&mut self, hash: &BlockHash) {
        let _ = self.take(hash);
    }

    fn take(&mut self, hash: &BlockHash) -> Option<Request> {
        let index = self.requests.iter().position(|request| request.hash == *hash)?;
        let request = self.requests.remove(index)?;
        self.bytes_in_flight -= u64::from(request.size);
        Some(request)
    }

    /// Returns how long a block of this size would take if it were requested now.
    pub(super) fn time_for(&self, size: u32, now: Duration) -> Duration {
        let rate = self.rate_now(now);
        let queued = Peer::time_of(self.bytes_in_flight.saturating_sub(self.partial), rate);
        self.latency_or_guess().max(queued) + Peer::time_of(u64::from(size), rate)
    }

    /// Returns how long a requested block will still take. A late block is expected to take as long again as it is
    /// late.
    pub(super) fn time_left(&self, height: Height, now: Duration) -> Duration {
        let (mut bytes, rate) = (0, self.rate_now(now));
        for request in &self.requests {
            bytes += u64::from(request.size);
            if request.height == height {
                let first = self.requests.front().map_or(request.sent, |first| first.sent);
                let begins = self.delivered_at.max(first + self.latency_or_guess());
                let rest = bytes.saturating_sub(self.partial);
                let due = begins + Peer::time_of(rest, rate);
                // At the measured rate: a late block is expected to be late by as much again, even if only its last
                // bytes are missing.
                let measured = self.rate.unwrap_or(RATE_GUESSED).max(1.0);
                let late = now.saturating_sub(begins + Peer::time_of(rest, measured));
                return due.saturating_sub(now).max(late);
            }
        }
        Duration::MAX
    }

    /// Returns for how long nothing has arrived although blocks were requested.
    pub(super) fn silence(&self, now: Duration) -> Option<Duration> {
        let first = self.requests.front()?;
        Some(now.saturating_sub(self.delivered_at.max(first.sent)))
    }

    /// Returns how long ago it last sent something.
    pub(super) fn idle(&self, now: Duration) -> Duration {
        now.saturating_sub(self.delivered_at)
    }

    /// Returns how long the first of the requests has been waiting, on the clock of timeouts.
    pub(super) fn oldest(&self, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.requests.front()?.asked.max(self.first_since)))
    }

    /// Returns whether nothing arrived for much longer than expected, or there is no memory for a block: it gets no new
    /// requests until that changes.
    pub(super) fn is_suspect(&self, now: Duration) -> bool {
        if self.lacks_room {
            return true;
        }
        let size = self.requests.front().map_or(0, |first| first.size);
        let expected =
            self.latency_or_guess() + Peer::time_of(u64::from(size), self.rate.unwrap_or(RATE_GUESSED).max(1.0));
        self.silence(now).is_some_and(|silence| silence > SUSPECT_AFTER + expected * 2)
    }
}

/// Numbers of bytes are far below 2^53.
#[allow(clippy::cast_precision_loss, reason = "a rate need not be exact")]
pub(super) fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

/// Statistics of the rates of all peers except one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Others {
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) fastest: f64,
}

/// Returns `None` if there are no others.
pub(super) fn of_others(rates: &[(PeerId, f64)], peer: PeerId) -> Option<Others> {
    let others = || rates.iter().filter(|(other, _)| *other != peer).map(|(_, rate)| *rate);
    let fastest = others().reduce(f64::max)?;
    let count = as_f64(others().count() as u64);
    let mean = others().sum::<f64>() / count;
    let variance = others().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / count;
    // One other peer alone has no deviation; with its mean instead, no peer counts as far off.
    let deviation = if count < 2.0 { mean } else { variance.sqrt() };
    Some(Others { mean, deviation, fastest })
}
