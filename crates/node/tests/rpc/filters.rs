//! `-blockfilterindex`: `getblockfilter`, `scanblocks` and `getdescriptoractivity` are Core's, across reorganisations
//! and restarts, and with an index that is built later.

use crate::chain::Pair;
use crate::peers::Net;
use crate::rest::{COUNTS, ask, get};
use crate::server::Server;
use crate::strange::Strange;
use lydian_primitives::BlockHash;
use lydian_wire::{Command, FilterRange, GetCFCheckpt, Message};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};

const OPTION: &str = "-blockfilterindex=basic";
const REST: &str = "-rest";

/// The blocks of the chain, from Core.
fn blocks(pair: &Pair) -> Vec<Value> {
    let tip = pair.core.result("getblockcount", "[]").as_u64().unwrap();
    let hash = |height: u64| pair.core.result("getblockhash", &format!("[{height}]"));
    (0..=tip).map(|height| pair.core.result("getblock", &format!("[{},2]", hash(height)))).collect()
}

fn ask_everything(pair: &Pair) {
    let blocks = blocks(pair);
    let mut scripts: Vec<String> = Vec::new();
    // The first waits until the index is there.
    for block in blocks.iter().rev() {
        let hash = &block["hash"];
        pair.ask("getblockfilter", &format!("[{hash}]"));
        let outputs = block["tx"].as_array().unwrap().iter().flat_map(|tx| tx["vout"].as_array().unwrap());
        for output in outputs.take(3) {
            let script = format!("\"raw({})\"", output["scriptPubKey"]["hex"].as_str().unwrap());
            if script.len() > 7 && !scripts.contains(&script) {
                scripts.push(script);
            }
        }
    }
    pair.ask("getindexinfo", "[]");
    let tip = blocks.len() - 1;
    let all: Vec<String> = blocks.iter().map(|block| block["hash"].to_string()).collect();
    let mut found = 0;
    for (number, script) in scripts.iter().step_by(1 + scripts.len() / 40).enumerate() {
        pair.ask("scanblocks", &format!("[\"start\",[{script}]]"));
        let range = format!("[\"start\",[{script}],{},{}", number % tip, tip - number % 5);
        pair.ask("scanblocks", &format!("{range},\"basic\",{{\"filter_false_positives\":true}}]"));
        let relevant = pair.core.result("scanblocks", &format!("[\"start\",[{script}]]"));
        let relevant = relevant["relevant_blocks"].as_array().unwrap().clone();
        found += relevant.len();
        let relevant = Value::from(relevant.into_iter().take(20).collect::<Vec<_>>());
        pair.ask("getdescriptoractivity", &format!("[{relevant},[{script}],false]"));
        pair.ask("getdescriptoractivity", &format!("[{relevant},[{script}]]"));
    }
    assert!(found > 20, "{found} blocks");
    let several = scripts.iter().take(5).cloned().collect::<Vec<_>>().join(",");
    pair.ask("scanblocks", &format!("[\"start\",[{several}]]"));
    pair.ask("getdescriptoractivity", &format!("[[{}],[{several}]]", all[all.len() - 10..].join(",")));
}

