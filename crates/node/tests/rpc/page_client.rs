//! A client of the page for its tests: logs in, calls methods, and reads the live data.

use crate::http::{Answer, send};
use crate::peers::PATIENCE;
use crate::server::Server;
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// A reader of the page, with or without a login.
pub(crate) struct Client {
    pub(crate) port: u16,
    /// The cookie of the session; empty without one.
    pub(crate) cookie: String,
    pub(crate) token: String,
}

impl Client {
    /// A reader without a login, for `-pageopen`.
    pub(crate) fn anonymous(port: u16) -> Client {
        Client { port, cookie: String::new(), token: String::new() }
    }

    /// Logs in with a password.
    pub(crate) fn log_in(port: u16, user: &str, password: &str) -> Client {
        let body = json!({"user": user, "password": password}).to_string();
        let answer = request(port, "POST", "/api/login", "", &body);
        assert!(answer.status.contains(" 200 "), "{answer:?}");
        let cookie = answer.headers.iter().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let session: Value = serde_json::from_str(&answer.body).unwrap();
        Client {
            port,
            cookie: cookie.split(';').next().unwrap().to_owned(),
            token: session["token"].as_str().unwrap().to_owned(),
        }
    }

    /// Logs in as the user of the cookie file.
    pub(crate) fn of_cookie(server: &Server, port: u16) -> Client {
        let cookie = fs::read_to_string(server.cookie()).unwrap();
        let (user, password) = cookie.trim().split_once(':').unwrap();
        Client::log_in(port, user, password)
    }

    /// The headers of a request of the page.
    pub(crate) fn headers(&self) -> String {
        let Client { port, cookie, token } = self;
        let login = match cookie.as_str() {
            "" => String::new(),
            cookie => format!("Cookie: {cookie}\r\nX-Lydian-Token: {token}\r\n"),
        };
        format!("Origin: http://127.0.0.1:{port}\r\n{login}")
    }

    /// A request with the headers of the page.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        request(self.port, method, path, &self.headers(), body)
    }

    /// `POST /api/call` with other headers.
    pub(crate) fn call_with(&self, headers: &str, method: &str, params: &Value) -> Answer {
        request(self.port, "POST", "/api/call", headers, &json!({"method": method, "params": params}).to_string())
    }

    pub(crate) fn call(&self, method: &str, params: &Value) -> Answer {
        self.call_with(&self.headers(), method, params)
    }

    /// The result of a call, or the code and the sentence of its error.
    pub(crate) fn try_result(&self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        let answer = self.call(method, params);
        let mut body: Value = serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{method}: {answer:?}"));
        match body.get("error").filter(|error| !error.is_null()) {
            Some(error) => {
                Err((error["code"].as_i64().unwrap_or_default(), error["message"].as_str().unwrap().to_owned()))
            }
            None => Ok(body["result"].take()),
        }
    }

    /// The result of a call that succeeds.
    pub(crate) fn result(&self, method: &str, params: &Value) -> Value {
        self.try_result(method, params).unwrap_or_else(|error| panic!("{method} {params}: {error:?}"))
    }

    /// The live data: first all topics as they are now, then their changes.
    pub(crate) fn live(&self) -> Live {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (port, headers) = (self.port, self.headers());
        write!(stream, "GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}\r\n").unwrap();
        Live(BufReader::new(stream))
    }

    /// A topic as it is now.
    pub(crate) fn topic(&self, name: &str) -> Map<String, Value> {
        self.live().next_of(name)
    }

    /// The topics that this reader gets first.
    pub(crate) fn topics(&self) -> Vec<String> {
        let mut live = self.live();
        let begin = live.next_of("begin");
        let names: Vec<String> = serde_json::from_value(begin["topics"].clone()).unwrap();
        let got: Vec<String> = names.iter().map(|_| live.next().0).collect();
        assert_eq!(got, names, "every topic that is named comes");
        names
    }
}

/// The stream of live data.
pub(crate) struct Live(BufReader<TcpStream>);

impl Live {
    /// The name of the next topic that changed, with its changes.
    pub(crate) fn next(&mut self) -> (String, Map<String, Value>) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            let line = line.trim_end();
            if let Some(event) = line.strip_prefix("event: ") {
                event.clone_into(&mut name);
            } else if let Some(data) = line.strip_prefix("data: ").filter(|_| !name.is_empty()) {
                return (name, serde_json::from_str(data).unwrap());
            }
        }
    }

    /// The next changes of a topic.
    pub(crate) fn next_of(&mut self, topic: &str) -> Map<String, Value> {
        loop {
            let (name, changes) = self.next();
            if name == topic {
                return changes;
            }
        }
    }
}

/// A request to the page, on a connection of its own.
pub(crate) fn request(port: u16, method: &str, path: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}Content-Length: {length}\r\n\r\n");
    send(port, [head.as_bytes(), body.as_bytes()].concat().as_slice()).unwrap()
}

/// Waits until a function returns something.
pub(crate) fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
