//! Every method of the table, called on both programs: answers, and what is refused.

use crate::abuse::{active, until};
use crate::chain::Pair;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Parameters that every method is called with, whatever its arguments.
const ODD: &[&str] = &[
    "[]",
    "[null]",
    "[1]",
    "[-1]",
    "[1.5]",
    "[true]",
    "[\"zz\"]",
    "[\"00\"]",
    "[[]]",
    "[{}]",
    "[[\"a\"],1]",
    "[\"0000000000000000000000000000000000000000000000000000000000000000\"]",
    "[\"0000000000000000000000000000000000000000000000000000000000000000\",\"x\"]",
    "[1,2,3,4,5,6,7]",
    "{\"nonsense\":1}",
    "{\"args\":[1],\"nonsense\":1}",
];

/// Methods for which odd parameters have an effect or take for ever.
const NOT_ODDLY: &[&str] = &["stop", "waitfornewblock", "waitforblock", "waitforblockheight", "help", "logging"];

#[test]
fn blocks_of_every_kind_of_script() {
    let Some(pair) = Pair::start("blocks_of_every_kind_of_script", &[]) else { return };
    let tip = pair.feed_mix();
    for height in [0, 1, 100, 300, tip - 2, tip - 1, tip] {
        let hash = pair.core.result("getblockhash", &format!("[{height}]"));
        pair.ask("getblockhash", &format!("[{height}]"));
        for params in ["", ",true", ",false"] {
            pair.ask("getblockheader", &format!("[{hash}{params}]"));
        }
        for verbosity in ["", ",0", ",1", ",2", ",3", ",4", ",-1", ",true", ",false", ",null"] {
            pair.ask("getblock", &format!("[{hash}{verbosity}]"));
        }
        pair.ask("getblockstats", &format!("[{hash}]"));
        pair.ask("getblockstats", &format!("[{height}]"));
        pair.ask("getdeploymentinfo", &format!("[{hash}]"));
        pair.ask("getchaintxstats", &format!("[{},{hash}]", (height / 2).max(1)));
    }
    let last = pair.core.result("getblock", &format!("[{},1]", pair.core.result("getblockhash", &format!("[{tip}]"))));
    for txid in last["tx"].as_array().unwrap().iter().take(60) {
        for vout in 0..3 {
            pair.ask("gettxout", &format!("[{txid},{vout}]"));
        }
    }
    for hash_type in ["none", "muhash", "hash_serialized_3"] {
        pair.ask("gettxoutsetinfo", &format!("[\"{hash_type}\"]"));
    }
    general(&pair);
    for names in ["[\"minfee\",\"avgfee\"]", "[\"txs\",\"nothing\"]", "[1]", "[]", "5"] {
        pair.ask("getblockstats", &format!("[{tip},{names}]"));
    }
    for (level, blocks) in [(0, 3), (1, 3), (2, 3), (3, 20), (4, 5), (3, 0)] {
        pair.ask("verifychain", &format!("[{level},{blocks}]"));
    }
    pair.comparison.check_all_used();
    pair.comparison.finish();
}

