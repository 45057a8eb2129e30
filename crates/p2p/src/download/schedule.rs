//! The scheduler of [`Download`]: which peer is asked for which block.
//!
//! Input: the state of the download, the time. Output: requests.
//!
//! Invariants: see [`super`]. Cost: a look at each peer for each requested block; late blocks are checked fifty times
//! per second, among the 256 lowest blocks in flight.

use super::peer::{as_f64, of_others};
use super::{Download, DownloadAction, PeerId};
use crate::limits::{BLOCK_TIMEOUT, REQUESTS_PER_BLOCK_MAX, RESCUES_LOOKED_AT};
use lydian_primitives::Height;
use std::collections::BTreeMap;
use std::time::Duration;

/// A peer is slow if its rate is below the mean of the others by this number of standard deviations, and below a
/// quarter of the mean. (The first condition alone would make a peer slow if all others are alike.)
const SLOW_DEVIATIONS: f64 = 1.5;
const SLOW_PART: f64 = 0.25;

/// If rates differ so much that their deviation is meaningless, a peer below this part of the fastest is slow too.
const SLOW_PART_OF_FASTEST: f64 = 1.0 / 16.0;

/// The time between two checks for late blocks.
const RESCUE_INTERVAL: Duration = Duration::from_millis(20);

/// A slow peer gets no request for a block that the others together would have fetched sooner if the window were
/// larger, except once in a while.
const WINDOW_PART: f64 = 0.75;
const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// The number of free blocks that are searched for one that only a slow peer has.
const SLOW_LOOKED_AT: usize = 256;

/// A block is late if it is expected later than 1.25 times the time until it is needed, plus this.
const LATE: Duration = Duration::from_millis(100);

/// For a late block, 1.5 times the expected time of another peer plus this must be below the time left: estimates are
/// not more exact.
const RESCUE_MARGIN: Duration = Duration::from_millis(50);

/// A rate in bytes per second over the last few seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    bytes: f64,
    seconds: f64,
}

impl Rate {
    pub(super) fn add(&mut self, bytes: u64, time: Duration) {
        let keep = (1.0 - time.as_secs_f64() / 5.0).clamp(0.2, 1.0);
        self.bytes = self.bytes * keep + as_f64(bytes);
        self.seconds = self.seconds * keep + time.as_secs_f64();
    }

    fn get(&self) -> Option<f64> {
        (self.seconds > 0.05).then(|| self.bytes / self.seconds)
    }
}

/// The requests of one round, by peer.
#[derive(Debug, Default)]
struct Round(BTreeMap<PeerId, Vec<Height>>);

impl Download {
    /// Requests blocks that were not requested yet: the lowest ones from the peers that deliver them soonest.
    pub(super) fn assign(&mut self, now: Duration) {
        self.path.open(self.settings.window_bytes);
        if self.path.free_from(Height(0)).next().is_none() {
            return;
        }
        let rates = self.rates(now);
        let total = self.total(&rates);
        let good = self.good_peers(&rates, now);
        let size = self.path.mean_open_size();
        let window = as_f64(self.settings.window_bytes);
        let active = self.peers.iter().filter(|(_, peer)| !peer.is_suspect(now));
        let mut order: Vec<_> = active.map(|(id, peer)| (peer.time_for(size, now), *id)).collect();
        order.sort_unstable();
        let mut round = Round::default();
        for (time, id) in order.iter().copied() {
            let is_slow = !good.contains(&id);
            // A block is left to others only if they have it; otherwise it would not be requested at all.
            let first = self.path.free_from(Height(0)).next().unwrap_or_default();
            let soonest = order.iter().find(|(_, other)| self.peers.get(other).is_some_and(|peer| peer.has(first)));
            let soonest = soonest.map_or(time, |(time, _)| *time);
            // Blocks that others fetch before this peer's first block arrives are left to them.
            let ahead = time.saturating_sub(soonest).as_secs_f64() * total;
            let is_resting = is_slow && ahead > window * WINDOW_PART && self.is_resting(id, now);
            let ahead = to_count(ahead.min(window / 2.0) / f64::from(size.max(1)));
            let mut from = Height(first.0.saturating_add(ahead));
            while let Some(height) = self.choose(id, from, is_slow.then_some(&good), is_resting) {
                if !self.ask(id, height, is_slow, now) {
                    break;
                }
                round.0.entry(id).or_default().push(height);
                from = from.max(height);
            }
        }
        self.send(round);
    }

