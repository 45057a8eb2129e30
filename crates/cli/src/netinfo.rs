//! `-netinfo`: the peers of a node as a table.
//!
//! Input: the replies to [`METHODS`], and the level of detail. Output: text in Core's layout. Invariants: the columns
//! are at the same positions as Core's, so that programs that parse Core's table can parse this one; ages are relative
//! to this machine's clock.

mod help;
mod peer;

pub(crate) use help::HELP;

use crate::clock;
use crate::error::CallError;
use crate::settings::Settings;
use crate::value::{self, part};
use lydian_rpc::Json;
use peer::{Peer, table};

/// The calls of the batch.
pub(crate) const METHODS: &[&str] = &["getpeerinfo", "getnetworkinfo"];

/// Core's networks: long name, short name. The first and the last are shown only if a peer is on them.
const NETWORKS: [(&str, &str); 7] = [
    ("not_publicly_routable", "npr"),
    ("ipv4", "ipv4"),
    ("ipv6", "ipv6"),
    ("onion", "onion"),
    ("i2p", "i2p"),
    ("cjdns", "cjdns"),
    ("internal", "int"),
];

const LEVEL_MAX: u8 = 4;

/// The level of detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Level {
    number: u8,
    is_outbound_only: bool,
}

impl Level {
    pub(crate) fn parse(arguments: &[String]) -> Result<Level, CallError> {
        const MORE: &str = "For more information, run: lydian-cli -netinfo help";
        let refuse = |sentence: String| Err(CallError::Usage(sentence));
        let [level, rest @ ..] = arguments else { return Ok(Level::default()) };
        let Some(number) = level.parse::<u8>().ok().filter(|_| !level.starts_with('+')) else {
            return refuse(format!("invalid -netinfo level argument: {level}\n{MORE}"));
        };
        let number_shown = number.min(LEVEL_MAX);
        match rest.first().map(String::as_str) {
            None => Ok(Level { number: number_shown, is_outbound_only: false }),
            Some("o" | "outonly") if number > 0 => Ok(Level { number: number_shown, is_outbound_only: true }),
            Some(word) if number > 0 => refuse(format!("invalid -netinfo outonly argument: {word}\n{MORE}")),
            Some(word) => refuse(format!(
                "invalid -netinfo outonly argument: {word}\nThe outonly argument is only valid for a level greater than 0 (the \
                 first argument). {MORE}"
            )),
        }
    }

    fn has_details(self) -> bool {
        self.number > 0
    }

    fn has_address(self) -> bool {
        self.number == 2 || self.number == 4
    }

    fn has_version(self) -> bool {
        self.number == 3 || self.number == 4
    }
}

/// Number of peers on each network, and on all of them at the last index.
#[derive(Clone, Copy, Debug, Default)]
struct Counts([u32; NETWORKS.len() + 1]);

impl Counts {
    fn add(&mut self, network: usize) {
        self.0[network] += 1;
        self.0[NETWORKS.len()] += 1;
    }
}

/// Counts over all peers, including those that are not listed.
#[derive(Clone, Debug, Default)]
struct Summary {
    /// Inbound, outbound, total.
    rows: [Counts; 3],
    block_relay: u32,
    manual: u32,
    listed: Vec<Peer>,
}

/// Returns a reply with the text, or the error of one of the two calls.
pub(crate) fn join(settings: &Settings, level: Level, batch: &[Json]) -> Result<Json, CallError> {
    let reply = |index| value::member(batch, index);
    if let Some(failed) = [reply(0), reply(1)].into_iter().find(|reply| !part(reply, "error").is_null()) {
        return Ok(failed.clone());
    }
    let network = part(reply(1), "result");
    if part(network, "version").as_integer::<i32>()? < 209_900 {
        return Err(CallError::Usage("-netinfo requires bitcoind server to be running v0.21.0 and up".to_owned()));
    }
    let summary = count(part(reply(0), "result").as_array()?, level)?;
    let chain = match settings.chain().name {
        "main" => String::new(),
        "test" => " testnet".to_owned(),
        name => format!(" {name}"),
    };
    Ok(value::result(Json::Text(text(&summary, network, level, &chain, clock::now_seconds())?)))
}

