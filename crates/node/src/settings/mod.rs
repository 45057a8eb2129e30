//! Settings of the node, in Bitcoin Core's syntax. Input: the words of the command line, `lydian.conf` and
//! `settings.json`. Output: [`Settings`], or a [`SettingsError`] in Core's words; and [`Notice`]s for stderr and the
//! log.
//!
//! The way: [`words`] and [`conf`] split text into values, [`sources`] decides which value of an option counts (Core's order), [`raw`] gives
//! every option its type and touches nothing, [`resolve`] looks at the disk and the host. What options there are is said once, in
//! [`table`]; what Bitcoin Core has and we do not, in [`core`]. Invariants: nothing is created here; a value is read as
//! Core reads it, and is an error where it is one there. Cost: one or two small files are read.

pub(crate) mod conf;
pub(crate) mod core;
mod deployments;
mod document;
mod error;
mod file;
pub(crate) mod help;
pub(crate) mod net;
mod notice;
mod parse;
mod raw;
mod resolve;
pub(crate) mod rpc;
mod sources;
pub(crate) mod table;
mod unused;
mod words;

#[cfg(test)]
mod core_source;
#[cfg(test)]
mod tests;

pub(crate) use document::document;
pub(crate) use error::SettingsError;
#[cfg(test)]
pub(crate) use file::SETTINGS_FILES;
pub(crate) use notice::Notice;
pub(crate) use raw::{LogSettings, Prune, minimum_chain_work};
pub(crate) use resolve::{Settings, load};
pub(crate) use words::{Words, command, split};