/// Filters and their headers over REST (`-rest`) are Core's: of all blocks, in every format, and for wrong requests.
fn ask_rest(pair: &Pair) {
    let count = pair.core.result("getblockcount", "[]").as_u64().unwrap();
    let mut hashes: Vec<Value> = pair.core.result("getchaintips", "[]").as_array().unwrap().clone();
    hashes.iter_mut().for_each(|tip| *tip = tip["hash"].take());
    hashes.extend((0..=count).map(|height| pair.core.result("getblockhash", &format!("[{height}]"))));
    let hashes: Vec<&str> = hashes.iter().map(|hash| hash.as_str().unwrap()).collect();
    let mut paths: Vec<String> = Vec::new();
    for (number, hash) in hashes.iter().enumerate() {
        let format = ["json", "hex", "bin"][number % 3];
        paths.push(format!("/rest/blockfilter/basic/{hash}.{format}"));
        paths.push(format!("/rest/blockfilterheaders/basic/{hash}.{format}?count={}", 1 + number % 30));
        paths.push(format!("/rest/blockfilterheaders/basic/{}/{hash}.{format}", 1 + number % 7));
    }
    let (hash, tip, unknown) = (hashes[hashes.len() / 2], hashes[hashes.len() - 1], "11".repeat(32));
    for format in ["json", "hex", "bin"] {
        paths.push(format!("/rest/blockfilterheaders/basic/{hash}.{format}"));
        paths.push(format!("/rest/blockfilterheaders/basic/{tip}.{format}?other=1&count=2"));
        paths.push(format!("/rest/blockfilter/basic/{unknown}.{format}"));
        paths.push(format!("/rest/blockfilterheaders/basic/{unknown}.{format}"));
    }
    for count in COUNTS {
        paths.push(format!("/rest/blockfilterheaders/basic/{hash}.json?count={count}"));
        paths.push(format!("/rest/blockfilterheaders/basic/{count}/{hash}.json"));
    }
    for kind in ["blockfilter", "blockfilterheaders"] {
        for rest in [
            "",
            "basic",
            "basic/",
            "basic/xx.json",
            "basic/1/2/3.json",
            "other/HASH.json",
            "basic/HASH",
            "basic/HASH.",
            "basic/HASH.xml",
            "basic/HASH.json.hex",
            "basic/HASH.JSON",
            "basic/HASH.hex?",
            "basic/HASH.json?x?y",
            "/HASH.json",
        ] {
            paths.push(format!("/rest/{kind}/{}", rest.replace("HASH", hash)));
        }
        paths.push(format!("/rest/{kind}"));
    }
    let served = paths.iter().filter(|path| ask(pair, path) == 200).count();
    assert!(served > 3 * usize::try_from(count).unwrap(), "{served}");
}

#[test]
fn filters_of_the_chain_are_cores() {
    let Some(pair) = Pair::start("filters_of_the_chain_are_cores", &[OPTION]) else { return };
    pair.feed_mix();
    ask_everything(&pair);
    pair.comparison.finish();
}

/// While two branches replace each other, an answer is about one of them. The last block of the list was once looked up
/// after the first, so that the filter headers of the other branch were returned.
#[test]
fn filter_headers_over_rest_are_of_one_chain() {
    let server = Server::lydian("filter_headers_over_rest_are_of_one_chain", &[OPTION, REST]);
    let mine = |count: usize, script: &str| {
        server.result("generatetodescriptor", &format!("[{count},\"raw({script})\"]"))[0].as_str().unwrap().to_owned()
    };
    // Without a list, the index did not have the last block yet.
    let list = |first: &str| {
        let answer = get(&server, &format!("/rest/blockfilterheaders/basic/{first}.json?count=10"));
        (answer.status != 404).then(|| serde_json::from_slice::<Vec<String>>(&answer.body).unwrap())
    };
    mine(3, "51");
    let short = mine(3, "52");
    let of_short = list(&short).unwrap();
    server.result("invalidateblock", &format!("[\"{short}\"]"));
    let long = mine(4, "53");
    let of_long = list(&long).unwrap();
    server.result("reconsiderblock", &format!("[\"{short}\"]"));
    assert_eq!((of_short.len(), of_long.len()), (3, 4));
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut seen = [0; 2];
            while !is_over.load(Ordering::Relaxed) {
                for (place, (first, whole)) in [(&short, &of_short), (&long, &of_long)].into_iter().enumerate() {
                    let found = list(first).unwrap_or_default();
                    assert!(whole.starts_with(&found), "{found:?} of {whole:?}");
                    seen[place] += found.len();
                }
            }
            seen
        });
        for _ in 0..30 {
            server.result("invalidateblock", &format!("[\"{long}\"]"));
            server.result("reconsiderblock", &format!("[\"{long}\"]"));
        }
        is_over.store(true, Ordering::Relaxed);
        asking.join().unwrap()
    });
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn filters_follow_reorganisations() {
    let Some(mut pair) = Pair::start("filters_follow_reorganisations", &[OPTION, REST]) else { return };
    pair.feed_branches();
    ask_everything(&pair);
    // Blocks of other branches, too: those that were connected have filters.
    for tip in pair.core.result("getchaintips", "[]").as_array().unwrap() {
        pair.ask("getblockfilter", &format!("[{}]", tip["hash"]));
        pair.ask("getdescriptoractivity", &format!("[[{}],[\"raw(51)\"]]", tip["hash"]));
    }
    // Switched off and on; then built anew, from the files, while the node runs.
    pair.lydian.restart(&[]);
    pair.lydian.restart(&[OPTION, REST]);
    ask_everything(&pair);
    ask_rest(&pair);
    pair.rebuild_index("blockfilter/basic", "basic block filter index", OPTION);
    ask_everything(&pair);
    pair.comparison.finish();
}

