//! The topic `connect`: where the servers of this node answer, and which clients reach them; the settings for wallets
//! and Lightning nodes.
//!
//! Input: [`Listening`], the settings, and answers of RPC. Output: the keys `service:NAME`, `lightning`, the cards
//! `services` and `guides`, and `qr:TEXT` for each text that a device may scan. No password and no cookie is shown,
//! only where the cookie is.

use super::guides;
use super::rows::{self, Ask};
use crate::listening::{Listening, Place, Service, Transport, addresses_of_machine};
use crate::page::{PageNode, qr};
use crate::settings::Settings;
use lydian_stdx::lock;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

/// What the topic shows besides the answers of RPC.
#[derive(Debug)]
pub(in crate::page) struct Connect {
    listening: Arc<Listening>,
    facts: Facts,
    /// Codes that were made, so that none is made twice.
    codes: Mutex<BTreeMap<String, Value>>,
}

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    node.connect.of(&|method| node.ask(method), &addresses_of_machine())
}

/// The settings that matter. They do not change while the node runs.
#[derive(Debug, Default)]
struct Facts {
    /// Whether a service is wanted.
    on: BTreeMap<Service, bool>,
    /// `-rest`.
    has_rest: bool,
    /// `-electrumhost`, as URLs.
    electrum_hosts: Vec<String>,
    /// `-rpcallowip`.
    rpc_allowed: Vec<String>,
    cookie: Option<String>,
}

/// A service, its key, and the options that switch it on and open it to others.
type Row = (Service, &'static str, &'static str, &'static [&'static str]);

const SERVICES: [Row; 4] = [
    (Service::P2p, "p2p", "listen=1", &["bind=0.0.0.0"]),
    (Service::Rpc, "rpc", "server=1", &["rpcbind=0.0.0.0", "rpcallowip=192.168.0.0/16"]),
    (Service::Electrum, "electrum", "electrum=1", &["electrumtlsbind=0.0.0.0"]),
    (Service::Esplora, "esplora", "esplora=1", &["esplorabind=0.0.0.0"]),
];

impl Connect {
    pub(in crate::page) fn new(settings: &Settings, listening: Arc<Listening>) -> Connect {
        let cookie = settings.rpc.cookie.as_ref().filter(|_| settings.rpc.password.0.is_empty());
        let facts = Facts {
            on: BTreeMap::from([
                (Service::P2p, !settings.net.binds.is_empty()),
                (Service::Rpc, settings.rpc.is_on),
                (Service::Electrum, settings.electrum.is_on),
                (Service::Esplora, settings.esplora.is_on),
            ]),
            has_rest: settings.rpc.has_rest,
            electrum_hosts: settings.electrum.hosts.iter().map(ToString::to_string).collect(),
            rpc_allowed: settings.rpc.allow.clone(),
            cookie: cookie.map(|path| settings.datadir.join(path).display().to_string()),
        };
        Connect { listening, facts, codes: Mutex::default() }
    }

    /// Whether a service has an address. REST has that of RPC.
    pub(super) fn is_listening(&self, key: &str) -> bool {
        if key == "rest" {
            return self.facts.has_rest && self.is_listening("rpc");
        }
        let service = SERVICES.iter().find(|(_, name, ..)| *name == key).map(|(service, ..)| *service);
        self.listening.places().iter().any(|place| Some(place.service) == service)
    }

