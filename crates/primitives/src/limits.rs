//! Limits of the wire format, each with the function of Bitcoin Core it comes from. Constants only.

/// Largest length or count a CompactSize may announce: Core's `MAX_SIZE` (serialize.h). Larger is a parse error.
pub const COMPACT_SIZE_MAX: u64 = 0x0200_0000;

/// Largest buffer taken for one block, in bytes. Offsets are `u32`, and no message or record that Core reads is larger.
pub const BLOCK_BUFFER_SIZE_MAX: usize = 0x0200_0000;

/// Bytes of a block header.
pub const HEADER_SIZE: usize = 80;

/// Least bytes of an input: outpoint 36, script length 1, sequence 4. Bounds the reservation made from a count.
pub(crate) const INPUT_SIZE_MIN: usize = 41;

/// Least bytes of an output: value 8, script length 1.
pub(crate) const OUTPUT_SIZE_MIN: usize = 9;

/// Least bytes of a transaction: version 4, marker or counts 2, lock time 4.
pub(crate) const TRANSACTION_SIZE_MIN: usize = 10;
