//! Seeds for a node that has no addresses of peers.
//!
//! Input: the chain. Output: DNS seeds, fixed addresses, the default port, and the source under which the address
//! manager stores fixed addresses.
//!
//! Core's lists for each chain ([origin](fixed_seeds/ORIGIN.md)). Invariant: every list decodes completely (a test
//! reads them all). Fixed addresses are the last resort: a node at such an address is only trusted to provide further
//! addresses. Cost: 65 kB in the executable.

use crate::draw;
use crate::time::UnixTime;
use lydian_consensus::Chain;
use lydian_primitives::Reader;
use lydian_wire::{Encoding, Endpoint, NetAddr, Services, TimedAddress};
use rand_chacha::ChaCha20Rng;

const WEEK_S: usize = 7 * 24 * 60 * 60;

/// The services that a seed is expected to offer: Core's `SeedsServiceFlags`.
pub const SEEDS_SERVICES: Services = Services(Services::NETWORK.0 | Services::WITNESS.0);

/// Returns the DNS seeds, whose names resolve to addresses of nodes. The final dot makes the names fully qualified.
pub fn dns_seeds(chain: Chain) -> &'static [&'static str] {
    match chain {
        Chain::Main => &[
            "dnsseed.bluematt.me.",
            "seed.bitcoin.jonasschnelli.ch.",
            "seed.btc.petertodd.net.",
            "seed.bitcoin.sprovoost.nl.",
            "dnsseed.emzy.de.",
            "seed.bitcoin.wiz.biz.",
            "seed.mainnet.achownodes.xyz.",
        ],
        Chain::Test => &[
            "testnet-seed.bitcoin.jonasschnelli.ch.",
            "seed.tbtc.petertodd.net.",
            "seed.testnet.bitcoin.sprovoost.nl.",
            "testnet-seed.bluematt.me.",
            "seed.testnet.achownodes.xyz.",
        ],
        Chain::Testnet4 => &["seed.testnet4.bitcoin.sprovoost.nl.", "seed.testnet4.wiz.biz."],
        Chain::Signet => &["seed.signet.bitcoin.sprovoost.nl.", "seed.signet.achownodes.xyz."],
        Chain::Regtest => &[],
    }
}

/// Returns the port that nodes of the chain listen on: Core's `nDefaultPort`.
pub fn default_port(chain: Chain) -> u16 {
    match chain {
        Chain::Main => 8333,
        Chain::Test => 18333,
        Chain::Testnet4 => 48333,
        Chain::Signet => 38333,
        Chain::Regtest => 18444,
    }
}

/// Returns the fixed seeds with a random last-seen time between one and two weeks ago: Core's `ConvertSeeds`.
pub fn fixed_seeds(chain: Chain, now: UnixTime, random: &mut ChaCha20Rng) -> Vec<TimedAddress> {
    let mut reader = Reader::new(match chain {
        Chain::Main => include_bytes!("fixed_seeds/main.bin"),
        Chain::Test => include_bytes!("fixed_seeds/test.bin"),
        Chain::Testnet4 => include_bytes!("fixed_seeds/testnet4.bin"),
        Chain::Signet => include_bytes!("fixed_seeds/signet.bin"),
        Chain::Regtest => &[],
    });
    let mut seeds = Vec::new();
    while let Ok(endpoint) = Endpoint::decode(&mut reader, Encoding::V2) {
        let ago = WEEK_S + draw::below(random, WEEK_S);
        seeds.push(TimedAddress { time: now.minus(ago as u64).to_u32(), services: SEEDS_SERVICES, endpoint });
    }
    seeds
}

/// Returns the source of [`fixed_seeds`] for the address manager. The source of addresses from a DNS seed is
/// [`NetAddr::internal`] of its name.
pub fn fixed_seeds_source() -> NetAddr {
    NetAddr::internal("fixedseeds").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AddrMan;
    use rand_chacha::rand_core::SeedableRng;
    use std::collections::BTreeSet;

    const NOW: UnixTime = UnixTime(1_790_000_000);

    #[test]
    fn every_list_is_read_to_its_end() {
        let mut random = ChaCha20Rng::seed_from_u64(1);
        let files = [
            (Chain::Main, 51_420, 2059),
            (Chain::Test, 4072, 181),
            (Chain::Testnet4, 5380, 230),
            (Chain::Signet, 4064, 170),
            (Chain::Regtest, 0, 0),
        ];
        for (chain, size, count) in files {
            let seeds = fixed_seeds(chain, NOW, &mut random);
            assert_eq!(seeds.len(), count, "{chain:?}");
            let mut encoded = Vec::new();
            seeds.iter().for_each(|seed| seed.endpoint.encode(&mut encoded, Encoding::V2));
            assert_eq!(encoded.len(), size, "{chain:?}");
            let week = WEEK_S as u64;
            for seed in seeds {
                let age = NOW.0 - u64::from(seed.time);
                assert!(seed.endpoint.addr.is_routable() && (week..2 * week).contains(&age), "{seed:?}");
            }
        }
    }

    #[test]
    fn an_empty_address_manager_can_begin_with_them() {
        let mut random = ChaCha20Rng::seed_from_u64(2);
        let mut addrman = AddrMan::new(&mut random);
        let seeds = fixed_seeds(Chain::Main, NOW, &mut random);
        assert!(fixed_seeds_source().is_internal());
        addrman.add(&seeds, &fixed_seeds_source(), 0, NOW);
        assert!(addrman.size(None, None) > 1000, "{addrman:?}");
        let drawn: BTreeSet<_> = (0..100)
            .filter_map(|_| addrman.select(false, &[], NOW))
            .collect::<Vec<_>>()
            .iter()
            .map(|(seed, _)| seed.endpoint)
            .collect();
        assert!(drawn.len() > 50);
    }

    #[test]
    fn names_are_whole_and_ports_differ() {
        let chains = [Chain::Main, Chain::Test, Chain::Testnet4, Chain::Signet, Chain::Regtest];
        assert!(chains.iter().flat_map(|chain| dns_seeds(*chain)).all(|name| name.ends_with('.')));
        assert_eq!(chains.map(default_port), [8333, 18333, 48333, 38333, 18444]);
    }
}
