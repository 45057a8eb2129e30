//! What operators of the Electrum server need: proxies in front of it, costs and what follows from them, settings that
//! change while it runs, sessions that are listed, ended and banned.

use crate::abuse::until;
use crate::electrum_model::Wallet;
use crate::server::Server;
use lydian_electrum::limits::{BATCH_MAX, SUBSCRIPTIONS_PER_SESSION_MAX};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

/// The first bytes of a PROXY header, version 2.
pub(crate) const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A connection through a proxy, of a client with this address.
pub(crate) fn of_client(port: u16, address: [u8; 4]) -> Wallet {
    let mut wallet = Wallet::open(port);
    let header = [SIGNATURE, &[0x21, 0x11, 0, 12], &address, &[127, 0, 0, 1, 0x10, 0, 0xc3, 0x51]].concat();
    wallet.stream.get_mut().write_all(&header).unwrap();
    wallet
}

/// A connection of the proxy itself, which is on this machine.
fn of_proxy(port: u16) -> Wallet {
    let mut wallet = Wallet::open(port);
    wallet.stream.get_mut().write_all(&[SIGNATURE, &[0x20, 0, 0, 0]].concat()).unwrap();
    wallet
}

/// A node whose wallets come through a proxy on this machine.
fn behind_proxy(test: &str, options: &[&str]) -> (Server, u16) {
    let port = lydian_oracle::free_port().unwrap();
    let server = proxied(port, options, |all| Server::lydian(test, all));
    server.result("generatetodescriptor", "[20,\"raw(51)\"]");
    (server, port)
}

/// Starts a node with the options of such a server.
fn proxied<T>(port: u16, options: &[&str], start: impl FnOnce(&[&str]) -> T) -> T {
    let bind = format!("-electrumbind=127.0.0.1:{port}");
    let own = ["-electrum", &bind, "-electrumtlsbind=0", "-electrumwsbind=0", "-electrumproxy=127.0.0.1"];
    start(&[&own, options].concat())
}

/// The height that a wallet receives; null if it is not served.
fn tip(wallet: &mut Wallet) -> Value {
    wallet.call("blockchain.headers.subscribe", &json!([]))["result"]["height"].clone()
}

#[test]
fn clients_of_a_subnet_that_cost_much_are_disconnected() {
    let limits = ["-electrumcostsoft=0", "-electrumcosthard=20"];
    let (_server, port) = behind_proxy("clients_of_a_subnet_that_cost_much_are_disconnected", &limits);
    let mut other = of_client(port, [203, 0, 114, 1]);
    assert_eq!(tip(&mut other), 20);
    let mut neighbour = of_client(port, [203, 0, 113, 2]);
    assert_eq!(tip(&mut neighbour), 20);
    // Each request costs a tenth of a unit, so a batch ends in the middle.
    let batch: Vec<Value> = (0..400).map(|id| json!({"id": id, "method": "server.ping"})).collect();
    let send_batch = || {
        let mut busy = of_client(port, [203, 0, 113, 1]);
        busy.send(Value::from(batch.clone()).to_string().as_bytes());
        (busy.line(), busy)
    };
    let (answers, mut busy) = send_batch();
    let codes: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes.len(), 400);
    assert!(codes.iter().any(|code| code.is_null()) && codes.iter().any(|code| **code == -101), "{codes:?}");
    assert_eq!(busy.line(), Value::Null, "the session ends");
    // The other wallet of the subnet, and a new one; not those of others, and not what is on this machine.
    // The sum falls by two units a second: if the machine stalls, another batch brings it above the limit again.
    let refused = |wallet: &mut Wallet| {
        let answer = (0..20).find_map(|_| {
            let answer = wallet.call("server.ping", &json!([]));
            if answer.get("error").is_none() {
                send_batch();
            }
            answer.get("error").cloned()
        });
        answer.unwrap()
    };
    let error = refused(&mut neighbour);
    assert_eq!(error["code"], -101);
    let words = error["message"].as_str().unwrap();
    let cost: u32 = words.split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert!(words.starts_with("answers to your network cost ") && cost >= 20, "{words}");
    assert_eq!(neighbour.line(), Value::Null);
    assert_eq!(refused(&mut of_client(port, [203, 0, 113, 3]))["code"], -101);
    assert_eq!(tip(&mut other), 20);
    let mut local = of_proxy(port);
    for _ in 0..400 {
        local.result("server.ping", &json!([]));
    }
    // Without a header, there is no answer.
    let mut direct = Wallet::open(port);
    direct.send(b"{\"id\":1,\"method\":\"server.ping\"}");
    assert_eq!(direct.line(), Value::Null);
}

