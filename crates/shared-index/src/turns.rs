//! [`Turns`]: a bound of what is under way at the same time, in the order in which it came.
//!
//! Input: how much a thread wants to have under way. Output: a [`Turn`] once there is room, or an error after a while.
//! The one that came first goes first, so that one who needs much is not passed by many who need little.

use crate::store::StoreError;
use lydian_stdx::{IgnorePoison, lock};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
    max: usize,
    wait_max: Duration,
}

#[derive(Debug)]
struct State {
    /// How much more may be under way.
    free: usize,
    /// The number of the next one who waits.
    next: u64,
    /// The numbers of those who wait, from the first on.
    waiting: VecDeque<u64>,
}

/// Its part is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    count: usize,
}

impl Turns {
    /// `max`: under way at the same time; `wait_max`: how long a thread waits.
    pub(crate) fn new(max: usize, wait_max: Duration) -> Turns {
        let state = State { free: max, next: 0, waiting: VecDeque::new() };
        Turns { state: Mutex::new(state), changed: Condvar::new(), max, wait_max }
    }

    /// Waits for a turn. More than the bound counts as the bound.
    pub(crate) fn wait(&self, count: usize) -> Result<Turn<'_>, StoreError> {
        let count = count.min(self.max);
        let mut state = lock(&self.state);
        let own = state.next;
        state.next += 1;
        state.waiting.push_back(own);
        let must_wait = |state: &mut State| state.waiting.front() != Some(&own) || state.free < count;
        let (mut state, _) = self.changed.wait_timeout_while(state, self.wait_max, must_wait).ignore_poison();
        let is_over = must_wait(&mut state);
        state.waiting.retain(|other| *other != own);
        if !is_over {
            state.free -= count;
        }
        drop(state);
        // There may be room for the one behind.
        self.changed.notify_all();
        if is_over {
            let (max, seconds) = (self.max, self.wait_max.as_secs());
            let reason = format!("{max} reads for other questions were under way for {seconds} s");
            return Err(StoreError::TimedOut { reason });
        }
        Ok(Turn { turns: self, count })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.turns.state).free += self.count;
        self.turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::READS_MAX;
    use std::sync::mpsc::sync_channel;

    const LONG: Duration = Duration::from_secs(60);

    /// limit: READS_MAX at
    /// limit: READS_MAX above
    #[test]
    fn no_more_is_under_way_than_the_bound() {
        let turns = Turns::new(READS_MAX, Duration::from_millis(1));
        let some = turns.wait(READS_MAX - 1).unwrap();
        let last = turns.wait(1).unwrap();
        let error = turns.wait(1).unwrap_err();
        let text = "the store of the index does not answer in time: 1024 reads for other questions were under way for \
                    0 s; try again";
        assert_eq!((error.to_string().as_str(), error.may_pass()), (text, true));
        drop(last);
        drop((turns.wait(1).unwrap(), some));
        // Whatever needs more than there can be has all of it.
        let all = turns.wait(READS_MAX + 1).unwrap();
        assert!(turns.wait(1).is_err());
        drop(all);
        assert_eq!(lock(&turns.state).free, READS_MAX);
    }

    #[test]
    fn one_who_needs_much_is_not_passed_by_those_who_need_little() {
        let turns = Turns::new(10, LONG);
        let first = turns.wait(1).unwrap();
        std::thread::scope(|scope| {
            let (sender, order) = sync_channel(3);
            for (number, count) in [(0_u64, 10), (1, 1), (2, 1)] {
                let (turns, sender) = (&turns, sender.clone());
                scope.spawn(move || {
                    let turn = turns.wait(count).unwrap();
                    sender.send(number).unwrap();
                    drop(turn);
                });
                // In order.
                while lock(&turns.state).waiting.len() <= usize::try_from(number).unwrap() {
                    std::thread::yield_now();
                }
            }
            drop(first);
            let first = order.recv_timeout(LONG).unwrap();
            assert_eq!(first, 0);
            assert_eq!(order.recv_timeout(LONG).unwrap() + order.recv_timeout(LONG).unwrap(), 3);
        });
    }
}
