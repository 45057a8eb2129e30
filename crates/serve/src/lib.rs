//! What every server of the node needs, whatever its protocol: listening, places, deadlines, byte budgets, HTTP, login.
//!
//! Input: connections to the addresses of a [`Listener`]. Output: answers, made by a [`Protocol`]; [`Event`]s for the
//! log of the server.
//!
//! The way of a connection: if it comes from a reverse proxy, its header names the client (`proxy`); the client gets a
//! place, or is refused (`places`); its bytes pass a stream with a deadline (`stream`); the protocol serves it.
//! [`Control`] ends connections and bans clients. [`http::Http`] is the protocol of servers that answer HTTP requests,
//! and [`Login`] checks their credentials. A [`Budget`] bounds the bytes of all answers: their [`Room`] is returned
//! once the client has read them, and clients that do not read are disconnected when others need the memory.
//! [`Monitor`] serves short texts, such as `/health`. [`figures`] counts requests, and has the form of the tables of
//! what the node exports.
//!
//! A protocol reads and writes any stream of bytes, so that one on top of TLS (`tls`) is served like one on top of TCP,
//! and protocols of lines need no HTTP; [`Websocket`] carries them for clients that can speak nothing else.
//!
//! Invariants: no input causes a panic; a client can neither take all places nor hold memory without limit; nothing
//! here depends on Bitcoin, on the node or on the text of a log. Limits are constants in [`limits`].

#![forbid(unsafe_code)]

mod allow;
mod bans;
mod bind;
mod budget;
mod connection;
mod control;
mod event;
pub mod figures;
pub mod http;
pub mod limits;
mod login;
mod monitor;
mod origin;
mod places;
mod proxy;
mod server;
mod stream;
mod tls;
mod websocket;

pub use allow::{BadSubnet, Subnet};
pub use bans::{Ban, BanError};
pub use bind::{BadAddress, BindFailure, bind_addresses};
pub use budget::{Budget, FREE_BYTES, Room};
pub use connection::{CallGuard, Connection, UnreadGuard};
pub use control::{Control, DRAIN_TIME, Drain, SessionInfo};
pub use event::{ClientEvent, Event, Log};
pub use login::{BadRpcAuth, COOKIE_FILES, Cookie, CookieError, CookiePermissions, Denied, Login, Users, random};
pub use monitor::{Monitor, Text, Texts};
pub use origin::Origin;
pub use proxy::BadProxyHeader;
pub use server::{ListenSettings, Listener, Protocol, Server, StartError, Stopped};
pub use tls::{SelfMade, TlsError, TlsIdentity};
pub use websocket::{Lined, Websocket, first_byte};