    fn of(&self, ask: &Ask<'_>, interfaces: &[IpAddr]) -> Map<String, Value> {
        let (mut values, mut texts) = (Map::new(), BTreeSet::new());
        let places = self.listening.places();
        let network = ask("getnetworkinfo").unwrap_or_default();
        for (service, key, switch, opens) in SERVICES {
            let own: Vec<&Place> = places.iter().filter(|place| place.service == service).collect();
            let announced = self.announced(service, &network, &mut texts);
            let reach = own.iter().flat_map(|place| place.reached_at(interfaces)).map(|(_, reach)| reach).max();
            let mut row = json!({
                "on": self.facts.on.get(&service),
                "listens": !own.is_empty(),
                "reach": reach.map(|reach| reach.name()),
                "switch": switch,
                "opens": opens,
                "places": own.iter().map(|place| shown(place, interfaces, &mut texts)).collect::<Vec<_>>(),
                "announced": announced,
            });
            match service {
                Service::Electrum => row["certificate"] = json!(self.listening.fingerprint()),
                Service::Rpc => row["allowed"] = json!(self.facts.rpc_allowed),
                Service::P2p | Service::Esplora | Service::Feed => {}
            }
            values.insert(format!("service:{key}"), row);
        }
        values.insert("lightning".to_owned(), self.lightning(ask, &network));
        let (services, guides) = (guides::services(&values), guides::guides(&values));
        values.extend([("services".to_owned(), services.into()), ("guides".to_owned(), guides.into())]);
        let mut codes = lock(&self.codes);
        codes.retain(|text, _| texts.contains(text));
        for text in texts {
            codes.entry(text).or_insert_with_key(|text| json!(qr::rows(text)));
        }
        values.extend(codes.iter().map(|(text, code)| (format!("qr:{text}"), code.clone())));
        values
    }

    /// The names under which others know a service: those that the operator gives, and those that peers report.
    fn announced(&self, service: Service, network: &Value, texts: &mut BTreeSet<String>) -> Vec<Value> {
        let urls: Vec<String> = match service {
            Service::P2p => {
                let local = network.get("localaddresses").and_then(Value::as_array);
                let endpoint = |address: &Value| {
                    let (host, port) = (rows::text(address, "address")?, address.get("port")?.as_u64()?);
                    Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
                };
                local.into_iter().flatten().filter_map(endpoint).collect()
            }
            Service::Electrum => self.facts.electrum_hosts.clone(),
            Service::Rpc | Service::Esplora | Service::Feed => Vec::new(),
        };
        urls.iter().map(|url| link(url, texts)).collect()
    }

    /// The settings for a Lightning node that uses this node.
    fn lightning(&self, ask: &Ask<'_>, network: &Value) -> Value {
        let chain = ask("getblockchaininfo").unwrap_or_default();
        let services = network.get("localservicesnames").and_then(Value::as_array);
        let has_filters = services.is_some_and(|names| names.iter().any(|name| name == "COMPACT_FILTERS"));
        json!({
            "chain": chain.get("chain"),
            "pruned": chain.get("pruned"),
            "cookie": self.facts.cookie,
            "zmq": ask("getzmqnotifications").unwrap_or_default(),
            "filters": has_filters,
        })
    }
}

/// A place, and the URLs under which clients reach it.
fn shown(place: &Place, interfaces: &[IpAddr], texts: &mut BTreeSet<String>) -> Value {
    let transport = match place.transport {
        Transport::Peers => "p2p",
        Transport::Onion => "onion",
        other => other.scheme().unwrap_or_default(),
    };
    let urls = place.reached_at(interfaces).into_iter().map(|(address, reach)| {
        let mut row = link(&url(place.transport, address), texts);
        row["reach"] = reach.name().into();
        row
    });
    json!({"transport": transport, "bound": place.address.to_string(), "urls": urls.collect::<Vec<_>>()})
}

fn url(transport: Transport, address: SocketAddr) -> String {
    transport.scheme().map_or_else(|| address.to_string(), |scheme| format!("{scheme}://{address}"))
}