#[test]
fn answers_to_clients_that_cost_much_are_delayed() {
    let limits = ["-electrumcostsoft=2", "-electrumcosthard=0"];
    let (_server, port) = behind_proxy("answers_to_clients_that_cost_much_are_delayed", &limits);
    let mut wallet = of_client(port, [203, 0, 113, 1]);
    let began = Instant::now();
    // A connection costs a unit, 30 requests cost 3: as far above the limit as matters.
    let batch: Vec<Value> = (0..30).map(|id| json!({"id": id, "method": "server.ping"})).collect();
    wallet.send(Value::from(batch).to_string().as_bytes());
    assert_eq!(wallet.line().as_array().map(Vec::len), Some(30));
    wallet.send(b"{\"id\":7,\"method\":\"server.ping\"}");
    // Meanwhile, others are not delayed, and one that is delayed can leave.
    let mut leaving = of_client(port, [203, 0, 113, 2]);
    leaving.send(b"{\"id\":7,\"method\":\"server.ping\"}");
    drop(leaving);
    let mut local = of_proxy(port);
    assert_eq!(tip(&mut local), 20);
    assert_eq!(wallet.line()["id"], 7);
    assert!(began.elapsed() > Duration::from_millis(400), "{:?}", began.elapsed());
}

/// The lines of the log that contain these words.
fn logged(server: &Server, words: &str) -> Vec<String> {
    let text = fs::read_to_string(server.folder.join("regtest/debug.log")).unwrap();
    // The last line may be half written.
    let (whole, _) = text.rsplit_once('\n').unwrap_or_default();
    whole.lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
}

