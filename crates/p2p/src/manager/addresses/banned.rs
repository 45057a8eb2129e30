//! Bans by the operator, and discouraged addresses. Core's `setban`, `BanMan`.
//!
//! Input: subnets, addresses. Output: whether an address may be connected to or accepted.

use super::Addresses;
use crate::Bans;
use crate::manager::context::Context;
use lydian_wire::{Endpoint, NetAddr, Subnet};

impl Addresses {
    pub(in crate::manager) fn bans(&self) -> &Bans {
        &self.bans
    }

    pub(in crate::manager) fn bans_mut(&mut self) -> &mut Bans {
        &mut self.bans
    }

    pub(in crate::manager) fn is_banned(&self, context: &Context, addr: &NetAddr) -> bool {
        self.bans.is_banned(addr, context.now.unix)
    }

    pub(in crate::manager) fn is_discouraged(&self, addr: &NetAddr) -> bool {
        self.bans.is_discouraged(addr)
    }

    pub(in crate::manager) fn discourage(&mut self, addr: &NetAddr) {
        self.bans.discourage(addr);
    }

    /// Returns whether an automatically chosen address is neither our own nor discouraged nor banned.
    pub(in crate::manager) fn may_dial(&self, context: &Context, endpoint: &Endpoint) -> bool {
        let addr = &endpoint.addr;
        !context.settings.local.own.contains(addr) && !self.is_discouraged(addr) && !self.is_banned(context, addr)
    }

    /// Bans a subnet; see `PeerManager::ban`.
    pub(in crate::manager) fn ban(
        &mut self,
        context: &mut Context,
        subnet: Subnet,
        seconds: u64,
        is_absolute: bool,
    ) -> bool {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let is_new = self.bans.ban(subnet, seconds, is_absolute, context.now.unix);
        self.save_bans(context);
        is_new
    }

    /// Removes the ban of exactly this subnet.
    pub(in crate::manager) fn unban(&mut self, context: &mut Context, subnet: &Subnet) -> bool {
        let was_banned = self.bans.unban(subnet);
        if was_banned {
            context.log_debug(format!("Removed banned node address/subnet: {subnet}"));
        }
        self.save_bans(context);
        was_banned
    }

    pub(in crate::manager) fn clear_bans(&mut self, context: &mut Context) {
        self.bans.clear();
        self.save_bans(context);
    }
}