#[test]
fn wrong_arguments_about_filters_are_refused_as_by_core() {
    let Some(mut pair) = Pair::start("wrong_arguments_about_filters_are_refused_as_by_core", &[OPTION]) else { return };
    pair.feed_branches();
    let tip = pair.core.result("getbestblockhash", "[]");
    let unknown = "11".repeat(32);
    let script = "[\"raw(51)\"]";
    let ask = |pair: &Pair| {
        for params in [format!("[\"{unknown}\"]"), format!("[{tip},\"other\"]"), "[\"xx\"]".to_owned()] {
            pair.ask("getblockfilter", &params);
        }
        for params in [
            format!("[\"start\",{script},-1]"),
            format!("[\"start\",{script},100000]"),
            format!("[\"start\",{script},5,4]"),
            format!("[\"start\",{script},5,5]"),
            format!("[\"start\",{script},0,100000]"),
            format!("[\"start\",{script},0,3,\"other\"]"),
            format!("[\"start\",{script},0,3,\"basic\",{{\"filter_false_positives\":1}}]"),
            "[\"start\",[\"nonsense\"]]".to_owned(),
            "[\"start\",[]]".to_owned(),
            "[\"status\"]".to_owned(),
            "[\"abort\"]".to_owned(),
            "[\"other\"]".to_owned(),
        ] {
            pair.ask("scanblocks", &params);
        }
        for params in [
            format!("[[\"{unknown}\"],{script}]"),
            format!("[[{tip},{tip}],{script}]"),
            format!("[[],{script}]"),
            format!("[[{tip}],[\"nonsense\"]]"),
            format!("[[{tip}],[]]"),
            "[[\"xx\"],[]]".to_owned(),
        ] {
            pair.ask("getdescriptoractivity", &params);
        }
    };
    ask(&pair);
    // Without the index.
    pair.lydian.restart(&[REST]);
    let path = format!("/rest/blockfilter/basic/{}.json", tip.as_str().unwrap());
    let refused = get(&pair.lydian, &path);
    assert_eq!((refused.status, refused.text()), (400, "Index is not enabled for filtertype basic\r\n"));
    // Without REST there is no such path, as in Core, where this one has none.
    pair.lydian.restart(&[]);
    assert_eq!(get(&pair.lydian, &path), get(&pair.core, &path));
    let without = pair.lydian.call("getblockfilter", &format!("[{tip}]"));
    assert!(without.body.contains("Index is not enabled for filtertype basic"), "{}", without.body);
    pair.comparison.finish();
}

fn hash_of(value: &Value) -> BlockHash {
    value.as_str().unwrap().parse().unwrap()
}

