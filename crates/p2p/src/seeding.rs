//! When to use DNS seeds and fixed seeds.
//!
//! Input: the address manager, the number of peers, the time. Output: DNS seeds to query, fixed addresses.
//!
//! Core's `ThreadDNSAddressSeed` and the part of `ThreadOpenConnections` about fixed seeds. A node with addresses tries
//! these first. DNS seeds are queried three at a time, so that no single seed controls the choice of peers, and no
//! longer once two peers are connected. The fixed seeds are used after a minute, for networks without any known
//! address. Invariants: each seed is queried once, the fixed list is used once. This module does not resolve names
//! itself.

use crate::addrman::AddrMan;
use crate::draw;
use crate::fixed_seeds::{SEEDS_SERVICES, dns_seeds, fixed_seeds};
use crate::limits::DNS_SEED_ADDRESSES_MAX;
use crate::time::{Moment, UnixTime};
use lydian_consensus::Chain;
use lydian_wire::{Endpoint, NetAddr, Network, TimedAddress};
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeSet;
use std::time::Duration;

/// The number of peers that is enough: Core's `SEED_OUTBOUND_CONNECTION_THRESHOLD`.
pub const PEERS_ENOUGH: usize = 2;
const NAMES_AT_ONCE: usize = 3;
/// With at least this number of addresses, there is more time to try them ...
const ADDRESSES_MANY: usize = 1000;
const WAIT_MANY: Duration = Duration::from_secs(5 * 60);
/// ... than with fewer.
const WAIT_FEW: Duration = Duration::from_secs(11);
/// The time for `-seednode` before DNS seeds are queried.
const SEEDNODE_TIME: Duration = Duration::from_secs(30);
/// The time for all other sources before the fixed seeds are used.
const FIXED_TIME: Duration = Duration::from_secs(60);
const DAY_S: usize = 24 * 60 * 60;

/// The options about seeds.
#[derive(Clone, Debug)]
pub struct SeedingSettings {
    /// `-dnsseed`
    pub dns: bool,
    /// `-forcednsseed`
    pub force_dns: bool,
    /// DNS seeds to use instead of Core's list.
    pub names: Option<Vec<String>>,
    /// `-fixedseeds`
    pub fixed: bool,
    /// `-seednode` was given.
    pub has_seednodes: bool,
    /// `-addnode` was given.
    pub has_added_nodes: bool,
    /// Neither `-connect` nor `-noconnect` was given.
    pub chooses_peers: bool,
}

/// A DNS seed to query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSeed {
    /// The name in Core's list. If `host` has no address, or if only a proxy resolves names, the caller connects to
    /// this name as an addr-fetch peer.
    pub name: String,
    /// The name to resolve, with the prefix for the services that the nodes should have.
    pub host: String,
    /// The source of the addresses for the address manager.
    pub source: NetAddr,
}

/// The state of seeding.
#[derive(Clone, Debug)]
pub struct Seeding {
    settings: SeedingSettings,
    chain: Chain,
    started: Duration,
    names: Vec<String>,
    /// The number of names that may be queried without waiting.
    right_now: usize,
    wait_until: Option<Duration>,
    /// The current wait is for seed nodes; the wait for names follows.
    is_for_seednodes: bool,
    is_fixed_used: bool,
    /// Log lines of the default level.
    lines: Vec<String>,
    has_asked: bool,
    is_done: bool,
}

