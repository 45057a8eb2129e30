//! `-rest`: every path in every format, and every way to ask wrongly, is answered by both programs with the same
//! status, headers and bytes. What `getblockchaininfo` and `getmempoolinfo` answer over REST is compared value by
//! value, since a few of them differ.

use crate::chain::Pair;
use crate::mempool::{Draft, Story, descriptor};
use crate::server::Server;
use lydian_oracle::{build, or_skip};
use lydian_primitives::{OutPoint, Txid, hex, to_hex};
use lydian_rpc::limits::{REST_BODY_SIZE_MAX, REST_HEADERS_MAX, REST_OUTPOINTS_MAX};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

const REST: &str = "-rest";
const FORMATS: [&str; 3] = ["bin", "hex", "json"];

/// Numbers of headers, most of them wrong.
pub(crate) const COUNTS: [&str; 12] =
    ["0", "1", "2000", "2001", "05", "+5", "-1", "", "x", "99999999999999999999", "%35", "%ff%"];

/// An answer as it was received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case; without the time.
    headers: BTreeSet<String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

thread_local! {
    /// An open connection to each port: Core takes a twentieth of a second to notice a new one.
    static STREAMS: RefCell<BTreeMap<u16, BufReader<TcpStream>>> = RefCell::default();
}

/// Sends a request without a login.
fn send(server: &Server, method: &str, path: &str, body: &[u8]) -> Answer {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{length}\r\n");
    let request = [head.as_bytes(), body].concat();
    STREAMS.with_borrow_mut(|streams| {
        if let Some(mut stream) = streams.remove(&server.port)
            && stream.get_mut().write_all(&request).is_ok()
            && let Some(answer) = receive(&mut stream, method)
        {
            streams.insert(server.port, stream);
            return answer;
        }
        // The server has closed the old one.
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut stream = BufReader::new(stream);
        stream.get_mut().write_all(&request).unwrap();
        let answer = receive(&mut stream, method).unwrap_or_else(|| panic!("no answer to {method} {path:.300}"));
        streams.insert(server.port, stream);
        answer
    })
}

/// Reads one answer; `None` if the connection was closed before it.
fn receive(stream: &mut BufReader<TcpStream>, method: &str) -> Option<Answer> {
    let mut line = || {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|size| *size > 0)?;
        Some(line.trim_end().to_ascii_lowercase())
    };
    let status = line()?.split(' ').nth(1)?.parse().unwrap();
    let (mut headers, mut length) = (BTreeSet::new(), 0);
    loop {
        let header = line()?;
        match header.split_once(": ") {
            None => break,
            Some(("date", _)) => headers.insert("date".to_owned()),
            Some((name, value)) => {
                if name == "content-length" {
                    length = value.parse().unwrap();
                }
                headers.insert(header)
            }
        };
    }
    // What Core sends after an answer to HEAD is left.
    let mut body = vec![0; if method == "HEAD" { 0 } else { length }];
    stream.read_exact(&mut body).ok()?;
    Some(Answer { status, headers, body })
}

pub(crate) fn get(server: &Server, path: &str) -> Answer {
    send(server, "GET", path, b"")
}

/// Fails unless both answers are equal; shows where they differ.
fn compare(path: &str, ours: &Answer, cores: &Answer) {
    assert_eq!((ours.status, &ours.headers), (cores.status, &cores.headers), "{path:.300}");
    if ours.body != cores.body {
        let at = ours.body.iter().zip(&cores.body).take_while(|(ours, cores)| ours == cores).count();
        let around = |body: &[u8]| {
            let part = &body[at.saturating_sub(60)..(at + 60).min(body.len())];
            format!("{} of {}: {}", at, body.len(), String::from_utf8_lossy(part).into_owned())
        };
        panic!("{path:.300}: {} is not {}", around(&ours.body), around(&cores.body));
    }
}

/// Asks both for a path. Returns the status.
pub(crate) fn ask(pair: &Pair, path: &str) -> u16 {
    post(pair, "GET", path, b"")
}

/// The same with another method and a body.
fn post(pair: &Pair, method: &str, path: &str, body: &[u8]) -> u16 {
    let ours = send(&pair.lydian, method, path, body);
    compare(path, &ours, &send(&pair.core, method, path, body));
    ours.status
}