/// Calls for any chain.
fn general(pair: &Pair) {
    let tip = pair.core.result("getbestblockhash", "[]");
    for (method, params) in [
        ("getblockcount", "[]"),
        ("getbestblockhash", "[]"),
        ("getblockchaininfo", "[]"),
        ("getchainstates", "[]"),
        ("getchaintips", "[]"),
        ("getdifficulty", "[]"),
        ("getdeploymentinfo", "[]"),
        ("getchaintxstats", "[]"),
        ("getchaintxstats", "[0]"),
        ("getchaintxstats", "[10]"),
        ("getindexinfo", "[]"),
        ("getmempoolinfo", "[]"),
        ("getrawmempool", "[]"),
        ("getrawmempool", "[true]"),
        ("getrawmempool", "[false,true]"),
        ("getrawmempool", "[true,true]"),
        ("getmemoryinfo", "[]"),
        ("getmemoryinfo", "[\"other\"]"),
        ("getrpcinfo", "[]"),
        ("logging", "[]"),
        ("logging", "[[\"rpc\",\"net\"],[\"net\"]]"),
        ("logging", "[[],[\"rpc\"]]"),
        ("logging", "[[\"nonsense\"]]"),
        ("logging", "[[1]]"),
        ("uptime", "[]"),
        ("syncwithvalidationinterfacequeue", "[]"),
        ("waitfornewblock", "[10]"),
        ("waitfornewblock", "[-1]"),
        ("waitforblockheight", "[1,10]"),
        ("waitforblockheight", "[1000000,10]"),
        ("mockscheduler", "[10]"),
        ("mockscheduler", "[0]"),
        ("setmocktime", "[-1]"),
        ("setmocktime", "[4294967296]"),
        ("pruneblockchain", "[1]"),
        ("getinfo", "[]"),
        ("submitblock", "[\"\"]"),
        ("submitblock", "[\"00\"]"),
        ("submitheader", "[\"00\"]"),
        ("gettxoutsetinfo", "[\"none\",1]"),
        ("getblockheader", "{\"verbose\":false,\"blockhash\":\"00\"}"),
    ] {
        pair.ask(method, params);
    }
    pair.ask("waitforblock", &format!("[{tip},10]"));
    pair.ask("waitforblock", &format!("[\"{}\",10]", "0".repeat(64)));
    pair.ask("waitfornewblock", &format!("[10,\"{}\"]", "1".repeat(64)));
    let header = pair.core.result("getblockheader", &format!("[{tip},false]"));
    pair.ask("submitheader", &format!("[{header}]"));
    pair.ask("submitheader", &format!("[\"{}\"]", "11".repeat(80)));
    let block = pair.core.result("getblock", &format!("[{tip},0]"));
    pair.ask("submitblock", &format!("[{block}]"));
    pair.ask("submitblock", &format!("[\"{}00\"]", block.as_str().unwrap()));
}

/// Arguments of the wrong count, type, range and form, for every method we have.
#[test]
fn odd_questions() {
    let Some(pair) = Pair::start("odd_questions", &[]) else { return };
    let conversions = pair.lydian.result("help", "[\"dump_all_command_conversions\"]");
    let cores = pair.core.result("help", "[\"dump_all_command_conversions\"]");
    // Every argument of ours is one of Core's, at its position and of its type.
    for row in conversions.as_array().unwrap() {
        let is_of_both = is_of_both(row[0].as_str().unwrap());
        assert!(!is_of_both || cores.as_array().unwrap().contains(row), "{row}");
    }
    let methods = methods(&pair);
    for method in methods.iter().filter(|method| !NOT_ODDLY.contains(&&method[..])) {
        for params in ODD {
            // If the count is wrong, the message is our help, which is not Core's.
            let (ours, cores) = (pair.lydian.call(method, params), pair.core.call(method, params));
            let is_help = |body: &str| body.contains(&format!("\"message\":\"{method}"));
            match (is_help(&ours.body), is_help(&cores.body)) {
                (true, true) => assert_eq!(ours.status, cores.status),
                (false, false) => pair.ask(method, params),
                _ => panic!("{method} {params}: {} {}", ours.body, cores.body),
            }
        }
    }
    pair.comparison.finish();
}

/// The judge is built without ZeroMQ, and knows no wallets of Electrum.
fn is_of_both(method: &str) -> bool {
    method != "getzmqnotifications" && !method.contains("electrum")
}

