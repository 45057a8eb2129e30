//! The tests of the crate in one binary: the store against a model, crashes, damage, sizes, the format.

mod common;
mod crash;
mod damage;
mod format;
mod model;
mod sizes;
