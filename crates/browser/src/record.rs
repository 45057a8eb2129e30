//! What a page did: its requests and its problems, from the browser's events.
//!
//! Input: events of the protocol with their parameters. Output: a list of requests with status, and a list of problems
//! as sentences. Invariants: an event of any form is recorded or ignored, never a panic; at most [`REQUESTS_MAX`]
//! requests and [`PROBLEMS_MAX`] problems are kept, and more of them are one problem each.

use serde_json::Value;
use std::collections::BTreeSet;

pub(crate) const REQUESTS_MAX: usize = 100_000;
pub(crate) const PROBLEMS_MAX: usize = 1_000;
/// Characters of a text from the browser that a problem quotes.
const QUOTED_CHARS: usize = 500;
/// Pages of the browser itself, which reach no network.
const INNER: &[&str] = &["about:", "blob:", "chrome-error:", "data:"];

/// A request of a page, of its frames or of its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub url: String,
    /// The status of the answer; 0 without an answer (yet).
    pub status: u64,
    /// Why there is no answer, in the browser's words.
    pub failure: Option<String>,
    id: String,
}

/// The record of a page.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) requests: Vec<Request>,
    pub(crate) problems: Vec<String>,
    /// The number of finished loads.
    pub(crate) loads: u64,
    /// Origins that this page may send requests to.
    pub(crate) allowed: BTreeSet<String>,
}

/// Scheme, host and port of a URL.
pub(crate) fn origin(url: &str) -> &str {
    let Some((scheme, rest)) = url.split_once("://") else { return "" };
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    &url[..scheme.len() + 3 + host]
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or("")
}

fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}

impl Record {
    pub(crate) fn take(&mut self, method: &str, params: &Value) {
        match method {
            "Page.loadEventFired" => self.loads += 1,
            "Network.requestWillBeSent" => {
                self.requested(
                    text(params, "/requestId"),
                    text(params, "/request/method"),
                    text(params, "/request/url"),
                );
            }
            "Network.webSocketCreated" => self.requested(text(params, "/requestId"), "websocket", text(params, "/url")),
            "Network.responseReceived" => {
                let status = params.pointer("/response/status").and_then(Value::as_u64).unwrap_or(0);
                if let Some(request) = self.request(text(params, "/requestId")) {
                    request.status = status;
                }
            }
            "Network.loadingFailed" => {
                let reason = [text(params, "/blockedReason"), text(params, "/errorText")];
                let reason = reason.into_iter().find(|reason| !reason.is_empty()).unwrap_or("failed").to_owned();
                if let Some(request) = self.request(text(params, "/requestId")) {
                    request.failure = Some(reason);
                }
            }
            "Runtime.consoleAPICalled" => self.console(params),
            "Runtime.exceptionThrown" => {
                let details = params.get("exceptionDetails").unwrap_or(&Value::Null);
                let described = [text(details, "/exception/description"), text(details, "/text")];
                let described = described.into_iter().find(|text| !text.is_empty()).unwrap_or("");
                self.problem(format!("exception: {}", quoted(described)));
            }
            "Log.entryAdded" if text(params, "/entry/level") == "error" => {
                let [what, url] = [text(params, "/entry/text"), text(params, "/entry/url")];
                self.problem(format!("console: {} {}", quoted(what), quoted(url)));
            }
            "Page.javascriptDialogOpening" => {
                let [kind, words] = [text(params, "/type"), text(params, "/message")];
                self.problem(format!("dialog ({kind}): {}", quoted(words)));
            }
            "Inspector.targetCrashed" | "Target.targetCrashed" => self.problem("the page crashed".to_owned()),
            _ => {}
        }
    }

    fn console(&mut self, params: &Value) {
        let kind = text(params, "/type");
        if !matches!(kind, "error" | "assert") {
            return;
        }
        let none = Vec::new();
        let arguments = params.get("args").and_then(Value::as_array).unwrap_or(&none);
        let words: Vec<String> = arguments
            .iter()
            .map(|one| match one.get("value") {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => text(one, "/description").to_owned(),
            })
            .collect();
        self.problem(format!("console.{kind}: {}", quoted(&words.join(" "))));
    }

    fn requested(&mut self, id: &str, method: &str, url: &str) {
        if INNER.iter().any(|inner| url.starts_with(inner)) {
            return;
        }
        if !self.allowed.contains(origin(url)) {
            self.problem(format!("a request to another origin: {method} {}", quoted(url)));
        }
        if self.requests.len() == REQUESTS_MAX {
            return self.problem(format!("more than {REQUESTS_MAX} requests"));
        }
        let [method, url, id] = [method, url, id].map(str::to_owned);
        self.requests.push(Request { method, url, status: 0, failure: None, id });
    }

