//! Writer and reader on a store in memory that fails in every way that it may.

mod answers;
mod blocks;
mod chain;
mod hooked;
mod moving;
mod refusals;
mod seeds;
mod sim;
