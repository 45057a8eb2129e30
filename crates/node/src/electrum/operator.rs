//! The Electrum server, as RPC sees it.

use lydian_electrum::{Operator, SessionInfo};
use lydian_rpc::{ElectrumServer, ElectrumSession};
use lydian_serve::{Ban, BanError, Subnet};
use std::time::Duration;

/// Passes questions of methods on.
#[derive(Debug)]
pub(super) struct ForRpc(pub(super) Operator);

impl ElectrumServer for ForRpc {
    fn sessions(&self) -> Vec<ElectrumSession> {
        self.0.sessions().into_iter().map(to_rpc).collect()
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

fn to_rpc(session: SessionInfo) -> ElectrumSession {
    let SessionInfo { id, address, is_local, version, client, age, idle, subscriptions, .. } = session;
    let SessionInfo { requests, bytes_received, bytes_sent, cost, subnet_cost, .. } = session;
    ElectrumSession {
        id,
        address,
        is_local,
        version,
        client,
        age,
        idle,
        subscriptions,
        requests,
        bytes_received,
        bytes_sent,
        cost,
        subnet_cost,
    }
}
