//! [`Registry`]: the open sessions. [`Operator`] lists and ends them.
//!
//! Input: sessions that begin and end. Output: [`SessionInfo`], which names no script and no transaction that a wallet
//! asks for. Invariant: it holds sessions, and nothing of the node, so that it may outlive the server.

use crate::figures::Counts;
use crate::session::Session;
use lydian_serve::{Ban, BanError, Control, SessionInfo, Subnet};
use lydian_stdx::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The open sessions by the numbers of their connections.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<BTreeMap<u64, Arc<Session>>>);

impl Registry {
    pub(crate) fn add(&self, session: &Arc<Session>) {
        lock(&self.0).insert(session.connection().id(), Arc::clone(session));
    }

    pub(crate) fn remove(&self, session: &Session) {
        lock(&self.0).remove(&session.connection().id());
    }

    /// The numbers of sessions and of their subscriptions.
    pub(crate) fn totals(&self) -> (usize, usize) {
        let sessions = lock(&self.0);
        (sessions.len(), sessions.values().map(|session| session.subscriptions()).sum())
    }

    fn list(&self) -> Vec<SessionInfo> {
        let sessions: Vec<Arc<Session>> = lock(&self.0).values().map(Arc::clone).collect();
        sessions.iter().map(|session| session.info()).collect()
    }
}

/// What an operator may see and do while the server runs.
#[derive(Clone, Debug)]
pub struct Operator {
    pub(crate) registry: Arc<Registry>,
    pub(crate) control: Control,
    pub(crate) counts: Arc<Counts>,
}

impl Operator {
    /// The sessions that have sent a byte, the oldest first.
    pub fn sessions(&self) -> Vec<SessionInfo> {
        self.registry.list()
    }

    /// Ends a session soon. Returns whether there was one.
    pub fn disconnect(&self, id: u64) -> bool {
        self.control.disconnect(id)
    }

    /// Ends the sessions of a subnet, and refuses its clients for so long; not those on this machine.
    pub fn ban(&self, subnet: Subnet, time: Duration) -> Result<(), BanError> {
        self.control.ban(subnet, time)
    }

    /// Returns whether there was a ban of exactly this subnet.
    pub fn unban(&self, subnet: &Subnet) -> bool {
        self.control.unban(subnet)
    }

    /// In the order in which they were made.
    pub fn bans(&self) -> Vec<Ban> {
        self.control.bans()
    }

    pub fn clear_bans(&self) {
        self.control.clear_bans();
    }
}
