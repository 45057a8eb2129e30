//! Notifications over ZeroMQ: Bitcoin Core's `-zmqpub...`, with the same topics, frames and order.
//!
//! Input: the blocks that join and leave the chain, from the engine ([`Feed::follower`], [`Feed::event`]); the
//! transactions that join and leave the mempool ([`Feed::transaction_added`], [`Feed::transaction_removed`]). Output:
//! messages to any number of subscribers, each of three frames: topic, body, and the number of the message among those
//! of its notifier (4 bytes, little-endian).
//!
//! A message takes this way: `follower` and `feed` note what happened, `queue` keeps it until the engine reports the
//! block as settled (a subscriber that asks over RPC then finds it), the thread of `publisher` makes the messages,
//! `socket` passes them to the `outbox` of each subscriber, and its connection writes them in the protocol of `zmtp`.
//!
//! Invariants: the messages of a notifier leave in the order in which the chain and the mempool changed, and none is
//! left out, in bursts neither; only the queue of a subscriber that reads too slowly drops messages, and the gap shows
//! in the numbers. A slow subscriber delays neither the node nor other subscribers. If messages cannot be made as fast
//! as blocks are validated, validation waits, as it does in Core (`LimitValidationInterfaceQueue`).
//!
//! The rules are those of Core's `zmq/zmqnotificationinterface.cpp` and `zmq/zmqpublishnotifier.cpp`.

#![forbid(unsafe_code)]

mod endpoint;
mod feed;
mod follower;
pub mod limits;
mod log;
mod outbox;
mod publisher;
mod queue;
mod shared;
mod socket;
mod tip;
mod topic;
mod zmtp;

pub use endpoint::{BindError, SOCKET_FILES};
pub use feed::Feed;
pub use log::Log;
pub use publisher::{HIGH_WATER_MARK_DEFAULT, Notifier, Publisher, StartError};
pub use topic::Topic;
pub use zmtp::{ProtocolError, Session};