impl Seeding {
    pub fn new(
        chain: Chain,
        settings: SeedingSettings,
        addrman: &AddrMan,
        now: Moment,
        random: &mut ChaCha20Rng,
    ) -> Self {
        let mut names = match settings.names.clone() {
            _ if !settings.dns && !settings.force_dns => Vec::new(),
            Some(names) => names,
            None => dns_seeds(chain).iter().map(|name| (*name).to_owned()).collect(),
        };
        draw::shuffle(&mut names, random);
        let right_now = if settings.force_dns || addrman.is_empty() { names.len() } else { 0 };
        let wait_until = settings.has_seednodes.then(|| now.mockable + SEEDNODE_TIME);
        let mut lines = Vec::new();
        if !settings.dns {
            lines.push("DNS seeding disabled".to_owned());
        } else if settings.has_seednodes {
            lines.push(format!(
                "-seednode enabled. Trying the provided seeds for {} seconds before defaulting to the dnsseeds.",
                SEEDNODE_TIME.as_secs()
            ));
        }
        if !settings.fixed && settings.chooses_peers {
            lines.push("Fixed seeds are disabled".to_owned());
        }
        Seeding {
            is_done: !settings.dns && !settings.force_dns,
            has_asked: false,
            lines,
            is_for_seednodes: settings.has_seednodes,
            settings,
            chain,
            started: now.mockable,
            names,
            right_now,
            wait_until,
            is_fixed_used: false,
        }
    }

    /// Returns the names to query now. Call it every few seconds while the network is active. `peers` is the number of
    /// full-relay peers with a completed handshake.
    pub fn names(&mut self, peers: usize, addrman: &AddrMan, now: Moment) -> Vec<DnsSeed> {
        if self.wait_until.is_some() && peers >= PEERS_ENOUGH {
            self.wait_until = None;
            self.names.truncate(self.right_now);
            self.log_enough();
        }
        // The wait for seed nodes uses Core's `NodeClock`; between names Core sleeps.
        let clock = if self.is_for_seednodes { now.mockable } else { now.elapsed };
        if self.wait_until.is_some_and(|until| clock < until) {
            return Vec::new();
        }
        let waited = self.wait_until.take().is_some();
        let was_for_seednodes = std::mem::take(&mut self.is_for_seednodes);
        if waited && was_for_seednodes && !self.is_done {
            let line = "Couldn't connect to enough peers via seed nodes. Handing fetch logic to the DNS seeds.";
            self.lines.push(line.to_owned());
        }
        let has_waited = waited && !was_for_seednodes;
        if self.right_now == 0 && !self.names.is_empty() {
            if !has_waited && !addrman.is_empty() {
                let many = addrman.size(None, None) >= ADDRESSES_MANY;
                let wait = if many { WAIT_MANY } else { WAIT_FEW };
                self.wait_until = Some(now.elapsed + wait);
                self.lines.push(format!("Waiting {} seconds before querying DNS seeds.", wait.as_secs()));
                return Vec::new();
            }
            self.right_now = NAMES_AT_ONCE;
        }
        let count = self.right_now.min(self.names.len());
        self.right_now = 0;
        self.has_asked |= count > 0;
        self.names.drain(..count).filter_map(dns_seed).collect()
    }

    /// Logs that enough peers are connected and no more names are queried.
    fn log_enough(&mut self) {
        if self.is_for_seednodes {
            self.lines.push("P2P peers available. Finished fetching data from seed nodes.".to_owned());
            if self.names.is_empty() {
                self.lines.push("Skipping DNS seeds. Enough peers have been found".to_owned());
            }
        } else if self.has_asked {
            self.lines.push("P2P peers available. Finished DNS seeding.".to_owned());
        } else {
            self.lines.push("P2P peers available. Skipped DNS seeding.".to_owned());
        }
    }

    /// Returns true once, when all names have been queried.
    pub fn ends(&mut self) -> bool {
        let is_end = self.names.is_empty() && self.has_asked && !self.is_done;
        self.is_done |= is_end;
        is_end
    }

