//! The Electrum server, as RPC sees it.

use lydian_electrum::Operator;
use lydian_rpc::ElectrumServer;
use lydian_serve::{Ban, BanError, SessionInfo, Subnet};
use std::time::Duration;

/// Passes questions of methods on.
#[derive(Debug)]
pub(super) struct ForRpc(pub(super) Operator);

impl ElectrumServer for ForRpc {
    fn sessions(&self) -> Vec<SessionInfo> {
        self.0.sessions()
    }

    fn disconnect(&self, id: u64) -> bool {
        self.0.disconnect(id)
    }

    fn ban(&self, subnet: Subnet, time: Duration) -> Result<(), BanError> {
        self.0.ban(subnet, time)
    }

    fn unban(&self, subnet: &Subnet) -> bool {
        self.0.unban(subnet)
    }

    fn bans(&self) -> Vec<Ban> {
        self.0.bans()
    }

    fn clear_bans(&self) {
        self.0.clear_bans();
    }
}
