//! Settings of the connections to peers. Input: [`super::given::Given`]. Output: [`NetSettings`], or the first invalid
//! value, in Core's words.
//!
//! The effects of options on each other ([`interaction`]) are those of Core's `InitParameterInteraction`; the checks
//! are those of its `AppInitParameterInteraction` and `AppInitMain`, in that order. Names are resolved for `-proxy`,
//! `-onion`, `-i2psam` and `-externalip` only, and not with `-dns=0`. Opens nothing.

mod address;
mod bind;
mod interaction;
mod problem;
mod reach;
#[cfg(test)]
mod tests;

pub(super) use address::has_good_port;
pub(crate) use bind::Bind;
pub(crate) use problem::NetProblem;

use super::error::SettingsError;
use super::given::Given;
use crate::host::Host;
use crate::limits::USER_AGENT_LENGTH_MAX;
use address::Names;
use interaction::Interaction;
use lydian_consensus::Chain;
use lydian_options::Notice;
use lydian_p2p::fixed_seeds::default_port;
use lydian_p2p::permissions::{WhiteRange, Whitelist};
use lydian_p2p::proxies::Proxies;
use lydian_wire::{Endpoint, Network};
use std::collections::BTreeSet;
use std::time::Duration;

/// Clients compare the first part as a version; the second names this program. Comments follow it.
const USER_AGENT: &str = concat!("/Satoshi:31.0.0/Lydian:", env!("CARGO_PKG_VERSION"));

/// Core's `MAX_ADDNODE_CONNECTIONS`.
const ADDED_PEERS_MAX: u64 = 8;

/// Files that are open besides connections: Core's `MIN_LEVELDB_FDS`, which is more than the engine needs.
const OTHER_FILES: u64 = 150;

const MAX_CONNECTIONS_DEFAULT: i64 = 125;

/// The default of `-timeout`.
pub(super) const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// The settings of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetSettings {
    /// `-connect`: connect to these peers only, to none for `-noconnect`. `None`: to peers from the address manager.
    pub(crate) connect: Option<Vec<String>>,
    /// `-addnode`: a host or an address, with or without a port.
    pub(crate) added: Vec<String>,
    /// `-seednode`.
    pub(crate) seed_nodes: Vec<String>,
    /// Addresses to listen on; empty if the node does not listen.
    pub(crate) binds: Vec<Bind>,
    /// The port that is announced to peers: Core's `GetListenPort`.
    pub(crate) listen_port: u16,
    pub(crate) default_port: u16,
    pub(crate) v2: bool,
    /// `-maxconnections`, as far as the system permits; the peers of `-addnode` are not counted.
    pub(crate) connections_max: usize,
    /// File descriptors that the system grants.
    pub(crate) descriptors: u64,
    pub(crate) ban_seconds: u64,
    /// `-capturemessages`
    pub(crate) captures_messages: bool,
    pub(crate) whitelist: Whitelist,
    /// Networks for automatic connections.
    pub(crate) reachable: BTreeSet<Network>,
    pub(crate) proxies: Proxies,
    /// `-externalip`.
    pub(crate) external: Vec<Endpoint>,
    /// `-discover`: whether reports of peers and interfaces about our address count.
    pub(crate) discover: bool,
    /// Whether the addresses of this machine's interfaces are ours, because the node listens on all of them.
    pub(crate) discover_interfaces: bool,
    /// `-dns`: names of peers may be looked up.
    pub(crate) dns: bool,
    pub(crate) dns_seed: bool,
    pub(crate) force_dns_seed: bool,
    pub(crate) fixed_seeds: bool,
    /// `-signetseednode`, instead of the DNS seeds of that chain.
    pub(crate) signet_seeds: Option<Vec<String>>,
    pub(crate) user_agent: String,
    /// `-maxuploadtarget`: bytes per day; 0 means no limit.
    pub(crate) upload_target: u64,
    /// `-timeout`.
    pub(crate) connect_timeout: Duration,
    /// `-peertimeout`.
    pub(crate) peer_timeout: Duration,
    /// `-networkactive`.
    pub(crate) is_active: bool,
    /// `-maxreceivebuffer` and `-maxsendbuffer`, for one connection.
    pub(crate) receive_buffer_bytes: usize,
    pub(crate) send_buffer_bytes: usize,
    /// Lines for the log: which options decided others.
    pub(crate) notes: Vec<String>,
    /// `-blocksonly`.
    pub(crate) blocks_only: bool,
    /// `-listen`, after other options had their effect.
    pub(crate) listens: bool,
}

