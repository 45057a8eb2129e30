//! The page of the node: what it does, live in a browser.
//!
//! Input: HTTP requests, on loopback unless the operator opens a port with TLS; what the node shows ([`Topics`]), its
//! RPC methods ([`Calls`]) and its figures ([`Metrics`]). Output: the files of the page, server-sent events, JSON, and
//! Prometheus' text.
//!
//! The way of a request: its `Host`, its origin and its purpose are checked (`guard`), then its session (`session`),
//! then it is answered. Live data is read once for all readers by a thread of its own (`hub`), and every reader gets
//! what changed (`live`). What was recorded is kept in a file ([`history`]), and answered by `past`. The page itself
//! (`assets`) is plain JavaScript and CSS in `assets/`, embedded in the program.
//!
//! Invariants: no web site but the page itself can read or change anything (docs/page.md, "Safety"); reading never
//! makes a block wait; memory is bounded by [`limits`]; nothing here depends on Bitcoin or on the node.

#![forbid(unsafe_code)]

mod assets;
mod call;
mod guard;
pub mod history;
mod hub;
pub mod limits;
mod live;
mod login;
mod methods;
mod metrics;
mod past;
mod ports;
mod reply;
mod server;
mod session;

pub use methods::{ACTIONS, PRIVATE, READING};
pub use ports::{CallError, Calls, Host, Metrics, Past, Reading, Topic, Topics};
pub use server::{Ports, Server, Settings};
pub use session::{SESSION_FILES, SESSIONS_FILE, SESSIONS_FORMAT};
