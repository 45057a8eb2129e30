//! Messages to the service manager that started the process, by the protocol of `sd_notify(3)`: ready, the line of the
//! display, alive, stopping. Without `NOTIFY_SOCKET` in the environment, nothing is sent.
//!
//! In a node, [`is_alive`] is called by the thread that writes the status file, after the file is written: a disk or a
//! lock that answers no more ends the watchdog's patience. In a front end, it is the thread that looks at the health.

use sd_notify::NotifyState;

/// The process serves.
pub(crate) fn is_ready() {
    send(&[NotifyState::Ready]);
}

/// What the process does, in one line.
pub(crate) fn is_alive(sentence: &str) {
    let line = sentence.replace('\n', " ");
    send(&[NotifyState::Status(&line), NotifyState::Watchdog]);
}

pub(crate) fn is_stopping() {
    send(&[NotifyState::Stopping]);
}

fn send(states: &[NotifyState<'_>]) {
    // If the manager is gone, nothing waits for the message.
    let _ = sd_notify::notify(states);
}
