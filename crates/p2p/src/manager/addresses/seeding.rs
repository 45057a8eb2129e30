//! Where the first addresses come from: DNS seeds, `-seednode` nodes and fixed seeds. [`crate::seeding`] decides when.
//!
//! Core's `ThreadDNSAddressSeed` and the seeding parts of `ThreadOpenConnections`. Input: the tables, the number of
//! peers, answers of DNS seeds, the time. Output: names to resolve and nodes to ask, which the connections do.

use super::Addresses;
use crate::draw;
use crate::fixed_seeds::fixed_seeds_source;
use crate::manager::context::Context;
use crate::peer::ConnectionKind;
use crate::seeding::{DnsSeed, PEERS_ENOUGH, Seeding, SeedingSettings, dns_answer};
use lydian_wire::NetAddr;
use std::time::Duration;

/// The time until the next `-seednode` is asked: Core's `ADD_NEXT_SEEDNODE`.
const NEXT_SEEDNODE: Duration = Duration::from_secs(10);

/// The state of seeding.
#[derive(Debug, Default)]
pub(super) struct Seeder {
    /// Set from the first tick on.
    seeding: Option<Seeding>,
    /// The number of addresses from DNS seeds.
    found: usize,
    seednodes: Seednodes,
}

/// The `-seednode` nodes that were not asked yet.
#[derive(Clone, Debug, Default)]
struct Seednodes {
    left: Vec<String>,
    last: Duration,
    is_due: bool,
}

impl Addresses {
    /// The first tick: the order in which the `-seednode` nodes are asked.
    pub(in crate::manager) fn begin_seednodes(&mut self, context: &mut Context) {
        let settings = &context.settings.connect;
        let mut left = if settings.chooses_peers { settings.seednodes.clone() } else { Vec::new() };
        draw::shuffle(&mut left, &mut context.random);
        let is_due = self.tables.is_empty() && !left.is_empty();
        self.seeder.seednodes = Seednodes { left, last: context.now.mockable, is_due };
    }

    /// The first tick, after the draws of the connections: the order of the seeds.
    pub(in crate::manager) fn begin_seeding(&mut self, context: &mut Context) {
        let settings = &context.settings.connect;
        let seeding = SeedingSettings {
            dns: settings.dns_seed,
            force_dns: settings.force_dns_seed,
            names: settings.dns_seeds.clone(),
            fixed: settings.fixed_seeds,
            chooses_peers: settings.chooses_peers,
            has_seednodes: !settings.seednodes.is_empty(),
            has_added_nodes: !settings.added.is_empty(),
        };
        let (chain, now, random) = (context.settings.params.chain, context.now, &mut context.random);
        self.seeder.seeding = Some(Seeding::new(chain, seeding, &self.tables, now, random));
    }

    /// Returns the DNS seeds to query now.
    pub(in crate::manager) fn seeds_to_query(&mut self, context: &mut Context) -> Vec<DnsSeed> {
        let of_kind = context.peers.values().filter(|peer| peer.kind() == ConnectionKind::OutboundFullRelay);
        let peers = of_kind.filter(|peer| peer.is_ready()).count();
        let Some(seeding) = &mut self.seeder.seeding else { return Vec::new() };
        let seeds = seeding.names(peers, &self.tables, context.now);
        let lines = seeding.take_lines();
        lines.into_iter().for_each(|line| context.log_info(line));
        seeds
    }

    /// A DNS seed has answered.
    pub(in crate::manager) fn take_seed_answer(
        &mut self,
        context: &mut Context,
        seed: &DnsSeed,
        addresses: &[NetAddr],
    ) {
        let port = context.settings.connect.default_port;
        let found = dns_answer(addresses, port, context.now.unix, &mut context.random);
        self.seeder.found += found.len();
        self.tables.add(&found, &seed.source, 0, context.now.unix);
    }

    /// Logs the end of DNS seeding once all names were queried. All of them have answered.
    pub(in crate::manager) fn log_seeds_found(&mut self, context: &mut Context) {
        if self.seeder.seeding.as_mut().is_some_and(Seeding::ends) {
            context.log_info(format!("{} addresses found from DNS seeds", self.seeder.found));
        }
    }

    /// Returns the next `-seednode` to ask for addresses, if it is time.
    pub(in crate::manager) fn next_seednode(&mut self, context: &mut Context) -> Option<String> {
        if !std::mem::take(&mut self.seeder.seednodes.is_due) {
            return None;
        }
        let seednode = self.seeder.seednodes.left.pop()?;
        context.log_info(if self.tables.is_empty() {
            format!("Empty addrman, adding seednode ({seednode}) to addrfetch")
        } else {
            format!(
                "Couldn't connect to peers from addrman after {} seconds. Adding seednode ({seednode}) to addrfetch",
                NEXT_SEEDNODE.as_secs()
            )
        });
        Some(seednode)
    }

    pub(in crate::manager) fn time_seednodes(&mut self, context: &Context) {
        let full = context.peers.values().filter(|peer| peer.kind() == ConnectionKind::OutboundFullRelay).count();
        let seednodes = &mut self.seeder.seednodes;
        if !seednodes.left.is_empty() && full < PEERS_ENOUGH && context.now.mockable > seednodes.last + NEXT_SEEDNODE {
            seednodes.last = context.now.mockable;
            seednodes.is_due = true;
        }
    }

    pub(in crate::manager) fn use_fixed_seeds(&mut self, context: &mut Context) {
        let Some(seeding) = &mut self.seeder.seeding else { return };
        let seeds = seeding.fixed(&context.settings.reachable, &self.tables, context.now, &mut context.random);
        let lines = seeding.take_lines();
        lines.into_iter().for_each(|line| context.log_info(line));
        if !seeds.is_empty() {
            for seed in &seeds {
                context.log_debug(format!("Added hardcoded seed: {}", seed.endpoint));
            }
            self.tables.add(&seeds, &fixed_seeds_source(), 0, context.now.unix);
            context.log_info(format!("Added {} fixed seeds from reachable networks.", seeds.len()));
        }
    }
}
