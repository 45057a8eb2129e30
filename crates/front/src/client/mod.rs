//! Client of feeds: connections to nodes, questions, calls.
//!
//! Input: the addresses of nodes. Output: answers of whichever node has one ([`nodes`]), and the stream of a node
//! ([`connection`]). A runtime of the front end does the work; callers are threads.
//!
//! Invariants: a node of another chain answers nothing; a question has an end ([`crate::timing::ANSWER_WAIT_MAX`]); the
//! token is sent to nodes only, and is in no error.

mod address;
pub(crate) mod connection;
pub(crate) mod nodes;

pub use address::{BadNodeAddress, NodeAddress};
