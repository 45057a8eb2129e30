//! The search field: what a text stands for.
//!
//! Input: a height, the hash of a block, a txid, an output (`txid:vout`), an address, a script in hexadecimal or a
//! descriptor. Output: what it stands for, as JSON with a `kind`; or a sentence that says what is wrong with the text.
//!
//! A text of digits alone is a height, and 64 hexadecimal digits are a hash: `raw(...)` searches for such a script.

use super::Explorer;
use lydian_consensus::Chain;
use lydian_descriptor::{Address, Descriptors, solve, write_inferred};
use lydian_primitives::{BlockHash, Txid, hex, to_hex};
use lydian_query::{QueryError, ScriptHash};
use serde_json::{Value, json};

/// The longest text: a script of 10,000 bytes.
const TEXT_SIZE_MAX: usize = 20_000;

/// Positions of a ranged descriptor that are shown.
const POSITIONS: u32 = 20;

/// Digits of a height.
const HEIGHT_DIGITS_MAX: usize = 10;

/// Characters of the text that an error quotes.
const QUOTED_MAX: usize = 80;

/// Digits of a hash.
const HASH_DIGITS: usize = 64;

/// What a text stands for, or why nothing.
pub(super) fn search(explorer: &Explorer, text: &str) -> Result<Value, String> {
    let text = text.trim();
    if text.len() > TEXT_SIZE_MAX {
        return Err(format!("The text has {} characters; a search has at most {TEXT_SIZE_MAX}.", text.len()));
    }
    match kind(text) {
        Kind::Nothing => Err(format!("Type {WANTED}.")),
        Kind::Height => height(explorer, text),
        Kind::Hash => hash(explorer, text),
        Kind::Output => output(explorer, text),
        Kind::Descriptor => descriptor(text, explorer.chain),
        Kind::Other => address_or_script(text, explorer.chain),
    }
}

const WANTED: &str = "a height, a block hash, a txid, an address, a script in hexadecimal or a descriptor";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nothing,
    Height,
    Hash,
    Output,
    Descriptor,
    /// An address, or a script in hexadecimal.
    Other,
}

fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn kind(text: &str) -> Kind {
    let is_output = || text.split_once(':').is_some_and(|(txid, _)| is_hash(txid));
    match () {
        () if text.is_empty() => Kind::Nothing,
        () if is_hash(text) => Kind::Hash,
        () if text.bytes().all(|digit| digit.is_ascii_digit()) => Kind::Height,
        () if is_output() => Kind::Output,
        () if text.contains('(') => Kind::Descriptor,
        () => Kind::Other,
    }
}

/// The text as an error names it.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("\"{}...\"", &text[..end]),
        None => format!("\"{text}\""),
    }
}

/// An error of the query, as a sentence.
fn failed(error: &QueryError) -> String {
    let mut words = error.to_string();
    if let Some(first) = words.get(..1).map(str::to_uppercase) {
        words.replace_range(..1, &first);
    }
    words + "."
}

fn height(explorer: &Explorer, text: &str) -> Result<Value, String> {
    let digits = text.trim_start_matches('0');
    if digits.len() > HEIGHT_DIGITS_MAX {
        let count = text.len();
        return Err(format!("{} is not a height, and a hash has 64 hexadecimal digits, not {count}.", quoted(text)));
    }
    let tip = explorer.query.tip().map_err(|error| failed(&error))?.0;
    let height = text.parse::<u64>().unwrap_or(u64::MAX);
    let place = u32::try_from(height).ok().filter(|height| *height <= tip);
    let Some(place) = place else {
        return Err(format!("No block has the height {height}: the tip of the chain is at height {tip}."));
    };
    let place = explorer.query.place(place).map_err(|error| failed(&error))?;
    Ok(json!({ "kind": "block", "hash": place.hash.to_string(), "height": place.height }))
}

/// A block, or else a transaction.
fn hash(explorer: &Explorer, text: &str) -> Result<Value, String> {
    if let Ok(hash) = text.parse::<BlockHash>()
        && let Some(info) = explorer.query.chain().block_info(&hash).map_err(|error| failed(&error))?
    {
        return Ok(json!({ "kind": "block", "hash": hash.to_string(), "height": info.height }));
    }
    transaction(explorer, text)?.ok_or_else(|| {
        let words = format!("No block has the hash {text}, and no transaction that the node finds has this txid.");
        match explorer.has_transactions() {
            true => words,
            false => format!(
                "{words} Without an index it finds transactions of the mempool, and those of a block that you open: \
                 -txindex or -addressindex adds the rest."
            ),
        }
    })
}

