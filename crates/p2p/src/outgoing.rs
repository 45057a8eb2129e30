//! [`Outgoing`]: an item of a peer's send queue, and the message that it becomes when it is next.
//!
//! Input: items of the manager, stored blocks. Output: a message as command and payload. Blocks are read when they are
//! next and not before: a peer may request thousands at once. Invariant: bytes that cannot be read give
//! [`Ready::Unreadable`], never a panic. Cost: a message is encoded; a block is read from disk, and parsed unless it is
//! sent as stored.

use crate::filters::FilterAnswer;
use lydian_engine::Engine;
use lydian_primitives::{Block, BlockHash, RawBlock};
use lydian_wire::{BlockTransactions, BlockTransactionsRequest, Command, CompactBlock, Message};

/// An item to send.
#[derive(Debug)]
pub enum Outgoing {
    Message(Message),
    /// A stored block, with or without witnesses. If it cannot be read, the connection is closed.
    Block {
        hash: BlockHash,
        with_witness: bool,
    },
    /// A stored block as a compact block. If it cannot be read, the connection is closed.
    Compact {
        hash: BlockHash,
        nonce: u64,
    },
    /// Transactions of a stored block.
    Transactions(BlockTransactionsRequest),
    /// Block filters, or nothing if the index does not have them.
    Filters(FilterAnswer),
    /// No more items: the connection ends after everything before this is sent, or after
    /// [`crate::channel::FAREWELL_TIME`]. The reason is for the log.
    End {
        reason: String,
    },
}

/// What an item becomes when it is next.
#[derive(Debug)]
pub enum Ready {
    Message {
        command: Command,
        payload: Vec<u8>,
    },
    /// The block has fewer transactions than the request names:
    /// [`crate::manager::PeerManager::bad_transactions_request`].
    BadTransactionsRequest,
    /// The block cannot be read.
    Unreadable,
    /// There is no answer.
    Nothing,
    End,
}

impl Outgoing {
    /// Returns the stored block that the item is made of.
    pub fn block(&self) -> Option<BlockHash> {
        match self {
            Outgoing::Block { hash, .. } | Outgoing::Compact { hash, .. } => Some(*hash),
            Outgoing::Transactions(request) => Some(request.block_hash),
            Outgoing::Message(_) | Outgoing::Filters(_) | Outgoing::End { .. } => None,
        }
    }

    /// Whether making the message waits for the disk.
    pub fn reads(&self) -> bool {
        self.block().is_some() || matches!(self, Outgoing::Filters(_))
    }

    /// Makes the message.
    pub fn ready(self, engine: &Engine) -> Ready {
        match self {
            Outgoing::Message(message) => Ready::message(&message),
            Outgoing::End { .. } => Ready::End,
            Outgoing::Filters(FilterAnswer { source, request }) => {
                source.answer(&request).map_or(Ready::Nothing, |message| Ready::message(&message))
            }
            Outgoing::Block { hash, with_witness: true } => match read(engine, &hash) {
                Some(raw) => Ready::Message { command: Command::BLOCK, payload: raw.as_bytes().to_vec() },
                None => Ready::Unreadable,
            },
            Outgoing::Block { hash, with_witness: false } => match parse(engine, &hash) {
                Some(block) => Ready::Message { command: Command::BLOCK, payload: block.stripped() },
                None => Ready::Unreadable,
            },
            Outgoing::Compact { hash, nonce } => match parse(engine, &hash) {
                Some(block) => Ready::message(&Message::CmpctBlock(Box::new(CompactBlock::new(&block, nonce)))),
                None => Ready::Unreadable,
            },
            Outgoing::Transactions(request) => match parse(engine, &request.block_hash) {
                Some(block) => match BlockTransactions::new(&block, &request) {
                    Some(answer) => Ready::message(&Message::BlockTxn(answer)),
                    None => Ready::BadTransactionsRequest,
                },
                None => Ready::Unreadable,
            },
        }
    }
}

impl Ready {
    fn message(message: &Message) -> Ready {
        Ready::Message { command: message.command(), payload: message.payload() }
    }
}

/// Returns the size of a stored block in bytes; 0 if it is not stored.
pub fn stored_size(engine: &Engine, hash: &BlockHash) -> usize {
    let size = engine.header_info(hash).and_then(|info| info.node.block).map_or(0, |block| block.size);
    usize::try_from(size).unwrap_or(usize::MAX)
}

fn read(engine: &Engine, hash: &BlockHash) -> Option<RawBlock> {
    engine.raw_block(&engine.header_info(hash)?).ok().flatten()
}

fn parse(engine: &Engine, hash: &BlockHash) -> Option<Block> {
    read(engine, hash)?.parse().ok()
}
