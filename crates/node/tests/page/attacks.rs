//! Other web sites, foreign names, stolen and stale secrets: each against the page in a real browser.

use crate::stage::{ASKS, OTHER_NAME, PATIENCE, Stage, expect_no_problems, wait_for_login};
use lydian_browser::{Page, Site};
use serde_json::{Value, json};

const HTML: &str = "text/html; charset=utf-8";

/// Status of a request that a script of the page makes, without the token that the page adds.
fn status(page: &Page, path: &str, options: &str) -> Value {
    page.evaluate(&format!("fetch('{path}', {options}).then((answer) => answer.status)")).unwrap()
}

#[test]
fn a_link_logs_in_once_and_a_wrong_password_waits() {
    let Some(stage) = Stage::start("a_link_logs_in_once_and_a_wrong_password_waits", &[]) else { return };
    let page = stage.browser.visitor().unwrap();
    page.set_size(1_440, 900, 1.0).unwrap();
    page.open(&stage.origin()).unwrap();
    page.wait_until(ASKS, PATIENCE).unwrap();
    expect_no_problems(&page, "before the login");
    assert_eq!(status(&page, "/api/live", "{}"), 401);

    let link = stage.link();
    page.open(&link).unwrap();
    wait_for_login(&page);
    assert_eq!(page.text("location.hash").unwrap(), "", "the secret is gone from the address");
    let cookies = page.cookies().unwrap();
    assert_eq!(cookies.len(), 1, "{cookies:?}");
    assert_eq!((&cookies[0]["httpOnly"], &cookies[0]["sameSite"]), (&json!(true), &json!("Strict")));
    assert_eq!(page.text("document.cookie").unwrap(), "");

    // The link again, for another visitor.
    let other = stage.browser.visitor().unwrap();
    other.open(&link).unwrap();
    other.wait_until(ASKS, PATIENCE).unwrap();
    other.wait_until("document.querySelector('[role=alert]').textContent.includes('used already')", PATIENCE).unwrap();

    // A wrong password is answered after a while, and in words; the right one is the cookie of RPC.
    let cookie = std::fs::read_to_string(stage.server.cookie()).unwrap();
    let (user, password) = cookie.trim().split_once(':').unwrap();
    let took = |password: &str| {
        other.fill("input[name=user]", user).unwrap();
        other.fill("input[name=password]", password).unwrap();
        other
            .evaluate("window.began = performance.now(), document.querySelector('[role=alert]').hidden = true")
            .unwrap();
        other.click(".login button[type=submit]").unwrap();
        let answered =
            "document.querySelector('#nav a[data-panel]') || document.querySelector('[role=alert]')?.hidden === false";
        other.wait_until(answered, PATIENCE).unwrap();
        other.evaluate("performance.now() - window.began").unwrap().as_f64().unwrap()
    };
    let waited = took("wrong");
    assert!(waited >= 250.0, "{waited} ms");
    let words = other.text("document.querySelector('[role=alert]').textContent").unwrap();
    assert!(words.contains("password is wrong"), "{words}");
    took(password);
    wait_for_login(&other);

    // After the logout the cookie is worth nothing.
    let [name, value] = ["name", "value"].map(|field| cookies[0][field].as_str().unwrap().to_owned());
    page.click_text("button", "Log out").unwrap();
    page.wait_until(ASKS, PATIENCE).unwrap();
    page.set_cookie(&stage.origin(), &name, &value).unwrap();
    assert_eq!(status(&page, "/api/live", "{}"), 401);
}

