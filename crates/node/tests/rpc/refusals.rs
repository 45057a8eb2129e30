//! Everything around a call: JSON-RPC's versions and batches, credentials, and HTTP itself, as bytes.

use crate::abuse::{begin, fill_queue, until};
use crate::chain::Pair;
use crate::http::{Answer, read, send};
use crate::server::Server;
use lydian_stdx::base64;
use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// checklist: 98
#[test]
fn versions_ids_and_batches() {
    let Some(pair) = Pair::start("versions_ids_and_batches", &[]) else { return };
    let deep = |depth: usize| {
        format!("{{\"method\":\"getblockcount\",\"params\":[],\"id\":{}1{}}}", "[".repeat(depth), "]".repeat(depth))
    };
    let bodies = [
        "{\"method\":\"getblockcount\"}".to_owned(),
        "{\"method\":\"getblockcount\",\"id\":1.50}".to_owned(),
        "{\"method\":\"getblockcount\",\"id\":{\"a\":[null,true]},\"jsonrpc\":\"1.0\"}".to_owned(),
        "{\"method\":\"getblockcount\",\"id\":\"\\u0041\\\"\",\"jsonrpc\":\"2.0\"}".to_owned(),
        "{\"method\":\"getblockcount\",\"jsonrpc\":\"2.0\"}".to_owned(),
        "{\"method\":\"getblockcount\",\"jsonrpc\":\"2.0\",\"id\":null}".to_owned(),
        "{\"method\":\"getblockcount\",\"jsonrpc\":\"1.1\",\"id\":1}".to_owned(),
        "{\"method\":\"getblockcount\",\"jsonrpc\":2,\"id\":1}".to_owned(),
        "{\"method\":\"getblockcount\",\"jsonrpc\":null,\"id\":1}".to_owned(),
        "{\"method\":\"nonsense\",\"id\":1}".to_owned(),
        "{\"method\":\"nonsense\",\"id\":1,\"jsonrpc\":\"2.0\"}".to_owned(),
        "{\"method\":\"nonsense\",\"jsonrpc\":\"2.0\"}".to_owned(),
        "{\"method\":1,\"id\":1}".to_owned(),
        "{\"id\":1}".to_owned(),
        "{\"id\":1,\"jsonrpc\":\"2.0\"}".to_owned(),
        "{\"method\":\"getblockcount\",\"params\":1,\"id\":1}".to_owned(),
        "{\"method\":\"getblockcount\",\"params\":null,\"id\":1}".to_owned(),
        "{\"method\":\"getblockcount\",\"params\":{},\"id\":1}".to_owned(),
        "{\"method\":\"getblockhash\",\"params\":{\"height\":0},\"id\":1}".to_owned(),
        "{\"method\":\"getblockhash\",\"params\":{\"args\":[0]},\"id\":1}".to_owned(),
        "{\"method\":\"getblockhash\",\"params\":{\"height\":0,\"height\":0},\"id\":1}".to_owned(),
        "{\"method\":\"getblockhash\",\"params\":{\"args\":[0],\"height\":0},\"id\":1}".to_owned(),
        "{\"method\":\"getblockhash\",\"params\":[7],\"id\":1,\"jsonrpc\":\"2.0\"}".to_owned(),
        "{\"method\":\"getblockcount\",\"method\":\"uptime\",\"id\":1}".to_owned(),
        "[]".to_owned(),
        "[1]".to_owned(),
        "[{}]".to_owned(),
        "[{\"method\":\"getblockcount\",\"id\":1},5,{\"method\":\"nonsense\",\"id\":2,\"jsonrpc\":\"2.0\"},6]"
            .to_owned(),
        "[{\"method\":\"getblockcount\",\"jsonrpc\":\"2.0\"}]".to_owned(),
        "[{\"method\":\"getblockcount\",\"jsonrpc\":\"2.0\"},{\"method\":\"getblockcount\",\"id\":null}]".to_owned(),
        "[{\"method\":\"getblockhash\",\"params\":[0],\"id\":1},{\"method\":\"getblockhash\",\"params\":[1],\"id\":2}]"
            .to_owned(),
        "[[]]".to_owned(),
        String::new(),
        "x".to_owned(),
        "{".to_owned(),
        "5".to_owned(),
        "\"a\"".to_owned(),
        "null".to_owned(),
        "{\"method\":\"getblockcount\",\"id\":1,}".to_owned(),
        "{\"method\":\"getblockcount\",\"id\":01}".to_owned(),
        "{\"method\":\"getblockcount\",\"id\":\"\u{1}\"}".to_owned(),
        " {\"method\" : \"getblockcount\" , \"id\":\t-0.0e+1 }\r\n".to_owned(),
        deep(511),
        deep(512),
        deep(100_000),
    ];
    for body in bodies {
        pair.ask_body("", &body);
    }
    pair.comparison.finish();
}