    /// Returns the block to request from a peer: the next free one from a height on. If there is none, the lowest free
    /// one, but for a slow peer only one that no good peer has: otherwise validation would wait for it.
    fn choose(&self, id: PeerId, from: Height, is_slow: Option<&Vec<PeerId>>, is_resting: bool) -> Option<Height> {
        let range = self.peers.get(&id)?.range();
        let free =
            |from: Height| self.path.free_from(from.max(*range.start())).take_while(|height| range.contains(height));
        let ahead = if is_resting { None } else { free(from).next() };
        ahead.or_else(|| match is_slow {
            None => free(Height(0)).next(),
            Some(good) => free(Height(0)).take(SLOW_LOOKED_AT).find(|height| !self.has_any(good, *height)),
        })
    }

    /// Requests the block if the peer has room for it.
    fn ask(&mut self, id: PeerId, height: Height, is_slow: bool, now: Duration) -> bool {
        let at = self.request_time(now);
        let (Some(peer), Some(slot)) = (self.peers.get_mut(&id), self.path.slot(height)) else { return false };
        let has_room = peer.has_room(slot.size, is_slow);
        if has_room {
            peer.request(height, slot.hash, slot.size, at);
            self.path.add_request(height, id);
        }
        has_room
    }

    /// Returns the peers that send and, as far as is known, not slowly.
    fn good_peers(&self, rates: &[(PeerId, f64)], now: Duration) -> Vec<PeerId> {
        let active = self.peers.iter().filter(|(_, peer)| !peer.is_suspect(now));
        active.filter(|(id, peer)| peer.is_growing(now) || !is_slow(rates, **id)).map(|(id, _)| *id).collect()
    }

    fn has_any(&self, peers: &[PeerId], height: Height) -> bool {
        peers.iter().any(|id| self.peers.get(id).is_some_and(|peer| peer.has(height)))
    }