#[test]
fn other_web_sites_get_and_change_nothing() {
    let Some(stage) = Stage::start("other_web_sites_get_and_change_nothing", &["-pageactions"]) else { return };
    // A site on another port of this machine: the cookie of the session is sent there too, as browsers ignore ports.
    let page = stage.enter();
    let node = stage.origin();
    let site = Site::start(&[]).unwrap();
    let body = json!({"method": "setban", "params": ["203.0.113.7", "add"]});
    let scripts = [
        ("fetch", format!("fetch('{node}/api/session', {{credentials: 'include'}}).then((a) => a.text())")),
        (
            "blind",
            format!(
                "fetch('{node}/api/session', {{credentials: 'include', mode: 'no-cors'}}).then((a) => a.text()).then((t) => t || Promise.reject(Error('empty')))"
            ),
        ),
        (
            "post",
            format!(
                "fetch('{node}/api/call', {{method: 'POST', credentials: 'include', mode: 'no-cors', body: '{body}'}}).then((a) => a.text()).then((t) => t || Promise.reject(Error('empty')))"
            ),
        ),
        (
            "header",
            format!(
                "fetch('{node}/api/call', {{method: 'POST', credentials: 'include', headers: {{'X-Lydian-Token': '1'}}, body: '{body}'}})"
            ),
        ),
        (
            "stream",
            format!(
                "new Promise((done, fail) => {{ const s = new EventSource('{node}/api/live', {{withCredentials: true}}); s.onopen = done; s.onmessage = done; s.onerror = () => {{ s.close(); fail(Error('closed')); }} }})"
            ),
        ),
        ("script", format!("import('{node}/assets/app.js')")),
        (
            "frame",
            format!(
                "new Promise((done, fail) => {{ const f = document.createElement('iframe'); f.src = '{node}/'; f.onload = () => {{ try {{ f.contentDocument.title; fail(Error('nothing of it')); }} catch (error) {{ fail(error); }} }}; document.body.append(f); }})"
            ),
        ),
        (
            "picture",
            format!(
                "new Promise((done, fail) => {{ const i = new Image(); i.onload = done; i.onerror = () => fail(Error('no picture')); i.src = '{node}/assets/icon.svg'; }})"
            ),
        ),
    ];
    let form = format!(
        "<form method=post enctype='text/plain' action='{node}/api/call'><input name='{{\"method\":\"setban\",\"params\":[\"203.0.113.7\",\"add\"],\"x\":\"' value='\"}}'><button>Win</button></form>"
    );
    site.set("/", HTML, &format!("<!doctype html><title>other</title><link rel=icon href='data:,'>{form}"));
    let other = stage.browser.page().unwrap();
    other.allow(&node);
    for origin in
        [site.origin(), format!("http://localhost:{}", site.port()), format!("http://{OTHER_NAME}:{}", site.port())]
    {
        other.open(&origin).unwrap();
        for (name, script) in &scripts {
            let answer = other.evaluate(&format!(
                "Promise.resolve({script}).then((answer) => 'got ' + answer, (error) => 'no: ' + error.message)"
            ));
            let answer = answer.unwrap_or_else(|error| panic!("{origin} {name}: {error}"));
            assert!(answer.as_str().unwrap().starts_with("no: "), "{origin} {name}: {answer}");
        }
        let frames = other.evaluate("frames.length").unwrap();
        assert_eq!(frames, 1);
        other.click("form button").unwrap();
        // The address changes before the answer is there.
        let is_refused =
            format!("location.href.startsWith('{node}') && document.body.textContent.includes('another web site')");
        other.wait_until(&is_refused, PATIENCE).unwrap_or_else(|error| panic!("{origin}: {error}"));
    }
    let reached = other.requests().unwrap();
    let reached: Vec<_> = reached.iter().filter(|request| request.url.starts_with(&node)).collect();
    assert!(reached.len() >= 3 * scripts.len(), "{reached:#?}");
    assert!(reached.iter().all(|request| !matches!(request.status, 200..=299)), "{reached:#?}");
    assert_eq!(stage.call("listbanned", &json!([])), json!([]));
    // A link from another site opens the page, with a login: the cookie is not sent with it, but the page's own
    // requests have it.
    site.set("/", HTML, &format!("<!doctype html><link rel=icon href='data:,'><a href='{node}/'>the node</a>"));
    other.open(&site.origin()).unwrap();
    other.wait_until("document.querySelector('a')?.textContent === 'the node'", PATIENCE).unwrap();
    other.click("a").unwrap();
    wait_for_login(&other);
    expect_no_problems(&page, "the page itself");
}

