//! [`Download`]: decides which block to request from which peer.
//!
//! Input: peers, the chain of each peer, the path of wanted blocks, arrived blocks, the progress of validation, the
//! time. Output: requests, and peers that stall. It handles no messages and no block data, and uses no clock and no
//! randomness: the same input gives the same output.
//!
//! - **The window** is the part of the path above the validated height whose blocks have at most `window_bytes`. Only
//!   these blocks are requested, so that the amount of data waiting for validation is bounded. It holds at least two
//!   windows of the engine, so that validation never waits for a round trip.
//! - **A peer** is asked for as much as its link holds: measured rate times measured latency, plus a quarter of a
//!   second. It starts with two blocks.
//! - **Late blocks** (expected to arrive later than validation needs them) are also requested from the peer that is
//!   expected to deliver them clearly sooner. Both answers are accepted, and the first is used. A peer that stops or
//!   becomes very slow thus costs only the time until its blocks count as late.
//! - **A slow peer**, measured by its distance from the mean of the others in standard deviations, is asked for one
//!   block at a time, far above the validated height. It is never disconnected for being slow, only for sending nothing
//!   at all while others do.
//!
//! Invariants: a block is delivered once; no peer is asked for a block outside its chain or, if it keeps only the last
//! blocks, for an old block; at most [`REQUESTS_PER_BLOCK_MAX`](crate::limits::REQUESTS_PER_BLOCK_MAX) requests for a
//! block are outstanding at a time. Cost: a few microseconds per block.

mod chain;
mod path;
mod peer;
mod schedule;
#[cfg(test)]
mod sim;
#[cfg(test)]
mod tests;

pub use chain::PeerChain;

use crate::limits::{BLOCKS_IN_FLIGHT_PER_PEER_MAX, DOWNLOAD_WINDOW_BLOCKS_MAX, STALL_TIMEOUT, STALL_TIMEOUT_MAX};
use crate::peer::PeerId;
use lydian_primitives::{BlockHash, Height};
use path::Path;
use peer::Peer;
use schedule::Rate;
use std::collections::BTreeMap;
use std::time::Duration;

/// The time of a block request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestTime {
    /// On the steady clock, for the rates of links.
    pub sent: Duration,
    /// On the clock of timeouts.
    pub asked: Duration,
}

/// The properties of a peer that do not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerLimits {
    /// It has only the last 288 blocks (`NODE_NETWORK_LIMITED` without `NODE_NETWORK`).
    pub is_limited: bool,
    /// The maximum number of outstanding block requests.
    pub blocks_in_flight_max: usize,
}

impl Default for PeerLimits {
    fn default() -> PeerLimits {
        PeerLimits { is_limited: false, blocks_in_flight_max: BLOCKS_IN_FLIGHT_PER_PEER_MAX }
    }
}

/// A block of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WantedBlock {
    pub hash: BlockHash,
    /// The estimated size of the block in bytes, or its actual size if it is here.
    pub size_bytes: u32,
    /// It is already stored and only needs validation.
    pub is_here: bool,
}

/// The settings of a download.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DownloadSettings {
    /// The maximum number of bytes of blocks between the validated height and the highest requested block.
    pub window_bytes: u64,
}

/// An action for the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DownloadAction {
    /// Request blocks from the peer, in this order.
    Request { peer: PeerId, blocks: Vec<BlockHash> },
    /// The block is no longer needed from this peer. The protocol has no message for this, but a request that is still
    /// queued can be removed.
    Cancel { peer: PeerId, block: BlockHash },
    /// The peer sends nothing while others do.
    Disconnect { peer: PeerId },
}

/// The classification of an arrived block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It arrived for the first time and must be stored.
    First { height: Height },
    /// It is already here.
    Duplicate,
    /// It was not requested, or it is no longer on the path.
    Unwanted,
}

/// Counters since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DownloadStats {
    pub requests: u64,
    /// Arrived blocks, wanted or not, and their bytes.
    pub blocks: u64,
    pub block_bytes: u64,
    /// Requests for blocks that had already been requested from another peer.
    pub rescues: u64,
    /// Arrived blocks that were already here, and their bytes.
    pub duplicates: u64,
    pub duplicate_bytes: u64,
    /// Peers that were disconnected.
    pub stalled: u64,
}

/// Information about a peer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PeerReport {
    pub blocks_in_flight: usize,
    pub bytes_in_flight: u64,
    /// `None` until something has arrived.
    pub bytes_per_second: Option<f64>,
    pub latency: Option<Duration>,
    pub is_slow: bool,
}

