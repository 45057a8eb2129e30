//! Responses of the page, with the headers that keep other web sites out.
//!
//! Input: a status and bytes. Output: a response.

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{Response as HttpResponse, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

/// Scripts, styles, pictures and connections of our own origin only; nothing inline; no frame, no form, no
/// `innerHTML`; the policy `lydian` of Trusted Types makes the address of the worker.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types lydian";

/// The headers of every response.
const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

pub(crate) const JSON: &str = "application/json";

/// `kind`: the `Content-Type`.
pub(crate) fn bytes(code: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = HttpResponse::new(body.into());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Adds the headers that every response has.
pub(crate) fn protect(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

pub(crate) fn json(value: &Value) -> Response {
    bytes(StatusCode::OK, JSON, value.to_string())
}

/// A refusal: one sentence that says what is wrong and what to do.
pub(crate) fn refuse(code: StatusCode, words: impl Into<String>) -> Response {
    bytes(code, JSON, json!({ "error": { "message": words.into() } }).to_string())
}
