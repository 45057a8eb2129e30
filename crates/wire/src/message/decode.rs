//! Decodes a payload into a [`Message`]. Total.
//!
//! The order of reading and checking is that of Core's `ProcessMessage`, so that of two errors the same one is
//! reported.

use super::payload::{
    CFCheckpt, CFHeaders, CFilter, Feature, FilterLoad, FilterRange, GetCFCheckpt, Inv, InvType, Locator, MerkleBlock,
    SendCmpct, SendTxRcncl,
};
use super::{Command, Message, Version};
use crate::address::{Encoding, TimedAddress};
use crate::codec::{limited, list};
use crate::compact::{BlockTransactions, BlockTransactionsRequest, CompactBlock};
use crate::error::DecodeError;
use crate::limits::{
    ADDR_COUNT_MAX, BLOOM_FILTER_SIZE_MAX, BLOOM_HASH_FUNCS_MAX, FEATURE_DATA_SIZE_MAX, FEATURE_ID_SIZE_MAX,
    FEATURE_ID_SIZE_MIN, FILTERADD_SIZE_MAX, HEADERS_COUNT_MAX, INV_COUNT_MAX, LOCATOR_COUNT_MAX, NOTFOUND_COUNT_MAX,
};
use lydian_primitives::{Amount, BlockHash, Header, ParseError, Reader, block, transaction};

impl Message {
    /// Decodes a borrowed payload. Copies blocks and transactions.
    pub fn decode(command: &Command, payload: &[u8]) -> Result<Message, DecodeError> {
        match *command {
            Command::BLOCK => Ok(Message::Block(payload.to_vec())),
            _ => decode_fields(command, payload),
        }
    }

    /// Decodes an owned payload. A block is not copied.
    pub fn decode_owned(command: &Command, payload: Vec<u8>) -> Result<Message, DecodeError> {
        match *command {
            Command::BLOCK => Ok(Message::Block(payload)),
            _ => decode_fields(command, &payload),
        }
    }
}

/// Returns the size of the block at the beginning of a `block` payload. An error means that Core ignores the message.
/// One pass over the bytes without hashing: call it if parsing found trailing bytes.
pub fn block_size(payload: &[u8]) -> Result<usize, ParseError> {
    block::scan_prefix(payload)
}

fn decode_fields(command: &Command, payload: &[u8]) -> Result<Message, DecodeError> {
    let mut reader = Reader::new(payload);
    let reader = &mut reader;
    Ok(match *command {
        Command::VERSION => Message::Version(Box::new(Version::decode(reader)?)),
        Command::VERACK => Message::Verack,
        Command::ADDR => Message::Addr(addresses(command, reader, Encoding::V1)?),
        Command::ADDRV2 => Message::AddrV2(addresses(command, reader, Encoding::V2)?),
        Command::SENDADDRV2 => Message::SendAddrV2,
        Command::INV => Message::Inv(inventory(command, reader, INV_COUNT_MAX)?),
        Command::GETDATA => Message::GetData(inventory(command, reader, INV_COUNT_MAX)?),
        Command::NOTFOUND => Message::NotFound(inventory(command, reader, NOTFOUND_COUNT_MAX)?),
        Command::MERKLEBLOCK => Message::MerkleBlock(Box::new(merkle_block(reader)?)),
        Command::GETBLOCKS => Message::GetBlocks(locator(command, reader)?),
        Command::GETHEADERS => Message::GetHeaders(locator(command, reader)?),
        Command::TX => {
            transaction::skip(reader)?;
            Message::Tx(payload[..reader.offset()].to_vec())
        }
        Command::HEADERS => Message::Headers(headers(command, reader)?),
        Command::BLOCK => Message::Block(payload.to_vec()),
        Command::GETADDR => Message::GetAddr,
        Command::MEMPOOL => Message::MemPool,
        Command::PING if payload.is_empty() => Message::Ping(None),
        Command::PING => Message::Ping(Some(u64::from_le_bytes(reader.array()?))),
        Command::PONG => Message::Pong(payload.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))),
        Command::FILTERLOAD => Message::FilterLoad(filter_load(reader)?),
        Command::FILTERADD => Message::FilterAdd(filter_add(reader)?),
        Command::FILTERCLEAR => Message::FilterClear,
        Command::SENDHEADERS => Message::SendHeaders,
        Command::FEEFILTER => Message::FeeFilter(Amount(reader.i64()?)),
        Command::SENDCMPCT => Message::SendCmpct(send_cmpct(reader)?),
        Command::CMPCTBLOCK => Message::CmpctBlock(Box::new(CompactBlock::decode(reader)?)),
        Command::GETBLOCKTXN => Message::GetBlockTxn(BlockTransactionsRequest::decode(reader)?),
        Command::BLOCKTXN => Message::BlockTxn(BlockTransactions::decode(reader)?),
        Command::GETCFILTERS => Message::GetCFilters(filter_range(reader)?),
        Command::CFILTER => Message::CFilter(CFilter {
            filter_type: reader.u8()?,
            block_hash: BlockHash(reader.array()?),
            filter: reader.var_bytes()?.to_vec(),
        }),
        Command::GETCFHEADERS => Message::GetCFHeaders(filter_range(reader)?),
        Command::CFHEADERS => Message::CFHeaders(CFHeaders {
            filter_type: reader.u8()?,
            stop_hash: BlockHash(reader.array()?),
            previous_header: reader.array()?,
            filter_hashes: hashes(reader)?,
        }),
        Command::GETCFCHECKPT => {
            Message::GetCFCheckpt(GetCFCheckpt { filter_type: reader.u8()?, stop_hash: BlockHash(reader.array()?) })
        }
        Command::CFCHECKPT => Message::CFCheckpt(CFCheckpt {
            filter_type: reader.u8()?,
            stop_hash: BlockHash(reader.array()?),
            headers: hashes(reader)?,
        }),
        Command::WTXIDRELAY => Message::WtxidRelay,
        Command::SENDTXRCNCL => {
            Message::SendTxRcncl(SendTxRcncl { version: reader.u32()?, salt: u64::from_le_bytes(reader.array()?) })
        }
        Command::FEATURE => Message::Feature(feature(reader).ok_or(DecodeError::InvalidFeature)?),
        command => Message::Unknown { command, payload: payload.to_vec() },
    })
}

