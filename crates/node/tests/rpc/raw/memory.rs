//! Private keys are in the memory of the program for one call.

use super::{encode_key, seeded};
use crate::http::read;
use crate::server::Server;
use lydian_descriptor::encode_base58_check;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Texts and bytes to be found. What is sent may be overwritten in part, so only the middle is searched for.
struct Needles(Vec<(&'static str, Vec<u8>)>);

impl Needles {
    /// Names of those in the memory of the program that can be written. Other memory has the bytes of its files.
    fn found_in(&self, server: &Server) -> Vec<&'static str> {
        let memory = File::open(format!("/proc/{}/mem", server.id())).unwrap();
        let mut found = Vec::new();
        for line in server.proc("maps").lines() {
            let mut fields = line.split_whitespace();
            let (Some(range), Some(rights)) = (fields.next(), fields.next()) else { continue };
            if !rights.starts_with("rw") {
                continue;
            }
            let (start, end) = range.split_once('-').unwrap();
            let [mut start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
            while start < end {
                // Parts overlap by more than a needle.
                let size = (end - start).min(PART_SIZE + 64);
                let mut bytes = vec![0; usize::try_from(size).unwrap()];
                // Memory may have been given back since the list was read.
                let read = memory.read_at(&mut bytes, start).unwrap_or(0);
                let is_new = |name: &str| !found.contains(&name);
                let new = self.0.iter().filter(|(name, needle)| is_new(name) && contains(&bytes[..read], needle));
                let new: Vec<_> = new.map(|(name, _)| *name).collect();
                found.extend(new);
                start += PART_SIZE.min(size);
            }
        }
        found
    }

    /// Waits until exactly these are found.
    fn await_only(&self, server: &Server, expected: &[&'static str], after: &str) {
        let start = Instant::now();
        loop {
            let mut found = self.found_in(server);
            found.sort_unstable();
            if found == expected {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "after {after}: {found:?} instead of {expected:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

const PART_SIZE: u64 = 1 << 20;

/// Whether the bytes are in others. The search for one byte is quick in a build that is not optimised, too.
fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    let mut cursor = Cursor::new(bytes);
    while cursor.skip_until(needle[0]).unwrap() > 0 {
        let at = usize::try_from(cursor.position()).unwrap() - 1;
        if bytes[at..].starts_with(needle) {
            return true;
        }
    }
    false
}

/// A connection that is kept.
struct Kept(BufReader<TcpStream>);

impl Kept {
    fn open(server: &Server) -> Kept {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Kept(BufReader::new(stream))
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    fn answer(&mut self) -> String {
        read(&mut self.0).unwrap().body
    }
}

/// A body in chunks.
fn chunked(server: &Server, parts: &[&str]) -> Vec<u8> {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.authorization()
    );
    let chunks = parts.iter().map(|part| format!("{:x}\r\n{part}\r\n", part.len()));
    format!("{head}{}0\r\n\r\n", chunks.collect::<String>()).into_bytes()
}

fn call(method: &str, params: &str) -> String {
    format!("{{\"method\":\"{method}\",\"params\":{params},\"id\":7}}")
}

/// Calls with the keys, and what their answers have.
fn calls(node: &Server, wif: &str, xprv: &str) -> Vec<(&'static str, String, &'static str)> {
    let coinbase = &node.result("getblock", &format!("[{},2]", node.result("getbestblockhash", "[]")))["tx"][0];
    let psbt = node.result("createpsbt", &format!("[[{{\"txid\":{},\"vout\":0}}],[]]", coinbase["txid"]));
    let input = format!("{{\"txid\":\"{}\",\"vout\":0", "11".repeat(32));
    let tx = node.result("createrawtransaction", &format!("[[{input}}}],[{{\"data\":\"00\"}}]]"));
    let known = node.result("getdescriptorinfo", &format!("[\"wpkh({wif})\"]"));
    let address = node.result("deriveaddresses", &format!("[{}]", known["descriptor"]));
    let script = &node.result("validateaddress", &format!("[{}]", address[0]))["scriptPubKey"];
    let spent = format!("{input},\"scriptPubKey\":{script},\"amount\":1}}");
    let ranged = format!("wpkh({xprv}/0h/*h)");
    let checksum = &node.result("getdescriptorinfo", &format!("[\"{ranged}\"]"))["checksum"];
    let checked = format!("{ranged}#{}", checksum.as_str().unwrap());
    let object = format!("{{\"desc\":\"{ranged}\",\"range\":3}}");
    let escaped = format!("\\u{:04x}{}", wif.as_bytes()[0], &wif[1..]);
    vec![
        ("signmessagewithprivkey", format!("[\"{wif}\",\"message\"]"), " 200 "),
        ("signmessagewithprivkey", format!("{{\"message\":\"message\",\"privkey\":\"{wif}\"}}"), " 200 "),
        ("signmessagewithprivkey", format!("[\"{escaped}\",\"\"]"), " 200 "),
        ("signmessagewithprivkey", format!("[\"{wif} {xprv}\",\"message\"]"), " 500 "),
        ("signmessagewithprivkeys", format!("[\"{wif}\",\"message\"]"), " 404 "),
        ("signrawtransactionwithkey", format!("[{tx},[\"{wif}\"],[{spent}]]"), "\"complete\":true"),
        ("descriptorprocesspsbt", format!("[{psbt},[\"tr({wif})\",{object}]]"), "\"complete\":true"),
        ("descriptorprocesspsbt", format!("[{psbt},[\"tr(musig({wif},{xprv}/1))\"]]"), " 200 "),
        ("utxoupdatepsbt", format!("[{psbt},[\"tr({xprv}/1,pk({wif}))\"]]"), " 200 "),
        ("deriveaddresses", format!("[\"{checked}\",[0,3]]"), " 200 "),
        ("getdescriptorinfo", format!("[\"wsh(and_v(v:pk({wif}),pk({xprv}/<1h;2h>/*)))\"]"), " 200 "),
        ("getdescriptorinfo", format!("[\"wpkh({wif}x)\"]"), " 500 "),
        ("createmultisig", format!("[1,[\"{wif}\"]]"), " 500 "),
        ("scantxoutset", format!("[\"start\",[\"combo({wif})\",{object}]]"), " 200 "),
        ("generateblock", format!("[\"wpkh({xprv}/7h)\",[]]"), " 200 "),
    ]
}

/// Every method that takes keys, over connections that are kept and closed, in one piece, in many and in chunks. The
/// search is able to find: an option that the program keeps, and the body of a call that still waits.
#[test]
fn private_keys_are_in_memory_for_one_call() {
    let mut random = seeded(63);
    let mut secret = || [(); 32].map(|()| random.byte());
    let (one, root, chain_code, marker) = (secret(), secret(), secret(), secret());
    let wif = encode_key(one, true);
    let xprv = encode_base58_check([&[0x04, 0x35, 0x83, 0x94][..], &[0; 9], &chain_code, &[0], &root].concat());
    let marker: String = marker.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    let needles = Needles(vec![
        ("marker", marker[2..30].into()),
        ("root", root[8..28].into()),
        ("root in Base58", xprv[70..100].into()),
        ("secret", one[8..28].into()),
        ("secret in Base58", wif[16..46].into()),
    ]);
    let mut node = Server::lydian("keys_in_memory", &["-rpcthreads=4", &format!("-uacomment={marker}")]);
    needles.await_only(&node, &["marker"], "the start");
    let mut waiting = Kept::open(&node);
    let body = format!("{{\"method\":\"waitforblockheight\",\"params\":[1],\"note\":\"{wif}\",\"id\":7}}");
    waiting.send(&node.request(&body));
    needles.await_only(&node, &["marker", "secret in Base58"], "a call that waits");
    node.result("generatetodescriptor", &format!("[1,\"tr({wif})\"]"));
    assert!(waiting.answer().contains("\"height\":1"));
    needles.await_only(&node, &["marker"], "a call that has waited");
    for (method, params, expected) in calls(&node, &wif, &xprv) {
        let answer = node.call(method, &params);
        assert!(answer.status.contains(expected) || answer.body.contains(expected), "{method}: {}", answer.body);
        needles.await_only(&node, &["marker"], method);
    }
    let signing = call("signmessagewithprivkey", &format!("[\"{wif}\",\"message\"]"));
    let long = call("getdescriptorinfo", &format!("[{}\"wpkh({xprv}/0h)\"]", " ".repeat(30_000)));
    let batch = format!("[{signing},{long},{signing}]");
    // The connection stays open while memory is searched.
    let mut kept = Kept::open(&node);
    for body in [&signing, &long, &batch] {
        kept.send(&node.request(body));
        assert!(kept.answer().contains("\"result\":"));
        needles.await_only(&node, &["marker"], "a request on a connection that is kept");
        let (half, end) = body.split_at(body.len() / 2);
        kept.send(&chunked(&node, &[&half[..7], &half[7..], end]));
        assert!(kept.answer().contains("\"result\":"));
        needles.await_only(&node, &["marker"], "a request in chunks");
    }
    let request = node.request(&signing);
    kept.send(&request[..request.len() - 3]);
    needles.await_only(&node, &["marker", "secret in Base58"], "half a request");
    drop(kept);
    needles.await_only(&node, &["marker"], "half a request of a client that is gone");
    node.result("stop", "[]");
    assert_eq!(node.wait(), Some(0));
}
