//! Workers that share one list of work: the whole synchronisation of a run.
//!
//! Input: a [`Crew`], which decides what to do next, does it and enters the result. Output: the state after all work is
//! done, or the first error. Decisions and reports hold the one lock; work holds none.
//!
//! Invariants: a worker that takes work wakes one that waits, which finds more work and wakes the next one, or waits
//! again; so all workers work while there is work for them, and those without are left alone. An error, a panic and the
//! end wake all, so that all workers return whatever happens to one. After an error or a panic, or once no work is
//! left, none is started. A panic continues in the caller once every worker has returned. Workers wait without a
//! time-out: while one waits another works (the crew guarantees it), and that one checks whether the run is cancelled.
//! Cost: two lock acquisitions per unit of work, and a system call if others wait. It must never know what the work is.
//!
//! The tests compile this file again with the locks and threads of `shuttle`, which run in every order.

use super::sync::{Condvar, Mutex, MutexGuard, scope};
use lydian_stdx::IgnorePoison;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::TryLockError;

/// The next step of a worker.
pub(crate) enum Step<W> {
    Work(W),
    /// No work now; another worker is busy, and its report will change that.
    Wait,
    /// No work any more: no worker is asked again, so that a run never continues with only some of its workers.
    Done,
}

/// The work of a run and how to do it.
pub(crate) trait Crew: Sync {
    /// The state shared under the lock.
    type State: Send;
    type Work;
    type Report;
    type Error: Send;
    /// What is left after a report, to be dropped outside the lock.
    type Rest;

    /// Called under the lock. Returns [`Step::Wait`] only while another worker is busy.
    fn next(&self, state: &mut Self::State) -> Step<Self::Work>;

    /// Called outside the lock.
    fn perform(&self, work: Self::Work) -> Result<Self::Report, Self::Error>;

    /// Called under the lock.
    fn enter(&self, state: &mut Self::State, report: Self::Report) -> Option<Self::Rest>;

    /// Runs `wait`, the wait for work; the crew may measure its time.
    fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
        wait()
    }

    /// Runs `wait`, the wait for the lock, which another worker holds; the crew may measure its time.
    fn wait_for_lock<T>(&self, wait: impl FnOnce() -> T) -> T {
        wait()
    }
}

/// Does all work with `workers` threads, including the caller's.
///
/// # Panics
/// If a worker panics.
pub(crate) fn work_off<C: Crew>(crew: &C, state: C::State, workers: usize) -> Result<C::State, C::Error> {
    let board = Mutex::new(Board { state, waiting: 0, end: None, is_over: false });
    let pool = WorkerPool { crew, board, wake: Condvar::new() };
    scope(|scope| {
        for _ in 1..workers {
            scope.spawn(|| pool.work());
        }
        pool.work();
    });
    let board = pool.board.into_inner().ignore_poison();
    match board.end {
        None => Ok(board.state),
        Some(End::Error(error)) => Err(error),
        Some(End::Panic(payload)) => resume_unwind(payload),
    }
}

struct WorkerPool<'a, C: Crew> {
    crew: &'a C,
    board: Mutex<Board<C>>,
    wake: Condvar,
}

struct Board<C: Crew> {
    state: C::State,
    /// The number of workers that wait for work.
    waiting: usize,
    end: Option<End<C::Error>>,
    /// Whether a worker has found no work left.
    is_over: bool,
}

/// Why no more work is started.
enum End<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
}

impl<C: Crew> WorkerPool<'_, C> {
    fn lock(&self) -> MutexGuard<'_, Board<C>> {
        match self.board.try_lock() {
            Ok(board) => board,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.crew.wait_for_lock(|| self.board.lock().ignore_poison()),
        }
    }

    /// Wakes a worker that waits, if there may be work for it.
    fn wake_one(&self, board: &Board<C>) {
        if board.waiting > 0 {
            self.wake.notify_one();
        }
    }

    /// The body of one worker. After a panic the state is not used again, so it may be left inconsistent.
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
                    board.waiting += 1;
                    board = self.crew.wait(|| self.wake.wait(board).ignore_poison());
                    board.waiting -= 1;
                }
                Step::Work(work) => {
                    self.wake_one(&board);
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
                    if rest.is_some() {
                        self.wake_one(&board);
                        drop(board);
                        drop(rest);
                        board = self.lock();
                    }
                }
            }
        }
    }
}
