//! The payloads of messages that are lists or a few fields. Data only; `message/{decode,encode}.rs` read and write
//! them.

use lydian_primitives::{BlockHash, Header};
use std::fmt;

/// The type of an [`Inv`]: Core's `GetDataMsg`. May have any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InvType(pub u32);

impl InvType {
    pub const TX: InvType = InvType(1);
    pub const BLOCK: InvType = InvType(2);
    pub const FILTERED_BLOCK: InvType = InvType(3);
    pub const CMPCT_BLOCK: InvType = InvType(4);
    pub const WTX: InvType = InvType(5);
    pub const WITNESS_TX: InvType = InvType(1 | 1 << 30);
    pub const WITNESS_BLOCK: InvType = InvType(2 | 1 << 30);

    /// Core's `IsGenTxMsg`.
    pub fn is_gen_tx(self) -> bool {
        matches!(self, InvType::TX | InvType::WTX | InvType::WITNESS_TX)
    }

    /// Core's `IsGenBlkMsg`.
    pub fn is_gen_block(self) -> bool {
        matches!(self, InvType::BLOCK | InvType::FILTERED_BLOCK | InvType::CMPCT_BLOCK | InvType::WITNESS_BLOCK)
    }
}

/// Identifies a block or a transaction: Core's `CInv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inv {
    pub kind: InvType,
    /// A block hash, txid or wtxid, depending on `kind`.
    pub hash: [u8; 32],
}

impl Inv {
    pub fn block(kind: InvType, hash: BlockHash) -> Inv {
        Inv { kind, hash: hash.0 }
    }
}

impl fmt::Display for Inv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let witness = if self.kind.0 & 1 << 30 != 0 { "witness-" } else { "" };
        let hash = BlockHash(self.hash);
        match InvType(self.kind.0 & 0x3fff_ffff) {
            InvType::TX => write!(f, "{witness}tx {hash}"),
            InvType::WTX => write!(f, "{witness}wtx {hash}"),
            InvType::BLOCK => write!(f, "{witness}block {hash}"),
            InvType::FILTERED_BLOCK => write!(f, "{witness}merkleblock {hash}"),
            InvType::CMPCT_BLOCK => write!(f, "{witness}cmpctblock {hash}"),
            _ => write!(f, "0x{:08x} {hash}", self.kind.0),
        }
    }
}

/// `getblocks` and `getheaders`: the blocks that the sender has, newest first, and where to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locator {
    pub hashes: Vec<BlockHash>,
    /// If zero, as many as fit in one message.
    pub stop: BlockHash,
}

/// `merkleblock`: a block with the transactions that a filter selected (BIP-0037).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MerkleBlock {
    pub header: Header,
    pub tx_count: u32,
    pub hashes: Vec<[u8; 32]>,
    /// Eight flags per byte, the lowest bit first.
    pub flags: Vec<u8>,
}

/// `filterload`: a bloom filter (BIP-0037).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterLoad {
    pub data: Vec<u8>,
    pub hash_funcs: u32,
    pub tweak: u32,
    pub flags: u8,
}

/// `sendcmpct`: the sender supports compact blocks; also whether they may be sent unrequested (BIP-0152).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendCmpct {
    pub high_bandwidth: bool,
    /// Core supports only [`CMPCTBLOCKS_VERSION`] and ignores the message with any other version.
    pub version: u64,
}

/// Compact blocks with wtxids: Core's `CMPCTBLOCKS_VERSION`.
pub const CMPCTBLOCKS_VERSION: u64 = 2;

/// `getcfilters` and `getcfheaders`: a range of blocks (BIP-0157).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterRange {
    pub filter_type: u8,
    pub start_height: u32,
    pub stop_hash: BlockHash,
}

/// `cfilter`: the filter of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CFilter {
    pub filter_type: u8,
    pub block_hash: BlockHash,
    pub filter: Vec<u8>,
}

/// `cfheaders`: hashes of the filters of a range, and the filter header before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CFHeaders {
    pub filter_type: u8,
    pub stop_hash: BlockHash,
    pub previous_header: [u8; 32],
    pub filter_hashes: Vec<[u8; 32]>,
}

/// `getcfcheckpt`: requests every thousandth filter header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetCFCheckpt {
    pub filter_type: u8,
    pub stop_hash: BlockHash,
}

/// `cfcheckpt`: the requested headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CFCheckpt {
    pub filter_type: u8,
    pub stop_hash: BlockHash,
    pub headers: Vec<[u8; 32]>,
}

/// `sendtxrcncl`: the sender supports transaction reconciliation (BIP-0330).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendTxRcncl {
    pub version: u32,
    pub salt: u64,
}

/// `feature`: a capability by name (BIP-0434).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    pub id: Vec<u8>,
    pub data: Vec<u8>,
}
