//! The part of a peer's state that belongs to its headers: what it was asked for, what is announced to it.
//!
//! Data and queries. Only the modules of `headers` change it.

use crate::headers::{HeadersSync, PeerHeaders};
use lydian_chain::HeaderId;
use std::time::Duration;

/// How long an outbound peer's chain may have less work than ours: Core's `ChainSyncTimeoutState`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChainSync {
    /// `None` while nothing is expected from it.
    pub(super) deadline: Option<Duration>,
    /// It must show a chain with at least as much work as that of this header.
    pub(super) work_header: Option<HeaderId>,
    pub(super) sent_getheaders: bool,
    pub(super) is_protected: bool,
}

/// The headers of one peer.
#[derive(Debug, Default)]
pub(in crate::manager) struct PeerSync {
    pub(super) sync_started: bool,
    pub(super) headers: PeerHeaders,
    pub(super) headers_deadline: Option<Duration>,
    pub(super) inv_triggered_getheaders: bool,
    pub(super) best_header_sent: Option<HeaderId>,
    /// New blocks of the active chain to announce, lowest first: Core's `m_blocks_for_headers_relay`.
    pub(super) announcements: Vec<HeaderId>,
    pub(super) chain_sync: ChainSync,
}

impl PeerSync {
    /// Returns the ongoing download of a chain whose work is not known to be sufficient.
    pub(in crate::manager) fn low_work(&self) -> Option<&HeadersSync> {
        self.headers.sync()
    }

    /// It is not disconnected for the state of its chain.
    pub(in crate::manager) fn is_protected(&self) -> bool {
        self.chain_sync.is_protected
    }
}
