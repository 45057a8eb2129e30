//! One call to the node. Input: a [`Question`] and the settings. Output: the reply, an object with "result" or "error";
//! or a [`CallError`].
//!
//! Most questions are one request; [`Question::GetInfo`] and [`Question::NetInfo`] are a batch whose replies are merged
//! into one. Invariants: an error that the node returns is part of the reply, not a [`CallError`]; with `-rpcwait`, a
//! call to a node that is not ready is repeated every second.

use crate::clock::Deadline;
use crate::convert;
use crate::error::CallError;
use crate::http::{self, Target};
use crate::netinfo::{self, Level};
use crate::settings::Settings;
use crate::{getinfo, value};
use lydian_rpc::{Json, code};
use std::io::Write;
use std::time::Duration;

/// The call to make.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    Method { name: String, arguments: Vec<String> },
    Generate { address: String, arguments: Vec<String> },
    GetInfo { arguments: Vec<String> },
    NetInfo { arguments: Vec<String> },
    AddrInfo { arguments: Vec<String> },
}

/// Core's `DEFAULT_HTTP_CLIENT_TIMEOUT`.
const TIMEOUT_SECONDS: i64 = 900;

/// Core's value for "never": five years.
const FOR_EVER: Duration = Duration::from_secs(5 * 365 * 24 * 3600);

/// The pause between tries.
const PAUSE: Duration = Duration::from_secs(1);

/// Makes a call. With `-rpcwait`, repeats it until there is a reply.
pub(crate) fn call(settings: &Settings, question: &Question, wallet: Option<&str>) -> Result<Json, CallError> {
    let is_waiting = settings.switch("rpcwait");
    let seconds = u64::try_from(settings.integer("rpcwaittimeout", 0)).unwrap_or(0);
    let deadline = Deadline::after(Duration::from_secs(seconds));
    let path = wallet.map_or_else(|| "/".to_owned(), |wallet| format!("/wallet/{}", url_encoded(wallet)));
    loop {
        let answer = once(settings, question, &path).and_then(|reply| match is_in_warmup(&reply)? {
            true if is_waiting => Err(CallError::Warmup),
            _ => Ok(reply),
        });
        match answer {
            Err(error) if is_waiting && error.is_transient() => {
                if seconds > 0 && deadline.left().is_none() {
                    return Err(CallError::TimedOut(Box::new(error)));
                }
                std::thread::sleep(PAUSE);
            }
            answer => return answer,
        }
    }
}

fn is_in_warmup(reply: &Json) -> Result<bool, CallError> {
    let error = value::part(reply, "error");
    Ok(value::part(error, "code").as_integer::<i32>().is_ok_and(|code| code == code::IN_WARMUP))
}

fn once(settings: &Settings, question: &Question, path: &str) -> Result<Json, CallError> {
    refuse_ipc(settings)?;
    let (host, port) = server(settings)?;
    let seconds = settings.integer("rpcclienttimeout", TIMEOUT_SECONDS);
    let timeout = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map_or(FOR_EVER, Duration::from_secs);
    let (credentials, blame) = credentials(settings);
    let body = request(settings, question)?.write() + "\n";
    let target = Target { host: &host, port, timeout };
    let response = http::post(&target, path, &credentials, &body).map_err(|cause| CallError::Unreachable {
        host: host.clone(),
        port,
        cause,
    })?;
    match response.status {
        401 => return Err(CallError::Unauthorized { reason: blame, conf: settings.conf().map(Into::into) }),
        503 => return Err(CallError::Unavailable { body: String::from_utf8_lossy(&response.body).into_owned() }),
        400 | 404 | 500 => {}
        status if status >= 400 => return Err(CallError::Status(status)),
        _ => {}
    }
    if response.body.is_empty() {
        return Err(CallError::NoResponse);
    }
    let reply = Json::read(&response.body).ok_or(CallError::NotJson)?;
    // The batch of a node with many peers may be large and is no longer needed.
    drop(response);
    answer(settings, question, reply)
}

fn refuse_ipc(settings: &Settings) -> Result<(), CallError> {
    let address = settings.text("ipcconnect").unwrap_or_else(|| "auto".to_owned());
    let is_by_network = settings.is_set("rpcconnect") && !settings.is_negated("rpcconnect");
    match address.as_str() {
        "0" | "auto" => Ok(()),
        _ if is_by_network => {
            Err(CallError::Ipc { sentence: "-rpcconnect and -ipcconnect options cannot both be enabled" })
        }
        _ => Err(CallError::Ipc { sentence: "lydian-cli was not built with IPC support" }),
    }
}

/// Returns host and port. The port is that of `-rpcport`, else the one after the host, else the chain's default.
fn server(settings: &Settings) -> Result<(String, u16), CallError> {
    let text = settings.text("rpcconnect").unwrap_or_else(|| "127.0.0.1".to_owned());
    let bad = |option, value: &str| CallError::Port { option, value: value.to_owned() };
    let (host, port) = split_host_port(&text).ok_or_else(|| bad("rpcconnect", &text))?;
    let Some(given) = settings.text("rpcport") else {
        return Ok((host.to_owned(), port.unwrap_or(settings.chain().rpc_port)));
    };
    let chosen = given.parse().ok().filter(|port| *port != 0 && !given.starts_with('+'));
    let chosen: u16 = chosen.ok_or_else(|| bad("rpcport", &given))?;
    if port.is_some() {
        // A failed write to stderr cannot be reported anywhere.
        let _ = writeln!(
            std::io::stderr().lock(),
            "Warning: Port specified in both -rpcconnect and -rpcport. Using -rpcport {chosen}"
        );
    }
    Ok((host.to_owned(), chosen))
}

