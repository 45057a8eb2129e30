//! A page: opened, evaluated, measured.
//!
//! Input: URLs and scripts. Output: values, files with screenshots, the page's record. Invariants: a page is closed
//! when it is dropped; its requests may go to the origins that the test opened or allowed, and any other is a problem.

use crate::connection::{ANSWER, Connection, unexpected};
use crate::error::BrowserError;
use crate::record::{Request, origin};
use lydian_stdx::decode_base64;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

pub(crate) const POLL: Duration = Duration::from_millis(20);

/// A colour scheme, which a page reads by `prefers-color-scheme`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Light,
    Dark,
}

impl Scheme {
    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// What a page uses, after a garbage collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    pub heap_bytes: f64,
    /// Nodes of documents, attached or not.
    pub nodes: f64,
    pub listeners: f64,
}

/// A tab.
#[derive(Debug)]
pub struct Page {
    connection: Rc<RefCell<Connection>>,
    target: String,
    session: String,
}

impl Page {
    pub(crate) fn new(connection: Rc<RefCell<Connection>>, params: Value) -> Result<Page, BrowserError> {
        let mut open = connection.borrow_mut();
        let target = open.ask("", "Target.createTarget", params, "targetId")?;
        let attach = json!({"targetId": target, "flatten": true});
        let session = open.ask("", "Target.attachToTarget", attach, "sessionId")?;
        open.record(&session);
        open.watch(&session)?;
        open.call(&session, "Performance.enable", json!({}))?;
        drop(open);
        Ok(Page { connection, target, session })
    }

    pub(crate) fn call(&self, method: &str, params: Value) -> Result<Value, BrowserError> {
        self.connection.borrow_mut().call(&self.session, method, params)
    }

    /// Opens a URL, whose origin is then allowed, and waits until it is loaded.
    pub fn open(&self, url: &str) -> Result<(), BrowserError> {
        self.allow(origin(url));
        let loads = self.loads();
        let answer = self.call("Page.navigate", json!({"url": url}))?;
        if let Some(text) = answer.get("errorText").and_then(Value::as_str) {
            return Err(BrowserError::Refused { method: format!("opening {url}"), text: text.to_owned() });
        }
        // Without a loader only the fragment changed, and nothing is loaded.
        if answer.get("loaderId").is_none() { Ok(()) } else { self.wait_for_load(url, loads) }
    }

    /// Loads the page again.
    pub fn reload(&self) -> Result<(), BrowserError> {
        let loads = self.loads();
        self.call("Page.reload", json!({"ignoreCache": false}))?;
        self.wait_for_load("reload", loads)
    }

    fn loads(&self) -> u64 {
        self.connection.borrow_mut().record(&self.session).loads
    }

    fn wait_for_load(&self, what: &str, before: u64) -> Result<(), BrowserError> {
        let end = Instant::now() + ANSWER;
        while self.loads() == before {
            if Instant::now() > end {
                return Err(BrowserError::Timeout { what: format!("{what} is loaded"), after: ANSWER });
            }
            self.connection.borrow_mut().listen(POLL)?;
        }
        Ok(())
    }

    /// Has a script run in each document that is opened from now on, before its own scripts.
    pub fn before_load(&self, script: &str) -> Result<(), BrowserError> {
        self.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": script})).map(drop)
    }

