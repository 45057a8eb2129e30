//! The state of the sync as plain numbers for a display.
//!
//! Input: the manager. Output: [`SyncFigures`], a snapshot. Cost: a look at each peer; intended for a few calls per
//! second.

use super::PeerManager;
use crate::bans::BanFigures;
use crate::headers::{HeadersSync, HeadersSyncPhase};

/// The numbers. Counters start at the start of the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SyncFigures {
    /// Peers with a completed handshake.
    pub outbound: u32,
    pub inbound: u32,
    /// All open connections, as `getnetworkinfo` counts them.
    pub connections_out: u32,
    pub connections_in: u32,
    pub bans: BanFigures,
    /// The height and the time of the header with the most work, in seconds since 1970.
    pub headers_height: u32,
    pub headers_time: u32,
    /// The most advanced peer whose chain's work is still being counted, or whose headers are downloaded again.
    pub presync: Option<Presync>,
    /// Whether the tip is too old or has too little work, so that the node is catching up: Core's
    /// `IsInitialBlockDownload`.
    pub is_initial: bool,
    /// Blocks from peers, and their bytes.
    pub blocks: u64,
    pub block_bytes: u64,
    /// The estimated bytes of requested blocks that have not arrived.
    pub in_flight_bytes: u64,
    /// Blocks that are here and wait for validation, and their bytes.
    pub waiting_blocks: u64,
    pub waiting_bytes: u64,
    /// Validation has no work until another block arrives.
    pub is_validation_waiting: bool,
    /// The clocks of most outbound peers differ from ours by more than ten minutes.
    pub is_clock_out_of_sync: bool,
}

/// Headers that are not stored yet: Core's low-work protection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Presync {
    /// The work is proven, and the headers are downloaded again to be stored.
    pub is_redownload: bool,
    pub height: u32,
    /// The time of its last header, in seconds since 1970.
    pub time: u32,
}

impl PeerManager {
    /// Returns the state of the sync.
    pub fn figures(&self) -> SyncFigures {
        let ready = || self.context.peers.values().filter(|peer| peer.is_ready());
        let inbound = ready().filter(|peer| peer.kind().is_inbound()).count();
        let open = || self.context.peers.values().filter(|peer| !peer.is_leaving);
        let open_inbound = open().filter(|peer| peer.kind().is_inbound()).count();
        let best = self.context.best_header();
        let stats = self.blocks.download().stats();
        SyncFigures {
            outbound: count(ready().count() - inbound),
            inbound: count(inbound),
            connections_out: count(open().count() - open_inbound),
            connections_in: count(open_inbound),
            bans: self.bans().figures(self.context.now.unix),
            headers_height: best.height.0,
            headers_time: best.time,
            presync: ready().filter_map(|peer| presync(peer.sync.low_work()?)).max_by_key(|presync| presync.height),
            is_initial: self.context.is_initial_download(),
            blocks: stats.blocks,
            block_bytes: stats.block_bytes,
            in_flight_bytes: self.blocks.download().bytes_in_flight(),
            waiting_blocks: self.blocks.download().blocks_here() as u64,
            waiting_bytes: self.blocks.download().bytes_here(),
            is_clock_out_of_sync: self.clock.is_out_of_sync(),
            is_validation_waiting: self.blocks.download().is_validation_waiting(),
        }
    }
}

fn presync(sync: &HeadersSync) -> Option<Presync> {
    let (height, time, _) = sync.presync();
    match sync.phase() {
        HeadersSyncPhase::Final => None,
        phase => Some(Presync { is_redownload: phase == HeadersSyncPhase::Redownload, height: height.0, time }),
    }
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
