//! [`ElectrumServer`]: the server for Electrum wallets, as the methods about it see it.

use lydian_serve::{Ban, BanError, Subnet};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Access to the Electrum server of the node.
pub trait ElectrumServer: fmt::Debug + Send + Sync {
    /// The oldest first.
    fn sessions(&self) -> Vec<ElectrumSession>;

    /// Ends a session. Returns whether there was one.
    fn disconnect(&self, id: u64) -> bool;

    /// Ends the sessions of a subnet, and refuses its clients for so long; not those on this machine.
    ///
    /// # Errors
    ///
    /// There are too many bans, or it would be too long.
    fn ban(&self, subnet: Subnet, time: Duration) -> Result<(), BanError>;

    /// Returns whether there was a ban of exactly this subnet.
    fn unban(&self, subnet: &Subnet) -> bool;

    /// In the order in which they were made.
    fn bans(&self) -> Vec<Ban>;

    fn clear_bans(&self);
}

/// A wallet that is connected. It names no script that the wallet asks for.
#[derive(Clone, Debug)]
pub struct ElectrumSession {
    pub id: u64,
    pub address: SocketAddr,
    pub is_local: bool,
    /// The version of the protocol that was agreed on.
    pub version: Option<String>,
    /// The name that the client gave itself.
    pub client: String,
    pub age: Duration,
    /// Time since the last byte.
    pub idle: Duration,
    pub subscriptions: usize,
    pub requests: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    /// What its answers cost so far, and the sum of its subnet now.
    pub cost: u64,
    pub subnet_cost: u64,
}