/// `-rpcuser`, `-rpcpassword`, `-rpcauth` and whitelists.
///
/// checklist: 99
#[test]
fn credentials_and_whitelists() {
    let options = [
        // From Core's test/functional/rpc_users.py; the password is cA773lm788buwYe4g4WT+05pKyNruVKjQ25x3n0DQcM=.
        "-rpcauth=rt:93648e835a54c573682c2eb19f882535$7681e9c5b74bdd85e78166031d2058e1069b3ed7ed967c93fc63abba06f31144",
        "-rpcwhitelist=rt:getblockcount,uptime",
        "-rpcwhitelist=rt:getblockcount,stop",
        "-rpcwhitelist=__cookie__:getblockcount,setmocktime",
    ];
    let Some(pair) = Pair::start("credentials_and_whitelists", &options) else { return };
    let password = "rt:cA773lm788buwYe4g4WT+05pKyNruVKjQ25x3n0DQcM=";
    let heads = [
        None,
        Some("Basic".to_owned()),
        Some("Basic ".to_owned()),
        Some(format!("basic {}", base64(password.as_bytes()))),
        Some(format!("Basic {}", base64(password.as_bytes()))),
        Some(format!("Basic   {}  ", base64(password.as_bytes()))),
        Some(format!("Basic {}x", base64(password.as_bytes()))),
        Some(format!("Basic {}", base64(b"rt"))),
        Some(format!("Basic {}", base64(b"rt:wrong"))),
        Some(format!("Bearer {}", base64(password.as_bytes()))),
    ];
    let bodies = [
        "{\"method\":\"getblockcount\",\"id\":1}",
        "{\"method\":\"uptime\",\"id\":1}",
        "{\"method\":\"stop\",\"id\":1}",
        "[{\"method\":\"getblockcount\",\"id\":1},{\"method\":\"uptime\",\"id\":1}]",
        "[{\"method\":\"getblockcount\",\"id\":1}]",
        "[5]",
        "[{\"method\":5}]",
        "{\"method\":\"uptime\",\"id\":1,\"params\":",
    ];
    for head in &heads {
        // Each wrong password costs a quarter of a second.
        let is_right = head.as_deref() == heads[4].as_deref();
        for body in &bodies[..if is_right { bodies.len() } else { 1 }] {
            if is_right && body.contains("stop") {
                continue;
            }
            let authorization = head.as_ref().map(|head| format!("Authorization: {head}\r\n")).unwrap_or_default();
            let request =
                format!("POST / HTTP/1.1\r\nHost: x\r\n{authorization}Content-Length: {}\r\n\r\n{body}", body.len());
            same(&pair, request.as_bytes());
        }
    }
    // The cookie's own list.
    for body in ["{\"method\":\"getblockcount\"}", "{\"method\":\"uptime\"}"] {
        pair.ask_body("", body);
    }
    pair.comparison.finish();
}