fn count(peers: &[Json], level: Level) -> Result<Summary, CallError> {
    let mut summary = Summary::default();
    for peer in peers {
        let name = part(peer, "network").as_text()?;
        let Some(network) = index_of(name) else { continue };
        let is_outbound = !part(peer, "inbound").as_bool()?;
        summary.rows[usize::from(is_outbound)].add(network);
        summary.rows[2].add(network);
        match part(peer, "connection_type").as_text()? {
            "block-relay-only" => summary.block_relay += 1,
            "manual" => summary.manual += 1,
            _ => {}
        }
        if level.has_details() && (is_outbound || !level.is_outbound_only) {
            summary.listed.push(Peer::read(peer, NETWORKS[network].1)?);
        }
    }
    summary.listed.sort_by(Peer::order);
    Ok(summary)
}

fn index_of(network: &str) -> Option<usize> {
    NETWORKS.iter().position(|(name, _)| *name == network)
}

fn text(summary: &Summary, network: &Json, level: Level, chain: &str, now: i64) -> Result<String, CallError> {
    let services = part(network, "localservicesnames").as_array()?;
    let protocol = part(network, "protocolversion").as_integer::<i32>()?;
    let subversion = part(network, "subversion").as_text()?;
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("Lydian client v{version}{chain} - server {protocol}{subversion}");
    if level.has_details() {
        text += &format!(" - services {}", peer::services(services)?);
    }
    text += "\n\n";
    text += &table(&summary.listed, level, now);
    text += &totals(summary, part(network, "networks").as_array()?)?;
    if !level.has_details() {
        let names: Result<Vec<_>, _> = services.iter().map(Json::as_text).collect();
        let names = names?.join(", ").to_ascii_lowercase().replace('_', " ");
        text += &format!("\n\nLocal services: {names}");
    }
    text += "\n\nLocal addresses";
    text += &local_addresses(part(network, "localaddresses").as_array()?)?;
    Ok(text)
}

/// Returns the number of peers by network and direction.
fn totals(summary: &Summary, networks: &[Json]) -> Result<String, CallError> {
    let mut columns = Vec::new();
    let mut text = " ".repeat(5);
    for network in networks {
        let name = part(network, "name").as_text()?;
        if let Some(index) = index_of(name).filter(|_| part(network, "reachable") == &Json::Bool(true)) {
            text += &format!("{name:>8}");
            columns.push(index);
        }
    }
    for index in [0, NETWORKS.len() - 1] {
        if summary.rows[2].0[index] > 0 {
            text += &format!("{:>8}", NETWORKS[index].1);
            columns.push(index);
        }
    }
    text += "   total   block";
    if summary.manual > 0 {
        text += "  manual";
    }
    for (name, counts) in ["in", "out", "total"].into_iter().zip(&summary.rows) {
        text += &format!("\n{name:<5}");
        columns.iter().for_each(|index| text += &format!("{:>8}", counts.0[*index]));
        text += &format!("   {:>5}", counts.0[NETWORKS.len()]);
        if name == "out" {
            text += &format!("   {:>5}", summary.block_relay);
            if summary.manual > 0 {
                text += &format!("   {:>5}", summary.manual);
            }
        }
    }
    Ok(text)
}

fn local_addresses(addresses: &[Json]) -> Result<String, CallError> {
    if addresses.is_empty() {
        return Ok(": n/a\n".to_owned());
    }
    let names: Result<Vec<_>, _> = addresses.iter().map(|address| part(address, "address").as_text()).collect();
    let names = names?;
    let width = names.iter().map(|name| name.len() + 1).max().unwrap_or(0);
    let mut text = String::new();
    for (address, name) in addresses.iter().zip(names) {
        let port = part(address, "port").as_integer::<i32>()?;
        let score = part(address, "score").as_integer::<i32>()?;
        text += &format!("\n{name:<width$}    port {port:>6}    score {score:>6}");
    }
    Ok(text)
}

#[cfg(test)]
#[path = "netinfo_tests.rs"]
mod tests;
