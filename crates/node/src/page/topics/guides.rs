//! The cards of the panel *Connect*: the addresses of each service, and the steps for wallets and Lightning nodes, with
//! the values of this node.
//!
//! Input: the values of the topic `connect`. Output: cards, each with a title and parts in their order. A part is
//! `text`, `muted` or `warn` (words), `heading`, `steps` (a list of words), `lines` (of a configuration file), `qr` (a
//! text, and whether its code is open), `addresses`, or `fold` (a summary, and parts below it). Words are texts,
//! `{"copy": TEXT}`, `{"code": TEXT}` and `{"strong": TEXT}`. Cost: no I/O.

use serde_json::{Map, Value, json};

const THIS_MACHINE_ONLY: &str =
    "This address answers on this machine only. For a wallet on another device, open the Electrum server first.";

/// What each stream of notifications is called, and where LND expects it.
const STREAMS: [(&str, &str); 2] = [("pubrawblock", "tcp://127.0.0.1:28332"), ("pubrawtx", "tcp://127.0.0.1:28333")];

/// Key, title and purpose of each service.
const SERVICES: [(&str, &str, &str); 4] = [
    ("electrum", "Electrum", "For wallets such as Sparrow, BlueWallet and Electrum."),
    ("esplora", "Esplora", "For wallets and programs with BDK or LDK, over HTTP."),
    ("rpc", "RPC", "For programs that know Bitcoin Core: Lightning nodes, Sparrow, scripts. Needs a login."),
    ("p2p", "P2P", "For other nodes, and for wallets that read blocks or block filters themselves."),
];

const NOT_YET: &str =
    "It does not listen yet: the node is starting, or no address could be bound. The log has the reason.";
const OFF: &str = "It is off. To switch it on, add this to lydian.conf and restart the node: ";
const COMPARE: &str = "A wallet that asks whether to trust the certificate shows these digits. Compare them.";
const OPENS: &str = "Add this to lydian.conf and restart the node. Everyone who reaches the address can then use it, so \
    let a firewall admit your own devices only.";

/// The card of each service.
pub(super) fn services(values: &Map<String, Value>) -> Vec<Value> {
    SERVICES
        .iter()
        .map(|(key, title, purpose)| {
            let service = values.get(&format!("service:{key}")).unwrap_or(&Value::Null);
            let mut parts = vec![json!({"muted": [purpose]})];
            parts.extend(service_parts(key, service));
            card(title, parts)
        })
        .collect()
}

fn service_parts(key: &str, service: &Value) -> Vec<Value> {
    let is = |key: &str| service.get(key) == Some(&Value::Bool(true));
    if !is("listens") {
        let words = if is("on") { json!([NOT_YET]) } else { json!([OFF, {"copy": text(service, "switch")}]) };
        return vec![json!({"text": words})];
    }
    let reach = text(service, "reach");
    let named = match reach {
        "machine" => "this machine only",
        "network" => "your network",
        _ => "the internet, unless a router or a firewall is in the way",
    };
    let to = if key == "p2p" { "announced to peers" } else { "announced to wallets" };
    let announced: Vec<Value> = list(service, "announced").map(|one| address(one, to.to_owned())).collect();
    let end = if announced.is_empty() { "." } else { ", and under the addresses that are announced." };
    let bound = list(service, "places").flat_map(|place| {
        list(place, "urls").map(|one| address(one, kind(text(place, "transport"), text(one, "reach"))))
    });
    let mut parts = vec![json!({"text": ["Reachable from ", {"strong": named}, end]})];
    parts.push(json!({"addresses": announced.into_iter().chain(bound).collect::<Vec<_>>()}));
    if let Some(certificate) = service.get("certificate").and_then(Value::as_str) {
        parts.push(json!({"heading": "SHA-256 of the certificate"}));
        parts.extend([json!({"text": [{"copy": certificate}]}), json!({"muted": [COMPARE]})]);
    }
    let allowed: Vec<&str> = list(service, "allowed").filter_map(Value::as_str).collect();
    if !allowed.is_empty() {
        let words = format!("Calls are accepted from this machine and from {}.", allowed.join(", "));
        parts.push(json!({"muted": [words]}));
    }
    if reach == "machine" {
        let below = [json!({"text": [OPENS]}), json!({"lines": service.get("opens")})];
        parts.push(json!({"fold": "Reach it from other devices", "parts": below}));
    }
    parts
}

/// An address with what it is.
fn address(url: &Value, kind: String) -> Value {
    json!({"url": text(url, "url"), "qr": url.get("short").or_else(|| url.get("url")), "kind": kind})
}