    /// Returns the log lines since the last call.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Returns the fixed seeds of networks without any address, once, after all other sources had their time. The
    /// source is [`fixed_seeds_source`](crate::fixed_seeds::fixed_seeds_source).
    pub fn fixed(
        &mut self,
        reachable: &BTreeSet<Network>,
        addrman: &AddrMan,
        now: Moment,
        random: &mut ChaCha20Rng,
    ) -> Vec<TimedAddress> {
        let SeedingSettings { dns, fixed, has_seednodes, has_added_nodes, .. } = self.settings;
        let is_only_way = !dns && !has_seednodes && !has_added_nodes;
        let is_time = now.mockable > self.started + FIXED_TIME || is_only_way;
        let empty: BTreeSet<_> = reachable.iter().filter(|network| addrman.size(Some(**network), None) == 0).collect();
        if !fixed || self.is_fixed_used || !is_time || empty.is_empty() {
            return Vec::new();
        }
        self.is_fixed_used = true;
        self.lines.push(match is_only_way {
            true => "Adding fixed seeds as -dnsseed=0 (or IPv4/IPv6 connections are disabled via -onlynet) and neither -addnode nor -seednode \
                     are provided"
                .to_owned(),
            false => "Adding fixed seeds as 60 seconds have passed and addrman is empty for at least one reachable network".to_owned(),
        });
        let mut seeds = fixed_seeds(self.chain, now.unix, random);
        seeds.retain(|seed| empty.contains(&seed.endpoint.addr.network()));
        seeds
    }
}

/// Returns `None` if the name cannot be converted to an internal address.
fn dns_seed(name: String) -> Option<DnsSeed> {
    let host = format!("x{:x}.{name}", SEEDS_SERVICES.0);
    let source = NetAddr::internal(&host)?;
    Some(DnsSeed { name, host, source })
}