/// The download.
#[derive(Debug)]
pub struct Download {
    settings: DownloadSettings,
    path: Path,
    peers: BTreeMap<PeerId, Peer>,
    /// The bytes per second that arrive from all peers together. They may share a link that is slower than the sum of
    /// theirs.
    arrivals: Rate,
    arrived_at: Duration,
    /// The bytes per second that validation processes while it has work.
    validation: Rate,
    /// When validation last made progress or, after waiting, got a block.
    busy_since: Duration,
    /// Doubles with each disconnected peer and shrinks as blocks arrive, as in Core: a slow link on our side must not
    /// cost all peers.
    stall_timeout: Duration,
    /// When anything last arrived from any peer.
    last_bytes: Duration,
    /// When late blocks were last checked.
    rescued_at: Duration,
    /// The clock for overdue blocks, if it is not that of the calls.
    timeout_clock: Option<Duration>,
    actions: Vec<DownloadAction>,
    stats: DownloadStats,
}

impl Download {
    /// Creates a download without wanted blocks; all blocks up to `validated` are validated.
    pub fn new(settings: DownloadSettings, validated: Height) -> Download {
        Download {
            settings,
            path: Path::new(validated),
            peers: BTreeMap::new(),
            arrivals: Rate::default(),
            arrived_at: Duration::ZERO,
            validation: Rate::default(),
            busy_since: Duration::ZERO,
            stall_timeout: STALL_TIMEOUT,
            last_bytes: Duration::ZERO,
            rescued_at: Duration::ZERO,
            timeout_clock: None,
            actions: Vec::new(),
            stats: DownloadStats::default(),
        }
    }

    /// Returns the time of a request that is made now.
    pub fn request_time(&self, now: Duration) -> RequestTime {
        RequestTime { sent: now, asked: self.timeout_clock.unwrap_or(now) }
    }

    /// Sets the clock for overdue blocks: Core's `NodeClock`, which tests can set. Everything else uses the time of the
    /// calls, which also advances while that clock stands still.
    pub fn set_timeout_clock(&mut self, now: Duration) {
        self.timeout_clock = Some(now);
    }

    /// Adds a peer that serves blocks with witnesses.
    pub fn add_peer(&mut self, peer: PeerId, limits: PeerLimits, now: Duration) {
        self.peers.entry(peer).or_insert_with(|| Peer::new(limits, now));
    }

