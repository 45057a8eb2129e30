//! A discrete-event simulation for [`Download`].
//!
//! Peers have a bandwidth, a latency, packet loss and a behavior. They share one link, and validation takes blocks in
//! order. Input: a [`World`]. Output: an [`Outcome`]. The result depends only on the world; time is virtual.

use super::{Arrival, Download, DownloadAction, DownloadSettings, PeerChain, PeerId, PeerLimits, WantedBlock};
use lydian_primitives::{BlockHash, Height};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

/// The number of bytes that are sent, and reported, at once.
const CHUNK: u64 = 64 << 10;

const TICK: Duration = Duration::from_millis(100);

/// A run that takes longer has failed.
const END: Duration = Duration::from_secs(4_000);

/// The behavior of a peer, in addition to its link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Will {
    Honest,
    /// Sends nothing from this time on.
    StopsAt(Duration),
    /// Disconnects at this time.
    LeavesAt(Duration),
    /// Answers `notfound` for blocks above this height, although they are on its chain.
    LacksAbove(Height),
    /// Sends ten kilobytes per second, so that it is never silent.
    Trickles,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SimPeer {
    pub(super) bytes_per_second: u64,
    /// The round-trip time.
    pub(super) latency: Duration,
    /// The number of blocks per thousand that packet loss delays by a second.
    pub(super) lossy: u64,
    pub(super) will: Will,
    pub(super) limits: PeerLimits,
    pub(super) chain: PeerChain,
}

impl SimPeer {
    pub(super) fn good(bytes_per_second: u64, latency_ms: u64) -> SimPeer {
        SimPeer {
            bytes_per_second,
            latency: Duration::from_millis(latency_ms),
            lossy: 0,
            will: Will::Honest,
            limits: PeerLimits::default(),
            chain: PeerChain { best: Height(u32::MAX), common: Height(u32::MAX) },
        }
    }

    pub(super) fn with(self, will: Will) -> SimPeer {
        SimPeer { will, ..self }
    }
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) sizes: Vec<u32>,
    /// The maximum error of size estimates, per thousand.
    pub(super) guess_off: u64,
    pub(super) peers: Vec<SimPeer>,
    /// The link that all peers share.
    pub(super) link_bytes_per_second: u64,
    pub(super) validation_bytes_per_second: u64,
    pub(super) window_bytes: u64,
    /// When the first height is validated, the path above the second height is replaced.
    pub(super) reorg: Option<(Height, Height)>,
    pub(super) seed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) time: Duration,
    /// The time in which validation had no work.
    pub(super) waited: Duration,
    pub(super) longest_wait: Duration,
    pub(super) held_max: u64,
    pub(super) disconnected: Vec<usize>,
    pub(super) rescues: u64,
    pub(super) duplicate_bytes: u64,
    pub(super) bytes: u64,
    /// A digest of all requests, in order.
    pub(super) trace: u64,
    pub(super) is_done: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A request has reached the peer.
    Asked(usize, u64),
    /// The peer's link is free for the next chunk.
    Free(usize),
    /// A chunk has reached our link (`Reaches`), or has passed it (`Chunk`).
    Reaches(usize, u64, u64, bool),
    Chunk(usize, u64, u64, bool),
    NotFound(usize, u64),
    Leaves(usize),
    Validated,
    Tick,
}

#[derive(Default)]
struct Sender {
    queue: VecDeque<u64>,
    /// The bytes of the current block that are still to be sent.
    rest: u64,
    is_sending: bool,
    is_gone: bool,
}

struct Run<'a> {
    world: &'a World,
    download: Download,
    now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    sequence: u64,
    senders: Vec<Sender>,
    link_free: Duration,
    /// The blocks of the path by height, as numbers; a reorg replaces them by others.
    path: Vec<u64>,
    announced: usize,
    delivered: BTreeSet<u64>,
    validating: bool,
    idle_since: Option<Duration>,
    reorg: Option<(Height, Height)>,
    random: u64,
    outcome: Outcome,
    sizes: BTreeMap<u64, u32>,
}

fn hash(block: u64) -> BlockHash {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&block.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    bytes[8..16].copy_from_slice(&block.to_le_bytes());
    BlockHash(bytes)
}

