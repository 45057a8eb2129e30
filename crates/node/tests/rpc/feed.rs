//! `-feedbind`: the stream has the mempool that RPC has; calls and questions are answered; TLS and token; refusals.

use crate::abuse::until;
use crate::electrum::{Paid, pay};
use crate::electrum_operators::hang_up;
use crate::indexes::mine;
use crate::server::Server;
use lydian_front::message::{Answer, Message, Question, State};
use lydian_front::wire::Frames;
use lydian_oracle::{Scratch, free_port};
use lydian_primitives::{Height, OutPoint, Txid, to_hex};
use lydian_serve::TlsIdentity;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A reader of the stream.
pub(crate) struct Stream {
    stream: BufReader<TcpStream>,
    frames: Frames,
    genesis: Option<String>,
    txids: BTreeSet<Txid>,
}

impl Stream {
    pub(crate) fn open(port: u16) -> Stream {
        until_it_listens(port);
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(b"GET /feed/1/stream HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).unwrap();
        }
        Stream { stream, frames: Frames::default(), genesis: None, txids: BTreeSet::new() }
    }

    /// Reads a chunk of the body. False at the end.
    fn chunk(&mut self) -> bool {
        let mut line = String::new();
        if self.stream.read_line(&mut line).unwrap_or(0) == 0 {
            return false;
        }
        let size = usize::from_str_radix(line.trim_end(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        if self.stream.read_exact(&mut chunk).is_err() {
            return false;
        }
        self.frames.push(&chunk[..size]);
        size > 0
    }

    /// Reads up to the next state; `None` at the end of the stream.
    fn state(&mut self) -> Option<State> {
        loop {
            match self.frames.next().unwrap() {
                None => {
                    if !self.chunk() {
                        return None;
                    }
                }
                Some(Message::Hello(hello)) => self.genesis = Some(hello.genesis.to_string()),
                Some(Message::Reset) => self.txids.clear(),
                Some(Message::Added(added)) => assert!(self.txids.insert(added.tx.view().txid())),
                Some(Message::Removed(txid)) => assert!(self.txids.remove(&txid)),
                Some(Message::State(state)) => return Some(state),
            }
        }
    }

    /// Reads up to the mempool and the tip of RPC.
    fn follow(&mut self, node: &Server) {
        let pool = node.result("getrawmempool", "[false,true]");
        let tip = node.result("getbestblockhash", "[]");
        let sequence = pool["mempool_sequence"].as_u64().unwrap();
        loop {
            let Some(state) = self.state() else { panic!("the stream has ended") };
            assert!(state.sequence <= sequence, "nothing changes now");
            if state.sequence == sequence && [state.tip, state.pool_tip].iter().all(|of| tip == of.hash.to_string()) {
                break;
            }
        }
        let txids: BTreeSet<Txid> =
            pool["txids"].as_array().unwrap().iter().map(|txid| txid.as_str().unwrap().parse().unwrap()).collect();
        assert_eq!(self.txids, txids);
    }
}

fn coinbase(node: &Server, height: u32) -> Paid {
    let hash = node.result("getblockhash", &json!([height]).to_string());
    let block = node.result("getblock", &json!([hash]).to_string());
    let txid = block["tx"][0].as_str().unwrap().parse().unwrap();
    (OutPoint { txid, vout: 0 }, 5_000_000_000, 1)
}

/// The code and the body of an answer.
pub(crate) fn ask(port: u16, path: &str, body: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(&request(path, body, "")).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    parts(&answer)
}

fn request(path: &str, body: &[u8], header: &str) -> Vec<u8> {
    let size = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n{header}Connection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn parts(answer: &[u8]) -> (String, Vec<u8>) {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), answer[end + 4..].to_vec())
}

#[test]
fn the_stream_has_the_mempool_of_rpc() {
    let port = free_port().unwrap();
    let bind = format!("-feedbind=127.0.0.1:{port}");
    let mut node = Server::lydian("the_stream_has_the_mempool_of_rpc", &[&bind]);
    let mut stream = Stream::open(port);
    stream.follow(&node);
    let genesis = node.result("getblockhash", "[0]");
    assert_eq!(stream.genesis.as_deref(), genesis.as_str());
    mine(&node, 110, 1);
    stream.follow(&node);
    // Through the feed, as a front end broadcasts.
    let call = |method: &str, params: Value| {
        let body = json!({"method": method, "params": params}).to_string();
        let (code, answer) = ask(port, "/feed/1/call", body.as_bytes());
        assert_eq!(code, "200");
        serde_json::from_slice::<Value>(&answer).unwrap()
    };
    let mut sent = Vec::new();
    for height in 1..=3 {
        let (tx, paid) = pay(&[coinbase(&node, height)], &[2, 3], 10_000);
        let answer = call("sendrawtransaction", json!([to_hex(&tx.encode())]));
        assert_eq!(answer, json!({"result": tx.txid().to_string()}));
        sent.push((tx, paid[0]));
        stream.follow(&node);
    }
    let wrong = call("sendrawtransaction", json!(["00"]));
    assert_eq!(wrong["error"]["code"], -22);
    // A child, and a replacement of another transaction.
    let (child, _) = pay(&[sent[0].1], &[5], 10_000);
    let (better, _) = pay(&[coinbase(&node, 2)], &[6], 90_000);
    for tx in [&child, &better] {
        node.result("sendrawtransaction", &json!([to_hex(&tx.encode())]).to_string());
    }
    stream.follow(&node);
    assert!(stream.txids.contains(&better.txid()) && !stream.txids.contains(&sent[1].0.txid()));
    assert_eq!(stream.txids.len(), 4);
    let mut late = Stream::open(port);
    late.follow(&node);
    assert_eq!(late.txids, stream.txids);
    // A block with all of them, which is left again.
    mine(&node, 1, 1);
    stream.follow(&node);
    assert!(stream.txids.is_empty());
    let tip = node.result("getbestblockhash", "[]");
    let question = Question::Txids(Height(111));
    let (code, answer) = ask(port, "/feed/1/ask", &question.encode());
    let Ok(Answer::Txids(Some((hash, txids)))) = Answer::decode(&answer, &question) else { panic!("{code}") };
    assert_eq!((hash.to_string(), txids.len()), (tip.as_str().unwrap().to_owned(), 5));
    node.result("invalidateblock", &json!([tip]).to_string());
    stream.follow(&node);
    late.follow(&node);
    assert_eq!((stream.txids.len(), &stream.txids), (4, &late.txids));
    // Open streams do not hold up the end.
    node.result("stop", "[]");
    assert_eq!(node.wait(), Some(0));
    while stream.state().is_some() {}
}

/// What a server with TLS answers to a client that trusts this certificate.
fn over_tls(port: u16, certificate: &str, request: &[u8]) -> Vec<u8> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(certificate.as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let connector = TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        // Servers may close without the alert that ends TLS.
        let _ = stream.read_to_end(&mut answer).await;
        answer
    })
}