    /// Sets whether there is memory for a block from the peer; without it, nothing new is requested from the peer.
    pub fn set_room(&mut self, peer: PeerId, has_room: bool) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.lacks_room = !has_room;
        }
    }

    /// Removes a disconnected peer; its blocks are requested from others.
    pub fn remove_peer(&mut self, peer: PeerId) {
        if let Some(gone) = self.peers.remove(&peer) {
            gone.requests().for_each(|request| self.path.forget_request(request.height, peer));
        }
    }

    /// Sets which part of the path is on the peer's best chain. The caller must repeat this after each cut of the path:
    /// until then, only the remaining part is treated as the peer's.
    pub fn set_peer_chain(&mut self, peer: PeerId, chain: PeerChain) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.chain = chain;
        }
    }

    /// Returns how many more blocks of the path [`Download::extend_path`] should add now.
    pub fn path_wanted(&self) -> usize {
        let is_short = self.path.is_window_open_ended(self.settings.window_bytes);
        if is_short { DOWNLOAD_WINDOW_BLOCKS_MAX - self.path.len().min(DOWNLOAD_WINDOW_BLOCKS_MAX) } else { 0 }
    }

    /// Returns the height of the last known block of the path.
    pub fn path_end(&self) -> Height {
        self.path.end()
    }

    /// Returns the validated height.
    pub fn validated(&self) -> Height {
        self.path.validated()
    }

    /// Adds the next blocks of the path, in ascending order.
    pub fn extend_path(&mut self, blocks: &[WantedBlock]) {
        blocks.iter().for_each(|block| self.path.push(*block));
    }

    /// Removes the path above `height`, because another branch is better. If `height` is below the validated height,
    /// validation goes back to it.
    pub fn cut_path(&mut self, height: Height) {
        for (block, asked) in self.path.cut(height) {
            for peer in asked {
                if let Some(peer) = self.peers.get_mut(&peer) {
                    peer.cancel(&block);
                }
                self.actions.push(DownloadAction::Cancel { peer, block });
            }
        }
        for peer in self.peers.values_mut() {
            peer.chain.common = peer.chain.common.min(height);
            // The block it failed to send is no longer on the path.
            peer.lowest = peer.lowest.min(Height(height.0.saturating_add(1)));
        }
    }

    /// Part of a block arrived. This call is optional, but without it a large block on a slow link looks like a stall.
    pub fn progress(&mut self, peer: PeerId, bytes: u64, now: Duration) {
        self.last_bytes = now;
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.progress(bytes, now);
        }
    }

    /// A whole block arrived. The caller has compared its hash; a failed validation is reported later.
    pub fn arrived(&mut self, peer: PeerId, block: &BlockHash, bytes: u32, now: Duration) -> Arrival {
        self.last_bytes = now;
        self.stats.blocks += 1;
        self.stats.block_bytes += u64::from(bytes);
        // A pause without work says nothing about the link.
        let pause = now.saturating_sub(self.arrived_at).min(Duration::from_secs(1));
        self.arrivals.add(u64::from(bytes), pause);
        self.arrived_at = now;
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.arrived(block, bytes, now, self.timeout_clock.unwrap_or(now));
        }
        self.stall_timeout = (self.stall_timeout.mul_f64(0.85)).max(STALL_TIMEOUT);
        let Some(height) = self.path.find(block) else { return Arrival::Unwanted };
        self.path.forget_request(height, peer);
        let was_waiting = !self.path.has_next();
        if !self.path.set_here(height, bytes) {
            self.stats.duplicates += 1;
            self.stats.duplicate_bytes += u64::from(bytes);
            return Arrival::Duplicate;
        }
        if was_waiting && self.path.has_next() {
            self.busy_since = now;
        }
        Arrival::First { height }
    }

    /// The arrived block was verified and stored, so no other peer needs to send it. Peers that were asked may still
    /// send it, and their links are busy until then.
    pub fn stored(&mut self, block: &BlockHash) {
        let Some(height) = self.path.find(block) else { return };
        for peer in self.path.settle(height) {
            self.actions.push(DownloadAction::Cancel { peer, block: *block });
        }
    }

    /// Returns the peers that were asked for the block and have not answered, in order of the requests.
    pub fn asked(&self, block: &BlockHash) -> &[PeerId] {
        let slot = self.path.find(block).and_then(|height| self.path.slot(height));
        slot.map_or(&[], |slot| &slot.asked)
    }

    /// When the peer was asked for the block, if it has not answered.
    pub fn requested_at(&self, peer: PeerId, block: &BlockHash) -> Option<Duration> {
        self.peers.get(&peer)?.requested_at(block)
    }

    /// Records a request that the caller itself made at that time. Returns false if the download does not have the peer
    /// or the block.
    pub fn note_request(&mut self, peer: PeerId, block: &BlockHash, at: RequestTime) -> bool {
        let Some((height, slot)) = self.path.find(block).and_then(|height| Some((height, self.path.slot(height)?)))
        else {
            return false;
        };
        let Some(known) = self.peers.get_mut(&peer) else { return false };
        if !slot.is_here && !slot.asked.contains(&peer) {
            known.request(height, *block, slot.size, at);
            self.path.add_request(height, peer);
        }
        true
    }

    /// The peer will not send the block, for a reason that says nothing about other blocks.
    pub fn forget_request(&mut self, peer: PeerId, block: &BlockHash) {
        if let Some(height) = self.path.find(block) {
            self.path.forget_request(height, peer);
        }
        // Also if the path is past the block: otherwise the request would stay open forever.
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.cancel(block);
        }
    }

    /// The peer sent a block that is not needed: it is already here, or its chain is of no interest. The request is
    /// answered.
    pub fn unneeded(&mut self, peer: PeerId, block: &BlockHash, bytes: u32, now: Duration) {
        self.last_bytes = now;
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.arrived(block, bytes, now, self.timeout_clock.unwrap_or(now));
        }
        self.stats.duplicates += 1;
        self.stats.duplicate_bytes += u64::from(bytes);
        self.forget_request(peer, block);
    }

    /// The peer does not have the block (`notfound`), or sent other bytes. For ten minutes, it is not asked for this or
    /// older blocks.
    pub fn failed(&mut self, peer: PeerId, block: &BlockHash) {
        let Some(height) = self.path.find(block) else { return };
        self.path.forget_request(height, peer);
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.cancel(block);
            peer.lacks(height);
        }
    }

    /// A block that was here turned out to be unusable, although its header may be valid. It is requested again, but
    /// not from `peer`.
    pub fn spoiled(&mut self, peer: Option<PeerId>, block: &BlockHash) {
        let Some(height) = self.path.find(block) else { return };
        self.path.clear_here(height);
        if let Some(peer) = peer.and_then(|peer| self.peers.get_mut(&peer)) {
            peer.lacks(height);
        }
    }

    /// Validation has processed all blocks up to `height`.
    pub fn set_validated(&mut self, height: Height, now: Duration) {
        let had_work = self.path.has_next();
        let bytes = self.path.set_validated(height);
        if had_work && bytes > 0 {
            self.validation.add(bytes, now.saturating_sub(self.busy_since));
        }
        self.busy_since = now;
    }

    /// Returns the actions to do now. Call it after every other call, and ten times per second while blocks are in
    /// flight.
    pub fn poll(&mut self, now: Duration) -> Vec<DownloadAction> {
        self.peers.values_mut().for_each(|peer| peer.forgive(now));
        self.give_up(now);
        self.assign(now);
        self.rescue(now);
        std::mem::take(&mut self.actions)
    }

    /// Disconnects a peer that sent nothing for a while although others did, or that has an overdue block.
    fn give_up(&mut self, now: Duration) {
        let is_link_alive = now.saturating_sub(self.last_bytes) < self.stall_timeout / 2 && self.peers.len() > 1;
        let is_silent = |peer: &Peer| peer.silence(now).is_some_and(|silence| silence > self.stall_timeout);
        let is_stalling = |peer: &Peer| (is_link_alive && is_silent(peer)) || self.is_overdue(peer, now);
        if let Some(peer) = self.peers.iter().find(|(_, peer)| is_stalling(peer)).map(|(peer, _)| *peer) {
            self.stall_timeout = (self.stall_timeout * 2).min(STALL_TIMEOUT_MAX);
            self.stats.stalled += 1;
            self.remove_peer(peer);
            self.actions.push(DownloadAction::Disconnect { peer });
        }
    }

    /// Returns the next block that validation will need if no peer is expected to deliver it: no peer has it, or all
    /// peers that have it are silent.
    pub fn missing(&self, now: Duration) -> Option<BlockHash> {
        let (height, slot) = self.path.first_missing()?;
        let brings = |id: &PeerId, peer: &Peer| (peer.has(height) || slot.asked.contains(id)) && !peer.is_suspect(now);
        let is_coming = self.peers.iter().any(|(id, peer)| brings(id, peer));
        (!is_coming).then_some(slot.hash)
    }

    /// The peer announced its chain. If no other peer can send the next block, it is requested from this peer even if
    /// the peer failed to send it before.
    pub fn announced(&mut self, peer: PeerId, now: Duration) {
        if self.missing(now).is_some()
            && let Some(peer) = self.peers.get_mut(&peer)
        {
            peer.forgive_all();
        }
    }

    /// Returns whether the window has room for the block, or the block is not on the path.
    pub fn may_request(&mut self, block: &BlockHash) -> bool {
        self.path.open(self.settings.window_bytes);
        self.path.find(block).is_none_or(|height| self.path.is_open(height))
    }

    /// Returns whether the first missing block is on the peer's chain.
    pub fn has_first_missing(&self, peer: PeerId) -> bool {
        let has = |height| self.peers.get(&peer).is_some_and(|known| known.has(height));
        self.path.first_missing().is_some_and(|(height, _)| has(height))
    }

    /// Returns whether blocks from the peer are in flight.
    pub fn is_sending(&self, peer: PeerId, now: Duration) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.blocks_in_flight() > 0 && !peer.is_suspect(now))
    }

    /// Returns whether validation has no work until another block arrives.
    pub fn is_validation_waiting(&self) -> bool {
        !self.path.has_next()
    }

    /// Returns the number of blocks in the window that are here and not validated.
    pub fn blocks_here(&self) -> usize {
        self.path.blocks_here()
    }

    /// Returns the bytes of blocks that are here and not validated.
    pub fn bytes_here(&self) -> u64 {
        self.path.bytes_here()
    }

    /// Returns the estimated bytes of requested blocks; each block counts once.
    pub fn bytes_in_flight(&self) -> u64 {
        self.path.bytes_in_flight()
    }

    pub fn stats(&self) -> DownloadStats {
        self.stats
    }

    pub fn report(&self, peer: PeerId) -> Option<PeerReport> {
        let is_slow = self.is_slow(peer);
        self.peers.get(&peer).map(|peer| PeerReport {
            blocks_in_flight: peer.blocks_in_flight(),
            bytes_in_flight: peer.bytes_in_flight(),
            bytes_per_second: peer.rate(),
            latency: peer.latency(),
            is_slow,
        })
    }
}