/// Asks both for a path that answers like a method, some values of which differ.
fn ask_like(pair: &Pair, method: &str, path: &str) {
    let (ours, cores) = (get(&pair.lydian, path), get(&pair.core, path));
    let headers = |answer: &Answer| {
        let is_length = |line: &&String| line.starts_with("content-length:");
        answer.headers.iter().filter(|line| !is_length(line)).cloned().collect::<Vec<_>>()
    };
    assert_eq!((ours.status, headers(&ours)), (200, headers(&cores)), "{path}");
    assert!(ours.body.ends_with(b"}\n"), "{path}");
    let wrapped = |answer: &Answer| format!("{{\"result\":{}}}", answer.text().trim_end());
    pair.comparison.compare(method, path, &wrapped(&ours), &wrapped(&cores));
}

/// Everything about a block, known or not. Returns how many of the answers are data.
fn ask_about_block(pair: &Pair, hash: &str) -> usize {
    let mut served = 0;
    for format in FORMATS {
        for path in [
            format!("/rest/block/{hash}.{format}"),
            format!("/rest/block/notxdetails/{hash}.{format}"),
            format!("/rest/spenttxouts/{hash}.{format}"),
            format!("/rest/headers/{hash}.{format}"),
            format!("/rest/headers/{hash}.{format}?count=3"),
            format!("/rest/headers/2/{hash}.{format}"),
            format!("/rest/blockpart/{hash}.{format}?offset=0&size=80"),
            format!("/rest/blockpart/{hash}.{format}?size=7&offset=60"),
            format!("/rest/deploymentinfo/{hash}.{format}"),
        ] {
            served += usize::from(ask(pair, &path) == 200);
        }
    }
    served
}

