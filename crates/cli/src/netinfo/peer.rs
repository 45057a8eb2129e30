//! One line of `-netinfo` for each peer. Input: entries of `getpeerinfo`. Output: a table whose columns are as wide as
//! their widest value.

use super::Level;
use crate::error::CallError;
use crate::value::{part, real};
use lydian_rpc::Json;
use std::cmp::Ordering;

/// The data that is shown of a peer.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    address: String,
    /// Number and name.
    version: String,
    kind: &'static str,
    network: &'static str,
    services: String,
    transport: char,
    /// In seconds; negative if unknown.
    ping_min: f64,
    ping: f64,
    addresses_processed: i64,
    addresses_limited: i64,
    /// Times in seconds since 1970; 0 if it never happened.
    connected: i64,
    last_block: i64,
    last_receive: i64,
    last_send: i64,
    last_transaction: i64,
    id: i32,
    mapped_as: i32,
    has_addresses: bool,
    has_transactions: bool,
    /// High-bandwidth compact block relay: the peer selected us (from), we selected the peer (to).
    is_high_bandwidth_from: bool,
    is_high_bandwidth_to: bool,
    is_outbound: bool,
}

impl Peer {
    pub(super) fn read(peer: &Json, network: &'static str) -> Result<Peer, CallError> {
        let text = |key| part(peer, key).as_text();
        let integer = |key| part(peer, key).as_integer::<i64>();
        let or = |key, default: i64| if part(peer, key).is_null() { Ok(default) } else { integer(key) };
        let switch = |key, default| if part(peer, key).is_null() { Ok(default) } else { part(peer, key).as_bool() };
        let ping = |key| if part(peer, key).is_null() { Ok(-1.0) } else { real(part(peer, key)) };
        let number = part(peer, "version").as_integer::<i32>()?;
        let transport = match part(peer, "transport_protocol_type") {
            Json::Null => '1',
            other => match other.as_text()?.as_bytes() {
                [b'v', digit] => char::from(*digit),
                _ => ' ',
            },
        };
        let mapped_as = match part(peer, "mapped_as") {
            Json::Null => 0,
            number => number.as_integer()?,
        };
        Ok(Peer {
            address: text("addr")?.to_owned(),
            version: format!("{number}{}", text("subver")?),
            kind: kind(text("connection_type")?),
            network,
            services: services(part(peer, "servicesnames").as_array()?)?,
            transport,
            ping_min: ping("minping")?,
            ping: ping("pingtime")?,
            addresses_processed: or("addr_processed", 0)?,
            addresses_limited: or("addr_rate_limited", 0)?,
            connected: integer("conntime")?,
            last_block: integer("last_block")?,
            last_receive: integer("lastrecv")?,
            last_send: integer("lastsend")?,
            last_transaction: integer("last_transaction")?,
            id: part(peer, "id").as_integer()?,
            mapped_as,
            has_addresses: switch("addr_relay_enabled", false)?,
            has_transactions: switch("relaytxes", true)?,
            is_high_bandwidth_from: part(peer, "bip152_hb_from").as_bool()?,
            is_high_bandwidth_to: part(peer, "bip152_hb_to").as_bool()?,
            is_outbound: !part(peer, "inbound").as_bool()?,
        })
    }

    /// Inbound peers first, then by shortest ping.
    pub(super) fn order(&self, other: &Peer) -> Ordering {
        self.is_outbound.cmp(&other.is_outbound).then(self.ping_min.total_cmp(&other.ping_min))
    }

    /// Returns the cells of variable width: services, addresses processed and limited, age, id.
    fn cells(&self, now: i64) -> [String; 5] {
        let or = |number: i64, otherwise: &str| if number == 0 { otherwise.to_owned() } else { number.to_string() };
        let age = if self.connected == 0 { String::new() } else { ((now - self.connected) / 60).to_string() };
        [
            self.services.clone(),
            or(self.addresses_processed, if self.has_addresses { "" } else { "." }),
            or(self.addresses_limited, ""),
            age,
            self.id.to_string(),
        ]
    }
}

