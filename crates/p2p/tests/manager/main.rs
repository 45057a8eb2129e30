//! The peer manager with a validating engine, a disk in memory and a simulated clock: messages from peers, and their
//! effects on peers and the chain.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod announce;
mod bench;
mod blocks;
mod chain;
mod clock;
mod compact;
mod driver;
mod floods;
mod info;
mod intake;
mod loading;
mod options;
mod orders;
mod relay;
