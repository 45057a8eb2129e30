//! Our own addresses, and which of them is advertised to a peer.
//!
//! Input: settings, interfaces, listening addresses, our address as peers see it. Output: an address for a peer, if one
//! is worth advertising.
//!
//! Core's `mapLocalHost` (net.cpp). Each address has a score: addresses set by the operator have the highest, then
//! listening addresses, then interfaces; each inbound peer that reaches us at an address adds one. Invariants: only
//! routable addresses are kept; an address of a privacy network is advertised only to peers of that network, and these
//! get no other address; a node that does not listen selects none of them. Cost: one pass over the addresses for each
//! advertisement, once a day per peer.

use crate::draw;
use lydian_wire::{Endpoint, NetAddr, Network};
use rand_chacha::ChaCha20Rng;
use std::collections::{BTreeMap, BTreeSet};

/// The source of an address: Core's `LOCAL_IF`, `LOCAL_BIND` and `LOCAL_MANUAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LocalSource {
    Interface = 1,
    Bind = 2,
    Manual = 4,
}

/// The settings and the addresses of the machine. By default there is no address and the node does not listen.
#[derive(Clone, Debug, Default)]
pub struct LocalSettings {
    /// `-listen`, after the effects of `-connect` and other options.
    pub listens: bool,
    /// `-discover`
    pub discover: bool,
    /// The port that is advertised to peers.
    pub port: u16,
    /// `-externalip`
    pub external: Vec<Endpoint>,
    /// Listening addresses, except those for the onion service and those that grant `noban`.
    pub binds: Vec<Endpoint>,
    /// Addresses of this machine, if the node listens on all of them.
    pub interfaces: Vec<NetAddr>,
}

/// One of our addresses, for `getnetworkinfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    pub endpoint: Endpoint,
    pub score: i32,
}

/// All our addresses.
#[derive(Clone, Debug, Default)]
pub struct LocalAddresses {
    listens: bool,
    discover: bool,
    port: u16,
    /// Networks that we can connect to.
    reachable: BTreeSet<Network>,
    known: BTreeMap<NetAddr, (u16, i32)>,
}

/// A peer that our address is advertised to.
#[derive(Clone, Copy, Debug)]
pub struct Recipient {
    pub addr: NetAddr,
    /// Our address as the peer sees it.
    pub sees: Endpoint,
    pub is_inbound: bool,
    /// It connected through our onion service.
    pub is_onion: bool,
}

impl LocalAddresses {
    pub fn new(settings: &LocalSettings, reachable: &BTreeSet<Network>) -> LocalAddresses {
        let mut own = LocalAddresses {
            listens: settings.listens,
            discover: settings.discover,
            port: settings.port,
            reachable: reachable.clone(),
            known: BTreeMap::new(),
        };
        settings.external.iter().for_each(|endpoint| own.add(*endpoint, LocalSource::Manual));
        settings.binds.iter().for_each(|endpoint| own.add(*endpoint, LocalSource::Bind));
        for addr in &settings.interfaces {
            own.add(Endpoint { addr: *addr, port: settings.port }, LocalSource::Interface);
        }
        own
    }

    /// Returns whether the node accepts inbound connections.
    pub fn listens(&self) -> bool {
        self.listens
    }

    /// Core's `AddLocal`.
    pub fn add(&mut self, endpoint: Endpoint, source: LocalSource) {
        let has_cjdns = self.reachable.contains(&Network::Cjdns);
        let addr = if has_cjdns { endpoint.addr.maybe_cjdns() } else { endpoint.addr };
        let endpoint = Endpoint { addr, ..endpoint };
        let is_manual = source == LocalSource::Manual;
        let is_reachable = self.reachable.contains(&endpoint.addr.network());
        if !(endpoint.addr.is_routable() && (is_manual || self.discover && is_reachable)) {
            return;
        }
        let score = match source {
            LocalSource::Interface => 1,
            LocalSource::Bind => 2,
            LocalSource::Manual => 4,
        };
        match self.known.get_mut(&endpoint.addr) {
            Some((port, known)) if score >= *known => (*port, *known) = (endpoint.port, score + 1),
            Some(_) => {}
            None => {
                self.known.insert(endpoint.addr, (endpoint.port, score));
            }
        }
    }

