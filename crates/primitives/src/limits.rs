//! Limits of the wire format, each with the Bitcoin Core constant or function it comes from. Constants only.

/// The largest length or count that a CompactSize may encode: Core's `MAX_SIZE` (serialize.h). A larger one is a parse
/// error.
pub const COMPACT_SIZE_MAX: u64 = 0x0200_0000;

/// The largest buffer accepted for one block, in bytes. Offsets are `u32`, and Core reads no larger message or record.
pub const BLOCK_BUFFER_SIZE_MAX: usize = 0x0200_0000;
