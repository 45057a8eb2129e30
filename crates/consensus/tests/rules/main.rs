//! The rules, broken and kept: all of them once (`cases`), and the stories behind some (`stories`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;
#[path = "../common/mod.rs"]
mod common;
mod stories;
