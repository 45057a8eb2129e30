//! Messages: one variant of [`Message`] for every message that Bitcoin Core 31 knows.
//!
//! Input: a command and an untrusted payload. Output: a typed value, or a [`DecodeError`] that determines how Core
//! treats the peer. Invariants: decoding is total; bytes after the last field are ignored, like in Core; a list above
//! its limit is an error and its entries are not kept; blocks and transactions stay bytes and are parsed by the code
//! that uses them. Cost: one pass. Which message is allowed when is not decided here.

mod command;
mod decode;
mod encode;
mod payload;
mod version;

pub use command::Command;
pub use decode::block_size;
pub use payload::{
    CFCheckpt, CFHeaders, CFilter, CMPCTBLOCKS_VERSION, Feature, FilterLoad, FilterRange, GetCFCheckpt, Inv, InvType,
    Locator, MerkleBlock, SendCmpct, SendTxRcncl,
};
pub use version::{
    BIP0031_VERSION, FEATURE_VERSION, FEEFILTER_VERSION, INVALID_CB_NO_BAN_VERSION, MIN_PEER_PROTO_VERSION,
    PROTOCOL_VERSION, SENDHEADERS_VERSION, SHORT_IDS_BLOCKS_VERSION, Version, WTXID_RELAY_VERSION,
};

use crate::address::TimedAddress;
use crate::compact::{BlockTransactions, BlockTransactionsRequest, CompactBlock};
use lydian_primitives::{Amount, Header};

/// A message with its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Version(Box<Version>),
    Verack,
    Addr(Vec<TimedAddress>),
    AddrV2(Vec<TimedAddress>),
    SendAddrV2,
    Inv(Vec<Inv>),
    GetData(Vec<Inv>),
    NotFound(Vec<Inv>),
    MerkleBlock(Box<MerkleBlock>),
    GetBlocks(Locator),
    GetHeaders(Locator),
    /// One transaction, as sent.
    Tx(Vec<u8>),
    Headers(Vec<Header>),
    /// The payload as sent. Core reads the block at its beginning and ignores what follows; [`block_size`] returns
    /// where that starts.
    Block(Vec<u8>),
    GetAddr,
    MemPool,
    /// `None` from peers older than BIP-0031, which send no nonce.
    Ping(Option<u64>),
    /// `None` if the payload is too short for a nonce: Core then stops waiting for the answer.
    Pong(Option<u64>),
    FilterLoad(FilterLoad),
    FilterAdd(Vec<u8>),
    FilterClear,
    SendHeaders,
    /// Satoshi per 1000 virtual bytes; ignored if outside the money range.
    FeeFilter(Amount),
    SendCmpct(SendCmpct),
    CmpctBlock(Box<CompactBlock>),
    GetBlockTxn(BlockTransactionsRequest),
    BlockTxn(BlockTransactions),
    GetCFilters(FilterRange),
    CFilter(CFilter),
    GetCFHeaders(FilterRange),
    CFHeaders(CFHeaders),
    GetCFCheckpt(GetCFCheckpt),
    CFCheckpt(CFCheckpt),
    WtxidRelay,
    SendTxRcncl(SendTxRcncl),
    Feature(Feature),
    /// An unknown command, including `reject` and `alert`: ignored.
    Unknown {
        command: Command,
        payload: Vec<u8>,
    },
}

impl Message {
    pub fn command(&self) -> Command {
        match self {
            Message::Version(_) => Command::VERSION,
            Message::Verack => Command::VERACK,
            Message::Addr(_) => Command::ADDR,
            Message::AddrV2(_) => Command::ADDRV2,
            Message::SendAddrV2 => Command::SENDADDRV2,
            Message::Inv(_) => Command::INV,
            Message::GetData(_) => Command::GETDATA,
            Message::NotFound(_) => Command::NOTFOUND,
            Message::MerkleBlock(_) => Command::MERKLEBLOCK,
            Message::GetBlocks(_) => Command::GETBLOCKS,
            Message::GetHeaders(_) => Command::GETHEADERS,
            Message::Tx(_) => Command::TX,
            Message::Headers(_) => Command::HEADERS,
            Message::Block(_) => Command::BLOCK,
            Message::GetAddr => Command::GETADDR,
            Message::MemPool => Command::MEMPOOL,
            Message::Ping(_) => Command::PING,
            Message::Pong(_) => Command::PONG,
            Message::FilterLoad(_) => Command::FILTERLOAD,
            Message::FilterAdd(_) => Command::FILTERADD,
            Message::FilterClear => Command::FILTERCLEAR,
            Message::SendHeaders => Command::SENDHEADERS,
            Message::FeeFilter(_) => Command::FEEFILTER,
            Message::SendCmpct(_) => Command::SENDCMPCT,
            Message::CmpctBlock(_) => Command::CMPCTBLOCK,
            Message::GetBlockTxn(_) => Command::GETBLOCKTXN,
            Message::BlockTxn(_) => Command::BLOCKTXN,
            Message::GetCFilters(_) => Command::GETCFILTERS,
            Message::CFilter(_) => Command::CFILTER,
            Message::GetCFHeaders(_) => Command::GETCFHEADERS,
            Message::CFHeaders(_) => Command::CFHEADERS,
            Message::GetCFCheckpt(_) => Command::GETCFCHECKPT,
            Message::CFCheckpt(_) => Command::CFCHECKPT,
            Message::WtxidRelay => Command::WTXIDRELAY,
            Message::SendTxRcncl(_) => Command::SENDTXRCNCL,
            Message::Feature(_) => Command::FEATURE,
            Message::Unknown { command, .. } => *command,
        }
    }
}

#[cfg(test)]
mod tests;
