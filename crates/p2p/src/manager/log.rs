//! Log lines with Bitcoin Core's texts.
//!
//! Input: events. Output: [`Action::Log`]. A debug line is created only if its category is logged; addresses of peers
//! are included only with `-logips`.

use super::{Action, PeerId, PeerManager};
use lydian_engine::{LogLevel, LogLine, LogSwitches};

pub(super) const NET: &str = "net";
pub(super) const ADDRMAN: &str = "addrman";
pub(super) const VALIDATION: &str = "validation";

impl PeerManager {
    /// Sets what is logged from now on. Before the first call, everything is logged.
    pub fn set_log_switches(&mut self, switches: LogSwitches) {
        self.switches = switches;
        self.addrman.set_logged(self.switches.is_on(ADDRMAN));
    }

    /// Logs a line of the category `net`.
    #[track_caller]
    pub(super) fn log_debug(&mut self, text: String) {
        if self.switches.is_on(NET) {
            self.actions.push(Action::Log(LogLine::new(LogLevel::Debug(NET), text)));
        }
    }

    /// Logs a line of the category `net`. The text is created only if it is logged.
    #[track_caller]
    pub(super) fn debug(&mut self, text: impl FnOnce(&PeerManager) -> String) {
        if self.switches.is_on(NET) {
            let line = LogLine::new(LogLevel::Debug(NET), text(self));
            self.actions.push(Action::Log(line));
        }
    }

    /// Logs a line of the default level.
    #[track_caller]
    pub(super) fn log_info(&mut self, text: String) {
        self.log_at(LogLevel::Info, text);
    }

    #[track_caller]
    pub(super) fn log_at(&mut self, level: LogLevel, text: String) {
        self.actions.push(Action::Log(LogLine::new(level, text)));
    }

    /// Core's `LogPeer`.
    pub(super) fn log_peer(&self, id: PeerId) -> String {
        match self.peers.get(&id).filter(|_| self.switches.has_ips()) {
            Some(peer) => format!("peer={id}, peeraddr={}", peer.talk.connection.endpoint),
            None => format!("peer={id}"),
        }
    }

    /// Disconnects a peer for a reason, a sentence without its end: the log line gets the suffix of Core's
    /// `DisconnectMsg`.
    #[track_caller]
    pub(super) fn leave(&mut self, id: PeerId, reason: impl Into<String>) {
        self.leave_at(id, LogLevel::Debug(NET), reason.into());
    }

    /// Disconnects a peer like `leave`, at another log level.
    #[track_caller]
    pub(super) fn leave_at(&mut self, id: PeerId, level: LogLevel, reason: String) {
        if self.peers.get(&id).is_some_and(|peer| !peer.is_leaving) {
            if !matches!(level, LogLevel::Debug(category) if !self.switches.is_on(category)) {
                let text = format!("{reason}, disconnecting {}", self.log_peer(id));
                self.log_at(level, text);
            }
            self.end_connection(id, reason);
        }
    }
}
