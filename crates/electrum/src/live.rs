//! [`Live`]: settings that change while the server runs.

use crate::cost::CostLimits;

/// What an operator may change while wallets are connected. The next request of each client has the new values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    pub banner: String,
    pub donation_address: String,
    pub costs: CostLimits,
}
