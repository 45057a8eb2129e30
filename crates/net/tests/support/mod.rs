//! Shared by the network tests: a regtest engine in a folder, default settings, clock, random numbers, and joining of
//! two streams.

use lydian_consensus::{Chain, Params, U256};
use lydian_disk::RealDisk;
use lydian_engine::{Engine, InitialDownload, Layout, LogLine, Settings, TIP_AGE_SECONDS_DEFAULT};
use lydian_mempool::policy::Settings as PoolSettings;
use lydian_mempool::{Clock, Mempool, Secrets};
use lydian_net::{Buffers, Host, Listen, NetworkSettings};
use lydian_oracle::{Daemon, or_skip};
use lydian_p2p::local_address::LocalAddresses;
use lydian_p2p::manager::{ConnectSettings, ManagerSettings};
use lydian_p2p::peer::Local;
use lydian_p2p::permissions::Whitelist;
use lydian_p2p::{Moment, UnixTime};
use lydian_wire::{Network, Services};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The real clock, for a mempool.
#[derive(Debug)]
struct RealClock;

impl Clock for RealClock {
    fn unix_seconds(&self) -> i64 {
        i64::try_from(unix_seconds()).unwrap()
    }
}

/// Opens an engine in an empty or previously used folder, with a mempool at work.
pub(crate) fn node(folder: &Path, workers: usize) -> (Arc<Engine>, Arc<Mempool>) {
    let secrets = Secrets { salt: [1; 32], seed: 1 };
    let mempool = Arc::new(Mempool::new(PoolSettings::default(), Arc::new(RealClock), secrets));
    let layout =
        Layout { blocks: folder.join("blocks"), index: folder.join("blocks/index"), coins: folder.join("chainstate") };
    let params = Params::new(Chain::Regtest);
    let settings = Settings { known_scripts: Some(mempool.known_scripts()), ..Settings::new(workers) };
    let opened = Engine::open(Arc::new(RealDisk), &layout, params, settings, vec![mempool.follower()]).unwrap();
    let engine = Arc::new(opened.engine);
    mempool.start(Arc::clone(&engine), workers).unwrap();
    mempool.set_loaded();
    (engine, mempool)
}

/// Settings of a node that serves everything, listens on a port of the system's choice, and connects as `connect` says.
pub(crate) fn settings(connect: ConnectSettings) -> NetworkSettings {
    NetworkSettings {
        manager: ManagerSettings {
            params: Params::new(Chain::Regtest),
            minimum_chain_work: U256::ZERO,
            initial_download: Arc::new(InitialDownload::new(U256::ZERO, TIP_AGE_SECONDS_DEFAULT)),
            blocks_only: false,
            local: Local {
                services: Services::NETWORK | Services::WITNESS | Services::NETWORK_LIMITED | Services::P2P_V2,
                user_agent: b"/Satoshi:31.0.0/Lydian:0.1.0/".to_vec(),
                ignores_transactions: true,
                peer_timeout: Duration::from_secs(60),
                own: LocalAddresses::default(),
            },
            reachable: [Network::Ipv4, Network::Ipv6].into(),
            download_bytes: 64 << 20,
            seed: [7; 32],
            connect,
        },
        listen: vec![Listen::at("127.0.0.1:0".parse().unwrap())],
        whitelist: Whitelist::default(),
        connect_timeout: Duration::from_secs(5),
        buffers: Buffers::default(),
        data: None,
        ban_time: 24 * 60 * 60,
        filters: None,
        captures_messages: false,
    }
}

pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The real time, for a node that started at `began`.
pub(crate) fn moment(began: Instant) -> Moment {
    Moment { elapsed: began.elapsed(), mockable: began.elapsed(), unix: UnixTime(unix_seconds()) }
}

pub(crate) fn fill_random(bytes: &mut [u8]) {
    std::fs::File::open("/dev/urandom").unwrap().read_exact(bytes).unwrap();
}

/// Forwards bytes in both directions until one side closes.
pub(crate) fn join(mut client: TcpStream, server: TcpStream) -> Option<()> {
    let (mut back, mut up) = (client.try_clone().ok()?, server.try_clone().ok()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut { server }, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut client, &mut up);
    let _ = up.shutdown(Shutdown::Both);
    Some(())
}

/// Longer than any step of these tests takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The services of a node with the real clock. Its log goes to stderr if `LYDIAN_NET_LOG` is set.
#[derive(Debug)]
pub(crate) struct TestHost {
    began: Instant,
    name: &'static str,
}

impl TestHost {
    pub(crate) fn new(name: &'static str) -> TestHost {
        TestHost { began: Instant::now(), name }
    }
}

impl Host for TestHost {
    fn now(&self) -> Moment {
        moment(self.began)
    }

    fn log_line(&self, line: &LogLine) {
        if std::env::var_os("LYDIAN_NET_LOG").is_some() {
            let _ = writeln!(std::io::stderr(), "{} {}", self.name, line.text);
        }
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        fill_random(bytes);
    }
}

/// Starts a daemon of Core that listens, and returns its address.
pub(crate) fn core(test: &str, v2: bool, more: &[&str]) -> Option<(Daemon, String)> {
    let port = lydian_oracle::free_port().unwrap();
    let (bind, transport) = (format!("-bind=127.0.0.1:{port}"), format!("-v2transport={}", u8::from(v2)));
    let options = [&["-listen=1", &bind, &transport, "-debug=net"], more].concat();
    let daemon = or_skip(test, Daemon::start(&options))?;
    Some((daemon, format!("127.0.0.1:{port}")))
}
