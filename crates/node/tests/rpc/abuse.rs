//! Clients that hold connections, guess passwords, do not read answers or leave: the server continues to answer others,
//! in bounded memory.

use crate::http::{read, send};
use crate::server::Server;
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_primitives::to_hex;
use lydian_stdx::base64;
use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longer than any answer takes here, on a busy machine or an emulated one.
const PATIENCE: Duration = Duration::from_secs(240);

const MB: u64 = 1 << 20;

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a call and does not read the answer.
pub(crate) fn begin(server: &Server, body: &str) -> TcpStream {
    let mut stream = connect(server);
    stream.write_all(&server.request(body)).unwrap();
    stream
}

pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The peak memory of the program.
pub(crate) fn peak_bytes(server: &Server) -> u64 {
    let status = server.proc("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// The number of calls in progress, without this one.
pub(crate) fn active(server: &Server) -> usize {
    server.result("getrpcinfo", "[]")["active_commands"].as_array().unwrap().len() - 1
}

/// Whether a call is answered within a while, and with what. The connection of one that is not answered stays open.
fn answered(stream: &TcpStream) -> Option<String> {
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let is_answered = stream.peek(&mut [0]).is_ok();
    stream.set_read_timeout(Some(LONG)).unwrap();
    is_answered.then(|| read(&mut BufReader::new(stream)).unwrap().body)
}

/// Longer than the work before a call in the queue takes.
const LONG: Duration = Duration::from_secs(300);

/// Sends calls to a server whose only thread is busy until its queue, of this length, is full. Returns the calls that
/// wait: a busy machine may need a while to begin the work and to queue them.
pub(crate) fn fill_queue(server: &Server, length: usize) -> Vec<TcpStream> {
    let (mut waiting, began) = (Vec::new(), Instant::now());
    loop {
        let stream = begin(server, "{\"method\":\"getblockcount\"}");
        match answered(&stream) {
            None => waiting.push(stream),
            Some(body) if body == "Work queue depth exceeded" => {
                // Answers come late too: one of those that seem to wait may have been refused.
                waiting.retain(|stream| answered(stream).is_none());
                if waiting.len() == length {
                    return waiting;
                }
            }
            // The work has not begun.
            Some(body) => assert!(body.starts_with("{\"result\":"), "{body}"),
        }
        assert!(began.elapsed() < PATIENCE, "{} calls wait", waiting.len());
    }
}

/// A call that occupies a thread for seconds, because it derives many keys.
const SLOW: &str = "{\"method\":\"scantxoutset\",\"params\":[\"start\",[{\"desc\":\"wpkh(tpubD6NzVbkrYhZ4XgiXtGrdW5XDAPFCL9h7we1vwNCpn8tGbBcgfVYjXyhWo4E1xkh56hjod1RhGjxbaTLV3X4FyWuejifB9jusQ46QzG87VKp/*)\",\"range\":[0,60000]}]],\"id\":1}";

/// Regression test. A header that arrived byte by byte kept its connection open for ever, because each byte restarted
/// the time of `-rpcservertimeout`. The time now applies to the whole header.
#[test]
fn a_slow_header_ends() {
    let lydian = Server::lydian("slow_header", &["-rpcservertimeout=1"]);
    let mut stream = connect(&lydian);
    let began = Instant::now();
    let is_open = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let answer = stream.read(&mut [0]);
        answer.is_err_and(|error| matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut))
    };
    for byte in b"POST / HTTP/1.1\r\nHost: a very slow client that goes on and on\r\n".iter().cycle() {
        if stream.write_all(&[*byte]).is_err() || !is_open(&mut stream) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "the connection is open after {:?}", began.elapsed());
    }
    assert_eq!(lydian.call("uptime", "[]").status, "HTTP/1.1 200 OK");
}

/// Regression test. 2,048 half-open connections locked every client out for 30 seconds. A new connection now takes the
/// place of the oldest half-open one.
#[test]
fn half_open_connections() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let lydian = Server::lydian("half_open", &[]);
    let half_open: Vec<TcpStream> = (0..lydian_serve::limits::CONNECTIONS_MAX + 100)
        .map(|_| {
            let mut stream = connect(&lydian);
            stream.write_all(b"POST / HTTP/1.1\r\n").unwrap();
            stream
        })
        .collect();
    for _ in 0..10 {
        assert_eq!(lydian.call("uptime", "[]").status, "HTTP/1.1 200 OK");
    }
    drop(half_open);
}

