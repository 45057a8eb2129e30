//! The page over real sockets: sessions, tokens, calls, live data, and everything that is refused.

use super::*;
use crate::history::{Combine, History, Series};
use crate::ports::{CallError, Reading, Topic};
use lydian_disk::SimDisk;
use lydian_serve::{Event, Users};
use lydian_stdx::{base64, lock};
use serde_json::{Map, Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// A node of numbers and texts.
#[derive(Debug, Default)]
struct Node {
    value: AtomicU64,
    calls: Mutex<Vec<String>>,
    notes: Mutex<Vec<String>>,
    history: Mutex<Option<Arc<History>>>,
    /// Users with methods that they may not call.
    forbidden: Mutex<Vec<String>>,
    /// Bytes of a text in the topic `open`.
    text: AtomicUsize,
}

impl Calls for Node {
    fn call(&self, user: &str, method: &str, params: &str) -> Result<String, CallError> {
        lock(&self.calls).push(format!("{user} {method} {params}"));
        match method {
            "getblock" => Err(CallError { code: -5, message: "Block not found".to_owned() }),
            "help" => Ok(json!("x".repeat(ANSWERS_SIZE_MAX)).to_string()),
            _ => Ok("[1]".to_owned()),
        }
    }

    fn allows(&self, user: &str, method: &str) -> bool {
        !lock(&self.forbidden).contains(&format!("{user} {method}"))
    }
}

impl Topics for Node {
    fn all(&self) -> &[Topic] {
        const TOPICS: &[Topic] = &[
            Topic { name: "open", period: Duration::ZERO, is_private: false, methods: &["getblock"] },
            Topic { name: "private", period: Duration::ZERO, is_private: true, methods: &[] },
        ];
        TOPICS
    }

    fn read(&self, topic: usize, seen: Option<u64>) -> Option<Reading> {
        let version = self.value.load(Ordering::Relaxed);
        let mut values = Map::from_iter([("a".to_owned(), json!(version))]);
        let size = self.text.load(Ordering::Relaxed);
        if topic == 0 && size > 0 {
            values.insert("text".to_owned(), json!("x".repeat(size)));
        }
        (seen != Some(version)).then_some(Reading { version, values })
    }
}

impl Past for Node {
    fn history(&self) -> Option<Arc<History>> {
        lock(&self.history).clone()
    }
}

impl Host for Node {
    fn now(&self) -> u64 {
        1_000
    }

    fn steady_millis(&self) -> u64 {
        0
    }

    fn note(&self, words: String) {
        lock(&self.notes).push(words);
    }

    fn debug(&self, _: String) {}
}

impl Metrics for Node {
    fn text(&self) -> String {
        "a 1\n".to_owned()
    }

    fn json(&self) -> Map<String, Value> {
        Map::from_iter([("a".to_owned(), json!(1))])
    }
}

impl Log for Node {
    fn event(&self, _: &Event<'_>) {}
}

/// A page, and the node behind it.
struct Page {
    node: Arc<Node>,
    server: Server,
}

/// An answer: its status line and headers, and its body.
struct Reply {
    head: String,
    body: String,
}

impl Reply {
    fn status(&self) -> u16 {
        self.head[9..12].parse().unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn sentence(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }

    fn cookie(&self) -> String {
        let line = self.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        assert!(line.ends_with("HttpOnly; SameSite=Strict"), "{line}");
        line.split(';').next().unwrap().to_owned()
    }
}

impl Page {
    fn start(has_actions: bool, is_open: bool) -> Page {
        Page::start_with(has_actions, is_open, SLOW)
    }

    /// `slow`: the time that a reader of live data may take.
    fn start_with(has_actions: bool, is_open: bool, slow: Duration) -> Page {
        let node = Arc::<Node>::default();
        let mut users = Users::default();
        users.add("me", "secret").unwrap();
        let disk = SimDisk::new(0);
        let settings = Settings {
            addresses: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
            tls: None,
            allowed: Vec::new(),
            hosts: vec!["node.example".to_owned()],
            has_actions,
            is_open,
            port: 8380,
            chain: "main",
            directory: Path::new("/page").to_owned(),
        };
        let ports = Ports {
            calls: node.clone(),
            topics: node.clone(),
            metrics: node.clone(),
            past: node.clone(),
            host: node.clone(),
            login: Login::new(users),
            disk: Arc::new(disk),
            log: node.clone(),
        };
        Page { server: Server::start_with(settings, ports, slow).unwrap(), node }
    }

    fn ask(&self, method: &str, path: &str, lines: &[&str], body: &str) -> Reply {
        let mut stream = TcpStream::connect(self.server.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let host = if lines.contains("Host:") { "" } else { "Host: localhost\r\n" };
        let size = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\n{host}{lines}Content-Length: {size}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(body.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        Reply { head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, path: &str, lines: &[&str]) -> Reply {
        self.ask("GET", path, lines, "")
    }

    /// A request for live data, with another line in its head.
    fn open_live(&self, line: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.server.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(format!("GET /api/live HTTP/1.1\r\nHost: localhost\r\n{line}\r\n").as_bytes()).unwrap();
        stream
    }

    /// The cookie and the token of a session.
    fn log_in(&self) -> (String, String) {
        let reply = self.ask("POST", "/api/login", &[], r#"{"user":"me","password":"secret"}"#);
        (format!("Cookie: {}", reply.cookie()), reply.json()["token"].as_str().unwrap().to_owned())
    }

    fn call(&self, cookie: &str, token: &str, body: &str) -> Reply {
        self.ask("POST", "/api/call", &[cookie, &format!("X-Lydian-Token: {token}")], body)
    }
}

#[test]
fn the_files_of_the_page_need_no_login() {
    let page = Page::start(false, false);
    let reply = page.get("/", &[]);
    assert_eq!(reply.status(), 200);
    assert!(reply.head.contains("content-security-policy: default-src 'none'"), "{}", reply.head);
    assert!(!reply.head.contains("access-control"), "{}", reply.head);
    assert_eq!(page.ask("POST", "/", &[], "").status(), 405);
    let reply = page.get("/etc/passwd", &[]);
    assert_eq!(
        (reply.status(), reply.sentence()),
        (404, "There is nothing at /etc/passwd. The page is at /.".to_owned())
    );
    assert_eq!(page.get("/assets/../../Cargo.toml", &[]).status(), 404);
    for path in ["/api", "/api/", "/api/none", "/api/call/x", "/api/live/", "//", "/%2e%2e/", "/assets/none.js"] {
        let reply = page.get(path, &[]);
        assert_eq!(reply.status(), 404, "{path}");
        assert!(reply.sentence().ends_with(". The page is at /."), "{path}: {}", reply.sentence());
    }
}

#[test]
fn the_past_needs_a_login_and_a_history() {
    const TABLE: &[Series] = &[Series { name: "height", unit: "blocks", combine: Combine::Last, help: "" }];
    let path = "/api/history?series=height&from=1000&to=1020";
    let page = Page::start(false, false);
    assert_eq!(page.get(path, &[]).status(), 401);
    let (cookie, _) = page.log_in();
    assert_eq!(page.get(path, &[&cookie]).status(), 503);
    let (history, _) = History::open(&SimDisk::new(0), Path::new(""), TABLE, 1_000).unwrap();
    history.record(1_005, &[Some(7.0)]).unwrap();
    let history = Arc::new(history);
    *lock(&page.node.history) = Some(Arc::clone(&history));
    let expected =
        json!({ "step": 10, "from": 1_000, "series": { "height": [7, null] }, "units": { "height": "blocks" } });
    assert_eq!(page.get(path, &[&cookie]).json(), expected);
    assert_eq!(page.get("/api/history?series=x&from=1&to=2", &[&cookie]).status(), 400);
    let page = Page::start(false, true);
    *lock(&page.node.history) = Some(history);
    assert_eq!(page.get(path, &[]).json(), expected, "reading is open");
}

#[test]
fn a_session_begins_with_a_link_or_a_password() {
    let page = Page::start(false, false);
    assert_eq!(page.get("/api/session", &[]).json()["user"], Value::Null);
    assert_eq!(page.get("/api/live", &[]).status(), 401);
    let link = page.server.first_link("me").unwrap();
    let body = json!({ "link": link }).to_string();
    let cookie = page.ask("POST", "/api/login", &[], &body).cookie();
    let session = page.get("/api/session", &[&format!("Cookie: other=1; {cookie}")]).json();
    assert_eq!((&session["user"], &session["actions"]), (&json!("me"), &json!(false)));
    assert_eq!(page.ask("POST", "/api/login", &[], &body).status(), 401, "a link logs in once");
    let wrong = page.ask("POST", "/api/login", &[], r#"{"user":"me","password":"wrong"}"#);
    assert_eq!(wrong.status(), 401);
    for bad in ["", "{}", "[]", "{\"link\":1}", "\u{0}"] {
        assert_eq!(page.ask("POST", "/api/login", &[], bad).status(), 400, "{bad:?}");
    }
    let notes = lock(&page.node.notes).join("\n");
    for words in ["me logged in from", "a wrong or used link", "a wrong password came from"] {
        assert!(notes.contains(words), "{notes}");
    }
    assert!(!notes.contains(&link));
    let (cookie, token) = page.log_in();
    assert_eq!(page.ask("POST", "/api/logout", &[&cookie], "").status(), 403, "without the token");
    assert_eq!(page.ask("POST", "/api/logout", &[&cookie, &format!("X-Lydian-Token: {token}")], "").status(), 200);
    assert_eq!(page.get("/api/live", &[&cookie]).status(), 401);
}

#[test]
fn a_program_gets_a_link_with_a_password() {
    let page = Page::start(false, false);
    assert_eq!(page.ask("POST", "/api/link", &[], "").status(), 401);
    let wrong = format!("Authorization: Basic {}", lydian_stdx::base64(b"me:wrong"));
    assert_eq!(page.ask("POST", "/api/link", &[&wrong], "").status(), 401);
    let right = format!("Authorization: Basic {}", lydian_stdx::base64(b"me:secret"));
    let reply = page.ask("POST", "/api/link", &[&right], "");
    let body = json!({ "link": reply.json()["link"] }).to_string();
    assert_eq!(page.ask("POST", "/api/login", &[], &body).json()["user"], json!("me"));
    let origin = [right.as_str(), "Origin: http://evil.example"];
    assert_eq!(page.ask("POST", "/api/link", &origin, "").status(), 403, "a browser that knows the password");
}

#[test]
fn calls_need_the_token_of_their_session() {
    let page = Page::start(false, false);
    let body = r#"{"method":"getblockcount"}"#;
    assert_eq!(page.ask("POST", "/api/call", &[], body).status(), 401);
    let ((cookie, token), (_, other)) = (page.log_in(), page.log_in());
    assert_eq!(page.ask("POST", "/api/call", &[&cookie], body).status(), 403);
    assert_eq!(page.call(&cookie, &other, body).status(), 403, "the token of another session");
    assert_eq!(page.call(&cookie, &token, body).body, r#"{"result":[1]}"#);
    let reply = page.call(&cookie, &token, r#"{"method":"getblock","params":["00",1]}"#);
    assert_eq!(reply.json(), json!({ "error": { "code": -5, "message": "Block not found" } }));
    assert_eq!(lock(&page.node.calls).join(";"), r#"me getblockcount [];me getblock ["00",1]"#);
    for (body, status) in [("", 400), ("[]", 400), (r#"{"method":7}"#, 400), (r#"{"method":"stop"}"#, 403)] {
        assert_eq!(page.call(&cookie, &token, body).status(), status, "{body}");
    }
}

#[test]
fn actions_need_an_option_and_a_login() {
    let body = r#"{"method":"setban","params":["192.0.2.1","add"]}"#;
    let page = Page::start(false, true);
    let (cookie, token) = page.log_in();
    assert!(page.call(&cookie, &token, body).sentence().contains("-pageactions"));
    let page = Page::start(true, true);
    let reply = page.ask("POST", "/api/call", &[], body);
    assert_eq!((reply.status(), reply.sentence().contains("need a login")), (403, true));
    let (cookie, token) = page.log_in();
    assert_eq!(page.call(&cookie, &token, body).status(), 200);
    let notes = lock(&page.node.notes).join("\n");
    assert!(notes.contains("setban of page was refused"), "{notes}");
    assert!(notes.contains(r#"me called setban ["192.0.2.1","add"]: done"#), "{notes}");
    assert_eq!(lock(&page.node.calls).len(), 1);
}

#[test]
fn reading_may_be_open_to_this_machine() {
    let page = Page::start(true, true);
    let read = r#"{"method":"getblockcount"}"#;
    assert_eq!(page.ask("POST", "/api/call", &[], read).status(), 200);
    assert_eq!(lock(&page.node.calls).join(";"), "page getblockcount []");
    for method in crate::methods::PRIVATE {
        let body = json!({ "method": method }).to_string();
        let reply = page.ask("POST", "/api/call", &[], &body);
        assert_eq!(
            (reply.status(), reply.sentence()),
            (401, format!("{method} needs a login. \"lydian page\" prints a link."))
        );
        let (cookie, token) = page.log_in();
        assert_eq!(page.call(&cookie, &token, &body).status(), 200);
    }
    let by_name = ["Host: node.example"];
    assert_eq!(page.ask("POST", "/api/call", &by_name, read).status(), 401, "a proxy passes others on");
    assert_eq!(page.get("/", &["Host: evil.example"]).status(), 403);
}

#[test]
fn figures_need_a_password_or_a_session() {
    let page = Page::start(false, false);
    let reply = page.get("/metrics", &[]);
    assert_eq!(reply.status(), 401);
    assert!(reply.head.contains("www-authenticate: Basic realm=\"lydian\""), "{}", reply.head);
    let login = |password: &str| format!("Authorization: Basic {}", base64(format!("me:{password}").as_bytes()));
    assert_eq!(page.get("/metrics", &[&login("wrong")]).status(), 401);
    let reply = page.get("/metrics", &[&login("secret")]);
    assert_eq!((reply.status(), reply.body.as_str()), (200, "a 1\n"));
    assert!(reply.head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{}", reply.head);
    assert_eq!(page.get("/metrics", &[&login("secret"), "Host: evil.example"]).status(), 403);
    assert_eq!(page.get("/api/figures", &[&login("secret")]).status(), 401, "a program takes the text");
    let (cookie, _) = page.log_in();
    assert_eq!(page.get("/metrics", &[&cookie]).status(), 200);
    assert_eq!(page.get("/api/figures", &[&cookie]).json(), json!({"a": 1}));
    let open = Page::start(false, true);
    assert_eq!([open.get("/metrics", &[]).status(), open.get("/api/figures", &[]).status()], [200, 200]);
}

/// What a user may not call with `-rpcwhitelist`, the page does not show either.
#[test]
fn a_limited_user_sees_only_what_its_methods_say() {
    let page = Page::start(false, false);
    let forbid = |methods: &[&str]| {
        *lock(&page.node.forbidden) = methods.iter().map(|method| format!("me {method}")).collect();
    };
    let (cookie, _) = page.log_in();
    let login = format!("Authorization: Basic {}", base64(b"me:secret"));
    let history = "/api/history?series=height&from=1000&to=1020";
    let statuses = || {
        [("/metrics", &login), ("/metrics", &cookie), ("/api/figures", &cookie), (history, &cookie)]
            .map(|(path, line)| page.get(path, &[line]).status())
    };
    assert_eq!(statuses(), [200, 200, 200, 503]);
    forbid(&["lydian_figures"]);
    assert_eq!(statuses(), [403, 403, 403, 503]);
    forbid(&["lydian_history"]);
    assert_eq!(statuses(), [200, 200, 200, 403]);
    let sentence = page.get(history, &[&cookie]).sentence();
    assert_eq!(sentence, "-rpcwhitelist does not allow lydian_history for the user me.");
    let topics = || page.get("/api/session", &[&cookie]).json()["topics"].clone();
    assert_eq!(topics(), json!(["open", "private"]));
    forbid(&["getblock"]);
    assert_eq!(topics(), json!(["private"]));
    assert_eq!(page.get("/api/session", &[]).json()["topics"], json!([]), "without a login");
    let mut stream = page.open_live(&format!("{cookie}\r\n"));
    let mut got = String::new();
    read_until(&mut stream, &mut got, "data: {\"a\":0}\n\n");
    page.node.value.store(7, Ordering::Relaxed);
    read_until(&mut stream, &mut got, "data: {\"a\":7}\n\n");
    assert!(got.contains("event: private") && !got.contains("event: open"), "{got}");
}

/// limit: BODY_SIZE_MAX at
/// limit: BODY_SIZE_MAX above
#[test]
fn a_body_has_a_greatest_size() {
    let page = Page::start(false, true);
    let body = |size: usize| {
        let begin = r#"{"method":"uptime","params":[""#;
        format!("{begin}{}\"]}}", "x".repeat(size - begin.len() - 3))
    };
    assert_eq!(page.ask("POST", "/api/call", &[], &body(BODY_SIZE_MAX)).status(), 200);
    let refused = page.ask("POST", "/api/call", &[], &body(BODY_SIZE_MAX + 1));
    assert_eq!((refused.status(), refused.sentence()), (413, "A request has at most 1048576 bytes.".to_owned()));
}

/// limit: ANSWERS_SIZE_MAX at
/// limit: ANSWERS_SIZE_MAX above
#[test]
fn answers_that_nobody_reads_are_bounded() {
    let answers = Budget::new(ANSWERS_SIZE_MAX);
    let unread = answers.room_for(ANSWERS_SIZE_MAX).unwrap();
    drop(unread);
    let page = Page::start(false, true);
    let reply = page.ask("POST", "/api/call", &[], r#"{"method":"help"}"#);
    assert_eq!(reply.body.len(), ANSWERS_SIZE_MAX + "{\"result\":\"\"}".len(), "a larger one is sent alone");
}

/// Reads until the text is there.
fn read_until(stream: &mut TcpStream, got: &mut String, text: &str) {
    let mut part = [0; 4096];
    while !got.contains(text) {
        let size = stream.read(&mut part).unwrap();
        assert!(size > 0, "the stream ended before {text:?}: {got}");
        got.push_str(&String::from_utf8_lossy(&part[..size]));
    }
}

/// A reader of live data that does not read takes a place, but holds up no one else, and loses its place.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test gives up after two minutes")]
fn a_reader_that_does_not_read_loses_its_place() {
    const TEXT_SIZE: usize = 16 << 20;
    let page = Page::start_with(false, true, Duration::from_secs(1));
    // More than the sockets hold.
    page.node.text.store(TEXT_SIZE, Ordering::Relaxed);
    let began = Instant::now();
    // All have a place at once. If the computer stops for so long that some have lost theirs by then, others try.
    let slow = loop {
        let slow: Vec<TcpStream> = (0..3).map(|_| page.open_live("")).collect();
        let have_places = (0..400).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            page.server.hub.readers() >= slow.len()
        });
        if have_places {
            break slow;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{} readers", page.server.hub.readers());
    };
    let change = || {
        assert!(began.elapsed() < Duration::from_secs(120), "{} readers", page.server.hub.readers());
        page.node.value.fetch_add(1, Ordering::Relaxed);
        assert_eq!(page.get("/", &[]).status(), 200, "others are served");
        std::thread::sleep(Duration::from_millis(50));
    };
    while page.server.hub.readers() > 0 {
        change();
    }
    page.node.text.store(0, Ordering::Relaxed);
    page.node.value.fetch_add(1, Ordering::Relaxed);
    let mut stream = page.open_live("");
    read_until(&mut stream, &mut String::new(), "event: open");
    assert_eq!(page.server.hub.readers(), 1);
    drop(slow);
}

#[test]
fn live_data_comes_as_it_changes() {
    let page = Page::start(false, true);
    let open = |line: &str| page.open_live(line);
    let (mut stream, mut got) = (open(""), String::new());
    read_until(&mut stream, &mut got, "data: {\"a\":0}\n\n");
    assert!(got.contains("content-type: text/event-stream") && !got.contains("event: private"), "{got}");
    page.node.value.store(7, Ordering::Relaxed);
    read_until(&mut stream, &mut got, "data: {\"a\":7}\n\n");
    let (cookie, _) = page.log_in();
    let (mut stream, mut got) = (open(&format!("{cookie}\r\n")), String::new());
    read_until(&mut stream, &mut got, "event: private");
    let streams: Vec<TcpStream> = (2..STREAMS_MAX).map(|_| open("")).collect();
    for mut stream in streams.iter().map(|stream| stream.try_clone().unwrap()) {
        read_until(&mut stream, &mut String::new(), "event: open");
    }
    let refused = page.get("/api/live", &[]);
    assert_eq!((refused.status(), refused.sentence().contains("64 pages are open")), (503, true));
    drop(streams);
    assert_eq!(page.get("/", &[]).status(), 200, "others are served");
}
