//! The pool against Bitcoin Core: the same transactions, packages, blocks and reorganisations, in one run; and against
//! itself, one transaction at a time.

mod batches;
mod cases;
mod compare;
mod maker;
mod persist;
mod records;
mod story;
mod template;
pub(crate) mod world;
