//! [`ScanState`]: the running `scantxoutset` or `scanblocks`, as other calls see it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// State of the running scan, if there is one.
#[derive(Debug, Default)]
pub(crate) struct ScanState {
    is_running: AtomicBool,
    must_end: AtomicBool,
    percent: AtomicU8,
    height: AtomicU32,
}

/// A running scan, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RunningScan<'a>(&'a ScanState);

impl ScanState {
    /// Returns `None` if a scan is running.
    pub(crate) fn begin(&self) -> Option<RunningScan<'_>> {
        let is_free = !self.is_running.swap(true, Ordering::SeqCst);
        is_free.then(|| {
            self.must_end.store(false, Ordering::SeqCst);
            self.percent.store(0, Ordering::SeqCst);
            RunningScan(self)
        })
    }

    /// The progress of the running scan, in percent; `None` if none is running.
    pub(crate) fn percent(&self) -> Option<u8> {
        let percent = self.percent.load(Ordering::SeqCst);
        self.is_running.load(Ordering::SeqCst).then_some(percent)
    }

    /// The progress of the running scan, and the height that it has reached.
    pub(crate) fn progress(&self) -> Option<(u8, u32)> {
        Some((self.percent()?, self.height.load(Ordering::SeqCst)))
    }

    /// Asks the running scan to end. Returns whether one is running.
    pub(crate) fn abort(&self) -> bool {
        let is_running = self.is_running.load(Ordering::SeqCst);
        self.must_end.store(is_running, Ordering::SeqCst);
        is_running
    }
}

impl RunningScan<'_> {
    pub(crate) fn set_percent(&self, percent: u8) {
        self.0.percent.store(percent, Ordering::SeqCst);
    }

    pub(crate) fn set_progress(&self, percent: u8, height: u32) {
        self.0.height.store(height, Ordering::SeqCst);
        self.set_percent(percent);
    }

    /// Whether another call asked for its end.
    pub(crate) fn must_end(&self) -> bool {
        self.0.must_end.load(Ordering::SeqCst)
    }
}

impl Drop for RunningScan<'_> {
    fn drop(&mut self) {
        self.0.is_running.store(false, Ordering::SeqCst);
    }
}
