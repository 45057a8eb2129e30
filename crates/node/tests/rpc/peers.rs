//! The methods about the network, called on both programs while both have the same peers: a third node, a Core, that
//! they connect to and that connects to them.

use crate::chain::Pair;
use crate::compare::Comparison;
use crate::server::Server;
use lydian_oracle::{build, free_port, or_skip};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// An address without a known key.
const ADDRESS: &str = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Both programs, and their peer.
pub(crate) struct Net {
    pub(crate) pair: Pair,
    /// The ports on which both listen.
    pub(crate) ports: [u16; 2],
    peer: Server,
    /// The address on which the peer listens.
    address: String,
}

impl Net {
    pub(crate) fn start(test: &str, options: &[&str]) -> Option<Net> {
        let built = or_skip(test, build::locate())?;
        let ports = [free_port().unwrap(), free_port().unwrap()];
        let listening = |port: u16| ["-listen=1".to_owned(), format!("-bind=0.0.0.0:{port}"), "-discover=0".to_owned()];
        let start = |port: u16, make: &dyn Fn(&[&str]) -> Server, more: &[&str]| {
            let listening = listening(port);
            let mut all: Vec<&str> = listening.iter().map(String::as_str).collect();
            all.extend(more);
            make(&all)
        };
        let lydian = start(ports[0], &|all| Server::lydian(test, all), options);
        let core = start(ports[1], &|all| Server::core(&built.bitcoind, test, all), options);
        let peer_port = free_port().unwrap();
        let peer = start(peer_port, &|all| Server::core(&built.bitcoind, test, all), &[]);
        let pair = Pair { lydian, core, built, comparison: Comparison::default() };
        Some(Net { pair, ports, peer, address: format!("127.0.0.1:{peer_port}") })
    }

    pub(crate) fn both(&self) -> [&Server; 2] {
        [&self.pair.lydian, &self.pair.core]
    }

    pub(crate) fn ask(&self, method: &str, params: &Value) {
        self.pair.ask(method, &params.to_string());
    }

