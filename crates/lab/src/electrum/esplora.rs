//! The queries of Esplora's REST API, and the canonical form in which the answers of all servers are compared.
//!
//! Input: the scripts, the answers that follow from the blocks. Output: paths with their arguments; for a body its
//! canonical JSON, which has only the fields that the lab knows from the blocks, in the order in which the server
//! returned them. Of a transaction in a list these are its txid and its block. Must never: correct an answer.

use super::client::Fault;
use super::compare::{Digest, Order};
use lydian_chains::expected::{Expected, Outspends};
use lydian_chains::targets::Targets;
use lydian_hash::sha256;
use lydian_primitives::to_hex;
use serde_json::{Map, Value, json};

/// A path of the API with one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Script,
    Txs,
    Utxo,
    Outspends,
}

pub(super) const PATHS: [Path; 4] = [Path::Script, Path::Txs, Path::Utxo, Path::Outspends];

/// The fields of an output's spender, and of an entry that is confirmed.
const STATUS: &[&str] = &["block_hash", "block_height", "block_time", "confirmed"];
const STATS: &[&str] = &["funded_txo_count", "funded_txo_sum", "spent_txo_count", "spent_txo_sum", "tx_count"];

impl Path {
    /// Its name in the results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Path::Script => "esplora-script",
            Path::Txs => "esplora-txs",
            Path::Utxo => "esplora-utxo",
            Path::Outspends => "esplora-outspends",
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Path::Script => "/scripthash/:hash",
            Path::Txs => "/scripthash/:hash/txs",
            Path::Utxo => "/scripthash/:hash/utxo",
            Path::Outspends => "/tx/:txid/outspends",
        }
    }

    /// The API defines no order of coins.
    pub(super) fn order(self) -> Order {
        if self == Path::Utxo { Order::IsNoted } else { Order::Counts }
    }

    pub(super) fn canonical(self, body: &Value) -> Result<Value, Fault> {
        match self {
            Path::Script => {
                let stats = |name: &str| picked(&body[name], STATS);
                Ok(json!({ "chain_stats": stats("chain_stats")?, "mempool_stats": stats("mempool_stats")? }))
            }
            Path::Txs => list(body, |entry| with_status(entry, &["txid"])),
            Path::Utxo => list(body, |entry| with_status(entry, &["txid", "value", "vout"])),
            Path::Outspends => list(body, |entry| match entry["spent"].as_bool() {
                Some(true) => with_status(entry, &["spent", "txid", "vin"]),
                _ => picked(entry, &["spent"]),
            }),
        }
    }
}

fn list(body: &Value, entry: impl Fn(&Value) -> Result<Value, Fault>) -> Result<Value, Fault> {
    let entries = body.as_array().ok_or_else(|| Fault::Unexpected("not a list".to_owned()))?;
    entries.iter().map(entry).collect()
}

fn with_status(entry: &Value, fields: &[&str]) -> Result<Value, Fault> {
    let mut all = picked(entry, fields)?;
    all["status"] = picked(&entry["status"], STATUS)?;
    Ok(all)
}

fn picked(from: &Value, fields: &[&str]) -> Result<Value, Fault> {
    let pick = |&name: &&str| from.get(name).map(|value| (name.to_owned(), value.clone()));
    let picked: Option<Map<String, Value>> = fields.iter().map(pick).collect();
    picked.map(Value::Object).ok_or_else(|| Fault::Unexpected(format!("an entry of another form: {from}")))
}

/// What is asked of each path, and the right answers, one for each script.
#[derive(Debug, Default)]
pub(super) struct Questions {
    pub(super) params: Vec<Value>,
    pub(super) expected: Vec<Digest>,
}

impl Questions {
    /// In the order of [`PATHS`].
    pub(super) fn all(targets: &Targets, expected: &Expected, outspends: &Outspends) -> [Questions; 4] {
        PATHS.map(|path| {
            let mut questions = Questions::default();
            for (at, target) in targets.scripts.iter().enumerate() {
                let name = to_hex(&sha256(&target.script));
                let (argument, right) = match path {
                    Path::Script => (name, expected.esplora_script(at)),
                    Path::Txs => (name, expected.esplora_txs(at)),
                    Path::Utxo => (name, expected.esplora_utxo(at)),
                    Path::Outspends => expected.esplora_outspends(at, outspends).unwrap_or_default(),
                };
                questions.params.push(Value::from(argument));
                questions.expected.push(Digest::of(&right, path.order()));
            }
            questions
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_know_the_paths() {
        assert_eq!(PATHS.map(Path::name), lydian_report::electrum::ESPLORA);
    }

    #[test]
    fn only_known_fields_are_compared_and_all_of_them() {
        let status = json!({"confirmed": true, "block_height": 7, "block_hash": "bb", "block_time": 9, "more": 1});
        let entry = json!({"txid": "aa", "vout": 1, "value": 5, "vin": 0, "spent": true, "status": status, "fee": 3});
        let text = |path: Path, body: &Value| path.canonical(body).map(|canonical| canonical.to_string());
        let block = r#""status":{"block_hash":"bb","block_height":7,"block_time":9,"confirmed":true}"#;
        let list = json!([entry]);
        assert_eq!(text(Path::Txs, &list).unwrap(), format!(r#"[{{{block},"txid":"aa"}}]"#));
        assert_eq!(text(Path::Utxo, &list).unwrap(), format!(r#"[{{{block},"txid":"aa","value":5,"vout":1}}]"#));
        let spends = json!([entry, {"spent": false}]);
        let found = text(Path::Outspends, &spends).unwrap();
        assert_eq!(found, format!(r#"[{{"spent":true,{block},"txid":"aa","vin":0}},{{"spent":false}}]"#));
        let mut pending = list.clone();
        pending[0]["status"] = json!({"confirmed": false});
        assert!(text(Path::Txs, &pending).is_err() && text(Path::Outspends, &json!([{}])).is_err());
        assert!(text(Path::Utxo, &json!({"utxos": []})).is_err() && text(Path::Script, &json!({})).is_err());
    }
}