    /// The value of an expression; a promise is awaited.
    pub fn evaluate(&self, script: &str) -> Result<Value, BrowserError> {
        const METHOD: &str = "Runtime.evaluate";
        let params = json!({"expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let answer = self.call(METHOD, params)?;
        if let Some(details) = answer.get("exceptionDetails") {
            let described =
                [details.pointer("/exception/description"), details.pointer("/exception/value"), details.get("text")];
            let text = described.into_iter().flatten().next().unwrap_or(details);
            let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
            return Err(BrowserError::Script { script: script.chars().take(200).collect(), text });
        }
        let result = answer.get("result").ok_or_else(|| unexpected(METHOD, &answer))?;
        Ok(result.get("value").cloned().unwrap_or(Value::Null))
    }

    /// The value of an expression as text; other values as JSON.
    pub fn text(&self, script: &str) -> Result<String, BrowserError> {
        Ok(match self.evaluate(script)? {
            Value::String(text) => text,
            value => value.to_string(),
        })
    }

    /// Waits until an expression is true; returns how long that took. Exceptions count as false: a page that is being
    /// loaded lacks what the expression looks at.
    pub fn wait_until(&self, script: &str, deadline: Duration) -> Result<Duration, BrowserError> {
        let start = Instant::now();
        let script = format!("Boolean({script})");
        loop {
            let answer = self.evaluate(&script);
            match answer {
                Ok(Value::Bool(true)) => return Ok(start.elapsed()),
                Ok(_) | Err(BrowserError::Script { .. } | BrowserError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
            if start.elapsed() > deadline {
                return Err(BrowserError::Timeout { what: script, after: deadline });
            }
            self.listen(POLL)?;
        }
    }

    /// Takes events for this long.
    pub fn listen(&self, time: Duration) -> Result<(), BrowserError> {
        self.connection.borrow_mut().listen(time)
    }

    /// The size of the window in CSS pixels, and how many pixels of the screen each has.
    pub fn set_size(&self, width: u32, height: u32, scale: f64) -> Result<(), BrowserError> {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": scale, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", params).map(drop)
    }

    pub fn set_scheme(&self, scheme: Scheme, reduced_motion: bool) -> Result<(), BrowserError> {
        let motion = if reduced_motion { "reduce" } else { "no-preference" };
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme.name()},
            {"name": "prefers-reduced-motion", "value": motion},
        ]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features})).map(drop)
    }

    /// Allows requests to another origin.
    pub fn allow(&self, other: &str) {
        self.connection.borrow_mut().record(&self.session).allowed.insert(other.to_owned());
    }

    /// The requests so far.
    pub fn requests(&self) -> Result<Vec<Request>, BrowserError> {
        self.listen(Duration::ZERO)?;
        Ok(self.connection.borrow_mut().record(&self.session).requests.clone())
    }

    /// The problems since the last call: errors on the console, exceptions, requests to other origins, dialogs.
    pub fn take_problems(&self) -> Result<Vec<String>, BrowserError> {
        self.listen(POLL)?;
        Ok(std::mem::take(&mut self.connection.borrow_mut().record(&self.session).problems))
    }

    /// Cookies that the page's URL is sent, also those that scripts cannot read.
    pub fn cookies(&self) -> Result<Vec<Value>, BrowserError> {
        const METHOD: &str = "Network.getCookies";
        let answer = self.call(METHOD, json!({}))?;
        answer.get("cookies").and_then(Value::as_array).cloned().ok_or_else(|| unexpected(METHOD, &answer))
    }

    /// Sets a cookie of a URL, as [`Page::cookies`] returns it.
    pub fn set_cookie(&self, url: &str, name: &str, value: &str) -> Result<(), BrowserError> {
        self.call("Network.setCookie", json!({"url": url, "name": name, "value": value})).map(drop)
    }

    /// A picture of the window, or of the whole page, as PNG.
    pub fn screenshot(&self, path: &Path, whole: bool) -> Result<Vec<u8>, BrowserError> {
        const METHOD: &str = "Page.captureScreenshot";
        let answer = self.call(METHOD, json!({"format": "png", "captureBeyondViewport": whole}))?;
        let data = answer.get("data").and_then(Value::as_str).and_then(|text| decode_base64(text.as_bytes()));
        let data = data.ok_or_else(|| unexpected(METHOD, &json!("no picture")))?;
        let failed =
            |error: std::io::Error| BrowserError::Io { what: path.display().to_string(), text: error.to_string() };
        std::fs::write(path, &data).map_err(failed)?;
        Ok(data)
    }

    /// Collects garbage and measures.
    pub fn memory(&self) -> Result<Memory, BrowserError> {
        const METHOD: &str = "Performance.getMetrics";
        // The second collection frees what the first one made free.
        self.call("HeapProfiler.collectGarbage", json!({}))?;
        self.call("HeapProfiler.collectGarbage", json!({}))?;
        let answer = self.call(METHOD, json!({}))?;
        let metric = |name: &str| {
            let list = answer.get("metrics").and_then(Value::as_array)?;
            list.iter().find(|one| one.get("name").is_some_and(|own| own == name))?.get("value")?.as_f64()
        };
        let metric = |name: &str| metric(name).ok_or_else(|| unexpected(METHOD, &answer));
        Ok(Memory {
            heap_bytes: metric("JSHeapUsedSize")?,
            nodes: metric("Nodes")?,
            listeners: metric("JSEventListeners")?,
        })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Ok(mut connection) = self.connection.try_borrow_mut() {
            let _ = connection.call("", "Target.closeTarget", json!({"targetId": self.target}));
            connection.forget(&self.session);
        }
    }
}
