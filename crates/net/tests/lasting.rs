//! What a network keeps between runs, and how it reconnects to a peer that was away.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads the clock for its node"
)]

#[allow(dead_code, reason = "each test file uses its part")]
mod support;

use lydian_disk::RealDisk;
use lydian_engine::{LogLine, Unobserved};
use lydian_net::{DataFolder, Host, Listen, Network, NetworkError};
use lydian_oracle::Scratch;
use lydian_p2p::Moment;
use lydian_p2p::manager::{ConnectSettings, PeerManager};
use lydian_wire::{Endpoint, NetAddr, Services, TimedAddress};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Longer than any step here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
struct TestHost {
    began: Instant,
}

impl Host for TestHost {
    fn now(&self) -> Moment {
        support::moment(self.began)
    }

    fn log_line(&self, _: &LogLine) {}

    fn fill_random(&self, bytes: &mut [u8]) {
        support::fill_random(bytes);
    }
}

fn start(folder: &Path, listen: &str, connect: ConnectSettings) -> Result<Network, NetworkError> {
    let engine = support::engine(folder, 1);
    let mut settings = support::settings(connect);
    // No peer is chosen here, and none of the addresses below can be dialled by chance.
    settings.manager.reachable.clear();
    settings.listen = vec![Listen::at(listen.parse().unwrap())];
    settings.data = Some(DataFolder { disk: Arc::new(RealDisk), folder: folder.to_owned() });
    Network::start(&engine, &settings, Arc::new(TestHost { began: Instant::now() }), Arc::new(Unobserved))
}

/// Returns the manager's answer.
fn ask<T: Send + 'static>(
    network: &Network,
    question: impl FnOnce(&mut PeerManager, Moment) -> T + Send + 'static,
) -> T {
    let (sender, receiver) = mpsc::sync_channel(1);
    assert!(network.handle().ask(Box::new(move |manager, now| {
        let _ = sender.send(question(manager, now));
    })));
    receiver.recv_timeout(PATIENCE).unwrap()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ready_peers(network: &Network) -> usize {
    ask(network, |manager, now| manager.peers(now).iter().filter(|peer| peer.version > 0).count())
}

#[test]
fn addresses_and_bans_last_from_run_to_run() {
    let scratch = Scratch::new("net-lasting");
    let folder = scratch.path();
    let network = start(folder, "127.0.0.1:0", ConnectSettings::default()).unwrap();
    ask(&network, |manager, now| {
        for last in 1..=100 {
            let addr = NetAddr::Ipv4([11, last, 1, 1].into());
            let endpoint = Endpoint::new(addr, 8333);
            let address = TimedAddress { time: now.unix.to_u32(), services: Services::NETWORK, endpoint };
            manager.addrman_mut().add(&[address], &addr, 0, now.unix);
        }
        assert!(manager.ban("9.9.0.0/16".parse().unwrap(), 3600, false));
    });
    let known = ask(&network, |manager, _| manager.addrman().size(None, None));
    assert!(known > 80, "{known}");
    drop(network);
    assert!(!folder.join("anchors.dat").exists(), "no peer was chosen");

    let network = start(folder, "127.0.0.1:0", ConnectSettings::default()).unwrap();
    assert_eq!(ask(&network, |manager, _| manager.addrman().size(None, None)), known);
    let is_banned =
        |manager: &mut PeerManager, now: Moment| manager.bans().is_banned(&"9.9.1.1".parse().unwrap(), now.unix);
    assert!(ask(&network, is_banned));
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
    let away = start(first.path(), "127.0.0.1:0", ConnectSettings::default()).unwrap();
    let address: SocketAddr = away.addresses()[0];
    let connect = ConnectSettings { specified: vec![address.to_string()], ..ConnectSettings::default() };
    let network = start(second.path(), "127.0.0.1:0", connect).unwrap();
    wait_until("they are connected", || ready_peers(&network) == 1 && ready_peers(&away) == 1);
    drop(away);
    wait_until("the end is seen", || ready_peers(&network) == 0);
    let back = start(first.path(), &address.to_string(), ConnectSettings::default()).unwrap();
    wait_until("they are connected again", || ready_peers(&network) == 1 && ready_peers(&back) == 1);
    // Off and on again.
    ask(&network, |manager, _| manager.set_network_active(false));
    wait_until("the network is off", || ready_peers(&network) == 0 && ready_peers(&back) == 0);
    ask(&network, |manager, _| manager.set_network_active(true));
    wait_until("the network is on", || ready_peers(&network) == 1);
}
