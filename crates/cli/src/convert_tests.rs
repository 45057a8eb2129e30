//! Tests of the conversion of arguments: single cases, and the whole table against Core's source.

use super::*;
use std::collections::BTreeMap;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn by_position() {
    let check = |method: &str, arguments: &[&str], expected: Result<&str, &str>| {
        let found = positional(method, &words(arguments)).map(|json| json.write()).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{method} {arguments:?}");
    };
    check("getblock", &["00ff", "2"], Ok("[\"00ff\",2]"));
    check("getblock", &["00ff", "true"], Ok("[\"00ff\",true]"));
    check("getblock", &["00ff", "two"], Err("Error parsing JSON: two"));
    check("getblockhash", &["1e3"], Ok("[1e3]"));
    check("getblockhash", &[""], Err("Error parsing JSON: "));
    check("getblockstats", &["00ff", "[\"txs\"]"], Ok("[\"00ff\",[\"txs\"]]"));
    check("getblockstats", &["7"], Ok("[7]"));
    check("help", &["7"], Ok("[\"7\"]"));
    check("nomethod", &["7", "{}"], Ok("[\"7\",\"{}\"]"));
    check("echojson", &["null", "{ \"a\" : 1.50 }"], Ok("[null,{\"a\":1.50}]"));
}

#[test]
fn by_name_and_what_only_looks_like_a_name() {
    let check = |method: &str, arguments: &[&str], expected: Result<&str, &str>| {
        let found = named(method, &words(arguments)).map(|json| json.write()).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{method} {arguments:?}");
    };
    check("getblock", &[], Ok("{}"));
    check("getblock", &["verbosity=1", "blockhash=00"], Ok("{\"verbosity\":1,\"blockhash\":\"00\"}"));
    check("getblock", &["00", "verbose=1"], Ok("{\"verbose\":1,\"args\":[\"00\"]}"));
    check("getblock", &["00", "verbose=x"], Err("Error parsing JSON: x"));
    check("getblockhash", &["height=1", "height=2"], Ok("{\"height\":2}"));
    check("echo", &["a=b=c", "=", "x="], Ok("{\"a\":\"b=c\",\"\":\"\",\"x\":\"\"}"));
    check("echojson", &["[\"a=b\"]", "x=1"], Ok("{\"x\":\"1\",\"args\":[[\"a=b\"]]}"));
    check(
        "createwallet",
        &["my=wallet", "load_on_startup=true"],
        Ok("{\"load_on_startup\":true,\"args\":[\"my=wallet\"]}"),
    );
    check("getblockstats", &["a=b"], Ok("{\"a\":\"b\"}"));
    check("echo", &["args=1", "2"], Ok("{\"args\":\"1\",\"args\":[\"2\"]}"));
}

#[test]
fn the_table_is_in_order_and_names_each_method_once() {
    for pair in METHODS.windows(2) {
        assert!(pair[0].0 < pair[1].0, "{} {}", pair[0].0, pair[1].0);
    }
}

/// The table has every entry of Core's own client, and no other.
#[test]
#[allow(clippy::disallowed_methods, reason = "reads Core's source, which is not a file of a node")]
fn the_table_is_cores() {
    let Some(built) = lydian_oracle::or_skip("the_table_is_cores", lydian_oracle::build::locate()) else { return };
    let source = std::fs::read_to_string(built.source.join("src/rpc/client.cpp")).unwrap();
    let (_, rest) = source.split_once("vRPCConvertParams[] =").unwrap();
    let (table, _) = rest.split_once("};").unwrap();
    let mut theirs: BTreeMap<&str, Vec<(usize, &str, Form)>> = BTreeMap::new();
    for line in table.lines().filter(|line| line.trim_start().starts_with("{ \"")) {
        let quoted: Vec<&str> = line.split('"').collect();
        let position = quoted[2].trim_matches([',', ' ']).parse().unwrap();
        let form = match quoted[4] {
            rest if rest.contains("JSON_OR_STRING") => Form::Either,
            rest if rest.contains("STRING") => Form::Text,
            rest => {
                assert!(!rest.contains("ParamFormat"), "{line}");
                Form::Json
            }
        };
        theirs.entry(quoted[1]).or_default().push((position, quoted[3], form));
    }
    let ours: BTreeMap<&str, Vec<(usize, &str, Form)>> = METHODS
        .iter()
        .map(|(method, params)| {
            (*method, params.iter().map(|param| (param.position, param.name, param.form)).collect())
        })
        .collect();
    assert!(theirs.len() > 100, "{}", theirs.len());
    assert_eq!(ours, theirs);
}
