//! Texts of peers and miners are hostile: on the page they are text.

use crate::stage::{PATIENCE, Stage, expect_no_problems, go, panels};
use lydian_consensus::{Chain, Params};
use lydian_wire::message::{PROTOCOL_VERSION, Version};
use lydian_wire::transport::Transport;
use lydian_wire::{Endpoint, Message, Services};
use std::io::Write;
use std::net::TcpStream;

/// Opens a dialog if it is ever HTML, which is a problem of the page.
const HOSTILE: &str = "<img src=x onerror=alert(1)>";

/// What a peer with this user agent and this time sends first.
pub(crate) fn greeting(user_agent: &str, time: i64) -> Vec<u8> {
    let version = Version {
        version: PROTOCOL_VERSION,
        services: Services::NETWORK | Services::WITNESS,
        time,
        receiver_services: Services::NONE,
        receiver: Endpoint::default(),
        nonce: 7,
        user_agent: user_agent.as_bytes().to_vec(),
        start_height: 0,
        relay: true,
    };
    let mut transport = Transport::v1(Params::new(Chain::Regtest).magic);
    for message in [Message::Version(Box::new(version)), Message::Verack] {
        transport.send_message(&message);
    }
    transport.take_output()
}

/// The handshake of a peer with this user agent.
fn hostile_peer(port: u16, user_agent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(&greeting(user_agent, 1_790_000_000)).unwrap();
    stream
}

#[test]
fn texts_of_peers_and_miners_are_text() {
    let port = lydian_oracle::free_port().unwrap();
    let bind = format!("-bind=127.0.0.1:{port}");
    // The log and the settings have what is on the command line; nothing ever runs this command.
    let command = format!("-alertnotify={HOSTILE}");
    let options = ["-listen=1", &bind, "-pageactions", "-txindex", "-debug=net", &command];
    let Some(stage) = Stage::start("texts_of_peers_and_miners_are_text", &options) else { return };
    stage.mine(5, 1);
    // Panels cut long texts.
    let shown = &HOSTILE[..20];
    let hash = stage.mine_with_text(format!("/{HOSTILE}/").as_bytes());
    let _peer = hostile_peer(port, &format!("/{HOSTILE}:1.0/"));
    let page = stage.enter();
    let has = |text: &str| format!("document.querySelector('main').textContent.includes('{text}')");
    let no_html = |what: &str| {
        let made = page.evaluate("document.querySelectorAll('main img, dialog img').length").unwrap();
        assert_eq!(made, 0, "{what}");
        expect_no_problems(&page, what);
    };
    // As in Core, a user agent is shown without the characters of HTML.
    for (panel, expected) in [("peers", "img srcx onerroralert(1)"), ("blocks", shown), ("miners", shown)] {
        go(&page, panel);
        page.wait_until(&has(expected), PATIENCE).unwrap_or_else(|error| panic!("{panel}: {error}"));
        no_html(panel);
    }
    go(&page, "log");
    for expected in [HOSTILE, "img srcx onerroralert(1)"] {
        page.wait_until(&has(expected), PATIENCE).unwrap_or_else(|error| panic!("log: {error}"));
    }
    no_html("log");
    go(&page, "peers");
    page.click("main table button.link").unwrap();
    page.wait_until("document.querySelector('dialog').textContent.includes('onerror')", PATIENCE).unwrap();
    no_html("a peer");
    page.press("Escape").unwrap();
    page.evaluate(&format!("location.hash = '#/explorer?q={hash}'")).unwrap();
    page.wait_until(&has("in the active chain"), PATIENCE).unwrap();
    for panel in panels(&page) {
        go(&page, &panel);
        no_html(&panel);
    }
    // A search for HTML, and a panel and a link of that name.
    for hash in ["#/explorer?q=", "#/", "#link="] {
        page.evaluate(&format!("location.hash = '{hash}' + encodeURIComponent('{HOSTILE}')")).unwrap();
        page.listen(std::time::Duration::from_millis(500)).unwrap();
        let made = page.evaluate("document.querySelectorAll('main img, dialog img').length").unwrap();
        assert_eq!(made, 0, "{hash}");
        let problems = page.take_problems().unwrap();
        assert!(!problems.iter().any(|one| one.contains("dialog")), "{hash}: {problems:?}");
    }
}