/// Compares status line, body and two headers of both.
fn same(pair: &Pair, request: &[u8]) {
    let (ours, cores) = (send(pair.lydian.port, request).unwrap(), send(pair.core.port, request).unwrap());
    let shown = String::from_utf8_lossy(&request[..request.len().min(300)]).into_owned();
    assert_eq!((&ours.status, &ours.body), (&cores.status, &cores.body), "{shown}");
    let kind = |answer: &Answer| {
        let found = answer.headers.iter().map(|header| header.to_lowercase());
        let found = found.filter(|header| header.starts_with("content-type") || header.starts_with("www-authenticate"));
        found.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(kind(&ours), kind(&cores), "{shown}");
}

/// checklist: 98
#[test]
fn http_as_bytes() {
    let Some(pair) = Pair::start("http_as_bytes", &[]) else { return };
    // Credentials that both accept.
    let body = "{\"method\":\"getblockcount\",\"id\":1}";
    let request = |server: &Server, line: &str, more: &str, body: &str| {
        format!("{line}\r\nHost: x\r\nAuthorization: Basic {}\r\n{more}\r\n{body}", server.authorization())
    };
    let length = format!("Content-Length: {}\r\n", body.len());
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (line, more, body) in [
        ("POST / HTTP/1.1", &length[..], body),
        ("POST / HTTP/1.0", &length, body),
        ("POST / HTTP/1.1", &format!("Connection: close\r\n{length}"), body),
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n", &chunked),
        ("POST / HTTP/1.1", &format!("{length}{length}"), body),
        ("POST / HTTP/1.1", "", ""),
        ("POST /x HTTP/1.1", &length, body),
        ("POST /wallet/x HTTP/1.1", &length, body),
        ("POST /?a=b HTTP/1.1", &length, body),
        ("POST // HTTP/1.1", &length, body),
        ("POST http://x/ HTTP/1.1", &length, body),
        ("GET / HTTP/1.1", "", ""),
        ("HEAD /x HTTP/1.1", "Connection: close\r\n", ""),
        ("PUT / HTTP/1.1", &length, body),
        ("DELETE / HTTP/1.1", "", ""),
        ("OPTIONS / HTTP/1.1", "", ""),
        ("NONSENSE / HTTP/1.1", "", ""),
        ("post / HTTP/1.1", &length, body),
        ("GET /rest/chaininfo.json HTTP/1.1", "", ""),
    ] {
        let ours = send(pair.lydian.port, request(&pair.lydian, line, more, body).as_bytes()).unwrap();
        let cores = send(pair.core.port, request(&pair.core, line, more, body).as_bytes()).unwrap();
        assert_eq!((ours.status, ours.body), (cores.status, cores.body), "{line} {more}");
    }
    for bad in [
        &b"POST\r\n\r\n"[..],
        b"POST / HTTP/2.0\r\n\r\n",
        b"POST / HTTP/1.1 x\r\n\r\n",
        b"POST /\x00 HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nno colon here\r\n\r\n",
        b"POST / HTTP/1.1\r\nbad name: x\r\n\r\n",
        b"POST / HTTP/1.1\r\n: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    ] {
        let status = |server: &Server| send(server.port, bad).map(|answer| answer.status).unwrap_or_default();
        assert_eq!(status(&pair.lydian), status(&pair.core), "{}", String::from_utf8_lossy(bad));
    }
    // Where we follow the standard and Core does not: an answer to HEAD has no body, and empty lines before a request
    // are ignored.
    let head = b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, pair.lydian.port)).unwrap();
    stream.write_all(head).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 ") && answer.ends_with("\r\n\r\n"), "{answer}");
    let after_lines = [b"\r\n\r\n", &pair.lydian.request(body)[..]].concat();
    assert_eq!(send(pair.lydian.port, &after_lines).unwrap().status, "HTTP/1.1 200 OK");
    // Both still answer.
    pair.ask("getblockcount", "[]");
    pair.comparison.finish();
}

