//! Settings of the node, in Bitcoin Core's syntax. Input: the words of the command line, `lydian.conf` and
//! `settings.json`. Output: [`Settings`], or a [`SettingsError`] in Core's words; and [`Notice`]s for stderr and the
//! log.
//!
//! Steps: [`words`] splits the command line, [`resolve`] reads the files and looks at the host; the syntax and the
//! precedence of values are those of the library `options`. [`table`] is the only list of our options, and its entries
//! store most values in [`settled`]; options that depend on each other are read in [`net`], [`mempool`], [`mining`],
//! [`rpc`], [`logging`] and [`deployments`], by their names. [`core`] lists Bitcoin Core's options that we lack.
//!
//! Invariants: nothing is created here; a value is read as Core reads it, and is an error if it is one in Core. Cost: a
//! few small files are read.

pub(crate) mod core;
mod deployments;
mod document;
pub(crate) mod electrum;
mod error;
pub(crate) mod esplora;
pub(crate) mod feed;
pub(crate) mod front;
mod given;
pub(crate) mod help;
mod logging;
mod mempool;
mod mining;
pub(crate) mod net;
pub(crate) mod page;
pub(crate) mod program;
mod resolve;
pub(crate) mod rpc;
mod settled;
mod shown;
pub(crate) mod table;
mod unused;
mod values;
mod words;
pub(crate) mod zmq;

#[cfg(test)]
mod core_source;
#[cfg(test)]
mod tests;

pub(crate) use document::document;
pub(crate) use electrum::AddressIndex;
pub(crate) use error::SettingsError;
pub(crate) use resolve::load;
pub(crate) use settled::{LogSettings, Prune, Settings, minimum_chain_work};
pub(crate) use shown::Shown;
pub(crate) use words::{Words, command, split};
