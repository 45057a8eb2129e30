//! The browser on sites of the tests.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::{Browser, BrowserError, Scheme, Site};
use serde_json::json;
use std::time::Duration;

const HTML: &str = "text/html; charset=utf-8";
const SOON: Duration = Duration::from_secs(20);

const PAGE: &str = r"<!doctype html><title>a page</title><link rel=icon href='data:,'>
<style>body { margin: 0; color: rgb(1, 2, 3) } @media (prefers-color-scheme: dark) { body { color: rgb(4, 5, 6) } }</style>
<button id=one>One</button> <button>Two</button> <form><input id=field><label for=tick>Tick</label></form>
<p id=answer></p>
<script>
const answer = document.getElementById('answer');
for (const button of document.querySelectorAll('button'))
  button.onclick = (event) => { answer.textContent = button.textContent + (event.isTrusted ? ' trusted' : ''); };
document.querySelector('form').onsubmit = (event) => { event.preventDefault(); answer.textContent = document.getElementById('field').value; };
document.cookie = 'seen=1';
</script>";

fn open(body: &str) -> Option<(Browser, Site, crate::Page)> {
    let browser = Browser::start(&["other.example"]).unwrap()?;
    let site = Site::start(&[("/", HTML, body)]).unwrap();
    let page = browser.page().unwrap();
    page.set_size(800, 600, 1.0).unwrap();
    page.open(&format!("{}/", site.origin())).unwrap();
    Some((browser, site, page))
}

#[test]
fn a_page_is_opened_clicked_typed_into_and_measured() {
    let Some((browser, site, page)) = open(PAGE) else { return };
    assert_eq!(page.text("document.title").unwrap(), "a page");
    assert_eq!(page.evaluate("new Promise((done) => setTimeout(() => done([1, 'x']), 10))").unwrap(), json!([1, "x"]));
    page.click("#one").unwrap();
    assert_eq!(page.text("answer.textContent").unwrap(), "One trusted");
    page.click_text("button", "Two").unwrap();
    assert_eq!(page.text("answer.textContent").unwrap(), "Two trusted");
    page.fill("#field", "some <b>text</b>").unwrap();
    page.press("Enter").unwrap();
    assert_eq!(page.text("answer.textContent").unwrap(), "some <b>text</b>");

    for (scheme, color) in [(Scheme::Light, "rgb(1, 2, 3)"), (Scheme::Dark, "rgb(4, 5, 6)")] {
        page.set_scheme(scheme, scheme == Scheme::Dark).unwrap();
        assert_eq!(page.text("getComputedStyle(document.body).color").unwrap(), color);
        let reduced = page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches").unwrap();
        assert_eq!(reduced, json!(scheme == Scheme::Dark));
    }
    page.set_size(390, 700, 2.0).unwrap();
    assert_eq!(page.evaluate("[innerWidth, innerHeight, devicePixelRatio]").unwrap(), json!([390, 700, 2]));
    let path = std::env::temp_dir().join(format!("lydian-browser-shot-{}.png", std::process::id()));
    let picture = page.screenshot(&path, false).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), picture);
    std::fs::remove_file(path).unwrap();
    assert_eq!(picture[..8], *b"\x89PNG\r\n\x1a\n");
    assert_eq!(picture[16..24], [780_u32.to_be_bytes(), 1_400_u32.to_be_bytes()].concat());

    let took = page.wait_until("(setTimeout(() => { window.later = true; }, 100), window.later)", SOON).unwrap();
    assert!(took > Duration::from_millis(50), "{took:?}");
    let memory = page.memory().unwrap();
    assert!(memory.heap_bytes > 100_000.0 && memory.nodes > 10.0, "{memory:?}");
    assert!(browser.cpu_seconds().unwrap() > 0.0);
    assert!(page.cookies().unwrap().iter().any(|cookie| cookie["name"] == "seen"));
    let visitor = browser.visitor().unwrap();
    visitor.open(&format!("{}/missing", site.origin())).unwrap();
    assert!(visitor.cookies().unwrap().is_empty(), "another visitor has other cookies");
    assert_eq!(visitor.requests().unwrap()[0].status, 404);
    assert_eq!(page.take_problems().unwrap(), Vec::<String>::new());
    assert!(
        page.requests().unwrap().iter().all(|request| request.url.starts_with(&site.origin()) && request.status == 200)
    );
}