    /// Returns whether a slow peer was active recently. After a pause it is tried again, because it may have become
    /// faster.
    fn is_resting(&self, peer: PeerId, now: Duration) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.idle(now) < PROBE_INTERVAL)
    }

    /// Requests blocks that will be late again, from peers that deliver them clearly sooner.
    pub(super) fn rescue(&mut self, now: Duration) {
        if now.saturating_sub(self.rescued_at) < RESCUE_INTERVAL && now > self.rescued_at {
            return;
        }
        self.rescued_at = now;
        let rates = self.rates(now);
        let total = self.total(&rates);
        let good = self.good_peers(&rates, now);
        let validation = self.validation.get();
        let heights: Vec<_> = self.path.in_flight().take(RESCUES_LOOKED_AT).collect();
        let mut below = None;
        let mut round = Round::default();
        for height in heights {
            let (here, missing) = self.path.bytes_below(height, below);
            below = Some((height, here, missing));
            let Some(slot) = self.path.slot(height) else { continue };
            // A silent peer is replaced by another one: otherwise a few of them could withhold a block.
            let is_silent = |id: &PeerId| self.peers.get(id).is_none_or(|peer| peer.is_suspect(now));
            let silent = slot.asked.iter().copied().find(is_silent);
            let is_full = slot.asked.len() >= REQUESTS_PER_BLOCK_MAX;
            if is_full && silent.is_none() {
                continue;
            }
            // When validation will need it: the blocks below must be validated, and must arrive first.
            let validated_in = validation.map_or(0.0, |rate| as_f64(here) / rate.max(1.0));
            let wanted_in = validated_in.max(if total > 0.0 { as_f64(missing) / total } else { 0.0 });
            let left = slot.asked.iter().filter_map(|id| Some(self.peers.get(id)?.time_left(height, now))).min();
            let left = left.unwrap_or(Duration::MAX);
            if left.as_secs_f64() <= wanted_in * 1.25 + LATE.as_secs_f64() {
                continue;
            }
            let (size, hash) = (slot.size, slot.hash);
            // The few requests must not all go to slow peers or to peers that have sent nothing yet.
            let is_last = slot.asked.len() + 1 >= REQUESTS_PER_BLOCK_MAX;
            let is_lost = slot.asked.iter().all(is_silent);
            let is_good = |id: &PeerId, peer: &super::Peer| match peer.rate() {
                Some(_) => good.contains(id) || !self.has_any(&good, height),
                None => is_lost || (rates.is_empty() && !is_last),
            };
            let candidates = self.peers.iter().filter(|(id, peer)| {
                let can = peer.may_rescue() && peer.has(height) && !peer.is_suspect(now);
                can && is_good(id, peer) && !slot.asked.contains(id)
            });
            let best = candidates.map(|(id, peer)| (peer.time_for(size, now), *id)).min();
            let Some((_, id)) = best.filter(|(time, _)| *time + *time / 2 + RESCUE_MARGIN < left) else { continue };
            let at = self.request_time(now);
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.request(height, hash, size, at);
                self.path.add_request(height, id);
                // The silent peer keeps the request in its own list, so that its silence counts.
                silent.filter(|_| is_full).into_iter().for_each(|silent| self.path.forget_request(height, silent));
                self.stats.rescues += 1;
                round.0.entry(id).or_default().push(height);
            }
        }
        self.send(round);
    }

    fn send(&mut self, round: Round) {
        for (peer, heights) in round.0 {
            let blocks: Vec<_> = heights.iter().filter_map(|height| Some(self.path.slot(*height)?.hash)).collect();
            self.stats.requests += blocks.len() as u64;
            self.actions.push(DownloadAction::Request { peer, blocks });
        }
    }

    /// Returns the bytes per second that arrive from all peers.
    fn total(&self, rates: &[(PeerId, f64)]) -> f64 {
        let sum: f64 = rates.iter().map(|(_, rate)| rate).sum();
        self.arrivals.get().map_or(sum, |measured| sum.min(measured))
    }

    /// Returns the known rates of the peers that are sending.
    fn rates(&self, now: Duration) -> Vec<(PeerId, f64)> {
        let active = self.peers.iter().filter(|(_, peer)| !peer.is_suspect(now));
        active.filter(|(_, peer)| peer.is_measured(now)).map(|(id, peer)| (*id, peer.rate_now(now))).collect()
    }

    /// Returns whether the peer is much slower than the others.
    pub(super) fn is_slow(&self, peer: PeerId) -> bool {
        let rates: Vec<_> = self.peers.iter().filter_map(|(id, peer)| Some((*id, peer.rate()?))).collect();
        is_slow(&rates, peer)
    }

    /// Returns whether the oldest requested block is overdue, even if the peer sends slowly: after Core's ten minutes,
    /// plus five for each other peer with requested blocks.
    pub(super) fn is_overdue(&self, peer: &super::Peer, now: Duration) -> bool {
        let busy = self.peers.values().filter(|other| other.blocks_in_flight() > 0).count();
        let others = u32::try_from(busy.saturating_sub(1)).unwrap_or(u32::MAX);
        let now = self.timeout_clock.unwrap_or(now);
        peer.oldest(now).is_some_and(|oldest| oldest > BLOCK_TIMEOUT + BLOCK_TIMEOUT / 2 * others.min(1000))
    }
}

fn is_slow(rates: &[(PeerId, f64)], peer: PeerId) -> bool {
    let Some((_, rate)) = rates.iter().find(|(id, _)| *id == peer) else { return false };
    let Some(others) = of_others(rates, peer) else { return false };
    let is_far_off = *rate < others.mean - SLOW_DEVIATIONS * others.deviation && *rate < others.mean * SLOW_PART;
    is_far_off || *rate < others.fastest * SLOW_PART_OF_FASTEST
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
fn to_count(count: f64) -> u32 {
    count.clamp(0.0, 1e9) as u32
}