impl NetSettings {
    /// The settings that depend on several options or on the chain, and the defaults of the others, which are stored by
    /// their entries in the table.
    pub(super) fn new(
        chain: Chain,
        given: &Given<'_>,
        host: &Host,
        notices: &mut Vec<Notice>,
    ) -> Result<NetSettings, SettingsError> {
        let default_port = default_port(chain);
        let options = Interaction::new(given);
        let (force_dns_seed, dns_seed) = (options.switch("forcednsseed", false), options.switch("dnsseed", true));
        if force_dns_seed && !dns_seed {
            return Err(NetProblem::ForcedWithoutDnsSeed.into());
        }
        let listens = options.switch("listen", true);
        let bind_count = given.core_all("bind").len() + given.core_all("whitebind").len();
        if bind_count > 0 && !listens {
            return Err(NetProblem::BindWithoutListen.into());
        }
        let (connections_max, descriptors) = connections_max(given, bind_count, host, notices)?;
        let peer_timeout = peer_timeout(given)?;
        let upload_target = given.net_one("maxuploadtarget", upload_target)?.unwrap_or(0);
        let port = given.net_one("port", |text| port("port", text))?;
        let names = Names { lookup: options.switch("dns", true).then_some(host.lookup) };
        reach::check_ports(given)?;
        bind::check_ports(given)?;
        let user_agent = user_agent(given)?;
        let (proxies, reachable) = ways(given, dns_seed, listens, &names)?;
        let with_cjdns = reachable.contains(&Network::Cjdns);
        let port_or_default = port.unwrap_or(default_port);
        let listen_port = bind::listen_port(given, port_or_default);
        let external = given.net_list("externalip", |text| address::external(text, listen_port, with_cjdns, &names))?;
        let binds = bind::binds(given, port_or_default, port.is_some(), with_cjdns, listens, notices)?;
        let discover = options.switch("discover", true);
        let is_everywhere = bind_count == 0 || binds.iter().any(|bind| bind.address.ip().is_unspecified());
        let whitelist = whitelist(given, &options, with_cjdns)?;
        let reachable = reach::without_i2p(given, reachable, &names)?;
        Ok(NetSettings {
            connect: connect(given, notices),
            added: Vec::new(),
            seed_nodes: Vec::new(),
            binds,
            listen_port,
            default_port,
            v2: true,
            connections_max,
            descriptors,
            ban_seconds: 24 * 60 * 60,
            captures_messages: false,
            whitelist,
            reachable,
            proxies,
            external,
            discover,
            discover_interfaces: discover && is_everywhere,
            dns: names.lookup.is_some(),
            dns_seed,
            force_dns_seed,
            fixed_seeds: options.switch("fixedseeds", true) && !is_signet_of_others(chain, given),
            signet_seeds: signet_seeds(chain, given),
            user_agent,
            upload_target,
            connect_timeout: CONNECT_TIMEOUT_DEFAULT,
            peer_timeout,
            is_active: true,
            receive_buffer_bytes: 5_000_000,
            send_buffer_bytes: 1_000_000,
            blocks_only: options.switch("blocksonly", false),
            notes: options.notes,
            listens,
        })
    }

    /// Whether the node can have connections without a later request, such as the RPC `addnode`.
    pub(crate) fn is_wanted(&self) -> bool {
        let has_peers = self.connect.as_ref().is_none_or(|connect| !connect.is_empty());
        has_peers || !self.added.is_empty() || !self.binds.is_empty()
    }
}

/// Notes options that have no effect with `-connect`, as in Core.
fn note_ignored(connect: &[String], given: &Given<'_>, notices: &mut Vec<Notice>) {
    if !connect.is_empty() && !given.core_all("seednode").is_empty() {
        notices.push(Notice::LogInfo("-seednode is ignored when -connect is used".to_owned()));
    }
    if given.switch("dnsseed") == Some(true) && !given.core_all("proxy").is_empty() {
        let words = "-dnsseed is ignored when -connect is used and -proxy is specified";
        notices.push(Notice::LogInfo(words.to_owned()));
    }
}

/// Whether CJDNS is reachable, so that its addresses are not treated as IPv6 addresses.
pub(super) fn has_cjdns(given: &Given<'_>) -> Result<bool, SettingsError> {
    Ok(reach::networks(given)?.contains(&Network::Cjdns))
}

/// The reachable networks and their proxies.
fn ways(
    given: &Given<'_>,
    dns_seed: bool,
    listens: bool,
    names: &Names,
) -> Result<(Proxies, BTreeSet<Network>), SettingsError> {
    let reachable = reach::networks(given)?;
    let has_clearnet = reachable.contains(&Network::Ipv4) || reachable.contains(&Network::Ipv6);
    if given.is_set("dnsseed") && dns_seed && !has_clearnet {
        return Err(NetProblem::DnsSeedUnreachable.into());
    }
    reach::proxies(given, reachable, listens, names)
}