/// checklist: 98
/// limit: serve::BODY_SIZE_MAX at
/// limit: serve::BODY_SIZE_MAX above
/// limit: serve::HEADERS_SIZE_MAX at
/// limit: serve::HEADERS_SIZE_MAX above
/// limit: serve::HEADER_LINES_MAX at
/// limit: serve::HEADER_LINES_MAX above
#[test]
fn sizes() {
    use lydian_serve::limits::{BODY_SIZE_MAX, HEADER_LINES_MAX, HEADERS_SIZE_MAX};
    let Some(pair) = Pair::start("sizes", &[]) else { return };
    let call = "{\"method\":\"getblockcount\",\"id\":1}";
    let large = format!("{call}{}", " ".repeat(BODY_SIZE_MAX - call.len()));
    for server in [&pair.lydian, &pair.core] {
        let answer = server.post(&large);
        assert_eq!(answer.status, "HTTP/1.1 200 OK");
        let above = format!(
            "POST / HTTP/1.1\r\nAuthorization: Basic {}\r\nContent-Length: {}\r\n\r\n",
            server.authorization(),
            BODY_SIZE_MAX + 1
        );
        let answer = send(server.port, above.as_bytes()).unwrap();
        assert_eq!((&answer.status[..], &answer.body[..]), ("HTTP/1.1 413 Content too large", ""));
    }
    let with_headers = |server: &Server, size: usize| {
        let head = format!(
            "POST / HTTP/1.1\r\nAuthorization: Basic {}\r\nContent-Length: {}\r\nX: ",
            server.authorization(),
            call.len()
        );
        let fill = "x".repeat(size - head.len() - 4);
        send(server.port, format!("{head}{fill}\r\n\r\n{call}").as_bytes()).unwrap().status
    };
    for server in [&pair.lydian, &pair.core] {
        // Both count the request line.
        assert_eq!(with_headers(server, HEADERS_SIZE_MAX), "HTTP/1.1 200 OK");
    }
    assert_eq!(with_headers(&pair.core, HEADERS_SIZE_MAX + 1), "HTTP/1.1 400 Bad Request");
    assert_eq!(with_headers(&pair.lydian, HEADERS_SIZE_MAX + 1), "HTTP/1.1 431 Request Header Fields Too Large");
    let with_lines = |count: usize| {
        let lines = "A: b\r\n".repeat(count - 2);
        let head =
            format!("Authorization: Basic {}\r\nContent-Length: {}\r\n", pair.lydian.authorization(), call.len());
        send(pair.lydian.port, format!("POST / HTTP/1.1\r\n{head}{lines}\r\n{call}").as_bytes()).unwrap().status
    };
    assert_eq!(with_lines(HEADER_LINES_MAX), "HTTP/1.1 200 OK");
    assert_eq!(with_lines(HEADER_LINES_MAX + 1), "HTTP/1.1 431 Request Header Fields Too Large");
    let chunks = |size: usize| {
        let head = format!(
            "POST / HTTP/1.1\r\nAuthorization: Basic {}\r\nTransfer-Encoding: chunked\r\n\r\n",
            pair.lydian.authorization()
        );
        let chunk = format!("{:x}\r\n{}", size, " ".repeat(size));
        send(pair.lydian.port, format!("{head}{chunk}\r\n0\r\n\r\n").as_bytes())
            .map(|answer| answer.status)
            .unwrap_or_default()
    };
    assert_eq!(chunks(BODY_SIZE_MAX), "HTTP/1.1 500 Internal Server Error", "white space alone is no JSON");
    assert_ne!(chunks(BODY_SIZE_MAX + 1), "HTTP/1.1 500 Internal Server Error");
}

/// A connection serves many requests, also if they arrive at once, and is closed when it is idle.
#[test]
fn connections_stay_and_end() {
    let Some(pair) = Pair::start("connections_stay_and_end", &["-rpcservertimeout=1"]) else { return };
    for server in [&pair.lydian, &pair.core] {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = server.request("{\"method\":\"getblockcount\",\"id\":1}");
        // A call that takes longer than the timeout is not cut off. It comes with the others: on a machine that stalls,
        // the connection may be idle for as long before the next request is sent.
        let long = server.request("{\"method\":\"waitfornewblock\",\"params\":[2500],\"id\":1}");
        (&stream).write_all(&[&request[..], &request, &request, &long].concat()).unwrap();
        let mut reader = BufReader::new(&stream);
        for _ in 0..3 {
            assert_eq!(read(&mut reader).unwrap().body, "{\"result\":0,\"error\":null,\"id\":1}\n");
        }
        assert_eq!(read(&mut reader).unwrap().status, "HTTP/1.1 200 OK");
        // Half a request, then nothing.
        (&stream).write_all(b"POST / HT").unwrap();
        let answer = read(&mut reader).map(|answer| answer.status).unwrap_or_default();
        assert_eq!(answer, "", "closed");
    }
}

