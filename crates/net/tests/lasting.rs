//! What a network keeps between runs, and how it reconnects to a peer that was away.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads the clock for its node"
)]

#[allow(dead_code, reason = "each test file uses its part")]
mod support;

use lydian_disk::RealDisk;
use lydian_engine::Unobserved;
use lydian_net::{DataFolder, Listen, Network, NetworkError};
use lydian_oracle::{Scratch, free_port};
use lydian_p2p::UnixTime;
use lydian_p2p::manager::{ConnectSettings, Question, Reply};
use lydian_wire::{NetAddr, Subnet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use support::{PATIENCE, TestHost, wait_until};

fn start(folder: &Path, listen: &str, connect: ConnectSettings) -> Result<Network, NetworkError> {
    let (engine, mempool) = support::node(folder, 1);
    let mut settings = support::settings(connect);
    // No peer is chosen here, and none of the addresses below can be dialled by chance.
    settings.manager.reachable.clear();
    settings.listen = vec![Listen::at(listen.parse().unwrap())];
    settings.data = Some(DataFolder { disk: Arc::new(RealDisk), folder: folder.to_owned() });
    Network::start(&engine, &mempool, &settings, Arc::new(TestHost::new("lasting")), Arc::new(Unobserved))
}

/// Returns the manager's answer.
fn ask<T>(network: &Network, question: impl FnOnce(Reply<T>) -> Question) -> T {
    let (reply, answer) = Reply::pair();
    assert!(network.handle().ask(question(reply)));
    answer.recv_timeout(PATIENCE).unwrap()
}

fn ready_peers(network: &Network) -> usize {
    ask(network, Question::Peers).iter().filter(|peer| peer.version > 0).count()
}

#[test]
fn addresses_and_bans_last_from_run_to_run() {
    let scratch = Scratch::new("net-lasting");
    let folder = scratch.path();
    let network = start(folder, "127.0.0.1:0", ConnectSettings::default()).unwrap();
    for last in 1..=100 {
        let addr = NetAddr::Ipv4([11, last, 1, 1].into());
        // An address that finds its place taken is dropped.
        let _ = ask(&network, |reply| Question::AddAddress { addr, port: 8333, is_tried: false, reply });
    }
    let subnet: Subnet = "9.9.0.0/16".parse().unwrap();
    assert!(ask(&network, |reply| Question::Ban { subnet, seconds: 3600, is_absolute: false, reply }));
    let known = |network: &Network| {
        let counts = ask(network, |reply| Question::AddressCounts { networks: vec![None], reply });
        counts[0].new + counts[0].tried
    };
    let before = known(&network);
    assert!(before > 80, "{before}");
    drop(network);
    assert!(!folder.join("anchors.dat").exists(), "no peer was chosen");

    let network = start(folder, "127.0.0.1:0", ConnectSettings::default()).unwrap();
    assert_eq!(known(&network), before);
    let (subnet, now) = ("9.9.1.1".parse().unwrap(), UnixTime(support::unix_seconds()));
    assert!(ask(&network, |reply| Question::IsBanned { subnet, is_single: true, now, reply }));
    drop(network);

    let path = folder.join("peers.dat");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[50] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = start(folder, "127.0.0.1:0", ConnectSettings::default()).unwrap_err().to_string();
    assert!(error.starts_with("Invalid or corrupt peers.dat (Checksum mismatch, data corrupted)"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "it is left to the operator");
}

#[test]
fn a_peer_that_was_away_is_found_again() {
    let (first, second) = (Scratch::new("net-away"), Scratch::new("net-back"));
    // No other test takes this port while the peer is away.
    let address = SocketAddr::from(([127, 0, 0, 1], free_port().unwrap()));
    let away = start(first.path(), &address.to_string(), ConnectSettings::default()).unwrap();
    let connect = ConnectSettings { specified: vec![address.to_string()], ..ConnectSettings::default() };
    let network = start(second.path(), "127.0.0.1:0", connect).unwrap();
    wait_until("they are connected", || ready_peers(&network) == 1 && ready_peers(&away) == 1);
    drop(away);
    wait_until("the end is seen", || ready_peers(&network) == 0);
    let back = start(first.path(), &address.to_string(), ConnectSettings::default()).unwrap();
    wait_until("they are connected again", || ready_peers(&network) == 1 && ready_peers(&back) == 1);
    // Off and on again.
    assert!(!ask(&network, |reply| Question::SetNetworkActive { on: false, reply }));
    wait_until("the network is off", || ready_peers(&network) == 0 && ready_peers(&back) == 0);
    assert!(ask(&network, |reply| Question::SetNetworkActive { on: true, reply }));
    wait_until("the network is on", || ready_peers(&network) == 1);
}
