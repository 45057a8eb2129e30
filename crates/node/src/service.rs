//! Messages to the service manager that started the process, by the protocol of `sd_notify(3)`: ready, the line of the
//! display, alive, stopping. Without `NOTIFY_SOCKET` in the environment, nothing is sent.
//!
//! [`is_alive`] is called by the thread that writes the status file, after the file is written: a disk or a lock that
//! answers no more ends the watchdog's patience.

use sd_notify::NotifyState;

/// RPC answers, and the node serves.
pub(crate) fn is_ready() {
    send(&[NotifyState::Ready]);
}

/// What the node does, in one line.
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
