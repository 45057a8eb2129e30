//! JSON-RPC over HTTP like Bitcoin Core's: the same methods, fields, numbers, errors and error texts.
//!
//! Input: requests on sockets; an engine to query and to submit blocks to; a [`Host`] with the clock and the log.
//! Output: answers.
//!
//! [`Server`] accepts connections and authenticates clients; [`exec`] parses a request and calls methods of
//! [`table::METHODS`]. The entries of that table also define `help`, the argument checks and `docs/rpc.md`. Invariants:
//! every call fails with the warm-up error until the engine is ready; blocks are only added through
//! [`lydian_engine::Engine::accept_block`]; no input causes a panic. Reads wait for single locks of the header tree,
//! not for validation. The clock is only read through the host.

#![forbid(unsafe_code)]

mod builder;
mod context;
mod document;
mod electrum;
mod error;
pub mod exec;
pub mod figures;
mod http;
mod json;
pub mod limits;
mod method;
mod methods;
mod named;
mod names;
mod output;
mod partial_merkle_tree;
mod raw_tx;
pub mod rest;
mod result;
mod scan_state;
mod sources;
pub mod table;
mod templates;
mod tip_watch;
mod versionbits;
mod wait;
mod warnings;
mod whitelist;
mod wiped;

pub use builder::TemplateBuilder;
pub use context::{
    Context, Host, Indexes, LogLevel, MempoolFile, NodeSettings, Notifier, Peers, ProgressOf, PruneMode, SharedObserver,
};
pub use document::{document, interface};
pub use electrum::ElectrumServer;
pub use error::{RpcError, code};
pub use http::{Counts, Server, ServerError, ServerSettings};
pub use json::{Amount, Double, Json};
pub use method::{Arg, Category, Kind, Method, Methods, Need};
pub use methods::mining::network_hash_rate;
pub use names::NAMES;
pub use sources::{SpenderIndex, TransactionIndex};
pub use tip_watch::TipWatch;
pub use versionbits::{UnknownRule, UnknownRules};
pub use warnings::{Warning, Warnings};
pub use whitelist::Whitelist;
