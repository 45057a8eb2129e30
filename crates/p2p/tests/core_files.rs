//! `peers.dat`, `banlist.json` and `anchors.dat` exchanged between Bitcoin Core and this crate: each reads what the
//! other writes, position for position.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![allow(clippy::disallowed_methods, reason = "the files of the judge are looked at as they are")]

use lydian_oracle::{Daemon, Scratch, or_skip};
use lydian_p2p::addrman::AddrMan;
use lydian_p2p::bans::{Bans, DEFAULT_BAN_TIME_S};
use lydian_p2p::{UnixTime, anchors};
use lydian_wire::{Endpoint, NetAddr, Services, TimedAddress};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::{Map, Value, json};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];
const NOW: UnixTime = UnixTime(1_790_000_000);

fn random() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(5)
}

/// Addresses of every network, some in the same netgroup, some in different ones.
fn address(number: u32) -> NetAddr {
    let [.., high, low] = number.to_be_bytes();
    let byte = low;
    match number % 8 {
        0 => format!("2a01:4f8:{number:x}::1").parse().unwrap(),
        1 => NetAddr::TorV3([byte; 32]),
        2 => NetAddr::I2p([byte ^ high; 32]),
        3 => format!("2001:0:1:2::{number:x}").parse().unwrap(),
        4 => format!("2002:808:{number:x}::9").parse().unwrap(),
        5 => NetAddr::Ipv4([1, 2, high, low].into()),
        _ => NetAddr::Ipv4([low.max(11) % 90 + 10, high, 7, low].into()),
    }
}

/// Returns the same JSON as `getrawaddrman`.
fn tables(addrman: &AddrMan) -> Value {
    let table = |tried| {
        let mut table = Map::new();
        for (info, position) in addrman.entries(tried) {
            let TimedAddress { time, services, endpoint } = info.address;
            let entry = json!({
                "address": endpoint.addr.to_string(),
                "port": endpoint.port,
                "services": services.0,
                "time": time,
                "network": endpoint.addr.net_class().name(),
                "source": info.source.to_string(),
                "source_network": info.source.net_class().name(),
            });
            table.insert(format!("{}/{}", position.bucket, position.position), entry);
        }
        Value::Object(table)
    };
    json!({ "new": table(false), "tried": table(true) })
}

fn datadir(scratch: &Scratch) -> String {
    fs::create_dir_all(scratch.path().join("regtest")).unwrap();
    format!("-datadir={}", scratch.path().display())
}

/// checklist: 84
#[test]
fn an_address_manager_of_core_goes_on_in_ours() {
    let Some(mut core) = or_skip("peers.dat of Core", Daemon::start(&[])) else { return };
    core.set_mock_time(NOW.0).unwrap();
    for number in 0..600 {
        let text = address(number).to_string();
        core.call("addpeeraddress", &json!([text, number % 3 + 8333, number % 3 == 0])).unwrap();
    }
    let expected = core.call("getrawaddrman", &json!([])).unwrap();
    let stopped = core.stop().unwrap();
    let file = fs::read(stopped.chain_folder().join("peers.dat")).unwrap();
    let read = AddrMan::decode(&file, MAGIC, &mut random()).unwrap();
    assert!(read.size(None, Some(true)) > 300 && read.size(None, Some(false)) > 150, "{read:?}");
    assert_eq!(tables(&read), expected);
    assert_eq!(read.encode(MAGIC).len(), file.len(), "the order of entries is each program's own, all else is not");
}