    /// An inbound peer reached us at this address: Core's `SeenLocal`.
    pub fn seen(&mut self, addr: &NetAddr) {
        if let Some((_, score)) = self.known.get_mut(addr) {
            *score = score.saturating_add(1);
        }
    }

    /// Core's `IsLocal`: the node does not connect to such an address.
    pub fn contains(&self, addr: &NetAddr) -> bool {
        self.known.contains_key(addr)
    }

    pub fn list(&self) -> Vec<LocalAddress> {
        let entry = |(addr, (port, score)): (&NetAddr, &(u16, i32))| LocalAddress {
            endpoint: Endpoint { addr: *addr, port: *port },
            score: *score,
        };
        self.known.iter().map(entry).collect()
    }

    /// Core's `GetLocalAddrForPeer`: returns the best address, or sometimes the one that the peer sees, which may be
    /// better.
    pub fn for_peer(&self, peer: &Recipient, random: &mut ChaCha20Rng) -> Option<Endpoint> {
        let (mut own, score) = match self.best(peer) {
            Some((endpoint, score)) => (endpoint, score),
            None => (Endpoint { addr: NetAddr::UNSPECIFIED, port: self.port }, 0),
        };
        let sees = peer.sees.addr;
        let is_good =
            self.discover && peer.addr.is_routable() && sees.is_routable() && self.reachable.contains(&sees.network());
        let one_in = if score > 4 { 8 } else { 2 };
        if is_good && (!own.addr.is_routable() || draw::below(random, one_in) == 0) {
            // An inbound peer knows our port too; an outbound peer saw the port of an outgoing connection.
            own = if peer.is_inbound { peer.sees } else { Endpoint { addr: sees, ..own } };
        }
        own.addr.is_routable().then_some(own)
    }

