//! What peers are up to. Each file is one kind of wickedness, or none. Input: what the node says. Output: deeds.

mod blocks;
mod crowding;
mod cutting;
mod flooding;
mod honest;
mod limits;
mod lying;
mod presync;
mod repeating;
mod stalling;
mod storming;

pub use blocks::{Bad, BadBlocks};
pub use crowding::Crowding;
pub use cutting::{Cut, Cutting};
pub use flooding::{Flood, Flooding};
pub use honest::Honest;
pub use limits::{Limit, Limits};
pub use lying::{Lie, Lying};
pub use presync::{Presync, Trick};
pub use repeating::Repeating;
pub use stalling::{Stall, Stalling};
pub use storming::{Poisoning, Storming, attacker_addresses, is_attackers};
