//! Websockets of the Electrum server: a web page in a real browser is served if its origin is allowed, and a client
//! that is no page always.

use crate::electrum_model::Wallet;
use crate::server::Server;
use lydian_browser::{Browser, Site};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::Duration;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

const PATIENCE: Duration = Duration::from_secs(60);

/// What a wallet in a web page does: agrees on the version, asks in a batch, waits for the next block. `got`
/// has all messages.
const PAGE: &str = r"<!doctype html><title>wallet</title><link rel=icon href='data:,'><script>
const socket = new WebSocket('ws://127.0.0.1:PORT');
const got = [];
const ask = (question) => socket.send(JSON.stringify(question));
socket.onopen = () => ask({id: 0, method: 'server.version', params: ['page', '1.6']});
socket.onerror = () => got.push('error');
socket.onmessage = (event) => {
  const message = JSON.parse(event.data);
  got.push(message);
  if (message.id === 0) {
    ask([{id: 1, method: 'blockchain.headers.subscribe', params: []},
         {id: 2, method: 'blockchain.block.headers', params: [0, 2016]}]);
  }
};
</script>";

fn connect(port: u16, origin: Option<&str>) -> Option<WebSocket<TcpStream>> {
    let mut request = format!("ws://127.0.0.1:{port}/").into_client_request().unwrap();
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", origin.parse().unwrap());
    }
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    client(request, stream).ok().map(|(socket, _)| socket)
}

#[test]
fn a_web_page_is_an_electrum_wallet() {
    let site = Site::start(&[]).unwrap();
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
    let Some(browser) = Browser::start(&[]).unwrap() else { return };
    site.set("/", "text/html", &PAGE.replace("PORT", &messages.to_string()));
    let tab = browser.page().unwrap();
    tab.allow(&format!("ws://127.0.0.1:{messages}"));
    tab.open(&site.origin()).unwrap();
    let wait = |count: usize| {
        tab.wait_until(&format!("got.length >= {count}"), PATIENCE).unwrap();
        tab.evaluate("got").unwrap()
    };
    let got = wait(2);
    assert_eq!(got[0]["result"][1], "1.6", "{got}");
    assert_eq!(got[1][0]["result"]["height"], 2_020);
    let headers = got[1][1]["result"]["headers"].as_array().unwrap();
    assert_eq!((headers.len(), got[1][1]["result"]["count"].as_u64()), (2_016, Some(2_016)));
    server.result("generatetodescriptor", "[1,\"raw(51)\"]");
    let got = wait(3);
    assert_eq!(got[2]["method"], "blockchain.headers.subscribe");
    assert_eq!(got[2]["params"][0]["height"], 2_021);
    assert_eq!(tab.take_problems().unwrap(), Vec::<String>::new());
}
