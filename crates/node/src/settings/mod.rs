//! Settings of the node, in Bitcoin Core's syntax. Input: the words of the command line and `lydian.conf`. Output: [`Settings`], or a
//! [`SettingsError`] of one sentence that names the option and where it was given.
//!
//! The way: [`words`] and [`conf`] split text into values, [`sources`] decides which value of an option counts (Core's order), [`raw`] gives
//! every option its type and touches nothing, [`resolve`] looks at the disk and the host. What options there are is said once, in
//! [`table`]; what Bitcoin Core has and we do not, in [`core`]. Invariants: nothing is created here; a value that is not understood is an
//! error, never a default. Cost: one or two small files are read.

pub(crate) mod conf;
pub(crate) mod core;
mod document;
mod error;
pub(crate) mod help;
pub(crate) mod nearest;
pub(crate) mod net;
mod parse;
mod raw;
mod resolve;
pub(crate) mod rpc;
mod sources;
pub(crate) mod table;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use document::document;
pub(crate) use error::SettingsError;
pub(crate) use raw::{LogSettings, Prune};
pub(crate) use resolve::{Settings, load};
pub(crate) use words::{Words, split};
