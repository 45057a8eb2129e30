//! A server with prepared replies: some that no node sends, or those of a node with wallets and peers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

/// A server that runs until the test process exits.
pub(crate) struct Pretender {
    pub(crate) port: u16,
}

impl Pretender {
    /// Starts a server that sends the same bytes to every client.
    pub(crate) fn start(answer: &'static str) -> Pretender {
        Pretender::with(move |_| answer.to_owned())
    }

    /// Starts a node with two wallets and three peers.
    pub(crate) fn start_wallet() -> Pretender {
        Pretender::with(|request| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            body(&wallet(request, now))
        })
    }

    /// Returns a command line for this server.
    pub(crate) fn words(&self, words: &[&str]) -> Vec<String> {
        let own = ["-regtest".to_owned(), "-rpcpassword=x".to_owned(), format!("-rpcport={}", self.port)];
        own.into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect()
    }

    fn with(answer: impl Fn(&str) -> String + Send + 'static) -> Pretender {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        // The thread ends with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read(&mut stream);
                stream.write_all(answer(&request).as_bytes()).unwrap();
            }
        });
        Pretender { port }
    }
}

/// Reads a request and returns its request line and body.
fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                return format!("{}\n{body}", head.lines().next().unwrap());
            }
        }
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "a request without an end");
        bytes.extend_from_slice(&buffer[..count]);
    }
}