fn output(explorer: &Explorer, text: &str) -> Result<Value, String> {
    let (txid, vout) = text.split_once(':').unwrap_or((text, ""));
    let vout: u32 = vout.parse().map_err(|_| format!("{} is not the number of an output.", quoted(vout)))?;
    let found = transaction(explorer, txid)?;
    let mut found = found.ok_or_else(|| format!("No transaction that the node finds has the txid {txid}."))?;
    found["vout"] = json!(vout);
    Ok(found)
}

fn transaction(explorer: &Explorer, text: &str) -> Result<Option<Value>, String> {
    let Ok(txid) = text.parse::<Txid>() else { return Ok(None) };
    let found =
        |block: Option<String>| Some(json!({ "kind": "transaction", "txid": txid.to_string(), "block": block }));
    match explorer.query.place_of(&txid) {
        Ok(place) => Ok(found(place.map(|place| place.hash.to_string()))),
        Err(QueryError::NoTransaction(_) | QueryError::NoIndex) => Ok(explorer.known_by_rpc(text).and_then(found)),
        Err(error) => Err(failed(&error)),
    }
}

fn descriptor(text: &str, chain: Chain) -> Result<Value, String> {
    let parsed = Descriptors::parse(text, chain, false)
        .map_err(|error| format!("{} is not a descriptor of this network: {error}.", quoted(text)))?;
    if parsed.has_secrets() {
        return Err("The descriptor has private keys. Search with public keys only.".to_owned());
    }
    let positions = if parsed.is_range() { POSITIONS } else { 1 };
    let mut scripts = Vec::new();
    for index in 0..parsed.count() {
        for position in 0..positions {
            let outputs = parsed.expand(index, position);
            let outputs = outputs.ok_or("The descriptor has a hardened step, for which a private key is needed.")?;
            for output in outputs {
                let mut script = script(&output.script, chain);
                script["branch"] = json!(index);
                script["position"] = json!(position);
                scripts.push(script);
            }
        }
    }
    Ok(json!({
        "kind": "descriptor",
        "descriptors": parsed.texts(),
        "ranged": parsed.is_range(),
        "scripts": scripts,
    }))
}

/// The name of a network that a user knows.
fn network(chain: Chain) -> &'static str {
    match chain {
        Chain::Main => "mainnet",
        Chain::Test => "testnet3",
        Chain::Testnet4 => "testnet4",
        Chain::Signet => "signet",
        Chain::Regtest => "regtest",
    }
}

fn address_or_script(text: &str, chain: Chain) -> Result<Value, String> {
    let error = match Address::parse(text, chain) {
        Ok(address) => return Ok(found(&address.script(), chain)),
        Err(error) => error,
    };
    let others: Vec<&str> =
        Chain::ALL.into_iter().filter(|other| Address::parse(text, *other).is_ok()).map(network).collect();
    if let Some((last, first)) = others.split_last() {
        let names = if first.is_empty() { (*last).to_owned() } else { format!("{} or {last}", first.join(", ")) };
        return Err(format!("{} is an address of {names}; this node follows {}.", quoted(text), network(chain)));
    }
    if text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return match hex(text) {
            Ok(bytes) => Ok(found(&bytes, chain)),
            Err(_) => {
                Err(format!("A script has two hexadecimal digits for each byte, and this text has {}.", text.len()))
            }
        };
    }
    match text.bytes().all(|letter| letter.is_ascii_alphanumeric()) && text.len() >= ADDRESS_SIZE_MIN {
        true => Err(format!("{} is not an address of {}: {error}.", quoted(text), network(chain))),
        false => Err(format!("{} is nothing that the explorer knows. Type {WANTED}.", quoted(text))),
    }
}

/// A shorter text is not meant to be an address.
const ADDRESS_SIZE_MIN: usize = 14;

fn found(bytes: &[u8], chain: Chain) -> Value {
    let mut script = script(bytes, chain);
    script["kind"] = json!("script");
    script
}