/// Returns the table, or nothing if there are no peers.
pub(super) fn table(peers: &[Peer], level: Level, now: i64) -> String {
    if peers.is_empty() {
        return String::new();
    }
    let mut widths = [6, 5, 6, 5, 2];
    for peer in peers {
        for (width, cell) in widths.iter_mut().zip(peer.cells(now)) {
            *width = cell.len().max(*width);
        }
    }
    let [serv, processed, limited, age, id] = widths;
    let longest = peers.iter().map(|peer| peer.address.len() + 1).max().unwrap_or(0);
    let (address_width, address) = if level.has_address() { (longest, "address") } else { (0, "") };
    let version = if level.has_version() { "version" } else { "" };
    let has_asmap = peers.iter().any(|peer| peer.mapped_as != 0);
    let mut text = format!(
        "<->   type   net {:>serv$}  v  mping   ping send recv  txn  blk  hb {:>processed$}{:>limited$}{:>age$} ",
        "serv", "addrp", "addrl", "age"
    );
    if has_asmap {
        text += " asmap ";
    }
    text += &format!("{:>id$} {address:<address_width$}{version}\n", "id");
    for peer in peers {
        text += &line(peer, level, now, (widths, address_width, has_asmap));
    }
    text += &format!("{:16}{:serv$}         ms     ms  sec  sec  min  min                {:>age$}\n\n", "", "", "min");
    text
}

fn line(peer: &Peer, level: Level, now: i64, (widths, address_width, has_asmap): ([usize; 5], usize, bool)) -> String {
    let [serv, processed, limited, age, id] = widths;
    let [services, addresses_processed, addresses_limited, minutes, number] = peer.cells(now);
    let since = |time: i64, unit: i64| if time == 0 { String::new() } else { ((now - time) / unit).to_string() };
    let transaction = match peer.last_transaction {
        0 if !peer.has_transactions => "*".to_owned(),
        time => since(time, 60),
    };
    let high_bandwidth = format!(
        "{}{}",
        if peer.is_high_bandwidth_to { '.' } else { ' ' },
        if peer.is_high_bandwidth_from { '*' } else { ' ' }
    );
    let asmap = if peer.mapped_as == 0 { String::new() } else { peer.mapped_as.to_string() };
    let version = if level.has_version() && peer.version != "0" { peer.version.as_str() } else { "" };
    let address = if level.has_address() { peer.address.as_str() } else { "" };
    format!(
        "{:>3} {:>6} {:>5} {services:>serv$} {:>2}{:>7}{:>7}{:>5}{:>5}{transaction:>5}{:>5}  {high_bandwidth:>2} \
         {addresses_processed:>processed$}{addresses_limited:>limited$}{minutes:>age$}{asmap:>as_width$} {number:>id$} \
         {address:<address_width$}{version}\n",
        if peer.is_outbound { "out" } else { "in" },
        peer.kind,
        peer.network,
        peer.transport,
        milliseconds(peer.ping_min),
        milliseconds(peer.ping),
        since(peer.last_send, 1),
        since(peer.last_receive, 1),
        since(peer.last_block, 60),
        as_width = if has_asmap { 7 } else { 0 },
    )
}

/// Returns one letter per service.
pub(super) fn services(names: &[Json]) -> Result<String, CallError> {
    let letter = |name: &Json| -> Result<char, CallError> {
        Ok(match name.as_text()? {
            "NETWORK_LIMITED" => 'l',
            "P2P_V2" => '2',
            other => other.chars().next().unwrap_or(' ').to_ascii_lowercase(),
        })
    };
    names.iter().map(letter).collect()
}

fn kind(connection: &str) -> &'static str {
    match connection {
        "outbound-full-relay" => "full",
        "block-relay-only" => "block",
        "manual" => "manual",
        "feeler" => "feeler",
        "addr-fetch" => "addr",
        "private-broadcast" => "priv",
        _ => "",
    }
}

/// Formats a time as milliseconds; a dash from 1000 seconds on.
fn milliseconds(seconds: f64) -> String {
    let milliseconds = (1000.0 * seconds).round();
    match seconds {
        _ if seconds < 0.0 => String::new(),
        _ if milliseconds > 999_999.0 => "-".to_owned(),
        _ => format!("{milliseconds:.0}"),
    }
}
