//! Tests of the options for connections: effects on each other, and errors with their text. Values are from Core 31.99.

use crate::host::Host;
use crate::limits::USER_AGENT_LENGTH_MAX;
use crate::settings::{Settings, SettingsError, load, split};
use lydian_disk::{Disk, SimDisk};
use lydian_options::Notice;
use lydian_p2p::proxies::Proxies;
use lydian_wire::Network;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

fn host() -> Host {
    Host {
        home: Some("/u".into()),
        directory: "/".into(),
        cores: 1,
        lookup: |name| (name == "here.example").then(|| [10, 0, 0, 7].into()),
        descriptors: |wanted| wanted.min(1024),
        memory_bytes: None,
    }
}

fn with_conf(arguments: &[&str], conf: &str) -> Result<Settings, SettingsError> {
    let disk = SimDisk::new(0);
    disk.create_dir(Path::new("/u/.lydian")).unwrap();
    disk.write_whole(Path::new("/u/.lydian/lydian.conf"), conf.as_bytes()).unwrap();
    load(&split(arguments.iter().map(OsString::from))?, &host(), &disk, &mut Vec::new())
}

/// The warnings on stderr.
fn warnings(arguments: &[&str]) -> Vec<String> {
    let settings = with_conf(arguments, "").unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
    settings.notices.iter().filter_map(Notice::stderr).collect()
}

fn net(arguments: &[&str]) -> super::NetSettings {
    with_conf(arguments, "").unwrap_or_else(|error| panic!("{arguments:?}: {error}")).net
}

fn refused(arguments: &[&str]) -> String {
    with_conf(arguments, "").map(|_| ()).expect_err(&format!("{arguments:?}")).to_string()
}

