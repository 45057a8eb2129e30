//! `lydian-lab electrum`: Electrum servers on the same chain beside the same node, in turn, asked as Casa's report asked them, and answers compared.
//!
//! Input: a chain with address reuse, servers, settings. Output: what each server's index cost to build, how long each query of each script took, loads of
//! many connections, and where answers differ. Must never: count an answer that nobody compared.

pub mod expected;
pub mod results;
pub mod targets;
pub mod walk;
