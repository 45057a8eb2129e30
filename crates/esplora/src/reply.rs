//! [`Reply`]: an answer before it is an HTTP response.

use axum::http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use axum::response::Response;
use serde::Serialize;

/// Seconds that an answer may be kept by caches: Esplora's `TTL_LONG` and `TTL_SHORT`.
pub(crate) const FOR_GOOD: u32 = 157_784_630;
pub(crate) const SHORTLY: u32 = 10;
/// Esplora's `TTL_MEMPOOL_RECENT`.
pub(crate) const RECENTLY: u32 = 5;

/// Blocks above one that make it final enough for caches: Esplora's `CONF_FINAL`.
const FINAL_DEPTH: u32 = 10;

/// How long an answer about a block at a height may be kept. `None`: about none.
pub(crate) fn kept(height: Option<u32>, tip: u32) -> u32 {
    match height {
        Some(height) if tip.saturating_sub(height) >= FINAL_DEPTH => FOR_GOOD,
        _ => SHORTLY,
    }
}

const TOTAL_RESULTS: HeaderName = HeaderName::from_static("x-total-results");

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) kind: &'static str,
    pub(crate) body: Vec<u8>,
    /// Seconds.
    keep: u32,
    total: Option<usize>,
}

impl Reply {
    pub(crate) fn json(value: &impl Serialize, keep: u32) -> Reply {
        // Writing to memory does not fail, and no value has a key that is no text.
        let body = serde_json::to_vec(value).unwrap_or_default();
        Reply { kind: "application/json", body, keep, total: None }
    }

    /// JSON that is written already.
    pub(crate) fn written(json: String, keep: u32) -> Reply {
        Reply { kind: "application/json", body: json.into_bytes(), keep, total: None }
    }

    pub(crate) fn text(text: impl Into<String>, keep: u32) -> Reply {
        Reply { kind: "text/plain", body: text.into().into_bytes(), keep, total: None }
    }

    pub(crate) fn bytes(body: Vec<u8>, keep: u32) -> Reply {
        Reply { kind: "application/octet-stream", body, keep, total: None }
    }

    /// How many elements the whole list has of which this is a part.
    pub(crate) fn of_total(self, total: usize) -> Reply {
        Reply { total: Some(total), ..self }
    }

    /// Adds the headers to the response with the body.
    pub(crate) fn put_headers(keep: u32, total: Option<usize>, response: &mut Response) {
        let headers = response.headers_mut();
        if let Ok(value) = HeaderValue::from_str(&format!("public, max-age={keep}")) {
            headers.insert(CACHE_CONTROL, value);
        }
        if let Some(total) = total {
            headers.insert(TOTAL_RESULTS, HeaderValue::from(total));
        }
    }

    /// The text of the body, and how many elements the whole list has.
    pub(crate) fn into_text(self) -> (String, Option<usize>) {
        (String::from_utf8_lossy(&self.body).into_owned(), self.total)
    }

    /// What [`Reply::put_headers`] needs.
    pub(crate) fn headers(&self) -> (u32, Option<usize>) {
        (self.keep, self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_about_deep_blocks_are_kept_for_good() {
        assert_eq!([Some(90), Some(91), None].map(|height| kept(height, 100)), [FOR_GOOD, SHORTLY, SHORTLY]);
    }
}
