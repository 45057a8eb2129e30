//! Encodes a [`Message`] as its payload.
//!
//! Writes any value: the sender must ensure that a list is within its limit, and that `addr` contains only addresses
//! that it can represent.

use super::payload::{FilterRange, Inv, Locator};
use super::{Message, PROTOCOL_VERSION};
use crate::address::{Encoding, TimedAddress};
use lydian_primitives::build::write_var_bytes;
use lydian_primitives::write_compact_size;

impl Message {
    /// Appends the payload.
    // tidy: long function: a table of messages in the shape of a function
    pub fn encode_payload(&self, out: &mut Vec<u8>) {
        match self {
            Message::Version(version) => version.encode(out),
            Message::Addr(list) => addresses(out, list, Encoding::V1),
            Message::AddrV2(list) => addresses(out, list, Encoding::V2),
            Message::Inv(list) | Message::GetData(list) | Message::NotFound(list) => inventory(out, list),
            Message::MerkleBlock(block) => {
                out.extend_from_slice(&block.header.to_bytes());
                out.extend_from_slice(&block.tx_count.to_le_bytes());
                hashes(out, &block.hashes);
                write_var_bytes(out, &block.flags);
            }
            Message::GetBlocks(locator) | Message::GetHeaders(locator) => write_locator(out, locator),
            Message::Tx(bytes) | Message::Block(bytes) | Message::Unknown { payload: bytes, .. } => {
                out.extend_from_slice(bytes);
            }
            Message::Headers(headers) => {
                out.reserve(9 + 81 * headers.len());
                write_compact_size(out, headers.len());
                for header in headers {
                    out.extend_from_slice(&header.to_bytes());
                    out.push(0);
                }
            }
            Message::Ping(nonce) | Message::Pong(nonce) => {
                out.extend(nonce.iter().flat_map(|nonce| nonce.to_le_bytes()))
            }
            Message::FilterLoad(filter) => {
                write_var_bytes(out, &filter.data);
                out.extend_from_slice(&filter.hash_funcs.to_le_bytes());
                out.extend_from_slice(&filter.tweak.to_le_bytes());
                out.push(filter.flags);
            }
            Message::FilterAdd(data) => write_var_bytes(out, data),
            Message::FeeFilter(fee) => out.extend_from_slice(&fee.0.to_le_bytes()),
            Message::SendCmpct(send) => {
                out.push(u8::from(send.high_bandwidth));
                out.extend_from_slice(&send.version.to_le_bytes());
            }
            Message::CmpctBlock(block) => block.encode(out),
            Message::GetBlockTxn(request) => request.encode(out),
            Message::BlockTxn(answer) => answer.encode(out),
            Message::GetCFilters(range) | Message::GetCFHeaders(range) => filter_range(out, range),
            Message::CFilter(filter) => {
                out.push(filter.filter_type);
                out.extend_from_slice(&filter.block_hash.0);
                write_var_bytes(out, &filter.filter);
            }
            Message::CFHeaders(headers) => {
                out.push(headers.filter_type);
                out.extend_from_slice(&headers.stop_hash.0);
                out.extend_from_slice(&headers.previous_header);
                hashes(out, &headers.filter_hashes);
            }
            Message::GetCFCheckpt(get) => {
                out.push(get.filter_type);
                out.extend_from_slice(&get.stop_hash.0);
            }
            Message::CFCheckpt(checkpoint) => {
                out.push(checkpoint.filter_type);
                out.extend_from_slice(&checkpoint.stop_hash.0);
                hashes(out, &checkpoint.headers);
            }
            Message::SendTxRcncl(send) => {
                out.extend_from_slice(&send.version.to_le_bytes());
                out.extend_from_slice(&send.salt.to_le_bytes());
            }
            Message::Feature(feature) => {
                write_var_bytes(out, &feature.id);
                write_var_bytes(out, &feature.data);
            }
            Message::Verack
            | Message::SendAddrV2
            | Message::GetAddr
            | Message::MemPool
            | Message::FilterClear
            | Message::SendHeaders
            | Message::WtxidRelay => {}
        }
    }

    /// The payload.
    pub fn payload(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_payload(&mut out);
        out
    }
}

fn addresses(out: &mut Vec<u8>, list: &[TimedAddress], encoding: Encoding) {
    write_compact_size(out, list.len());
    for address in list {
        address.encode(out, encoding);
    }
}

fn inventory(out: &mut Vec<u8>, list: &[Inv]) {
    out.reserve(9 + 36 * list.len());
    write_compact_size(out, list.len());
    for inv in list {
        out.extend_from_slice(&inv.kind.0.to_le_bytes());
        out.extend_from_slice(&inv.hash);
    }
}

fn hashes(out: &mut Vec<u8>, list: &[[u8; 32]]) {
    write_compact_size(out, list.len());
    out.extend_from_slice(list.as_flattened());
}

fn write_locator(out: &mut Vec<u8>, locator: &Locator) {
    // The value that Core writes; no node reads it.
    const DUMMY_VERSION: i32 = PROTOCOL_VERSION - 1;
    out.extend_from_slice(&DUMMY_VERSION.to_le_bytes());
    write_compact_size(out, locator.hashes.len());
    for hash in &locator.hashes {
        out.extend_from_slice(&hash.0);
    }
    out.extend_from_slice(&locator.stop.0);
}

fn filter_range(out: &mut Vec<u8>, range: &FilterRange) {
    out.push(range.filter_type);
    out.extend_from_slice(&range.start_height.to_le_bytes());
    out.extend_from_slice(&range.stop_hash.0);
}