#[test]
fn what_cannot_be_done_is_an_error() {
    let cover = "<div style='position: absolute; left: 0; top: 0; width: 100%; height: 100%'></div>";
    let Some((_browser, _site, page)) = open(&format!("{PAGE}{cover}")) else { return };
    let error = |result: Result<(), BrowserError>| result.unwrap_err().to_string();
    assert!(error(page.click("#one")).contains("covered by <div"));
    assert!(error(page.click("#none")).contains("missing"));
    assert!(error(page.click("][")).contains("exception"));
    page.evaluate("setTimeout(() => document.querySelector('div').remove(), 300)").unwrap();
    page.click("#one").unwrap();
    assert_eq!(page.text("answer.textContent").unwrap(), "One trusted", "what goes out of the way is waited for");
    assert!(error(page.press("Hyper")).contains("unknown key"));
    assert!(error(page.evaluate("Promise.reject(new Error('no'))").map(drop)).contains("Error: no"));
    assert!(error(page.evaluate("window").map(drop)).contains("refused"));
    assert!(error(page.wait_until("false", Duration::from_millis(50)).map(drop)).contains("not within 50 ms"));
    assert!(error(page.open("http://127.0.0.1:1/")).contains("opening"));
    assert!(error(page.open("http://elsewhere.example/")).contains("NAME_NOT_RESOLVED"));
}

#[test]
fn problems_of_the_page_its_frames_and_workers_are_recorded() {
    let Some((browser, site, page)) = open(PAGE) else { return };
    let other = Site::start(&[("/", HTML, "<script>console.error('in a frame')</script>")]).unwrap();
    let shared =
        "onconnect = (event) => fetch('OTHER/shared').catch(() => {}).then(() => event.ports[0].postMessage(1))";
    site.set("/shared.js", "text/javascript", &shared.replace("OTHER", &other.origin()));
    let own =
        format!("fetch('{}/own', {{mode: 'no-cors'}}).catch(() => {{}}).then(() => postMessage(1))", other.origin());
    site.set("/own.js", "text/javascript", &own);
    for (script, expected) in [
        ("console.error('a', 1)".to_owned(), "console.error: a 1"),
        ("setTimeout(() => undefined.x)".to_owned(), "exception: TypeError"),
        ("fetch('/none')".to_owned(), "404"),
        ("alert('hello')".to_owned(), "dialog (alert): hello"),
        (format!("fetch('{}/fetch', {{mode: 'no-cors'}})", other.origin()), "another origin: GET"),
        (format!("fetch('http://other.example:{}/name', {{mode: 'no-cors'}})", other.port()), "another origin: GET http://other"),
        ("fetch('http://elsewhere.example/').catch(() => {})".to_owned(), "another origin: GET http://elsewhere"),
        ("new WebSocket('ws://127.0.0.1:1/')".to_owned(), "another origin: websocket"),
        ("new Promise((done) => { const own = new Worker('/own.js'); own.onmessage = () => done(1); })".to_owned(), "/own"),
        ("new Promise((done) => { const all = new SharedWorker('/shared.js'); all.port.onmessage = () => done(1); })".to_owned(), "/shared"),
        (format!("document.body.append(Object.assign(document.createElement('iframe'), {{src: 'http://other.example:{}/'}}))", other.port()), "in a frame"),
    ] {
        page.evaluate(&format!("Promise.resolve({script}).then(() => 0)")).unwrap();
        let mut problems = Vec::new();
        for _ in 0..200 {
            problems.extend(page.take_problems().unwrap());
            if problems.iter().any(|one| one.contains(expected)) {
                break;
            }
        }
        assert!(problems.iter().any(|one| one.contains(expected)), "{script}: {problems:#?}");
    }
    let paths: Vec<String> = other.received().into_iter().map(|request| request.path).collect();
    for path in ["/fetch", "/name", "/own", "/shared", "/"] {
        assert!(paths.iter().any(|one| one == path), "{path}: {paths:?}");
    }
    drop(browser);
}