    /// Waits until this holds for both.
    fn wait(&self, what: &str, is_so: impl Fn(&Server) -> bool) {
        for server in self.both() {
            let began = Instant::now();
            while !is_so(server) {
                let peers = server.result("getpeerinfo", "[]");
                assert!(began.elapsed() < PATIENCE, "{what}, port {}: {peers:#}", server.port);
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    fn wait_for_peers(&self, count: usize) {
        self.wait("so many peers", |server| {
            let peers = server.result("getpeerinfo", "[]");
            let peers = peers.as_array().unwrap();
            peers.len() == count && peers.iter().all(|peer| !peer["bytesrecv_per_msg"]["verack"].is_null())
        });
    }
}

/// Whether at least `count` pings were sent to this peer, and all were answered.
fn pings_are_answered(peer: &Value, count: u64) -> bool {
    // A ping and a pong have the same size: 32 bytes by v1, 29 by v2.
    let size = if peer["transport_protocol_type"] == "v2" { 29 } else { 32 };
    let [sent, received] = [&peer["bytessent_per_msg"]["ping"], &peer["bytesrecv_per_msg"]["pong"]];
    peer["pingwait"].is_null() && sent == received && received.as_u64().is_some_and(|bytes| bytes >= count * size)
}

/// Reports about peers: outbound and inbound, by v2 and by v1.
#[test]
fn peers_are_reported_as_in_core() {
    let Some(net) = Net::start("peers_are_reported_as_in_core", &[]) else { return };
    net.peer.result("generatetoaddress", &format!("[30,\"{ADDRESS}\"]"));
    for (method, params) in
        [("getpeerinfo", json!([])), ("getconnectioncount", json!([])), ("getnetworkinfo", json!([]))]
    {
        net.ask(method, &params);
    }
    net.ask("addnode", &json!([net.address, "add"]));
    net.wait_for_peers(1);
    net.wait("the chain is here", |server| server.result("getblockcount", "[]") == 30);
    // A ping on its way would show as `pingwait`.
    net.wait("the first ping is answered", |server| pings_are_answered(&server.result("getpeerinfo", "[]")[0], 1));
    net.ask("ping", &json!([]));
    net.wait("both pings are answered, and the peer has said what it has", |server| {
        let peer = &server.result("getpeerinfo", "[]")[0];
        pings_are_answered(peer, 2) && peer["synced_blocks"] == 30 && !peer["bytesrecv_per_msg"]["feefilter"].is_null()
    });
    for server in net.both() {
        let peer = &server.result("getpeerinfo", "[]")[0];
        assert_eq!(peer["addr"], net.address);
        check_bytes(peer);
        check_times(peer);
    }
    let told = |net: &Net| {
        let added = [json!([]), json!([net.address]), json!(["127.0.0.1"]), json!([""])];
        added.iter().for_each(|params| net.ask("getaddednodeinfo", params));
        for method in ["getpeerinfo", "getconnectioncount", "getnettotals", "getnetworkinfo"] {
            net.ask(method, &json!([]));
        }
    };
    told(&net);
    // The peer connects too, by v1 and by v2.
    for port in net.ports {
        net.peer.result("addnode", &json!([format!("127.0.0.1:{port}"), "onetry", false]).to_string());
    }
    net.wait_for_peers(2);
    for port in net.ports {
        net.peer.result("addconnection", &json!([format!("127.0.0.2:{port}"), "block-relay-only", true]).to_string());
    }
    net.wait_for_peers(3);
    net.wait("the first question for headers is answered", |server| {
        let peers = server.result("getpeerinfo", "[]");
        peers
            .as_array()
            .unwrap()
            .iter()
            .all(|peer| peer["synced_headers"] == 30 && peer["synced_blocks"] == 30 && pings_are_answered(peer, 1))
    });
    told(&net);
    for server in net.both() {
        for peer in server.result("getpeerinfo", "[]").as_array().unwrap() {
            check_bytes(peer);
        }
        let totals = server.result("getnettotals", "[]");
        assert!(
            totals["totalbytessent"].as_u64().unwrap() > 1_000 && totals["totalbytesrecv"].as_u64().unwrap() > 1_000
        );
    }
    net.pair.comparison.finish();
}

/// Bytes given by the operator reach the peer.
#[test]
fn a_message_made_by_hand_is_sent() {
    let Some(net) = Net::start("a_message_made_by_hand_is_sent", &[]) else { return };
    net.ask("addnode", &json!([net.address, "add"]));
    net.wait_for_peers(1);
    for server in net.both() {
        let id = &server.result("getpeerinfo", "[]")[0]["id"];
        assert_eq!(server.result("sendmsgtopeer", &json!([id, "nonsense", "00 ff"]).to_string()), json!({}));
    }
    let began = Instant::now();
    loop {
        let peers = net.peer.result("getpeerinfo", "[]");
        let has_it = |peer: &Value| !peer["bytesrecv_per_msg"]["*other*"].is_null();
        if peers.as_array().unwrap().iter().filter(|peer| has_it(peer)).count() == 2 {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{peers:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
    for params in [
        json!([99, "x", "00"]),
        json!([-1, "x", ""]),
        json!([0, "a type too long", "00"]),
        json!([0, "x", "0"]),
        // Regression test, found by random calls: white space within a byte was ignored too.
        json!([99, "x", "0 0"]),
        json!([99, "x", " 00\t\n11 "]),
        json!([99, "x", "0é"]),
        json!([99, "x", "00\u{a0}00"]),
    ] {
        net.ask("sendmsgtopeer", &params);
    }
    net.pair.comparison.finish();
}

/// The bytes of a peer's messages are among all its bytes, and the handshake is among the messages.
fn check_bytes(peer: &Value) {
    for (all, by_message) in [("bytessent", "bytessent_per_msg"), ("bytesrecv", "bytesrecv_per_msg")] {
        let by_message = peer[by_message].as_object().unwrap();
        let sum: u64 = by_message.values().map(|bytes| bytes.as_u64().unwrap()).sum();
        let all = peer[all].as_u64().unwrap();
        // With v1 all bytes belong to messages; with v2 a handshake with up to 4,095 bytes of garbage precedes them.
        match peer["transport_protocol_type"].as_str().unwrap() {
            "v1" => assert_eq!(sum, all, "{peer:#}"),
            "v2" => assert!((sum + 64..sum + 64 + 4_096 + 40).contains(&all), "{peer:#}"),
            other => panic!("{other}"),
        }
        let header = if peer["transport_protocol_type"] == "v1" { 24 } else { 33 };
        assert_eq!(by_message["verack"], header);
        let names: Vec<&String> = by_message.keys().collect();
        assert!(names.is_sorted() && names.iter().any(|name| *name == "version"), "{names:?}");
    }
    assert_eq!(
        peer["session_id"].as_str().unwrap().len(),
        if peer["transport_protocol_type"] == "v1" { 0 } else { 64 }
    );
}

fn check_times(peer: &Value) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    for field in ["lastsend", "lastrecv", "conntime", "last_block"] {
        let time = peer[field].as_u64().unwrap();
        assert!((now - 120..=now + 1).contains(&time), "{field}: {peer:#}");
    }
    // The message with the time may be on its way while the machine stalls.
    assert!(peer["timeoffset"].as_i64().unwrap().abs() <= 60, "{peer:#}");
    let seconds = |field: &str| peer[field].as_f64().unwrap();
    assert!(seconds("minping") <= seconds("pingtime") && seconds("pingtime") < 60.0, "{peer:#}");
}

/// Connections that the operator makes and ends, and errors in such requests.
#[test]
fn connections_by_hand() {
    let Some(net) = Net::start("connections_by_hand", &[]) else { return };
    let absent = format!("127.0.0.1:{}", free_port().unwrap());
    for (method, params) in [
        ("addnode", json!([absent, "add"])),
        ("addnode", json!([absent, "add"])),
        ("addnode", json!([absent.replace("127.0.0.1", "127.1"), "add", true])),
        ("addnode", json!(["no.name.at.all.invalid", "add", false])),
        ("getaddednodeinfo", json!([])),
        ("getaddednodeinfo", json!([absent])),
        ("getaddednodeinfo", json!(["127.0.0.2"])),
        ("addnode", json!(["127.0.0.2", "remove"])),
        ("addnode", json!([absent, "remove"])),
        ("addnode", json!([absent, "remove", true])),
        ("addnode", json!(["no.name.at.all.invalid", "remove"])),
        ("getaddednodeinfo", json!([])),
        ("addnode", json!(["", "add"])),
        ("addnode", json!(["", "remove"])),
        ("disconnectnode", json!([])),
        ("disconnectnode", json!([absent])),
        ("disconnectnode", json!([absent, 1])),
        ("disconnectnode", json!(["", 77])),
        ("disconnectnode", json!(["", -1])),
        ("disconnectnode", json!([null, 77])),
        ("disconnectnode", json!([null, null])),
        ("disconnectnode", json!({"nodeid": 77})),
        ("disconnectnode", json!([""])),
        ("disconnectnode", json!(["", "x"])),
        ("getblockfrompeer", json!(["00".repeat(32), 0])),
        ("getblockfrompeer", json!(["00", 0])),
    ] {
        net.ask(method, &params);
    }
    net.ask("addnode", &json!([net.address, "onetry"]));
    net.wait_for_peers(1);
    net.ask("getaddednodeinfo", &json!([]));
    net.ask("disconnectnode", &json!([net.address]));
    net.wait_for_peers(0);
    net.ask("disconnectnode", &json!([net.address]));
    net.ask("addnode", &json!([net.address, "onetry", false]));
    net.wait_for_peers(1);
    for server in net.both() {
        let peer = &server.result("getpeerinfo", "[]")[0];
        assert_eq!(peer["transport_protocol_type"], "v1");
        server.result("disconnectnode", &json!(["", peer["id"]]).to_string());
    }
    net.wait_for_peers(0);
    connections_of_a_kind(&net);
    for state in [json!([false]), json!([true]), json!([1]), json!([])] {
        let is_help = state == json!([]);
        if !is_help {
            net.ask("setnetworkactive", &state);
        }
        net.wait_for_peers(0);
        net.ask("getnetworkinfo", &json!([]));
    }
    net.pair.comparison.finish();
}

/// `addconnection`, until there is no room.
fn connections_of_a_kind(net: &Net) {
    net.ask("addconnection", &json!([net.address, " outbound-full-relay ", true]));
    net.wait_for_peers(1);
    net.wait("it is of its kind", |server| {
        server.result("getpeerinfo", "[]")[0]["connection_type"] == "outbound-full-relay"
    });
    // There is room for two block-relay-only connections; each goes to another address of the one peer.
    let port = net.address.rsplit(':').next().unwrap();
    for (host, peers) in [(2, 2), (3, 3), (4, 3)] {
        net.ask("addconnection", &json!([format!("127.0.0.{host}:{port}"), "block-relay-only", host == 2]));
        net.wait_for_peers(peers);
    }
    net.ask("getnetworkinfo", &json!([]));
    // A feeler that has done its work is gone.
    net.ask("addconnection", &json!([format!("127.0.0.5:{port}"), "feeler", true]));
    net.wait_for_peers(3);
    net.ask("setnetworkactive", &json!([false]));
    net.wait_for_peers(0);
    net.ask("setnetworkactive", &json!([true]));
    // The answer to an unknown kind is the help, whose text is our own.
    for params in [json!([net.address, "manual", true]), json!([net.address, "", true])] {
        let code = |server: &Server| {
            let body: Value = serde_json::from_str(&server.call("addconnection", &params.to_string()).body).unwrap();
            body["error"]["code"].clone()
        };
        assert_eq!(code(&net.pair.lydian), code(&net.pair.core));
    }
}

/// A block of which only the header is known, requested from a certain peer.
#[test]
fn a_block_of_a_certain_peer() {
    let Some(net) = Net::start("a_block_of_a_certain_peer", &[]) else { return };
    net.peer.result("generatetoaddress", &format!("[10,\"{ADDRESS}\"]"));
    let aside = net.peer.result("generatetodescriptor", "[1,\"raw(51)\"]")[0].clone();
    net.peer.result("invalidateblock", &json!([aside]).to_string());
    net.peer.result("generatetodescriptor", "[3,\"raw(52)\"]");
    net.peer.result("reconsiderblock", &json!([aside]).to_string());
    let header = net.peer.result("getblockheader", &json!([aside, false]).to_string());
    net.ask("addnode", &json!([net.address, "onetry"]));
    net.wait_for_peers(1);
    net.wait("the chain is here", |server| server.result("getblockcount", "[]") == 13);
    net.ask("getblockfrompeer", &json!([aside, 0]));
    net.ask("submitheader", &json!([header]));
    for peer in [77, -1] {
        net.ask("getblockfrompeer", &json!([aside, peer]));
    }
    for server in net.both() {
        let id = server.result("getpeerinfo", "[]")[0]["id"].clone();
        assert_eq!(server.result("getblockfrompeer", &json!([aside, id]).to_string()), json!({}));
    }
    net.wait("the block comes", |server| {
        let tips = server.result("getchaintips", "[]");
        tips.as_array().unwrap().iter().any(|tip| tip["hash"] == aside && tip["status"] == "valid-headers")
    });
    net.ask("getblockfrompeer", &json!([aside, 0]));
    net.ask("getblock", &json!([aside, 1]));
    net.ask("getchaintips", &json!([]));
    net.pair.comparison.finish();
}

/// Bans, under a frozen clock, and their effect on connected peers.
#[test]
fn bans() {
    let Some(net) = Net::start("bans", &[]) else { return };
    let now = 1_800_000_000;
    net.ask("setmocktime", &json!([now]));
    let list = |net: &Net| net.ask("listbanned", &json!([]));
    for params in [
        json!(["127.0.0.1", "add"]),
        json!(["127.0.0.1", "add"]),
        json!(["127.0.0.0/24", "add"]),
        json!(["127.0.0.0/24", "add", 500]),
        json!(["127.0.0.77", "add"]),
        json!(["127.0.0.77/32", "add", 20]),
        json!(["127.0.0.0/255.255.0.0", "add", now + 100, true]),
        json!(["10.0.0.0/8", "add", now - 1, true]),
        json!(["10.0.0.0/8", "add", -5]),
        json!(["10.0.0.0/8", "add", 9_223_372_036_854_775_807_u64]),
        json!(["11.0.0.0/8", "add", 18_446_744_073_709_551_615_u64]),
        json!(["12.0.0.0/8", "add", 1.5]),
        json!(["1.2.3.4/33", "add"]),
        json!(["1.2.3.4/x", "add"]),
        json!(["1.2.3.4/", "add"]),
        json!(["1.2.3.4/255.0.255.0", "add"]),
        json!(["1.2.3", "add"]),
        json!(["", "add"]),
        json!(["/", "add"]),
        json!(["name.invalid", "add"]),
        json!(["0.0.0.0", "add"]),
        json!(["::", "add"]),
        json!(["2001:db8::/32", "add", 1000]),
        json!(["2001:db8::1", "add"]),
        json!(["2001:4d48:ac57:400:cacf:e9ff:fe1d:9c63/19", "add"]),
        json!(["fc00:1:2:3:4:5:6:7", "add"]),
        json!(["pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion", "add"]),
        json!(["c4gfnttsuwqomiygupdqqqyy5y5emnk5c73hrfvatri67prd7vyq.b32.i2p", "add"]),
        json!(["8.8.8.8", "remove"]),
        json!(["8.8.8.8/x", "remove"]),
        json!(["127.0.0.77", "remove"]),
        json!(["127.0.0.0/24", "remove"]),
        json!(["127.0.0.0/24", "remove"]),
    ] {
        net.ask("setban", &params);
        list(&net);
    }
    net.ask("setmocktime", &json!([now + 101]));
    list(&net);
    net.ask("clearbanned", &json!([]));
    list(&net);
    net.ask("setmocktime", &json!([0]));
    // A ban ends the connections that it covers, and keeps others out.
    net.ask("addnode", &json!([net.address, "onetry"]));
    net.wait_for_peers(1);
    net.ask("setban", &json!(["127.0.0.0/8", "add", 1000]));
    net.wait_for_peers(0);
    for port in net.ports {
        net.peer.result("addnode", &json!([format!("127.0.0.1:{port}"), "onetry"]).to_string());
    }
    std::thread::sleep(Duration::from_secs(1));
    net.wait_for_peers(0);
    net.ask("setban", &json!(["127.0.0.0/8", "remove"]));
    // The peer may still try the refused connection by v1, and then leaves out a new one to the same address, so it is
    // asked again.
    for (port, server) in net.ports.into_iter().zip(net.both()) {
        let began = Instant::now();
        while server.result("getconnectioncount", "[]") == 0 && began.elapsed() < PATIENCE {
            net.peer.result("addnode", &json!([format!("127.0.0.1:{port}"), "onetry"]).to_string());
            std::thread::sleep(Duration::from_millis(500));
        }
    }
    net.wait_for_peers(1);
    net.pair.comparison.finish();
}

/// The address manager, as far as its tables do not depend on a secret.
#[test]
fn known_addresses() {
    let Some(pair) = Pair::start("known_addresses", &[]) else { return };
    // Each address is of another group, since those of one group share a bucket and, with bad luck, a position.
    let ask = |method: &str, params: &Value| pair.ask(method, &params.to_string());
    ask("setmocktime", &json!([1_800_000_000]));
    for params in
        [json!([]), json!([0]), json!([-1]), json!([1, "ipv4"]), json!([1, "IPV6"]), json!([1, "x"]), json!([1, ""])]
    {
        ask("getnodeaddresses", &params);
    }
    for params in [
        json!(["1.2.3.4", 8333]),
        json!(["1.2.3.4", 8333]),
        json!(["1.2.3.4", 8333, true]),
        json!(["1.2.3.4", 8333, true]),
        json!(["5.6.7.8", 65_535, true]),
        json!(["9.10.11.12", 65_536]),
        json!(["9.10.11.12", -1]),
        json!(["9.10.11.12", 0]),
        json!(["127.0.0.1", 8333]),
        json!(["10.0.0.1", 8333]),
        json!(["2001:db8::1", 8333]),
        json!(["[2a00:1450::5]", 8333]),
        json!(["pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion", 8333]),
        json!(["", 8333]),
        json!(["x", 8333]),
        json!(["1.2.3.4:8333", 8333]),
        json!(["1.2.3.4", "8333"]),
    ] {
        ask("addpeeraddress", &params);
        ask("getaddrmaninfo", &json!([]));
    }
    for network in ["ipv6", "onion", "i2p", "cjdns"] {
        ask("getnodeaddresses", &json!([0, network]));
    }
    let sorted = |server: &Server, value: Value| {
        let rows = value.as_array().cloned().unwrap_or_else(|| value.as_object().unwrap().values().cloned().collect());
        let mut rows: Vec<String> = rows.iter().map(Value::to_string).collect();
        rows.sort();
        (server.port != 0, rows)
    };
    let [ours, cores] =
        [&pair.lydian, &pair.core].map(|server| sorted(server, server.result("getnodeaddresses", "[0]")));
    assert_eq!(ours, cores);
    assert_eq!(ours.1.len(), 5, "{ours:?}");
    // The position of an entry depends on a secret.
    let [ours, cores] = [&pair.lydian, &pair.core].map(|server| {
        let raw = server.result("getrawaddrman", "[]");
        let keys: Vec<String> = raw.as_object().unwrap().keys().cloned().collect();
        (keys, sorted(server, raw["new"].clone()), sorted(server, raw["tried"].clone()))
    });
    assert_eq!(ours, cores);
    let place = |text: &str| text.split('/').map(|part| part.parse::<u32>().unwrap()).collect::<Vec<_>>();
    for (table, buckets) in [("new", 1024), ("tried", 256)] {
        for name in pair.lydian.result("getrawaddrman", "[]")[table].as_object().unwrap().keys() {
            assert!(place(name)[0] < buckets && place(name)[1] < 64, "{name}");
        }
    }
    pair.comparison.finish();
}

/// Settings that `getnetworkinfo` reports.
#[test]
fn networks_and_proxies() {
    for options in [
        &["-proxy=127.0.0.1:9050", "-uacomment=a", "-uacomment=b c"][..],
        &["-onion=127.0.0.1:9051", "-proxyrandomize=0", "-v2transport=0"],
        &["-onlynet=ipv4", "-networkactive=0", "-externalip=1.2.3.4", "-externalip=5.6.7.8:99"],
        &["-maxuploadtarget=1"],
        &["-maxuploadtarget=2G", "-mocktime=1800000000"],
    ] {
        let Some(pair) = Pair::start("networks_and_proxies", options) else { return };
        pair.ask("getnetworkinfo", "[]");
        pair.ask("getnettotals", "[]");
        let subversion =
            |server: &Server| server.result("getnetworkinfo", "[]")["subversion"].as_str().unwrap().to_owned();
        let (ours, cores) = (subversion(&pair.lydian), subversion(&pair.core));
        // The comments are where Core has them, after the last version.
        let comments = cores.strip_prefix("/Satoshi:31.99.0").unwrap();
        assert_eq!(ours, format!("/Satoshi:31.0.0/Lydian:0.1.0{comments}"));
        for call in ["addnode", "addconnection"] {
            let params = if call == "addnode" {
                json!(["127.0.0.1", "onetry", true])
            } else {
                json!(["127.0.0.1:1", "feeler", true])
            };
            if options.contains(&"-v2transport=0") {
                pair.ask(call, &params.to_string());
            }
        }
        pair.comparison.finish();
    }
}

/// `help` lists the methods as Core does; the few that we lack are known by name.
#[test]
fn the_network_in_help() {
    let Some(pair) = Pair::start("the_network_in_help", &[]) else { return };
    let section = |server: &Server| {
        let help = server.result("help", "[]");
        let lines = help.as_str().unwrap().lines().skip_while(|line| *line != "== Network ==").skip(1);
        lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut cores = section(&pair.core);
    // Lydian has no map of autonomous systems to export.
    cores.retain(|line| !line.starts_with("exportasmap"));
    assert_eq!(section(&pair.lydian), cores);
    assert!(cores.len() > 12, "{cores:?}");
}
