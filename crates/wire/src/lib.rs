//! The peer-to-peer protocol: addresses, messages, and the two transports, without sockets.
//!
//! Input: untrusted bytes, in chunks of any size. Output: messages, and bytes to send. Invariants: decoding is total,
//! and where Bitcoin Core reads a prefix and ignores the rest, so does this crate; memory grows with the bytes
//! received, never with a declared length. No socket, no clock, no randomness of its own, no consensus rules; blocks
//! and transactions stay bytes.

#![forbid(unsafe_code)]

pub mod address;
mod codec;
pub mod compact;
mod error;
pub mod limits;
pub mod message;
pub mod transport;

pub use address::{
    AddressError, Encoding, Endpoint, NetAddr, Network, Services, Subnet, SubnetError, TimedAddress, split_host_port,
};
pub use compact::{BlockTransactions, BlockTransactionsRequest, CompactBlock, CompactError, PartialBlock};
pub use error::{DecodeError, Penalty};
pub use message::{
    CFCheckpt, CFHeaders, CFilter, Command, FilterRange, GetCFCheckpt, Inv, InvType, Locator, Message, Version,
};
pub use transport::{Framed, Received, RejectedMessage, Transport, TransportError, TransportKind, V2Secrets};
