//! The topic `sessions`: the sessions of the Electrum server, and its bans. It names clients, so it needs a login.
//!
//! Input: the answers of RPC methods. Output: the keys `session:ID` and `ban:SUBNET`, or `problem` if the server is
//! off. No script, transaction or address that a wallet asks for is in any of them.

use super::rows::{self, Ask};
use crate::page::PageNode;
use serde_json::{Map, Value};

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    sessions(&|method| node.ask(method))
}

fn sessions(ask: &Ask<'_>) -> Map<String, Value> {
    let mut values = Map::new();
    let lists = [("session", "listelectrumsessions", "id"), ("ban", "listelectrumbans", "address")];
    for (kind, method, name) in lists {
        match ask(method) {
            Ok(list) => rows::add(&mut values, kind, &list, |row| {
                let name = row.get(name)?;
                Some(name.as_str().map_or_else(|| name.to_string(), str::to_owned))
            }),
            Err(words) => return rows::problem(&words),
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sessions_have_their_keys() {
        let ask = |method: &str| match method {
            "listelectrumsessions" => Ok(json!([{"id": 7, "subscriptions": 2}])),
            _ => Ok(json!([{"address": "203.0.113.0/24"}])),
        };
        let expected =
            json!({"session:7": {"id": 7, "subscriptions": 2}, "ban:203.0.113.0/24": {"address": "203.0.113.0/24"}});
        assert_eq!(Value::Object(sessions(&ask)), expected);
        let off = sessions(&|_| Err("The Electrum server is not running (-electrum)".to_owned()));
        assert_eq!(Value::Object(off), json!({"problem": "The Electrum server is not running (-electrum)"}));
    }
}
