//! Where the chain from peers stands, as plain numbers for a display. Input: the manager. Output: [`SyncFigures`], a copy that is true for a moment. Cost: a
//! look at each peer; to be asked a few times a second.

use super::PeerManager;
use crate::headers::{HeadersSync, HeadersSyncPhase};

/// The figures. Counts are since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SyncFigures {
    /// Peers with whom the handshake is over.
    pub outbound: u32,
    pub inbound: u32,
    /// Of the header with most work, and the time it names, in seconds since 1970.
    pub headers_height: u32,
    pub headers_time: u32,
    /// A chain whose work is still being counted, or whose headers come for the second time: how far the furthest peer is.
    pub presync: Option<Presync>,
    /// Whether the tip is so old, or has so little work, that blocks are caught up with: Core's `IsInitialBlockDownload`.
    pub is_initial: bool,
    /// Blocks of peers, and their bytes.
    pub blocks: u64,
    pub block_bytes: u64,
    /// Bytes of blocks that were asked for and have not come, as guessed.
    pub in_flight_bytes: u64,
    /// Blocks that are here and wait to be validated, and their bytes.
    pub waiting_blocks: u64,
    pub waiting_bytes: u64,
    /// Validation has nothing to do until another block comes.
    pub is_validation_waiting: bool,
    /// The clocks of most outbound peers differ from ours by more than ten minutes.
    pub is_clock_out_of_sync: bool,
}

/// Headers that are not kept yet: Core's low-work defence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Presync {
    /// The work is proven, and the headers come once more to be kept.
    pub is_redownload: bool,
    pub height: u32,
    /// What its last header says, in seconds since 1970.
    pub time: u32,
}

impl PeerManager {
    /// Where the sync stands.
    pub fn figures(&self) -> SyncFigures {
        let ready = || self.peers.values().filter(|peer| peer.is_ready());
        let inbound = ready().filter(|peer| peer.kind().is_inbound()).count();
        let best = self.best_header();
        let stats = self.download.stats();
        SyncFigures {
            outbound: count(ready().count() - inbound),
            inbound: count(inbound),
            headers_height: best.height.0,
            headers_time: best.time,
            presync: ready().filter_map(|peer| presync(peer.headers.sync()?)).max_by_key(|presync| presync.height),
            is_initial: self.is_initial_download(),
            blocks: stats.blocks,
            block_bytes: stats.block_bytes,
            in_flight_bytes: self.download.bytes_in_flight(),
            waiting_blocks: self.download.blocks_here() as u64,
            waiting_bytes: self.download.bytes_here(),
            is_clock_out_of_sync: self.time_offsets.is_out_of_sync(),
            is_validation_waiting: self.download.is_validation_waiting(),
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
