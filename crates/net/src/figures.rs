//! Figures of the network for a display.
//!
//! The manager's thread copies its figures here a few times a second, so that reading them does not block it.

use lydian_p2p::manager::SyncFigures;
use lydian_stdx::lock;
use std::sync::Mutex;

/// The last copy of the figures.
#[derive(Debug, Default)]
pub struct Figures(Mutex<SyncFigures>);

impl Figures {
    /// Returns the figures as they were a moment ago.
    pub fn get(&self) -> SyncFigures {
        *lock(&self.0)
    }

    pub(crate) fn set(&self, figures: SyncFigures) {
        *lock(&self.0) = figures;
    }
}
