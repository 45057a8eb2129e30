//! `lydian-lab sync`: what a sync has beside a reindex (`reindex/`, which runs the contenders): a server that holds the chain, and connections to it
//! that stall, are slow or far away.
//!
//! Input: a chain, an adapter that can serve, shapes. Output: ports of loopback from which a contender takes the chain. Everything ends with the value.

pub mod server;
pub mod shape;

pub use server::Server;
pub use shape::{Proxy, Shape};
