//! [`Control`]: what an operator does with the clients of a running server.
//!
//! Input: ids of connections, subnets. Output: connections that end. A client on this machine cannot be banned, so that
//! no ban locks the operator out.

use crate::allow::Subnet;
use crate::bans::{Ban, BanError};
use crate::places::Places;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The clients of a server. It outlives the server, and does nothing then.
#[derive(Clone, Debug)]
pub struct Control(pub(crate) Arc<Places>);

impl Control {
    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.0.count()
    }

    /// Ends a connection soon. Returns whether it was open.
    pub fn disconnect(&self, id: u64) -> bool {
        self.0.close(id)
    }

    /// Ends the connections of a subnet, and refuses new ones for so long.
    pub fn ban(&self, subnet: Subnet, time: Duration) -> Result<(), BanError> {
        self.0.ban(subnet, time)
    }

    /// Returns whether there was a ban of exactly this subnet.
    pub fn unban(&self, subnet: &Subnet) -> bool {
        self.0.unban(subnet)
    }

    /// In the order in which they were made.
    pub fn bans(&self) -> Vec<Ban> {
        self.0.bans()
    }

    pub fn clear_bans(&self) {
        self.0.clear_bans();
    }
}

/// A client that has a session, for operators. It names nothing that the client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// The number of the connection, as in the log.
    pub id: u64,
    pub address: SocketAddr,
    /// Whether it is on this machine.
    pub is_local: bool,
    /// The version of the protocol that was agreed on.
    pub version: Option<String>,
    /// The name that the client gave itself.
    pub client: String,
    /// Time since the connection was accepted, and since its last byte.
    pub age: Duration,
    pub idle: Duration,
    pub subscriptions: usize,
    pub requests: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    /// What its answers cost so far.
    pub cost: u64,
    /// The sum of its subnet now.
    pub subnet_cost: u64,
}
