//! Websockets of the Electrum server: a web page in a real browser is served if its origin is allowed, and a client
//! that is no page always.

use crate::electrum_model::Wallet;
use crate::server::Server;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// What a wallet in a web page does: agrees on the version, asks in a batch, waits for the next block. It posts all
/// messages that it got to the site that it comes from.
const PAGE: &str = r"<!doctype html><title>wallet</title><script>
const socket = new WebSocket('ws://127.0.0.1:PORT');
const got = [];
const report = () => fetch('/', {method: 'POST', body: JSON.stringify(got)});
const ask = (question) => socket.send(JSON.stringify(question));
socket.onopen = () => ask({id: 0, method: 'server.version', params: ['page', '1.6']});
socket.onerror = () => { got.push('error'); report(); };
socket.onmessage = (event) => {
  const message = JSON.parse(event.data);
  got.push(message);
  if (message.id === 0) {
    ask([{id: 1, method: 'blockchain.headers.subscribe', params: []},
         {id: 2, method: 'blockchain.block.headers', params: [0, 2016]}]);
  } else report();
};
</script>";

/// A site with the page, on a port of its own.
struct Site(TcpListener);

impl Site {
    fn origin(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }

    /// Serves the page until it posts what it got.
    fn wait(&self, page: &str) -> Value {
        loop {
            let (stream, _) = self.0.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let mut reader = BufReader::new(stream);
            let (mut request, mut size) = (String::new(), 0);
            if reader.read_line(&mut request).unwrap_or(0) == 0 {
                continue;
            }
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(length) = line.to_lowercase().strip_prefix("content-length:") {
                    size = length.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; size];
            reader.read_exact(&mut body).unwrap();
            let answer = if request.starts_with("GET / ") { page } else { "" };
            let head = format!("Content-Type: text/html\r\nContent-Length: {}\r\nConnection: close", answer.len());
            write!(reader.get_mut(), "HTTP/1.1 200 OK\r\n{head}\r\n\r\n{answer}").unwrap();
            if request.starts_with("POST") {
                return serde_json::from_slice(&body).unwrap();
            }
        }
    }
}

/// A browser, killed when dropped.
struct Browser {
    child: Child,
    profile: PathBuf,
}

impl Browser {
    /// `None`: this machine has none, which `LYDIAN_REQUIRE_BROWSER=1` makes a failure.
    fn open(url: &str) -> Option<Browser> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::env::split_paths(&folders).flat_map(|folder| BROWSERS.map(|name| folder.join(name)));
        let Some(program) = paths.into_iter().find(|path| path.is_file()) else {
            let text = "NOT RUN: no browser; apt-get install chromium\n";
            assert!(std::env::var_os("LYDIAN_REQUIRE_BROWSER").is_none_or(|value| value != "1"), "{text}");
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            return None;
        };
        let profile = std::env::temp_dir().join(format!("lydian-browser-{}", std::process::id()));
        let child = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Browser { child, profile })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn connect(port: u16, origin: Option<&str>) -> Option<WebSocket<TcpStream>> {
    let mut request = format!("ws://127.0.0.1:{port}/").into_client_request().unwrap();
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", origin.parse().unwrap());
    }
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client(request, stream).ok().map(|(socket, _)| socket)
}

#[test]
fn a_web_page_is_an_electrum_wallet() {
    let site = Site(TcpListener::bind("127.0.0.1:0").unwrap());
    let [lines, messages] = [(); 2].map(|()| lydian_oracle::free_port().unwrap());
    let options = [
        "-electrum".to_owned(),
        "-electrumtlsbind=0".to_owned(),
        format!("-electrumbind=127.0.0.1:{lines}"),
        format!("-electrumwsbind=127.0.0.1:{messages}"),
        format!("-electrumcors={}", site.origin()),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::lydian("a_web_page_is_an_electrum_wallet", &options);
    server.result("generatetodescriptor", "[2020,\"raw(51)\"]");
    drop(Wallet::connect(lines, "1.6"));
    let ping = json!({"id": 7, "method": "server.ping", "params": []}).to_string();
    for port in [lines, messages] {
        assert!(connect(port, Some("https://other.example")).is_none(), "a page of another site");
        let mut socket = connect(port, None).unwrap();
        socket.send(Message::text(ping.clone())).unwrap();
        let answer: Value = serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap();
        assert_eq!((&answer["id"], answer["result"].is_null()), (&json!(7), true));
        // An endless message ends the connection.
        let endless = "x".repeat((2 << 20) + 1);
        assert!(socket.send(Message::text(endless)).is_err() || !socket.read().is_ok_and(|message| message.is_text()));
    }
    let page = PAGE.replace("PORT", &messages.to_string());
    let Some(_browser) = Browser::open(&site.origin()) else { return };
    let got = site.wait(&page);
    assert_eq!(got[0]["result"][1], "1.6", "{got}");
    assert_eq!(got[1][0]["result"]["height"], 2_020);
    let headers = got[1][1]["result"]["headers"].as_array().unwrap();
    assert_eq!((headers.len(), got[1][1]["result"]["count"].as_u64()), (2_016, Some(2_016)));
    server.result("generatetodescriptor", "[1,\"raw(51)\"]");
    let got = site.wait(&page);
    assert_eq!(got[2]["method"], "blockchain.headers.subscribe");
    assert_eq!(got[2]["params"][0]["height"], 2_021);
}
