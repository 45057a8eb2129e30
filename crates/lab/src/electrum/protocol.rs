//! The queries of the comparison, and the canonical form in which the answers of all servers are compared.
//!
//! Input: a script or heights, the negotiated version. Output: method and parameters; for a result its canonical JSON,
//! which has only the fields of the protocol, in a fixed order, and lists in the order in which the server returned
//! them. From 1.7 on, scripts are named directly and lists are inside objects; the canonical form is the same. Must
//! never: correct an answer.

use super::client::Fault;
use super::compare::Order;
use lydian_chains::targets::Target;
use lydian_hash::Sha256;
use serde_json::{Value, json};

/// A query about a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScriptQuery {
    Balance,
    History,
    Utxos,
}

pub const SCRIPT_QUERIES: [ScriptQuery; 3] = [ScriptQuery::Balance, ScriptQuery::History, ScriptQuery::Utxos];

impl ScriptQuery {
    /// Its name in the results.
    pub fn name(self) -> &'static str {
        match self {
            ScriptQuery::Balance => "balance",
            ScriptQuery::History => "history",
            ScriptQuery::Utxos => "utxos",
        }
    }

    pub fn method(self, protocol: &str) -> String {
        let verb = match self {
            ScriptQuery::Balance => "get_balance",
            ScriptQuery::History => "get_history",
            ScriptQuery::Utxos => "listunspent",
        };
        format!("{}.{verb}", family(protocol))
    }

    /// The order of a history determines its status. By the protocol a list of coins is in blockchain order too, but
    /// nothing depends on it, and one server uses another order.
    pub fn order(self) -> Order {
        match self {
            ScriptQuery::Balance | ScriptQuery::History => Order::Counts,
            ScriptQuery::Utxos => Order::IsNoted,
        }
    }

    /// The fields that the protocol defines for a confirmed entry; an entry in the mempool may have more.
    fn fields(self) -> &'static [&'static str] {
        match self {
            ScriptQuery::Balance => &["confirmed", "unconfirmed"],
            ScriptQuery::History => &["height", "tx_hash"],
            ScriptQuery::Utxos => &["height", "tx_hash", "tx_pos", "value"],
        }
    }

    pub fn canonical(self, result: &Value) -> Result<Value, Fault> {
        let fields = |entry: &Value| {
            let pick = |&name: &&str| entry.get(name).map(|value| (name.to_owned(), value.clone()));
            let picked: Option<serde_json::Map<String, Value>> = self.fields().iter().map(pick).collect();
            picked.map(Value::Object).ok_or_else(|| Fault::Unexpected(format!("an entry of another form: {entry}")))
        };
        match self {
            ScriptQuery::Balance => fields(result),
            ScriptQuery::History => entries(result, "history")?.iter().map(fields).collect(),
            ScriptQuery::Utxos => entries(result, "utxos")?.iter().map(fields).collect(),
        }
    }
}

/// The parameters that name a script.
pub fn script_params(target: &Target, protocol: &str) -> Value {
    match is_by_script(protocol) {
        true => json!([lydian_primitives::to_hex(&target.script)]),
        false => json!([target.scripthash]),
    }
}

pub fn subscribe_method(protocol: &str) -> String {
    format!("{}.subscribe", family(protocol))
}

/// The status of a canonical history, as defined by the protocol: SHA-256 over `txid:height:` of each entry; `None`
/// without entries.
pub fn status_of(history: &Value) -> Option<String> {
    let entries = history.as_array().filter(|entries| !entries.is_empty())?;
    let mut hasher = Sha256::new();
    for entry in entries {
        let text = format!("{}:{}:", entry["tx_hash"].as_str().unwrap_or_default(), entry["height"]);
        hasher.update(text.as_bytes());
    }
    Some(lydian_primitives::to_hex(&hasher.finalize()))
}

/// Parses `blockchain.block.headers`: all headers as one string, whether they were sent as one or, from 1.6 on, as a
/// list.
pub fn headers_of(result: &Value) -> Result<String, Fault> {
    let joined = match (&result["hex"], &result["headers"]) {
        (Value::String(hex), _) => Some(hex.clone()),
        (_, Value::Array(headers)) => headers.iter().map(Value::as_str).collect(),
        _ => None,
    };
    joined.ok_or_else(|| Fault::Unexpected("neither `hex` nor `headers`".into()))
}

fn family(protocol: &str) -> &'static str {
    if is_by_script(protocol) { "blockchain.scriptpubkey" } else { "blockchain.scripthash" }
}

/// Whether scripts are named directly: from 1.7 on.
fn is_by_script(protocol: &str) -> bool {
    let mut parts = protocol.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (1, 7)
}

fn entries<'a>(result: &'a Value, field: &str) -> Result<&'a Vec<Value>, Fault> {
    let list = result.as_array().or_else(|| result.get(field)?.as_array());
    list.ok_or_else(|| Fault::Unexpected(format!("neither a list nor an object with `{field}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_of_methods_have_one_canonical_form() {
        let target = Target { scripthash: "aa".into(), ..Target::new(vec![0x51], 1, 1) };
        assert_eq!(script_params(&target, "1.4"), json!(["aa"]));
        assert_eq!(script_params(&target, "1.7"), json!(["51"]));
        assert_eq!(ScriptQuery::Utxos.method("1.4.2"), "blockchain.scripthash.listunspent");
        assert_eq!(ScriptQuery::Utxos.method("1.10"), "blockchain.scriptpubkey.listunspent");
        let entry = json!({"tx_hash": "t", "height": 3, "outpoint": 7});
        let plain = ScriptQuery::History.canonical(&json!([entry])).unwrap();
        assert_eq!(plain, ScriptQuery::History.canonical(&json!({"history": [entry]})).unwrap());
        assert_eq!(plain.to_string(), r#"[{"height":3,"tx_hash":"t"}]"#);
        assert!(ScriptQuery::Utxos.canonical(&json!([entry])).is_err(), "a field is missing");
        assert!(ScriptQuery::Utxos.canonical(&json!(7)).is_err());
        let balance = ScriptQuery::Balance.canonical(&json!({"unconfirmed": 0, "confirmed": 5})).unwrap();
        assert_eq!(balance.to_string(), r#"{"confirmed":5,"unconfirmed":0}"#);
        assert!(ScriptQuery::Balance.canonical(&json!({"confirmed": 5})).is_err());
    }

    #[test]
    fn a_status_is_the_hash_of_the_history() {
        assert_eq!(status_of(&json!([])), None);
        let history = json!([{"height": 1, "tx_hash": "aa"}, {"height": 22, "tx_hash": "bb"}]);
        let expected = lydian_hash::sha256(b"aa:1:bb:22:");
        assert_eq!(status_of(&history), Some(lydian_primitives::to_hex(&expected)));
    }

    #[test]
    fn headers_come_in_two_forms() {
        assert_eq!(headers_of(&json!({"hex": "0102"})).unwrap(), "0102");
        assert_eq!(headers_of(&json!({"headers": ["01", "02"]})).unwrap(), "0102");
        assert!(headers_of(&json!({"headers": [1]})).is_err() && headers_of(&json!([])).is_err());
    }
}
