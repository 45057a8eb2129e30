//! The topic `serving`: what the servers of this node do for programs and wallets.
//!
//! Input: the figures of the servers, the same as in `/metrics`. Output: the keys `server:NAME` and
//! `request:NAME:METHOD`. A method is one of a table of the program, so nothing that a client sends is in them. Cost: a
//! row for each method that was called.

use crate::page::PageNode;
use lydian_serve::figures::{Distribution, Family, Value as Figure};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The servers: their names, and the beginning of their figures' names.
const SERVERS: [(&str, &str); 4] = [
    ("rpc", "lydian_rpc_"),
    ("rest", "lydian_rest_"),
    ("electrum", "lydian_electrum_"),
    ("esplora", "lydian_esplora_"),
];

/// The figures by method: durations, and errors.
const DURATIONS: &str = "request_seconds";
const ERRORS: &str = "errors_total";

/// Requests for one method.
#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    durations: Distribution,
    errors: f64,
}

impl Requests {
    fn row(&self) -> Value {
        let Distribution { seconds, .. } = self.durations;
        let millis = |share| self.durations.quantile(share).map(|seconds| seconds * 1e3);
        json!({
            "count": self.durations.count(),
            "errors": self.errors,
            "seconds": seconds,
            "p50": millis(0.5),
            "p99": millis(0.99),
        })
    }
}

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    serving(&node.metrics.servers(), |name| node.connect.is_listening(name))
}

/// `is_on`: whether a server runs.
fn serving(families: &[Family], is_on: impl Fn(&str) -> bool) -> Map<String, Value> {
    let mut values = Map::new();
    for (server, prefix) in SERVERS {
        let mut figures = Vec::new();
        let mut methods: BTreeMap<&str, Requests> = BTreeMap::new();
        for family in families {
            let Some(name) = family.about.name.strip_prefix(prefix) else { continue };
            for sample in &family.samples {
                match (name, sample.labels.first(), sample.value) {
                    (DURATIONS, Some(method), Figure::Seconds(all)) => {
                        methods.entry(method).or_default().durations = all
                    }
                    (ERRORS, Some(method), Figure::Number(count)) => methods.entry(method).or_default().errors = count,
                    (_, label, Figure::Number(value)) => figures.push(json!({
                        "name": name, "label": label, "help": family.about.help, "unit": family.about.unit,
                        "kind": family.about.kind.name(), "value": value,
                    })),
                    (_, _, Figure::Seconds(_)) => {}
                }
            }
        }
        let count: u64 = methods.values().map(|requests| requests.durations.count()).sum();
        let errors: f64 = methods.values().map(|requests| requests.errors).sum();
        values.insert(
            format!("server:{server}"),
            json!({"on": is_on(server), "figures": figures, "requests": count, "errors": errors}),
        );
        values.extend(methods.iter().map(|(method, requests)| (format!("request:{server}:{method}"), requests.row())));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_serve::figures::{About, Histogram, Kind, Label, Sample};
    use std::time::Duration;

    const METHOD: Label = Label { name: "method", values: || vec!["getblock", "other"] };
    const fn about(name: &'static str, kind: Kind, labels: &'static [Label]) -> About {
        About { name, help: "Help.", unit: "calls", kind, labels }
    }
    const OPEN: About = about("lydian_rpc_connections", Kind::Gauge, &[]);
    const TOOK: About = about("lydian_rpc_request_seconds", Kind::Histogram, &[METHOD]);
    const FAILED: About = about("lydian_rpc_errors_total", Kind::Counter, &[METHOD]);
    const FOREIGN: About = about("bitcoin_blocks", Kind::Gauge, &[]);

    #[test]
    fn figures_are_grouped_by_server_and_method() {
        let histogram = Histogram::default();
        for _ in 0..4 {
            histogram.note(Duration::from_micros(50));
        }
        let sample = |labels: &[&'static str], value| Sample { labels: labels.to_vec(), value };
        let families = [
            Family { about: &OPEN, samples: vec![sample(&[], Figure::Number(3.0))] },
            Family { about: &TOOK, samples: vec![sample(&["getblock"], Figure::Seconds(histogram.read()))] },
            Family { about: &FAILED, samples: vec![sample(&["getblock"], Figure::Number(1.0))] },
            Family { about: &FOREIGN, samples: vec![sample(&[], Figure::Number(9.0))] },
        ];
        let values = serving(&families, |name| name == "rpc");
        let keys: Vec<&String> = values.keys().collect();
        assert_eq!(keys, ["request:rpc:getblock", "server:electrum", "server:esplora", "server:rest", "server:rpc"]);
        let rpc = &values["server:rpc"];
        assert_eq!((&rpc["on"], &rpc["requests"], &rpc["errors"]), (&json!(true), &json!(4), &json!(1.0)));
        assert_eq!(rpc["figures"].as_array().map(Vec::len), Some(1));
        assert_eq!((&rpc["figures"][0]["name"], &rpc["figures"][0]["value"]), (&json!("connections"), &json!(3.0)));
        assert_eq!(values["server:esplora"]["on"], false);
        let row = &values["request:rpc:getblock"];
        assert_eq!((&row["count"], &row["errors"], &row["p50"]), (&json!(4), &json!(1.0), &json!(0.05)));
    }
}
