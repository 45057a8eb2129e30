//! Tables as Core's client prints them for the same replies.

use super::*;

const NETWORK: &str = r#"{"version":319900,"subversion":"/Satoshi:31.99.0/","protocolversion":70016,
    "localservicesnames":["NETWORK","WITNESS","NETWORK_LIMITED","P2P_V2"],
    "networks":[{"name":"ipv4","reachable":true},{"name":"onion","reachable":false},{"name":"ipv6","reachable":true}],
    "localaddresses":[{"address":"1.2.3.4","port":8333,"score":1},{"address":"2001:db8::1","port":18333,"score":10}]}"#;

const PEERS: &str = r#"[
    {"id":0,"addr":"1.1.1.1:8333","network":"ipv4","servicesnames":["NETWORK","WITNESS"],"relaytxes":true,"lastsend":990,"lastrecv":995,
     "last_transaction":0,"last_block":400,"conntime":100,"pingtime":0.0125,"minping":0.0115,"version":70016,"subver":"/a:1/",
     "inbound":false,"bip152_hb_to":true,"bip152_hb_from":false,"connection_type":"manual","transport_protocol_type":"v2",
     "addr_relay_enabled":true,"addr_processed":1234567,"addr_rate_limited":0},
    {"id":12,"addr":"127.0.0.1:50000","network":"not_publicly_routable","servicesnames":[],"relaytxes":false,"lastsend":0,"lastrecv":0,
     "last_transaction":0,"last_block":0,"conntime":1000,"version":0,"subver":"","inbound":true,"bip152_hb_to":false,
     "bip152_hb_from":true,"connection_type":"inbound","transport_protocol_type":"detecting","addr_relay_enabled":false,
     "addr_processed":0,"addr_rate_limited":3,"mapped_as":64512}]"#;

fn shown(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let level = Level::parse(&words).unwrap();
    let peers = Json::read(PEERS.as_bytes()).unwrap();
    let summary = count(peers.as_array().unwrap(), level).unwrap();
    text(&summary, &Json::read(NETWORK.as_bytes()).unwrap(), level, " regtest", 1000).unwrap()
}

#[test]
fn the_whole_dashboard() {
    let expected = format!(
        "Lydian client v{} regtest - server 70016/Satoshi:31.99.0/ - services nwl2\n\n\
         <->   type   net   serv  v  mping   ping send recv  txn  blk  hb   addrp addrl  age  asmap id address         version\n\
         \u{20}in          npr                                      *        *       .     3    0  64512 12 127.0.0.1:50000 \n\
         out manual  ipv4     nw  2     12     13   10    5        10  .  1234567         15         0 1.1.1.1:8333    70016/a:1/\n\
         \u{20}                              ms     ms  sec  sec  min  min                  min\n\n\
         \u{20}        ipv4    ipv6     npr   total   block  manual\n\
         in          0       0       1       1\n\
         out         1       0       0       1       0       1\n\
         total       1       0       1       2\n\n\
         Local addresses\n1.2.3.4         port   8333    score      1\n2001:db8::1     port  18333    score     10",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(shown(&["4"]), expected);
    let lines = |text: &str| text.lines().filter(|line| line.starts_with("out ")).count();
    assert_eq!((lines(&shown(&["1", "o"])), shown(&["1", "o"]).contains("\n in ")), (2, false));
    assert!(!shown(&["2"]).contains("70016/a:1/") && !shown(&["3"]).contains("1.1.1.1"));
    assert!(shown(&[]).contains("\n\nLocal services: network, witness, network limited, p2p v2\n\nLocal addresses\n"));
    assert!(!shown(&["0"]).contains("<->"));
}

#[test]
fn words_behind_it() {
    let check = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Level::parse(&words).map_err(|error| error.to_string())
    };
    assert_eq!(check(&["255"]), Ok(Level { number: 4, is_outbound_only: false }));
    assert_eq!(check(&["9", "outonly", "x"]), Ok(Level { number: 4, is_outbound_only: true }));
    let more = "For more information, run: lydian-cli -netinfo help";
    assert_eq!(check(&["256"]), Err(format!("invalid -netinfo level argument: 256\n{more}")));
    assert_eq!(check(&["1", "x"]), Err(format!("invalid -netinfo outonly argument: x\n{more}")));
    assert_eq!(
        check(&["0", "o"]),
        Err(format!(
            "invalid -netinfo outonly argument: o\nThe outonly argument is only valid for a level greater than 0 (the first argument). {more}"
        ))
    );
}