/// Everything about the chain as a whole.
fn ask_about_chain(pair: &Pair) {
    ask_like(pair, "getblockchaininfo", "/rest/chaininfo.json");
    ask_like(pair, "getblockchaininfo", "/rest/chaininfo/whatever.json?x");
    for path in ["/rest/deploymentinfo.json", "/rest/deploymentinfo/.json", "/rest/mempool/info.json"] {
        assert_eq!(ask(pair, path), 200, "{path}");
    }
    let tip = pair.core.result("getblockcount", "[]").as_u64().unwrap();
    for height in [0, 1, tip / 2, tip, tip + 1, 0x7fff_ffff, 0x8000_0000] {
        for format in FORMATS {
            let path = format!("/rest/blockhashbyheight/{height}.{format}");
            assert_eq!(
                ask(pair, &path),
                if height <= tip {
                    200
                } else if height < 0x8000_0000 {
                    404
                } else {
                    400
                }
            );
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn the_chain_over_rest_is_cores() {
    let options = [REST, "-txindex"];
    let Some(pair) = Pair::start("the_chain_over_rest_is_cores", &options) else { return };
    let tip = pair.feed_mix();
    ask_about_chain(&pair);
    // Waits until both indexes are there.
    pair.ask("getrawtransaction", &format!("[\"{}\"]", "11".repeat(32)));
    let (mut served, mut transactions) = (0, 0);
    for height in 0..=tip {
        let hash = pair.core.result("getblockhash", &format!("[{height}]"));
        let block = pair.core.result("getblock", &format!("[{hash}]"));
        let txids = block["tx"].as_array().unwrap();
        // The last ones are full.
        if height % 40 == 0 || height + 5 > tip || txids.len() > 1 {
            served += ask_about_block(&pair, text(&hash));
        }
        for (number, txid) in txids.iter().step_by(1 + txids.len() / 12).enumerate() {
            let format = FORMATS[(number + usize::try_from(height).unwrap()) % 3];
            let found = ask(&pair, &format!("/rest/tx/{}.{format}", text(txid)));
            // The transaction of the genesis block is in no index.
            assert_eq!(found, if height == 0 { 404 } else { 200 }, "{txid}");
            transactions += 1;
        }
    }
    assert!(served > 300 && transactions > 440, "{served} {transactions}");
    // Parts of a full block: all of it, its last byte, and one byte too many.
    let hash = pair.core.result("getbestblockhash", "[]");
    let size = pair.core.result("getblock", &format!("[{hash}]"))["size"].as_u64().unwrap();
    assert!(size > 100_000, "{size}");
    let part = |offset: u64, size: u64| {
        FORMATS
            .map(|format| ask(&pair, &format!("/rest/blockpart/{}.{format}?offset={offset}&size={size}", text(&hash))))
    };
    for (offset, count) in [(0, size), (size - 1, 1), (size / 3, size / 3)] {
        assert_eq!(part(offset, count), [200, 200, 400]);
    }
    for (offset, count) in [(0, size + 1), (size, 1), (size, 0), (0, 0), (u64::MAX, 1), (1, u64::MAX), (1 << 32, 1)] {
        assert_eq!(part(offset, count), [400; 3]);
    }
    pair.comparison.finish();
}

/// Blocks beside the chain, headers without blocks, and blocks that are not valid.
#[test]
fn branches_over_rest_are_cores() {
    let Some(pair) = Pair::start("branches_over_rest_are_cores", &[REST]) else { return };
    pair.feed_branches();
    ask_about_chain(&pair);
    let tips = pair.core.result("getchaintips", "[]");
    let mut seen = BTreeSet::new();
    for tip in tips.as_array().unwrap() {
        seen.insert(text(&tip["status"]));
        // The branch from its tip down to a block of the chain.
        let mut hash = text(&tip["hash"]).to_owned();
        for _ in 0..tip["branchlen"].as_u64().unwrap().min(6) + 1 {
            ask_about_block(&pair, &hash);
            ask(&pair, &format!("/rest/headers/{hash}.json?count=2000"));
            let header = pair.core.result("getblockheader", &json!([hash]).to_string());
            text(&header["previousblockhash"]).clone_into(&mut hash);
        }
    }
    assert!(seen.len() >= 3, "{seen:?}");
    // Without -txindex, transactions of the chain are not found.
    let block = pair.core.result("getblock", &format!("[{}]", pair.core.result("getbestblockhash", "[]")));
    assert_eq!(ask(&pair, &format!("/rest/tx/{}.json", text(&block["tx"][0]))), 404);
    pair.comparison.finish();
}

/// What is said about a block that was deleted, and about what it spent.
#[test]
fn pruned_blocks_over_rest_are_refused_as_by_core() {
    let options = [REST, "-prune=1", "-fastprune"];
    let Some(pair) = Pair::start("pruned_blocks_over_rest_are_refused_as_by_core", &options) else { return };
    let tip = pair.feed_mix();
    for server in [&pair.lydian, &pair.core] {
        server.result("pruneblockchain", &format!("[{}]", tip - 300));
    }
    let is_pruned = |server: &Server, hash: &Value| {
        server.call("getblock", &format!("[{hash},0]")).body.contains("Block not available (pruned data)")
    };
    let mut pruned = 0;
    for height in 0..=tip {
        let hash = pair.core.result("getblockhash", &format!("[{height}]"));
        // Their files end at different blocks.
        let [ours, cores] = [&pair.lydian, &pair.core].map(|server| is_pruned(server, &hash));
        if ours && cores {
            pruned += 1;
            for format in FORMATS {
                for path in ["block", "block/notxdetails", "spenttxouts"] {
                    // The genesis block spends nothing, which needs no data.
                    let status = if height == 0 && path == "spenttxouts" { 200 } else { 404 };
                    assert_eq!(ask(&pair, &format!("/rest/{path}/{}.{format}", text(&hash))), status);
                }
                let path = format!("/rest/blockpart/{}.{format}?offset=0&size=1", text(&hash));
                assert_eq!(ask(&pair, &path), 404);
            }
            assert_eq!(ask(&pair, &format!("/rest/headers/{}.hex?count=9", text(&hash))), 200);
        } else if !ours && !cores && height % 20 == 0 {
            ask_about_block(&pair, text(&hash));
        }
    }
    assert!(pruned > 50, "{pruned}");
}

/// limit: rpc::REST_HEADERS_MAX at
/// limit: rpc::REST_HEADERS_MAX above
#[test]
fn as_many_headers_as_core_sends() {
    let Some(story) = Story::begin("as_many_headers_as_core_sends", &[REST]) else { return };
    // From the genesis block on, there are some more than a request may have.
    story.ask("generatetodescriptor", &json!([REST_HEADERS_MAX - 125, descriptor()]));
    let pair = &story.pair;
    let genesis = pair.core.result("getblockhash", "[0]");
    for format in FORMATS {
        for (count, status) in [(REST_HEADERS_MAX, 200), (REST_HEADERS_MAX + 1, 400)] {
            let path = format!("/rest/headers/{}.{format}?count={count}", text(&genesis));
            assert_eq!(ask(pair, &path), status, "{path}");
        }
    }
    let at = get(&pair.lydian, &format!("/rest/headers/{REST_HEADERS_MAX}/{}.bin", text(&genesis)));
    assert_eq!(at.body.len(), 80 * usize::try_from(REST_HEADERS_MAX).unwrap());
    story.pair.comparison.finish();
}

/// Transactions of the mempool, on top of each other, and one that was mined.
struct Pool {
    story: Story,
    mined: Draft,
    parent: Draft,
    child: Draft,
    /// An output of the chain that nothing spends.
    coin: OutPoint,
}

impl Pool {
    fn begin(test: &str) -> Option<Pool> {
        let mut story = Story::begin(test, &[REST])?;
        let mined = Draft::spending(&[story.coin()]).paying(4, 20_000);
        story.send(&mined);
        story.ask("generatetodescriptor", &json!([1, descriptor()]));
        let parent = Draft::spending(&[mined.output(0), story.coin()]).paying(3, 9_000);
        story.send(&parent);
        let child = Draft::spending(&[parent.output(1)]).paying(2, 4_000);
        story.send(&child);
        let coin = story.coin().0;
        Some(Pool { story, mined, parent, child, coin })
    }

    /// Outpoints of every kind: in the chain and unspent, spent by a block, by the mempool, of the mempool, spent
    /// there, not existing, unknown.
    fn outpoints(&self) -> Vec<OutPoint> {
        let unknown = Txid([3; 32]);
        let of = |draft: &Draft, vout| OutPoint { txid: draft.txid(), vout };
        let mut all: Vec<OutPoint> = (0..5).map(|vout| of(&self.mined, vout)).collect();
        all.extend((0..4).map(|vout| of(&self.parent, vout)));
        all.extend([of(&self.child, 0), of(&self.child, 1), of(&self.child, u32::MAX), self.coin]);
        all.extend([OutPoint { txid: unknown, vout: 0 }, OutPoint { txid: self.coin.txid, vout: 1 }]);
        all
    }
}

fn in_path(outpoints: &[OutPoint]) -> String {
    outpoints.iter().map(|outpoint| format!("/{}-{}", outpoint.txid, outpoint.vout)).collect()
}

/// As Core reads it: without the byte of BIP-0064 for the mempool.
fn in_body(outpoints: &[OutPoint]) -> Vec<u8> {
    let mut body = vec![u8::try_from(outpoints.len()).unwrap()];
    for outpoint in outpoints {
        body.extend_from_slice(&outpoint.txid.0);
        body.extend_from_slice(&outpoint.vout.to_le_bytes());
    }
    body
}

#[test]
fn the_mempool_over_rest_is_cores() {
    let Some(pool) = Pool::begin("the_mempool_over_rest_is_cores") else { return };
    let pair = &pool.story.pair;
    for draft in [&pool.parent, &pool.child] {
        for format in FORMATS {
            assert_eq!(ask(pair, &format!("/rest/tx/{}.{format}", draft.txid())), 200);
        }
    }
    assert_eq!(ask(pair, &format!("/rest/tx/{}.json", pool.mined.txid())), 404, "it is in a block");
    ask_like(pair, "getmempoolinfo", "/rest/mempool/info.json");
    let contents = |query: &str| ask(pair, &format!("/rest/mempool/contents.json{query}"));
    for query in ["", "?", "?verbose=true", "?verbose=false", "?verbose=false&mempool_sequence=true", "?other=1"] {
        assert_eq!(contents(query), 200, "{query}");
    }
    for query in ["?mempool_sequence=false&verbose=t%72ue", "?verbose=false&verbose=x", "?%76erbose=false"] {
        assert_eq!(contents(query), 200, "{query}");
    }
    for query in [
        "?mempool_sequence=true",
        "?verbose=true&mempool_sequence=true",
        "?verbose=1",
        "?verbose",
        "?verbose=",
        "?verbose=TRUE",
        "?verbose=x&verbose=false",
        "?mempool_sequence=1",
        "?mempool_sequence",
    ] {
        assert_eq!(contents(query), 400, "{query}");
    }
    pool.story.pair.comparison.finish();
}

/// limit: rpc::REST_OUTPOINTS_MAX at
/// limit: rpc::REST_OUTPOINTS_MAX above
#[test]
fn coins_over_rest_are_cores() {
    let Some(pool) = Pool::begin("coins_over_rest_are_cores") else { return };
    let pair = &pool.story.pair;
    let all = pool.outpoints();
    assert_eq!(all.len(), REST_OUTPOINTS_MAX);
    let more = [&all[..], &[pool.coin]].concat();
    for (outpoints, status) in [(&all[..], 200), (&all[..1], 200), (&all[..8], 200), (&all[2..11], 200), (&more, 400)] {
        for format in FORMATS {
            assert_eq!(ask(pair, &format!("/rest/getutxos{}.{format}", in_path(outpoints))), status);
            assert_eq!(ask(pair, &format!("/rest/getutxos/checkmempool{}.{format}", in_path(outpoints))), status);
        }
        // Core misreads more than 252 bytes. With the byte for the mempool before it, one is read for the other.
        for body in [in_body(outpoints), [&[1], &in_body(outpoints)[..]].concat()] {
            let status = post(pair, "POST", "/rest/getutxos.bin", &body);
            assert_eq!(status, if outpoints.len() == 1 || body[0] == 1 && body.len() < 253 { 200 } else { 400 });
            assert_eq!(post(pair, "GET", "/rest/getutxos.bin", &body), status);
            assert_eq!(post(pair, "PUT", "/rest/getutxos/.bin?x=y", &body), status);
            assert_eq!(post(pair, "POST", "/rest/getutxos.hex", to_hex(&body).as_bytes()), status);
            let spaced = format!(" {}\n", to_hex(&body).to_uppercase().replace("0000", " 0000\t"));
            assert_eq!(post(pair, "POST", "/rest/getutxos.hex", spaced.as_bytes()), status);
        }
    }
    let unspent = get(&pair.lydian, &format!("/rest/getutxos{}.json", in_path(&all)));
    let with_mempool = get(&pair.lydian, &format!("/rest/getutxos/checkmempool{}.json", in_path(&all)));
    let of = |answer: &Answer| serde_json::from_slice::<Value>(&answer.body).unwrap();
    assert_eq!(of(&unspent)["bitmap"], "111100000000100");
    assert_eq!(of(&with_mempool)["bitmap"], "011101010110100");
    let six = send(&pair.lydian, "POST", "/rest/getutxos.bin", &in_body(&all[4..10]));
    assert_eq!(six.body[36..38], [1, 0b10_1010], "a bit for each of six, the mempool included");
    pool.story.pair.comparison.finish();
}

/// Bodies and paths of `getutxos` that are none.
#[test]
fn wrong_requests_for_coins_are_refused_as_by_core() {
    let Some(pool) = Pool::begin("wrong_requests_for_coins_are_refused_as_by_core") else { return };
    let pair = &pool.story.pair;
    let one = in_path(&[pool.coin]);
    for format in ["bin", "hex", "json", "xml", ""] {
        for path in [
            String::new(),
            "/".to_owned(),
            "/checkmempool".to_owned(),
            "/checkmempool/".to_owned(),
            format!("{one}/"),
            format!("{one}/checkmempool"),
            format!("/checkmempool/checkmempool{one}"),
            format!("x{}", &one[1..]),
            format!("{one}-1"),
            format!("{one}x"),
            one.replace("-0", "--1"),
            one.replace("-0", "-+1"),
            one.replace("-0", "-4294967296"),
            one.replace("-0", "-"),
            one.replace("-0", ""),
            "/-0".to_owned(),
            "/x-0".to_owned(),
            format!("/{}-0", "1".repeat(63)),
            one.to_uppercase(),
            format!("/{one}"),
        ] {
            let path = format!("/rest/getutxos{path}.{format}");
            ask(pair, &path);
            // With a body that is right.
            let body = in_body(&[pool.coin]);
            post(pair, "POST", &path, &body);
            post(pair, "POST", &path, to_hex(&body).as_bytes());
        }
        let path = format!("/rest/getutxos.{format}");
        let good = in_body(&[pool.coin]);
        for body in [
            &good[..good.len() - 1],
            &good[..2],
            &good[..1],
            &[0],
            &[1],
            &[0xfd, 1, 0],
            &[0xfd, 0, 1],
            &[0xff, 0, 0, 0, 0, 1, 0, 0, 0],
            &[&good[..], b"and more"].concat(),
            &[&[1], &good[..]].concat(),
            // Sizes around those from which the vector starts within the size, with none, some and too many outpoints.
            &[1; 252],
            &[1; 253],
            &[1; 0x100],
            &[1; 0x400],
            &[2; 0x402],
            &[3; 0x40f],
            &[4; 0x410],
            &[5; 0x1f05],
        ] {
            post(pair, "POST", &path, body);
            post(pair, "POST", &path, to_hex(body).as_bytes());
            post(pair, "POST", &path, format!("{}0", to_hex(body)).as_bytes());
            post(pair, "POST", &path, format!("{} zz", to_hex(body)).as_bytes());
        }
        for body in ["\n", " ", "x", "00 0 0"] {
            post(pair, "POST", &path, body.as_bytes());
        }
    }
    pool.story.pair.comparison.finish();
}

/// Core reads more, which no request needs.
///
/// limit: rpc::REST_BODY_SIZE_MAX at
/// limit: rpc::REST_BODY_SIZE_MAX above
#[test]
fn long_bodies_over_rest() {
    let Some(pair) = Pair::start("long_bodies_over_rest", &[REST]) else { return };
    for format in ["bin", "hex"] {
        // Spaces are hex without bytes; the size of the others stands for a vector of none.
        let path = format!("/rest/getutxos.{format}");
        assert_eq!(post(&pair, "POST", &path, &[b' '; REST_BODY_SIZE_MAX]), 200);
        let above = send(&pair.lydian, "POST", &path, &[b' '; REST_BODY_SIZE_MAX + 1]);
        assert_eq!((above.status, above.text()), (413, ""));
    }
    // Only this path has a body.
    assert_eq!(post(&pair, "POST", "/rest/chaininfo.bin", &[b' '; REST_BODY_SIZE_MAX + 1]), 404);
    pair.comparison.finish();
}

/// Wrong hashes, numbers, formats and paths; and the methods of HTTP.
#[test]
fn wrong_requests_over_rest_are_refused_as_by_core() {
    let Some(mut story) = Story::begin("wrong_requests_over_rest_are_refused_as_by_core", &[REST]) else { return };
    let hash = text(&story.pair.core.result("getblockhash", "[5]")).to_owned();
    let unknown = "11".repeat(32);
    let prefixes = [
        "tx",
        "block",
        "block/notxdetails",
        "blockpart",
        "headers",
        "spenttxouts",
        "deploymentinfo",
        "blockhashbyheight",
    ];
    let pair = &story.pair;
    for prefix in prefixes {
        for rest in [
            "",
            ".json",
            "x.json",
            "HASH",
            "HASH.",
            "HASH.xml",
            "HASH.JSON",
            "HASH.json.hex",
            "HASH.json?",
            "HASH.bin?a?b",
            "HASH/.json",
            "HASH/1.hex",
            "1/HASH/2.hex",
            "/HASH.bin",
            "0x.hex",
            "HASHaa.bin",
            "UNKNOWN.bin",
            "UNKNOWN.hex",
            "UNKNOWN.json",
            "UNKNOWN",
            "-1.json",
            "+1.json",
            "1.json",
            "0001.hex",
            "-0.bin",
            "1x.hex",
            "2147483648.json",
            "%31.json",
            "1%20.json",
            "a\"b{}|.json",
            "HASH.bin?offset=1&size=1",
            "UPPER.hex",
        ] {
            let rest = rest.replace("HASH", &hash).replace("UNKNOWN", &unknown).replace("UPPER", &hash.to_uppercase());
            ask(pair, &format!("/rest/{prefix}/{rest}"));
        }
        ask(pair, &format!("/rest/{prefix}"));
    }
    for count in COUNTS {
        ask(pair, &format!("/rest/headers/{hash}.json?count={count}"));
        ask(pair, &format!("/rest/headers/{hash}.bin?x=1&count={count}&count=1"));
        ask(pair, &format!("/rest/headers/{count}/{hash}.hex"));
        ask(pair, &format!("/rest/blockpart/{hash}.hex?offset={count}&size=5"));
        ask(pair, &format!("/rest/blockpart/{hash}.hex?offset=5&size={count}"));
    }
    for query in ["", "?count", "?offset=1", "?size=1", "?offset=1&size", "?offset&size=1", "?of%66set=1&size=%31"] {
        ask(pair, &format!("/rest/blockpart/{hash}.bin{query}"));
        ask(pair, &format!("/rest/headers/{hash}.hex{query}"));
    }
    for path in [
        "/rest",
        "/rest/",
        "/rest/x",
        "/rest/chaininfo",
        "/rest/chaininfo.bin",
        "/rest/chaininfo.hex",
        "/rest/chaininfo.",
        "/rest/deploymentinfo.bin",
        "/rest/deploymentinfox.json",
        "/rest/mempool",
        "/rest/mempool/",
        "/rest/mempool/x.json",
        "/rest/mempool/info",
        "/rest/mempool/info.bin",
        "/rest/mempool/contents.hex",
        "/rest/mempool/contents",
        "/rest/mempool/info/.json",
        "/REST/chaininfo.json",
        "//rest/chaininfo.json",
        "/rest/tx",
        "/rest/getutxo",
    ] {
        ask(pair, path);
    }
    // Any method that is known is as good as GET; the body of a request that needs none is ignored.
    let path = format!("/rest/headers/{hash}.json");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
        post(pair, method, &path, b"");
        post(pair, method, &path, b"{\"method\":\"stop\"}");
    }
    // As for every other path, an answer to HEAD has no body here, and one in Core, which the standard forbids.
    let head = |server: &Server| {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        write!(stream, "HEAD {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut stream = BufReader::new(stream);
        let answer = receive(&mut stream, "HEAD").unwrap();
        let mut body = Vec::new();
        stream.read_to_end(&mut body).unwrap();
        (answer, body)
    };
    let [(ours, none), (cores, body)] = [&pair.lydian, &pair.core].map(head);
    compare(&path, &ours, &cores);
    assert_eq!((ours.status, none, body), (200, Vec::new(), get(&pair.lydian, &path).body));
    // Without the option there is no path.
    story.pair.lydian.restart(&["-rest=0"]);
    story.pair.core.restart(&["-rest=0"]);
    for path in ["/rest/chaininfo.json", "/rest/getutxos.bin"] {
        assert_eq!(ask(&story.pair, path), 404);
    }
}

/// A path that Core gets is missing here until it is in the table.
#[test]
fn the_paths_are_those_of_cores_source() {
    let Some(built) = or_skip("the_paths_are_those_of_cores_source", build::locate()) else { return };
    let source = std::fs::read_to_string(built.source.join("src/rest.cpp")).unwrap();
    let (_, table) = source.split_once("uri_prefixes[] = {").unwrap();
    let (table, _) = table.split_once("};").unwrap();
    let prefixes: Vec<&str> = table.lines().filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(prefixes, lydian_rpc::rest::prefixes().collect::<Vec<_>>());
}

#[test]
fn hex_is_the_bytes() {
    let lydian = Server::lydian("hex_is_the_bytes", &[REST]);
    let hash = lydian.result("getblockhash", "[0]");
    let [bytes, digits] = ["bin", "hex"].map(|format| get(&lydian, &format!("/rest/block/{}.{format}", text(&hash))));
    assert_eq!(hex(digits.text().trim_end()).unwrap(), bytes.body);
    assert!(bytes.body.len() > 200 && digits.body.ends_with(b"\n"));
}
