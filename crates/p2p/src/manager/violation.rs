//! [`Violation`]: what a peer did against the protocol, with Bitcoin Core's text for each kind.
//!
//! Input: nothing. Output: the reasons in the lines `Misbehaving: peer=...`.

use crate::headers::HeadersFault;
use crate::peer::{Misbehaviour, misbehaviour};

/// Something that Core discourages a peer for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Violation {
    /// A block that breaks a rule, or whose parent is unknown. Core logs no reason.
    InvalidBlock,
    /// A block whose bytes do not match its header.
    MutatedBlock,
    /// A header that breaks a rule. `is_compact`: it came in a compact block.
    InvalidHeader {
        is_compact: bool,
    },
    /// A `headers` message with this many headers.
    Headers {
        fault: HeadersFault,
        count: usize,
    },
    InvalidCompactBlock,
    /// Transactions for a compact block that do not match it.
    InvalidBlockTransactions,
    /// Transactions for a compact block whose reconstruction failed before.
    RepeatedBlockTransactions,
    /// A request for transactions that the block does not have.
    TransactionsOutOfBounds,
    /// A malformed message.
    Message(Misbehaviour),
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Violation::InvalidBlock => Ok(()),
            Violation::MutatedBlock => f.write_str("mutated block"),
            Violation::InvalidHeader { is_compact: true } => f.write_str("invalid header via cmpctblock"),
            Violation::InvalidHeader { is_compact: false } => f.write_str("invalid header received"),
            Violation::Headers { fault, count } => f.write_str(&fault.reason(*count)),
            Violation::InvalidCompactBlock => f.write_str("invalid compact block"),
            Violation::InvalidBlockTransactions => f.write_str("invalid compact block/non-matching block transactions"),
            Violation::RepeatedBlockTransactions => f.write_str("previous compact block reconstruction attempt failed"),
            Violation::TransactionsOutOfBounds => f.write_str("getblocktxn with out-of-bounds tx indices"),
            Violation::Message(what) => f.write_str(&misbehaviour(what.command, &what.error)),
        }
    }
}