/// Sends SIGHUP, and waits for a further line with these words.
pub(crate) fn hang_up(server: &Server, words: &str) -> String {
    let before = logged(server, words).len();
    server.signal("HUP");
    let began = Instant::now();
    loop {
        let lines = logged(server, words);
        if lines.len() > before {
            return lines[before].clone();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no line with: {words}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn settings_change_while_the_server_runs() {
    const READ: &str = "Electrum server: read the settings again";
    const KEPT: &str = "Electrum server: the settings stay as they were";
    let [port, tls] = [(); 2].map(|()| lydian_oracle::free_port().unwrap());
    let (bind, tls) = (format!("-electrumbind=127.0.0.1:{port}"), format!("-electrumtlsbind=127.0.0.1:{tls}"));
    let options = ["-electrum", &bind, &tls, "-electrumwsbind=0", "-electrumwssbind=0", "-electrumproxy=127.0.0.1"];
    let server = Server::lydian("settings_change_while_the_server_runs", &options);
    let mut wallet = of_client(port, [203, 0, 113, 1]);
    let shown = |wallet: &mut Wallet| {
        ["server.banner", "server.donation_address"].map(|method| wallet.result(method, &json!([])))
    };
    let [banner, donation] = shown(&mut wallet);
    assert!(banner.as_str().unwrap().starts_with("Lydian "));
    assert_eq!(donation, "");
    let hosts = |wallet: &mut Wallet| wallet.result("server.features", &json!([]))["hosts"].clone();
    let peers = |wallet: &mut Wallet| wallet.result("server.peers.subscribe", &json!([]));
    assert_eq!((hosts(&mut wallet), peers(&mut wallet)), (json!({}), json!([])));
    let fingerprint = |line: &str| line.rsplit(' ').next().unwrap().to_owned();
    let first = fingerprint(&logged(&server, "the SHA-256 of the TLS certificate is")[0]);
    // A banner, an address, another certificate, lower limits.
    let conf = server.folder.join("lydian.conf");
    let address = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let banner = server.folder.join("banner.txt");
    fs::write(&banner, "Welcome!\nSecond line\n").unwrap();
    let shown_hosts =
        "electrumhost=ssl://a.example:443\nelectrumhost=tcp://a.example\nelectrumpeer=ssl://b.example:5/1.6";
    let given = format!("[regtest]\nelectrumbanner={}\nelectrumdonation={address}\n{shown_hosts}\n", banner.display());
    fs::write(&conf, &given).unwrap();
    fs::remove_file(server.folder.join("regtest/electrum/cert.pem")).unwrap();
    let second = fingerprint(&hang_up(&server, READ));
    assert_ne!(first, second);
    let expected = [json!("Welcome!\nSecond line\n"), json!(address)];
    assert_eq!(shown(&mut wallet), expected);
    assert_eq!(hosts(&mut wallet), json!({"a.example": {"ssl_port": 443, "tcp_port": 60_401}}));
    assert_eq!(peers(&mut wallet), json!([["b.example", "b.example", ["v1.6", "s5"]]]));
    // If one value is wrong, none changes.
    fs::write(&banner, "Another").unwrap();
    for (wrong, reason) in [
        ("electrumdonation=nonsense\n", "Invalid -electrumdonation: \"nonsense\" is not an address of this chain."),
        ("electrumcert=/nowhere/c.pem\nelectrumkey=/nowhere/k.pem\n", "/nowhere/c.pem"),
        ("electrumcert=c.pem\n", "-electrumcert and -electrumkey must be given together."),
        ("electrumbanner=/nowhere/b.txt\n", "/nowhere/b.txt"),
        ("electrumpeer=b.example\n", "Invalid -electrumpeer: \"b.example\""),
        ("nonsense\n", "parse error on line 2"),
    ] {
        fs::write(&conf, format!("[regtest]\n{wrong}")).unwrap();
        let line = hang_up(&server, KEPT);
        assert!(line.contains(reason), "{line}");
        assert_eq!(shown(&mut wallet), expected);
    }
    // The limits of costs count for the sessions that are open.
    fs::write(&conf, format!("{given}electrumcosthard=1\n")).unwrap();
    assert_eq!(fingerprint(&hang_up(&server, READ)), second);
    let refused = (0..100).map(|_| wallet.call("server.ping", &json!([]))).find(|answer| answer.get("error").is_some());
    assert_eq!(refused.unwrap()["error"]["code"], -101);
    assert_eq!(wallet.line(), Value::Null);
}

/// The error of a method.
fn fault(server: &Server, method: &str, params: &str) -> Value {
    let answer: Value = serde_json::from_str(&server.call(method, params).body).unwrap();
    answer["error"].clone()
}

/// The addresses of the sessions.
fn addresses(server: &Server) -> Vec<String> {
    let sessions = server.result("listelectrumsessions", "[]");
    sessions.as_array().unwrap().iter().map(|session| session["addr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn sessions_are_listed_ended_and_banned() {
    let (server, port) = behind_proxy("sessions_are_listed_ended_and_banned", &[]);
    let mut local = of_proxy(port);
    local.result("server.ping", &json!([]));
    let mut wallet = of_client(port, [203, 0, 113, 1]);
    wallet.result("server.version", &json!(["a\u{7}wallet", "1.4"]));
    let script = "8b01df4e368ea28f8dc0423bcf7a4923e3a12d307c875e47a0cfbf90b5c39161";
    wallet.result("blockchain.scripthash.subscribe", &json!([script]));
    let sessions = server.result("listelectrumsessions", "[]");
    let [of_local, of_wallet] = &sessions.as_array().unwrap()[..] else { panic!("{sessions}") };
    assert_eq!((&of_local["local"], of_local.get("protocol")), (&json!(true), None));
    assert_eq!(of_local["cost"], 0);
    let expected = json!({
        "addr": "203.0.113.1:4096", "local": false, "protocol": "1.4", "client": "awallet", "subscriptions": 1,
        "requests": 2
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(of_wallet[name], *value, "{name}");
    }
    for name in ["bytesrecv", "bytessent", "cost"] {
        assert!(of_wallet[name].as_u64().unwrap() > 0, "{name}");
    }
    // It falls by two units a second, which is more than there are if the machine stalls.
    let has_subnet_cost = |_| {
        (0..20).for_each(|_| drop(wallet.result("server.ping", &json!([]))));
        server.result("listelectrumsessions", "[]")[1]["subnet_cost"].as_u64() > Some(0)
    };
    assert!((0..20).any(has_subnet_cost));
    assert!(!sessions.to_string().contains(script), "nothing of what wallets ask for");
    // One session ends; its client may come again.
    let id = &of_wallet["id"];
    assert_eq!(server.result("disconnectelectrumsession", &format!("[{id}]")), Value::Null);
    assert_eq!(wallet.line(), Value::Null);
    let gone = fault(&server, "disconnectelectrumsession", &format!("[{id}]"));
    assert_eq!(gone, json!({"code": -29, "message": "Session not found"}));
    let mut again = of_client(port, [203, 0, 113, 1]);
    let mut other = of_client(port, [198, 51, 100, 1]);
    assert_eq!((tip(&mut again), tip(&mut other)), (json!(20), json!(20)));
    // Banned clients leave and do not come again, but not those on this machine.
    for subnet in ["203.0.113.0/24", "127.0.0.0/8"] {
        server.result("setelectrumban", &format!("[\"{subnet}\",\"add\",1000]"));
    }
    assert_eq!(again.line(), Value::Null);
    assert_eq!(of_client(port, [203, 0, 113, 9]).line(), Value::Null);
    assert_eq!((tip(&mut other), tip(&mut local)), (json!(20), json!(20)));
    assert_eq!(tip(&mut of_proxy(port)), 20);
    until("they are not listed", || addresses(&server).iter().all(|address| !address.starts_with("203.0.113.")));
    let bans = server.result("listelectrumbans", "[]");
    assert_eq!(bans[0]["address"], "203.0.113.0/24");
    assert!((900..=1_000).contains(&bans[0]["time_remaining"].as_u64().unwrap()));
    server.result("setelectrumban", "[\"203.0.113.0/24\",\"remove\"]");
    assert_eq!(tip(&mut of_client(port, [203, 0, 113, 9])), 20);
    server.result("clearelectrumbans", "[]");
    assert_eq!(server.result("listelectrumbans", "[]"), json!([]));
    for (params, code) in [
        ("[\"203.0.113.0/24\",\"remove\"]", -30),
        ("[\"nonsense\",\"add\"]", -30),
        ("[\"203.0.113.0/24\",\"other\"]", -1),
        ("[\"203.0.113.0/24\",\"add\",18446744073709551615]", -8),
    ] {
        assert_eq!(fault(&server, "setelectrumban", params)["code"], code, "{params}");
    }
}

#[test]
fn bans_outlive_the_process() {
    let (mut server, port) = behind_proxy("bans_outlive_the_process", &[]);
    let file = server.folder.join("regtest/electrum/banlist.json");
    assert!(!file.exists());
    server.result("setelectrumban", "[\"198.51.100.0/24\",\"add\",1]");
    for subnet in ["203.0.113.0/24", "2001:db8::/32"] {
        server.result("setelectrumban", &format!("[\"{subnet}\",\"add\",10000]"));
    }
    // The file has the ban that ends first for at least a second.
    std::thread::sleep(Duration::from_millis(2_100));
    proxied(port, &[], |options| server.restart(options));
    let bans = server.result("listelectrumbans", "[]");
    let subnets: Vec<&Value> = bans.as_array().unwrap().iter().map(|ban| &ban["address"]).collect();
    assert_eq!(subnets, ["203.0.113.0/24", "2001:db8::/32"]);
    assert!((5_000..=10_001).contains(&bans[1]["time_remaining"].as_u64().unwrap()), "{bans}");
    assert_eq!(of_client(port, [203, 0, 113, 9]).line(), Value::Null);
    assert_eq!(tip(&mut of_client(port, [198, 51, 100, 1])), 20);
    server.result("setelectrumban", "[\"203.0.113.0/24\",\"remove\"]");
    server.result("clearelectrumbans", "[]");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\n  \"format\": 1,\n  \"bans\": []\n}\n");
    // A damaged file is named, and the server starts without bans.
    fs::write(&file, "{\"format\":1,\"bans\":[{").unwrap();
    proxied(port, &[], |options| server.restart(options));
    assert_eq!(server.result("listelectrumbans", "[]"), json!([]));
    let lines = logged(&server, "it starts without the bans of earlier processes");
    assert!(lines.len() == 1 && lines[0].contains(&file.display().to_string()), "{lines:?}");
    assert_eq!(tip(&mut of_client(port, [203, 0, 113, 9])), 20);
}

#[test]
fn methods_about_electrum_sessions_need_the_server() {
    let server = Server::lydian("methods_about_electrum_sessions_need_the_server", &[]);
    let error = fault(&server, "listelectrumsessions", "[]");
    assert_eq!(error, json!({"code": -1, "message": "The Electrum server is not running (-electrum)"}));
}

/// A wallet that is served while others flood the server: it speaks a version, so that its place is its own.
fn served(port: u16) -> Wallet {
    let mut wallet = of_client(port, [198, 51, 100, 7]);
    wallet.result("server.version", &json!(["wallet", "1.4"]));
    wallet
}

/// The height that a new client receives. While hundreds of connections are accepted, it may have to connect again.
fn tip_of_new(connect: impl Fn() -> Wallet) -> Value {
    let request = b"{\"id\":1,\"method\":\"blockchain.headers.subscribe\"}\n";
    for _ in 0..50 {
        let mut wallet = connect();
        if wallet.stream.get_mut().write_all(request).is_ok() {
            let line = wallet.line();
            if !line.is_null() {
                return line["result"]["height"].clone();
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("new clients are not served");
}

#[test]
fn thousands_of_connections_take_no_place_of_wallets() {
    let (server, port) = behind_proxy("thousands_of_connections_take_no_place_of_wallets", &[]);
    let mut wallet = served(port);
    let before = server.memory_bytes();
    // More than there are places, from six addresses; none of them speaks.
    let flood: Vec<Wallet> = (0..6).flat_map(|net| (0..500).map(move |_| of_client(port, [203, 0, net, 1]))).collect();
    assert_eq!(tip(&mut wallet), 20);
    assert_eq!(tip_of_new(|| of_client(port, [198, 51, 100, 8])), 20);
    assert_eq!(tip_of_new(|| of_proxy(port)), 20);
    assert!(server.memory_bytes() < before + (64 << 20), "{before}");
    drop(flood);
    assert_eq!(tip(&mut wallet), 20);
}

#[test]
fn lines_that_are_no_text_end_nothing() {
    let (server, port) = behind_proxy("lines_that_are_no_text_end_nothing", &[]);
    let mut wallet = served(port);
    let before = server.memory_bytes();
    let mut hostile = of_client(port, [203, 0, 113, 1]);
    let nested = ["[".repeat(90_000), "{\"a\":".repeat(90_000)].map(String::into_bytes);
    let lines =
        [&b"\xff\xfe"[..], b"{\"id\":1,\"method\":\"\xc3\x28\"}", b"\xed\xa0\x80", b"\0", &nested[0], &nested[1]];
    for line in lines {
        hostile.send(line);
        assert_eq!(hostile.line()["error"]["code"], -32700, "{:?}", &line[..line.len().min(20)]);
    }
    hostile.result("server.ping", &json!([]));
    assert_eq!(tip(&mut wallet), 20);
    assert!(server.memory_bytes() < before + (64 << 20), "{before}");
}

#[test]
fn floods_of_subscriptions_end_at_the_limit() {
    let no_costs = ["-electrumcostsoft=0", "-electrumcosthard=0"];
    let (server, port) = behind_proxy("floods_of_subscriptions_end_at_the_limit", &no_costs);
    let mut wallet = served(port);
    let mut hostile = of_client(port, [203, 0, 113, 1]);
    let before = server.memory_bytes();
    let of = |index: usize| json!({"id": index, "method": "blockchain.scripthash.subscribe", "params": [format!("{index:064x}")]});
    for first in (0..SUBSCRIPTIONS_PER_SESSION_MAX).step_by(BATCH_MAX) {
        let batch: Vec<Value> = (first..first + BATCH_MAX).map(of).collect();
        hostile.send(Value::from(batch).to_string().as_bytes());
        let answers = hostile.line();
        assert!(
            answers
                .as_array()
                .unwrap()
                .iter()
                .all(|answer| answer["result"].is_null() && answer.get("error").is_none())
        );
    }
    for _ in 0..2 {
        hostile.send(of(SUBSCRIPTIONS_PER_SESSION_MAX).to_string().as_bytes());
        assert_eq!(hostile.line()["error"]["code"], -101);
    }
    assert_eq!(server.result("listelectrumsessions", "[]")[1]["subscriptions"], SUBSCRIPTIONS_PER_SESSION_MAX);
    assert!(server.memory_bytes() < before + (96 << 20), "{before}");
    // Others are served, and its end frees the room.
    assert_eq!(tip(&mut wallet), 20);
    drop(hostile);
    let began = Instant::now();
    while addresses(&server).len() > 1 {
        assert!(began.elapsed() < Duration::from_secs(60), "the session ends");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(tip(&mut served(port)), 20);
}
