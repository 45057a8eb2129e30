//! Chromium in tests: a browser is started, opens pages, and is clicked, typed into and measured.
//!
//! Input: URLs, CSS selectors, scripts. Output: values of scripts, screenshots, and a record of each page: every
//! request with its status, and every problem (errors on the console, exceptions, requests to other origins, dialogs).
//! The browser is driven by the DevTools protocol over a websocket.
//!
//! Invariants: a browser has its own profile, which is removed with it; no name is resolved except those of
//! [`Browser::start`], which are this machine; whatever the browser sends gives an error, never a panic. Cost: half a
//! second of processor time to start, then a round trip per call. Must never: be a dependency of anything but tests.
//!
//! Without Chromium a test says that it is not run; with `LYDIAN_REQUIRE_BROWSER=1` it fails.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests only: deadlines are those of a clock, and the files are the browser's"
)]

mod checks;
mod connection;
mod error;
mod input;
mod page;
mod record;
mod site;
mod start;
#[cfg(test)]
mod tests;

pub use error::BrowserError;
pub use page::{Memory, Page, Scheme};
pub use record::Request;
pub use site::{Received, Site};
pub use start::{Browser, Reach, find};
