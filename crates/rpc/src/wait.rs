//! [`TipWatch`]: sleeping until the tip moves. Input: wakes, from whoever moves the tip. Output: the end of a wait, at the latest at its
//! time. Reads no clock but through the wait itself.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Counts the moves of the tip.
#[derive(Debug, Default)]
pub struct TipWatch {
    moves: Mutex<u64>,
    moved: Condvar,
}

impl TipWatch {
    /// The tip moved, or waits shall end.
    pub fn wake(&self) {
        *self.moves.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.moved.notify_all();
    }

    /// To be asked before one looks at the tip, so that no move is missed.
    pub fn moves(&self) -> u64 {
        *self.moves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps while there were no moves beyond `seen`, at most so long.
    pub fn wait(&self, seen: u64, at_most: Duration) {
        let moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        // An end by time and one by a move are the same to the caller, who looks again.
        let _ = self.moved.wait_timeout_while(moves, at_most, |moves| *moves == seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn a_move_ends_a_wait_whenever_it_comes() {
        let watch = Arc::new(TipWatch::default());
        let seen = watch.moves();
        let waker = Arc::clone(&watch);
        let waking = thread::spawn(move || waker.wake());
        watch.wait(seen, Duration::from_secs(60));
        waking.join().unwrap();
        assert_eq!(watch.moves(), seen + 1);
        watch.wait(seen, Duration::from_secs(60));
    }
}
