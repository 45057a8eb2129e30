//! Policy with Bitcoin Core as the judge: the same transactions and packages, under several sets of options, are given
//! to Core's `testmempoolaccept` and to our checks; verdict, reason, details, fee and size are compared.
//!
//! The coins are known, and the pool is a plain model of the transactions that both accepted. `LYDIAN_SEED` sets the
//! seed of the random ones.
#![allow(unreachable_pub, reason = "the modules of a test")]

mod draft;
mod duel;
mod limits;
#[allow(dead_code, reason = "the tests of each crate use a part")]
#[path = "../../../../../testdata/locate.rs"]
mod locate;
mod locks;
mod model;
mod oddities;
mod packages;
mod pool;
mod real;
mod world;
