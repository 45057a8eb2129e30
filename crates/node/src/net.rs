//! The network of the node. Input: a session, an engine. Output: [`lydian_net::Network`], which works until it is
//! dropped. Wiring only: passes the clock, the log and random numbers to it.

use crate::clock::{mockable_now, mocked, node_now, now_micros, now_nanos};
use crate::host::interfaces;
use crate::listening::{Service, Transport};
use crate::log::Log;
use crate::run::Session;
use crate::settings::Prune;
use crate::settings::net::{Bind, NetSettings};
use crate::signals::Stop;
use lydian_engine::{Engine, LogLine, LogSwitches, Observer};
use lydian_mempool::Mempool;
use lydian_net::{Buffers, DataFolder, Host, Listen, Network, NetworkError, NetworkSettings, ValidationEnd};
use lydian_p2p::filters::FilterSource;
use lydian_p2p::local_address::{LocalAddresses, LocalSettings};
use lydian_p2p::manager::{ConnectSettings, ManagerSettings};
use lydian_p2p::peer::{Local, Permissions};
use lydian_p2p::{Moment, UnixTime};
use lydian_wire::Services;
use rustix::rand::{GetRandomFlags, getrandom};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of downloaded blocks that may wait for validation.
const DOWNLOAD_BYTES: u64 = 64 << 20;

/// Time between two checks whether the node should end.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// Starts the network.
pub(crate) fn start(
    session: &Session<'_>,
    engine: &Arc<Engine>,
    mempool: &Arc<Mempool>,
    filters: Option<Arc<dyn FilterSource>>,
    observer: Arc<dyn Observer + Send>,
) -> Result<Network, NetworkError> {
    let settings = session.settings;
    let host = Arc::new(NodeHost { log: Arc::clone(&session.log), stop: session.stop.clone() });
    let mut seed = [0; 32];
    host.fill_random(&mut seed);
    let chain = if settings.prune == Prune::Never { Services::NETWORK } else { Services::NONE };
    let v2 = if settings.net.v2 { Services::P2P_V2 } else { Services::NONE };
    let filtering = if filters.is_some() { Services::COMPACT_FILTERS } else { Services::NONE };
    let network = NetworkSettings {
        filters,
        manager: ManagerSettings {
            params: settings.params.clone(),
            minimum_chain_work: settings.minimum_chain_work,
            initial_download: Arc::clone(&session.initial_download),
            blocks_only: settings.net.blocks_only,
            local: Local {
                services: chain | Services::NETWORK_LIMITED | Services::WITNESS | v2 | filtering,
                user_agent: settings.net.user_agent.clone().into_bytes(),
                ignores_transactions: settings.net.blocks_only,
                peer_timeout: settings.net.peer_timeout,
                own: own_addresses(&settings.net),
            },
            reachable: settings.net.reachable.clone(),
            download_bytes: DOWNLOAD_BYTES,
            seed,
            connect: ConnectSettings {
                deterministic_addrman: settings.test.deterministic_addrman,
                check_addrman: settings.checkaddrman,
                ..connect(&settings.net)
            },
        },
        listen: settings.net.binds.iter().map(listen).collect(),
        whitelist: settings.net.whitelist.clone(),
        connect_timeout: settings.net.connect_timeout,
        buffers: Buffers { receive: settings.net.receive_buffer_bytes, send: settings.net.send_buffer_bytes },
        data: Some(DataFolder { disk: Arc::clone(&session.disk), folder: settings.datadir.clone() }),
        ban_time: settings.net.ban_seconds,
        captures_messages: settings.net.captures_messages,
    };
    let network = Network::start(engine, mempool, &network, host, observer)?;
    for address in network.addresses() {
        let is_onion = settings.net.binds.iter().any(|bind| bind.is_onion && bind.address == *address);
        let transport = if is_onion { Transport::Onion } else { Transport::Peers };
        session.listening.add(Service::P2p, transport, *address);
    }
    Ok(network)
}

/// Which peers to connect to, and how.
fn connect(net: &NetSettings) -> ConnectSettings {
    ConnectSettings {
        automatic_max: net.connections_max,
        chooses_peers: net.connect.is_none(),
        specified: net.connect.clone().unwrap_or_default(),
        added: net.added.clone(),
        seednodes: net.seed_nodes.clone(),
        dns_seed: net.dns_seed,
        force_dns_seed: net.force_dns_seed,
        fixed_seeds: net.fixed_seeds,
        resolves_names: net.dns,
        has_name_proxy: net.proxies.name.is_some(),
        default_port: net.default_port,
        v2: net.v2,
        is_network_active: net.is_active,
        proxies: net.proxies.clone(),
        upload_target: net.upload_target,
        dns_seeds: net.signet_seeds.clone(),
        ..ConnectSettings::default()
    }
}

fn listen(bind: &Bind) -> Listen {
    let Bind { address, permissions, is_onion, is_optional } = *bind;
    Listen { address, permissions, is_onion, is_optional }
}

/// Our own addresses, as far as the settings and the machine determine them.
fn own_addresses(net: &NetSettings) -> LocalAddresses {
    let is_advertised = |bind: &&Bind| !bind.is_onion && !bind.permissions.contains(Permissions::NO_BAN);
    let settings = LocalSettings {
        listens: !net.binds.is_empty(),
        discover: net.discover,
        port: net.listen_port,
        external: net.external.clone(),
        binds: net.binds.iter().filter(is_advertised).map(|bind| bind.address.into()).collect(),
        interfaces: if net.discover_interfaces { interfaces() } else { Vec::new() },
    };
    LocalAddresses::new(&settings, &net.reachable)
}

/// Waits until the node is asked to stop, reaches `-stopatheight`, or validation ends by itself. Calls `look` at least
/// ten times a second. Returns `None` if the node was asked to stop.
pub(crate) fn wait(
    session: &Session<'_>,
    engine: &Engine,
    network: &Network,
    look: &mut dyn FnMut(),
) -> Option<ValidationEnd> {
    while !session.stop.is_asked() {
        look();
        if session.settings.stopatheight.is_some_and(|height| engine.tip().height >= height) {
            session.log.info("Stopping: the height of -stopatheight is reached");
            return Some(ValidationEnd::Stopped);
        }
        if let Some(end) = network.validator().end() {
            return Some(end);
        }
        // It may have been met while nothing was validated.
        if let Some(error) = engine.follower_failure() {
            return Some(ValidationEnd::Failed(error));
        }
        session.stop.wait(LOOK, || network.validator().has_ended());
    }
    None
}

#[derive(Debug)]
struct NodeHost {
    log: Arc<Log>,
    stop: Stop,
}

impl Host for NodeHost {
    fn now(&self) -> Moment {
        Moment { elapsed: Duration::from_nanos(now_nanos()), mockable: node_now(), unix: UnixTime(mockable_now()) }
    }

    fn log_line(&self, line: &LogLine) {
        self.log.take(line.level, line.place, &line.text);
    }

    fn log_switches(&self) -> LogSwitches {
        self.log.switches()
    }

    fn unix_micros(&self) -> u64 {
        mocked().map_or_else(now_micros, |seconds| seconds.saturating_mul(1_000_000))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        fill_random(bytes);
    }

    fn validation_ended(&self) {
        self.stop.wake();
    }
}

/// Fills the buffer with random bytes from the system, fit for keys.
pub(crate) fn fill_random(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            // Without random numbers no key is secret, so the node must not run.
            Err(error) => panic!("the system provides no random numbers: {error}"),
        }
    }
}