/// A script with its address, its type and its descriptor.
fn script(bytes: &[u8], chain: Chain) -> Value {
    let script_type = solve(bytes);
    let address = Address::of_type(&script_type).map(|address| address.text(chain));
    let mut descriptor = Vec::new();
    write_inferred(bytes, &script_type, address.as_deref(), None, &mut descriptor);
    json!({
        "script": to_hex(bytes),
        "scripthash": to_hex(&ScriptHash::of(bytes).0),
        "address": address,
        "type": script_type.name(),
        "descriptor": String::from_utf8_lossy(&descriptor),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENESIS: &str = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa";

    #[test]
    fn a_text_has_one_kind() {
        let hash = "ab".repeat(32);
        let cases = [
            ("", Kind::Nothing),
            ("0", Kind::Height),
            ("840000", Kind::Height),
            ("51ab", Kind::Other),
            (&hash, Kind::Hash),
            (&"1".repeat(64), Kind::Hash),
            (&format!("{hash}:7"), Kind::Output),
            (&format!("addr({GENESIS})"), Kind::Descriptor),
            (GENESIS, Kind::Other),
        ];
        for (text, expected) in cases {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn an_address_of_another_network_is_named() {
        let of = |text: &str, chain| address_or_script(text, chain).unwrap_err();
        let words = format!("\"{GENESIS}\" is an address of mainnet; this node follows regtest.");
        assert_eq!(of(GENESIS, Chain::Regtest), words);
        let signet = "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx";
        let words = format!("\"{signet}\" is an address of testnet3, testnet4 or signet; this node follows mainnet.");
        assert_eq!(of(signet, Chain::Main), words);
        let regtest = "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn";
        assert!(address_or_script(regtest, Chain::Regtest).is_ok(), "it is one of several networks");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let of = |text: &str| address_or_script(text, Chain::Main).unwrap_err();
        assert_eq!(of("abc"), "A script has two hexadecimal digits for each byte, and this text has 3.");
        let wrong = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb";
        assert!(of(wrong).starts_with(&format!("\"{wrong}\" is not an address of mainnet: ")), "{}", of(wrong));
        assert!(of("-1").ends_with(&format!(" Type {WANTED}.")));
        let long = "x y".repeat(100);
        assert!(of(&long).starts_with(&format!("\"{}...\" is nothing", &long[..QUOTED_MAX])), "{}", of(&long));
    }

    #[test]
    fn a_script_is_described() {
        let found = address_or_script(GENESIS, Chain::Main).unwrap();
        assert_eq!((&found["kind"], &found["type"]), (&json!("script"), &json!("pubkeyhash")));
        assert_eq!(found["script"], "76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac");
        let again = address_or_script(found["script"].as_str().unwrap(), Chain::Main).unwrap();
        assert_eq!(again, found);
        let descriptor = descriptor(found["descriptor"].as_str().unwrap(), Chain::Main).unwrap();
        assert_eq!(descriptor["scripts"][0]["scripthash"], found["scripthash"]);
    }

    #[test]
    fn a_ranged_descriptor_has_many_scripts() {
        let key = "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8";
        let found = descriptor(&format!("wpkh({key}/<0;1>/*)"), Chain::Main).unwrap();
        let scripts = found["scripts"].as_array().unwrap();
        assert_eq!((scripts.len(), &found["ranged"]), (40, &json!(true)));
        assert_eq!((&scripts[39]["branch"], &scripts[39]["position"]), (&json!(1), &json!(19)));
        let words = descriptor("wpkh(5)", Chain::Main).unwrap_err();
        assert!(words.starts_with("\"wpkh(5)\" is not a descriptor of this network: "), "{words}");
        let secret = "wpkh(L4rK1yDtCWekvXuE6oXD9jCYfFNV2cWRpVuPLBcCU2z8TrisoyY1)";
        assert_eq!(
            descriptor(secret, Chain::Main).unwrap_err(),
            "The descriptor has private keys. Search with public keys only."
        );
        let hardened = descriptor(&format!("wpkh({key}/0h/*)"), Chain::Main).unwrap_err();
        assert!(hardened.contains("private key"), "{hardened}");
    }
}
