//! [`Origin`]: the web pages that may use a server, which a browser asks before it lets them.

use axum::http::HeaderValue;

/// The origin of web pages (RFC 6454), such as `https://example.com`; `*` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(HeaderValue);

impl Origin {
    /// `None` if the text cannot be in a header.
    pub fn parse(text: &str) -> Option<Origin> {
        HeaderValue::from_str(text).ok().map(Origin)
    }

    /// The value of `Access-Control-Allow-Origin`.
    pub fn header(&self) -> &HeaderValue {
        &self.0
    }

    /// Whether pages of another origin are these.
    pub(crate) fn has(&self, origin: &HeaderValue) -> bool {
        self.0 == "*" || self.0 == *origin
    }
}