/// The transport of an address, and who reaches it.
fn kind(transport: &str, reach: &str) -> String {
    let transport = match transport {
        "p2p" => "P2P",
        "onion" => "P2P, for an onion service",
        "http" => "HTTP",
        "tcp" => "TCP",
        "ssl" => "TLS",
        "ws" => "websocket",
        "wss" => "websocket with TLS",
        other => other,
    };
    let from = match reach {
        "machine" => "this machine only",
        "network" => "from your network",
        _ => "from the internet",
    };
    format!("{transport}, {from}")
}

/// The card of each wallet and of Lightning nodes.
pub(super) fn guides(values: &Map<String, Value>) -> Vec<Value> {
    let mut cards: Vec<Value> = ["Sparrow", "BlueWallet", "Electrum"].map(|name| wallet(name, values)).into();
    cards.push(lightning(values));
    cards
}

fn card(title: &str, parts: impl IntoIterator<Item = Value>) -> Value {
    json!({"title": title, "parts": parts.into_iter().collect::<Vec<_>>()})
}

/// An address of a server.
#[derive(Debug)]
struct Server {
    url: String,
    host: String,
    port: String,
    /// The form in which Electrum and BlueWallet take a server.
    short: String,
    is_local: bool,
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The address of a service that most clients reach, with the first of these transports that it has.
fn best(service: &Value, transports: &[&str]) -> Option<Server> {
    let far = |url: &&Value| {
        let reach = ["network", "internet"].iter().position(|name| *name == text(url, "reach")).map_or(0, |at| at + 1);
        (reach, !text(url, "url").contains('['))
    };
    let of = |transport: &&str| {
        let scheme = format!("{transport}://");
        let announced = list(service, "announced").find(|one| text(one, "url").starts_with(&scheme));
        let places = list(service, "places").filter(|place| text(place, "transport") == *transport);
        // The first of the farthest.
        announced.or_else(|| places.flat_map(|place| list(place, "urls")).first_max(far))
    };
    let row = transports.iter().find_map(of)?;
    let url = text(row, "url").to_owned();
    let (host, port) = url.split_once("://")?.1.rsplit_once(':')?;
    Some(Server {
        host: host.trim_matches(['[', ']']).to_owned(),
        port: port.to_owned(),
        short: if text(row, "short").is_empty() { url.clone() } else { text(row, "short").to_owned() },
        is_local: text(row, "reach") == "machine",
        url,
    })
}

trait FirstMax: Iterator + Sized {
    /// The first of the largest.
    fn first_max<K: Ord>(self, key: impl Fn(&Self::Item) -> K) -> Option<Self::Item> {
        self.reduce(|best, next| if key(&next) > key(&best) { next } else { best })
    }
}

impl<I: Iterator> FirstMax for I {}

fn wallet(name: &str, values: &Map<String, Value>) -> Value {
    // The server has a card with its name too.
    let title = if name == "Electrum" { "Electrum wallet" } else { name };
    let service = values.get("service:electrum").unwrap_or(&Value::Null);
    let Some(server) = best(service, &["ssl", "tcp"]) else {
        let words = json!(["The Electrum server is off. Add ", {"code": "electrum=1"}, " to lydian.conf and restart the node."]);
        return card(title, [json!({"text": words})]);
    };
    let (host, port) = (json!({"copy": server.host}), json!({"copy": server.port}));
    let is_tls = server.url.starts_with("ssl:");
    let ssl = if is_tls { "on" } else { "off" };
    let digits = text(service, "certificate").get(..23).filter(|_| is_tls);
    let check =
        digits.map(|digits| json!(["Accept the certificate if its SHA-256 begins with ", {"code": digits}, "."]));
    let (before, after) = match name {
        "Sparrow" => (
            vec![
                json!(["Open Settings, Server, Private Electrum."]),
                json!([
                    "Enter URL ",
                    host,
                    " and port ",
                    port,
                    format!(", and switch Use SSL {ssl}. Or choose Scan QR… in the list of the URL.")
                ]),
            ],
            json!(["Press Test Connection. It shows the name of this server."]),
        ),
        "BlueWallet" => (
            vec![
                json!(["Open Settings, Network, Electrum server."]),
                json!(["Scan the code, or enter host ", host, " and port ", port, format!(" with SSL {ssl}.")]),
            ],
            json!(["Press Save."]),
        ),
        _ => (
            vec![
                json!(["Open Tools, Network, and choose to connect to one server only."]),
                json!(["Enter ", {"copy": server.short}, "."]),
            ],
            json!(["Or start it with ", {"copy": format!("electrum --oneserver --server {}", server.short)}]),
        ),
    };
    let steps: Vec<Value> = before.into_iter().chain(check).chain([after]).collect();
    let code = if name == "Sparrow" { server.url } else { server.short };
    let warning = server.is_local.then(|| json!({"warn": [THIS_MACHINE_ONLY]}));
    let parts = [json!({"steps": steps}), json!({"qr": code, "open": name == "BlueWallet"})];
    card(title, parts.into_iter().chain(warning))
}

fn lightning(values: &Map<String, Value>) -> Value {
    const TITLE: &str = "Lightning node";
    let facts = values.get("lightning").unwrap_or(&Value::Null);
    let Some(rpc) = values.get("service:rpc").and_then(|service| best(service, &["http"])) else {
        return card(TITLE, [json!({"text": ["RPC does not listen."]})]);
    };
    let (core, lnd) = match text(facts, "chain") {
        "main" => ("bitcoin", "mainnet"),
        "test" => ("testnet", "testnet"),
        other => (other, other),
    };
    let host = if rpc.host.contains(':') { format!("[{}]", rpc.host) } else { rpc.host.clone() };
    let cookie = text(facts, "cookie");
    let published =
        |kind: &str| list(facts, "zmq").find(|one| text(one, "type") == kind).map(|one| text(one, "address"));
    let mut conf = vec![
        "[Bitcoin]".to_owned(),
        format!("bitcoin.{lnd}=true"),
        "bitcoin.node=bitcoind".to_owned(),
        "[Bitcoind]".to_owned(),
        format!("bitcoind.rpchost={host}:{}", rpc.port),
        format!("bitcoind.rpccookie={}", if cookie.is_empty() { "PATH" } else { cookie }),
    ];
    conf.extend(STREAMS.map(|(kind, at)| format!("bitcoind.zmq{kind}={}", published(kind).unwrap_or(at))));
    let missing = STREAMS.into_iter().filter(|(kind, _)| published(kind).is_none());
    let missing: Vec<String> = missing.map(|(kind, at)| format!("zmq{kind}={at}")).collect();
    let mut parts = vec![json!({"heading": "LND, in lnd.conf"}), json!({"lines": conf})];
    if !missing.is_empty() {
        let words =
            "LND needs notifications that this node does not send. Add this to lydian.conf and restart the node:";
        parts.extend([json!({"text": [words]}), json!({"lines": missing})]);
    }
    let login = ["bitcoin-rpcuser=USER", "bitcoin-rpcpassword=PASSWORD"].map(str::to_owned);
    let place = [
        format!("network={core}"),
        format!("bitcoin-rpcconnect={}", rpc.host),
        format!("bitcoin-rpcport={}", rpc.port),
    ];
    let user = match cookie {
        "" => "Use the user of -rpcuser or -rpcauth.".to_owned(),
        path => format!("A program of the same user can use the cookie {path}. For others, make a user with -rpcauth."),
    };
    let filters = match facts.get("filters") == Some(&Value::Bool(true)) {
        true => "Block filters are served to peers, so Neutrino can use the P2P address.",
        false => "Neutrino also needs blockfilterindex=1 and peerblockfilters=1.",
    };
    parts.extend([
        json!({"heading": "Core Lightning, in its config"}),
        json!({"lines": place.into_iter().chain(login).collect::<Vec<_>>()}),
        json!({"muted": [format!("{user} This page shows no password.")]}),
        json!({"muted": [filters]}),
    ]);
    if facts.get("pruned") == Some(&Value::Bool(true)) {
        let words = "This node is pruned: a Lightning node that starts later than its oldest block cannot catch up.";
        parts.push(json!({"warn": [words]}));
    }
    card(TITLE, parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_wallet_gets_the_address_that_most_clients_reach() {
        let cards = guides(&values(json!({"service:electrum": {
            "certificate": "AB:".repeat(32),
            "announced": [],
            "places": [
                {"transport": "tcp", "urls": [{"url": "tcp://1.2.3.4:50001", "short": "1.2.3.4:50001:t", "reach": "internet"}]},
                {"transport": "ssl", "urls": [
                    {"url": "ssl://127.0.0.1:50002", "short": "127.0.0.1:50002:s", "reach": "machine"},
                    {"url": "ssl://[fd00::1]:50002", "short": "[fd00::1]:50002:s", "reach": "network"},
                    {"url": "ssl://192.168.1.7:50002", "short": "192.168.1.7:50002:s", "reach": "network"},
                ]},
            ],
        }})));
        let titles: Vec<&str> = cards.iter().map(|card| text(card, "title")).collect();
        assert_eq!(titles, ["Sparrow", "BlueWallet", "Electrum wallet", "Lightning node"]);
        let steps = &cards[0]["parts"][0]["steps"];
        assert_eq!(steps[1][1], json!({"copy": "192.168.1.7"}));
        assert_eq!(steps[2][1], json!({"code": "AB:AB:AB:AB:AB:AB:AB:AB"}));
        assert_eq!(cards[1]["parts"][1], json!({"qr": "192.168.1.7:50002:s", "open": true}));
        assert_eq!(cards[2]["parts"][0]["steps"][3][1]["copy"], "electrum --oneserver --server 192.168.1.7:50002:s");
        assert_eq!(cards[0]["parts"].as_array().unwrap().len(), 2, "no warning");
    }

    #[test]
    fn lnd_is_told_what_it_needs() {
        let place = json!({"transport": "http", "urls": [{"url": "http://[::1]:8332", "reach": "machine"}]});
        let card = lightning(&values(json!({
            "service:rpc": {"places": [place]},
            "lightning": {"chain": "main", "pruned": true, "cookie": "/x/.cookie", "filters": false,
                "zmq": [{"type": "pubrawtx", "address": "tcp://127.0.0.1:1"}]},
        })));
        let parts = card["parts"].as_array().unwrap();
        let lines: Vec<&str> = list(&parts[1], "lines").map(|line| line.as_str().unwrap()).collect();
        assert_eq!(
            lines[1..],
            [
                "bitcoin.mainnet=true",
                "bitcoin.node=bitcoind",
                "[Bitcoind]",
                "bitcoind.rpchost=[::1]:8332",
                "bitcoind.rpccookie=/x/.cookie",
                "bitcoind.zmqpubrawblock=tcp://127.0.0.1:28332",
                "bitcoind.zmqpubrawtx=tcp://127.0.0.1:1",
            ]
        );
        assert_eq!(parts[3]["lines"], json!(["zmqpubrawblock=tcp://127.0.0.1:28332"]));
        assert_eq!(parts[5]["lines"][1], "bitcoin-rpcconnect=::1");
        assert!(parts.last().unwrap().get("warn").is_some(), "{parts:#?}");
    }

    #[test]
    fn a_service_says_who_reaches_it() {
        let url = json!({"url": "ssl://127.0.0.1:2", "short": "127.0.0.1:2:s", "reach": "machine"});
        let cards = services(&values(json!({
            "service:electrum": {"listens": true, "reach": "machine", "announced": [{"url": "ssl://a:1", "short": "a:1:s"}],
                "places": [{"transport": "ssl", "urls": [url]}], "certificate": "AB:CD", "opens": ["electrumtlsbind=0.0.0.0"]},
            "service:rpc": {"listens": true, "reach": "network", "places": [], "allowed": ["10.0.0.0/8"]},
            "service:p2p": {"listens": false, "on": true},
            "service:esplora": {"listens": false, "on": false, "switch": "esplora=1"},
        })));
        let part = |card: usize, place: usize| cards[card]["parts"][place].clone();
        assert_eq!(
            part(0, 1)["text"],
            json!(["Reachable from ", {"strong": "this machine only"}, ", and under the addresses that are announced."])
        );
        assert_eq!(
            part(0, 2)["addresses"],
            json!([
                {"url": "ssl://a:1", "qr": "a:1:s", "kind": "announced to wallets"},
                {"url": "ssl://127.0.0.1:2", "qr": "127.0.0.1:2:s", "kind": "TLS, this machine only"},
            ])
        );
        assert_eq!(part(0, 6)["parts"][1]["lines"], json!(["electrumtlsbind=0.0.0.0"]));
        assert_eq!(part(1, 1)["text"][1], json!({"copy": "esplora=1"}));
        assert_eq!(part(2, 3)["muted"][0], "Calls are accepted from this machine and from 10.0.0.0/8.");
        assert_eq!(part(3, 1)["text"][0], NOT_YET);
    }

    #[test]
    fn a_node_without_servers_says_how_to_start_them() {
        let cards = guides(&Map::new());
        assert_eq!(cards[0]["parts"][0]["text"][1], json!({"code": "electrum=1"}));
        assert_eq!(cards[3]["parts"][0]["text"][0], "RPC does not listen.");
    }
}