/// Methods that both have.
fn methods(pair: &Pair) -> Vec<String> {
    let help = pair.lydian.result("help", "[]");
    let listed = help.as_str().unwrap().lines().filter(|line| !line.is_empty() && !line.starts_with("=="));
    let mut names: Vec<String> = listed.map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    let hidden = [
        "invalidateblock",
        "reconsiderblock",
        "setmocktime",
        "mockscheduler",
        "addconnection",
        "addpeeraddress",
        "getrawaddrman",
        "echo",
        "echojson",
        "echoipc",
        "generate",
        "sendmsgtopeer",
    ];
    names.extend(hidden.map(str::to_owned));
    names.retain(|name| is_of_both(name));
    assert!(names.len() > 30, "{names:?}");
    names
}

/// The first line of the help of each method is Core's: programs read the arguments there.
#[test]
fn help_begins_as_cores() {
    let Some(pair) = Pair::start("help_begins_as_cores", &[]) else { return };
    for method in methods(&pair) {
        let first = |server: &crate::server::Server| {
            let help = server.result("help", &format!("[\"{method}\"]"));
            help.as_str().unwrap().lines().next().unwrap().to_owned()
        };
        assert_eq!(first(&pair.lydian), first(&pair.core));
    }
    assert_eq!(pair.lydian.result("help", "[\"nonsense\"]"), pair.core.result("help", "[\"nonsense\"]"));
}

/// Core also compares its answers with its help, and warnings are a text if that is requested.
#[test]
fn help_is_checked_and_warnings_are_a_text() {
    let options = ["-rpcdoccheck=1", "-deprecatedrpc=warnings"];
    let Some(pair) = Pair::start("help_is_checked_and_warnings_are_a_text", &options) else { return };
    general(&pair);
    let genesis = pair.core.result("getblockhash", "[0]");
    for method in ["getblock", "getblockheader", "getblockstats", "getdeploymentinfo"] {
        pair.ask(method, &format!("[{genesis}]"));
    }
    for method in ["getblockchaininfo", "getmininginfo", "getnetworkinfo"] {
        for server in [&pair.lydian, &pair.core] {
            assert!(server.result(method, "[]")["warnings"].is_string(), "{method}");
        }
    }
    pair.ask("echo", "[1,null,{\"a\":[\"\\u0001\"]},1e400]");
    pair.ask("echojson", "{\"arg1\":true}");
    for server in [&pair.lydian, &pair.core] {
        let answer = server.call("echo", "[1,2,3,4,5,6,7,8,9,\"trigger_internal_bug\"]");
        let words = "\"code\":-1,\"message\":\"Internal bug detected: request.params[9].get_str() != \\\"trigger_internal_bug\\\"";
        assert!(answer.body.contains(words), "{}", answer.body);
    }
    pair.comparison.finish();
}

/// Competing branches, blocks that break rules, and the operator's decisions about them.
#[test]
fn branches_and_verdicts() {
    let Some(pair) = Pair::start("branches_and_verdicts", &[]) else { return };
    pair.feed_branches();
    pair.ask("getchaintips", "[]");
    general(&pair);
    let tips = pair.core.result("getchaintips", "[]");
    for tip in tips.as_array().unwrap() {
        let hash = &tip["hash"];
        for verbosity in 0..4 {
            pair.ask("getblock", &format!("[{hash},{verbosity}]"));
        }
        pair.ask("getblockheader", &format!("[{hash}]"));
        pair.ask("getblockstats", &format!("[{hash}]"));
        pair.ask("getdeploymentinfo", &format!("[{hash}]"));
        pair.ask("getchaintxstats", &format!("[5,{hash}]"));
    }
    // Every valid branch: made the tip by naming it, disconnected, and reconnected.
    let height = pair.core.result("getblockcount", "[]").as_u64().unwrap();
    let at = |height: u64| pair.core.result("getblockhash", &format!("[{height}]"));
    let (low, high) = (at(height - 3), at(height));
    for (method, hash) in [
        ("preciousblock", &high),
        ("invalidateblock", &low),
        ("preciousblock", &low),
        ("reconsiderblock", &high),
        ("invalidateblock", &high),
        ("reconsiderblock", &low),
    ] {
        pair.ask(method, &format!("[{hash}]"));
        for question in ["getchaintips", "getblockchaininfo", "getblockcount", "getbestblockhash"] {
            pair.ask(question, "[]");
        }
        pair.ask("getblockheader", &format!("[{high}]"));
        pair.ask("gettxoutsetinfo", "[\"muhash\"]");
    }
    for tip in tips.as_array().unwrap() {
        for method in ["preciousblock", "invalidateblock", "reconsiderblock"] {
            pair.ask(method, &format!("[{}]", tip["hash"]));
            pair.ask("getchaintips", "[]");
            pair.ask("getbestblockhash", "[]");
        }
    }
    for method in ["preciousblock", "invalidateblock", "reconsiderblock"] {
        pair.ask(method, &format!("[{}]", at(0)));
        pair.ask("getbestblockhash", "[]");
    }
    pair.comparison.finish();
}

