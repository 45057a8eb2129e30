//! Figures of the network for a display.
//!
//! The manager's thread copies its figures here a few times a second, so that reading them does not block it.

use lydian_p2p::manager::SyncFigures;
use std::sync::{Mutex, PoisonError};

/// The last copy of the figures.
#[derive(Debug, Default)]
pub struct Figures(Mutex<SyncFigures>);

impl Figures {
    /// Returns the figures as they were a moment ago.
    pub fn get(&self) -> SyncFigures {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, figures: SyncFigures) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }
}
