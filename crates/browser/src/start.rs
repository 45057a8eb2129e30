//! Finds and starts the browser, and ends it.
//!
//! Input: names that are this machine, or a [`Reach`]. Output: a [`Browser`] that opens pages. Invariants: the profile
//! is a new folder of its own; every other name fails to resolve; dropping ends the process and removes the profile.

use crate::connection::Connection;
use crate::error::BrowserError;
use crate::page::Page;
use serde_json::json;
use std::cell::RefCell;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const REQUIRED: &str = "LYDIAN_REQUIRE_BROWSER";

/// Nothing that Chromium does by itself: no updates, no reports, no first-run page, no background requests.
const OPTIONS: &[&str] = &[
    "--headless=new",
    "--remote-debugging-port=0",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider",
    "--disable-renderer-backgrounding",
    "--disable-sync",
    "--metrics-recording-only",
    "--mute-audio",
    "--force-color-profile=srgb",
    "--password-store=basic",
    "about:blank",
];
const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(20);

/// The browser of this machine. Without one, a test prints on standard error that it is skipped, or fails with
/// `LYDIAN_REQUIRE_BROWSER=1`.
pub fn find() -> Result<Option<PathBuf>, BrowserError> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::split_paths(&folders).flat_map(|folder| PROGRAMS.map(|name| folder.join(name)));
    let found = paths.into_iter().find(|path| path.is_file());
    if found.is_some() {
        return Ok(found);
    }
    if std::env::var(REQUIRED).is_ok_and(|value| value == "1") {
        return Err(BrowserError::Missing);
    }
    // Not by a macro: the message must be seen in a test that passes.
    let _ = writeln!(std::io::stderr(), "NOT RUN: {}", BrowserError::Missing);
    Ok(None)
}

/// What a browser reaches beside 127.0.0.1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reach<'a> {
    /// Names that are 127.0.0.1.
    pub names: &'a [&'a str],
    /// Other addresses.
    pub addresses: &'a [IpAddr],
    /// Certificates that are accepted although nothing known to the browser certifies them: the SHA-256 of their
    /// `SubjectPublicKeyInfo` in base 64.
    pub keys: &'a [&'a str],
}

/// A running browser.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    profile: PathBuf,
    connection: Rc<RefCell<Connection>>,
}

impl Browser {
    /// Starts a browser for which each of `names` is 127.0.0.1, and no other name is resolved. `None`: this machine has
    /// no browser (see [`find`]).
    pub fn start(names: &[&str]) -> Result<Option<Browser>, BrowserError> {
        Browser::start_with(Reach { names, ..Reach::default() })
    }

    /// Starts a browser that reaches more than [`Browser::start`] allows.
    pub fn start_with(reach: Reach<'_>) -> Result<Option<Browser>, BrowserError> {
        find()?.map(|program| Browser::start_program(&program, reach)).transpose()
    }

    pub(crate) fn start_program(program: &Path, reach: Reach<'_>) -> Result<Browser, BrowserError> {
        let failed = |text: String| BrowserError::Start { program: program.to_owned(), text };
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let profile = std::env::temp_dir().join(format!("lydian-browser-{}-{count}", std::process::id()));
        let _ = std::fs::remove_dir_all(&profile);
        std::fs::create_dir_all(&profile).map_err(|error| failed(error.to_string()))?;
        let mut rules: Vec<String> = reach.names.iter().map(|name| format!("MAP {name} 127.0.0.1")).collect();
        rules.extend(["MAP * ~NOTFOUND".to_owned(), "EXCLUDE 127.0.0.1".to_owned()]);
        rules.extend(reach.addresses.iter().map(|address| format!("EXCLUDE {address}")));
        let mut command = Command::new(program);
        command.arg(format!("--user-data-dir={}", profile.display()));
        command.arg(format!("--host-resolver-rules={}", rules.join(", ")));
        if !reach.keys.is_empty() {
            command.arg(format!("--ignore-certificate-errors-spki-list={}", reach.keys.join(",")));
        }
        if is_root() {
            // Chromium refuses to run as root with its sandbox.
            command.arg("--no-sandbox");
        }
        command.args(OPTIONS).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn();
        let mut guard = Starting { child: None, profile };
        guard.child = Some(child.map_err(|error| failed(error.to_string()))?);
        let (port, path) = guard.wait().map_err(&failed)?;
        let mut connection = Connection::open(port, &path)?;
        // Shared workers belong to no page; the browser reports them.
        let filter = json!([{"type": "shared_worker"}, {"type": "service_worker"}]);
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": filter});
        connection.call("", "Target.setAutoAttach", attach)?;
        let child = guard.child.take().ok_or_else(|| failed("no process".to_owned()))?;
        let profile = std::mem::take(&mut guard.profile);
        Ok(Browser { child, profile, connection: Rc::new(RefCell::new(connection)) })
    }