/// Waiting calls end when a block arrives, and when the node stops.
#[test]
fn waits_end_with_a_block_or_the_node() {
    let Some(mut pair) = Pair::start("waits_end_with_a_block_or_the_node", &[]) else { return };
    let made = pair.core.result("generatetodescriptor", "[3,\"raw(51)\"]");
    let hashes: Vec<&Value> = made.as_array().unwrap().iter().collect();
    let lydian = &pair.lydian;
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| lydian.result("waitforblockheight", "[2]"));
        let other = scope.spawn(|| lydian.result("waitforblock", &format!("[{}]", hashes[2])));
        let newer = scope.spawn(|| lydian.result("waitfornewblock", "[0]"));
        until("all wait", || active(lydian) == 3);
        for hash in &hashes {
            let block = pair.core.result("getblock", &format!("[{hash},0]"));
            assert_eq!(lydian.result("submitblock", &format!("[{block}]")), Value::Null);
        }
        assert_eq!(other.join().unwrap()["height"], 3);
        assert!(newer.join().unwrap()["height"].as_u64().unwrap() >= 1);
        waiting.join().unwrap()
    });
    assert!(answer["height"].as_u64().unwrap() >= 2);
    let code = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| pair.lydian.result("waitfornewblock", "[]"));
        until("it waits", || active(&pair.lydian) == 1);
        assert_eq!(pair.lydian.result("stop", "[]"), "Lydian stopping");
        waiting.join().unwrap()
    });
    assert_eq!(code["height"], 3);
    assert_eq!(pair.lydian.wait(), Some(0));
    assert!(!pair.lydian.cookie().exists(), "the cookie goes with the node");
}

