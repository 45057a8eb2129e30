//! [`Guesses`]: limits how many passwords of one address are checked at once. A wrong one keeps its turn for 250 ms.
//!
//! Input: addresses. Output: a [`Turn`], or a refusal.
//!
//! Core sleeps in a thread after a wrong password, so all addresses together have 64 guesses a second. Here each
//! address has that number and no thread sleeps: clients of other addresses do not wait. The newest guess gets the next
//! turn, so that an attacker's queue does not lock out a client of the same address. A client that disconnects does not
//! free its turn earlier. Cost: one entry per address with a guess in progress.

use crate::limits::{GUESSES_AT_ONCE_MAX, GUESSES_WAITING_MAX};
use crate::places::Group;
use lydian_stdx::lock;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::oneshot;

#[derive(Debug, Default)]
pub(super) struct Guesses(Mutex<HashMap<Group, GroupGuesses>>);

/// The guesses of one address.
#[derive(Debug, Default)]
struct GroupGuesses {
    turns: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// The right to check a password, until this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    guesses: Arc<Guesses>,
    group: Group,
    /// False once it was passed on.
    is_held: bool,
}

impl Guesses {
    fn lock(&self) -> MutexGuard<'_, HashMap<Group, GroupGuesses>> {
        lock(&self.0)
    }

    /// Waits for a turn. Returns `None` if too many wait.
    pub(super) async fn turn(self: &Arc<Guesses>, group: Group) -> Option<Turn> {
        let turn = {
            let mut groups = self.lock();
            let guesses = groups.entry(group).or_default();
            if guesses.turns < GUESSES_AT_ONCE_MAX {
                guesses.turns += 1;
                return Some(Turn { guesses: Arc::clone(self), group, is_held: true });
            }
            guesses.waiting.retain(|waiting| !waiting.is_closed());
            if guesses.waiting.len() >= GUESSES_WAITING_MAX {
                guesses.waiting.pop_front();
            }
            let (sender, turn) = oneshot::channel();
            guesses.waiting.push_back(sender);
            turn
        };
        turn.await.ok()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        while std::mem::take(&mut self.is_held) {
            let next = {
                let mut groups = self.guesses.lock();
                let Some(guesses) = groups.get_mut(&self.group) else { return };
                let next = guesses.waiting.pop_back();
                if next.is_none() {
                    guesses.turns -= 1;
                    if guesses.turns == 0 {
                        groups.remove(&self.group);
                    }
                }
                next
            };
            let Some(next) = next else { return };
            let turn = Turn { guesses: Arc::clone(&self.guesses), group: self.group, is_held: true };
            if let Err(mut turn) = next.send(turn) {
                // The client has disconnected, so this turn is still ours.
                turn.is_held = false;
                self.is_held = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(last: u8) -> Group {
        Group::of([192, 0, 2, last].into())
    }

    /// Returns the turn if it is available immediately.
    async fn at_once(guesses: &Arc<Guesses>, group: Group) -> Option<Turn> {
        tokio::select! {
            biased;
            turn = guesses.turn(group) => turn,
            () = async {} => None,
        }
    }

    /// 800 connections had 3,200 guesses a second, since each waited on its own. Now an address has 16 turns of 250 ms,
    /// however many connections it has, and other addresses do not wait.
    ///
    /// limit: GUESSES_AT_ONCE_MAX at
    /// limit: GUESSES_AT_ONCE_MAX above
    #[tokio::test]
    async fn an_address_has_few_guesses_at_once() {
        let guesses = Arc::new(Guesses::default());
        let mut held = Vec::new();
        for _ in 0..GUESSES_AT_ONCE_MAX {
            held.extend(at_once(&guesses, group(1)).await);
        }
        assert_eq!(held.len(), GUESSES_AT_ONCE_MAX);
        assert!(at_once(&guesses, group(1)).await.is_none());
        assert!(at_once(&guesses, group(2)).await.is_some(), "another address");
        // Clients that disconnected while they waited have no turn, and no turn is lost.
        held.pop();
        held.extend(at_once(&guesses, group(1)).await);
        assert_eq!(held.len(), GUESSES_AT_ONCE_MAX);
        held.clear();
        assert!(guesses.lock().is_empty(), "no entry is left");
    }

    /// limit: GUESSES_WAITING_MAX at
    /// limit: GUESSES_WAITING_MAX above
    #[tokio::test]
    async fn the_newest_has_the_next_turn() {
        let guesses = Arc::new(Guesses::default());
        let mut held = Vec::new();
        for _ in 0..GUESSES_AT_ONCE_MAX {
            held.extend(guesses.turn(group(1)).await);
        }
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for index in 0..=GUESSES_WAITING_MAX {
            let (guesses, order) = (Arc::clone(&guesses), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                let turn = guesses.turn(group(1)).await;
                order.lock().unwrap().push(index);
                turn.is_none()
            }));
            tokio::task::yield_now().await;
        }
        // The oldest was refused when the last arrived; the others get their turns starting with the newest.
        held.pop();
        for (index, waiting) in waiting.into_iter().enumerate() {
            assert_eq!(waiting.await.unwrap(), index == 0);
        }
        let expected: Vec<usize> = std::iter::once(0).chain((1..=GUESSES_WAITING_MAX).rev()).collect();
        assert_eq!(*order.lock().unwrap(), expected);
        held.clear();
        assert!(guesses.lock().is_empty());
    }
}
