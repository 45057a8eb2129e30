//! [`InitialDownload`]: whether the node is in initial block download: Core's `IsInitialBlockDownload` and its
//! `m_cached_is_ibd`.
//!
//! Input: the tip whenever it changes, and the time. Output: true until the download is over, then false for good: a
//! node that is offline for a day does not behave like a new one. It stays true while stored blocks are being loaded:
//! Core's `LoadingBlocks`. One value is shared by the whole node, and several of its parts report each tip; as in Core,
//! the first report decides: a clock that is set later does not make an old tip a recent one. It must never read a
//! clock.

use lydian_consensus::U256;
use lydian_stdx::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// `-maxtipage` by default: Core's `DEFAULT_MAX_TIP_AGE`.
pub const TIP_AGE_SECONDS_DEFAULT: i64 = 24 * 60 * 60;

/// Core's log line when the initial download is over.
pub const INITIAL_DOWNLOAD_OVER: &str = "Leaving InitialBlockDownload (latching to false)";

/// Whether the node is in initial block download.
#[derive(Debug)]
pub struct InitialDownload {
    minimum_chain_work: U256,
    tip_age_seconds_max: i64,
    is_on: AtomicBool,
    is_loading: AtomicBool,
    /// Time and chain work of the tip that was reported last.
    reported: Mutex<Option<(u32, U256)>>,
}

impl InitialDownload {
    /// `-minimumchainwork` and `-maxtipage`.
    pub fn new(minimum_chain_work: U256, tip_age_seconds_max: i64) -> InitialDownload {
        InitialDownload {
            minimum_chain_work,
            tip_age_seconds_max,
            is_on: AtomicBool::new(true),
            is_loading: AtomicBool::new(false),
            reported: Mutex::default(),
        }
    }

    /// Whether the blocks on disk are still being imported and validated: Core's `LoadingBlocks`. Until that is done,
    /// no block and no header is requested from peers, and those they send are ignored.
    pub fn is_loading(&self) -> bool {
        self.is_loading.load(Ordering::Acquire)
    }

    /// Core's `ImportingNow`. The tip at the end of it is to be reported again.
    pub fn set_loading(&self, is_loading: bool) {
        *lock(&self.reported) = None;
        self.is_loading.store(is_loading, Ordering::Release);
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Updates with the tip of the active chain, given by its time and chain work; `now` in seconds since 1970. Returns
    /// true if this ended the initial download, so that the caller logs it. To be called at startup and whenever the
    /// tip changes: Core's `UpdateIBDStatus`. Another report of the same tip changes nothing.
    pub fn note_tip(&self, time: u32, chain_work: U256, now: i64) -> bool {
        if !self.is_on()
            || self.is_loading()
            || lock(&self.reported).replace((time, chain_work)) == Some((time, chain_work))
        {
            return false;
        }
        let is_recent = i64::from(time) >= now.saturating_sub(self.tip_age_seconds_max);
        is_recent && chain_work >= self.minimum_chain_work && self.is_on.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough work and a recent tip end it for good, and are reported once.
    #[test]
    fn it_ends_once() {
        let work = U256::from_u64(1_000);
        let initial = InitialDownload::new(work, 600);
        assert!(!initial.note_tip(10_000, U256::from_u64(999), 10_000), "too little work");
        assert!(!initial.note_tip(10_000, work, 10_601), "too old");
        assert!(!initial.note_tip(10_000, work, 10_600), "reported before");
        assert!(initial.is_on());
        assert!(initial.note_tip(10_001, work, 10_601));
        assert!(!initial.is_on());
        assert!(!initial.note_tip(10_002, work, 10_600), "it is over");
        assert!(!initial.note_tip(0, U256::ZERO, i64::MAX) && !initial.is_on(), "an old tip changes nothing");
        // `-maxtipage` may be any number.
        assert!(InitialDownload::new(work, i64::MAX).note_tip(0, work, i64::MAX));
        assert!(!InitialDownload::new(work, i64::MIN).note_tip(u32::MAX, work, 1));
    }

    /// A recent tip does not end the initial download while stored blocks are being loaded: Core's `UpdateIBDStatus`.
    #[test]
    fn it_lasts_while_blocks_are_loaded() {
        let initial = InitialDownload::new(U256::ZERO, 600);
        initial.set_loading(true);
        assert!(!initial.note_tip(10_000, U256::ZERO, 10_000) && initial.is_on());
        initial.set_loading(false);
        assert!(initial.note_tip(10_000, U256::ZERO, 10_000) && !initial.is_on());
    }
}
