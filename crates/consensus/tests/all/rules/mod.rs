//! The rules: `cases` breaks and keeps each of them once, `stories` tests special situations.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;
mod stories;
