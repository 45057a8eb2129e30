//! [`Download`]: who fetches which block from whom. Input: peers, the chain that each has, the path of blocks that are wanted, what arrived, how far
//! validation is, the time. Output: requests, and peers that stall. No messages, no clock, no bytes of blocks, no randomness: the same input gives the
//! same output.
//!
//! * **The window** is the part of the path above what is validated whose blocks have at most `window_bytes`; only they are fetched, so that what waits
//!   to be validated is bounded. It holds at least two windows of the engine, so that validation never waits for a round trip.
//! * **A peer** is asked for as much as its link holds: measured rate times measured latency, and a quarter of a second. It begins with two blocks.
//! * **Late blocks** (expected later from whoever was asked than validation will want them) are asked of whoever is expected to bring them clearly
//!   sooner; both answers count, the first is used. So a peer that stops, or crawls, costs the time in which its blocks become late.
//! * **A slow peer**, by its distance from the mean of the others in standard deviations, is asked for one block at a time, far from where
//!   validation is. It is never disconnected for being slow; only for sending nothing at all while others do.
//!
//! Invariants: a block is delivered once; nobody is asked for a block outside its chain, nor, if it keeps only the last blocks, for old ones; at most
//! [`REQUESTS_PER_BLOCK_MAX`](crate::limits::REQUESTS_PER_BLOCK_MAX) peers are asked for a block at a time. Cost: a few microseconds a block.

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
use lydian_primitives::{BlockHash, Height};
use path::Path;
use peer::Peer;
use schedule::Rate;
use std::collections::BTreeMap;
use std::time::Duration;

/// When a block was requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestTime {
    /// By the steady clock: rates of links go by it.
    pub sent: Duration,
    /// By the clock of timeouts.
    pub asked: Duration,
}

/// A peer, by the number that whoever drives this gave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DownloadPeer(pub u64);

/// What does not change about a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerLimits {
    /// It has only the last 288 blocks (`NODE_NETWORK_LIMITED` without `NODE_NETWORK`).
    pub is_limited: bool,
    /// Blocks asked for at once, at most.
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
    /// Bytes that it will have, as far as can be guessed. For one that is here, those it has.
    pub size_bytes: u32,
    /// It is stored already and only has to be validated.
    pub is_here: bool,
}

/// How a download works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DownloadSettings {
    /// Bytes of blocks between what is validated and the furthest that is asked for.
    pub window_bytes: u64,
}

/// Something to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DownloadAction {
    /// Ask the peer for blocks, in this order.
    Request { peer: DownloadPeer, blocks: Vec<BlockHash> },
    /// The peer need not send this block any more. Nothing can be said to it; what is still queued for it can be taken back.
    Cancel { peer: DownloadPeer, block: BlockHash },
    /// The peer sends nothing while others do.
    Disconnect { peer: DownloadPeer },
}

/// What a block that came is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The first time that it comes: it is to be stored.
    First { height: Height },
    /// It was here, or on its way from several.
    Duplicate,
    /// Nobody asked for it, or the path has left it.
    Unwanted,
}

/// Counts since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DownloadStats {
    pub requests: u64,
    /// Blocks that came, wanted or not, and their bytes.
    pub blocks: u64,
    pub block_bytes: u64,
    /// Requests for blocks that somebody else was asked for already.
    pub rescues: u64,
    /// Blocks that came and were here, and their bytes.
    pub duplicates: u64,
    pub duplicate_bytes: u64,
    /// Peers that were given up.
    pub stalled: u64,
}

/// What may be told of a peer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PeerReport {
    pub blocks_in_flight: usize,
    pub bytes_in_flight: u64,
    /// `None` until something came.
    pub bytes_per_second: Option<f64>,
    pub latency: Option<Duration>,
    pub is_slow: bool,
}

/// The download.
#[derive(Debug)]
pub struct Download {
    settings: DownloadSettings,
    path: Path,
    peers: BTreeMap<DownloadPeer, Peer>,
    /// Bytes a second that come from all together, which may share a link that is less than the sum of theirs.
    arrivals: Rate,
    arrived_at: Duration,
    /// Bytes a second that validation takes while it has work.
    validation: Rate,
    /// When validation was last told, or got work that it waited for.
    busy_since: Duration,
    /// Doubles with each peer given up and shrinks as blocks come, as Core's: a link that is slow itself shall not cost all peers.
    stall_timeout: Duration,
    /// When anything came from anybody.
    last_bytes: Duration,
    /// When late blocks were last looked for.
    rescued_at: Duration,
    /// By which clock a block is overdue, if not by that of the calls.
    timeout_clock: Option<Duration>,
    actions: Vec<DownloadAction>,
    stats: DownloadStats,
}