/// Regression test. 800 connections could make 3,200 guesses a second, while all of Core's threads together can make
/// 64. The cookie, and a connection on which a password was correct, do not wait for the guesses.
///
/// checklist: 99
#[test]
fn guesses_are_slow() {
    const SECONDS: u64 = 2;
    const CALLS_MIN: usize = 10;
    const CONNECTIONS: usize = 200;
    let lydian = Server::lydian(
        "guesses",
        &[
            "-rpcauth=rt:93648e835a54c573682c2eb19f882535$7681e9c5b74bdd85e78166031d2058e1069b3ed7ed967c93fc63abba06f31144",
        ],
    );
    let with_password = |password: &str| {
        let call = "{\"method\":\"uptime\"}";
        let coded = base64(format!("rt:{password}").as_bytes());
        format!("POST / HTTP/1.1\r\nAuthorization: Basic {coded}\r\nContent-Length: {}\r\n\r\n{call}", call.len())
    };
    let right = with_password("cA773lm788buwYe4g4WT+05pKyNruVKjQ25x3n0DQcM=");
    let mut user = connect(&lydian);
    let ask = |user: &mut TcpStream| {
        user.write_all(right.as_bytes()).unwrap();
        read(&mut BufReader::new(user)).unwrap().status
    };
    assert_eq!(ask(&mut user), "HTTP/1.1 200 OK");
    let (guesses, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (began, mut waited) = (Instant::now(), Vec::new());
    let elapsed = std::thread::scope(|scope| {
        for thread in 0..4 {
            let (guesses, is_over, lydian) = (&guesses, &is_over, &lydian);
            let wrong = with_password(&format!("guess {thread}"));
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let streams: Vec<TcpStream> = (0..CONNECTIONS / 4)
                        .map(|_| {
                            let mut stream = connect(lydian);
                            // The server may have closed it in favour of a newer one.
                            let _ = stream.write_all(wrong.as_bytes());
                            stream
                        })
                        .collect();
                    for stream in streams {
                        let status = read(&mut BufReader::new(stream)).map(|answer| answer.status).unwrap_or_default();
                        assert!(!status.contains(" 200 "));
                        guesses.fetch_add(usize::from(status.contains(" 401 ")), Ordering::SeqCst);
                    }
                }
            });
        }
        // On a machine that stalls, this takes longer.
        let is_enough = |calls: usize| calls >= CALLS_MIN && guesses.load(Ordering::SeqCst) > 0;
        let is_over_soon = |calls: usize| began.elapsed() > Duration::from_secs(SECONDS) && is_enough(calls);
        while !is_over_soon(waited.len()) && began.elapsed() < PATIENCE {
            let asked = Instant::now();
            assert_eq!(lydian.call("uptime", "[]").status, "HTTP/1.1 200 OK");
            assert_eq!(ask(&mut user), "HTTP/1.1 200 OK");
            waited.push(asked.elapsed());
            std::thread::sleep(Duration::from_millis(50));
        }
        let elapsed = began.elapsed();
        let count = guesses.load(Ordering::SeqCst);
        is_over.store(true, Ordering::SeqCst);
        (elapsed, count)
    });
    let (elapsed, count) = elapsed;
    let most = 16 + 64 * (usize::try_from(elapsed.as_millis()).unwrap() + 500) / 1_000;
    assert!((1..=most).contains(&count), "{count} guesses in {elapsed:?}");
    // Behind the guesses, each call would wait for three seconds. The machine may delay a few of them as long.
    waited.sort_unstable();
    assert!(waited[waited.len() / 2] < Duration::from_secs(2), "honest clients waited {waited:?}");
}

/// Regression test. A batch whose invalid members repeat an id of a megabyte has an answer of 500 GB, which took all
/// memory. The answer is now sent while it is made, and its thread is free when the client has left.
#[test]
fn an_answer_without_end() {
    let lydian = Server::lydian("endless", &["-rpcthreads=1"]);
    let before = peak_bytes(&lydian);
    let id = "x".repeat(1_000_000);
    let body = format!("[{{\"method\":\"getblockcount\",\"id\":\"{id}\"}}{}]", ",5".repeat(500_000));
    let mut stream = begin(&lydian, &body);
    let mut answer = vec![0; 200_000_000];
    stream.read_exact(&mut answer).unwrap();
    let head = String::from_utf8_lossy(&answer[..300]).to_lowercase();
    assert!(head.starts_with("http/1.1 200 ok") && head.contains("transfer-encoding: chunked"), "{head}");
    assert_eq!(answer.windows(16).filter(|window| *window == b"\"code\":-32600,\"m").count() / 50, 3, "150 to 199");
    let grown = peak_bytes(&lydian) - before;
    assert!(grown < 150 * MB, "{grown} bytes more");
    drop(stream);
    until("the thread is free", || lydian.call("uptime", "[]").status == "HTTP/1.1 200 OK");
}