fn whitelist(given: &Given<'_>, options: &Interaction, with_cjdns: bool) -> Result<Whitelist, SettingsError> {
    let ranges =
        given.net_list("whitelist", |text| WhiteRange::parse(text, with_cjdns).map_err(NetProblem::Permission))?;
    Ok(Whitelist {
        ranges,
        relay: options.switch("whitelistrelay", true),
        force_relay: options.switch("whitelistforcerelay", false),
    })
}

/// The part of Core's `CheckHostPortOptions` for bare ports.
pub(super) fn port(option: &'static str, text: &str) -> Result<u16, NetProblem> {
    let digits = text.bytes().all(|digit| digit.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && *number != 0);
    number.ok_or_else(|| NetProblem::Port { option, text: text.to_owned() })
}

/// `-connect=0` alone is Core's other form of `-noconnect`.
fn connect(given: &Given<'_>, notices: &mut Vec<Notice>) -> Option<Vec<String>> {
    let connect = match given.texts("connect") {
        none if none.is_empty() && given.core_all("connect").is_empty() && !given.is_negated("connect") => return None,
        only if only == ["0"] => Vec::new(),
        connect => connect,
    };
    note_ignored(&connect, given, notices);
    Some(connect)
}

fn connections_max(
    given: &Given<'_>,
    bind_count: usize,
    host: &Host,
    notices: &mut Vec<Notice>,
) -> Result<(usize, u64), SettingsError> {
    let wanted = given.integer("maxconnections").unwrap_or(MAX_CONNECTIONS_DEFAULT);
    let wanted = u64::try_from(wanted).map_err(|_| NetProblem::NegativeConnections)?;
    let binds = u64::try_from(bind_count.max(1)).unwrap_or(u64::MAX);
    let required = OTHER_FILES + ADDED_PEERS_MAX + binds;
    let available = (host.descriptors)(wanted.saturating_add(required));
    let Some(room) = available.checked_sub(required) else {
        return Err(NetProblem::Descriptors { available, required }.into());
    };
    if room < wanted {
        let words = format!("Reducing -maxconnections from {wanted} to {room}, because of system limitations.");
        notices.push(Notice::Warning(words));
    }
    Ok((usize::try_from(wanted.min(room)).unwrap_or(usize::MAX), available))
}

fn peer_timeout(given: &Given<'_>) -> Result<Duration, NetProblem> {
    let seconds = u64::try_from(given.integer("peertimeout").unwrap_or(60)).ok().filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or(NetProblem::PeerTimeout)
}

/// A signet with its own challenge, which has neither DNS seeds nor fixed seeds.
fn is_signet_of_others(chain: Chain, given: &Given<'_>) -> bool {
    chain == Chain::Signet && given.is_set("signetchallenge")
}

fn signet_seeds(chain: Chain, given: &Given<'_>) -> Option<Vec<String>> {
    let seeds = given.texts("signetseednode");
    (chain == Chain::Signet && !seeds.is_empty() || is_signet_of_others(chain, given)).then_some(seeds)
}

/// Bytes: a number with a unit, or of mebibytes if it has none: Core's `ParseByteUnits`.
fn upload_target(text: &str) -> Result<u64, NetProblem> {
    let fail = || NetProblem::UploadTarget { text: text.to_owned() };
    let unit = match text.bytes().last() {
        Some(b'k') => Some(1000),
        Some(b'K') => Some(1 << 10),
        Some(b'm') => Some(1000 * 1000),
        Some(b'M') => Some(1 << 20),
        Some(b'g') => Some(1000 * 1000 * 1000),
        Some(b'G') => Some(1 << 30),
        Some(b't') => Some(1000 * 1000 * 1000 * 1000),
        Some(b'T') => Some(1 << 40),
        _ => None,
    };
    let digits = if unit.is_some() { &text[..text.len() - 1] } else { text };
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: Option<u64> = digits.parse().ok().filter(|_| is_plain);
    number.and_then(|number| number.checked_mul(unit.unwrap_or(1 << 20))).ok_or_else(fail)
}

/// Core's `FormatSubVersion` and the checks before it.
fn user_agent(given: &Given<'_>) -> Result<String, SettingsError> {
    let comments = given.net_list("uacomment", |text| {
        let is_safe = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" .,;-_?@".contains(&byte));
        if is_safe { Ok(text.to_owned()) } else { Err(NetProblem::UnsafeComment { text: text.to_owned() }) }
    })?;
    let comments = if comments.is_empty() { String::new() } else { format!("({})", comments.join("; ")) };
    let user_agent = format!("{USER_AGENT}{comments}/");
    if user_agent.len() > USER_AGENT_LENGTH_MAX {
        return Err(NetProblem::LongUserAgent { length: user_agent.len() }.into());
    }
    Ok(user_agent)
}