fn number(hash: &BlockHash) -> u64 {
    u64::from_le_bytes(hash.0[8..16].try_into().unwrap())
}

pub(super) fn run(world: &World) -> Outcome {
    let settings = DownloadSettings { window_bytes: world.window_bytes };
    let count = world.sizes.len() as u64;
    let mut run = Run {
        world,
        download: Download::new(settings, Height(0)),
        now: Duration::ZERO,
        events: BinaryHeap::new(),
        sequence: 0,
        senders: world.peers.iter().map(|_| Sender::default()).collect(),
        link_free: Duration::ZERO,
        path: (1..=count).collect(),
        announced: 0,
        delivered: BTreeSet::new(),
        validating: false,
        idle_since: Some(Duration::ZERO),
        reorg: world.reorg,
        random: world.seed | 1,
        outcome: Outcome::default(),
        sizes: (1..=count).zip(world.sizes.iter().copied()).collect(),
    };
    for (index, peer) in world.peers.iter().enumerate() {
        let id = PeerId(index as u64);
        run.download.add_peer(id, peer.limits, Duration::ZERO);
        run.download.set_peer_chain(id, peer.chain);
        if let Will::LeavesAt(at) = peer.will {
            run.at(at, Event::Leaves(index));
        }
    }
    run.at(Duration::ZERO, Event::Tick);
    while let Some(Reverse((at, _, event))) = run.events.pop() {
        run.now = at;
        if at > END || run.outcome.is_done {
            break;
        }
        run.step(event);
        run.after();
    }
    let stats = run.download.stats();
    run.outcome.rescues = stats.rescues;
    run.outcome.duplicate_bytes = stats.duplicate_bytes;
    run.outcome
}

