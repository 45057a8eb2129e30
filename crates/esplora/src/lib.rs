//! Esplora's REST API, as wallets and explorers know it from Blockstream's electrs.
//!
//! Input: HTTP requests on loopback, or where the operator opens a port. Output: JSON, text or bytes, with the paths,
//! the fields and the order of Esplora (its `API.md`). One table, [`ROUTES`], has every path with the function that
//! answers it; docs/esplora.md lists them and what differs.
//!
//! Invariants: reads go through [`lydian_query::Query`], what changes the node through [`lydian_query::Calls`]; each
//! answer is from one moment; an error is one sentence that says which argument and why, and never an empty list for
//! lack of an index. Limits are constants in [`limits`].

#![forbid(unsafe_code)]

mod answers;
mod asm;
mod call;
mod direct;
mod fault;
pub mod figures;
mod json;
pub mod limits;
mod reply;
mod routes;
mod server;

pub use direct::{Answer, Direct, Refusal};
pub use routes::{ROUTES, Route, Verb};
pub use server::{Server, Settings};
