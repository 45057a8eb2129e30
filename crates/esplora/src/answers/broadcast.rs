//! What gives transactions to the node: Core's `sendrawtransaction`, `submitpackage` and `testmempoolaccept`.

use crate::call::{Call, at_most};
use crate::fault::Fault;
use crate::limits::PACKAGE_MAX;
use crate::reply::{Reply, SHORTLY};
use lydian_query::CallError;
use serde_json::{Value, json};

/// The error in the words of Esplora, in which wallets look for Core's code and message.
fn refused(method: &str, error: &CallError) -> Fault {
    Fault::bad(format!("{method} RPC error: {}", json!({ "code": error.code, "message": error.message })))
}

fn send(call: &Call<'_>, hex: &str) -> Result<Reply, Fault> {
    let method = "sendrawtransaction";
    let txid = call.shared.calls.call(method, &json!([hex]).to_string()).map_err(|error| refused(method, &error))?;
    Ok(Reply::text(txid.trim_matches('"'), 0))
}

pub(crate) fn transaction(call: &Call<'_>) -> Result<Reply, Fault> {
    send(call, call.text()?)
}

pub(crate) fn by_query(call: &Call<'_>) -> Result<Reply, Fault> {
    send(call, call.option("tx").ok_or_else(|| Fault::bad("Missing tx"))?)
}

/// The transactions of the body with the options of the query, as arguments of a method.
fn submit(call: &Call<'_>, method: &str, options: &[&str]) -> Result<Reply, Fault> {
    let txs: Vec<String> = call.json("an array of transactions in hexadecimal")?;
    at_most(txs.len(), PACKAGE_MAX, "transactions")?;
    let mut params = vec![json!(txs)];
    for name in options {
        let number = |text: &str| text.parse::<f64>().ok().map(Value::from).ok_or(());
        let value = call.option(name).map(number).transpose();
        params.push(value.map_err(|()| Fault::bad(format!("Invalid {name}")))?.unwrap_or_default());
    }
    while params.last().is_some_and(Value::is_null) {
        params.pop();
    }
    let answer = call.shared.calls.call(method, &Value::from(params).to_string());
    Ok(Reply::written(answer.map_err(|error| refused(method, &error))?, SHORTLY))
}

pub(crate) fn package(call: &Call<'_>) -> Result<Reply, Fault> {
    submit(call, "submitpackage", &["maxfeerate", "maxburnamount"])
}

pub(crate) fn test(call: &Call<'_>) -> Result<Reply, Fault> {
    submit(call, "testmempoolaccept", &["maxfeerate"])
}
