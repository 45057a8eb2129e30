//! JSON-RPC over HTTP, as Bitcoin Core's: the same methods, fields, numbers, errors and words. Input: requests on sockets; an engine to ask and to
//! hand blocks to; a [`Host`] that knows the clock and the log. Output: answers.
//!
//! [`Server`] takes connections and finds who calls; [`exec`] reads a request and calls methods of [`table::METHODS`], whose entries also give
//! `help`, the checks of arguments and `docs/rpc.md`. Invariants: nothing is answered before the engine is there; a block comes in
//! through [`lydian_engine::Engine::accept_block`] alone; total on any bytes. Reads do not wait for validation, but for single locks of
//! the header tree. No clock is read here but through the host.

#![forbid(unsafe_code)]

mod allow;
mod auth;
mod budget;
mod context;
mod cookie;
mod error;
pub mod exec;
mod help;
mod http;
mod json;
pub mod limits;
mod method;
mod methods;
mod named;
mod output;
pub mod table;
mod versionbits;
mod wait;
mod warnings;

pub use allow::{BadSubnet, Subnet};
pub use auth::{BadRpcAuth, COOKIE_USER, Users, Whitelist};
pub use context::{Context, Host, LogLevel, NodeSettings, Peers, ProgressOf, PruneMode, Witness};
pub use cookie::{COOKIE_FILES, Cookie, CookieError, CookiePermissions};
pub use error::{RpcError, code};
pub use help::document;
pub use http::{BindError, Server, ServerError, ServerSettings, bind_addresses};
pub use json::{Amount, Double, Json};
pub use method::{Arg, Call, Category, Handler, Kind, Method, Need, answer, parse_hash};
pub use versionbits::{UnknownRule, UnknownRules};
pub use wait::TipWatch;
pub use warnings::{Warning, Warnings};
