//! Workers that share one list of what is to be done: the whole synchronisation of a run.
//!
//! Input: a [`Crew`], which says what to do next, does it and enters what came of it. Output: the state after everything is
//! done, or the first error. Every question and every report holds the one lock, every work none. Invariants: a worker that
//! waits is woken by the next report, by an error and by a panic, so all of them return whatever happens to one; after an
//! error or a panic nothing is begun, nor after anybody was told that nothing is left; a panic goes on in the caller once every worker has returned. Nobody waits with a
//! time-out: while one waits another works (the crew's promise), and looks for itself whether the run is cancelled. Cost: two
//! lockings for each work. It must never know what the work is.
//!
//! The tests compile this file once more with the locks and threads of `shuttle`, which run in every order.

use super::sync::{Condvar, Mutex, MutexGuard, scope};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;

/// What to do next.
pub(super) enum Step<W> {
    Work(W),
    /// Nothing now; somebody works, and the report will change that.
    Wait,
    /// Nothing any more: nobody is asked again, so that no run goes on with a part of its workers.
    Done,
}

/// Those who work, and on what.
pub(super) trait Crew: Sync {
    /// What they share under the lock.
    type State: Send;
    type Work;
    type Report;
    type Error: Send;
    /// What a report leaves over, to be let go of outside the lock.
    type Rest;

    /// Under the lock. [`Step::Wait`] only while another works.
    fn next(&self, state: &mut Self::State) -> Step<Self::Work>;

    /// Outside the lock.
    fn perform(&self, work: Self::Work) -> Result<Self::Report, Self::Error>;

    /// Under the lock.
    fn enter(&self, state: &mut Self::State, report: Self::Report) -> Option<Self::Rest>;

    /// Waits, and may look at the time before and after.
    fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
        wait()
    }
}

/// Does everything there is to do with so many threads, the caller's among them.
///
/// # Panics
/// If a worker does.
pub(super) fn work_off<C: Crew>(crew: &C, state: C::State, workers: usize) -> Result<C::State, C::Error> {
    let desk = Desk { crew, board: Mutex::new(Board { state, end: None, is_over: false }), wake: Condvar::new() };
    scope(|scope| {
        for _ in 1..workers {
            scope.spawn(|| desk.work());
        }
        desk.work();
    });
    let board = desk.board.into_inner().unwrap_or_else(PoisonError::into_inner);
    match board.end {
        None => Ok(board.state),
        Some(End::Error(error)) => Err(error),
        Some(End::Panic(payload)) => resume_unwind(payload),
    }
}

struct Desk<'a, C: Crew> {
    crew: &'a C,
    board: Mutex<Board<C>>,
    wake: Condvar,
}

struct Board<C: Crew> {
    state: C::State,
    end: Option<End<C::Error>>,
    /// Somebody was told that nothing is left.
    is_over: bool,
}

/// Why nothing more is begun.
enum End<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
}

impl<C: Crew> Desk<'_, C> {
    fn lock(&self) -> MutexGuard<'_, Board<C>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One worker's life. After a panic nobody looks at the state again, so that it may be left as it is.
    fn work(&self) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.take_turns())) {
            let mut board = self.lock();
            if !matches!(board.end, Some(End::Panic(_))) {
                board.end = Some(End::Panic(payload));
            }
        }
        self.wake.notify_all();
    }

    fn take_turns(&self) {
        let mut board = self.lock();
        while board.end.is_none() && !board.is_over {
            match self.crew.next(&mut board.state) {
                Step::Done => board.is_over = true,
                Step::Wait => {
                    board = self.crew.wait(|| self.wake.wait(board).unwrap_or_else(PoisonError::into_inner));
                }
                Step::Work(work) => {
                    drop(board);
                    let report = self.crew.perform(work);
                    board = self.lock();
                    let rest = match report {
                        Ok(report) => self.crew.enter(&mut board.state, report),
                        Err(error) => {
                            board.end.get_or_insert(End::Error(error));
                            None
                        }
                    };
                    self.wake.notify_all();
                    if rest.is_some() {
                        drop(board);
                        drop(rest);
                        board = self.lock();
                    }
                }
            }
        }
    }
}