/// Core reads the whole list and then checks its length, so a list that is cut off is malformed whatever length it
/// declared.
fn check_count(command: &Command, count: usize, limit: usize) -> Result<(), DecodeError> {
    if count > limit { Err(DecodeError::TooMany { command: *command, count, limit }) } else { Ok(()) }
}

fn addresses(command: &Command, reader: &mut Reader<'_>, encoding: Encoding) -> Result<Vec<TimedAddress>, DecodeError> {
    let count = reader.compact_size()?;
    let mut kept = Vec::new();
    for _ in 0..count {
        let address = TimedAddress::decode(reader, encoding)?;
        if kept.len() < ADDR_COUNT_MAX {
            kept.push(address);
        }
    }
    check_count(command, count, ADDR_COUNT_MAX)?;
    Ok(kept)
}

fn inventory(command: &Command, reader: &mut Reader<'_>, limit: usize) -> Result<Vec<Inv>, DecodeError> {
    const INV_SIZE: usize = 36;
    let count = reader.compact_size()?;
    if count > limit {
        reader.take(count.saturating_mul(INV_SIZE))?;
        check_count(command, count, limit)?;
    }
    list(reader, count, INV_SIZE, |reader| Ok(Inv { kind: InvType(reader.u32()?), hash: reader.array()? }))
}

fn locator(command: &Command, reader: &mut Reader<'_>) -> Result<Locator, DecodeError> {
    reader.take(4)?;
    let count = reader.compact_size()?;
    let mut bytes = Reader::new(reader.take(count.saturating_mul(32))?);
    let stop = BlockHash(reader.array()?);
    check_count(command, count, LOCATOR_COUNT_MAX)?;
    let hashes = list(&mut bytes, count, 32, |bytes| Ok(BlockHash(bytes.array()?)))?;
    Ok(Locator { hashes, stop })
}

/// Unlike for other lists, the length is checked before the entries. The transaction count after each header may be any
/// number.
fn headers(command: &Command, reader: &mut Reader<'_>) -> Result<Vec<Header>, DecodeError> {
    let count = reader.compact_size()?;
    check_count(command, count, HEADERS_COUNT_MAX)?;
    list(reader, count, 81, |reader| {
        let header = Header::read(reader)?;
        reader.compact_size()?;
        Ok(header)
    })
}

fn merkle_block(reader: &mut Reader<'_>) -> Result<MerkleBlock, DecodeError> {
    Ok(MerkleBlock {
        header: Header::read(reader)?,
        tx_count: reader.u32()?,
        hashes: hashes(reader)?,
        flags: reader.var_bytes()?.to_vec(),
    })
}

fn hashes(reader: &mut Reader<'_>) -> Result<Vec<[u8; 32]>, DecodeError> {
    let count = reader.compact_size()?;
    list(reader, count, 32, |reader| Ok(reader.array()?))
}

fn filter_load(reader: &mut Reader<'_>) -> Result<FilterLoad, DecodeError> {
    let data = reader.var_bytes()?;
    let (hash_funcs, tweak, flags) = (reader.u32()?, reader.u32()?, reader.u8()?);
    if data.len() > BLOOM_FILTER_SIZE_MAX || hash_funcs > BLOOM_HASH_FUNCS_MAX {
        return Err(DecodeError::BloomFilterTooLarge { size: data.len(), hash_funcs });
    }
    Ok(FilterLoad { data: data.to_vec(), hash_funcs, tweak, flags })
}

fn filter_add(reader: &mut Reader<'_>) -> Result<Vec<u8>, DecodeError> {
    let data = reader.var_bytes()?;
    if data.len() > FILTERADD_SIZE_MAX {
        return Err(DecodeError::FilterAddTooLarge { size: data.len() });
    }
    Ok(data.to_vec())
}

fn send_cmpct(reader: &mut Reader<'_>) -> Result<SendCmpct, DecodeError> {
    let value = reader.u8()?;
    let version = u64::from_le_bytes(reader.array()?);
    if value > 1 {
        return Err(DecodeError::InvalidAnnounceField { value });
    }
    Ok(SendCmpct { high_bandwidth: value == 1, version })
}

fn filter_range(reader: &mut Reader<'_>) -> Result<FilterRange, DecodeError> {
    Ok(FilterRange { filter_type: reader.u8()?, start_height: reader.u32()?, stop_hash: BlockHash(reader.array()?) })
}

/// The only message that must end with its last field.
fn feature(reader: &mut Reader<'_>) -> Option<Feature> {
    let id = limited(reader, FEATURE_ID_SIZE_MAX).ok()?.to_vec();
    let data = limited(reader, FEATURE_DATA_SIZE_MAX).ok()?.to_vec();
    (id.len() >= FEATURE_ID_SIZE_MIN && reader.remaining() == 0).then_some(Feature { id, data })
}
