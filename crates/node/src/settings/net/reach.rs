//! The reachable networks and their proxies: `-onlynet`, `-cjdnsreachable`, `-proxy`, `-onion`. Input: the given
//! options. Output: networks, proxies.
//!
//! The checks are in Core's order. I2P is never reachable; `-onlynet=i2p` without `-i2psam` is an error, as in Core.

use super::NetProblem;
use super::address::{Names, UNIX_PREFIX, has_good_port, proxy};
use crate::settings::error::SettingsError;
use crate::settings::given::Given;
use lydian_options::switch;
use lydian_p2p::proxies::{Proxies, Proxy};
use lydian_wire::Network;
use std::collections::BTreeSet;

/// The part of Core's `CheckHostPortOptions` for proxies.
pub(super) fn check_ports(given: &Given<'_>) -> Result<(), SettingsError> {
    for (option, may_have_suffix) in [("onion", false), ("proxy", true)] {
        given.net_list(option, |text| {
            let suffix = text.rsplit_once('=').filter(|_| may_have_suffix);
            let address = suffix.map_or(text, |(address, _)| address);
            let is_good = has_good_port(address) || text.starts_with(UNIX_PREFIX);
            if is_good { Ok(()) } else { Err(NetProblem::Port { option, text: text.to_owned() }) }
        })?;
    }
    Ok(())
}

/// The networks of `-onlynet`; all networks if it is not given.
pub(super) fn networks(given: &Given<'_>) -> Result<BTreeSet<Network>, SettingsError> {
    let only = given.net_list("onlynet", |text| {
        Network::from_name(text).ok_or_else(|| NetProblem::UnknownNetwork { text: text.to_owned() })
    })?;
    let all = [Network::Ipv4, Network::Ipv6, Network::TorV3, Network::I2p, Network::Cjdns];
    let mut networks: BTreeSet<Network> = if only.is_empty() { all.into() } else { only.iter().copied().collect() };
    // As in Core, what counts is whether the option is given at all.
    if !given.is_set("cjdnsreachable") && networks.remove(&Network::Cjdns) && !only.is_empty() {
        return Err(NetProblem::CjdnsNotReachable.into());
    }
    Ok(networks)
}

/// The proxies, and the networks that are reachable with them.
pub(super) fn proxies(
    given: &Given<'_>,
    mut networks: BTreeSet<Network>,
    listens: bool,
    names: &Names,
) -> Result<(Proxies, BTreeSet<Network>), SettingsError> {
    let isolates_streams = given.switch("proxyrandomize").unwrap_or(true);
    let mut proxies = Proxies::default();
    for (networks, address) in given.net_list("proxy", |text| proxy_of(text, names))? {
        let proxy = address.map(|address| Proxy { address, isolates_streams });
        networks.set(&mut proxies, &proxy);
    }
    let is_onion_wanted = given.is_set("onlynet") && networks.contains(&Network::TorV3) && has_onlynet(given);
    match given.text("onion").as_deref() {
        None | Some("") => {}
        Some("0") if is_onion_wanted => return Err(NetProblem::OnionForbidden.into()),
        Some("0") => proxies.onion = None,
        Some(_) => {
            let address = given.net_one("onion", |text| proxy("onion", text, names))?;
            proxies.onion = address.map(|address| Proxy { address, isolates_streams });
        }
    }
    // Core may still get a proxy from the control port of Tor, which Lydian does not use.
    let listens_on_onion = given.core("listenonion").map_or(listens, switch);
    if proxies.onion.is_none() && networks.remove(&Network::TorV3) && is_onion_wanted && !listens_on_onion {
        return Err(NetProblem::OnionWithoutProxy.into());
    }
    Ok((proxies, networks))
}

/// Removes I2P, which is never reachable, after Core's checks of `-i2psam`.
pub(super) fn without_i2p(
    given: &Given<'_>,
    mut networks: BTreeSet<Network>,
    names: &Names,
) -> Result<BTreeSet<Network>, SettingsError> {
    let sam = given.core("i2psam").unwrap_or_default();
    if !sam.is_empty() {
        proxy("i2psam", sam, names)?;
    }
    if networks.remove(&Network::I2p) && has_onlynet(given) && sam.is_empty() {
        return Err(NetProblem::I2pWithoutSam.into());
    }
    Ok(networks)
}

fn has_onlynet(given: &Given<'_>) -> bool {
    !given.core_all("onlynet").is_empty()
}

/// The networks that a proxy is for.
#[derive(Clone, Copy, Debug)]
enum For {
    All,
    Ipv4,
    Ipv6,
    Onion,
    Cjdns,
}

impl For {
    fn set(self, proxies: &mut Proxies, proxy: &Option<Proxy>) {
        let Proxies { ipv4, ipv6, onion, cjdns, name } = proxies;
        let places = match self {
            For::All => vec![ipv4, ipv6, onion, cjdns, name],
            For::Ipv4 => vec![ipv4, name],
            For::Ipv6 => vec![ipv6, name],
            For::Onion => vec![onion],
            For::Cjdns => vec![cjdns],
        };
        places.into_iter().for_each(|place| place.clone_from(proxy));
    }
}

/// `<address>[=<network>]`; no address, or `0`, removes a proxy.
fn proxy_of(text: &str, names: &Names) -> Result<(For, Option<lydian_p2p::proxies::ProxyAddress>), NetProblem> {
    let (address, network) = text.rsplit_once('=').map_or((text, None), |(address, network)| (address, Some(network)));
    if network == Some("") {
        return Err(NetProblem::ProxyEndsWithEquals { text: text.to_owned() });
    }
    let address = match address {
        "" | "0" => None,
        address => Some(proxy("proxy", address, names)?),
    };
    let lower = network.map(str::to_ascii_lowercase);
    let networks = match lower.as_deref() {
        None => For::All,
        Some("ipv4") => For::Ipv4,
        Some("ipv6") => For::Ipv6,
        Some("onion") => For::Onion,
        Some("cjdns") => For::Cjdns,
        Some(other) => {
            return Err(NetProblem::ProxyNetwork { text: text.to_owned(), network: other.to_owned() });
        }
    };
    Ok((networks, address))
}
