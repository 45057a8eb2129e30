//! What peers say to each other: addresses, messages, and the two transports, without sockets.
//!
//! Input: bytes of anybody, in any cuts. Output: messages, and bytes to send. Invariants: decoding is total and takes by prefix what Bitcoin Core takes by
//! prefix; memory grows with bytes received, never with a length that was only declared. No socket, no clock, no randomness of its own, no rule of
//! consensus; blocks and transactions stay bytes.

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
pub use message::{Command, Inv, InvType, Locator, Message, Version};
pub use transport::{Framed, Received, RejectedMessage, Transport, TransportError, TransportKind, V2Secrets};
