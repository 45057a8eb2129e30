//! The Electrum protocol, 1.4 to 1.7: wallets ask for histories, coins, proofs and headers, submit transactions, and
//! receive notifications of changes.
//!
//! Input: lines of JSON-RPC 2.0 on sockets of [`lydian_serve`]; answers of [`lydian_query::Query`]. Output: lines.
//! [`Server`] serves; [`cost`] slows down and ends clients that take much; [`methods`] is the table of methods;
//! [`notify`] finds out which subscriptions changed; [`subscriptions`] keeps them; [`Operator`] lists and ends
//! sessions; [`figures`] is the table of what the server counts. The protocol is described in
//! github.com/spesmilo/electrum-protocol.
//!
//! Invariants: no input causes a panic; a client holds bounded memory ([`limits`]); an answer that cannot be given is
//! an error with the protocol's code, never an empty list. What changes the node goes through [`lydian_query::Calls`].

#![forbid(unsafe_code)]

mod batch;
mod cost;
mod fault;
pub mod figures;
mod hosts;
pub mod limits;
mod live;
mod methods;
mod notify;
mod params;
mod registry;
mod server;
mod session;
mod stream;
mod subscriptions;
mod version;
mod watched;
mod write;

pub use cost::{Clock, CostLimits};
pub use hosts::Host;
pub use live::Live;
pub use registry::Operator;
pub use server::{Identity, Server, Settings};