/// Converts a DNS answer for the address manager: the first [`DNS_SEED_ADDRESSES_MAX`] addresses, with last-seen times
/// three to seven days ago.
pub fn dns_answer(found: &[NetAddr], port: u16, now: UnixTime, random: &mut ChaCha20Rng) -> Vec<TimedAddress> {
    let mut seen = || now.minus((3 * DAY_S + draw::below(random, 4 * DAY_S)) as u64).to_u32();
    let take = found.iter().take(DNS_SEED_ADDRESSES_MAX);
    take.map(|addr| TimedAddress { time: seen(), services: SEEDS_SERVICES, endpoint: Endpoint { addr: *addr, port } })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    const SETTINGS: SeedingSettings = SeedingSettings {
        dns: true,
        force_dns: false,
        names: None,
        fixed: true,
        has_seednodes: false,
        has_added_nodes: false,
        chooses_peers: true,
    };

    fn at(seconds: u64) -> Moment {
        Moment::new(Duration::from_secs(seconds), UnixTime(1_790_000_000 + seconds))
    }

    fn random() -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(1)
    }

    fn addrman(count: u32) -> AddrMan {
        let mut addrman = AddrMan::new(&mut random());
        for number in 0..count {
            let addr = NetAddr::Ipv4((0x0b00_0000 + (number << 13)).into());
            let address =
                TimedAddress { time: 1_790_000_000, services: SEEDS_SERVICES, endpoint: Endpoint { addr, port: 1 } };
            addrman.add(&[address], &addr, 0, at(0).unix);
        }
        addrman
    }

    fn seeding(settings: SeedingSettings, addrman: &AddrMan) -> Seeding {
        Seeding::new(Chain::Main, settings, addrman, at(0), &mut random())
    }

    /// Returns when and how many names are queried within 20 minutes, where `peers` is the number of peers at each
    /// second.
    fn asked(settings: SeedingSettings, addrman: &AddrMan, peers: impl Fn(u64) -> usize) -> Vec<(u64, usize)> {
        let mut seeding = seeding(settings, addrman);
        let mut asked = Vec::new();
        for second in 0..1200 {
            let names = seeding.names(peers(second), addrman, at(second));
            if !names.is_empty() {
                asked.push((second, names.len()));
            }
        }
        asked
    }

    #[test]
    fn names_are_asked_when_addresses_do_not_help() {
        let (none, few, many) = (addrman(0), addrman(50), addrman(3000));
        assert!(many.size(None, None) >= ADDRESSES_MANY);
        assert_eq!(asked(SETTINGS, &none, |_| 0), [(0, 7)]);
        assert_eq!(asked(SETTINGS, &few, |_| 0), [(11, 3), (23, 3), (35, 1)]);
        assert_eq!(asked(SETTINGS, &many, |_| 0), [(300, 3), (601, 3), (902, 1)]);
        assert_eq!(asked(SETTINGS, &few, |second| usize::from(second > 5) * 2), []);
        assert_eq!(asked(SETTINGS, &few, |second| usize::from(second > 15) * 2), [(11, 3)]);
        assert_eq!(asked(SeedingSettings { force_dns: true, ..SETTINGS }, &many, |_| 9), [(0, 7)]);
        assert_eq!(asked(SeedingSettings { dns: false, ..SETTINGS }, &none, |_| 0), []);
        let seednodes = SeedingSettings { has_seednodes: true, ..SETTINGS };
        assert_eq!(asked(seednodes.clone(), &none, |_| 0), [(30, 7)]);
        assert_eq!(asked(seednodes.clone(), &few, |_| 0), [(41, 3), (53, 3), (65, 1)]);
        assert_eq!(asked(seednodes, &few, |second| usize::from(second > 5) * 2), []);
    }

    #[test]
    fn a_name_asks_for_services_and_is_a_source_of_its_own() {
        let names = seeding(SETTINGS, &addrman(0)).names(0, &addrman(0), at(0));
        assert!(names.iter().all(|seed| seed.host == format!("x9.{}", seed.name) && seed.source.is_internal()));
        let sources: BTreeSet<_> = names.iter().map(|seed| seed.source.netgroup()).collect();
        assert_eq!(sources.len(), names.len());
    }

    #[test]
    fn the_fixed_list_is_the_last_resort() {
        let reachable = [Network::Ipv4, Network::Ipv6].into();
        let get = |settings, addrman: &AddrMan, second| {
            seeding(settings, addrman).fixed(&reachable, addrman, at(second), &mut random())
        };
        assert_eq!(get(SETTINGS, &addrman(0), 60), []);
        let all = get(SETTINGS, &addrman(0), 61);
        assert!(all.len() > 500 && all.iter().all(|seed| reachable.contains(&seed.endpoint.addr.network())));
        let ipv6 = get(SETTINGS, &addrman(9), 61);
        assert!(ipv6.iter().all(|seed| seed.endpoint.addr.is_ipv6()) && !ipv6.is_empty(), "of IPv4 something is known");
        assert!(!get(SeedingSettings { dns: false, ..SETTINGS }, &addrman(0), 0).is_empty(), "there is no other way");
        assert_eq!(get(SeedingSettings { dns: false, has_added_nodes: true, ..SETTINGS }, &addrman(0), 0), []);
        assert_eq!(get(SeedingSettings { fixed: false, ..SETTINGS }, &addrman(0), 90), []);
        let (mut seeding, none) = (seeding(SETTINGS, &addrman(0)), addrman(0));
        assert!(!seeding.fixed(&reachable, &none, at(70), &mut random()).is_empty());
        assert!(seeding.fixed(&reachable, &none, at(80), &mut random()).is_empty(), "once");
    }

    /// limit: DNS_SEED_ADDRESSES_MAX at
    /// limit: DNS_SEED_ADDRESSES_MAX above
    #[test]
    fn one_seed_does_not_dominate() {
        for (count, expected) in
            [(DNS_SEED_ADDRESSES_MAX, DNS_SEED_ADDRESSES_MAX), (DNS_SEED_ADDRESSES_MAX + 1, DNS_SEED_ADDRESSES_MAX)]
        {
            let found = vec![NetAddr::Ipv4([9, 9, 9, 9].into()); count];
            let answer = dns_answer(&found, 8333, at(0).unix, &mut random());
            assert_eq!(answer.len(), expected);
            let age = |address: &TimedAddress| at(0).unix.since(address.time.into());
            assert!(answer.iter().all(|address| (3 * 86_400..7 * 86_400).contains(&age(address))));
        }
    }
}