const TOKEN: &str = "PLANTED-0123456789";

/// RPC answers before the feed does.
fn until_it_listens(port: u16) {
    until("the feed listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
}

#[test]
fn a_token_is_needed_over_tls_and_shown_nowhere() {
    let scratch = Scratch::new("rpc-feed-tls");
    fs::create_dir_all(scratch.path()).unwrap();
    let made = TlsIdentity::self_made().unwrap();
    let (certificate, key) = (scratch.path().join("cert.pem"), scratch.path().join("key.pem"));
    fs::write(&certificate, &made.certificate).unwrap();
    fs::write(&key, &made.key).unwrap();
    let port = free_port().unwrap();
    let options = [
        format!("-feedbind=0.0.0.0:{port}"),
        format!("-feedtoken={TOKEN}"),
        format!("-feedcert={}", certificate.display()),
        format!("-feedkey={}", key.display()),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let node = Server::lydian("a_token_is_needed_over_tls_and_shown_nowhere", &options);
    until_it_listens(port);
    let (asked, question) = (Question::PoolTxids, Question::PoolTxids.encode());
    let with = |header: &str| parts(&over_tls(port, &made.certificate, &request("/feed/1/ask", &question, header)));
    let (code, words) = with("");
    assert!(code == "401" && String::from_utf8_lossy(&words).contains("-feedtoken"), "{code}");
    assert_eq!(with("Authorization: Bearer PLANTED-0123456780\r\n").0, "401");
    let (code, answer) = with(&format!("Authorization: Bearer {TOKEN}\r\n"));
    assert_eq!((code.as_str(), Answer::decode(&answer, &asked)), ("200", Ok(Answer::PoolTxids(Vec::new()))));
    // Without TLS, there is no answer.
    let mut plain = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    plain.write_all(&request("/feed/1/ask", &question, &format!("Authorization: Bearer {TOKEN}\r\n"))).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"));
    let log = fs::read_to_string(node.folder.join("regtest/debug.log")).unwrap();
    assert!(log.contains(&format!("Feed server: listening on 0.0.0.0:{port} with TLS")) && log.contains("feedtoken"));
    assert!(!log.contains("PLANTED"), "the token is in the log");
}

#[test]
fn a_certificate_is_read_again() {
    const KEPT: &str = "Feed server: the certificate stays as it was: ";
    let scratch = Scratch::new("rpc-feed-certificate");
    fs::create_dir_all(scratch.path()).unwrap();
    let made = [(); 2].map(|()| TlsIdentity::self_made().unwrap());
    let (certificate, key) = (scratch.path().join("cert.pem"), scratch.path().join("key.pem"));
    let put = |of: usize, key_of: usize| {
        fs::write(&certificate, &made[of].certificate).unwrap();
        fs::write(&key, &made[key_of].key).unwrap();
    };
    put(0, 0);
    let port = free_port().unwrap();
    let bind = format!("-feedbind=127.0.0.1:{port}");
    let files = [format!("-feedcert={}", certificate.display()), format!("-feedkey={}", key.display())];
    // An Electrum server, which reads its settings again, too.
    let electrum = format!("-electrumbind=127.0.0.1:{}", free_port().unwrap());
    let options = [&bind, &files[0], &files[1], "-electrum", &electrum, "-electrumtlsbind=0", "-electrumwsbind=0"];
    let node = Server::lydian("a_certificate_is_read_again", &options);
    until_it_listens(port);
    let question = Question::PoolTxids.encode();
    let asked = request("/feed/1/ask", &question, "");
    let code = |of: usize| parts(&over_tls(port, &made[of].certificate, &asked)).0;
    assert_eq!(code(0), "200");
    put(1, 1);
    let line = hang_up(&node, "Feed server: read the certificate again; its SHA-256 is ");
    let identity = TlsIdentity::from_pem(made[1].certificate.as_bytes(), made[1].key.as_bytes()).unwrap();
    assert!(line.ends_with(&identity.fingerprint()), "{line}");
    assert_eq!(code(1), "200");
    // Another certificate's key, and no file: nothing changes.
    put(0, 1);
    let line = hang_up(&node, KEPT);
    assert!(line.contains("cert.pem: "), "{line}");
    fs::remove_file(&key).unwrap();
    let line = hang_up(&node, KEPT);
    assert!(line.contains("key.pem") && !line.contains("Unable to start"), "{line}");
    assert_eq!(code(1), "200");
    put(0, 0);
    hang_up(&node, "Electrum server: read the settings again");
    hang_up(&node, "Feed server: read the certificate again; its SHA-256 is ");
    assert_eq!(code(0), "200");
}

#[test]
fn a_feed_that_cannot_be_served_is_refused_at_the_start() {
    let scratch = Scratch::new("rpc-feed-refused");
    fs::create_dir_all(scratch.path()).unwrap();
    let missing = scratch.path().join("missing.pem");
    let path = |option: &str| format!("-{option}={}", missing.display());
    for (options, words) in [
        (vec!["-feedbind".to_owned()], "Invalid -feedbind: \"\" is not an address."),
        (
            vec!["-feedbind=0.0.0.0:4000".to_owned(), format!("-feedtoken={TOKEN}")],
            "-feedbind: 0.0.0.0:4000 is not on this machine, so that -feedtoken, -feedcert and -feedkey are needed.",
        ),
        (
            vec!["-feedbind=127.0.0.1".to_owned(), "-feedtoken=short".to_owned()],
            "Invalid -feedtoken: it must have at least 16 characters",
        ),
        (vec![path("feedcert")], "-feedcert and -feedkey must be given together."),
        (vec!["-feedbind=127.0.0.1".to_owned(), path("feedcert"), path("feedkey")], "missing.pem"),
        (vec!["-feedbind=203.0.113.7:4000".to_owned(), path("feedcert"), path("feedkey")], "203.0.113.7:4000"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
        command.arg(format!("-datadir={}", scratch.path().display()));
        command.args(["-regtest", "-printtoconsole=0", "-listen=0", "-noconnect", "-page=0"]);
        command.arg(format!("-rpcport={}", free_port().unwrap()));
        let output = command.args(&options).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{options:?}: {text}");
        assert!(text.contains(words) && !text.contains("PLANTED"), "{options:?}: {text}");
    }
}
