//! [`Live`]: settings that change while the server runs.

use crate::cost::CostLimits;
use crate::hosts::Host;

/// What an operator may change while wallets are connected. The next request of each client has the new values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    pub banner: String,
    pub donation_address: String,
    /// Where this server is reached.
    pub hosts: Vec<Host>,
    /// Other servers.
    pub peers: Vec<Host>,
    pub costs: CostLimits,
}
