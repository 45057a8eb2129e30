//! The manager of peers with an engine that validates, a disk in memory and a clock that the tests turn: what peers send, and what follows for them and
//! for the chain.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod announce;
mod bench;
mod blocks;
mod chain;
mod clock;
mod compact;
mod floods;
mod info;
mod loading;
mod options;
