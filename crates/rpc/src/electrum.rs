//! [`ElectrumServer`]: the server for Electrum wallets, as the methods about it see it.

use lydian_serve::{Ban, BanError, SessionInfo, Subnet};
use std::fmt;
use std::time::Duration;

/// Access to the Electrum server of the node.
pub trait ElectrumServer: fmt::Debug + Send + Sync {
    /// The oldest first.
    fn sessions(&self) -> Vec<SessionInfo>;

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