fn listens(arguments: &[&str]) -> String {
    let binds = net(arguments).binds;
    binds.iter().map(|bind| bind.address.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn options_decide_for_others() {
    for (arguments, expected) in [
        (&[][..], &[][..]),
        (&["-bind=127.0.0.1"], &["-bind set -> setting -listen=1"]),
        (&["-whitebind=127.0.0.1:1"], &["-whitebind set -> setting -listen=1"]),
        (
            &["-connect=1.2.3.4"],
            &[
                "-connect or -maxconnections=0 set -> setting -dnsseed=0",
                "-connect or -maxconnections=0 set -> setting -listen=0",
                "-listen=0 -> setting -discover=0",
            ],
        ),
        (&["-noconnect", "-listen", "-dnsseed"], &[]),
        (
            &["-maxconnections=0", "-bind=127.0.0.1"],
            &["-bind set -> setting -listen=1", "-connect or -maxconnections=0 set -> setting -dnsseed=0"],
        ),
        (&["-proxy=127.0.0.1"], &["-proxy set -> setting -listen=0", "-proxy set -> setting -discover=0"]),
        (&["-proxy=0"], &[]),
        (&["-noproxy"], &[]),
        (&["-externalip=8.8.8.8"], &["-externalip set -> setting -discover=0"]),
        (&["-blocksonly"], &["-blocksonly=1 -> setting -whitelistrelay=0", "-blocksonly=1 -> setting -maxmempool=5"]),
        (&["-whitelistforcerelay"], &["-whitelistforcerelay=1 -> setting -whitelistrelay=1"]),
        (&["-onlynet=onion", "-onion=127.0.0.1"], &["-onlynet excludes IPv4 and IPv6 -> setting -dnsseed=0"]),
        (&["-onlynet=onion", "-onlynet=IPv4", "-onion=127.0.0.1"], &[]),
    ] {
        let expected: Vec<_> = expected.iter().map(|line| format!("parameter interaction: {line}")).collect();
        assert_eq!(net(arguments).notes, expected, "{arguments:?}");
    }
    assert_eq!(listens(&["-connect=1.2.3.4"]), "");
    assert!(!net(&["-connect=1.2.3.4"]).dns_seed && net(&[]).dns_seed);
}

#[test]
fn places_to_listen() {
    assert_eq!(listens(&[]), "[::]:8333 0.0.0.0:8333");
    assert_eq!(listens(&["-regtest", "-port=7"]), "[::]:7 0.0.0.0:7");
    assert_eq!(warnings(&["-port=7"]).len(), 1, "a port of another service");
    assert_eq!(listens(&["-bind=127.0.0.1", "-bind=[::1]:9", "-bind=::1"]), "127.0.0.1:8333 [::1]:9 [::1]:8333");
    let all =
        net(&["-bind=127.0.0.1=onion", "-bind=127.0.0.1:6=onion", "-bind=127.0.0.1", "-whitebind=addr@127.0.0.1:5"]);
    let binds: Vec<_> = all.binds.iter().map(|bind| (bind.address.port(), bind.is_onion, bind.permissions.0)).collect();
    assert_eq!(binds, [(8333, false, 0), (5, false, 1 << 7), (8334, true, 0), (6, true, 0)]);
    assert!(!all.discover_interfaces && net(&[]).discover_interfaces && net(&["-bind=0.0.0.0"]).discover_interfaces);
    let port = |arguments: &[&str]| net(arguments).listen_port;
    assert_eq!(port(&["-port=1234"]), 1234);
    assert_eq!(port(&["-port=1234", "-bind=127.0.0.1", "-bind=127.0.0.1:77"]), 77);
    assert_eq!(port(&["-bind=127.0.0.1:77=onion"]), 8333);
    assert_eq!(port(&["-whitebind=127.0.0.1:5"]), 5, "implicit permissions are none yet");
    assert_eq!(port(&["-whitebind=noban@127.0.0.1:5", "-whitebind=relay@127.0.0.1:6"]), 6);
}

#[test]
fn cores_words() {
    for (arguments, expected) in [
        (&["-forcednsseed", "-dnsseed=0"][..], "Cannot set -forcednsseed to true when setting -dnsseed to false."),
        (&["-forcednsseed", "-noconnect"], "Cannot set -forcednsseed to true when setting -dnsseed to false."),
        (&["-bind=127.0.0.1", "-listen=0"], "Cannot set -bind or -whitebind together with -listen=0"),
        (&["-whitebind=127.0.0.1:1", "-nolisten"], "Cannot set -bind or -whitebind together with -listen=0"),
        (&["-maxconnections=-1"], "-maxconnections must be greater or equal than zero"),
        (&["-peertimeout=0"], "peertimeout must be a positive integer."),
        (&["-peertimeout=-5"], "peertimeout must be a positive integer."),
        (&["-maxuploadtarget=10x"], "Unable to parse -maxuploadtarget: '10x'"),
        (&["-maxuploadtarget=-1"], "Unable to parse -maxuploadtarget: '-1'"),
        (&["-maxuploadtarget="], "Unable to parse -maxuploadtarget: ''"),
        (&["-maxuploadtarget=99999999T"], "Unable to parse -maxuploadtarget: '99999999T'"),
        (&["-port=0"], "Invalid port specified in -port: '0'"),
        (&["-port=70000"], "Invalid port specified in -port: '70000'"),
        (&["-port=+1"], "Invalid port specified in -port: '+1'"),
        (&["-rpcport=0"], "Invalid port specified in -rpcport: '0'"),
        (&["-bind=127.0.0.1:0"], "Invalid port specified in -bind: '127.0.0.1:0'"),
        (&["-bind=127.0.0.1:x=onion"], "Invalid port specified in -bind: '127.0.0.1:x=onion'"),
        (&["-whitebind=127.0.0.1:65536"], "Invalid port specified in -whitebind: '127.0.0.1:65536'"),
        (&["-proxy=127.0.0.1:x"], "Invalid port specified in -proxy: '127.0.0.1:x'"),
        (&["-onion=127.0.0.1:0"], "Invalid port specified in -onion: '127.0.0.1:0'"),
        (&["-bind=here.example"], "Cannot resolve -bind address: 'here.example'"),
        (&["-bind=127.0.0.1=tor"], "Cannot resolve -bind address: '127.0.0.1=tor'"),
        (&["-whitebind=127.0.0.1"], "Need to specify a port with -whitebind: '127.0.0.1'"),
        (&["-whitelist=1.2.3.4/33"], "Invalid netmask specified in -whitelist: '1.2.3.4/33'"),
        (&["-whitelist=oops@1.2.3.4"], "Invalid P2P permission: 'oops'"),
        (&["-externalip=nowhere.example"], "Cannot resolve -externalip address: 'nowhere.example'"),
        (&["-externalip=here.example", "-dns=0"], "Cannot resolve -externalip address: 'here.example'"),
        (&["-externalip=0.0.0.0"], "Cannot resolve -externalip address: '0.0.0.0'"),
        (&["-onlynet=tor"], "Unknown network specified in -onlynet: 'tor'"),
        (
            &["-onlynet=cjdns"],
            "Outbound connections restricted to CJDNS (-onlynet=cjdns) but -cjdnsreachable is not provided",
        ),
        (
            &["-onlynet=onion", "-listenonion=0"],
            "Outbound connections restricted to Tor (-onlynet=onion) but the proxy for reaching the Tor network is not provided: none of -proxy, \
             -onion or -listenonion is given",
        ),
        (
            &["-onlynet=onion", "-proxy=127.0.0.1", "-noonion"],
            "Outbound connections restricted to Tor (-onlynet=onion) but the proxy for reaching the Tor network is explicitly forbidden: -onion=0",
        ),
        (&["-onlynet=i2p"], "Outbound connections restricted to i2p (-onlynet=i2p) but -i2psam is not provided"),
        (
            &["-onlynet=onion", "-dnsseed=1", "-proxy=127.0.0.1"],
            "Incompatible options: -dnsseed=1 was explicitly specified, but -onlynet forbids connections to IPv4/IPv6",
        ),
        (
            &["-proxy"],
            "Error parsing command line arguments: Can not set -proxy with no value. Please specify value with -proxy=value.",
        ),
        (&["-proxy=nowhere.example"], "Invalid -proxy address or hostname: 'nowhere.example'"),
        (&["-proxy=127.0.0.1="], "Invalid -proxy address or hostname, ends with '=': '127.0.0.1='"),
        (&["-proxy=127.0.0.1=i2p"], "Unrecognized network in -proxy='127.0.0.1=i2p': 'i2p'"),
        (&["-onion=nowhere.example"], "Invalid -onion address or hostname: 'nowhere.example'"),
        (&["-uacomment=a/b"], "User Agent comment (a/b) contains unsafe characters."),
        (
            &["-bind=127.0.0.1:5", "-whitebind=127.0.0.1:5"],
            "Duplicate binding configuration for address 127.0.0.1:5. Please check your -bind, -bind=...=onion and -whitebind settings.",
        ),
    ] {
        assert_eq!(refused(arguments), expected, "{arguments:?}");
    }
    let error = with_conf(&[], "\npeertimeout=0").unwrap_err().to_string();
    assert_eq!(error, "peertimeout must be a positive integer.");
}

#[test]
fn options_of_one_chain_do_not_count_for_another() {
    let conf = "connect=1.2.3.4\nport=5\n";
    assert_eq!(
        with_conf(&["-regtest"], conf).unwrap_err().to_string(),
        "Config setting for -connect only applied on regtest network when in [regtest] section.\nConfig setting for -port only applied on regtest \
         network when in [regtest] section.\n"
    );
    assert_eq!(with_conf(&[], conf).unwrap().net.connect, Some(vec!["1.2.3.4".to_owned()]));
    let settings = with_conf(&["-regtest", "-port=6"], &format!("{conf}[regtest]\nconnect=5.6.7.8\n")).unwrap();
    assert_eq!(settings.net.connect, Some(vec!["5.6.7.8".to_owned()]));
    assert_eq!(settings.net.listen_port, 6);
}

#[test]
fn whom_to_connect_to() {
    let connect = |arguments: &[&str]| net(arguments).connect;
    assert_eq!(connect(&[]), None);
    assert_eq!(connect(&["-noconnect"]), Some(Vec::new()));
    assert_eq!(connect(&["-connect=0"]), Some(Vec::new()));
    assert_eq!(connect(&["-connect=0", "-connect=a"]), Some(vec!["0".to_owned(), "a".to_owned()]));
    assert_eq!(connect(&["-connect=a", "-noconnect"]), Some(Vec::new()));
    assert_eq!(net(&["-signet", "-signetseednode=a"]).signet_seeds, Some(vec!["a".to_owned()]));
    assert_eq!(net(&["-signetseednode=a"]).signet_seeds, None, "of another chain");
}

/// limit: USER_AGENT_LENGTH_MAX at
/// limit: USER_AGENT_LENGTH_MAX above
#[test]
fn comments_in_the_user_agent() {
    let agent = |arguments: &[&str]| net(arguments).user_agent;
    let plain = agent(&[]);
    assert!(plain.starts_with("/Satoshi:31.0.0/Lydian:") && plain.ends_with('/'), "{plain}");
    let with = agent(&["-uacomment=one, two", "-uacomment=three"]);
    assert_eq!(with, format!("{}(one, two; three)/", plain.strip_suffix('/').unwrap()));
    let room = USER_AGENT_LENGTH_MAX - plain.len() - 2;
    let comment = |length: usize| format!("-uacomment={}", "x".repeat(length));
    assert_eq!(agent(&[&comment(room)]).len(), USER_AGENT_LENGTH_MAX);
    assert_eq!(
        refused(&[&comment(room + 1)]),
        "Total length of network version string (257) exceeds maximum length (256). Reduce the number or size of uacomments."
    );
}

#[test]
fn proxies_of_networks() {
    let of = |arguments: &[&str]| {
        let Proxies { ipv4, ipv6, onion, cjdns, name } = net(arguments).proxies;
        [ipv4, ipv6, onion, cjdns, name]
            .map(|proxy| proxy.map_or("-".to_owned(), |proxy| proxy.address.to_string()))
            .join(" ")
    };
    let all = |text: &str| [text; 5].join(" ");
    assert_eq!(of(&[]), all("-"));
    assert_eq!(of(&["-proxy=127.0.0.1"]), all("127.0.0.1:9050"));
    assert_eq!(of(&["-proxy=here.example:1"]), all("10.0.0.7:1"));
    assert_eq!(of(&["-proxy=unix:/run/tor"]), all("unix:/run/tor"));
    assert_eq!(of(&["-proxy=127.0.0.1", "-proxy=0"]), all("-"));
    assert_eq!(of(&["-proxy=127.0.0.1", "-noproxy"]), all("-"));
    assert_eq!(of(&["-proxy=[::1]:1=IPv4"]), "[::1]:1 - - - [::1]:1");
    assert_eq!(
        of(&["-proxy=127.0.0.1:1", "-proxy=127.0.0.1:2=onion"]),
        "127.0.0.1:1 127.0.0.1:1 127.0.0.1:2 127.0.0.1:1 127.0.0.1:1"
    );
    assert_eq!(of(&["-onion=127.0.0.1:3"]), "- - 127.0.0.1:3 - -");
    assert_eq!(of(&["-proxy=127.0.0.1:1", "-noonion"]), "127.0.0.1:1 127.0.0.1:1 - 127.0.0.1:1 127.0.0.1:1");
    let isolates = |arguments: &[&str]| net(arguments).proxies.onion.unwrap().isolates_streams;
    assert!(isolates(&["-onion=127.0.0.1"]) && !isolates(&["-onion=127.0.0.1", "-noproxyrandomize"]));
    let reachable = |arguments: &[&str]| net(arguments).reachable.into_iter().collect::<Vec<_>>();
    assert_eq!(reachable(&[]), [Network::Ipv4, Network::Ipv6]);
    assert_eq!(reachable(&["-onion=127.0.0.1"]), [Network::Ipv4, Network::Ipv6, Network::TorV3]);
    assert_eq!(reachable(&["-onlynet=onion", "-proxy=127.0.0.1"]), [Network::TorV3]);
    assert_eq!(reachable(&["-cjdnsreachable"]), [Network::Ipv4, Network::Ipv6, Network::Cjdns]);
    assert_eq!(reachable(&["-cjdnsreachable", "-onlynet=cjdns", "-onlynet=ipv4"]), [Network::Ipv4, Network::Cjdns]);
}

#[test]
fn numbers() {
    let upload = |text: &str| net(&[&format!("-maxuploadtarget={text}")]).upload_target;
    for (text, bytes) in [
        ("0", 0),
        ("1", 1 << 20),
        ("2k", 2000),
        ("2K", 2048),
        ("3m", 3_000_000),
        ("1g", 1_000_000_000),
        ("1T", 1 << 40),
    ] {
        assert_eq!(upload(text), bytes, "{text}");
    }
    let plain = net(&[]);
    assert_eq!(
        (plain.connections_max, plain.connect_timeout, plain.peer_timeout.as_secs()),
        (125, Duration::from_secs(5), 60)
    );
    assert_eq!((plain.receive_buffer_bytes, plain.send_buffer_bytes), (5_000_000, 1_000_000));
    assert_eq!(net(&["-timeout=0"]).connect_timeout, Duration::from_secs(5));
    assert_eq!(net(&["-timeout=1"]).connect_timeout, Duration::from_millis(1));
    let many = net(&["-maxconnections=2000"]);
    assert_eq!(many.connections_max, 1024 - 159, "files for other things are kept back");
    let expected = "Warning: Reducing -maxconnections from 2000 to 865, because of system limitations.";
    assert_eq!(warnings(&["-maxconnections=2000"]), [expected]);
    assert_eq!(net(&["-nomaxconnections"]).connections_max, 0);
}
