//! `-getinfo`: the state of a node on one page.
//!
//! Input: the replies to [`METHODS`], of which the last two may be errors (a node without a wallet). Output: one object
//! ([`join`]), then text ([`page`]) in Core's layout.

use crate::error::CallError;
use crate::value::{self, part, plain, real};
use lydian_rpc::Json;

/// The calls of the batch.
pub(crate) const METHODS: &[&str] = &["getnetworkinfo", "getblockchaininfo", "getwalletinfo", "getbalances"];

/// Merges the four replies into one object, or returns the error of one of the first two.
pub(crate) fn join(batch: &[Json]) -> Json {
    let reply = |index| value::member(batch, index);
    if let Some(failed) = [reply(0), reply(1)].into_iter().find(|reply| !part(reply, "error").is_null()) {
        return failed.clone();
    }
    let (network, chain) = (part(reply(0), "result"), part(reply(1), "result"));
    let (wallet, balances) = (part(reply(2), "result"), part(reply(3), "result"));
    let take = |from: &Json, key: &str| part(from, key).clone();
    let connections = value::object([
        ("in", take(network, "connections_in")),
        ("out", take(network, "connections_out")),
        ("total", take(network, "connections")),
    ]);
    let mut entries = vec![
        ("version", take(network, "version")),
        ("blocks", take(chain, "blocks")),
        ("headers", take(chain, "headers")),
        ("verificationprogress", take(chain, "verificationprogress")),
        ("timeoffset", take(network, "timeoffset")),
        ("connections", connections),
        ("networks", take(network, "networks")),
        ("difficulty", take(chain, "difficulty")),
        ("chain", take(chain, "chain")),
    ];
    if !wallet.is_null() {
        entries.push(("has_wallet", Json::Bool(true)));
        entries.extend(["keypoolsize", "walletname"].map(|key| (key, take(wallet, key))));
        if !part(wallet, "unlocked_until").is_null() {
            entries.push(("unlocked_until", take(wallet, "unlocked_until")));
        }
    }
    if !balances.is_null() {
        entries.push(("balance", take(part(balances, "mine"), "trusted")));
    }
    entries.extend(["relayfee", "warnings"].map(|key| (key, take(network, key))));
    value::result(value::object(entries))
}

/// Whether to print in colour. Without the option, or with `auto`, `is_terminal` decides.
pub(crate) fn has_colors(option: Option<&str>, is_terminal: bool) -> Result<bool, CallError> {
    match option {
        None | Some("auto") => Ok(is_terminal),
        Some("always") => Ok(true),
        Some("never") => Ok(false),
        Some(_) => {
            Err(CallError::Usage("Invalid value for -color option. Valid values: always, auto, never.".to_owned()))
        }
    }
}

/// Returns the page. `balances` are those of several wallets, by name.
pub(crate) fn page(info: &Json, balances: Option<&[(String, Json)]>, has_colors: bool) -> Result<String, CallError> {
    let color = |code: &'static str| if has_colors { code } else { "" };
    let reset = color("\x1b[0m");
    let field = |key: &str| plain(part(info, key));
    let mut text = format!("{}Chain: {}{reset}\n", color("\x1b[34m"), field("chain"));
    text += &format!("Blocks: {}\nHeaders: {}\n", field("blocks"), field("headers"));
    let progress = real(part(info, "verificationprogress"))?;
    // The bar is shown below 99%.
    let bar = if progress < 0.99 { bar(progress) + " " } else { String::new() };
    text += &format!("Verification progress: {bar}{:.4}%\nDifficulty: {}\n\n", progress * 100.0, field("difficulty"));
    let peers = |key| plain(part(part(info, "connections"), key));
    let green = color("\x1b[32m");
    text += &format!("{green}Network: in {}, out {}, total {}{reset}\n", peers("in"), peers("out"), peers("total"));
    text += &format!("Version: {}\nTime offset (s): {}\n", field("version"), field("timeoffset"));
    text += &format!("Proxies: {}\n", proxies(part(info, "networks"))?);
    text += &format!("Min tx relay fee rate (BTC/kvB): {}\n\n", field("relayfee"));
    let named = |name: &str| if name.is_empty() { "\"\"".to_owned() } else { name.to_owned() };
    if !part(info, "has_wallet").is_null() {
        text += &format!("{}Wallet: {}{reset}\n", color("\x1b[35m"), named(field("walletname")));
        text += &format!("Keypool size: {}\n", field("keypoolsize"));
        if !part(info, "unlocked_until").is_null() {
            text += &format!("Unlocked until: {}\n", field("unlocked_until"));
        }
    }
    let cyan = color("\x1b[36m");
    if !part(info, "balance").is_null() {
        text += &format!("{cyan}Balance:{reset} {}\n\n", field("balance"));
    }
    if let Some(balances) = balances {
        let width = balances.iter().map(|(_, balance)| plain(balance).len()).max().unwrap_or(0).max(10);
        text += &format!("{cyan}Balances{reset}\n");
        for (wallet, balance) in balances {
            text += &format!("{:>width$} {}\n", plain(balance), named(wallet));
        }
        text += "\n";
    }
    let warnings = field("warnings");
    let warnings = if warnings.is_empty() { "(none)" } else { warnings };
    Ok(text + &format!("{}Warnings:{reset} {warnings}", color("\x1b[33m")))
}