/// Idle connections cost little, and their number is limited.
///
/// limit: serve::CONNECTIONS_MAX at
/// limit: serve::CONNECTIONS_MAX above
#[test]
fn many_idle_connections() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const IDLE_BYTES_MAX: u64 = 50 << 10;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let lydian = Server::lydian("many_idle_connections", &["-rpcservertimeout=0"]);
    let max = lydian_serve::limits::CONNECTIONS_MAX;
    let before = lydian.memory_bytes();
    let mut idle = Vec::new();
    while idle.len() < max {
        // Each connection has been used.
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, lydian.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        (&stream).write_all(&lydian.request("{\"method\":\"uptime\"}")).unwrap();
        assert_eq!(read(&mut BufReader::new(&stream)).unwrap().status, "HTTP/1.1 200 OK");
        idle.push(stream);
        if idle.len() == 1000 {
            let each = (lydian.memory_bytes().saturating_sub(before)) / 1000;
            assert!(each <= IDLE_BYTES_MAX, "{each} bytes for an idle connection");
        }
    }
    let answer = send(lydian.port, &lydian.request("{\"method\":\"uptime\"}"));
    assert!(answer.is_err() || answer.unwrap().status.is_empty(), "one more is closed");
    idle.pop();
    // The server may notice late that it has left.
    let is_served = || {
        send(lydian.port, &lydian.request("{\"method\":\"uptime\"}"))
            .is_ok_and(|answer| answer.status.contains(" 200 "))
    };
    until("there is a place", is_served);
}

/// One thread, a queue of one: the third call is refused.
///
/// checklist: 98
#[test]
fn a_full_queue_refuses() {
    let Some(pair) = Pair::start("a_full_queue_refuses", &["-rpcthreads=1", "-rpcworkqueue=1"]) else { return };
    // Our waits hold no thread; this call does, because it derives many keys.
    let key = "tpubD6NzVbkrYhZ4XgiXtGrdW5XDAPFCL9h7we1vwNCpn8tGbBcgfVYjXyhWo4E1xkh56hjod1RhGjxbaTLV3X4FyWuejifB9jusQ46QzG87VKp";
    let scan = format!("\"scantxoutset\",\"params\":[\"start\",[{{\"desc\":\"wpkh({key}/*)\",\"range\":[0,60000]}}]]");
    let slow = [&scan[..], "\"waitfornewblock\",\"params\":[15000]"];
    for (server, call) in [&pair.lydian, &pair.core].into_iter().zip(slow) {
        let busy = begin(server, &format!("{{\"method\":{call}}}"));
        let queued = fill_queue(server, 1);
        let answer = server.call("getblockcount", "[]");
        assert_eq!(
            (&answer.status[..], &answer.body[..]),
            ("HTTP/1.1 503 Service Unavailable", "Work queue depth exceeded")
        );
        // The queue is checked before the password and before POST, and after the path.
        for (line, expected) in [("POST /", 503), ("GET /", 503), ("DELETE /", 405), ("POST /x", 404)] {
            let wrong = format!("{line} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {}\r\n", base64(b"a:b"));
            let answer = send(server.port, format!("{wrong}Content-Length: 0\r\n\r\n").as_bytes()).unwrap();
            assert!(answer.status.starts_with(&format!("HTTP/1.1 {expected} ")), "{line}: {}", answer.status);
        }
        // What waited is answered after the first call.
        assert_eq!(read(&mut BufReader::new(&queued[0])).unwrap().status, "HTTP/1.1 200 OK");
        assert_eq!(read(&mut BufReader::new(&busy)).unwrap().status, "HTTP/1.1 200 OK");
        assert_eq!(server.call("getblockcount", "[]").status, "HTTP/1.1 200 OK");
    }
}