#[test]
fn an_address_manager_of_ours_goes_on_in_core() {
    let scratch = Scratch::new("p2p-peers");
    let datadir = datadir(&scratch);
    let path = scratch.path().join("regtest/peers.dat");
    let mut ours = AddrMan::new(&mut random());
    for number in 0..3000_u32 {
        let endpoint = Endpoint { addr: address(number), port: 8333 };
        let services = Services::NETWORK | Services::WITNESS | Services(u64::from(number) << 30);
        // Added again later from other sources, so that some have many positions.
        for (turn, source) in [number, number + 5, number + 77, number / 3].into_iter().enumerate() {
            let time = NOW.minus(900_000 - 1000 * turn as u64).to_u32();
            ours.add(&[TimedAddress { time, services, endpoint }], &address(source), 0, NOW);
        }
        if number % 4 == 0 {
            ours.good(&endpoint, NOW);
        }
    }
    assert!(ours.entries(false).any(|(info, _)| info.ref_count() > 1));
    fs::write(&path, ours.encode(MAGIC)).unwrap();
    let Some(mut core) = or_skip("our peers.dat", Daemon::start(&[&datadir])) else { return };
    assert_eq!(core.call("getrawaddrman", &json!([])).unwrap(), tables(&ours));
    let counts = core.call("getaddrmaninfo", &json!([])).unwrap();
    let [new, tried] = [true, false].map(|in_new| ours.size(None, Some(in_new)));
    assert_eq!(counts["all_networks"], json!({ "new": new, "tried": tried, "total": new + tried }));
    drop(core.stop().unwrap());
    let back = AddrMan::decode(&fs::read(&path).unwrap(), MAGIC, &mut random()).unwrap();
    assert_eq!(tables(&back), tables(&ours));
}

#[test]
fn bans_go_both_ways() {
    let scratch = Scratch::new("p2p-bans");
    let datadir = datadir(&scratch);
    let path = scratch.path().join("regtest/banlist.json");
    let Some(mut core) = or_skip("banlist.json", Daemon::start(&[&datadir])) else { return };
    core.set_mock_time(NOW.0).unwrap();
    let onion = address(1).to_string();
    let nets = ["1.2.3.4", "10.0.0.0/8", "1.2.3.0/255.255.255.128", "2001:db8::/32", "::1", "fc00::1", &onion];
    for net in nets {
        core.call("setban", &json!([net, "add", 1000])).unwrap();
    }
    let file = fs::read(&path).unwrap();
    let mut ours = Bans::new(DEFAULT_BAN_TIME_S, &mut random());
    assert_eq!(ours.decode(&file, NOW), Ok(vec![]));
    assert_eq!(ours.list(NOW).len(), nets.len());
    // The files are equal except for the name of the program.
    let lines = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().replace("Bitcoin Core", "Lydian");
    assert_eq!(lines(&ours.encode()), lines(&file));
    assert!(ours.ban("9.9.9.0/24".parse().unwrap(), 5000, false, NOW));
    assert!(ours.unban(&"10.0.0.0/8".parse().unwrap()));
    drop(core.stop().unwrap());
    fs::write(&path, ours.encode()).unwrap();

    let mut core = Daemon::start(&[&datadir, &format!("-mocktime={}", NOW.0)]).unwrap();
    let listed = core.call("listbanned", &json!([])).unwrap();
    let expected: Vec<_> = ours.list(NOW).iter().map(|(net, ban)| (net.to_string(), ban.created, ban.until)).collect();
    let row = |ban: &Value| {
        let number = |key: &str| ban[key].as_i64().unwrap();
        (ban["address"].as_str().unwrap().to_owned(), number("ban_created"), number("banned_until"))
    };
    assert_eq!(listed.as_array().unwrap().iter().map(row).collect::<Vec<_>>(), expected);
}

/// Core reads anchors only if it makes automatic connections, so it is started directly, with the network disabled.
#[test]
fn core_reads_our_anchors() {
    let Some(built) = or_skip("anchors.dat", lydian_oracle::build::locate()) else { return };
    let scratch = Scratch::new("p2p-anchors");
    let datadir = datadir(&scratch);
    let path = scratch.path().join("regtest/anchors.dat");
    let anchor = |number| TimedAddress {
        time: NOW.to_u32(),
        services: Services::NETWORK,
        endpoint: Endpoint { addr: address(number), port: 8333 },
    };
    fs::write(&path, anchors::encode(&[anchor(1), anchor(6)], MAGIC)).unwrap();
    let mut core = Command::new(built.bitcoind)
        .args(["-regtest", "-networkactive=0", "-listen=0", "-dnsseed=0", "-fixedseeds=0", "-server=0"])
        .args(["-printtoconsole=0", &datadir])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let log = scratch.path().join("regtest/debug.log");
    let said = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        fs::read_to_string(&log).unwrap_or_default().contains("Loaded 2 addresses from \"anchors.dat\"")
    });
    core.kill().unwrap();
    core.wait().unwrap();
    assert!(said, "{}", fs::read_to_string(&log).unwrap_or_default());
    assert!(!path.exists(), "Core uses the file once");
}
