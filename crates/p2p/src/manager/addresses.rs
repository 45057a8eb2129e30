//! The addresses of the network: their tables, bans, seeding, exchange with peers, and files.
//!
//! Core's `AddrMan` and `BanMan` as the peers use them. Input: addresses from peers, seeds and the operator, the time.
//! Output: addresses for peers, addresses to connect to, files to write.
//!
//! Invariants: no other part changes the tables or the ban list except through the methods here; banned and discouraged
//! addresses are not sent to any peer. Cost: see [`crate::addrman`].

mod banned;
mod gossip;
mod saving;
mod seeding;

pub use saving::SavedFile;

use super::context::{self, Context};
use crate::address_relay::{AnswerCache, Secret};
use crate::peer::ADDR_TIME_PENALTY_S;
use crate::{AddrMan, Bans};
use lydian_engine::LogLevel;
use lydian_wire::{Endpoint, NetAddr, Services, TimedAddress};
use seeding::Seeder;
use std::time::Duration;

/// The addresses.
#[derive(Debug)]
pub(super) struct Addresses {
    tables: AddrMan,
    bans: Bans,
    /// For choices that peers must not predict.
    secret: Secret,
    answers: AnswerCache,
    seeder: Seeder,
    next_save: Option<Duration>,
}

impl Addresses {
    pub(super) fn new(tables: AddrMan, bans: Bans, secret: Secret) -> Addresses {
        let (answers, seeder) = (AnswerCache::default(), Seeder::default());
        Addresses { tables, bans, secret, answers, seeder, next_save: None }
    }

    pub(super) fn tables(&self) -> &AddrMan {
        &self.tables
    }

    pub(super) fn tables_mut(&mut self) -> &mut AddrMan {
        &mut self.tables
    }

    /// Logs what the tables did since the last call.
    pub(super) fn log_changes(&mut self, context: &mut Context) {
        for line in self.tables.take_lines() {
            context.log_at(LogLevel::Debug(context::ADDRMAN), line);
        }
    }

    /// The log switches may have changed.
    pub(super) fn follow_switches(&mut self, context: &Context) {
        self.tables.set_logged(context.switches.is_on(context::ADDRMAN));
    }

    /// Returns the hashed netgroup of an address, which an attacker cannot predict.
    pub(super) fn keyed_netgroup(&self, addr: &NetAddr) -> u64 {
        self.secret.keyed_netgroup(addr)
    }

    /// A connection to an address was attempted.
    pub(super) fn note_attempt(&mut self, context: &Context, endpoint: &Endpoint, count_failure: bool) {
        self.tables.attempt(endpoint, count_failure, context.now.unix);
    }

    /// A peer with an address in the tables was connected until now.
    pub(super) fn note_end(&mut self, context: &Context, endpoint: &Endpoint) {
        self.tables.connected(endpoint, context.now.unix);
    }

    pub(super) fn set_services(&mut self, endpoint: &Endpoint, services: Services) {
        self.tables.set_services(endpoint, services);
    }

    /// The address works.
    pub(super) fn note_good(&mut self, context: &Context, endpoint: &Endpoint) {
        self.tables.good(endpoint, context.now.unix);
    }

    /// A peer sent addresses.
    pub(super) fn store(&mut self, context: &Context, addresses: &[TimedAddress], source: &NetAddr) {
        self.tables.add(addresses, source, ADDR_TIME_PENALTY_S, context.now.unix);
    }
}