    /// A new tab. All tabs share cookies and storage.
    pub fn page(&self) -> Result<Page, BrowserError> {
        Page::new(Rc::clone(&self.connection), json!({"url": "about:blank"}))
    }

    /// A new tab of another visitor: without the cookies of other tabs.
    pub fn visitor(&self) -> Result<Page, BrowserError> {
        let context =
            self.connection.borrow_mut().ask("", "Target.createBrowserContext", json!({}), "browserContextId")?;
        Page::new(Rc::clone(&self.connection), json!({"url": "about:blank", "browserContextId": context}))
    }

    /// Seconds of processor time of all pages and workers since the start.
    pub fn cpu_seconds(&self) -> Result<f64, BrowserError> {
        let answer = self.connection.borrow_mut().call("", "SystemInfo.getProcessInfo", json!({}))?;
        let none = Vec::new();
        let processes = answer.get("processInfo").and_then(|list| list.as_array()).unwrap_or(&none);
        let renderers = processes.iter().filter(|one| one.get("type").is_some_and(|kind| kind == "renderer"));
        Ok(renderers.filter_map(|one| one.get("cpuTime")?.as_f64()).sum())
    }
}

/// A browser that has opened no port yet. Dropping it ends the process and removes the profile.
struct Starting {
    child: Option<Child>,
    profile: PathBuf,
}

impl Starting {
    /// The port and the path of the websocket, which the browser writes into its profile.
    fn wait(&mut self) -> Result<(u16, String), String> {
        let end = Instant::now() + START;
        while Instant::now() < end {
            std::thread::sleep(POLL);
            if let Some(child) = &mut self.child
                && let Ok(Some(status)) = child.try_wait()
            {
                return Err(status.to_string());
            }
            let Ok(text) = std::fs::read_to_string(self.profile.join("DevToolsActivePort")) else { continue };
            if let Some(found) = port_and_path(&text) {
                return Ok(found);
            }
        }
        Err(format!("it opened no port within {} s", START.as_secs()))
    }
}

/// `None`: not written yet, or not whole.
fn port_and_path(text: &str) -> Option<(u16, String)> {
    let (port, path) = text.split_once('\n')?;
    let path = path.trim();
    path.starts_with('/').then_some(())?;
    Some((port.parse().ok()?, path.to_owned()))
}

impl Drop for Starting {
    fn drop(&mut self) {
        match &mut self.child {
            Some(child) => end(child, &self.profile, Duration::ZERO),
            None => drop(std::fs::remove_dir_all(&self.profile)),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Ok(mut connection) = self.connection.try_borrow_mut() {
            let _ = connection.call("", "Browser.close", json!({}));
        }
        end(&mut self.child, &self.profile, STOP);
    }
}

/// Waits this long for the end, then kills. Processes of the browser may still write into the profile for a moment.
fn end(child: &mut Child, profile: &Path, patience: Duration) {
    let limit = Instant::now() + patience;
    while Instant::now() < limit && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(POLL);
    }
    let _ = child.kill();
    let _ = child.wait();
    for _ in 0..100 {
        if std::fs::remove_dir_all(profile).is_ok() || !profile.exists() {
            return;
        }
        std::thread::sleep(POLL);
    }
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or("");
    line.split_whitespace().nth(1) == Some("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_when_it_is_whole() {
        let path = "/devtools/browser/x";
        assert_eq!(port_and_path(&format!("41000\n{path}")), Some((41_000, path.to_owned())));
        assert_eq!(port_and_path(&format!("41000\n{path}\n")), Some((41_000, path.to_owned())));
        for text in ["", "41000", "41000\n", "x\n/a", "70000\n/a", "41000\nhttp://x"] {
            assert_eq!(port_and_path(text), None, "{text}");
        }
    }

    #[test]
    fn a_program_that_is_no_browser_is_an_error() {
        let error = Browser::start_program(Path::new("/bin/true"), Reach::default()).unwrap_err();
        assert!(matches!(error, BrowserError::Start { .. }), "{error}");
        let error = Browser::start_program(Path::new("/nowhere/chromium"), Reach::default()).unwrap_err();
        assert!(error.to_string().contains("/nowhere/chromium"), "{error}");
    }
}
