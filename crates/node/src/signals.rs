//! Signals. Input: SIGINT and SIGTERM (stop), SIGHUP (reopen the log, read settings again). Output: [`Stop`], a flag
//! that all running work checks; [`Hangups`], which wakes the threads that read settings again.
//!
//! Opening the node and importing files cannot be interrupted, and need not be: the process may end there at any moment
//! and nothing is lost. If a stop request arrives in such a phase and the phase does not end soon, the signal thread
//! ends the process.
//!
//! The thread that waits for signals does nothing else. A second stop request is only logged: started work is finished
//! first. A front end has none, so that it ends at once then.

use crate::log::Log;
use lydian_engine::Cancel;
use lydian_stdx::lock;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Whether the node should stop. Clones share the flag; the engine checks it between tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    cancel: Cancel,
    /// Whether the node is in a phase in which the process may end at any moment.
    is_open_ended: Arc<AtomicBool>,
    changed: Arc<(Mutex<()>, Condvar)>,
}

impl Stop {
    /// Requests a stop; returns false if one was requested already.
    pub(crate) fn ask(&self) -> bool {
        let _guard = lock(&self.changed.0);
        let is_first = !self.cancel.is_cancelled();
        self.cancel.cancel();
        self.changed.1.notify_all();
        is_first
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.cancel.is_cancelled()
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Enters or leaves a phase in which the process may end at any moment.
    pub(crate) fn set_open_ended(&self, is_open_ended: bool) {
        self.is_open_ended.store(is_open_ended, Ordering::SeqCst);
    }

    /// Whether such a phase continues for longer than a stop request may wait.
    fn is_stuck(&self) -> bool {
        let is_open_ended = || self.is_open_ended.load(Ordering::SeqCst);
        for _ in 0..OPEN_ENDED_WAIT.as_millis() / STEP.as_millis() {
            if !is_open_ended() {
                return false;
            }
            thread::sleep(STEP);
        }
        is_open_ended()
    }

    /// Sleeps until a stop is requested or [`Stop::wake`] is called, but at most for this time; not at all if
    /// `is_over`. What makes `is_over` true must call [`Stop::wake`] afterwards, without a lock that `is_over` takes.
    pub(crate) fn wait(&self, time: Duration, is_over: impl Fn() -> bool) {
        let guard = lock(&self.changed.0);
        if !self.is_asked() && !is_over() {
            // The caller checks again, so that waking early does no harm.
            let _ = self.changed.1.wait_timeout(guard, time);
        }
    }

    /// Wakes the threads that sleep in [`Stop::wait`].
    pub(crate) fn wake(&self) {
        let _guard = lock(&self.changed.0);
        self.changed.1.notify_all();
    }
}

/// Passes SIGHUP on to the threads that read settings again. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hangups(Arc<Mutex<Listeners>>);

#[derive(Debug, Default)]
struct Listeners {
    next: u64,
    senders: Vec<(u64, SyncSender<()>)>,
}

/// Names a receiver of [`Hangups::listen`].
#[derive(Debug)]
pub(crate) struct ListenerId(u64);

impl Hangups {
    /// The signals from now on; those that arrive while one waits are one.
    pub(crate) fn listen(&self) -> (ListenerId, Receiver<()>) {
        let (sender, receiver) = sync_channel(1);
        let mut listeners = lock(&self.0);
        let id = listeners.next;
        listeners.next += 1;
        listeners.senders.push((id, sender));
        (ListenerId(id), receiver)
    }

    /// Ends the receiver.
    pub(crate) fn forget(&self, listener: &ListenerId) {
        lock(&self.0).senders.retain(|(id, _)| *id != listener.0);
    }

    fn pass_on(&self) {
        for (_, sender) in &lock(&self.0).senders {
            // It is full if one waits already.
            let _ = sender.try_send(());
        }
    }
}

/// How long a stop request waits for the end of a phase in which the process may end at any moment.
const OPEN_ENDED_WAIT: Duration = Duration::from_secs(2);

const STEP: Duration = Duration::from_millis(50);

/// Catches signals from now on. `end` ends the process in the middle of its work.
pub(crate) fn catch(stop: &Stop, hangups: &Hangups, log: &Arc<Log>, end: impl Fn() + Send + 'static) -> io::Result<()> {
    watch(stop, hangups, log, Second::IsLogged, end)
}

/// The same in a front end: a second request ends the process, too.
pub(crate) fn catch_in_front_end(
    stop: &Stop,
    hangups: &Hangups,
    log: &Arc<Log>,
    end: impl Fn() + Send + 'static,
) -> io::Result<()> {
    watch(stop, hangups, log, Second::Ends, end)
}

/// What a second stop request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Second {
    IsLogged,
    Ends,
}

fn watch(
    stop: &Stop,
    hangups: &Hangups,
    log: &Arc<Log>,
    second: Second,
    end: impl Fn() + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let (stop, hangups, log) = (stop.clone(), hangups.clone(), Arc::clone(log));
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGHUP => {
                    log.reopen();
                    hangups.pass_on();
                }
                _ if stop.ask() => {
                    log.info("Shutdown requested. Exiting.");
                    if stop.is_stuck() {
                        end();
                    }
                }
                _ if second == Second::Ends => {
                    log.info("Shutdown requested again. Ending at once.");
                    end();
                }
                _ => log.info("Shutdown is already in progress."),
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any test takes: a thread that is not woken makes the test fail by its time.
    const LONG: Duration = Duration::from_secs(600);

    /// A wake-up between the look at the condition and the sleep is not lost.
    #[test]
    fn a_sleeper_is_woken_by_the_end_of_what_it_waits_for() {
        for _ in 0..200 {
            let (stop, is_over) = (Stop::default(), AtomicBool::new(false));
            let has_ended = || is_over.load(Ordering::Acquire);
            thread::scope(|scope| {
                scope.spawn(|| {
                    is_over.store(true, Ordering::Release);
                    stop.wake();
                });
                while !has_ended() {
                    stop.wait(LONG, has_ended);
                }
            });
            assert!(!stop.is_asked());
        }
    }

    #[test]
    fn every_listener_has_each_signal_until_it_is_forgotten() {
        let hangups = Hangups::default();
        hangups.pass_on();
        let ((first, one), (second, two)) = (hangups.listen(), hangups.listen());
        hangups.pass_on();
        hangups.pass_on();
        assert_eq!((one.try_iter().count(), two.try_iter().count()), (1, 1));
        hangups.forget(&first);
        hangups.clone().pass_on();
        assert_eq!((one.recv().is_err(), two.try_iter().count()), (true, 1));
        hangups.forget(&second);
        assert!(two.recv().is_err());
    }

    #[test]
    fn a_sleeper_is_woken_by_a_request_to_stop() {
        let stop = Stop::default();
        thread::scope(|scope| {
            scope.spawn(|| assert!(stop.ask()));
            while !stop.is_asked() {
                stop.wait(LONG, || false);
            }
        });
        assert!(!stop.ask(), "it was requested already");
    }
}
