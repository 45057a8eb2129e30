//! Settings of the node, in Bitcoin Core's syntax. Input: the words of the command line, `lydian.conf` and
//! `settings.json`. Output: [`Settings`], or a [`SettingsError`] in Core's words; and [`Notice`]s for stderr and the
//! log.
//!
//! Steps: [`words`] and [`conf`] split text into values, [`sources`] decides which value of an option counts (in Core's
//! order), [`raw`] gives every option its type without accessing anything, [`resolve`] looks at the disk and the host.
//! [`table`] is the only list of our options; [`core`] lists Bitcoin Core's options that we lack.
//!
//! Invariants: nothing is created here; a value is read as Core reads it, and is an error if it is one in Core. Cost: a
//! few small files are read.

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
