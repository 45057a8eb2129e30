//! What peers are up to. Each file is one kind of wickedness, or none. Input: what the node says. Output: deeds.

mod honest;
mod stalling;

pub use honest::Honest;
pub use stalling::{Stall, Stalling};
