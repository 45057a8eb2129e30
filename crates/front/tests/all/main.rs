//! Front ends over loopback: real nodes with their feeds, a store in memory that a real writer fills, and ways to the
//! nodes that fail. The node's world, the model and the comparison are those of the tests of `lydian-query`.
//!
//! * `LYDIAN_FRONT_SEED`: only this story.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and says what it did")]
#![allow(unreachable_pub, reason = "the modules of one test")]

#[allow(dead_code, reason = "the tests of lydian-query use the rest")]
#[path = "../../../query/tests/all/compare.rs"]
mod compare;
#[path = "../../../query/tests/all/details.rs"]
#[allow(dead_code, reason = "the tests of lydian-query use the rest")]
mod details;
#[allow(dead_code, reason = "the tests of lydian-query use the rest")]
#[path = "../../../query/tests/all/draft.rs"]
mod draft;
mod faults;
mod link;
mod memory;
#[allow(dead_code, reason = "the tests of lydian-query use the rest")]
#[path = "../../../query/tests/all/model.rs"]
mod model;
mod node;
mod stored;
mod stories;
mod undo;
mod wallets;
#[allow(dead_code, reason = "the tests of lydian-query use the rest")]
#[path = "../../../query/tests/all/world.rs"]
mod world;
mod worlds;
