//! Where to listen: `-bind`, `-whitebind`, `-port`. Input: the given options. Output: [`Bind`]s, empty if the node does
//! not listen.

use super::NetProblem;
use super::address::{has_good_port, numeric};
use crate::settings::error::SettingsError;
use crate::settings::given::Given;
use lydian_options::Notice;
use lydian_p2p::outbound::is_bad_port;
use lydian_p2p::peer::Permissions;
use lydian_p2p::permissions::WhiteBind;
use lydian_wire::Endpoint;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// An address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) address: SocketAddr,
    /// Permissions of the peers that connect there.
    pub(crate) permissions: Permissions,
    /// Peers that connect there come through the onion service, so their address is Tor's.
    pub(crate) is_onion: bool,
    /// The user did not ask for this address, and the system may not support its kind.
    pub(crate) is_optional: bool,
}

impl Bind {
    fn plain(address: SocketAddr) -> Bind {
        Bind { address, permissions: Permissions::NONE, is_onion: false, is_optional: false }
    }
}

/// The part of Core's `CheckHostPortOptions` for binds.
pub(super) fn check_ports(given: &Given<'_>) -> Result<(), SettingsError> {
    let fail = |option, text: &str| Err(NetProblem::Port { option, text: text.to_owned() });
    given.net_list("bind", |text| {
        let address = text.rsplit_once('=').map_or(text, |(address, _)| address);
        if has_good_port(address) { Ok(()) } else { fail("bind", text) }
    })?;
    given.net_list("whitebind", |text| if has_good_port(text) { Ok(()) } else { fail("whitebind", text) })?;
    Ok(())
}

/// Core's `GetListenPort`: the port that is announced to peers.
pub(super) fn listen_port(given: &Given<'_>, port: u16) -> u16 {
    let (binds, whitebinds) = (given.core_all("bind"), given.core_all("whitebind"));
    let of_bind = binds.iter().filter_map(|text| numeric(text, 0, false)).map(|bind| bind.port);
    let of_whitebind = whitebinds.iter().filter_map(|text| WhiteBind::parse(text, false).ok());
    let without_noban = of_whitebind.filter(|bind| !bind.permissions.contains(Permissions::NO_BAN));
    let mut ports = of_bind.filter(|port| *port != 0).chain(without_noban.map(|bind| bind.endpoint.port));
    ports.next().unwrap_or(port)
}

/// All addresses to listen on.
pub(super) fn binds(
    given: &Given<'_>,
    port: u16,
    is_port_given: bool,
    with_cjdns: bool,
    listens: bool,
    notices: &mut Vec<Notice>,
) -> Result<Vec<Bind>, SettingsError> {
    let mut binds = given.net_list("bind", |text| bind(text, port, with_cjdns))?;
    for bind in binds.iter().filter(|bind| !bind.is_onion && is_bad_port(bind.address.port())) {
        notices.push(bad_port("-bind", bind.address.port()));
    }
    binds.extend(given.net_list("whitebind", |text| whitebind(text, with_cjdns))?);
    // Those of the onion service come last, as Core opens them.
    binds.sort_by_key(|bind| bind.is_onion);
    let mut seen = BTreeSet::new();
    if let Some(twice) = binds.iter().find(|bind| !seen.insert(bind.address)) {
        let address = Endpoint::from(twice.address).to_string();
        return Err(NetProblem::DuplicateBind { address }.into());
    }
    if !binds.is_empty() || !listens {
        return Ok(binds);
    }
    if is_port_given && is_bad_port(port) {
        notices.push(bad_port("-port", port));
    }
    let six = Bind { is_optional: true, ..Bind::plain((Ipv6Addr::UNSPECIFIED, port).into()) };
    Ok(vec![six, Bind::plain((Ipv4Addr::UNSPECIFIED, port).into())])
}

/// `<addr>[:<port>][=onion]`; the default port of the onion service is the default port plus one.
fn bind(text: &str, port: u16, with_cjdns: bool) -> Result<Bind, NetProblem> {
    let (address, kind) = text.rsplit_once('=').map_or((text, None), |(address, kind)| (address, Some(kind)));
    let (is_known, port) = match kind {
        None => (true, port),
        Some(kind) => (kind == "onion", port.saturating_add(1)),
    };
    let found = numeric(address, port, with_cjdns).filter(|_| is_known).and_then(|endpoint| endpoint.socket_addr());
    let address = found.ok_or_else(|| NetProblem::Unresolved { option: "bind", text: text.to_owned() })?;
    Ok(Bind { is_onion: kind.is_some(), ..Bind::plain(address) })
}

fn whitebind(text: &str, with_cjdns: bool) -> Result<Bind, NetProblem> {
    let parsed = WhiteBind::parse(text, with_cjdns).map_err(NetProblem::Permission)?;
    let unresolved = || NetProblem::Unresolved { option: "whitebind", text: text.to_owned() };
    let address = parsed.endpoint.socket_addr().ok_or_else(unresolved)?;
    Ok(Bind { permissions: parsed.permissions, ..Bind::plain(address) })
}

fn bad_port(option: &str, port: u16) -> Notice {
    Notice::Warning(format!(
        "{option} request to listen on port {port}. This port is considered \"bad\" and thus it is unlikely that any peer will connect to it. See \
         doc/p2p-bad-ports.md for details and a full list."
    ))
}