/// A URL, and the form in which Electrum and BlueWallet take a server: host, port and the letter of the transport.
fn link(url: &str, texts: &mut BTreeSet<String>) -> Value {
    let letters = [("tcp://", 't'), ("ssl://", 's')];
    let short =
        letters.into_iter().find_map(|(scheme, letter)| Some(format!("{}:{letter}", url.strip_prefix(scheme)?)));
    texts.insert(url.to_owned());
    texts.extend(short.clone());
    match short {
        Some(short) => json!({"url": url, "short": short}),
        None => json!({"url": url}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(facts: Facts) -> Connect {
        Connect { listening: Arc::default(), facts, codes: Mutex::default() }
    }

    fn answers(method: &str) -> Result<Value, String> {
        match method {
            "getnetworkinfo" => Ok(json!({
                "localservicesnames": ["NETWORK", "COMPACT_FILTERS"],
                "localaddresses": [{"address": "2a01:4f8::1", "port": 8333}, {"address": "a.onion", "port": 8334}],
            })),
            "getblockchaininfo" => Ok(json!({"chain": "main", "pruned": false})),
            "getzmqnotifications" => Ok(json!([{"type": "pubrawtx", "address": "tcp://127.0.0.1:28332", "hwm": 1000}])),
            other => Err(other.to_owned()),
        }
    }

    #[test]
    fn services_have_their_addresses_and_codes() {
        let on = BTreeMap::from([(Service::Electrum, true), (Service::P2p, true)]);
        let hosts = vec!["ssl://node.example:443".to_owned()];
        let connect =
            connect(Facts { on, electrum_hosts: hosts, cookie: Some("/x/.cookie".to_owned()), ..Facts::default() });
        let add =
            |service, transport, address: &str| connect.listening.add(service, transport, address.parse().unwrap());
        add(Service::Electrum, Transport::Tcp, "127.0.0.1:50001");
        add(Service::Electrum, Transport::Tls, "0.0.0.0:50002");
        add(Service::P2p, Transport::Peers, "0.0.0.0:8333");
        let values = connect.of(&answers, &["192.168.1.7".parse().unwrap()]);
        let electrum = &values["service:electrum"];
        assert_eq!(
            (&electrum["on"], &electrum["listens"], &electrum["reach"]),
            (&json!(true), &json!(true), &json!("network"))
        );
        assert_eq!(
            electrum["places"][1],
            json!({"transport": "ssl", "bound": "0.0.0.0:50002", "urls": [
                {"url": "ssl://192.168.1.7:50002", "short": "192.168.1.7:50002:s", "reach": "network"},
                {"url": "ssl://127.0.0.1:50002", "short": "127.0.0.1:50002:s", "reach": "machine"},
            ]})
        );
        assert_eq!(electrum["announced"], json!([{"url": "ssl://node.example:443", "short": "node.example:443:s"}]));
        assert_eq!(values["service:p2p"]["announced"], json!([{"url": "[2a01:4f8::1]:8333"}, {"url": "a.onion:8334"}]));
        assert_eq!(values["service:rpc"]["listens"], false);
        assert_eq!(values["lightning"]["filters"], true);
        assert_eq!(values["lightning"]["cookie"], "/x/.cookie");
        // Every text that is shown has its code, and no other has one.
        let codes: Vec<&str> = values.keys().filter_map(|key| key.strip_prefix("qr:")).collect();
        assert_eq!(codes.len(), 12, "{codes:?}");
        assert!(codes.contains(&"192.168.1.7:50002:s") && codes.contains(&"[2a01:4f8::1]:8333"), "{codes:?}");
        assert_eq!(values["qr:ssl://192.168.1.7:50002"], json!(qr::rows("ssl://192.168.1.7:50002")));
        let later = connect.of(&answers, &[]);
        assert!(!later.contains_key("qr:192.168.1.7:50002:s"), "the interface is gone");
    }

    /// During the start no method answers.
    #[test]
    fn a_node_that_starts_shows_what_listens() {
        let connect = connect(Facts::default());
        connect.listening.add(Service::Rpc, Transport::Http, "127.0.0.1:8332".parse().unwrap());
        let values = connect.of(&|_| Err("Loading".to_owned()), &[]);
        assert_eq!(
            values["service:rpc"]["places"][0]["urls"][0],
            json!({"url": "http://127.0.0.1:8332", "reach": "machine"})
        );
        assert_eq!(values["lightning"]["chain"], Value::Null);
    }
}