/// A block submitted by many clients at once is accepted once.
///
/// checklist: 90
#[test]
fn a_block_comes_from_all_sides() {
    let Some(pair) = Pair::start("a_block_comes_from_all_sides", &[]) else { return };
    let made = pair.core.result("generatetodescriptor", "[5,\"raw(51)\"]");
    for hash in made.as_array().unwrap() {
        let block = pair.core.result("getblock", &format!("[{hash},0]"));
        let answers: Vec<Value> = std::thread::scope(|scope| {
            let calls: Vec<_> =
                (0..8).map(|_| scope.spawn(|| pair.lydian.result("submitblock", &format!("[{block}]")))).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        assert_eq!(answers.iter().filter(|answer| answer.is_null()).count(), 1, "{answers:?}");
        assert!(answers.iter().all(|answer| answer.is_null() || answer == "duplicate"), "{answers:?}");
    }
    pair.ask("getbestblockhash", "[]");
    pair.comparison.finish();
}

/// What may be pruned, and the errors if nothing may be.
#[test]
fn pruning_on_request() {
    let Some(pair) = Pair::start("pruning_on_request", &["-prune=1"]) else { return };
    pair.ask("setmocktime", "[1700000000]");
    for params in ["[1]", "[-1]", "[1000000001]", "[\"x\"]"] {
        pair.ask("pruneblockchain", params);
    }
    pair.ask("generatetodescriptor", "[1010,\"raw(51)\"]");
    // Both have one file, which they write to: nothing is deleted.
    for params in ["[5]", "[1010]", "[1011]", "[2000000000]", "[1700000000]"] {
        pair.ask("pruneblockchain", params);
    }
    pair.ask("getblockchaininfo", "[]");
    pair.comparison.finish();
}

/// Core's own client: results, exit codes, messages.
///
/// checklist: 99
#[test]
fn bitcoin_cli_drives_lydian() {
    let Some(mut pair) = Pair::start("bitcoin_cli_drives_lydian", &[]) else { return };
    let mode = fs::metadata(pair.lydian.cookie()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let cli = pair.built.bitcoin_cli.clone();
    let genesis = pair.core.result("getblockhash", "[0]");
    let genesis = genesis.as_str().unwrap();
    for arguments in [
        &["getblockcount"][..],
        &["getblockhash", "0"],
        &["getblockheader", genesis],
        &["getblock", genesis, "2"],
        &["-named", "getblock", &format!("blockhash={genesis}"), "verbosity=0"],
        &["getblockhash", "7"],
        &["getblockhash"],
        &["getblockhash", "x"],
        &["nonsense"],
        &["getblock", "00"],
        &["getchaintips"],
        &["-rpcuser=x", "-rpcpassword=y", "uptime"],
        &["-rpcwait", "getdifficulty"],
    ] {
        let (ours, cores) = (pair.lydian.cli(&cli, arguments), pair.core.cli(&cli, arguments));
        assert_eq!(ours.status.code(), cores.status.code(), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&ours.stdout), String::from_utf8_lossy(&cores.stdout), "{arguments:?}");
        let (ours, cores) = (String::from_utf8_lossy(&ours.stderr), String::from_utf8_lossy(&cores.stderr));
        let head = |text: &str, server: &crate::server::Server| {
            let text = text.replace(server.folder.to_str().unwrap(), "FOLDER");
            text.lines().take(3).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(head(&ours, &pair.lydian), head(&cores, &pair.core), "{arguments:?}");
    }
    assert!(pair.lydian.cli(&cli, &["stop"]).status.success());
    assert_eq!(pair.lydian.wait(), Some(0));
}

/// Blocks that we generate equal Core's to the byte, under the same clock.
#[test]
fn blocks_that_are_made() {
    let Some(pair) = Pair::start("blocks_that_are_made", &[]) else { return };
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    // BIP-0032's first vector, with the prefix of a test chain.
    let paying = "[01020304/5h]tpubD6NzVbkrYhZ4XgiXtGrdW5XDAPFCL9h7we1vwNCpn8tGbBcgfVYjXyhWo4E1xkh56hjod1RhGjxbaTLV3X4FyWuejifB9jusQ46QzG87VKp/7/*";
    for call in [("getmininginfo", "[]"), ("getnetworkhashps", "[]")] {
        pair.ask(call.0, call.1);
    }
    for (round, (method, params)) in [
        ("generatetodescriptor", "[20,\"raw(51)\"]".to_owned()),
        ("generatetodescriptor", format!("[2,\"combo({key})\"]")),
        ("generatetodescriptor", format!("[1,\"sh(wsh(multi(1,{key})))\",1000]")),
        ("generatetoaddress", "[130,\"mfWxJ45yp2SFn7UciZyNpvDKrzbhyfKrY8\"]".to_owned()),
        ("generatetoaddress", "[1,\"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080\"]".to_owned()),
        ("generatetodescriptor", format!("[1,\"wpkh({})\"]", paying.replace('*', "3"))),
        ("generatetodescriptor", format!("[1,\"sh(wsh(sortedmulti(1,{paying},{key})))\"]").replace('*', "2")),
        ("generatetodescriptor", format!("[1,\"tr({paying},{{pk({key}),pk({paying})}})\"]").replace('*', "1")),
        ("generateblock", "[\"raw(52)\",[]]".to_owned()),
        ("generateblock", "[\"raw(53)\",[],false]".to_owned()),
        ("generatetodescriptor", "[150,\"raw(51)\",5000]".to_owned()),
    ]
    .into_iter()
    .enumerate()
    {
        let time = 1_700_000_000 + 1_000 * round;
        pair.ask("setmocktime", &format!("[{time}]"));
        pair.ask(method, &params);
        let height = pair.core.result("getblockcount", "[]").as_u64().unwrap();
        for height in [height - 1, height] {
            let hash = pair.core.result("getblockhash", &format!("[{height}]"));
            pair.ask("getblock", &format!("[{hash},2]"));
            pair.ask("getdeploymentinfo", &format!("[{hash}]"));
        }
        for params in ["[]", "[10]", "[-1]", "[5,10]", "[0]", "[-2]", "[1,100000]", "[1,-2]"] {
            pair.ask("getnetworkhashps", params);
        }
        pair.ask("getblockcount", "[]");
    }
    let spend = format!("0200000001{}0000000000ffffffff0100f2052a0100000001510000000000", "11".repeat(32));
    for (method, params) in [
        ("generatetoaddress", "[1,\"x\"]".to_owned()),
        ("generatetoaddress", "[-1,\"mfWxJ45yp2SFn7UciZyNpvDKrzbhyfKrY8\"]".to_owned()),
        ("generatetoaddress", "[1,\"mfWxJ45yp2SFn7UciZyNpvDKrzbhyfKrY8\",0]".to_owned()),
        ("generatetodescriptor", "[1,\"x\"]".to_owned()),
        ("generatetodescriptor", "[1,\"raw(51)#xxxxxxxx\"]".to_owned()),
        ("generatetodescriptor", "[1,\"pk(00)\"]".to_owned()),
        ("generatetodescriptor", format!("[1,\"wpkh({paying})\"]")),
        ("generatetodescriptor", format!("[1,\"wpkh({})\"]", paying.replace("/*", "/<0;1>"))),
        ("generatetodescriptor", format!("[1,\"wpkh({})\"]", paying.replace("/*", "/0h"))),
        ("generateblock", format!("[\"wpkh({paying})\",[]]")),
        ("generateblock", "[\"x\",[]]".to_owned()),
        ("generateblock", format!("[\"raw(51)\",[\"{}\"]]", "00".repeat(32))),
        ("generateblock", "[\"raw(51)\",[\"00\"]]".to_owned()),
        ("generateblock", format!("[\"raw(51)\",[\"{spend}\"]]")),
    ] {
        pair.ask(method, &params);
    }
    for objects in [
        "[\"raw(51)\"]".to_owned(),
        format!("[\"combo({key})\",{{\"desc\":\"addr(mfWxJ45yp2SFn7UciZyNpvDKrzbhyfKrY8)\"}}]"),
        format!("[\"wpkh({paying})\",{{\"desc\":\"sh(wsh(sortedmulti(1,{paying},{key})))\",\"range\":[0,2]}}]"),
        format!("[\"tr({paying},{{pk({key}),pk({paying})}})\",\"combo({paying})\"]"),
        format!("[\"wpkh({})\"]", paying.replace("/*", "/*h")),
        "[]".to_owned(),
        "[5]".to_owned(),
        "[{}]".to_owned(),
        "[\"x\"]".to_owned(),
    ] {
        pair.ask("scantxoutset", &format!("[\"start\",{objects}]"));
    }
    for params in ["[\"start\"]", "[\"status\"]", "[\"abort\"]", "[\"x\"]"] {
        pair.ask("scantxoutset", params);
    }
    pair.comparison.finish();
}

#[test]
fn addresses_and_scripts() {
    let Some(pair) = Pair::start("addresses_and_scripts", &[]) else { return };
    let good = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let mut addresses: Vec<String> = [
        "",
        "x",
        good,
        "bcrt1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KYGT080",
        "BCRT1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KYGT080",
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        "mfWxJ45yp2SFn7UciZyNpvDKrzbhyfKrY8",
        "2N2JD6wb56AfK4tfmM6PwdVmoYk2dCKf4Br",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "mfWxJ45yp2SFn7UciZyNpvDKrzbhyfKrY9",
        "mfWxJ45yp2SFn7UciZyNpvDKrzbhyfKrY",
        "0OIl",
        "bcrt1",
        "bcrt1q",
        "bcrtqqqqqqqqqqqqq",
        "bcrt1pfeesnyr2tx",
        "bcrt1sw50qgdz25j",
    ]
    .map(str::to_owned)
    .to_vec();
    // One wrong letter at every position, and some cases of two.
    for place in 5..good.len() {
        let mut bytes = good.as_bytes().to_vec();
        bytes[place] = if bytes[place] == b'z' { b'r' } else { b'z' };
        addresses.push(String::from_utf8(bytes.clone()).unwrap());
        bytes[(place + 7) % (good.len() - 5) + 5] = b'l';
        addresses.push(String::from_utf8(bytes).unwrap());
    }
    for address in addresses {
        pair.ask("validateaddress", &format!("[\"{address}\"]"));
    }
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let hash = "22".repeat(20);
    let key_upper = key.to_ascii_uppercase();
    for descriptor in [
        "raw(51)".to_owned(),
        "raw(51)#8lvh9jxk".to_owned(),
        "raw(51)#8lvh9jxx".to_owned(),
        "raw(51)#8lvh9jx".to_owned(),
        "raw(51)##".to_owned(),
        "raw(AB)".to_owned(),
        format!("pk({key_upper})"),
        format!("pkh({key})"),
        format!("wpkh({key})"),
        format!("combo({key})"),
        format!("sh(wpkh({key}))"),
        format!("wsh(pkh({key}))"),
        format!("sh(wsh(multi(1,{key},{key})))"),
        format!("sortedmulti(1,{key})"),
        format!("multi(2,{key})"),
        format!("multi(1,{key},{key},{key},{key})"),
        format!("rawtr({key})"),
        format!("rawtr({})", &key[2..]),
        "addr(bcrt1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KYGT080)".to_owned(),
        format!("addr({good})"),
        "addr(x)".to_owned(),
        "nonsense".to_owned(),
        "\u{00fc}".to_owned(),
        "pk()".to_owned(),
        "pk(00)".to_owned(),
        format!("sh(sh(pk({key})))"),
        format!("wsh(wpkh({key}))"),
    ] {
        pair.ask("getdescriptorinfo", &format!("[\"{descriptor}\"]"));
        pair.ask("deriveaddresses", &format!("[\"{descriptor}\"]"));
        let info = pair.core.call("getdescriptorinfo", &format!("[\"{descriptor}\"]"));
        let info: Value = serde_json::from_str(&info.body).unwrap();
        if let Some(whole) = info["result"]["descriptor"].as_str() {
            for range in
                ["", ",null", ",5", ",[1,2]", ",[2,1]", ",-1", ",[0,2147483648]", ",[0,1000000]", ",\"x\"", ",[1]"]
            {
                pair.ask("deriveaddresses", &format!("[\"{whole}\"{range}]"));
            }
        }
    }
    for script in [
        String::new(),
        "zz".to_owned(),
        "51".to_owned(),
        format!("21{key}ac"),
        format!("76a914{hash}88ac"),
        format!("a914{hash}87"),
        format!("0014{hash}"),
        format!("0020{}", "22".repeat(32)),
        format!("5120{}", &key[2..]),
        "51024e73".to_owned(),
        "6a0411223344".to_owned(),
        "4c".to_owned(),
        "ba".to_owned(),
        "50".to_owned(),
        "ff".to_owned(),
    ] {
        pair.ask("decodescript", &format!("[\"{script}\"]"));
    }
    pair.comparison.finish();
}