    /// A redirected request has the same number as the one before it; its answer belongs to the last.
    fn request(&mut self, id: &str) -> Option<&mut Request> {
        self.requests.iter_mut().rev().find(|request| request.id == id)
    }

    pub(crate) fn problem(&mut self, words: String) {
        match self.problems.len() {
            PROBLEMS_MAX.. => {}
            full if full + 1 == PROBLEMS_MAX => self.problems.push("more problems, which are not listed".to_owned()),
            _ => self.problems.push(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(url: &str) -> Value {
        json!({"requestId": "1", "request": {"method": "GET", "url": url}})
    }

    #[test]
    fn origins() {
        for (url, expected) in [
            ("http://127.0.0.1:8380/#token", "http://127.0.0.1:8380"),
            ("http://127.0.0.1:8380?x", "http://127.0.0.1:8380"),
            ("https://a", "https://a"),
            ("about:blank", ""),
            ("", ""),
        ] {
            assert_eq!(origin(url), expected);
        }
    }

    #[test]
    fn requests_have_status_and_other_origins_are_problems() {
        let mut record = Record::default();
        record.allowed.insert("http://127.0.0.1:1".to_owned());
        for url in ["about:blank", "data:,x", "http://127.0.0.1:1/a"] {
            record.take("Network.requestWillBeSent", &request(url));
        }
        record.take("Network.responseReceived", &json!({"requestId": "1", "response": {"status": 204}}));
        assert_eq!((record.requests.len(), record.requests[0].status), (1, 204));
        assert!(record.problems.is_empty());
        for url in ["http://127.0.0.1:12/", "https://127.0.0.1:1/", "http://127.0.0.1:1.example/", "ftp://x"] {
            record.take("Network.requestWillBeSent", &request(url));
        }
        assert_eq!(record.problems.len(), 4, "{:?}", record.problems);
        record.take("Network.loadingFailed", &json!({"requestId": "1", "errorText": "net::ERR"}));
        assert_eq!(record.requests[4].failure.as_deref(), Some("net::ERR"));
    }

    #[test]
    fn errors_of_the_console_are_problems_and_other_words_are_not() {
        let mut record = Record::default();
        for kind in ["log", "warning", "error", "assert"] {
            let args = json!([{"value": "a"}, {"value": 1}, {"description": "Error: b"}]);
            record.take("Runtime.consoleAPICalled", &json!({"type": kind, "args": args}));
        }
        record.take("Log.entryAdded", &json!({"entry": {"level": "error", "text": "t", "url": "u"}}));
        record.take("Log.entryAdded", &json!({"entry": {"level": "info", "text": "t"}}));
        record.take("Runtime.exceptionThrown", &json!({"exceptionDetails": {"text": "Uncaught"}}));
        let expected =
            ["console.error: a 1 Error: b", "console.assert: a 1 Error: b", "console: t u", "exception: Uncaught"];
        assert_eq!(record.problems, expected);
    }

    #[test]
    fn events_of_any_form_are_taken() {
        let mut record = Record::default();
        let methods = [
            "Page.loadEventFired",
            "Network.requestWillBeSent",
            "Network.webSocketCreated",
            "Network.responseReceived",
            "Network.loadingFailed",
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
            "Inspector.targetCrashed",
            "",
        ];
        for method in methods {
            for params in [json!(null), json!(7), json!([]), json!({"entry": 1, "args": {}, "request": []})] {
                record.take(method, &params);
            }
        }
        assert_eq!(record.loads, 4);
    }

    #[test]
    fn problems_and_requests_have_a_limit() {
        let mut record = Record::default();
        for count in 0..=PROBLEMS_MAX {
            record.problem(count.to_string());
        }
        assert_eq!(record.problems.len(), PROBLEMS_MAX);
        assert!(record.problems[PROBLEMS_MAX - 1].starts_with("more"));
        let mut record = Record::default();
        record.allowed.insert("http://a".to_owned());
        for _ in 0..REQUESTS_MAX {
            record.take("Network.requestWillBeSent", &request("http://a/"));
        }
        assert!(record.problems.is_empty());
        record.take("Network.requestWillBeSent", &request("http://a/"));
        assert_eq!((record.requests.len(), record.problems.len()), (REQUESTS_MAX, 1));
    }
}
