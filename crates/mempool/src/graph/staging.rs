//! The staging copy: changes that are tried, then committed or aborted.
//!
//! Input: the changes made while it is open; output: both feerate diagrams over what changed. Main stays as it was
//! until the commit, except for new fees. Opening is constant, aborting and committing cost what was changed.

use super::cluster::Cluster;
use super::node::Place;
use super::order::ChunkKey;
use super::{Diagram, FeeSize, Graph, Home, Level, LevelState, arrange, leave};

/// Where staging differs from main.
#[derive(Clone, Debug, Default)]
pub(super) struct Staging {
    pub(super) state: LevelState,
    /// Slots whose place in staging was set at some time. A slot may be listed again after its reuse.
    pub(super) touched: Vec<u32>,
}

impl Graph {
    /// Opens the staging copy. An open one is aborted first.
    pub fn start_staging(&mut self) {
        self.abort_staging();
        let state = LevelState {
            waiting: self.main.waiting.clone(),
            count: self.main.count,
            oversized_count: self.main.oversized_count,
            ..LevelState::default()
        };
        self.staging = Some(Staging { state, touched: Vec::new() });
    }

    #[must_use]
    pub fn has_staging(&self) -> bool {
        self.staging.is_some()
    }

    /// Drops the staging copy. Transactions that were added there leave the graph.
    pub fn abort_staging(&mut self) {
        let Some(staging) = self.staging.take() else { return };
        for slot in staging.touched {
            let node = self.nodes.at_mut(slot);
            if node.staged == Place::UNSET {
                continue;
            }
            node.staged = Place::UNSET;
            if node.main == Place::UNSET {
                self.nodes.free(slot);
            }
        }
    }

    /// Makes the staging copy the main graph. Transactions that were removed there leave the graph.
    pub fn commit_staging(&mut self) {
        let Some(Staging { mut state, touched }) = self.staging.take() else { return };
        for &slot in &touched {
            self.drop_from_main(slot);
        }
        for &slot in &touched {
            let node = self.nodes.at_mut(slot);
            let place = std::mem::replace(&mut node.staged, Place::UNSET);
            match place {
                Place::UNSET => {}
                Place::REMOVED => self.nodes.free(slot),
                Place::SINGLE => {
                    node.main = Place::SINGLE;
                    self.order.insert(ChunkKey::of_single(&self.nodes, slot));
                }
                _ => node.main = Place::UNSET,
            }
        }
        for mut cluster in std::mem::take(&mut state.clusters).into_values() {
            self.arrange_in_main(&mut cluster);
            let slots: Vec<u32> = cluster.members.iter().map(|member| member.slot).collect();
            let number = self.main.clusters.insert(cluster);
            for slot in slots {
                self.nodes.at_mut(slot).main = Place::cluster(number);
            }
        }
        self.main.waiting = state.waiting;
        self.main.count = state.count;
        self.main.oversized_count = state.oversized_count;
    }

    /// Takes what staging replaces out of the order of main: a single transaction, or its whole cluster, of which
    /// staging has a copy.
    fn drop_from_main(&mut self, slot: u32) {
        let node = self.nodes.at(slot);
        if node.staged == Place::UNSET {
            return;
        }
        if node.main == Place::SINGLE {
            self.order.remove(&ChunkKey::of_single(&self.nodes, slot));
        } else if let Some(cluster) = node.main.as_cluster().and_then(|number| self.main.clusters.take(number)) {
            self.sums.remove(&cluster);
            leave(&mut self.order, &self.nodes, &cluster);
        }
    }

    /// Returns the diagrams of main and of staging over the clusters that are not the same in both, or `None` if
    /// staging is not open. Neither level may be oversized: a diagram leaves out the dependencies that wait. Core's
    /// `GetMainStagingDiagrams`.
    pub fn diagrams(&mut self) -> Option<(Diagram, Diagram)> {
        self.arrange_staging();
        let staging = self.staging.as_ref()?;
        let mut slots = staging.touched.clone();
        slots.sort_unstable();
        slots.dedup();
        slots.retain(|&slot| self.nodes.at(slot).staged != Place::UNSET);
        let feerates = |cluster: &Cluster| cluster.chunks.iter().map(|chunk| chunk.feerate).collect::<Vec<FeeSize>>();
        let mut homes: Vec<Home> = slots.iter().filter_map(|&slot| self.home(slot, Level::Main)).collect();
        homes.sort_unstable();
        homes.dedup();
        let chunks_at = |&home: &Home| match home {
            Home::Single(slot) => vec![self.nodes.at(slot).fee_size()],
            _ => self.cluster_at(home).map(feerates).unwrap_or_default(),
        };
        let main = homes.iter().flat_map(chunks_at).collect();
        let is_single = |slot: &&u32| self.nodes.at(**slot).staged == Place::SINGLE;
        let singles = slots.iter().filter(is_single).map(|&slot| self.nodes.at(slot).fee_size());
        let clusters = staging.state.clusters.values().flat_map(feerates);
        Some((Diagram::new(main), Diagram::new(singles.chain(clusters).collect())))
    }

    /// Linearises the clusters of staging that need it.
    pub(super) fn arrange_staging(&mut self) {
        let Some(staging) = &mut self.staging else { return };
        for cluster in staging.state.clusters.values_mut().filter(|cluster| !cluster.is_linearized()) {
            arrange(&mut self.linearizer, &self.nodes, cluster);
        }
    }
}