/// Returns a bar of about twenty steps, or nothing if `progress` is not between 0 and 1.
fn bar(progress: f64) -> String {
    let count = |part: f64| (0_u8..=20).take_while(|step| f64::from(*step) < part / 0.05).count();
    match (0.0..=1.0).contains(&progress) {
        true => "\u{2592}".repeat(count(progress)) + &"\u{2591}".repeat(count(1.0 - progress)),
        false => String::new(),
    }
}

/// Lists each proxy with its networks.
fn proxies(networks: &Json) -> Result<String, CallError> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for network in networks.as_array()? {
        let (proxy, name) = (plain(part(network, "proxy")), plain(part(network, "name")));
        match found.iter_mut().find(|(known, _)| *known == proxy) {
            _ if proxy.is_empty() => {}
            Some((_, names)) => names.push(name),
            None => found.push((proxy, vec![name])),
        }
    }
    let listed: Vec<_> = found.iter().map(|(proxy, names)| format!("{proxy} ({})", names.join(", "))).collect();
    Ok(if listed.is_empty() { "n/a".to_owned() } else { listed.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = r#"{"version":319900,"blocks":1,"headers":2,"verificationprogress":0.51,"timeoffset":0,
        "connections":{"in":1,"out":2,"total":3},"networks":[{"name":"ipv4","proxy":"a:1"},{"name":"onion","proxy":"b:2"},
        {"name":"ipv6","proxy":"a:1"},{"name":"i2p","proxy":""}],"difficulty":4.6e-10,"chain":"regtest","has_wallet":true,
        "keypoolsize":7,"walletname":"","unlocked_until":9,"balance":1.50000000,"relayfee":0.00000100,"warnings":"w"}"#;

    #[test]
    fn the_page_with_all_that_may_stand_on_it() {
        let info = Json::read(INFO.as_bytes()).unwrap();
        let balances = [
            ("".to_owned(), Json::Number("1.5".to_owned())),
            ("b".to_owned(), Json::Number("123456789012".to_owned())),
        ];
        let expected = "Chain: regtest\nBlocks: 1\nHeaders: 2\nVerification progress: \
            \u{2592}\u{2592}\u{2592}\u{2592}\u{2592}\u{2592}\u{2592}\u{2592}\u{2592}\u{2592}\u{2592}\u{2591}\u{2591}\u{2591}\u{2591}\u{2591}\u{2591}\u{2591}\u{2591}\u{2591}\u{2591} 51.0000%\n\
            Difficulty: 4.6e-10\n\nNetwork: in 1, out 2, total 3\nVersion: 319900\nTime offset (s): 0\n\
            Proxies: a:1 (ipv4, ipv6), b:2 (onion)\nMin tx relay fee rate (BTC/kvB): 0.00000100\n\n\
            Wallet: \"\"\nKeypool size: 7\nUnlocked until: 9\nBalance: 1.50000000\n\nBalances\n\
            \u{20}        1.5 \"\"\n123456789012 b\n\nWarnings: w";
        assert_eq!(page(&info, Some(&balances), false).unwrap(), expected);
        let colored = page(&info, None, true).unwrap();
        assert!(
            colored.starts_with("\x1b[34mChain: regtest\x1b[0m\n") && colored.ends_with("\x1b[33mWarnings:\x1b[0m w")
        );
    }

    #[test]
    fn when_there_are_colors() {
        let check = |option, is_terminal| has_colors(option, is_terminal).map_err(|error| error.to_string());
        assert_eq!((check(None, true), check(Some("auto"), false)), (Ok(true), Ok(false)));
        assert_eq!((check(Some("always"), false), check(Some("never"), true)), (Ok(true), Ok(false)));
        assert!(check(Some(""), true).is_err());
    }
}