/// Comparing answers with their descriptions takes memory.
const UNCHECKED: &[&str] = &["-rpcdoccheck=0"];

/// Regression test: 32 MB of parameters took 759 MB.
///
/// limit: rpc::JSON_VALUES_MAX at
/// limit: rpc::JSON_VALUES_MAX above
/// limit: rpc::PARSED_SIZE_MAX at
/// limit: rpc::PARSED_SIZE_MAX above
/// limit: serve::BODIES_SIZE_MAX at
/// limit: serve::BODIES_SIZE_MAX above
/// limit: serve::BODY_SIZE_SMALL at
/// limit: serve::BODY_SIZE_SMALL above
#[test]
fn parameters_without_number() {
    use lydian_rpc::limits::{JSON_VALUES_MAX, PARSED_SIZE_MAX};
    use lydian_serve::limits::{BODIES_SIZE_MAX, BODY_SIZE_MAX};
    let lydian = Server::lydian("parameters", UNCHECKED);
    let before = peak_bytes(&lydian);
    // The object, its members and the inner array are values too.
    let call = |values: usize| {
        let params = vec!["0"; values - 5].join(",");
        format!("{{\"method\":\"echo\",\"params\":[[{params}]],\"id\":1}}")
    };
    let at = lydian.post(&call(JSON_VALUES_MAX));
    assert_eq!(at.status, "HTTP/1.1 200 OK", "{:.200}", at.body);
    let above = lydian.post(&call(JSON_VALUES_MAX + 1));
    assert_eq!(above.status, "HTTP/1.1 400 Bad Request");
    let words = format!("\"code\":-32600,\"message\":\"Request has more than {JSON_VALUES_MAX} JSON values\"");
    assert!(above.body.contains(&words), "{:.200}", above.body);
    // Twelve concurrent bodies of 8 MB, each with as many values as are permitted: together above both budgets.
    let spaces = " ".repeat(8 << 20);
    let body = format!("{}{spaces}", call(JSON_VALUES_MAX));
    assert!(
        12 * body.len() > BODIES_SIZE_MAX && 12 * 72 * JSON_VALUES_MAX > PARSED_SIZE_MAX && body.len() < BODY_SIZE_MAX
    );
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                until("a call is answered", || {
                    let answer = lydian.post(&body);
                    // On a slow machine, it may have waited in vain for the others to return their memory.
                    let is_late = answer.body.contains("Other requests use all the memory for parameters");
                    assert!(is_late || answer.status == "HTTP/1.1 200 OK", "{:.200}", answer.body);
                    !is_late
                });
            });
        }
    });
    let grown = peak_bytes(&lydian) - before;
    assert!(grown < 300 * MB, "{grown} bytes more");
}

/// Regression test. 60 answers of 14 MB that no client read held 855 MB. Clients that do not read are now cut off when
/// others need the memory.
///
/// limit: rpc::ANSWERS_SIZE_MAX at
/// limit: rpc::ANSWERS_SIZE_MAX above
/// limit: rpc::ANSWER_BUFFERED_SIZE_MAX at
/// limit: rpc::ANSWER_BUFFERED_SIZE_MAX above
#[test]
fn answers_that_are_not_read() {
    use lydian_rpc::limits::{ANSWER_BUFFERED_SIZE_MAX, ANSWERS_SIZE_MAX};
    let lydian = Server::lydian("unread", UNCHECKED);
    let settings = MixSettings { blocks: 443, full: 2, seed: 5, reuse_per_mille: 0 };
    mainnet_mix::generate(settings, 2, |block| {
        lydian.call("submitblock", &format!("[\"{}\"]", to_hex(block)));
        Ok(())
    })
    .unwrap();
    assert_eq!(lydian.result("getblockcount", "[]"), 443);
    let tip = lydian.result("getbestblockhash", "[]");
    let call = format!("{{\"method\":\"getblock\",\"params\":[{tip},3],\"id\":1}}");
    let whole = lydian.post(&call);
    let size = whole.body.len();
    assert!(whole.headers.iter().any(|header| header.to_lowercase() == format!("content-length: {size}")));
    let before = peak_bytes(&lydian);
    let count = 6 * ANSWERS_SIZE_MAX / size;
    let unread: Vec<TcpStream> = (0..count).map(|_| begin(&lydian, &call)).collect();
    // The other client's answer is made while all of these wait. On a slow machine, it may be cut off too.
    let answered = || send(lydian.port, &lydian.request(&call)).is_ok_and(|answer| answer.body == whole.body);
    until("the other client has its answer", answered);
    until("all are answered or cut off", || active(&lydian) == 0);
    let grown = peak_bytes(&lydian) - before;
    // Each of the 16 threads makes one answer, from a block with its undo data, before it reserves room for it.
    let in_hand = 16 * (size as u64 + 8 * MB);
    assert!(grown < ANSWERS_SIZE_MAX as u64 + in_hand, "{count} answers of {size} bytes take {grown}");
    drop(unread);
    // A batch's answer has a length up to a limit, and is sent in chunks above it.
    let batch = |count: usize| format!("[{}]", vec![&call[..]; count].join(","));
    let count = ANSWER_BUFFERED_SIZE_MAX / size;
    let has_length = |body: &str| {
        let answer = send(lydian.port, &closing(&lydian.request(body))).unwrap();
        assert_eq!(answer.status, "HTTP/1.1 200 OK");
        answer.headers.iter().any(|header| header.to_lowercase().starts_with("content-length"))
    };
    // Until the server has noticed that the others left, memory is short.
    until("the answer has a length", || has_length(&batch(count)));
    assert!(!has_length(&batch(count + 2)));
}

