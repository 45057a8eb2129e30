//! What the display is told of the network: the manager's figures, copied by its thread a few times a second, so that nobody who looks at them holds it up.

use lydian_p2p::manager::SyncFigures;
use std::sync::{Mutex, PoisonError};

/// The last copy.
#[derive(Debug, Default)]
pub struct Figures(Mutex<SyncFigures>);

impl Figures {
    /// As they were a moment ago.
    pub fn get(&self) -> SyncFigures {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, figures: SyncFigures) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }
}
