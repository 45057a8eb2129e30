//! Warnings are first on the overview, say what to do, and are gone with their cause. What they are derived from:
//! `rpc/warnings.rs`.

use crate::stage::{PATIENCE, Stage, expect_no_problems, go};
use crate::texts::greeting;
use serde_json::json;
use std::fs;
use std::io::Write;
use std::net::TcpListener;

/// The text of the warnings, which stand above the sentence; empty if there are none.
const TEXT: &str = "((first) => first.classList.contains('warnings') ? first.textContent : 'not first')\
    (document.querySelector('main .warnings, main .hero'))";

/// Accepts one peer, whose clock shows 1970. It is connected until the test ends.
fn peer_with_wrong_clock() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&greeting("/wrong clock/", 86_400)).unwrap();
        std::io::copy(&mut stream, &mut std::io::sink())
    });
    address
}

#[test]
fn warnings_come_first_and_say_what_to_do() {
    let Some(mut stage) = Stage::start("warnings_come_first_and_say_what_to_do", &[]) else { return };
    let file = stage.server.folder.join("regtest/blocks/index/sigengine-disagreement-1.json");
    stage.server.kill();
    fs::write(&file, "{}").unwrap();
    let port = format!("-pageport={}", stage.port);
    stage.server.start_again(&["-page", &port, "-v2transport=0"]);
    let page = stage.enter();
    go(&page, "overview");
    let until = |what: &str, is_so: &str| {
        let shown = || page.evaluate(TEXT).unwrap();
        page.wait_until(is_so, PATIENCE).unwrap_or_else(|error| panic!("{what}: {error}: {}", shown()));
    };
    let has = |text: &str| format!("{TEXT}.includes('{text}')");
    until("the engine", &has("A signature engine was wrong (sigengine-disagreement-1.json)."));
    until("what to do about it", &has("Run lydian -reindex -sigengine=reference once"));
    assert_eq!(page.evaluate("document.querySelectorAll('main .warnings [role=alert]').length").unwrap(), 1);
    for _ in 0..5 {
        stage.call("addnode", &json!([peer_with_wrong_clock(), "onetry"]));
    }
    until("the clock", &has("more than 10 minutes out of sync with the network"));
    until("what to do about it", &has("Set the clock of this machine, or start a time service"));
    fs::remove_file(&file).unwrap();
    until("the files are gone", &format!("!{} && {}", has("signature engine"), has("out of sync")));
    expect_no_problems(&page, "warnings");
}