/// The answers of both to a request (BIP-0157), which are equal. Core's are returned.
fn asked(net: &Net, request: &Message, answer: Command) -> Option<Vec<Vec<u8>>> {
    let [ours, cores] = net.ports.map(|port| Strange::connect(port, b"/filters/").answers(request, answer));
    assert!(
        ours == cores,
        "{request:?}: {:?} and {:?} messages",
        ours.map(|all| all.len()),
        cores.map(|all| all.len())
    );
    cores
}

/// Peers get Core's filters, filter headers and checkpoints, byte for byte; requests that Core ends the connection for
/// end it here.
/// checklist: 83
#[test]
fn filters_for_peers_are_cores() {
    let options = [OPTION, "-peerblockfilters=1"];
    let Some(net) = Net::start("filters_for_peers_are_cores", &options) else { return };
    net.pair.feed_branches();
    // Checkpoints are every thousand blocks; both clocks agree, so both make the same.
    let script = "\"raw(51)\"";
    for _ in 0..8 {
        let made = net.pair.core.result("generatetodescriptor", &format!("[260,{script}]"));
        for hash in made.as_array().unwrap() {
            let block = net.pair.core.result("getblock", &format!("[{hash},0]"));
            assert_eq!(net.pair.lydian.result("submitblock", &format!("[{block}]")), Value::Null);
        }
    }
    let tip = net.pair.core.result("getblockcount", "[]").as_u64().unwrap();
    let tip = u32::try_from(tip).unwrap();
    let at = |height: u32| hash_of(&net.pair.core.result("getblockhash", &format!("[{height}]")));
    // Waits until both indexes are there.
    net.pair.ask("getblockfilter", &format!("[{}]", net.pair.core.result("getbestblockhash", "[]")));
    let branch = net.pair.core.result("getchaintips", "[]");
    let branches =
        branch.as_array().unwrap().iter().filter(|tip| tip["status"] == "valid-fork").map(|tip| hash_of(&tip["hash"]));
    let mut stops: Vec<(u32, BlockHash)> =
        [0, 1, 5, 999, 1_000, 1_001, tip - 1, tip].map(|height| (height, at(height))).into();
    stops.extend(branches.map(|hash| (0, hash)));
    let mut answered = 0;
    for (height, stop_hash) in stops {
        for start_height in [0, 1, 999, 1_000, 1_999, 2_000]
            .map(|below| height.saturating_sub(below))
            .into_iter()
            .chain([0, 1, height + 1])
        {
            let range = FilterRange { filter_type: 0, start_height, stop_hash };
            let filters = asked(&net, &Message::GetCFilters(range), Command::CFILTER);
            let headers = asked(&net, &Message::GetCFHeaders(range), Command::CFHEADERS);
            answered += filters.unwrap_or_default().len() + headers.unwrap_or_default().len();
        }
        let checkpoints = GetCFCheckpt { filter_type: 0, stop_hash };
        answered += asked(&net, &Message::GetCFCheckpt(checkpoints), Command::CFCHECKPT).unwrap_or_default().len();
    }
    assert!(answered > 3_000, "{answered} messages");
    let unknown = BlockHash([7; 32]);
    for (filter_type, stop_hash) in [(1, at(5)), (255, at(5)), (0, unknown)] {
        let range = FilterRange { filter_type, start_height: 0, stop_hash };
        assert_eq!(asked(&net, &Message::GetCFilters(range), Command::CFILTER), None);
        assert_eq!(asked(&net, &Message::GetCFHeaders(range), Command::CFHEADERS), None);
        let checkpoints = GetCFCheckpt { filter_type, stop_hash };
        assert_eq!(asked(&net, &Message::GetCFCheckpt(checkpoints), Command::CFCHECKPT), None);
    }
    let services = net.both().map(|server| server.result("getnetworkinfo", "[]")["localservicesnames"].clone());
    assert_eq!(services[0], services[1]);
    assert!(services[0].as_array().unwrap().contains(&Value::from("COMPACT_FILTERS")));
    net.pair.comparison.finish();
}
