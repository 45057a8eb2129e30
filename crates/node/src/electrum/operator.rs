//! The Electrum server, as RPC sees it.

use super::bans::SavedBans;
use lydian_electrum::Operator;
use lydian_rpc::ElectrumServer;
use lydian_serve::{Ban, BanError, SessionInfo, Subnet};
use lydian_stdx::lock;
use std::sync::Mutex;
use std::time::Duration;

/// Passes questions of methods on, and keeps the bans.
#[derive(Debug)]
pub(super) struct ForRpc {
    operator: Operator,
    /// Locked while bans change, so that the file has the last change.
    saved: Mutex<SavedBans>,
}

impl ForRpc {
    /// The bans of earlier processes count from now on.
    pub(super) fn new(operator: Operator, saved: SavedBans) -> ForRpc {
        for ban in saved.read() {
            if let Err(error) = operator.ban(ban.subnet, ban.left) {
                saved.leaves_out(&ban, &error);
            }
        }
        ForRpc { operator, saved: Mutex::new(saved) }
    }

    /// Changes the bans, and saves them.
    fn change<T>(&self, make: impl FnOnce(&Operator) -> T) -> T {
        let saved = lock(&self.saved);
        let result = make(&self.operator);
        saved.write(&self.operator.bans());
        result
    }
}

impl ElectrumServer for ForRpc {
    fn sessions(&self) -> Vec<SessionInfo> {
        self.operator.sessions()
    }

    fn disconnect(&self, id: u64) -> bool {
        self.operator.disconnect(id)
    }

    fn ban(&self, subnet: Subnet, time: Duration) -> Result<(), BanError> {
        self.change(|operator| operator.ban(subnet, time))
    }

    fn unban(&self, subnet: &Subnet) -> bool {
        self.change(|operator| operator.unban(subnet))
    }

    fn bans(&self) -> Vec<Ban> {
        self.operator.bans()
    }

    fn clear_bans(&self) {
        self.change(Operator::clear_bans);
    }
}
