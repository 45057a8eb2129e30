//! `gettxoutproof` and `verifytxoutproof`, and `generateblock` with given transactions.

use super::{pick, quoted, seeded};
use crate::chain::Pair;
use lydian_primitives::{hex, to_hex};
use serde_json::Value;

#[test]
fn proofs_are_made_and_verified_as_in_core() {
    let Some(pair) = Pair::start("proofs_are_made_and_verified", &[]) else { return };
    let tip = pair.feed_mix();
    let mut random = seeded(21);
    let mut proofs = Vec::new();
    for height in [1, 2, 99, 300, tip - 2, tip - 1, tip] {
        let hash = pair.core.result("getblockhash", &format!("[{height}]"));
        let block = pair.core.result("getblock", &format!("[{hash},1]"));
        let txids: Vec<String> = block["tx"].as_array().unwrap().iter().map(Value::to_string).collect();
        let all: Vec<&str> = txids.iter().map(|txid| &txid[..]).collect();
        let mut choices: Vec<Vec<&str>> = vec![vec![all[0]], vec![all[all.len() - 1]], all.clone()];
        choices.extend((0..12).map(|_| {
            let count = 1 + random.below(4);
            (0..count).map(|_| pick(&mut random, &all)).collect()
        }));
        for chosen in choices {
            let list = chosen.join(",");
            pair.ask("gettxoutproof", &format!("[[{list}],{hash}]"));
            pair.ask("gettxoutproof", &format!("[[{list}]]"));
            let answer: Value =
                serde_json::from_str(&pair.core.call("gettxoutproof", &format!("[[{list}],{hash}]")).body).unwrap();
            proofs.extend(answer["result"].as_str().map(str::to_owned));
        }
    }
    for proof in &proofs {
        pair.ask("verifytxoutproof", &format!("[{}]", quoted(proof)));
    }
    for _ in 0..1_500 {
        let mut bytes = hex(pick(&mut random, &proofs.iter().map(|proof| &proof[..]).collect::<Vec<_>>())).unwrap();
        bytes.truncate(4_000);
        let place = random.below(bytes.len().min(140));
        match random.below(4) {
            0 => bytes.truncate(place),
            1 => bytes[place] = random.byte(),
            2 => bytes[place] ^= 1 << random.below(8),
            // Also before the hashes, where counts are.
            _ => bytes[80 + random.below(5)] = [0, 1, 0xfd, 0xfe, 0xff][random.below(5)],
        }
        pair.ask("verifytxoutproof", &format!("[{}]", quoted(&to_hex(&bytes))));
    }
    let (none, known) = (quoted(&"1".repeat(64)), pair.core.result("getbestblockhash", "[]"));
    for params in [
        "[[]]".to_owned(),
        format!("[[{none}]]"),
        format!("[[{none},{none}]]"),
        format!("[[{none}],{known}]"),
        format!("[[{none}],{none}]"),
        format!("[[{none}],\"00\"]"),
        format!("[[{none}],5]"),
        "[[5]]".to_owned(),
        "[[\"00\"]]".to_owned(),
        "[5]".to_owned(),
    ] {
        pair.ask("gettxoutproof", &params);
    }
    for params in ["[\"\"]", "[\"0\"]", "[\"zz\"]", "[5]", "[\"00\"]"] {
        pair.ask("verifytxoutproof", params);
    }
    // A proof of a block that has left the active chain.
    let tip = pair.core.result("getbestblockhash", "[]");
    pair.ask("invalidateblock", &format!("[{tip}]"));
    for proof in proofs.iter().rev().take(5) {
        pair.ask("verifytxoutproof", &format!("[{}]", quoted(proof)));
    }
    pair.comparison.finish();
}

/// A block with two transactions, one of which is spent in it, so that no output leads to it.
#[test]
fn blocks_are_made_of_given_transactions() {
    let Some(pair) = Pair::start("blocks_are_made_of_given", &[]) else { return };
    for server in [&pair.lydian, &pair.core] {
        server.result("setmocktime", "[1700000000]");
        server.result("generatetodescriptor", "[110,\"raw(51)\"]");
    }
    let first = pair.core.result("getblock", &format!("[{}]", pair.core.result("getblockhash", "[1]")));
    let coinbase = first["tx"][0].as_str().unwrap().to_owned();
    let address = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let create = |inputs: &str, outputs: &str| {
        let params = format!("[[{inputs}],{outputs}]");
        pair.ask("createrawtransaction", &params);
        pair.core.result("createrawtransaction", &params).as_str().unwrap().to_owned()
    };
    let input = |txid: &str| format!("{{\"txid\":\"{txid}\",\"vout\":0}}");
    let parent = create(&input(&coinbase), "[{\"bcrt1pfeesnyr2tx\":49}]");
    let parent_id = pair.core.result("decoderawtransaction", &format!("[\"{parent}\"]"))["txid"].clone();
    let child = create(&input(parent_id.as_str().unwrap()), &format!("[{{\"{address}\":48}}]"));
    let no_inputs = create("", &format!("[{{\"{address}\":48}}]"));
    for list in [
        format!("\"{child}\""),
        format!("\"{child}\",\"{parent}\""),
        format!("{parent_id}"),
        format!("\"{no_inputs}\""),
        "\"00\"".to_owned(),
        "\"\"".to_owned(),
        "5".to_owned(),
        format!("\"{}\"", "x".repeat(64)),
    ] {
        pair.ask("generateblock", &format!("[\"{address}\",[{list}]]"));
        pair.ask("getblockcount", "[]");
    }
    pair.ask("generateblock", &format!("[\"{address}\",[\"{parent}\",\"{child}\"],false]"));
    pair.ask("generateblock", &format!("[\"{address}\",[\"{parent}\",\"{child}\"]]"));
    let hash = pair.core.result("getbestblockhash", "[]");
    for verbosity in 0..3 {
        pair.ask("getrawtransaction", &format!("[{parent_id},{verbosity},{hash}]"));
    }
    // Its only output is spent.
    pair.ask("gettxoutproof", &format!("[[{parent_id}]]"));
    pair.ask("gettxoutproof", &format!("[[{parent_id}],{hash}]"));
    pair.ask("gettxoutproof", &format!("[[\"{coinbase}\"]]"));
    pair.comparison.finish();
}