impl Run<'_> {
    fn at(&mut self, at: Duration, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Tick => self.at(self.now + TICK, Event::Tick),
            Event::Asked(peer, block) => {
                if let Will::LacksAbove(height) = self.world.peers[peer].will
                    && block > u64::from(height.0)
                {
                    self.at(self.now + self.world.peers[peer].latency / 2, Event::NotFound(peer, block));
                    return;
                }
                self.senders[peer].queue.push_back(block);
                self.send(peer);
            }
            Event::Free(peer) => {
                self.senders[peer].is_sending = false;
                self.send(peer);
            }
            Event::Reaches(peer, block, bytes, is_last) => {
                let takes = Duration::from_secs_f64(to_f64(bytes) / to_f64(self.world.link_bytes_per_second));
                self.link_free = self.now.max(self.link_free) + takes;
                self.at(self.link_free, Event::Chunk(peer, block, bytes, is_last));
            }
            Event::Chunk(peer, block, bytes, is_last) => self.receive(peer, block, bytes, is_last),
            Event::NotFound(peer, block) => self.download.failed(PeerId(peer as u64), &hash(block)),
            Event::Leaves(peer) => {
                self.senders[peer].is_gone = true;
                self.download.remove_peer(PeerId(peer as u64));
            }
            Event::Validated => self.validated(),
        }
    }

    /// Sends a chunk if the peer's link is free.
    fn send(&mut self, index: usize) {
        let peer = self.world.peers[index];
        let is_silent = matches!(peer.will, Will::StopsAt(at) if self.now >= at);
        let sender = &mut self.senders[index];
        if sender.is_sending || sender.is_gone || is_silent {
            return;
        }
        let Some(&block) = sender.queue.front() else { return };
        let is_first = sender.rest == 0;
        if is_first {
            sender.rest = u64::from(self.sizes[&block]);
        }
        let bytes = sender.rest.min(CHUNK);
        sender.rest -= bytes;
        sender.is_sending = true;
        let is_last = sender.rest == 0;
        if is_last {
            sender.queue.pop_front();
        }
        let is_lost = is_first && self.draw(1000) < peer.lossy;
        let rate = if peer.will == Will::Trickles { 10_000 } else { peer.bytes_per_second };
        let mut free = self.now + Duration::from_secs_f64(to_f64(bytes) / to_f64(rate));
        if is_lost {
            free += Duration::from_secs(1);
        }
        self.at(free, Event::Free(index));
        self.at(free + peer.latency / 2, Event::Reaches(index, block, bytes, is_last));
    }

    fn receive(&mut self, index: usize, block: u64, bytes: u64, is_last: bool) {
        if self.senders[index].is_gone {
            return;
        }
        let peer = PeerId(index as u64);
        self.outcome.bytes += bytes;
        if !is_last {
            self.download.progress(peer, bytes, self.now);
            return;
        }
        match self.download.arrived(peer, &hash(block), self.sizes[&block], self.now) {
            Arrival::First { height } => {
                assert_eq!(self.path[height.0 as usize - 1], block, "the height is the block's");
                assert!(self.delivered.insert(block), "block {block} is delivered once");
            }
            Arrival::Duplicate | Arrival::Unwanted => {}
        }
    }

    fn validated(&mut self) {
        let height = Height(self.download.validated().0 + 1);
        self.download.set_validated(height, self.now);
        self.validating = false;
        if let Some((at, fork)) = self.reorg.filter(|(at, _)| *at == height) {
            let _ = at;
            self.reorg = None;
            self.download.cut_path(fork);
            for (offset, block) in self.path[fork.0 as usize..].iter_mut().enumerate() {
                let other = *block + 1_000_000;
                self.sizes.insert(other, self.world.sizes[fork.0 as usize + offset]);
                *block = other;
            }
            self.announced = self.announced.min(fork.0 as usize);
            for (index, peer) in self.world.peers.iter().enumerate() {
                self.download.set_peer_chain(PeerId(index as u64), peer.chain);
            }
        }
    }

    /// Does what the caller of a download does after each event.
    fn after(&mut self) {
        let wanted = self.download.path_wanted().min(self.path.len() - self.announced);
        for _ in 0..wanted {
            let block = self.path[self.announced];
            let off = 1000 - self.world.guess_off.min(999) + self.draw(2 * self.world.guess_off + 1);
            let size_bytes = u32::try_from(u64::from(self.sizes[&block]) * off / 1000).unwrap();
            let is_here = self.delivered.contains(&block);
            self.download.extend_path(&[WantedBlock { hash: hash(block), size_bytes, is_here }]);
            self.announced += 1;
        }
        for action in self.download.poll(self.now) {
            match action {
                DownloadAction::Request { peer, blocks } => self.request(peer, &blocks),
                DownloadAction::Cancel { .. } => {}
                DownloadAction::Disconnect { peer } => {
                    let index = usize::try_from(peer.0).unwrap();
                    self.senders[index].is_gone = true;
                    self.outcome.disconnected.push(index);
                }
            }
        }
        self.outcome.held_max = self.outcome.held_max.max(self.download.bytes_here() + self.download.bytes_in_flight());
        self.validate();
    }

    fn request(&mut self, peer: PeerId, blocks: &[BlockHash]) {
        let index = usize::try_from(peer.0).unwrap();
        let SimPeer { latency, chain, limits, .. } = self.world.peers[index];
        for block in blocks {
            let block = number(block);
            let height = u32::try_from(block % 1_000_000).unwrap();
            assert!(height <= chain.common.0, "asked for what it has");
            assert!(!limits.is_limited || chain.best.0 - height < 286, "limited peers have the last blocks");
            self.outcome.trace = (self.outcome.trace ^ (block << 8 | peer.0)).wrapping_mul(0x0100_0000_01b3);
            self.at(self.now + latency / 2, Event::Asked(index, block));
        }
    }

    fn validate(&mut self) {
        if self.download.validated().0 as usize == self.path.len() {
            self.outcome.is_done = true;
            self.outcome.time = self.now;
        } else if !self.validating && !self.download.is_validation_waiting() {
            if let Some(since) = self.idle_since.take() {
                let waited = self.now - since;
                self.outcome.waited += waited;
                self.outcome.longest_wait = self.outcome.longest_wait.max(waited);
            }
            self.validating = true;
            let next = self.download.validated().0 as usize;
            assert!(self.delivered.contains(&self.path[next]), "only what came is validated");
            let seconds = f64::from(self.sizes[&self.path[next]]) / to_f64(self.world.validation_bytes_per_second);
            self.at(self.now + Duration::from_secs_f64(seconds), Event::Validated);
        } else if !self.validating && self.idle_since.is_none() {
            self.idle_since = Some(self.now);
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a simulation")]
fn to_f64(value: u64) -> f64 {
    value as f64
}
