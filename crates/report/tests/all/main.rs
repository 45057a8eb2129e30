//! The tests of the crate in one binary: the page with its charts, as text and in a browser.

mod report;
mod report_browser;
mod report_samples;