/// Core's `SplitHostPort`. Returns `None` if the port is invalid.
fn split_host_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || (host.starts_with('[') && host.ends_with(']')) => {
            let port = port.parse::<u16>().ok().filter(|number| *number != 0 && !port.starts_with('+'))?;
            (host, Some(port))
        }
        _ => (text, None),
    };
    Some((host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port))
}

/// Returns `name:password`, and the reason to print if the node rejects it.
fn credentials(settings: &Settings) -> (String, &'static str) {
    let password = settings.text("rpcpassword").unwrap_or_default();
    if !password.is_empty() {
        let name = settings.text("rpcuser").unwrap_or_default();
        return (format!("{name}:{password}"), "Incorrect rpcuser or rpcpassword were specified.");
    }
    match settings.cookie() {
        Ok(Some(cookie)) => (cookie, "Cookie file credentials were invalid and no rpcpassword was specified."),
        Ok(None) => (String::new(), "Cookie file was disabled via -norpccookiefile and no rpcpassword was specified."),
        Err(()) => (String::new(), "Failed to read cookie file and no rpcpassword was specified."),
    }
}

fn request(settings: &Settings, question: &Question) -> Result<Json, CallError> {
    let batch = |methods: &[&str]| {
        Json::Array((0..).zip(methods).map(|(id, method): (i32, _)| object(method, Json::Null, number(id))).collect())
    };
    let takes_none = |option: &str, arguments: &[String]| match arguments {
        [] => Ok(()),
        _ => Err(CallError::Usage(format!("-{option} takes no arguments"))),
    };
    Ok(match question {
        Question::Method { name, arguments } => {
            let params = match settings.switch("named") {
                true => convert::named(name, arguments)?,
                false => convert::positional(name, arguments)?,
            };
            let id = settings.text("rpcid").unwrap_or_else(|| "1".to_owned());
            object(name, params, Json::Text(id))
        }
        Question::Generate { arguments, .. } => {
            object("generatetoaddress", convert::positional("generatetoaddress", arguments)?, number(1))
        }
        Question::GetInfo { arguments } => {
            takes_none("getinfo", arguments)?;
            batch(getinfo::METHODS)
        }
        Question::NetInfo { arguments } => {
            Level::parse(arguments)?;
            batch(netinfo::METHODS)
        }
        Question::AddrInfo { arguments } => {
            takes_none("addrinfo", arguments)?;
            object("getaddrmaninfo", Json::Null, number(1))
        }
    })
}

fn object(method: &str, params: Json, id: Json) -> Json {
    let text = |text: &str| Json::Text(text.to_owned());
    value::object([("method", text(method)), ("params", params), ("id", id), ("jsonrpc", text("2.0"))])
}

fn number(number: i32) -> Json {
    Json::Number(number.to_string())
}

fn answer(settings: &Settings, question: &Question, reply: Json) -> Result<Json, CallError> {
    let reply = match question {
        Question::Method { .. } => value::must_be_object(reply)?,
        Question::Generate { address, .. } => {
            let reply = value::must_be_object(reply)?;
            let blocks = value::part(&reply, "result").clone();
            value::result(value::object([("address", Json::Text(address.clone())), ("blocks", blocks)]))
        }
        Question::GetInfo { .. } => getinfo::join(&value::batch(reply)?),
        Question::NetInfo { arguments } => netinfo::join(settings, Level::parse(arguments)?, &value::batch(reply)?)?,
        Question::AddrInfo { .. } => addrinfo(reply)?,
    };
    match &reply {
        Json::Object(entries) if entries.is_empty() => Err(CallError::NotAReply),
        _ => Ok(reply),
    }
}

/// Reduces the reply of `getaddrmaninfo` to one number per network.
fn addrinfo(reply: Json) -> Result<Json, CallError> {
    let error = value::part(&reply, "error");
    if !error.is_null() {
        return match value::part(error, "code").as_integer::<i32>()? {
            code::METHOD_NOT_FOUND => Err(CallError::Usage(
                "-addrinfo requires a node that supports the getaddrmaninfo RPC (bitcoind v26.0 or later)".to_owned(),
            )),
            _ => Ok(reply),
        };
    }
    let Json::Object(networks) = value::part(&reply, "result") else {
        value::part(&reply, "result").as_array()?;
        return Err(CallError::NotAReply);
    };
    let mut addresses = Vec::new();
    for (network, counts) in networks {
        let name = if network == "all_networks" { "total" } else { network };
        addresses.push((name, number(value::part(counts, "total").as_integer()?)));
    }
    Ok(value::result(value::object([("addresses_known", value::object(addresses))])))
}

fn url_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_and_without_ports() {
        for (text, expected) in [
            ("localhost", Some(("localhost", None))),
            ("localhost:1", Some(("localhost", Some(1)))),
            ("[::1]:65535", Some(("::1", Some(65535)))),
            ("[::1]", Some(("::1", None))),
            ("::1", Some(("::1", None))),
            ("", Some(("", None))),
            (":7", Some(("", Some(7)))),
            ("localhost:", None),
            ("localhost:0", None),
            ("localhost:+1", None),
            ("localhost:65536", None),
            ("[::1]:x", None),
        ] {
            assert_eq!(split_host_port(text), expected, "{text}");
        }
    }

    #[test]
    fn names_of_wallets_in_a_path() {
        assert_eq!(url_encoded("a/b c~\u{e9}"), "a%2Fb%20c~%C3%A9");
    }
}