/// A request that asks to close the connection, so that an answer without length ends too.
fn closing(request: &[u8]) -> Vec<u8> {
    let line = b"POST / HTTP/1.1\r\n";
    [line, &b"Connection: close\r\n"[..], &request[line.len()..]].concat()
}

/// Regression test. Each wait held a thread of `-rpcthreads`, even after its client had left: with 16 of them no call
/// was answered any more, not even `stop`.
#[test]
fn waits_hold_no_thread() {
    let mut lydian = Server::lydian("waits", &["-rpcthreads=1", "-rpcworkqueue=4"]);
    let calls = [
        "{\"method\":\"waitfornewblock\",\"params\":[0]}",
        "{\"method\":\"waitforblockheight\",\"params\":[7]}",
        "{\"method\":\"waitforblock\",\"params\":[\"0000000000000000000000000000000000000000000000000000000000000001\"]}",
        "[{\"method\":\"getblockcount\",\"id\":1},{\"method\":\"waitfornewblock\",\"params\":[0],\"id\":2}]",
    ];
    let mut waiting = Vec::new();
    for call in calls.iter().cycle().take(40) {
        waiting.push(begin(&lydian, call));
        let count = waiting.len();
        until("it waits", || active(&lydian) == count);
    }
    // Clients that leave no longer wait.
    waiting.truncate(8);
    until("the others have left", || active(&lydian) == 8);
    // A block ends some of the calls, and the others continue.
    lydian.result("generatetodescriptor", "[1,\"raw(51)\"]");
    until("the block ended two of each four", || active(&lydian) == 4);
    let batch = read(&mut BufReader::new(&waiting[3])).unwrap();
    assert!(batch.body.starts_with("[{\"result\":0,\"error\":null,\"id\":1},{\"result\":{\"hash\":"), "{}", batch.body);
    assert!(batch.body.ends_with("\"height\":1},\"error\":null,\"id\":2}]\n"), "{}", batch.body);
    // The only thread is busy, and the queue is full.
    let slow = begin(&lydian, SLOW);
    let queued = fill_queue(&lydian, 4);
    assert_eq!(lydian.call("getblockcount", "[]").body, "Work queue depth exceeded");
    assert_eq!(lydian.result("stop", "[]"), "Lydian stopping");
    assert_eq!(lydian.wait(), Some(0));
    drop((slow, queued, waiting));
}

/// Regression test. A client that left while its call was in the queue kept its place there for ever: with 64 of them,
/// every call was refused.
#[test]
fn a_client_that_leaves_gives_its_place_in_the_queue_back() {
    let lydian = Server::lydian("queue", &["-rpcthreads=1", "-rpcworkqueue=2"]);
    let slow = begin(&lydian, SLOW);
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..3 {
        let queued = [begin(&lydian, "{\"method\":\"uptime\"}"), begin(&lydian, "{\"method\":\"uptime\"}")];
        std::thread::sleep(Duration::from_millis(200));
        drop(queued);
        std::thread::sleep(Duration::from_millis(200));
    }
    // The server may notice late that the last ones have left.
    until("there is a place", || lydian.call("uptime", "[]").status == "HTTP/1.1 200 OK");
    drop(slow);
}
