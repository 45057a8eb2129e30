//! Changes of the graph: transactions, dependencies, fees.
//!
//! Input: handles; a handle whose transaction has gone is ignored. Every change goes to staging if it is open, to main
//! otherwise, except a new fee, which goes to both. A change takes the clusters it touches apart and puts the result
//! back, so that main is in optimal order after each call. Callers pass what belongs together in one call.

use super::bits::bit;
use super::cluster::{Cluster, Member, append, components, relate};
use super::group::Group;
use super::node::{Place, TxRef};
use super::order::ChunkKey;
use super::{FeeSize, Graph, Home, Level, arrange, enter, leave};

impl Graph {
    /// Adds a transaction without relatives. `key` breaks ties; no two transactions have the same one. A size below 1
    /// counts as 1.
    pub fn add(&mut self, feerate: FeeSize, key: [u8; 32]) -> TxRef {
        let feerate = FeeSize { size: feerate.size.max(1), ..feerate };
        let id = self.nodes.insert(feerate, key);
        let is_oversized = self.limits.is_exceeded_by(1, u64::from(feerate.size.unsigned_abs()));
        let top = self.top();
        top.count += 1;
        top.oversized_count += usize::from(is_oversized);
        self.attach(vec![Member::alone(id.slot)]);
        id
    }

    /// Removes transactions.
    pub fn remove(&mut self, ids: &[TxRef]) {
        let mut removed: Vec<(Home, u32)> = Vec::with_capacity(ids.len());
        for slot in ids.iter().filter_map(|&id| self.nodes.find(id)) {
            removed.extend(self.home(slot, Level::Staging).map(|home| (home, slot)));
        }
        removed.sort_unstable();
        removed.dedup();
        for group in removed.chunk_by(|(one, _), (other, _)| one == other) {
            self.remove_from(group[0].0, group);
        }
        if !removed.is_empty() && !self.top().waiting.is_empty() {
            let mut slots: Vec<u32> = removed.iter().map(|&(_, slot)| slot).collect();
            slots.sort_unstable();
            let is_removed = |slot: &u32| slots.binary_search(slot).is_ok();
            self.top().waiting.retain(|(parent, child)| !is_removed(parent) && !is_removed(child));
            self.connect_waiting();
        }
    }

    /// Removes the slots of `group`, all at `home`.
    fn remove_from(&mut self, home: Home, group: &[(Home, u32)]) {
        let members = self.detach(home);
        let is_removed = |member: &Member| group.binary_search(&(home, member.slot)).is_ok();
        let kept = members.iter().enumerate().filter(|(_, member)| !is_removed(member));
        let kept = kept.fold(0, |all, (position, _)| all | bit(position));
        for &(_, slot) in group {
            let is_oversized = self.limits.is_exceeded_by(1, u64::from(self.nodes.at(slot).size.unsigned_abs()));
            let top = self.top();
            top.count -= 1;
            top.oversized_count -= usize::from(is_oversized);
            if self.staging.is_some() && self.nodes.at(slot).main != Place::UNSET {
                self.set_place(slot, Place::REMOVED);
            } else {
                self.nodes.free(slot);
            }
        }
        for component in components(&members, kept) {
            self.attach(component);
        }
    }

    /// Adds dependencies, as pairs of parent and child. They take effect together, or wait together if a cluster would
    /// exceed a limit. A dependency that would close a cycle is ignored.
    pub fn add_dependencies(&mut self, pairs: &[(TxRef, TxRef)]) {
        for &(parent, child) in pairs {
            let slot = |id| self.nodes.find(id).filter(|&slot| self.home(slot, Level::Staging).is_some());
            let (Some(parent), Some(child)) = (slot(parent), slot(child)) else { continue };
            if parent != child {
                self.top().waiting.push((parent, child));
            }
        }
        self.connect_waiting();
    }

