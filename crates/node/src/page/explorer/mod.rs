//! The explorer of the page: methods that RPC does not have, for users of the page alone.
//!
//! Input: a method and its parameters. Output: JSON. Blocks, transactions, addresses and scripts are answered as the
//! Esplora server answers them, from one `Query`; this module adds the search field and the coins of a script in parts.
//! Nothing that changes the node can be asked.

mod search;

use crate::answers::Answers;
use lydian_consensus::Chain;
use lydian_dashboard::CallError;
use lydian_esplora::{Direct, Refusal};
use lydian_primitives::hex;
use lydian_query::{Coin, Query, QueryError, ScriptHash};
use lydian_rpc::{Context, Whitelist, code};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;

/// Coins in an answer.
const COINS_PER_PAGE: usize = 100;

/// What the explorer answers from.
#[derive(Debug)]
pub(crate) struct Explorer {
    query: Arc<Query>,
    direct: Direct,
    context: Arc<Context>,
    chain: Chain,
}

type Method = fn(&Explorer, &[Value]) -> Result<String, CallError>;

/// The methods, with a sentence about their parameters.
const METHODS: &[(&str, &str, Method)] = &[
    ("lydian_explore", "the path of a route of Esplora", Explorer::explore),
    ("lydian_scriptcoins", "a script hash, and how many coins to skip", Explorer::coins),
    ("lydian_search", "a height, a hash, an address, a script in hexadecimal or a descriptor", Explorer::search),
];

fn invalid(message: impl Into<String>) -> CallError {
    CallError { code: code::INVALID_PARAMETER, message: message.into() }
}

fn failed(error: &QueryError) -> CallError {
    let code = match error {
        QueryError::NoTransaction(_) | QueryError::NoHeight { .. } => code::INVALID_ADDRESS_OR_KEY,
        _ => code::MISC_ERROR,
    };
    CallError { code, message: error.to_string() }
}

fn refused(refusal: Refusal) -> CallError {
    let code = match refusal.status {
        400 | 422 => code::INVALID_PARAMETER,
        404 => code::INVALID_ADDRESS_OR_KEY,
        _ => code::MISC_ERROR,
    };
    CallError { code, message: refusal.message }
}

impl Explorer {
    pub(super) fn new(answers: &Answers, context: Arc<Context>, chain: Chain) -> Explorer {
        let source = answers.source("page");
        let query = Arc::clone(&source.query);
        Explorer { query, direct: Direct::new(source, chain), context, chain }
    }

    /// Calls a method; `None` if the explorer has none of this name.
    pub(super) fn call(&self, method: &str, params: &str) -> Option<Result<String, CallError>> {
        let (_, what, call) = METHODS.iter().find(|(name, ..)| *name == method)?;
        let params: Result<Vec<Value>, _> = serde_json::from_str(params);
        Some(match params {
            Ok(params) => call(self, &params),
            Err(_) => Err(invalid(format!("The parameters of {method} must be an array: {what}."))),
        })
    }

    /// The answer of a route of Esplora, as text or JSON.
    fn explore(&self, params: &[Value]) -> Result<String, CallError> {
        let answer = self.direct.get(text(params, 0, "path")?).map_err(refused)?;
        let value = match answer.is_json {
            true => RawValue::from_string(answer.text).map_err(|error| invalid(error.to_string()))?,
            false => serde_json::value::to_raw_value(&answer.text).map_err(|error| invalid(error.to_string()))?,
        };
        Ok(format!("{{\"value\":{},\"total\":{}}}", value.get(), json!(answer.total)))
    }

    /// Unspent outputs of a script, in the order of the chain, then those of the mempool.
    fn coins(&self, params: &[Value]) -> Result<String, CallError> {
        let script = script_hash(text(params, 0, "script hash")?)?;
        let skip = match params.get(1) {
            None | Some(Value::Null) => 0,
            Some(value) => value
                .as_u64()
                .and_then(|skip| usize::try_from(skip).ok())
                .ok_or_else(|| invalid(format!("The number of coins to skip must be a whole number, not {value}.")))?,
        };
        let (coins, has_more) = self.coins_after(&script, skip).map_err(|error| failed(&error))?;
        let coin = |coin: &Coin| {
            let height = Some(coin.height).filter(|height| *height > 0);
            json!({ "txid": coin.txid.to_string(), "vout": coin.vout, "value": coin.value, "height": height })
        };
        let coins: Vec<Value> = coins.iter().map(coin).collect();
        Ok(json!({ "coins": coins, "more": has_more }).to_string())
    }

    /// The coins after some, and whether there are more. Memory: one part.
    fn coins_after(&self, script: &ScriptHash, mut skip: usize) -> Result<(Vec<Coin>, bool), QueryError> {
        let mut parts = self.query.coin_parts(script)?;
        let mut found: Vec<Coin> = Vec::new();
        loop {
            let (part, is_last) = match parts.part(&self.query)? {
                Some(part) => (part, false),
                None => (std::mem::take(&mut parts.pool), true),
            };
            let skipped = skip.min(part.len());
            skip -= skipped;
            found.extend(part.into_iter().skip(skipped).take(COINS_PER_PAGE + 1 - found.len()));
            if found.len() > COINS_PER_PAGE {
                found.truncate(COINS_PER_PAGE);
                return Ok((found, true));
            }
            if is_last {
                return Ok((found, false));
            }
        }
    }

    fn search(&self, params: &[Value]) -> Result<String, CallError> {
        search::search(self, text(params, 0, "text to search for")?).map(|found| found.to_string()).map_err(invalid)
    }

    /// The block of a transaction that Core's index knows, or nothing for one of the mempool. `None`: it is not known.
    fn known_by_rpc(&self, txid: &str) -> Option<Option<String>> {
        let params = json!([txid, 1]).to_string();
        let found = crate::answers::call(&self.context, &Whitelist::default(), "page", "getrawtransaction", &params);
        let found: Value = serde_json::from_str(&found.ok()?).ok()?;
        Some(found.get("blockhash").and_then(Value::as_str).map(str::to_owned))
    }

    /// Whether the transactions of the whole chain can be found.
    fn has_transactions(&self) -> bool {
        self.query.index().is_ok() || self.context.indexes().transactions.is_some()
    }
}

fn text<'a>(params: &'a [Value], place: usize, what: &str) -> Result<&'a str, CallError> {
    params.get(place).and_then(Value::as_str).ok_or_else(|| invalid(format!("The {what} must be a text.")))
}

/// The SHA-256 of a script, written as it is.
fn script_hash(text: &str) -> Result<ScriptHash, CallError> {
    let bytes = hex(text).ok().and_then(|bytes| bytes.try_into().ok()).map(ScriptHash);
    bytes.ok_or_else(|| invalid(format!("{text:?} is not a script hash: it has 64 hexadecimal digits.")))
}
