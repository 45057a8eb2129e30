//! The engine against its specification, the plain validator: small random chains, fed in every order, under every
//! setting, stopped and killed anywhere; the same verdicts, the same tip, the same coins.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and says what it did")]
#![allow(unreachable_pub, reason = "the modules of one test")]

mod accept;
mod branches;
mod crash;
mod damage;
mod expected;
mod given;
mod headers;
mod import;
mod judge;
mod known;
mod lydian;
mod panics;
mod readers;
mod recorder;
mod referee;
mod seeds;
mod settled;
mod sizes;
mod stored;
mod story;
mod together;
