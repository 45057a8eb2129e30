//! The tests of the crate in one binary: the real disk, the simulated one, and records.

mod many;
mod real;
mod record;
mod sim;
mod twins;
