//! What a sync needs beyond a reindex: a server that holds the chain, or a peer that the lab did not start, and
//! connections to it of poor quality.
//!
//! Part of `lydian-lab sync`; `runs/` runs the contenders. Input: a chain, an adapter that can serve, shapes of
//! connections (stalling, slow, far away). Output: loopback ports from which a contender downloads the chain.
//! Everything ends when the value is dropped.

pub mod external;
pub mod server;
pub mod shape;

pub use server::Server;
pub use shape::{Proxy, Shape};