    /// Sets the fee of a transaction, in main and in staging.
    pub fn set_fee(&mut self, id: TxRef, fee: i64) {
        let Some(slot) = self.nodes.find(id) else { return };
        let place = self.nodes.at(slot).main;
        if self.nodes.at(slot).fee == fee {
            return;
        }
        if place == Place::SINGLE {
            self.order.remove(&ChunkKey::of_single(&self.nodes, slot));
            self.nodes.at_mut(slot).fee = fee;
            self.order.insert(ChunkKey::of_single(&self.nodes, slot));
        } else if let Some(cluster) = place.as_cluster().and_then(|number| self.main.clusters.get_mut(number)) {
            leave(&mut self.order, &self.nodes, cluster);
            self.nodes.at_mut(slot).fee = fee;
            self.sums.remove(cluster);
            arrange(&mut self.linearizer, &self.nodes, cluster);
            self.sums.add(cluster);
            enter(&mut self.order, &self.nodes, cluster);
        }
        let node = self.nodes.at_mut(slot);
        node.fee = fee;
        if let (Some(number), Some(staging)) = (node.staged.as_cluster(), &mut self.staging)
            && let Some(cluster) = staging.state.clusters.get_mut(number)
        {
            cluster.chunks = Box::default();
        }
    }

    /// Lets the waiting dependencies take effect, unless a cluster would exceed a limit.
    fn connect_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.top().waiting);
        let groups = self.group(&waiting);
        let is_exceeded = groups.iter().any(|group| self.limits.is_exceeded_by(group.count, group.size));
        if is_exceeded || self.top().oversized_count > 0 {
            self.top().waiting = waiting;
            return;
        }
        for group in &groups {
            self.connect(group);
        }
    }

    /// Merges the clusters of a group and adds its dependencies.
    fn connect(&mut self, group: &Group) {
        let mut members = Vec::new();
        for &home in &group.homes {
            let more = self.detach(home);
            append(&mut members, &more);
        }
        let mut positions: Vec<(u32, usize)> =
            members.iter().enumerate().map(|(position, member)| (member.slot, position)).collect();
        positions.sort_unstable();
        let position = |slot: u32| {
            let found = positions.binary_search_by_key(&slot, |&(slot, _)| slot).ok()?;
            Some(positions[found].1)
        };
        for &(parent, child) in &group.dependencies {
            if let (Some(parent), Some(child)) = (position(parent), position(child)) {
                relate(&mut members, parent, child);
            }
        }
        self.attach(members);
    }

    /// Takes what is at `home` out of the level that changes go to, and returns its members. The caller attaches or
    /// removes each of them.
    fn detach(&mut self, home: Home) -> Vec<Member> {
        let taken = match (home, &mut self.staging) {
            (Home::Single(slot), staging) => {
                if staging.is_none() {
                    self.order.remove(&ChunkKey::of_single(&self.nodes, slot));
                }
                return vec![Member::alone(slot)];
            }
            (Home::Main(number), Some(_)) => self.main.clusters.get(number).cloned(),
            (Home::Staged(number), Some(staging)) => staging.state.clusters.take(number),
            (Home::Main(number) | Home::Staged(number), None) => {
                let taken = self.main.clusters.take(number);
                if let Some(cluster) = &taken {
                    self.sums.remove(cluster);
                    leave(&mut self.order, &self.nodes, cluster);
                }
                taken
            }
        };
        taken.map_or_else(Vec::new, |cluster| cluster.members.into_vec())
    }

    /// Puts related members into the level that changes go to.
    fn attach(&mut self, members: Vec<Member>) {
        if let [member] = members[..] {
            self.set_place(member.slot, Place::SINGLE);
            if self.staging.is_none() {
                self.order.insert(ChunkKey::of_single(&self.nodes, member.slot));
            }
            return;
        }
        let slots: Vec<u32> = members.iter().map(|member| member.slot).collect();
        let mut cluster = Cluster::new(members);
        if self.staging.is_none() {
            self.arrange_in_main(&mut cluster);
        }
        let number = self.top().clusters.insert(cluster);
        for slot in slots {
            self.set_place(slot, Place::cluster(number));
        }
    }

    /// Linearises a cluster that enters main, and adds its chunks to the order of main.
    pub(super) fn arrange_in_main(&mut self, cluster: &mut Cluster) {
        if !cluster.is_linearized() {
            arrange(&mut self.linearizer, &self.nodes, cluster);
        }
        self.sums.add(cluster);
        enter(&mut self.order, &self.nodes, cluster);
    }

    fn set_place(&mut self, slot: u32, place: Place) {
        let node = self.nodes.at_mut(slot);
        match &mut self.staging {
            Some(staging) => {
                if node.staged == Place::UNSET {
                    staging.touched.push(slot);
                }
                node.staged = place;
            }
            None => node.main = place,
        }
    }
}
