//! Random addresses: one to connect to, or many for other peers.
//!
//! Input: filters, the time. Output: addresses.
//!
//! Core's `Select_` and `GetAddr_`. Invariant: if both tables have suitable entries, the choice of the table does not
//! depend on their number, so that filling one table does not starve the other. Cost: for `select`, see the parent
//! module; for `get_addr`, one step per returned or skipped address.

use super::AddrMan;
use crate::draw;
use crate::time::UnixTime;
use lydian_wire::address::{Network, TimedAddress};

/// The growth of all chances after each rejected address.
const CHANCE_GROWTH: f64 = 1.2;

impl AddrMan {
    /// Returns an address to connect to and the time of its last attempt. It is in one of these networks, or in any
    /// network if the list is empty.
    pub fn select(&mut self, new_only: bool, networks: &[Network], now: UnixTime) -> Option<(TimedAddress, UnixTime)> {
        let (mut new_count, mut tried_count) = (0, 0);
        for (network, counts) in &self.counts {
            if networks.is_empty() || networks.contains(network) {
                new_count += counts.new;
                tried_count += counts.tried;
            }
        }
        if new_count + tried_count == 0 || (new_only && new_count == 0) {
            return None;
        }
        let in_tried = match (new_only || tried_count == 0, new_count == 0) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => draw::coin(&mut self.random),
        };
        let table = if in_tried { &self.tried } else { &self.new };
        let taken = table.of(networks);
        let mut factor = 1.0;
        loop {
            let id = table[taken.draw(&mut self.random)?]?;
            let info = self.infos.get(&id)?;
            if f64::from(draw::bits30(&mut self.random)) < factor * info.chance(now) * f64::from(1 << 30) {
                let chosen = (info.address, info.last_try);
                let table = if in_tried { "tried" } else { "new" };
                self.note(|_| format!("Selected {} from {table}", chosen.0.endpoint));
                return Some(chosen);
            }
            factor *= CHANCE_GROWTH;
        }
    }

    /// Returns random addresses: at most `addresses_max` and at most `percent_max` percent of all (0 means no limit),
    /// of one network or any, without terrible ones if `filtered`.
    pub fn get_addr(
        &mut self,
        addresses_max: usize,
        percent_max: usize,
        network: Option<Network>,
        filtered: bool,
        now: UnixTime,
    ) -> Vec<TimedAddress> {
        let mut count = self.list.len();
        if percent_max != 0 {
            count = percent_max.min(100) * count / 100;
        }
        if addresses_max != 0 {
            count = count.min(addresses_max);
        }
        let mut addresses = Vec::with_capacity(count);
        for index in 0..self.list.len() {
            if addresses.len() >= count {
                break;
            }
            let other = index + draw::below(&mut self.random, self.list.len() - index);
            self.swap(index, other);
            let Some(info) = self.infos.get(&self.list[index]) else { continue };
            let is_of_network = network.is_none_or(|network| info.address.endpoint.addr.net_class() == network);
            if is_of_network && !(filtered && info.is_terrible(now)) {
                addresses.push(info.address);
            }
        }
        self.note(|_| format!("GetAddr returned {} random addresses", addresses.len()));
        addresses
    }
}
