//! The tests of the crate in one binary: the page with its charts, as text and in a browser.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod report;
mod report_browser;
mod report_samples;