fn body(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

fn wallet(request: &str, now: u64) -> String {
    let reply = |result: &str, id: &str| format!("{{\"jsonrpc\":\"2.0\",\"result\":{result},\"id\":{id}}}");
    let network = "{\"version\":319900,\"subversion\":\"/Satoshi:31.99.0/\",\"protocolversion\":70016,\"timeoffset\":0,\
        \"connections\":3,\"connections_in\":1,\"connections_out\":2,\"localservicesnames\":[\"NETWORK\",\"NETWORK_LIMITED\"],\
        \"networks\":[{\"name\":\"ipv4\",\"reachable\":true,\"proxy\":\"127.0.0.1:9050\"},{\"name\":\"ipv6\",\"reachable\":false,\"proxy\":\"\"},\
        {\"name\":\"onion\",\"reachable\":true,\"proxy\":\"127.0.0.1:9050\"},{\"name\":\"i2p\",\"reachable\":false,\"proxy\":\"127.0.0.1:7656\"},\
        {\"name\":\"moon\",\"reachable\":true,\"proxy\":\"\"}],\"relayfee\":0.00000100,\"warnings\":[\"w\"],\
        \"localaddresses\":[{\"address\":\"1.2.3.4\",\"port\":8333,\"score\":1},{\"address\":\"2001:db8::1\",\"port\":18333,\"score\":10}]}";
    match request {
        _ if request.contains("getwalletinfo") => {
            let chain = "{\"chain\":\"regtest\",\"blocks\":7,\"headers\":9,\"verificationprogress\":0.4249,\"difficulty\":4.656542373906925e-10}";
            let wallet = "{\"keypoolsize\":4000,\"walletname\":\"\",\"unlocked_until\":0}";
            let balances = "{\"mine\":{\"trusted\":50.00000000}}";
            // Not in the order of their ids.
            let replies = [reply(balances, "3"), reply(network, "0"), reply(wallet, "2"), reply(chain, "1")];
            format!("[{}]", replies.join(","))
        }
        _ if request.contains("getpeerinfo") => {
            format!("[{},{}]", reply(&peers(now), "0"), reply(network, "1"))
        }
        _ if request.contains("listwallets") => reply("[\"\",\"a b\"]", "\"1\""),
        _ if request.contains("getbalances") => match request.contains("/wallet/a%20b") {
            true => reply("{\"mine\":{\"trusted\":1234567.00000001}}", "\"1\""),
            false => reply("{\"mine\":{\"trusted\":0.00000000}}", "\"1\""),
        },
        _ if request.contains("getnewaddress") => reply("\"bcrt1qaddress\"", "\"1\""),
        _ if request.contains("getaddrmaninfo") => reply(
            "{\"ipv4\":{\"new\":1,\"tried\":2,\"total\":3},\"all_networks\":{\"new\":1,\"tried\":2,\"total\":3}}",
            "1",
        ),
        // Sends the request back.
        _ => reply(&format!("[{:?}]", request), "1"),
    }
}

fn peers(now: u64) -> String {
    // In the middle of a minute, so that two clients that ask in turn show the same age.
    let ago = |seconds: u64| now - seconds;
    format!(
        "[{{\"id\":0,\"addr\":\"1.1.1.1:8333\",\"network\":\"ipv4\",\"servicesnames\":[\"NETWORK\",\"WITNESS\",\"P2P_V2\",\"UNKNOWN[2^5]\"],\
        \"relaytxes\":true,\"lastsend\":0,\"lastrecv\":0,\"last_transaction\":{},\"last_block\":{},\"conntime\":{},\"pingtime\":0.0125,\
        \"minping\":0.0115,\"version\":70016,\"subver\":\"/a:1/\",\"inbound\":false,\"bip152_hb_to\":true,\"bip152_hb_from\":true,\
        \"connection_type\":\"manual\",\"transport_protocol_type\":\"v2\",\"addr_relay_enabled\":true,\"addr_processed\":1234567,\
        \"addr_rate_limited\":12345678}},\
        {{\"id\":12345,\"addr\":\"127.0.0.1:50000\",\"network\":\"not_publicly_routable\",\"servicesnames\":[],\"relaytxes\":false,\"lastsend\":0,\
        \"lastrecv\":0,\"last_transaction\":0,\"last_block\":0,\"conntime\":{},\"version\":0,\"subver\":\"\",\"inbound\":true,\
        \"bip152_hb_to\":false,\"bip152_hb_from\":true,\"connection_type\":\"inbound\",\"transport_protocol_type\":\"detecting\",\
        \"addr_relay_enabled\":false,\"addr_processed\":0,\"addr_rate_limited\":3,\"mapped_as\":64512}},\
        {{\"id\":7,\"addr\":\"[2001:db8::7]:8333\",\"network\":\"ipv6\",\"servicesnames\":[\"COMPACT_FILTERS\"],\"lastsend\":0,\"lastrecv\":0,\
        \"last_transaction\":0,\"last_block\":0,\"conntime\":0,\"pingtime\":2000,\"minping\":999.9994,\"version\":70016,\"subver\":\"\",\
        \"inbound\":false,\"bip152_hb_to\":false,\"bip152_hb_from\":false,\"connection_type\":\"block-relay-only\"}},\
        {{\"id\":8,\"network\":\"moon\"}}]",
        ago(30),
        ago(630),
        ago(90_030),
        ago(150),
    )
}

/// The bytes of a response, and the command line.
#[rustfmt::skip]
pub(crate) const ANSWERS: &[(&str, &[&str])] = &[
    ("", &["getblockcount"]),
    ("SSH-2.0-OpenSSH_9.9\r\n", &["getblockcount"]),
    ("HTTP/1.1 20\r\n\r\n", &["getblockcount"]),
    ("HTTP/1.1-200-OKAY\r\n\r\n", &["getblockcount"]),
    ("HTTP/1.1 abc\r\n\r\n", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\nnocolon\r\n\r\n", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"result\":1.50}", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{\"result\":1\r\n1\r\n}\r\n0\r\n\r\n", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", &["getblockcount"]),
    ("HTTP/1.1 401 No\r\n\r\n", &["getblockcount"]),
    ("HTTP/1.1 401 No\r\n\r\n", &["-norpcpassword", "-norpccookiefile", "getblockcount"]),
    ("HTTP/1.1 403 No\r\n\r\nx", &["getblockcount"]),
    ("HTTP/1.1 405 No\r\n\r\nx", &["getblockcount"]),
    ("HTTP/1.1 503 Full\r\n\r\nWork queue depth exceeded", &["getblockcount"]),
    ("HTTP/1.1 404 No\r\n\r\n{\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}", &["getblockcount"]),
    ("HTTP/1.1 500 No\r\n\r\nnot json", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n[1]", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n\"x\"", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{}", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"result\":{\"b\":1,\"a\":2,\"b\":3}}", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"result\":1,\"error\":\"x\"}", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"error\":{}}", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"error\":{\"code\":\"7\"}}", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"error\":{\"code\":7}}", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"error\":{\"code\":-19,\"message\":\"which?\"}}", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"error\":{\"code\":-300,\"message\":\"m\"}}", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"error\":{\"code\":-28,\"message\":\"Loading\"}}", &["getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"error\":{\"code\":-28,\"message\":\"Loading\"}}", &["-rpcwait", "-rpcwaittimeout=1", "getblockcount"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"result\":1}", &["-getinfo"]),
    ("HTTP/1.1 200 OK\r\n\r\n[1]", &["-netinfo"]),
    ("HTTP/1.1 200 OK\r\n\r\n[{\"id\":7}]", &["-netinfo"]),
    ("HTTP/1.1 200 OK\r\n\r\n[{\"id\":0,\"error\":{\"code\":-1,\"message\":\"m\"}},{\"id\":1}]", &["-netinfo"]),
    ("HTTP/1.1 200 OK\r\n\r\n[{\"id\":0,\"result\":[]},{\"id\":1,\"result\":{\"version\":200000}}]", &["-netinfo"]),
    ("HTTP/1.1 200 OK\r\n\r\n[{\"id\":0,\"result\":[]},{\"id\":1,\"result\":{}}]", &["-netinfo"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"error\":{\"code\":-1,\"message\":\"m\"}}", &["-addrinfo"]),
    ("HTTP/1.1 200 OK\r\n\r\n{\"error\":{\"code\":-32600,\"message\":\"m\"}}", &["-generate"]),
];