#[test]
fn the_layout_check_finds_each_kind_of_fault() {
    let Some((_browser, site, page)) = open(PAGE) else { return };
    assert_eq!(page.layout_findings().unwrap(), Vec::<String>::new(), "a plain page");
    let long = "word ".repeat(60);
    let wide = long.replace(' ', "");
    for (body, expected) in [
        (format!("<p style='white-space: nowrap'>{wide}</p>"), "wide"),
        ("<div style='position: absolute; left: 780px; width: 90px'>x</div>".to_owned(), "beyond the window: div"),
        (format!("<p style='width: 100px; overflow: hidden; white-space: nowrap'>{long}</p>"), "cut off at the side"),
        (format!("<p style='height: 10px; overflow: hidden; width: 99px'>{long}</p>"), "cut off below"),
        ("<p style='font-size: 8px'>small</p>".to_owned(), "small text"),
        ("<p>one line</p><p style='margin-top: -1.9em'>and another</p>".to_owned(), "text over text"),
        (
            "<button style='width: 90px'>a</button><button style='margin-left: -30px'>b</button>".to_owned(),
            "controls overlap",
        ),
        ("<button>a</button><i style='position: absolute; inset: 0'></i>".to_owned(), "a control is covered"),
        ("<button style='width: 0; height: 0; padding: 0; border: 0'></button>".to_owned(), "a control without size"),
        ("<svg width=100 height=50><text x=90 y=20>beyond</text></svg>".to_owned(), "outside its chart"),
        (format!("<div style='overflow: auto; width: 90px'>{wide}</div>"), "scrolls, but not by keyboard"),
    ] {
        site.set("/", HTML, &format!("<!doctype html><link rel=icon href='data:,'>{body}"));
        page.reload().unwrap();
        let findings = page.layout_findings().unwrap();
        assert!(findings.iter().any(|one| one.starts_with(expected)), "{expected}: {findings:#?}");
    }
    // What looks like a fault and is none.
    for body in [
        "<a href='#x' style='position: absolute; left: -999px'>Skip</a>".to_owned(),
        format!("<p title='{long}' style='width: 100px; overflow: hidden; white-space: nowrap; text-overflow: ellipsis'>{long}</p>"),
        format!("<div tabindex=0 style='overflow: auto; width: 90px'>{wide}</div>"),
        "<button>under the bar</button><nav style='position: fixed; top: 0; left: 0'>bar</nav><p style='height: 2000px'></p>".to_owned(),
        "<span style='position: absolute; width: 1px; height: 1px; overflow: hidden'>for readers</span>".to_owned(),
        format!("<details><summary>s</summary><p style='width: 9px; overflow: hidden'>{wide}</p></details>"),
    ] {
        site.set("/", HTML, &format!("<!doctype html><link rel=icon href='data:,'>{body}"));
        page.reload().unwrap();
        assert_eq!(page.layout_findings().unwrap(), Vec::<String>::new(), "{body}");
    }
}

/// Bytes that no browser sends: each is an error of the call, or is ignored.
#[test]
fn a_connection_takes_any_bytes() {
    use crate::connection::Connection;
    use std::net::TcpListener;
    use tokio_tungstenite::tungstenite::{Message, accept};
    for (answer, expected) in [
        ("{\"id\":1,\"result\":{\"x\":\"y\"}}", "y"),
        ("{\"id\":1,\"result\":{\"x\":7}}", "unexpected answer"),
        ("{\"id\":1}", "unexpected answer"),
        ("{\"id\":1,\"error\":{\"message\":\"no\"}}", "no"),
        ("{\"id\":1,\"error\":3}", "3"),
        ("{\"id\"", "the connection"),
        ("", "the connection"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let other = std::thread::spawn(move || {
            let mut socket = accept(listener.accept().unwrap().0).unwrap();
            socket.read().unwrap();
            for event in [
                "[]",
                "7",
                "{\"method\":7}",
                "{\"method\":\"Target.attachedToTarget\"}",
                "{\"id\":\"1\",\"result\":{}}",
            ] {
                socket.send(Message::text(event)).unwrap();
            }
            socket.send(Message::binary(vec![0xff; 9])).unwrap();
            socket.send(Message::text(answer)).unwrap();
        });
        let mut connection = Connection::open(port, "/").unwrap();
        let got = connection.ask("", "A.b", json!({}), "x");
        let got = got.unwrap_or_else(|error| error.to_string());
        assert!(got.contains(expected), "{answer}: {got}");
        other.join().unwrap();
    }
    // Nothing listens there, and nothing takes it meanwhile.
    assert!(Connection::open(1, "/").is_err());
}
