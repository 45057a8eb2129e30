//! The behaviours of peers. Each file is one kind, honest or malicious. Input: the node's messages. Output: deeds.

mod announcing;
mod blocks;
mod branching;
mod crowding;
mod cutting;
mod flooding;
mod honest;
mod limits;
mod listening;
mod lying;
mod presync;
mod relaying;
mod repeating;
mod stalling;
mod storming;
mod twin;

pub use announcing::{ANNOUNCED, Announcing};
pub use blocks::{Bad, BadBlocks};
pub use branching::Branching;
pub use crowding::Crowding;
pub use cutting::{Cut, Cutting};
pub use flooding::{Flood, Flooding};
pub use honest::Honest;
pub use limits::{Limit, Limits};
pub use listening::Listening;
pub use lying::{Lie, Lying};
pub use presync::{Presync, Trick};
pub use relaying::{Abuse, Abusing, Own, Relaying};
pub use repeating::Repeating;
pub use stalling::{Stall, Stalling};
pub use storming::{Poisoning, Storming, attacker_addresses, is_attackers};
pub use twin::Twin;