#[test]
fn foreign_names_are_refused() {
    let Some(stage) = Stage::start("foreign_names_are_refused", &["-pageopen"]) else { return };
    let page = stage.browser.page().unwrap();
    // DNS rebinding: the name of a web site points to this machine, so that its scripts have the page's origin.
    page.open(&format!("http://{OTHER_NAME}:{}/", stage.port)).unwrap();
    let words = page.text("document.body.textContent").unwrap();
    assert!(words.contains("not served under the name"), "{words}");
    for path in ["/", "/api/session", "/api/live", "/assets/app.js", "/metrics"] {
        assert_eq!(status(&page, path, "{}"), 403, "{path}");
    }
    page.open(&format!("http://localhost:{}/", stage.port)).unwrap();
    page.wait_until("document.querySelector('#nav a[data-panel]')", PATIENCE).unwrap();
    drop(page);

    let allowed = format!("-pagehost={OTHER_NAME}");
    let Some(stage) = Stage::start("foreign_names_are_refused", &[&allowed]) else { return };
    let page = stage.browser.page().unwrap();
    page.open(&format!("http://{OTHER_NAME}:{}/", stage.port)).unwrap();
    page.wait_until(ASKS, PATIENCE).unwrap();
    // The browser ignores one of our headers on plain HTTP, and says so.
    let problems = page.take_problems().unwrap();
    assert!(
        problems.iter().all(|one| one.contains("Cross-Origin-Opener-Policy header has been ignored")),
        "{problems:#?}"
    );
}

#[test]
fn changes_need_the_token_of_the_session() {
    let Some(stage) = Stage::start("changes_need_the_token_of_the_session", &["-pageactions"]) else { return };
    let page = stage.enter();
    let call = |token: &str| {
        let headers = format!("{{'Content-Type': 'application/json'{token}}}");
        let body = json!({"method": "setban", "params": ["203.0.113.7", "add"]});
        status(&page, "/api/call", &format!("{{method: 'POST', headers: {headers}, body: JSON.stringify({body})}}"))
    };
    let token =
        || page.text("fetch('/api/session').then((answer) => answer.json()).then((session) => session.token)").unwrap();
    let first = token();
    assert_eq!(call(""), 403, "missing");
    assert_eq!(call(", 'X-Lydian-Token': ''"), 403, "empty");
    assert_eq!(call(&format!(", 'X-Lydian-Token': '{}'", "0".repeat(64))), 403, "another");
    // Another login: its token is that of another session.
    page.open("about:blank").unwrap();
    page.open(&stage.link()).unwrap();
    wait_for_login(&page);
    assert_ne!(token(), first);
    assert_eq!(call(&format!(", 'X-Lydian-Token': '{first}'")), 403, "stale");
    assert_eq!(stage.call("listbanned", &json!([])), json!([]));
    assert_eq!(call(&format!(", 'X-Lydian-Token': '{}'", token())), 200);
    assert_eq!(stage.call("listbanned", &json!([])).as_array().unwrap().len(), 1);
}

/// A user whose methods `-rpcwhitelist` limits: the panels of other methods say so, and have no data.
#[test]
fn a_limited_user_sees_what_its_methods_return() {
    let options = [
        "-rpcauth=reader:5c6e4ba7b1f0a1d1$b5c915cf7582f23156fd1d1e094d31a0f9cfdad3765b93d909a869df33aee6af",
        "-rpcwhitelist=reader:getchaintips",
        "-rpcwhitelistdefault=0",
    ];
    let Some(stage) = Stage::start("a_limited_user_sees_what_its_methods_return", &options) else { return };
    let page = stage.browser.visitor().unwrap();
    page.open(&stage.origin()).unwrap();
    page.wait_until(ASKS, PATIENCE).unwrap();
    let login = "{method: 'POST', body: JSON.stringify({user: 'reader', password: 'password'})}";
    assert_eq!(status(&page, "/api/login", login), 200);
    page.reload().unwrap();
    let has = |words: &str| {
        page.wait_until(&format!("document.querySelector('main').innerText.includes('{words}')"), PATIENCE)
    };
    let refused = "-rpcwhitelist does not let reader see this panel.";
    has(refused).unwrap();
    let hash = stage.mine(1, 1)[0].clone();
    page.evaluate("location.hash = '#/chain'").unwrap();
    has(&hash[56..]).unwrap();
    for panel in ["overview", "peers", "log", "settings"] {
        page.evaluate(&format!("location.hash = '#/{panel}'")).unwrap();
        has(refused).unwrap();
        assert!(!page.text("document.querySelector('main').innerText").unwrap().contains(&hash[56..]), "{panel}");
    }
    for path in ["/api/figures", "/api/history?series=height&from=1&to=2"] {
        assert_eq!(status(&page, path, "{}"), 403, "{path}");
    }
}