    /// Core's `GetLocal`; also returns the score of the address.
    fn best(&self, peer: &Recipient) -> Option<(Endpoint, i32)> {
        if !self.listens {
            return None;
        }
        let through = if peer.is_onion { Network::TorV3 } else { peer.addr.net_class() };
        let is_private = peer.is_onion || peer.addr.is_privacy_net();
        let mut best: Option<(Endpoint, i32, u8)> = None;
        for (addr, (port, score)) in &self.known {
            if addr.network() != through && (addr.is_privacy_net() || is_private) {
                continue;
            }
            let reachability = addr.reachability_from(&peer.addr);
            let is_better = best.is_none_or(|(_, known_score, known)| {
                reachability > known || reachability == known && *score > known_score
            });
            if is_better {
                best = Some((Endpoint { addr: *addr, port: *port }, *score, reachability));
            }
        }
        best.map(|(endpoint, score, _)| (endpoint, score))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    fn endpoint(text: &str) -> Endpoint {
        Endpoint::parse(text, 8333).unwrap()
    }

    fn own(settings: LocalSettings) -> LocalAddresses {
        let settings = LocalSettings { listens: true, port: 8333, ..settings };
        LocalAddresses::new(&settings, &[Network::Ipv4, Network::Ipv6, Network::TorV3].into())
    }

    fn recipient(addr: &str) -> Recipient {
        Recipient { addr: addr.parse().unwrap(), sees: Endpoint::default(), is_inbound: true, is_onion: false }
    }

    fn list(own: &LocalAddresses) -> Vec<(String, i32)> {
        own.list().into_iter().map(|local| (local.endpoint.to_string(), local.score)).collect()
    }

    fn is(text: &str, score: i32) -> (String, i32) {
        (text.to_owned(), score)
    }

    const ONION: &str = "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion";

    #[test]
    fn scores_are_cores() {
        let all = LocalSettings {
            discover: true,
            external: vec![endpoint("8.8.8.8:1")],
            binds: vec![endpoint("8.8.4.4:2"), endpoint("10.0.0.1:3"), endpoint("0.0.0.0:3")],
            interfaces: vec!["8.8.4.4".parse().unwrap(), "9.9.9.9".parse().unwrap(), "127.0.0.1".parse().unwrap()],
            ..LocalSettings::default()
        };
        let mut known = own(all.clone());
        assert_eq!(list(&known), [is("8.8.4.4:2", 2), is("8.8.8.8:1", 4), is("9.9.9.9:8333", 1)]);
        known.seen(&"9.9.9.9".parse().unwrap());
        known.seen(&"1.1.1.1".parse().unwrap());
        assert_eq!(list(&known)[2], is("9.9.9.9:8333", 2), "a vote for what is known, and none for what is not");
        known.add(endpoint("9.9.9.9:7"), LocalSource::Bind);
        assert_eq!(list(&known)[2], is("9.9.9.9:7", 3));
        let quiet = own(LocalSettings { discover: false, ..all });
        assert_eq!(list(&quiet), [is("8.8.8.8:1", 4)], "without -discover only what the operator says");
        let other = own(LocalSettings { external: vec![endpoint("[fc00::1]:5")], ..LocalSettings::default() });
        assert_eq!(list(&other), [], "an address of nowhere");
    }

    /// Core's `GetLocal`: addresses of privacy networks are not advertised to other networks, and vice versa.
    #[test]
    fn networks_are_kept_apart() {
        let onion = format!("{ONION}:8333");
        let settings = LocalSettings {
            external: vec![endpoint("8.8.8.8"), endpoint("[2001:4860::8888]"), endpoint(&onion)],
            ..LocalSettings::default()
        };
        let known = own(settings.clone());
        let mut random = ChaCha20Rng::from_seed([1; 32]);
        let mut own_address = |peer: Recipient| known.for_peer(&peer, &mut random).map(|endpoint| endpoint.to_string());
        assert_eq!(own_address(recipient("1.2.3.4")).unwrap(), "8.8.8.8:8333");
        assert_eq!(own_address(recipient("2001:4860::1")).unwrap(), "[2001:4860::8888]:8333");
        assert_eq!(own_address(recipient(ONION)).unwrap(), onion);
        assert_eq!(own_address(Recipient { is_onion: true, ..recipient("127.0.0.1") }).unwrap(), onion);
        let silent = LocalSettings { listens: false, ..settings };
        let silent = LocalAddresses::new(&silent, &[Network::Ipv4].into());
        assert_eq!(silent.for_peer(&recipient("1.2.3.4"), &mut random), None, "who does not listen");
        assert!(silent.contains(&"8.8.8.8".parse().unwrap()), "is there all the same");
    }

    /// Core's `get_local_addr_for_peer_port`: an inbound peer provides address and port, an outbound one only the
    /// address.
    #[test]
    fn peers_may_know_better() {
        let mut random = ChaCha20Rng::from_seed([2; 32]);
        let known = own(LocalSettings { discover: true, port: 20, ..LocalSettings::default() });
        let known = LocalAddresses { port: 20, ..known };
        let sees = endpoint("1.2.3.4:30");
        let inbound = Recipient { sees, ..recipient("5.6.7.8") };
        assert_eq!(known.for_peer(&inbound, &mut random), Some(sees));
        let outbound = Recipient { is_inbound: false, ..inbound };
        assert_eq!(known.for_peer(&outbound, &mut random), Some(endpoint("1.2.3.4:20")));
        assert_eq!(known.for_peer(&recipient("5.6.7.8"), &mut random), None, "it sees us nowhere");
        let deaf = LocalAddresses { discover: false, ..known.clone() };
        assert_eq!(deaf.for_peer(&inbound, &mut random), None);

        let mut sure = known;
        sure.add(endpoint("8.8.8.8:1"), LocalSource::Manual);
        let mut share =
            |own: &LocalAddresses| (0..2000).filter(|_| own.for_peer(&inbound, &mut random) == Some(sees)).count();
        let half = share(&sure);
        sure.seen(&"8.8.8.8".parse().unwrap());
        let eighth = share(&sure);
        assert!((900..1100).contains(&half) && (180..320).contains(&eighth), "{half}, {eighth}");
    }
}