impl Download {
    /// Nothing is wanted yet; everything up to `validated` is validated.
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

    /// The time of a request that is made now.
    pub fn request_time(&self, now: Duration) -> RequestTime {
        RequestTime { sent: now, asked: self.timeout_clock.unwrap_or(now) }
    }

    /// The time by which a block that was asked for long ago is overdue: Core's `NodeClock`, which tests set.
    /// Everything else goes by the time of the calls, which goes on while that one stands.
    pub fn set_timeout_clock(&mut self, now: Duration) {
        self.timeout_clock = Some(now);
    }

    /// A peer that can serve blocks with their witnesses.
    pub fn add_peer(&mut self, peer: DownloadPeer, limits: PeerLimits, now: Duration) {
        self.peers.entry(peer).or_insert_with(|| Peer::new(limits, now));
    }

    /// Whether there is memory for a block of the peer: without, it is asked for nothing new.
    pub fn set_room(&mut self, peer: DownloadPeer, has_room: bool) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.lacks_room = !has_room;
        }
    }

    /// The peer is gone: its blocks go to others.
    pub fn remove_peer(&mut self, peer: DownloadPeer) {
        if let Some(gone) = self.peers.remove(&peer) {
            gone.requests().for_each(|request| self.path.forget_request(request.height, peer));
        }
    }

    /// What the peer's best chain has of the path. To be told again whenever the path was cut: until then only what was left is taken for the
    /// peer's.
    pub fn set_peer_chain(&mut self, peer: DownloadPeer, chain: PeerChain) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.chain = chain;
        }
    }

    /// How many more blocks of the path should be told now, by [`Download::extend_path`].
    pub fn path_wanted(&self) -> usize {
        let is_short = self.path.is_window_open_ended(self.settings.window_bytes);
        if is_short { DOWNLOAD_WINDOW_BLOCKS_MAX - self.path.len().min(DOWNLOAD_WINDOW_BLOCKS_MAX) } else { 0 }
    }

    /// Height of the last block of the path that was told.
    pub fn path_end(&self) -> Height {
        self.path.end()
    }

    /// Height up to which validation is.
    pub fn validated(&self) -> Height {
        self.path.validated()
    }

    /// The next blocks of the path, upwards.
    pub fn extend_path(&mut self, blocks: &[WantedBlock]) {
        blocks.iter().for_each(|block| self.path.push(*block));
    }

    /// The path above `height` is no longer wanted: another branch is better. A `height` below what is validated says that validation goes back to it.
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
            // What it failed to send is not on the path any more.
            peer.lowest = peer.lowest.min(Height(height.0.saturating_add(1)));
        }
    }

    /// Some bytes of a block came, and more are to come. Need not be told, but without it a large block on a slow link looks like a stall.
    pub fn progress(&mut self, peer: DownloadPeer, bytes: u64, now: Duration) {
        self.last_bytes = now;
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.progress(bytes, now);
        }
    }

    /// A block came, whole. Who drives this has compared its hash; whether it is valid is told later, if it is not.
    pub fn arrived(&mut self, peer: DownloadPeer, block: &BlockHash, bytes: u32, now: Duration) -> Arrival {
        self.last_bytes = now;
        self.stats.blocks += 1;
        self.stats.block_bytes += u64::from(bytes);
        // A pause for want of work says nothing of the link.
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

    /// What arrived is the block and is stored: nobody else need send it. They may all the same, and their links are busy with it until then.
    pub fn stored(&mut self, block: &BlockHash) {
        let Some(height) = self.path.find(block) else { return };
        for peer in self.path.settle(height) {
            self.actions.push(DownloadAction::Cancel { peer, block: *block });
        }
    }

    /// Who was asked for the block and has not answered, in the order in which they were.
    pub fn asked(&self, block: &BlockHash) -> &[DownloadPeer] {
        let slot = self.path.find(block).and_then(|height| self.path.slot(height));
        slot.map_or(&[], |slot| &slot.asked)
    }

    /// The caller requested a block from the peer itself, at that time. False if the peer or the block is none
    /// of this download's.
    pub fn note_request(&mut self, peer: DownloadPeer, block: &BlockHash, at: RequestTime) -> bool {
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

    /// The peer will not send the block, which says nothing of others.
    pub fn forget_request(&mut self, peer: DownloadPeer, block: &BlockHash) {
        if let Some(height) = self.path.find(block) {
            self.path.forget_request(height, peer);
        }
        // Even if the path is beyond the block: a request that is not forgotten is one that the peer never answers.
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.cancel(block);
        }
    }

    /// The peer sent a block that is not needed: it was here, or its chain is of no interest. What it was asked for it has answered.
    pub fn unneeded(&mut self, peer: DownloadPeer, block: &BlockHash, bytes: u32, now: Duration) {
        self.last_bytes = now;
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.arrived(block, bytes, now, self.timeout_clock.unwrap_or(now));
        }
        self.stats.duplicates += 1;
        self.stats.duplicate_bytes += u64::from(bytes);
        self.forget_request(peer, block);
    }

    /// The peer says that it has not the block (`notfound`), or sent bytes that are not the block's: for ten minutes it is not asked for
    /// it again, nor for older ones.
    pub fn failed(&mut self, peer: DownloadPeer, block: &BlockHash) {
        let Some(height) = self.path.find(block) else { return };
        self.path.forget_request(height, peer);
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.cancel(block);
            peer.lacks(height);
        }
    }

    /// A block that was here turned out to be of no use, though its header may be good: it is wanted again, from others than `peer`.
    pub fn spoiled(&mut self, peer: Option<DownloadPeer>, block: &BlockHash) {
        let Some(height) = self.path.find(block) else { return };
        self.path.clear_here(height);
        if let Some(peer) = peer.and_then(|peer| self.peers.get_mut(&peer)) {
            peer.lacks(height);
        }
    }

    /// Validation has taken all blocks up to `height`.
    pub fn set_validated(&mut self, height: Height, now: Duration) {
        let had_work = self.path.has_next();
        let bytes = self.path.set_validated(height);
        if had_work && bytes > 0 {
            self.validation.add(bytes, now.saturating_sub(self.busy_since));
        }
        self.busy_since = now;
    }

    /// What is to be done now. To be asked after every other call, and ten times a second while blocks are on their way.
    pub fn poll(&mut self, now: Duration) -> Vec<DownloadAction> {
        self.peers.values_mut().for_each(|peer| peer.forgive(now));
        self.give_up(now);
        self.assign(now);
        self.rescue(now);
        std::mem::take(&mut self.actions)
    }

    /// Peers that sent nothing for a while, though others did; or not a block in ten minutes and more.
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

    /// The next block that validation will lack and that nobody can be expected to bring: no peer has it, or all who do were asked and are silent.
    pub fn missing(&self, now: Duration) -> Option<BlockHash> {
        let (height, slot) = self.path.first_missing()?;
        let brings =
            |id: &DownloadPeer, peer: &Peer| (peer.has(height) || slot.asked.contains(id)) && !peer.is_suspect(now);
        let is_coming = self.peers.iter().any(|(id, peer)| brings(id, peer));
        (!is_coming).then_some(slot.hash)
    }

    /// The peer announced its chain. If no other peer can send the next block, this one is asked for it even if it
    /// failed to send it before.
    pub fn announced(&mut self, peer: DownloadPeer, now: Duration) {
        if self.missing(now).is_some()
            && let Some(peer) = self.peers.get_mut(&peer)
        {
            peer.forgive_all();
        }
    }

    /// Whether the window has room for the block, or the block is none of the path's.
    pub fn may_request(&mut self, block: &BlockHash) -> bool {
        self.path.open(self.settings.window_bytes);
        self.path.find(block).is_none_or(|height| self.path.is_open(height))
    }

    /// Whether the peer has the first block that is missing, by the chain that it was introduced with.
    pub fn has_first_missing(&self, peer: DownloadPeer) -> bool {
        let has = |height| self.peers.get(&peer).is_some_and(|known| known.has(height));
        self.path.first_missing().is_some_and(|(height, _)| has(height))
    }

    /// Whether blocks are on their way from the peer.
    pub fn is_sending(&self, peer: DownloadPeer, now: Duration) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.blocks_in_flight() > 0 && !peer.is_suspect(now))
    }

    /// Whether validation has nothing to do until another block comes.
    pub fn is_validation_waiting(&self) -> bool {
        !self.path.has_next()
    }

    /// Blocks of the window that are here and not validated.
    pub fn blocks_here(&self) -> usize {
        self.path.blocks_here()
    }

    /// Bytes of blocks that are here and not validated.
    pub fn bytes_here(&self) -> u64 {
        self.path.bytes_here()
    }

    /// Bytes of blocks, as guessed, that somebody was asked for; each counts once.
    pub fn bytes_in_flight(&self) -> u64 {
        self.path.bytes_in_flight()
    }

    pub fn stats(&self) -> DownloadStats {
        self.stats
    }

    pub fn report(&self, peer: DownloadPeer) -> Option<PeerReport> {
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
